"""Outages: what the lack of one sensor costs, without detours and with them.

Sensors and prices as the files group them; the official split, or five at random. The
cost weight makes buying everything worth an error of a fifth. Each test row is asked for
step by step, with all sensors there, and with one that never is: as a policy without
detours answers, and as the same policy with those that `outages="auto"` learns. Beside it
stand what could be had at all: a policy that was fitted to the other sensors alone, and
one that buys all of them for everybody. A line per data set, split and sensor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from experiments.data import Dataset, few, load
from experiments.results import Line
from experiments.study import Cell, Study
from experiments.tables import markdown, mean, of
from sensortree import Leaf, SensorTree, SensorTreeClassifier

WORTH = 0.2  # error that buying everything is worth
WAYS = {
    "usual": "all there",
    "before": "no detours",
    "after": "detours",
    "anew": "fitted to the others",
    "others": "all others bought",
}


def data_of(name: str, quick: bool) -> Dataset:
    """Rows, sensors and splits."""
    return few(load(name)) if quick else load(name)


def cells(name: str, quick: bool, lines: list[Line]) -> Iterator[Cell]:
    """Each split; its sensors share a policy."""
    data = data_of(name, quick)
    for split in range(1 if quick else len(data.splits)):
        yield Cell({"data": name, "split": split}, "without", tuple(data.sensors))


def measure(cell: Cell) -> Iterator[Line]:
    """Fit once, and ask the test rows without each sensor."""
    data = data_of(cell.fields["data"], cell.quick)
    X, y, X_test, y_test = data.rows(cell.fields["split"])
    weight = WORTH / data.everything
    model = SensorTreeClassifier(data.sensors, costs=data.costs, cost_weight=weight)
    policy = model.fit(X, y).policy_
    usual = asked(policy, X_test, y_test, None)
    for sensor in cell.values:
        others, columns = only_others(data, sensor)
        anew = SensorTreeClassifier(**others, cost_weight=weight, outages=False)
        single = SensorTree(Leaf(frozenset(others["sensors"])))
        whole = clone(anew).set_params(structure=single)
        found = {
            "usual": usual,
            "before": asked(replace(policy, detours=None), X_test, y_test, sensor),
            "after": asked(policy, X_test, y_test, sensor),
        }
        for way, other in (("anew", anew), ("others", whole)):
            other.fit(X[:, columns], y)
            found[way] = asked(other.policy_, X_test[:, columns], y_test, None)
        yield {
            "without": sensor,
            "cost_weight": weight,
            **{f"{way}_accuracy": figures[0] for way, figures in found.items()},
            **{f"{way}_cost": figures[1] for way, figures in found.items()},
        }


def asked(policy: Any, X: Any, y: Any, lost: str | None) -> tuple[float, float]:
    """Accuracy and mean cost if a sensor cannot be had."""
    columns = dict(zip(policy.sensors.names, policy.sensors.columns, strict=True))

    def oracle_of(row: Any) -> Callable[[str, tuple[str, ...]], Any]:
        return lambda sensor, _: None if sensor == lost else row[list(columns[sensor])]

    decisions = [policy.acquire(oracle_of(row)) for row in X]
    right = [d.label == label for d, label in zip(decisions, y, strict=True)]
    return float(np.mean(right)), float(np.mean([d.spent for d in decisions]))


def only_others(data: Dataset, lost: str) -> tuple[dict[str, Any], list[int]]:
    """Sensors and prices without one sensor, and the columns that are left."""
    sensors = {name: cs for name, cs in data.sensors.items() if name != lost}
    columns = sorted(c for cs in sensors.values() for c in cs)
    places = {c: i for i, c in enumerate(columns)}
    return {
        "sensors": {name: [places[c] for c in cs] for name, cs in sensors.items()},
        "costs": {name: data.costs[name] for name in sensors},
    }, columns


def pages(lines: list[Line]) -> dict[str, str]:
    """Accuracy and cost without each sensor; then what outages lose in the mean."""
    rows = [["data", "without", *WAYS.values()]]
    lost = [["data", "mean loss of", *list(WAYS.values())[1:], "kept"]]
    for name in STUDY.data:
        own = of(lines, data=name)
        if not own:
            continue
        for sensor in dict.fromkeys(line["without"] for line in own):
            same = of(own, without=sensor)
            figures = [
                f"{mean(same, f'{way}_accuracy'):.3f}, {mean(same, f'{way}_cost'):.3g}"
                for way in WAYS
            ]
            rows.append([name, sensor, *figures])
        for what in ("accuracy", "risk"):
            losses = {way: mean_loss(own, way, what) for way in list(WAYS)[1:]}
            ratio = losses["after"] / losses["before"] if losses["before"] else 1.0
            shown = [f"{loss:.4f}" for loss in losses.values()]
            lost.append([name, what, *shown, f"{ratio:.2f}"])
    return {"outages.md": markdown(rows) + "\n" + markdown(lost)}


def mean_loss(lines: list[Line], way: str, what: str) -> float:
    """Accuracy, or risk (error plus weighted cost), that outages lose in the mean."""
    accuracy = mean(lines, "usual_accuracy") - mean(lines, f"{way}_accuracy")
    if what == "accuracy":
        return accuracy
    spent = mean(lines, f"{way}_cost") - mean(lines, "usual_cost")
    return accuracy + float(lines[0]["cost_weight"]) * spent


STUDY = Study(
    file="outages",
    key=("data", "split", "without"),
    data=("heart", "pima", "landsat"),
    cells=cells,
    measure=measure,
    pages=pages,
)
