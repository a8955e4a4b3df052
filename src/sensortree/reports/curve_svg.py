"""Curves of a trade-off as the text of an SVG picture, which needs nothing from elsewhere.

Letters and axes have the colour of the text around the picture, on light and on dark paper.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from sensortree.reports.drawing import escaped
from sensortree.reports.words import estimated_width

WIDTH, HEIGHT = 440.0, 280.0  # like all lengths below, in pixels of the picture
LEFT, RIGHT, TOP, BOTTOM = 56.0, 16.0, 28.0, 44.0
SIZE = 12.0  # of letters
TICKS = 5  # of an axis, about
# Okabe, Ito; those of them that can be seen on light and on dark paper.
COLOURS = ("#0080C8", "#D55E00", "#009E73", "#CC79A7", "#C98B00", "#56B4E9")


def curve_svg(display: Any) -> str:
    """Picture of a `TradeoffDisplay`: its measure against mean cost.

    Points say their numbers where the mouse rests; a ring is what was picked.
    """
    return "\n".join(_Picture(display).parts())


def ticks(low: float, high: float) -> list[float]:
    """Round numbers between two, about as many as an axis has room for.

    Examples
    --------
    >>> ticks(0, 9.4)
    [0.0, 2.0, 4.0, 6.0, 8.0]
    """
    step = (high - low) / TICKS
    power = 10.0 ** math.floor(math.log10(step))
    step = min((s * power for s in (1, 2, 5, 10)), key=lambda s: abs(s - step))
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(i * step, 12) for i in range(first, last + 1)]


class _Picture:
    """Where points go, and the elements they become."""

    def __init__(self, display: Any):
        self.display = display
        costs, heights = [0.0], []
        for cost, height, error in display.curves.values():
            bar = np.zeros_like(height) if error is None else np.nan_to_num(error)
            costs += cost.tolist()
            heights += [*(height - bar).tolist(), *(height + bar).tolist()]
        heights += [end[1] for end in display.ends.values()]
        self.costs, self.heights = _around(costs), _around(heights)

    def x(self, cost: float) -> float:
        low, high = self.costs
        return LEFT + (WIDTH - LEFT - RIGHT) * (cost - low) / (high - low)

    def y(self, height: float) -> float:
        low, high = self.heights
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (height - low) / (high - low)

    def parts(self) -> Iterator[str]:
        names = list(self._legend())
        lines = 1 + max((line for *_, line in names), default=0)
        height = HEIGHT + 18 * lines
        yield (
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {WIDTH:g} '
            f'{height:g}" width="{WIDTH:g}" height="{height:g}" fill="currentColor" '
            f'font-family="Helvetica,Arial,sans-serif" font-size="{SIZE:g}" '
            f'style="max-width:100%;height:auto" aria-label="{escaped(self._told())}">'
        )
        yield from self._axes()
        for name, (cost, value) in self.display.ends.items():
            yield (
                f'<line x1="{LEFT:g}" x2="{WIDTH - RIGHT:g}" y1="{self.y(value):.1f}" '
                f'y2="{self.y(value):.1f}" stroke="currentColor" stroke-opacity="0.5" '
                f'stroke-dasharray="4 3"><title>{escaped(name)}: {cost:.4g}</title></line>'
            )
            yield _words(
                WIDTH - RIGHT, self.y(value) - 4, f"{name} ({cost:.4g})", "end"
            )
        for i, label in enumerate(self.display.curves):
            yield from self._curve(label, COLOURS[i % len(COLOURS)])
        for name, colour, left, line in names:
            at = HEIGHT + 18 * line + 6
            yield f'<circle cx="{left:.1f}" cy="{at - 4:.1f}" r="4" fill="{colour}"/>'
            yield _words(left + 9, at, name, "start")
        yield "</svg>"

    def _told(self) -> str:
        """What the picture shows, for those who do not see it."""
        said = [
            f"{label}: {height[i]:.4g} for {cost[i]:.4g}"
            for label, (cost, height, _) in self.display.curves.items()
            for i in (0, len(cost) - 1)
        ]
        return f"{self.display.measure} against mean cost; {'; '.join(said)}"

    def _axes(self) -> Iterator[str]:
        bottom = HEIGHT - BOTTOM
        for cost in ticks(*self.costs):
            x = self.x(cost)
            yield _line(x, TOP, x, bottom, 0.12)
            yield _words(x, bottom + 16, f"{cost:g}", "middle")
        for height in ticks(*self.heights):
            y = self.y(height)
            yield _line(LEFT, y, WIDTH - RIGHT, y, 0.12)
            yield _words(LEFT - 6, y + 4, f"{height:g}", "end")
        yield _line(LEFT, bottom, WIDTH - RIGHT, bottom, 0.6)
        yield _line(LEFT, TOP, LEFT, bottom, 0.6)
        of = f" ({self.display.unit})" if self.display.unit else ""
        middle = (LEFT + WIDTH - RIGHT) / 2
        yield _words(middle, HEIGHT - 8, f"mean cost of an example{of}", "middle")
        yield _words(4, 14, self.display.measure, "start")

    def _curve(self, label: str, colour: str) -> Iterator[str]:
        cost, height, error = self.display.curves[label]
        order = np.argsort(cost, kind="stable")
        at = [(self.x(cost[i]), self.y(height[i])) for i in order]
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in at)
        yield (
            f'<polyline points="{points}" fill="none" stroke="{colour}" '
            f'stroke-width="1.5"/>'
        )
        for i, (x, y) in zip(order.tolist(), at, strict=True):
            bar = 0.0 if error is None or math.isnan(error[i]) else float(error[i])
            tip = f"{label}: {self.display.measure} {height[i]:.4g} for {cost[i]:.4g}"
            yield f"<g><title>{escaped(tip)}</title>"
            if bar:
                low, high = self.y(height[i] - bar), self.y(height[i] + bar)
                yield (
                    f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{low:.1f}" y2="{high:.1f}" '
                    f'stroke="{colour}"/>'
                )
            yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/></g>'
        chosen = self.display.chosen.get(label)
        if chosen is not None:
            x, y = self.x(cost[chosen]), self.y(height[chosen])
            yield (
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="8" fill="none" '
                f'stroke="{colour}" stroke-width="2"><title>chosen</title></circle>'
            )

    def _legend(self) -> Iterator[tuple[str, str, float, int]]:
        """Names of the curves, each with colour, place and line; a lone one has none."""
        left, line = LEFT, 0
        names = list(self.display.curves)
        for i, name in enumerate(names if names[1:] else ()):
            width = estimated_width(name, SIZE) + 30
            if left > LEFT and left + width > WIDTH - RIGHT:
                left, line = LEFT, line + 1
            yield name, COLOURS[i % len(COLOURS)], left, line
            left += width


def _around(values: Iterable[float]) -> tuple[float, float]:
    """Range of an axis that has some values inside."""
    finite = [value for value in values if math.isfinite(value)] or [0.0]
    low, high = min(finite), max(finite)
    room = 0.06 * (high - low) or 0.5 * abs(high) or 0.5
    return (low if low == 0 else low - room), high + room


def _line(x1: float, y1: float, x2: float, y2: float, opacity: float) -> str:
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
        f'stroke="currentColor" stroke-opacity="{opacity:g}"/>'
    )


def _words(x: float, y: float, text: str, anchor: str) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escaped(text)}</text>'
    )
