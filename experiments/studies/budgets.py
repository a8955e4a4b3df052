"""Is a budget met? Mean test cost of `SensorTreeClassifierCV(budget=b)` against b.

Twenty random splits, 70 % of the rows for training; of landsat 1,500 of the official
training rows, the others of which are test rows. Five budgets, spread between what a model
must buy and what it would buy if prices did not matter, by a fit on the first split. A
budget is met if the mean cost of the test rows is at most 5 % or one standard error above
it. Prices of pima and heart are Turney's. A line per data set, split and budget, with its
share of the split's processor time. Hours.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from experiments.data import Dataset, by_test, few, load, split_at_random, training_rows
from experiments.methods import fitted_path, tested, timed
from experiments.results import Line
from experiments.study import Cell, Study
from experiments.tables import markdown, mean, of
from sensortree import SensorTreeClassifier, SensorTreeClassifierCV

SHARES = (0.15, 0.3, 0.5, 0.7, 0.9)
N_SPLITS = 20


def data_of(name: str, quick: bool) -> Dataset:
    """Rows, sensors and splits."""
    if name == "landsat":
        rows = training_rows(load(name))
        data = split_at_random(rows, N_SPLITS, train_size=1500)
    else:
        data = split_at_random(by_test(load(name)), N_SPLITS, train_size=0.7)
    return few(data) if quick else data


def cells(name: str, quick: bool, lines: list[Line]) -> Iterator[Cell]:
    """Each split; its budgets share a curve."""
    found = tuple(sorted({line["budget"] for line in of(lines, data=name)}))
    budgets = found if len(found) == len(SHARES) else budgets_of(data_of(name, quick))
    for split in range(1 if quick else N_SPLITS):
        yield Cell({"data": name, "split": split}, "budget", budgets)


def budgets_of(data: Dataset) -> tuple[float, ...]:
    """Five budgets between what must be bought and what is bought for nearly nothing."""
    X, y, *_ = data.rows()
    model = SensorTreeClassifier(sensors=data.sensors, costs=data.costs)
    ends, _ = fitted_path(model, X, y, [1e6, 1e-6])
    least, most = (float(end.acquisition_cost(X).mean()) for end in ends)
    return tuple(float(f"{least + share * (most - least):.3g}") for share in SHARES)


def measure(cell: Cell) -> Iterator[Line]:
    """Fit at each budget, and test."""
    data = data_of(cell.fields["data"], cell.quick)
    X, y, X_test, y_test = data.rows(cell.fields["split"])
    model = SensorTreeClassifierCV(sensors=data.sensors, costs=data.costs)
    models, seconds = timed(lambda: model.fit_budgets(X, y, list(cell.values)))
    for fitted in models:
        yield {**line_of(fitted, X_test, y_test), "seconds": seconds.cpu / len(models)}


def line_of(model: SensorTreeClassifierCV, X: Any, y: Any) -> Line:
    """What a fitted model spends and errs on test rows, and whether the budget is met."""
    cost = model.acquisition_cost(X)
    error = float(cost.std(ddof=1) / np.sqrt(len(cost)))
    mean_cost, budget = float(cost.mean()), float(model.budget)
    return {
        "budget": budget,
        "standard_error": error,
        "met": bool(mean_cost <= max(1.05 * budget, budget + error)),
        **tested(model, X, y),
        "held_out_cost": model.chosen_.mean_cost,
        "held_out_error": model.chosen_.error,
        "cost_weight": model.cost_weight_,
        "points": len(model.curve_),
    }


def pages(lines: list[Line]) -> dict[str, str]:
    """Splits that meet each budget, mean costs and errors."""
    heads = ["data", "budget", "mean test cost", "least and most", "error", "met"]
    rows = [[*heads, "splits"]]
    for name in STUDY.data:
        for budget in sorted({line["budget"] for line in of(lines, data=name)}):
            same = of(lines, data=name, budget=budget)
            costs = [line["cost"] for line in same]
            rows.append(
                [
                    name,
                    f"{budget:g}",
                    f"{np.mean(costs):.4g}",
                    f"{min(costs):.4g} to {max(costs):.4g}",
                    f"{mean(same, 'error'):.4f}",
                    f"{len(of(same, met=True))}",
                    f"{len(same)}",
                ]
            )
    met = len(of(lines, met=True))
    text = markdown(rows) + f"\nBudgets met: {met} of {len(lines)}.\n"
    return {"budgets.md": text}


STUDY = Study(
    file="budgets",
    key=("data", "split", "budget"),
    data=("pima", "heart", "landsat"),
    cells=cells,
    measure=measure,
    pages=pages,
)
