"""`Fewer`: classifiers of fewer sensors, which one of more is pulled towards.

Of a log, more rows bought a few sensors than bought many. What those say is

    log p(y | more) = log p(y | fewer) + what the others add,

and only the last has to be learned from the few rows that bought more. A polynomial in
fewer columns is one in more, so that the penalty of the larger classifier can be on how
far its coefficients are from those of the smaller, in place of how far they are from 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sensortree.policy.classifiers import LogisticScorer
from sensortree.types import Array, Rows


@dataclass(frozen=True, eq=False)
class Fewer:
    """Classifiers of fewer columns, by the fold that they have not seen.

    Attributes
    ----------
    columns : ndarray of shape (n_fewer,)
        Where their columns stand among those of more.
    scorers : mapping of int to LogisticScorer
        By the fold that was held out, as `RidgeProblem` counts them.
    """

    columns: Rows
    scorers: Mapping[int, LogisticScorer]

    def in_terms_of(self, center: Array, scale: Array) -> dict[int, Array]:
        """Coefficients of each on the standardised basis of more columns."""
        return {
            fold: in_terms_of(scorer, self.columns, center, scale)
            for fold, scorer in self.scorers.items()
        }


def in_terms_of(
    scorer: LogisticScorer, columns: Rows, center: Array, scale: Array
) -> Array:
    """Coefficients of the same polynomial of degree 2 on other columns.

    A column (x - c) / s of the scorer is a z + b, with z the new one. So

        Σ l_i x_i + Σ_{i≤j} q_ij x_i x_j = l'(az + b) + (az + b)' Q (az + b).

    Parameters
    ----------
    scorer : LogisticScorer
    columns : ndarray of shape (n_fewer,)
        Where its columns stand among the new ones.
    center, scale : ndarray of shape (width,)
        By which the new columns are standardised.

    Returns
    -------
    coef : ndarray of shape (n_outputs, n_terms + 1)
        The intercept is the last.
    """
    width, n_fewer = len(center), len(columns)
    a = scale[columns] / scorer.scale
    b = (center[columns] - scorer.center) / scorer.scale
    n_outputs = len(scorer.intercept)
    slope, square = scorer.coef[:n_fewer].T, np.zeros((n_outputs, n_fewer, n_fewer))
    if scorer.degree == 2:
        square[:, *np.triu_indices(n_fewer)] = scorer.coef[n_fewer:].T
    linear = np.zeros((n_outputs, width))
    linear[:, columns] = a * (slope + square @ b + b @ square)
    products = np.zeros((n_outputs, width, width))
    products[:, columns[:, None], columns] = a[:, None] * square * a
    products += np.tril(products, -1).transpose(
        0, 2, 1
    )  # if columns change their order
    constant = scorer.intercept + slope @ b + (square @ b) @ b
    upper = products[:, *np.triu_indices(width)]
    return np.hstack([linear, upper, constant[:, None]])
