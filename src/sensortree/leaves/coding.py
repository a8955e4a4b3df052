"""`Coded`: readings in which a category is one column, of codes, for trees to split by.

A sensor gives a category as ones and zeros, a column for each level. The code of a row is
the position of the one among these columns; NaN if there is none. A tree then parts the
levels in two at once, where a split by a column of ones and zeros takes one level away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sensortree.constants import BOOSTED_MOST_BINS, CODED_FEWEST_LEVELS
from sensortree.sensors.transforms import LevelColumns
from sensortree.types import Array, Mask, Rows


@dataclass(frozen=True, eq=False)
class Coding:
    """Which readings are the levels of a category, and which stay numbers."""

    # Readings that become one column of codes each; these columns come first.
    levels: LevelColumns
    numbers: tuple[int, ...]  # readings that stay as they are

    @property
    def width(self) -> int:
        """Number of readings."""
        return sum(map(len, self.levels)) + len(self.numbers)

    @property
    def is_category(self) -> Mask:
        """Whether a column is codes, (n_columns,)."""
        return np.arange(len(self.levels) + len(self.numbers)) < len(self.levels)

    @property
    def most_levels(self) -> int:
        """Levels of the category that has most; 0 if there is none."""
        return max(map(len, self.levels), default=0)

    def shifted(self, by: int) -> Coding:
        """The same of readings that stand further on."""
        levels = (tuple(by + at for at in group) for group in self.levels)
        return Coding(tuple(levels), tuple(by + at for at in self.numbers))

    def code(self, readings: Array) -> Array:
        """Codes, then numbers, (n_rows, n_columns)."""
        if not self.levels:
            return readings
        codes = []
        for group in self.levels:
            is_one = readings[:, group] == 1.0
            codes.append(np.where(is_one.any(axis=1), is_one.argmax(axis=1), np.nan))
        return np.column_stack([*codes, readings[:, self.numbers]])


@dataclass(frozen=True, eq=False)
class Coded:
    """Readings of some rows, coded: values are (n_rows, n_columns)."""

    values: Array
    coding: Coding

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of rows and of columns."""
        return self.values.shape

    def take(self, rows: Rows | Mask) -> Coded:
        """Some of the rows."""
        return Coded(self.values[rows], self.coding)


def coded(readings: Array | Coded, levels: LevelColumns = ()) -> Coded:
    """Code readings, unless they are; categories of few levels stay ones and zeros.

    `levels` are groups of readings that are the levels of one category each.

    Examples
    --------
    >>> import numpy as np
    >>> from sensortree.leaves.coding import coded
    >>> readings = np.hstack([[[36.6], [38.1], [39.0]], np.eye(3, 5)])
    >>> readings[2] = 39.0, 0, 0, 0, 0, 0  # a level that was never seen
    >>> coded(readings, ((1, 2, 3, 4, 5),)).values
    array([[ 0. , 36.6],
           [ 1. , 38.1],
           [ nan, 39. ]])
    """
    if isinstance(readings, Coded):
        return readings
    sizes = range(CODED_FEWEST_LEVELS, BOOSTED_MOST_BINS + 1)
    groups = tuple(group for group in levels if len(group) in sizes)
    gone = {at for group in groups for at in group}
    numbers = tuple(at for at in range(readings.shape[1]) if at not in gone)
    coding = Coding(groups, numbers)
    return Coded(coding.code(readings), coding)


def side_by_side(blocks: Sequence[Array | Coded]) -> tuple[Coded, Rows]:
    """Put blocks of the same rows side by side; the block that each column is of."""
    each = [coded(block) for block in blocks]
    ends = np.cumsum([0, *(block.coding.width for block in each)]).tolist()
    placed = [block.coding.shifted(by) for by, block in zip(ends, each, strict=False)]
    n_codes = [len(coding.levels) for coding in placed]
    codes = [block.values[:, :n] for block, n in zip(each, n_codes, strict=True)]
    numbers = [block.values[:, n:] for block, n in zip(each, n_codes, strict=True)]
    coding = Coding(
        tuple(group for part in placed for group in part.levels),
        tuple(at for part in placed for at in part.numbers),
    )
    owner = [i for part in (codes, numbers) for i, b in enumerate(part) for _ in b.T]
    return Coded(np.hstack([*codes, *numbers]), coding), np.array(owner, dtype=np.intp)


class CodedTrees:
    """Trees that were boosted on codes, asked with readings as they are."""

    def __init__(self, booster: Any, coding: Coding):
        self.booster, self.coding = booster, coding
        self.classes_ = booster.classes_

    def decision_function(self, X: Array) -> Array:
        """Scores before they become probabilities."""
        return np.asarray(self.booster.decision_function(self.coding.code(X)))

    def predict_proba(self, X: Array) -> Array:
        """Probability of every class, (n_rows, n_classes)."""
        return np.asarray(self.booster.predict_proba(self.coding.code(X)))

    def predict(self, X: Array) -> Any:
        """Most probable class, (n_rows,)."""
        return self.booster.predict(self.coding.code(X))
