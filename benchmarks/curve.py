"""What a trade-off curve costs, beside one fit and beside a grid of LightGBM's.

    python -m benchmarks.curve [rows]

Rows of letter; processor time of everything, in one process; LightGBM is told to take one
thread, as our calls do by themselves. Our curve is measured on held-out folds; the grid is
twelve single fits of LightGBM with lazy feature penalties (CEGB), one for each trade-off,
on no folds at all.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np

from benchmarks.fit import Table, letter
from experiments.methods import timed
from sensortree import SensorTreeClassifier, tradeoff_curve

TRADEOFFS = np.geomspace(1e-6, 1e-1, 12)


def main(n_rows: int = 16_000) -> None:
    """Print the seconds of a fit, of a curve and of the grid."""
    warnings.simplefilter("ignore")
    table = some_of(letter(), n_rows)
    model = SensorTreeClassifier(table.sensors, cost_weight=table.cost_weight)
    _, fit = timed(lambda: model.fit(table.X, table.y))
    curve, took = timed(lambda: tradeoff_curve(model, table.X, table.y))
    grid = sum(table.lightgbm_seconds(tradeoff) for tradeoff in TRADEOFFS)
    print(curve)
    print(
        f"{len(table.y)} rows: one fit {fit.cpu:.1f} s; {len(curve)} points on held-out "
        f"folds {took.cpu:.1f} s, {took.cpu / fit.cpu:.1f} fits; {len(TRADEOFFS)} fits of "
        f"LightGBM {grid:.1f} s"
    )


def some_of(table: Table, n_rows: int) -> Table:
    """A table with some of its training rows."""
    rows = np.random.default_rng(0).permutation(len(table.y))[:n_rows]
    return Table(
        table.X[rows],
        table.y[rows],
        table.X_test,
        table.y_test,
        table.sensors,
        table.cost_weight,
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
