"""`RidgeProblem`: the ridge logistic regressions on the columns of one subset.

With basis x_i (its last term is 1), classes y_i and weights w_i,

    minimise  sum_i w_i loss(y_i, B x_i) + |slopes of B|^2 / (2 C)

over B, one row for two classes, else one for each; to all rows, or without some folds. With
`toward`, the penalty is on what the slopes differ from those that are given. The
columns are standardised and multiplied once. Fits go side by side: blocks of rows, none of
which spans two folds, are read once for all that learn from them.

Tolerances are in nats. The data determine the minimum to about one nat, so that comparisons
need no more than a fraction of one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sensortree.constants import (
    BASIS_KEPT,
    BASIS_KEPT_PART,
    LOGISTIC_CLIMBED,
    LOGISTIC_COMPARED,
    LOGISTIC_COMPARED_LARGE,
    LOGISTIC_ENOUGH,
    LOGISTIC_FACTORED,
    LOGISTIC_FAR,
    LOGISTIC_KEPT,
    LOGISTIC_KEPT_LARGE,
    LOGISTIC_LARGEST_SCORE,
    LOGISTIC_LIFT,
    LOGISTIC_MAX_ROUNDS,
    LOGISTIC_MUCH,
    LOGISTIC_NEWTON,
    LOGISTIC_PARTED,
    LOGISTIC_POWERS,
    LOGISTIC_ROUNDS,
    LOGISTIC_UNSEEN,
)
from sensortree.leaves.descent import Curvature, Diagonal, Factored, descend
from sensortree.leaves.standardising import basis_of, in_blocks, moments, n_terms_of
from sensortree.policy.classifiers import LogisticScorer
from sensortree.types import Array, Rows

# The score of a class that was not there to be learned.
NEVER = -1e30
# No fold is held out.
NONE = -2


@dataclass(frozen=True, eq=False)
class FoldedLabels:
    """Classes and weights of rows that are sorted by fold, and the penalty asked for.

    Folds ascend; -1 stands for a row that is never held out. C is "evidence" or a number.
    """

    y: Rows
    weight: Array
    fold: Rows
    n_classes: int
    C: float | str

    @property
    def penalty(self) -> float:
        """The C to take where evidence is not asked for, or not needed."""
        return 1.0 if self.C == "evidence" else float(self.C)


class RidgeProblem:
    """The fits to the columns of one subset: to all rows, or without a fold."""

    # Coefficients that the penalty pulls towards, (n_outputs, n_terms + 1), by the fold
    # that is held out; None for zeros.
    toward: Mapping[int, Array] | None = None
    cached: list[tuple[slice, int, Array]] | None = None

    def __init__(
        self, X: Array, degree: int, labels: FoldedLabels, compared_only: bool
    ):
        self._count(X.shape[1], degree, labels, compared_only)
        self._standardise(X, moments(X, labels.weight), BASIS_KEPT)

    def _count(
        self, width: int, degree: int, labels: FoldedLabels, compared_only: bool
    ) -> None:
        """How much there is to compute, and how exactly it is computed."""
        self.degree, self.labels = degree, labels
        self.n_terms = n_terms_of(width, degree)
        self.n_outputs = 1 if labels.n_classes == 2 else labels.n_classes
        mass = np.bincount(labels.y, labels.weight, labels.n_classes)
        n_present = int((mass > 0).sum())
        self.n_coef = self.n_terms * (1 if n_present == 2 else n_present)
        # Whether all second derivatives can be afforded.
        self.small = self.n_coef <= LOGISTIC_NEWTON
        self.wants_evidence = self.wants_evidence_on(slice(None))
        # Where there is much to compute, comparing is content with single precision.
        much = bool(labels.weight.sum() * self.n_coef > LOGISTIC_MUCH)
        single = compared_only and much and not self.wants_evidence
        self.dtype: type[Any] = np.float32 if single else np.float64
        self.eps = float(np.finfo(self.dtype).eps)
        # Nats to the minimum that are close enough for a comparison; for one that sets out
        # from a fit that has seen rows that it must not have seen; for where a fit that is
        # kept sets out; for where fits with and without each fold part; for what is kept.
        share = LOGISTIC_COMPARED_LARGE if much else LOGISTIC_COMPARED
        self.compared = share * self.n_coef
        self.unseen = self.compared * LOGISTIC_UNSEEN
        self.started = LOGISTIC_COMPARED * self.n_coef
        self.parted = LOGISTIC_PARTED * self.n_coef
        large = much and not self.small
        self.kept = LOGISTIC_KEPT_LARGE if large else LOGISTIC_KEPT

    def _standardise(
        self, X: Array, center_scale: tuple[Array, Array], most: int
    ) -> None:
        """Standardise columns, and keep their basis if it is of no more than `most`."""
        self.center, self.scale = center_scale
        self.linear = np.ascontiguousarray(((X - self.center) / self.scale).T)
        if len(X) * (self.n_terms + 1) <= most:
            self.cached = list(self._blocks())

    def wants_evidence_on(self, rows: Any) -> bool:
        """Whether the penalty matters for some rows, and its evidence can be afforded."""
        return self.small and self._matters_on(rows)

    @property
    def wants_choice(self) -> bool:
        """Whether the penalty matters, and its evidence cannot be afforded.

        Only with two classes. With more, the C of the least log-loss answers wrong more
        often: on digits, in each of four trees.
        """
        two = self.n_outputs == 1
        return two and not self.small and self._matters_on(slice(None))

    def _matters_on(self, rows: Any) -> bool:
        few = self.labels.weight[rows].sum() <= LOGISTIC_ENOUGH * self.n_coef
        return bool(self.labels.C == "evidence" and few)

    def blocks(self) -> Iterator[tuple[slice, int, Array]]:
        """Rows, their fold, and their basis with ones at the end, (n_terms + 1, n)."""
        yield from self._blocks() if self.cached is None else self.cached

    def _blocks(self) -> Iterator[tuple[slice, int, Array]]:
        fold = self.labels.fold
        starts = np.flatnonzero(np.r_[True, fold[1:] != fold[:-1]]).tolist()
        for begin, end in zip(starts, [*starts[1:], len(fold)], strict=True):
            for a, b in in_blocks(begin, end):
                linear = self.linear[:, a:b].astype(self.dtype)
                yield slice(a, b), int(fold[begin]), basis_of(linear, self.degree)

    def start(self) -> Array:
        """No slopes, and the intercepts of the class prior, (n_outputs, n_terms + 1).

        Or what the penalty pulls towards.
        """
        coef = np.zeros((self.n_outputs, self.n_terms + 1))
        labels = self.labels
        share = np.bincount(labels.y, labels.weight, labels.n_classes)
        there = share > 0
        if self.n_outputs == 1:
            coef[0, -1] = np.log(share[1] / share[0])
        else:
            coef[there, -1] = np.log(share[there]) - np.log(share[there]).mean()
            coef[~there, -1] = NEVER
        if self.toward is not None:
            given = self.toward[NONE]
            known = given[:, -1] > NEVER / 2
            known &= there if self.n_outputs > 1 else True
            coef[known] = given[known]
        return coef

    def penalties(
        self, C: float | Array, coef: Array, held_out: Rows
    ) -> tuple[Array, Array]:
        """Penalties of some coefficients, (n,), and their gradients like `coef`."""
        slopes = coef.copy()
        if self.toward is not None:
            slopes -= np.array([self.toward[int(fold)] for fold in held_out])
        slopes[..., -1] = 0.0
        value = 0.5 / C * np.einsum("kcj,kcj->k", slopes, slopes)
        return value, slopes / np.reshape(C, (-1, 1, 1))

    def losses(
        self, C: float | Array, coef: Array, held_out: Rows
    ) -> tuple[Array, Array]:
        """Penalised losses without each fold, (n,), and their gradients like `coef`.

        Without each pair of folds, if `held_out` is of shape (n, 2); `C` may differ.
        """
        value, gradient = self.penalties(C, coef, held_out)
        y, weight = self.labels.y, self.labels.weight.astype(self.dtype)
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

    def minimise(
        self,
        C: float | Array,
        start: Array,
        held_out: Rows,
        curvature: Curvature,
        tol: float | Array,
        max_rounds: int = LOGISTIC_MAX_ROUNDS,
    ) -> tuple[Array, bool]:
        """Coefficients without each fold, like `start`, and whether all are near enough."""
        shape = start.shape[1:]
        penalty = np.broadcast_to(C, len(start))

        def functions(numbers: Rows, points: Array) -> tuple[Array, Array]:
            value, gradient = self.losses(
                penalty[numbers], points.reshape(len(points), *shape), held_out[numbers]
            )
            return value, gradient.reshape(points.shape)

        flat = start.reshape(len(start), -1)
        found, arrived = descend(functions, flat, curvature, tol, max_rounds, self.eps)
        return np.asarray(found.reshape(start.shape)), arrived

    def settle(
        self,
        C: float,
        coef: Array,
        curvature: Curvature,
        tol: float,
        rounds: Sequence[int] = (*LOGISTIC_ROUNDS, LOGISTIC_MAX_ROUNDS),
        out: int = NONE,
        fresh: Callable[[Array, float], Curvature] | None = None,
    ) -> tuple[Array, Curvature]:
        """Coefficients to all rows, or without a fold, and the curvature near there.

        After each number of rounds that was not enough, the curvature is worked out anew.
        """
        for n_rounds in rounds:
            found, arrived = self.minimise(
                C, coef[None], np.array([out]), curvature, tol, n_rounds
            )
            coef = np.asarray(found[0])
            if arrived:
                break
            curvature = (fresh or self.curvature)(coef, C)
        return coef, curvature

    def curvature(self, coef: Array, C: float) -> Curvature:
        """One matrix for all classes: x x' weighted by how unsure the row is."""
        return self.penalised(self.unsure_products(coef), C)

    def penalised(self, products: Array, C: float) -> Curvature:
        """The curvature of `unsure_products` and a penalty."""
        ridge = np.full(self.n_terms + 1, 1 / C)
        ridge[-1] = 0.0
        matrix = products.copy()
        if matrix.ndim == 1:
            return Diagonal(matrix + ridge + 10 * self.eps * matrix.mean())
        matrix.flat[:: len(matrix) + 1] += ridge + 10 * self.eps * np.diag(matrix)
        return Factored(matrix)

    def unsure_products(self, coef: Array) -> Array:
        """Sum of x x' weighted by how unsure the row is; of many terms, its diagonal."""
        width = self.n_terms + 1
        large = width > LOGISTIC_FACTORED
        matrix = np.zeros(width if large else (width, width))
        for rows, _, terms in self.blocks():
            proba = self._proba(coef, terms)
            unsure = (proba * (1 - proba)).sum(axis=0) / max(1, self.n_outputs - 1)
            unsure *= self.labels.weight[rows].astype(self.dtype)
            if large:
                matrix += np.einsum("ij,ij,j->i", terms, terms, unsure)
            else:
                part = terms * np.sqrt(unsure)
                matrix += part @ part.T
        return matrix

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
        matrix.flat[:: n + 1] += LOGISTIC_LIFT * np.diag(matrix)
        return matrix

    def hessian(self, coef: Array, out: int = NONE) -> Array:
        """Second derivatives of the loss outside a fold, classes one after another.

        What classes a and b have in common is -sum w said_a said_b x x'; a class has with
        itself what is left, since all of them together say 1. Single precision will do:
        it says how to step, and which penalty is better by nats. It would not hold the
        square of a reading that hardly any weight lets stand far out.
        """
        width, n = self.n_terms + 1, self.n_outputs
        far = np.abs(self.linear).max(initial=0.0) > LOGISTIC_FAR
        kind = np.float64 if far else np.float32
        most = float(self.labels.weight.max())
        common = np.zeros((n * width, n * width))
        for rows, fold, terms in self.blocks():
            if fold == out:
                continue
            proba, weight = self._proba(coef, terms), self.labels.weight[rows]
            share = proba if n > 1 else np.sqrt(proba * (1 - proba))
            share = (share * np.sqrt(weight / most)).astype(kind)
            parts = share[:, None] * terms.astype(kind, copy=False)
            parts = parts.reshape(n * width, -1)
            common += parts @ parts.T
        common *= most
        if n == 1:
            return common
        blocks = -common.reshape(n, width, n, width)
        for a in range(n):
            blocks[a, :, a] = 0.0
            blocks[a, :, a] = -blocks[a].sum(axis=1)
        return blocks.reshape(n * width, n * width)

    def _proba(self, coef: Array, terms: Array) -> Array:
        """Probability of every output, (n_outputs, n)."""
        scores = coef.astype(self.dtype, copy=False) @ terms
        if self.n_outputs == 1:
            most = LOGISTIC_LARGEST_SCORE
            return np.asarray(1 / (1 + np.exp(-np.clip(scores, -most, most))))
        scores -= scores.max(axis=0)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=0)
        return np.asarray(scores)

    def scorer(self, coef: Array) -> LogisticScorer:
        """The classifier as plain arrays."""
        return LogisticScorer(
            self.center, self.scale, self.degree, coef[:, :-1].T, coef[:, -1].copy()
        )


class RidgePart(RidgeProblem):
    """Some of the rows of a problem; what all rows decide is given.

    These are centre and scale of the columns, and whether single precision will do.
    """

    def __init__(
        self,
        X: Array,
        degree: int,
        labels: FoldedLabels,
        center_scale: tuple[Array, Array],
        single: bool,
    ):
        self._count(X.shape[1], degree, labels, compared_only=False)
        self.dtype = np.float32 if single else np.float64
        self._standardise(X, center_scale, BASIS_KEPT_PART)


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


def most_evident(
    problem: RidgeProblem, coef: Array, out: int = NONE, best: int = 0
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
            coef, curvature = problem.settle(
                C, coef, curvature, LOGISTIC_CLIMBED, out=out
            )
            hessian = problem.hessian(coef, out)
            tried[power] = log_evidence(problem, C, coef, hessian, out), coef, hessian
        return tried[power][0]

    evidence(best)  # the others set out from there
    for way in (-1, +1):
        while best + way in LOGISTIC_POWERS and evidence(best + way) > evidence(best):
            best += way
    _, coef, hessian = tried[best]
    return 3.0**best, coef, Factored(problem.closed(hessian, 3.0**best))


def log_evidence(
    problem: RidgeProblem, C: float, coef: Array, hessian: Array, out: int = NONE
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
