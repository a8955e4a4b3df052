"""Error against cost: lower hull, cost at an error, error at a cost, budget share."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np

Point = tuple[float, float]  # mean cost, error


def hull(points: Iterable[Point]) -> list[Point]:
    """Lower left convex hull: what mixing policies at random can reach, cheapest first."""
    ordered = sorted(set(points))
    chain: list[Point] = []
    for x, y in ordered:
        if chain and y >= chain[-1][1]:
            continue  # dearer and no better
        while len(chain) > 1 and _turns_up(chain[-2], chain[-1], (x, y)):
            chain.pop()
        chain.append((x, y))
    return chain


def _turns_up(a: Point, b: Point, c: Point) -> bool:
    return (b[0] - a[0]) * (c[1] - a[1]) <= (b[1] - a[1]) * (c[0] - a[0])


def cost_at_error(points: Iterable[Point], error: float) -> float:
    """Least mean cost on the hull at which an error is reached; NaN if it never is."""
    chain = hull(points)
    if error >= chain[0][1]:
        return chain[0][0]
    for (x0, y0), (x1, y1) in pairwise(chain):
        if y1 <= error:
            return x0 + (y0 - error) / (y0 - y1) * (x1 - x0)
    return float("nan")


def error_at_cost(points: Iterable[Point], cost: float) -> float:
    """Least error on the hull at a mean cost; NaN below the cheapest point."""
    chain = hull(points)
    if cost < chain[0][0]:
        return float("nan")
    xs, ys = zip(*chain, strict=True)
    return float(np.interp(cost, xs, ys))


def budget_share(cost: float, first: float, everything: float) -> float:
    """Share of the budget in the paper's convention: what comes after the first sensor."""
    return (cost - first) / (everything - first)
