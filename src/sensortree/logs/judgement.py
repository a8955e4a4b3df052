"""`LogEvaluation`, `LogComparison`: what a log says about policies, as values and text.

And `report_page_from_log`: the same as one HTML page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from sensortree.exceptions import ParameterError
from sensortree.logs.estimate import Estimate, Support
from sensortree.policy.policy import Policy
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
from sensortree.text import PlainForm

IN_BRACKETS = "95 % intervals in brackets"
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
WRITTEN = {"error": share, "share": share}  # on a page; others are money


@dataclass(frozen=True)
class Measured:
    """Error, loss, cost and total per row, each with its interval."""

    error: Estimate
    loss: Estimate
    cost: Estimate
    total: Estimate


@dataclass(frozen=True)
class SensorFromLog:
    """Share of rows that would acquire a sensor, and what would be spent on it per row."""

    sensor: str
    share: Estimate
    spend: Estimate


@dataclass(frozen=True)
class PlaceFromLog:
    """Share of rows that would stop at a place, and share of wrong answers there.

    `rows` is the number of rows in the log that are known to stop there.
    """

    place: str
    leaf: int
    sensors: tuple[str, ...]
    rows: int
    share: Estimate
    error: Estimate


@dataclass(frozen=True)
class Band:
    """Between what error and cost may be if the odds of stopping were otherwise.

    If what nobody recorded made the logger's odds of stopping up to `odds` times larger
    or smaller for some rows than for others that look the same (Γ). The ends have 95 %
    intervals in them.
    """

    odds: float
    error: tuple[float, float]
    loss: tuple[float, float]
    cost: tuple[float, float]
    total: tuple[float, float]


@dataclass(frozen=True)
class LogEvaluation(Measured, PlainForm):
    """What a policy would have cost and answered on the rows of a log.

    Attributes
    ----------
    error : Estimate
        Share of wrong answers: ``value``, ``low``, ``high`` of the 95 % interval.
    loss : Estimate
        Mean loss of the answers; without a loss matrix, the error.
    cost : Estimate
        Mean price of what a row acquires.
    total : Estimate
        ``loss + cost_weight * cost``.
    refused : str or None
        Why the log cannot tell, with the figures; all estimates are then NaN.
    support : Support
        What this rests on: complete rows, effective size, weights.
    logger : Measured
        What was bought in the log, and how wrong the answers are: those that were given,
        or the policy's with what was bought.
    difference : Measured
        The policy less the logger, row by row.
    sensors : tuple of SensorFromLog
    leaves : tuple of PlaceFromLog
    bands : tuple of Band
        The same if hidden reasons had changed the odds of stopping.
    notes : tuple of str
        What should be known beside the figures.
    has_loss : bool
    cost_weight : float
    unit : str
    """

    refused: str | None
    support: Support
    logger: Measured
    difference: Measured
    sensors: tuple[SensorFromLog, ...]
    leaves: tuple[PlaceFromLog, ...]
    bands: tuple[Band, ...]
    notes: tuple[str, ...]
    has_loss: bool
    cost_weight: float
    unit: str

    def _repr_html_(self) -> str:
        summary, rests, *others = (each.to_html() for each in _as_text(self))
        rows = f"<p><b>{_rows(self)}</b>; {IN_BRACKETS}</p>"
        parts = [rows, _refused_html(self), summary, rests]
        if others:
            folded = "<summary>sensors, leaves, hidden reasons</summary>"
            parts.append(f"<details>{folded}{''.join(others)}</details>")
        notes = (f"<p>{escaped(note)}</p>" for note in self.notes)
        return "\n".join([*parts, *notes])

    def __str__(self) -> str:
        tables = (each.to_text() for each in _as_text(self))
        refused = [f"refused: {self.refused}"] if self.refused else []
        head = f"{_rows(self)}; {IN_BRACKETS}"
        return "\n\n".join([head, *refused, *tables, *self.notes])


@dataclass(frozen=True)
class LogComparison(PlainForm):
    """Two policies judged on the same log.

    Attributes
    ----------
    first, second : LogEvaluation
    difference : Measured
        The first less the second, row by row: below 0, the first has less.
    refused : str or None
        Why the log cannot tell about one of them.
    """

    first: LogEvaluation
    second: LogEvaluation
    difference: Measured
    refused: str | None

    def _repr_html_(self) -> str:
        return _refused_html(self) + self._table().to_html()

    def __str__(self) -> str:
        refused = [f"refused: {self.refused}"] if self.refused else []
        sizes = [
            f"{who}: worth {one.support.effective_size:,.0f} rows "
            f"({percent(one.support.effective_share)}) of {one.support.n_rows:,}"
            for who, one in (("first", self.first), ("second", self.second))
        ]
        return "\n\n".join([*refused, self._table().to_text(), "\n".join(sizes)])

    def _table(self) -> TextTable:
        """Both policies and their difference."""
        sides = (self.first, self.second, self.difference)
        head = ("per row", "first", "second", "first less second")
        return TextTable(head, _side_by_side(measures_of(self.first), sides, _shown))


# as text, and in a notebook ---------------------------------------------------------------


def _rows(found: LogEvaluation) -> str:
    return f"judged from a log of {found.support.n_rows:,} rows"


def _refused_html(found: LogEvaluation | LogComparison) -> str:
    """Why the log cannot tell, as part of an HTML page."""
    if not found.refused:
        return ""
    return f"<p><b>refused</b>: {escaped(found.refused)}</p>"


class Told(NamedTuple):
    """A table of a judgement; cells are text, or words of a page."""

    caption: str  # on a page
    head: tuple[str, ...]
    lines: list[list[Any]]


def _tables(
    found: LogEvaluation,
    shown: Callable[[Estimate, str], Any],
    ends: Callable[[tuple[float, float], str], Any],
) -> dict[str, Told]:
    """Tables of a judgement: measures, what they rest on, sensors, places, bands.

    How an estimate of a measure is shown, and how two ends of one, differs between text
    and pages.
    """
    names, support = measures_of(found), found.support
    tables = {
        "measures": Told(
            "Per row, with 95 % intervals",
            ("per row", "policy", "logger", "policy less logger"),
            _side_by_side(names, (found, found.logger, found.difference), shown),
        ),
        "rests": Told(
            "How much of the log speaks",
            ("what this rests on", ""),
            [
                [
                    "rows that the log answers completely",
                    f"{support.n_complete:,} of {support.n_rows:,}",
                ],
                [
                    "worth so many equal rows",
                    f"{support.effective_size:,.0f} ({percent(support.effective_share)})",
                ],
                ["mean weight (should be about 1)", f"{support.mean_weight:.3f}"],
                ["share of the largest weight", percent(support.largest_weight)],
                [
                    "rounds after which stopping was all but sure",
                    percent(support.certain),
                ],
                ["rows of which hardly any went on", percent(support.unreached)],
            ],
        ),
    }
    if not found.refused:
        tables["sensors"] = Told(
            "Rows that would be asked for a sensor, and what is spent on it per row",
            ("sensor", "share of rows", "spend"),
            [
                [use.sensor, shown(use.share, "share"), shown(use.spend, "spend")]
                for use in found.sensors
            ],
        )
        tables["places"] = Told(
            "Where rows would stop, and what is known there",
            ("place", "in the log", "share of rows", "error", "sensors"),
            [
                [
                    use.place,
                    f"{use.rows:,}",
                    shown(use.share, "share"),
                    shown(use.error, "error"),
                    ", ".join(use.sensors) or "nothing",
                ]
                for use in found.leaves
            ],
        )
    if found.bands:
        tables["bands"] = Told(
            "If what nobody wrote down had made the odds of stopping larger or smaller by "
            "up to so many times",
            ("hidden reasons to stop, odds", *names),
            [
                [
                    f"× {band.odds:g}",
                    *(ends(getattr(band, name), name) for name in names),
                ]
                for band in found.bands
            ],
        )
    return tables


def measures_of(found: LogEvaluation) -> tuple[str, ...]:
    """Measures that are shown; a loss only if it is not the error."""
    loss = ("loss",) if found.has_loss else ()
    return ("error", *loss, "cost", "total")


def _side_by_side(
    names: Iterable[str], sides: Iterable[Any], shown: Callable[[Estimate, str], Any]
) -> list[list[Any]]:
    """Measures of several, each with its interval."""
    return [
        [name, *(shown(getattr(side, name), name) for side in sides)] for name in names
    ]


def _shown(one: Estimate, measure: str) -> str:
    """A mean with its interval as text, or a dash."""
    if one.value != one.value:
        return "–"
    if one.low != one.low:
        return f"{one.value:.4g}"
    return f"{one.value:.4g} ({one.low:.3g} to {one.high:.3g})"


def _as_text(found: LogEvaluation) -> list[TextTable]:
    """All tables as text."""
    tables = _tables(found, _shown, lambda ends, _: "{:.3g} to {:.3g}".format(*ends))
    loss = "loss" if found.has_loss else "error"
    unit = f"; costs in {found.unit}" if found.unit else ""
    total = f"total is {loss} + {found.cost_weight:g} × cost{unit}"
    return [
        TextTable(
            each.head,
            each.lines,
            "left" if name == "places" else "right",
            (total,) if name == "measures" else (),
        )
        for name, each in tables.items()
    ]


# as a page --------------------------------------------------------------------------------


def policy_of(model: Any) -> Policy:
    """The policy of a model, or what is given as one."""
    policy = model if isinstance(model, Policy) else getattr(model, "policy_", None)
    if not isinstance(policy, Policy):
        raise ParameterError(
            f"model must be a fitted classifier of sensortree, a loaded model or a policy, "
            f"got {type(model).__name__}; fit it first."
        )
    return policy


def report_page_from_log(
    model: Any, judged: LogEvaluation, *, data: str = "", title: str = ""
) -> str:
    """Give what a log says about a policy as one HTML page, for people who decide.

    The page compares what the policy would answer and spend with what was done. It says
    which sensors the policy would buy for whom, which rows and assumptions this rests on,
    and how hidden reasons could change it; or why the log cannot tell.

    Parameters
    ----------
    model : Policy, fitted classifier or loaded model
    judged : LogEvaluation
        Of the same policy.
    data : str, default=""
        Name of the log, for the page.
    title : str, default=""
        Heading of the page; by default it says what is predicted.

    Returns
    -------
    html : str
        It loads nothing from elsewhere, and runs no script; it can be read on a phone and
        printed.

    Examples
    --------
    >>> import numpy as np
    >>> import sensortree
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1500, 2))
    >>> y = X[:, 0] + (np.abs(X[:, 0]) < 0.5) * X[:, 1] > 0
    >>> model = sensortree.SensorTreeClassifier(cost_weight=0.02).fit(X[:500], y[:500])
    >>> bought = np.column_stack([np.ones(1000, int), 2 * (rng.random(1000) < 0.6)])
    >>> judged = sensortree.evaluate_from_log(
    ...     model, X[500:], y[500:], acquired=bought)
    >>> page = sensortree.report_page_from_log(model, judged, data="log.csv")
    >>> page.startswith("<!DOCTYPE html>")
    True
    """
    policy = policy_of(model)
    tree = TreeDisplay.from_estimator(model, unit=policy.about.unit)
    return LogPage(policy, data, title, tree, judged).to_html()


@dataclass(frozen=True, eq=False)
class LogPage(Page):
    """All that the page shows."""

    tree: TreeDisplay  # the ways of the rows that the policy was learned from
    judged: LogEvaluation

    def to_html(self) -> str:
        """Give the page."""
        judged, target = self.judged, self.policy.about.target
        n_rows = f"{judged.support.n_rows:,} rows{self.source}"
        tables = _tables(judged, _figure, lambda ends, name: between(*ends, _way(name)))
        notes = [paragraph(note) for note in judged.notes]
        assumed = [paragraph("What is assumed:"), bullets(ASSUMED)]
        rests = [table(*tables["rests"]), *notes, *assumed]
        parts = [section("What this rests on", rests)]
        if judged.refused:
            why = f" {judged.refused} No estimate is given."
            sorry = bold("This log cannot tell what the policy would do.")
            parts.insert(0, paragraph(sorry, why))
        else:
            speaks = paragraph(
                "Rows whose log went on speak, by weights, for rows like them whose log "
                "ended; what could be expected of those is learned too. The figures are "
                "right if either was learned rightly.",
                kind="faint",
            )
            asks = [table(*tables["sensors"]), table(*tables["places"])]
            parts = [
                figures(self._cards()),
                section("Beside what was done", [table(*tables["measures"]), speaks]),
                section("What it would ask", asks),
                *parts,
            ]
        if "bands" in tables:
            hidden = [table(*tables["bands"])]
            parts.append(section("If hidden reasons had played a part", hidden))
        if self.policy.tree.n_nodes:
            learned = "The shares are of the rows it was learned from."
            parts.append(tree_section(self.tree, learned))
        return self.whole(
            f"{target}: what the log says" if target else "What the log says",
            f"Judged from {n_rows}, for which another rule, the logger, decided what was "
            f"bought",
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


def _way(measure: str) -> Callable[[float], str]:
    """How a measure is written on a page."""
    return WRITTEN.get(measure, money)


def _figure(one: Estimate, measure: str) -> Words:
    """An estimate on a page, with its interval below it."""
    return figure(one.value, (one.low, one.high), _way(measure))
