"""`LogEvaluation`, `LogComparison`: what a log says about policies, as values and text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sensortree.display.words import percent
from sensortree.logs.estimate import Estimate, Support
from sensortree.text import PlainForm, aligned


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
        from sensortree.display.from_log import evaluation_in_notebook

        return evaluation_in_notebook(self)

    def __str__(self) -> str:
        return evaluation_text(self)


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
        from sensortree.display.from_log import comparison_in_notebook

        return comparison_in_notebook(self)

    def __str__(self) -> str:
        return comparison_text(self)


# as text --------------------------------------------------------------------------------


def evaluation_text(found: LogEvaluation) -> str:
    """All parts of a judgement, in the order in which they are asked for."""
    parts = [
        f"judged from a log of {found.support.n_rows:,} rows; 95 % intervals in brackets",
        f"refused: {found.refused}" if found.refused else "",
        _summary(found),
        aligned(("what this rests on", ""), _support(found.support)),
        "" if found.refused else _sensors(found),
        "" if found.refused else _leaves(found),
        _bands(found),
        *found.notes,
    ]
    return "\n\n".join(part for part in parts if part)


def comparison_text(found: LogComparison) -> str:
    """Two policies and their difference."""
    refused = [f"refused: {found.refused}"] if found.refused else []
    names, sides = _measures(found.first), (found.first, found.second, found.difference)
    head = ("per row", "first", "second", "first less second")
    sizes = [
        f"{who}: worth {one.support.effective_size:,.0f} rows "
        f"({percent(one.support.effective_share)}) of {one.support.n_rows:,}"
        for who, one in (("first", found.first), ("second", found.second))
    ]
    table = aligned(head, _side_by_side(names, *sides))
    return "\n\n".join([*refused, table, "\n".join(sizes)])


def _measures(found: LogEvaluation) -> tuple[str, ...]:
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


def _support(support: Support) -> list[tuple[str, str]]:
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


def _summary(found: LogEvaluation) -> str:
    sides = (found, found.logger, found.difference)
    lines = _side_by_side(_measures(found), *sides)
    loss = "loss" if found.has_loss else "error"
    unit = f"; costs in {found.unit}" if found.unit else ""
    return (
        f"{aligned(('per row', 'policy', 'logger', 'policy less logger'), lines)}\n"
        f"total is {loss} + {found.cost_weight:g} × cost{unit}"
    )


def _sensors(found: LogEvaluation) -> str:
    lines = [
        [use.sensor, _with_interval(use.share), _with_interval(use.spend)]
        for use in found.sensors
    ]
    return aligned(("sensor", "share of rows", "spend"), lines)


def _leaves(found: LogEvaluation) -> str:
    lines = [
        [
            use.place,
            f"{use.rows:,}",
            _with_interval(use.share),
            _with_interval(use.error),
            ", ".join(use.sensors) or "nothing",
        ]
        for use in found.leaves
    ]
    head = ("place", "in the log", "share of rows", "error", "sensors")
    return aligned(head, lines, "left")


def _bands(found: LogEvaluation) -> str:
    """What would follow if hidden reasons had changed the odds of stopping."""
    if not found.bands:
        return ""
    lines = []
    for band in found.bands:
        ends = [getattr(band, name) for name in _measures(found)]
        lines.append(
            [f"× {band.odds:g}", *(f"{low:.3g} to {high:.3g}" for low, high in ends)]
        )
    return aligned(("hidden reasons to stop, odds", *_measures(found)), lines)
