"""Fitted transformers as plain arrays: what is left of them when training is over.

Each gives, to the last bit, the numbers that the scikit-learn transformer gave that it was
made from, for an array or for a pandas, polars or pyarrow frame, without scikit-learn.
Each has `n_columns`, the number of columns that it takes, and `width`, the number that it
gives; and says what each of these means, and which column it is made of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from sensortree.sensors.columns import (
    NUMERIC,
    NotNumberError,
    as_numbers,
    as_text,
    check_count,
    counted_columns,
)
from sensortree.sensors.encoders import Levels, OneHot, Ordinal
from sensortree.sensors.table import Table
from sensortree.types import Array


class Transform(Protocol):
    """Whatever turns columns into other columns."""

    @property
    def n_columns(self) -> int:
        """Number of columns that go in."""
        ...

    @property
    def width(self) -> int:
        """Number of columns that come out."""
        ...

    @property
    def sources(self) -> tuple[int, ...]:
        """The column that each column that comes out is made of."""
        ...

    def names(self, columns: Sequence[str]) -> tuple[str, ...]:
        """What each column that comes out means, by the names of those that go in."""
        ...

    def transform(self, X: Any) -> NDArray[Any]:
        """Columns of some rows, (n_rows, width)."""
        ...


class ColumnForColumn:
    """One column comes out of each that goes in, and means the same."""

    @property
    def width(self: Transform) -> int:
        """As many columns as go in."""
        return self.n_columns

    @property
    def sources(self: Transform) -> tuple[int, ...]:
        """Each column that goes in."""
        return tuple(range(self.n_columns))

    def names(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Names of the columns that go in."""
        return tuple(columns)


@dataclass(frozen=True, eq=False)
class Passthrough(ColumnForColumn):
    """Columns as they are.

    Attributes
    ----------
    n_columns : int
    """

    n_columns: int

    def transform(self, X: Any) -> NDArray[Any]:
        """Columns as they are, (n_rows, width)."""
        columns = counted_columns(X, self.n_columns)
        if any(column.dtype.kind not in "biuf" for column in columns):
            return _beside([column.astype(object) for column in columns], X)
        return _beside(columns, X)


@dataclass(frozen=True, eq=False)
class Typed(ColumnForColumn):
    """Numbers as floats and text as objects, whatever they came in; missing is NaN.

    Attributes
    ----------
    text : tuple of bool
        Whether a column is text.
    """

    text: tuple[bool, ...]

    @property
    def n_columns(self) -> int:
        """Number of columns that go in."""
        return len(self.text)

    def transform(self, X: Any) -> NDArray[Any]:
        """Columns of floats, or of objects if some are text, (n_rows, width)."""
        columns = counted_columns(X, self.n_columns)
        typed: list[NDArray[Any]] = [
            as_text(column) if text else as_numbers(column, i)
            for i, (column, text) in enumerate(zip(columns, self.text, strict=True))
        ]
        return _beside(typed, X)


@dataclass(frozen=True, eq=False)
class Imputer:
    """Fills missing numbers; `SimpleImputer`.

    Attributes
    ----------
    fill : ndarray of shape (n_columns,)
        What a missing value becomes.
    kept : ndarray of bool of shape (n_columns,)
        Columns that had a value in training; the others are left out.
    indicators : ndarray of int
        Columns that get another, at the end, that says where a value was missing.
    """

    fill: NDArray[Any]
    kept: NDArray[np.bool_]
    indicators: NDArray[np.intp]

    @property
    def n_columns(self) -> int:
        """Number of columns that go in."""
        return len(self.fill)

    @property
    def width(self) -> int:
        """Number of columns that come out."""
        return int(self.kept.sum()) + len(self.indicators)

    @property
    def sources(self) -> tuple[int, ...]:
        """Columns that are kept, then those that may be missing."""
        return (*np.flatnonzero(self.kept).tolist(), *self.indicators.tolist())

    def names(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Names of what is kept, then "age is missing"."""
        kept = [columns[at] for at in np.flatnonzero(self.kept).tolist()]
        missing = [f"{columns[at]} is missing" for at in self.indicators.tolist()]
        return (*kept, *missing)

    def transform(self, X: Any) -> NDArray[Any]:
        """Columns without missing values, (n_rows, width)."""
        words = self.fill.dtype == object
        values = _objects(X, self.n_columns) if words else _floats(X, self.n_columns)
        missing = values != values  # true of NaN only
        missing = np.asarray(missing, dtype=bool)
        filled = np.where(missing, self.fill.astype(values.dtype), values)
        return np.hstack([filled[:, self.kept], missing[:, self.indicators]])


@dataclass(frozen=True, eq=False)
class Standardiser(ColumnForColumn):
    """Subtracts the mean, then divides by the scale; `StandardScaler`.

    Attributes
    ----------
    center, scale : ndarray of shape (n_columns,)
    """

    center: Array
    scale: Array

    @property
    def n_columns(self) -> int:
        """Number of columns that go in."""
        return len(self.center)

    def transform(self, X: Any) -> NDArray[Any]:
        """Standardised columns, (n_rows, width)."""
        values = _floats(X, self.n_columns)
        values -= self.center.astype(values.dtype)
        values /= self.scale.astype(values.dtype)
        return values


@dataclass(frozen=True, eq=False)
class Ranger(ColumnForColumn):
    """Multiplies by a factor, then adds an offset; `MinMaxScaler`.

    Attributes
    ----------
    factor, offset : ndarray of shape (n_columns,)
    bounds : tuple of two floats, or None
        Results outside are brought to the nearer bound.
    """

    factor: Array
    offset: Array
    bounds: tuple[float, float] | None

    @property
    def n_columns(self) -> int:
        """Number of columns that go in."""
        return len(self.factor)

    def transform(self, X: Any) -> NDArray[Any]:
        """Columns in their range, (n_rows, width)."""
        values = _floats(X, self.n_columns)
        values *= self.factor
        values += self.offset
        if self.bounds is not None:
            low, high = (values.dtype.type(bound) for bound in self.bounds)
            np.clip(values, low, high, out=values)
        return values


@dataclass(frozen=True, eq=False)
class SideBySide:
    """Several transforms, each of some of the columns; `ColumnTransformer`.

    Attributes
    ----------
    n_columns : int
    parts : tuple of (tuple of int, Transform)
        Positions of the columns that a transform is given, and the transform.
    """

    n_columns: int
    parts: tuple[tuple[tuple[int, ...], Transform], ...]

    @property
    def width(self) -> int:
        """Number of columns that come out."""
        return sum(part.width for _, part in self.parts)

    @property
    def sources(self) -> tuple[int, ...]:
        """Columns that each part is given."""
        return tuple(at[source] for at, part in self.parts for source in part.sources)

    def names(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Names of all parts, in their order."""
        given = [(part, [columns[i] for i in at]) for at, part in self.parts]
        return tuple(name for part, own in given for name in part.names(own))

    def transform(self, X: Any) -> NDArray[Any]:
        """Columns of all parts, in their order, (n_rows, width)."""
        check_count(X, self.n_columns)
        table, rows, made = Table(X), np.arange(len(X)), []
        for at, part in self.parts:
            try:
                made.append(part.transform(table.take(rows, at)))
            except NotNumberError as error:  # which counts the columns of the part
                raise NotNumberError(at[error.column], error.row, error.value) from None
        return np.hstack(made) if made else np.zeros((len(X), 0))


@dataclass(frozen=True, eq=False)
class InTurn:
    """One transform after another; `Pipeline`.

    Attributes
    ----------
    steps : tuple of Transform
        At least one.
    """

    steps: tuple[Transform, ...]

    @property
    def n_columns(self) -> int:
        """Number of columns that go in."""
        return self.steps[0].n_columns

    @property
    def width(self) -> int:
        """Number of columns that come out."""
        return self.steps[-1].width

    @property
    def sources(self) -> tuple[int, ...]:
        """Columns that go into the first step."""
        found = tuple(range(self.n_columns))
        for step in self.steps:
            found = tuple(found[source] for source in step.sources)
        return found

    def names(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Names after the last step."""
        for step in self.steps:
            columns = step.names(columns)
        return tuple(columns)

    def transform(self, X: Any) -> NDArray[Any]:
        """What the last step gives, (n_rows, width)."""
        for step in self.steps:
            X = step.transform(X)
        return np.asarray(X)


PLAIN = (
    Passthrough,
    Typed,
    Imputer,
    Standardiser,
    Ranger,
    OneHot,
    Ordinal,
    Levels,
    SideBySide,
    InTurn,
)


def _floats(X: Any, n_columns: int) -> NDArray[Any]:
    """A new array of numbers, of the floating type that X has, or else float64."""
    columns = [
        c if c.dtype.kind in NUMERIC else as_numbers(c, i)
        for i, c in enumerate(counted_columns(X, n_columns))
    ]
    common = np.result_type(*columns) if columns else np.dtype(float)
    # scikit-learn keeps the floating type of arrays and of pandas frames only.
    typed = isinstance(X, np.ndarray) or nw.dependencies.is_pandas_dataframe(X)
    kept = common if typed and common.kind == "f" else np.dtype(float)
    return _beside([column.astype(kept) for column in columns], X)


def _objects(X: Any, n_columns: int) -> NDArray[Any]:
    """A new array of objects."""
    return _beside(
        [column.astype(object) for column in counted_columns(X, n_columns)], X
    )


def _beside(columns: list[NDArray[Any]], X: Any) -> NDArray[Any]:
    return np.stack(columns, axis=1) if columns else np.empty((len(X), 0))
