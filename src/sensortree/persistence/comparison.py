"""What a fit compared, in a model file."""

from __future__ import annotations

from typing import Any

from sensortree.exceptions import ModelFileError
from sensortree.persistence.fields import Fields, check_text
from sensortree.policy.about import NOTHING, ONE_SET, Comparison, HeldOut
from sensortree.sensors.sensor_set import SensorSet

MAX_ROWS = 10**15


def write_comparison(compared: Comparison, sensors: SensorSet) -> dict[str, Any]:
    """Candidates in the order of trial; the score of the one taken is the model's."""
    return {
        "chosen": compared.chosen,
        "candidates": [
            {
                "name": name,
                "risk": risk,
                "error": compared.error[name],
                "cost": compared.cost[name],
            }
            for name, risk in compared.risk.items()
        ],
        "informative": compared.informative,
        "optimism": compared.optimism,
        "rows": compared.n_rows,
        "removed": [sensors.index(name) for name in compared.removed],
        "not_compared": [
            {"name": name, "why": why} for name, why in compared.not_compared.items()
        ],
    }


def read_comparison(
    found: Fields, sensors: SensorSet, held_out: HeldOut | None
) -> Comparison:
    """What was compared, each candidate named once, and which was taken."""
    chosen = found.text("chosen")
    figures: dict[str, tuple[float, float, float]] = {}
    for entry in found.children("candidates"):
        name = _new_name(entry, figures)
        figures[name] = (
            entry.number("risk"),
            entry.number("error", least=0.0),
            entry.number("cost", least=0.0),
        )
        entry.end()
    if chosen not in (*figures, NOTHING, ONE_SET):
        raise ModelFileError(
            f"{found.place('chosen')} names {chosen!r}, which is not a candidate."
        )
    why_not: dict[str, str] = {}
    for entry in found.children("not_compared"):
        name = _new_name(entry, why_not)
        why_not[name] = check_text(entry.take("why"), entry.place("why"))
        entry.end()
    risk, error, cost = (
        {name: each[k] for name, each in figures.items()} for k in range(3)
    )
    compared = Comparison(
        chosen,
        risk,
        cost,
        error,
        found.number("optimism", least=0.0),
        found.integer("rows", 0, MAX_ROWS),
        tuple(sensors.names[at] for at in found.positions("removed", len(sensors))),
        why_not,
        held_out,
        found.flag("informative"),
    )
    found.end()
    return compared


def _new_name(entry: Fields, seen: Any) -> str:
    name = entry.text("name")
    if name in seen:
        raise ModelFileError(f"{entry.where} is the second of name {name!r}.")
    return name
