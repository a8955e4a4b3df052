"""How fast a policy is asked: per step, and for whole tables. One command, one table.

    python -m benchmarks.acquisition                 letter, degree-2 logistic leaves
    python -m benchmarks.acquisition --boosted       the same with boosted leaves
    python -m benchmarks.acquisition --output FILE   also as JSON lines

A step is one turn of a session: ask, then tell; the decision at the end is a turn too. It
is compared with calling a scikit-learn pipeline at every step, on the columns known so far,
the row as an array and as a pandas frame of one row (as a ColumnTransformer needs it).
Batch prediction is compared with scikit-learn's logistic pipeline of the same degree on all
features, with its boosted trees, and with LightGBM's. All in one process and one run; the
others are told to take one thread, as our calls do by themselves. The best of several
repeats is taken, since others may use the machine.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightgbm
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from threadpoolctl import threadpool_limits

from experiments.data import load
from experiments.results import append
from sensortree import SensorTreeClassifier

REPEATS, ROWS = 7, 300


def main() -> int:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--boosted", action="store_true", help="boosted leaves")
    parser.add_argument("--output", type=Path, help="append JSON lines to this file")
    arguments = parser.parse_args()
    lines = measure("boosted" if arguments.boosted else "logistic2")
    for line in lines:
        print(
            f"{line['what']:58s} {line['microseconds']:12.1f} us  {line['ratio']:7.2f}"
        )
    if arguments.output:
        append(arguments.output, lines)
    return 0


def letter() -> tuple[Any, Any, Any, dict[str, list[int]]]:
    """Training rows and classes, test rows, sensors of the letter data."""
    data = load("letter")
    X, y, test, _ = data.rows()
    return X[:6_000], y[:6_000], test, data.sensors


def measure(classifier: str) -> list[dict[str, Any]]:
    """Time steps and batches; a ratio is of the time to the first of its kind."""
    X, y, test, sensors = letter()
    model = SensorTreeClassifier(sensors, cost_weight=0.1, classifier=classifier)
    model.fit(X, y)
    steps = [("a step of a session", session_turns(model, test, sensors))]
    steps += [
        (
            f"a pipeline at every step, {kind}",
            held(pipeline_turns(X, y, test, sensors, kind)),
        )
        for kind in ("array", "frame")
    ]
    batches: list[tuple[str, Callable[[], Any]]] = [
        ("predict_proba of the sensor tree", lambda: model.predict_proba(test))
    ]
    logistic = make_pipeline(
        StandardScaler(), PolynomialFeatures(2), LogisticRegression(max_iter=300)
    ).fit(X, y)
    boosted = HistGradientBoostingClassifier(early_stopping=False).fit(X, y)
    light = lightgbm.LGBMClassifier(n_jobs=1, verbose=-1).fit(X, y)
    batches += [
        (
            "logistic pipeline, all features",
            held(lambda: logistic.predict_proba(test)),
        ),
        (
            "boosted trees of scikit-learn, all features",
            held(lambda: boosted.predict_proba(test)),
        ),
        ("LightGBM, all features", lambda: light.booster_.predict(test, num_threads=1)),
    ]
    rows: list[dict[str, Any]] = []
    for label, timed, per in (
        ("step", steps, None),
        ("batch", batches, len(test)),
    ):
        seconds = [
            (what, run() if per is None else best(run) / per) for what, run in timed
        ]
        rows += [
            {
                "kind": label,
                "leaves": classifier,
                "what": what if per is None else f"{what}, per row of {per}",
                "microseconds": 1e6 * taken,
                "ratio": taken / seconds[0][1],
                "machine": platform.processor() or platform.machine(),
                "python": platform.python_version(),
            }
            for what, taken in seconds
        ]
    return rows


def held(run: Callable[[], Any]) -> Callable[[], Any]:
    """The same with one thread, for calls of others."""
    return threadpool_limits.wrap(limits=1)(run)


def best(run: Callable[[], Any]) -> float:
    """Seconds of the quickest of several runs."""
    taken = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        run()
        taken.append(time.perf_counter() - started)
    return min(taken)


def session_turns(
    model: SensorTreeClassifier, test: Any, sensors: dict[str, list[int]]
) -> Callable[[], float]:
    """Seconds per turn of sessions on some rows."""
    policy = model.policy_

    def examine() -> int:
        turns = 0
        for row in test[:ROWS]:
            session = policy.session()
            while (step := session.ask()) is not None:
                session.tell(step.sensor, row[sensors[step.sensor]])
                turns += 1
            session.decision()
            turns += 1
        return turns

    turns = examine()
    return lambda: best(examine) / turns


def pipeline_turns(
    X: Any, y: Any, test: Any, sensors: dict[str, list[int]], kind: str
) -> Callable[[], float]:
    """Seconds per step of asking a pipeline on the columns known so far."""
    known: list[int] = []
    stages = []
    for columns in sensors.values():
        known = [*known, *columns]
        degree_2 = make_pipeline(StandardScaler(), PolynomialFeatures(2))
        if kind == "array":
            rows, before = X[:, known], degree_2
        else:
            rows = pd.DataFrame(X[:, known], columns=[f"x{c}" for c in known])
            before = make_column_transformer((degree_2, list(rows.columns)))
        pipeline = make_pipeline(before, LogisticRegression(max_iter=100, tol=0.01))
        stages.append((pipeline.fit(rows, y), list(known)))
    frames = [
        test[:ROWS, columns]
        if kind == "array"
        else pd.DataFrame(test[:ROWS, columns], columns=[f"x{c}" for c in columns])
        for _, columns in stages
    ]

    def examine() -> None:
        for row in range(ROWS // 10):
            for (pipeline, _), frame in zip(stages, frames, strict=True):
                one = frame[row : row + 1]
                pipeline.predict_proba(one)

    return lambda: best(examine) / (ROWS // 10 * len(stages))


if __name__ == "__main__":
    sys.exit(main())
