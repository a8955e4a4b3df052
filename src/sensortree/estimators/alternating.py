"""`AlternatingTreeClassifier`: decisions node by node, from several random starts (AM)."""

from __future__ import annotations

from functools import partial
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state

from sensortree.estimators.base import (
    BaseSensorTreeClassifier,
    Interval,
)
from sensortree.learning.fit import Fitted, fit_policy
from sensortree.learning.joint import Learned, ridge_of
from sensortree.learning.prepare import Prepared
from sensortree.program.refinement import alternate, best_direction
from sensortree.program.routing import RoutingProblem

MAX_SWEEPS = 10


class AlternatingTreeClassifier(BaseSensorTreeClassifier):
    """Learn the decisions of a tree one node at a time: alternating minimisation (AM).

    What the paper compares its linear program with (Trapeznikov and Saligrama, AISTATS
    2013, on any tree): with all other decisions fixed, a node's decision is a weighted
    two-class problem, solved by logistic regression; nodes are visited from the leaves up,
    at most ten times each. The risk has many local minima, so several random starts are
    tried and the one of the least training risk is kept.

    Parameters
    ----------
    sensors, costs, cost_weight, risk, mistake_cost, loss, class_weight, \
            refer_cost, max_cost, structure, n_leaves, n_exact, max_time, \
            root_sensors, classifier, calibration, cv, errors, decision_features, l2, \
            n_jobs, verbose, unit
        As in `SensorTreeClassifier`, but the defaults are those of the published method:
        leaves judged on their training rows, observed errors, raw decision features, no
        penalty.
    n_starts : int, default=5
        Number of random starts.
    random_state : int, RandomState instance or None, default=0
        Where the starts come from; they are drawn in the order of declared sensors.

    Attributes
    ----------
    training_risks_ : ndarray of shape (n_starts,)
        Training risk that each start ended with, by the errors it learned from.
    tree_, sensors_, classes_, policy_, n_features_in_, feature_names_in_
        As in `SensorTreeClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from sensortree import AlternatingTreeClassifier
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = X[:, 0] + (np.abs(X[:, 0]) < 0.5) * X[:, 1] > 0
    >>> model = AlternatingTreeClassifier(
    ...     decision_features="posterior", cost_weight=0.05).fit(X, y)
    >>> bool(1 < model.acquisition_cost(X).mean() < 2)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaseSensorTreeClassifier._parameter_constraints,
        "n_starts": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        sensors: Any = None,
        *,
        costs: Any = None,
        cost_weight: float | str = "auto",
        risk: Any = "error",
        mistake_cost: float | None = None,
        loss: Any = None,
        class_weight: Any = None,
        refer_cost: Any = None,
        max_cost: float | None = None,
        structure: Any = "auto",
        n_leaves: int | str = "auto",
        n_exact: int | str = 3,
        max_time: float | None = None,
        root_sensors: Any = "auto",
        classifier: Any = "logistic2",
        calibration: str | None = None,
        cv: Any = None,
        errors: str = "observed",
        decision_features: Any = "raw",
        l2: float | str = 0.0,
        n_starts: int = 5,
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
        unit: str = "",
    ):
        self.sensors = sensors
        self.costs = costs
        self.cost_weight = cost_weight
        self.risk = risk
        self.mistake_cost = mistake_cost
        self.loss = loss
        self.class_weight = class_weight
        self.refer_cost = refer_cost
        self.max_cost = max_cost
        self.structure = structure
        self.n_leaves = n_leaves
        self.n_exact = n_exact
        self.max_time = max_time
        self.root_sensors = root_sensors
        self.classifier = classifier
        self.calibration = calibration
        self.cv = cv
        self.errors = errors
        self.decision_features = decision_features
        self.l2 = l2
        self.n_starts = n_starts
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.unit = unit

    def _learn(self, prepared: Prepared) -> Fitted:
        learn = partial(
            learn_by_alternating,
            l2=self.l2,
            n_starts=self.n_starts,
            random_state=self.random_state,
        )
        return fit_policy(prepared, self._settings(), learn)


def learn_by_alternating(
    problem: RoutingProblem,
    observed: RoutingProblem,
    *,
    l2: float | str,
    n_starts: int,
    random_state: Any,
) -> Learned:
    """Alternate from random normal coefficients; keep the least training risk."""
    rng = check_random_state(random_state)
    ridge = ridge_of(l2, problem)
    ends = []
    for _ in range(n_starts):
        start = [rng.normal(size=n) for n in problem.n_features]
        ends.append(alternate(problem, start, ridge, best_direction, MAX_SWEEPS))
    risks = np.array([problem.risk(coef) for coef in ends])
    return Learned(ends[int(np.argmin(risks))], {"training_risks": risks})
