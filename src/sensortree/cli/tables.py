"""Tables: the columns of a CSV or Parquet file, with messages that say where.

How a CSV file is written (encoding, delimiter, header, decimal mark) is found out by
looking at it, unless a `Layout` says it.
"""

from __future__ import annotations

import csv
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time
from decimal import Decimal
from difflib import get_close_matches
from functools import cached_property
from importlib import import_module
from itertools import chain, islice
from pathlib import Path
from typing import Any, TextIO, TypeVar

import numpy as np
from numpy.typing import NDArray

from sensortree.cells.numbers import (
    NumberColumn,
    Wanted,
    decimal_evidence,
    read_numbers,
)
from sensortree.cells.words import (
    Cell,
    ColumnFormat,
    as_number,
    cut,
    exact_number,
    is_nothing,
    number_text,
)
from sensortree.cli.options import Layout
from sensortree.exceptions import DataError, MissingDependencyError
from sensortree.text import listed

CELLS_LOOKED_AT = 2000  # of a column, to find the file's decimal mark
COLUMNS_NAMED = 6  # in one line
MAX_LINE = 2**20  # characters; a longer line is no CSV
LINES_LOOKED_AT = 200
DELIMITERS = {",": "','", ";": "';'", "\t": "tab", "|": "'|'"}
# What the last lines of a table begin with, where they are sums and not examples.
SUMS = re.compile(
    r"(grand |sub)?totals?|sums?|overall|mean|average|median|min|max|sd|s\.d\.|std|count|"
    r"summe|gesamt|insgesamt|mittelwert|[^\W\d][\w ]*:.*",
    re.IGNORECASE | re.DOTALL,
)
NARROW = 2  # columns of a table in which a line of one cell may be a row
# First bytes of files that are something else, and what to do with them.
OTHERS = {
    b"PK\x03\x04": "a zip archive or an Excel workbook; save the sheet as CSV.",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook; save the sheet as CSV.",
    b"\x1f\x8b": "compressed by gzip; unpack it first.",
    b"PAR1": "a Parquet file; name it .parquet.",
}
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class DataFile:
    """Columns of cells: text as it stands in the file, or numbers of a Parquet file."""

    path: Path
    columns: dict[str, list[Cell]]  # by name; "" is an empty cell
    lines: Sequence[int]  # line, or row from 1, that each row of cells came from
    unit: str = "line"  # "line" or "row"
    # What is None there was not found out.
    layout: Layout = field(default_factory=Layout)
    notes: tuple[str, ...] = ()  # what was found out, in sentences
    # What is wrong with the line of a row.
    broken: Mapping[int, str] = field(default_factory=dict)
    # How columns were written before.
    known: Mapping[str, ColumnFormat] = field(default_factory=dict)
    _read: dict[str, NumberColumn] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.lines)

    def place(self, row: int, column: str = "") -> str:
        """Where a row is, in words."""
        at = f", column {column!r}" if column else ""
        return f"{self.path}, {self.unit} {self.lines[row]}{at}"

    def require(self, column: str, wanted_by: str) -> list[Cell]:
        """Give the cells of a column that `wanted_by` names."""
        if column not in self.columns:
            by_key = {name.casefold(): name for name in self.columns}
            close = get_close_matches(column.casefold(), by_key, n=1)
            meant = f"did you mean {by_key[close[0]]!r}? Its" if close else "its"
            raise DataError(
                f"{self.path} has no column {column!r}, which {wanted_by} names; {meant} "
                f"columns are {listed(self.columns)}."
            )
        return self.columns[column]

    def whole(self) -> DataFile:
        """Give the file, or refuse it if a line is not a row."""
        if self.broken:
            row, why = min(self.broken.items())
            more = f" ({len(self.broken)} lines are like this)"
            raise DataError(
                f"{self.place(row)}: {why}{more if len(self.broken) > 1 else ''}"
            )
        return self

    def knowing(self, known: Mapping[str, ColumnFormat]) -> DataFile:
        """Give the file, with what is known about how columns are written."""
        return replace(self, known=known, _read={})

    def rows(self, kept: NDArray[np.bool_]) -> DataFile:
        """Some rows of the file."""
        if kept.all():
            return self
        at = np.flatnonzero(kept).tolist()
        columns = {name: [cells[i] for i in at] for name, cells in self.columns.items()}
        new = {row: position for position, row in enumerate(at)}
        broken = {new[row]: why for row, why in self.broken.items() if row in new}
        lines = [self.lines[i] for i in at]
        return replace(self, columns=columns, lines=lines, broken=broken, _read={})

    # what the cells mean ------------------------------------------------------------------

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
            votes[decimal_evidence(dict.fromkeys(islice(cells, CELLS_LOOKED_AT)))] += 1
        if votes[","] == votes["."]:
            return "," if self.layout.delimiter == ";" else ""
        return "," if votes[","] > votes["."] else "."

    def is_text(self, column: str) -> bool:
        """Whether a column holds anything but numbers."""
        return not self.read(column).is_number

    def is_blurred(self, column: str) -> bool:
        """Whether different numbers of a column become equal as floats."""
        numbers = {n for n in map(exact_number, self.columns[column]) if n is not None}
        return len(set(map(float, numbers))) < len(numbers)

    def missing(self, column: str) -> int:
        """Number of missing cells of a column."""
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
        return as_objects(map(text_of, self.columns[column]))


def as_objects(values: Iterator[Any] | Sequence[Any]) -> NDArray[Any]:
    """Values as a one-dimensional array of objects."""
    values = list(values)
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def text_of(cell: Cell) -> str:
    """A cell as text: a number of a Parquet file as it would be written."""
    return cell if isinstance(cell, str) else number_text(cell)


def columns_note(notes: Mapping[str, Sequence[str]]) -> list[str]:
    """Sentences about columns, one for all columns that share it."""
    alike: dict[str, list[str]] = {}
    for column, sentences in notes.items():
        for sentence in sentences:
            alike.setdefault(sentence, []).append(column)
    lines = []
    for sentence, columns in alike.items():
        names = ", ".join(columns[:COLUMNS_NAMED])
        more = len(columns) - COLUMNS_NAMED
        names += f" and {more} more" if more > 0 else ""
        lines.append(f"column{'s' if len(columns) > 1 else ''} {names}: {sentence}.")
    return lines


def left_out_note(data: DataFile, target: str, out: NDArray[np.bool_]) -> list[str]:
    """How many rows are left out for want of an answer, and what stands in its place."""
    if not out.any():
        return []
    cells = sorted({text_of(data.columns[target][row]) for row in np.flatnonzero(out)})
    shown = [cut(cell) if cell else "empty" for cell in cells]
    if len(shown) > COLUMNS_NAMED + 1:
        shown[COLUMNS_NAMED:] = [f"one of {len(shown) - COLUMNS_NAMED} more"]
    values = " or ".join(shown)
    return [f"{out.sum()} rows are left out: their {target} is {values}."]


def stacked(columns: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Columns as one array, of numbers, or of objects if some are text."""
    objects = any(values.dtype == object for values in columns)
    return np.stack([v.astype(object) if objects else v for v in columns], axis=1)


def class_finder(classes: Mapping[str, T]) -> Callable[[Cell], T | None]:
    """Make what finds the class of a cell: by its text, or else by its number."""
    numbers = {exact_number(name): label for name, label in classes.items()}
    numbers.pop(None, None)

    def find(cell: Cell) -> T | None:
        text = text_of(cell)
        return classes[text] if text in classes else numbers.get(exact_number(cell))

    return find


def read_data(path: Path, layout: Layout | None = None) -> DataFile:
    """Read a file: Parquet by its name, anything else as CSV."""
    layout = layout or Layout()
    if path.suffix.lower() in (".parquet", ".pq"):
        return _read_parquet(path, layout)
    return _read_csv(path, layout)


# CSV --------------------------------------------------------------------------------------


def _read_csv(path: Path, layout: Layout) -> DataFile:
    """Read a CSV file in the encoding that is given, or in the first that fits."""
    with open(path, "rb") as file:
        first = file.read(4)
    for magic, what in OTHERS.items():
        if first.startswith(magic):
            raise DataError(f"{path} is {what}")
    encodings = ["utf-8-sig", "cp1252", "latin-1"]
    if layout.encoding is not None:
        encodings = [layout.encoding]
    elif first[:2] in (b"\xff\xfe", b"\xfe\xff"):
        encodings = ["utf-16"]
    for encoding in encodings:
        notes = []
        if encoding == "utf-16" and layout.encoding is None:
            notes.append("it is UTF-16.")
        elif encoding != encodings[0]:
            notes.append(
                f"it is not UTF-8; read as {encoding} (Western European). If letters "
                f"look wrong, pass --encoding."
            )
        try:
            with open(path, encoding=encoding, newline="") as file:
                return _read_text(file, path, replace(layout, encoding=encoding), notes)
        except UnicodeError as error:
            if encoding == encodings[-1]:
                raise DataError(
                    f"{path} cannot be read as {encoding} ({error}); pass another "
                    f"--encoding."
                ) from error
    raise AssertionError("every byte is a letter of latin-1")


def _read_text(file: TextIO, path: Path, layout: Layout, notes: list[str]) -> DataFile:
    lines = _lines(file, path)
    sample = list(islice(lines, LINES_LOOKED_AT))
    skipped = 0
    if sample and sample[0].lower().startswith("sep=") and len(sample[0].strip()) == 5:
        mark = sample[0].strip()[-1]  # by which Excel tells itself the delimiter
        layout = replace(layout, delimiter=layout.delimiter or mark)
        skipped, sample = 1, sample[1:]
    delimiter = layout.delimiter
    if delimiter is None:
        delimiter = find_delimiter(sample)
        layout = replace(layout, delimiter=delimiter)
        if delimiter != ",":
            notes.append(f"cells are separated by {DELIMITERS[delimiter]}.")
    width = _most_common(_widths(sample, delimiter))
    rows: list[list[str]] = []
    numbers: list[int] = []
    remarks: list[int] = []
    reader = csv.reader(chain(sample, lines), delimiter=delimiter, strict=True)
    number, after = skipped + 1, skipped + 1
    try:
        for row in reader:
            number, after = after, reader.line_num + skipped + 1
            cells = [cell.strip() for cell in row]
            if not any(cells):
                continue  # a blank line
            # A remark among the rows, or a title above the header.
            alone = len(cells) == 1 if rows else sum(map(bool, cells)) < width / 2
            if width > NARROW and alone:
                remarks.append(number)
                continue
            rows.append(cells)
            numbers.append(number)
    except csv.Error as error:
        raise DataError(
            f"{path}, line {reader.line_num + skipped}: this is no CSV ({error}); look "
            f"for a quote that is not closed."
        ) from error
    if not rows:
        raise DataError(f"{path} is empty; it needs a header and rows.")
    above = _without_footer(rows)
    remarks += numbers[above:]
    del rows[above:], numbers[above:]
    if remarks:
        shown = ", ".join(map(str, remarks[:5])) + (", ..." if remarks[5:] else "")
        which = f"lines {shown} are" if remarks[1:] else f"line {shown} is"
        notes.append(f"{which} a title or a remark, and left out.")
    header, body = rows[0], rows[1:]
    _check_header(header, path, numbers[0], delimiter)
    if not body:
        raise DataError(f"{path} has a header and no rows.")
    broken = _make_rectangular(body, len(header), delimiter)
    columns = list(zip(*body, strict=True))
    used = [at for at, name in enumerate(header) if name or any(columns[at])]
    names = _distinct_names(header, used, notes)
    return DataFile(
        path,
        {name: list(columns[at]) for name, at in zip(names, used, strict=True)},
        numbers[1:],
        layout=layout,
        notes=tuple(f"{path}: {note}" for note in notes),
        broken=broken,
    )


def _without_footer(rows: Sequence[Sequence[str]]) -> int:
    """How many lines, the header among them, stand above sums and remarks.

    Such a line has one cell, filled up with empty ones, or begins as sums do; and none of
    the lines above begins like it. An identifier is like those that differ in digits.
    """
    alike = Counter(_shape(row[0]) for row in rows[1:])
    above = len(rows)
    while above > 1:
        first, *rest = rows[above - 1]
        alone = len(rows[0]) > NARROW and not any(rest)
        if (
            is_nothing(first)
            or as_number(first) is not None
            or alike[_shape(first)] > 1
        ):
            break
        if not alone and not SUMS.fullmatch(first):
            break
        above -= 1
    return above if above > 1 else len(rows)


def _shape(text: str) -> str:
    """A text without what differs between identifiers: its digits."""
    return re.sub(r"\d+", "0", text)


def _lines(file: TextIO, path: Path) -> Iterator[str]:
    """Lines of text, none of them longer than a line can be."""
    number = 0
    while line := file.readline(MAX_LINE):
        number += 1
        if len(line) == MAX_LINE and not line.endswith("\n"):
            raise DataError(
                f"{path}, line {number}: the line is longer than {MAX_LINE:,} characters; "
                f"is this a CSV file with one row per line?"
            )
        yield line


def find_delimiter(lines: list[str]) -> str:
    """What separates the cells of most lines into as many as the header has."""
    best, most = ",", 0.0
    for delimiter in DELIMITERS:
        widths = _widths(lines, delimiter)
        usual = _most_common(widths)
        if usual < 2:
            continue
        alike = widths.count(usual) / len(widths) + 0.5 * (widths[0] == usual)
        if alike > most:
            best, most = delimiter, alike
    return best


def _widths(lines: list[str], delimiter: str) -> list[int]:
    """Number of cells in each line that is not blank."""
    try:
        rows = list(csv.reader(lines, delimiter=delimiter))
    except csv.Error:
        return []
    return [len(row) for row in rows if any(cell.strip() for cell in row)]


def _most_common(widths: list[int]) -> int:
    return Counter(widths).most_common(1)[0][0] if widths else 0


def _check_header(header: list[str], path: Path, line: int, delimiter: str) -> None:
    if len(header) == 1:
        seen = [c for c in DELIMITERS if c != delimiter and c in header[0]]
        if seen:
            raise DataError(
                f"{path}, line {line}: the header is one column, {cut(header[0])}; its "
                f"cells look separated by {DELIMITERS[seen[0]]}: pass --delimiter "
                f"{DELIMITERS[seen[0]]}."
            )
    if all(as_number(name) is not None for name in header):
        raise DataError(
            f"{path}, line {line}: the header holds numbers only; begin the file with a "
            f"line of column names."
        )


def _make_rectangular(
    body: list[list[str]], width: int, delimiter: str
) -> dict[int, str]:
    """Bring every row to the width of the header; rows that have another, with why."""
    broken = {}
    for number, row in enumerate(body):
        if len(row) == width:
            continue
        if len(row) > width and not any(row[width:]):
            del row[width:]
            continue
        broken[number] = (
            f"there are {len(row)} cells, but the header has {width} columns; correct the "
            f'line, and put cells that hold a {delimiter!r} in "quotes".'
        )
        row[:] = [""] * width
    return broken


def _distinct_names(header: list[str], used: list[int], notes: list[str]) -> list[str]:
    """Names of the columns, those that repeat with a number, others by position."""
    names: list[str] = []
    taken = set(header)
    repeated, nameless = [], []
    for at in used:
        name = header[at]
        base = name or f"column_{at + 1}"
        new, count = base, 1
        if not name:
            nameless.append(new)
        while new in names or (new != name and new in taken):
            count += 1
            new = f"{base}_{count}"
        if name and new != name:
            repeated.append(f"{name!r} at {at + 1} is called {new!r}")
        names.append(new)
    if repeated:
        notes.append(f"names stand twice in the header; {', '.join(repeated)}.")
    if nameless:
        notes.append(f"columns without a name are called {', '.join(nameless)}.")
    return names


# Parquet ----------------------------------------------------------------------------------


def _read_parquet(path: Path, layout: Layout) -> DataFile:
    columns = {name: _cells(path, name, values) for name, values in _parquet(path)}
    n_rows = len(next(iter(columns.values()), []))
    if not n_rows:
        raise DataError(f"{path} has no rows.")
    return DataFile(path, columns, range(1, n_rows + 1), "row", layout)


def _parquet(path: Path) -> list[tuple[str, list[Any]]]:
    """Columns of a Parquet file, by polars or pyarrow, whichever is installed."""
    import narwhals

    for backend in ("polars", "pyarrow"):
        try:
            import_module(backend)
        except ImportError:
            continue
        try:
            frame = narwhals.read_parquet(str(path), backend=backend)
        except Exception as error:  # each library has its own
            raise DataError(f"{path} is no Parquet file ({error}).") from error
        return [(name, frame[name].to_list()) for name in frame.columns]
    raise MissingDependencyError(
        f"{path} is a Parquet file, for which polars or pyarrow is needed and neither "
        f"is installed; run pip install polars, or give a CSV file."
    )


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
