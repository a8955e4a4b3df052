"""What decision features are about: which column of which sensor, or the probability."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sensortree.policy.decisions import (
    Part,
    Posterior,
    Predicted,
    Raw,
    Squares,
    Transformed,
)
from sensortree.sensors.reader import SensorReader
from sensortree.sensors.transforms import Transform

if TYPE_CHECKING:
    from sensortree.policy.policy import Policy

# A column of a sensor, by its place among the sensor's columns.
ColumnOf = tuple[str, int]
PROBABILITY, PREDICTION, PRICE, OTHER = "probability", "prediction", "price", "other"


@dataclass(frozen=True)
class Meaning:
    """What a decision feature is called, and what it is about.

    Attributes
    ----------
    name : str
    about : frozenset of (sensor, position), or str
        The columns that it is made of; "probability" of what is made of the posterior,
        "price" of a price, "other" where nobody knows.
    """

    name: str
    about: frozenset[ColumnOf] | str


def feature_meanings(policy: Policy, node: int, width: int) -> list[Meaning]:
    """Meanings of the decision features of a node, before those of missing values.

    Parameters
    ----------
    policy : Policy
    node : int
    width : int
        Number of these features.
    """
    readings = reading_meanings(policy.reader, policy.tree.nodes[node].sensors)
    classes = policy.classes.tolist()
    varying = policy.sensors.varying
    found: list[Meaning] = []
    for part in policy.decisions[node].features.parts:
        left = width - len(found) - len(varying)
        found += part_meanings(part, left, readings, classes)
    prices = [f"price of {policy.sensors.names[s]}" for s in varying]
    return found + [Meaning(name, PRICE) for name in prices]


def reading_meanings(reader: SensorReader, known: frozenset[str]) -> list[Meaning]:
    """Meanings of a subset's readings: columns, or what a transformer makes of them."""
    sensors = reader.sensors
    found: list[Meaning] = []
    for name in sensors.in_order(known):
        sensor = sensors.index(name)
        columns = [sensors.column_names[c] for c in sensors.columns[sensor]]
        transformer, width = reader.transformers.get(name), reader.widths[sensor]
        names: Sequence[str] = columns
        sources: Sequence[int] = range(len(columns))
        if isinstance(transformer, Transform):
            names, sources = transformer.names(columns), transformer.sources
        elif transformer is not None:
            names = foreign_names(transformer, columns, width, name)
            if len(columns) > 1:
                found += [Meaning(own, OTHER) for own in names]
                continue
            sources = [0] * width
        found += [
            Meaning(own, frozenset(((name, source),)))
            for own, source in zip(names, sources, strict=True)
        ]
    return found


def part_meanings(
    part: Part, width: int, readings: list[Meaning], classes: list[Any]
) -> list[Meaning]:
    """Meanings of the columns of one part of the decision features."""
    if isinstance(part, Raw):
        return readings
    if isinstance(part, Posterior):
        lead = ["lead"] if len(classes) > 2 else []
        likely = [f"P({label})" for label in classes[1:]]
        names = [*likely, "largest probability", *lead, "entropy"]
        return [Meaning(name, PROBABILITY) for name in names]
    if isinstance(part, Predicted):
        return [Meaning(name, PREDICTION) for name in ("prediction", "spread")]
    if isinstance(part, Squares):
        inner = part_meanings(part.part, width, readings, classes)
        pairs = zip(*np.triu_indices(len(inner)), strict=True)
        return [_product(inner[a], inner[b], a == b) for a, b in pairs]
    assert isinstance(part, Transformed)
    transformer, names = part.transformer, [meaning.name for meaning in readings]
    if isinstance(transformer, Transform):
        return [
            Meaning(name, readings[source].about)
            for name, source in zip(
                transformer.names(names), transformer.sources, strict=True
            )
        ]
    found = foreign_names(transformer, names, width, "transformed")
    return [Meaning(name, OTHER) for name in found]


def foreign_names(
    transformer: Any, columns: Sequence[str], width: int, otherwise: str
) -> list[str]:
    """Names that a transformer of others gives its columns, or else their places."""
    try:
        found = transformer.get_feature_names_out(np.array(columns, object))
    except (TypeError, ValueError, AttributeError):
        found = []
    if len(found) == width:
        return [str(name) for name in found]
    return [f"{otherwise}[{i}]" for i in range(width)]


def _product(first: Meaning, second: Meaning, square: bool) -> Meaning:
    """Meaning of a square, or of a product of two."""
    if square:
        return Meaning(f"{first.name}²", first.about)
    name = f"{first.name} × {second.name}"
    if isinstance(first.about, str) or isinstance(second.about, str):
        same = first.about == second.about
        return Meaning(name, first.about if same else OTHER)
    return Meaning(name, first.about | second.about)
