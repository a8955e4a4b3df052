"""`PolicyPredictor`: what every fitted sensor tree answers about rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import estimator_html_repr
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from sensortree.leaves.regressors import LeafRegressor
from sensortree.policy.policy import Policy
from sensortree.reports.interface import PolicyAnswers
from sensortree.sensors.market import check_price_array
from sensortree.sensors.reader import float_table
from sensortree.sensors.table import Table, typed_table


def _leaves_have_probabilities(model: PolicyPredictor) -> bool:
    return hasattr(model._leaf_classifier(), "predict_proba")


def _leaves_say_numbers(model: PolicyPredictor) -> bool:
    return isinstance(model._leaf_classifier(), LeafRegressor)


class PolicyPredictor(PolicyAnswers):
    """Methods that ask the fitted policy, after X was checked."""

    policy_: Policy

    def _leaf_classifier(self) -> Any:
        """The classifier that leaves are fitted with."""
        raise NotImplementedError  # the estimator's

    @property
    def _policy(self) -> Policy:
        check_is_fitted(self)
        policy: Policy = self.policy_
        return policy

    def _table(self, X: Any, prices: ArrayLike | None) -> Table:
        """Check X at prediction: the same columns as in training, and prices."""
        reader, table = self._policy.reader, typed_table(X)
        typed = table is not None and (
            table.is_frame
            or table.data.dtype.kind in "OUST"
            or bool(reader.transformers and Table.holds(X))
        )
        if table is not None and typed:
            validate_data(self, table.data, reset=False, skip_check_array=True)
            if not reader.transformers:
                table = float_table(table, reader.sensors)
        else:
            table = Table(
                validate_data(
                    self, X, reset=False, dtype=np.float64, ensure_all_finite=False
                )
            )
        if prices is None:
            return table
        own = check_price_array(prices, table.shape[0], reader.sensors)
        return replace(table, prices=own)

    def _html_repr(self) -> str:
        """What notebooks show: scikit-learn's diagram, and below it the fitted tree."""
        html: str = estimator_html_repr(self)
        return self._with_tree(html) if hasattr(self, "policy_") else html

    predict_proba = available_if(_leaves_have_probabilities)(
        PolicyAnswers.predict_proba
    )
    predict_spread = available_if(_leaves_say_numbers)(PolicyAnswers.predict_spread)
