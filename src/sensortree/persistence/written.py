"""`WrittenValues`: values as people write them, as a model knows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sensortree.cells.dates import day_of
from sensortree.cells.formats import ColumnFormat
from sensortree.cells.numbers import Wanted, read_numbers
from sensortree.cells.words import MISSING, cut, spelling_key
from sensortree.exceptions import DataError
from sensortree.sensors.encoders import OneHot, Ordinal
from sensortree.sensors.reader import SensorReader
from sensortree.sensors.transforms import InTurn, SideBySide, Typed

Categories = dict[str, tuple[Any, ...]]


@dataclass(frozen=True, eq=False)
class WrittenValues:
    """How the values of a model's columns are written.

    Attributes
    ----------
    categories : mapping of column to tuple
        Of the columns that hold such.
    formats : mapping of column to ColumnFormat
        Of all columns, if the model was learned from a file.
    """

    categories: Mapping[str, tuple[Any, ...]]
    formats: Mapping[str, ColumnFormat]

    def of_columns(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Values by column, each text as the model knows it."""
        return {column: self.of(column, value) for column, value in values.items()}

    def in_order(self, columns: tuple[str, ...], values: Any) -> Any:
        """The same for values of a sensor, by column, in order, or a single one."""
        if isinstance(values, Mapping):
            return self.of_columns(values)
        listed = values if isinstance(values, (list, tuple)) else [values]
        if len(listed) != len(columns):
            return values  # which is refused where it is told
        return [self.of(*pair) for pair in zip(columns, listed, strict=True)]

    def of(self, column: str, value: Any) -> Any:
        """A category but for its spelling, a date as its day, a number as in the file.

        Whatever is no text stays, but for dates that are written as whole numbers.
        """
        known = self.categories.get(column)
        form = self.formats.get(column)
        if is_text(known):
            return as_known(value, known or ()) if isinstance(value, str) else value
        if form is not None and form.date:
            return _day(column, value, form.date)
        if form is None or not isinstance(value, str):
            return value
        found = read_numbers([value], Wanted(known=form))
        if why := found.why_not(value):
            raise DataError(f"column {column!r}: {why}.")
        return float(found.values[0])


def _day(column: str, value: Any, form: str) -> Any:
    """A date as the number of its day; numbers of days stay."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return value
    if isinstance(value, str) and value.strip() in MISSING:
        return float("nan")
    day = day_of(value.strip() if isinstance(value, str) else float(value), form)
    if day is not None:
        return day
    if isinstance(value, str):
        raise DataError(f"column {column!r}: {cut(value)} is not a date, {form}.")
    return value


def categories_of(reader: SensorReader) -> Categories:
    """Categories of the columns that hold such, by name."""
    found: Categories = {}
    for name, columns in zip(reader.sensors.names, reader.sensors.columns, strict=True):
        known = _categories(reader.transformers.get(name), len(columns))
        for column, values in zip(columns, known, strict=True):
            if values is not None:
                found[reader.sensors.column_names[column]] = values
    return found


def _categories(transform: Any, n_columns: int) -> list[tuple[Any, ...] | None]:
    """Categories of each column of a transform; None for numbers."""
    if isinstance(transform, (OneHot, Ordinal)):
        return list(transform.categories)
    if isinstance(transform, InTurn):
        first, *rest = transform.steps
        typed = isinstance(first, Typed) and rest  # which leaves columns where they are
        return _categories(rest[0] if typed else first, n_columns)
    known: list[tuple[Any, ...] | None] = [None] * n_columns
    if isinstance(transform, SideBySide):
        for at, part in transform.parts:
            for position, values in zip(at, _categories(part, len(at)), strict=True):
                known[position] = values
    return known


def is_text(categories: tuple[Any, ...] | None) -> bool:
    """Whether a column's categories are text, which is then read as it stands."""
    return categories is not None and any(isinstance(c, str) for c in categories)


def as_known(text: str, categories: Iterable[Any]) -> str:
    """The category that a text is but for capitals and spaces; else the text."""
    known = [category for category in categories if isinstance(category, str)]
    if text in known:
        return text
    alike = [name for name in known if spelling_key(name) == spelling_key(text)]
    return alike[0] if len(alike) == 1 else text
