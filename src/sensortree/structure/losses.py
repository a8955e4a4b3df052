"""`SubsetLosses`: what any subset of sensors would lose and cost, each worked out once.

Searches speak of sensors by number, so that ties go to the lowest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from sensortree.constants import BRANCH_ROWS
from sensortree.leaves.boosting import BoostedTrees
from sensortree.leaves.classifiers import LeafClassifiers
from sensortree.leaves.fitting import is_linear
from sensortree.leaves.regressors import BoostedRegression
from sensortree.structure.algorithm1 import Subset
from sensortree.structure.masking import MaskedScreen
from sensortree.structure.screening import GramScreen, LeastSquaresScreen, ranks
from sensortree.types import Array, Rows


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
        said: Iterable[tuple[int, Array]] = enumerate(map(self.scores, new))
        if len(new) > 1 and isinstance(screen, LeastSquaresScreen):
            said = screen.scores_with(frozenset.intersection(*new), new)
        for k, scores in said:
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
