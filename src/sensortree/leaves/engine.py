"""`LogisticEngine`: the paper's leaf classifiers of many sensor subsets and folds.

The leaf classifier of a subset is a ridge logistic regression on the degree-2 polynomial
basis of its readings. With basis x_i (its last term is 1), classes y_i and weights w_i,

    minimise  sum_i w_i loss(y_i, B x_i) + |slopes of B|^2 / (2 C)

over B, one row for two classes, else one for each. Of one subset the columns are
standardised and multiplied once, the penalty is chosen once, and the fit to all rows is
where the fits without each fold set out from, or they set out together. They go side by
side: blocks of rows, none of which spans two folds, are read once for all that learn from
them.

How close to the minimum is close enough is said in nats. The data say where the minimum is
to about one nat, so that comparisons need no more than a fraction of one.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from sensortree.exceptions import DataError, WideBasisWarning
from sensortree.leaves.descent import Curvature, Diagonal, Factored, descend
from sensortree.leaves.standardising import moments
from sensortree.policy.classifiers import (
    ConstantScorer,
    LogisticScorer,
    probabilities,
    quadratic_terms,
)
from sensortree.types import Array, Rows

# Coefficients up to which all their second derivatives are computed; rows for each of
# them from which the penalty no longer matters; powers of 3 that C may be.
NEWTON = 600
ENOUGH = 20
POWERS = range(-5, 2)
# Terms up to which their Gram matrix is factored; beyond it only the diagonal is used.
FACTORED = 2_500
# Terms up to which the basis has products.
TERMS = 10_000
# Nats that a step still promises, where there is little to compute and where there is
# much: for each coefficient of what is compared; of what is kept; and while the penalty
# is chosen. For each coefficient, where fits with and without each fold part.
COMPARED, COMPARED_LARGE = 1e-5, 1e-4
KEPT, KEPT_LARGE = 1e-18, 1e-2
CLIMBED = 1e-7
PARTED = 1e-3
# Of what is compared, the share that is left where a fit sets out from one that has seen
# rows that it must not have seen.
UNSEEN = 0.01
# Rounds before second derivatives are computed anew, and rounds at most.
ROUNDS = (12, 36)
MAX_ROUNDS = 3_000
# Rows of a block, and numbers of a basis that is kept rather than computed anew.
BLOCK = 4_096
CACHED = 2**27
# Rows times coefficients that are much to compute: comparing is then done in single
# precision.
MUCH = 2_000_000
# The score of a class that was not there to be learned.
NEVER = -1e30
# No fold is held out.
NONE = -2


@dataclass(frozen=True, eq=False)
class Solution:
    """A leaf classifier, and the penalty it was fitted with.

    Attributes
    ----------
    scorer : LogisticScorer or ConstantScorer
    C : float
        Inverse strength of the penalty.
    """

    scorer: LogisticScorer | ConstantScorer
    C: float


class LogisticEngine:
    """Ridge logistic regressions on any columns, for the same rows, classes and folds.

    Parameters
    ----------
    y : ndarray of shape (n_samples,)
        Classes as integers.
    n_classes : int
    weight : ndarray of shape (n_samples,), default=None
        None stands for ones.
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
        self.y, self.fold = y[self.order], fold[self.order]
        self.weight = weight[self.order]
        self.n_classes, self.C, self.degree = n_classes, C, degree
        self.folds = [int(f) for f in np.unique(fold) if f >= 0]

    def judge(self, X: Array) -> tuple[Array, Solution]:
        """Posterior of each row by a classifier that was fitted without the row's fold.

        Parameters
        ----------
        X : ndarray of shape (n_samples, width)

        Returns
        -------
        posterior : ndarray of shape (n_samples, n_classes)
        solution : Solution
            Fitted to all rows: as exact as comparing needs, where rows are held out.
        """
        if not self.folds or not X.shape[1]:
            solution = self.fit(X)
            return _rounded(solution.scorer.predict_proba(X)), solution
        problem = self._problem(X, compared=True)
        if problem is None:
            solution = self._prior()
            return _rounded(solution.scorer.predict_proba(X)), solution
        C, coef, curvature, tol = self._outset(problem)
        held_out = np.array([NONE, *self.folds])
        start = np.array([self._start(problem, coef, (f,)) for f in held_out])
        # Where the fit to all rows ends, the one that is kept sets out.
        near = np.minimum(tol, [problem.started, *[np.inf] * len(self.folds)])
        fitted, _ = _descend(problem, C, start, held_out, curvature, near, MAX_ROUNDS)
        coef, fits = fitted[0], dict(zip(self.folds, fitted[1:], strict=True))
        said = np.empty((len(self.y), self.n_classes))
        for rows, fold, terms in problem.blocks():
            scores = fits.get(fold, coef).astype(terms.dtype, copy=False) @ terms
            said[rows] = probabilities(np.ascontiguousarray(scores.T))
        if problem.n_outputs == 1:
            self._without_a_class(said)
        posterior = np.empty_like(said)
        posterior[self.order] = said
        return _rounded(posterior), Solution(problem.scorer(coef), C)

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
        judged = {a: np.full((len(self.y), self.n_classes), np.nan) for a in alone}
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
        fold, y, weight = (np.empty_like(v) for v in (self.fold, self.y, self.weight))
        fold[self.order], y[self.order] = self.fold, self.y
        weight[self.order] = self.weight
        rest = fold != out
        engine = LogisticEngine(
            y[rest], self.n_classes, weight[rest], fold[rest], self.C
        )
        posterior = np.full((len(y), self.n_classes), np.nan)
        posterior[rest], solution = engine.judge(X[rest])
        return posterior, solution

    def _without_each(
        self, problem: _Problem
    ) -> dict[int, tuple[float, Array, Curvature]]:
        """As `_roughly`, without each fold: penalty, coefficients and curvature."""
        C, coef, curvature = self._roughly(problem)
        power = round(np.log(C) / np.log(3.0)) if problem.wants_evidence else 0
        starts = {a: self._start(problem, coef, (a,)) for a in self.folds}
        few = {a: problem.wants_evidence_on(self.fold != a) for a in self.folds}
        found = {
            a: _most_evident(problem, starts[a], a, power) for a in self.folds if few[a]
        }
        if many := [a for a in self.folds if not few[a]]:
            C = 1.0 if self.C == "evidence" else float(self.C)
            start = np.array([starts[a] for a in many])
            tol = problem.unseen
            fitted, _ = _descend(
                problem, C, start, np.array(many), curvature, tol, MAX_ROUNDS
            )
            found |= {a: (C, fitted[k], curvature) for k, a in enumerate(many)}
        return found

    def _fit_pairs(
        self,
        problem: _Problem,
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
        tol = problem.unseen
        fitted, _ = _descend(
            problem, penalty, start, held_out, curvature, tol, MAX_ROUNDS
        )
        return fitted

    def _start(self, problem: _Problem, coef: Array, out: tuple[int, ...]) -> Array:
        """Where a fit without some folds sets out; a class that is not there never is."""
        (present,) = self._present(np.array([out]))
        start = np.where(present[:, None], coef, 0.0)
        if problem.n_outputs > 1:
            start[:, -1] = np.where(present, start[:, -1], NEVER)
        return start

    def fit(self, X: Array, start: Solution | None = None) -> Solution:
        """The classifier fitted to all rows, at its minimum.

        Parameters
        ----------
        X : ndarray of shape (n_samples, width)
        start : Solution, default=None
            What `judge` found on the same columns; the minimum is the same without.
        """
        problem = self._problem(X) if X.shape[1] else None
        if problem is None:
            return self._prior()
        if start is None or not isinstance(start.scorer, LogisticScorer):
            C, coef, curvature = self._roughly(problem)
        else:
            C, coef = start.C, _extended(start.scorer)
            curvature = problem.curvature(coef, C)
        small = problem.n_coef <= NEWTON
        if small:
            curvature = problem.full_curvature(coef, C)
        tol = KEPT_LARGE if problem.much and not small else KEPT
        for rounds in (ROUNDS[-1], MAX_ROUNDS):
            coef, arrived = _alone(problem, C, coef, curvature, tol, rounds)
            if arrived:
                break
            fresh = problem.full_curvature if small else problem.curvature
            curvature = fresh(coef, C)
        return Solution(problem.scorer(coef), C)

    def _problem(self, X: Array, compared: bool = False) -> _Problem | None:
        """The fits to these columns; None if there is one class only."""
        if not np.isfinite(X).all():
            raise DataError(
                "a leaf classifier was given readings that are NaN or infinite; give the "
                "sensor a transformer that fills them in, or a classifier that accepts "
                "them."
            )
        if (self.y == self.y[0]).all():
            return None
        width = X.shape[1]
        n_terms = width * (width + 3) // 2
        if self.degree == 1:
            return _Problem(X[self.order], 1, self, compared)
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
        return _Problem(X[self.order], degree, self, compared)

    def _prior(self) -> Solution:
        """The class prior, where there is nothing to learn from."""
        prior = np.bincount(self.y, self.weight, self.n_classes) / self.weight.sum()
        return Solution(ConstantScorer(prior), 1.0)

    def _roughly(self, problem: _Problem) -> tuple[float, Array, Curvature]:
        """Penalty, coefficients to all rows, and second derivatives near there."""
        coef = problem.start()
        if problem.wants_evidence:
            return _most_evident(problem, coef)
        C = 1.0 if self.C == "evidence" else float(self.C)
        curvature = problem.curvature(coef, C)
        for rounds in (*ROUNDS, MAX_ROUNDS):
            coef, arrived = _alone(
                problem, C, coef, curvature, problem.compared, rounds
            )
            if arrived:
                break
            curvature = problem.curvature(coef, C)
        return C, coef, curvature

    def _outset(self, problem: _Problem) -> tuple[float, Array, Curvature, float]:
        """Where fits with and without each fold set out, and how near they must come.

        Where the penalty is given, all fits part before the one to all rows is done: what
        it has learned by then of rows that others must not know is little. Where it is
        chosen, that fit is done, and those that set out from it have more to unlearn.
        """
        if problem.wants_evidence:
            return *self._roughly(problem), problem.unseen
        C = 1.0 if self.C == "evidence" else float(self.C)
        coef = problem.start()
        curvature = problem.curvature(coef, C)
        tol = PARTED * problem.n_coef
        coef, _ = _alone(problem, C, coef, curvature, tol, ROUNDS[0])
        return C, coef, problem.curvature(coef, C), problem.compared

    def _present(self, held_out: Rows) -> Array:
        """Whether each class is there without each fold or pair, (n_fits, n_outputs)."""
        n_outputs = 1 if self.n_classes == 2 else self.n_classes
        if n_outputs == 1:
            return np.ones((len(held_out), 1), dtype=bool)
        return np.array(
            [
                np.bincount(self.y[~np.isin(self.fold, f)], minlength=self.n_classes)
                > 0
                for f in held_out
            ]
        )

    def _without_a_class(self, said: Array, out: int = NONE) -> None:
        """Where a fold takes one of two classes away, the other is all there is."""
        for f in self.folds:
            rest = self.y[(self.fold != f) & (self.fold != out)]
            if len(rest) and (rest == rest[0]).all():
                said[(self.fold == f) & (f != out)] = np.eye(2)[rest[0]]


@dataclass(eq=False)
class _Problem:
    """The fits to the columns of one subset: to all rows, or without a fold.

    Attributes
    ----------
    linear : ndarray of shape (width, n_samples)
        Standardised columns, rows by fold.
    """

    X: Array
    degree: int
    engine: LogisticEngine
    compared_only: bool
    cached: list[tuple[slice, int, Array]] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        weight = self.engine.weight
        self.center, self.scale = moments(self.X, weight)
        self.linear = np.ascontiguousarray(((self.X - self.center) / self.scale).T)
        width = len(self.linear)
        self.n_terms = width if self.degree == 1 else width * (width + 3) // 2
        self.n_outputs = 1 if self.engine.n_classes == 2 else self.engine.n_classes
        y, n_classes = self.engine.y, self.engine.n_classes
        n_present = int((np.bincount(y, minlength=n_classes) > 0).sum())
        self.n_coef = self.n_terms * (1 if n_present == 2 else n_present)
        # Where there is much to compute, comparing is content with single precision.
        self.much = bool(self.engine.weight.sum() * self.n_coef > MUCH)
        single = self.compared_only and self.much and not self.wants_evidence
        self.dtype: type[Any] = np.float32 if single else np.float64
        self.eps = float(np.finfo(self.dtype).eps)
        if len(y) * (self.n_terms + 1) <= CACHED:
            self.cached = list(self._blocks())

    @property
    def compared(self) -> float:
        """Nats to the minimum that are close enough for a comparison."""
        return (COMPARED_LARGE if self.much else COMPARED) * self.n_coef

    @property
    def started(self) -> float:
        """The same for where a fit that is kept sets out."""
        return COMPARED * self.n_coef

    @property
    def unseen(self) -> float:
        """The same where a fit sets out from one that has seen what it must not."""
        return self.compared * UNSEEN

    @property
    def wants_evidence(self) -> bool:
        """Whether the penalty matters, and its evidence can be afforded."""
        return self.wants_evidence_on(slice(None))

    def wants_evidence_on(self, rows: Any) -> bool:
        """The same where only some rows are learned from."""
        few = self.engine.weight[rows].sum() <= ENOUGH * self.n_coef
        return bool(self.engine.C == "evidence" and few and self.n_coef <= NEWTON)

    def blocks(self) -> Iterator[tuple[slice, int, Array]]:
        """Rows, their fold, and their basis with ones at the end, (n_terms + 1, n)."""
        yield from self._blocks() if self.cached is None else self.cached

    def _blocks(self) -> Iterator[tuple[slice, int, Array]]:
        fold = self.engine.fold
        starts = np.flatnonzero(np.r_[True, fold[1:] != fold[:-1]])
        for begin, end in zip(starts, [*starts[1:], len(fold)], strict=True):
            n_parts = -(-(end - begin) // BLOCK)
            cuts = np.linspace(begin, end, n_parts + 1).astype(int)
            for a, b in pairwise(cuts):
                terms = np.empty((self.n_terms + 1, b - a), self.dtype)
                linear = self.linear[:, a:b].astype(self.dtype)
                if self.degree == 1:
                    terms[:-1] = linear
                else:
                    quadratic_terms(linear, terms[:-1])
                terms[-1] = 1.0
                yield slice(a, b), int(fold[begin]), terms

    def start(self) -> Array:
        """No slopes, and the intercepts of the class prior, (n_outputs, n_terms + 1)."""
        coef = np.zeros((self.n_outputs, self.n_terms + 1))
        engine = self.engine
        share = np.bincount(engine.y, engine.weight, engine.n_classes)
        if self.n_outputs == 1:
            coef[0, -1] = np.log(share[1] / share[0])
            return coef
        there = share > 0
        coef[there, -1] = np.log(share[there]) - np.log(share[there]).mean()
        coef[~there, -1] = NEVER
        return coef

    def losses(
        self, C: float | Array, coef: Array, held_out: Rows
    ) -> tuple[Array, Array]:
        """Penalised losses without each fold, (n,), and their gradients like `coef`.

        Without each pair of folds, if `held_out` is of shape (n, 2); `C` may differ.
        """
        slopes = coef.copy()
        slopes[..., -1] = 0.0
        value = 0.5 / C * np.einsum("kcj,kcj->k", slopes, slopes)
        gradient = slopes / np.reshape(C, (-1, 1, 1))
        y, weight = self.engine.y, self.engine.weight.astype(self.dtype)
        for rows, fold, terms in self.blocks():
            learns = np.flatnonzero(
                (held_out != fold).reshape(len(held_out), -1).all(1)
            )
            if not len(learns):
                continue
            some = coef if len(learns) == len(coef) else coef[learns]
            some = some.astype(self.dtype, copy=False)
            scores = some.reshape(-1, some.shape[2]) @ terms
            loss, error = _errors(
                scores.reshape(len(some), self.n_outputs, -1), y[rows], weight[rows]
            )
            value[learns] += loss
            slope = error.reshape(len(scores), -1) @ terms.T
            gradient[learns] += slope.reshape(some.shape)
        return value, gradient

    def curvature(self, coef: Array, C: float) -> Curvature:
        """One matrix for all classes: x x' weighted by how unsure the row is."""
        ridge = np.full(self.n_terms + 1, 1 / C)
        ridge[-1] = 0.0
        width = self.n_terms + 1
        large = width > FACTORED
        matrix = np.zeros(width if large else (width, width))
        for rows, _, terms in self.blocks():
            said = self._said(coef, terms)
            unsure = (said * (1 - said)).sum(axis=0) / max(1, self.n_outputs - 1)
            unsure *= self.engine.weight[rows].astype(self.dtype)
            if large:
                matrix += np.einsum("ij,ij,j->i", terms, terms, unsure)
            else:
                part = terms * np.sqrt(unsure)
                matrix += part @ part.T
        if large:
            return Diagonal(matrix + ridge + 10 * self.eps * matrix.mean())
        matrix.flat[:: width + 1] += ridge + 10 * self.eps * np.diag(matrix)
        return Factored(matrix)

    def full_curvature(self, coef: Array, C: float) -> Curvature:
        """All second derivatives; what softmax leaves open is closed."""
        return Factored(self.closed(self.hessian(coef), C))

    def closed(self, hessian: Array, C: float) -> Array:
        """Add the penalty to the second derivatives of the loss."""
        width, n = self.n_terms + 1, len(hessian)
        ridge = np.full(n, 1 / C)
        ridge[width - 1 :: width] = 0.0
        matrix = hessian.copy()
        matrix.flat[:: n + 1] += ridge
        intercepts = np.arange(width - 1, n, width)
        if self.n_outputs > 1:
            # Adding a constant to all scores changes nothing: any curvature will do.
            lift = matrix[intercepts, intercepts].mean() / self.n_outputs
            matrix[np.ix_(intercepts, intercepts)] += lift
        matrix.flat[:: n + 1] += 1e-12 * np.diag(matrix)
        return matrix

    def hessian(self, coef: Array, out: int = NONE) -> Array:
        """Second derivatives of the loss outside a fold, classes one after another."""
        width = self.n_terms + 1
        n = self.n_outputs
        blocks = np.zeros((n, width, n, width))
        for rows, fold, terms in self.blocks():
            if fold == out:
                continue
            said, weight = self._said(coef, terms), self.engine.weight[rows]
            for a in range(n):
                for b in range(a, n):
                    both = weight * said[a] * ((a == b) - said[b])
                    if a == b:
                        part = terms * np.sqrt(both)
                        blocks[a, :, b] += part @ part.T
                    else:
                        blocks[a, :, b] += (terms * both) @ terms.T
        for a in range(n):
            for b in range(a):
                blocks[a, :, b] = blocks[b, :, a].T
        return blocks.reshape(n * width, n * width)

    def _said(self, coef: Array, terms: Array) -> Array:
        """Probability of every output, (n_outputs, n)."""
        scores = coef.astype(self.dtype, copy=False) @ terms
        if self.n_outputs == 1:
            return np.asarray(1 / (1 + np.exp(-np.clip(scores, -80, 80))))
        scores -= scores.max(axis=0)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=0)
        return np.asarray(scores)

    def scorer(self, coef: Array) -> LogisticScorer:
        """The classifier as plain arrays."""
        return LogisticScorer(
            self.center, self.scale, self.degree, coef[:, :-1].T, coef[:, -1].copy()
        )


def _errors(scores: Array, y: Rows, weight: Array) -> tuple[Array, Array]:
    """Weighted losses, (n_fits,), and their derivatives, like `scores`; overwrites them.

    Scores are (n_fits, n_outputs, n_rows).
    """
    if scores.shape[1] == 1:
        score = scores[:, 0]
        small = np.exp(-np.abs(score))
        loss = np.log1p(small) + np.maximum(score, 0.0) - y * score
        error = np.where(score >= 0, 1.0, small) / (1.0 + small)
        error -= y
        error *= weight
        return np.asarray(loss.astype(np.float64) @ weight), error
    rows = np.arange(len(y))
    scores -= scores.max(axis=1, keepdims=True)
    truth = scores[:, y, rows]
    np.exp(scores, out=scores)
    total = scores.sum(axis=1)
    loss = np.log(total) - truth
    scores *= (weight / total)[:, None]
    scores[:, y, rows] -= weight
    return np.asarray(loss.astype(np.float64) @ weight), scores


def _descend(
    problem: _Problem,
    C: float | Array,
    start: Array,
    held_out: Rows,
    curvature: Curvature,
    tol: float | Array,
    max_rounds: int,
) -> tuple[Array, bool]:
    """Coefficients without each fold, like `start`, and whether they are near enough."""
    shape = start.shape[1:]
    penalty = np.broadcast_to(C, len(start))

    def functions(numbers: Rows, points: Array) -> tuple[Array, Array]:
        value, gradient = problem.losses(
            penalty[numbers], points.reshape(len(points), *shape), held_out[numbers]
        )
        return value, gradient.reshape(points.shape)

    flat = start.reshape(len(start), -1)
    found, arrived = descend(functions, flat, curvature, tol, max_rounds, problem.eps)
    return np.asarray(found.reshape(start.shape)), arrived


def _alone(
    problem: _Problem,
    C: float,
    coef: Array,
    curvature: Curvature,
    tol: float,
    max_rounds: int,
    out: int = NONE,
) -> tuple[Array, bool]:
    """Coefficients to all rows, or without a fold, and whether they are near enough."""
    held_out = np.array([out])
    found, arrived = _descend(
        problem, C, coef[None], held_out, curvature, tol, max_rounds
    )
    return np.asarray(found[0]), arrived


def _rounded(posterior: Array) -> Array:
    """To single precision, so that the last bits of a sum decide nothing."""
    return posterior.astype(np.float32).astype(np.float64)


def _extended(scorer: LogisticScorer) -> Array:
    """Coefficients with their intercept at the end, (n_outputs, n_terms + 1)."""
    return np.hstack([scorer.coef.T, scorer.intercept[:, None]])


# the penalty --------------------------------------------------------------------------


def _most_evident(
    problem: _Problem, coef: Array, out: int = NONE, best: int = 0
) -> tuple[float, Array, Curvature]:
    """C of the largest evidence outside a fold; each fit sets out from the last.

    By climbing from 1, or from another power of 3.
    """
    curvature = problem.curvature(coef, 3.0**best)
    hessian: Array | None = None
    tried: dict[int, tuple[float, Array, Array]] = {}

    def evidence(power: int) -> float:
        nonlocal coef, curvature, hessian
        if power not in tried:
            C = 3.0**power
            if hessian is not None:
                curvature = Factored(problem.closed(hessian, C))
            for rounds in (*ROUNDS, MAX_ROUNDS):
                coef, arrived = _alone(
                    problem, C, coef, curvature, CLIMBED, rounds, out
                )
                if arrived:
                    break
                curvature = problem.curvature(coef, C)
            hessian = problem.hessian(coef, out)
            tried[power] = _log_evidence(problem, C, coef, hessian, out), coef, hessian
        return tried[power][0]

    evidence(best)  # the others set out from there
    for way in (-1, +1):
        while best + way in POWERS and evidence(best + way) > evidence(best):
            best += way
    _, coef, hessian = tried[best]
    return 3.0**best, coef, Factored(problem.closed(hessian, 3.0**best))


def _log_evidence(
    problem: _Problem, C: float, coef: Array, hessian: Array, out: int = NONE
) -> float:
    """Laplace's approximation of the log-evidence of a ridge logistic regression.

    The penalty |θ|²/(2C) is a Gaussian prior of variance C. With K the Hessian of the loss
    at the optimum, the intercepts profiled out,

        log p(y | C) = -loss - |θ|²/(2C) - 1/2 log det(1 + C K) + constant.
    """
    (penalised,), _ = problem.losses(C, coef[None], np.array([out]))
    width = problem.n_terms + 1
    intercepts = np.arange(width - 1, len(hessian), width)
    slopes = np.delete(np.arange(len(hessian)), intercepts)
    crossed = hessian[np.ix_(slopes, intercepts)]
    inner = np.linalg.pinv(hessian[np.ix_(intercepts, intercepts)], hermitian=True)
    profiled = hessian[np.ix_(slopes, slopes)] - crossed @ inner @ crossed.T
    profiled *= C
    profiled.flat[:: len(profiled) + 1] += 1.0
    factor = Factored(profiled).factor
    return float(-penalised - np.log(np.diag(factor)).sum())
