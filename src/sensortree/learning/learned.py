"""`Learned`: the coefficients of all decision functions, and the evidence for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sensortree.constants import DECISION_RIDGE
from sensortree.program.routing import RoutingProblem
from sensortree.types import Array


@dataclass(frozen=True, eq=False)
class Learned:
    """What learning the decisions of one routing problem gives.

    Attributes
    ----------
    coef : list of n_nodes arrays of shape (D_j,)
    evidence : mapping of str to object
        What a fitted model shows of it, such as its certificate; a model's attribute has
        the same name with an underscore behind it.
    """

    coef: list[Array]
    evidence: Mapping[str, Any] = field(default_factory=dict)


# Learns decisions from a problem, and from the same problem with the errors that were made.
Learner = Callable[[RoutingProblem, RoutingProblem], Learned]


def automatic_ridge(problem: RoutingProblem) -> float:
    """Ridge penalty in proportion to how much an example's leaves differ."""
    spread = np.ptp(problem.leaf_risk, axis=1)
    return float(DECISION_RIDGE * np.average(spread, weights=problem.weight))


def ridge_of(l2: float | str, problem: RoutingProblem) -> float:
    """Give the ridge penalty that `l2` stands for, in the unit of the risk."""
    return automatic_ridge(problem) if l2 == "auto" else float(l2)
