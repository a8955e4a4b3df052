"""`Continued`: rows of a log, with other rows' readings for what they did not buy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from sensortree.constants import (
    PRIOR_ROWS,
)
from sensortree.leaves.standardising import moments
from sensortree.sensors.reader import joined_readings
from sensortree.sensors.sensor import SensorSet
from sensortree.types import Array, Mask, Rows

if TYPE_CHECKING:
    pass


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
        right[rows] += (real - filled).of(told[rows, 0], level[rows])
        return right


@dataclass(frozen=True, eq=False)
class Expectation:
    """A linear expectation, by what is told and by what each level has beside it."""

    slope: Array
    intercept: float
    by_level: Array

    def __sub__(self, other: Expectation) -> Expectation:
        return Expectation(
            self.slope - other.slope,
            self.intercept - other.intercept,
            self.by_level - other.by_level,
        )

    def of(self, told: Array, level: Rows) -> Array:
        """What is expected of rows, (n_rows,)."""
        return np.asarray(told @ self.slope + self.intercept + self.by_level[level])


def expectation(told: Array, level: Rows, value: Array, n_levels: int) -> Expectation:
    """Learn what is expected: a ridge regression, and what levels differ by, shrunk."""
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
    return Expectation(slope, mean - float(center @ slope), by_level)


def owner_of(
    blocks: Sequence[Array], sensors: SensorSet, subset: frozenset[str]
) -> Rows:
    """The sensor that each column of a subset's readings, side by side, is of."""
    members = np.flatnonzero(sensors.mask(subset)).tolist()
    return np.repeat(members, [blocks[sensor].shape[1] for sensor in members])
