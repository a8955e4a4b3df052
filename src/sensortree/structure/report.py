"""`StructureReport`: how the structure of a tree was found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sensortree.sensors.sensor_set import SensorSet
from sensortree.text import PlainForm
from sensortree.tree.tree import SensorTree


@dataclass(frozen=True)
class StructureReport(PlainForm):
    """How the structure of a tree was found.

    Attributes
    ----------
    structure : str
        The search whose tree was taken.
    subsets : list of list of str
        Sensors of each leaf, before pruning.
    steps : list of dict
        What was added in each step, to which sensors, and the search's loss after it.
    stopped : str
        Why the search ended.
    n_classifiers, n_screened : int
        Subsets whose classifier was trained during the search, and subsets that were
        screened: by least squares for logistic leaves, by a masked booster for boosted
        ones, else by a light copy of the classifier.
    n_rows : int
        Rows that the search looked at.
    pruned : int
        Leaves that no training example reached, and that were taken out.
    never_pay : list of str
        Sensors that cost no less, at this cost weight, than any reading can be worth.
    out_of_reach : list of list of str
        Sensors, and sets of two or three, that a log holds of too few rows for a tree to
        buy them (together).
    """

    structure: str
    subsets: list[list[str]]
    steps: list[dict[str, Any]] = field(default_factory=list)
    stopped: str = "the tree is given"
    n_classifiers: int = 0
    n_screened: int = 0
    n_rows: int = 0
    pruned: int = 0
    never_pay: list[str] = field(default_factory=list)
    out_of_reach: list[list[str]] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [f"structure {self.structure!r}: {len(self.subsets)} leaves"]
        if self.pruned:
            lines[0] += f", {self.pruned} of them pruned since no example reached them"
        lines += [
            f"step {number}: + {step['added']} -> {', '.join(step['subset'])}; "
            f"loss {step['loss']:.4f}"
            for number, step in enumerate(self.steps, 1)
        ]
        if self.n_rows:
            lines.append(
                f"searched on {self.n_rows} rows: {self.n_screened} subsets screened, "
                f"{self.n_classifiers} with their classifier; {self.stopped}"
            )
        if self.never_pay:
            lines.append(f"too dear to ever pay: {', '.join(self.never_pay)}")
        if self.out_of_reach:
            sets = "; ".join(" with ".join(names) for names in self.out_of_reach)
            lines.append(f"bought for too few rows of the log: {sets}")
        return "\n".join(lines)


def report_of_built(name: str, tree: SensorTree, sensors: SensorSet) -> StructureReport:
    """Report of a tree that was not searched for."""
    leaves = [list(sensors.in_order(leaf.sensors)) for leaf in tree.leaves]
    return StructureReport(name, leaves)
