"""Leaf classifiers (f_k): one per distinct sensor subset, shared by equal leaves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
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
from sklearn.utils.validation import (
    check_is_fitted,
    has_fit_parameter,
    validate_data,
)

from sensortree.exceptions import DataError, ParameterError

Array = NDArray[np.float64]
# Coefficients up to which a logistic regression is fitted by Newton's method; rows for
# each of them from which its penalty no longer matters; powers of 3 that C may be.
NEWTON = 600
ENOUGH = 20
POWERS = range(-5, 2)
# How often a batch of fits is handed to a cluster that loses workers.
MAX_ATTEMPTS = 3

Subset = frozenset[str]


class QuadraticLogisticRegression(ClassifierMixin, BaseEstimator):
    """Logistic regression on the degree-2 polynomial basis: the paper's leaf classifier.

    Columns are standardised, then every square and product of two is added.

    Parameters
    ----------
    C : "evidence" or float, default="evidence"
        Inverse strength of the ridge penalty, as in scikit-learn's LogisticRegression.
        "evidence" climbs from 1, in steps of a factor of three, to the largest evidence
        of the data (Laplace's approximation, the penalty read as a Gaussian prior), while
        there are at most 600 coefficients and 20 rows for each; otherwise it is 1.

    Attributes
    ----------
    C_ : float
        The strength that was used.
    classes_ : ndarray of shape (n_classes,)
    center_, scale_ : ndarray of shape (n_features_in_,)
    logistic_ : LogisticRegression

    Examples
    --------
    A circle is not linear, but it is quadratic:

    >>> import numpy as np
    >>> from sensortree import QuadraticLogisticRegression
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = (X ** 2).sum(axis=1) > 1.5
    >>> QuadraticLogisticRegression().fit(X, y).score(X, y) > 0.95
    True
    """

    def __init__(self, C: float | str = "evidence"):
        self.C = C

    def fit(
        self, X: Any, y: Any, sample_weight: ArrayLike | None = None
    ) -> QuadraticLogisticRegression:
        """Fit to data.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        self
        """
        X, y = validate_data(self, X, y, dtype=np.float64)
        sample_weight = _check_weights(sample_weight, len(X))
        self.center_ = np.average(X, axis=0, weights=sample_weight)
        spread = np.average((X - self.center_) ** 2, axis=0, weights=sample_weight)
        self.scale_ = np.where(spread > 0, np.sqrt(spread), 1.0)
        basis = self._basis(X)
        n_classes = len(np.unique(y))
        n_coef = basis.shape[1] * (1 if n_classes == 2 else n_classes)
        n_rows = len(X) if sample_weight is None else sample_weight.sum()
        if self.C == "evidence" and n_coef <= NEWTON and n_rows <= ENOUGH * n_coef:
            self.logistic_ = _most_evident(basis, y, sample_weight)
        else:
            C = 1.0 if self.C == "evidence" else float(self.C)
            self.logistic_ = _logistic(C, n_coef).fit(basis, y, sample_weight)
        self.C_ = self.logistic_.C
        self.classes_ = self.logistic_.classes_
        return self

    def _basis(self, X: Array) -> Array:
        standardised = (X - self.center_) / self.scale_
        first, second = np.triu_indices(X.shape[1])
        return np.hstack(
            [standardised, standardised[:, first] * standardised[:, second]]
        )

    def decision_function(self, X: Any) -> Array:
        """Score of the positive class, or of every class if there are more than two."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return np.asarray(self.logistic_.decision_function(self._basis(X)))

    def predict_proba(self, X: Any) -> Array:
        """Probability of every class, (n_samples, n_classes)."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return np.asarray(self.logistic_.predict_proba(self._basis(X)))

    def predict(self, X: Any) -> NDArray[Any]:
        """Most probable class, (n_samples,)."""
        check_is_fitted(self)
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])


def _logistic(C: float, n_coef: int) -> LogisticRegression:
    """Newton's method is exact to rounding, and fast while its matrix is small."""
    if n_coef <= NEWTON:
        return LogisticRegression(C=C, solver="newton-cholesky", tol=1e-8, max_iter=100)
    return LogisticRegression(C=C, solver="lbfgs", tol=1e-5, max_iter=5000)


def _most_evident(
    basis: Array, y: NDArray[Any], sample_weight: Array | None
) -> LogisticRegression:
    """Logistic regression with the C of the largest evidence, by climbing from 1."""
    tried: dict[int, tuple[float, LogisticRegression]] = {}

    def evidence(power: int) -> float:
        if power not in tried:
            fitted = _logistic(3.0**power, 0).fit(basis, y, sample_weight)
            tried[power] = _log_evidence(fitted, basis, y, sample_weight), fitted
        return tried[power][0]

    best = 0
    for way in (-1, +1):
        while best + way in POWERS and evidence(best + way) > evidence(best):
            best += way
    return tried[best][1]


def _log_evidence(
    fitted: LogisticRegression,
    basis: Array,
    y: NDArray[Any],
    sample_weight: Array | None,
) -> float:
    """Laplace's approximation of the log-evidence of a ridge logistic regression.

    The penalty |θ|²/(2C) is a Gaussian prior of variance C. With h_i the eigenvalues of
    the Hessian of the loss at the optimum, the intercepts profiled out,

        log p(y | C) = -loss - |θ|²/(2C) - 1/2 sum_i log(1 + C h_i) + constant.
    """
    weight = np.ones(len(y)) if sample_weight is None else sample_weight
    said = fitted.predict_proba(basis)
    truth = said[np.arange(len(y)), np.searchsorted(fitted.classes_, y)]
    loss = -weight @ np.log(np.maximum(truth, np.finfo(float).tiny))
    extended = np.hstack([basis, np.ones((len(basis), 1))])
    # Two classes have one vector of coefficients, more have one each.
    used = range(1, 2) if said.shape[1] == 2 else range(said.shape[1])
    hessian = np.block(
        [
            [
                extended.T
                @ ((weight * said[:, a] * ((a == b) - said[:, b]))[:, None] * extended)
                for b in used
            ]
            for a in used
        ]
    )
    width = extended.shape[1]
    intercepts = np.arange(width - 1, len(hessian), width)
    slopes = np.delete(np.arange(len(hessian)), intercepts)
    crossed = hessian[np.ix_(slopes, intercepts)]
    inner = np.linalg.pinv(hessian[np.ix_(intercepts, intercepts)], hermitian=True)
    curvature = hessian[np.ix_(slopes, slopes)] - crossed @ inner @ crossed.T
    eigenvalues = np.maximum(np.linalg.eigvalsh(curvature), 0.0)
    prior = (fitted.coef_**2).sum() / (2 * fitted.C)
    return float(-loss - prior - 0.5 * np.log1p(fitted.C * eigenvalues).sum())


def _check_weights(sample_weight: ArrayLike | None, n_samples: int) -> Array | None:
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n_samples,):
        raise DataError(
            f"sample_weight has shape {weights.shape}, expected ({n_samples},); give one "
            f"weight per row."
        )
    if not weights.any():
        raise DataError("all sample weights are zero; give some row a weight.")
    return weights


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

    Returns
    -------
    posteriors : dict of subset to ndarray of shape (n_samples, n_classes)
    """
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
                (folds[subset] != held_out) | (held_out == -1),
                folds[subset] == held_out,
            )
            for subset, held_out in tasks
        ],
    )
    posteriors = {subset: np.empty((len(y), n_classes)) for subset in features}
    for (subset, held_out), said in zip(tasks, judged, strict=True):
        posteriors[subset][folds[subset] == held_out] = said
    return posteriors


def screen_leaf_classifiers(
    classifier: Any,
    features: Mapping[Subset, Array],
    y: NDArray[np.intp],
    n_classes: int,
    n_rows: int,
    n_jobs: int | None = None,
) -> dict[Subset, NDArray[np.bool_]]:
    """Where each subset's classifier is wrong if it is fitted on few rows.

    Rows are halved at random; each half is answered by a classifier that was fitted on
    the other, or on as many rows of it as the screen can afford.

    Parameters
    ----------
    classifier, features, y, n_classes, n_jobs
        As in `judge_leaf_classifiers`.
    n_rows : int

    Returns
    -------
    errors : dict of subset to ndarray of shape (n_samples,)
    """
    order = np.random.default_rng(1).permutation(len(y))
    halves = order[: len(y) // 2], order[len(y) // 2 :]
    tasks = [(subset, half) for subset in features for half in (0, 1)]
    said = _in_parallel(
        _fit_and_judge,
        n_jobs,
        [
            (
                classifier,
                features[subset],
                y,
                n_classes,
                None,
                np.sort(halves[1 - half][:n_rows]),
                halves[half],
            )
            for subset, half in tasks
        ],
    )
    errors = {subset: np.empty(len(y), dtype=bool) for subset in features}
    for (subset, half), posteriors in zip(tasks, said, strict=True):
        judged = halves[half]
        errors[subset][judged] = posteriors.argmax(axis=1) != y[judged]
    return errors


def _in_parallel(
    function: Callable[..., Any], n_jobs: int | None, tasks: list[tuple[Any, ...]]
) -> list[Any]:
    """Call through joblib; a cluster that lost a worker and its data is asked again."""
    for attempt in range(MAX_ATTEMPTS):
        try:
            return list(Parallel(n_jobs=n_jobs)(delayed(function)(*t) for t in tasks))
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
    train: NDArray[Any],
    judged: NDArray[Any],
) -> Array:
    """Posterior of some rows by a classifier that is fitted on others."""
    weight = None if sample_weight is None else sample_weight[train]
    fitted = _fit_one(classifier, X[train], y[train], weight)
    return posterior(fitted, X[judged], n_classes)


def posterior(classifier: Any, X: Array, n_classes: int) -> Array:
    """Probability of every class, (n_rows, n_classes); 0 or 1 if a classifier gives none.

    The answer is the most probable class, the first of equals.
    """
    said = np.zeros((len(X), n_classes))
    if not len(X):
        return said
    if hasattr(classifier, "predict_proba"):
        said[:, classifier.classes_] = classifier.predict_proba(X)
    else:
        said[np.arange(len(X)), np.asarray(classifier.predict(X))] = 1.0
    return said


def is_linear(classifier: Any) -> bool:
    """Whether least squares on a polynomial basis is a fair stand-in for a classifier."""
    if isinstance(classifier, Pipeline):
        return is_linear(classifier.steps[-1][1])
    if isinstance(classifier, CalibratedClassifierCV):
        return is_linear(classifier.estimator)
    return isinstance(classifier, LINEAR)


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
