"""`TrainingRows`: what is learned from, and the folds that rows are held out with."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensortree.exceptions import DataError, FewRowsWarning
from sensortree.leaves.coding import Coded, coded, side_by_side
from sensortree.sensors.levels import levels_of
from sensortree.sensors.loss import Loss
from sensortree.sensors.market import Market
from sensortree.sensors.reader import SensorReader, together
from sensortree.sensors.referral import Referral
from sensortree.sensors.sensor_set import SensorSet
from sensortree.types import Array, Mask, Rows

# Folds where no number of them is given.
FOLDS = 5
# Rows of equal readings, as a multiple of the folds, that are not held out together.
FREQUENT = 3
# Distinct readings up to which equal ones of one class are not taken for copies.
FEW_READINGS = 16


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
        Positions in `classes`.
    classes : ndarray of shape (n_classes,)
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
    referral : Referral or None
        What it costs to hand an example over to a person; None if nobody is.
    refer_costs : ndarray of shape (n_samples, n_classes) or None
        What it costs to hand over each example if it is of each class.
    may_refer : bool
        Whether handing over may ever cost less than an answer.
    """

    reader: SensorReader
    blocks: list[Array]
    y: Rows
    classes: NDArray[Any]
    weight: Array
    weighted: bool
    fold: Rows
    prices: Array | None = None
    loss: Loss = field(default_factory=Loss)
    rows: Rows = field(default_factory=lambda: np.empty(0, np.intp))
    frequent: Mask = field(default_factory=lambda: np.empty(0, bool))
    target: str = ""
    referral: Referral | None = None
    refer_costs: Array | None = None
    may_refer: bool = False

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
            refer_costs=None if self.refer_costs is None else self.refer_costs[rows],
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
        return Market(self.sensors, self.prices, max_cost, self.weight)

    def varying_prices(self) -> Array:
        """Prices that differ between examples, (n_samples, n_varying)."""
        if self.prices is None:
            return np.empty((len(self.y), 0))
        return np.asarray(self.prices[:, self.sensors.varying])

    def features(self, subset: frozenset[str]) -> Array:
        """Readings of a subset side by side, (n_samples, width)."""
        return together(self.blocks, self.sensors, subset, np.arange(len(self.y)))

    @cached_property
    def coded_blocks(self) -> list[Coded]:
        """Readings of each sensor, a category as one column."""
        transforms = map(self.reader.transformers.get, self.sensors.names)
        return [
            coded(block, levels_of(transform))
            for block, transform in zip(self.blocks, transforms, strict=True)
        ]

    def coded(self, subset: frozenset[str]) -> Coded:
        """Readings of a subset side by side, a category as one column."""
        chosen = map(self.sensors.index, self.sensors.in_order(subset))
        nothing = np.empty((len(self.y), 0))
        return side_by_side([nothing, *(self.coded_blocks[j] for j in chosen)])[0]

    def distinct(self) -> tuple[Rows, Array]:
        """First row of each run of equal rows (class and fold too), and its weight."""
        return self._distinct

    @cached_property
    def _distinct(self) -> tuple[Rows, Array]:
        own = [self.varying_prices(), self.own_refer_costs()]
        ends = [*own, self.y[:, None], self.fold[:, None]]
        columns = (column for block in [*self.blocks, *ends] for column in block.T)
        first = first_of_runs(columns, len(self.y))
        return first, np.add.reduceat(self.weight, first)

    def observations(self) -> Rows:
        """How many observations each distinct row stands for.

        Rows of frequent readings are one each; others only repeat each other.
        """
        first, _ = self.distinct()
        lengths = np.diff(np.r_[first, len(self.y)])
        return np.where(self.frequent[first], lengths, 1)


def first_of_runs(columns: Iterable[NDArray[Any]], n_rows: int) -> Rows:
    """First row of each run of equal rows; NaN equals NaN."""
    again = np.arange(1, n_rows)  # rows that equal the one above them so far
    for column in columns:
        above, here = column[again - 1], column[again]
        again = again[(above == here) | (np.isnan(above) & np.isnan(here))]
        if not again.size:
            break
    return np.delete(np.arange(n_rows), again)


def order_of_rows(columns: Iterable[NDArray[Any]], n_rows: int) -> Rows:
    """Order of rows by their columns, of which the first counts most; NaN comes last.

    Equal rows stay in their order. A column is looked at only where all before it are
    equal, which they seldom are.
    """
    order = np.arange(n_rows)
    tied = np.arange(n_rows)  # places whose rows are not told apart yet, in runs
    run = np.zeros(n_rows, dtype=np.intp)
    for column in columns:
        rows = order[tied]
        rows = rows[np.lexsort([column[rows], run])]
        order[tied] = rows
        first = first_of_runs([run, column[rows]], len(rows))
        length = np.diff(np.r_[first, len(rows)])
        left = np.repeat(length > 1, length)
        tied, run = tied[left], np.repeat(np.arange(len(first)), length)[left]
        if not tied.size:
            break
    return order


def frequent_readings(values: Array, y: Rows, n_folds: int) -> Mask:
    """Whether a row's readings are those of many rows, (n_samples,).

    Such rows say what is true of these readings, rather than repeat each other. Copies
    are known by this: all that are equal are of one class, and there are many readings.

    Parameters
    ----------
    values : ndarray of shape (n_samples, n_columns)
        Readings, sorted, so that equal ones are neighbours.
    y : ndarray of shape (n_samples,)
    n_folds : int
    """
    first = first_of_runs(values.T, len(values))
    lengths = np.diff(np.r_[first, len(values)])
    many = lengths >= FREQUENT * n_folds
    mixed = np.minimum.reduceat(y, first) < np.maximum.reduceat(y, first)
    copies = not (many & mixed).any() and len(first) > FEW_READINGS
    return np.repeat(many & (not copies), lengths)


def assign_folds(values: Array, y: Rows, n_folds: int, classes: NDArray[Any]) -> Rows:
    """Deal sorted rows out to folds, class by class; equal readings go together.

    Equal readings of very many rows, no copies, are dealt out row by row: without them in
    the other folds nothing could be learned from readings that are few, such as yes and no.
    Of others, those that several classes share are dealt with the rarest of these, and
    count for all of them. Where a class has readings of its own only, folds take turns.

    The only readings of a class are never held out (-1), since nothing could be learned
    about it without them.

    Parameters
    ----------
    values : ndarray of shape (n_samples, n_columns)
        Readings, sorted, so that equal ones are neighbours.
    y : ndarray of shape (n_samples,)
        Positions in `classes`.
    n_folds : int
    classes : ndarray of shape (n_classes,)

    Returns
    -------
    fold : ndarray of shape (n_samples,)
    """
    frequent = frequent_readings(values, y, n_folds)
    begins = frequent.copy()
    begins[first_of_runs(values.T, len(values))] = True
    first = np.flatnonzero(begins)
    lengths = np.diff(np.r_[first, len(values)])
    has = np.zeros((len(first), len(classes)), dtype=bool)
    has[np.repeat(np.arange(len(first)), lengths), y] = True
    n_readings = has.sum(axis=0)
    alone = n_readings == 1
    for name in classes[alone].tolist():
        warnings.warn(
            f"class {name!r} has a single distinct row; that row cannot be held out, "
            f"and is judged by a classifier that has seen it.",
            FewRowsWarning,
            stacklevel=2,
        )
    dealt_with = np.where(has, n_readings, len(first) + 1).argmin(axis=1)
    dealt_with[has[:, alone].any(axis=1)] = -1
    rng = np.random.default_rng(0)
    single = frequent[first]
    order = [
        rng.permutation(np.flatnonzero((dealt_with == c) & ~single))
        for c in range(len(alone))
    ]
    deal = evenly if (has.sum(axis=1) > 1).any() else in_turn
    fold = np.full(len(first), -1)
    fold[np.concatenate(order)] = deal(order, has, n_folds)
    for c in range(len(alone)):
        rows = np.flatnonzero((dealt_with == c) & single)
        fold[rows] = (np.arange(len(rows)) + c) % n_folds
    return np.repeat(fold, lengths)


def in_turn(order: list[Rows], has: Mask, n_folds: int) -> Rows:
    """Fold of readings, one after another; right where no classes share any."""
    return np.arange(sum(map(len, order))) % n_folds


def evenly(order: list[Rows], has: Mask, n_folds: int) -> Rows:
    """Fold of readings: that with the fewest of the class, and of equals the next in turn.

    A fold that would hold all of a class is avoided; then, of folds with as few of the
    reading's own class, that with the fewest of the other classes that share it is taken.

    Parameters
    ----------
    order : list of n_classes arrays
        The readings that are dealt with each class, in the order that they are dealt.
    has : ndarray of bool of shape (n_readings, n_classes)
        Whether a class has a reading.
    n_folds : int

    Returns
    -------
    fold : ndarray of shape (number of readings in `order`,)
    """
    counts = np.zeros((n_folds, has.shape[1]), dtype=int)
    dealt: list[int] = []
    for code, readings in enumerate(order):
        for reading in readings:
            shared = counts[:, has[reading]]
            holds_all = (shared > 0) & (shared == shared.sum(axis=0))
            after = (np.arange(n_folds) - len(dealt)) % n_folds
            keys = [after, shared.sum(axis=1), counts[:, code], holds_all.sum(axis=1)]
            best = np.lexsort(keys)[0]  # the last key counts most
            counts[best] += has[reading]
            dealt.append(best)
    return np.array(dealt, dtype=np.intp)


def folds_of_splits(
    splits: Iterable[tuple[Rows, Rows]], n_samples: int, rows: Rows
) -> Rows:
    """Fold of those rows that count, each of which must be held out once.

    Parameters
    ----------
    splits : iterable of (train, test)
        Positions among all rows.
    n_samples : int
        The number of all rows.
    rows : ndarray of shape (n_rows,)
        Those that count; whether others are held out does not matter.

    Returns
    -------
    fold : ndarray of shape (n_rows,)
    """
    fold = np.full(n_samples, -1)
    times = np.zeros(n_samples, dtype=int)
    for number, (_, test) in enumerate(splits):
        fold[test] = number
        np.add.at(times, test, 1)
    wrong = rows[times[rows] != 1]
    if wrong.size:
        raise DataError(
            f"cv holds row {wrong[0]} out {times[wrong[0]]} times; each row must be held "
            f"out exactly once, as by KFold or StratifiedKFold."
        )
    return fold[rows]
