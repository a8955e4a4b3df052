"""`StaticSubsetRegressor`: the same sensors for every example, chosen greedily."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

from sensortree.baselines.static import fit_static_subset
from sensortree.estimators.base import BaseSensorTreeRegressor, Interval
from sensortree.learning.fit import Fitted
from sensortree.learning.prepare import Prepared


class StaticSubsetRegressor(BaseSensorTreeRegressor):
    """Buy the same sensors for every example: the best subset that greed finds.

    What decisions must beat, of numbers; as `StaticSubsetClassifier`.

    Parameters
    ----------
    sensors, costs, cost_weight, risk, quantile, max_cost, regressor, cv, n_jobs, unit
        As in `SensorTreeRegressor`.
    budget : float, default=None
        The most that the subset may cost, on average where prices differ.
    n_exact : int or "all", default=3
        Extensions compared at each step by training their regressor; a screen picks them.

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

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaseSensorTreeRegressor._parameter_constraints,
        "budget": [None, Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        sensors: Any = None,
        *,
        costs: Any = None,
        cost_weight: float | str = "auto",
        budget: float | None = None,
        risk: Any = "squared",
        quantile: float = 0.5,
        max_cost: float | None = None,
        n_exact: int | str = 3,
        regressor: Any = "quadratic",
        cv: Any = 5,
        n_jobs: int | None = None,
        unit: str = "",
    ):
        self.sensors = sensors
        self.costs = costs
        self.cost_weight = cost_weight
        self.budget = budget
        self.risk = risk
        self.quantile = quantile
        self.max_cost = max_cost
        self.n_exact = n_exact
        self.regressor = regressor
        self.cv = cv
        self.n_jobs = n_jobs
        self.unit = unit

    def _learn(self, prepared: Prepared) -> Fitted:
        return fit_static_subset(prepared, self._settings_for(prepared), self.budget)
