"""The trade-off curve that a model was picked from, in a model file."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from sensortree.exceptions import ModelFileError
from sensortree.persistence.fields import Fields, number, numbers, scalar
from sensortree.reports.tradeoff import (
    RULES,
    Choice,
    Point,
    TradeoffCurve,
    choice_at,
    standard_error,
)
from sensortree.sensors.scores import METRICS
from sensortree.types import Array

MAX_POINTS, MAX_FOLDS = 10_000, 1_000


def write_curve(curve: TradeoffCurve, chosen: Choice) -> dict[str, Any]:
    """Points, folds and ends of a curve, and which point was picked why."""
    ends = {"nothing": curve.nothing, "everything": curve.everything}
    return {
        "measure": curve.measure,
        "folds": curve.fold_error.shape[1],
        "cost_weight": numbers(curve.cost_weight),
        "error": numbers(curve.error),
        "mean_cost": numbers(curve.mean_cost),
        "fold_error": numbers(curve.fold_error),
        "fold_cost": numbers(curve.fold_cost),
        **{name: None if end is None else numbers(end) for name, end in ends.items()},
        "metrics": {
            name: numbers(values)
            for name, values in curve.metrics.items()
            if np.isfinite(values).all()
        },
        "end_metrics": {
            end: {name: float(v) for name, v in values.items() if np.isfinite(v)}
            for end, values in curve.end_metrics.items()
        },
        "chosen": {
            "index": chosen.index,
            "rule": chosen.rule,
            "target": number(float(chosen.target)),
            "met": bool(chosen.met),
            "note": chosen.note,
            "mean_cost": float(chosen.mean_cost),
            "error": float(chosen.error),
        },
    }


def read_curve(fields: Fields, unit: str) -> tuple[TradeoffCurve, Choice]:
    """A curve, and what was picked from it."""
    measure = fields.text("measure")
    shape = fields.length("cost_weight"), fields.integer("folds", 1, MAX_FOLDS)
    if not 1 <= shape[0] <= MAX_POINTS:
        raise ModelFileError(
            f"{fields.place('cost_weight')} must hold 1 to {MAX_POINTS:,} numbers."
        )
    weight = fields.numbers("cost_weight", shape[:1], least=0.0)
    if (np.diff(weight) > 0).any():
        raise ModelFileError(f"{fields.place('cost_weight')} must not ascend.")
    fold_error = fields.numbers("fold_error", shape)
    fold_cost = fields.numbers("fold_cost", shape, least=0.0)
    curve = TradeoffCurve(
        weight,
        fields.numbers("error", shape[:1]),
        fields.numbers("mean_cost", shape[:1], least=0.0),
        standard_error(fold_error),
        standard_error(fold_cost),
        fold_error,
        fold_cost,
        measure=measure,
        nothing=_end(fields, "nothing"),
        everything=_end(fields, "everything"),
        unit=unit,
        metrics=_metrics(fields, shape[0]),
        end_metrics=_end_metrics(fields),
    )
    picked = fields.child("chosen")
    fields.end()
    return curve, _read_choice(picked, curve)


def _read_choice(picked: Fields, curve: TradeoffCurve) -> Choice:
    index, rule = picked.integer("index", 0, len(curve)), _one_of(picked, "rule", RULES)
    target = scalar(picked.take("target"), picked.place("target"))
    note = picked.take("note")
    if type(target) not in (int, float) or type(note) is not str:
        raise ModelFileError(
            f"{picked.where} must have a number as 'target' and text as 'note'."
        )
    choice = choice_at(curve, index, rule, float(target), picked.flag("met"))
    # files of before have the point of the curve, not what the model is worth itself
    cost, error = choice.mean_cost, choice.error
    cost = picked.number("mean_cost", least=0.0) if picked.has("mean_cost") else cost
    error = picked.number("error") if picked.has("error") else error
    picked.end()
    return replace(choice, note=note, mean_cost=cost, error=error)


def _one_of(fields: Fields, key: str, words: tuple[str, ...]) -> str:
    word = fields.text(key)
    if word not in words:
        raise ModelFileError(f"{fields.place(key)} must be one of {', '.join(words)}.")
    return word


def _metrics(fields: Fields, n_points: int) -> dict[str, Array]:
    """Metrics at each point; none in files of before they were measured."""
    if not fields.has("metrics"):
        fields.optional("metrics")
        return {}
    given = fields.child("metrics")
    found = {
        name: given.numbers(name, (n_points,)) for name in METRICS if given.has(name)
    }
    given.end()
    return found


def _end_metrics(fields: Fields) -> dict[str, dict[str, float]]:
    """Metrics of buying nothing, and of buying everything."""
    if not fields.has("end_metrics"):
        fields.optional("end_metrics")
        return {}
    ends, found = fields.child("end_metrics"), {}
    for end in ("nothing", "everything"):
        if ends.has(end):
            given = ends.child(end)
            found[end] = {m: given.number(m) for m in METRICS if given.has(m)}
            given.end()
    ends.end()
    return found


def _end(fields: Fields, key: str) -> Point | None:
    if not fields.has(key):
        fields.take(key)
        return None
    cost, error = fields.numbers(key, (2,)).tolist()
    return cost, error
