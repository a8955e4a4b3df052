"""`DecisionSystem`: what a fitted policy is made of, and the places where it may stop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensortree.policy.decisions import DecisionFunction
from sensortree.policy.digest import fingerprint
from sensortree.policy.flow import Flow
from sensortree.sensors.loss import Loss
from sensortree.sensors.reader import SensorReader
from sensortree.sensors.sensor_set import SensorSet
from sensortree.tree.paths import Path, vertex_paths
from sensortree.tree.tree import SensorTree
from sensortree.types import Array


@dataclass(frozen=True, eq=False)
class Vertex:
    """A node or a leaf with all that is needed there.

    Attributes
    ----------
    sensors : frozenset of str
    names : tuple of str
        The same in declared order.
    classifier : classifier on these sensors
    decision : DecisionFunction or None
        None at a leaf.
    negative, positive : int
        Children of a node: a node, or ``~leaf``.
    leaves_below : tuple of int
    """

    sensors: frozenset[str]
    names: tuple[str, ...]
    classifier: Any
    decision: DecisionFunction | None = None
    negative: int = 0
    positive: int = 0
    leaves_below: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class DecisionSystem:
    """Sensors, tree, decision functions, leaf classifiers, and where examples went.

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
    own_classifiers : mapping of place to classifier
        Of methods whose leaves, or nodes (``~node``), that know the same do not answer the
        same.
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
    own_classifiers: Mapping[int, Any] = field(default_factory=dict)

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

    @cached_property
    def in_order(self) -> dict[frozenset[str], tuple[str, ...]]:
        """Sensors known at each of these places, in declared order."""
        return {known: self.sensors.in_order(known) for known in self.places}

    def classifier_at(self, place: int) -> Any:
        """Classifier that answers at a place."""
        own = self.own_classifiers.get(place)
        return self.classifiers[self.places[place]] if own is None else own

    @cached_property
    def vertices(self) -> tuple[Vertex, ...]:
        """Nodes, then leaves backwards, so that ``vertices[child]`` is a child."""
        tree = self.tree
        negative, positive = (side.tolist() for side in tree.children)
        nodes = [
            Vertex(
                node.sensors,
                self.sensors.in_order(node.sensors),
                self.classifier_at(~j),
                self.decisions[j],
                negative[j],
                positive[j],
                tuple(np.flatnonzero(tree.path_signs[:, j]).tolist()),
            )
            for j, node in enumerate(tree.nodes)
        ]
        leaves = [
            Vertex(
                leaf.sensors,
                self.sensors.in_order(leaf.sensors),
                self.classifier_at(k),
                leaves_below=(k,),
            )
            for k, leaf in enumerate(tree.leaves)
        ]
        return (*nodes, *reversed(leaves))

    @cached_property
    def columns_of(self) -> dict[str, tuple[str, ...]]:
        """Names of the columns that each sensor reads."""
        named = self.sensors.column_names
        return {
            name: tuple(named[c] for c in columns)
            for name, columns in zip(
                self.sensors.names, self.sensors.columns, strict=True
            )
        }

    @cached_property
    def prices_of_ways(self) -> dict[Any, float]:
        """Prices that sessions have worked out, where all examples pay the same."""
        return {}

    def best_place(
        self, node: int, more: Array, reachable: NDArray[np.bool_]
    ) -> NDArray[np.intp]:
        """Where rows that cannot go on from a node as decided are served best.

        Parameters
        ----------
        node : int
        more : ndarray of shape (n_rows, n_leaves)
            Price of the way from the node to each leaf.
        reachable : ndarray of bool of shape (n_rows, n_leaves)

        Returns
        -------
        place : ndarray of shape (n_rows,)
            The reachable leaf below the node of the least mean training risk among
            examples that came to it, or ``~node`` if stopping there is better.
        """
        below = self.tree.path_signs[:, node] != 0
        risk = self.flow.leaf_loss[node] + self.cost_weight * more
        risk = np.where(reachable & below, risk, np.inf)
        stay = self.flow.stop_loss[node] < risk.min(axis=1)
        return np.where(stay, ~node, risk.argmin(axis=1))
