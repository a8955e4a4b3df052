"""What a trade-off curve costs, as a multiple of one fit, on rows of letter.

    python benchmarks/curve.py [rows]

Processor time of both in one process; letter.npz is looked for in SENSORTREE_DATA.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from sensortree import SensorTreeClassifier, tradeoff_curve


def rows_of(n_rows: int) -> tuple[Any, Any, dict[str, Any]]:
    """Random rows of letter, their classes, and the sensors as parameters."""
    with np.load(Path(os.environ["SENSORTREE_DATA"]) / "letter.npz") as file:
        X, y, owner = file["X"].astype(float), file["y"], file["sensor_of_feature"]
        names, prices = file["sensor_names"].tolist(), file["sensor_costs"].tolist()
    chosen = np.random.default_rng(0).permutation(len(y))[:n_rows]
    sensors = {n: np.flatnonzero(owner == s).tolist() for s, n in enumerate(names)}
    costs = dict(zip(names, prices, strict=True))
    return X[chosen], y[chosen], {"sensors": sensors, "costs": costs}


def seconds(task: Callable[[], Any]) -> tuple[float, Any]:
    """Processor time of a task, and what it gives."""
    started = time.process_time()
    result = task()
    return time.process_time() - started, result


def main(n_rows: int = 16_000) -> None:
    """Print the seconds of a fit and of a curve, and their ratio."""
    X, y, parameters = rows_of(n_rows)
    model = SensorTreeClassifier(**parameters)
    fit, _ = seconds(lambda: model.fit(X, y))
    took, curve = seconds(lambda: tradeoff_curve(model, X, y))
    print(curve)
    print(
        f"{len(y)} rows: one fit {fit:.1f} s, {len(curve)} points {took:.1f} s: "
        f"{took / fit:.2f} times"
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
