"""`Observations`: how many independent observations distinct rows are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sensortree.types import Array, Rows


@dataclass(frozen=True, eq=False)
class Observations:
    """How many observations each distinct row stands for, and which are not independent.

    Attributes
    ----------
    counts : ndarray of shape (n_rows,)
    source : ndarray of shape (n_rows,) or None
        Rows of equal source are looked at through the same row of a log, and so are one
        observation together; None where none are.
    """

    counts: Rows
    source: Rows | None = None

    def take(self, rows: Any) -> Observations:
        """The same of some rows."""
        return Observations(
            self.counts[rows], None if self.source is None else self.source[rows]
        )

    def each(self, values: Array) -> Array:
        """Values of distinct rows as one for each observation, of the same mean.

        Of rows of equal source, what they differ from the mean by is added up: how many
        they are is no observation.
        """
        if self.source is not None:
            mean = values.mean()
            _, one = np.unique(self.source, return_inverse=True)
            apart = np.bincount(one, values - mean)
            return np.asarray(mean + apart * (len(apart) / len(values)))
        share = self.counts.mean() / self.counts
        return np.repeat(values * share, self.counts)
