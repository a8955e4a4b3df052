"""Rows of a log, with readings in place of what was not bought of them.

`Continued` are rows whose log ended, with the readings of others that stand in for them.
`Gaussians` say how readings go with each other within each class. `Drawn` are rows of a log
that teach a leaf whose sensors they did not all buy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from sensortree.constants import (
    DRAWN_ROWS,
    DRAWN_TIMES,
    GAUSSIAN_RIDGE,
    GAUSSIAN_ROUNDS,
    GAUSSIAN_WORK,
    LOG_PATTERNS,
    PRIOR_ROWS,
)
from sensortree.leaves.standardising import moments
from sensortree.sensors.reader import joined_readings
from sensortree.sensors.sensor import SensorSet
from sensortree.types import Array, Mask, Rows

if TYPE_CHECKING:
    from sensortree.leaves.rows import TrainingRows

# Columns or sensors that count as bought, (n_all,), and the rows of which.
Patterns = Sequence[tuple[Mask, Rows]]


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


def patterns_of(known: Mask, lacking: Mask) -> list[tuple[Mask, Rows]]:
    """Sets of known sensors, and the rows that count as if just these were known."""
    rows = np.flatnonzero(lacking)
    sets, set_of = np.unique(known[rows], axis=0, return_inverse=True)
    set_of = set_of.ravel()
    size = np.bincount(set_of, minlength=len(sets))
    frequent = np.sort(np.argsort(-size, kind="stable")[:LOG_PATTERNS])
    nothing: Mask = np.asarray(known.all(axis=0))  # what is known of everybody
    kept = np.unique(np.vstack([sets[frequent], nothing[None]]), axis=0)
    inside = (kept[None] <= sets[:, None]).all(axis=2)  # (n_sets, n_kept)
    counts_as = np.where(inside, kept.sum(axis=1), -1).argmax(axis=1)
    found = []
    for number, pattern in enumerate(kept):
        own = rows[counts_as[set_of] == number]
        if own.size:
            found.append((pattern, own))
    return found


# readings by their classes --------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Gaussians:
    """A mean and a covariance for each class, of the columns that are numbers.

    Readings of class c are taken to be normal with mean μ_c and covariance Σ_c. They are
    learned from all rows, each as far as it was bought, by expectation and maximisation; a
    class of few rows takes much of its covariance from all of them. What was not bought of
    a row (M), given what was (K), has

        mean        μ_M + (x_K - μ_K) B,            B = Σ_KK⁻¹ Σ_KM,
        covariance  Σ_MM - Σ_MK B.

    Only numbers are taken to be normal: an answer of yes or no, a level of a category and
    a reading with gaps are left as they are. Nothing leaves the range of what was bought.
    """

    # Where these stand among all; none if nothing was learned, (n_columns,).
    columns: Rows
    center: Array  # by which they are standardised, (n_columns,)
    scale: Array
    low: Array  # the range of what was bought, standardised, (n_columns,)
    high: Array
    mean: Array  # (n_levels, n_columns)
    covariance: Array  # (n_levels, n_columns, n_columns)

    def moved(
        self, values: Array, other: Rows, patterns: Patterns, level: Rows
    ) -> Array:
        """What rows would have read if they differ from others as far as is expected.

        Values are (n_rows, n_all); the readings of `other`, (n_rows,), are moved to each
        row. What comes is right where nothing was bought of a row.
        """
        found = values[other]
        z, theirs = self._standardised(values), self._standardised(found)
        for given, rows, _, slope in self._groups(patterns, level):
            apart = (z - theirs)[np.ix_(rows, given)] @ slope
            self._put(found, rows, ~given, theirs[np.ix_(rows, ~given)] + apart)
        return found

    def drawn(self, values: Array, patterns: Patterns, level: Rows, seed: int) -> Array:
        """Readings of rows, drawn where nothing was bought; as `moved`."""
        rng = np.random.default_rng(seed)
        found, z = values.copy(), self._standardised(values)
        for given, rows, c, slope in self._groups(patterns, level):
            expected = self._expected(z, given, rows, c, slope)
            left = unexplained(self.covariance[c], given, slope)
            noise = rng.normal(size=expected.shape) @ np.linalg.cholesky(left).T
            self._put(found, rows, ~given, expected + noise)
        return found

    def _standardised(self, values: Array) -> Array:
        return np.asarray((values[:, self.columns] - self.center) / self.scale)

    def _groups(
        self, patterns: Patterns, level: Rows
    ) -> Iterator[tuple[Mask, Rows, int, Array]]:
        """Columns that are given, rows and their level, where something is not given.

        With the slopes of what is not given on what is.
        """
        for bought, rows in patterns:
            given = bought[self.columns]
            for c in np.unique(level[rows]) if not given.all() else ():
                slope = regression(self.covariance[c], given)
                yield given, rows[level[rows] == c], int(c), slope

    def _expected(
        self, z: Array, given: Mask, rows: Rows, c: int, slope: Array
    ) -> Array:
        """What is expected of what is not given."""
        apart = z[np.ix_(rows, given)] - self.mean[c, given]
        return np.asarray(self.mean[c, ~given] + apart @ slope)

    def _put(self, found: Array, rows: Rows, lacking: Mask, z: Array) -> None:
        z = np.clip(z, self.low[lacking], self.high[lacking])
        read = z * self.scale[lacking] + self.center[lacking]
        found[np.ix_(rows, self.columns[lacking])] = read


def learn_gaussians(
    values: Array, known: Mask, level: Rows, n_levels: int, patterns: Patterns
) -> Gaussians:
    """Learn means and covariances from all rows, as far as they were bought.

    `known` says what was bought of the values, both (n_rows, n_all); `level` is the class,
    or the group that a number belongs to. Rows that no pattern names have all.
    """
    columns = numbers_among(values, known)
    if n_levels * (len(patterns) + 1) * len(columns) ** 3 > GAUSSIAN_WORK:
        columns = columns[:0]
    seen = np.where(known[:, columns], values[:, columns], np.nan)
    center, scale = moments(seen, np.ones(len(seen)))
    z = (seen - center) / scale
    held = np.where(np.isnan(z), 0.0, z)  # the mean of a column is in its range
    found = Gaussians(
        columns,
        center,
        scale,
        held.min(axis=0, initial=0.0),
        held.max(axis=0, initial=0.0),
        np.zeros((n_levels, len(columns))),
        np.tile(np.eye(len(columns)), (n_levels, 1, 1)),
    )
    for _ in range(GAUSSIAN_ROUNDS if len(columns) else 0):
        found = _expected_anew(found, z, level, patterns)
    return found


def numbers_among(values: Array, known: Mask) -> Rows:
    """Columns of numbers without gaps, of more than two values; where they stand."""
    found = []
    for column in range(values.shape[1]):
        read = values[known[:, column], column]
        if np.isfinite(read).all() and len(np.unique(read)) > 2:
            found.append(column)
    return np.array(found, dtype=np.intp)


def _expected_anew(
    before: Gaussians, z: Array, level: Rows, patterns: Patterns
) -> Gaussians:
    """Means and covariances, given those of the time before."""
    n_levels, width = before.mean.shape
    filled, unsure = z.copy(), np.zeros_like(before.covariance)
    for given, rows, c, slope in before._groups(patterns, level):
        expected = before._expected(z, given, rows, c, slope)
        filled[np.ix_(rows, ~given)] = expected
        left = unexplained(before.covariance[c], given, slope)
        unsure[c][np.ix_(~given, ~given)] += len(rows) * left
    mean = before.mean.copy()
    for c in np.unique(level):
        rows = np.flatnonzero(level == c)
        mean[c] = filled[rows].mean(axis=0)
        apart = filled[rows] - mean[c]
        unsure[c] += apart.T @ apart
    common = unsure.sum(axis=0) / len(z) + GAUSSIAN_RIDGE * np.eye(width)
    n_each = np.bincount(level, minlength=n_levels)[:, None, None]
    covariance = (unsure + PRIOR_ROWS * common) / (n_each + PRIOR_ROWS)
    return replace(before, mean=mean, covariance=covariance)


def regression(covariance: Array, given: Mask) -> Array:
    """Slopes B = Σ_KK⁻¹ Σ_KM of all others on the columns that are given."""
    if not given.any():
        return np.zeros((0, len(given)))
    both = covariance[np.ix_(given, given)], covariance[np.ix_(given, ~given)]
    return np.asarray(np.linalg.solve(*both), dtype=np.float64)


def unexplained(covariance: Array, given: Mask, slope: Array) -> Array:
    """Covariance of the others that is left, Σ_MM - Σ_MK B."""
    left = covariance[np.ix_(~given, ~given)]
    return np.asarray(left - covariance[np.ix_(~given, given)] @ slope)


@dataclass(frozen=True, eq=False)
class Drawn:
    """Rows of a log that teach a leaf whose sensors they did not all buy.

    What was not bought of a row is drawn, several times, given what was bought of it and
    its class, by `Gaussians` that are learned from the rows that a leaf may learn from. A
    row counts the less the more sensors are drawn: by a share for each of them.

    `kept` is what was drawn within a set without a fold, (n_times, n_rows, width).
    """

    rows: TrainingRows
    kept: dict[tuple[int, int], Array] = field(default_factory=dict)

    def without(
        self, subset: frozenset[str], share: float, out: int
    ) -> tuple[Array, Rows, Array]:
        """Readings, classes and weights that teach the leaf of a subset without a fold.

        A row counts by a share for each sensor of the subset that it did not buy. The fold
        is one that there is none of for all rows.
        """
        rows, log = self.rows, self.rows.continued
        assert log is not None
        has, there = log.has(subset), rows.fold != out
        real, lacking = np.flatnonzero(has & there), np.flatnonzero(~has & there)
        drawn = self._drawn(log.within(subset), out)
        whole = log.reach[log.within(subset)]
        own = drawn[:, lacking][:, :, log.columns_of(subset, whole)]
        n_lacking = (~log.bought[lacking][:, log.sensors.mask(subset)]).sum(axis=1)
        weight = rows.weight[lacking] * share**n_lacking / len(own)
        return (
            np.vstack([rows.features(subset)[real], *own]),
            np.concatenate([rows.y[real], np.tile(rows.y[lacking], len(own))]),
            np.concatenate([rows.weight[real], np.tile(weight, len(own))]),
        )

    def _drawn(self, within: int, out: int) -> Array:
        """All readings of a set, drawn by what rows outside a fold say, some times."""
        if (within, out) not in self.kept:
            log = self.rows.continued
            assert log is not None
            whole = log.reach[within]
            values, owner = self.rows.features(whole), log.owner(whole)
            lacking = ~log.has(whole)
            patterns = patterns_of(log.bought & log.sensors.mask(whole), lacking)
            there = np.flatnonzero(self.rows.fold != out)
            gaussians = learn_gaussians(
                values[there],
                log.bought[np.ix_(there, owner)],
                log.level[there],
                int(log.level.max()) + 1,
                _columns(_among(patterns, there, len(values)), owner),
            )
            times = int(np.clip(DRAWN_ROWS // max(1, lacking.sum()), 1, DRAWN_TIMES))
            known, columns = log.bought[:, owner], _columns(patterns, owner)
            drawn = [
                gaussians.drawn(values, columns, log.level, seed)
                for seed in range(times)
            ]
            self.kept[within, out] = np.where(known, values, np.stack(drawn))
        return self.kept[within, out]


def _among(patterns: Patterns, there: Rows, n_rows: int) -> Patterns:
    """The same patterns, with the places that rows have among some of them."""
    place = np.full(n_rows, -1)
    place[there] = np.arange(len(there))
    found = [(pattern, place[rows][place[rows] >= 0]) for pattern, rows in patterns]
    return [(pattern, rows) for pattern, rows in found if len(rows)]


def _columns(patterns: Patterns, owner: Rows) -> Patterns:
    """Patterns of sensors as patterns of columns."""
    return [(pattern[owner], rows) for pattern, rows in patterns]
