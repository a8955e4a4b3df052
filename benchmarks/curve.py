"""What a trade-off curve costs, as a multiple of one fit, on rows of letter.

    python -m benchmarks.curve [rows]

Processor time of both in one process.
"""

from __future__ import annotations

import sys

import numpy as np

from experiments.data import load
from experiments.methods import timed
from sensortree import SensorTreeClassifier, tradeoff_curve


def main(n_rows: int = 16_000) -> None:
    """Print the seconds of a fit and of a curve, and their ratio."""
    data = load("letter")
    rows = np.random.default_rng(0).permutation(len(data.y))[:n_rows]
    X, y = data.X[rows], data.y[rows]
    model = SensorTreeClassifier(sensors=data.sensors, costs=data.costs)
    _, fit = timed(lambda: model.fit(X, y))
    curve, took = timed(lambda: tradeoff_curve(model, X, y))
    print(curve)
    print(
        f"{len(y)} rows: one fit {fit.cpu:.1f} s, {len(curve)} points {took.cpu:.1f} s: "
        f"{took.cpu / fit.cpu:.2f} times"
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
