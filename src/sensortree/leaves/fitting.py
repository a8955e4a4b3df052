"""Leaf classifiers (f_k): one per distinct sensor subset, shared by equal leaves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.linear_model import (
    LogisticRegression,
    LogisticRegressionCV,
    RidgeClassifier,
)
from sklearn.pipeline import Pipeline
from sklearn.svm import LinearSVC
from sklearn.utils import get_tags

from sensortree.constants import (
    CLUSTER_ATTEMPTS,
    SCREEN_LEAVES,
    SCREEN_ROWS,
    SCREEN_ROWS_LIGHT,
    SCREEN_TREES,
)
from sensortree.exceptions import ParameterError
from sensortree.leaves.boosting import BoostedEngine, BoostedTrees, TakesNaN
from sensortree.leaves.folds import halves_of
from sensortree.leaves.logistic import (
    LinearLogisticRegression,
    LogisticEngine,
    QuadraticLogisticRegression,
    RidgeLogisticRegression,
)
from sensortree.leaves.regression import RidgeEngine
from sensortree.leaves.regressors import (
    BoostedRegression,
    ForeignRegression,
    HeldOutEngine,
    LeafRegressor,
    QuadraticRidgeRegression,
    RidgeRegression,
    weight_parameters,
)
from sensortree.policy.classifiers import posterior
from sensortree.threads import one_thread
from sensortree.types import Array, Mask, Rows

Key = TypeVar("Key")

Subset = frozenset[str]
Engine = LogisticEngine | BoostedEngine | RidgeEngine | HeldOutEngine


class Undecided(TakesNaN, ClassifierMixin, BaseEstimator):
    """What "auto" stands for until rows are seen: leaves of some kind are not enough.

    Whatever it will be, it gives probabilities, and where NaN comes it takes NaN.
    """

    def fit(self, X: Any, y: Any) -> Undecided:
        """Raise: a kind is chosen first."""
        raise NotImplementedError

    predict = predict_proba = fit


class UndecidedNumbers(TakesNaN, LeafRegressor):
    """What "auto" stands for until rows are seen, of numbers."""

    def engine(self, y: Any, weight: Any, fold: Any) -> Any:
        """Raise: a kind is chosen first."""
        raise NotImplementedError


CLASSIFIERS: dict[str, Any] = {
    "auto": Undecided(),
    "linear": LinearLogisticRegression(),
    "logistic2": QuadraticLogisticRegression(),
    "boosted": BoostedTrees(),
}
REGRESSORS: dict[str, type[LeafRegressor]] = {
    "auto": UndecidedNumbers,
    "linear": RidgeRegression,
    "quadratic": QuadraticRidgeRegression,
    "boosted": BoostedRegression,
}
LINEAR = (
    RidgeLogisticRegression,
    RidgeRegression,
    LogisticRegression,
    LogisticRegressionCV,
    RidgeClassifier,
    LinearSVC,
)
BOOSTERS = (HistGradientBoostingClassifier, HistGradientBoostingRegressor)
CALIBRATIONS = ("sigmoid", "isotonic", "temperature")


def resolve_classifier(classifier: Any, calibration: str | None = None) -> Any:
    """Give the estimator that a name or an estimator stands for, calibrated or not."""
    _check_kind(classifier, "classifier", CLASSIFIERS)
    if isinstance(classifier, str):
        classifier = CLASSIFIERS[classifier]
    if calibration is None:
        return classifier
    return CalibratedClassifierCV(classifier, method=calibration, ensemble=False)


def resolve_regressor(regressor: Any, quantile: float | None) -> LeafRegressor:
    """Give the leaf regressor that a name or an estimator stands for.

    It answers with a quantile, or with the mean. One that was chosen already stays.
    """
    if isinstance(regressor, LeafRegressor):
        return regressor
    _check_kind(regressor, "regressor", REGRESSORS)
    if isinstance(regressor, str):
        return REGRESSORS[regressor](quantile)
    return ForeignRegression(regressor, quantile)


def _check_kind(given: Any, word: str, known: Mapping[str, Any]) -> None:
    """Refuse what is neither a known name nor an estimator."""
    if isinstance(given, str):
        if given not in known:
            raise ParameterError(
                f"{word} must be a scikit-learn {word} or one of "
                f"{', '.join(map(repr, known))}, got {given!r}."
            )
    elif isinstance(given, type):
        raise ParameterError(
            f"{word} must be an instance, got the class {given.__name__}; write "
            f"{given.__name__}()."
        )
    elif not hasattr(given, "fit") or not hasattr(given, "predict"):
        raise ParameterError(
            f"{word} must be a scikit-learn {word} with 'fit' and 'predict', got "
            f"{given!r}."
        )


def accepts_nan(classifier: Any) -> bool:
    """Whether a classifier says that it can be fitted on NaN."""
    return bool(get_tags(classifier).input_tags.allow_nan)


def judge_leaf_classifiers(
    classifier: Any,
    features: Mapping[Subset, Array],
    y: NDArray[np.intp],
    n_classes: int,
    sample_weight: Array | None,
    fold: NDArray[np.intp],
    n_jobs: int | None,
    taught: Mask,
) -> dict[Subset, Array]:
    """Posterior of each subset's classifier on rows that it has not seen.

    A row's posterior is that of a classifier fitted without the row's fold; -1 stands for
    one fitted on all rows. `taught` says which rows are learned from. Posteriors are
    (n_samples, n_classes).
    """
    parts = {}
    for subset, X in features.items():
        # With nothing known there is nothing to overfit, and the prior is the same for all.
        own = fold if X.shape[1] else np.full(len(y), -1)
        parts[subset] = [
            (taught & ((own != held_out) | (held_out == -1)), own == held_out)
            for held_out in np.unique(own)
        ]
    given = classifier, features, y, n_classes, sample_weight
    return _judged_in_parts(*given, parts, n_jobs)


def screen_leaf_classifiers(
    classifier: Any,
    features: Mapping[Subset, Array],
    y: NDArray[np.intp],
    n_classes: int,
    fold: Rows,
    sample_weight: Array | None = None,
    n_jobs: int | None = None,
) -> dict[Subset, Array]:
    """Posterior of a light copy of each subset's classifier, at a fraction of the price.

    Folds are dealt to two halves; each half is answered by a copy that was fitted on the
    other, or on as many rows of it as the screen can afford.
    """
    light, n_rows = _lighter(classifier)
    rng = np.random.default_rng(1)
    half_of = halves_of(fold, rng)
    order = rng.permutation(len(y))
    halves = [order[half_of[order] == half] for half in (0, 1)]
    judged = [(np.sort(halves[1 - half][:n_rows]), halves[half]) for half in (0, 1)]
    parts = dict.fromkeys(features, judged)
    return _judged_in_parts(light, features, y, n_classes, sample_weight, parts, n_jobs)


def _judged_in_parts(
    classifier: Any,
    features: Mapping[Subset, Array],
    y: NDArray[np.intp],
    n_classes: int,
    sample_weight: Array | None,
    parts: Mapping[Subset, Sequence[tuple[NDArray[Any], NDArray[Any]]]],
    n_jobs: int | None,
) -> dict[Subset, Array]:
    """Posteriors of parts of the rows, each by a classifier fitted on other rows.

    Of each subset, the rows to fit on and those that are judged.
    """
    judge = partial(_fit_and_judge, classifier, y, n_classes, sample_weight)
    tasks = {(s, k): (features[s], *p) for s in parts for k, p in enumerate(parts[s])}
    posteriors = {subset: np.empty((len(y), n_classes)) for subset in features}
    for (subset, k), proba in each_of(judge, tasks, n_jobs).items():
        posteriors[subset][parts[subset][k][1]] = proba
    return posteriors


def _fit_and_judge(
    classifier: Any,
    y: NDArray[np.intp],
    n_classes: int,
    sample_weight: Array | None,
    X: Array,
    train: NDArray[Any],
    judged: NDArray[Any],
) -> Array:
    """Posterior of some rows by a classifier that is fitted on others."""
    weight = None if sample_weight is None else sample_weight[train]
    fitted = fit_one(classifier, y[train], weight, X[train])
    return posterior(fitted, X[judged], n_classes)


def fit_one(
    classifier: Any, y: NDArray[Any], sample_weight: Array | None, X: Array
) -> Any:
    """Fit a classifier of no engine, or a regressor; classes are integers."""
    if isinstance(classifier, LeafRegressor):  # which knows what to do with nothing
        return classifier.engine(y, sample_weight, None).fit(X)
    # With nothing known, or of one class only, the class prior is all there is to say.
    if X.shape[1] == 0 or (y == y[0]).all():
        return DummyClassifier(strategy="prior").fit(X, y, sample_weight)
    return clone(classifier).fit(X, y, **weight_parameters(classifier, sample_weight))


def engine_of(
    classifier: Any,
    y: NDArray[Any],
    n_classes: int,
    sample_weight: Array | None,
    fold: NDArray[np.intp] | None = None,
) -> Engine | None:
    """What fits all folds of a subset as one job; None for classifiers of other kinds.

    Its `judge` says of each row what a classifier without the row's fold says, and where
    `fit`, to all rows, sets out from.
    """
    if isinstance(classifier, RidgeLogisticRegression):
        C, degree = classifier.C, classifier._degree
        return LogisticEngine(y, n_classes, sample_weight, fold, C, degree)
    if isinstance(classifier, BoostedTrees):
        return BoostedEngine(y, n_classes, sample_weight, fold, classifier.size)
    if isinstance(classifier, LeafRegressor):
        return classifier.engine(y, sample_weight, fold)
    return None


def _lighter(classifier: Any) -> tuple[Any, int]:
    """A copy with few small trees, and the rows it may be fitted on.

    Where nothing says how many trees there are, fewer rows must do.
    """
    light, n_rows = clone(classifier), SCREEN_ROWS
    for part in (light, *light.get_params().values()):
        if isinstance(part, BOOSTERS):
            largest = part.max_leaf_nodes or SCREEN_LEAVES
            part.set_params(
                max_iter=min(part.max_iter, SCREEN_TREES),
                max_leaf_nodes=min(largest, SCREEN_LEAVES),
            )
            n_rows = SCREEN_ROWS_LIGHT
        elif isinstance(getattr(part, "n_estimators", None), int):
            part.set_params(n_estimators=min(part.n_estimators, SCREEN_TREES))
            n_rows = SCREEN_ROWS_LIGHT
    return light, n_rows


def each_of(
    function: Callable[..., Any],
    tasks: Mapping[Key, tuple[Any, ...]],
    n_jobs: int | None,
) -> dict[Key, Any]:
    """What a function makes of each task's arguments, one thread each, through joblib.

    A cluster that lost a worker and its data is asked again.
    """
    alone = partial(_on_one_thread, function)
    for attempt in range(CLUSTER_ATTEMPTS):
        try:
            found = Parallel(n_jobs=n_jobs)(delayed(alone)(*t) for t in tasks.values())
            return dict(zip(tasks, found, strict=True))
        except Exception as error:
            lost = type(error).__module__.partition(".")[0] == "distributed"
            if not lost or attempt == CLUSTER_ATTEMPTS - 1:
                raise
    raise AssertionError("the last attempt returns or raises")


@one_thread()
def _on_one_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function, perhaps in a process of joblib's."""
    return function(*arguments)


def is_linear(classifier: Any) -> bool:
    """Whether least squares on a polynomial basis is a fair stand-in for a classifier."""
    if isinstance(classifier, Pipeline):
        return is_linear(classifier.steps[-1][1])
    if isinstance(classifier, CalibratedClassifierCV):
        return is_linear(classifier.estimator)
    if isinstance(classifier, ForeignRegression):
        return is_linear(classifier.regressor)
    return isinstance(classifier, LINEAR)
