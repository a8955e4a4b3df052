"""Single cells: words for nothing, plain numbers, spellings."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal

Cell = str | float

MISSING = frozenset({"", "NA", "N/A", "NaN", "nan", "null", "NULL"})  # among numbers
# Words for nothing that people and spreadsheets write, in small letters.
NOTHING = frozenset(
    (
        *(
            "",
            "na",
            "n/a",
            "n.a.",
            "n.a",
            "#n/a",
            "#na",
            "nan",
            "null",
            "#null!",
            "nil",
        ),
        *("none", "nd", "n/d", "n.d.", "unk", "unknown", "missing", "not done"),
        *("not available", "not known", "no data", "k.a.", "k.a", "unbekannt"),
        *(
            "#value!",
            "#div/0!",
            "#ref!",
            "#num!",
            "#name?",
            "\\n",
            "-",
            "--",
            "---",
            "–",
            "—",
        ),
        *(".", "..", "...", "?", "??", "???"),
    )
)

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
