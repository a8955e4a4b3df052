"""`SensorTreeClassifierCV`: a sensor tree at a budget, picked on held-out folds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from sklearn.base import ClassifierMixin

from sensortree.curves.picking import PicksCostWeight
from sensortree.estimators.parameters import Buying, parameters
from sensortree.estimators.sensor_tree import JointTreeOfClasses, SensorTreeClassifier


@parameters
class SensorTreeClassifierCV(
    Buying, JointTreeOfClasses, ClassifierMixin, PicksCostWeight
):
    """The sensor tree that a budget asks for: its cost weight is picked on held-out folds.

    A `tradeoff_curve` is measured, with more points around the target; the point that
    meets it best gives the cost weight, and a `SensorTreeClassifier` is fitted with it on
    all rows. If what that spends on its training rows, as judged out of fold or as the
    fitted model sends them, is above the budget, the next best point of a higher cost
    weight is taken, which is one in between if none is near.

    Parameters
    ----------
    sensors : dict of str to `Sensor` or columns, default=None
        As in `SensorTreeClassifier`.
    budget : float, default=None
        What an example may cost in the mean. The point of the least held-out error whose
        held-out mean cost is at most this is taken; if there is none the cheapest, with a
        `BudgetWarning`. For a cap that no example may exceed, see `max_cost`.
    max_error : float, default=None
        Error (with a `loss`, mean loss) that is good enough: the cheapest point with at
        most this held-out error is taken; if there is none, the
        one of the least error, with a `BudgetWarning`. With neither `budget` nor
        `max_error`, the cheapest point whose error is within one standard error of the
        least is taken.
    cost_weights : iterable of float, default=None
        Cost weights to pick from. By default seven from where nothing is bought to where
        everything is that saves an error, and up to ten more around the target; with no
        target, up to 20 as in `tradeoff_curve`.
    cv : int, splitter or iterable of (train, test), default=5
        The folds, for the curve and for judging leaf classifiers.
    costs, risk, loss, class_weight, refer_cost, max_cost, structure, n_leaves, n_exact, \
            max_time, root_sensors, classifier, calibration, random_state, program, \
            calibrate_leaves, outages, n_jobs, verbose, unit
        As in `SensorTreeClassifier`. When `max_time` is over, no further point is
        measured: one of the points measured so far, both ends of the curve first, is
        picked, and the fit on all rows is finished.

    Attributes
    ----------
    curve_ : TradeoffCurve
        Held-out error against mean cost, all points that were measured.
    cost_weight_ : float
        The cost weight that was picked.
    chosen_ : Choice
        The point that was picked, whether it meets the target, and what the points beside
        it would give; print it.
    fit_report_ : FitReport
        As in `SensorTreeClassifier`, of the fit on all rows; and the seconds of the curve.
    tree_, certificate_, decision_report_, structure_report_, comparison_, \
            calibration_report_, outage_report_, fallback_leaf_, sensors_, classes_, \
            policy_, n_features_in_, feature_names_in_
        As in `SensorTreeClassifier`, of the model fitted on all rows.

    Examples
    --------
    >>> import numpy as np
    >>> from sensortree import SensorTreeClassifierCV
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = X[:, 0] + (np.abs(X[:, 0]) < 0.5) * X[:, 1] > 0
    >>> model = SensorTreeClassifierCV(
    ...     {"cheap": [0], "dear": [1]}, costs={"dear": 5}, budget=4,
    ...     cost_weights=[1, 0.1, 0.02, 0.001])
    >>> bool(model.fit(X, y).acquisition_cost(X).mean() <= 4)
    True
    >>> model.chosen_.rule, model.chosen_.met
    ('budget', True)
    """

    _picked_for: ClassVar[Any] = SensorTreeClassifier

    loss: Any = None
    budget: float | None = None
    max_error: float | None = None
    cost_weights: Iterable[float] | None = None
