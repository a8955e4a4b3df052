"""Categories in boosted leaves: sets of levels beside a column for each level.

    python -m benchmarks.categories              made-up tables, and forest if it is there
    python -m benchmarks.categories --rows 5000

A made-up table has three numbers and two categories, whose levels are equally likely. In
"adds" a level adds to the log-odds of the class; in "turns" the sign of a number decides
which way. Forest has two numbers, and soil and wilderness as categories. The log-loss is
that of rows held out in five folds, a mean over three tables; seconds are of one thread,
for the five fits with their number of rounds. "auto" is what a default fit takes for its
leaves, on each table. Sensors encode categories as they do for any text, with rare levels
put together; what is compared is only whether trees see the columns of one category as one.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pandas as pd

from experiments.data import load
from sensortree import Sensor, SensorTreeClassifier
from sensortree.leaves.boosting import BoostedEngine
from sensortree.leaves.coding import coded
from sensortree.leaves.logistic import LogisticEngine
from sensortree.sensors.reader import fit_default_encoding
from sensortree.sensors.transforms import levels_of
from sensortree.threads import one_thread
from sensortree.types import Rows

LEVELS = (3, 5, 10, 25, 50, 250)
TABLES, FOLDS = 3, 5

Tables = Iterator[tuple[pd.DataFrame, Rows]]


def made_up(n_rows: int, n_levels: int, turns: bool) -> Tables:
    """Tables of two categories and three numbers."""
    for seed in range(TABLES):
        rng = np.random.default_rng(seed)
        level, other = rng.integers(0, n_levels, (2, n_rows))
        x = rng.normal(size=(n_rows, 3))
        effects = rng.normal(size=(2, n_levels))
        sign = np.where(x[:, 0] > 0, 1.0, -1.0) if turns else 1.0
        odds = 1.5 * sign * effects[0, level] + 0.5 * effects[1, other] + 0.5 * x[:, 1]
        y = (rng.random(n_rows) < 1 / (1 + np.exp(-odds))).astype(int)
        text = {"one": [f"a{i}" for i in level], "two": [f"b{i}" for i in other]}
        yield pd.DataFrame({**text, "p": x[:, 0], "q": x[:, 1], "r": x[:, 2]}), y


def forest(n_rows: int) -> Tables:
    """Soil, wilderness, and two numbers; whether spruce or not grows there."""
    data = load("forest")
    for seed in range(TABLES):
        rows = np.random.default_rng(seed).permutation(len(data.y))[:n_rows]
        X = data.X[rows]
        text = {
            "soil": [f"soil {i}" for i in X[:, 14:].argmax(axis=1)],
            "area": [f"area {i}" for i in X[:, 10:14].argmax(axis=1)],
        }
        numbers = {"aspect": X[:, 1], "slope": X[:, 2]}
        y = (data.y[rows] == data.y.min()).astype(int)
        yield pd.DataFrame({**text, **numbers}), y


def measured(name: str, tables: Tables) -> str:
    """A line of the table."""
    losses, seconds, widths, taken = [], [], [], Counter[str]()
    for X, y in tables:
        kinds = ["text" if X[c].dtype.kind not in "fi" else "number" for c in X]
        transform = fit_default_encoding(X, kinds, None, keeps_nan=False)
        assert transform is not None
        readings = transform.transform(X)
        fold = np.arange(len(y)) % FOLDS
        engine = BoostedEngine(y, 2, fold=fold)
        widths.append(readings.shape[1])
        found, took = [], []
        for judge, columns in (
            (LogisticEngine(y, 2, fold=fold, degree=1).judge, readings),
            (engine.judge, readings),
            (engine.judge, coded(readings, levels_of(transform))),
        ):
            started = time.process_time()
            said = judge(columns)[0]
            took.append(time.process_time() - started)
            found.append(-np.log(np.maximum(said[np.arange(len(y)), y], 1e-12)).mean())
        losses.append(found)
        seconds.append(took)
        sensors = {column: Sensor(column, cost=1.0) for column in X}
        model = SensorTreeClassifier(sensors, cost_weight=0.005).fit(X, y)
        taken[model.comparison_.leaf] += 1
    loss, took = np.mean(losses, axis=0), np.mean(seconds, axis=0)
    auto = ", ".join(f"{kind} {n}" for kind, n in sorted(taken.items()))
    return (
        f"| {name} | {np.mean(widths):.0f} | {loss[0]:.3f} | {loss[1]:.3f} "
        f"| {loss[2]:.3f} | {took[1]:.2f} | {took[2]:.2f} | {auto} |"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000)
    n_rows = parser.parse_args().rows
    print("| levels | columns | linear | boosted | by sets | s | by sets, s | auto |")
    print("|---|---|---|---|---|---|---|---|")
    with one_thread():
        for turns in (False, True):
            for n_levels in LEVELS:
                name = f"{n_levels}, {'turns' if turns else 'adds'}"
                print(measured(name, made_up(n_rows, n_levels, turns)), flush=True)
        print(measured("forest", forest(n_rows)), flush=True)


if __name__ == "__main__":
    main()
