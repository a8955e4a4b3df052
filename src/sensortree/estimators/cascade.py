"""`CascadeClassifier`: the linear program on a chain of sensors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from numbers import Real
from typing import Any, ClassVar

from sensortree.estimators.base import (
    BaseSensorTreeClassifier,
    Interval,
    StrOptions,
)
from sensortree.learning.fit import Fitted, fit_policy
from sensortree.learning.joint import Learned, ridge_of
from sensortree.learning.prepare import Prepared
from sensortree.program import SOLVERS, solve
from sensortree.program.routing import RoutingProblem
from sensortree.threads import threads_asked


class CascadeClassifier(BaseSensorTreeClassifier):
    """Buy sensors in one order and learn where to stop, by one linear program.

    The special case of `SensorTreeClassifier` that was published first (Wang,
    Trapeznikov and Saligrama, *An LP for Sequential Learning Under Budgets*, AISTATS
    2014): the tree is a chain with an exit after each sensor, and the decisions of all
    stages are learned together. There is no refinement and no fallback.

    Parameters
    ----------
    sensors, costs, cost_weight, risk, mistake_cost, loss, class_weight, \
            refer_cost, max_cost, root_sensors, classifier, calibration, cv, savings, \
            errors, decision_features, solver, tol, l2, n_jobs, unit
        As in `SensorTreeClassifier`, but the defaults are nearer to the published method:
        leaves judged on their training rows, observed errors, raw decision features, no
        penalty. As published are ``savings="published"``, a bound so loose that it stops
        too early even where sensors are free, and leaves that are
        ``LogisticRegression()``.
    order : list of str, default=None
        Order in which sensors are bought; None: the cheapest first.

    Attributes
    ----------
    certificate_ : Certificate
        Proved bounds of the linear program's optimum.
    tree_, sensors_, classes_, policy_, n_features_in_, feature_names_in_
        As in `SensorTreeClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from sensortree import CascadeClassifier
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = X[:, 0] + (np.abs(X[:, 0]) < 0.5) * X[:, 1] > 0
    >>> model = CascadeClassifier(
    ...     order=["x0", "x1"], decision_features="posterior", cost_weight=0.05)
    >>> print(model.fit(X, y).tree_)
    node 0 knows x0
    ├─ g0 ≤ 0: leaf 0 stops with x0
    └─ g0 > 0, buy x1: leaf 1 stops with x0, x1
    >>> bool(1 < model.acquisition_cost(X).mean() < 2)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaseSensorTreeClassifier._parameter_constraints,
        "order": [None, list, tuple],
        "savings": [StrOptions({"tight", "published"})],
        "solver": [StrOptions(set(SOLVERS))],
        "tol": [Interval(Real, 0, None, closed="neither")],
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
        order: Sequence[str] | None = None,
        root_sensors: Any = "auto",
        classifier: Any = "logistic2",
        calibration: str | None = None,
        cv: Any = None,
        savings: str = "tight",
        errors: str = "observed",
        decision_features: Any = "raw",
        solver: str = "structured",
        tol: float = 1e-6,
        l2: float | str = 0.0,
        n_jobs: int | None = None,
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
        self.order = order
        self.root_sensors = root_sensors
        self.classifier = classifier
        self.calibration = calibration
        self.cv = cv
        self.savings = savings
        self.errors = errors
        self.decision_features = decision_features
        self.solver = solver
        self.tol = tol
        self.l2 = l2
        self.n_jobs = n_jobs
        self.unit = unit

    def _learn(self, prepared: Prepared) -> Fitted:
        learn = partial(
            learn_cascade,
            savings=self.savings,
            solver=self.solver,
            tol=self.tol,
            l2=self.l2,
            n_jobs=threads_asked(self.n_jobs),
        )
        return fit_policy(prepared, self._settings(), learn)


def learn_cascade(
    problem: RoutingProblem,
    observed: RoutingProblem,
    *,
    savings: str,
    solver: str,
    tol: float,
    l2: float | str,
    n_jobs: int | None,
) -> Learned:
    """Minimise the surrogate over the decision functions of all stages at once."""
    surrogate = problem.surrogate(problem.worst(savings))
    solution = solve(surrogate, solver, tol, ridge_of(l2, problem), n_jobs=n_jobs)
    return Learned(list(solution.coef), {"certificate": solution.certificate})
