"""`Drawn`: rows of a log that teach a leaf whose sensors they did not all buy.

What was not bought of a row is drawn, several times, given what was bought of it and its
class, by `Gaussians` that are learned from the rows that a leaf may learn from. A row
counts the less the more sensors are drawn: by a share for each of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sensortree.leaves.continued import patterns_of
from sensortree.leaves.gaussians import Patterns, learn_gaussians
from sensortree.leaves.rows import TrainingRows
from sensortree.types import Array, Rows

# Times that a row is drawn at most, and rows that are drawn in all.
TIMES, DRAWN_ROWS = 10, 12_000


@dataclass(frozen=True, eq=False)
class Drawn:
    """Rows of a log, drawn where nothing was bought.

    Attributes
    ----------
    rows : TrainingRows
    kept : dict of (set, fold) to ndarray of shape (n_times, n_rows, width)
        What was drawn without a fold.
    """

    rows: TrainingRows
    kept: dict[tuple[int, int], Array] = field(default_factory=dict)

    def without(
        self, subset: frozenset[str], share: float, out: int
    ) -> tuple[Array, NDArray[np.intp], Array]:
        """Readings, classes and weights that teach the leaf of a subset without a fold.

        Parameters
        ----------
        subset : set of str
        share : float
            By how much a row counts for each sensor of the subset that it did not buy.
        out : int
            The fold; one that there is none of for all rows.
        """
        rows, log = self.rows, self.rows.continued
        assert log is not None
        has, there = log.has(subset), rows.fold != out
        real, lacking = np.flatnonzero(has & there), np.flatnonzero(~has & there)
        drawn = self._drawn(log.within(subset), out)
        whole = log.reach[log.within(subset)]
        columns = np.isin(log.owner(whole), np.flatnonzero(log.sensors.mask(subset)))
        own = drawn[:, lacking][:, :, columns]
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
            times = int(np.clip(DRAWN_ROWS // max(1, lacking.sum()), 1, TIMES))
            known = log.bought[:, owner]
            self.kept[within, out] = np.stack(
                [
                    np.where(
                        known,
                        values,
                        gaussians.drawn(
                            values, _columns(patterns, owner), log.level, seed
                        ),
                    )
                    for seed in range(times)
                ]
            )
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
