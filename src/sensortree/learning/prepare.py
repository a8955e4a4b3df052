"""`Prepared`: training rows with all that fits on them share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from sensortree.constants import CLOSE_COST_WEIGHTS
from sensortree.learning.leaf_kinds import (
    kinds_of,
    leaves_of_kind,
    likeliest,
    named_leaves,
    widest,
)
from sensortree.learning.settings import Settings
from sensortree.leaves.classifiers import LeafClassifiers
from sensortree.leaves.rows import TrainingRows
from sensortree.progress import TextProgress
from sensortree.structure.search import StructureSearch, open_search

Share = Callable[[LeafClassifiers], LeafClassifiers]


def unshared(leaves: LeafClassifiers) -> LeafClassifiers:
    """Leaves as they are."""
    return leaves


@dataclass
class Winners:
    """What was taken at which cost weight, where fits learn from each other.

    Attributes
    ----------
    won : dict of cost weight to name
    settled : bool
        Whether nothing more is learned: fits may then come in any order.
    """

    won: dict[float, str] = field(default_factory=dict)
    settled: bool = False

    def expected(self, cost_weight: float) -> frozenset[str]:
        """What won at the next cost weights below and above; nothing at an end.

        If these are close, what won at the closer: where one thing takes over from
        another, they are about as good.
        """
        below = max((w for w in self.won if w <= cost_weight), default=None)
        above = min((w for w in self.won if w >= cost_weight), default=None)
        if below is None or above is None:
            return frozenset()
        if above <= CLOSE_COST_WEIGHTS * below:
            closer = below if cost_weight**2 < below * above else above
            return frozenset({self.won[closer]})
        return frozenset({self.won[below], self.won[above]})

    def add(self, cost_weight: float, name: str) -> None:
        """Remember who won, unless nothing more is to be learned."""
        if not self.settled:
            self.won[cost_weight] = name


@dataclass(frozen=True, eq=False)
class Prepared:
    """One reading of the data, for any number of fits that differ in what it costs.

    Attributes
    ----------
    leaves : LeafClassifiers
        Classifiers of subsets; what one fit asked for is there for the next.
    settings : Settings
        How structures are searched for.
    progress : TextProgress
        Is told of each step, and may say stop.
    winners : Winners or None
        What won in fits at other cost weights, where they are only measured; None where
        the model is kept, and must not depend on other fits.
    kinds : tuple of str
        Kinds of leaves that are compared, the one that seems likeliest first; none if
        the user said which.
    not_compared : dict of str to str
        Kinds that are not, and why.
    of_kind : dict of str to LeafClassifiers
        Leaves of each kind that was asked for.
    share : callable
        Gives leaves that share their classifiers with other fits.
    """

    leaves: LeafClassifiers
    settings: Settings
    progress: TextProgress
    winners: Winners | None = None
    kinds: tuple[str, ...] = ()
    not_compared: dict[str, str] = field(default_factory=dict)
    of_kind: dict[str, LeafClassifiers] = field(default_factory=dict)
    share: Share = unshared

    @cached_property
    def search(self) -> StructureSearch:
        """The search for a structure, begun when it is first asked for."""
        settings = self.settings
        return open_search(
            self.leaves,
            settings.n_leaves,
            None if settings.n_exact == "all" else int(settings.n_exact),
            settings.max_cost,
            self.progress,
        )

    def leaves_of(self, kind: str) -> LeafClassifiers:
        """Leaves of a kind."""
        if not kind or (self.kinds and kind == self.kinds[0]):
            return self.leaves
        if kind not in self.of_kind:
            data, watch = self.leaves.data, self.progress.watch
            own = leaves_of_kind(kind, data, self.settings, watch)
            self.of_kind[kind] = self.share(own)
        return self.of_kind[kind]

    def with_leaves(self, leaves: LeafClassifiers) -> Prepared:
        """The same with other leaves; the search, and what it screened, is shared."""
        if leaves is self.leaves:
            return self
        other = replace(self, leaves=leaves)
        other.__dict__["search"] = self.search
        return other

    def without(self, fold: int) -> Prepared:
        """The rows outside a fold, for searches that must not know it, by screens alone."""
        rows = np.flatnonzero(self.leaves.data.fold != fold)
        part = self.leaves.take(rows)
        settings = replace(self.settings, n_exact=0)
        return replace(
            self,
            leaves=part,
            settings=settings,
            progress=self.progress.part(),
            of_kind={},
            share=unshared,
        )


def prepare(
    rows: TrainingRows,
    settings: Settings,
    progress: TextProgress,
    share: Share = unshared,
) -> Prepared:
    """Give training rows their leaf classifiers; none is fitted to all rows yet."""
    watch = progress.watch
    if settings.classifier != "auto":
        named = share(named_leaves(rows, settings, watch))
        return Prepared(named, settings, progress, share=share)
    kinds, out = kinds_of(rows, settings)
    leaves = {
        kind: share(leaves_of_kind(kind, rows, settings, watch)) for kind in kinds
    }
    subsets = widest(rows, settings) if (rows.fold >= 0).any() else []
    with watch.stage("leaf choice"):
        usual = likeliest(leaves, subsets)
    kinds = usual, *(kind for kind in kinds if kind != usual)
    return Prepared(leaves[usual], settings, progress, None, kinds, out, leaves, share)
