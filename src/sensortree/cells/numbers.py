"""Columns of numbers: decimal marks, grouped digits, units, limits.

How a column is written is decided for the column as a whole; where its cells could be
meant in two ways, the file's other columns decide, and a note says so.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sensortree.cells.words import (
    MISSING,
    NOTHING,
    PLAIN_FORMAT,
    SPACES,
    Cell,
    ColumnFormat,
    as_number,
    as_text,
    cut,
)

MINUS = str.maketrans({"\u2212": "-", "\u2013": "-", "\ufe63": "-", "\uff0d": "-"})
# Digits that no style tells apart.
SHAPE = str.maketrans("23456789", "11111111")
WRITTEN = re.compile(
    r"(?P<limit>[<>≤≥]=?|~|≈)?\s*(?P<sign>[-+]?)\s*(?P<money>[$€£¥]?)\s*"
    r"(?P<digits>\d[\d., ']*|[.,]\d+)(?P<power>[eE][-+]?\d+)?"
    r"\s*(?P<unit>[^\W\d_][\w/%^*·.°µ⁻ -]{0,15}|[%‰°$€£¥][\w/]{0,8})?"
)


class Style(NamedTuple):
    """What separates decimals, and thousands."""

    decimal: str
    thousands: str

    def number(self, digits: str) -> float | None:
        """The number that digits are in this style."""
        if _pattern(self).fullmatch(digits) is None:
            return None
        if self.thousands:
            digits = digits.replace(self.thousands, "")
        return float(digits.replace(self.decimal, "."))


@cache
def _pattern(style: Style) -> re.Pattern[str]:
    decimal, thousands = map(re.escape, style)
    whole = r"\d+"
    if thousands:
        whole += rf"|[1-9]\d{{0,2}}(?:{thousands}\d{{2,3}})*{thousands}\d{{3}}"
    return re.compile(rf"(?:{whole})(?:{decimal}\d*)?|{decimal}\d+")


# In the order of preference, where all read as many cells and all to the same numbers.
STYLES = tuple(
    Style(decimal, thousands)
    for thousands in ("", ",", ".", " ", "'")
    for decimal in (".", ",")
    if decimal != thousands
)
PLAIN_STYLE = STYLES[0]


class Written(NamedTuple):
    """The parts of a cell that may be a number."""

    limit: str
    negative: bool
    digits: str
    power: str
    unit: str


def take_apart(cell: str) -> Written | None:
    """The parts of a cell that may be a number, in whatever style."""
    text = cell.translate(SPACES).translate(MINUS).strip()
    owed = text.startswith("(") and text.endswith(")")  # as accountants write
    found = WRITTEN.fullmatch(text[1:-1].strip() if owed else text)
    if found is None:
        return None
    unit = (found["unit"] or found["money"] or "").strip()
    negative = owed or found["sign"] == "-"
    digits = found["digits"].strip()
    return Written(found["limit"] or "", negative, digits, found["power"] or "", unit)


def unit_key(unit: str) -> str:
    """A unit without what does not matter: capitals, a full stop, a plural."""
    key = unit.casefold().replace("μ", "µ").rstrip(".").replace(" ", "")
    return key[:-1] if len(key) > 3 and key.endswith("s") else key


def meanings(digits: str, styles: Iterable[Style]) -> set[float]:
    """Numbers that digits are in some of the styles."""
    return {n for style in styles if (n := style.number(digits)) is not None}


def style_name(style: Style) -> str:
    """A style in words, with what it makes of a number."""
    names = {" ": "spaces", "'": "apostrophes", ",": "commas", ".": "points"}
    words = ["decimal comma"] if style.decimal == "," else []
    shown = f"7{style.decimal}5"
    if style.thousands:
        words.append(f"{names[style.thousands]} between thousands")
        shown = f"1{style.thousands}20{shown}"
    return f"{' and '.join(words)} ({shown} is {style.number(shown):g})"


@lru_cache(1024)
def _decimal_marks(shape: str) -> frozenset[str]:
    """Decimal marks of the styles that digits of some shape can be of."""
    return frozenset(s.decimal for s in STYLES if s.number(shape) is not None)


def decimal_evidence(cells: Iterable[Cell]) -> str:
    """The decimal mark that the cells of a column show; "" if they show none."""
    shown: Counter[str] = Counter()
    for cell in cells:
        if isinstance(cell, str) and ("," in cell or "." in cell):
            parts = take_apart(cell)
            if parts is not None:
                marks = _decimal_marks(parts.digits.translate(SHAPE))
                shown.update(marks if len(marks) == 1 else ())
    return shown.most_common(1)[0][0] if shown else ""


# Words that are missing in a column from now on, at most.
MOST_WORDS = 50
STRAYS = 0.1  # share of cells that may be something else in a column of numbers


@dataclass(frozen=True)
class Wanted:
    """What is known about a column before it is looked at.

    Attributes
    ----------
    decimal, thousands : str or None
        What you said; it is not doubted.
    known : ColumnFormat or None
        How the column was written before; it counts unless the cells deny it.
    decimal_of_file : str
        What other columns of the file have, "" if they do not say.
    """

    decimal: str | None = None
    thousands: str | None = None
    known: ColumnFormat | None = None
    decimal_of_file: str = ""

    @property
    def styles(self) -> list[Style]:
        """Styles that can be."""
        possible = [
            style
            for style in STYLES
            if self.decimal in (None, style.decimal)
            and self.thousands in (None, style.thousands)
        ]
        return possible or [Style(self.decimal or ".", self.thousands or "")]


@dataclass(frozen=True, eq=False)
class NumberColumn:
    """A column that was read for numbers.

    Attributes
    ----------
    values : ndarray of shape (n_rows,)
        NaN where a cell is missing, or is no number.
    form : ColumnFormat
    counts : dict of cell to the number of rows that have it
    n_numbers : int
        Cells that are numbers.
    n_different : int
        Different numbers.
    strays : dict of cell to count
        Texts that are neither numbers nor words for nothing.
    other_units : dict of cell to count
        Numbers in a unit that the rest of the column does not have.
    words : dict of cell to count
        Words for nothing, beyond those that are in every table.
    limits, united : int
        Numbers behind "<" and the like, and before a unit.
    doubtful : str
        A cell that could be meant in two ways; "" if there is none.
    example : str
        A cell that shows the decimal comma or the thousands; "" if there is none.
    """

    values: NDArray[np.float64]
    form: ColumnFormat
    counts: Mapping[Cell, int]
    n_numbers: int
    n_different: int
    strays: Mapping[str, int] = field(default_factory=dict)
    other_units: Mapping[str, int] = field(default_factory=dict)
    words: Mapping[str, int] = field(default_factory=dict)
    limits: int = 0
    united: int = 0
    doubtful: str = ""
    example: str = ""

    @property
    def is_number(self) -> bool:
        """Whether the column holds numbers but for a few strays, or nothing at all."""
        astray = sum(self.strays.values()) + sum(self.other_units.values())
        if not astray:
            return True
        few = astray <= STRAYS * (self.n_numbers + astray)
        return few and len(self.strays) < self.n_different

    @property
    def has_two_units(self) -> bool:
        """Whether it would be numbers but for their units."""
        united, others = self.united, sum(self.other_units.values())
        few = sum(self.strays.values()) <= STRAYS * (self.n_numbers + others)
        return not self.is_number and few and united + others > 0 < others

    def why_not(self, cell: Cell) -> str:
        """Why a cell is no number; "" if it is one, or is missing."""
        if isinstance(cell, str) and cell in self.other_units:
            if not self.form.unit:
                return f"{cut(cell)} has a unit, which the column did not have"
            return f"{cut(cell)} is in another unit than {self.form.unit!r}"
        return f"{cut(cell)} is not a number" if cell in self.strays else ""

    def style_notes(self) -> list[str]:
        """How decimals and thousands were read, where that is not plain."""
        style = Style(self.form.decimal, self.form.thousands)
        if not self.doubtful:
            return [style_name(style)] if self.example else []
        read = style.number(self.doubtful)
        other = next(s for s in STYLES if s.number(self.doubtful) not in (None, read))
        return [
            f"{cut(self.doubtful)} is read as {read:g}; if it is "
            f"{other.number(self.doubtful):g}, pass --decimal "
            f'"{other.decimal}", or say so under [reading] of the sensors file'
        ]

    def notes(self) -> list[str]:
        """How the column was read, where that is not plain."""
        notes = self.style_notes()
        if self.united:
            notes.append(f"{self.united} cells 'N {self.form.unit}' are read as N")
        if self.other_units:
            notes.append(
                f"{_counted(self.other_units)} in another unit are read as missing; "
                f"convert them"
            )
        if self.limits:
            notes.append(f"{self.limits} cells '<N' or '>N' are read as N, their limit")
        if self.words:
            notes.append(f"{_counted(self.words)} are read as missing")
        if self.strays:
            notes.append(f"{_counted(self.strays)} are no numbers and read as missing")
        return notes


def read_numbers(cells: Sequence[Cell], wanted: Wanted) -> NumberColumn:
    """Read a column for numbers."""
    counts = Counter(cells)
    known = wanted.known or PLAIN_FORMAT
    told = wanted.decimal is not None or wanted.thousands is not None
    table: dict[Cell, float] = {}
    special: dict[str, Written] = {}
    words: dict[str, int] = {}
    strays: dict[str, int] = {}
    for cell, count in counts.items():
        value = as_number(cell)
        if as_text(cell) in known.missing:
            words[as_text(cell)] = count
        elif value is not None and (not told or _is_whole(cell)):
            table[cell] = value
        elif (text := as_text(cell)).casefold() in NOTHING:
            words[text] = count
        elif (parts := take_apart(text)) is None:
            strays[text] = count
        else:
            special[text] = parts
    plain = wanted.decimal_of_file != "," and known == PLAIN_FORMAT and not told
    if special or not plain:
        special |= _written_plainly(table)
    style, doubtful = _style(special, counts, wanted, table)
    unit = known.unit or _main_unit(special, counts)
    other_units: dict[str, int] = {}
    limits = united = 0
    example = ""
    for cell, parts in special.items():
        value = style.number(parts.digits)
        if value is None:
            table.pop(cell, None)
            strays[cell] = counts[cell]
            continue
        if parts.unit and unit_key(parts.unit) != unit_key(unit):
            other_units[cell] = counts[cell]
            table.pop(cell, None)
            continue
        if parts.power:
            value = float(f"{value!r}{parts.power}")
        table[cell] = -value if parts.negative else value
        limits += counts[cell] * bool(parts.limit)
        united += counts[cell] * bool(parts.unit)
        if not example and style != PLAIN_STYLE and _shows(parts.digits, style):
            example = cell
    unit = unit if united or known.unit else ""
    missing = tuple(dict.fromkeys([*known.missing, *sorted(strays)]))
    form = ColumnFormat(style.decimal, style.thousands, unit, missing[:MOST_WORDS])
    read = {cell: table.get(cell, math.nan) for cell in counts}
    values = np.fromiter(map(read.__getitem__, cells), np.float64, len(cells))
    numbers = {cell: value for cell, value in table.items() if value == value}
    return NumberColumn(
        values,
        form,
        counts,
        sum(counts[cell] for cell in numbers),
        len(set(numbers.values())),
        strays,
        other_units,
        {cell: count for cell, count in words.items() if cell not in MISSING},
        limits,
        united,
        doubtful,
        example,
    )


def _is_whole(cell: Cell) -> bool:
    """Whether a cell has nothing in it that a style could be about."""
    return not isinstance(cell, str) or cell in MISSING or cell.isdigit()


def _written_plainly(cells: Iterable[Cell]) -> dict[str, Written]:
    """Parts of cells that are numbers as they are, and might be others in a style."""
    texts = [cell for cell in cells if isinstance(cell, str) and cell not in MISSING]
    return {text: parts for text in texts if (parts := take_apart(text)) is not None}


def _shows(digits: str, style: Style) -> bool:
    """Whether digits have something of the style in them that is not plain."""
    comma = style.decimal == "," and "," in digits
    return comma or (style.thousands != "" and style.thousands in digits)


def _main_unit(special: Mapping[str, Written], counts: Mapping[Cell, int]) -> str:
    """The unit that most cells have; "" if none has any."""
    keys: Counter[str] = Counter()
    first: dict[str, str] = {}
    for cell, parts in special.items():
        if parts.unit:
            key = unit_key(parts.unit)
            keys[key] += counts[cell]
            first.setdefault(key, parts.unit)
    return first[keys.most_common(1)[0][0]] if keys else ""


def _style(
    special: Mapping[str, Written],
    counts: Mapping[Cell, int],
    wanted: Wanted,
    plain: Iterable[Cell],
) -> tuple[Style, str]:
    """The style that reads most cells; also a cell that might be meant otherwise."""
    numbers: Counter[str] = Counter()
    for cell, parts in special.items():
        numbers[parts.digits] += counts[cell]
    read = {
        style: sum(n for d, n in numbers.items() if style.number(d) is not None)
        for style in wanted.styles
    }
    most = max(read.values())
    able = [style for style in read if read[style] == most]
    if wanted.known is not None:
        before = Style(wanted.known.decimal, wanted.known.thousands)
        if before in able:
            return before, ""
    doubtful = next((d for d in numbers if len(meanings(d, able)) > 1), "")
    if not doubtful:
        return able[0], ""
    decimal, sure = _decimal_mark(doubtful, [*numbers, *map(str, plain)], wanted)
    style = next(s for s in able if s.decimal == decimal)
    return style, "" if sure else doubtful


def _decimal_mark(
    doubtful: str, written: Iterable[str], wanted: Wanted
) -> tuple[str, bool]:
    """Whether 3,512 or 3.512 has decimals or thousands; and whether that is sure."""
    mark = "," if "," in doubtful else "."
    other = "." if mark == "," else ","
    whole = [int(text) for text in written if text.isdigit()]
    if wanted.decimal_of_file:
        return wanted.decimal_of_file, wanted.decimal_of_file == mark == "."
    if mark == ".":
        return mark, True
    # Beside 987 a comma groups digits; beside 1987, which has none, it does not.
    return (mark if any(n >= 1000 for n in whole) else other), False


def _counted(texts: Mapping[str, int]) -> str:
    """Cells and how many of them there are."""
    most = sorted(texts.items(), key=lambda item: (-item[1], item[0]))
    shown = ", ".join(f"{cut(text)} ({count})" for text, count in most[:5])
    return shown + (f" and {len(most) - 5} others" if len(most) > 5 else "")
