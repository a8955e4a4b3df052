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


@dataclass
class Winners:
    """Which search won at which cost weight, where fits learn from each other.

    Attributes
    ----------
    won : dict of cost weight to name
    settled : bool
        Whether nothing more is learned: fits may then come in any order.
    """

    won: dict[float, str] = field(default_factory=dict)
    settled: bool = False

    def expected(self, cost_weight: float) -> str | None:
        """The search that won at the next cost weights below and above, if it is one."""
        below = [weight for weight in self.won if weight <= cost_weight]
        above = [weight for weight in self.won if weight >= cost_weight]
        if not (below and above):
            return None
        names = {self.won[max(below)], self.won[min(above)]}
        return names.pop() if len(names) == 1 else None

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
        None where a fit must not learn from others.
    leaf_report : LeafReport or None
        Why leaves are of the kind they are; None if the user said so.
    """

    leaves: LeafClassifiers
    settings: Settings
    progress: TextProgress
    winners: Winners | None = None
    leaf_report: LeafReport | None = None

    @cached_property
    def search(self) -> StructureSearch:
        """The search for a structure, begun when it is first asked for."""
        settings = self.settings
        return open_search(
            self.leaves,
            settings.n_leaves,
            None if settings.n_exact == "all" else int(settings.n_exact),
            settings.max_time,
            settings.max_cost,
            self.progress,
        )


def prepare(rows: TrainingRows, settings: Settings, progress: TextProgress) -> Prepared:
    """Give training rows their leaf classifiers; none is fitted to all rows yet."""
    leaves, report = leaves_of(rows, settings)
    return Prepared(leaves, settings, progress, leaf_report=report)
