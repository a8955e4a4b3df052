"""`QuadraticLogisticRegression`: the paper's leaf classifier, its penalty by evidence."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted, validate_data

from sensortree.exceptions import DataError
from sensortree.leaves.standardising import usable_scale
from sensortree.policy.classifiers import LogisticScorer
from sensortree.sensors.reader import LARGEST
from sensortree.types import Array

# Coefficients up to which a logistic regression is fitted by Newton's method; rows for
# each of them from which its penalty no longer matters; powers of 3 that C may be.
NEWTON = 600
ENOUGH = 20
POWERS = range(-5, 2)


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
        _check_sizes(X)
        sample_weight = _check_weights(sample_weight, len(X))
        self.center_ = np.average(X, axis=0, weights=sample_weight)
        spread = np.average((X - self.center_) ** 2, axis=0, weights=sample_weight)
        self.scale_ = usable_scale(self.center_, np.sqrt(spread))
        basis = self._scorer().basis(X)
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

    def _scorer(self) -> LogisticScorer:
        """What was learned so far, as plain arrays."""
        fitted = getattr(self, "logistic_", None)
        coef = np.empty((0, 0)) if fitted is None else fitted.coef_.T
        intercept = np.empty(0) if fitted is None else fitted.intercept_
        return LogisticScorer(self.center_, self.scale_, 2, coef, intercept)

    def to_scorer(self) -> LogisticScorer:
        """Give the fitted classifier as plain arrays."""
        check_is_fitted(self)
        return self._scorer()

    def decision_function(self, X: Any) -> Array:
        """Score of the positive class, or of every class if there are more than two."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        _check_sizes(X)
        scores = self._scorer().scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict_proba(self, X: Any) -> Array:
        """Probability of every class, (n_samples, n_classes)."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        _check_sizes(X)
        return self._scorer().predict_proba(X)

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
    """Logistic regression with the C of the largest evidence, by climbing from 1.

    Each fit sets out from the last: the optimum is the same, and near.
    """
    tried: dict[int, tuple[float, LogisticRegression]] = {}
    climber = _logistic(1.0, 0).set_params(warm_start=True)

    def evidence(power: int) -> float:
        if power not in tried:
            climber.set_params(C=3.0**power).fit(basis, y, sample_weight)
            fitted = copy(climber).set_params(warm_start=False)
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
    parts = {
        (a, b): extended.T
        @ ((weight * said[:, a] * ((a == b) - said[:, b]))[:, None] * extended)
        for a in used
        for b in used
        if a <= b
    }
    hessian = np.block([[parts[min(a, b), max(a, b)] for b in used] for a in used])
    width = extended.shape[1]
    intercepts = np.arange(width - 1, len(hessian), width)
    slopes = np.delete(np.arange(len(hessian)), intercepts)
    crossed = hessian[np.ix_(slopes, intercepts)]
    inner = np.linalg.pinv(hessian[np.ix_(intercepts, intercepts)], hermitian=True)
    curvature = hessian[np.ix_(slopes, slopes)] - crossed @ inner @ crossed.T
    eigenvalues = np.maximum(np.linalg.eigvalsh(curvature), 0.0)
    prior = (fitted.coef_**2).sum() / (2 * fitted.C)
    return float(-loss - prior - 0.5 * np.log1p(fitted.C * eigenvalues).sum())


def _check_sizes(X: Array) -> None:
    """Refuse what cannot be squared."""
    large = np.argwhere(np.abs(X) > LARGEST)
    if large.size:
        row, column = large[0]
        raise DataError(
            f"{X[row, column]:g} in row {row}, column {column}; a reading is at most "
            f"{LARGEST:g} in size; replace it by the right number."
        )


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
