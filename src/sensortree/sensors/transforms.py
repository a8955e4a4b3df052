"""Fitted transformers as plain arrays: what is left of them when training is over.

Each gives, to the last bit, what the scikit-learn transformer gave that it was made from,
for an array or for a pandas, polars or pyarrow frame, without scikit-learn. `Levels` alone
is made from readings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from sensortree.exceptions import DataError
from sensortree.sensors.table import (
    NUMERIC,
    NotNumberError,
    Table,
    as_numbers,
    as_text,
    check_width,
    columns_of,
)
from sensortree.text import reading_words, value_words
from sensortree.types import Array, Mask, Rows


class Transform:
    """Turns columns into other columns; by default one for each, which means the same."""

    if TYPE_CHECKING:

        @property
        def n_columns(self) -> int:
            """Number of columns that go in."""

    @property
    def width(self) -> int:
        """Number of columns that come out."""
        return self.n_columns

    def made_of(self, columns: Sequence[str]) -> list[tuple[int, str]]:
        """For each column that comes out: which one it is made of, and what it means."""
        return list(enumerate(columns))

    @property
    def sources(self) -> tuple[int, ...]:
        """The column that each column that comes out is made of."""
        return tuple(source for source, _ in self.made_of([""] * self.n_columns))

    def names(self, columns: Sequence[str]) -> tuple[str, ...]:
        """What each column that comes out means, by the names of those that go in."""
        return tuple(name for _, name in self.made_of(columns))

    def transform(self, X: Any) -> NDArray[Any]:
        """Columns of some rows, (n_rows, width)."""
        raise NotImplementedError


class ByColumn(Transform):
    """A transform whose first attribute has an entry for each column that goes in."""

    @property
    def n_columns(self) -> int:
        """Number of columns that go in."""
        return len(next(iter(vars(self).values())))


@dataclass(frozen=True, eq=False)
class Passthrough(Transform):
    """Columns as they are."""

    n_columns: int

    def transform(self, X: Any) -> NDArray[Any]:
        """Columns as they are, (n_rows, width)."""
        columns = columns_of(X, self.n_columns)
        if any(column.dtype.kind not in NUMERIC for column in columns):
            return _beside([column.astype(object) for column in columns], X)
        return _beside(columns, X)


@dataclass(frozen=True, eq=False)
class Typed(ByColumn):
    """Numbers as floats and text as objects, whatever they came in; missing is NaN."""

    text: tuple[bool, ...]  # whether a column is text

    def transform(self, X: Any) -> NDArray[Any]:
        """Columns of floats, or of objects if some are text, (n_rows, width)."""
        columns = columns_of(X, self.n_columns)
        typed: list[NDArray[Any]] = [
            as_text(column) if text else as_numbers(column, i)
            for i, (column, text) in enumerate(zip(columns, self.text, strict=True))
        ]
        return _beside(typed, X)


@dataclass(frozen=True, eq=False)
class Imputer(ByColumn):
    """Fills missing numbers; `SimpleImputer`."""

    fill: NDArray[Any]  # (n_columns,): what a missing value becomes
    kept: Mask  # (n_columns,): those that had a value in training; others are left out
    indicators: (
        Rows  # columns that get another, at the end, that says where one was missing
    )

    @property
    def width(self) -> int:
        """Number of columns that come out."""
        return int(self.kept.sum()) + len(self.indicators)

    def made_of(self, columns: Sequence[str]) -> list[tuple[int, str]]:
        """Columns that are kept, then "age is missing"."""
        kept = [(at, columns[at]) for at in np.flatnonzero(self.kept).tolist()]
        gaps = [(at, f"{columns[at]} is missing") for at in self.indicators.tolist()]
        return [*kept, *gaps]

    def transform(self, X: Any) -> NDArray[Any]:
        """Columns without missing values, (n_rows, width)."""
        if self.fill.dtype == object:
            columns = columns_of(X, self.n_columns)
            values = _beside([column.astype(object) for column in columns], X)
        else:
            values = _floats(X, self.n_columns)
        missing = np.asarray(values != values, dtype=bool)  # true of NaN only
        filled = np.where(missing, self.fill.astype(values.dtype), values)
        return np.hstack([filled[:, self.kept], missing[:, self.indicators]])


@dataclass(frozen=True, eq=False)
class Standardiser(ByColumn):
    """Subtracts the mean, then divides by the scale; `StandardScaler`."""

    center: Array
    scale: Array

    def transform(self, X: Any) -> NDArray[Any]:
        """Standardised columns, (n_rows, width)."""
        values = _floats(X, self.n_columns)
        values -= self.center.astype(values.dtype)
        values /= self.scale.astype(values.dtype)
        return values


@dataclass(frozen=True, eq=False)
class Ranger(ByColumn):
    """Multiplies by a factor, then adds an offset; `MinMaxScaler`."""

    factor: Array
    offset: Array
    bounds: tuple[float, float] | None  # to which what is outside is brought

    def transform(self, X: Any) -> NDArray[Any]:
        """Columns in their range, (n_rows, width)."""
        values = _floats(X, self.n_columns)
        values *= self.factor
        values += self.offset
        if self.bounds is not None:
            low, high = (values.dtype.type(bound) for bound in self.bounds)
            np.clip(values, low, high, out=values)
        return values


class Categories:
    """Categories of one column, each with its position.

    They are strings, numbers or None; NaN at most once.
    """

    def __init__(self, values: tuple[Any, ...]):
        self.values = values
        self._position = {v: i for i, v in enumerate(values) if v == v}
        self._missing = next((i for i, v in enumerate(values) if v != v), -1)

    def __len__(self) -> int:
        return len(self.values)

    def positions(self, column: NDArray[Any]) -> Rows:
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
class OneHot(ByColumn):
    """One column per category, 1 where it is; `OneHotEncoder`."""

    categories: tuple[tuple[Any, ...], ...]  # of each column
    dropped: tuple[int | None, ...]  # category of each column that gets no column
    ignore_unknown: bool  # a value that is no category: all zeros, or else an error
    # Categories of each column that share its last column; None where none do. If one of
    # them is dropped, all are.
    rare: tuple[tuple[int, ...], ...] | None = field(
        default=None, metadata={"digest": "if set"}
    )
    # Whether a value that is no category counts as a rare one; None where none are rare.
    unknown_is_rare: bool | None = field(default=None, metadata={"digest": "if set"})

    @property
    def width(self) -> int:
        """Number of columns that come out."""
        return sum(self._widths)

    def made_of(self, columns: Sequence[str]) -> list[tuple[int, str]]:
        """What is 1 there, as "smoking = former"; what is rare shares a name."""
        found = []
        for i, (values, target) in enumerate(
            zip(self.categories, self._targets, strict=True)
        ):
            for at in range(self._widths[i]):
                shown = np.flatnonzero(target[:-1] == at)
                name = f"{columns[i]} = one of {len(shown)} rare ones"
                if len(shown) == 1:
                    name = reading_words(columns[i], values[shown[0]])
                found.append((i, name))
        return found

    @cached_property
    def _tables(self) -> list[Categories]:
        return [Categories(values) for values in self.categories]

    @cached_property
    def _targets(self) -> list[Rows]:
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
        columns = columns_of(X, self.n_columns)
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
class Ordinal(ByColumn):
    """The position of each value among its column's categories; `OrdinalEncoder`."""

    categories: tuple[tuple[Any, ...], ...]  # of each column
    missing_value: float  # what NaN or None among the categories becomes
    unknown_value: float | None  # what no category becomes; None makes it an error

    @cached_property
    def _tables(self) -> list[Categories]:
        return [Categories(values) for values in self.categories]

    def transform(self, X: Any) -> NDArray[Any]:
        """Positions as numbers, (n_rows, width)."""
        columns = columns_of(X, self.n_columns)
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
class Levels(Transform):
    """One column per level of a number, 1 where it is; missing stays missing.

    A number that is no level is 0 in all columns of its own.
    """

    n_columns: int
    readings: tuple[int, ...]  # the column that goes in, of each that comes out
    levels: Array  # (width,): the number that is 1 there

    @property
    def width(self) -> int:
        """One column per level."""
        return len(self.readings)

    def made_of(self, columns: Sequence[str]) -> list[tuple[int, str]]:
        """What is 1 there, as "context is 3"."""
        return [
            (at, f"{columns[at]} is {value_words(level)}")
            for at, level in zip(self.readings, self.levels.tolist(), strict=True)
        ]

    def transform(self, X: Any) -> NDArray[Any]:
        """Zeros, ones and NaN, (n_rows, width)."""
        columns = columns_of(X, self.n_columns)
        result = np.empty((len(X), self.width))
        for i, (at, level) in enumerate(zip(self.readings, self.levels, strict=True)):
            values = as_numbers(columns[at], at)
            result[:, i] = np.where(np.isnan(values), values, values == level)
        return result


def _check_known(
    at: Rows, column: NDArray[Any], table: Categories, number: int
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


@dataclass(frozen=True, eq=False)
class SideBySide(Transform):
    """Several transforms, each of some of the columns; `ColumnTransformer`."""

    n_columns: int
    # Positions of the columns that a transform is given, and the transform.
    parts: tuple[tuple[tuple[int, ...], Transform], ...]

    @property
    def width(self) -> int:
        """Number of columns that come out."""
        return sum(part.width for _, part in self.parts)

    def made_of(self, columns: Sequence[str]) -> list[tuple[int, str]]:
        """What all parts give, in their order."""
        return [
            (at[source], name)
            for at, part in self.parts
            for source, name in part.made_of([columns[i] for i in at])
        ]

    def transform(self, X: Any) -> NDArray[Any]:
        """Columns of all parts, in their order, (n_rows, width)."""
        check_width(X, self.n_columns)
        table, rows, made = Table(X), np.arange(len(X)), []
        for at, part in self.parts:
            try:
                made.append(part.transform(table.take(rows, at)))
            except NotNumberError as error:  # which counts the columns of the part
                raise NotNumberError(at[error.column], error.row, error.value) from None
        return np.hstack(made) if made else np.zeros((len(X), 0))


@dataclass(frozen=True, eq=False)
class InTurn(Transform):
    """One transform after another, one at least; `Pipeline`."""

    steps: tuple[Transform, ...]

    @property
    def n_columns(self) -> int:
        """Number of columns that go in."""
        return self.steps[0].n_columns

    @property
    def width(self) -> int:
        """Number of columns that come out."""
        return self.steps[-1].width

    def made_of(self, columns: Sequence[str]) -> list[tuple[int, str]]:
        """What comes out of the last step, by the columns of the first."""
        found = list(enumerate(columns))
        for step in self.steps:
            made = step.made_of([name for _, name in found])
            found = [(found[source][0], name) for source, name in made]
        return found

    def transform(self, X: Any) -> NDArray[Any]:
        """What the last step gives, (n_rows, width)."""
        for step in self.steps:
            X = step.transform(X)
        return np.asarray(X)


def _floats(X: Any, n_columns: int) -> NDArray[Any]:
    """A new array of numbers, of the floating type that X has, or else float64."""
    columns = [
        c if c.dtype.kind in NUMERIC else as_numbers(c, i)
        for i, c in enumerate(columns_of(X, n_columns))
    ]
    common = np.result_type(*columns) if columns else np.dtype(float)
    # scikit-learn keeps the floating type of arrays and of pandas frames only.
    typed = isinstance(X, np.ndarray) or nw.dependencies.is_pandas_dataframe(X)
    kept = common if typed and common.kind == "f" else np.dtype(float)
    return _beside([column.astype(kept) for column in columns], X)


def _beside(columns: list[NDArray[Any]], X: Any) -> NDArray[Any]:
    return np.stack(columns, axis=1) if columns else np.empty((len(X), 0))


# Positions of the columns of each category; in a row at most one of them is 1.
LevelColumns = tuple[tuple[int, ...], ...]


def levels_of(transform: Any) -> LevelColumns:
    """Positions of the columns that come out for each category, a column a level.

    Examples
    --------
    >>> from sensortree.sensors.transforms import OneHot, Passthrough, SideBySide, levels_of
    >>> smoking = OneHot((("former", "never", "now"),), (None,), ignore_unknown=True)
    >>> levels_of(SideBySide(2, (((0,), Passthrough(1)), ((1,), smoking))))
    ((1, 2, 3),)
    """
    if isinstance(transform, InTurn):
        return levels_of(transform.steps[-1])
    if isinstance(transform, OneHot):
        made = list(enumerate(transform.sources))
        return tuple(
            tuple(at for at, source in made if source == column)
            for column in range(transform.n_columns)
        )
    found: list[tuple[int, ...]] = []
    if isinstance(transform, SideBySide):
        start = 0
        for _, part in transform.parts:
            found += [tuple(start + at for at in each) for each in levels_of(part)]
            start += part.width
    return tuple(found)
