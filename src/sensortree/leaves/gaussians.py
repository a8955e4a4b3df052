"""`Gaussians`: how readings go with each other within each class, learned from a log.

Readings of class c are taken to be normal with mean μ_c and covariance Σ_c. They are
learned from all rows, each as far as it was bought, by expectation and maximisation; a
class of few rows takes much of its covariance from all of them. What was not bought of a
row (M), given what was (K), has

    mean        μ_M + (x_K - μ_K) B,            B = Σ_KK⁻¹ Σ_KM,
    covariance  Σ_MM - Σ_MK B.

Only numbers are taken to be normal: an answer of yes or no, a level of a category and a
reading with gaps are left as they are. Nothing leaves the range of what was bought.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sensortree.leaves.standardising import moments
from sensortree.types import Array, Mask, Rows

# Rows that a covariance counts beside those of its class, of all classes; share of the
# variance that is added to it.
PRIOR, RIDGE = 30.0, 1e-3
# Times that what is expected is expected anew.
TIMES = 12
# Classes times sets of known columns times columns cubed, at most: of more, nothing is
# learned.
WORK = 2e8

Patterns = Sequence[tuple[Mask, Rows]]


@dataclass(frozen=True, eq=False)
class Gaussians:
    """A mean and a covariance for each class, of the columns that are numbers.

    Attributes
    ----------
    columns : ndarray of shape (n_columns,)
        Where these stand among all; none if nothing was learned.
    center, scale : ndarray of shape (n_columns,)
        By which they are standardised.
    low, high : ndarray of shape (n_columns,)
        The range of what was bought, standardised.
    mean : ndarray of shape (n_levels, n_columns)
    covariance : ndarray of shape (n_levels, n_columns, n_columns)
    """

    columns: Rows
    center: Array
    scale: Array
    low: Array
    high: Array
    mean: Array
    covariance: Array

    def moved(
        self, values: Array, other: Rows, patterns: Patterns, level: Rows
    ) -> Array:
        """What rows would have read if they differ from others as far as is expected.

        Parameters
        ----------
        values : ndarray of shape (n_rows, n_all)
        other : ndarray of shape (n_rows,)
            The row whose readings are moved to each.
        patterns : list of (columns, rows)
            Columns that count as bought, (n_all,), and the rows of which.
        level : ndarray of shape (n_rows,)

        Returns
        -------
        moved : ndarray of shape (n_rows, n_all)
            Right where nothing was bought of a row.
        """
        found = values[other]
        z, theirs = self._standardised(values), self._standardised(found)
        for given, rows, c in self._groups(patterns, level):
            slope = regression(self.covariance[c], given)
            apart = (z - theirs)[np.ix_(rows, given)] @ slope
            self._put(found, rows, ~given, theirs[np.ix_(rows, ~given)] + apart)
        return found

    def drawn(self, values: Array, patterns: Patterns, level: Rows, seed: int) -> Array:
        """Readings of rows, drawn where nothing was bought; as `moved`."""
        rng = np.random.default_rng(seed)
        found, z = values.copy(), self._standardised(values)
        for given, rows, c in self._groups(patterns, level):
            slope = regression(self.covariance[c], given)
            expected = self.mean[c, ~given] + (
                (z[np.ix_(rows, given)] - self.mean[c, given]) @ slope
            )
            left = unexplained(self.covariance[c], given, slope)
            noise = rng.normal(size=expected.shape) @ np.linalg.cholesky(left).T
            self._put(found, rows, ~given, expected + noise)
        return found

    def _standardised(self, values: Array) -> Array:
        return np.asarray((values[:, self.columns] - self.center) / self.scale)

    def _groups(self, patterns: Patterns, level: Rows) -> list[tuple[Mask, Rows, int]]:
        """Columns that are given, rows and their level, where something is not given."""
        return [
            (bought[self.columns], rows[level[rows] == c], int(c))
            for bought, rows in patterns
            for c in np.unique(level[rows])
            if not bought[self.columns].all()
        ]

    def _put(self, found: Array, rows: Rows, lacking: Mask, z: Array) -> None:
        z = np.clip(z, self.low[lacking], self.high[lacking])
        read = z * self.scale[lacking] + self.center[lacking]
        found[np.ix_(rows, self.columns[lacking])] = read


def learn_gaussians(
    values: Array, known: Mask, level: Rows, n_levels: int, patterns: Patterns
) -> Gaussians:
    """Learn means and covariances from all rows, as far as they were bought.

    Parameters
    ----------
    values : ndarray of shape (n_rows, n_all)
    known : ndarray of bool of shape (n_rows, n_all)
        What was bought.
    level : ndarray of shape (n_rows,)
        The class, or the group that a number belongs to.
    n_levels : int
    patterns : list of (columns, rows)
        Columns that count as bought, (n_all,), and the rows of which; rows that are not
        named have all.
    """
    columns = numbers_among(values, known)
    if n_levels * (len(patterns) + 1) * len(columns) ** 3 > WORK:
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
    for _ in range(TIMES if len(columns) else 0):
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
    for given, rows, c in before._groups(patterns, level):
        mean, covariance = before.mean[c], before.covariance[c]
        slope = regression(covariance, given)
        apart = z[np.ix_(rows, given)] - mean[given]
        filled[np.ix_(rows, ~given)] = mean[~given] + apart @ slope
        left = unexplained(covariance, given, slope)
        unsure[c][np.ix_(~given, ~given)] += len(rows) * left
    mean = before.mean.copy()
    for c in np.unique(level):
        rows = np.flatnonzero(level == c)
        mean[c] = filled[rows].mean(axis=0)
        apart = filled[rows] - mean[c]
        unsure[c] += apart.T @ apart
    common = unsure.sum(axis=0) / len(z) + RIDGE * np.eye(width)
    n_each = np.bincount(level, minlength=n_levels)[:, None, None]
    covariance = (unsure + PRIOR * common) / (n_each + PRIOR)
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
