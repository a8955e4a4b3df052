"""A small picture: what policies cost, and how often they err, or what that costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from sensortree.reports.drawing import escaped
from sensortree.reports.html import share
from sensortree.reports.words import estimated_width, shortened

WIDTH, HEIGHT = 420.0, 250.0
LEFT, RIGHT, TOP, BOTTOM = 52.0, 14.0, 30.0, 40.0
SIZE = 12.5  # of letters
NAME = 44  # letters of a name at most
STEP = 6.0  # pixels along a line

Box = tuple[float, float, float, float]  # left, top, right, bottom


@dataclass(frozen=True)
class Point:
    """A policy in the picture: mean cost and error with its interval; ours is `chosen`."""

    name: str
    cost: float
    error: float
    low: float
    high: float
    chosen: bool = False


@dataclass(frozen=True)
class Line:
    """Policies in the picture that are joined: (cost, error) of each, and their style."""

    name: str
    ends: tuple[tuple[float, float], ...]
    style: str


def beside(
    points: Sequence[Point],
    unit: str,
    lines: Sequence[Line] = (),
    measure: str = "wrong answers",
    written: Callable[[float], str] = share,
) -> str:
    """Picture of error against cost as the text of an SVG element, for an HTML page.

    Colours are the page's: those of `.dot`, `.chosen`, `.axis`, `.words`, and of the
    styles of the lines.

    Parameters
    ----------
    points : sequence of Point
    unit : str
        What costs are counted in.
    lines : sequence of Line, default=()
        They lie below the points.
    measure : str
        What stands upright.
    written : callable
        How a value of it is written.
    """
    ends = [end for line in lines for end in line.ends]
    cost_end = _nice(max([p.cost for p in points] + [cost for cost, _ in ends]))
    error_end = _nice(max([p.high for p in points] + [error for _, error in ends]))

    def x(cost: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * cost / cost_end

    def y(error: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * error / error_end

    told = "; ".join(
        [
            *(f"{p.name}: cost {p.cost:.4g}, {written(p.error)}" for p in points),
            *(_told(line, written) for line in lines if line.ends),
        ]
    )
    parts = [
        f'<svg viewBox="0 0 {WIDTH:g} {HEIGHT:g}" class="beside" role="img" '
        f'aria-label="{escaped(f"{measure} against cost. {told}")}">',
        _line(LEFT, y(0), WIDTH - RIGHT, y(0), "axis"),
        _line(LEFT, y(0), LEFT, TOP, "axis"),
    ]
    for part in (0, 0.5, 1):
        cost, error = part * cost_end, part * error_end
        parts.append(_words(x(cost), y(0) + 16, f"{cost:.4g}", "middle"))
        parts.append(_words(LEFT - 6, y(error) + 4, written(error), "end"))
    axis = f"mean cost per example ({unit})" if unit else "mean cost per example"
    parts.append(_words((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, axis, "middle"))
    parts.append(_words(2, 12, measure, "start"))
    for line in lines:
        way = " ".join(f"{x(cost):.1f},{y(error):.1f}" for cost, error in line.ends)
        parts.append(f'<polyline class="{line.style}" points="{way}"/>')
        parts += [
            f'<circle class="{line.style}" cx="{x(cost):.1f}" cy="{y(error):.1f}" r="2.5"/>'
            for cost, error in line.ends
        ]
    merged = _merged(points)
    # Names lie neither on each other nor on points with their intervals, nor on lines.
    owns: list[Box] = [
        (x(p.cost) - 6, y(p.high) - 2, x(p.cost) + 6, y(p.low) + 2) for p in merged
    ]
    boxes = [*owns]
    for line in lines:
        boxes += _along([(x(cost), y(error)) for cost, error in line.ends])
    for point, own in zip(merged, owns, strict=True):
        kind = "chosen" if point.chosen else "dot"
        parts.append(
            _line(x(point.cost), y(point.low), x(point.cost), y(point.high), kind)
        )
        parts.append(
            f'<circle class="{kind}" cx="{x(point.cost):.1f}" cy="{y(point.error):.1f}" '
            f'r="{5 if point.chosen else 4}"/>'
        )
        name = shortened(point.name, NAME)
        left, below = _room(own, y(point.error), estimated_width(name, SIZE), boxes)
        parts.append(_words(left, below, name, "start", f"words {kind}"))
    return "\n".join([*parts, "</svg>"])


def _told(line: Line, written: Callable[[float], str]) -> str:
    """A line's first and last point, for those who do not see it."""
    (cost, error), (last_cost, last_error) = line.ends[0], line.ends[-1]
    return (
        f"line of {line.name}: from cost {cost:.4g}, {written(error)} to cost "
        f"{last_cost:.4g}, {written(last_error)}"
    )


def _merged(points: Sequence[Point]) -> list[Point]:
    """Points, ours first; those at one place are one, with all their names."""
    found: dict[tuple[float, float], Point] = {}
    for point in sorted(points, key=lambda p: not p.chosen):
        at = round(point.cost, 9), round(point.error, 9)
        first = found.get(at)
        if first is None:
            found[at] = point
        else:
            found[at] = replace(first, name=f"{first.name}, {point.name}")
    return list(found.values())


def _room(
    own: Box, middle: float, width: float, boxes: list[Box]
) -> tuple[float, float]:
    """Where a name begins: beside its point, above, further above, or below.

    The room that it takes is added to the boxes.
    """
    above = min(max(LEFT + 4, (own[0] + own[2] - width) / 2), WIDTH - width - 2)
    tries = [
        (left, middle + 4 + down)
        for down in (0.0, SIZE + 4, -SIZE - 4, 2 * SIZE + 8)
        for left in (own[2] + 3, own[0] - 3 - width)
    ]
    tries += [(above, own[1] - 3 - (SIZE + 4) * i) for i in range(8)]
    tries += [(above, own[3] + 2 + SIZE + (SIZE + 4) * i) for i in range(4)]
    for left, below in tries:
        box = left, below - SIZE, left + width, below + 3
        inside = left >= 0 and left + width <= WIDTH and SIZE < below < HEIGHT - BOTTOM
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
            at, height = x1 + (x2 - x1) * i / n_steps, y1 + (y2 - y1) * i / n_steps
            boxes.append((at - 3, height - 3, at + 3, height + 3))
    return boxes


def _overlap(one: Box, other: Box) -> bool:
    return (
        one[0] < other[2]
        and other[0] < one[2]
        and one[1] < other[3]
        and other[1] < one[3]
    )


def _nice(largest: float) -> float:
    """Least of 1, 1.5, 2, 3, 4, 5, 6, 8 and 10 times a power of ten that is no smaller."""
    if not largest > 0:
        return 1.0
    power = 10.0 ** np.floor(np.log10(largest))
    steps = (1, 1.5, 2, 3, 4, 5, 6, 8, 10)
    return float(
        next(step * power for step in steps if step * power >= largest * (1 - 1e-9))
    )


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _words(x: float, y: float, text: str, anchor: str, kind: str = "words") -> str:
    return (
        f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" font-size="{SIZE:g}" '
        f'text-anchor="{anchor}">{escaped(text)}</text>'
    )
