"""Image segmentation: share of the budget at an error, as in the paper's Table 2.

Seven sensors of cost 1, of which the location is known at the root, degree-2 leaves, trees
of 8 leaves at most. The paper does not say how it split the 2,310 rows; its target of 9 %
is 95 % of the way from one sensor to all of them, which needs fewer than 5 % errors with
all sensors. The official split (210 rows for training) does not allow that, so two random
splits with 30 % for testing are measured beside it; lines are means over splits. "as
published" and alternating minimisation learn their decisions on the same trees, those of
the paper's Algorithm 1; the default learns its own. "static subset" is flattered, being
chosen on test rows. Ten minutes on one core.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

import numpy as np

from experiments.data import Dataset, few, load, split_at_random
from experiments.methods import few_values, fitted_path, tested
from experiments.results import Line
from experiments.study import Cell, Study
from experiments.tables import curve_of, markdown, of, percent, rule
from sensortree import (
    AlternatingTreeClassifier,
    QuadraticLogisticRegression,
    SensorTreeClassifier,
)

N_LEAVES = 8
# Error that one unit of cost is worth, from little to much.
WEIGHTS = (0.01, 0.04, 0.15, 0.2, 0.25, 0.3, 0.36, 0.43, 0.5)
# Shares printed in the paper's Table 2, and the share to reach.
PRINTED_ERROR, PRINTED = 0.09, {"LP": 26, "AM": 21}
TARGET = 13
KINDS = ("two random", "official")
STATIC = "static subset"
GREEDY = {"structure": "greedy"}
METHODS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "default": (SensorTreeClassifier, {}),
    "as published": (SensorTreeClassifier.as_published, {**GREEDY, "n_exact": 3}),
    "AM x 5, as published": (AlternatingTreeClassifier, GREEDY),
}


def cells(name: str, quick: bool, lines: list[Line]) -> Iterator[Cell]:
    """Every method on every kind of split."""
    for kind in KINDS:
        yield Cell({"split": kind, "method": STATIC}, "cost_weight")
        for method in METHODS:
            weights = few_values(WEIGHTS) if quick else WEIGHTS
            yield Cell({"split": kind, "method": method}, "cost_weight", weights)


def measure(cell: Cell) -> Iterator[Line]:
    """Lines of a method, means over splits."""
    data = load("segment")
    if cell.fields["split"] != "official":
        data = split_at_random(data, 2)
    data = few(data) if cell.quick else data
    if cell.fields["method"] == STATIC:
        return static_lines(data)
    return tree_lines(data, cell)


def tree_lines(data: Dataset, cell: Cell) -> Iterator[Line]:
    """Fit along the cost weights, and test."""
    make, settings = METHODS[cell.fields["method"]]
    model = make(
        sensors=data.sensors,
        costs=data.costs,
        n_leaves=N_LEAVES,
        root_sensors=[data.first_sensor],
        **settings,
    )
    found = []
    for split in range(len(data.splits)):
        X, y, X_test, y_test = data.rows(split)
        path, _ = fitted_path(model, X, y, cell.values)
        found.append([tested(fitted, X_test, y_test) for fitted in path])
    for weight, same in zip(cell.values, zip(*found, strict=True), strict=True):
        means = {key: float(np.mean([i[key] for i in same])) for key in same[0]}
        yield {"cost_weight": weight, **means}


def static_lines(data: Dataset) -> Iterator[Line]:
    """Every subset with the first sensor, bought for everybody; mean over splits."""
    others = [s for s in data.prices if s != data.first_sensor]
    for size in (0, 1, 2, len(others)):  # more never has the lower share at 9 %
        for more in combinations(others, size):
            columns = data.columns(frozenset({data.first_sensor, *more}))
            errors = []
            for split in range(len(data.splits)):
                X, y, X_test, y_test = data.rows(split)
                leaf = QuadraticLogisticRegression().fit(X[:, columns], y)
                errors.append(np.mean(leaf.predict(X_test[:, columns]) != y_test))
            yield {"cost": 1.0 + size, "error": float(np.mean(errors))}


def pages(lines: list[Line]) -> dict[str, str]:
    """Budget shares at the printed error and at the 95 % rule."""
    rows = [["split", "method", "share at 9.0 % error", "share at the 95 % rule"]]
    for kind in dict.fromkeys(line["split"] for line in lines):
        mine = of(lines, split=kind)
        static = {i["cost"]: i["error"] for i in of(mine, method=STATIC)}
        if not static:
            continue
        first, everything = static[1], static[7]
        target = rule(first, everything)
        for method in dict.fromkeys(line["method"] for line in mine):
            curve = curve_of(of(mine, method=method))
            shares = [
                curve.budget_share(at, 1.0, 7.0) for at in (PRINTED_ERROR, target)
            ]
            rows.append([kind, method, *(percent(share) for share in shares)])
        errors = f"*errors: location {first:.3f}, all sensors {everything:.3f}*"
        rows.append([kind, errors, "", f"at {100 * target:.1f} %"])
    printed = ", ".join(f"{name} {share} %" for name, share in PRINTED.items())
    words = (
        f"\nPrinted in the paper at {100 * PRINTED_ERROR:.0f} % error: {printed}; to "
        f"reach: {TARGET} %.\n"
    )
    return {"segmentation.md": markdown(rows) + words}


STUDY = Study(
    file="segmentation",
    key=("split", "method", "cost_weight"),
    data=("segment",),
    cells=cells,
    measure=measure,
    pages=pages,
)
