"""`MaskedPolicy`: a policy that is asked with masked arrays, one action per row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sensortree.exceptions import DataError
from sensortree.policy.classifiers import posterior
from sensortree.policy.policy import Policy
from sensortree.sensors.reader import check_price_array, together
from sensortree.sensors.table import Table
from sensortree.tree.paths import path_costs
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
    >>> from sensortree import MaskedPolicy, SensorTreeClassifier
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
        return _Standing(self.policy, *self._rows(X, mask, prices)).action

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
        return _Standing(self.policy, *self._rows(X, mask, prices)).posterior()

    def _rows(
        self, X: Any, mask: ArrayLike, prices: ArrayLike | None
    ) -> tuple[Table, Mask]:
        """Check X, and bring the mask to (n_rows, n_sensors)."""
        sensors = self.policy.sensors
        X = X if Table.holds(X) else np.asarray(X)
        width = len(sensors.column_names)
        given = Table(X)
        n_rows = given.shape[0]
        if given.shape[1] != width:
            raise DataError(
                f"X has {given.shape[1]} columns, but the policy was fitted with {width}; "
                f"give all of them, with anything where they are unknown."
            )
        if prices is not None:
            given = Table(X, check_price_array(prices, n_rows, sensors))
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


class _Standing:
    """Where rows stand in the tree with what is known of them.

    Attributes
    ----------
    action : ndarray of int of shape (n_rows,)
    """

    def __init__(self, policy: Policy, table: Table, known: Mask):
        self.policy = policy
        self.table = table
        self.known = known
        n_rows = table.shape[0]
        self.action = np.zeros(n_rows, dtype=np.intp)
        # Place of the last vertex that a row has come to; at first, before the root.
        self.at = np.full(n_rows, ~policy.tree.n_nodes, dtype=np.intp)
        self._blocks = [np.full((n_rows, w), np.nan) for w in policy.reader.widths]
        self._read = np.zeros(known.shape, dtype=bool)
        self.prices = policy.reader.prices(table)
        costs = path_costs(policy.paths, policy.sensors, self.prices)
        self.costs = np.broadcast_to(costs, (n_rows, len(policy.paths)))
        self._go()

    def _affordable(self, rows: Rows) -> Mask:
        """Which places some rows can pay for, (n_rows, n_places)."""
        cap = np.inf if self.policy.max_cost is None else self.policy.max_cost
        return np.asarray(self.costs[rows] <= cap)

    def _go(self) -> None:
        """Send rows down the tree, as far as what is known of them goes."""
        policy, n_leaves = self.policy, self.policy.tree.n_leaves
        rows = np.arange(self.table.shape[0])
        root = ~0 if policy.tree.n_nodes else 0
        rows = rows[self._affordable(rows)[:, root]]  # others stop before it
        for place, arrived in self._visits(rows, root):
            self.at[arrived] = place
            if place < 0 and arrived.size:
                node = ~place
                upward = self._decide(node, arrived)
                leaves = self._affordable(arrived)[:, :n_leaves]
                side = np.where(
                    upward[:, None],
                    policy.tree.positive_paths[:, node],
                    policy.tree.negative_paths[:, node],
                )
                goes_on = np.asarray((leaves & side).any(axis=1))
                self._send(node, arrived, upward, goes_on)
                self._reroute(node, arrived[~goes_on], leaves[~goes_on])

    def _visits(self, rows: Rows, root: int) -> Iterator[tuple[int, Rows]]:
        """Every vertex as a place, and the rows that know what is known there."""
        tree = self.policy.tree
        self._heading: dict[int, Rows] = {root: rows}
        nodes = (~node for node in range(tree.n_nodes))  # children come after parents
        for place in (*nodes, *range(tree.n_leaves)):
            heading = self._heading.pop(place, np.empty(0, np.intp))
            yield place, self._arrive(place, heading)

    def _send(self, node: int, rows: Rows, upward: Mask, goes_on: Mask) -> None:
        """Send rows from a node to its children."""
        for child, chosen in zip(
            self.policy.tree.children, (~upward, upward), strict=True
        ):
            self._head_for(~int(child[node]), rows[chosen & goes_on])

    def _reroute(self, node: int, rows: Rows, leaves: Mask) -> None:
        """Send rows that cannot pay for what was decided to the best place instead."""
        if rows.size:
            costs = self.costs[rows]
            more = costs[:, : self.policy.tree.n_leaves] - costs[:, [~node]]
            places = self.policy.best_place(node, more, leaves)
            for place in np.unique(places[places >= 0]):
                self._head_for(int(place), rows[places == place])

    def _head_for(self, place: int, rows: Rows) -> None:
        before = self._heading.get(place, np.empty(0, np.intp))
        self._heading[place] = np.concatenate([before, rows])

    def _arrive(self, place: int, rows: Rows) -> Rows:
        """Rows that know what is known at a place; others ask for what they lack."""
        for subset in self.policy.paths[place]:
            wanted = self.policy.sensors.mask(subset)
            lacks = wanted & ~self.known[rows]
            for pattern in np.unique(lacks[lacks.any(axis=1)], axis=0):
                asking = rows[(lacks == pattern).all(axis=1)]
                self.action[asking] = 1 + self._first(pattern)
            rows = rows[~lacks.any(axis=1)]
        return rows

    def _first(self, lacking: Mask) -> int:
        """Position of the sensor to acquire first of those that are lacking."""
        sensors = self.policy.sensors
        names = [sensors.names[s] for s in np.flatnonzero(lacking)]
        return sensors.index(sensors.purchase_order(names)[0])

    def _decide(self, node: int, rows: Rows) -> Mask:
        """Whether rows go to the positive side of a node."""
        policy = self.policy
        decision = policy.decisions[node]
        readings = self._readings(policy.places[~node], rows)
        said = self._judge(~node, readings) if decision.needs_posterior else None
        prices = np.empty((len(rows), 0))
        if self.prices is not None:
            prices = self.prices[rows][:, policy.sensors.varying]
        return np.asarray(decision(readings, said, prices) > 0)

    def _judge(self, place: int, readings: Array) -> Array:
        classifier = self.policy.classifier_at(place)
        return posterior(classifier, readings, len(self.policy.classes))

    def _readings(self, subset: frozenset[str], rows: Rows) -> Array:
        """Readings of a subset that these rows know, each read once."""
        sensors = self.policy.sensors
        for name in sensors.in_order(subset):
            sensor = sensors.index(name)
            new = rows[~self._read[rows, sensor]]
            if new.size:
                read = self.policy.reader.read(self.table, sensor, new)
                self._blocks[sensor][new] = read
                self._read[new, sensor] = True
        return together(self._blocks, sensors, subset, rows)

    def posterior(self) -> Array:
        """Posterior of the vertex that each row has come to, (n_rows, n_classes)."""
        answers = np.empty((self.table.shape[0], len(self.policy.classes)))
        for place in np.unique(self.at):
            rows = np.flatnonzero(self.at == place)
            readings = self._readings(self.policy.places[place], rows)
            answers[rows] = self._judge(int(place), readings)
        return answers
