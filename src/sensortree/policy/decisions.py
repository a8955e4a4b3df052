"""Decision functions (g_j): linear in features of what is known at their node.

What is known at a node is the readings of its sensors, and the posterior that a
classifier on those sensors gives: class probabilities say whether the answer is sure yet.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sensortree.exceptions import DataError
from sensortree.policy.classifiers import row_sums
from sensortree.sensors.reader import LARGEST
from sensortree.types import Array

TINY = float(np.finfo(float).tiny)


class Part(Protocol):
    """Some columns of the decision features, before they are standardised."""

    @property
    def needs_posterior(self) -> bool:
        """Whether the posterior is looked at."""
        ...

    def __call__(self, readings: Array, posterior: Array | None) -> Array:
        """Columns of some rows, (n_rows, width)."""
        ...


@dataclass(frozen=True)
class Raw:
    """The readings themselves, as published."""

    needs_posterior = False

    def __call__(self, readings: Array, posterior: Array | None) -> Array:
        """Readings as they are."""
        return readings


@dataclass(frozen=True)
class Posterior:
    """Class probabilities, the largest, its lead over the next, and the entropy.

    The first class is left out of the probabilities, which sum to 1; with two classes the
    lead is a function of the largest.
    """

    needs_posterior = True

    def __call__(self, readings: Array, posterior: Array | None) -> Array:
        """Columns of some rows, (n_rows, n_classes + 2), or 3 for two classes."""
        assert posterior is not None  # whoever holds this part gives one
        n_classes = posterior.shape[1]
        leading = np.partition(posterior, n_classes - 2, axis=1)
        logs = np.maximum(posterior, TINY)
        np.log(logs, out=logs)
        logs *= posterior
        columns = np.empty((len(posterior), n_classes + (2 if n_classes > 2 else 1)))
        columns[:, : n_classes - 1] = posterior[:, 1:]
        columns[:, n_classes - 1] = leading[:, -1]
        if n_classes > 2:
            np.subtract(leading[:, -1], leading[:, -2], out=columns[:, n_classes])
        np.negative(row_sums(logs), out=columns[:, -1])
        return columns


@dataclass(frozen=True)
class Predicted:
    """The number that would be answered, and its spread."""

    needs_posterior = True

    def __call__(self, readings: Array, posterior: Array | None) -> Array:
        """Columns of some rows, (n_rows, 2)."""
        assert posterior is not None  # whoever holds this part gives one
        return posterior


@dataclass(frozen=True)
class Squares:
    """Squares and products of another part's columns."""

    part: Part

    @property
    def needs_posterior(self) -> bool:
        """Whether the part does."""
        return self.part.needs_posterior

    def __call__(self, readings: Array, posterior: Array | None) -> Array:
        """Columns of some rows, (n_rows, width (width + 1) / 2)."""
        columns = self.part(readings, posterior)
        first, second = np.triu_indices(columns.shape[1])
        return np.asarray(columns[:, first] * columns[:, second])


@dataclass(frozen=True, eq=False)
class Transformed:
    """What a fitted scikit-learn transformer makes of the readings."""

    transformer: Any
    needs_posterior = False

    def __call__(self, readings: Array, posterior: Array | None) -> Array:
        """Columns of some rows, as the transformer gives them."""
        columns = self.transformer.transform(readings)
        columns = columns.toarray() if hasattr(columns, "toarray") else columns
        columns = np.asarray(columns, dtype=float).reshape(len(readings), -1)
        if (np.abs(columns) > LARGEST).any():
            raise DataError(
                f"the transformer given as decision_features makes infinities of readings, "
                f"or numbers beyond {LARGEST:g}; use one that returns smaller numbers."
            )
        return columns


PARTS: dict[str, tuple[Part, ...]] = {
    "posterior+raw": (Posterior(), Raw()),
    "posterior": (Posterior(),),
    "raw": (Raw(),),
    "quadratic": (Posterior(), Squares(Posterior()), Raw()),
}

NUMBER_PARTS: dict[str, tuple[Part, ...]] = {
    "prediction+raw": (Predicted(), Raw()),
    "prediction": (Predicted(),),
    "raw": (Raw(),),
    "quadratic": (Predicted(), Squares(Predicted()), Raw()),
}


@dataclass(frozen=True, eq=False)
class DecisionFeatures:
    """What a decision function is linear in: standardised columns, and an intercept.

    A missing value counts as the mean, and a column that had missing values in training
    also gets a column that says so.

    Attributes
    ----------
    parts : tuple of Part
    center, scale : ndarray of shape (width,)
    may_miss : ndarray of bool of shape (width,)
    """

    parts: tuple[Part, ...]
    center: Array
    scale: Array
    may_miss: NDArray[np.bool_]

    def columns(self, readings: Array, posterior: Array | None, prices: Array) -> Array:
        """Columns of some rows as they are, (n_rows, width)."""
        return feature_columns(self.parts, readings, posterior, prices)

    def __call__(
        self, readings: Array, posterior: Array | None, prices: Array
    ) -> Array:
        """Features of some rows, (n_rows, width + number that may miss + 1)."""
        columns = self.columns(readings, posterior, prices)
        missing = np.isnan(columns)
        standardised = np.where(missing, 0.0, (columns - self.center) / self.scale)
        absent = missing[:, self.may_miss]
        return np.hstack([standardised, absent, np.ones((len(standardised), 1))])


@dataclass(frozen=True, eq=False)
class DecisionFunction:
    """g_j: positive takes the positive child, zero and negative the negative one.

    Attributes
    ----------
    features : DecisionFeatures
    coef : ndarray of shape (D_j,)
        Coefficients (θ_j) of the features, the intercept last.
    """

    features: DecisionFeatures
    coef: Array

    @cached_property
    def needs_posterior(self) -> bool:
        """Whether the posterior of the node's classifier is looked at."""
        return any(part.needs_posterior for part in self.features.parts)

    @cached_property
    def _weights(self) -> tuple[Array, Array, float]:
        """Coefficients of the columns as they are and of their absence, the intercept."""
        width = len(self.features.center)
        own = self.coef[:width] / self.features.scale
        return own, self.coef[width:-1], float(self.coef[-1])

    def __call__(
        self, readings: Array, posterior: Array | None, prices: Array
    ) -> Array:
        """Values of g_j for some rows, (n_rows,)."""
        return self.of(self.features.columns(readings, posterior, prices))

    def of(self, columns: Array) -> Array:
        """Values of g_j for columns of its features as they are, (n_rows,)."""
        own, absence, intercept = self._weights
        terms = columns - self.features.center
        terms *= own
        value = row_sums(terms)
        if not math.isfinite(np.add.reduce(value)):  # rather than look at each number
            missing = np.isnan(columns)
            terms[missing] = 0.0
            value = row_sums(terms)
            if len(absence):
                gone = missing[:, self.features.may_miss] * absence
                value += row_sums(gone)
        value += intercept
        return np.asarray(value)


def feature_columns(
    parts: tuple[Part, ...], readings: Array, posterior: Array | None, prices: Array
) -> Array:
    """Columns of the parts, then the prices of the examples that have their own."""
    columns = [part(readings, posterior) for part in parts]
    if prices.shape[1]:
        columns.append(prices)
    return np.concatenate(columns, axis=1) if len(columns) > 1 else columns[0]
