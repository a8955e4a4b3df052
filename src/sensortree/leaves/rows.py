"""`TrainingRows`: what is learned from, and the folds that rows are held out with."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensortree.leaves.coding import Coded, coded, side_by_side
from sensortree.leaves.continued import Continued
from sensortree.leaves.folds import first_of_runs
from sensortree.leaves.observations import Observations
from sensortree.leaves.task import CLASSES, Task
from sensortree.sensors.levels import levels_of
from sensortree.sensors.loss import Loss
from sensortree.sensors.market import Market
from sensortree.sensors.reader import SensorReader, together
from sensortree.sensors.referral import Referral
from sensortree.sensors.sensor_set import SensorSet
from sensortree.types import Array, Rows

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
    unit : ndarray of shape (n_samples,)
        Rows of the same are one observation: those of one group, and those of a log for
        which the same row stands in.
    target : str
        Name of what is predicted; "" if it has none.
    referral : Referral or None
        What it costs to hand an example over to a person; None if nobody is.
    refer_costs : ndarray of shape (n_samples, n_classes) or None
        What it costs to hand over each example if it is of each class.
    may_refer : bool
        Whether handing over may ever cost less than an answer.
    task : Task
        What else there is to know of classes, or of numbers.
    continued : Continued or None
        Who stands in where a log holds nothing of a row; None where everything was bought.
        `blocks` are then as searches look at them.
    dearest : float or None
        What everything costs at most, where these rows are some of many that pay prices
        of their own; None for what these say.
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
    unit: Rows = field(default_factory=lambda: np.empty(0, np.intp))
    target: str = ""
    referral: Referral | None = None
    refer_costs: Array | None = None
    may_refer: bool = False
    task: Task = CLASSES
    continued: Continued | None = None
    dearest: float | None = None

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
            unit=self.unit[rows],
            refer_costs=None if self.refer_costs is None else self.refer_costs[rows],
            continued=None if self.continued is None else self.continued.take(rows),
        )

    def judge(self, posterior: Array) -> Array:
        """What answers by these probabilities lose, (n_samples,)."""
        return self.loss.judge(self.y, posterior)

    def handed_over(self) -> Array:
        """What it costs to hand each example over, (n_samples,)."""
        assert self.refer_costs is not None  # examples may be handed over
        return np.asarray(self.refer_costs[np.arange(len(self.y)), self.y])

    def own_refer_costs(self) -> Array:
        """What a column says that handing over costs, (n_samples, 1), or (n_samples, 0)."""
        if self.referral is None or self.referral.column is None:
            return np.empty((len(self.y), 0))
        assert self.refer_costs is not None  # there is a referral
        return np.asarray(self.refer_costs[:, :1])

    @property
    def loss_name(self) -> str:
        """What the mean of what is lost is called; errors and persons are a "loss"."""
        if self.may_refer and self.loss.plain:
            return "loss"
        return self.loss.name

    @property
    def largest_loss(self) -> float:
        """The most that stopping can cost."""
        if self.refer_costs is None:
            return self.loss.largest
        return max(self.loss.largest, float(self.refer_costs.max()))

    def market(self, max_cost: float | None) -> Market:
        """What may be bought at what price."""
        reach = None if self.continued is None else self.continued.reach
        return Market(self.sensors, self.prices, max_cost, self.weight, reach)

    def varying_prices(self) -> Array:
        """Prices that differ between examples, (n_samples, n_varying)."""
        if self.prices is None:
            return np.empty((len(self.y), 0))
        return np.asarray(self.prices[:, self.sensors.varying])

    def features(self, subset: frozenset[str]) -> Array:
        """Readings of a subset side by side, (n_samples, width)."""
        if self.continued is not None:
            return self.continued.features(subset)
        return together(self.blocks, self.sensors, subset, np.arange(len(self.y)))

    @cached_property
    def coded_blocks(self) -> list[Coded]:
        """Readings of each sensor, a category as one column."""
        return [self._coded(j, block) for j, block in enumerate(self.blocks)]

    def _coded(self, sensor: int, block: Array) -> Coded:
        transform = self.reader.transformers.get(self.sensors.names[sensor])
        return coded(block, levels_of(transform))

    def coded(self, subset: frozenset[str]) -> Coded:
        """Readings of a subset side by side, a category as one column."""
        chosen = list(map(self.sensors.index, self.sensors.in_order(subset)))
        nothing = np.empty((len(self.y), 0))
        log = self.continued
        if log is None:
            read = [self.coded_blocks[j] for j in chosen]
        else:
            read = [self._coded(j, log.block(j, subset)) for j in chosen]
        return side_by_side([nothing, *read])[0]

    def distinct(self) -> tuple[Rows, Array]:
        """First row of each run of equal rows (class and fold too), and its weight."""
        return self._distinct

    @cached_property
    def _distinct(self) -> tuple[Rows, Array]:
        own = [self.varying_prices(), self.own_refer_costs()]
        if self.continued is not None:  # rows with the same stand-in are not equal
            own.append(self.continued.own[:, None].astype(np.float64))
        ends = [*own, self.y[:, None], self.fold[:, None]]
        columns = (column for block in [*self.blocks, *ends] for column in block.T)
        first = first_of_runs(columns, len(self.y))
        return first, np.add.reduceat(self.weight, first)

    def observations(self) -> Observations:
        """Which observations each distinct row stands for."""
        first, _ = self.distinct()
        lengths = np.diff(np.r_[first, len(self.y)])
        row = np.repeat(np.arange(len(first)), lengths)
        return Observations(len(first), row, self.unit, self.weight)

    def each_row(self) -> Observations:
        """The same of rows as they are."""
        return Observations.of_rows(self.unit, self.weight)
