"""Words and numbers as messages, reports and the command line show them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from numbers import Real
from typing import Any

LARGEST = 1e15  # what is at least as large is written with an exponent


def listed(names: Iterable[str]) -> str:
    """Show some names in a message."""
    shown = [repr(name) for name in names]
    return ", ".join(shown[:8]) + (", ..." if len(shown) > 8 else "")


def rounded(number: float, digits: int = 4) -> str:
    """A number to some digits, without an exponent where people write none.

    Examples
    --------
    >>> rounded(1157920000.0), rounded(0.03256, 2), rounded(123.0, 2), rounded(1e20)
    ('1,158,000,000', '0.033', '120', '1e+20')
    """
    text = f"{number:.{digits}g}"
    if 10**digits <= abs(number) < LARGEST:
        return f"{float(text):,.0f}"
    return text


def aligned(
    head: Sequence[str], lines: Sequence[Sequence[str]], last: str = "right"
) -> str:
    """Lines of text in columns, the first to the left, the others to the right."""
    table = [head, *lines]
    widths = [max(len(line[i]) for line in table) for i in range(len(head))]
    written = []
    for line in table:
        cells = [line[0].ljust(widths[0])]
        cells += [c.rjust(w) for c, w in zip(line[1:], widths[1:], strict=True)]
        if last == "left":
            cells[-1] = line[-1]
        written.append("  ".join(cells).rstrip())
    return "\n".join(written)


def plain(value: Any) -> Any:
    """Bring a value to what JSON can say; keys become text, NaN null, the rest text."""
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    if isinstance(value, (set, frozenset)):
        return sorted(map(plain, value))
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    if hasattr(value, "tolist"):  # an array, or one number of it
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    return str(value)  # a date, say


class PlainForm:
    """A dataclass that can be given as plain values."""

    def to_dict(self) -> dict[str, Any]:
        """Give the report as plain values for JSON."""
        fields: Any = self
        form: dict[str, Any] = plain(asdict(fields))
        return form


def value_words(value: Any) -> str:
    """Show a value of a table as a reader would write it."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return str(value)
    number = float(value)
    whole = number.is_integer() and abs(number) < 1e15
    return str(int(number)) if whole else f"{number:.6g}"


def reading_words(column: str, value: Any) -> str:
    """Show a value with its column, as "smoking = former" or "age is missing"."""
    if value is None or value != value:
        return f"{column} is missing"
    return f"{column} = {value_words(value)}"


def chance_words(probability: float) -> str:
    """Show a probability in whole percent; what is not certain is not written as such."""
    if 0 < probability < 0.01:
        return "< 1 %"
    if 0.99 < probability < 1:
        return "> 99 %"
    return f"{100 * probability:.0f} %"


# Shares that have ordinary words; rarer ones are "one in" a number.
COMMON = {
    1 / 8: "one in eight",
    1 / 7: "one in seven",
    1 / 6: "one in six",
    1 / 5: "one in five",
    1 / 4: "one in four",
    3 / 10: "three in ten",
    1 / 3: "one in three",
    2 / 5: "two in five",
    1 / 2: "one in two",
    3 / 5: "three in five",
    2 / 3: "two in three",
    3 / 4: "three in four",
    4 / 5: "four in five",
    9 / 10: "nine in ten",
}
STEPS = ((20, 1), (60, 5), (200, 10), (1000, 50))  # "one in 40" is not counted finely
NUMBERS = ("nine", "ten", "eleven", "twelve")


def frequency_words(share: float) -> str:
    """Show a share as one speaks of it: "one in five", "none", "one in 40"."""
    share = round(float(share), 9)
    if share <= 0:
        return "none"
    if share >= 1:
        return "all"
    if share > 0.95:
        return "nearly all"
    if share < 1 / 8.5:
        times = round(1 / share)
        if times <= 12:
            return f"one in {NUMBERS[times - 9]}"
        if times >= 1000:
            return "fewer than one in a thousand"
        step = next(step for most, step in STEPS if times < most)
        return f"one in {step * round(times / step)}"
    return COMMON[min(COMMON, key=lambda common: abs(common - share))]
