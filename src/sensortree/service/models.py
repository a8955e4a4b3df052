"""The models that are served, by name and version, and how they do in use.

Every session counts once, when it is first decided. What it bought and spent is compared
with the training flow: the shares of training rows that ended in each leaf. Sessions that
began with something known, a limit or their own prices spend differently on purpose: they
are counted, but not compared.
"""

from __future__ import annotations

import json
import math
import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from sensortree.exceptions import ModelFileError, ParameterError
from sensortree.persistence import load
from sensortree.persistence.saved import SavedModel
from sensortree.policy.policy import Policy
from sensortree.policy.steps import Decision
from sensortree.service.drift_test import (
    Bets,
    Expected,
    after,
    expected_mean,
    expected_rate,
)

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
SHORT = 12  # digits of a version that are shown
# False alarms: at most this share of models that are in use as in training ever has one.
RISK = 0.05
OF_TRAINING = 0.6  # the part of it that is spent on what training does not know exactly
SPEND = "spend"


@dataclass(frozen=True, eq=False)
class Model:
    """One version of a model."""

    name: str  # in addresses
    saved: SavedModel

    @cached_property
    def version(self) -> str:
        """Digest of all that its answers depend on."""
        return self.saved.policy_.digest

    @property
    def policy(self) -> Policy:
        """What answers."""
        return self.saved.policy_

    def prepare(self) -> None:
        """Compute in advance what the first request would wait for."""
        _ = self.reference, self.policy.places, self.policy.around

    @cached_property
    def reference(self) -> Reference:
        """What training leads us to expect of its use."""
        return reference_of(self.policy)

    def as_written(self, known: Mapping[str, Any]) -> dict[str, Any]:
        """Values by sensor as sessions take them, from values as people write them."""
        return {s: self.saved.as_written(s, values) for s, values in known.items()}

    def card(self) -> dict[str, Any]:
        """What the model is about, as plain values for JSON."""
        policy, about = self.policy, self.policy.about
        sensors, held_out = policy.sensors, about.held_out
        return {
            "name": self.name,
            "version": self.version,
            "target": about.target,
            "unit": about.unit,
            "fitted": about.fitted,
            "rows": about.rows,
            "classes": [str(label) for label in policy.classes.tolist()],
            "held_out": None if held_out is None else vars(held_out),
            "max_cost": policy.max_cost,
            "sensors": [
                {
                    "name": name,
                    "columns": list(policy.columns_of[name]),
                    "cost": float(cost),
                    "price_differs": position in sensors.varying,
                }
                for position, (name, cost) in enumerate(
                    zip(sensors.names, sensors.costs, strict=True)
                )
            ],
        }


class Models:
    """All models; of those with one name the last is what new sessions get."""

    def __init__(self, models: Iterable[Model]):
        self.versions = tuple(models)
        if not self.versions:
            raise ParameterError("there is no model to serve; name a model file.")
        self.by_version = {model.version: model for model in self.versions}

    @property
    def current(self) -> tuple[Model, ...]:
        """The last of each name, in the order of the names."""
        last = {model.name: model for model in self.versions}
        return tuple(last[name] for name in sorted(last))

    def find(self, wanted: str) -> Model | None:
        """A model by its name, or by name@version, of which eight digits are enough."""
        name, _, version = wanted.partition("@")
        exact = not version or len(version) >= 8
        for model in reversed(self.versions):
            if model.name == name and exact and model.version.startswith(version):
                return model
        return None


def open_models(given: Iterable[str]) -> Models:
    """Load models that are given as FILE or NAME=FILE."""
    models = []
    for text in given:
        name, named, path = text.rpartition("=")
        name = name if named else Path(path).stem
        if not NAME.fullmatch(name):
            raise ParameterError(
                f"{name!r} cannot be a name in an address; write {text!r} as NAME=FILE, "
                f"with letters, digits, '-', '_' and '.' in the name."
            )
        try:
            models.append(Model(name, load(path)))
        except ModelFileError as error:
            raise ModelFileError(f"{path}: {error}") from error
        if models[-1].policy.loss.numbers:
            raise ParameterError(
                f"{path} answers with numbers, and the service serves models of classes; "
                f"ask it with sensortree.load({path!r}).policy_.session() in Python."
            )
    return Models(models)


# what training leads one to expect --------------------------------------------------------


@dataclass(frozen=True)
class Reference:
    """What training leads us to expect of sessions."""

    scale: float  # the most that a leaf costs; spend is counted as a share of it
    # Of the spend, and of the rate of each sensor that some leaves know and others do not.
    # Empty where training says nothing: a `max_cost` that leaves exceed.
    expected: Mapping[str, Expected]

    @property
    def enough(self) -> float:
        """Log of what a bet must win to raise the alarm: bets share the risk equally."""
        bets = 2 * max(len(self.expected), 1)
        return math.log(bets / (RISK * (1 - OF_TRAINING)))


def reference_of(policy: Policy) -> Reference:
    """What the training flow of a policy leads us to expect."""
    leaves = policy.places[: policy.tree.n_leaves]
    costs = np.array([policy.price(place.path, frozenset()) for place in leaves])
    scale = float(costs.max())
    counts = policy.flow.leaf_rows
    rows = float(policy.about.rows or counts.sum())
    capped = policy.max_cost is not None and policy.max_cost < scale
    if capped or not counts.sum() > 0 or rows < 2:
        return Reference(scale, {})
    shares = counts / counts.sum()
    known = np.array([policy.sensors.mask(place.sensors) for place in leaves])
    branching = [j for j in range(len(policy.sensors)) if len({*known[:, j]}) == 2]
    names = [rate_of(policy.sensors.names[j]) for j in branching]
    spends = scale > 0 and len({*costs}) > 1 and not policy.sensors.varying.size
    risk = RISK * OF_TRAINING / max(len(names) + spends, 1)
    found = {
        name: expected_rate(float(shares @ known[:, j]), rows, risk)
        for name, j in zip(names, branching, strict=True)
    }
    if spends:
        found[SPEND] = expected_mean(costs / scale, shares, rows, risk)
    return Reference(scale, found)


def rate_of(sensor: str) -> str:
    """Name of the quantity that is a sensor's rate."""
    return f"rate of {sensor}"


# what was seen ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Watched:
    """What was seen of a model in use: counts of sessions, and how bets stand."""

    decided: int = 0
    compared: int = 0  # those of them that are compared with training
    spent: float = 0.0  # by all of them
    # By sensor: who bought it, could not have it, or told values that training never saw.
    bought: Mapping[str, int] = field(default_factory=dict)
    unavailable: Mapping[str, int] = field(default_factory=dict)
    unseen: Mapping[str, int] = field(default_factory=dict)
    answers: Mapping[str, int] = field(default_factory=dict)  # by class
    bets: Mapping[str, Bets] = field(default_factory=dict)  # by quantity

    def to_dict(self) -> dict[str, Any]:
        """Give what was seen as plain values for JSON."""
        bets = {name: vars(each) for name, each in self.bets.items()}
        return {**vars(self), "bets": bets}


def read_watched(text: str) -> Watched:
    """What was seen, as it was stored."""
    stored = json.loads(text)
    stored["bets"] = {name: Bets(**bets) for name, bets in stored["bets"].items()}
    return Watched(**stored)


def with_decision(
    seen: Watched,
    reference: Reference,
    decision: Decision,
    unseen: Iterable[str],
    comparable: bool,
) -> Watched:
    """What was seen, with one more session that was decided."""
    bets = dict(seen.bets)
    if comparable:
        values = {rate_of(name): 1.0 for name in decision.acquired}
        values[SPEND] = min(decision.spent / max(reference.scale, 1e-300), 1.0)
        for name, expected in reference.expected.items():
            before = bets.get(name, Bets())
            bets[name] = after(
                before, values.get(name, 0.0), expected, reference.enough
            )
    return Watched(
        seen.decided + 1,
        seen.compared + comparable,
        seen.spent + decision.spent,
        _counted(seen.bought, decision.acquired),
        _counted(seen.unavailable, decision.unavailable),
        _counted(seen.unseen, unseen),
        _counted(seen.answers, [str(decision.label)]),
        bets,
    )


def _counted(counts: Mapping[str, int], names: Iterable[str]) -> dict[str, int]:
    return dict(Counter(counts) + Counter(set(names)))


def read_watch(connection: sqlite3.Connection, version: str) -> Watched:
    """What was seen of a version of a model so far."""
    found = connection.execute(
        "SELECT state FROM watches WHERE model = ?", (version,)
    ).fetchone()
    return Watched() if found is None else read_watched(found[0])


def write_watch(connection: sqlite3.Connection, version: str, seen: Watched) -> None:
    """Store what was seen, within the transaction that is open."""
    connection.execute(
        "INSERT INTO watches VALUES (?, ?) "
        "ON CONFLICT (model) DO UPDATE SET state = excluded.state",
        (version, json.dumps(seen.to_dict())),
    )


def summary(reference: Reference, seen: Watched) -> dict[str, Any]:
    """What was seen, compared with training, as plain values."""
    quantities = []
    for name, expected in reference.expected.items():
        bets = seen.bets.get(name, Bets())
        unit = reference.scale if name == SPEND else 1.0
        won = max(bets.above, bets.below)
        quantities.append(
            {
                "quantity": name,
                "training": expected.mean * unit,
                "low": expected.low * unit,
                "high": expected.high * unit,
                "observed": bets.total / bets.rows * unit if bets.rows else None,
                "direction": "above" if bets.above >= bets.below else "below",
                "evidence": won / reference.enough,  # an alarm at 1
                "alarm": bets.alarm,
            }
        )
    counts = {key: value for key, value in seen.to_dict().items() if key != "bets"}
    return {**counts, "quantities": quantities}
