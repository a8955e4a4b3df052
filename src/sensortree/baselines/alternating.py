"""`AlternatingTreeClassifier`: decisions node by node, from several random starts (AM)."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state

from sensortree.estimators.base import (
    AT_LEAST_1,
    OF_A_PROGRAM,
    BaseSensorTreeClassifier,
)
from sensortree.estimators.parameters import LeavesOfClasses, TreeSearch, parameters
from sensortree.learning.fit import Fitted, fit_policy
from sensortree.learning.joint import Learned, ridge_of
from sensortree.learning.prepare import Prepared
from sensortree.program.refinement import alternate, best_direction
from sensortree.program.risk import RoutingProblem

MAX_SWEEPS = 10


@parameters
class AlternatingTreeClassifier(TreeSearch, LeavesOfClasses, BaseSensorTreeClassifier):
    """Learn the decisions of a tree one node at a time: alternating minimisation (AM).

    What the paper compares its linear program with (Trapeznikov and Saligrama, AISTATS
    2013, on any tree): with all other decisions fixed, a node's decision is a weighted
    two-class problem, solved by logistic regression; nodes are visited from the leaves up,
    at most ten times each. The risk has many local minima, so several random starts are
    tried and the one of the least training risk is kept.

    Parameters
    ----------
    sensors, costs, cost_weight, risk, loss, class_weight, refer_cost, max_cost, \
            structure, n_leaves, n_exact, max_time, root_sensors, calibration, n_jobs, \
            verbose, unit
        As in `SensorTreeClassifier`.
    classifier, cv
        As in `SensorTreeClassifier`, but the defaults are those of the published method:
        leaves judged on their training rows.
    errors, decision_features, l2
        As in `Program`, but by default as published: observed errors, raw decision
        features, no penalty.
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
        "errors": OF_A_PROGRAM["errors"],
        "l2": OF_A_PROGRAM["l2"],
        "n_starts": [AT_LEAST_1],
    }

    cost_weight: float | str = "auto"
    refer_cost: Any = None
    errors: str = "observed"
    decision_features: Any = "raw"
    l2: float | str = 0.0
    n_starts: int = 5

    def _learn(self, prepared: Prepared) -> Fitted:
        return fit_policy(prepared, self._settings(), self._alternate)

    def _alternate(self, problem: RoutingProblem, observed: RoutingProblem) -> Learned:
        """Alternate from random normal coefficients; keep the least training risk."""
        rng = check_random_state(self.random_state)
        ridge = ridge_of(self.l2, problem)
        ends = []
        for _ in range(self.n_starts):
            start = [rng.normal(size=n) for n in problem.n_features]
            ends.append(alternate(problem, start, ridge, best_direction, MAX_SWEEPS))
        risks = np.array([problem.risk(coef) for coef in ends])
        return Learned(ends[int(np.argmin(risks))], {"training_risks": risks})
