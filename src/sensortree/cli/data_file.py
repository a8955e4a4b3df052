"""`DataFile`: the columns of a CSV or Parquet file, with messages that say where."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time
from decimal import Decimal
from difflib import get_close_matches
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sensortree.cells.formats import ColumnFormat
from sensortree.cells.numbers import NumberColumn, Wanted, read_numbers
from sensortree.cells.styles import decimal_evidence
from sensortree.cells.words import Cell, cut, exact_number, number_text
from sensortree.cli.csv_file import read_csv
from sensortree.cli.layout import Layout
from sensortree.exceptions import DataError, MissingDependencyError
from sensortree.text import listed

LOOKED_AT = 2000  # cells of a column that tell the file's decimal mark
COLUMNS_SAID = 6  # in one line
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class DataFile:
    """Columns of cells: text as it stands in the file, or numbers of a Parquet file.

    Attributes
    ----------
    path : Path
    columns : dict of name to list of cells; "" is an empty one
    lines : sequence of int
        Line, or row from 1, that each row of cells came from.
    unit : {"line", "row"}
        Which of the two.
    layout : Layout
        How the file is written; what is None there was not found out.
    notes : tuple of str
        What was found out, in sentences.
    broken : dict of row to what is wrong with its line
    known : dict of column to ColumnFormat
        How columns were written before.
    """

    path: Path
    columns: dict[str, list[Cell]]
    lines: Sequence[int]
    unit: str = "line"
    layout: Layout = field(default_factory=Layout)
    notes: tuple[str, ...] = ()
    broken: Mapping[int, str] = field(default_factory=dict)
    known: Mapping[str, ColumnFormat] = field(default_factory=dict)
    _read: dict[str, NumberColumn] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.lines)

    def place(self, row: int, column: str = "") -> str:
        """Where a row is, in words."""
        beside = f", column {column!r}" if column else ""
        return f"{self.path}, {self.unit} {self.lines[row]}{beside}"

    def require(self, column: str, wanted_by: str) -> list[Cell]:
        """Give the cells of a column that somebody names."""
        if column not in self.columns:
            close = _nearest(column, self.columns)
            meant = f"did you mean {close!r}? Its" if close else "its"
            raise DataError(
                f"{self.path} has no column {column!r}, which {wanted_by} names; {meant} "
                f"columns are {listed(self.columns)}."
            )
        return self.columns[column]

    def whole(self) -> DataFile:
        """Give the file, if every line of it is a row."""
        if self.broken:
            row, why = min(self.broken.items())
            more = f" ({len(self.broken)} lines are like this)"
            raise DataError(
                f"{self.place(row)}: {why}{more if len(self.broken) > 1 else ''}"
            )
        return self

    def knowing(self, known: Mapping[str, ColumnFormat]) -> DataFile:
        """Give the file, with what is known about the way that columns are written."""
        return replace(self, known=known, _read={})

    def rows(self, kept: NDArray[np.bool_]) -> DataFile:
        """Some rows of the file, its columns read as those of the whole file are."""
        if kept.all():
            return self
        at = np.flatnonzero(kept).tolist()
        columns = {name: [cells[i] for i in at] for name, cells in self.columns.items()}
        new = {row: position for position, row in enumerate(at)}
        broken = {new[row]: why for row, why in self.broken.items() if row in new}
        lines = [self.lines[i] for i in at]
        return replace(self, columns=columns, lines=lines, broken=broken, _read={})

    # what the cells say -------------------------------------------------------------------

    def read(self, column: str) -> NumberColumn:
        """A column, read for numbers."""
        if column not in self._read:
            wanted = Wanted(
                self.layout.decimal,
                self.layout.thousands,
                self.known.get(column),
                self.decimal,
            )
            self._read[column] = read_numbers(self.columns[column], wanted)
        return self._read[column]

    @cached_property
    def decimal(self) -> str:
        """The decimal mark that most columns show; "" if all could be plain numbers."""
        votes: Counter[str] = Counter()
        for cells in self.columns.values():
            votes[decimal_evidence(dict.fromkeys(islice(cells, LOOKED_AT)))] += 1
        if votes[","] == votes["."]:
            return "," if self.layout.delimiter == ";" else ""
        return "," if votes[","] > votes["."] else "."

    def is_text(self, column: str) -> bool:
        """Whether a column is something else than numbers."""
        return not self.read(column).is_number

    def is_blurred(self, column: str) -> bool:
        """Whether different numbers of a column are equal once they are floats."""
        numbers = {n for n in map(exact_number, self.columns[column]) if n is not None}
        return len(set(map(float, numbers))) < len(numbers)

    def missing(self, column: str) -> int:
        """Number of cells of a column that hold nothing."""
        if self.is_text(column):
            return sum(cell == "" for cell in self.columns[column])
        return int(np.isnan(self.read(column).values).sum())

    def numbers(self, column: str, remedy: str) -> NDArray[np.float64]:
        """A column as numbers, NaN where a cell is missing, (n_rows,)."""
        found = self.read(column)
        if not found.is_number:
            cells = self.columns[column]
            row = next(i for i, cell in enumerate(cells) if found.why_not(cell))
            why = found.why_not(cells[row])
            raise DataError(f"{self.place(row, column)}: {why}; {remedy}")
        return found.values

    def texts(self, column: str) -> NDArray[Any]:
        """A column as text, (n_rows,); "" where a cell is empty."""
        cells = [
            cell if isinstance(cell, str) else number_text(cell)
            for cell in self.columns[column]
        ]
        texts = np.empty(len(cells), dtype=object)
        texts[:] = cells
        return texts


def columns_note(notes: Mapping[str, Sequence[str]]) -> list[str]:
    """Sentences about columns, one for all columns of which the same is said."""
    alike: dict[str, list[str]] = {}
    for column, said in notes.items():
        for sentence in said:
            alike.setdefault(sentence, []).append(column)
    lines = []
    for sentence, columns in alike.items():
        names = ", ".join(columns[:COLUMNS_SAID])
        more = len(columns) - COLUMNS_SAID
        names += f" and {more} more" if more > 0 else ""
        lines.append(f"column{'s' if len(columns) > 1 else ''} {names}: {sentence}.")
    return lines


def beside(columns: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Columns as one array, of numbers, or of objects if some are text."""
    objects = any(values.dtype == object for values in columns)
    return np.stack([v.astype(object) if objects else v for v in columns], axis=1)


def read_data(path: Path, layout: Layout | None = None) -> DataFile:
    """Read a file: Parquet by its name, anything else as CSV."""
    layout = layout or Layout()
    if path.suffix.lower() in (".parquet", ".pq"):
        return _read_parquet(path, layout)
    table = read_csv(path, layout)
    return DataFile(
        path,
        table.columns,
        table.lines,
        layout=table.layout,
        notes=table.notes,
        broken=table.broken,
    )


def class_finder(classes: Mapping[str, T]) -> Callable[[Cell], T | None]:
    """What finds the class that a cell means: as it is written, or else by its number.

    Parameters
    ----------
    classes : mapping of text to class
    """
    numbers = {exact_number(name): label for name, label in classes.items()}
    numbers.pop(None, None)

    def find(cell: Cell) -> T | None:
        text = cell if isinstance(cell, str) else number_text(cell)
        return classes[text] if text in classes else numbers.get(exact_number(cell))

    return find


def _nearest(name: str, names: Sequence[str] | Mapping[str, Any]) -> str:
    """The name that was probably meant; "" if none is near."""
    small = {other.casefold(): other for other in names}
    close = get_close_matches(name.casefold(), small, n=1)
    return small[close[0]] if close else ""


# Parquet ----------------------------------------------------------------------------------


def _read_parquet(path: Path, layout: Layout) -> DataFile:
    columns = {name: _cells(path, name, values) for name, values in _parquet(path)}
    n_rows = len(next(iter(columns.values()), []))
    if not n_rows:
        raise DataError(f"{path} has no rows.")
    return DataFile(path, columns, range(1, n_rows + 1), "row", layout)


def _parquet(path: Path) -> list[tuple[str, list[Any]]]:
    """Columns of a Parquet file, by the library that is installed."""
    try:
        import polars
    except ImportError:
        return _parquet_by_pyarrow(path)
    try:
        frame = polars.read_parquet(path)
    except polars.exceptions.PolarsError as error:
        raise DataError(f"{path} is no Parquet file ({error}).") from error
    return [(name, frame[name].to_list()) for name in frame.columns]


def _parquet_by_pyarrow(path: Path) -> list[tuple[str, list[Any]]]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise MissingDependencyError(
            f"{path} is a Parquet file, for which polars or pyarrow is needed and neither "
            f"is installed; run pip install polars, or give a CSV file."
        ) from error
    try:
        table = parquet.read_table(path)
    except pyarrow.ArrowException as error:
        raise DataError(f"{path} is no Parquet file ({error}).") from error
    return [(name, table[name].to_pylist()) for name in table.column_names]


def _cells(path: Path, name: str, values: list[Any]) -> list[Cell]:
    """Values of a Parquet column as cells."""
    cells: list[Cell] = []
    for row, value in enumerate(values):
        if isinstance(value, Decimal):
            value = float(value)
        if value is None or (isinstance(value, float) and math.isnan(value)):
            cells.append("")
        elif isinstance(value, str):
            cells.append(value.strip())
        elif isinstance(value, (datetime, date, time)):
            cells.append(value.isoformat())
        elif isinstance(value, int) and int(float(value)) != value:
            cells.append(str(value))  # no float has all its digits
        elif isinstance(value, (bool, int, float)) and math.isfinite(value):
            cells.append(float(value))
        else:
            raise DataError(
                f"{path}, row {row + 1}, column {name!r}: {cut(str(value))} is neither a "
                f"finite number nor text; convert the column."
            )
    return cells
