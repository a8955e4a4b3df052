"""`GramScreen`: what any subset of sensors could predict, from one Gram matrix.

The classes are regressed, as indicators, or a number is, on a polynomial basis of the
readings. With the Gram matrix of the whole basis at hand, the coefficients of a subset are
one small linear system, those of a larger one an update, and rows are looked at only where
they are asked for. That a row was learned from is undone by its leverage, as in leaving one
out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.linalg.blas import dsyrk, ssyrk
from scipy.linalg.lapack import dpotrf, dpotrs, dtrtri, dtrtrs

from sensortree.constants import SCREEN_PRODUCTS, SCREEN_RIDGE, SCREEN_SINGLE_PRECISION
from sensortree.structure.screening import products, standardised
from sensortree.types import Array, Rows

Subset = frozenset[int]


@dataclass(frozen=True, eq=False)
class Regressed:
    """The targets regressed on the terms of a subset.

    Attributes
    ----------
    terms : ndarray of shape (n_terms,)
        Their places in the basis.
    factor : ndarray of shape (n_terms, n_terms)
        Lower Cholesky factor of the system.
    coef : ndarray of shape (n_terms, n_targets)
    freedom : float
        Degrees of freedom.
    """

    terms: Rows
    factor: Array
    coef: Array
    freedom: float


class GramScreen:
    """Least squares of targets on any subset of sensors.

    Parameters
    ----------
    blocks : list of n_sensors arrays of shape (n_samples, width)
        Readings of each sensor; NaN counts as the mean.
    target : ndarray of shape (n_samples, n_targets)
        Indicators of the classes, or a standardised number.
    weight : ndarray of shape (n_samples,)
    """

    def __init__(self, blocks: Sequence[Array], target: Array, weight: Array):
        self.owner = np.repeat(np.arange(len(blocks)), [b.shape[1] for b in blocks])
        self.columns = [np.flatnonzero(self.owner == j) for j in range(len(blocks))]
        columns = standardised(np.hstack(blocks), weight)
        n_columns = columns.shape[1]
        first, second = products(n_columns)
        # Term c of the basis is a product of readings first[c] and second[c]; -1 is 1.
        self.first = np.r_[-1, np.arange(n_columns), first]
        self.second = np.r_[-1, np.full(n_columns, -1), second]
        much = len(target) * len(self.first) ** 2 > SCREEN_SINGLE_PRECISION
        columns = columns.astype(np.float32 if much else np.float64, copy=False)
        self.basis = np.empty((len(target), len(self.first)), columns.dtype, order="F")
        self.basis[:, 0] = 1.0
        self.basis[:, 1 : 1 + n_columns] = columns
        np.multiply(
            columns[:, first], columns[:, second], out=self.basis[:, 1 + n_columns :]
        )
        self.target = target
        root = np.sqrt(weight)[:, None].astype(self.basis.dtype)
        multiply = ssyrk if much else dsyrk
        weighted = np.asfortranarray(self.basis * root)
        lower = multiply(1.0, weighted, trans=True, lower=True).astype(np.float64)
        self.gram = np.tril(lower) + np.tril(lower, -1).T
        self.moment = np.asarray(weighted.T @ (root * self.target), np.float64)
        self.total = float(weight.sum())
        self.ridge = SCREEN_RIDGE * self.total
        # Terms that have a reading of each sensor, and the sensor of the other reading;
        # the last of all sensors is none.
        owner = np.r_[self.owner, len(blocks)]
        pairs = owner[self.first], owner[self.second]
        self.having = [
            np.flatnonzero((pairs[0] == j) | (pairs[1] == j))
            for j in range(len(blocks))
        ]
        self.beside = [
            np.where(pairs[0][terms] == j, pairs[1][terms], pairs[0][terms])
            for j, terms in enumerate(self.having)
        ]
        self._terms: dict[Subset, Rows] = {}
        self._regressed: dict[Subset, Regressed] = {}

    def terms(self, subset: Subset) -> Rows:
        """Places of the terms of a subset in the basis."""
        if subset not in self._terms:
            known = np.zeros(len(self.owner) + 1, dtype=bool)
            for sensor in subset:
                known[self.columns[sensor]] = True
            known[-1] = True  # the reading -1 is the constant
            self._terms[subset] = np.flatnonzero(known[self.first] & known[self.second])
        return self._terms[subset]

    def linear_terms(self, subset: Subset) -> Rows:
        """Places of the readings of a subset in the basis."""
        columns = [self.columns[sensor] for sensor in sorted(subset)]
        return 1 + np.concatenate([np.empty(0, np.intp), *columns])

    def new_terms(self, subset: Subset, extended: Sequence[Subset]) -> list[Rows]:
        """Terms that each of some larger subsets has besides those of a subset."""
        known = np.zeros(len(self.columns) + 1, dtype=bool)
        known[[*subset, -1]] = True
        found = []
        for more in extended:
            added = sorted(more - subset)
            known[added] = True
            # A term of two new readings is counted with the later of them.
            new = []
            for sensor in reversed(added):
                new.append(self.having[sensor][known[self.beside[sensor]]])
                known[sensor] = False
            found.append(new[0] if len(new) == 1 else np.sort(np.concatenate(new)))
        return found

    def synergies(self) -> Array:
        """What two sensors explain together beyond what each does, as a matrix.

        All 0 where there are too many columns for their products.
        """
        n = len(self.columns)
        found = np.zeros((n, n))
        if len(self.owner) > SCREEN_PRODUCTS:
            return found
        nothing = self._explained(frozenset())
        alone = [self._explained(frozenset({j})) for j in range(n)]
        for a, b in combinations(range(n), 2):
            both = self._explained(frozenset({a, b}))
            found[a, b] = found[b, a] = both - alone[a] - alone[b] + nothing
        return found

    def _explained(self, subset: Subset) -> float:
        """Sum of squares that the regression on a subset explains."""
        terms = self.terms(subset)
        system = self.gram[terms[:, None], terms]
        system.flat[:: len(terms) + 1] += self.ridge
        factor, _ = dpotrf(system, lower=True, clean=True)
        half, _ = dtrtrs(factor, self.moment[terms], lower=True)
        return float(np.einsum("ij,ij->", half, half))

    def regress(self, subset: Subset) -> Regressed:
        """The regression on a subset, worked out once."""
        if subset not in self._regressed:
            self._regressed[subset] = self.regress_on(self.terms(subset))
        return self._regressed[subset]

    def regress_on(self, terms: Rows) -> Regressed:
        """The regression on some terms."""
        system = self.gram[terms[:, None], terms]
        system.flat[:: len(terms) + 1] += self.ridge
        factor, _ = dpotrf(system, lower=True, clean=True)
        coef, _ = dpotrs(factor, self.moment[terms], lower=True)
        inverse, _ = dtrtri(factor, lower=True)
        freedom = len(terms) - self.ridge * float((inverse**2).sum())
        return Regressed(terms, factor, coef, freedom)


def ranks(block: Array, weight: Array) -> Array:
    """Share of the weight below each reading; NaN stays NaN."""
    ranked = np.full(block.shape, np.nan)
    for column, out in zip(block.T, ranked.T, strict=True):
        known = ~np.isnan(column)
        _, values = np.unique(column[known], return_inverse=True)
        mass = np.bincount(values, weight[known])
        out[known] = ((np.cumsum(mass) - mass / 2) / mass.sum())[values]
    return ranked
