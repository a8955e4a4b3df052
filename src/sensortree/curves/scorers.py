"""Scorers that know prices, for `GridSearchCV` and `cross_validate`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from numbers import Real
from typing import Any

import numpy as np

from sensortree.exceptions import ParameterError
from sensortree.reports.report_sums import losses_of

Scorer = Callable[..., float]


def acquisition_cost_scorer(
    model: Any, X: Any, y: Any = None, sample_weight: Any = None
) -> float:
    """Mean price of what a fitted model buys, as a negative number: greater is better.

    Alone it makes a search buy nothing; take it as one of several in ``scoring``.

    Parameters
    ----------
    model : fitted classifier of this package
    X : array-like or data frame of shape (n_samples, n_features)
    y : ignored
    sample_weight : array-like of shape (n_samples,), default=None

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import cross_validate
    >>> from sensortree import SensorTreeClassifier, acquisition_cost_scorer
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> scoring = {"accuracy": "accuracy", "cost": acquisition_cost_scorer}
    >>> model = SensorTreeClassifier(cost_weight=5)
    >>> found = cross_validate(model, X, X[:, 0] > 0, scoring=scoring, cv=2)
    >>> (-found["test_cost"]).tolist()
    [0.0, 0.0]
    """
    return -float(np.average(model.acquisition_cost(X), weights=sample_weight))


def cost_adjusted_scorer(cost_weight: float) -> Scorer:
    """Scorer by the risk at one cost weight, as a negative number: greater is better.

    The risk is the error (or the mean of whatever else the model minimises) and the
    weighted mean cost together. The weight is that of the scorer, whatever cost weights a
    search tries: it says what a unit of cost is worth to you.

    Parameters
    ----------
    cost_weight : float
        Error that one unit of cost is worth.

    Returns
    -------
    scorer : callable
        To be called with a fitted model, X and y, as ``scoring`` wants it.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sensortree import SensorTreeClassifier, cost_adjusted_scorer
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> search = GridSearchCV(
    ...     SensorTreeClassifier(), {"cost_weight": [5, 0.01]}, cv=2,
    ...     scoring=cost_adjusted_scorer(0.05))
    >>> search.fit(X, X[:, 0] > 0).best_params_
    {'cost_weight': 0.01}
    """
    if not isinstance(cost_weight, Real) or not 0 <= float(cost_weight) < np.inf:
        raise ParameterError(
            f"cost_weight must be a number that is at least 0, got {cost_weight!r}."
        )
    return partial(_negative_risk, float(cost_weight))


def _negative_risk(
    cost_weight: float, model: Any, X: Any, y: Any, sample_weight: Any = None
) -> float:
    cost = -acquisition_cost_scorer(model, X, y, sample_weight)
    loss = np.average(_losses(model, X, y), weights=sample_weight)
    return -(float(loss) + cost_weight * cost)


def _losses(model: Any, X: Any, y: Any) -> Any:
    """Loss of each row; a class that the model has not seen costs the most there is."""
    if model.policy_.loss.numbers:
        return model.policy_.loss.of(np.asarray(y, dtype=float), model.predict(X))
    y, loss, classes = np.asarray(y), model.policy_.loss, model.classes_
    true = np.searchsorted(classes, y).clip(max=len(classes) - 1)
    table = model._table(X, None)
    referred, likely = model.referred(X), model.policy_.outputs(table)
    own = losses_of(model.policy_, table, true, referred, likely)
    return np.where(classes[true] == y, own, loss.largest)
