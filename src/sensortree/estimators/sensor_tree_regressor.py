"""`SensorTreeRegressor`: numbers, predicted with the sensors that are worth their price."""

from __future__ import annotations

from typing import Any, ClassVar

from sensortree.estimators.base import BaseSensorTreeRegressor
from sensortree.estimators.jointly import JOINT, LearnsJointly


class SensorTreeRegressor(LearnsJointly, BaseSensorTreeRegressor):
    """Predict a number with the sensors that are worth their price, example by example.

    The method of `SensorTreeClassifier` for numbers: leaves predict with the sensors bought
    on the way there, and the decision functions of all nodes are learned together by one
    linear program whose global optimum is certified. Only what leaves lose is another.

    Parameters
    ----------
    sensors, costs, max_cost, structure, n_leaves, n_exact, max_time, \
            root_sensors, savings, refine, solver, tol, l2, l1, fallback, outages, n_jobs, \
            verbose, unit
        As in `SensorTreeClassifier`.
    cost_weight : "auto" or float, default="auto"
        What one unit of cost is worth (α in the paper), in the unit of the risk: squared
        units of y for "squared", units of y for "absolute" and "pinball". Larger buys
        less. "auto" is a hundredth of what the best single answer for all loses: of the
        variance of y for "squared", of its mean distance from the median for "absolute".
    risk : {"squared", "absolute", "pinball"} or callable, default="squared"
        What leaves lose, and so what is minimised beside the cost.

        - "squared": the squared distance from the truth. Leaves answer with the mean.
        - "absolute": the distance from the truth. Leaves answer with the median.
        - "pinball": each unit too low counts `quantile`, each unit too high the rest to 1.
          Leaves answer with that quantile.
        - a function of (y, answers) that gives one finite number, at least 0, for each
          row. Leaves answer with the mean. Model files keep its name only.
    quantile : float, default=0.5
        For "pinball": the value that is answered is not exceeded with this probability.
    regressor : {"auto", "linear", "quadratic", "boosted"} or scikit-learn regressor, \
            default="auto"
        Leaf regressor, fitted once per distinct set of sensors. Its answers keep within
        the numbers that it was fitted on.

        - "auto": the kind whose tree has the least risk on held-out rows, compared as in
          `SensorTreeClassifier`. `comparison_` says what was compared.
        - "linear": ridge regression, its penalty by evidence.
        - "quadratic": the same on the readings, their squares and products.
        - "boosted": scikit-learn's HistGradientBoostingRegressor, with as many rounds as
          the rows that are held out ask for, of squared errors or of the quantile.
    cv : int, splitter or iterable of (train, test), default=5
        As in `SensorTreeClassifier`. By a number, low and high values of y are dealt out
        to all folds alike.
    random_state : int, RandomState instance or None, default=0
        As in `SensorTreeClassifier`.
    errors : {"smoothed", "observed"}, default="smoothed"
        Loss of a leaf on a training example: as observed; or the mean of that and of the
        loss that is expected by the answer and spread of the leaf that is best on held-out
        rows, which holds less noise.
    decision_features : {"prediction+raw", "prediction", "raw", "quadratic"} or \
            transformer, default="prediction+raw"
        What decision functions are linear in: the readings known at the node, "raw", as
        published; the answer on them and its spread; both; both with squares and products
        of answer and spread; or what a scikit-learn transformer makes of the readings. The
        default also sees each level of a reading that takes 3 to 8 values.

    Attributes
    ----------
    tree_, certificate_, decision_report_, comparison_, structure_report_, fit_report_, \
            outage_report_, fallback_leaf_, training_cost_, sensors_, about_, policy_, \
            n_features_in_, feature_names_in_
        As in `SensorTreeClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from sensortree import SensorTreeRegressor
    >>> X = np.random.default_rng(0).normal(size=(400, 2))
    >>> y = 2 * X[:, 0] + (X[:, 0] > 0) * X[:, 1]
    >>> model = SensorTreeRegressor(
    ...     {"cheap": [0], "dear": [1]}, costs={"cheap": 0, "dear": 1}, cost_weight=0.1)
    >>> model.fit(X, y).certificate_.converged
    True
    >>> print(model.tree_)
    node 0 knows cheap
    ├─ g0 ≤ 0: leaf 0 stops with cheap
    └─ g0 > 0, buy dear: leaf 1 stops with cheap, dear
    >>> model.acquisition_cost([[-1.0, 0.5], [1.0, 0.5]])
    array([0., 1.])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaseSensorTreeRegressor._parameter_constraints,
        **JOINT,
    }

    def __init__(
        self,
        sensors: Any = None,
        *,
        costs: Any = None,
        cost_weight: float | str = "auto",
        risk: Any = "squared",
        quantile: float = 0.5,
        max_cost: float | None = None,
        structure: Any = "auto",
        n_leaves: int | str = "auto",
        n_exact: int | str = 3,
        max_time: float | None = None,
        root_sensors: Any = "auto",
        regressor: Any = "auto",
        cv: Any = 5,
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
        self.costs = costs
        self.cost_weight = cost_weight
        self.risk = risk
        self.quantile = quantile
        self.max_cost = max_cost
        self.structure = structure
        self.n_leaves = n_leaves
        self.n_exact = n_exact
        self.max_time = max_time
        self.root_sensors = root_sensors
        self.regressor = regressor
        self.cv = cv
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
