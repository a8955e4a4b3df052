"""`MyopicClassifier`: buy on while the answer is not sure, whatever it costs."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from sensortree.estimators.base import (
    BaseSensorTreeClassifier,
    Interval,
    StrOptions,
)
from sensortree.estimators.parameters import LeavesOfClasses, parameters
from sensortree.learning.fit import Fitted, fit_policy
from sensortree.learning.joint import Learned
from sensortree.learning.prepare import Prepared
from sensortree.program.risk import RoutingProblem
from sensortree.types import Array


@parameters
class MyopicClassifier(LeavesOfClasses, BaseSensorTreeClassifier):
    """Stop when the classifier is confident, else buy the next sensor.

    The baseline of the papers on sensor cascades. At each stage, the share `reject` of
    the training examples that come there, those whose classifier is least confident,
    buys the next sensor. The share is the same at all stages; prices and what later
    stages could do are not looked at. The papers define it for a cascade; so the
    cheapest sensor comes first here, or sensors come in a given order.

    Parameters
    ----------
    sensors, costs, risk, loss, class_weight, max_cost, root_sensors, \
            classifier, calibration, cv, n_jobs, unit
        As in `SensorTreeClassifier`, but leaves are judged on their training rows by
        default, as published.
    reject : float, default=0.5
        Share of the examples at a stage that buy the next sensor (ρ), from 0 to 1. The
        values that `fit_path` takes are of this parameter.
    confidence : {"largest", "margin"}, default="largest"
        The largest class probability, or its lead over the next.
    order : list of str, default=None
        Order in which sensors are bought; None: the cheapest first.

    Attributes
    ----------
    tree_, sensors_, classes_, policy_, n_features_in_, feature_names_in_
        As in `SensorTreeClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from sensortree import MyopicClassifier
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = X[:, 0] + (np.abs(X[:, 0]) < 0.5) * X[:, 1] > 0
    >>> model = MyopicClassifier(reject=0.4).fit(X, y)
    >>> float(model.acquisition_cost(X).mean())
    1.4
    """

    _traced_by: ClassVar[str] = "reject"

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaseSensorTreeClassifier._parameter_constraints,
        "reject": [Interval(Real, 0, 1, closed="both")],
        "confidence": [StrOptions({"largest", "margin"})],
    }

    reject: float = 0.5
    confidence: str = "largest"
    order: Sequence[str] | None = None
    root_sensors: Any = "auto"

    def _asked(self) -> dict[str, Any]:
        chain = "cascade" if self.order is None else self.order
        fixed = {"structure": chain, "decision_features": "posterior"}
        return {**super()._asked(), **fixed}

    def _learn(self, prepared: Prepared) -> Fitted:
        return fit_policy(prepared, self._settings(), self._by_confidence)

    def _by_confidence(
        self, problem: RoutingProblem, observed: RoutingProblem
    ) -> Learned:
        """Put each stage's threshold where the share `reject` lies below it."""
        # `Posterior` leaves out the first probability, and the lead for two classes.
        lead = int(self.confidence == "margin" and problem.n_classes > 2)
        column = problem.n_classes - 1 + lead
        coef, here = [], np.ones(len(problem.weight), dtype=bool)
        for features in problem.features:
            sure, weight = features[here, column], problem.weight[here]
            threshold = least_sure(sure, weight, float(self.reject))
            theta = np.zeros(features.shape[1])
            if np.isfinite(threshold):
                theta[column], theta[-1] = -1.0, threshold
            else:
                theta[-1] = np.sign(threshold)
            coef.append(theta)
            here = here & (features @ theta > 0)
        return Learned(coef)


def least_sure(confidence: Array, weight: Array, share: float) -> float:
    """Threshold below which lies a share of the weight, as nearly as ties allow.

    Halfway between two confidences; -inf or inf where one side is everything.

    Examples
    --------
    >>> import numpy as np
    >>> least_sure(np.array([0.5, 0.7, 0.9]), np.ones(3), 0.4)
    0.6
    """
    if not len(confidence):
        return float("-inf")
    values, group = np.unique(confidence, return_inverse=True)
    below = np.r_[0.0, np.cumsum(np.bincount(group, weight))] / weight.sum()
    cut = int(np.argmin(np.abs(below - share)))
    edges = np.r_[-np.inf, 0.5 * (values[1:] + values[:-1]), np.inf]
    return float(edges[cut])
