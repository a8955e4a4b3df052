"""How tables are drawn, and what they are drawn of: points, means, shares of a budget."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from experiments.results import Line
from sensortree.results import TradeoffCurve

Point = tuple[float, float]  # mean cost, error


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """Rows, the first one a header, as a table."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "|---" * len(rows[0]) + "|")
    return "\n".join(lines) + "\n"


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """The same, with columns that line up in the source."""
    widths = [max(len(row[c]) for row in rows) for c in range(len(rows[0]))]
    rows = [rows[0], ["-" * width for width in widths], *rows[1:]]
    return "".join(
        "| "
        + " | ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True))
        + " |\n"
        for row in rows
    )


def of(lines: Iterable[Line], **fields: Any) -> list[Line]:
    """Lines that have these fields."""
    wanted = fields.items()
    return [line for line in lines if all(line.get(k) == v for k, v in wanted)]


def mean(lines: Iterable[Line], field: str) -> float:
    """Mean of a field."""
    return float(np.mean([line[field] for line in lines]))


def points(lines: Iterable[Line]) -> list[Point]:
    """Cost and error of each line, the cheapest first."""
    return sorted((line["cost"], line["error"]) for line in lines)


def curve_of(lines: Iterable[Line]) -> TradeoffCurve:
    """Mean cost and error at each setting."""
    return TradeoffCurve.from_points((line["cost"], line["error"]) for line in lines)


def rule(first: float, everything: float) -> float:
    """The paper's target: 95 % of the improvement from the first sensor to all."""
    return everything + 0.05 * (first - everything)


def percent(share: float) -> str:
    """A share of the budget; it may never be enough."""
    return "never" if np.isnan(share) else f"{100 * share:.1f} %"


def or_dash(value: float, form: str) -> str:
    """A number in its form, or a dash for one that is not there."""
    return "-" if np.isnan(value) else f"{value:{form}}"
