"""Decision functions (g_j): linear in features of what is known at their node.

What is known at a node is the readings of its sensors, and the posterior that a
classifier on those sensors gives: class probabilities say whether the answer is sure yet.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sensortree.exceptions import DataError
from sensortree.policy.classifiers import row_sums
from sensortree.sensors.reader import LARGEST, SensorReader
from sensortree.sensors.transforms import Transform
from sensortree.types import Array

if TYPE_CHECKING:
    from sensortree.policy.policy import Policy


TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True)
class Raw:
    """The readings themselves, as published."""

    needs_posterior = False

    def __call__(self, readings: Array, posterior: Array | None) -> Array:
        """Readings as they are."""
        return readings


@dataclass(frozen=True)
class Posterior:
    """Class probabilities, the largest, its lead over the next, and the entropy.

    The first class is left out of the probabilities, which sum to 1; with two classes the
    lead is a function of the largest.
    """

    needs_posterior = True

    def __call__(self, readings: Array, posterior: Array | None) -> Array:
        """Columns of some rows, (n_rows, n_classes + 2), or 3 for two classes."""
        assert posterior is not None  # whoever holds this part gives one
        n_classes = posterior.shape[1]
        leading = np.partition(posterior, n_classes - 2, axis=1)
        logs = np.maximum(posterior, TINY)
        np.log(logs, out=logs)
        logs *= posterior
        columns = np.empty((len(posterior), n_classes + (2 if n_classes > 2 else 1)))
        columns[:, : n_classes - 1] = posterior[:, 1:]
        columns[:, n_classes - 1] = leading[:, -1]
        if n_classes > 2:
            np.subtract(leading[:, -1], leading[:, -2], out=columns[:, n_classes])
        np.negative(row_sums(logs), out=columns[:, -1])
        return columns


@dataclass(frozen=True)
class Predicted:
    """The number that would be answered, and its spread."""

    needs_posterior = True

    def __call__(self, readings: Array, posterior: Array | None) -> Array:
        """Columns of some rows, (n_rows, 2)."""
        assert posterior is not None  # whoever holds this part gives one
        return posterior


@dataclass(frozen=True)
class Squares:
    """Squares and products of another part's columns."""

    part: Part

    @property
    def needs_posterior(self) -> bool:
        """Whether the part does."""
        return self.part.needs_posterior

    def __call__(self, readings: Array, posterior: Array | None) -> Array:
        """Columns of some rows, (n_rows, width (width + 1) / 2)."""
        columns = self.part(readings, posterior)
        first, second = np.triu_indices(columns.shape[1])
        return np.asarray(columns[:, first] * columns[:, second])


@dataclass(frozen=True, eq=False)
class Transformed:
    """What a fitted scikit-learn transformer makes of the readings."""

    transformer: Any
    needs_posterior = False

    def __call__(self, readings: Array, posterior: Array | None) -> Array:
        """Columns of some rows, as the transformer gives them."""
        columns = self.transformer.transform(readings)
        columns = columns.toarray() if hasattr(columns, "toarray") else columns
        columns = np.asarray(columns, dtype=float).reshape(len(readings), -1)
        if (np.abs(columns) > LARGEST).any():
            raise DataError(
                f"the transformer given as decision_features makes infinities of readings, "
                f"or numbers beyond {LARGEST:g}; use one that returns smaller numbers."
            )
        return columns


# Some columns of the decision features, before they are standardised.
Part = Raw | Posterior | Predicted | Squares | Transformed

PARTS: dict[str, tuple[Part, ...]] = {
    "posterior+raw": (Posterior(), Raw()),
    "posterior": (Posterior(),),
    "raw": (Raw(),),
    "quadratic": (Posterior(), Squares(Posterior()), Raw()),
}

NUMBER_PARTS: dict[str, tuple[Part, ...]] = {
    "prediction+raw": (Predicted(), Raw()),
    "prediction": (Predicted(),),
    "raw": (Raw(),),
    "quadratic": (Predicted(), Squares(Predicted()), Raw()),
}


@dataclass(frozen=True, eq=False)
class DecisionFeatures:
    """What a decision function is linear in: standardised columns, and an intercept.

    A missing value counts as the mean, and a column that had missing values in training
    also gets a column that says so.
    """

    parts: tuple[Part, ...]
    center: Array  # (width,)
    scale: Array  # (width,)
    may_miss: NDArray[np.bool_]  # (width,)

    def columns(self, readings: Array, posterior: Array | None, prices: Array) -> Array:
        """Columns of some rows as they are, (n_rows, width)."""
        return feature_columns(self.parts, readings, posterior, prices)

    def __call__(
        self, readings: Array, posterior: Array | None, prices: Array
    ) -> Array:
        """Features of some rows, (n_rows, width + number that may miss + 1)."""
        columns = self.columns(readings, posterior, prices)
        missing = np.isnan(columns)
        standardised = np.where(missing, 0.0, (columns - self.center) / self.scale)
        absent = missing[:, self.may_miss]
        return np.hstack([standardised, absent, np.ones((len(standardised), 1))])


@dataclass(frozen=True, eq=False)
class DecisionFunction:
    """g_j: positive takes the positive child, zero and negative the negative one."""

    features: DecisionFeatures
    coef: Array  # coefficients (θ_j) of the features, the intercept last, (D_j,)

    @cached_property
    def needs_posterior(self) -> bool:
        """Whether the posterior of the node's classifier is looked at."""
        return any(part.needs_posterior for part in self.features.parts)

    @cached_property
    def _weights(self) -> tuple[Array, Array, float]:
        """Coefficients of the columns as they are and of their absence, the intercept."""
        width = len(self.features.center)
        own = self.coef[:width] / self.features.scale
        return own, self.coef[width:-1], float(self.coef[-1])

    def __call__(
        self, readings: Array, posterior: Array | None, prices: Array
    ) -> Array:
        """Values of g_j for some rows, (n_rows,)."""
        return self.of(self.features.columns(readings, posterior, prices))

    def of(self, columns: Array) -> Array:
        """Values of g_j for columns of its features as they are, (n_rows,)."""
        own, absence, intercept = self._weights
        terms = columns - self.features.center
        terms *= own
        value = row_sums(terms)
        if not math.isfinite(np.add.reduce(value)):  # rather than look at each number
            missing = np.isnan(columns)
            terms[missing] = 0.0
            value = row_sums(terms)
            if len(absence):
                gone = missing[:, self.features.may_miss] * absence
                value += row_sums(gone)
        value += intercept
        return np.asarray(value)


def feature_columns(
    parts: tuple[Part, ...], readings: Array, posterior: Array | None, prices: Array
) -> Array:
    """Columns of the parts, then the prices of the examples that have their own."""
    columns = [part(readings, posterior) for part in parts]
    if prices.shape[1]:
        columns.append(prices)
    return np.concatenate(columns, axis=1) if len(columns) > 1 else columns[0]


# A column of a sensor, by its place among the sensor's columns.
ColumnOf = tuple[str, int]
PROBABILITY, PREDICTION, PRICE, OTHER = "probability", "prediction", "price", "other"


@dataclass(frozen=True)
class Meaning:
    """What a decision feature is called, and what it is about."""

    name: str
    # The columns that it is made of; "probability" of what is made of the posterior,
    # "price" of a price, "other" where nobody knows.
    about: frozenset[ColumnOf] | str


def feature_meanings(policy: Policy, node: int, width: int) -> list[Meaning]:
    """Meanings of a node's decision features, of which there are `width` before missing."""
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
