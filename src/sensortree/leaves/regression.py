"""`RidgeEngine`: leaf regressions of many sensor subsets and folds.

The leaf of a subset is a ridge regression on its standardised readings and, at degree 2,
on their products. The penalty of a subset is chosen once, and the fit without a fold is
that to all rows with the fold's sums taken off.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from sensortree.exceptions import DataError, WideBasisWarning
from sensortree.leaves.least_squares import (
    Ridge,
    Sums,
    fit_rows,
    fit_sums,
    freedom_of,
    sums_of,
)
from sensortree.leaves.spread import fit_answering
from sensortree.leaves.standardising import moments
from sensortree.policy.classifiers import Polynomial, quadratic_terms
from sensortree.policy.numbers import NumberScorer
from sensortree.types import Array, Mask, Rows

# Terms up to which the basis has products.
TERMS = 2_000
# Rows whose basis is made at a time.
BLOCK = 4_096
# Share of the degrees of freedom among the rows that is undone at most.
MOST = 0.9


class RidgeEngine:
    """Ridge regressions on any columns, for the same rows, numbers and folds.

    Parameters
    ----------
    y : ndarray of shape (n_samples,)
    weight : ndarray of shape (n_samples,), default=None
        None stands for ones. A row of weight 0 is judged, and not learned from.
    fold : ndarray of shape (n_samples,), default=None
        The fold that a row is held out with; -1 for a row that never is. None stands for
        -1 throughout.
    quantile : float or None, default=None
        Which value is answered; None is the mean.
    degree : int, default=2
        Of the polynomial basis, 1 or 2.

    Examples
    --------
    >>> import numpy as np
    >>> from sensortree.leaves.regression import RidgeEngine
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = X[:, 0] * X[:, 1] + X[:, 0]
    >>> said, scorer = RidgeEngine(y, fold=np.arange(200) % 5).judge(X)
    >>> bool(np.median(np.abs(said[:, 0] - y)) < 1e-6)
    True
    """

    def __init__(
        self,
        y: Array,
        weight: Array | None = None,
        fold: Rows | None = None,
        quantile: float | None = None,
        degree: int = 2,
    ):
        self.y = np.asarray(y, dtype=np.float64)
        self.weight = np.ones(len(y)) if weight is None else weight
        self.fold = np.full(len(y), -1) if fold is None else np.asarray(fold)
        self.quantile, self.degree = quantile, degree
        self.folds = [int(f) for f in np.unique(self.fold) if f >= 0]
        center, scale = moments(self.y[:, None], self.weight)
        self.center, self.scale = float(center[0]), float(scale[0])
        self.numbers = (self.y - self.center) / self.scale

    def judge(self, X: Array) -> tuple[Array, NumberScorer]:
        """Answer and spread of each row by a regression without the row's fold.

        Parameters
        ----------
        X : ndarray of shape (n_samples, width)

        Returns
        -------
        said : ndarray of shape (n_samples, 2)
        scorer : NumberScorer
            Fitted to all rows.
        """
        problem = _Problem(self, X)
        scorer = problem.scorer(problem.ridge, np.ones(len(X), dtype=bool))
        said = scorer.says(X)
        if X.shape[1]:  # with nothing known there is nothing to overfit
            for fold in self.folds:
                held_out = self.fold == fold
                own = problem.scorer(problem.without(fold), ~held_out)
                said[held_out] = own.says(X[held_out])
        return self.rounded(said), scorer

    def fit(self, X: Array, start: NumberScorer | None = None) -> NumberScorer:
        """The regression fitted to all rows, which judging has found already."""
        if start is not None:
            return start
        problem = _Problem(self, X)
        return problem.scorer(problem.ridge, np.ones(len(X), dtype=bool))

    def rounded(self, said: Array) -> Array:
        """To single precision of the numbers, so that the last bits decide nothing."""
        offset = np.array([self.center, 0.0])
        short = ((said - offset) / self.scale).astype(np.float32)
        return np.asarray(short.astype(np.float64) * self.scale + offset)


class _Problem:
    """The fits to the columns of one subset: to all rows, or without a fold."""

    def __init__(self, engine: RidgeEngine, X: Array):
        if not np.isfinite(X).all():
            raise DataError(
                "a leaf regression was given readings that are NaN or infinite; give the "
                "sensor a transformer that fills them in, or a regressor that accepts them."
            )
        self.engine, self.X = engine, X
        self.degree = 1 if engine.degree == 1 or _is_wide(X.shape[1]) else 2
        self.center, self.scale = moments(X, engine.weight)
        width = X.shape[1]
        self.n_terms = width if self.degree == 1 else width * (width + 3) // 2
        self.few_rows = self.n_terms > np.count_nonzero(engine.weight)
        if self.few_rows:
            self.ridge = self._fit(np.flatnonzero(engine.weight))
            return
        self.sums = {f: self._sums(engine.fold == f) for f in np.unique(engine.fold)}
        first, *others = self.sums.values()
        self.total = sum(others, first)
        self.ridge, self.spectrum = fit_sums(self.total)

    def without(self, fold: int) -> Ridge:
        """The regression to all rows but those of a fold, of the same penalty."""
        rest = np.flatnonzero((self.engine.fold != fold) & (self.engine.weight > 0))
        if not len(rest):  # all rows are of one fold
            return self.ridge
        if self.few_rows:
            return self._fit(rest, self.ridge.penalty)
        sums, penalty = self.total - self.sums[fold], self.ridge.penalty
        share = sums.weight / self.total.weight
        freedom = 1 + freedom_of(share * self.spectrum, penalty)
        return Ridge(*sums.solve(penalty), penalty, freedom)

    def scorer(self, ridge: Ridge, rows: Mask) -> NumberScorer:
        """A regression with the spread of the rows that it was fitted on."""
        engine = self.engine
        taught = engine.weight > 0
        rows = rows & taught if (rows & taught).any() else taught
        regression = Polynomial(
            self.center,
            self.scale,
            self.degree,
            engine.scale * ridge.coef[:, None],
            np.array([engine.center + engine.scale * ridge.intercept]),
        )
        X, y, weight = self.X[rows], engine.y[rows], engine.weight[rows]
        number = regression.scores(X)[:, 0]
        # What is left of rows that were learned from is less than of others.
        seen = min(ridge.freedom / float(weight.sum()), MOST)
        left = (y - number) / (1 - seen)
        answering = fit_answering(X, y, number, left, weight, engine.quantile)
        return NumberScorer(regression, answering)

    def _fit(self, rows: Rows, penalty: float | None = None) -> Ridge:
        engine = self.engine
        terms = np.concatenate([t for _, t in self._blocks(rows)], axis=1)
        return fit_rows(terms, engine.numbers[rows], engine.weight[rows], penalty)

    def _sums(self, chosen: Mask) -> Sums:
        engine, width = self.engine, self.n_terms + 1
        found = Sums(np.zeros((width, width)), np.zeros(width), 0.0)
        for rows, terms in self._blocks(np.flatnonzero(chosen)):
            found += sums_of(terms, engine.numbers[rows], engine.weight[rows])
        return found

    def _blocks(self, rows: Rows) -> Iterator[tuple[Rows, Array]]:
        """Rows, some at a time, and their basis with ones at the end."""
        n_parts = max(1, -(-len(rows) // BLOCK))
        cuts = np.linspace(0, len(rows), n_parts + 1).astype(int)
        for a, b in pairwise(cuts):
            linear = ((self.X[rows[a:b]] - self.center) / self.scale).T
            terms = np.empty((self.n_terms + 1, b - a))
            if self.degree == 1:
                terms[:-1] = linear
            else:
                quadratic_terms(np.ascontiguousarray(linear), terms[:-1])
            terms[-1] = 1.0
            yield rows[a:b], terms


def _is_wide(width: int) -> bool:
    """Whether columns are too many for their products; says so."""
    n_terms = width * (width + 3) // 2
    if n_terms <= TERMS:
        return False
    warnings.warn(
        f"the degree-2 basis of {width} columns has {n_terms} terms, above {TERMS}; the "
        f"regression on these sensors is linear in their readings. Give a sensor of so "
        f"many columns a transformer, or choose another regressor.",
        WideBasisWarning,
        stacklevel=2,
    )
    return True
