"""Leaves that answer with numbers, as plain arrays: a regression, and its spread.

As everywhere in `classifiers`, a row's answer does not depend on the rows beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from sensortree.policy.classifiers import row_sums
from sensortree.threads import one_thread
from sensortree.types import Array


class Regression(Protocol):
    """Whatever sums up readings to one number."""

    def scores(self, X: Array) -> Array:
        """The numbers, (n_rows, 1)."""
        ...


@dataclass(frozen=True, eq=False)
class Foreign:
    """A fitted regressor of another library.

    Attributes
    ----------
    regressor : fitted regressor
    """

    regressor: Any

    def scores(self, X: Array) -> Array:
        """What it predicts, (n_rows, 1)."""
        if not len(X):
            return np.empty((0, 1))
        with one_thread():
            said = self.regressor.predict(X)
        return np.asarray(said, dtype=np.float64).reshape(-1, 1)


@dataclass(frozen=True, eq=False)
class Spread:
    """How far off a regression is expected to be, by the readings and what it says.

    The standard deviation is a sum of standardised columns, of the number that the
    regression gives, and of the squares of all these; it is kept within bounds. A missing
    reading counts as the mean.

    Attributes
    ----------
    center, scale : ndarray of shape (width + 1,) or (1,)
        Of the columns, if they are looked at, and last of the regression's number.
    coef : ndarray of shape (2 * len(center),)
        Of all of them, then of their squares.
    intercept, least, most : float
    """

    center: Array
    scale: Array
    coef: Array
    intercept: float
    least: float
    most: float

    def features(self, X: Array, number: Array) -> Array:
        """What the spread is a sum of, (n_rows, 2 * len(center))."""
        return spread_features(X, number, self.center, self.scale)

    def of(self, X: Array, number: Array) -> Array:
        """Standard deviations, (n_rows,)."""
        value = row_sums(self.features(X, number) * self.coef) + self.intercept
        return np.asarray(np.clip(value, self.least, self.most))


def spread_features(X: Array, number: Array, center: Array, scale: Array) -> Array:
    """Standardised columns and number, then their squares, (n_rows, 2 * len(center))."""
    looked_at = X if len(center) > 1 else X[:, :0]
    columns = np.concatenate([looked_at, number[:, None]], axis=1)
    columns = (columns - center) / scale
    columns[np.isnan(columns)] = 0.0
    return np.concatenate([columns, columns**2], axis=1)


@dataclass(frozen=True, eq=False)
class Answering:
    """How the number of a regression becomes an answer.

    Attributes
    ----------
    spread : Spread
    shift : float
        Spreads that are added to the regression's number, to answer with a quantile; 0
        for the mean.
    low, high : float
        Range of the numbers that were learned from; answers keep within it.
    """

    spread: Spread
    shift: float
    low: float
    high: float

    def of(self, X: Array, number: Array) -> Array:
        """Answer and spread of rows that a regression says some number of, (n_rows, 2)."""
        spread = self.spread.of(X, number)
        answer = np.clip(number + self.shift * spread, self.low, self.high)
        return np.stack([answer, spread], axis=1)


@dataclass(frozen=True, eq=False)
class NumberScorer:
    """A number for every row, with its spread.

    Attributes
    ----------
    regression : Polynomial, BoostedScorer or Foreign
    answering : Answering
    """

    regression: Regression
    answering: Answering

    def says(self, X: Array) -> Array:
        """Answer and spread, (n_rows, 2)."""
        return self.answering.of(X, self.regression.scores(X)[:, 0])

    def predict(self, X: Array) -> Array:
        """Answers, (n_rows,)."""
        return np.asarray(self.says(X)[:, 0])
