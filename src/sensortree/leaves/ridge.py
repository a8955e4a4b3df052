"""`RidgeProblem`: the ridge logistic regressions on the columns of one subset.

With basis x_i (its last term is 1), classes y_i and weights w_i,

    minimise  sum_i w_i loss(y_i, B x_i) + |slopes of B|^2 / (2 C)

over B, one row for two classes, else one for each; to all rows, or without some folds. With
`toward`, the penalty is on what the slopes differ from those that are given. The
columns are standardised and multiplied once. Fits go side by side: blocks of rows, none of
which spans two folds, are read once for all that learn from them.

How close to the minimum is close enough is said in nats. The data say where the minimum is
to about one nat, so that comparisons need no more than a fraction of one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from sensortree.leaves.descent import Curvature, Diagonal, Factored, descend
from sensortree.leaves.standardising import moments
from sensortree.policy.classifiers import LogisticScorer, quadratic_terms
from sensortree.types import Array, Rows

# Coefficients up to which all their second derivatives are computed; rows for each of
# them from which the penalty no longer matters.
NEWTON = 600
ENOUGH = 20
# Terms up to which their Gram matrix is factored; beyond it only the diagonal is used.
FACTORED = 2_500
# Nats that a step still promises, where there is little to compute and where there is
# much: for each coefficient of what is compared; and of what is kept. For each
# coefficient, where fits with and without each fold part.
COMPARED, COMPARED_LARGE = 1e-5, 1e-4
KEPT, KEPT_LARGE = 1e-18, 1e-2
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
# The same of a part of the rows.
CACHED_PART = 2**23
# Rows times coefficients that are much to compute: comparing is then done in single
# precision.
MUCH = 2_000_000
# Standard deviations from the mean that are too far for single precision.
FAR = 1e6
# The score of a class that was not there to be learned.
NEVER = -1e30
# No fold is held out.
NONE = -2


@dataclass(frozen=True, eq=False)
class FoldedLabels:
    """Classes and weights of rows that are sorted by fold, and the penalty asked for.

    Attributes
    ----------
    y : ndarray of shape (n_samples,)
    weight : ndarray of shape (n_samples,)
    fold : ndarray of shape (n_samples,)
        Ascending; -1 for a row that is never held out.
    n_classes : int
    C : "evidence" or float
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


@dataclass(eq=False)
class RidgeProblem:
    """The fits to the columns of one subset: to all rows, or without a fold.

    Attributes
    ----------
    linear : ndarray of shape (width, n_samples)
        Standardised columns, rows by fold.
    toward : mapping of int to ndarray of shape (n_outputs, n_terms + 1), or None
        Coefficients that the penalty pulls towards, by the fold that is held out; None
        for zeros.
    """

    X: Array
    degree: int
    labels: FoldedLabels
    compared_only: bool
    toward: Mapping[int, Array] | None = field(default=None, init=False)
    cached: list[tuple[slice, int, Array]] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        weight = self.labels.weight
        self.center, self.scale = moments(self.X, weight)
        self.linear = np.ascontiguousarray(((self.X - self.center) / self.scale).T)
        width = len(self.linear)
        self.n_terms = width if self.degree == 1 else width * (width + 3) // 2
        self.n_outputs = 1 if self.labels.n_classes == 2 else self.labels.n_classes
        y, n_classes = self.labels.y, self.labels.n_classes
        n_present = int((np.bincount(y, weight, n_classes) > 0).sum())
        self.n_coef = self.n_terms * (1 if n_present == 2 else n_present)
        # Where there is much to compute, comparing is content with single precision.
        self.much = bool(self.labels.weight.sum() * self.n_coef > MUCH)
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
    def parted(self) -> float:
        """Nats to the minimum where fits with and without each fold part."""
        return PARTED * self.n_coef

    @property
    def kept(self) -> float:
        """Nats to the minimum that are close enough for what is kept."""
        return KEPT_LARGE if self.much and not self.small else KEPT

    @property
    def small(self) -> bool:
        """Whether all second derivatives can be afforded."""
        return self.n_coef <= NEWTON

    @property
    def wants_evidence(self) -> bool:
        """Whether the penalty matters, and its evidence can be afforded."""
        return self.wants_evidence_on(slice(None))

    def wants_evidence_on(self, rows: Any) -> bool:
        """The same where only some rows are learned from."""
        few = self.labels.weight[rows].sum() <= ENOUGH * self.n_coef
        return bool(self.labels.C == "evidence" and few and self.small)

    def blocks(self) -> Iterator[tuple[slice, int, Array]]:
        """Rows, their fold, and their basis with ones at the end, (n_terms + 1, n)."""
        yield from self._blocks() if self.cached is None else self.cached

    def _blocks(self) -> Iterator[tuple[slice, int, Array]]:
        fold = self.labels.fold
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

    def losses(
        self, C: float | Array, coef: Array, held_out: Rows
    ) -> tuple[Array, Array]:
        """Penalised losses without each fold, (n,), and their gradients like `coef`.

        Without each pair of folds, if `held_out` is of shape (n, 2); `C` may differ.
        """
        slopes = coef.copy()
        if self.toward is not None:
            slopes -= np.array([self.toward[int(fold)] for fold in held_out])
        slopes[..., -1] = 0.0
        value = 0.5 / C * np.einsum("kcj,kcj->k", slopes, slopes)
        gradient = slopes / np.reshape(C, (-1, 1, 1))
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
        max_rounds: int = MAX_ROUNDS,
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

    def minimise_one(
        self,
        C: float,
        coef: Array,
        curvature: Curvature,
        tol: float,
        max_rounds: int,
        out: int = NONE,
    ) -> tuple[Array, bool]:
        """Coefficients to all rows, or without a fold, and whether they are near enough."""
        found, arrived = self.minimise(
            C, coef[None], np.array([out]), curvature, tol, max_rounds
        )
        return np.asarray(found[0]), arrived

    def curvature(self, coef: Array, C: float) -> Curvature:
        """One matrix for all classes: x x' weighted by how unsure the row is."""
        ridge = np.full(self.n_terms + 1, 1 / C)
        ridge[-1] = 0.0
        matrix = self.unsure_products(coef)
        if matrix.ndim == 1:
            return Diagonal(matrix + ridge + 10 * self.eps * matrix.mean())
        matrix.flat[:: len(matrix) + 1] += ridge + 10 * self.eps * np.diag(matrix)
        return Factored(matrix)

    def unsure_products(self, coef: Array) -> Array:
        """Sum of x x' weighted by how unsure the row is; of many terms, its diagonal."""
        width = self.n_terms + 1
        large = width > FACTORED
        matrix = np.zeros(width if large else (width, width))
        for rows, _, terms in self.blocks():
            said = self._said(coef, terms)
            unsure = (said * (1 - said)).sum(axis=0) / max(1, self.n_outputs - 1)
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
        matrix.flat[:: n + 1] += 1e-12 * np.diag(matrix)
        return matrix

    def hessian(self, coef: Array, out: int = NONE) -> Array:
        """Second derivatives of the loss outside a fold, classes one after another.

        What classes a and b have in common is -sum w said_a said_b x x'; a class has with
        itself what is left, since all of them together say 1. Single precision will do:
        it says how to step, and which penalty is better by nats. It would not hold the
        square of a reading that hardly any weight lets stand far out.
        """
        width, n = self.n_terms + 1, self.n_outputs
        far = np.abs(self.linear).max(initial=0.0) > FAR
        kind = np.float64 if far else np.float32
        most = float(self.labels.weight.max())
        common = np.zeros((n * width, n * width))
        for rows, fold, terms in self.blocks():
            if fold == out:
                continue
            said, weight = self._said(coef, terms), self.labels.weight[rows]
            share = said if n > 1 else np.sqrt(said * (1 - said))
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


class RidgePart(RidgeProblem):
    """Some of the rows of a problem; what all rows decide is given.

    Parameters
    ----------
    X : ndarray of shape (n_rows, width)
    degree : int
    labels : FoldedLabels
        Of these rows.
    moments : tuple of center and scale, each of shape (width,)
        Of the columns of all rows.
    single : bool
        Whether single precision will do.
    """

    def __init__(
        self,
        X: Array,
        degree: int,
        labels: FoldedLabels,
        moments: tuple[Array, Array],
        single: bool,
    ):
        self.degree, self.labels, self.toward = degree, labels, None
        self.center, self.scale = moments
        self.linear = np.ascontiguousarray(((X - self.center) / self.scale).T)
        width = len(self.linear)
        self.n_terms = width if degree == 1 else width * (width + 3) // 2
        self.n_outputs = 1 if labels.n_classes == 2 else labels.n_classes
        self.dtype = np.float32 if single else np.float64
        self.cached = None
        if len(labels.y) * (self.n_terms + 1) <= CACHED_PART:
            self.cached = list(self._blocks())


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
