"""`Gaussians`: how the readings of a log go together within each class.

They say what a row would have read where it bought nothing: as expected, or drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sensortree.constants import (
    GAUSSIAN_RIDGE,
    GAUSSIAN_ROUNDS,
    GAUSSIAN_WORK,
    LOG_PATTERNS,
    PRIOR_ROWS,
)
from sensortree.leaves.standardising import moments
from sensortree.types import Array, Mask, Rows

# Columns or sensors that count as bought, (n_all,), and the rows of which.
Patterns = Sequence[tuple[Mask, Rows]]


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
