"""What becomes of a model in use, beside its training.

Every session counts once, when it is first decided. What it bought and spent is compared
with the training flow: the shares of training rows that ended in each leaf. Sessions that
began with something known, a limit or prices of their own spend otherwise by intent: they
are counted, and compared with nothing.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sensortree.policy.policy import Policy
from sensortree.policy.steps import Decision
from sensortree.service.betting import (
    Bets,
    Expected,
    after,
    expected_mean,
    expected_rate,
)

# False alarms: at most this share of models that are in use as in training ever has one.
RISK = 0.05
OF_TRAINING = 0.6  # the part of it that is spent on what training does not know exactly
SPEND = "spend"


@dataclass(frozen=True)
class Reference:
    """What training leads one to expect of sessions.

    Attributes
    ----------
    scale : float
        The most that a leaf costs; spend is counted as a share of it.
    expected : mapping of quantity to Expected
        Of the spend, and of the rate of each sensor that some leaves know and others do
        not. Empty where training says nothing: a ``max_cost`` that leaves exceed.
    """

    scale: float
    expected: Mapping[str, Expected]

    @property
    def enough(self) -> float:
        """Log of what a bet must win: each of all bets has its part of the risk."""
        bets = 2 * max(len(self.expected), 1)
        return math.log(bets / (RISK * (1 - OF_TRAINING)))


def reference_of(policy: Policy) -> Reference:
    """What the training flow of a policy leads one to expect."""
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


@dataclass(frozen=True)
class Watched:
    """What was seen of a model in use.

    Attributes
    ----------
    decided : int
        Sessions that were decided.
    compared : int
        Those of them that are compared with training.
    spent : float
        What all of them spent.
    bought, unavailable, unseen : mapping of sensor to int
        Sessions that bought a sensor, could not have it, or were told values of it that
        training never saw.
    answers : mapping of class to int
    bets : mapping of quantity to Bets
    """

    decided: int = 0
    compared: int = 0
    spent: float = 0.0
    bought: Mapping[str, int] = field(default_factory=dict)
    unavailable: Mapping[str, int] = field(default_factory=dict)
    unseen: Mapping[str, int] = field(default_factory=dict)
    answers: Mapping[str, int] = field(default_factory=dict)
    bets: Mapping[str, Bets] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Give what was seen as plain values for JSON."""
        bets = {name: vars(each) for name, each in self.bets.items()}
        return {**vars(self), "bets": bets}


def read_watched(text: str) -> Watched:
    """What was seen, from how it was stored."""
    said = json.loads(text)
    said["bets"] = {name: Bets(**bets) for name, bets in said["bets"].items()}
    return Watched(**said)


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


# stored -----------------------------------------------------------------------------------


def read(connection: sqlite3.Connection, version: str) -> Watched:
    """What was seen of a version of a model so far."""
    found = connection.execute(
        "SELECT state FROM watches WHERE model = ?", (version,)
    ).fetchone()
    return Watched() if found is None else read_watched(found[0])


def write(connection: sqlite3.Connection, version: str, seen: Watched) -> None:
    """Store what was seen, within the transaction that is open."""
    connection.execute(
        "INSERT INTO watches VALUES (?, ?) "
        "ON CONFLICT (model) DO UPDATE SET state = excluded.state",
        (version, json.dumps(seen.to_dict())),
    )


# shown ------------------------------------------------------------------------------------


def summary(reference: Reference, seen: Watched) -> dict[str, Any]:
    """What was seen beside what training leads one to expect, as plain values."""
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
