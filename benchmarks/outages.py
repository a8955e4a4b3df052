"""What the outage of each sensor costs, without detours and with them.

    python -m benchmarks.outages                   heart, pima and landsat
    python -m benchmarks.outages heart             one
    python -m benchmarks.outages --worth 0.1       cheaper sensors, so that more are bought
    python -m benchmarks.outages --bounded         detours as outages="auto" learns them

Sensors and prices as the files group them; the official split, or the mean of five at
random. A cost weight is given by the error that buying everything is worth. Each test row
is asked for step by step, with all sensors there, and with one that never is: as a policy
without detours answers, as the same policy with them, and as one that was fitted to the
other sensors alone, which is about what can be had. What an outage loses is the
accuracy, and the risk (error plus weighted cost), beside those with all sensors there.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from experiments.data import load
from sensortree import SensorTreeClassifier

SETS = ("heart", "pima", "landsat")


def asked(policy: Any, X: Any, y: Any, lost: str | None) -> tuple[float, float]:
    """Accuracy and mean cost if a sensor cannot be had."""
    columns = dict(zip(policy.sensors.names, policy.sensors.columns, strict=True))

    def oracle_of(row: Any) -> Callable[[str, tuple[str, ...]], Any]:
        return lambda sensor, _: None if sensor == lost else row[list(columns[sensor])]

    decisions = [policy.acquire(oracle_of(row)) for row in X]
    right = [d.label == label for d, label in zip(decisions, y, strict=True)]
    return float(np.mean(right)), float(np.mean([d.spent for d in decisions]))


def fitted_without(data: Any, rows: Any, lost: str, weight: float) -> Any:
    """A policy that never heard of a sensor, and the columns that it sees."""
    sensors = {name: cs for name, cs in data.sensors.items() if name != lost}
    columns = sorted(c for cs in sensors.values() for c in cs)
    places = {c: i for i, c in enumerate(columns)}
    model = SensorTreeClassifier(
        {name: [places[c] for c in cs] for name, cs in sensors.items()},
        costs={name: data.costs[name] for name in sensors},
        cost_weight=weight,
        outages=False,
    )
    return model.fit(data.X[rows][:, columns], data.y[rows]).policy_, columns


def lines(name: str, worth: float, outages: bool | str) -> list[str]:
    """A line for each sensor, and of their mean losses."""
    data = load(name)
    weight = worth / data.everything
    found: dict[str, list[list[float]]] = {sensor: [] for sensor in data.sensors}
    for train, test in data.splits:
        model = SensorTreeClassifier(
            data.sensors, costs=data.costs, cost_weight=weight, outages=outages
        )
        policy = model.fit(data.X[train], data.y[train]).policy_
        X, y = data.X[test], data.y[test]
        usual = asked(policy, X, y, None)
        for sensor in data.sensors:
            before = asked(replace(policy, detours=None), X, y, sensor)
            after = asked(policy, X, y, sensor)
            other, columns = fitted_without(data, train, sensor, weight)
            anew = asked(other, X[:, columns], y, None)
            found[sensor].append([*usual, *before, *after, *anew])
    means = {sensor: np.mean(each, axis=0) for sensor, each in found.items()}
    shown = [
        f"| {name} | {sensor} | "
        + " | ".join(f"{a:.3f}, {c:.3g}" for a, c in mean.reshape(-1, 2))
        + " |"
        for sensor, mean in means.items()
    ]
    first, *others = np.mean(list(means.values()), axis=0).reshape(-1, 2)
    accuracy = [float(first[0] - each[0]) for each in others]
    spent = [float(each[1] - first[1]) for each in others]
    risk = [less + weight * cost for less, cost in zip(accuracy, spent, strict=True)]
    for what, lost in (("accuracy", accuracy), ("risk", risk)):
        losses = " | ".join(f"{loss:.4f}" for loss in lost)
        shown.append(f"| {name} | mean loss of {what} | | {losses} |")
    return shown


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="*", choices=[*SETS, []])
    parser.add_argument("--worth", type=float, default=0.2)
    parser.add_argument("--bounded", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    outages = "auto" if arguments.bounded else True
    print("| data | without | accuracy, cost | no detours | detours | fitted without |")
    print("|---|---|---|---|---|---|")
    with threadpool_limits(1):
        for name in arguments.sets or SETS:
            print("\n".join(lines(name, arguments.worth, outages)), flush=True)


if __name__ == "__main__":
    main()
