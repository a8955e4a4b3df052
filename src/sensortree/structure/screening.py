"""`LeastSquaresScreen`: what any subset of sensors could predict, from one Gram matrix.

The classes are regressed, as indicators, or a number is, on a polynomial basis of the
readings. With the Gram matrix of the whole basis at hand, a subset costs one small linear
system per fold, and many that are a little larger an update of it; each row is answered by
the coefficients fitted without its fold. Scores are of single precision, so that the last
bits of a sum, and the way to it, decide nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from scipy.linalg.blas import dsyrk, ssyrk
from scipy.linalg.lapack import dposv, dpotrf, dtrtrs

from sensortree.constants import (
    SCREEN_PRODUCTS,
    SCREEN_RIDGE,
    SCREEN_SCORES_AT_ONCE,
    SCREEN_SINGLE_PRECISION,
)
from sensortree.leaves.standardising import moments
from sensortree.types import Array, Rows


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
        self.columns = [np.flatnonzero(self.owner == j) for j in range(len(blocks))]
        columns = standardised(np.hstack(blocks), weight)
        first, second = products(columns.shape[1])
        one = np.full(columns.shape[1], -1)
        # Column c of the basis is a product of readings first[c] and second[c]; -1 is 1.
        self.first = np.r_[-1, np.arange(columns.shape[1]), first]
        self.second = np.r_[-1, one, second]
        much = len(target) * len(self.first) ** 2 > SCREEN_SINGLE_PRECISION
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
        self.ridge = SCREEN_RIDGE * float(weight.sum())

    def terms(self, subset: Iterable[int]) -> Rows:
        """Places of the terms of a subset in the basis."""
        known = np.zeros(len(self.owner) + 1, dtype=bool)
        for sensor in subset:
            known[self.columns[sensor]] = True
        known[-1] = True  # the reading -1 is the constant
        return np.flatnonzero(known[self.first] & known[self.second])

    def scores(self, subset: Iterable[int]) -> Array:
        """Regressed targets, (n_samples, n_targets)."""
        used = self.terms(subset)
        scores = np.empty(self.target.shape, np.float32)
        for rows, basis, gram, moment in zip(
            self.rows, self.bases, self.grams, self.moments, strict=True
        ):
            system = gram[used[:, None], used]
            system.flat[:: len(used) + 1] += self.ridge
            # The ridge makes the system positive definite: nothing is left to check.
            _, coef, _ = dposv(system, moment[used], overwrite_a=True, overwrite_b=True)
            scores[rows] = basis[:, used] @ coef.astype(basis.dtype, copy=False)
        return scores.astype(np.float64)

    def scores_with(
        self, subset: Iterable[int], extended: Sequence[Iterable[int]]
    ) -> Iterator[tuple[int, Array]]:
        """Number and scores of larger subsets, in no order, by updates of a regression."""
        used = self.terms(subset)
        had = np.zeros(len(self.first), dtype=bool)
        had[used] = True
        every = map(self.terms, extended)
        news = [terms[~had[terms]] for terms in every]
        room = max(1, SCREEN_SCORES_AT_ONCE // self.target.size)
        for size in sorted({len(new) for new in news}):
            alike = [k for k, new in enumerate(news) if len(new) == size]
            if not size:
                said = self.scores(subset)
                yield from ((k, said) for k in alike)
                continue
            for begin in range(0, len(alike), room):
                some = alike[begin : begin + room]
                each = self._updated(used, np.array([news[k] for k in some], np.intp))
                yield from zip(some, each, strict=True)

    def _updated(self, used: Rows, new: Rows) -> Iterator[Array]:
        """Scores with each of some sets of as many new terms, (n_sets, size).

        With L the factor of the system of old terms and H = L⁻¹ (crossed products), the
        coefficients of new terms solve the system less Hᵀ H, and change the old ones.
        """
        n_sets, size = new.shape
        n_classes = self.target.shape[1]
        scores = np.empty((n_sets, n_classes, len(self.target)), np.float32)
        within = new[:, :, None], new[:, None, :]
        for rows, basis, gram, moment in zip(
            self.rows, self.bases, self.grams, self.moments, strict=True
        ):
            system = gram[used[:, None], used]
            system.flat[:: len(used) + 1] += self.ridge
            factor, _ = dpotrf(system, lower=True, clean=True, overwrite_a=True)
            half, _ = dtrtrs(factor, gram[used[:, None], new.ravel()], lower=True)
            own, _ = dtrtrs(factor, moment[used], lower=True)
            # (n_sets, n_used, size), one set after another
            half = np.ascontiguousarray(
                half.reshape(len(used), n_sets, size).transpose(1, 0, 2)
            )
            left = gram[within] - half.transpose(0, 2, 1) @ half
            left[:, np.arange(size), np.arange(size)] += self.ridge
            coef = np.linalg.solve(left, moment[new] - half.transpose(0, 2, 1) @ own)
            changed = (own - half @ coef).transpose(1, 0, 2).reshape(len(used), -1)
            old, _ = dtrtrs(factor, changed, lower=True, trans=True)
            kind = basis.dtype
            said = old.T.astype(kind, copy=False) @ basis[:, used].T
            said = said.reshape(n_sets, n_classes, len(rows))
            columns = basis[:, new.ravel()].T.reshape(n_sets, size, len(rows))
            said += coef.transpose(0, 2, 1).astype(kind, copy=False) @ columns
            scores[:, :, rows] = said
        return (each.T.astype(np.float64) for each in scores)


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
    if n_columns <= SCREEN_PRODUCTS:
        first, second = np.triu_indices(n_columns)
        return first, second
    squares = np.arange(n_columns)
    return squares, squares
