"""Decision functions of a model file; nodes that know the same share their features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sensortree.exceptions import ModelFileError
from sensortree.persistence.fields import Fields, numbers
from sensortree.persistence.transformers import read_transformer, write_transformer
from sensortree.policy.decisions import (
    DecisionFeatures,
    DecisionFunction,
    Part,
    Posterior,
    Predicted,
    Raw,
    Squares,
    Transformed,
)
from sensortree.sensors.transforms import PLAIN

# Squares of squares are not among them: their number has no bound.
PARTS: dict[str, Part] = {
    "raw": Raw(),
    "posterior": Posterior(),
    "raw squares": Squares(Raw()),
    "posterior squares": Squares(Posterior()),
    "prediction": Predicted(),
    "prediction squares": Squares(Predicted()),
}


def write_decisions(
    decisions: Sequence[DecisionFunction], foreign: str | None
) -> dict[str, Any]:
    """Features, each once, and the coefficients of every node."""
    distinct = {id(decision.features): decision.features for decision in decisions}
    order = list(distinct)
    return {
        "features": [_write_features(f, foreign) for f in distinct.values()],
        "nodes": [
            {"features": order.index(id(d.features)), "coef": numbers(d.coef)}
            for d in decisions
        ],
    }


def _write_features(features: DecisionFeatures, foreign: str | None) -> dict[str, Any]:
    return {
        "parts": [_write_part(part, foreign) for part in features.parts],
        "center": numbers(features.center),
        "scale": numbers(features.scale),
        "may_miss": np.flatnonzero(features.may_miss).tolist(),
    }


def _write_part(part: Part, foreign: str | None) -> Any:
    if isinstance(part, Transformed):
        what = "the transformer given as decision_features"
        return write_transformer(part.transformer, what, foreign)
    for name, known in PARTS.items():
        if part == known:
            return name
    raise ModelFileError(f"a model file cannot hold decision features {part!r}.")


def read_decisions(
    fields: Fields,
    widths: Sequence[int],
    n_classes: int,
    n_varying: int,
    trusted: Sequence[str] | None,
) -> tuple[DecisionFunction, ...]:
    """Decision functions of the nodes, which read so many values each."""
    features = list(fields.children("features"))
    built: dict[int, tuple[int, DecisionFeatures]] = {}
    decisions = []
    for node, entry in enumerate(fields.children("nodes", len(widths))):
        at, width = entry.integer("features", 0, len(features)), widths[node]
        if at not in built:
            made = _read_features(features[at], width, n_classes, n_varying, trusted)
            built[at] = width, made
        if built[at][0] != width:
            raise ModelFileError(
                f"{entry.where} reads {width} values, but its features are of "
                f"{built[at][0]}."
            )
        known = built[at][1]
        n_coef = len(known.center) + int(known.may_miss.sum()) + 1
        decisions.append(DecisionFunction(known, entry.numbers("coef", (n_coef,))))
        entry.end()
    if len(built) < len(features):
        raise ModelFileError(f"{fields.where} has features that no node uses.")
    fields.end()
    return tuple(decisions)


def _read_features(
    fields: Fields,
    width: int,
    n_classes: int,
    n_varying: int,
    trusted: Sequence[str] | None,
) -> DecisionFeatures:
    parts, n_columns = [], n_varying
    for i, value in enumerate(fields.items("parts")):
        where = f"{fields.place('parts')}[{i}]"
        part, made = _read_part(value, where, width, n_classes, trusted)
        parts.append(part)
        if made is None:  # only the transformer of others knows
            made = max(fields.length("center") - n_columns, 0)
        n_columns += made
    features = DecisionFeatures(
        tuple(parts),
        fields.numbers("center", (n_columns,)),
        fields.scales("scale", (n_columns,)),
        np.zeros(n_columns, dtype=bool),
    )
    features.may_miss[list(fields.positions("may_miss", n_columns))] = True
    fields.end()
    return features


def _read_part(
    value: Any, where: str, width: int, n_classes: int, trusted: Sequence[str] | None
) -> tuple[Part, int | None]:
    """A part, and how many columns it gives; None if that is not known."""
    if isinstance(value, dict):
        made = read_transformer(Fields(value, where), width, trusted)
        return Transformed(made), made.width if isinstance(made, PLAIN) else None
    if not isinstance(value, str) or value not in PARTS:
        raise ModelFileError(f"{where} must be a transformer or one of {list(PARTS)}.")
    n_posterior = n_classes + (2 if n_classes > 2 else 1)
    of_leaf = {"posterior": n_posterior, "prediction": 2}
    kind = value.partition(" ")[0]
    if kind == ("posterior" if not n_classes else "prediction"):
        raise ModelFileError(f"{where} is {value!r}, which its leaves do not say.")
    columns = of_leaf.get(kind, width)
    if value.endswith("squares"):
        columns = columns * (columns + 1) // 2
    return PARTS[value], columns
