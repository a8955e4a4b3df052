"""Why a decision went the way it did: what each feature adds to its score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sensortree.policy.decisions import Part, Posterior, Raw, Squares, Transformed
from sensortree.sensors.reader import SensorReader
from sensortree.types import Array

if TYPE_CHECKING:
    from sensortree.policy.policy import Policy

SHOWN = 3  # contributions in the text


@dataclass(frozen=True)
class Contribution:
    """What one decision feature adds to a score.

    `value` is None where the reading is missing; the feature then counts as its mean.
    """

    name: str
    value: float | None
    standardised: float
    contribution: float


class Reason:
    """Why a step was taken: the last decision before it. Worked out when it is asked for.

    Attributes
    ----------
    node : int
    score : float
        The value of the decision function; above 0 is the positive side.
    """

    def __init__(self, policy: Policy, node: int, score: float, columns: Array):
        self._policy, self._columns = policy, columns
        self.node, self.score = node, score

    @property
    def contributions(self) -> tuple[Contribution, ...]:
        """What each feature adds to the score, largest first, without the intercept."""
        return contributions_to(self._policy, self.node, self._columns)

    @property
    def share(self) -> float | None:
        """Share of the training rows at this node that went the same way."""
        return shares_of(self._policy, self.node)[int(self.score > 0)]

    def to_dict(self) -> dict[str, Any]:
        """Give the reason as plain values for JSON."""
        return {
            "node": self.node,
            "score": self.score,
            "share": self.share,
            "contributions": [vars(each).copy() for each in self.contributions],
        }

    def __repr__(self) -> str:
        return f"Reason(node={self.node}, score={self.score:.6g})"

    def __str__(self) -> str:
        shown = ", ".join(
            f"{c.name} {c.contribution:+.3g}" for c in self.contributions[:SHOWN]
        )
        share = (
            "" if self.share is None else f"; {100 * self.share:.1f} % went this way"
        )
        return f"node {self.node}: g = {self.score:+.3g} ({shown}){share}"


def shares_of(policy: Policy, node: int) -> tuple[float, float] | tuple[None, None]:
    """Shares of the training rows at a node that went to its negative, positive side."""
    flow, tree = policy.flow, policy.tree
    rows = [
        float(flow.leaf_rows[tree.path_signs[:, node] == side].sum())
        for side in (-1, 1)
    ]
    came = sum(rows)
    return (rows[0] / came, rows[1] / came) if came else (None, None)


def contributions_to(
    policy: Policy, node: int, columns: Array
) -> tuple[Contribution, ...]:
    """What each feature adds to a node's score, largest first.

    Parameters
    ----------
    policy : Policy
    node : int
    columns : ndarray of shape (1, width)
        Columns of the node's decision features as they are.
    """
    features, coef = policy.decisions[node].features, policy.decisions[node].coef
    values = columns[0]
    missing = np.isnan(values)
    standardised = np.where(missing, 0.0, (values - features.center) / features.scale)
    names = feature_names(policy, node, len(values))
    every = [
        Contribution(name, None if gone else float(value), float(z), float(theta * z))
        for name, value, z, gone, theta in zip(
            names, values, standardised, missing, coef, strict=False
        )
    ]
    every += [
        Contribution(
            f"{names[column]} is missing",
            float(missing[column]),
            float(missing[column]),
            float(missing[column] * theta),
        )
        for column, theta in zip(
            np.flatnonzero(features.may_miss), coef[len(names) : -1], strict=True
        )
    ]
    return tuple(sorted(every, key=lambda c: -abs(c.contribution)))


def feature_names(policy: Policy, node: int, width: int) -> list[str]:
    """Names of the decision features of a node, before those of missing values."""
    readings = reading_names(policy.reader, policy.tree.nodes[node].sensors)
    classes = policy.classes.tolist()
    varying = policy.sensors.varying
    names: list[str] = []
    for part in policy.decisions[node].features.parts:
        own = part_names(part, width - len(names) - len(varying), readings, classes)
        names += own
    return names + [f"price of {policy.sensors.names[s]}" for s in varying]


def reading_names(reader: SensorReader, known: frozenset[str]) -> list[str]:
    """Names of a subset's readings: their columns, or places after a transformer."""
    sensors = reader.sensors
    names: list[str] = []
    for name in sensors.in_order(known):
        sensor = sensors.index(name)
        if name in reader.transformers:
            names += [f"{name}[{i}]" for i in range(reader.widths[sensor])]
        else:
            names += [sensors.column_names[c] for c in sensors.columns[sensor]]
    return names


def part_names(
    part: Part, width: int, readings: list[str], classes: list[Any]
) -> list[str]:
    """Names of the columns of one part of the decision features."""
    if isinstance(part, Raw):
        return readings
    if isinstance(part, Posterior):
        lead = ["lead"] if len(classes) > 2 else []
        likely = [f"P({label})" for label in classes[1:]]
        return [*likely, "largest probability", *lead, "entropy"]
    if isinstance(part, Squares):
        names = part_names(part.part, width, readings, classes)
        return [
            f"{names[a]}²" if a == b else f"{names[a]} × {names[b]}"
            for a, b in zip(*np.triu_indices(len(names)), strict=True)
        ]
    if isinstance(part, Transformed) and hasattr(
        part.transformer, "get_feature_names_out"
    ):
        try:
            found = part.transformer.get_feature_names_out(np.array(readings, object))
        except (TypeError, ValueError, AttributeError):
            found = []
        if len(found) == width:
            return [str(name) for name in found]
    return [f"transformed[{i}]" for i in range(width)]
