"""`SensorTreeRegressorCV`: a sensor tree for numbers at a budget, picked on folds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sklearn.base import RegressorMixin

from sensortree.curves.picking import PicksCostWeight
from sensortree.estimators.sensor_tree_regressor import SensorTreeRegressor


class SensorTreeRegressorCV(RegressorMixin, PicksCostWeight):
    """The tree for numbers that a budget asks for: its cost weight is picked on folds.

    As `SensorTreeClassifierCV`, with a `SensorTreeRegressor`.

    Parameters
    ----------
    sensors : dict of str to `Sensor` or columns, default=None
        As in `SensorTreeClassifier`.
    budget : float, default=None
        What an example may cost in the mean. The point of the least held-out risk whose
        held-out mean cost is at most this is taken; if there is none the cheapest, with a
        `BudgetWarning`.
    max_error : float, default=None
        Mean loss, in the unit of the risk, that is good enough: the cheapest point with at
        most this is taken; if there is none, the one of the least, with a
        `BudgetWarning`. With neither, the cheapest point within one standard error of the
        least is taken.
    cost_weights : iterable of float, default=None
        Cost weights to pick from; by default as in `SensorTreeClassifierCV`.
    cv : int, splitter or iterable of (train, test), default=5
        The folds, for the curve and for judging leaf regressors.
    costs, risk, quantile, max_cost, structure, n_leaves, n_exact, max_time, \
            root_sensors, regressor, random_state, savings, errors, decision_features, \
            refine, solver, tol, l2, l1, fallback, outages, n_jobs, verbose, unit
        As in `SensorTreeRegressor`.

    Attributes
    ----------
    curve_, cost_weight_, chosen_, fit_report_
        As in `SensorTreeClassifierCV`.
    tree_, certificate_, decision_report_, structure_report_, comparison_, \
            outage_report_, fallback_leaf_, sensors_, policy_, n_features_in_, \
            feature_names_in_
        As in `SensorTreeRegressor`, of the model fitted on all rows.

    Examples
    --------
    >>> import numpy as np
    >>> from sensortree import SensorTreeRegressorCV
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> y = 2 * X[:, 0] + (X[:, 0] > 0) * X[:, 1]
    >>> model = SensorTreeRegressorCV(
    ...     {"cheap": [0], "dear": [1]}, costs={"cheap": 0, "dear": 1}, budget=0.7)
    >>> bool(model.fit(X, y).acquisition_cost(X).mean() <= 0.7)
    True
    """

    _picked_for = SensorTreeRegressor

    def __init__(
        self,
        sensors: Any = None,
        *,
        budget: float | None = None,
        max_error: float | None = None,
        cost_weights: Iterable[float] | None = None,
        cv: Any = 5,
        costs: Any = None,
        risk: Any = "squared",
        quantile: float = 0.5,
        max_cost: float | None = None,
        structure: Any = "auto",
        n_leaves: int | str = "auto",
        n_exact: int | str = 3,
        max_time: float | None = None,
        root_sensors: Any = "auto",
        regressor: Any = "auto",
        random_state: Any = 0,
        savings: str = "tight",
        errors: str = "smoothed",
        decision_features: Any = "prediction+raw",
        refine: bool = True,
        solver: str = "structured",
        tol: float = 1e-6,
        l2: float | str = "auto",
        l1: float = 0.0,
        fallback: bool = True,
        outages: bool | str = "auto",
        n_jobs: int | None = None,
        verbose: bool = False,
        unit: str = "",
    ):
        self.sensors = sensors
        self.budget = budget
        self.max_error = max_error
        self.cost_weights = cost_weights
        self.cv = cv
        self.costs = costs
        self.risk = risk
        self.quantile = quantile
        self.max_cost = max_cost
        self.structure = structure
        self.n_leaves = n_leaves
        self.n_exact = n_exact
        self.max_time = max_time
        self.root_sensors = root_sensors
        self.regressor = regressor
        self.random_state = random_state
        self.savings = savings
        self.errors = errors
        self.decision_features = decision_features
        self.refine = refine
        self.solver = solver
        self.tol = tol
        self.l2 = l2
        self.l1 = l1
        self.fallback = fallback
        self.outages = outages
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.unit = unit
