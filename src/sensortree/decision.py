"""Decision functions (g_j): linear in what is known at their node."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class DecisionFeatures:
    """What a decision function is linear in: standardised readings, and an intercept.

    A missing value counts as the mean, and a column that had missing values in training
    also gets a column that says so.

    Attributes
    ----------
    center, scale : ndarray of shape (width,)
    may_miss : ndarray of bool of shape (width,)
    """

    center: Array
    scale: Array
    may_miss: NDArray[np.bool_]

    def __call__(self, readings: Array) -> Array:
        """Features of some rows, (n_rows, width + number that may miss + 1)."""
        missing = np.isnan(readings)
        standardised = np.where(missing, 0.0, (readings - self.center) / self.scale)
        return np.hstack(
            [standardised, missing[:, self.may_miss], np.ones((len(readings), 1))]
        )


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

    def __call__(self, readings: Array) -> Array:
        """Values of g_j for some rows, (n_rows,)."""
        return self.features(readings) @ self.coef


def fit_decision_features(readings: Array, sample_weight: Array) -> DecisionFeatures:
    """Learn centre, scale and missingness from training rows, NaN left out."""
    missing = np.isnan(readings)
    weight = np.where(missing, 0.0, sample_weight[:, None])
    total = np.maximum(weight.sum(axis=0), np.finfo(float).tiny)
    known = np.where(missing, 0.0, readings)
    center = (weight * known).sum(axis=0) / total
    spread = (weight * (known - center) ** 2).sum(axis=0) / total
    scale = np.where(spread > 0, np.sqrt(spread), 1.0)
    return DecisionFeatures(center, scale, np.asarray(missing.any(axis=0)))
