"""Ridge logistic regressions, the penalty by evidence: linear, and the paper's leaf."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from sensortree.exceptions import DataError
from sensortree.leaves.engine import LogisticEngine
from sensortree.policy.classifiers import ConstantScorer, LogisticScorer
from sensortree.sensors.reader import LARGEST
from sensortree.threads import one_thread
from sensortree.types import Array


class RidgeLogisticRegression(ClassifierMixin, BaseEstimator):
    """Logistic regression on a polynomial basis of standardised columns."""

    _degree: ClassVar[int]

    def __init__(self, C: float | str = "evidence"):
        self.C = C

    @one_thread()
    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to data, with or without weights of the samples."""
        X, y = validate_data(self, X, y, dtype=np.float64)
        _check_sizes(X)
        sample_weight = _check_weights(sample_weight, len(X))
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise DataError(
                f"y has one class only, {self.classes_[0]!r}; give examples of two or more."
            )
        if sample_weight is not None:
            # A row of weight 0 is the same as no row.
            X, codes = X[sample_weight > 0], codes[sample_weight > 0]
            sample_weight = sample_weight[sample_weight > 0]
        engine = LogisticEngine(
            codes, len(self.classes_), sample_weight, C=self.C, degree=self._degree
        )
        solution = engine.fit(X)
        self.scorer_, self.C_ = solution.scorer, solution.C
        return self

    def to_scorer(self) -> LogisticScorer | ConstantScorer:
        """Give the fitted classifier as plain arrays."""
        check_is_fitted(self)
        return self.scorer_

    def decision_function(self, X: Any) -> Array:
        """Score of the positive class, or of every class if there are more than two."""
        X = self._read(X)
        assert isinstance(self.scorer_, LogisticScorer)  # there are two classes or more
        scores = self.scorer_.scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict_proba(self, X: Any) -> Array:
        """Probability of every class, (n_samples, n_classes)."""
        X = self._read(X)
        return self.scorer_.predict_proba(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """Most probable class, (n_samples,)."""
        likely = self.predict_proba(X)
        return np.asarray(self.classes_[likely.argmax(axis=1)])

    def _read(self, X: Any) -> Array:
        """Readings that the fitted classifier can be asked with."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        _check_sizes(X)
        return np.asarray(X)


class QuadraticLogisticRegression(RidgeLogisticRegression):
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
    scorer_ : LogisticScorer
        What was learned, as plain arrays.

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

    _degree = 2


class LinearLogisticRegression(RidgeLogisticRegression):
    """Logistic regression on standardised columns, its penalty as that of degree 2.

    Parameters
    ----------
    C : "evidence" or float, default="evidence"
        As in `QuadraticLogisticRegression`.
    """

    _degree = 1


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
