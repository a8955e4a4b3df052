"""How far off regressions are expected to be: learned from what they leave unexplained."""

from __future__ import annotations

import numpy as np

from sensortree.leaves.least_squares import fit_sums, sums_of
from sensortree.leaves.standardising import moments
from sensortree.policy.numbers import Answering, Spread, spread_features
from sensortree.sensors.number_loss import weighted_quantile
from sensortree.types import Array

# Columns up to which the spread looks at readings; of more, at the regression's number.
COLUMNS = 60
# Parts and multiples of its mean that a spread keeps within.
LEAST, MOST = 0.2, 5.0


def fit_spread(X: Array, number: Array, left: Array, weight: Array) -> Spread:
    """The spread of what a regression leaves unexplained, by readings and its number.

    Sizes of what is left are regressed, the penalty by evidence; they are then stretched
    so that, in units of the spread, the mean square of what is left is 1.

    Parameters
    ----------
    X : ndarray of shape (n_rows, width)
    number : ndarray of shape (n_rows,)
        What the regression says.
    left : ndarray of shape (n_rows,)
        The truth less that.
    weight : ndarray of shape (n_rows,)
    """
    seen = X if X.shape[1] <= COLUMNS else X[:, :0]
    center, scale = moments(np.column_stack([seen, number]), weight)
    sizes, total = np.abs(left), float(weight.sum())
    mean = float(weight @ sizes) / total
    if not mean > 0:
        return Spread(center, scale, np.zeros(2 * len(center)), 0.0, 0.0, 0.0)
    features = spread_features(X, number, center, scale)
    terms = np.concatenate([features.T, np.ones((1, len(X)))])
    ridge, _ = fit_sums(sums_of(terms, sizes / mean, weight))
    known = np.clip(features @ ridge.coef + ridge.intercept, LEAST, MOST)
    stretch = float(np.sqrt(weight @ (left / (mean * known)) ** 2 / total)) * mean
    return Spread(
        center,
        scale,
        stretch * ridge.coef,
        stretch * ridge.intercept,
        stretch * LEAST,
        stretch * MOST,
    )


def fit_answering(
    X: Array,
    y: Array,
    number: Array,
    left: Array,
    weight: Array,
    quantile: float | None,
) -> Answering:
    """Spread, and what makes an answer of a regression's number: the mean, or a quantile.

    A quantile is as many spreads away from the mean for all rows.

    Parameters
    ----------
    X, y, weight
        Rows that are learned from.
    number : ndarray of shape (n_rows,)
        What the regression says.
    left : ndarray of shape (n_rows,)
        What it leaves unexplained of rows that it has not seen.
    quantile : float or None
        None is the mean.
    """
    spread = fit_spread(X, number, left, weight)
    shift = 0.0
    if quantile is not None and spread.most > 0:
        sizes = spread.of(X, number)
        shift = weighted_quantile(left / sizes, weight, quantile)
    return Answering(spread, shift, float(y.min()), float(y.max()))
