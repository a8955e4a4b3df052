"""`Chart`: a measure against mean cost as the text of an SVG picture.

It needs nothing from elsewhere. Letters and axes have the colour of the text around it, on
light and on dark paper.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from sensortree.reports.drawing import escaped
from sensortree.reports.words import estimated_width, shortened
from sensortree.types import Array

WIDTH, HEIGHT = 440.0, 280.0  # like all lengths below, in pixels of the picture
LEFT, RIGHT, TOP, BOTTOM = 56.0, 16.0, 28.0, 44.0
SIZE, LINE = 12.0, 18.0  # of letters, and of lines of the legend
TICKS = 5  # of an axis, about
NAME = 44  # letters of a name beside a point at most
STEP = 6.0  # pixels along a line
# Okabe, Ito; those of them that can be seen on light and on dark paper.
COLOURS = ("#0080C8", "#D55E00", "#009E73", "#CC79A7", "#C98B00", "#56B4E9")
GREY = "#808080"  # of what is only compared with
DASHES = 'stroke-dasharray="4 3"'

Box = tuple[float, float, float, float]  # left, top, right, bottom


@dataclass(frozen=True, eq=False)
class Series:
    """Points of a chart that belong together; a line joins them."""

    name: str
    cost: Array  # (n_points,)
    height: Array  # (n_points,)
    low: Array | None = None  # ends of a bar at each point, (n_points,)
    high: Array | None = None
    colour: str = COLOURS[0]
    dashed: bool = False  # whether the line is
    ring: int | None = None  # the point that was chosen
    # Whether the name stands beside the first point; else it is in the legend.
    named: bool = False


@dataclass(frozen=True, eq=False)
class Chart:
    """Series of points, each of which says its numbers where the mouse rests."""

    series: Sequence[Series]  # the first lies below the others
    measure: str  # what stands upright
    unit: str = ""  # what costs are counted in
    # Heights to compare with, each a thin line across the picture.
    levels: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    written: Callable[[float], str] | None = None  # how a height is written
    from_zero: bool = False  # whether the upright axis begins at 0

    def to_svg(self) -> str:
        """Give the text of an SVG element."""
        return "\n".join(self._parts())

    @cached_property
    def _costs(self) -> tuple[float, float]:
        """Ends of the axis of costs."""
        return _around([0.0, *(c for one in self.series for c in one.cost.tolist())])

    @cached_property
    def _heights(self) -> tuple[float, float]:
        """Ends of the upright axis."""
        ends = [end for one in self.series for end in (one.height, one.low, one.high)]
        heights = [h for end in ends if end is not None for h in end.tolist()]
        heights += [height for _, height in self.levels.values()]
        return _around(heights + [0.0] * self.from_zero)

    def _x(self, cost: float) -> float:
        low, high = self._costs
        return LEFT + (WIDTH - LEFT - RIGHT) * (cost - low) / (high - low)

    def _y(self, height: float) -> float:
        low, high = self._heights
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (height - low) / (high - low)

    def _dots(self, one: Series) -> list[_Dot]:
        """Points of a series, in their order."""
        written, found = self.written or "{:.4g}".format, []
        for i, (cost, height) in enumerate(zip(one.cost, one.height, strict=True)):
            bar = [height if end is None else end[i] for end in (one.low, one.high)]
            low, high = [height, height] if np.isnan(bar).any() else bar
            tip = f"{one.name}: {self.measure} {written(height)} for {cost:.4g}"
            ends = self._y(low), self._y(high)
            found.append(_Dot(self._x(cost), self._y(height), *ends, tip))
        return found

    def _parts(self) -> Iterator[str]:
        drawn = [(one, self._dots(one)) for one in _merged(self.series)]
        legend = list(_legend([one for one, _ in drawn if not one.named]))
        height = HEIGHT + LINE * (1 + max((line for *_, line in legend), default=0))
        told = "; ".join(tip for _, dots in drawn for tip in _ends(dots))
        label = escaped(f"{self.measure} against mean cost; {told}")
        yield (
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {WIDTH:g} '
            f'{height:g}" width="{WIDTH:g}" height="{height:g}" fill="currentColor" '
            f'font-family="Helvetica,Arial,sans-serif" font-size="{SIZE:g}" '
            f'style="max-width:100%;height:auto" aria-label="{label}">'
        )
        yield from self._axes()
        for name, (cost, height) in self.levels.items():
            y = self._y(height)
            yield _line(LEFT, y, WIDTH - RIGHT, y, 0.5, DASHES)
            yield _words(WIDTH - RIGHT, y - 4, f"{name} ({cost:.4g})", "end")
        for one, dots in drawn:
            yield from _drawn(one, dots)
        yield from _names(drawn)
        for one, left, line in legend:
            at = HEIGHT + LINE * line + 6
            style = f'style="stroke:{one.colour};stroke-width:2"'
            dashes = f" {DASHES}" if one.dashed else ""
            yield _line(left, at - 4, left + 14, at - 4, 1, style + dashes)
            yield _words(left + 19, at, one.name, "start")
        yield "</svg>"

    def _axes(self) -> Iterator[str]:
        bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
        for cost in ticks(*self._costs):
            x = self._x(cost)
            yield _line(x, TOP, x, bottom, 0.12)
            yield _words(x, bottom + 16, f"{cost:g}", "middle")
        for height in ticks(*self._heights):
            y = self._y(height)
            yield _line(LEFT, y, right, y, 0.12)
            yield _words(
                LEFT - 6, y + 4, (self.written or "{:g}".format)(height), "end"
            )
        yield _line(LEFT, bottom, right, bottom, 0.6)
        yield _line(LEFT, TOP, LEFT, bottom, 0.6)
        axis = "mean cost per example" + (f" ({self.unit})" if self.unit else "")
        yield _words((LEFT + right) / 2, HEIGHT - 8, axis, "middle")
        yield _words(4, 14, self.measure, "start")


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


@dataclass(frozen=True)
class _Dot:
    """A point in the picture, with the ends of its bar and what it says."""

    x: float
    y: float
    low: float
    high: float
    tip: str

    @property
    def box(self) -> Box:
        """What a name must not cover."""
        return self.x - 6, self.high - 4, self.x + 6, self.low + 4


def _drawn(one: Series, dots: Sequence[_Dot]) -> Iterator[str]:
    """A line through the points of a series, the points with their bars, the ring."""
    way = " ".join(f"{d.x:.1f},{d.y:.1f}" for d in sorted(dots, key=lambda d: d.x))
    if len(dots) > 1:
        style = f'fill="none" stroke="{one.colour}" stroke-width="1.5"'
        dashes = f" {DASHES}" if one.dashed else ""
        yield f'<polyline points="{way}" {style}{dashes}/>'
    for dot in dots:
        yield f"<g><title>{escaped(dot.tip)}</title>"
        if dot.low != dot.high:
            bar = f'style="stroke:{one.colour}"'
            yield _line(dot.x, dot.low, dot.x, dot.high, 1, bar)
        yield _circle(dot.x, dot.y, 3.5, f'fill="{one.colour}"') + "</g>"
    if one.ring is not None:
        ring = dots[one.ring]
        style = f'fill="none" stroke="{one.colour}" stroke-width="2"'
        yield _circle(ring.x, ring.y, 8, style)


def _ends(dots: Sequence[_Dot]) -> list[str]:
    """What the first and the last point say."""
    return [dot.tip for dot in dict.fromkeys((dots[0], dots[-1]))]


def _merged(series: Sequence[Series]) -> list[Series]:
    """Series, in which named points at one place are one point with all their names."""
    found: dict[object, Series] = {}
    for one in series:
        place: object = one
        if one.named:
            place = round(float(one.cost[0]), 9), round(float(one.height[0]), 9)
        if place in found:
            one = replace(one, name=f"{one.name}, {found[place].name}")
        found[place] = one
    return list(found.values())


def _legend(series: Sequence[Series]) -> Iterator[tuple[Series, float, int]]:
    """Series, each with its place and line in the legend; a lone one has none."""
    left, line = LEFT, 0
    for one in series if len(series) > 1 else ():
        width = estimated_width(one.name, SIZE) + 40
        if left > LEFT and left + width > WIDTH - RIGHT:
            left, line = LEFT, line + 1
        yield one, left, line
        left += width


def _names(drawn: Sequence[tuple[Series, Sequence[_Dot]]]) -> Iterator[str]:
    """Names beside their points, neither on each other nor on points or lines."""
    named = [(one, dots[0]) for one, dots in reversed(drawn) if one.named]
    boxes = [dot.box for _, dot in named]
    for _, dots in drawn:
        boxes += _along([(dot.x, dot.y) for dot in dots])
    for one, dot in named:
        name = shortened(one.name, NAME)
        left, below = _room(dot, estimated_width(name, SIZE), boxes)
        yield _words(left, below, name, "start", f' fill="{one.colour}"')


def _room(dot: _Dot, width: float, boxes: list[Box]) -> tuple[float, float]:
    """Where a name begins: beside its point, above, further above, or below.

    The room that it takes is added to the boxes.
    """
    own_left, top, own_right, bottom = dot.box
    above = min(max(LEFT + 4, dot.x - width / 2), WIDTH - width - 2)
    tries = [
        (left, dot.y + 4 + down)
        for down in (0.0, SIZE + 4, -SIZE - 4, 2 * SIZE + 8)
        for left in (own_right + 3, own_left - 3 - width)
    ]
    tries += [(above, top - 3 - (SIZE + 4) * i) for i in range(8)]
    tries += [(above, bottom + 2 + SIZE + (SIZE + 4) * i) for i in range(4)]
    for left, below in tries:
        box = left, below - SIZE, left + width, below + 3
        inside = (
            left >= LEFT and left + width <= WIDTH and SIZE < below < HEIGHT - BOTTOM
        )
        if inside and not any(_overlap(box, other) for other in boxes):
            break
    boxes.append(box)
    return left, below


def _along(ends: Sequence[tuple[float, float]]) -> list[Box]:
    """Small boxes along a line."""
    boxes = []
    for (x1, y1), (x2, y2) in pairwise(ends):
        n_steps = max(1, round(max(abs(x2 - x1), abs(y2 - y1)) / STEP))
        for i in range(n_steps + 1):
            x, y = x1 + (x2 - x1) * i / n_steps, y1 + (y2 - y1) * i / n_steps
            boxes.append((x - 3, y - 3, x + 3, y + 3))
    return boxes


def _overlap(one: Box, other: Box) -> bool:
    across = one[0] < other[2] and other[0] < one[2]
    return across and one[1] < other[3] and other[1] < one[3]


def _around(values: Iterable[float]) -> tuple[float, float]:
    """Range of an axis that has some values inside."""
    finite = [value for value in values if math.isfinite(value)] or [0.0]
    low, high = min(finite), max(finite)
    room = 0.06 * (high - low) or 0.5 * abs(high) or 0.5
    return (low if low == 0 else low - room), high + room


def _line(
    x1: float, y1: float, x2: float, y2: float, opacity: float, style: str = ""
) -> str:
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
        f'stroke="currentColor" stroke-opacity="{opacity:g}" {style}/>'
    )


def _circle(x: float, y: float, radius: float, style: str) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" {style}/>'


def _words(x: float, y: float, text: str, anchor: str, style: str = "") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{style}>'
        f"{escaped(text)}</text>"
    )
