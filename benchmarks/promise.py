"""Promises: what a fit says of itself, beside what it does on rows it has not seen.

    python -m benchmarks.promise cv          `chosen_`, and what the model does: 40 tables
    python -m benchmarks.promise held-out    held-out risk less fresh risk: 30 tables a size
    python -m benchmarks.promise cv --tables 4 --jobs 2 --classifier linear
    python -m benchmarks.promise cv --table  a line for each table too

Tables are four Gaussian sensors at prices 1 to 4, whose weighted sum the class follows from
with some noise: some tell much, some nothing, and classes are even or not. Fresh rows are
20,000. For "cv" there are 120 to 1,000 rows, and every fourth table has no target, the
others a budget; for "held-out" 80, 200 and 500 rows, and cost weights of .01 to .04. An
interval of 90 % is the held-out risk and 1.645 of its standard errors to both sides. To
compare two versions of the library, run it with PYTHONPATH set to each.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed

from sensortree import SensorTreeClassifier, SensorTreeClassifierCV

FRESH, PRICES = 20_000, (1.0, 2.0, 3.0, 4.0)
CV_TABLES, FEWEST, MOST = 40, 120, 1_000
BUDGETS = (1.5, 3.0, 5.0, None)
HELD_OUT_TABLES, ROWS = 30, (80, 200, 500)
COST_WEIGHTS = (0.01, 0.02, 0.04)
# Standard errors to both sides of a normal interval of 90 %.
NINETY = 1.645

Row = dict[str, Any]


class Table(NamedTuple):
    """Rows to learn from, and fresh ones."""

    X: Any
    y: Any
    X_fresh: Any
    y_fresh: Any
    sensors: dict[str, list[int]]
    costs: dict[str, float]


def table_of(n_rows: int, *seed: int) -> Table:
    """Four Gaussian sensors; how much each tells, and all of them together, is drawn."""
    rng = np.random.default_rng(seed)
    tells = rng.normal(size=len(PRICES)) * (rng.random(len(PRICES)) < 0.75)
    loud = rng.uniform(0.3, 1.5)
    X = rng.normal(size=(n_rows + FRESH, len(PRICES)))
    score = rng.normal(scale=0.7) + X @ tells + loud * rng.logistic(size=len(X))
    y = (score > 0).astype(int)
    names = [f"s{price:.0f}" for price in PRICES]
    sensors = {name: [j] for j, name in enumerate(names)}
    costs = dict(zip(names, PRICES, strict=True))
    return Table(X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:], sensors, costs)


def chosen_and_done(number: int, classifier: str) -> Row:
    """What `chosen_` says of one table, and what the model does on fresh rows."""
    warnings.simplefilter("ignore")
    n_rows = round(np.geomspace(FEWEST, MOST, CV_TABLES)[number % CV_TABLES])
    budget = BUDGETS[number % len(BUDGETS)]
    table = table_of(n_rows, 33, number)
    model = SensorTreeClassifierCV(
        table.sensors, costs=table.costs, budget=budget, classifier=classifier
    )
    started = time.process_time()
    model.fit(table.X, table.y)
    seconds = time.process_time() - started
    cost = float(model.acquisition_cost(table.X_fresh).mean())
    return {
        "rows": n_rows,
        "budget": "-" if budget is None else budget,
        "promised cost": float(model.chosen_.mean_cost),
        "fresh cost": cost,
        "promised error": float(model.chosen_.error),
        "fresh error": float(np.mean(model.predict(table.X_fresh) != table.y_fresh)),
        "disagree": bool((model.chosen_.mean_cost > 0) != (cost > 0)),
        "seconds": seconds,
    }


def held_out_and_fresh(number: int, n_rows: int, classifier: str) -> Row:
    """What a fit says of itself, and its risk on fresh rows."""
    warnings.simplefilter("ignore")
    table = table_of(n_rows, 34, number)
    weight = COST_WEIGHTS[number % len(COST_WEIGHTS)]
    model = SensorTreeClassifier(
        table.sensors, costs=table.costs, cost_weight=weight, classifier=classifier
    )
    started = time.process_time()
    model.fit(table.X, table.y)
    seconds = time.process_time() - started
    wrong = model.predict(table.X_fresh) != table.y_fresh
    cost = model.acquisition_cost(table.X_fresh)
    fresh = float(np.mean(wrong + weight * cost))
    said = model.about_.held_out
    return {
        "rows": n_rows,
        "cost weight": weight,
        "held-out": said.risk,
        "± se": said.risk_se,
        "fresh": fresh,
        "covered": bool(abs(said.risk - fresh) <= NINETY * said.risk_se),
        "fresh cost": float(cost.mean()),
        "seconds": seconds,
    }


def said_of_cv(rows: list[Row]) -> Iterator[str]:
    """How often `chosen_` and the model disagree, and by how much error is off."""
    disagree = sum(row["disagree"] for row in rows)
    yield f"buys or not: chosen_ and model disagree in {disagree} of {len(rows)} tables"
    yield f"fresh error less promised: {mean(rows, 'fresh error', 'promised error')}"
    yield f"fresh cost less promised: {mean(rows, 'fresh cost', 'promised cost')}"
    asked = [row for row in rows if row["budget"] != "-"]
    over = sum(row["fresh cost"] > row["budget"] for row in asked)
    yield f"above the budget on fresh rows: {over} of {len(asked)}"
    yield f"seconds of a fit: {np.mean([row['seconds'] for row in rows]):.1f}"


def said_of_held_out(rows: list[Row]) -> Iterator[str]:
    """By how much held-out risk is off for each size, and what the intervals cover."""
    for n_rows in sorted({row["rows"] for row in rows}):
        some = [row for row in rows if row["rows"] == n_rows]
        covered = 100 * np.mean([row["covered"] for row in some])
        yield (
            f"{n_rows} rows, {len(some)} tables: held-out risk less fresh "
            f"{mean(some, 'held-out', 'fresh')}; intervals of 90 % cover "
            f"{covered:.0f} %; {np.mean([row['seconds'] for row in some]):.1f} s a fit"
        )
    covered = 100 * np.mean([row["covered"] for row in rows])
    yield (
        f"all: {mean(rows, 'held-out', 'fresh')}; intervals of 90 % cover {covered:.0f} %"
    )


def mean(rows: list[Row], one: str, other: str) -> str:
    """Mean difference, with its standard error."""
    apart = np.array([row[one] - row[other] for row in rows])
    return f"{apart.mean():+.4f} ± {apart.std() / np.sqrt(len(apart)):.4f}"


def markdown(rows: list[Row]) -> str:
    """A line for each table."""
    heads = list(rows[0])
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for row in rows:
        shown = (f"{v:.4g}" if isinstance(v, float) else str(v) for v in row.values())
        lines.append("| " + " | ".join(shown) + " |")
    return "\n".join(lines)


def main() -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["cv", "held-out"])
    parser.add_argument("--tables", type=int, help="tables, of each size")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--classifier", default="auto")
    parser.add_argument("--table", action="store_true", help="a line for each table")
    arguments = parser.parse_args()
    if arguments.what == "cv":
        numbers = range(arguments.tables or CV_TABLES)
        work = [delayed(chosen_and_done)(i, arguments.classifier) for i in numbers]
    else:
        numbers = range(arguments.tables or HELD_OUT_TABLES)
        work = [
            delayed(held_out_and_fresh)(i, n_rows, arguments.classifier)
            for n_rows in ROWS
            for i in numbers
        ]
    rows = Parallel(arguments.jobs)(work)
    if arguments.table:
        print(markdown(rows))
    said = said_of_cv if arguments.what == "cv" else said_of_held_out
    print("\n".join(said(rows)))


if __name__ == "__main__":
    main()
