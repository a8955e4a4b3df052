"""Figures in a report's page: money, shares, and their intervals."""

from __future__ import annotations

import math
from collections.abc import Callable

from sensortree.display.markup import Markup, Words, join
from sensortree.display.svg import escaped
from sensortree.display.words import percent

NO_BREAK = "\u00a0"
PERCENT = f"{NO_BREAK}%"
Interval = tuple[float, float]


def money(amount: float) -> str:
    """An amount of money: whole if it is, else to the cent; small ones to three digits."""
    size = abs(amount)
    if size >= 1000 or math.isclose(amount, round(amount), abs_tol=1e-9):
        text = f"{round(amount):,}"
    else:
        text = f"{amount:.2f}" if size >= 0.1 else f"{amount:.2g}"
    return text.replace("-", "−")


def share(number: float) -> str:
    """A share in percent, never torn apart."""
    return percent(number).replace(" ", NO_BREAK)


def between(low: float, high: float, written: Callable[[float], str]) -> str:
    """An interval; what both ends are counted in stands once."""
    least, most = written(low), written(high)
    if most.endswith(PERCENT):
        least = least.removesuffix(PERCENT)
    return f"{least} to {most}"


def says_nothing(low: float, high: float, written: Callable[[float], str]) -> bool:
    """Whether an interval says nothing, since both ends are written alike."""
    return written(low) == written(high)


def figure(
    value: float,
    interval: Interval | None,
    written: Callable[[float], str],
) -> Words:
    """A figure, with its interval below it."""
    if math.isnan(value):
        return "–"
    if interval is None or math.isnan(interval[0]) or says_nothing(*interval, written):
        return written(value)
    inside = escaped(between(*interval, written))
    return join(written(value), Markup(f'<span class="between">{inside}</span>'))
