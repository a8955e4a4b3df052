"""`Policy`: sensors, tree, decision functions and leaf classifiers, ready to be asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensortree.costs import Path, path_costs, vertex_paths
from sensortree.decision import DecisionFunction
from sensortree.fingerprint import fingerprint
from sensortree.flow import Flow
from sensortree.loss import Loss
from sensortree.readings import SensorReader, together
from sensortree.scorers import posterior
from sensortree.sensors import SensorSet
from sensortree.table import Table
from sensortree.tree import Node, SensorTree

Array = NDArray[np.float64]
Rows = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Policy:
    """A fitted decision system: which sensors to buy, when to stop, what to answer.

    A row's sensor is read only when the row has acquired it: nothing else of the row is
    looked at, so other columns may hold anything.

    Attributes
    ----------
    reader : SensorReader
    tree : SensorTree
    decisions : tuple of DecisionFunction
        One per node (g_j).
    classifiers : mapping of sensor subset to classifier
        One per distinct subset of leaves (f_k) and of nodes, and one for knowing nothing.
        Their classes are positions in `classes`.
    classes : ndarray of shape (n_classes,)
    flow : Flow
        Where the training examples went.
    loss : Loss
    cost_weight : float
    max_cost : float or None
        No row spends more.
    """

    reader: SensorReader
    tree: SensorTree
    decisions: tuple[DecisionFunction, ...]
    classifiers: Mapping[frozenset[str], Any]
    classes: NDArray[Any]
    flow: Flow
    loss: Loss = field(default_factory=Loss)
    cost_weight: float = 1.0
    max_cost: float | None = None

    @property
    def sensors(self) -> SensorSet:
        """The sensors this policy may acquire."""
        return self.reader.sensors

    @cached_property
    def digest(self) -> str:
        """Hexadecimal digest of everything the policy is made of."""
        return fingerprint(self)

    @cached_property
    def paths(self) -> tuple[Path, ...]:
        """What is known on the way to each place where a row may stop.

        These are the leaves; the place before the root, where nothing is known; and the
        nodes, backwards: ``paths[~node]`` is a node's. A row stops elsewhere than at a
        leaf only if it can afford no more.
        """
        nodes, leaves = vertex_paths(self.tree)
        return (*leaves, (), *reversed(nodes))

    @cached_property
    def places(self) -> tuple[frozenset[str], ...]:
        """Sensors known at each of these places."""
        return tuple(path[-1] if path else frozenset() for path in self.paths)

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

    def best_place(
        self, node: int, costs: Array, reachable: NDArray[np.bool_]
    ) -> NDArray[np.intp]:
        """Where rows that cannot go on from a node as decided are served best.

        Parameters
        ----------
        node : int
        costs : ndarray of shape (n_rows, n_leaves)
            Price of the way to each leaf.
        reachable : ndarray of bool of shape (n_rows, n_leaves)

        Returns
        -------
        place : ndarray of shape (n_rows,)
            The reachable leaf below the node of the least mean training risk among
            examples that came to it, or ``~node`` if stopping there is better.
        """
        below = self.tree.path_signs[:, node] != 0
        spent = costs[:, below].min(axis=1, keepdims=True)
        more = np.maximum(costs - spent, 0.0)
        risk = self.flow.leaf_loss[node] + self.cost_weight * more
        risk = np.where(reachable & below, risk, np.inf)
        stay = self.flow.stop_loss[node] < risk.min(axis=1)
        return np.where(stay, ~node, risk.argmin(axis=1))


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
        self._posteriors: dict[frozenset[str], Array] = {}
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
                decision = self.policy.decisions[n_nodes]
                said = (
                    self._judge(vertex.sensors, rows, readings)
                    if decision.needs_posterior
                    else None
                )
                upward = decision(readings, said, self._varying[rows]) > 0
                goes_on = self._can_go_on(n_nodes, rows, upward)
                stack.append((vertex.positive, rows[upward & goes_on]))
                stack.append((vertex.negative, rows[~upward & goes_on]))
                n_nodes += 1
            else:
                self.place[rows] = n_leaves
                n_leaves += 1
        self._acquire_rerouted()

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
            costs = path_costs(
                self.policy.paths[: tree.n_leaves], self.policy.sensors, prices
            )
            costs = np.broadcast_to(costs, (len(stuck), tree.n_leaves))
            self.place[stuck] = self.policy.best_place(node, costs, leaves[~goes_on])
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

    def _judge(self, subset: frozenset[str], rows: Rows, readings: Array) -> Array:
        """Posterior of the classifier on these sensors, asked once per row."""
        n_rows, n_classes = self.table.shape[0], len(self.policy.classes)
        if subset not in self._posteriors:
            self._posteriors[subset] = np.full((n_rows, n_classes), np.nan)
        known = self._posteriors[subset]
        new = np.isnan(known[rows, 0])
        known[rows[new]] = posterior(
            self.policy.classifiers[subset], readings[new], n_classes
        )
        return np.asarray(known[rows])

    def posterior(self) -> Array:
        """Posterior where each row stops, (n_rows, n_classes)."""
        sensors = self.policy.sensors
        answers = np.empty((self.table.shape[0], len(self.policy.classes)))
        for place in np.unique(self.place):
            subset = self.policy.places[place]
            rows = np.flatnonzero(self.place == place)
            readings = together(self._blocks, sensors, subset, rows)
            answers[rows] = self._judge(subset, rows, readings)
        return answers

    def cost(self) -> Array:
        """Price of each row's way, (n_rows,)."""
        costs = path_costs(self.policy.paths, self.policy.sensors, self.prices)
        if self.prices is None:
            return np.asarray(costs[self.place])
        return np.asarray(costs[np.arange(len(self.place)), self.place])
