"""`tradeoff_curve`: error against mean cost over cost weights, on held-out folds.

And scorers that know prices, for `GridSearchCV` and `cross_validate`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.callback import with_callbacks

from sensortree.curves.held_out import HeldOutFolds
from sensortree.estimators.base import BaseSensorTree, Progress
from sensortree.exceptions import ParameterError
from sensortree.logs.purchases import Order, Unbought, log_of
from sensortree.policy.about import EVERYTHING, NOTHING
from sensortree.reports.report_sums import losses_of
from sensortree.reports.tradeoff import TradeoffCurve, standard_error
from sensortree.sensors.loss import METRICS
from sensortree.threads import one_thread

# The automatic grid: points at most, points to begin with, and the step in cost or error,
# as a share of their range, below which no point is put in between.
POINTS, FIRST_POINTS, FINE = 20, 7, 0.05
# Ratio of two cost weights that are nearly equal; at an end of a level stretch the change
# is sudden, and where it is need not be known so well.
JUMP, EDGE = 1.1, 2.0
COST_WEIGHT = "cost_weight"


def tradeoff_curve(
    estimator: Any,
    X: Any,
    y: Any,
    cost_weights: Iterable[float] | None = None,
    cv: Any = 5,
    sample_weight: ArrayLike | None = None,
    prices: ArrayLike | None = None,
    n_jobs: int | None = None,
    *,
    groups: ArrayLike | None = None,
    acquired: Any = None,
    order: Order | None = None,
    label_influenced_buying: bool = False,
    unbought: Unbought = "ignore",
) -> TradeoffCurve:
    """Error against mean cost over cost weights, measured on held-out folds only.

    Leaf classifiers, screens and searches are shared by the cost weights, and, where
    sensors have no transformers and all examples the same prices, leaf classifiers by the
    folds too. Between two cost weights at which the same search for a structure won, it is
    taken to win.

    Parameters
    ----------
    estimator : estimator of this package
        Its `cost_weight` does not matter; the estimator is not changed. Its `max_time` is
        for the whole curve: when it is over, you get the points measured so far, both
        ends first, then what halves the gaps. With `verbose`, each point is printed to
        stderr with the time that is left; scikit-learn callbacks are told too, and may
        stop the curve.
    X, y, sample_weight, prices, groups, acquired, order, label_influenced_buying, unbought
        As in `SensorTreeClassifier.fit`. Of a log, held-out rows are judged as fits look
        at them.
    cost_weights : iterable of float, default=None
        By default up to 20, from where nothing is bought to where everything is bought
        that saves an error, denser where cost or error change most. For a method that
        another parameter traces (see its `fit_path`), values of that; the points are
        then in their ascending order, and the curve's own cost weights are NaN.
    cv : int, splitter or iterable of (train, test), default=5
        The folds; each row is held out once. With 4 to 10, leaf classifiers are judged on
        the other folds in place of those that the estimator's own `cv` would make.
    n_jobs : int, default=None
        Leaf classifiers fitted at a time; None for what the estimator says.

    Returns
    -------
    curve : TradeoffCurve

    Examples
    --------
    >>> import numpy as np
    >>> from sensortree import SensorTreeClassifier, tradeoff_curve
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = X[:, 0] + (np.abs(X[:, 0]) < 0.5) * X[:, 1] > 0
    >>> model = SensorTreeClassifier({"cheap": [0], "dear": [1]}, costs={"dear": 5})
    >>> curve = tradeoff_curve(model, X, y, cost_weights=[1, 0.05, 0.001])
    >>> curve.fold_cost.shape
    (3, 5)
    >>> bool(curve.mean_cost[0] < curve.mean_cost[1] < curve.mean_cost[2])
    True
    """
    if not isinstance(estimator, BaseSensorTree):
        raise ParameterError(
            f"tradeoff_curve takes an estimator of sensortree, got "
            f"{type(estimator).__name__}."
        )
    traced = estimator._traced_by
    if traced != COST_WEIGHT and cost_weights is None:
        raise ParameterError(
            f"{type(estimator).__name__} is traced by {traced!r}, of which there are no "
            f"automatic values; give some as cost_weights."
        )
    model = clone(estimator)
    if n_jobs is not None:
        model.set_params(n_jobs=n_jobs)
    weights = None if cost_weights is None else list(cost_weights)
    log = log_of(acquired, order, label_influenced_buying, unbought)
    rows = {"X": X, "y": y, "sample_weight": sample_weight, "prices": prices}
    curve: TradeoffCurve = _told_curve(
        model, weights, **rows, cv=cv, log=log, groups=groups
    )
    return curve


@with_callbacks
@one_thread()
def _told_curve(model: Any, weights: list[float] | None, **given: Any) -> TradeoffCurve:
    """Measure a curve, and tell you and the callbacks of the model of each point."""
    most = POINTS if weights is None else len(weights)
    settings = model._settings()
    # Buying nothing, and buying everything.
    progress = Progress(model, settings.verbose, most + 2, settings.max_time)
    folds = HeldOutFolds(model, progress=progress, **given)
    curve = measured_curve(folds, automatic_grid(folds) if weights is None else weights)
    if progress.stopped:
        progress.say(f"{progress.stopped}: the curve has {len(curve)} points")
    progress.end()
    return curve


def first_weights(folds: HeldOutFolds) -> list[float]:
    """Few cost weights from "buys nothing" to "buys everything"; 0 where all is free."""
    highest, lowest = folds.automatic_ends()
    if not highest:
        return [0.0]
    return [float(w) for w in np.geomspace(highest, lowest, FIRST_POINTS)]


def automatic_grid(folds: HeldOutFolds) -> list[float]:
    """Cost weights from "buys nothing" to "buys everything", denser where much changes."""
    weights = first_weights(folds)
    curve = measured_curve(folds, weights, ends=False)
    folds.progress.say(f"a first curve of {len(curve)} points; more where much changes")
    while 1 < len(weights) < POINTS:
        curve = measured_curve(folds, weights, ends=False)
        if folds.progress.stopped:
            break
        at = widest_step(curve)
        if at is None:
            break
        weights.append(
            float(np.sqrt(curve.cost_weight[at] * curve.cost_weight[at + 1]))
        )
    return weights


def widest_step(curve: TradeoffCurve) -> int | None:
    """The point after which cost and error change most; None if nothing changes much.

    What costs more and errs no less, by a standard error over folds, is not looked into.
    """
    steps = np.zeros(len(curve) - 1)
    for values in (curve.mean_cost, curve.error):
        span = float(np.ptp(values))
        if span > 0:
            steps = np.maximum(steps, np.abs(np.diff(values)) / span)
    level = np.r_[True, steps == 0, True]  # beyond its ends a curve is level
    nearly = np.where(level[:-2] | level[2:], EDGE, JUMP)
    # A step between weights that are nearly equal is a jump: more points do not fill it.
    steps[curve.cost_weight[:-1] < nearly * curve.cost_weight[1:]] = 0.0
    saved = np.diff(curve.fold_error, axis=0)
    steps[np.abs(saved.mean(axis=1)) <= standard_error(saved)] = 0.0
    widest = int(np.argmax(steps))
    return widest if steps[widest] > FINE else None


def measured_curve(
    folds: HeldOutFolds, cost_weights: Iterable[float], ends: bool = True
) -> TradeoffCurve:
    """Curve of some cost weights; a weight that was measured before costs nothing.

    Of those only that were measured before the time was over.
    """
    weights = [float(weight) for weight in cost_weights]
    if not weights:
        raise ParameterError("cost_weights is empty; give at least one number.")
    traced_by_weight = folds.estimator._traced_by == COST_WEIGHT
    if not traced_by_weight:
        weights, ends = sorted(weights), False
    for weight in from_the_ends(weights):
        folds.measure(weight)
    found = [(weight, folds.measure(weight)) for weight in weights]
    measured = [(weight, m) for weight, m in found if m is not None]
    in_time = ends and not folds.progress.stopped
    nothing = folds.measure_baseline(NOTHING) if ends else None
    everything = folds.measure_baseline(EVERYTHING) if in_time else None
    return TradeoffCurve.from_folds(
        [weight if traced_by_weight else np.nan for weight, _ in measured],
        [m.error for _, m in measured],
        [m.cost for _, m in measured],
        folds.weight,
        measure=folds.data.loss_name,
        nothing=None if nothing is None else nothing.point,
        everything=None if everything is None else everything.point,
        unit=folds.settings.unit,
        metrics={
            name: [m.metrics[name] for _, m in measured]
            for name in METRICS
            if not folds.data.loss.numbers
        },
        end_metrics={
            name: end.metrics
            for name, end in ((NOTHING, nothing), (EVERYTHING, everything))
            if end is not None
        },
    )


def from_the_ends(weights: Iterable[float]) -> list[float]:
    """Numbers in one order, whatever was given: both ends, then what halves the gaps.

    So that those in between can learn from those around them.
    """
    left = sorted(set(weights), reverse=True)
    order, gaps = [left[0], left[-1]], [(0, len(left) - 1)]
    for first, last in gaps:  # grows as it goes
        middle = (first + last) // 2
        if first < middle:
            order.append(left[middle])
            gaps += [(first, middle), (middle, last)]
    return list(dict.fromkeys(order))


Scorer = Callable[..., float]


def acquisition_cost_scorer(
    model: Any, X: Any, y: Any = None, sample_weight: Any = None
) -> float:
    """Mean price of what a fitted model buys, as a negative number: greater is better.

    Alone it makes a search buy nothing; take it as one of several in ``scoring``.

    Parameters
    ----------
    model : fitted classifier of this package
    X : array-like or data frame of shape (n_samples, n_features)
    y : ignored
    sample_weight : array-like of shape (n_samples,), default=None

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import cross_validate
    >>> from sensortree import SensorTreeClassifier, acquisition_cost_scorer
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> scoring = {"accuracy": "accuracy", "cost": acquisition_cost_scorer}
    >>> model = SensorTreeClassifier(cost_weight=5)
    >>> found = cross_validate(model, X, X[:, 0] > 0, scoring=scoring, cv=2)
    >>> (-found["test_cost"]).tolist()
    [0.0, 0.0]
    """
    return -float(np.average(model.acquisition_cost(X), weights=sample_weight))


def cost_adjusted_scorer(cost_weight: float) -> Scorer:
    """Scorer by the risk at one cost weight, as a negative number: greater is better.

    The risk is the error (or the mean of whatever else the model minimises) and the
    weighted mean cost together. The weight is that of the scorer, whatever cost weights a
    search tries: it says what a unit of cost is worth to you.

    Parameters
    ----------
    cost_weight : float
        Error that one unit of cost is worth.

    Returns
    -------
    scorer : callable
        To be called with a fitted model, X and y, as ``scoring`` wants it.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sensortree import SensorTreeClassifier, cost_adjusted_scorer
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> search = GridSearchCV(
    ...     SensorTreeClassifier(), {"cost_weight": [5, 0.01]}, cv=2,
    ...     scoring=cost_adjusted_scorer(0.05))
    >>> search.fit(X, X[:, 0] > 0).best_params_
    {'cost_weight': 0.01}
    """
    if not isinstance(cost_weight, Real) or not 0 <= float(cost_weight) < np.inf:
        raise ParameterError(
            f"cost_weight must be a number that is at least 0, got {cost_weight!r}."
        )
    return partial(_negative_risk, float(cost_weight))


def _negative_risk(
    cost_weight: float, model: Any, X: Any, y: Any, sample_weight: Any = None
) -> float:
    cost = -acquisition_cost_scorer(model, X, y, sample_weight)
    loss = np.average(_losses(model, X, y), weights=sample_weight)
    return -(float(loss) + cost_weight * cost)


def _losses(model: Any, X: Any, y: Any) -> Any:
    """Loss of each row; a class that the model has not seen costs the most there is."""
    if model.policy_.loss.numbers:
        return model.policy_.loss.of(np.asarray(y, dtype=float), model.predict(X))
    y, loss, classes = np.asarray(y), model.policy_.loss, model.classes_
    true = np.searchsorted(classes, y).clip(max=len(classes) - 1)
    table = model._table(X, None)
    referred, likely = model.referred(X), model.policy_.outputs(table)
    own = losses_of(model.policy_, table, true, referred, likely)
    return np.where(classes[true] == y, own, loss.largest)
