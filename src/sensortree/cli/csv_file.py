"""CSV files: encoding, delimiter, header and rows, found out where nobody says."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import TextIO

from sensortree.cells.words import Cell, as_number, cut
from sensortree.cli.layout import Layout
from sensortree.exceptions import DataError

MAX_LINE = 2**20  # characters; a longer line is no CSV
LINES_LOOKED_AT = 200
DELIMITERS = {",": "','", ";": "';'", "\t": "tab", "|": "'|'"}
NARROW = 2  # columns of a table in which a line of one cell may be a row
# First bytes of files that are something else, and what to do with them.
OTHERS = {
    b"PK\x03\x04": "a zip archive or an Excel workbook; save the sheet as CSV.",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook; save the sheet as CSV.",
    b"\x1f\x8b": "compressed by gzip; unpack it first.",
    b"PAR1": "a Parquet file; name it .parquet.",
}


@dataclass(frozen=True, eq=False)
class CsvTable:
    """What stands in a CSV file; attributes as those of `DataFile`."""

    columns: dict[str, list[Cell]]
    lines: list[int]
    layout: Layout
    notes: tuple[str, ...]
    broken: dict[int, str]


def read_csv(path: Path, layout: Layout) -> CsvTable:
    """Read a CSV file."""
    first = _first_bytes(path)
    if layout.encoding is not None:
        return _read(path, layout, layout.encoding, [])
    if first[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return _read(path, layout, "utf-16", ["it is UTF-16."])
    try:
        return _read(path, layout, "utf-8-sig", [])
    except UnicodeDecodeError:
        pass
    for encoding in ("cp1252", "latin-1"):
        note = (
            f"it is not UTF-8; read as {encoding} (Western European). If letters look "
            f"wrong, pass --encoding."
        )
        try:
            return _read(path, layout, encoding, [note])
        except UnicodeDecodeError:
            continue
    raise AssertionError("every byte is a letter of latin-1")


def _first_bytes(path: Path) -> bytes:
    """The first bytes of a file that may be a table."""
    with open(path, "rb") as file:
        first = file.read(4)
    for magic, what in OTHERS.items():
        if first.startswith(magic):
            raise DataError(f"{path} is {what}")
    return first


def _read(path: Path, layout: Layout, encoding: str, notes: list[str]) -> CsvTable:
    """Read a file of a known encoding; `notes` grows by what was found out."""
    with open(path, encoding=encoding, newline="") as file:
        try:
            return _read_text(file, path, replace(layout, encoding=encoding), notes)
        except UnicodeError as error:
            if encoding != layout.encoding and isinstance(error, UnicodeDecodeError):
                raise
            raise DataError(
                f"{path} cannot be read as {encoding} ({error}); pass another --encoding."
            ) from error


def _read_text(file: TextIO, path: Path, layout: Layout, notes: list[str]) -> CsvTable:
    lines = _lines(file, path)
    sample = list(islice(lines, LINES_LOOKED_AT))
    skipped = 0
    if sample and sample[0].lower().startswith("sep=") and len(sample[0].strip()) == 5:
        mark = sample[0].strip()[-1]  # by which Excel tells itself the delimiter
        layout = replace(layout, delimiter=layout.delimiter or mark)
        skipped, sample = 1, sample[1:]
    if layout.delimiter is None:
        layout = replace(layout, delimiter=find_delimiter(sample))
        if layout.delimiter != ",":
            assert layout.delimiter is not None
            notes.append(f"cells are separated by {DELIMITERS[layout.delimiter]}.")
    assert layout.delimiter is not None
    width = _usual_width(sample, layout.delimiter)
    rows: list[list[str]] = []
    numbers: list[int] = []
    remarks: list[int] = []
    reader = csv.reader(chain(sample, lines), delimiter=layout.delimiter, strict=True)
    number, after = skipped + 1, skipped + 1
    try:
        for row in reader:
            number, after = after, reader.line_num + skipped + 1
            cells = [cell.strip() for cell in row]
            if not any(cells):
                continue  # a blank line
            if width > NARROW and _is_remark(cells, width, above=not rows):
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
    if remarks:
        notes.append(_said_lines(remarks))
    header, body = rows[0], rows[1:]
    _check_header(header, path, numbers[0], layout.delimiter)
    if not body:
        raise DataError(f"{path} has a header and no rows.")
    broken = _square(body, len(header), layout.delimiter)
    used = [at for at, name in enumerate(header) if name or _filled(body, at)]
    names = _distinct_names(header, used, notes)
    cells_of = list(zip(*body, strict=True))
    columns = {name: list(cells_of[at]) for name, at in zip(names, used, strict=True)}
    said = tuple(f"{path}: {note}" for note in notes)
    return CsvTable(columns, numbers[1:], layout, said, broken)


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


def _usual_width(lines: list[str], delimiter: str) -> int:
    return _most_common(_widths(lines, delimiter))


def _widths(lines: list[str], delimiter: str) -> list[int]:
    """Number of cells in each line that is not blank."""
    try:
        rows = list(csv.reader(lines, delimiter=delimiter))
    except csv.Error:
        return []
    return [len(row) for row in rows if any(cell.strip() for cell in row)]


def _most_common(widths: list[int]) -> int:
    return Counter(widths).most_common(1)[0][0] if widths else 0


def _is_remark(cells: list[str], width: int, above: bool) -> bool:
    """Whether a line is a title or a remark rather than a header or a row."""
    if above:
        return sum(map(bool, cells)) < width / 2
    return len(cells) == 1


def _said_lines(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:5])) + (", ..." if len(numbers) > 5 else "")
    which = f"line {shown} is" if len(numbers) == 1 else f"lines {shown} are"
    return f"{which} a title or a remark, and left out."


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


def _filled(body: list[list[str]], at: int) -> bool:
    return any(len(row) > at and row[at] for row in body)


def _square(body: list[list[str]], width: int, delimiter: str) -> dict[int, str]:
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
        new, count = name or f"column_{at + 1}", 1
        if not name:
            nameless.append(new)
        while new in names or (new != name and new in taken):
            count += 1
            new = f"{name or f'column_{at + 1}'}_{count}"
        if name and new != name:
            repeated.append(f"{name!r} at {at + 1} is called {new!r}")
        names.append(new)
    if repeated:
        notes.append(f"names stand twice in the header; {', '.join(repeated)}.")
    if nameless:
        notes.append(f"columns without a name are called {', '.join(nameless)}.")
    return names
