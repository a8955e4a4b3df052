"""How often the watch alarms for nothing, and how soon it sees that more is spent.

    python -m benchmarks.watch                 500 runs of 10,000 sessions
    python -m benchmarks.watch --runs 50       a look

Every run learns a model anew, from rows of its own. It is then in use: undrifted, on 10,000
other rows of the same population; and drifted, where examples that spend much come more
often, such that the mean spend is 20 % higher. A false alarm is one of any quantity, at any
time; what is found is an alarm of the spend itself. The bets are those of the service, in
one go (a test holds the two together). From few rows training does not know its own mean
spend well, and what it cannot know is no alarm: so models are learned from 10,000 rows,
from 2,000 and from 500.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from typing import Any

import numpy as np

from sensortree import Policy, SensorTreeClassifier
from sensortree.sensors.table import Table
from sensortree.service.drift_test import Expected, believed, stake
from sensortree.service.models import SPEND, Reference, rate_of, reference_of

SESSIONS, MORE = 10_000, 1.2
SENSORS = {"a": [0], "b": [1], "c": [2], "d": [3]}
COSTS = {"a": 1.0, "b": 2.0, "c": 4.0, "d": 8.0}


def main() -> int:
    """Parse, simulate, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 2_000, 500])
    arguments = parser.parse_args()
    for rows in arguments.rows:
        print(f"models learned from {rows:,} rows, {arguments.runs} runs")
        for line in simulate(arguments.runs, rows):
            print(f"  {line}")
    return 0


def population(n: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Rows of four sensors, each of which settles a part of what others leave open."""
    X = rng.normal(size=(n, 4))
    score = X[:, 0]
    for column in (1, 2, 3):
        score = np.where(np.abs(score) < 0.5, X[:, column], score)
    return X, score > 0


def learn(rows: int, rng: np.random.Generator) -> Policy:
    """A model of rows of its own."""
    X, y = population(rows, rng)
    model = SensorTreeClassifier(
        SENSORS, costs=COSTS, cost_weight=0.005, structure="chain", classifier="linear"
    ).fit(X, y)
    policy: Policy = model.policy_
    return replace(policy, about=replace(policy.about, rows=rows))


def simulate(runs: int, rows: int) -> list[str]:
    """Alarms of runs as in training, and of runs that spend more."""
    false, found, watched = 0, [], []
    for run in range(runs):
        rng = np.random.default_rng([rows, run])
        policy = learn(rows, rng)
        reference = reference_of(policy)
        X, _ = population(SESSIONS, rng)
        place = policy.apply(Table(X))
        watched.append(len(reference.expected))
        false += first_alarm(policy, reference, place) is not None
        drifted = spending_more(policy, place, rng)
        first = first_alarm(policy, reference, drifted, only=SPEND)
        found.append(np.inf if first is None else first)
    return [
        f"quantities watched, mean        {np.mean(watched):8.1f}",
        f"false alarms                    {false:5d} of {runs} ({false / runs:.1%})",
        f"spend 20 % up: found within     {np.median(found):8.0f} sessions (median)",
        f"  nine in ten within            {np.quantile(found, 0.9, method='higher'):8.0f}",
    ]


def costs_of(policy: Policy) -> np.ndarray[Any, Any]:
    """What each leaf costs."""
    leaves = policy.places[: policy.tree.n_leaves]
    return np.array([policy.price(leaf.path, frozenset()) for leaf in leaves])


def spending_more(
    policy: Policy, place: np.ndarray[Any, Any], rng: np.random.Generator
) -> np.ndarray[Any, Any]:
    """The same examples, of which dear ones come more often: spend goes up by a fifth."""
    costs = costs_of(policy)
    spent = costs[place]
    low, high = 0.0, 50.0 / costs.max()
    for _ in range(60):  # the tilt at which the mean is what it should be
        tilt = (low + high) / 2
        weight = np.exp(tilt * spent)
        mean = (weight @ spent) / weight.sum()
        low, high = (tilt, high) if mean < MORE * spent.mean() else (low, tilt)
    chosen = rng.choice(len(place), size=len(place), p=weight / weight.sum())
    return np.asarray(place[chosen])


def winnings(values: np.ndarray[Any, Any], expected: Expected) -> np.ndarray[Any, Any]:
    """Logs of what is won on both sides after each value, (n_values, 2).

    The same as `after` for one value after the other, for whole series.
    """
    before = np.arange(len(values))
    total = np.concatenate([[0.0], np.cumsum(values)[:-1]])
    squares = np.concatenate([[0.0], np.cumsum(values**2)[:-1]])
    mean, variance = believed(before, total, squares, expected)
    up = stake(mean, variance, expected.high)
    down = stake(1 - mean, variance, 1 - expected.low)
    won = np.stack(
        [
            np.log1p(up * (values - expected.high)),
            np.log1p(down * (expected.low - values)),
        ],
        axis=1,
    )
    return np.asarray(np.cumsum(won, axis=0))


def first_alarm(
    policy: Policy,
    reference: Reference,
    place: np.ndarray[Any, Any],
    only: str | None = None,
) -> int | None:
    """Number of sessions at the first alarm; None if there is none."""
    leaves = policy.places[: policy.tree.n_leaves]
    values = {SPEND: costs_of(policy)[place] / reference.scale}
    for name in policy.sensors.names:
        known = np.array([name in leaf.sensors for leaf in leaves], dtype=float)
        values[rate_of(name)] = known[place]
    firsts = []
    for name, expected in reference.expected.items():
        if only in (None, name):
            won = winnings(values[name], expected).max(axis=1) >= reference.enough
            if won.any():
                firsts.append(int(won.argmax()) + 1)
    return min(firsts, default=None)


if __name__ == "__main__":
    sys.exit(main())
