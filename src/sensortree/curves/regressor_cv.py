"""`SensorTreeRegressorCV`: a sensor tree for numbers at a budget, picked on folds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from sklearn.base import RegressorMixin

from sensortree.curves.picking import PicksCostWeight
from sensortree.estimators.parameters import Buying, LeavesOfNumbers, parameters
from sensortree.estimators.sensor_tree import JointTree, SensorTreeRegressor


@parameters
class SensorTreeRegressorCV(
    Buying, LeavesOfNumbers, JointTree, RegressorMixin, PicksCostWeight
):
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
            root_sensors, regressor, random_state, program, outages, n_jobs, verbose, unit
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

    _picked_for: ClassVar[Any] = SensorTreeRegressor

    budget: float | None = None
    max_error: float | None = None
    cost_weights: Iterable[float] | None = None
