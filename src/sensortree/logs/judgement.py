"""`LogEvaluation`, `LogComparison`: what a log says about policies, as values and text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from sensortree.logs.estimate import Estimate, Support
from sensortree.reports.drawing import escaped
from sensortree.reports.tables import TextTable
from sensortree.reports.words import percent
from sensortree.text import PlainForm

IN_BRACKETS = "95 % intervals in brackets"


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
class LogEvaluation(PlainForm):
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

    error: Estimate
    loss: Estimate
    cost: Estimate
    total: Estimate
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
        summary, rests, *others = (table.to_html() for table in _tables(self))
        rows = f"<p><b>{_rows(self)}</b>; {IN_BRACKETS}</p>"
        parts = [rows, _refused_html(self), summary, rests]
        if others:
            told = "<summary>sensors, leaves, hidden reasons</summary>"
            parts.append(f"<details>{told}{''.join(others)}</details>")
        notes = (f"<p>{escaped(note)}</p>" for note in self.notes)
        return "\n".join([*parts, *notes])

    def __str__(self) -> str:
        tables = (table.to_text() for table in _tables(self))
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
        names, sides = (
            measures_of(self.first),
            (self.first, self.second, self.difference),
        )
        head = ("per row", "first", "second", "first less second")
        return TextTable(head, _side_by_side(names, *sides))


# as text, and in a notebook ---------------------------------------------------------------


def _rows(found: LogEvaluation) -> str:
    return f"judged from a log of {found.support.n_rows:,} rows"


def _refused_html(found: LogEvaluation | LogComparison) -> str:
    """Why the log cannot tell, as part of an HTML page."""
    if not found.refused:
        return ""
    return f"<p><b>refused</b>: {escaped(found.refused)}</p>"


def _tables(found: LogEvaluation) -> Iterator[TextTable]:
    """Tables of a judgement: measures, what they rest on, sensors, leaves, bands."""
    names = measures_of(found)
    loss = "loss" if found.has_loss else "error"
    unit = f"; costs in {found.unit}" if found.unit else ""
    yield TextTable(
        ("per row", "policy", "logger", "policy less logger"),
        _side_by_side(names, found, found.logger, found.difference),
        notes=(f"total is {loss} + {found.cost_weight:g} × cost{unit}",),
    )
    yield TextTable(("what this rests on", ""), support_words(found.support))
    if not found.refused:
        yield TextTable(
            ("sensor", "share of rows", "spend"),
            [
                [use.sensor, _with_interval(use.share), _with_interval(use.spend)]
                for use in found.sensors
            ],
        )
        yield TextTable(
            ("place", "in the log", "share of rows", "error", "sensors"),
            [
                [
                    use.place,
                    f"{use.rows:,}",
                    _with_interval(use.share),
                    _with_interval(use.error),
                    ", ".join(use.sensors) or "nothing",
                ]
                for use in found.leaves
            ],
            "left",
        )
    if found.bands:
        yield TextTable(
            ("hidden reasons to stop, odds", *names),
            [
                [
                    f"× {band.odds:g}",
                    *(
                        "{:.3g} to {:.3g}".format(*getattr(band, name))
                        for name in names
                    ),
                ]
                for band in found.bands
            ],
        )


def measures_of(found: LogEvaluation) -> tuple[str, ...]:
    """Measures that are shown; a loss only if it is not the error."""
    loss = ("loss",) if found.has_loss else ()
    return ("error", *loss, "cost", "total")


def _side_by_side(names: Iterable[str], *sides: Any) -> list[list[str]]:
    """Measures of several, each with its interval."""
    return [
        [name, *(_with_interval(getattr(side, name)) for side in sides)]
        for name in names
    ]


def _with_interval(one: Estimate) -> str:
    """A mean with its interval, or a dash."""
    if one.value != one.value:
        return "–"
    if one.low != one.low:
        return f"{one.value:.4g}"
    return f"{one.value:.4g} ({one.low:.3g} to {one.high:.3g})"


def support_words(support: Support) -> list[tuple[str, str]]:
    """What a judgement rests on, as names and words."""
    return [
        (
            "rows that the log answers completely",
            f"{support.n_complete:,} of {support.n_rows:,}",
        ),
        (
            "worth so many equal rows",
            f"{support.effective_size:,.0f} ({percent(support.effective_share)})",
        ),
        ("mean weight (should be about 1)", f"{support.mean_weight:.3f}"),
        ("share of the largest weight", f"{percent(support.largest_weight)}"),
        ("rounds after which stopping was all but sure", f"{percent(support.certain)}"),
        ("rows of which hardly any went on", f"{percent(support.unreached)}"),
    ]
