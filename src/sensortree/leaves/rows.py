"""`TrainingRows`: what is learned from; `Observations`: which of them are independent.

`Continued` has other rows' readings for what rows of a log did not buy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from sensortree.constants import PRIOR_ROWS
from sensortree.leaves.coding import Coded, coded, side_by_side
from sensortree.leaves.folds import first_of_runs
from sensortree.leaves.standardising import moments
from sensortree.leaves.task import CLASSES, Task
from sensortree.sensors.loss import Loss
from sensortree.sensors.market import Market
from sensortree.sensors.reader import SensorReader, joined_readings
from sensortree.sensors.referral import Referral
from sensortree.sensors.sensor import SensorSet
from sensortree.sensors.transforms import levels_of
from sensortree.types import Array, Mask, Rows


@dataclass(frozen=True, eq=False)
class Observations:
    """Which independent observations some distinct rows stand for.

    Each training row, of a weight, is a copy of one of `n_rows` distinct rows, `row`, and
    belongs to an observation, `unit`: its own, or that of its group.
    """

    n_rows: int
    row: Rows
    unit: Rows
    weight: Array

    @classmethod
    def of_rows(cls, unit: Rows, weight: Array) -> Observations:
        """Those of rows as they are."""
        return cls(len(unit), np.arange(len(unit)), unit, weight)

    def noise(self, values: Array) -> float:
        """Standard error of the weighted mean of some values."""
        each = self.each(values)
        return float(each.std() / np.sqrt(len(each)))

    def together(self) -> Rows:
        """A number for each distinct row, the same for those that share an observation."""
        _, one = np.unique(self.unit, return_inverse=True)
        size = self.n_rows + int(one.max()) + 1
        links = (np.ones(len(one)), (self.row, self.n_rows + one))
        _, number = connected_components(coo_array(links, (size, size)), directed=False)
        return np.asarray(number[: self.n_rows], dtype=np.intp)

    def take(self, rows: Any) -> Observations:
        """The same of some distinct rows."""
        rows = np.arange(self.n_rows)[rows]
        place = np.full(self.n_rows, -1)
        place[rows] = np.arange(len(rows))
        at = place[self.row]
        kept = at >= 0
        return Observations(len(rows), at[kept], self.unit[kept], self.weight[kept])

    def each(self, values: Array) -> Array:
        """Values of distinct rows as one for each observation, of their weighted mean.

        How far the values of an observation are from the mean is added up over its rows,
        so that a standard error of what is given counts observations and not rows.
        """
        counted = np.bincount(self.row, self.weight, self.n_rows)
        mean = counted @ values / counted.sum()
        _, one = np.unique(self.unit, return_inverse=True)
        apart = np.bincount(one, self.weight * (values[self.row] - mean))
        return np.asarray(mean + apart * (len(apart) / counted.sum()))


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """What `fit` learns from: readings of all sensors, classes, weights and folds.

    Rows of weight 0 are gone, and rows are sorted, so that neither they nor the order in
    which rows came can change the result.
    """

    reader: SensorReader
    blocks: list[Array]  # (n_samples, width)
    y: NDArray[Any]  # positions in `classes`, or numbers, (n_samples,)
    classes: NDArray[Any]  # none of them where numbers are learned, (n_classes,)
    weight: Array  # (n_samples,)
    weighted: bool  # whether the user gave weights
    # The fold a row is held out with; -1 for a row that is never held out,
    # (n_samples,).
    fold: Rows
    # Prices of each example; None if all pay the same, (n_samples, n_sensors).
    prices: Array | None = None
    loss: Loss = field(default_factory=Loss)  # what wrong answers cost
    # Where each row stands in the X that was given, (n_samples,).
    rows: Rows = field(default_factory=lambda: np.empty(0, np.intp))
    # Rows of the same are one observation: those of one group, and those of a log for
    # which the same row stands in, (n_samples,).
    unit: Rows = field(default_factory=lambda: np.empty(0, np.intp))
    target: str = ""  # name of what is predicted; "" if it has none
    # What it costs to hand an example over to a person; None if nobody is.
    referral: Referral | None = None
    # What it costs to hand over each example if it is of each class, (n_samples,
    # n_classes).
    refer_costs: Array | None = None
    may_refer: bool = False  # whether handing over may ever cost less than an answer
    task: Task = CLASSES  # what else there is to know of classes, or of numbers
    # Who stands in where a log holds nothing of a row; None where everything was
    # bought. `blocks` are then as searches look at them.
    continued: Continued | None = None
    # What everything costs at most, where these rows are some of many that pay prices
    # of their own; None for what these say.
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
        return joined_readings(
            self.blocks, self.sensors, subset, np.arange(len(self.y))
        )

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
        own = [self.varying_prices()]
        if self.referral is not None and self.referral.column is not None:
            assert self.refer_costs is not None  # there is a referral
            own.append(self.refer_costs[:, :1])
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


# rows of a log ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Continued:
    """What a row is looked at with, where not all of it was bought.

    With sensors that were bought for it, a row is looked at with its own readings; with
    others, with those of another row, which was like it as far as it was known and whose
    log went on, moved to where the row is.
    """

    sensors: SensorSet
    # Readings of all rows of the log within each set of `reach`, (n_logged, width) for each
    # sensor, filled where nothing was bought; no columns of sensors outside the set.
    filled: tuple[list[Array], ...]
    # What the log holds of enough rows to be learned from.
    reach: tuple[frozenset[str], ...]
    bought: Mask  # (n_rows, n_sensors)
    level: Rows  # the class, or the group that a number belongs to, (n_rows,)
    n_logged: int  # rows of the log
    own: Rows  # where each row stands in the log, (n_rows,)
    # Where the row stands that stands in for it, within each set of `reach`; itself
    # where all of the set was bought, (n_sets, n_rows).
    other: Rows
    # What was told of a row when its log ended, and of its stand-in by the same,
    # (n_sets, n_rows, 2, n_told).
    told: Array
    # Whether leaves count a row once more for each that it stands in for: needed where
    # the label influenced what was bought.
    counts_others: bool = False

    def take(self, rows: Rows) -> Continued:
        """The same of some of the rows; those that stand in for them need not be there."""
        return replace(
            self,
            bought=self.bought[rows],
            level=self.level[rows],
            own=self.own[rows],
            other=self.other[:, rows],
            told=self.told[:, rows],
        )

    def has(self, subset: frozenset[str]) -> Mask:
        """Rows for which all of a subset was bought, (n_rows,)."""
        return np.asarray(self.bought[:, self.sensors.mask(subset)].all(axis=1))

    def reaches(self, subset: frozenset[str]) -> bool:
        """Whether every row can be looked at with a subset."""
        return any(subset <= within for within in self.reach)

    def within(self, subset: frozenset[str]) -> int:
        """Which set of `reach` a subset is looked at in: the first that holds it."""
        return next(i for i, within in enumerate(self.reach) if subset <= within)

    def block(self, sensor: int, subset: frozenset[str]) -> Array:
        """Readings of one sensor of a subset, (n_rows, width)."""
        return np.asarray(self.filled[self.within(subset)][sensor][self.own])

    def features(self, subset: frozenset[str]) -> Array:
        """Readings of a subset side by side, (n_rows, width)."""
        within = self.filled[self.within(subset)]
        return joined_readings(within, self.sensors, subset, self.own)

    def owner(self, subset: frozenset[str]) -> Rows:
        """The sensor that each column of `features` is of."""
        return owner_of(self.filled[self.within(subset)], self.sensors, subset)

    def columns_of(self, fewer: frozenset[str], subset: frozenset[str]) -> Rows:
        """Where the columns of fewer sensors stand among those of a subset."""
        fewer_owner = np.flatnonzero(self.sensors.mask(fewer))
        return np.flatnonzero(np.isin(self.owner(subset), fewer_owner))

    def taught(self, subset: frozenset[str], weight: Array) -> Array:
        """Weight with which the leaf of a subset learns from each row, (n_rows,).

        That of rows that bought it, with those that they stand in for if these count;
        others 0.
        """
        has = self.has(subset)
        if not self.counts_others:
            return np.where(has, weight, 0.0)
        source = np.where(has, self.own, self.other[self.within(subset)])
        total = np.bincount(source, weight, self.n_logged)
        return np.where(has, total[self.own], 0.0)

    def put_right(self, lost: Array, subset: frozenset[str]) -> Array:
        """What rows lose at the leaf of a subset, doubly robust, (n_rows,).

        What a row with filled readings loses is off by as much as rows with real ones
        differ, all else told of them being equal. With t what was told of a row when
        its log ended, and s(i) who stands in for i,

            R_i = lost_i + E_real[lost | t_i] - E_filled[lost | t_i],

        the first expectation learned from pairs of lost_s(i) and what was told of s(i),
        the second from those of lost_i and t_i. Summed over i this is, the expectations
        being linear,

            Σ_i E_real[lost | t_i] + Σ_i (lost_s(i) - E_real[lost | t_s(i)]),

        right if what is lost is as expected by what was told, or if rows stand in for
        others as often as chances have it.

        `lost` is given for readings as they are filled.
        """
        first, lacking = self.within(subset), ~self.has(subset)
        place = np.full(self.n_logged, -1)
        place[self.own] = np.arange(len(self.own))
        at = place[self.other[first]]
        pairs = np.flatnonzero(lacking & (at >= 0))
        if not len(pairs):
            return lost
        told, level = self.told[first], self.level
        n_levels = int(level.max()) + 1
        real = expectation(told[pairs, 1], level[pairs], lost[at[pairs]], n_levels)
        filled = expectation(told[pairs, 0], level[pairs], lost[pairs], n_levels)
        rows = np.flatnonzero(lacking)
        right = lost.copy()
        right[rows] += expected(real - filled, told[rows, 0], level[rows])
        return right


def expectation(told: Array, level: Rows, value: Array, n_levels: int) -> Array:
    """Slopes by what is told, an intercept, and what each level has beside it.

    By a ridge regression; what levels differ by is shrunk.
    """
    center, scale = moments(told, np.ones(len(told)))
    z = (told - center) / scale
    mean = float(value.mean())
    slope = np.linalg.solve(
        z.T @ z + PRIOR_ROWS * np.eye(z.shape[1]), z.T @ (value - mean)
    )
    left = value - mean - z @ slope
    n_each = np.bincount(level, minlength=n_levels)
    by_level = np.bincount(level, left, n_levels) / (n_each + PRIOR_ROWS)
    by_level -= by_level[level].mean()  # the mean is met exactly
    slope = slope / scale
    return np.asarray(np.r_[slope, mean - float(center @ slope), by_level])


def expected(found: Array, told: Array, level: Rows) -> Array:
    """What an expectation says of rows, (n_rows,)."""
    slope, intercept, by_level = np.split(found, [told.shape[1], told.shape[1] + 1])
    return np.asarray(told @ slope + intercept + by_level[level])


def owner_of(
    blocks: Sequence[Array], sensors: SensorSet, subset: frozenset[str]
) -> Rows:
    """The sensor that each column of a subset's readings, side by side, is of."""
    members = np.flatnonzero(sensors.mask(subset)).tolist()
    return np.repeat(members, [blocks[sensor].shape[1] for sensor in members])
