"""Sensor trees at a budget: their cost weight is picked on held-out folds.

`SensorTreeClassifierCV` and `SensorTreeRegressorCV`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sized
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin, RegressorMixin, clone
from sklearn.callback import with_callbacks

from sensortree.curves.curve import (
    FIRST_POINTS,
    POINTS,
    automatic_grid,
    first_weights,
    measured_curve,
)
from sensortree.curves.held_out import HeldOutFolds
from sensortree.estimators.base import Progress, all_or_nothing
from sensortree.estimators.parameters import Buying, LeavesOfNumbers, parameters
from sensortree.estimators.prediction import SensorEstimator
from sensortree.estimators.sensor_tree import (
    JointTree,
    JointTreeOfClasses,
    LearnsJointly,
    SensorTreeClassifier,
    SensorTreeRegressor,
)
from sensortree.exceptions import BudgetWarning
from sensortree.learning.fit import FitReport
from sensortree.learning.held_out import nothing_bought
from sensortree.learning.worth import same_answers_advice
from sensortree.logs.purchases import Order, Unbought, log_of
from sensortree.policy.about import HeldOut
from sensortree.reports.tradeoff import (
    Choice,
    TradeoffCurve,
    check_targets,
    choice_at,
)
from sensortree.sensors.market import within
from sensortree.threads import one_thread

# Points put between the last that meets a target and the first that does not, on held-out
# folds, and then where all rows overspend; and the distance in cost or error, as a share of
# the target, that is near enough.
AROUND, BEFORE, NEAR = 6, 4, 0.05
# Points that are fitted on all rows at most, beside those that overspend, where a model
# comes out worse than its point.
OTHERS = 4

OWN = ("budget", "max_error", "cost_weights")


class PicksCostWeight(SensorEstimator):
    """Estimators whose cost weight is picked on held-out folds."""

    # The estimator whose cost weight it is.
    _picked_for: ClassVar[Any]

    fit_report_: FitReport
    budget: float | None
    max_error: float | None
    cost_weights: Iterable[float] | None
    cv: Any
    max_time: float | None
    verbose: bool

    @with_callbacks
    @one_thread()
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        prices: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        acquired: Any = None,
        order: Order | None = None,
        label_influenced_buying: bool = False,
        unbought: Unbought = "ignore",
    ) -> Any:
        """Measure the curve on held-out folds, pick a point, and fit on all rows.

        Parameters
        ----------
        X, y, sample_weight, prices, groups, acquired, order, label_influenced_buying, \
                unbought
            As in `SensorTreeClassifier.fit`.

        Returns
        -------
        self
        """
        progress = Progress(self, self.verbose, self._most_steps(1), self.max_time)
        with all_or_nothing(self):
            check_targets(self.budget, self.max_error)
            log = log_of(acquired, order, label_influenced_buying, unbought)
            rows = X, y, self.cv, sample_weight, prices
            folds = HeldOutFolds(self._plain(), *rows, progress, log, groups)
            self._fit(folds)
        progress.end()
        priced = self.policy_.sensors.costs.any()
        if self.budget and self.chosen_.met and priced and not self.chosen_.mean_cost:
            self._warn_of_nothing(folds)
        return self

    @with_callbacks
    @one_thread()
    def fit_budgets(
        self,
        X: Any,
        y: Any,
        budgets: Iterable[float],
        sample_weight: ArrayLike | None = None,
        prices: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        acquired: Any = None,
        order: Order | None = None,
        label_influenced_buying: bool = False,
        unbought: Unbought = "ignore",
    ) -> list[Any]:
        """Fit one model per budget, each as `fit` would; the curve is measured only once.

        Parameters
        ----------
        X, y, sample_weight, prices, groups, acquired, order, label_influenced_buying, \
                unbought
            As in `SensorTreeClassifier.fit`.
        budgets : iterable of float
            `max_time` is for the curves of all of them together.

        Returns
        -------
        models : list of SensorTreeClassifierCV
            Fitted copies of this estimator, which itself is left as it is.

        Examples
        --------
        >>> import numpy as np
        >>> from sensortree import SensorTreeClassifierCV
        >>> X = np.random.default_rng(0).normal(size=(200, 2))
        >>> y = X[:, 0] + (np.abs(X[:, 0]) < 0.5) * X[:, 1] > 0
        >>> model = SensorTreeClassifierCV({"cheap": [0], "dear": [1]}, costs={"dear": 5})
        >>> models = model.fit_budgets(X, y, [1, 4])
        >>> [bool(m.acquisition_cost(X).mean() <= m.budget) for m in models]
        [True, True]
        """
        models = [clone(self).set_params(budget=budget) for budget in budgets]
        for model in models:
            check_targets(model.budget, model.max_error)
        most = self._most_steps(len(models))
        progress = Progress(self, self.verbose, most, self.max_time)
        log = log_of(acquired, order, label_influenced_buying, unbought)
        rows = X, y, self.cv, sample_weight, prices
        folds = HeldOutFolds(self._plain(), *rows, progress, log, groups)
        for model in models:
            model._fit(folds)
        progress.end()
        return models

    def _fit(self, folds: HeldOutFolds) -> None:
        """Pick a point of the curve on held-out folds, and learn from all rows."""
        watch = folds.progress.watch
        with watch.stage("curve"):
            curve = self._curve(folds)
        model, curve, chosen = self._best_delivered(folds, curve)
        folds.progress.step("fit on all rows")
        for name, value in vars(model).items():
            if name.endswith("_"):
                setattr(self, name, value)
        self.curve_, self.chosen_ = curve, chosen
        self.cost_weight_ = chosen.cost_weight
        seconds = {"curve": watch.seconds["curve"], **self.fit_report_.seconds}
        self.fit_report_ = replace(self.fit_report_, seconds=seconds)
        if not chosen.met:
            self._warn(chosen)

    def _plain(self) -> LearnsJointly:
        """The estimator whose cost weight is picked."""
        given = self.get_params(deep=False)
        own = {name: given[name] for name in given if name not in OWN}
        plain: LearnsJointly = self._picked_for(**own)
        return plain

    def _most_steps(self, n_budgets: int) -> int | None:
        """Points that may be measured, buying nothing and everything, and the last fits."""
        if isinstance(self.cost_weights, Sized):
            return len(self.cost_weights) + 2 + n_budgets
        if self.cost_weights is not None:
            return None
        if self._aims():
            return FIRST_POINTS + 2 + n_budgets * (AROUND + BEFORE + 1)
        return POINTS + 2 + n_budgets

    def _curve(self, folds: HeldOutFolds) -> TradeoffCurve:
        """The curve, with more points around the target where the grid is automatic."""
        if self.cost_weights is not None:
            return measured_curve(folds, self.cost_weights)
        weights = first_weights(folds) if self._aims() else automatic_grid(folds)
        measured_curve(folds, weights, ends=False)
        folds.settle()
        for _ in range(AROUND):
            if folds.progress.stopped:
                break
            between = self._next_weight(measured_curve(folds, weights, ends=False))
            if between is None:
                break
            weights.append(between)
        return measured_curve(folds, weights)

    def _aims(self) -> bool:
        """Whether there is a target to put points around."""
        return self.budget is not None or self.max_error is not None

    def _next_weight(self, curve: TradeoffCurve) -> float | None:
        """A weight between the last point at a target and the first beyond it."""
        if self.budget is not None:
            values, target = curve.mean_cost, float(self.budget)
            beyond = values > target
        elif self.max_error is not None:
            values, target = curve.error, float(self.max_error)
            beyond = values <= target
        else:
            return None
        if not beyond.any():
            return None
        return weight_before(curve, int(np.argmax(beyond)), values, target)

    def _best_delivered(
        self, folds: HeldOutFolds, curve: TradeoffCurve
    ) -> tuple[Any, TradeoffCurve, Choice]:
        """Pick a point and fit on all rows; if that is worse than the point, pick another.

        Of the models that were fitted, the best by what it is worth itself. Where a
        budget is overspent and no point is nearby, one is put before it.
        """
        tried: list[tuple[Any, Choice]] = []
        passed: set[float] = set()
        overspent, n_others = -1.0, 0
        more = BEFORE if self.cost_weights is None else 0
        while True:
            # a lower cost weight than one that overspent would spend no less
            out = [w in passed or w <= overspent for w in curve.cost_weight.tolist()]
            promised = curve.choose(self.budget, self.max_error, np.flatnonzero(out))
            if tried and (not promised.met or n_others > OTHERS):
                break
            weight = promised.cost_weight
            model = folds.fit_on_all_rows(self._plain().set_params(cost_weight=weight))
            found = as_delivered(promised, model, folds)
            tried.append((model, found))
            score = held_out_score(model)
            noise = np.inf if score is None else score.loss_se
            kept = found.error <= promised.error + noise
            if not promised.met or (found.met and kept):
                break
            if self.budget is None or found.met:
                passed.add(weight)
                n_others += 1
                continue
            overspent = max(overspent, weight)
            place = curve, promised.index, curve.mean_cost, float(self.budget)
            between = weight_before(*place)
            if more and between is not None and not folds.progress.stopped:
                with folds.progress.watch.stage("curve"):
                    curve = measured_curve(folds, [*curve.cost_weight, between])
                more -= 1
        model, chosen = min(tried, key=lambda one: rank(one[1]))
        chosen = placed(chosen, curve)
        first = tried[0][1]
        if chosen.cost_weight != first.cost_weight and first.rule == chosen.rule:
            overspends = not first.met and self.budget is not None
            worse = "would spend" if overspends else "has"
            note = (
                f"the point that promised most was at cost weight {first.cost_weight:.3g}; "
                f"fitted on all rows, it {worse} mean cost {first.mean_cost:.4g} and "
                f"{first.measure} {first.error:.4g}"
            )
            chosen = replace(chosen, note=note)
        return model, curve, chosen

    def _warn(self, chosen: Choice) -> None:
        if chosen.rule == "budget":
            message = (
                f"no cost weight meets budget={self.budget:g}; the cheapest is taken, "
                f"which costs {chosen.mean_cost:.4g} in the mean on held-out folds"
            )
        else:
            message = (
                f"no cost weight meets max_error={self.max_error:g} on held-out folds; the "
                f"least {chosen.measure} is taken, {chosen.error:.4g}"
            )
        message += ". See curve_ for the points that can be reached."
        warnings.warn(message, BudgetWarning, stacklevel=6)

    def _warn_of_nothing(self, folds: HeldOutFolds) -> None:
        """Say that a budget buys nothing, and why."""
        rows, curve, chosen = folds.all_rows, self.curve_, self.chosen_
        measure, stopped = chosen.measure, folds.progress.stopped
        lower = curve.mean_cost[(curve.mean_cost > 0) & (curve.error < chosen.error)]
        why = same_answers_advice(
            rows.leaves, nothing_bought(rows.leaves, rows.settings), None
        )
        if stopped:
            why = f"{stopped} before a tree was found that lowers the {measure}"
        elif why is None and (chosen.note or lower.size):
            why = chosen.note or (
                f"on held-out folds, a lower {measure} costs {lower.min():.4g} or more"
            )
        elif why is None:
            why = (
                f"on held-out folds, no tree has a lower {measure} than buying nothing; it "
                f"takes more rows, or other sensors"
            )
        message = f"budget={self.budget:g} buys nothing: {why.removesuffix('.')}."
        warnings.warn(message, BudgetWarning, stacklevel=5)


def weight_before(
    curve: TradeoffCurve, index: int, values: Any, target: float
) -> float | None:
    """A weight between a point and the one before it, if these are far apart."""
    if not index or abs(values[index] - values[index - 1]) <= NEAR * target:
        return None
    high, low = curve.cost_weight[index - 1], curve.cost_weight[index]
    return float(np.sqrt(high * low)) if high > 1.001 * low > 0 else None


def as_delivered(promised: Choice, model: Any, folds: HeldOutFolds) -> Choice:
    """A choice as the model that was fitted on all rows keeps it.

    Its cost and error are those of the model on held-out rows; that of its training rows
    must meet a budget too.
    """
    score, met = held_out_score(model), promised.met
    cost, error = promised.mean_cost, promised.error
    if score is not None:
        cost, error = score.cost, score.loss
    if promised.rule == "budget":
        spent = training_cost(model, folds)
        cost = cost if within(spent, promised.target) else max(cost, spent)
        met = met and within(cost, promised.target)
    elif promised.rule == "max_error":
        met = met and error <= promised.target
    return replace(promised, met=met, mean_cost=float(cost), error=float(error))


def held_out_score(model: Any) -> HeldOut | None:
    """How good a model was on held-out rows; None if there were none."""
    compared = getattr(model, "comparison_", None)
    return None if compared is None else compared.held_out


def rank(found: Choice) -> tuple[bool, float, float]:
    """What is better comes first: what meets the target, then by what was asked for."""
    first, then = found.error, found.mean_cost
    if found.met == (found.rule == "max_error"):
        first, then = then, first
    return not found.met, first, then


def placed(chosen: Choice, curve: TradeoffCurve) -> Choice:
    """A choice with its place on a curve that may have got more points."""
    index = int(np.flatnonzero(curve.cost_weight == chosen.cost_weight)[0])
    beside = choice_at(curve, index, chosen.rule, chosen.target, chosen.met)
    return replace(chosen, index=index, cheaper=beside.cheaper, dearer=beside.dearer)


def training_cost(model: Any, folds: HeldOutFolds) -> float:
    """Mean cost of the training rows, each at its own prices.

    On the ways they took when they were judged out of fold, or on those that the fitted
    model sends them, whichever is dearer; of a log, on the former.
    """
    if folds.data.continued is not None:
        return float(model.training_cost_)
    X, _, sample_weight, prices = folds.given
    weight = None if sample_weight is None else np.asarray(sample_weight)
    own = np.average(model.acquisition_cost(X, prices), weights=weight)
    return max(float(own), float(model.training_cost_))


@parameters
class SensorTreeClassifierCV(
    Buying, JointTreeOfClasses, ClassifierMixin, PicksCostWeight
):
    """A sensor tree for a budget: its cost weight is picked on held-out folds.

    A `tradeoff_curve` is measured, with more points around the target. The point that
    meets it best gives the cost weight, and a `SensorTreeClassifier` is fitted with it on
    all rows. If that model spends more than the budget on its training rows, judged out
    of fold or as it routes them, the next best point of a higher cost weight is taken; if
    none is near, one in between is measured.

    Parameters
    ----------
    budget : float, default=None
        Highest mean cost of an example. Taken is the point of the least held-out error
        whose held-out mean cost is at most this; if there is none, the cheapest, with a
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
    sensors, costs, risk, loss, class_weight, refer_cost, max_cost, structure, n_leaves, \
            n_exact, max_time, root_sensors, classifier, calibration, random_state, \
            program, calibrate_leaves, outages, n_jobs, verbose, unit
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


@parameters
class SensorTreeRegressorCV(
    Buying, LeavesOfNumbers, JointTree, RegressorMixin, PicksCostWeight
):
    """A sensor tree for numbers at a budget: its cost weight is picked on held-out folds.

    As `SensorTreeClassifierCV`, with a `SensorTreeRegressor`.

    Parameters
    ----------
    budget, max_error, cost_weights, cv
        As in `SensorTreeClassifierCV`; an error is a mean loss, in the unit of the risk.
    sensors, costs, risk, quantile, max_cost, structure, n_leaves, n_exact, max_time, \
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
