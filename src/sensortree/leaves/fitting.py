"""Leaf classifiers (f_k): one per distinct sensor subset, shared by equal leaves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

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

from sensortree.exceptions import ParameterError
from sensortree.leaves.boosting import BoostedEngine, BoostedTrees
from sensortree.leaves.engine import LogisticEngine, Solution
from sensortree.leaves.folds import halves_of
from sensortree.leaves.logistic import (
    LinearLogisticRegression,
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
)
from sensortree.leaves.weighting import weight_parameters
from sensortree.policy.classifiers import posterior
from sensortree.threads import one_thread
from sensortree.types import Array, Mask, Rows

# How often a batch of fits is handed to a cluster that loses workers.
MAX_ATTEMPTS = 3
# A screen's copy of an ensemble has this many trees of this many leaves at most, and is
# fitted on this many rows; other classifiers on fewer rows.
SCREEN_TREES, SCREEN_LEAVES, SCREEN_ROWS_LIGHT = 30, 31, 6_000
SCREEN_ROWS = 2_000

Subset = frozenset[str]
Engine = LogisticEngine | BoostedEngine | RidgeEngine | HeldOutEngine


class Undecided(ClassifierMixin, BaseEstimator):
    """What "auto" stands for until rows are seen: leaves of some kind are not enough.

    Whatever it will be, it gives probabilities, and where NaN comes it takes NaN.
    """

    def fit(self, X: Any, y: Any) -> Undecided:
        """Raise: a kind is chosen first."""
        raise NotImplementedError

    predict = predict_proba = fit

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


CLASSIFIERS: dict[str, Any] = {
    "auto": Undecided(),
    "linear": LinearLogisticRegression(),
    "logistic2": QuadraticLogisticRegression(),
    "boosted": BoostedTrees(),
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
    if isinstance(classifier, str):
        if classifier not in CLASSIFIERS:
            raise ParameterError(
                f"classifier must be a scikit-learn classifier or one of "
                f"{', '.join(map(repr, CLASSIFIERS))}, got {classifier!r}."
            )
        classifier = CLASSIFIERS[classifier]
    elif isinstance(classifier, type):
        raise ParameterError(
            f"classifier must be an instance, got the class {classifier.__name__}; write "
            f"{classifier.__name__}()."
        )
    elif not hasattr(classifier, "fit") or not hasattr(classifier, "predict"):
        raise ParameterError(
            f"classifier must be a scikit-learn classifier with 'fit' and 'predict', got "
            f"{classifier!r}."
        )
    if calibration is None:
        return classifier
    return CalibratedClassifierCV(classifier, method=calibration, ensemble=False)


class UndecidedNumbers(LeafRegressor):
    """What "auto" stands for until rows are seen, of numbers."""

    def engine(self, y: Any, weight: Any, fold: Any) -> Any:
        """Raise: a kind is chosen first."""
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


REGRESSORS: dict[str, type[LeafRegressor]] = {
    "auto": UndecidedNumbers,
    "linear": RidgeRegression,
    "quadratic": QuadraticRidgeRegression,
    "boosted": BoostedRegression,
}


def resolve_regressor(regressor: Any, quantile: float | None) -> LeafRegressor:
    """Give the leaf regressor that a name or an estimator stands for.

    Parameters
    ----------
    regressor : str or scikit-learn regressor
    quantile : float or None
        Which value it answers with; None is the mean.
    """
    if isinstance(regressor, str):
        if regressor not in REGRESSORS:
            raise ParameterError(
                f"regressor must be a scikit-learn regressor or one of "
                f"{', '.join(map(repr, REGRESSORS))}, got {regressor!r}."
            )
        return REGRESSORS[regressor](quantile)
    if isinstance(regressor, LeafRegressor):  # a kind that was chosen
        return regressor
    if isinstance(regressor, type):
        raise ParameterError(
            f"regressor must be an instance, got the class {regressor.__name__}; write "
            f"{regressor.__name__}()."
        )
    if not hasattr(regressor, "fit") or not hasattr(regressor, "predict"):
        raise ParameterError(
            f"regressor must be a scikit-learn regressor with 'fit' and 'predict', got "
            f"{regressor!r}."
        )
    return ForeignRegression(regressor, quantile)


def accepts_nan(classifier: Any) -> bool:
    """Whether a classifier says that it can be fitted on NaN."""
    return bool(get_tags(classifier).input_tags.allow_nan)


def fit_leaf_classifiers(
    classifier: Any,
    features: Mapping[Subset, Array],
    y: NDArray[np.intp],
    sample_weight: Array | None,
    n_jobs: int | None = None,
) -> dict[Subset, Any]:
    """Fit one classifier per sensor subset, on all rows.

    Parameters
    ----------
    classifier : scikit-learn classifier
    features : mapping of subset to ndarray of shape (n_samples, width)
    y : ndarray of shape (n_samples,)
        Classes as integers.
    sample_weight : ndarray of shape (n_samples,) or None
    n_jobs : int, default=None
        As in joblib.
    """
    tasks = [(classifier, X, y, sample_weight) for X in features.values()]
    return dict(zip(features, _in_parallel(_fit_one, n_jobs, tasks), strict=True))


def judge_leaf_classifiers(
    classifier: Any,
    features: Mapping[Subset, Array],
    y: NDArray[np.intp],
    n_classes: int,
    sample_weight: Array | None,
    fold: NDArray[np.intp],
    n_jobs: int | None = None,
    taught: Mask | None = None,
) -> dict[Subset, Array]:
    """Posterior of each subset's classifier on rows that it has not seen.

    Parameters
    ----------
    classifier, features, y, sample_weight, n_jobs
        As in `fit_leaf_classifiers`.
    n_classes : int
    fold : ndarray of shape (n_samples,)
        A row's posterior is that of a classifier fitted without the row's fold; -1 stands
        for a classifier fitted on all rows.
    taught : ndarray of bool of shape (n_samples,), default=None
        Rows that are learned from; None for all.

    Returns
    -------
    posteriors : dict of subset to ndarray of shape (n_samples, n_classes)
    """
    taught = np.ones(len(y), dtype=bool) if taught is None else taught
    # With nothing known there is nothing to overfit, and the prior is the same for all.
    folds = {
        subset: fold if X.shape[1] else np.full(len(y), -1)
        for subset, X in features.items()
    }
    tasks = [(s, held_out) for s, own in folds.items() for held_out in np.unique(own)]
    judged = _in_parallel(
        _fit_and_judge,
        n_jobs,
        [
            (
                classifier,
                features[subset],
                y,
                n_classes,
                sample_weight,
                taught & ((folds[subset] != held_out) | (held_out == -1)),
                folds[subset] == held_out,
            )
            for subset, held_out in tasks
        ],
    )
    posteriors = {subset: np.empty((len(y), n_classes)) for subset in features}
    for (subset, held_out), said in zip(tasks, judged, strict=True):
        posteriors[subset][folds[subset] == held_out] = said
    return posteriors


def engine_of(
    classifier: Any,
    y: NDArray[Any],
    n_classes: int,
    sample_weight: Array | None,
    fold: NDArray[np.intp] | None = None,
) -> Engine | None:
    """What fits all folds of a subset as one job; None for classifiers of other kinds."""
    if isinstance(classifier, RidgeLogisticRegression):
        C, degree = classifier.C, classifier._degree
        return LogisticEngine(y, n_classes, sample_weight, fold, C, degree)
    if isinstance(classifier, BoostedTrees):
        return BoostedEngine(y, n_classes, sample_weight, fold, classifier.size)
    if isinstance(classifier, LeafRegressor):
        return classifier.engine(y, sample_weight, fold)
    return None


def judge_by_engine(
    engine: Engine,
    features: Mapping[Subset, Any],
    n_jobs: int | None = None,
) -> dict[Subset, tuple[Array, Any]]:
    """Posterior of each subset's classifier on rows it has not seen, and how it was made.

    All folds of a subset are one task, with one penalty or number of rounds: this, or a
    fit to all rows, is where `fit_by_engine` sets out from. Features are as there.
    """
    tasks = [(X,) for X in features.values()]
    judged = _in_parallel(engine.judge, n_jobs, tasks)
    return dict(zip(features, judged, strict=True))


def judge_folds_by_engine(
    engine: LogisticEngine, features: Mapping[Subset, Array], n_jobs: int | None = None
) -> dict[Subset, dict[int, tuple[Array, Solution]]]:
    """What `judge_by_engine` gives on the rows outside each fold, for all at once."""
    tasks = [(X,) for X in features.values()]
    judged = _in_parallel(engine.judge_without_each, n_jobs, tasks)
    return dict(zip(features, judged, strict=True))


def fit_by_engine(
    engine: Engine,
    features: Mapping[Subset, Any],
    starts: Mapping[Subset, Any],
    n_jobs: int | None = None,
) -> dict[Subset, Any]:
    """Fit one classifier per sensor subset, on all rows, from where judging left it.

    Parameters
    ----------
    engine : Engine
    features : mapping of subset to ndarray of shape (n_samples, width)
        Or, for a BoostedEngine, to Coded.
    starts : mapping of subset to what judging found
        Of some of the subsets, or of none.
    n_jobs : int, default=None
        As in joblib.
    """
    tasks = [(X, starts.get(subset)) for subset, X in features.items()]
    fitted = _in_parallel(engine.fit, n_jobs, tasks)
    return {
        s: each.scorer if isinstance(each, Solution) else each
        for s, each in zip(features, fitted, strict=True)
    }


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

    Parameters
    ----------
    classifier, features, y, n_classes, fold, sample_weight, n_jobs
        As in `judge_leaf_classifiers`.

    Returns
    -------
    posteriors : dict of subset to ndarray of shape (n_samples, n_classes)
    """
    light, n_rows = _lighter(classifier)
    rng = np.random.default_rng(1)
    half_of = halves_of(fold, rng)
    order = rng.permutation(len(y))
    halves = [order[half_of[order] == half] for half in (0, 1)]
    tasks = [(subset, half) for subset in features for half in (0, 1)]
    said = _in_parallel(
        _fit_and_judge,
        n_jobs,
        [
            (
                light,
                features[subset],
                y,
                n_classes,
                sample_weight,
                np.sort(halves[1 - half][:n_rows]),
                halves[half],
            )
            for subset, half in tasks
        ],
    )
    posteriors = {subset: np.empty((len(y), n_classes)) for subset in features}
    for (subset, half), answered in zip(tasks, said, strict=True):
        posteriors[subset][halves[half]] = answered
    return posteriors


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


def _in_parallel(
    function: Callable[..., Any], n_jobs: int | None, tasks: list[tuple[Any, ...]]
) -> list[Any]:
    """Call through joblib; a cluster that lost a worker and its data is asked again."""
    alone = partial(_on_one_thread, function)
    for attempt in range(MAX_ATTEMPTS):
        try:
            return list(Parallel(n_jobs=n_jobs)(delayed(alone)(*t) for t in tasks))
        except Exception as error:
            lost = type(error).__module__.partition(".")[0] == "distributed"
            if not lost or attempt == MAX_ATTEMPTS - 1:
                raise
    raise AssertionError("the last attempt returns or raises")


@one_thread()
def _on_one_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function, perhaps in a process of joblib's, with one thread inside."""
    return function(*arguments)


def _fit_and_judge(
    classifier: Any,
    X: Array,
    y: NDArray[np.intp],
    n_classes: int,
    sample_weight: Array | None,
    train: NDArray[Any],
    judged: NDArray[Any],
) -> Array:
    """Posterior of some rows by a classifier that is fitted on others."""
    weight = None if sample_weight is None else sample_weight[train]
    fitted = _fit_one(classifier, X[train], y[train], weight)
    return posterior(fitted, X[judged], n_classes)


def is_linear(classifier: Any) -> bool:
    """Whether least squares on a polynomial basis is a fair stand-in for a classifier."""
    if isinstance(classifier, Pipeline):
        return is_linear(classifier.steps[-1][1])
    if isinstance(classifier, CalibratedClassifierCV):
        return is_linear(classifier.estimator)
    if isinstance(classifier, ForeignRegression):
        return is_linear(classifier.regressor)
    return isinstance(classifier, LINEAR)


def _fit_one(
    classifier: Any, X: Array, y: NDArray[Any], sample_weight: Array | None
) -> Any:
    if isinstance(classifier, LeafRegressor):  # which knows what to do with nothing
        return clone(classifier).fit(X, y, sample_weight).scorer_
    if X.shape[1] == 0:  # nothing is known: predict the class prior
        return DummyClassifier(strategy="prior").fit(X, y, sample_weight)
    if (y == y[0]).all():  # without this fold there is only one class
        return DummyClassifier(strategy="prior").fit(X, y, sample_weight)
    return clone(classifier).fit(X, y, **weight_parameters(classifier, sample_weight))
