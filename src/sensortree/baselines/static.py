"""The same sensors for every example, chosen greedily."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from sensortree.estimators.base import (
    BaseSensorTree,
    BaseSensorTreeClassifier,
    BaseSensorTreeRegressor,
)
from sensortree.estimators.parameters import LeavesOfClasses, parameters
from sensortree.learning.choose import Chosen
from sensortree.learning.fit import Fitted, fit_policy
from sensortree.learning.joint import Learned, Learner
from sensortree.learning.prepare import Prepared
from sensortree.learning.settings import Settings
from sensortree.program.risk import RoutingProblem
from sensortree.sensors.market import within
from sensortree.structure.algorithm1 import Search, Subset, forward_steps
from sensortree.structure.losses import SubsetLosses
from sensortree.structure.search import StructureReport
from sensortree.tree.tree import Leaf, SensorTree


@parameters
class OneSubset(BaseSensorTree):
    """Estimators that choose the sensors, and fit the one leaf that knows them."""

    cost_weight: float | str = "auto"
    budget: float | None = None
    n_exact: int | str = 3

    def _learn(self, prepared: Prepared) -> Fitted:
        most = np.inf if self.budget is None else float(self.budget)
        choose = partial(choose_static_subset, budget=most)
        settings = self._settings_for(prepared)
        return fit_policy(prepared, settings, decide_nothing, choose)


@parameters
class StaticSubsetClassifier(OneSubset, LeavesOfClasses, BaseSensorTreeClassifier):
    """Buy the same sensors for every example: the best subset that greed finds.

    What decisions must beat. Sensors are added one after another, each time the one that
    saves most error per unit of cost, by cross-validation, until three in a row save none
    or nothing is within the budget; of the subsets on the way, the one of the least error
    plus weighted cost is kept.

    Parameters
    ----------
    sensors, costs, risk, loss, class_weight, max_cost, classifier, \
            calibration, cv, n_jobs, unit
        As in `SensorTreeClassifier`.
    cost_weight : "auto" or float, default="auto"
        Error that one unit of cost is worth, 0.01 by default, or, where mistakes are
        priced, money, 1 by default. With 0, the error alone counts, within the
        budget.
    budget : float, default=None
        The most that the subset may cost, on average where prices differ.
    n_exact : int or "all", default=3
        Extensions compared at each step by training their classifier; a screen picks
        them, by least squares for logistic classifiers, else by the classifier itself on
        2,000 rows.

    Attributes
    ----------
    structure_report_ : StructureReport
        Its steps are the subsets on the way, with their errors.
    tree_, sensors_, classes_, policy_, n_features_in_, feature_names_in_
        As in `SensorTreeClassifier`; the tree is one leaf.

    Examples
    --------
    >>> import numpy as np
    >>> from sensortree import StaticSubsetClassifier
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> y = X[:, 0] + 0.5 * X[:, 2] > 0
    >>> print(StaticSubsetClassifier(budget=2).fit(X, y).tree_)
    leaf 0 stops with x0, x2
    """

    cv: Any = 5


@parameters
class StaticSubsetRegressor(OneSubset, BaseSensorTreeRegressor):
    """Buy the same sensors for every example: the best subset that greed finds.

    What decisions must beat, of numbers; as `StaticSubsetClassifier`.

    Parameters
    ----------
    sensors, costs, cost_weight, risk, quantile, max_cost, regressor, cv, n_jobs, unit
        As in `SensorTreeRegressor`.
    budget, n_exact
        As in `StaticSubsetClassifier`.

    Attributes
    ----------
    structure_report_ : StructureReport
        Its steps are the subsets on the way, with their losses.
    tree_, sensors_, policy_, n_features_in_, feature_names_in_
        As in `SensorTreeRegressor`; the tree is one leaf.

    Examples
    --------
    >>> import numpy as np
    >>> from sensortree import StaticSubsetRegressor
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> y = X[:, 0] + 0.5 * X[:, 2]
    >>> print(StaticSubsetRegressor(budget=2).fit(X, y).tree_)
    leaf 0 stops with x0, x2
    """

    regressor: Any = "quadratic"


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
