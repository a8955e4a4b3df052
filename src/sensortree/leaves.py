"""Leaf classifiers (f_k): one per distinct sensor subset, shared by equal leaves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import (
    LogisticRegression,
    LogisticRegressionCV,
    RidgeClassifier,
)
from sklearn.pipeline import Pipeline
from sklearn.svm import LinearSVC
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from sensortree.exceptions import ParameterError
from sensortree.logistic import QuadraticLogisticRegression
from sensortree.scorers import (
    BoostedScorer,
    ConstantScorer,
    LogisticScorer,
    posterior,
)

Array = NDArray[np.float64]
# How often a batch of fits is handed to a cluster that loses workers.
MAX_ATTEMPTS = 3

Subset = frozenset[str]


CLASSIFIERS: dict[str, Any] = {
    "logistic2": QuadraticLogisticRegression(),
    "boosted": HistGradientBoostingClassifier(early_stopping=False, random_state=0),
}
LINEAR = (
    QuadraticLogisticRegression,
    LogisticRegression,
    LogisticRegressionCV,
    RidgeClassifier,
    LinearSVC,
)
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


def accepts_nan(classifier: Any) -> bool:
    """Whether a classifier says that it can be fitted on NaN."""
    return bool(get_tags(classifier).input_tags.allow_nan)


def fit_leaf_classifiers(
    classifier: Any,
    features: Mapping[Subset, Array],
    y: NDArray[np.intp],
    n_classes: int,
    sample_weight: Array | None,
    fold: NDArray[np.intp],
    n_jobs: int | None = None,
) -> tuple[dict[Subset, Any], dict[Subset, Array]]:
    """Fit one classifier per sensor subset, and judge it on rows it has not seen.

    Parameters
    ----------
    classifier : scikit-learn classifier
    features : mapping of subset to ndarray of shape (n_samples, width)
    y : ndarray of shape (n_samples,)
        Classes as integers.
    n_classes : int
    sample_weight : ndarray of shape (n_samples,) or None
    fold : ndarray of shape (n_samples,)
        A row's posterior is that of a classifier fitted without the row's fold; -1 stands
        for the classifier fitted on all rows.
    n_jobs : int, default=None
        As in joblib.

    Returns
    -------
    classifiers : dict of subset to classifier fitted on all rows
    posteriors : dict of subset to ndarray of shape (n_samples, n_classes)
    """
    folds = np.unique(fold[fold >= 0])
    # With nothing known there is nothing to overfit, and the prior is the same for all.
    tasks = [(subset, -1) for subset in features]
    tasks += [(s, f) for s, X in features.items() for f in folds if X.shape[1]]

    results = _in_parallel(
        n_jobs,
        [
            (classifier, features[subset], y, n_classes, sample_weight, fold, held_out)
            for subset, held_out in tasks
        ],
    )
    classifiers, posteriors = {}, {}
    for (subset, held_out), (fitted, said) in zip(tasks, results, strict=True):
        if held_out == -1:
            classifiers[subset] = fitted
            posteriors[subset] = np.empty((len(y), n_classes))
        rows = (fold == held_out) | (features[subset].shape[1] == 0)
        posteriors[subset][rows] = said
    return classifiers, posteriors


def _in_parallel(
    n_jobs: int | None, tasks: list[tuple[Any, ...]]
) -> list[tuple[Any, Array]]:
    """Fit through joblib; a cluster that lost a worker and its data is asked again."""
    for attempt in range(MAX_ATTEMPTS):
        try:
            return list(
                Parallel(n_jobs=n_jobs)(delayed(_fit_and_judge)(*t) for t in tasks)
            )
        except Exception as error:
            lost = type(error).__module__.partition(".")[0] == "distributed"
            if not lost or attempt == MAX_ATTEMPTS - 1:
                raise
    raise AssertionError("the last attempt returns or raises")


def _fit_and_judge(
    classifier: Any,
    X: Array,
    y: NDArray[np.intp],
    n_classes: int,
    sample_weight: Array | None,
    fold: NDArray[np.intp],
    held_out: int,
) -> tuple[Any, Array]:
    """Fit without a fold, -1 for none; the posterior is of the rows of that fold."""
    train = (fold != held_out) | (held_out == -1)
    judged = (fold == held_out) | (X.shape[1] == 0)
    weight = None if sample_weight is None else sample_weight[train]
    fitted = _fit_one(classifier, X[train], y[train], weight)
    said = posterior(fitted, X[judged], n_classes)
    return (fitted if held_out == -1 else None), said


def is_linear(classifier: Any) -> bool:
    """Whether least squares on a polynomial basis is a fair stand-in for a classifier."""
    if isinstance(classifier, Pipeline):
        return is_linear(classifier.steps[-1][1])
    if isinstance(classifier, CalibratedClassifierCV):
        return is_linear(classifier.estimator)
    return isinstance(classifier, LINEAR)


def sample_posterior(
    classifier: Any,
    X: Array,
    y: NDArray[np.intp],
    n_classes: int,
    rows: NDArray[np.intp],
) -> Array:
    """Posterior of a classifier that is fitted on some rows, (n_samples, n_classes)."""
    fitted = _fit_one(classifier, X[rows], y[rows], None)
    return posterior(fitted, X, n_classes)


def trusted_posterior(
    posteriors: Mapping[Subset, Array], y: NDArray[np.intp], sample_weight: Array
) -> Array | None:
    """Posterior of the least log-loss, the first of equals; None if the prior beats it.

    Parameters
    ----------
    posteriors : mapping of subset to ndarray of shape (n_samples, n_classes)
        Out of fold, or their log-loss flatters those who have seen the rows.
    y : ndarray of shape (n_samples,)
    sample_weight : ndarray of shape (n_samples,)
    """
    rows = np.arange(len(y))
    weight = sample_weight / sample_weight.sum()

    def log_loss(belief: Array) -> float:
        with np.errstate(divide="ignore"):
            return float(-weight @ np.log(belief[rows, y]))

    prior = np.bincount(y, sample_weight) / sample_weight.sum()
    best = min(posteriors.values(), key=log_loss)
    beats_prior = log_loss(best) < -weight @ np.log(prior[y])
    return best if beats_prior else None


def _fit_one(
    classifier: Any, X: Array, y: NDArray[np.intp], sample_weight: Array | None
) -> Any:
    if X.shape[1] == 0:  # nothing is known: predict the class prior
        return DummyClassifier(strategy="prior").fit(X, y, sample_weight)
    if (y == y[0]).all():  # without this fold there is only one class
        return DummyClassifier(strategy="prior").fit(X, y, sample_weight)
    return clone(classifier).fit(X, y, **_weight_parameters(classifier, sample_weight))


def _weight_parameters(classifier: Any, sample_weight: Array | None) -> dict[str, Any]:
    """Say how a classifier, or the steps of a pipeline, take sample weights."""
    if sample_weight is None:
        return {}
    if isinstance(classifier, Pipeline):
        takers = [
            name
            for name, step in classifier.steps
            if step != "passthrough" and has_fit_parameter(step, "sample_weight")
        ]
        if classifier.steps[-1][0] in takers:
            return {f"{name}__sample_weight": sample_weight for name in takers}
    elif has_fit_parameter(classifier, "sample_weight"):
        return {"sample_weight": sample_weight}
    raise ParameterError(
        f"{classifier!r} cannot be fitted with sample weights; use a classifier that can, "
        f"or fit without weights."
    )


def compile_classifier(classifier: Any) -> Any:
    """Give a fitted classifier as plain arrays; one of another kind as it is."""
    if isinstance(classifier, DummyClassifier):
        return ConstantScorer(np.asarray(classifier.class_prior_, dtype=np.float64))
    if isinstance(classifier, QuadraticLogisticRegression):
        return classifier.to_scorer()
    if type(classifier) is LogisticRegression:
        width = classifier.coef_.shape[1]
        return LogisticScorer(
            np.zeros(width),
            np.ones(width),
            1,
            classifier.coef_.T,
            classifier.intercept_,
        )
    if type(classifier) is HistGradientBoostingClassifier:
        return _compile_boosted(classifier)
    return classifier


def _compile_boosted(classifier: HistGradientBoostingClassifier) -> Any:
    """Arrays of all trees one after another; as it is if some column is categorical."""
    if classifier.is_categorical_ is not None and classifier.is_categorical_.any():
        return classifier
    rounds = [[tree.nodes for tree in trees] for trees in classifier._predictors]
    sizes = [len(nodes) for trees in rounds for nodes in trees]
    starts = np.cumsum([0, *sizes])[:-1]
    nodes = np.concatenate([nodes for trees in rounds for nodes in trees])
    offset, own = np.repeat(starts, sizes), np.arange(len(nodes))
    leaf = nodes["is_leaf"].astype(bool)
    return BoostedScorer(
        np.where(leaf, 0, nodes["feature_idx"]).astype(np.int32),
        np.where(leaf, own, nodes["left"] + offset).astype(np.int32),
        np.where(leaf, own, nodes["right"] + offset).astype(np.int32),
        np.where(leaf, 0.0, nodes["num_threshold"]),
        np.where(leaf, nodes["value"], 0.0),
        nodes["missing_go_to_left"].astype(bool) & ~leaf,
        starts.reshape(len(rounds), -1).astype(np.int32),
        np.asarray(classifier._baseline_prediction, dtype=np.float64).ravel(),
        classifier,
    )
