"""`DataFile`: the columns of a CSV or Parquet file, with messages that say where."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np
from numpy.typing import NDArray

from sensortree.exceptions import DataError, MissingDependencyError
from sensortree.text import listed

MAX_LINE = 2**20  # bytes; a longer line is no CSV
MISSING = frozenset({"", "NA", "N/A", "NaN", "nan", "null", "NULL"})  # among numbers
OTHER_DELIMITERS = {";": "';'", "\t": "tab", "|": "'|'", ",": "','", ":": "':'"}
Cell = str | float
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
    """

    path: Path
    columns: dict[str, list[Cell]]
    lines: Sequence[int]
    unit: str = "line"

    def __len__(self) -> int:
        return len(self.lines)

    def place(self, row: int, column: str = "") -> str:
        """Where a row is, in words."""
        beside = f", column {column!r}" if column else ""
        return f"{self.path}, {self.unit} {self.lines[row]}{beside}"

    def require(self, column: str, wanted_by: str) -> list[Cell]:
        """Give the cells of a column that somebody names."""
        if column not in self.columns:
            raise DataError(
                f"{self.path} has no column {column!r}, which {wanted_by} names; its "
                f"columns are {listed(self.columns)}."
            )
        return self.columns[column]

    def is_text(self, column: str) -> bool:
        """Whether some cell of a column is neither a number nor missing."""
        return any(as_number(cell) is None for cell in self.columns[column])

    def is_blurred(self, column: str) -> bool:
        """Whether different numbers of a column are equal once they are floats."""
        numbers = {n for n in map(exact_number, self.columns[column]) if n is not None}
        return len(set(map(float, numbers))) < len(numbers)

    def missing(self, column: str) -> int:
        """Number of cells of a column that hold nothing."""
        return sum(value != value for value in map(as_number, self.columns[column]))

    def numbers(self, column: str, remedy: str) -> NDArray[np.float64]:
        """A column as numbers, NaN where a cell is missing, (n_rows,)."""
        values = [as_number(cell) for cell in self.columns[column]]
        for row, value in enumerate(values):
            if value is None:
                raise DataError(
                    f"{self.place(row, column)}: {_cut(self.columns[column][row])} is not "
                    f"a number; {_decimal_point(self.columns[column][row])}{remedy}"
                )
        return np.array(values, dtype=np.float64)

    def texts(self, column: str) -> NDArray[Any]:
        """A column as text, (n_rows,); "" where a cell is empty."""
        cells = [
            cell if isinstance(cell, str) else _number_text(cell)
            for cell in self.columns[column]
        ]
        texts = np.empty(len(cells), dtype=object)
        texts[:] = cells
        return texts


def read_data(path: Path, delimiter: str = ",") -> DataFile:
    """Read a file: Parquet by its name, anything else as CSV."""
    if path.suffix.lower() in (".parquet", ".pq"):
        return _read_parquet(path)
    if delimiter == "tab":
        delimiter = "\t"
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise DataError(
            f"the delimiter must be one character or 'tab', got {delimiter!r}."
        )
    with open(path, "rb") as file:
        return _read_csv(file, path, delimiter)


def as_number(cell: Cell) -> float | None:
    """The number in a cell, NaN if it is missing; None if it is text."""
    if not isinstance(cell, str):
        return cell
    if cell in MISSING:
        return math.nan
    try:
        number = float(cell)
    except ValueError:
        return None
    return number if math.isfinite(number) and "_" not in cell else None


def exact_number(cell: Cell) -> Decimal | None:
    """The number in a cell to its last digit; None if it is missing, or text."""
    number = as_number(cell)
    return None if number is None or number != number else Decimal(cell)


def class_finder(classes: Mapping[str, T]) -> Callable[[Cell], T | None]:
    """What finds the class that a cell means: as it is written, or else by its number.

    Parameters
    ----------
    classes : mapping of text to class
    """
    numbers = {exact_number(name): label for name, label in classes.items()}
    numbers.pop(None, None)

    def find(cell: Cell) -> T | None:
        text = cell if isinstance(cell, str) else _number_text(cell)
        return classes[text] if text in classes else numbers.get(exact_number(cell))

    return find


# CSV --------------------------------------------------------------------------------------


def _read_csv(file: BinaryIO, path: Path, delimiter: str) -> DataFile:
    reader = csv.reader(_lines(file, path), delimiter=delimiter, strict=True)
    header: list[str] | None = None
    rows: list[list[str]] = []
    lines: list[int] = []
    try:
        for cells in reader:
            if not cells:
                continue  # a blank line
            cells = [cell.strip() for cell in cells]
            if header is None:
                header = _check_header(cells, path, delimiter)
            elif len(cells) != len(header):
                raise DataError(
                    f"{path}, line {reader.line_num}: there are {len(cells)} cells, but "
                    f"the header has {len(header)} columns; correct the line, and put "
                    f'cells that hold a {delimiter!r} in "quotes".'
                )
            else:
                rows.append(cells)
                lines.append(reader.line_num)
    except csv.Error as error:
        raise DataError(
            f"{path}, line {reader.line_num}: this is no CSV ({error}); look for a quote "
            f"that is not closed."
        ) from error
    if header is None:
        raise DataError(f"{path} is empty; it needs a header and rows.")
    if not rows:
        raise DataError(f"{path} has a header and no rows.")
    columns = dict(zip(header, map(list, zip(*rows, strict=True)), strict=True))
    return DataFile(path, columns, lines)


def _lines(file: BinaryIO, path: Path) -> Iterator[str]:
    """Lines of text, none of them longer than a line can be."""
    number = 0
    while line := file.readline(MAX_LINE):
        number += 1
        if len(line) == MAX_LINE and not line.endswith(b"\n"):
            raise DataError(
                f"{path}, line {number}: the line is longer than {MAX_LINE:,} bytes; is "
                f"this a CSV file with one row per line?"
            )
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise DataError(
                f"{path}, line {number}: byte {error.start + 1} of the line "
                f"(0x{line[error.start]:02x}) is not UTF-8; save the file as UTF-8."
            ) from error


def _check_header(header: list[str], path: Path, delimiter: str) -> list[str]:
    if len(header) == 1:
        seen = [c for c in OTHER_DELIMITERS if c != delimiter and c in header[0]]
        if seen:
            raise DataError(
                f"{path}, line 1: the header is one column, {_cut(header[0])}; its cells "
                f"look separated by {OTHER_DELIMITERS[seen[0]]}: pass --delimiter "
                f"{OTHER_DELIMITERS[seen[0]]}."
            )
    for position, name in enumerate(header):
        if not name:
            raise DataError(f"{path}, line 1: column {position + 1} has no name.")
        if name in header[:position]:
            raise DataError(
                f"{path}, line 1: column {_cut(name)} stands twice in the header, at "
                f"{header.index(name) + 1} and {position + 1}; rename one of them."
            )
    if all(as_number(name) is not None for name in header):
        raise DataError(
            f"{path}, line 1: the header holds numbers only; begin the file with a line "
            f"of column names."
        )
    return header


# Parquet ----------------------------------------------------------------------------------


def _read_parquet(path: Path) -> DataFile:
    columns = {name: _cells(path, name, values) for name, values in _parquet(path)}
    n_rows = len(next(iter(columns.values()), []))
    if not n_rows:
        raise DataError(f"{path} has no rows.")
    return DataFile(path, columns, range(1, n_rows + 1), "row")


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
        if value is None or (isinstance(value, float) and math.isnan(value)):
            cells.append("")
        elif isinstance(value, str):
            cells.append(value.strip())
        elif isinstance(value, int) and int(float(value)) != value:
            cells.append(str(value))  # no float has all its digits
        elif isinstance(value, (bool, int, float)) and math.isfinite(value):
            cells.append(float(value))
        else:
            raise DataError(
                f"{path}, row {row + 1}, column {name!r}: {_cut(str(value))} is neither a "
                f"finite number nor text; convert the column."
            )
    return cells


def _cut(cell: Cell) -> str:
    """A cell as it is shown in a message."""
    text = cell if isinstance(cell, str) else _number_text(cell)
    return repr(text if len(text) <= 60 else f"{text[:57]}...")


def _number_text(number: float) -> str:
    """A number as a class or category is written: 1 rather than 1.0."""
    return str(int(number)) if number.is_integer() else repr(number)


def _decimal_point(cell: Cell) -> str:
    """A hint, if a decimal comma is the trouble."""
    comma = isinstance(cell, str) and as_number(cell.replace(",", ".")) is not None
    return "write a decimal point; or else " if comma else ""
