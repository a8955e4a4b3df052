"""`Policy`: a fitted decision system, ready to be asked about rows or step by step."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensortree.acquisition import (
    Decision,
    Session,
    Step,
    acquire,
    acquire_async,
    resume_session,
    stand,
)
from sensortree.costs import path_costs
from sensortree.readings import together
from sensortree.scorers import posterior
from sensortree.system import DecisionSystem
from sensortree.table import Table
from sensortree.tree import Node

Array = NDArray[np.float64]
Rows = NDArray[np.intp]


class Policy(DecisionSystem):
    """A fitted decision system: which sensors to buy, when to stop, what to answer.

    A row's sensor is read only when the row has acquired it: nothing else of the row is
    looked at, so other columns may hold anything. Its attributes are those of
    `DecisionSystem`.

    Attributes
    ----------
    sensors : SensorSet
    tree : SensorTree
    classes : ndarray of shape (n_classes,)
    digest : str
        Hexadecimal digest of everything the policy is made of.
    """

    def apply(self, table: Table) -> Rows:
        """Leaf that each row reaches, (n_rows,); ``~node`` if it must stop at a node."""
        return _Walk(self, table).place

    def acquired(self, table: Table) -> NDArray[np.bool_]:
        """Sensors that each row acquires, (n_rows, n_sensors)."""
        known = np.array([self.sensors.mask(subset) for subset in self.places])
        return np.asarray(known[self.apply(table)])

    def acquisition_cost(self, table: Table) -> Array:
        """Price of what each row acquires, (n_rows,)."""
        return _Walk(self, table).cost()

    def predict(self, table: Table) -> NDArray[Any]:
        """Answer of the least expected loss at each row's leaf, (n_rows,)."""
        return np.asarray(self.classes[self.loss.answer(self.predict_proba(table))])

    def predict_proba(self, table: Table) -> Array:
        """Class probabilities of each row's leaf, (n_rows, n_classes)."""
        return _Walk(self, table).posterior()

    def step(
        self,
        known: Mapping[str, Any],
        *,
        unavailable: Iterable[str] = (),
        limit: float | None = None,
        prices: Mapping[str, float] | None = None,
        free: Iterable[str] = (),
    ) -> Step:
        """Say what to do next for one example: a pure function of what is known.

        Parameters
        ----------
        known : mapping of sensor to values
            Values by column name, or in the sensor's column order.
        unavailable : iterable of str, default=()
            Sensors that cannot be had.
        limit : float, default=None
            The most that this example may spend.
        prices : mapping of sensor to float, default=None
            Prices of this example, for sensors whose price differs between examples.
        free : iterable of str, default=()
            Known sensors that were not paid for; known sensors that the policy would not
            have asked for are not counted as spent either.

        Examples
        --------
        >>> import numpy as np
        >>> from sensortree import SensorTreeClassifier
        >>> X = np.random.default_rng(0).normal(size=(200, 2))
        >>> y = X[:, 0] + (np.abs(X[:, 0]) < 0.5) * X[:, 1] > 0
        >>> model = SensorTreeClassifier(cost_weight=0.02, structure="cascade").fit(X, y)
        >>> model.policy_.step({}).sensor
        'x0'
        >>> step = model.policy_.step({"x0": [0.1]})
        >>> step.action, step.sensor, step.spent
        ('acquire', 'x1', 1.0)
        >>> model.policy_.step({"x0": [2.5]}).action
        'stop'
        """
        return stand(self, known, unavailable, limit, prices, free)

    def session(
        self,
        known: Mapping[str, Any] | None = None,
        limit: float | None = None,
        prices: Mapping[str, float] | None = None,
    ) -> Session:
        """Begin to examine one example; see `Session`.

        Parameters
        ----------
        known : mapping of sensor to values, default=None
            What is known already, for nothing.
        limit : float, default=None
            The most that this example may spend.
        prices : mapping of sensor to float, default=None
        """
        return Session(self, known, limit, prices)

    def resume(self, state: Mapping[str, Any]) -> Session:
        """Bring back a session from what its `to_dict` gave.

        Parameters
        ----------
        state : mapping
            It holds the digest of its model, and another model refuses it.
        """
        return resume_session(self, state)

    def acquire(
        self,
        oracle: Callable[[str, tuple[str, ...]], Any],
        known: Mapping[str, Any] | None = None,
        limit: float | None = None,
        prices: Mapping[str, float] | None = None,
    ) -> Decision:
        """Examine one example by calling a function for what is bought, and decide.

        Parameters
        ----------
        oracle : callable
            Given a sensor's name and its columns, returns the values; None says that the
            sensor is unavailable.
        known : mapping of sensor to values, default=None
        limit : float, default=None
        prices : mapping of sensor to float, default=None
        """
        return acquire(self, oracle, known, limit, prices)

    async def acquire_async(
        self,
        oracle: Callable[[str, tuple[str, ...]], Awaitable[Any]],
        known: Mapping[str, Any] | None = None,
        limit: float | None = None,
        prices: Mapping[str, float] | None = None,
    ) -> Decision:
        """Examine one example by awaiting a function for what is bought, and decide."""
        return await acquire_async(self, oracle, known, limit, prices)


class _Walk:
    """Rows of a table on their way from the root to the places where they stop.

    Attributes
    ----------
    place : ndarray of shape (n_rows,)
        A leaf, or the complement of a node.
    """

    def __init__(self, policy: Policy, table: Table):
        self.policy = policy
        self.table = table
        n_rows = table.shape[0]
        widths = policy.reader.widths
        self._blocks = [np.full((n_rows, width), np.nan) for width in widths]
        self._known = np.zeros((len(widths), n_rows), dtype=bool)
        self._posteriors: dict[int, Array] = {}  # by the identity of the classifier
        self.prices = policy.reader.prices(table)
        varying = policy.sensors.varying
        self._varying = (
            np.empty((n_rows, 0)) if self.prices is None else self.prices[:, varying]
        )
        self.place = np.empty(n_rows, dtype=np.intp)
        self._affordable = self._within_cap()
        self._go()

    def _within_cap(self) -> NDArray[np.bool_] | None:
        """Which places each row can afford, (n_rows, n_places); None if all can all."""
        policy = self.policy
        if policy.max_cost is None:
            return None
        costs = path_costs(policy.paths, policy.sensors, self.prices)
        affordable = costs <= policy.max_cost
        if affordable.all():
            return None
        shape = (self.table.shape[0], len(policy.paths))
        return np.asarray(np.broadcast_to(affordable, shape))

    def _go(self) -> None:
        """Send all rows through the tree, depth first as vertices are numbered."""
        tree, n_nodes, n_leaves = self.policy.tree, 0, 0
        stack = [(tree.root, self._enter(np.arange(self.table.shape[0])))]
        while stack:
            vertex, rows = stack.pop()
            readings = self._acquire(vertex.sensors, rows)
            if isinstance(vertex, Node):
                upward = self._decide(n_nodes, rows, readings) > 0
                goes_on = self._can_go_on(n_nodes, rows, upward)
                stack.append((vertex.positive, rows[upward & goes_on]))
                stack.append((vertex.negative, rows[~upward & goes_on]))
                n_nodes += 1
            else:
                self.place[rows] = n_leaves
                n_leaves += 1
        self._acquire_rerouted()

    def _decide(self, node: int, rows: Rows, readings: Array) -> Array:
        """Values of a node's decision function, (n_rows,)."""
        decision = self.policy.decisions[node]
        said = self._judge(~node, rows, readings) if decision.needs_posterior else None
        return decision(readings, said, self._varying[rows])

    def _enter(self, rows: Rows) -> Rows:
        """Rows that can afford what is known at the root; others stop before it."""
        self._rerouted: list[Rows] = []
        if self._affordable is None:
            return rows
        n_nodes, n_leaves = self.policy.tree.n_nodes, self.policy.tree.n_leaves
        root = self._affordable[:, -1 if n_nodes else n_leaves - 1]
        self.place[rows[~root]] = ~n_nodes
        return rows[root]

    def _can_go_on(
        self, node: int, rows: Rows, upward: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Whether rows can afford some leaf on the side they chose; others are rerouted."""
        if self._affordable is None:
            return np.ones(len(rows), dtype=bool)
        tree = self.policy.tree
        leaves = self._affordable[rows, : tree.n_leaves]
        above = (leaves & tree.positive_paths[:, node]).any(axis=1)
        below = (leaves & tree.negative_paths[:, node]).any(axis=1)
        goes_on = np.where(upward, above, below)
        stuck = rows[~goes_on]
        if stuck.size:
            prices = None if self.prices is None else self.prices[stuck]
            costs = path_costs(self.policy.paths, self.policy.sensors, prices)
            more = costs[..., : tree.n_leaves] - costs[..., ~node : ~node + 1 or None]
            more = np.broadcast_to(more, (len(stuck), tree.n_leaves))
            self.place[stuck] = self.policy.best_place(node, more, leaves[~goes_on])
            self._rerouted.append(stuck)
        return goes_on

    def _acquire_rerouted(self) -> None:
        """Read what rows that were sent straight to a leaf still lack there."""
        for rows in self._rerouted:
            for place in np.unique(self.place[rows]):
                self._acquire(
                    self.policy.places[place], rows[self.place[rows] == place]
                )

    def _acquire(self, subset: frozenset[str], rows: Rows) -> Array:
        """Read what these rows do not know yet, and return all they know."""
        sensors = self.policy.sensors
        for name in sensors.in_order(subset):
            sensor = sensors.index(name)
            new = rows[~self._known[sensor, rows]]
            if new.size:
                self._blocks[sensor][new] = self.policy.reader.read(
                    self.table, sensor, new
                )
                self._known[sensor, new] = True
        return together(self._blocks, sensors, subset, rows)

    def _judge(self, place: int, rows: Rows, readings: Array) -> Array:
        """Posterior of the classifier at a place, asked once per row."""
        n_rows, n_classes = self.table.shape[0], len(self.policy.classes)
        classifier = self.policy.classifier_at(place)
        known = self._posteriors.get(id(classifier))
        if known is None:
            known = np.full((n_rows, n_classes), np.nan)
            self._posteriors[id(classifier)] = known
        new = np.isnan(known[rows, 0])
        known[rows[new]] = posterior(classifier, readings[new], n_classes)
        return np.asarray(known[rows])

    def posterior(self) -> Array:
        """Posterior where each row stops, (n_rows, n_classes)."""
        sensors = self.policy.sensors
        answers = np.empty((self.table.shape[0], len(self.policy.classes)))
        for place in np.unique(self.place):
            subset = self.policy.places[place]
            rows = np.flatnonzero(self.place == place)
            readings = together(self._blocks, sensors, subset, rows)
            answers[rows] = self._judge(int(place), rows, readings)
        return answers

    def cost(self) -> Array:
        """Price of each row's way, (n_rows,)."""
        costs = path_costs(self.policy.paths, self.policy.sensors, self.prices)
        if self.prices is None:
            return np.asarray(costs[self.place])
        return np.asarray(costs[np.arange(len(self.place)), self.place])
