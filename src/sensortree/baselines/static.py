"""The same sensors for every example, chosen greedily."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np

from sensortree.learning.choose import Chosen
from sensortree.learning.fit import Fitted, fit_policy
from sensortree.learning.joint import Learned, Learner
from sensortree.learning.prepare import Prepared
from sensortree.learning.settings import Settings
from sensortree.program.routing import RoutingProblem
from sensortree.sensors.market import within
from sensortree.structure import Search, forward_steps
from sensortree.structure.algorithm1 import Subset
from sensortree.structure.losses import SubsetLosses
from sensortree.structure.search import StructureReport
from sensortree.tree.tree import Leaf, SensorTree


def fit_static_subset(
    prepared: Prepared, settings: Settings, budget: float | None
) -> Fitted:
    """Choose the sensors, and fit the one leaf that knows them."""
    most = np.inf if budget is None else float(budget)
    choose = partial(choose_static_subset, budget=most)
    return fit_policy(prepared, settings, decide_nothing, choose)


def decide_nothing(problem: RoutingProblem, observed: RoutingProblem) -> Learned:
    """A single leaf has no decisions."""
    return Learned([])


def choose_static_subset(
    prepared: Prepared, settings: Settings, learn: Learner, *, budget: float
) -> Chosen:
    """Add sensors while the budget lasts; keep the subset of the least risk."""
    subsets = SubsetLosses(prepared.leaves, settings.max_cost)

    def extend(known: Subset, sensor: int) -> Subset | None:
        more = subsets.extend(known, sensor)
        if more is None or not within(subsets.mean_cost(more), budget):
            return None
        return more

    n_sensors = len(subsets.names)
    search = Search(
        n_sensors,
        subsets.exact,
        subsets.screen,
        None if settings.n_exact == "all" else int(settings.n_exact),
        subsets.data.weight,
        extend=extend,
    )
    start = subsets.numbered(subsets.market.free())
    steps = forward_steps(search, subsets.mean_cost, n_sensors, start)
    way = [start, *(step.subset for step in steps)]
    errors = [search.loss(start), *(step.loss for step in steps)]
    risk = [
        error + settings.cost_weight * subsets.mean_cost(subset)
        for subset, error in zip(way, errors, strict=True)
    ]
    kept = subsets.named(way[int(np.argmin(risk))])
    order = subsets.data.sensors.in_order
    shown = [
        {
            "added": ", ".join(order(subsets.named(after - before))),
            "subset": order(subsets.named(after)),
            "loss": error,
        }
        for (before, after), error in zip(pairwise(way), errors[1:], strict=True)
    ]
    stopped = "no more was within the budget, or saved error"
    report = StructureReport("static", [list(order(kept))], shown, stopped)
    return Chosen(SensorTree(Leaf(kept)), report)
