"""Single cells: words for nothing, plain numbers, spellings, dates; and `ColumnFormat`."""

from __future__ import annotations

import math
import re
from calendar import month_abbr
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Cell = str | float

MISSING = frozenset({"", "NA", "N/A", "NaN", "nan", "null", "NULL"})  # among numbers
# Words for nothing that people and spreadsheets write, in small letters.
NOTHING = frozenset(
    {
        *("", "na", "n/a", "n.a.", "n.a", "#n/a", "#na", "nan", "null", "#null!"),
        *("<na>", "#n/a n/a", "nat", "(null)", "(blank)", "not recorded", "not stated"),
        *("nil", "none", "nd", "n/d", "n.d.", "unk", "unknown", "missing"),
        *("not done", "not available", "not known", "no data", "k.a.", "k.a"),
        *("unbekannt", "#value!", "#div/0!", "#ref!", "#num!", "#name?", "\\n"),
        *("-", "--", "---", "–", "—", ".", "..", "...", "?", "??", "???"),
    }
)

ZEROS = frozenset({"nil", "none"})  # words for nothing that answer "how much?"
DASHES = frozenset("-\u2013\u2014")

SPACES = str.maketrans({"\u00a0": " ", "\u202f": " ", "\u2009": " ", "’": "'"})


def as_number(cell: Cell) -> float | None:
    """The number in a plain cell, NaN if it is missing; None if it is something else."""
    if not isinstance(cell, str):
        return cell
    if cell in MISSING:
        return math.nan
    try:
        number = float(cell)
    except ValueError:
        return None
    return number if math.isfinite(number) and "_" not in cell else None


def is_nothing(cell: Cell) -> bool:
    """Whether a cell is empty, or a word for nothing."""
    return isinstance(cell, str) and cell.casefold() in NOTHING


def no_answers(cells: Iterable[Cell]) -> set[Cell]:
    """The different cells, of a target of classes, that give no answer.

    Words for nothing, unless they are an answer among the others: "none" beside "mild",
    "-" beside "+", and any word without which nothing would be left to tell apart.
    """
    different = set(cells)
    signs = any(isinstance(cell, str) and set(cell) == {"+"} for cell in different)
    gaps = {
        cell
        for cell in different
        if is_nothing(cell)
        and str(cell).casefold() not in ZEROS
        and not (signs and cell and set(str(cell)) <= DASHES)
    }
    return gaps if len(different - gaps) > 1 else different & {""}


def exact_number(cell: Cell) -> Decimal | None:
    """The number in a plain cell to its last digit; None if it is missing, or text."""
    number = as_number(cell)
    return None if number is None or number != number else Decimal(cell)


def number_text(number: float) -> str:
    """A number as a class or category is written: 1 rather than 1.0."""
    return str(int(number)) if number.is_integer() else repr(number)


def cut(cell: Cell) -> str:
    """A cell as it is shown in a message."""
    text = cell if isinstance(cell, str) else number_text(cell)
    return repr(text if len(text) <= 60 else f"{text[:57]}...")


def as_text(cell: Cell) -> str:
    """A cell as it is written."""
    return cell if isinstance(cell, str) else number_text(cell)


def one_spelling(texts: Iterable[str]) -> dict[str, str]:
    """For each text the most frequent one that differs in capitals and spaces only."""
    counts = Counter(texts)
    alike: dict[str, list[str]] = {}
    for text in counts:
        alike.setdefault(spelling_key(text), []).append(text)
    best = {key: max(group, key=lambda t: counts[t]) for key, group in alike.items()}
    return {text: best[spelling_key(text)] for text in counts}


def spelling_key(text: str) -> str:
    """A text without what people spell differently: capitals, and spaces."""
    return " ".join(text.translate(SPACES).casefold().split())


DECIMALS = (".", ",")
THOUSANDS = ("", ",", ".", " ", "'")


@dataclass(frozen=True)
class ColumnFormat:
    """How numbers, or dates, are written in one column of a table.

    Attributes
    ----------
    decimal : {".", ","}
    thousands : {"", ",", ".", " ", "'"}
        What groups the digits of large numbers; "" for nothing.
    unit : str
        What may stand behind a number, such as "mg".
    missing : tuple of str
        Words that stand for a missing number, beyond those that every table has.
    date : str
        The form of the dates, such as "DD.MM.YYYY"; "" in a column of numbers.
    """

    decimal: str = "."
    thousands: str = ""
    unit: str = ""
    missing: tuple[str, ...] = ()
    date: str = ""


PLAIN_FORMAT = ColumnFormat()


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
    if time is None or form == "HH:MM":
        return time
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
    different = (cell for cell in dict.fromkeys(cells) if not is_nothing(cell))
    looked_at = list(islice(different, LOOKED_AT))
    if not looked_at:
        return ""
    n_read = {
        form: sum(day_number(cell, form) is not None for cell in looked_at)
        for form in FORMS
    }
    best = max(n_read, key=n_read.__getitem__)
    return best if n_read[best] >= SHARE * len(looked_at) else ""


def day_of(cell: Cell, form: str) -> float | None:
    """Number of the day of a date in the form of its column, or written as 2024-12-31.

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
    import numpy as np  # here, since the command line reads `--help` without it

    table = {cell: day_of(as_text(cell), form) for cell in Counter(cells)}
    values = [table[cell] for cell in cells]
    return np.array([math.nan if v is None else v for v in values], dtype=np.float64)
