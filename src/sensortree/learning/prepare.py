"""`Prepared`: training rows with all that fits on them share."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from sensortree.learning.leaf_choice import LeafReport, leaves_of
from sensortree.learning.settings import Settings
from sensortree.leaves.classifiers import LeafClassifiers
from sensortree.leaves.rows import TrainingRows
from sensortree.progress import TextProgress
from sensortree.structure.search import StructureSearch, open_search

# Ratio of two cost weights between which nothing is compared anew.
CLOSE = 10.0


@dataclass
class Winners:
    """What won at which cost weight, where fits learn from each other.

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
        if above <= CLOSE * below:
            closer = below if cost_weight**2 < below * above else above
            return frozenset({self.won[closer]})
        return frozenset({self.won[below], self.won[above]})

    def add(self, cost_weight: float, name: str) -> None:
        """Remember who won, unless nothing more is to be learned."""
        if not self.settled:
            self.won[cost_weight] = name


@dataclass(frozen=True)
class Neighbours:
    """What fits learn from those at other cost weights, where they are only compared.

    Attributes
    ----------
    searches : Winners
        The search whose tree was taken.
    decisions : Winners
        What was kept of the decisions, or in their place.
    """

    searches: Winners = field(default_factory=Winners)
    decisions: Winners = field(default_factory=Winners)

    def settle(self) -> None:
        """Teach later fits nothing more."""
        self.searches.settled = self.decisions.settled = True


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
    neighbours : Neighbours or None
        None where a fit must not learn from others: its model is kept.
    leaf_report : LeafReport or None
        Why leaves are of the kind they are; None if the user said so.
    """

    leaves: LeafClassifiers
    settings: Settings
    progress: TextProgress
    neighbours: Neighbours | None = None
    leaf_report: LeafReport | None = None

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


def prepare(rows: TrainingRows, settings: Settings, progress: TextProgress) -> Prepared:
    """Give training rows their leaf classifiers; none is fitted to all rows yet."""
    leaves, report = leaves_of(rows, settings, progress.watch)
    return Prepared(leaves, settings, progress, leaf_report=report)
