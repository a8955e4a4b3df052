"""How names, shares and prices are written in a picture, and how wide that is."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike

WRAP, WIDE = 24, 40  # characters in a line, of the tree and of the table
LONGEST = 56  # characters of a name; what is longer is shortened

# Widths of letters in Helvetica and its kin, in hundredths of the size.
WIDTHS = {
    **dict.fromkeys("ijl'|", 23),
    **dict.fromkeys('ftrI.,:;/! ()[]\\-"`', 33),
    **dict.fromkeys("ckszvxyJ", 50),
    **dict.fromkeys("ABEKPSVXYZ&", 67),
    **dict.fromkeys("CDHNRUGOQ", 76),
    **dict.fromkeys("mMw%W@—…", 92),
    **dict.fromkeys("FTL", 61),
    **dict.fromkeys("+<>=~≤", 59),
}
OTHER, EASTERN = 56, 100  # letters not listed, and those of East Asia
WIDER = 1.08  # what a font that stands in for Helvetica may need


def estimated_width(text: str, size: float) -> float:
    """Width of the longest line where no font can be asked, rather too much."""
    return max(
        WIDER * size * sum(map(_letter_width, line)) / 100 for line in text.split("\n")
    )


def _letter_width(letter: str) -> int:
    if unicodedata.combining(letter):
        return 0
    east = unicodedata.east_asian_width(letter) in "WF"
    return WIDTHS.get(letter, EASTERN if east else OTHER)


def shortened(name: str, longest: int = LONGEST) -> str:
    """A name, or its beginning and its end if it is long."""
    name = " ".join(name.split())
    if len(name) <= longest:
        return name
    end = longest // 3
    return f"{name[: longest - end - 1].rstrip()}…{name[-end:].lstrip()}"


def wrapped(names: Iterable[str], width: int = WRAP) -> str:
    """Names, with commas, in lines of a fair length."""
    return _filled(", ".join(map(shortened, names)), width)


def _filled(text: str, width: int = WRAP) -> str:
    """Text in lines of a fair length; a long word is broken if it must."""
    lines = [""]
    for word in text.split(" "):
        pieces = [word] if len(word) <= width else _pieces(word, width)
        for i, piece in enumerate(pieces):
            space = " " if lines[-1] and not i else ""
            if len(lines[-1]) + len(space) + len(piece) > width and lines[-1]:
                lines.append(piece)
            else:
                lines[-1] += space + piece
    return "\n".join(lines)


def _pieces(word: str, width: int) -> list[str]:
    """Parts of a word that is too long for a line, cut behind marks where it has some."""
    return [
        part[at : at + width]
        for part in re.findall(r"[^_\-/.:]*[_\-/.:]+|[^_\-/.:]+", word)
        for at in range(0, len(part), width)
    ]


def known_words(names: tuple[str, ...]) -> str:
    """What is known at a node: names in two lines, or else how many there are."""
    text = wrapped(names)
    if text.count("\n") < 2:
        return text or "nothing known"
    return f"{len(names)} sensors known" if len(names) > 1 else shortened(text, WRAP)


def known_column(
    lines: Sequence[tuple[tuple[str, ...], bool]],
) -> tuple[str, list[str], str]:
    """Head, cells and alignment of the column that says what is known at the leaves.

    These are names, or numbers of sensors if the names need too much room. Each line has
    the names, and whether some leaves of it know more.
    """
    texts = [
        wrapped((*names, "…") if more else names, WIDE) or "nothing"
        for names, more in lines
    ]
    if all(text.count("\n") < 3 for text in texts):
        return "sensors known", texts, "left"
    cells = [f"≥ {len(names)}" if more else str(len(names)) for names, more in lines]
    return "sensors\nknown", cells, "right"


def purchase_lines(names: tuple[str, ...], price: str, lines: int = 6) -> str:
    """What an edge buys, and its price; of many names the first."""
    for n_named in range(len(names), 0, -1):
        more = len(names) - n_named
        rest = (f"{more} more",) if more else ()
        told = (*map(shortened, names[:n_named]), *rest, f"+{price}")
        text = "buy " + _filled(", ".join(told))
        if text.count("\n") < lines:
            break
    return text


def range_words(numbers: Sequence[int]) -> str:
    """Numbers in their order, those that follow each other as a range; of many the ends."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    parts = [f"{run[0]}–{run[-1]}" if run[1:] else str(run[0]) for run in runs]
    return ", ".join(parts if len(parts) < 4 else [*parts[:2], f"… {parts[-1]}"])


def percent(share: float) -> str:
    """Share in percent; a few rows are not written as none, nor most as all."""
    share = round(share, 9)  # sums of shares are not exact
    if 0 < share < 0.001:
        return "< 0.1 %"
    if 0.999 < share < 1:
        return "> 99.9 %"
    return f"{100 * share:.1f} %"


def money_format(prices: ArrayLike) -> Callable[[float], str]:
    """Way to write prices: with as many decimals as all of them need, up to two."""
    prices = np.asarray(prices, dtype=np.float64)
    for decimals in (0, 2):
        if np.allclose(prices, np.round(prices, decimals), rtol=0, atol=1e-9):
            return lambda price: f"{price:,.{decimals}f}"
    return lambda price: f"{price:,.4g}"
