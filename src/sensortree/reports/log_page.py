"""What a log says about a policy: as an HTML page, and in a notebook."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from sensortree.reports.drawing import escaped
from sensortree.reports.html import (
    Page,
    Words,
    between,
    bold,
    bullets,
    figure,
    figures,
    money,
    paragraph,
    section,
    share,
    table,
    tree_section,
)
from sensortree.reports.tables import TextTable
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
class LogPage(Page):
    """All that the page shows.

    Attributes
    ----------
    tree : TreeDisplay
        The ways of the rows that the policy was learned from.
    judged : LogEvaluation
    """

    tree: TreeDisplay
    judged: Any

    def to_html(self) -> str:
        """Give the page."""
        judged, target = self.judged, self.policy.about.target
        n_rows = f"{judged.support.n_rows:,} rows{self.source}"
        parts = [section("What this rests on", self._rests())]
        if judged.refused:
            why = f" {judged.refused} No estimate is given."
            sorry = bold("This log cannot tell what the policy would do.")
            parts.insert(0, paragraph(sorry, why))
        else:
            parts = [
                figures(self._cards()),
                section("Beside what was done", self._beside()),
                section("What it would ask", self._asks()),
                *parts,
            ]
        if judged.bands and not judged.refused:
            hidden = section("If hidden reasons had played a part", self._hidden())
            parts.append(hidden)
        if self.policy.tree.n_nodes:
            learned = "The shares are of the rows it was learned from."
            parts.append(tree_section(self.tree, learned))
        return self.whole(
            f"{target}: what the log says" if target else "What the log says",
            f"Judged from {n_rows}, for which another rule decided what was bought",
            parts,
            {"judged from": n_rows},
        )

    def _cards(self) -> Iterable[tuple[str, str]]:
        error, cost = self.judged.error, self.judged.cost
        right = between(1 - error.high, 1 - error.low, share)
        yield share(1 - error.value), f"right answers expected; 95 % interval {right}"
        sure = between(cost.low, cost.high, money)
        yield self.money(cost.value), f"to be spent on a row on average; {sure}"
        more = self.judged.difference.cost
        sign = -1 if more.value < 0 else 1
        words = "less" if sign < 0 else "more"
        low, high = sorted((sign * more.low, sign * more.high))
        sure = f"{words} than the log's rule spent; {between(low, high, money)}"
        yield self.money(sign * more.value), sure

    def _beside(self) -> Iterable[str]:
        sides = (self.judged, self.judged.logger, self.judged.difference)
        yield table(
            "Per row, with 95 % intervals",
            ("", "the policy", "the log's rule", "difference"),
            [
                [name, *(_figure(getattr(side, name), WRITTEN[name]) for side in sides)]
                for name in measures_of(self.judged)
            ],
        )
        yield paragraph(
            "Rows whose log went on speak, by weights, for rows like them whose log ended; "
            "what could be expected of those is learned too. The figures are right if "
            "either was learned rightly.",
            kind="faint",
        )

    def _asks(self) -> Iterable[str]:
        yield table(
            "Share of rows that would be asked for a sensor, and what is spent on it per "
            "row",
            ("sensor", "rows", "spend"),
            [
                [use.sensor, _figure(use.share, share), _figure(use.spend)]
                for use in self.judged.sensors
            ],
        )
        yield table(
            "Where rows would stop",
            ("place", "knows", "rows", "wrong answers", "seen in the log"),
            [
                [
                    use.place,
                    ", ".join(use.sensors) or "nothing",
                    _figure(use.share, share),
                    _figure(use.error, share),
                    f"{use.rows:,}",
                ]
                for use in self.judged.leaves
            ],
            left=2,
        )

    def _rests(self) -> Iterable[str]:
        yield table("How much of the log speaks", ("", ""), _support(self.judged))
        yield from (paragraph(note) for note in self.judged.notes)
        yield paragraph("What is assumed:")
        yield bullets(ASSUMED)

    def _hidden(self) -> Iterable[str]:
        names = measures_of(self.judged)

        def ends(band: Any, name: str) -> str:
            low, high = getattr(band, name)
            return between(low, high, WRITTEN[name])

        yield table(
            "If what nobody wrote down had made the odds of stopping larger or smaller by "
            "up to so many times",
            ("odds", *names),
            [
                [f"× {band.odds:g}", *(ends(band, name) for name in names)]
                for band in self.judged.bands
            ],
        )


def evaluation_in_notebook(found: Any) -> str:
    """Part of an HTML page that shows a `LogEvaluation` as tables."""
    names = measures_of(found)
    parts = [
        f"<p><b>judged from a log of {found.support.n_rows:,} rows</b>; 95 % intervals in "
        f"brackets</p>",
        _refused(found),
        _sides(found, ("policy", "logger", "policy less logger"), found.logger),
        TextTable(("what this rests on", ""), _support(found)).to_html(),
        *(f"<p>{escaped(note)}</p>" for note in found.notes),
    ]
    if found.refused:
        return "\n".join(parts)
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
        [
            f"× {band.odds:g}",
            *("{:.3g} to {:.3g}".format(*getattr(band, n)) for n in names),
        ]
        for band in found.bands
    ]
    folded = [
        TextTable(("sensor", "rows", "spend"), sensors),
        TextTable(("place", "in the log", "rows", "error", "sensors"), leaves),
        TextTable(
            ("if hidden reasons had changed the odds of stopping", *names), bands
        ),
    ]
    return "\n".join(
        [
            *parts,
            "<details><summary>sensors, leaves, hidden reasons</summary>",
            *(each.to_html() for each in folded),
            "</details>",
        ]
    )


def comparison_in_notebook(found: Any) -> str:
    """Part of an HTML page that shows a `LogComparison` as a table."""
    head = ("first", "second", "first less second")
    sides = _sides(found.first, head, found.second, found.difference)
    return f"{_refused(found)}{sides}"


def measures_of(found: Any) -> tuple[str, ...]:
    """What is told of a row: the loss only if there is one beside errors."""
    return ("error", *(("loss",) if found.has_loss else ()), "cost", "total")


def _sides(
    found: Any, head: tuple[str, ...], other: Any, difference: Any = None
) -> str:
    """Measures of two policies and their difference."""
    sides = (found, other, found.difference if difference is None else difference)
    lines = [
        [name, *(_between(getattr(side, name)) for side in sides)]
        for name in measures_of(found)
    ]
    return TextTable(("per row", *head), lines).to_html()


def _support(found: Any) -> list[list[str]]:
    """What a judgement rests on, as names and figures."""
    rests = found.support
    worth = f"{rests.effective_size:,.0f} ({percent(rests.effective_share)})"
    return [
        ["complete rows", f"{rests.n_complete:,} of {rests.n_rows:,}"],
        ["worth equal rows", worth],
        ["mean weight (about 1)", f"{rests.mean_weight:.3f}"],
        ["largest weight", percent(rests.largest_weight)],
        ["rounds with stopping all but sure", percent(rests.certain)],
        ["rows of which hardly any went on", percent(rests.unreached)],
    ]


def _refused(found: Any) -> str:
    if not found.refused:
        return ""
    return f"<p><b>refused</b>: {escaped(found.refused)}</p>"


def _between(one: Any) -> str:
    if one.value != one.value:
        return "–"
    return f"{one.value:.4g} ({one.low:.3g} to {one.high:.3g})"


def _figure(one: Any, written: Callable[[float], str] = money) -> Words:
    return figure(one.value, (one.low, one.high), written)
