"""What a log says about a policy as one HTML page, for people who decide."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from sensortree.reports.drawing import escaped
from sensortree.reports.html import (
    Words,
    between,
    bold,
    bullets,
    figure,
    figures,
    money,
    named,
    paragraph,
    section,
    share,
    table,
    tree_section,
    whole_page,
)
from sensortree.reports.tables import table_in_notebook
from sensortree.reports.tree_display import TreeDisplay
from sensortree.reports.words import percent

# What is assumed, each with what would make it wrong.
ASSUMED = (
    "Buying ended for no reason that is not in the log. A nurse who looks at a patient and "
    "orders nothing, and writes down nothing of what she saw, breaks this.",
    "A reading is the same whenever it is bought. A test that upsets the next one breaks "
    "this.",
    "Rows of every kind had a chance of all that the policy asks for them. A rule that "
    "never scans the young says nothing about scanning the young.",
    "The rows are such as will come, and the policy was not learned from them.",
)
# How a measure is written.
WRITTEN = {"error": share, "loss": money, "cost": money, "total": money}


@dataclass(frozen=True, eq=False)
class LogPage:
    """All that the page shows.

    Attributes
    ----------
    judged : LogEvaluation
    tree : TreeDisplay
        The ways of the rows that the policy was learned from.
    about : About
        Unit, target, data and date of the training.
    data : str
        Name of the log.
    written : str
        When, as 2026-01-31T12:00:00Z.
    digest : str
        Of the policy.
    title : str
    """

    judged: Any
    tree: TreeDisplay
    about: Any
    data: str
    written: str
    digest: str
    title: str

    def to_html(self) -> str:
        """Give the page."""
        told = not self.judged.refused
        parts = [
            f"<h1>{escaped(self.title)}</h1>",
            paragraph(_subtitle(self), kind="faint"),
            "" if told else _refusal(self),
            figures(_cards(self)) if told else "",
            section("Beside what was done", _beside(self)) if told else "",
            section("What it would ask", _asks(self)) if told else "",
            section("What this rests on", _rests(self)),
            section("If hidden reasons had played a part", _hidden(self))
            if told and self.judged.bands
            else "",
            tree_section(self.tree, "The shares are of the rows it was learned from.")
            if self.tree.tree.n_nodes
            else "",
            section("Where this comes from", [named(_facts(self))]),
        ]
        return whole_page(self.title, parts)

    def money(self, amount: float) -> str:
        """An amount of money with its unit."""
        unit = f" {self.about.unit}" if self.about.unit else ""
        return f"{money(amount)}{unit}"


def _subtitle(page: LogPage) -> str:
    source = f" of {page.data}" if page.data else ""
    date = page.written.partition("T")[0]
    return (
        f"Judged from {page.judged.support.n_rows:,} rows{source}, for which another rule "
        f"decided what was bought; written on {date}."
    )


def _refusal(page: LogPage) -> str:
    return paragraph(
        bold("This log cannot tell what the policy would do."),
        f" {page.judged.refused} Nothing is said in place of an answer.",
    )


def _cards(page: LogPage) -> Iterable[tuple[str, str]]:
    error, cost = page.judged.error, page.judged.cost
    right = between(1 - error.high, 1 - error.low, share)
    yield share(1 - error.value), f"right answers expected; 95 % interval {right}"
    sure = between(cost.low, cost.high, money)
    yield page.money(cost.value), f"to be spent on a row on average; {sure}"
    more = page.judged.difference.cost
    sign = -1 if more.value < 0 else 1
    words = "less" if sign < 0 else "more"
    low, high = sorted((sign * more.low, sign * more.high))
    sure = between(low, high, money)
    yield page.money(sign * more.value), f"{words} than the log's rule spent; {sure}"


def _beside(page: LogPage) -> Iterable[str]:
    judged = page.judged
    sides = (judged, judged.logger, judged.difference)
    lines = [
        [name, *(_interval(getattr(side, name), WRITTEN[name]) for side in sides)]
        for name in measures_of(judged)
    ]
    yield table(
        "Per row, with 95 % intervals",
        ("", "the policy", "the log's rule", "difference"),
        lines,
    )
    yield paragraph(
        "Rows whose log went on speak, by weights, for rows like them whose log ended; "
        "what could be expected of those is learned too. The figures are right if either "
        "was learned rightly.",
        kind="faint",
    )


def _asks(page: LogPage) -> Iterable[str]:
    yield table(
        "Share of rows that would be asked for a sensor, and what is spent on it per row",
        ("sensor", "rows", "spend"),
        [
            [use.sensor, _interval(use.share, share), _interval(use.spend)]
            for use in page.judged.sensors
        ],
    )
    yield table(
        "Where rows would stop",
        ("place", "knows", "rows", "wrong answers", "seen in the log"),
        [
            [
                use.place,
                ", ".join(use.sensors) or "nothing",
                _interval(use.share, share),
                _interval(use.error, share),
                f"{use.rows:,}",
            ]
            for use in page.judged.leaves
        ],
        left=2,
    )


def _rests(page: LogPage) -> Iterable[str]:
    yield table("How much of the log speaks", ("", ""), support_cells(page.judged))
    yield from (paragraph(note) for note in page.judged.notes)
    yield paragraph("What is assumed:")
    yield bullets(ASSUMED)


def _hidden(page: LogPage) -> Iterable[str]:
    names = measures_of(page.judged)

    def ends(band: Any, name: str) -> str:
        low, high = getattr(band, name)
        return between(low, high, WRITTEN[name])

    yield table(
        "If what nobody wrote down had made the odds of stopping larger or smaller by up "
        "to so many times",
        ("odds", *names),
        [
            [f"× {band.odds:g}", *(ends(band, name) for name in names)]
            for band in page.judged.bands
        ],
    )


def _facts(page: LogPage) -> dict[str, str]:
    about = page.about
    rows = "" if about.rows is None else f"{about.rows:,} rows"
    return {
        "judged from": f"{page.judged.support.n_rows:,} rows"
        + (f" of {page.data}" if page.data else ""),
        "asked": about.target,
        "learned from": " of ".join(part for part in (rows, about.data) if part),
        "learned on": about.fitted.partition("T")[0],
        "prices in": about.unit,
        "cost weight": f"{page.judged.cost_weight:g}",
        "written": page.written,
        "model's digest": page.digest,
    }


def _interval(one: Any, written: Callable[[float], str] = money) -> Words:
    return figure(one.value, (one.low, one.high), written)


def evaluation_in_notebook(found: Any) -> str:
    """Part of an HTML page that shows a `LogEvaluation` as tables."""
    sides = (found, found.logger, found.difference)
    measures = [
        [name, *(_between(getattr(side, name)) for side in sides)]
        for name in measures_of(found)
    ]
    sensors = [
        [use.sensor, _between(use.share), _between(use.spend)] for use in found.sensors
    ]
    leaves = [
        [
            use.place,
            str(use.rows),
            _between(use.share),
            _between(use.error),
            ", ".join(use.sensors) or "nothing",
        ]
        for use in found.leaves
    ]
    bands = [
        [f"× {band.odds:g}", *(_ends(getattr(band, n)) for n in measures_of(found))]
        for band in found.bands
    ]
    head = ("per row", "policy", "logger", "policy less logger")
    return "\n".join(
        [
            f"<p><b>judged from a log of {found.support.n_rows:,} rows</b>; 95 % intervals "
            f"in brackets</p>",
            _refused(found),
            table_in_notebook("", head, measures),
            table_in_notebook("what this rests on", ("", ""), support_cells(found)),
            *(f"<p>{escaped(note)}</p>" for note in found.notes),
            ""
            if found.refused
            else "\n".join(
                [
                    "<details><summary>sensors, leaves, hidden reasons</summary>",
                    table_in_notebook("", ("sensor", "rows", "spend"), sensors),
                    table_in_notebook(
                        "", ("place", "in the log", "rows", "error", "sensors"), leaves
                    ),
                    table_in_notebook(
                        "if hidden reasons had changed the odds of stopping",
                        ("odds", *measures_of(found)),
                        bands,
                    ),
                    "</details>",
                ]
            ),
        ]
    )


def comparison_in_notebook(found: Any) -> str:
    """Part of an HTML page that shows a `LogComparison` as a table."""
    sides = (found.first, found.second, found.difference)
    lines = [
        [name, *(_between(getattr(side, name)) for side in sides)]
        for name in measures_of(found.first)
    ]
    head = ("per row", "first", "second", "first less second")
    return f"{_refused(found)}{table_in_notebook('', head, lines)}"


def support_cells(found: Any) -> list[list[str]]:
    """What a judgement rests on, as names and figures."""
    rests = found.support
    return [
        ["complete rows", f"{rests.n_complete:,} of {rests.n_rows:,}"],
        [
            "worth equal rows",
            f"{rests.effective_size:,.0f} ({percent(rests.effective_share)})",
        ],
        ["mean weight (about 1)", f"{rests.mean_weight:.3f}"],
        ["largest weight", percent(rests.largest_weight)],
        ["rounds with stopping all but sure", percent(rests.certain)],
        ["rows of which hardly any went on", percent(rests.unreached)],
    ]


def _refused(found: Any) -> str:
    if not found.refused:
        return ""
    return f"<p><b>refused</b>: {escaped(found.refused)}</p>"


def measures_of(found: Any) -> tuple[str, ...]:
    """What is told of a row: the loss only if there is one beside errors."""
    return ("error", *(("loss",) if found.has_loss else ()), "cost", "total")


def _between(one: Any) -> str:
    if one.value != one.value:
        return "–"
    return f"{one.value:.4g} ({one.low:.3g} to {one.high:.3g})"


def _ends(ends: tuple[float, float]) -> str:
    return f"{ends[0]:.3g} to {ends[1]:.3g}"
