"""What a policy saves beside what buys the same for all, for the page of a report."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from sensortree.display.figures import (
    Interval,
    between,
    figure,
    money,
    says_nothing,
    share,
)
from sensortree.display.markup import (
    Markup,
    Words,
    bold,
    bullets,
    join,
    paragraph,
    table,
)
from sensortree.display.report_spending import shows_loss

if TYPE_CHECKING:
    from sensortree.display.report_page import ReportPage

WORDS = {
    "everything": "buying everything",
    "best fixed set": "the best fixed set",
    "nothing": "buying nothing",
}


def saves(page: ReportPage) -> Iterable[str]:
    """Sentences and a table of the policy beside its baselines."""
    report = page.report
    known = [use for use in report.baselines if not math.isnan(use.total)]
    if not report.baselines:
        yield paragraph(
            "This model does not hold classifiers that buy the same for all, so nothing "
            "can be said here: it is of a method that learns none, or from before they "
            "were kept."
        )
        return
    yield bullets(_verdict(page, uses) for uses in _alike(known))
    yield bullets(f"{use.name}: {use.note}." for use in report.baselines if use.note)
    worth = 1 / report.cost_weight if report.cost_weight else math.inf
    together = math.isfinite(worth)
    head = ["on the same examples", "wrong answers", "price"]
    if shows_loss(report):
        head.insert(2, "loss")
    head += ["together", "saved by decisions"] if together else []
    lines = [_compared(page, "this policy", report, None, worth)]
    lines += [_compared(page, use.name, use, use, worth) for use in known]
    yield table(_counted(page, worth), head, lines)
    for use in known:
        if use.name == "best fixed set":
            which = ", ".join(use.sensors) or "nothing"
            yield paragraph(
                f"The best fixed set is: {which}. Of the sets that training compared, it "
                f"has the least error and weighted cost if all examples get the same.",
                kind="faint",
            )


def _counted(page: ReportPage, worth: float) -> str:
    """What stands in the column "together"."""
    each, report = "Mean per example, and its 95 % interval", page.report
    if not math.isfinite(worth):
        return f"{each}."
    if report.mistake_cost is not None:
        mistake = page.money(report.mistake_cost)
        return f"{each}. Together is price plus {mistake} for a wrong answer."
    times = "" if math.isclose(worth, 1) else f"{money(worth)} times the "
    return f"{each}. Together is price plus {times}loss."


def _compared(
    page: ReportPage, name: str, line: Any, use: Any, worth: float
) -> list[Words]:
    """A line of the table of baselines; `use` is None for the policy."""
    intervals = line.intervals
    cells: list[Words] = [
        bold(name) if use is None else name,
        figure(line.error, intervals.get("error"), share),
    ]
    if shows_loss(page.report):
        cells.append(figure(line.loss, intervals.get("loss"), money))
    cells.append(figure(line.cost, intervals.get("cost"), money))
    if math.isfinite(worth):
        cells.append(figure(*_times(line.total, intervals.get("total"), worth), money))
        if use is None:
            cells.append("")
        else:
            saved = _times(use.saved["total"], use.saved_intervals.get("total"), worth)
            cells.append(figure(*saved, money))
    return cells


def _times(
    value: float, interval: Interval | None, factor: float
) -> tuple[float, Interval | None]:
    if interval is None:
        return value * factor, None
    return value * factor, (interval[0] * factor, interval[1] * factor)


def _alike(known: Sequence[Any]) -> list[list[Any]]:
    """Baselines, those that buy the same together."""
    found: dict[tuple[str, ...], list[Any]] = {}
    for use in known:
        found.setdefault(use.sensors, []).append(use)
    return list(found.values())


def _verdict(page: ReportPage, uses: Sequence[Any]) -> Markup:
    """What the policy does better or worse than a baseline, in a sentence."""
    use, names = uses[0], [WORDS.get(use.name, use.name) for use in uses]
    what = f"Against {', which is also '.join(names)}"
    saved, fewer = use.saved["cost"], use.saved["error"]
    low, high = use.saved_intervals["error"]
    if not (saved or fewer or low or high):
        return join(bold(what), ": it buys the same, and answers the same.")
    return join(bold(what), f": it {_cheaper(page, use)}; {_righter(use)}.")


def _cheaper(page: ReportPage, use: Any) -> str:
    saved = use.saved["cost"]
    low, high = use.saved_intervals["cost"]
    if abs(saved) < 1e-9:
        return "costs the same"
    word, ends = ("less", (low, high)) if saved > 0 else ("more", (-high, -low))
    sure = "" if says_nothing(*ends, money) else f" ({between(*ends, money)})"
    return f"costs {page.money(abs(saved))} {word} per example{sure}"


def _righter(use: Any) -> str:
    fewer = use.saved["error"]
    low, high = use.saved_intervals["error"]
    if low <= 0 <= high:
        return (
            f"no clear difference in wrong answers ({_points(-high)} to {_points(-low)} "
            f"percentage points)"
        )
    word, ends = ("fewer", (low, high)) if fewer > 0 else ("more", (-high, -low))
    return (
        f"{100 * abs(fewer):.1f} percentage points {word} wrong answers "
        f"({100 * ends[0]:.1f} to {100 * ends[1]:.1f})"
    )


def _points(share: float) -> str:
    return f"{100 * share:+.1f}".replace("-", "−")
