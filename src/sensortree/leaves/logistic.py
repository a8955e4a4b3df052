"""Logistic leaves, linear and (the paper's) quadratic, their penalty chosen from the data.

`LogisticEngine` fits those of many sensor subsets and folds. The leaf classifier of a
subset is a ridge logistic regression on the degree-2 polynomial basis of its readings
(`RidgeProblem`). Of one subset the penalty is chosen once, and the fit to all rows is where
the fits without each fold set out from, or they set out together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from sensortree.constants import (
    JUDGED_ROWS,
    LOGISTIC_MAX_ROUNDS,
    LOGISTIC_POWER,
    LOGISTIC_POWERS,
    LOGISTIC_ROUNDS,
    LOGISTIC_TERMS,
)
from sensortree.exceptions import DataError
from sensortree.leaves.descent import Curvature
from sensortree.leaves.folds import FoldedRows
from sensortree.leaves.ridge import (
    NEVER,
    NONE,
    FoldedLabels,
    RidgeProblem,
    most_evident,
)
from sensortree.leaves.standardising import check_readings, degree_of
from sensortree.policy.classifiers import ConstantScorer, LogisticScorer, probabilities
from sensortree.sensors.reader import LARGEST
from sensortree.threads import one_thread
from sensortree.types import Array, Rows

# Rounds where little is left to do before second derivatives are computed anew.
LATER = (LOGISTIC_ROUNDS[-1], LOGISTIC_MAX_ROUNDS)


@dataclass(frozen=True, eq=False)
class Solution:
    """A leaf classifier, its C, and the same without each fold where that was judged."""

    scorer: LogisticScorer | ConstantScorer
    C: float
    without: Mapping[int, LogisticScorer] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Fewer:
    """Classifiers of fewer columns, which one of more is pulled towards.

    Of a log, more rows bought a few sensors than bought many. What those say is

        log p(y | more) = log p(y | fewer) + what the others add,

    and only the last has to be learned from the few rows that bought more. A polynomial in
    fewer columns is one in more, so that the penalty of the larger classifier can be on how
    far its coefficients are from those of the smaller, in place of how far they are from 0.
    """

    columns: Rows  # where their columns stand among those of more, (n_fewer,)
    # By the fold that they have not seen, as `RidgeProblem` counts them.
    scorers: Mapping[int, LogisticScorer]

    def in_terms_of(self, center: Array, scale: Array) -> dict[int, Array]:
        """Coefficients of each on the basis of more columns, so standardised.

        A column (x - c) / s of a scorer is a z + b, with z the new one. So

            Σ l_i x_i + Σ_{i≤j} q_ij x_i x_j = l'(az + b) + (az + b)' Q (az + b).

        Given are (n_outputs, n_terms + 1); the intercept is the last.
        """
        return {f: self._moved(s, center, scale) for f, s in self.scorers.items()}

    def _moved(self, scorer: LogisticScorer, center: Array, scale: Array) -> Array:
        columns, width, n_fewer = self.columns, len(center), len(self.columns)
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
        # In case columns change their order.
        products += np.tril(products, -1).transpose(0, 2, 1)
        constant = scorer.intercept + slope @ b + (square @ b) @ b
        upper = products[:, *np.triu_indices(width)]
        return np.hstack([linear, upper, constant[:, None]])


class LogisticEngine(FoldedRows):
    """Ridge logistic regressions on any columns, for the same rows, classes and folds.

    C is "evidence" or a number, as in `QuadraticLogisticRegression`; the degree of the
    polynomial basis is 1 or 2.

    Examples
    --------
    >>> import numpy as np
    >>> from sensortree.leaves.logistic import LogisticEngine
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = ((X ** 2).sum(axis=1) > 1.5).astype(int)
    >>> engine = LogisticEngine(y, 2, fold=np.arange(200) % 5)
    >>> posterior, solution = engine.judge(X)
    >>> bool((posterior.argmax(axis=1) == y).mean() > 0.95)
    True
    """

    def __init__(
        self,
        y: Rows,
        n_classes: int,
        weight: Array | None = None,
        fold: Rows | None = None,
        C: float | str = "evidence",
        degree: int = 2,
    ):
        super().__init__(y, weight, fold)
        self.n_classes, self.degree = n_classes, degree
        self.order = order = np.argsort(self.fold, kind="stable")
        self.labels = FoldedLabels(
            y[order], self.weight[order], self.fold[order], n_classes, C
        )

    def judge(self, X: Array, fewer: Fewer | None = None) -> tuple[Array, Solution]:
        """Posterior of each row by a classifier that was fitted without the row's fold.

        The penalty pulls towards `fewer`. Beside the posterior, (n_samples, n_classes), the
        classifier of all rows: as exact as comparing needs, where rows are held out.
        """
        compared = bool(self.folds and X.shape[1])
        problem = self._problem(X, compared=True, fewer=fewer) if compared else None
        if problem is None:
            solution = self._prior() if compared else self.fit(X)
            return rounded(solution.scorer.predict_proba(X)), solution
        C, coef, fits = self._fits(problem)
        proba = np.empty((len(self.y), self.n_classes))
        for rows, fold, terms in problem.blocks():
            proba[rows] = posterior_of(fits.get(fold, coef), terms)
        self._without_a_class(proba)
        without = {fold: problem.scorer(own) for fold, own in fits.items()}
        return self._in_order(proba), Solution(problem.scorer(coef), C, without)

    def _fits(self, problem: RidgeProblem) -> tuple[float, Array, dict[int, Array]]:
        """C, and coefficients to all rows and without each fold."""
        C, coef, curvature, tol = self._outset(problem)
        held_out = np.array([NONE, *self.folds])
        start = np.array([self._start(problem, coef, (f,)) for f in held_out])
        # Where the fit to all rows ends, the one that is kept sets out.
        near = np.minimum(tol, [problem.started, *[np.inf] * len(self.folds)])
        fitted, _ = problem.minimise(C, start, held_out, curvature, near)
        return C, fitted[0], dict(zip(self.folds, fitted[1:], strict=True))

    def _in_order(self, proba: Array) -> Array:
        """Posteriors of rows by fold as those of rows as they came."""
        posterior = np.empty_like(proba)
        posterior[self.order] = proba
        return rounded(posterior)

    def _start(self, problem: RidgeProblem, coef: Array, out: tuple[int, ...]) -> Array:
        """Where a fit without some folds sets out; a class that is not there never is."""
        if problem.n_outputs == 1:
            return coef
        labels = self.labels
        left = labels.y[~np.isin(labels.fold, out) & (labels.weight > 0)]
        present = np.bincount(left, minlength=self.n_classes) > 0
        start = np.where(present[:, None], coef, 0.0)
        start[:, -1] = np.where(present, start[:, -1], NEVER)
        return start

    def fit(
        self, X: Array, start: Solution | None = None, fewer: Fewer | None = None
    ) -> Solution:
        """The classifier fitted to all rows, at its minimum.

        It sets out from what `judge` found on the same columns; the minimum is the same
        without. The penalty pulls towards `fewer`.
        """
        problem = self._problem(X, fewer=fewer) if X.shape[1] else None
        if problem is None:
            return self._prior()
        if start is None or not isinstance(start.scorer, LogisticScorer):
            C, coef, curvature = self._roughly(problem)
        else:
            C, coef = start.C, _extended(start.scorer)
            curvature = problem.curvature(coef, C)
        fresh = problem.curvature
        if problem.small:
            fresh = problem.full_curvature
            curvature = fresh(coef, C)
        coef, _ = problem.settle(C, coef, curvature, problem.kept, LATER, fresh=fresh)
        return Solution(problem.scorer(coef), C)

    def refit(self, X: Array, start: Solution) -> Solution:
        """The classifier that other rows have taught, with the same penalty.

        As exact as comparing needs where rows are held out that `start` has seen.
        """
        problem = self._problem(X, compared=True) if X.shape[1] else None
        if problem is None or not isinstance(start.scorer, LogisticScorer):
            return self._prior()
        coef = self._start(problem, _extended(start.scorer), ())
        curvature = problem.curvature(coef, start.C)
        coef, _ = problem.settle(start.C, coef, curvature, problem.unseen, LATER)
        return Solution(problem.scorer(coef), start.C)

    def _problem(
        self, X: Array, compared: bool = False, fewer: Fewer | None = None
    ) -> RidgeProblem | None:
        """The fits to these columns; None if there is one class only."""
        check_readings(np.isfinite(X).all(), "classifier", "classifier")
        if self._one_class():
            return None
        what = "classifier of", "classifier"
        degree = degree_of(X.shape[1], self.degree, LOGISTIC_TERMS, *what)
        problem = RidgeProblem(X[self.order], degree, self.labels, compared)
        if fewer is not None and degree == 2:
            problem.toward = fewer.in_terms_of(problem.center, problem.scale)
        return problem

    def _one_class(self) -> bool:
        taught = self.y[self.taught]
        return bool((taught == taught[0]).all())

    def _prior(self) -> Solution:
        """The class prior, where there is nothing to learn from."""
        labels = self.labels
        mass = np.bincount(labels.y, labels.weight, self.n_classes)
        prior = mass / labels.weight.sum()
        return Solution(ConstantScorer(prior), 1.0)

    def _roughly(self, problem: RidgeProblem) -> tuple[float, Array, Curvature]:
        """Penalty, coefficients to all rows, and second derivatives near there."""
        coef = problem.start()
        if problem.wants_evidence:
            return most_evident(problem, coef)
        C = self.labels.penalty
        curvature = problem.curvature(coef, C)
        return C, *problem.settle(C, coef, curvature, problem.started)

    def _outset(self, problem: RidgeProblem) -> tuple[float, Array, Curvature, float]:
        """Where fits with and without each fold set out, and how near they must come.

        Where the penalty is given, all fits part before the one to all rows is done: what
        it has learned by then of rows that others must not know is little. Where it is
        chosen, that fit is done, and those that set out from it have more to unlearn.
        """
        if problem.wants_evidence:
            return *self._roughly(problem), problem.unseen
        chooses = problem.wants_choice and len(self.folds) > 1
        C = 3.0**LOGISTIC_POWER if chooses else self.labels.penalty
        coef = problem.start()
        curvature = problem.curvature(coef, C)
        (coef,), _ = problem.minimise(
            C,
            coef[None],
            np.array([NONE]),
            curvature,
            problem.parted,
            LOGISTIC_ROUNDS[0],
        )
        products = problem.unsure_products(coef)
        if chooses:
            C = self._held_out_penalty(problem, coef, self._judged_folds()[0], products)
        return C, coef, problem.penalised(products, C), problem.compared

    def _judged_folds(self) -> tuple[list[int], list[int]]:
        """Folds whose rows choose a penalty, as many as say enough; and as many others."""
        held = np.cumsum([self.weight[self.fold == f].sum() for f in self.folds])
        enough = int(np.searchsorted(held, JUDGED_ROWS)) + 1
        n_folds = min(enough, len(self.folds) // 2)
        return self.folds[:n_folds], self.folds[n_folds : 2 * n_folds]

    def _held_out_penalty(
        self, problem: RidgeProblem, coef: Array, folds: Sequence[int], products: Array
    ) -> float:
        """The C of the least log-loss on some folds, each by a fit without it.

        By climbing from a power of 3, where there are too many coefficients for evidence.
        One number that so many rows choose hardly fits them.
        """
        out, nobody = np.array(folds), np.full(len(folds), NONE)
        fitted = np.array([self._start(problem, coef, (f,)) for f in folds])
        tried: dict[int, float] = {}

        def lost(power: int) -> float:
            nonlocal fitted
            if power not in tried:
                curvature = problem.penalised(products, 3.0**power)
                fitted, _ = problem.minimise(
                    3.0**power, fitted, out, curvature, problem.compared
                )
                (every, _), (rest, _) = (
                    problem.losses(np.inf, fitted, seen) for seen in (nobody, out)
                )
                tried[power] = float((every - rest).sum())
            return tried[power]

        best = LOGISTIC_POWER
        lost(best)  # the others set out from there
        for way in (-1, +1):
            while best + way in LOGISTIC_POWERS and lost(best + way) < lost(best):
                best += way
        return 3.0**best

    def only_classes(self, out: int = NONE) -> dict[int, int]:
        """Folds without which one of two classes is gone, and the other class."""
        only = {}
        for f in self.folds if self.n_classes == 2 else ():
            rest = self.y[(self.fold != f) & (self.fold != out) & self.taught]
            if len(rest) and (rest == rest[0]).all():
                only[f] = int(rest[0])
        return only

    def _without_a_class(self, proba: Array, out: int = NONE) -> None:
        """Where a fold takes one of two classes away, the other is all there is."""
        for f, there in self.only_classes(out).items():
            proba[(self.labels.fold == f) & (f != out)] = np.eye(2)[there]


def rounded(posterior: Array) -> Array:
    """To single precision, so that the last bits of a sum decide nothing."""
    return posterior.astype(np.float32).astype(np.float64)


def posterior_of(coef: Array, terms: Array) -> Array:
    """Posterior of a block of rows."""
    scores = coef.astype(terms.dtype, copy=False) @ terms
    return probabilities(np.ascontiguousarray(scores.T))


def _extended(scorer: LogisticScorer) -> Array:
    """Coefficients with their intercept at the end, (n_outputs, n_terms + 1)."""
    return np.hstack([scorer.coef.T, scorer.intercept[:, None]])


class RidgeLogisticRegression(ClassifierMixin, BaseEstimator):
    """Logistic regression on a polynomial basis of standardised columns."""

    _degree: ClassVar[int]

    def __init__(self, C: float | str = "evidence"):
        self.C = C

    @one_thread()
    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to data, with or without weights of the samples."""
        X, y = validate_data(self, X, y, dtype=np.float64)
        _check_sizes(X)
        sample_weight = _check_weights(sample_weight, len(X))
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise DataError(
                f"y has one class only, {self.classes_[0]!r}; give examples of two or more."
            )
        if sample_weight is not None:
            # A row of weight 0 is the same as no row.
            X, codes = X[sample_weight > 0], codes[sample_weight > 0]
            sample_weight = sample_weight[sample_weight > 0]
        engine = LogisticEngine(
            codes, len(self.classes_), sample_weight, C=self.C, degree=self._degree
        )
        solution = engine.fit(X)
        self.scorer_, self.C_ = solution.scorer, solution.C
        return self

    def to_scorer(self) -> LogisticScorer | ConstantScorer:
        """Give the fitted classifier as plain arrays."""
        check_is_fitted(self)
        return self.scorer_

    def decision_function(self, X: Any) -> Array:
        """Score of the positive class, or of every class if there are more than two."""
        X = self._read(X)
        assert isinstance(self.scorer_, LogisticScorer)  # there are two classes or more
        scores = self.scorer_.scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict_proba(self, X: Any) -> Array:
        """Probability of every class, (n_samples, n_classes)."""
        X = self._read(X)
        return self.scorer_.predict_proba(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """Most probable class, (n_samples,)."""
        likely = self.predict_proba(X)
        return np.asarray(self.classes_[likely.argmax(axis=1)])

    def _read(self, X: Any) -> Array:
        """Readings that the fitted classifier can be asked with."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        _check_sizes(X)
        return np.asarray(X)


class QuadraticLogisticRegression(RidgeLogisticRegression):
    """Logistic regression on the degree-2 polynomial basis: the paper's leaf classifier.

    Columns are standardised, then every square and product of two is added.

    Parameters
    ----------
    C : "evidence" or float, default="evidence"
        Inverse strength of the ridge penalty, as in scikit-learn's LogisticRegression.
        "evidence" climbs from 1, in steps of a factor of three, to the largest evidence
        of the data (Laplace's approximation, the penalty read as a Gaussian prior), while
        there are at most 600 coefficients and 20 rows for each. Of more coefficients and
        two classes, a tree takes the C of the least log-loss on held-out rows. Otherwise
        it is 1.

    Attributes
    ----------
    C_ : float
        The strength that was used.
    classes_ : ndarray of shape (n_classes,)
    scorer_ : LogisticScorer
        What was learned, as plain arrays.

    Examples
    --------
    A circle is not linear, but it is quadratic:

    >>> import numpy as np
    >>> from sensortree import QuadraticLogisticRegression
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = (X ** 2).sum(axis=1) > 1.5
    >>> QuadraticLogisticRegression().fit(X, y).score(X, y) > 0.95
    True
    """

    _degree = 2


class LinearLogisticRegression(RidgeLogisticRegression):
    """Logistic regression on standardised columns, its penalty as that of degree 2.

    Parameters
    ----------
    C : "evidence" or float, default="evidence"
        As in `QuadraticLogisticRegression`.
    """

    _degree = 1


def _check_sizes(X: Array) -> None:
    """Refuse what cannot be squared."""
    large = np.argwhere(np.abs(X) > LARGEST)
    if large.size:
        row, column = large[0]
        raise DataError(
            f"{X[row, column]:g} in row {row}, column {column}; a reading is at most "
            f"{LARGEST:g} in size; replace it by the right number."
        )


def _check_weights(sample_weight: ArrayLike | None, n_samples: int) -> Array | None:
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n_samples,):
        raise DataError(
            f"sample_weight has shape {weights.shape}, expected ({n_samples},); give one "
            f"weight per row."
        )
    if not weights.any():
        raise DataError("all sample weights are zero; give some row a weight.")
    return weights
