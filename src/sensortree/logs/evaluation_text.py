"""Judgements from a log as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sensortree.reports.words import percent
from sensortree.text import aligned

if TYPE_CHECKING:
    from sensortree.logs.estimate import Estimate
    from sensortree.logs.judgement import LogComparison, LogEvaluation
    from sensortree.logs.support import Support


def evaluation_text(found: LogEvaluation) -> str:
    """All parts of a judgement, in the order in which they are asked for."""
    parts = [
        _head(found.support),
        f"refused: {found.refused}" if found.refused else "",
        _summary(found),
        support_text(found.support),
        "" if found.refused else _sensors(found),
        "" if found.refused else _leaves(found),
        _bands(found),
        *found.notes,
    ]
    return "\n\n".join(part for part in parts if part)


def comparison_text(found: LogComparison) -> str:
    """Two policies and their difference."""
    names = measures_of(found.first)
    lines = [
        [
            name,
            with_interval(getattr(found.first, name)),
            with_interval(getattr(found.second, name)),
            with_interval(getattr(found.difference, name)),
        ]
        for name in names
    ]
    refused = [f"refused: {found.refused}"] if found.refused else []
    head = ("per row", "first", "second", "first less second")
    sizes = [
        f"{who}: worth {one.support.effective_size:,.0f} rows "
        f"({percent(one.support.effective_share)}) of {one.support.n_rows:,}"
        for who, one in (("first", found.first), ("second", found.second))
    ]
    return "\n\n".join([*refused, aligned(head, lines), "\n".join(sizes)])


def measures_of(found: LogEvaluation) -> tuple[str, ...]:
    """Measures that are shown; a loss only if it is not the error."""
    loss = ("loss",) if found.has_loss else ()
    return ("error", *loss, "cost", "total")


def with_interval(one: Estimate) -> str:
    """A mean with its interval, or a dash."""
    if one.value != one.value:
        return "–"
    if one.low != one.low:
        return f"{one.value:.4g}"
    return f"{one.value:.4g} ({one.low:.3g} to {one.high:.3g})"


def support_lines(support: Support) -> list[tuple[str, str]]:
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


def support_text(support: Support) -> str:
    """What a judgement rests on."""
    return aligned(("what this rests on", ""), support_lines(support))


def _head(support: Support) -> str:
    return f"judged from a log of {support.n_rows:,} rows; 95 % intervals in brackets"


def _summary(found: LogEvaluation) -> str:
    lines = [
        [
            name,
            with_interval(getattr(found, name)),
            with_interval(getattr(found.logger, name)),
            with_interval(getattr(found.difference, name)),
        ]
        for name in measures_of(found)
    ]
    loss = "loss" if found.has_loss else "error"
    unit = f"; costs in {found.unit}" if found.unit else ""
    return (
        f"{aligned(('per row', 'policy', 'logger', 'policy less logger'), lines)}\n"
        f"total is {loss} + {found.cost_weight:g} × cost{unit}"
    )


def _sensors(found: LogEvaluation) -> str:
    lines = [
        [use.sensor, with_interval(use.share), with_interval(use.spend)]
        for use in found.sensors
    ]
    return aligned(("sensor", "share of rows", "spend"), lines)


def _leaves(found: LogEvaluation) -> str:
    lines = [
        [
            use.place,
            f"{use.rows:,}",
            with_interval(use.share),
            with_interval(use.error),
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
        ends = [getattr(band, name) for name in measures_of(found)]
        said = [f"{low:.3g} to {high:.3g}" for low, high in ends]
        lines.append([f"× {band.odds:g}", *said])
    return aligned(("hidden reasons to stop, odds", *measures_of(found)), lines)
