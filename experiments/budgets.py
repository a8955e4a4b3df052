"""Is a budget met? Mean test cost of `SensorTreeClassifierCV(budget=b)` against b.

    python experiments/budgets.py                   all data sets, 20 splits: hours
    python experiments/budgets.py pima --splits 2   some

Random splits, 70 % of the rows for training; of landsat 1,500 of the official training
rows, the others of which are test rows. Five budgets, spread between what a model must buy
and what it would buy if prices did not matter, by a fit on the first split. A budget is met
if the mean cost of the test rows is at most 5 % or one standard error above it. Prices of
pima and heart are Turney's. Lines go to docs/results/budgets.jsonl, one per data set, split
and budget, with its share of the split's processor time; those that are there already are
not run again. The table goes to docs/results/budgets.md.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from datasets import load
from lines import FOLDER, append, read
from money import complete_rows, declared
from sklearn.model_selection import StratifiedShuffleSplit

from sensortree import SensorTreeClassifier, SensorTreeClassifierCV

RESULTS = FOLDER / "budgets.jsonl"
SHARES = (0.15, 0.3, 0.5, 0.7, 0.9)
N_SPLITS = 20
DATA = {"pima": 0.7, "heart": 0.7, "landsat": 1500}  # share or number of training rows


def rows_of(name: str) -> tuple[Any, Any, dict[str, Any]]:
    """Rows, classes, and the sensors as parameters of an estimator."""
    if name == "landsat":
        data = load(name)
        train = data.official == 0
        return (
            data.X[train],
            data.y[train],
            {"sensors": data.sensors, "costs": data.costs},
        )
    return (*complete_rows(name), {"sensors": declared(name)})


def budgets_of(X: Any, y: Any, parameters: dict[str, Any]) -> list[float]:
    """Five budgets between what must be bought and what is bought for nearly nothing."""
    model = SensorTreeClassifier(**parameters)
    ends = model.fit_path(X, y, [1e6, 1e-6])
    least, most = (float(end.acquisition_cost(X).mean()) for end in ends)
    return [float(f"{least + share * (most - least):.3g}") for share in SHARES]


def line_of(model: SensorTreeClassifierCV, X: Any, y: Any) -> dict[str, Any]:
    """What a fitted model spends and errs on test rows, and whether the budget is met."""
    cost = model.acquisition_cost(X)
    error = float(cost.std(ddof=1) / np.sqrt(len(cost)))
    mean, budget = float(cost.mean()), float(model.budget)
    return {
        "budget": budget,
        "cost": mean,
        "standard_error": error,
        "met": bool(mean <= max(1.05 * budget, budget + error)),
        "error": float(np.mean(model.predict(X) != y)),
        "held_out_cost": model.chosen_.mean_cost,
        "held_out_error": model.chosen_.error,
        "cost_weight": model.cost_weight_,
        "points": len(model.curve_),
    }


def run(name: str, n_splits: int, done: set[Any]) -> Iterator[dict[str, Any]]:
    """Fit what is missing, a line each."""
    X, y, parameters = rows_of(name)
    splitter = StratifiedShuffleSplit(N_SPLITS, train_size=DATA[name], random_state=0)
    splits = list(splitter.split(X, y))
    train, _ = splits[0]
    budgets = budgets_of(X[train], y[train], parameters)
    for split, (train, test) in enumerate(splits[:n_splits]):
        missing = [b for b in budgets if (name, split, b) not in done]
        if not missing:
            continue
        started = time.process_time()
        model = SensorTreeClassifierCV(**parameters)
        models = model.fit_budgets(X[train], y[train], missing)
        seconds = (time.process_time() - started) / len(models)
        for model in models:
            line = line_of(model, X[test], y[test])
            yield {"data": name, "split": split, **line, "seconds": seconds}


def table(found: list[dict[str, Any]]) -> str:
    """Share of splits that meet each budget, mean costs and errors, as Markdown."""
    rows = [
        "| data | budget | mean test cost | least and most | error | met | splits |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in DATA:
        own = [line for line in found if line["data"] == name]
        for budget in sorted({line["budget"] for line in own}):
            same = [line for line in own if line["budget"] == budget]
            costs = [line["cost"] for line in same]
            met = sum(line["met"] for line in same)
            rows.append(
                f"| {name} | {budget:g} | {np.mean(costs):.4g} | {min(costs):.4g} to "
                f"{max(costs):.4g} | {np.mean([i['error'] for i in same]):.4f} | "
                f"{met} | {len(same)} |"
            )
    met = sum(line["met"] for line in found)
    return "\n".join(rows) + f"\n\nBudgets met: {met} of {len(found)}.\n"


def main() -> None:
    """Run what is missing, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="*", choices=[*DATA, []], default=[])
    parser.add_argument("--splits", type=int, default=N_SPLITS)
    given = parser.parse_args()
    done = {(i["data"], i["split"], i["budget"]) for i in read(RESULTS)}
    for name in given.data or DATA:
        for line in run(name, given.splits, done):
            append(RESULTS, [line])
            print(
                f"{name}, split {line['split']}, budget {line['budget']:g}: "
                f"{line['cost']:.4g}, {line['seconds']:.0f} s",
                flush=True,
            )
    found = read(RESULTS)
    RESULTS.with_suffix(".md").write_text(table(found), encoding="utf-8")
    print(table(found))


if __name__ == "__main__":
    main()
