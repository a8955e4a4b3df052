"""`TrainingRows`: what is learned from, and the folds that rows are held out with."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensortree.leaves.folds import first_of_runs
from sensortree.leaves.task import CLASSES, Task
from sensortree.sensors.loss import Loss
from sensortree.sensors.market import Market
from sensortree.sensors.reader import SensorReader, together
from sensortree.sensors.sensor_set import SensorSet
from sensortree.types import Array, Mask, Rows

# Folds where no number of them is given.
FOLDS = 5


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """What `fit` learns from: readings of all sensors, classes, weights and folds.

    Rows of weight 0 are gone, and rows are sorted, so that neither they nor the order in
    which rows came can change the result.

    Attributes
    ----------
    reader : SensorReader
    blocks : list of n_sensors arrays of shape (n_samples, width)
    y : ndarray of shape (n_samples,)
        Positions in `classes`, or numbers.
    classes : ndarray of shape (n_classes,)
        None of them where numbers are learned.
    weight : ndarray of shape (n_samples,)
    weighted : bool
        Whether the user gave weights.
    fold : ndarray of shape (n_samples,)
        The fold a row is held out with; -1 for a row that is never held out.
    prices : ndarray of shape (n_samples, n_sensors) or None
        Prices of each example; None if all pay the same.
    loss : Loss
        What wrong answers cost.
    rows : ndarray of shape (n_samples,)
        Where each row stands in the X that was given.
    frequent : ndarray of bool of shape (n_samples,)
        Whether a row's readings are those of many rows.
    target : str
        Name of what is predicted; "" if it has none.
    task : Task
        What else there is to know of classes, or of numbers.
    """

    reader: SensorReader
    blocks: list[Array]
    y: NDArray[Any]
    classes: NDArray[Any]
    weight: Array
    weighted: bool
    fold: Rows
    prices: Array | None = None
    loss: Loss = field(default_factory=Loss)
    rows: Rows = field(default_factory=lambda: np.empty(0, np.intp))
    frequent: Mask = field(default_factory=lambda: np.empty(0, bool))
    target: str = ""
    task: Task = CLASSES

    @property
    def n_outputs(self) -> int:
        """Columns of what a leaf says."""
        return self.loss.n_outputs(len(self.classes))

    @property
    def sensors(self) -> SensorSet:
        """The sensors that were read."""
        return self.reader.sensors

    def take(self, rows: Rows) -> TrainingRows:
        """Give some of the rows, in their order."""
        return replace(
            self,
            blocks=[block[rows] for block in self.blocks],
            y=self.y[rows],
            weight=self.weight[rows],
            fold=self.fold[rows],
            prices=None if self.prices is None else self.prices[rows],
            rows=self.rows[rows],
            frequent=self.frequent[rows],
        )

    def market(self, max_cost: float | None) -> Market:
        """What may be bought at what price."""
        return Market(self.sensors, self.prices, max_cost, self.weight)

    def varying_prices(self) -> Array:
        """Prices that differ between examples, (n_samples, n_varying)."""
        if self.prices is None:
            return np.empty((len(self.y), 0))
        return np.asarray(self.prices[:, self.sensors.varying])

    def features(self, subset: frozenset[str]) -> Array:
        """Readings of a subset side by side, (n_samples, width)."""
        return together(self.blocks, self.sensors, subset, np.arange(len(self.y)))

    def distinct(self) -> tuple[Rows, Array]:
        """First row of each run of equal rows (class and fold too), and its weight."""
        ends = [self.varying_prices(), self.y[:, None], self.fold[:, None]]
        first = first_of_runs(np.hstack([*self.blocks, *ends]))
        return first, np.add.reduceat(self.weight, first)

    def observations(self) -> Rows:
        """How many observations each distinct row stands for.

        Rows of frequent readings are one each; others only repeat each other.
        """
        first, _ = self.distinct()
        lengths = np.diff(np.r_[first, len(self.y)])
        return np.where(self.frequent[first], lengths, 1)
