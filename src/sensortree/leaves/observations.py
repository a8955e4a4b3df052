"""`Observations`: which independent observations rows are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from sensortree.types import Array, Rows


@dataclass(frozen=True, eq=False)
class Observations:
    """Which observations some rows, each distinct, stand for.

    Attributes
    ----------
    n_rows : int
        Distinct rows.
    row, unit : ndarray of shape (n_samples,)
        The distinct row that each training row is a copy of, and the observation that it
        belongs to: its own, or that of its group.
    weight : ndarray of shape (n_samples,)
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
