"""`Settings`: what a fit is asked for, whatever the method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sensortree.policy.decisions import PARTS
from sensortree.structure.search import SEARCHES

# Structures that are learned from data.
LEARNED = ("auto", *SEARCHES)


@dataclass(frozen=True, eq=False)
class Settings:
    """Parameters that methods have in common; a method may fix some of them.

    Attributes
    ----------
    sensors, costs, loss, classifier, calibration, cv
        What is learned from; see `SensorTreeClassifier`.
    cost_weight, max_cost
        What a unit of cost is worth, and the most that an example may spend.
    structure, order, n_leaves, n_exact, max_time, improve, root_sensors
        Which tree.
    errors, decision_features
        What decisions are learned from, and what they see.
    n_jobs, verbose
        How.
    """

    sensors: Any = None
    costs: Any = None
    loss: Any = None
    classifier: Any = "logistic2"
    calibration: str | None = None
    cv: Any = None
    cost_weight: float = 0.0
    max_cost: float | None = None
    structure: Any = "cascade"
    order: Sequence[str] | None = None
    n_leaves: int = 16
    n_exact: int | str = 3
    max_time: float | None = None
    improve: int = 0
    root_sensors: Any = "auto"
    errors: str = "observed"
    decision_features: Any = "raw"
    n_jobs: int | None = None
    verbose: bool = False

    @property
    def learns_structure(self) -> bool:
        """Whether the tree is learned rather than built or given."""
        return isinstance(self.structure, str) and self.structure in LEARNED

    @property
    def decides_by_posterior(self) -> bool:
        """Whether decisions look at the posterior of a classifier at their node."""
        return isinstance(self.decision_features, str) and any(
            part.needs_posterior for part in PARTS[self.decision_features]
        )
