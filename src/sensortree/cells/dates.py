"""Dates in cells: which form they have, and how many days after 1970 they are."""

from __future__ import annotations

import math
import re
from calendar import month_abbr
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from sensortree.cells.words import MISSING, NOTHING, Cell, as_text

ISO = "YYYY-MM-DD"
LOOKED_AT = 1000  # different cells, by which a form is recognised
SHARE = 0.9  # of them that must have it
EPOCH = date(1970, 1, 1).toordinal()
MONTHS = {name.casefold(): at for at, name in enumerate(month_abbr) if name}
_YEAR, _MONTH, _DAY = r"(?P<y>\d{4})", r"(?P<m>\d{1,2})", r"(?P<d>\d{1,2})"
_SHORT = r"(?P<y>\d{4}|\d{2})"
_NAMED = r"(?P<m>[A-Za-z]{3})[a-z]*\.?"
_CLOCK = r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(:(?P<second>\d{2})([.,]\d+)?)?"
_ZONE = (
    r"\s*(?P<half>[AaPp][Mm])?"
    r"\s*(Z|[A-Z]{3,4}([+-]\d{1,2}(:?\d{2})?)?|[+-]\d{2}(:?\d{2})?)?"
)
# The first that reads most cells is taken.
FORMS = {
    "YYYY-MM-DD": rf"{_YEAR}-{_MONTH}-{_DAY}",
    "YYYY/MM/DD": rf"{_YEAR}/{_MONTH}/{_DAY}",
    "YYYY.MM.DD": rf"{_YEAR}\.{_MONTH}\.{_DAY}",
    "YYYYMMDD": r"(?P<y>(?:19|20)\d{2})(?P<m>\d{2})(?P<d>\d{2})",
    "DD.MM.YYYY": rf"{_DAY}\.{_MONTH}\.{_SHORT}",
    "DD/MM/YYYY": rf"{_DAY}/{_MONTH}/{_SHORT}",
    "MM/DD/YYYY": rf"{_MONTH}/{_DAY}/{_SHORT}",
    "DD-MM-YYYY": rf"{_DAY}-{_MONTH}-{_SHORT}",
    "MM-DD-YYYY": rf"{_MONTH}-{_DAY}-{_SHORT}",
    "DD Mon YYYY": rf"{_DAY}[ -]{_NAMED}[ -]{_SHORT}",
    "Mon DD, YYYY": rf"{_NAMED} {_DAY},? {_SHORT}",
    "HH:MM": "",
}
_PATTERNS = {
    name: re.compile(rf"{day}([T ,]+{_CLOCK}{_ZONE})?" if day else rf"{_CLOCK}{_ZONE}")
    for name, day in FORMS.items()
}


def day_number(cell: Cell, form: str) -> float | None:
    """Days after 1970-01-01, with the time as a fraction; None if it is no such date."""
    found = _PATTERNS[form].fullmatch(as_text(cell))
    if found is None:
        return None
    parts = found.groupdict()
    time = _part_of_day(parts)
    if time is None:
        return None
    return time if form == "HH:MM" else _whole_days(parts, time)


def _whole_days(parts: dict[str, str | None], time: float) -> float | None:
    year, month, day = (str(parts[key]) for key in "ymd")
    number = MONTHS.get(month.casefold(), 0) if month.isalpha() else int(month)
    century = 0 if len(year) == 4 else 1900 if int(year) > 68 else 2000
    try:
        days = date(century + int(year), number, int(day)).toordinal()
    except ValueError:
        return None
    return days - EPOCH + time


def _part_of_day(parts: dict[str, str | None]) -> float | None:
    """The time of day as a fraction of a day, 0 if there is none."""
    if parts["hour"] is None:
        return 0.0
    hour, minute, second = (int(parts[k] or 0) for k in ("hour", "minute", "second"))
    if parts["half"]:
        hour = hour % 12 + 12 * (parts["half"].casefold() == "pm")
    if hour > 24 or minute > 59 or second > 60:
        return None
    return (hour * 3600 + minute * 60 + second) / 86400


def date_form(cells: Iterable[Cell]) -> str:
    """The form of the dates in a column; "" if it holds something else."""
    different = (cell for cell in dict.fromkeys(cells) if not _is_missing(cell))
    looked_at = list(islice(different, LOOKED_AT))
    if not looked_at:
        return ""
    read = {
        form: sum(day_number(cell, form) is not None for cell in looked_at)
        for form in FORMS
    }
    best = max(read, key=lambda form: read[form])
    return best if read[best] >= SHARE * len(looked_at) else ""


def day_of(cell: Cell, form: str) -> float | None:
    """The same of a date in the form of its column, or as 2024-12-31 in any column.

    Numbers are dates where dates are written as numbers, YYYYMMDD, and nowhere else.
    """
    if not isinstance(cell, str) and form != "YYYYMMDD":
        return None
    found = day_number(cell, form)
    if found is None and form != "HH:MM":
        found = day_number(cell, ISO)
    return found


def day_numbers(cells: Sequence[Cell], form: str) -> NDArray[np.float64]:
    """A column of dates as numbers, (n_rows,); NaN where a cell is no date."""
    table = {cell: day_of(as_text(cell), form) for cell in Counter(cells)}
    values = [table[cell] for cell in cells]
    return np.array([math.nan if v is None else v for v in values], dtype=np.float64)


def _is_missing(cell: Cell) -> bool:
    return isinstance(cell, str) and (cell in MISSING or cell.casefold() in NOTHING)
