"""`LogisticEngine`: the paper's leaf classifiers of many sensor subsets and folds.

The leaf classifier of a subset is a ridge logistic regression on the degree-2 polynomial
basis of its readings (`RidgeProblem`). Of one subset the penalty is chosen once, and the
fit to all rows is where the fits without each fold set out from, or they set out together.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from sensortree.exceptions import DataError, WideBasisWarning
from sensortree.leaves.descent import Curvature
from sensortree.leaves.evidence import most_evident
from sensortree.leaves.fewer import Fewer
from sensortree.leaves.ridge import (
    MAX_ROUNDS,
    NEVER,
    NONE,
    ROUNDS,
    FoldedLabels,
    RidgeProblem,
)
from sensortree.policy.classifiers import (
    ConstantScorer,
    LogisticScorer,
    probabilities,
)
from sensortree.types import Array, Rows

# Terms up to which the basis has products.
TERMS = 10_000


@dataclass(frozen=True, eq=False)
class Solution:
    """A leaf classifier, and the penalty it was fitted with.

    Attributes
    ----------
    scorer : LogisticScorer or ConstantScorer
    C : float
        Inverse strength of the penalty.
    without : mapping of int to LogisticScorer
        The same without each fold, where that was judged.
    """

    scorer: LogisticScorer | ConstantScorer
    C: float
    without: Mapping[int, LogisticScorer] = field(default_factory=dict)


class LogisticEngine:
    """Ridge logistic regressions on any columns, for the same rows, classes and folds.

    Parameters
    ----------
    y : ndarray of shape (n_samples,)
        Classes as integers.
    n_classes : int
    weight : ndarray of shape (n_samples,), default=None
        None stands for ones. A row of weight 0 is judged, and not learned from.
    fold : ndarray of shape (n_samples,), default=None
        The fold that a row is held out with; -1 for a row that never is. None stands for
        -1 throughout.
    C : "evidence" or float, default="evidence"
        As in `QuadraticLogisticRegression`.
    degree : int, default=2
        Of the polynomial basis, 1 or 2.

    Examples
    --------
    >>> import numpy as np
    >>> from sensortree.leaves.engine import LogisticEngine
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
        fold = np.full(len(y), -1) if fold is None else np.asarray(fold)
        weight = np.ones(len(y)) if weight is None else weight
        self.order = np.argsort(fold, kind="stable")
        order = self.order
        self.labels = FoldedLabels(y[order], weight[order], fold[order], n_classes, C)
        self.n_classes, self.degree = n_classes, degree
        self.folds = [int(f) for f in np.unique(fold) if f >= 0]

    def judge(self, X: Array, fewer: Fewer | None = None) -> tuple[Array, Solution]:
        """Posterior of each row by a classifier that was fitted without the row's fold.

        Parameters
        ----------
        X : ndarray of shape (n_samples, width)
        fewer : Fewer, default=None
            What the penalty pulls towards.

        Returns
        -------
        posterior : ndarray of shape (n_samples, n_classes)
        solution : Solution
            Fitted to all rows: as exact as comparing needs, where rows are held out.
        """
        if not self.folds or not X.shape[1]:
            solution = self.fit(X)
            return _rounded(solution.scorer.predict_proba(X)), solution
        problem = self._problem(X, compared=True, fewer=fewer)
        if problem is None:
            solution = self._prior()
            return _rounded(solution.scorer.predict_proba(X)), solution
        C, coef, curvature, tol = self._outset(problem)
        held_out = np.array([NONE, *self.folds])
        start = np.array([self._start(problem, coef, (f,)) for f in held_out])
        # Where the fit to all rows ends, the one that is kept sets out.
        near = np.minimum(tol, [problem.started, *[np.inf] * len(self.folds)])
        fitted, _ = problem.minimise(C, start, held_out, curvature, near)
        coef, fits = fitted[0], dict(zip(self.folds, fitted[1:], strict=True))
        said = np.empty((len(self.labels.y), self.n_classes))
        for rows, fold, terms in problem.blocks():
            scores = fits.get(fold, coef).astype(terms.dtype, copy=False) @ terms
            said[rows] = probabilities(np.ascontiguousarray(scores.T))
        if problem.n_outputs == 1:
            self._without_a_class(said)
        posterior = np.empty_like(said)
        posterior[self.order] = said
        without = {fold: problem.scorer(own) for fold, own in fits.items()}
        return _rounded(posterior), Solution(problem.scorer(coef), C, without)

    def judge_without_each(self, X: Array) -> dict[int, tuple[Array, Solution]]:
        """What `judge` gives on the rows outside each fold, for all folds at once.

        The fit without folds a and b judges the rows of b where a is left out, and those
        of a where b is: with five folds these are ten fits side by side, and five without
        a single fold, on one basis. Columns are standardised by all rows, which says
        nothing about their classes; the penalty, which does, is chosen without each fold:
        one for all would have seen the rows that are left out. Where two folds want
        different penalties, their pair is fitted with both.

        Parameters
        ----------
        X : ndarray of shape (n_samples, width)

        Returns
        -------
        judged : dict of fold to (posterior, solution)
            The posterior is of all rows, (n_samples, n_classes), NaN for those of the fold.
        """
        problem = self._problem(X, compared=True) if X.shape[1] else None
        if problem is None or len(self.folds) < 3:
            return {a: self._judge_rest(X, a) for a in self.folds}
        alone = self._without_each(problem)
        out = np.array([(a, b) for a in self.folds for b in self.folds if a < b])
        tasks = {(a, b, alone[c][0]): c for a, b in out.tolist() for c in (a, b)}
        fits = dict(zip(tasks, self._fit_pairs(problem, tasks, alone), strict=True))
        judged = {
            a: np.full((len(self.labels.y), self.n_classes), np.nan) for a in alone
        }
        for rows, fold, terms in problem.blocks():
            for a, (C, coef, _) in alone.items():
                if a == fold:
                    continue
                pair = (min(a, fold), max(a, fold), C)
                used = coef if fold < 0 else fits[pair]
                scores = used.astype(terms.dtype, copy=False) @ terms
                judged[a][rows] = probabilities(np.ascontiguousarray(scores.T))
        found = {}
        for a, (C, coef, _) in alone.items():
            if problem.n_outputs == 1:
                self._without_a_class(judged[a], a)
            posterior = np.empty_like(judged[a])
            posterior[self.order] = judged[a]
            found[a] = _rounded(posterior), Solution(problem.scorer(coef), C)
        return found

    def _judge_rest(self, X: Array, out: int) -> tuple[Array, Solution]:
        """What `judge` gives on the rows outside one fold."""
        labels = self.labels
        fold, y, weight = map(np.empty_like, (labels.fold, labels.y, labels.weight))
        fold[self.order], y[self.order] = labels.fold, labels.y
        weight[self.order] = labels.weight
        rest = fold != out
        engine = LogisticEngine(
            y[rest], self.n_classes, weight[rest], fold[rest], labels.C, self.degree
        )
        posterior = np.full((len(y), self.n_classes), np.nan)
        posterior[rest], solution = engine.judge(X[rest])
        return posterior, solution

    def _without_each(
        self, problem: RidgeProblem
    ) -> dict[int, tuple[float, Array, Curvature]]:
        """As `_roughly`, without each fold: penalty, coefficients and curvature."""
        C, coef, curvature = self._roughly(problem)
        power = round(np.log(C) / np.log(3.0)) if problem.wants_evidence else 0
        starts = {a: self._start(problem, coef, (a,)) for a in self.folds}
        few = {a: problem.wants_evidence_on(self.labels.fold != a) for a in self.folds}
        found = {
            a: most_evident(problem, starts[a], a, power) for a in self.folds if few[a]
        }
        if many := [a for a in self.folds if not few[a]]:
            C = self.labels.penalty
            start = np.array([starts[a] for a in many])
            fitted, _ = problem.minimise(
                C, start, np.array(many), curvature, problem.unseen
            )
            found |= {a: (C, fitted[k], curvature) for k, a in enumerate(many)}
        return found

    def _fit_pairs(
        self,
        problem: RidgeProblem,
        tasks: Mapping[tuple[int, int, float], int],
        alone: Mapping[int, tuple[float, Array, Curvature]],
    ) -> Array:
        """Coefficients without two folds each, from those without one of the two."""
        start = np.array(
            [
                self._start(problem, alone[c][1], (a, b))
                for (a, b, _), c in tasks.items()
            ]
        )
        curvature = alone[self.folds[0]][2]
        penalty = np.array([C for _, _, C in tasks])
        held_out = np.array([(a, b) for a, b, _ in tasks])
        fitted, _ = problem.minimise(
            penalty, start, held_out, curvature, problem.unseen
        )
        return fitted

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

        Parameters
        ----------
        X : ndarray of shape (n_samples, width)
        start : Solution, default=None
            What `judge` found on the same columns; the minimum is the same without.
        fewer : Fewer, default=None
            What the penalty pulls towards.
        """
        problem = self._problem(X, fewer=fewer) if X.shape[1] else None
        if problem is None:
            return self._prior()
        if start is None or not isinstance(start.scorer, LogisticScorer):
            C, coef, curvature = self._roughly(problem)
        else:
            C, coef = start.C, _extended(start.scorer)
            curvature = problem.curvature(coef, C)
        if problem.small:
            curvature = problem.full_curvature(coef, C)
        for rounds in (ROUNDS[-1], MAX_ROUNDS):
            coef, arrived = problem.minimise_one(
                C, coef, curvature, problem.kept, rounds
            )
            if arrived:
                break
            fresh = problem.full_curvature if problem.small else problem.curvature
            curvature = fresh(coef, C)
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
        for rounds in (ROUNDS[-1], MAX_ROUNDS):
            coef, arrived = problem.minimise_one(
                start.C, coef, curvature, problem.unseen, rounds
            )
            if arrived:
                break
            curvature = problem.curvature(coef, start.C)
        return Solution(problem.scorer(coef), start.C)

    def _problem(
        self, X: Array, compared: bool = False, fewer: Fewer | None = None
    ) -> RidgeProblem | None:
        """The fits to these columns; None if there is one class only."""
        if not np.isfinite(X).all():
            raise DataError(
                "a leaf classifier was given readings that are NaN or infinite; give the "
                "sensor a transformer that fills them in, or a classifier that accepts "
                "them."
            )
        taught = self.labels.y[self.labels.weight > 0]
        if (taught == taught[0]).all():
            return None
        width = X.shape[1]
        n_terms = width * (width + 3) // 2
        if self.degree == 1:
            return RidgeProblem(X[self.order], 1, self.labels, compared)
        if n_terms > TERMS:
            warnings.warn(
                f"the degree-2 basis of {width} columns has {n_terms} terms, above "
                f"{TERMS}; the classifier of these sensors is linear in their readings. "
                f"Give a sensor of so many columns a transformer, or choose another "
                f"classifier.",
                WideBasisWarning,
                stacklevel=2,
            )
        degree = 1 if n_terms > TERMS else 2
        problem = RidgeProblem(X[self.order], degree, self.labels, compared)
        if fewer is not None and degree == 2:
            problem.toward = fewer.in_terms_of(problem.center, problem.scale)
        return problem

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
        for rounds in (*ROUNDS, MAX_ROUNDS):
            coef, arrived = problem.minimise_one(
                C, coef, curvature, problem.started, rounds
            )
            if arrived:
                break
            curvature = problem.curvature(coef, C)
        return C, coef, curvature

    def _outset(self, problem: RidgeProblem) -> tuple[float, Array, Curvature, float]:
        """Where fits with and without each fold set out, and how near they must come.

        Where the penalty is given, all fits part before the one to all rows is done: what
        it has learned by then of rows that others must not know is little. Where it is
        chosen, that fit is done, and those that set out from it have more to unlearn.
        """
        if problem.wants_evidence:
            return *self._roughly(problem), problem.unseen
        C = self.labels.penalty
        coef = problem.start()
        curvature = problem.curvature(coef, C)
        coef, _ = problem.minimise_one(C, coef, curvature, problem.parted, ROUNDS[0])
        return C, coef, problem.curvature(coef, C), problem.compared

    def _without_a_class(self, said: Array, out: int = NONE) -> None:
        """Where a fold takes one of two classes away, the other is all there is."""
        for f in self.folds:
            there = (self.labels.fold != f) & (self.labels.fold != out)
            rest = self.labels.y[there & (self.labels.weight > 0)]
            if len(rest) and (rest == rest[0]).all():
                said[(self.labels.fold == f) & (f != out)] = np.eye(2)[rest[0]]


def _rounded(posterior: Array) -> Array:
    """To single precision, so that the last bits of a sum decide nothing."""
    return posterior.astype(np.float32).astype(np.float64)


def _extended(scorer: LogisticScorer) -> Array:
    """Coefficients with their intercept at the end, (n_outputs, n_terms + 1)."""
    return np.hstack([scorer.coef.T, scorer.intercept[:, None]])
