"""`Continued`: rows whose log ended, each with a row that stands in for what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sensortree.sensors.reader import together
from sensortree.sensors.sensor_set import SensorSet
from sensortree.types import Array, Mask, Rows


@dataclass(frozen=True, eq=False)
class Continued:
    """Which row's readings a row is looked at with, where not all of them were bought.

    With a subset of sensors that was bought for it, a row is looked at with its own
    readings; with others, with all of the readings of another row, which was like it as
    far as it was known, and whose log went on.

    Attributes
    ----------
    sensors : SensorSet
    log : list of n_sensors arrays of shape (n_logged, width)
        Readings of all rows of the log; NaN where nothing was bought.
    reach : tuple of sets of sensors
        What the log holds of enough rows to be learned from.
    bought : ndarray of bool of shape (n_rows, n_sensors)
    own : ndarray of shape (n_rows,)
        Where each row stands in the log.
    other : ndarray of shape (n_sets, n_rows)
        Where the row stands that stands in for it, within each set of `reach`; itself
        where all of the set was bought.
    counts_others : bool
        Whether leaves count a row once more for each that it stands in for: needed where
        the label influenced what was bought.
    """

    sensors: SensorSet
    log: list[Array]
    reach: tuple[frozenset[str], ...]
    bought: Mask
    own: Rows
    other: Rows
    counts_others: bool = False

    def take(self, rows: Rows) -> Continued:
        """The same of some of the rows; those that stand in for them need not be there."""
        return replace(
            self,
            bought=self.bought[rows],
            own=self.own[rows],
            other=self.other[:, rows],
        )

    def has(self, subset: frozenset[str]) -> Mask:
        """Rows for which all of a subset was bought, (n_rows,)."""
        return np.asarray(self.bought[:, self.sensors.mask(subset)].all(axis=1))

    def reaches(self, subset: frozenset[str]) -> bool:
        """Whether every row can be looked at with a subset."""
        return any(subset <= within for within in self.reach)

    def beyond(self) -> list[list[str]]:
        """Sensors, and sets of two or three, out of reach, none within another.

        Not those that 'one_of' forbids anyway.
        """
        sensors = self.sensors
        return [
            list(few)
            for few in minimal_sets_beyond(self.reach, sensors.names)
            if sensors.admissible(frozenset[str]().union(*map(sensors.closure, few)))
        ]

    def source(self, subset: frozenset[str]) -> Rows:
        """Where the row stands whose readings a row is looked at with, (n_rows,)."""
        first = next(i for i, within in enumerate(self.reach) if subset <= within)
        return np.where(self.has(subset), self.own, self.other[first])

    def features(self, subset: frozenset[str]) -> Array:
        """Readings of a subset side by side, (n_rows, width)."""
        return together(self.log, self.sensors, subset, self.source(subset))

    def blocks(self) -> list[Array]:
        """Readings of each sensor as a search looks at them; 0 of what is out of reach.

        A row of which something is missing is looked at through the row that stands in for
        it, so that all its readings are those of one row.
        """
        seen = []
        for name, block in zip(self.sensors.names, self.log, strict=True):
            at = next((i for i, s in enumerate(self.reach) if name in s), None)
            shape = len(self.own), block.shape[1]
            seen.append(np.zeros(shape) if at is None else block[self.other[at]])
        return seen


def effective_size(standing_in: Rows, n_rows: int) -> float:
    """Number of equal rows that those are worth who stand for others, (Σw)² / Σw²."""
    times = np.bincount(standing_in, minlength=1).astype(np.float64)
    return n_rows**2 / float(times @ times)


def minimal_sets_beyond(
    reach: Sequence[frozenset[str]], names: Sequence[str]
) -> list[tuple[str, ...]]:
    """Sensors, pairs and threes of them that no set holds, none within another."""
    found: list[tuple[str, ...]] = []
    within: list[tuple[str, ...]] = [()]
    for _ in range(3):
        longer = []
        for few in within:
            start = names.index(few[-1]) + 1 if few else 0
            for name in names[start:]:
                more = (*few, name)
                if any(set(less) <= set(more) for less in found):
                    continue
                if any(set(more) <= one for one in reach):
                    longer.append(more)
                else:
                    found.append(more)
        within = longer
    return found
