"""`PolicyPredictor`: what every fitted sensor tree answers about rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from sensortree.leaves import resolve_classifier
from sensortree.policy import Policy
from sensortree.table import Table

Array = NDArray[np.float64]


def _leaves_have_probabilities(model: PolicyPredictor) -> bool:
    classifier = resolve_classifier(model.classifier, model.calibration)
    return hasattr(classifier, "predict_proba")


class PolicyPredictor:
    """Methods that ask the fitted policy, after X was checked."""

    classifier: Any
    calibration: str | None
    policy_: Policy

    @property
    def _policy(self) -> Policy:
        check_is_fitted(self)
        policy: Policy = self.policy_
        return policy

    def _table(self, X: Any) -> Table:
        """Check X at prediction: the same columns as in training."""
        if self._policy.reader.transformers and Table.holds(X):
            validate_data(self, X, reset=False, skip_check_array=True)
            return Table(X)
        X = validate_data(
            self, X, reset=False, dtype=np.float64, ensure_all_finite=False
        )
        return Table(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """Class of each row, answered with the sensors it acquires.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Columns of sensors that a row does not acquire are not looked at.

        Returns
        -------
        y : ndarray of shape (n_samples,)
        """
        return self._policy.predict(self._table(X))

    @available_if(_leaves_have_probabilities)
    def predict_proba(self, X: Any) -> Array:
        """Class probabilities of each row, from the leaf it reaches.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
        """
        return self._policy.predict_proba(self._table(X))

    def apply(self, X: Any) -> NDArray[np.intp]:
        """Index of the leaf each row reaches.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)

        Returns
        -------
        leaf : ndarray of shape (n_samples,)
            Leaves are numbered as in ``tree_.leaves``.
        """
        return self._policy.apply(self._table(X))

    def acquired(self, X: Any) -> NDArray[np.bool_]:
        """Which sensors each row acquires.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)

        Returns
        -------
        acquired : ndarray of bool of shape (n_samples, n_sensors)
            Sensors are ordered as in ``sensors_.names``.
        """
        return self._policy.acquired(self._table(X))

    def acquisition_cost(self, X: Any) -> Array:
        """Price of the sensors each row acquires.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)

        Returns
        -------
        cost : ndarray of shape (n_samples,)
        """
        return self._policy.acquisition_cost(self._table(X))
