"""Image segmentation: share of the budget at an error, as in the paper's Table 2.

    python experiments/segmentation.py        ten minutes on one core

Seven sensors of cost 1, of which the location is known at the root, degree-2 leaves, trees
of 8 leaves at most. The paper does not say how it split the 2,310 rows; its target of 9 %
is 95 % of the way from one sensor to all of them, which needs fewer than 5 % errors with
all sensors. The official split (210 rows for training) does not allow that, so two random
splits with 30 % for testing are measured beside it; curves are means over splits. "as
published" and alternating minimisation learn their decisions on the same trees, those of
the paper's Algorithm 1; the default learns its own. "static subset" is flattered, being
chosen on test rows. Lines go to docs/results/segmentation.jsonl, the table to
docs/results/segmentation.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
from datasets import Dataset, load
from lines import FOLDER, append
from sklearn.model_selection import StratifiedShuffleSplit

from sensortree import (
    AlternatingTreeClassifier,
    QuadraticLogisticRegression,
    SensorTreeClassifier,
    TradeoffCurve,
)

RESULTS = FOLDER / "segmentation.jsonl"
N_LEAVES = 8
# Error that one unit of cost is worth, from little to much.
WEIGHTS = (0.01, 0.04, 0.15, 0.2, 0.25, 0.3, 0.36, 0.43, 0.5)
# Shares printed in the paper's Table 2, and the share to reach.
PRINTED_ERROR, PRINTED = 0.09, {"LP": 26, "AM": 21}
TARGET = 13


def splits_of(data: Dataset, kind: str) -> list[tuple[Any, Any]]:
    """The official split, or two random ones."""
    if kind == "official":
        return list(data.splits())
    splitter = StratifiedShuffleSplit(2, test_size=0.3, random_state=0)
    return list(splitter.split(data.X, data.y))


def methods() -> dict[str, Any]:
    """Name of each method, and how to make it from the common parameters."""
    greedy = {"structure": "greedy"}
    return {
        "default": SensorTreeClassifier,
        "as published": lambda **p: SensorTreeClassifier.as_published(
            **{**greedy, "n_exact": 3, **p}
        ),
        "AM x 5, as published": lambda **p: AlternatingTreeClassifier(**greedy, **p),
    }


def tree_lines(data: Dataset, make: Any, kind: str) -> Iterator[dict[str, Any]]:
    """Fit along the cost weights, and test; one line per cost weight, mean over splits."""
    model = make(
        sensors=data.sensors,
        costs=data.costs,
        n_leaves=N_LEAVES,
        root_sensors=[data.first_sensor],
    )
    costs, errors = np.zeros(len(WEIGHTS)), np.zeros(len(WEIGHTS))
    splits = splits_of(data, kind)
    for train, test in splits:
        path = model.fit_path(data.X[train], data.y[train], WEIGHTS)
        for k, fitted in enumerate(path):
            costs[k] += fitted.acquisition_cost(data.X[test]).mean() / len(splits)
            wrong = fitted.predict(data.X[test]) != data.y[test]
            errors[k] += wrong.mean() / len(splits)
    for weight, cost, error in zip(WEIGHTS, costs, errors, strict=True):
        yield {"cost_weight": weight, "cost": float(cost), "error": float(error)}


def static_lines(data: Dataset, kind: str) -> Iterator[dict[str, Any]]:
    """Every subset with the first sensor, bought for everybody; mean over splits."""
    others = [s for s in data.sensors if s != data.first_sensor]
    splits = splits_of(data, kind)
    for size in (0, 1, 2, len(others)):  # more never has the lower share at 9 %
        for more in combinations(others, size):
            columns = data.columns(frozenset({data.first_sensor, *more}))
            errors = []
            for train, test in splits:
                leaf = QuadraticLogisticRegression()
                leaf.fit(data.X[np.ix_(train, columns)], data.y[train])
                said = leaf.predict(data.X[np.ix_(test, columns)])
                errors.append(np.mean(said != data.y[test]))
            yield {"cost": 1.0 + size, "error": float(np.mean(errors))}


def table(found: list[dict[str, Any]]) -> str:
    """Budget shares at the printed error and at the 95 % rule, as Markdown."""
    rows = [
        "| split | method | share at 9.0 % error | share at the 95 % rule |",
        "|---|---|---|---|",
    ]
    for kind in dict.fromkeys(line["split"] for line in found):
        lines = [line for line in found if line["split"] == kind]
        static = [line for line in lines if line["method"] == "static subset"]
        first = next(line["error"] for line in static if line["cost"] == 1)
        everything = next(line["error"] for line in static if line["cost"] == 7)
        rule = everything + 0.05 * (first - everything)
        for method in dict.fromkeys(line["method"] for line in lines):
            curve = TradeoffCurve.from_points(
                (i["cost"], i["error"]) for i in lines if i["method"] == method
            )
            shares = [
                curve.budget_share(target, 1.0, 7.0) for target in (PRINTED_ERROR, rule)
            ]
            cells = ["never" if np.isnan(s) else f"{100 * s:.1f} %" for s in shares]
            rows.append(f"| {kind} | {method} | " + " | ".join(cells) + " |")
        rows.append(
            f"| {kind} | *errors: location {first:.3f}, all sensors {everything:.3f}* "
            f"| | at {100 * rule:.1f} % |"
        )
    printed = ", ".join(f"{name} {share} %" for name, share in PRINTED.items())
    return "\n".join(rows) + (
        f"\n\nPrinted in the paper at {100 * PRINTED_ERROR:.0f} % error: {printed}; to "
        f"reach: {TARGET} %.\n"
    )


def run() -> list[dict[str, Any]]:
    """Lines of every method on every kind of split."""
    data, found = load("segment"), []
    for kind in ("two random", "official"):
        found += [
            {"split": kind, "method": "static subset", **line}
            for line in static_lines(data, kind)
        ]
        for name, make in methods().items():
            lines = tree_lines(data, make, kind)
            found += [{"split": kind, "method": name, **line} for line in lines]
            print(f"{kind}, {name}: done", flush=True)
    return found


if __name__ == "__main__":
    results = run()
    RESULTS.unlink(missing_ok=True)
    append(RESULTS, results)
    RESULTS.with_suffix(".md").write_text(table(results), encoding="utf-8")
    print(table(results))
