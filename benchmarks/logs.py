"""How long it takes to judge a policy on a log of 10,000 rows and ten sensors.

    python -m benchmarks.logs            10,000 rows
    python -m benchmarks.logs 2000       another number

Made-up readings, two classes; sensors of one column, of five, and of one that are bought
two at a time. The logger buys in any order, and stops where what it saw is high. CPU
seconds of one thread, with the bands for hidden reasons; the policy is learned before.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensortree import SensorTreeClassifier, evaluate_from_log

Array = NDArray[Any]
N_SENSORS, N_LEARNED = 10, 2000
# Columns of a sensor, and sensors that are bought at a time.
GUISES = {"one column": (1, 1), "five columns": (5, 1), "two at a time": (1, 2)}


def readings(n_rows: int, n_columns: int, rng: Any) -> tuple[Array, Array]:
    """Rows of which every sensor tells a little, and their classes."""
    X = rng.normal(size=(n_rows, N_SENSORS * n_columns))
    of_sensor = X.reshape(n_rows, N_SENSORS, n_columns).mean(axis=2) * n_columns**0.5
    worth = np.linspace(1.5, 0.3, N_SENSORS)
    noise = rng.normal(size=n_rows)
    return X, (of_sensor @ worth + noise > 0).astype(int)


def logged(X: Array, n_columns: int, at_once: int, rng: Any) -> Array:
    """Round in which each sensor was bought, (n_rows, n_sensors); 0 for never."""
    n_rows = len(X)
    seen = X.reshape(n_rows, N_SENSORS, n_columns).mean(axis=2) * n_columns**0.5
    turn = rng.permuted(np.tile(np.arange(N_SENSORS), (n_rows, 1)), axis=1) // at_once
    acquired = np.zeros((n_rows, N_SENSORS), dtype=int)
    alive = np.ones(n_rows, dtype=bool)
    for round_ in range(turn.max() + 1):
        known = np.where(acquired > 0, seen, 0.0).sum(axis=1)
        stops = 1 / (1 + np.exp(3 - known / max(round_, 1) ** 0.5))
        alive &= rng.random(n_rows) >= stops
        acquired[alive[:, None] & (turn == round_)] = round_ + 1
    return acquired


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", nargs="?", type=int, default=10_000)
    n_rows = parser.parse_args().rows
    print(
        "| sensors | rows | worth | error | cost | seconds |\n|---|---|---|---|---|---|"
    )
    for guise, (n_columns, at_once) in GUISES.items():
        rng = np.random.default_rng(0)
        X, y = readings(N_LEARNED + n_rows, n_columns, rng)
        sensors = {
            f"s{s}": list(range(s * n_columns, (s + 1) * n_columns))
            for s in range(N_SENSORS)
        }
        model = SensorTreeClassifier(sensors, cost_weight=0.01, n_jobs=1)
        model.fit(X[:N_LEARNED], y[:N_LEARNED])
        X, y = X[N_LEARNED:], y[N_LEARNED:]
        acquired = logged(X, n_columns, at_once, rng)
        started = time.process_time()
        found = evaluate_from_log(model, X, y, acquired=acquired)
        seconds = time.process_time() - started
        print(
            f"| {guise} | {n_rows:,} | {100 * found.support.effective_share:.0f} % | "
            f"{found.error.value:.3f} | {found.cost.value:.2f} | {seconds:.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
