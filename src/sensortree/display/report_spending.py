"""What spending less or more would give, for the page of a report: the curve."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sensortree.display.beside import Line, Point, beside
from sensortree.display.figures import money, share
from sensortree.display.markup import paragraph

if TYPE_CHECKING:
    from sensortree.display.report_page import ReportPage


@dataclass(frozen=True)
class Height:
    """What stands upright in the picture: shares of wrong answers, or a mean loss.

    Attributes
    ----------
    name : {"error", "loss"}
        The measure of a report.
    words : str
        The same for people.
    of_curve : float
        What a curve's measure is multiplied by.
    """

    name: str
    words: str
    of_curve: float

    def written(self, value: float) -> str:
        """A value for people."""
        return share(value) if self.name == "error" else money(value)


def shows_loss(report: Any) -> bool:
    """Whether some wrong answers are worse than others."""
    return report.has_loss and report.mistake_cost is None


def height_of(page: ReportPage) -> Height:
    """Loss where some wrong answers are worse than others, else their share."""
    report, unit = page.report, page.about.unit
    if shows_loss(report):
        of = f" ({unit})" if unit and math.isclose(report.cost_weight, 1) else ""
        return Height("loss", f"mean loss{of}", 1.0)
    mistake = report.mistake_cost * report.cost_weight if report.has_loss else 1.0
    return Height("error", "wrong answers", 1 / mistake)


def spends(page: ReportPage) -> Iterable[str]:
    """The curve, with the policy and its baselines, and what its lines are."""
    report, height = page.report, height_of(page)
    points = [
        Point(name, use.cost, getattr(use, height.name), *_interval(use, height.name))
        for name, use in (("this policy", report), *_known(report))
    ]
    points[0] = replace(points[0], chosen=True)
    lines = []
    if len(page.limits) > 1:
        ends = [(use.cost, getattr(use, height.name)) for use in page.limits]
        lines.append(Line("this tree with less to spend", tuple(ends), "limited"))
    if page.curve is not None:
        found = zip(page.curve.mean_cost, page.curve.error, strict=True)
        ends = sorted((float(c), height.of_curve * float(e)) for c, e in found)
        lines.append(Line("trees of other cost weights", tuple(ends), "learned"))
    picture = beside(points, page.about.unit, lines, height.words, height.written)
    yield f'<figure style="margin:0">{picture}</figure>'
    yield from _captions(page, height)


def _known(report: Any) -> list[tuple[str, Any]]:
    """Baselines that could be measured."""
    return [(use.name, use) for use in report.baselines if not math.isnan(use.total)]


def _interval(use: Any, measure: str) -> tuple[float, float]:
    value = getattr(use, measure)
    low, high = use.intervals.get(measure, (value, value))
    return low, high


def _captions(page: ReportPage, height: Height) -> Iterable[str]:
    """What was measured how."""
    yield paragraph(
        f"Points are of these {page.report.n_rows:,} examples, with 95 % intervals.",
        kind="faint",
    )
    if len(page.limits) > 1:
        first = page.limits[0]
        yield paragraph(
            f"The solid line is this tree on the same examples, if none may cost more than "
            f"a limit, from {page.money(first.limit)} ({height.words} "
            f"{height.written(getattr(first, height.name))}) up to no limit. Decisions are "
            f"as they were learned, and who cannot pay goes where training served such "
            f"best; a tree that is learned for less money may do better.",
            kind="faint",
        )
    elif page.report.cost:
        yield paragraph(
            "What this tree would do with less to spend cannot be told: these examples "
            "lack values that it would buy.",
            kind="faint",
        )
    if page.curve is None:
        yield paragraph(
            "What trees of other cost weights would cost and answer was not measured when "
            "the model was learned; fitted for a budget, a model keeps that curve.",
            kind="faint",
        )
        return
    chosen = page.chosen
    yield paragraph(
        f"The dashed line was measured when the model was learned, on training rows held "
        f"out in turn: each dot is a tree learned at another cost weight. This model is "
        f"the one at {chosen.cost_weight:.3g}, which there cost "
        f"{page.money(chosen.mean_cost)} on average, with {height.words} of "
        f"{height.written(height.of_curve * chosen.error)}.",
        kind="faint",
    )
