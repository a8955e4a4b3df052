"""How figures are drawn: error against mean cost, the same bytes for the same lines."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from experiments.tables import Point
from sensortree.results import TradeoffCurve

# Text stays text, so that it can be searched and the file is small.
SVG = {"svg.hashsalt": "sensortree", "svg.fonttype": "none"}


def panel(**said: str) -> tuple[Figure, Any]:
    """A figure of one panel, with what its axes say; `finish` it when lines are drawn."""
    figure = Figure(figsize=(5.2, 3.6), layout="constrained")
    axes = figure.subplots()
    axes.set(**{"xlabel": "mean cost", "ylabel": "test error", **said})
    return figure, axes


def finish(axes: Any, fontsize: float) -> None:
    """Add legend and grid."""
    axes.legend(fontsize=fontsize)
    axes.grid(alpha=0.3)


def hull(
    axes: Any, points: Iterable[Point], colour: str, label: str, lw: float
) -> None:
    """Draw the lower hull of some points, if there are any."""
    if points := list(points):
        costs, errors = zip(*TradeoffCurve.from_points(points).hull(), strict=True)
        axes.plot(costs, errors, "o-", ms=3, lw=lw, color=colour, label=label)


def save(figure: Figure, path: Path) -> None:
    """Write the same bytes for the same data."""
    with matplotlib.rc_context(SVG):
        figure.savefig(path, format="svg", metadata={"Date": None})
