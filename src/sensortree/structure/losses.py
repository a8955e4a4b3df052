"""What any subset of sensors would lose and cost, each worked out once.

Two screens say quickly what a subset could predict, by least squares on one polynomial
basis: the classes are regressed, as indicators, or a number is, on products of the
readings. With the Gram matrix of the whole basis at hand, a subset costs one small linear
system, and one that is a little larger an update of it. `LeastSquaresScreen` answers each
row by coefficients that were fitted without its fold. `GramScreen` fits all rows once, and
corrects by its leverage that a row was learned from, as in leaving one out.

`SubsetLosses` holds the screens, the classifiers and the prices for the searches. Searches
number the sensors, so that ties go to the lowest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.blas import dsyrk, ssyrk
from scipy.linalg.lapack import dposv, dpotrf, dpotrs, dtrtri, dtrtrs

from sensortree.constants import (
    BRANCH_ROWS,
    SCREEN_PRODUCTS,
    SCREEN_RIDGE,
    SCREEN_SCORES_AT_ONCE,
    SCREEN_SINGLE_PRECISION,
)
from sensortree.leaves.boosting import BoostedTrees
from sensortree.leaves.classifiers import LeafClassifiers
from sensortree.leaves.fitting import is_linear
from sensortree.leaves.regressors import BoostedRegression
from sensortree.leaves.standardising import moments
from sensortree.structure.algorithm1 import Subset
from sensortree.structure.masking import MaskedScreen
from sensortree.types import Array, Rows


class Basis:
    """The polynomial basis of all readings, of single precision where it is large.

    `blocks` are the readings of each sensor, (n_samples, width); NaN counts as the mean.
    The target is indicators of the classes, or a standardised number, (n_samples,
    n_targets).
    """

    def __init__(self, blocks: Sequence[Array], target: Array, weight: Array):
        self.owner = np.repeat(np.arange(len(blocks)), [b.shape[1] for b in blocks])
        self.columns = [np.flatnonzero(self.owner == j) for j in range(len(blocks))]
        self.target = target
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
        own = self.basis[:, 1 + n_columns :]
        np.multiply(columns[:, first], columns[:, second], out=own)
        self.ridge = SCREEN_RIDGE * float(weight.sum())

    def terms(self, subset: Iterable[int]) -> Rows:
        """Places of the terms of a subset in the basis."""
        known = np.zeros(len(self.owner) + 1, dtype=bool)
        for sensor in subset:
            known[self.columns[sensor]] = True
        known[-1] = True  # the reading -1 is the constant
        return np.flatnonzero(known[self.first] & known[self.second])

    def new_terms(
        self, subset: Iterable[int], extended: Iterable[Iterable[int]]
    ) -> list[Rows]:
        """Terms that each of some larger subsets has besides those of a subset."""
        had = np.zeros(len(self.first), dtype=bool)
        had[self.terms(subset)] = True
        return [terms[~had[terms]] for terms in map(self.terms, extended)]

    def system(self, gram: Array, terms: Rows) -> Array:
        """The matrix of the regression on some terms, with its ridge."""
        system = gram[terms[:, None], terms]
        system.flat[:: len(terms) + 1] += self.ridge
        return system


class LeastSquaresScreen(Basis):
    """Least squares on any subset of sensors, out of fold.

    Scores are of single precision, so that the last bits of a sum decide nothing. Rows of
    fold -1 are answered by coefficients that have seen them.
    """

    def __init__(
        self, blocks: Sequence[Array], target: Array, weight: Array, fold: Rows
    ):
        super().__init__(blocks, target, weight)
        folds = np.unique(fold)
        every = [np.flatnonzero(fold == held_out) for held_out in folds]
        # Of each fold: its rows of the basis, by column, since subsets take columns.
        bases = [np.asfortranarray(self.basis[rows]) for rows in every]
        del self.basis
        grams, moments = [], []
        for rows, held_out in zip(every, bases, strict=True):
            root = np.sqrt(weight[rows, None]).astype(held_out.dtype)
            weighted = held_out * root
            grams.append(gram_of(weighted))
            moments.append(weighted.T @ (root * self.target[rows]))
        # Rows, basis, and what coefficients are fitted on: all folds but their own.
        others = without_each(grams, folds), without_each(moments, folds)
        self.folds = list(zip(every, bases, *others, strict=True))

    def scores(self, subset: Iterable[int]) -> Array:
        """Regressed targets, (n_samples, n_targets)."""
        used = self.terms(subset)
        scores = np.empty(self.target.shape, np.float32)
        for rows, basis, gram, moment in self.folds:
            system = self.system(gram, used)
            # The ridge makes the system positive definite: nothing is left to check.
            _, coef, _ = dposv(system, moment[used], overwrite_a=True, overwrite_b=True)
            scores[rows] = basis[:, used] @ coef.astype(basis.dtype, copy=False)
        return scores.astype(np.float64)

    def scores_with(
        self, subset: Iterable[int], extended: Sequence[Iterable[int]]
    ) -> Iterator[tuple[int, Array]]:
        """Number and scores of larger subsets, in no order, by updates of a regression."""
        used, news = self.terms(subset), self.new_terms(subset, extended)
        room = max(1, SCREEN_SCORES_AT_ONCE // self.target.size)
        for size in sorted({len(new) for new in news}):
            alike = [k for k, new in enumerate(news) if len(new) == size]
            if not size:
                scores = self.scores(subset)
                yield from ((k, scores) for k in alike)
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
        for rows, basis, gram, moment in self.folds:
            system = self.system(gram, used)
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
            found = old.T.astype(kind, copy=False) @ basis[:, used].T
            found = found.reshape(n_sets, n_classes, len(rows))
            columns = basis[:, new.ravel()].T.reshape(n_sets, size, len(rows))
            found += coef.transpose(0, 2, 1).astype(kind, copy=False) @ columns
            scores[:, :, rows] = found
        return (each.T.astype(np.float64) for each in scores)


class Regressed(NamedTuple):
    """The targets regressed on the terms of a subset."""

    terms: Rows  # their places in the basis
    factor: Array  # of the system: lower, by Cholesky
    coef: Array  # (n_terms, n_targets)
    freedom: float  # degrees of freedom


class GramScreen(Basis):
    """Least squares on any subset of sensors, by all rows."""

    def __init__(self, blocks: Sequence[Array], target: Array, weight: Array):
        super().__init__(blocks, target, weight)
        root = np.sqrt(weight)[:, None].astype(self.basis.dtype)
        weighted = np.asfortranarray(self.basis * root)
        self.gram = gram_of(weighted, lower=True)
        self.moment = np.asarray(weighted.T @ (root * self.target), np.float64)
        self.total = float(weight.sum())
        self._regressed: dict[Subset, Regressed] = {}

    def linear_terms(self, subset: Subset) -> Rows:
        """Places of the readings of a subset in the basis."""
        columns = [self.columns[sensor] for sensor in sorted(subset)]
        return 1 + np.concatenate([np.empty(0, np.intp), *columns])

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
        factor, _ = dpotrf(self.system(self.gram, terms), lower=True, clean=True)
        half, _ = dtrtrs(factor, self.moment[terms], lower=True)
        return float(np.einsum("ij,ij->", half, half))

    def regress(self, subset: Subset) -> Regressed:
        """The regression on a subset, worked out once."""
        if subset not in self._regressed:
            terms = self.terms(subset)
            factor, _ = dpotrf(self.system(self.gram, terms), lower=True, clean=True)
            coef, _ = dpotrs(factor, self.moment[terms], lower=True)
            inverse, _ = dtrtri(factor, lower=True)
            freedom = len(terms) - self.ridge * float((inverse**2).sum())
            self._regressed[subset] = Regressed(terms, factor, coef, freedom)
        return self._regressed[subset]


def gram_of(basis: Array, lower: bool = False) -> Array:
    """Products of all columns, in double precision, by one of their triangles."""
    multiply = ssyrk if basis.dtype == np.float32 else dsyrk
    half = multiply(1.0, basis, trans=True, lower=lower).astype(np.float64, copy=False)
    half = half.T if lower else half
    return np.asarray(np.triu(half) + np.triu(half, 1).T)


def without_each(sums: Sequence[Array], folds: Rows) -> list[Array]:
    """The sum of all folds less each; fold -1 is left out of none."""
    total = np.sum(sums, axis=0)
    return [
        total - own if fold >= 0 else total
        for fold, own in zip(folds, sums, strict=True)
    ]


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


def ranks(block: Array, weight: Array) -> Array:
    """Share of the weight below each reading; NaN stays NaN."""
    ranked = np.full(block.shape, np.nan)
    for column, out in zip(block.T, ranked.T, strict=True):
        known = ~np.isnan(column)
        _, values = np.unique(column[known], return_inverse=True)
        mass = np.bincount(values, weight[known])
        out[known] = ((np.cumsum(mass) - mass / 2) / mass.sum())[values]
    return ranked


class SubsetLosses:
    """Losses and prices of sensor subsets on the rows that a search looks at."""

    def __init__(self, leaves: LeafClassifiers, max_cost: float | None):
        self.leaves = leaves
        self.data = leaves.data
        self.names = self.data.sensors.names
        self.market = self.data.market(max_cost)
        self._gone: frozenset[str] = frozenset()
        self._screen: LeastSquaresScreen | MaskedScreen | None = None
        self._screened: dict[Subset, Array] = {}
        self._light: dict[Subset, Array] = {}
        self._costs: dict[tuple[Subset, Subset], Any] = {}
        self._weighed: tuple[float, dict[Any, Any]] = np.nan, {}

    def without(self, gone: frozenset[str]) -> SubsetLosses:
        """The same where some sensors are not to be had; what was worked out is shared."""
        self._opened()
        other = copy(self)
        other._gone, other._weighed = gone, (np.nan, {})
        return other

    def named(self, subset: Iterable[int]) -> frozenset[str]:
        """Names of sensors given by their numbers."""
        return frozenset(self.names[j] for j in subset)

    def numbered(self, known: Iterable[str]) -> Subset:
        """Numbers of sensors given by their names."""
        return frozenset(map(self.data.sensors.index, known))

    def cost(self, subset: Subset, known: Subset = frozenset()) -> Any:
        """Price of a subset when another is known: a number, or one for each row."""
        if (subset, known) not in self._costs:
            named = self.named(subset), self.named(known)
            self._costs[subset, known] = self.market.cost(*named)
        return self._costs[subset, known]

    def mean_cost(self, subset: Subset, known: Subset = frozenset()) -> float:
        """Mean price of a subset when another is known."""
        return self.market.mean_cost(*map(self.named, (subset, known)))

    def extend(self, subset: Subset, sensor: int) -> Subset | None:
        """What is known after buying one more sensor; None if it may not be bought."""
        if self.names[sensor] in self._gone:
            return None
        if self.market.unbound:
            return subset | {sensor}
        extended = self.market.extension(self.named(subset), self.names[sensor])
        return None if extended is None else self.numbered(extended)

    @property
    def n_screened(self) -> int:
        """Subsets that were screened so far."""
        return len(self._screened) + len(self._light)

    @cached_property
    def stand_ins(self) -> LeafClassifiers | None:
        """What the screen says in place of the classifiers; None if that is not fair."""
        leaves = self.leaves
        likely = is_linear(leaves.classifier) and (
            hasattr(leaves.classifier, "predict_proba") or self.data.loss.numbers
        )
        if not (self.masked or likely):
            return None
        return ScreenedClassifiers(
            leaves.data, leaves.classifier, leaves.n_jobs, subsets=self
        )

    def exact(self, subsets: Sequence[Subset]) -> Array:
        """Losses of the subsets' own classifiers, out of fold, (n_rows, n_subsets)."""
        named = [self.named(subset) for subset in subsets]
        self.leaves.judge(named)
        losses = [self._losses(self.leaves.posteriors[s], s) for s in named]
        return np.column_stack(losses)

    @property
    def masked(self) -> bool:
        """Whether a masked booster stands in for the classifiers in a search."""
        return isinstance(self.leaves.classifier, (BoostedTrees, BoostedRegression))

    def screen(self, subsets: Sequence[Subset]) -> Array:
        """Losses estimated cheaply, (n_rows, n_subsets).

        By one screen for all where that is a fair stand-in for the classifier, else by
        light copies of it.
        """
        if self.masked or is_linear(self.leaves.classifier):
            return self.screened_each(subsets)
        new = {self.named(s): s for s in subsets if s not in self._light}
        for named, posterior in self.leaves.screen(new).items():
            self._light[new[named]] = self._losses(posterior, named)
        return np.column_stack([self._light[subset] for subset in subsets])

    def screened_each(self, subsets: Sequence[Subset]) -> Array:
        """Losses of the screen, (n_rows, n_subsets); of least squares, all at once."""
        screen, new = self._opened(), [s for s in subsets if s not in self._screened]
        proba: Iterable[tuple[int, Array]] = enumerate(map(self.scores, new))
        if len(new) > 1 and isinstance(screen, LeastSquaresScreen):
            proba = screen.scores_with(frozenset.intersection(*new), new)
        for k, scores in proba:
            posterior = self.data.task.read(scores, self.data)
            losses = self._losses(posterior, self.named(new[k]))
            self._screened[new[k]] = losses.astype(np.float32)  # there may be many
        return np.column_stack([self._screened[subset] for subset in subsets])

    def screened_risk(self, known: frozenset[str], cost_weight: float) -> Array:
        """Risk of each row by the screen, (n_rows,)."""
        subset = self.numbered(known)
        lost = self.screened_each([subset])[:, 0]
        return np.asarray(lost + cost_weight * self.cost(subset))

    def scores(self, subset: Subset) -> Array:
        """Scores of the screen, out of fold, (n_rows, n_classes); of numbers, one.

        A masked booster for boosted leaves, else least squares.
        """
        return self._opened().scores(sorted(subset))

    def _opened(self) -> LeastSquaresScreen | MaskedScreen:
        """The screen, made when it is first asked for."""
        if self._screen is None:
            data = self.data
            rows = data.weight, data.fold
            if self.masked:
                free = self.numbered(self.market.free())
                given = data.coded_blocks, data.y, *rows, free, data.loss.numbers
                self._screen = MaskedScreen(*given)
            else:
                targets = data.task.targets(data.y, data.weight)
                self._screen = LeastSquaresScreen(data.blocks, targets, *rows)
        return self._screen

    @cached_property
    def gram(self) -> GramScreen:
        """What branching learns from: least squares on distinct rows.

        For boosted leaves on ranks, since such leaves see nothing else of a reading.
        """
        data = self.data
        rows, weight = self.glanced
        blocks = [block[rows] for block in data.blocks]
        if self.masked:
            blocks = [ranks(block, weight) for block in blocks]
        return GramScreen(blocks, data.task.targets(data.y[rows], weight), weight)

    @cached_property
    def glanced(self) -> tuple[Rows, Array]:
        """Distinct rows that branching looks at, evenly spread, and their weights."""
        rows, weight = self.data.distinct()
        n_rows = min(len(rows), BRANCH_ROWS)
        spread = np.linspace(0, len(rows) - 1, n_rows).astype(np.intp)
        return rows[spread], weight[spread]

    def weighed(self, cost_weight: float) -> dict[Any, Any]:
        """What branching found at vertices, at the cost weight that was last asked for."""
        if self._weighed[0] != cost_weight:
            self._weighed = cost_weight, {}
        return self._weighed[1]

    def _losses(self, posterior: Array, known: frozenset[str]) -> Array:
        """What predictions by class probabilities, or scores, lose, (n_rows,)."""
        data = self.data
        return self.leaves.lost(known, data.task.judged(posterior, data))


@dataclass(frozen=True, eq=False)
class ScreenedClassifiers(LeafClassifiers):
    """What the screen says, where classifiers would take too long."""

    subsets: SubsetLosses = field(kw_only=True)

    def judge(self, subsets: Iterable[frozenset[str]]) -> None:
        """Find the posteriors of those subsets that have none yet."""
        for subset in subsets:
            if subset not in self.posteriors:
                known = self.subsets.numbered(subset)
                scores = self.subsets.scores(known)
                self.posteriors[subset] = self.data.task.stand_in(scores, self.data)
