"""`RidgeEngine`: leaf regressions of many sensor subsets and folds, and their spread.

The leaf of a subset is a ridge regression on its standardised readings and, at degree 2,
on their products. With basis z_i, numbers t_i (standardised) and weights w_i,

    minimise  sum_i w_i (t_i - a - b z_i)^2 + λ |b|^2,

of which λ has the largest evidence: the penalty read as a Gaussian prior of b, and the
variance of the noise profiled out,

    log p(t | λ) = -n/2 log RSS(λ) - 1/2 log det(1 + G/λ) + constant,

where G is the Gram matrix of the centred basis and RSS(λ) the minimum above. Where there
are more terms than rows, the same is done with the matrix of products of rows.

The penalty of a subset is chosen once, and the fit without a fold is that to all rows with
the fold's sums taken off.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh, solve

from sensortree.constants import (
    MOST_LEVERAGE,
    RIDGE_EVIDENT,
    RIDGE_LEAST_LEFT,
    RIDGE_POWERS,
    RIDGE_SHARE,
    RIDGE_TERMS,
    SPREAD_COLUMNS,
    SPREAD_LEAST,
    SPREAD_MOST,
)
from sensortree.leaves.folds import FoldedRows
from sensortree.leaves.standardising import (
    basis_of,
    check_readings,
    degree_of,
    in_blocks,
    moments,
    n_terms_of,
)
from sensortree.policy.classifiers import (
    Answering,
    NumberScorer,
    Polynomial,
    Spread,
    spread_features,
)
from sensortree.sensors.loss import weighted_quantile
from sensortree.types import Array, Mask, Rows


class FoldedNumbers(FoldedRows):
    """Rows with numbers, that are answered with a quantile or, if None, with the mean."""

    def __init__(
        self,
        y: Array,
        weight: Array | None = None,
        fold: Rows | None = None,
        quantile: float | None = None,
    ):
        super().__init__(np.asarray(y, dtype=np.float64), weight, fold)
        self.quantile = quantile


class RidgeEngine(FoldedNumbers):
    """Ridge regressions on any columns, for the same rows, numbers and folds.

    The degree of the polynomial basis is 1 or 2.

    Examples
    --------
    >>> import numpy as np
    >>> from sensortree.leaves.regression import RidgeEngine
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = X[:, 0] * X[:, 1] + X[:, 0]
    >>> predicted, scorer = RidgeEngine(y, fold=np.arange(200) % 5).judge(X)
    >>> bool(np.median(np.abs(predicted[:, 0] - y)) < 1e-6)
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
        super().__init__(y, weight, fold, quantile)
        self.degree = degree
        center, scale = moments(self.y[:, None], self.weight)
        self.center, self.scale = float(center[0]), float(scale[0])
        self.numbers = (self.y - self.center) / self.scale

    def judge(self, X: Array) -> tuple[Array, NumberScorer]:
        """Answer and spread of each row by a regression without the row's fold.

        These are (n_samples, 2). The regression that is given with them is of all rows.
        """
        problem = _Problem(self, X)
        scorer = problem.scorer(problem.ridge, np.ones(len(X), dtype=bool))
        predicted = scorer.says(X)
        if X.shape[1]:  # with nothing known there is nothing to overfit
            for fold in self.folds:
                held_out = self.fold == fold
                own = problem.scorer(problem.without(fold), ~held_out)
                predicted[held_out] = own.says(X[held_out])
        return self.rounded(predicted), scorer

    def fit(self, X: Array, start: NumberScorer | None = None) -> NumberScorer:
        """The regression fitted to all rows, which judging has found already."""
        if start is not None:
            return start
        problem = _Problem(self, X)
        return problem.scorer(problem.ridge, np.ones(len(X), dtype=bool))

    def rounded(self, predicted: Array) -> Array:
        """To single precision of the numbers, so that the last bits decide nothing."""
        offset = np.array([self.center, 0.0])
        short = ((predicted - offset) / self.scale).astype(np.float32)
        return np.asarray(short.astype(np.float64) * self.scale + offset)


class _Problem:
    """The fits to the columns of one subset: to all rows, or without a fold."""

    def __init__(self, engine: RidgeEngine, X: Array):
        check_readings(np.isfinite(X).all(), "regression", "regressor")
        self.engine, self.X = engine, X
        what = "regression on", "regressor"
        self.degree = degree_of(X.shape[1], engine.degree, RIDGE_TERMS, *what)
        self.center, self.scale = moments(X, engine.weight)
        self.n_terms = n_terms_of(X.shape[1], self.degree)
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
        rest = np.flatnonzero((self.engine.fold != fold) & self.engine.taught)
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
        taught = rows & engine.taught
        rows = taught if taught.any() else engine.taught
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
        seen = min(ridge.freedom / float(weight.sum()), MOST_LEVERAGE)
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
        for a, b in in_blocks(0, len(rows)):
            linear = ((self.X[rows[a:b]] - self.center) / self.scale).T
            yield rows[a:b], basis_of(linear, self.degree)


@dataclass(frozen=True, eq=False)
class Sums:
    """Weighted sums over some rows: all that a ridge regression of few terms needs."""

    gram: Array  # of the basis, whose last term is 1, (n_terms + 1, n_terms + 1)
    moment: Array  # of the basis with the numbers, (n_terms + 1,)
    square: float  # of the numbers with themselves

    def __add__(self, other: Sums) -> Sums:
        return Sums(
            self.gram + other.gram,
            self.moment + other.moment,
            self.square + other.square,
        )

    def __neg__(self) -> Sums:
        return Sums(-self.gram, -self.moment, -self.square)

    def __sub__(self, other: Sums) -> Sums:
        return self + -other

    @property
    def weight(self) -> float:
        """Weight of the rows."""
        return float(self.gram[-1, -1])

    @property
    def centred(self) -> tuple[Array, Array, float]:
        """Gram matrix, moment and square about the means."""
        mean, weight = self.gram[-1, :-1] / self.weight, self.weight
        gram = self.gram[:-1, :-1] - weight * np.outer(mean, mean)
        moment = self.moment[:-1] - mean * self.moment[-1]
        return gram, moment, self.square - float(self.moment[-1]) ** 2 / weight

    def solve(self, penalty: float) -> tuple[Array, float]:
        """Slopes and intercept."""
        gram, moment, _ = self.centred
        gram.flat[:: len(gram) + 1] += penalty
        coef = solve(gram, moment, assume_a="pos") if len(moment) else moment
        return coef, float(self.moment[-1] - self.gram[-1, :-1] @ coef) / self.weight


def sums_of(terms: Array, numbers: Array, weight: Array) -> Sums:
    """Sums over rows, given their basis with ones at the end, (n_terms + 1, n_rows)."""
    weighted = terms * weight
    moment = weighted @ numbers
    return Sums(weighted @ terms.T, moment, float(weight @ numbers**2))


def most_evident(spectrum: Array, unexplained: Array, weight: float) -> float:
    """The penalty of the largest evidence.

    By the eigenvalues of the Gram matrix, or of the products of rows, by the minimum RSS(λ)
    at each of the penalties, and by the weight of the rows.
    """
    penalties = penalties_of(weight)
    inside = np.log1p(np.maximum(spectrum, 0.0)[:, None] / penalties).sum(axis=0)
    left = np.maximum(unexplained / weight, RIDGE_LEAST_LEFT)
    return float(penalties[np.argmax(-0.5 * weight * np.log(left) - 0.5 * inside)])


def penalties_of(weight: float) -> Array:
    """Penalties that are compared for rows of a weight."""
    return np.asarray(weight / 3.0 ** np.arange(RIDGE_POWERS))


def freedom_of(spectrum: Array, penalty: float) -> float:
    """Degrees of freedom of the regression, without the intercept."""
    known = np.maximum(spectrum, 0.0)
    return float((known / (known + penalty)).sum())


@dataclass(frozen=True, eq=False)
class Ridge:
    """A ridge regression of standardised numbers; `freedom` counts the intercept too."""

    coef: Array
    intercept: float
    penalty: float
    freedom: float


def fit_sums(sums: Sums) -> tuple[Ridge, Array]:
    """The regression of the largest evidence by its sums, and the spectrum."""
    gram, moment, square = sums.centred
    if not len(moment):
        mean = float(sums.moment[-1]) / sums.weight
        return Ridge(moment, mean, sums.weight, 1.0), moment
    if len(moment) > RIDGE_EVIDENT:
        penalty, spectrum = RIDGE_SHARE * sums.weight, np.diag(gram)
    else:
        spectrum, vectors = eigh(gram)
        along = vectors.T @ moment
        known = np.maximum(spectrum, 0.0)[:, None] + penalties_of(sums.weight)
        left = square - (along[:, None] ** 2 / known).sum(axis=0)
        penalty = most_evident(spectrum, left, sums.weight)
    freedom = 1 + freedom_of(spectrum, penalty)
    return Ridge(*sums.solve(penalty), penalty, freedom), spectrum


def fit_rows(
    terms: Array, numbers: Array, weight: Array, penalty: float | None = None
) -> Ridge:
    """The regression of the largest evidence, or of a given penalty, of a few rows.

    Terms are (n_terms + 1, n_rows), the last of them 1.
    """
    total, root = float(weight.sum()), np.sqrt(weight)
    mean = terms[:-1] @ weight / total
    middle = float(weight @ numbers) / total
    basis = (terms[:-1] - mean[:, None]) * root
    centred = (numbers - middle) * root
    products = basis.T @ basis
    if penalty is None and len(products) > RIDGE_EVIDENT:
        penalty = RIDGE_SHARE * total
    if penalty is None:
        spectrum, vectors = eigh(products)
        along = vectors.T @ centred
        shrunk = 1 + np.maximum(spectrum, 0.0)[:, None] / penalties_of(total)
        left = (along[:, None] ** 2 / shrunk).sum(axis=0)
        penalty = most_evident(spectrum, left, total)
    products.flat[:: len(products) + 1] += penalty
    inverse = solve(products, np.column_stack([centred, np.eye(len(products))]))
    coef = basis @ inverse[:, 0]
    freedom = 1 + len(products) - penalty * float(np.trace(inverse[:, 1:]))
    return Ridge(coef, middle - float(mean @ coef), penalty, freedom)


def fit_spread(X: Array, number: Array, left: Array, weight: Array) -> Spread:
    """The spread of what a regression leaves unexplained, by readings and its number.

    Sizes of what is left are regressed, the penalty by evidence; they are then stretched
    so that, in units of the spread, the mean square of what is left is 1.
    `number` is what the regression says of each row, `left` the truth less that.
    """
    seen = X if X.shape[1] <= SPREAD_COLUMNS else X[:, :0]
    center, scale = moments(np.column_stack([seen, number]), weight)
    sizes, total = np.abs(left), float(weight.sum())
    mean = float(weight @ sizes) / total
    if not mean > 0:
        return Spread(center, scale, np.zeros(2 * len(center)), 0.0, 0.0, 0.0)
    features = spread_features(X, number, center, scale)
    terms = np.concatenate([features.T, np.ones((1, len(X)))])
    ridge, _ = fit_sums(sums_of(terms, sizes / mean, weight))
    known = np.clip(features @ ridge.coef + ridge.intercept, SPREAD_LEAST, SPREAD_MOST)
    stretch = float(np.sqrt(weight @ (left / (mean * known)) ** 2 / total)) * mean
    return Spread(
        center,
        scale,
        stretch * ridge.coef,
        stretch * ridge.intercept,
        stretch * SPREAD_LEAST,
        stretch * SPREAD_MOST,
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

    A quantile is as many spreads away from the mean for all rows. `number` and `left` are
    as in `fit_spread`, of rows that were not seen.
    """
    spread = fit_spread(X, number, left, weight)
    shift = 0.0
    if quantile is not None and spread.most > 0:
        sizes = spread.of(X, number)
        shift = weighted_quantile(left / sizes, weight, quantile)
    return Answering(spread, shift, float(y.min()), float(y.max()))
