"""Judgements from a log as a notebook shows them."""

from __future__ import annotations

from typing import Any

from sensortree.display.notebook import table_in_notebook
from sensortree.display.svg import escaped
from sensortree.display.words import percent


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
