"""`TrainingRows`: what is learned from, and the folds that rows are held out with."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensortree.exceptions import DataError, FewRowsWarning
from sensortree.sensors.loss import Loss
from sensortree.sensors.market import Market
from sensortree.sensors.reader import SensorReader, together
from sensortree.sensors.sensor_set import SensorSet
from sensortree.types import Array, Rows


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


def first_of_runs(values: Array) -> Rows:
    """First row of each run of equal rows; NaN equals NaN."""
    above, below = values[:-1], values[1:]
    equal = (above == below) | (np.isnan(above) & np.isnan(below))
    return np.flatnonzero(np.r_[True, ~equal.all(axis=1)])


def assign_folds(values: Array, y: Rows, n_folds: int, classes: NDArray[Any]) -> Rows:
    """Deal sorted rows out to folds, class by class; equal rows go together.

    A class of a single distinct row is never held out (-1), since nothing could be learned
    about it without that row.
    """
    first = first_of_runs(np.hstack([values, y[:, None]]))
    dealt = np.full(len(first), -1)
    rng = np.random.default_rng(0)
    position = 0
    for code, name in enumerate(classes.tolist()):
        members = rng.permutation(np.flatnonzero(y[first] == code))
        if len(members) > 1:
            dealt[members] = (position + np.arange(len(members))) % n_folds
            position += len(members)
        else:
            warnings.warn(
                f"class {name!r} has a single distinct row; that row cannot be held out, "
                f"and is judged by a classifier that has seen it.",
                FewRowsWarning,
                stacklevel=2,
            )
    lengths = np.diff(np.r_[first, len(values)])
    return np.repeat(dealt, lengths)


def folds_of_splits(splits: Iterable[tuple[Rows, Rows]], n_samples: int) -> Rows:
    """Fold of each row from a splitter's (train, test) pairs, which must be a partition."""
    fold = np.full(n_samples, -1)
    times = np.zeros(n_samples, dtype=int)
    for number, (_, test) in enumerate(splits):
        fold[test] = number
        np.add.at(times, test, 1)
    wrong = np.flatnonzero(times != 1)
    if wrong.size:
        raise DataError(
            f"cv holds row {wrong[0]} out {times[wrong[0]]} times; each row must be held "
            f"out exactly once, as by KFold or StratifiedKFold."
        )
    return fold
