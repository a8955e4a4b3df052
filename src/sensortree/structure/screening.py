"""`LeastSquaresScreen`: what any subset of sensors could predict, from one Gram matrix.

The classes are regressed, as indicators, or a number is, on a polynomial basis of the
readings. With the Gram matrix of the whole basis at hand, a subset costs one small linear
system per fold; each row is answered by the coefficients fitted without its fold.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg.blas import dsyrk, ssyrk
from scipy.linalg.lapack import dposv

from sensortree.leaves.standardising import moments
from sensortree.types import Array, Rows

# Columns up to which all products of two are in the basis; beyond it only squares are.
PRODUCTS = 60
# Ridge penalty, as a share of the number of rows; columns are standardised.
RIDGE = 1e-3
# Rows times terms squared from which single precision must do.
MUCH = 2e9


class LeastSquaresScreen:
    """Least squares on any subset of sensors, out of fold.

    Parameters
    ----------
    blocks : list of n_sensors arrays of shape (n_samples, width)
        Readings of each sensor; NaN counts as the mean.
    target : ndarray of shape (n_samples, n_targets)
        Indicators of the classes, or a standardised number.
    weight : ndarray of shape (n_samples,)
    fold : ndarray of shape (n_samples,)
        Rows of fold -1 are answered by coefficients that have seen them.
    """

    def __init__(
        self, blocks: Sequence[Array], target: Array, weight: Array, fold: Rows
    ):
        self.owner = np.repeat(np.arange(len(blocks)), [b.shape[1] for b in blocks])
        columns = standardised(np.hstack(blocks), weight)
        first, second = products(columns.shape[1])
        one = np.full(columns.shape[1], -1)
        # Column c of the basis is a product of readings first[c] and second[c]; -1 is 1.
        self.first = np.r_[-1, np.arange(columns.shape[1]), first]
        self.second = np.r_[-1, one, second]
        much = len(target) * len(self.first) ** 2 > MUCH
        columns = columns.astype(np.float32 if much else np.float64, copy=False)
        ones = np.ones((len(target), 1), columns.dtype)
        basis = np.hstack([ones, columns, columns[:, first] * columns[:, second]])
        self.target = target
        self.folds = [int(f) for f in np.unique(fold)]
        self.rows = [np.flatnonzero(fold == held_out) for held_out in self.folds]
        # Of each fold: its rows of the basis, by column, since subsets take columns.
        self.bases = [np.asfortranarray(basis[rows]) for rows in self.rows]
        grams, moments = [], []
        for rows, held_out in zip(self.rows, self.bases, strict=True):
            root = np.sqrt(weight[rows, None]).astype(basis.dtype)
            weighted = held_out * root
            grams.append(_gram(weighted))
            moments.append(weighted.T @ (root * self.target[rows]))
        gram, moment = np.sum(grams, axis=0), np.sum(moments, axis=0)
        # What a row's coefficients are fitted on: all folds but its own.
        self.grams = [
            gram - g if f >= 0 else gram for f, g in zip(self.folds, grams, strict=True)
        ]
        self.moments = [
            moment - m if f >= 0 else moment
            for f, m in zip(self.folds, moments, strict=True)
        ]
        self.ridge = RIDGE * float(weight.sum())

    def scores(self, subset: Sequence[int]) -> Array:
        """Regressed targets, (n_samples, n_targets)."""
        known = np.zeros(len(self.owner) + 1, dtype=bool)
        known[:-1] = np.isin(self.owner, list(subset))
        known[-1] = True  # the reading -1 is the constant
        used = np.flatnonzero(known[self.first] & known[self.second])
        scores = np.empty(self.target.shape)
        for rows, basis, gram, moment in zip(
            self.rows, self.bases, self.grams, self.moments, strict=True
        ):
            system = gram[used[:, None], used]
            system.flat[:: len(used) + 1] += self.ridge
            # The ridge makes the system positive definite: nothing is left to check.
            _, coef, _ = dposv(system, moment[used], overwrite_a=True, overwrite_b=True)
            scores[rows] = basis[:, used] @ coef.astype(basis.dtype, copy=False)
        return scores


def _gram(basis: Array) -> Array:
    """Products of all columns, in double precision."""
    multiply = ssyrk if basis.dtype == np.float32 else dsyrk
    upper = multiply(1.0, basis, trans=True).astype(np.float64, copy=False)
    return np.asarray(np.triu(upper) + np.triu(upper, 1).T)


def standardised(columns: Array, weight: Array) -> Array:
    """Columns of mean 0 and variance 1; a missing value counts as the mean."""
    center, scale = moments(columns, weight)
    return np.where(np.isnan(columns), 0.0, (columns - center) / scale)


def products(n_columns: int) -> tuple[Rows, Rows]:
    """Columns whose products are in the basis: all pairs, or, of many, squares."""
    if n_columns <= PRODUCTS:
        first, second = np.triu_indices(n_columns)
        return first, second
    squares = np.arange(n_columns)
    return squares, squares
