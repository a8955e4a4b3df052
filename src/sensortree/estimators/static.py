"""`StaticSubsetClassifier`: the same sensors for every example, chosen greedily."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

from sensortree.baselines.static import fit_static_subset
from sensortree.estimators.base import BaseSensorTreeClassifier, Interval
from sensortree.learning.fit import Fitted
from sensortree.learning.prepare import Prepared


class StaticSubsetClassifier(BaseSensorTreeClassifier):
    """Buy the same sensors for every example: the best subset that greed finds.

    What decisions must beat. Sensors are added one after another, each time the one that
    saves most error per unit of cost, by cross-validation, until three in a row save none
    or nothing is within the budget; of the subsets on the way, the one of the least error
    plus weighted cost is kept.

    Parameters
    ----------
    sensors, costs, risk, mistake_cost, loss, class_weight, max_cost, classifier, \
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

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaseSensorTreeClassifier._parameter_constraints,
        "budget": [None, Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        sensors: Any = None,
        *,
        costs: Any = None,
        cost_weight: float | str = "auto",
        budget: float | None = None,
        risk: Any = "error",
        mistake_cost: float | None = None,
        loss: Any = None,
        class_weight: Any = None,
        max_cost: float | None = None,
        n_exact: int | str = 3,
        classifier: Any = "logistic2",
        calibration: str | None = None,
        cv: Any = 5,
        n_jobs: int | None = None,
        unit: str = "",
    ):
        self.sensors = sensors
        self.costs = costs
        self.cost_weight = cost_weight
        self.budget = budget
        self.risk = risk
        self.mistake_cost = mistake_cost
        self.loss = loss
        self.class_weight = class_weight
        self.max_cost = max_cost
        self.n_exact = n_exact
        self.classifier = classifier
        self.calibration = calibration
        self.cv = cv
        self.n_jobs = n_jobs
        self.unit = unit

    def _learn(self, prepared: Prepared) -> Fitted:
        return fit_static_subset(prepared, self._settings_for(prepared), self.budget)
