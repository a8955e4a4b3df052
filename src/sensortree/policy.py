"""`Policy`: sensors, tree, decision functions and leaf classifiers, ready to be asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensortree.decision import DecisionFunction
from sensortree.leaves import posterior
from sensortree.readings import SensorReader, together
from sensortree.sensors import SensorSet
from sensortree.table import Table
from sensortree.tree import Node, SensorTree

Array = NDArray[np.float64]


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
        One per distinct leaf subset (f_k), and one per distinct node subset whose
        decision function looks at its posterior. Their classes are positions in `classes`.
    classes : ndarray of shape (n_classes,)
    """

    reader: SensorReader
    tree: SensorTree
    decisions: tuple[DecisionFunction, ...]
    classifiers: Mapping[frozenset[str], Any]
    classes: NDArray[Any]

    @property
    def sensors(self) -> SensorSet:
        """The sensors this policy may acquire."""
        return self.reader.sensors

    def apply(self, table: Table) -> NDArray[np.intp]:
        """Leaf that each row reaches, (n_rows,)."""
        return _Walk(self, table).leaf

    def acquired(self, table: Table) -> NDArray[np.bool_]:
        """Sensors that each row acquires, (n_rows, n_sensors)."""
        known = np.array([self.sensors.mask(leaf.sensors) for leaf in self.tree.leaves])
        return np.asarray(known[self.apply(table)])

    def acquisition_cost(self, table: Table) -> Array:
        """Price of what each row acquires, (n_rows,)."""
        return np.asarray(self.acquired(table) @ self.sensors.costs)

    def predict(self, table: Table) -> NDArray[Any]:
        """Most probable class at each row's leaf, (n_rows,)."""
        return np.asarray(self.classes[self.predict_proba(table).argmax(axis=1)])

    def predict_proba(self, table: Table) -> Array:
        """Class probabilities of each row's leaf, (n_rows, n_classes)."""
        return _Walk(self, table).posterior()


class _Walk:
    """Rows of a table on their way from the root to their leaves.

    Attributes
    ----------
    leaf : ndarray of shape (n_rows,)
    """

    def __init__(self, policy: Policy, table: Table):
        self.policy = policy
        self.table = table
        n_rows = table.shape[0]
        widths = policy.reader.widths
        self._blocks = [np.full((n_rows, width), np.nan) for width in widths]
        self._known: dict[int, NDArray[np.bool_]] = {
            sensor: np.zeros(n_rows, dtype=bool) for sensor in range(len(widths))
        }
        self._posteriors: dict[frozenset[str], Array] = {}
        self.leaf = np.empty(n_rows, dtype=np.intp)
        self._go()

    def _go(self) -> None:
        """Send all rows through the tree, depth first as vertices are numbered."""
        n_nodes = n_leaves = 0
        stack = [(self.policy.tree.root, np.arange(self.table.shape[0]))]
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
                takes_positive = decision(readings, said) > 0
                stack.append((vertex.positive, rows[takes_positive]))
                stack.append((vertex.negative, rows[~takes_positive]))
                n_nodes += 1
            else:
                self.leaf[rows] = n_leaves
                n_leaves += 1

    def _acquire(self, subset: frozenset[str], rows: NDArray[np.intp]) -> Array:
        """Read what these rows do not know yet, and return all they know."""
        sensors = self.policy.sensors
        for name in sensors.in_order(subset):
            sensor = sensors.index(name)
            new = rows[~self._known[sensor][rows]]
            if new.size:
                self._blocks[sensor][new] = self.policy.reader.read(
                    self.table, sensor, new
                )
                self._known[sensor][new] = True
        return together(self._blocks, sensors, subset, rows)

    def _judge(
        self, subset: frozenset[str], rows: NDArray[np.intp], readings: Array
    ) -> Array:
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
        """Posterior of each row's leaf, (n_rows, n_classes)."""
        sensors = self.policy.sensors
        answers = np.empty((self.table.shape[0], len(self.policy.classes)))
        for number, leaf in enumerate(self.policy.tree.leaves):
            rows = np.flatnonzero(self.leaf == number)
            readings = together(self._blocks, sensors, leaf.sensors, rows)
            answers[rows] = self._judge(leaf.sensors, rows, readings)
        return answers
