"""How numbers are written: decimal marks, grouped digits, units, limits."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import NamedTuple

from sensortree.cells.words import SPACES, Cell

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
    said = ["decimal comma"] if style.decimal == "," else []
    shown = f"7{style.decimal}5"
    if style.thousands:
        said.append(f"{names[style.thousands]} between thousands")
        shown = f"1{style.thousands}20{shown}"
    return f"{' and '.join(said)} ({shown} is {style.number(shown):g})"


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
