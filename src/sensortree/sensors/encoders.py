"""Fitted encoders of categories as plain arrays: ones and zeros, or positions.

As all transforms, each gives what the scikit-learn encoder gave that it was made from;
`Levels` has none, and is made of readings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensortree.exceptions import DataError
from sensortree.sensors.columns import as_numbers, counted_columns
from sensortree.text import reading_words, value_words
from sensortree.types import Array


class Categories:
    """Categories of one column, each with its position.

    Parameters
    ----------
    values : tuple
        Strings, numbers or None; NaN at most once.
    """

    def __init__(self, values: tuple[Any, ...]):
        self.values = values
        self._position = {v: i for i, v in enumerate(values) if v == v}
        self._missing = next((i for i, v in enumerate(values) if v != v), -1)

    def __len__(self) -> int:
        return len(self.values)

    def positions(self, column: NDArray[Any]) -> NDArray[np.intp]:
        """Position of each value, (n_rows,); -1 of one that is not a category."""
        find, missing = self._position.get, self._missing
        try:
            found = [find(v, -1) if v == v else missing for v in column.tolist()]
        except TypeError as error:
            raise DataError(
                f"a column of categories holds a value that is neither text nor a number "
                f"({error})."
            ) from error
        return np.array(found, dtype=np.intp)


@dataclass(frozen=True, eq=False)
class OneHot:
    """One column per category, 1 where it is; `OneHotEncoder`.

    Attributes
    ----------
    categories : tuple of tuples
        Categories of each column.
    dropped : tuple of int or None
        Category of each column that gets no column of its own.
    ignore_unknown : bool
        Whether a value that is no category is all zeros; it is an error otherwise.
    rare : tuple of tuples of int, or None
        Categories of each column that share its last column; None where none do. If one
        of them is dropped, all are.
    unknown_is_rare : bool or None
        Whether a value that is no category counts as a rare one, where there are such;
        None where none are.
    """

    categories: tuple[tuple[Any, ...], ...]
    dropped: tuple[int | None, ...]
    ignore_unknown: bool
    rare: tuple[tuple[int, ...], ...] | None = field(
        default=None, metadata={"digest": "if set"}
    )
    unknown_is_rare: bool | None = field(default=None, metadata={"digest": "if set"})

    @property
    def n_columns(self) -> int:
        """Number of columns that go in."""
        return len(self.categories)

    @property
    def width(self) -> int:
        """Number of columns that come out."""
        return sum(self._widths)

    @property
    def sources(self) -> tuple[int, ...]:
        """Each column as often as it has categories."""
        return tuple(np.repeat(np.arange(self.n_columns), self._widths).tolist())

    def names(self, columns: Sequence[str]) -> tuple[str, ...]:
        """What is 1 there, as "smoking = former"; what is rare shares a name."""
        named: list[str] = []
        for column, values, target in zip(
            columns, self.categories, self._targets, strict=True
        ):
            for at in range(int(target.max(initial=-1)) + 1):
                shown = np.flatnonzero(target[:-1] == at)
                named.append(
                    reading_words(column, values[shown[0]])
                    if len(shown) == 1
                    else f"{column} = one of {len(shown)} rare ones"
                )
        return tuple(named)

    @cached_property
    def _tables(self) -> list[Categories]:
        return [Categories(values) for values in self.categories]

    @cached_property
    def _targets(self) -> list[NDArray[np.intp]]:
        """Position that each category of a column is shown at; -1 of a dropped one.

        What stands behind the last category is for values that are none.
        """
        rare = self.rare or ((),) * self.n_columns
        targets = []
        for values, drop, few in zip(self.categories, self.dropped, rare, strict=True):
            gone = set(few) if drop in few else {drop}
            own = [i for i in range(len(values)) if i not in few and i not in gone]
            target = np.full(len(values) + 1, -1, dtype=np.intp)
            target[own] = np.arange(len(own))
            if few and not gone >= set(few):
                target[list(few)] = len(own)
                if self.unknown_is_rare:
                    target[-1] = len(own)
            targets.append(target)
        return targets

    @cached_property
    def _widths(self) -> list[int]:
        return [int(target.max(initial=-1)) + 1 for target in self._targets]

    def transform(self, X: Any) -> NDArray[Any]:
        """Zeros and ones, (n_rows, width)."""
        columns = counted_columns(X, self.n_columns)
        result = np.zeros((len(X), self.width))
        start = 0
        for i, (table, target) in enumerate(
            zip(self._tables, self._targets, strict=True)
        ):
            at = table.positions(columns[i])
            if not self.ignore_unknown:
                _check_known(at, columns[i], table, i)
            shown = target[at]  # -1, no category, is the one behind the last
            rows = np.flatnonzero(shown >= 0)
            result[rows, start + shown[rows]] = 1.0
            start += self._widths[i]
        return result


@dataclass(frozen=True, eq=False)
class Ordinal:
    """The position of each value among its column's categories; `OrdinalEncoder`.

    Attributes
    ----------
    categories : tuple of tuples
        Categories of each column.
    missing_value : float
        What NaN or None among the categories becomes.
    unknown_value : float or None
        What a value becomes that is no category; None makes it an error.
    """

    categories: tuple[tuple[Any, ...], ...]
    missing_value: float
    unknown_value: float | None

    @property
    def n_columns(self) -> int:
        """Number of columns that go in."""
        return len(self.categories)

    @property
    def width(self) -> int:
        """As many columns as go in."""
        return len(self.categories)

    @property
    def sources(self) -> tuple[int, ...]:
        """Each column that goes in."""
        return tuple(range(self.n_columns))

    def names(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Names of the columns that go in."""
        return tuple(columns)

    @cached_property
    def _tables(self) -> list[Categories]:
        return [Categories(values) for values in self.categories]

    def transform(self, X: Any) -> NDArray[Any]:
        """Positions as numbers, (n_rows, width)."""
        columns = counted_columns(X, self.n_columns)
        result = np.empty((len(X), self.width))
        for i, table in enumerate(self._tables):
            at = table.positions(columns[i])
            if self.unknown_value is None:
                _check_known(at, columns[i], table, i)
            result[:, i] = at
            for position, value in enumerate(table.values):
                if value is None or value != value:
                    result[at == position, i] = self.missing_value
            if self.unknown_value is not None:
                result[at < 0, i] = self.unknown_value
        return result


@dataclass(frozen=True, eq=False)
class Levels:
    """One column per level of a number, 1 where it is; missing stays missing.

    A number that is no level is 0 in all columns of its own.

    Attributes
    ----------
    n_columns : int
    readings : tuple of int
        The column that goes in, of each that comes out.
    levels : ndarray of shape (width,)
        The number that is 1 there.
    """

    n_columns: int
    readings: tuple[int, ...]
    levels: Array

    @property
    def width(self) -> int:
        """One column per level."""
        return len(self.readings)

    @property
    def sources(self) -> tuple[int, ...]:
        """Each column as often as it has levels."""
        return self.readings

    def names(self, columns: Sequence[str]) -> tuple[str, ...]:
        """What is 1 there, as "context is 3"."""
        return tuple(
            f"{columns[at]} is {value_words(level)}"
            for at, level in zip(self.readings, self.levels.tolist(), strict=True)
        )

    def transform(self, X: Any) -> NDArray[Any]:
        """Zeros, ones and NaN, (n_rows, width)."""
        columns = counted_columns(X, self.n_columns)
        result = np.empty((len(X), self.width))
        for i, (at, level) in enumerate(zip(self.readings, self.levels, strict=True)):
            values = as_numbers(columns[at], at)
            result[:, i] = np.where(np.isnan(values), values, values == level)
        return result


def _check_known(
    at: NDArray[np.intp], column: NDArray[Any], table: Categories, number: int
) -> None:
    """Refuse a value that is no category of its column."""
    if (at >= 0).all():
        return
    value = column[np.flatnonzero(at < 0)[0]]
    shown = ", ".join(map(repr, table.values[:8]))
    raise DataError(
        f"Found unknown categories [{value!r}] in column {number} of a sensor; training "
        f"had {shown}{', ...' if len(table) > 8 else ''}: give the encoder "
        f"handle_unknown='ignore', or correct the value."
    )
