"""`MaskedPolicy`: a policy that is asked with masked arrays, one action per row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sensortree.exceptions import DataError
from sensortree.policy.batch import Walk, send
from sensortree.policy.policy import Policy
from sensortree.sensors.reader import table_as_fitted
from sensortree.sensors.table import Table
from sensortree.types import Array, Mask, Rows


@dataclass(frozen=True)
class MaskedPolicy:
    """A policy in the form that benchmarks of feature acquisition ask for.

    A row is described by what is known of it. `act` says what to acquire next, `predict`
    what to answer now; whoever asks unmasks what was acquired, until the action is 0.
    Rows then end with the answers, leaves and costs of ``policy.predict`` and the like.

    Parameters
    ----------
    policy : Policy
        Such as ``model.policy_``.

    Examples
    --------
    >>> import numpy as np
    >>> from sensortree import SensorTreeClassifier
    >>> from sensortree.results import MaskedPolicy
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = X[:, 0] + (np.abs(X[:, 0]) < 0.5) * X[:, 1] > 0
    >>> model = SensorTreeClassifier(
    ...     {"cheap": [0], "dear": [1]}, costs={"cheap": 1, "dear": 5}, cost_weight=0.02)
    >>> masked = MaskedPolicy(model.fit(X, y).policy_)
    >>> rows = np.array([[3.0, 0.0], [0.1, 0.0]])
    >>> mask = np.zeros((2, 2), dtype=bool)
    >>> while (action := masked.act(rows, mask)).any():
    ...     print(action)
    ...     asks = np.flatnonzero(action)
    ...     mask[asks, action[asks] - 1] = True
    [1 1]
    [0 2]
    >>> masked.predict(rows, mask).argmax(axis=1)
    array([1, 1])
    """

    policy: Policy

    def act(
        self, X: Any, mask: ArrayLike, prices: ArrayLike | None = None
    ) -> NDArray[np.intp]:
        """What each row should acquire next.

        Parameters
        ----------
        X : ndarray or data frame of shape (n_rows, n_features)
            Columns of unknown sensors may hold anything; columns that hold prices are
            always known.
        mask : array-like of bool of shape (n_rows, n_sensors) or (n_rows, n_features)
            What is known, by sensor or by column; a sensor is known if all its columns
            are. Where there are as many sensors as columns, it is by sensor.
        prices : array-like of shape (n_rows, n_sensors), default=None
            Prices of each row, if the policy was fitted with such.

        Returns
        -------
        action : ndarray of int of shape (n_rows,)
            0: stop and answer; i: acquire the i-th sensor of ``policy.sensors.names``,
            counted from 1.
        """
        table, known = self._rows(X, mask, prices)
        return next_sensors(send(self.policy, table, known), known)

    def predict(
        self, X: Any, mask: ArrayLike, prices: ArrayLike | None = None
    ) -> Array:
        """Class probabilities with what is known where each row stands.

        Parameters
        ----------
        X : ndarray or data frame of shape (n_rows, n_features)
        mask : array-like of bool of shape (n_rows, n_sensors) or (n_rows, n_features)
        prices : array-like of shape (n_rows, n_sensors), default=None

        Returns
        -------
        probabilities : ndarray of shape (n_rows, n_classes)
            By the classifier of the last vertex that the row has come to; what it knows
            beyond that vertex is not used.
        """
        return send(self.policy, *self._rows(X, mask, prices)).posterior()

    def _rows(
        self, X: Any, mask: ArrayLike, prices: ArrayLike | None
    ) -> tuple[Table, Mask]:
        """Check X, and bring the mask to (n_rows, n_sensors)."""
        sensors = self.policy.sensors
        given = table_as_fitted(X, prices, sensors)
        n_rows, width = given.shape
        known = np.asarray(mask)
        if known.dtype != bool:
            raise DataError(
                f"mask must hold True where something is known, got {known.dtype}; write "
                f"mask.astype(bool)."
            )
        if known.shape == (n_rows, len(sensors)):
            return given, known
        if known.shape == (n_rows, width):
            columns = [known[:, list(c)].all(axis=1) for c in sensors.columns]
            return given, np.stack(columns, axis=1)
        raise DataError(
            f"mask has shape {known.shape}, expected ({n_rows}, {len(sensors)}), a column "
            f"for each sensor, or ({n_rows}, {width}), one for each column of X."
        )


def next_sensors(walk: Walk, known: Mask) -> Rows:
    """What rows acquire next where they stand, counted from 1; 0 for nothing."""
    policy, action = walk.policy, np.zeros(len(known), dtype=np.intp)
    for place in np.unique(walk.ahead[walk.ahead != walk.place]):
        rows = np.flatnonzero((walk.ahead == place) & (walk.place != place))
        for subset in policy.paths[place]:
            lacks = policy.sensors.mask(subset) & ~known[rows]
            asks = lacks.any(axis=1)
            for pattern in np.unique(lacks[asks], axis=0):
                asking = rows[(lacks == pattern).all(axis=1)]
                names = [policy.sensors.names[s] for s in np.flatnonzero(pattern)]
                first = policy.sensors.purchase_order(names)[0]
                action[asking] = 1 + policy.sensors.index(first)
            rows = rows[~asks]
    return action
