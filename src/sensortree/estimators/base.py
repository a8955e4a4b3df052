"""`BaseSensorTree`: what all methods share; a method fills `_learn`."""

from __future__ import annotations

import warnings
from abc import ABCMeta, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sized
from contextlib import contextmanager
from dataclasses import fields, replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin, RegressorMixin, clone
from sklearn.callback import with_callbacks

from sensortree.estimators.parameters import (
    Buying,
    LeavesOfNumbers,
    Program,
    parameters,
)
from sensortree.estimators.prediction import SensorEstimator
from sensortree.estimators.validation import read_rows
from sensortree.exceptions import ParameterError, PriceWarning
from sensortree.learning.choose import most_steps
from sensortree.learning.fit import Fitted, price_message
from sensortree.learning.prepare import Prepared, prepare
from sensortree.learning.settings import (
    LEARNED,
    NumberSettings,
    Settings,
    cost_weight_of,
)
from sensortree.leaves.fitting import CALIBRATIONS
from sensortree.leaves.sklearn_private import (
    HasMethods,
    Interval,
    InvalidParameterError,
    StrOptions,
    begin_callbacks,
    validate_parameter_constraints,
)
from sensortree.logs.purchases import Order, Unbought, log_of
from sensortree.policy.about import About, now
from sensortree.policy.decisions import NUMBER_PARTS, PARTS
from sensortree.program import SOLVERS
from sensortree.progress import LOG, TextProgress
from sensortree.sensors.loss import RISKS, SCORES, quantile_of
from sensortree.threads import one_thread
from sensortree.tree.tree import SensorTree

__all__ = [
    "BaseSensorTree",
    "BaseSensorTreeClassifier",
    "BaseSensorTreeRegressor",
    "Interval",
    "Progress",
    "StrOptions",
    "all_or_nothing",
]

AT_LEAST_0 = Interval(Real, 0, None, closed="left")
ABOVE_0 = Interval(Real, 0, None, closed="neither")
AT_LEAST_1 = Interval(Integral, 1, None, closed="left")
FEATURES = HasMethods(["fit", "transform"])

# What the parameters of a `Program` may be, beside the features of decisions.
OF_A_PROGRAM: dict[str, list[Any]] = {
    "savings": [StrOptions({"tight", "published"})],
    "errors": [StrOptions({"smoothed", "observed"})],
    "l2": [StrOptions({"auto"}), AT_LEAST_0],
    "l1": [AT_LEAST_0],
    "solver": [StrOptions(set(SOLVERS))],
    "tol": [ABOVE_0],
    "refine": ["boolean"],
    "fallback": ["boolean"],
}

# Steps of every fit beside those of choosing a tree.
READ_AND_LEARNED = 3
# What an estimator knows about the columns of X once it has read it.
SEEN = ("n_features_in_", "feature_names_in_")


class Progress(TextProgress):
    """The steps of one fit, told to scikit-learn's callbacks too when they have ended."""

    def __init__(
        self,
        estimator: Any,
        verbose: bool,
        at_most: int | None = None,
        max_time: float | None = None,
    ):
        super().__init__(verbose, at_most, max_time)
        self.estimator = estimator
        self.context = begin_callbacks(estimator, at_most)
        self.context.call_on_fit_task_begin(estimator=estimator)

    def step(self, name: str, detail: str = "") -> None:
        """Say that a step has ended; a callback that answers True stops the search."""
        super().step(name, detail)
        task = self.context.subcontext(task_name=name)
        task.call_on_fit_task_begin(estimator=self.estimator)
        self.told_to_stop |= bool(task.call_on_fit_task_end(estimator=self.estimator))

    def end(self) -> None:
        """Say that the fit has ended, and log where its time went."""
        spent = (f"{stage} {s:.2f} s" for stage, s in self.watch.seconds.items())
        LOG.info("%s fitted: %s", type(self.estimator).__name__, ", ".join(spent))
        self.context.call_on_fit_task_end(estimator=self.estimator)


@contextmanager
def all_or_nothing(model: Any) -> Iterator[None]:
    """Keep a model as it was if fitting it ends in an error or is interrupted."""
    before = dict(vars(model))
    try:
        yield
    except BaseException:
        vars(model).clear()
        vars(model).update(before)
        raise


@parameters
class BaseSensorTree(Buying, SensorEstimator, metaclass=ABCMeta):
    """Estimators that buy sensors along a tree; a method fills `_learn`."""

    # The parameter that trades error against cost.
    _traced_by: ClassVar[str] = "cost_weight"
    # What is asked of a fit: of classes, or of numbers.
    _asks: ClassVar[type[Settings]] = Settings
    # What "auto" stands for, of the features of decisions.
    _features: ClassVar[str]

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "cost_weight": [StrOptions({"auto"}), AT_LEAST_0],
        "structure": [
            StrOptions({"exhaustive", "cascade", *LEARNED}),
            SensorTree,
            Mapping,
            list,
            tuple,
        ],
        "n_leaves": [StrOptions({"auto"}), AT_LEAST_1],
        "n_exact": [StrOptions({"all"}), AT_LEAST_1],
        "max_time": [None, ABOVE_0],
        "root_sensors": [StrOptions({"auto"}), list, tuple, set, frozenset],
        "order": [None, list, tuple],
        "cv": [
            None,
            Interval(Integral, 2, None, closed="left"),
            HasMethods(["split"]),
            Iterable,
        ],
        "random_state": ["random_state"],
        "program": [None, Program],
        "calibrate_leaves": ["boolean"],
        "outages": [StrOptions({"auto"}), "boolean"],
        "max_cost": [None, AT_LEAST_0],
        "budget": [None, AT_LEAST_0],
        "n_jobs": [None, Integral],
        "verbose": ["boolean"],
        "unit": [str],
    }

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
        """Learn the decision functions, and what leaves answer.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            All sensors of all examples, or what a log holds of them: see `acquired`.
        y : array-like of shape (n_samples,)
            Classes, or numbers if it is a regressor.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight 0 is the same as leaving the row out, weight 2 as repeating it within
            a group (see `groups`): for every method, structure and form of prices, where
            it holds for the leaf classifier. It does not for boosted leaves, whose bins
            and smallest leaves count rows, nor for searches on more than 12,000 rows,
            which look at a sample.
        prices : array-like of shape (n_samples, n_sensors), default=None
            Prices of each example, where they are not columns of X; NaN stands for the
            sensor's own price. Predictions then need `prices` too.
        groups : array-like of shape (n_samples,), default=None
            Rows of one group are not independent, such as visits of one patient or
            copies of one row: they are held out together, and standard errors count them
            as one observation. None: each row is a group of its own. A splitter given as
            `cv` is told of them.
        acquired : array-like of shape (n_samples, n_sensors), default=None
            What a log says was bought: the position of each purchase, 0 for never, or
            truth, with `order`; as in `evaluate_from_log`. Other cells of X are not read.
            Leaves learn from every row that bought their sensors, linear and quadratic
            ones from the others too where that helps; where a decision wants more, a
            similar row whose log went on stands in. None: everything was bought.
        order, label_influenced_buying, unbought
            Of a log, as in `evaluate_from_log`.

        Returns
        -------
        self
        """
        self._check_parameters()
        settings = self._settings()
        progress = self._progress(X, settings)
        with all_or_nothing(self):
            log = log_of(acquired, order, label_influenced_buying, unbought)
            with progress.watch.stage("reading"):
                rows = read_rows(
                    self, settings, X, y, sample_weight, prices, log, groups
                )
            progress.step("reading")
            settings = settings.priced_for(rows.loss)
            prepared = prepare(rows, settings, progress)
            fitted = self._learned(prepared)
            self._show(fitted)
        progress.end()
        advice = price_message(fitted, prepared.leaves, settings)
        if advice:
            warnings.warn(advice, PriceWarning, stacklevel=4)
        return self

    def _progress(self, X: Any, settings: Settings) -> Progress:
        """Steps that a fit to X may take, and the time it may."""
        if isinstance(settings.sensors, Sized):
            n_sensors = len(settings.sensors)
        else:
            given = X if hasattr(X, "shape") else np.asarray(X, dtype=object)
            n_sensors = sum(given.shape[1:2])
        most = READ_AND_LEARNED + most_steps(settings, n_sensors)
        return Progress(self, settings.verbose, most, settings.max_time)

    @one_thread()
    def fit_path(
        self,
        X: Any,
        y: Any,
        cost_weights: Iterable[float],
        sample_weight: ArrayLike | None = None,
        prices: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        acquired: Any = None,
        order: Order | None = None,
        label_influenced_buying: bool = False,
        unbought: Unbought = "ignore",
    ) -> list[Any]:
        """Fit one model per cost weight; leaf classifiers are fitted only once.

        Methods that are traced by another parameter say so; the values are then of that
        parameter.

        Parameters
        ----------
        X, y, sample_weight, prices, groups, acquired, order, label_influenced_buying, \
                unbought
            As in `fit`.
        cost_weights : iterable of float
            `max_time` is for all of them together; when it is over, the models that are
            left are fitted to trees that take no search.

        Returns
        -------
        models : list
            Fitted copies of this estimator, which itself is left as it is.

        Examples
        --------
        >>> import numpy as np
        >>> from sensortree import SensorTreeClassifier
        >>> X = np.random.default_rng(0).normal(size=(200, 2))
        >>> y = X[:, 0] + 0.3 * X[:, 1] > 0
        >>> dear, cheap = SensorTreeClassifier().fit_path(X, y, [0.5, 0.001])
        >>> bool(dear.acquisition_cost(X).mean() < cheap.acquisition_cost(X).mean())
        True
        """
        traced = self._traced_by
        models = [clone(self).set_params(**{traced: w}) for w in cost_weights]
        for model in models:
            model._check_parameters()
        reader = clone(self)
        settings = reader._settings()
        progress = TextProgress(settings.verbose, max_time=settings.max_time)
        log = log_of(acquired, order, label_influenced_buying, unbought)
        with progress.watch.stage("reading"):
            rows = read_rows(reader, settings, X, y, sample_weight, prices, log, groups)
        prepared = prepare(rows, settings.priced_for(rows.loss), progress)
        for model in models:
            model._fit_prepared(prepared, reader)
        return models

    @abstractmethod
    def _learn(self, prepared: Prepared) -> Fitted:
        """Learn a policy from prepared rows, setting nothing."""

    def _learned(self, prepared: Prepared) -> Fitted:
        """What was learned, and what it is about."""
        fitted, data = self._learn(prepared), prepared.leaves.data
        compared = fitted.evidence.get("comparison")
        score = None if compared is None else compared.held_out
        about = About(
            self._settings().unit,
            data.target,
            fitted=now(),
            rows=len(data.y),
            held_out=score,
        )
        return replace(fitted, policy=replace(fitted.policy, about=about))

    def _asked(self) -> dict[str, Any]:
        """Parameters by name, as a fit asks for them."""
        given: dict[str, Any] = self.get_params(deep=False)
        return given

    def _settings(self) -> Settings:
        """What this estimator asks of a fit."""
        asked = self._asked()
        names = {field.name for field in fields(self._asks)}
        return self._asks(**{name: asked[name] for name in asked.keys() & names})

    def _settings_for(self, prepared: Prepared) -> Settings:
        """The same, once rows are read."""
        return self._settings().priced_for(prepared.leaves.data.loss)

    def _fit_prepared(self, prepared: Prepared, reader: Any) -> Any:
        """Fit on rows that another estimator has read for this one."""
        self._show_read(self._learned(prepared), reader)
        return self

    def _show_read(self, fitted: Fitted, reader: Any) -> None:
        """Set what was learned from rows that another estimator has read."""
        for name in SEEN:
            if hasattr(reader, name):
                setattr(self, name, getattr(reader, name))
        self._show(fitted)

    def _show(self, fitted: Fitted) -> None:
        """Set what was learned: the only place where a fit sets attributes."""
        policy = fitted.policy
        self.policy_ = policy
        self.sensors_ = policy.sensors
        self.tree_ = policy.tree
        self.structure_report_ = fitted.structure_report
        for name, value in fitted.evidence.items():
            setattr(self, f"{name}_", value)

    def _check_parameters(self) -> None:
        """Refuse values that cannot be, and parameters that contradict each other."""
        given = self.get_params(deep=False)
        self._check(type(self).__name__, given, self._parameter_constraints)
        if "program" in given:
            features = self._parameter_constraints["decision_features"]
            own = {"decision_features": [StrOptions({"auto"}), *features]}
            self._check("Program", vars(self._program), {**OF_A_PROGRAM, **own})
        self._check_together(given)

    def _check(
        self, owner: str, given: Mapping[str, Any], constraints: Mapping[str, Any]
    ) -> None:
        constrained = {name: given[name] for name in given if name in constraints}
        try:
            validate_parameter_constraints(constraints, constrained, caller_name=owner)
        except InvalidParameterError as error:
            raise ParameterError(str(error)) from error

    def _check_together(self, parameters: Mapping[str, Any]) -> None:
        """Refuse parameters that contradict each other."""


@parameters
class BaseSensorTreeClassifier(ClassifierMixin, BaseSensorTree):
    """Classifiers that buy sensors along a tree; a method fills `_learn`."""

    loss: Any = None

    _features: ClassVar[str] = "posterior+raw"
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaseSensorTree._parameter_constraints,
        "risk": [StrOptions({"error", *SCORES}), callable],
        "class_weight": [None, StrOptions({"balanced"}), Mapping],
        "refer_cost": [None, str, Mapping, AT_LEAST_0],
        "classifier": [str, HasMethods(["fit", "predict"])],
        "calibration": [None, StrOptions(set(CALIBRATIONS))],
        "decision_features": [StrOptions(set(PARTS)), FEATURES],
    }

    def _asked(self) -> dict[str, Any]:
        asked = super()._asked()
        if "cost_weight" in asked:
            weight = asked["cost_weight"]
            asked["cost_weight"] = cost_weight_of(
                weight, in_money=self.loss is not None
            )
        return asked

    def _show(self, fitted: Fitted) -> None:
        super()._show(fitted)
        self.classes_ = fitted.policy.classes

    def _check_together(self, parameters: Mapping[str, Any]) -> None:
        loss = parameters["loss"]
        by_class = loss is not None and not isinstance(loss, Real)
        if by_class and parameters.get("class_weight") is not None:
            raise ParameterError(
                "loss and class_weight both say what mistaking a class costs; leave one "
                "of them out."
            )
        if loss is not None and parameters.get("risk", "error") != "error":
            raise ParameterError(
                f"loss says what wrong answers cost, but risk={parameters['risk']!r} "
                f"judges probabilities; leave one of them out. Use cost_weight to say "
                f"what a unit of cost is worth there."
            )


@parameters
class BaseSensorTreeRegressor(LeavesOfNumbers, RegressorMixin, BaseSensorTree):
    """Regressors that buy sensors along a tree; a method fills `_learn`."""

    _asks = NumberSettings
    _features: ClassVar[str] = "prediction+raw"

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaseSensorTree._parameter_constraints,
        "risk": [StrOptions(set(RISKS)), callable],
        "quantile": [Interval(Real, 0, 1, closed="neither")],
        "regressor": [str, HasMethods(["fit", "predict"])],
        "decision_features": [StrOptions(set(NUMBER_PARTS)), FEATURES],
    }

    def _asked(self) -> dict[str, Any]:
        return {**super()._asked(), "classifier": self.regressor}

    def _check_together(self, parameters: Mapping[str, Any]) -> None:
        quantile_of(parameters["risk"], parameters["quantile"])
