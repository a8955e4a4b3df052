"""`column_warning`: what speaks against a column as a sensor.

A model memorises identifiers, dates and free text rather than learning from them; a
constant column carries no information; a copy of the target carries all of it, and is not
known yet when an answer is wanted.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sensortree.cells.words import cut, date_form, is_nothing
from sensortree.cli.sensors_file import toml_key
from sensortree.cli.tables import DataFile
from sensortree.reports.alone import (
    LEAST_ROWS,
    ROWS_OF_AN_INTERVAL,
    as_codes,
    said,
    share_told,
)

ROWS_TO_JUDGE = 20  # with fewer, cells may differ, or be alike, by chance
MOSTLY = 0.9  # share of different cells from which text names its row
DEVIATIONS = 3  # from which equal pairs are too few for chance
OFTEN = 0.5  # the same for columns named like identifiers, and for longer text
WORDS, LETTERS = 4, 40  # mean of a cell from which text is prose
ROWS_OF_A_LEVEL = 2  # on average; categories with fewer are names
STAND_INS = (-1, 9, 99, 999, 9999, 99999, -9, -99, -999, -9999, -99999)
A_NAME = re.compile(
    r"(?:^|[^a-z])(?:id|ids|uid|uuid|guid|key|nr|no|num|number|mrn|ssn|index|idx|row|"
    r"record|code|patient|subject|case|sample|customer|client|account|order|name|email|"
    r"phone|ticket|serial|rownames?|unnamed)(?:[^a-z]|$)",
    re.IGNORECASE,
)
ENDS_AS_A_NAME = re.compile(r"(?:[a-z](?:ID|Id|Nr|No)|_?(?:id|ID))$")


class ColumnWarning(NamedTuple):
    """What speaks against a column."""

    reason: str  # ends the sentence "the column is left out: it ..."
    leave_out: bool = True  # unless somebody says so


def column_warning(
    data: DataFile, column: str, labels: NDArray[Any]
) -> ColumnWarning | None:
    """What speaks against a column as a sensor; `labels` are the answers of the rows."""
    counts = data.read(column).counts
    filled = {cell: n for cell, n in counts.items() if not is_nothing(cell)}
    if not filled:
        return ColumnWarning("is empty in all rows")
    if len(data) < ROWS_TO_JUDGE:
        return None
    if len(counts) == 1:
        return ColumnWarning(f"is {cut(next(iter(filled)))} in all rows")
    form = date_form(counts)
    if form:
        what = "times" if form == "HH:MM" else "dates"
        return ColumnWarning(
            f'holds {what} ({form}); transformer = "date" makes numbers of them'
        )
    n_filled = sum(filled.values())
    reason = ""
    if n_filled >= ROWS_TO_JUDGE and data.is_text(column):
        reason = _about_text(column, filled, n_filled)
    elif n_filled >= ROWS_TO_JUDGE:
        reason = _about_numbers(data, column, n_filled, len(filled))
    if reason:
        return ColumnWarning(reason)
    return (
        _about_target(data, column, labels)
        or _about_unsorted_names(data, column)
        or _about_codes(filled)
        or _about_stand_ins(data, column)
    )


def _about_text(column: str, filled: dict[Any, int], n_filled: int) -> str:
    """What speaks against a column of text."""
    different = f"{len(filled)} different texts in {n_filled} rows"
    share = len(filled) / n_filled
    texts = list(map(str, filled))
    words = np.mean([len(text.split()) for text in texts])
    letters = np.mean(list(map(len, texts)))
    if share >= OFTEN and (words >= WORDS or letters >= LETTERS):
        return f"is free text ({different})"
    if share >= MOSTLY or (share >= OFTEN and _is_name(column)):
        return f"is an identifier ({different})"
    if share * ROWS_OF_A_LEVEL > 1:
        return f"has too many categories to learn from ({different})"
    return ""


def _about_numbers(data: DataFile, column: str, n_filled: int, n_different: int) -> str:
    """What speaks against a column of numbers."""
    values = data.read(column).values
    values = values[~np.isnan(values)]
    if len(np.unique(values)) < 2 and len(values) == len(data):
        return "is the same number in all rows"
    if not (values % 1 == 0).all() or n_different < OFTEN * n_filled:
        return ""
    unique = n_different == n_filled
    step = np.diff(values)
    counts_rows = unique and ((step > 0).all() or (step < 0).all())
    if counts_rows or _is_name(column):
        return f"is an identifier ({n_different} different integers in {n_filled} rows)"
    return ""


def _about_unsorted_names(data: DataFile, column: str) -> ColumnWarning | None:
    """Whether integers hardly repeat, though there are too few of them for that.

    Of n amounts between a and b at least n (n - 1) / 2 (b - a + 1) pairs are equal on
    average, more if some amounts are more frequent; names of rows do not repeat.
    """
    if data.is_text(column):
        return None
    values = data.read(column).values
    values = values[~np.isnan(values)]
    if len(values) < ROWS_TO_JUDGE or not (values % 1 == 0).all():
        return None
    different, times = np.unique(values, return_counts=True)
    pairs = float((times * (times - 1)).sum() / 2)
    possible = float(values.max() - values.min() + 1)
    usual = len(values) * (len(values) - 1) / 2 / possible
    if len(different) < MOSTLY * len(values) or pairs > usual - DEVIATIONS * usual**0.5:
        return None
    return ColumnWarning(
        f"holds {len(different)} different integers in {len(values)} rows, as names of "
        f"rows do; does it measure anything?",
        leave_out=False,
    )


def _about_codes(filled: dict[Any, int]) -> ColumnWarning | None:
    """Whether numbers look like codes: of one length, some with a leading zero."""
    written = [cell for cell in filled if isinstance(cell, str) and cell.isdigit()]
    if len(written) < len(filled) or len(set(map(len, written))) > 1:
        return None
    padded = [cell for cell in written if cell.startswith("0") and len(cell) > 1]
    if not padded:
        return None
    return ColumnWarning(
        f"is written as codes are ({cut(padded[0])}), and read as numbers; if their order "
        f'means nothing, transformer = "one-hot" keeps them apart',
        leave_out=False,
    )


def _about_stand_ins(data: DataFile, column: str) -> ColumnWarning | None:
    """Whether a number such as 999 may mean "missing": frequent, far from all others."""
    if data.is_text(column):
        return None
    values = data.read(column).values
    values = values[~np.isnan(values)]
    for number in STAND_INS:
        others = values[values != number]
        count = len(values) - len(others)
        if count < 2 or len(np.unique(others)) < 2:
            continue
        least, most = others.min(), others.max()
        if number < least - (most - least) or number > most + (most - least):
            return ColumnWarning(
                f"is {number:g} in {count} rows, far from all others ({least:g} to "
                f"{most:g}); if that means missing, write {toml_key(column)} = "
                f'{{ missing = ["{number:g}"] }} under [reading]',
                leave_out=False,
            )
    return None


def _is_name(column: str) -> bool:
    """Whether the name of a column is that of an identifier."""
    return bool(A_NAME.search(column) or ENDS_AS_A_NAME.search(column))


def _about_target(
    data: DataFile, column: str, labels: NDArray[Any]
) -> ColumnWarning | None:
    """Whether a column alone tells the classes."""
    codes = as_codes(labels)
    counts = np.bincount(codes)
    if len(codes) < LEAST_ROWS or len(codes) - counts.max() < ROWS_OF_AN_INTERVAL:
        return None
    cells = data.columns[column]
    if (
        len(data.read(column).counts)
        == len(counts)
        == len(set(zip(cells, codes.tolist(), strict=True)))
    ):
        return ColumnWarning(
            "is the target under another name: each class has its own cell"
        )
    text = data.is_text(column)
    values = data.texts(column).astype(str) if text else data.read(column).values
    told = share_told(values, codes)
    return ColumnWarning(said(told), leave_out=False) if told else None
