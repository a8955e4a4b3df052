"""Seconds of our calls in the conditions that users have, beside those of one thread.

    python -m benchmarks.machine                    all tasks, all conditions
    python -m benchmarks.machine fit-569 step       some tasks
    python -m benchmarks.machine --rounds 1         quicker

Each figure is of a fresh process, in which no variable limits any thread, the median of
several rounds. "One thread" is the same process with OMP_NUM_THREADS=1 and
OPENBLAS_NUM_THREADS=1, on a quiet machine. The conditions: quiet; one other process that
never rests; as many of these as there are cores; one core (by affinity, as `taskset` and
containers do). "cpu" and "wall" are multiples of the seconds of one thread. The tables are
made up or come with scikit-learn, so nothing has to be fetched.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any

import numpy as np

VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
BUSY = "while True: pass"
REPEATS = 300  # of a step and of a prediction
# Seconds after which threads that NumPy opened to prepare a task no longer spin.
IDLE = 0.5
SOLVES = 10
Task = Callable[[], Any]


def fit_569() -> Task:
    """Breast cancer, as in the README, with default leaves."""
    from sklearn.datasets import load_breast_cancer

    from sensortree import SensorTreeClassifier

    X, y = load_breast_cancer(return_X_y=True)
    sensors = {"mean": slice(0, 10), "error": slice(10, 20), "worst": slice(20, 30)}
    costs = {"mean": 1, "error": 2, "worst": 5}
    model = SensorTreeClassifier(sensors, costs=costs, cost_weight=0.005)
    return lambda: model.fit(X, y)


def fit_3772() -> Task:
    """Answers and blood tests, made up."""
    from benchmarks.fit import thyroid
    from sensortree import SensorTreeClassifier

    table = thyroid(3_772)
    model = SensorTreeClassifier(table.sensors, cost_weight=table.cost_weight)
    return lambda: model.fit(table.X, table.y)


def fit_12000() -> Task:
    """Twenty columns, made up."""
    from benchmarks.fit import columns
    from sensortree import SensorTreeClassifier

    table = columns(12_000, 20, 2)
    model = SensorTreeClassifier(table.sensors, cost_weight=table.cost_weight)
    return lambda: model.fit(table.X, table.y)


def solve_4000() -> Task:
    """The linear program of 4,000 rows and 8 leaves, ten times."""
    from benchmarks.problems import synthetic
    from sensortree.program import solve

    problem = synthetic(4_000, 8, 21)
    return lambda: [solve(problem) for _ in range(SOLVES)]


def small_model() -> tuple[Any, Any]:
    """A fitted model of breast cancer, and its rows."""
    from sklearn.datasets import load_breast_cancer

    from sensortree import SensorTreeClassifier

    X, y = load_breast_cancer(return_X_y=True)
    sensors = {"mean": slice(0, 10), "error": slice(10, 20), "worst": slice(20, 30)}
    model = SensorTreeClassifier(sensors, cost_weight=0.01, structure="cascade")
    return model.fit(X, y), X


def predict_all() -> Task:
    """569 rows at once, many times over."""
    model, X = small_model()
    return lambda: [model.predict(X) for _ in range(REPEATS)]


def predict_one() -> Task:
    """One row, many times over."""
    model, X = small_model()
    return lambda: [model.predict(X[:1]) for _ in range(REPEATS)]


def step() -> Task:
    """Sessions, from the first question to the answer."""
    model, X = small_model()
    columns = dict(zip(model.sensors_.names, model.sensors_.columns, strict=True))

    def ask() -> None:
        for row in X[:REPEATS]:
            session = model.policy_.session()
            while (asked := session.ask()) is not None:
                session.tell(asked.sensor, row[list(columns[asked.sensor])])
            session.decision()

    return ask


TASKS: dict[str, Callable[[], Task]] = {
    "fit-569": fit_569,
    "fit-3772": fit_3772,
    "fit-12000": fit_12000,
    "solve-4000x8": solve_4000,
    "predict": predict_all,
    "predict-one-row": predict_one,
    "step": step,
}


def main() -> None:
    """Measure in this process if it is told so, else in fresh ones, and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("tasks", nargs="*", metavar="TASK", help=", ".join(TASKS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--here", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.here:
        print(json.dumps(seconds(TASKS[arguments.here]())))
        return
    cores = sorted(os.sched_getaffinity(0))
    conditions = {
        "quiet": (0, cores),
        "one busy process": (1, cores),
        f"{len(cores)} busy processes": (len(cores), cores),
        "one core": (0, cores[:1]),
    }
    heads = [f"{name}: cpu, wall" for name in conditions]
    print("| task | one thread, s | " + " | ".join(heads) + " |")
    print("|---" * (2 + len(heads)) + "|")
    for task in arguments.tasks or TASKS:
        alone = in_fresh_processes(task, arguments.rounds, 0, cores, threads="1")
        row = [f"{alone[1]:.3f}"]
        for busy, allowed in conditions.values():
            cpu, wall = in_fresh_processes(task, arguments.rounds, busy, allowed)
            row.append(f"{cpu / alone[0]:.2f}, {wall / alone[1]:.2f}")
        print(f"| {task} | " + " | ".join(row) + " |", flush=True)


def seconds(task: Task) -> tuple[float, float]:
    """Processor time and the clock's time of a task."""
    time.sleep(IDLE)
    cpu, wall = time.process_time(), time.perf_counter()
    task()
    return time.process_time() - cpu, time.perf_counter() - wall


def in_fresh_processes(
    task: str, rounds: int, busy: int, cores: list[int], threads: str | None = None
) -> tuple[float, float]:
    """Medians of processor time and the clock's, beside so many busy processes."""
    environment = {k: v for k, v in os.environ.items() if k not in VARIABLES}
    if threads is not None:
        environment |= dict.fromkeys(VARIABLES, threads)
    taken = []
    with beside(busy):
        for _ in range(rounds):
            done = subprocess.run(
                [sys.executable, "-m", "benchmarks.machine", "--here", task],
                env=environment,
                stdout=subprocess.PIPE,
                check=True,
                preexec_fn=lambda: os.sched_setaffinity(0, cores),
            )
            taken.append(json.loads(done.stdout.splitlines()[-1]))
    cpu, wall = np.array(taken).T.tolist()
    return median(cpu), median(wall)


@contextmanager
def beside(busy: int) -> Iterator[None]:
    """Keep some cores busy inside."""
    others = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(busy)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


if __name__ == "__main__":
    main()
