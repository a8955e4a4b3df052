"""The program of Forest on two worker processes beside one process, and out of core.

    python -m benchmarks.dask_fit                        all of Forest, 16 leaves
    python -m benchmarks.dask_fit --rows 20000           some rows of it
    python -m benchmarks.dask_fit --out-of-core 500000 1000000 10000000

The first solves the same program by `solve` in one process and by `solve_rows` on two
worker processes of a LocalCluster, with a ridge penalty of 1 and a gap of 1e-4, and prints
by how much the objectives differ, seconds (the clock's), and the most memory that each
process has had. The second repeats Forest with noise to so many rows, in files, within
``--memory`` GiB; it takes ``--iterations`` steps of the interior point and prints seconds
for each of them, which grow with the rows as the table says; up to ``--in-memory`` rows the
same steps are taken in memory as well. Each measurement has a process of its own.
cpu_seconds are those that the process had: on a machine with other work, they are the
fairer ones. Results go to stdout, and with ``--output FILE`` also to a file of JSON lines.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.problems import forest
from benchmarks.solver import Report, exponent, machine, peak_memory
from sensortree.exceptions import CertificateWarning
from sensortree.outofcore.chunk import Source
from sensortree.outofcore.disk import OnDisk
from sensortree.outofcore.workers import OnWorkers
from sensortree.program import SurrogateProblem, solve
from sensortree.program.chunks import Chunks, InMemory, cut
from sensortree.program.solution import ProblemRows, solve_rows
from sensortree.program.solvers.structured.chunk import parts_of, rows_at_once

TOL, RIDGE = 1e-4, 1.0
NOISE = 0.05  # standard deviations of each column
# Dask has workers give memory back at once; each array of a step is then new memory.
KEEP_MEMORY = {"MALLOC_TRIM_THRESHOLD_": 1 << 30, "MALLOC_MMAP_THRESHOLD_": 1 << 25}


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, help="rows of Forest; all by default")
    parser.add_argument("--out-of-core", type=int, nargs="+", metavar="ROWS")
    parser.add_argument("--iterations", type=int, default=3)
    parser.add_argument("--memory", type=float, default=8.0, help="GiB")
    parser.add_argument(
        "--in-memory", type=int, default=500_000, help="rows that are, for comparison"
    )
    parser.add_argument("--output", help="a file of JSON lines")
    arguments = parser.parse_args()
    report = Report(arguments.output)
    print(machine(), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        apart(save, arguments.rows, Path(folder))
        if arguments.out_of_core:
            out_of_core(arguments, report, Path(folder))
        else:
            on_two_workers(report, Path(folder))


def apart(task: Callable[..., Any], *arguments: Any) -> Any:
    """What a task gives in a process of its own, whose memory is seen apart."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as process:
        return process.submit(task, *arguments).result()


def save(n_rows: int | None, folder: Path) -> None:
    """Write the problem of so many rows of Forest to files."""
    problem = forest(n_rows)
    np.save(folder / "features.npy", problem.features[0])
    np.save(folder / "negative.npy", problem.lost_if_negative)
    np.save(folder / "positive.npy", problem.lost_if_positive)
    np.save(folder / "children.npy", np.stack([problem.negative, problem.positive]))


def problem_of(folder: Path, begin: int, end: int | None) -> SurrogateProblem:
    """Some rows of a problem in files, whose nodes share their features."""
    names = ("features", "negative", "positive")
    X, a, b = (
        np.array(np.load(folder / f"{name}.npy", mmap_mode="r")[begin:end])
        for name in names
    )
    negative, positive = np.load(folder / "children.npy")
    return SurrogateProblem(negative, positive, [X] * len(negative), a, b)


def loaded(folder: Path, begin: int, end: int) -> ProblemRows:
    """The same as a chunk."""
    return ProblemRows(problem_of(folder, begin, end))


# on two workers ---------------------------------------------------------------------------


def alone(folder: Path) -> dict[str, Any]:
    """Solve in one process."""
    problem = problem_of(folder, 0, None)
    started, used = time.perf_counter(), time.process_time()
    solution = solve(problem, tol=TOL, l2=RIDGE)
    return {
        "parts": parts_of(problem),
        "shape": {"N": problem.n_samples, "K": problem.n_leaves},
        "seconds": time.perf_counter() - started,
        "cpu_seconds": time.process_time() - used,
        "iterations": solution.iterations,
        "certificate": solution.certificate,
        "coef": solution.coef,
        "peak_memory_gib": peak_memory(),
    }


def on_two_workers(report: Report, folder: Path) -> None:
    """Solve in one process, then on two worker processes."""
    import dask
    from distributed import Client, LocalCluster

    one = apart(alone, folder)
    parts, shape = one.pop("parts"), one.pop("shape")
    certificate, coef = one.pop("certificate"), one.pop("coef")
    shape["chunks"] = len(parts)
    report.add(kind="one process", **shape, **one, gap=certificate.gap)
    sources = [Source(loaded, (folder, part.start, part.stop)) for part in parts]
    spawn = "distributed.nanny.pre-spawn-environ"
    with (
        dask.config.set({spawn: {**dask.config.get(spawn), **KEEP_MEMORY}}),
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit=0
        ) as cluster,
        Client(cluster) as client,
    ):
        rows = OnWorkers(client, sources)
        started = time.perf_counter()
        solved = solve_rows(rows, TOL, RIDGE)
        seconds = time.perf_counter() - started
        memory = sorted(client.run(peak_memory).values())
        used = sorted(client.run(time.process_time).values())
        rows.close()
    upper = certificate.upper
    report.add(
        kind="two workers",
        **shape,
        seconds=seconds,
        cpu_seconds_of_workers=[round(each) for each in used],
        iterations=solved.iterations,
        gap=solved.certificate.gap,
        peak_memory_gib_of_workers=[round(each, 2) for each in memory],
        peak_memory_gib_of_client=peak_memory(),
        objective_differs_by=abs(solved.certificate.upper - upper) / upper,
        same_coefficients=all(map(np.array_equal, solved.coef, coef)),
    )


# out of core ------------------------------------------------------------------------------


def noisy(folder: Path, begin: int, end: int) -> ProblemRows:
    """Rows of Forest, over and over, their readings with noise of their own."""
    names = ("features", "negative", "positive")
    X, a, b = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in names)
    rows = np.arange(begin, end) % len(X)
    readings = X[rows]
    noise = np.random.default_rng(begin).normal(size=readings.shape)
    readings[:, :-1] += NOISE * noise[:, :-1]
    negative, positive = np.load(folder / "children.npy")
    return ProblemRows(
        SurrogateProblem(
            negative, positive, [readings] * len(negative), a[rows], b[rows]
        )
    )


def steps(folder: Path, n_rows: int, n_steps: int, memory: float) -> dict[str, Any]:
    """Take steps of the interior point on so many rows; 0 GiB stands for no limit."""
    frame = loaded(folder, 0, 0).problem
    parts = cut(n_rows, rows_at_once(frame), sum(frame.n_features))
    sources = [Source(noisy, (folder, part.start, part.stop)) for part in parts]
    clock: list[tuple[float, float]] = []

    def now() -> tuple[float, float]:
        return time.perf_counter(), time.process_time()

    def watch(progress: Any) -> bool:
        clock.append(now())
        return len(clock) > n_steps

    with tempfile.TemporaryDirectory() as chunks, warnings.catch_warnings():
        warnings.simplefilter("ignore", CertificateWarning)
        rows: Chunks
        if memory:
            rows = OnDisk(Path(chunks), sources, memory * 2**30)
        else:
            rows = InMemory([source.make() for source in sources])
        started = now()
        solved = solve_rows(rows, TOL, RIDGE, callback=watch)
        ended = now()
    seconds, used = np.mean(np.diff(clock, axis=0), axis=0)
    return {
        "N": n_rows,
        "chunks": len(parts),
        "chunks_in_memory": len(rows.held) if isinstance(rows, OnDisk) else len(parts),
        "seconds_to_begin": clock[0][0] - started[0],
        "seconds_an_iteration": float(seconds),
        "cpu_seconds_an_iteration": float(used),
        "seconds_of_certificate": ended[0] - clock[-1][0],
        "cpu_seconds_of_certificate": ended[1] - clock[-1][1],
        "gap_so_far": solved.certificate.gap,
        "peak_memory_gib": peak_memory(),
    }


def out_of_core(arguments: argparse.Namespace, report: Report, folder: Path) -> None:
    """Steps of the interior point on rows in files, and in memory where these are few."""
    taken: list[float] = []
    for n_rows in arguments.out_of_core:
        if n_rows <= arguments.in_memory:
            within = apart(steps, folder, n_rows, arguments.iterations, 0.0)
            report.add(kind="in memory", **within)
        found = apart(steps, folder, n_rows, arguments.iterations, arguments.memory)
        taken.append(found["cpu_seconds_an_iteration"])
        report.add(kind="out of core", **found)
    if len(taken) > 1:
        report.add(kind="growth", exponent=exponent(arguments.out_of_core, taken))


if __name__ == "__main__":
    main()
