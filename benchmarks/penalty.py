"""What choosing the penalty of a large logistic leaf is worth, and what it takes.

    python -m benchmarks.penalty

Quadratic leaves of some columns of real tables, judged on five folds: error and log-loss
with C = 1, with the C that held-out rows choose, and processor seconds of each.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from experiments.data import path_of
from sensortree import QuadraticLogisticRegression
from sensortree.leaves.fitting import engine_of
from sensortree.threads import one_thread

# File, columns, rows at most; class 1 against the others.
LEAVES = (
    ("covtype", 40, 12_000),
    ("covtype", 54, 12_000),
    ("cifar", 45, 20_000),
    ("cifar", 60, 20_000),
)


def rows(name: str, n_columns: int, n_rows: int) -> tuple[Any, Any]:
    """Training rows of a file, some of its columns by seed 0."""
    arrays = np.load(path_of(name))
    train = np.flatnonzero(arrays["split"] != 1)
    kept = np.sort(np.random.default_rng(0).permutation(train)[:n_rows])
    columns = np.random.default_rng(0).permutation(arrays["X"].shape[1])[:n_columns]
    X = arrays["X"][kept][:, np.sort(columns)].astype(float)
    return X, (arrays["y"][kept] == 1).astype(int)


def judged(X: Any, y: Any, C: float | str) -> str:
    """Error, log-loss and seconds of a leaf that is judged on five folds."""
    fold = np.random.default_rng(0).permutation(len(y)) % 5
    kind = QuadraticLogisticRegression(C=C)
    engine = engine_of(kind, y, int(y.max()) + 1, None, fold)
    started = time.process_time()
    likely, solution = engine.judge(X)
    seconds = time.process_time() - started
    error = (likely.argmax(axis=1) != y).mean()
    true = np.maximum(likely[np.arange(len(y)), y], np.finfo(np.float32).tiny)
    loss = -np.log(true).mean()
    return f"{solution.C:.2g} | {error:.4f} | {loss:.4f} | {seconds:.2f}"


@one_thread()
def main() -> None:
    """Print a table."""
    print("| leaf | C | error | log-loss | s | C chosen | error | log-loss | s |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, n_columns, n_rows in LEAVES:
        X, y = rows(name, n_columns, n_rows)
        told = f"{name}, {len(y):,} rows, {n_columns} columns"
        print(f"| {told} | {judged(X, y, 1.0)} | {judged(X, y, 'evidence')} |")


if __name__ == "__main__":
    main()
