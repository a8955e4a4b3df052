"""The program of Forest on two worker processes beside one process, and out of core.

    python -m benchmarks.dask_fit                        all of Forest, 16 leaves
    python -m benchmarks.dask_fit --rows 20000           some rows of it
    python -m benchmarks.dask_fit --out-of-core 500000 1000000 10000000

The first solves the same program by `solve` in this process and by `solve_rows` on two
worker processes of a LocalCluster, with a ridge penalty of 1 and a gap of 1e-4, and prints
by how much the objectives differ, seconds (the clock's), and the most memory that each
process has had. The second repeats Forest with noise to so many rows, in files, within
``--memory`` GiB; it takes ``--iterations`` steps of the interior point and prints seconds
for each of them, which grow with the rows as the table says. Results go to stdout, and
with ``--output FILE`` also to a file of JSON lines.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.problems import forest
from benchmarks.solver import Report, exponent, machine, peak_memory
from sensortree import CertificateWarning
from sensortree.dask.disk import OnDisk
from sensortree.dask.log import Source
from sensortree.dask.workers import OnWorkers
from sensortree.program import SurrogateProblem, solve
from sensortree.program.chunks import cut
from sensortree.program.in_chunks import ProblemRows, solve_rows
from sensortree.program.solvers.structured.blocks import parts_of
from sensortree.program.solvers.structured.chunk import rows_at_once

TOL, RIDGE = 1e-4, 1.0
NOISE = 0.05  # standard deviations of each column


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, help="rows of Forest; all by default")
    parser.add_argument("--out-of-core", type=int, nargs="+", metavar="ROWS")
    parser.add_argument("--iterations", type=int, default=3)
    parser.add_argument("--memory", type=float, default=8.0, help="GiB")
    parser.add_argument("--output", help="a file of JSON lines")
    arguments = parser.parse_args()
    report = Report(arguments.output)
    print(machine(), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        if arguments.out_of_core:
            out_of_core(arguments, report, Path(folder))
        else:
            on_two_workers(arguments.rows, report, Path(folder))


def save(problem: SurrogateProblem, folder: Path) -> None:
    """Write a problem whose nodes share their features to files."""
    np.save(folder / "features.npy", problem.features[0])
    np.save(folder / "negative.npy", problem.lost_if_negative)
    np.save(folder / "positive.npy", problem.lost_if_positive)
    np.save(folder / "children.npy", np.stack([problem.negative, problem.positive]))


def loaded(folder: Path, begin: int, end: int) -> ProblemRows:
    """Some rows of a problem in files."""
    names = ("features", "negative", "positive")
    X, a, b = (
        np.array(np.load(folder / f"{name}.npy", mmap_mode="r")[begin:end])
        for name in names
    )
    negative, positive = np.load(folder / "children.npy")
    return ProblemRows(SurrogateProblem(negative, positive, [X] * len(negative), a, b))


def on_two_workers(n_rows: int | None, report: Report, folder: Path) -> None:
    """Solve in this process, then on two worker processes."""
    from distributed import Client, LocalCluster

    problem = forest(n_rows)
    save(problem, folder)
    parts = parts_of(problem)
    started = time.perf_counter()
    alone = solve(problem, tol=TOL, l2=RIDGE)
    shape = {"N": problem.n_samples, "K": problem.n_leaves, "chunks": len(parts)}
    report.add(
        kind="one process",
        **shape,
        seconds=time.perf_counter() - started,
        iterations=alone.iterations,
        gap=alone.certificate.gap,
        peak_memory_gib=peak_memory(),
    )
    del problem
    sources = [Source(loaded, (folder, part.start, part.stop)) for part in parts]
    with (
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
        rows.close()
    upper = alone.certificate.upper
    report.add(
        kind="two workers",
        **shape,
        seconds=seconds,
        iterations=solved.iterations,
        gap=solved.certificate.gap,
        peak_memory_gib_of_workers=[round(each, 2) for each in memory],
        objective_differs_by=abs(solved.certificate.upper - upper) / upper,
        same_coefficients=all(map(np.array_equal, solved.coef, alone.coef)),
    )


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


def out_of_core(arguments: argparse.Namespace, report: Report, folder: Path) -> None:
    """Steps of the interior point on rows in files."""
    frame = forest()
    save(frame, folder)
    at_once, n_coef = rows_at_once(frame), sum(frame.n_features)
    del frame
    taken: list[float] = []
    for n_rows in arguments.out_of_core:
        parts = cut(n_rows, at_once, n_coef)
        sources = [Source(noisy, (folder, part.start, part.stop)) for part in parts]
        times: list[float] = []

        def watch(progress: Any, times: list[float] = times) -> bool:
            times.append(time.perf_counter())
            return len(times) > arguments.iterations

        with tempfile.TemporaryDirectory() as chunks, warnings.catch_warnings():
            warnings.simplefilter("ignore", CertificateWarning)
            rows = OnDisk(Path(chunks), sources, arguments.memory * 2**30)
            started = time.perf_counter()
            solved = solve_rows(rows, TOL, RIDGE, callback=watch)
            ended = time.perf_counter()
        taken.append(float(np.mean(np.diff(times))))
        report.add(
            kind="out of core",
            N=n_rows,
            chunks=len(parts),
            chunks_in_memory=len(rows.held),
            seconds_to_begin=times[0] - started,
            seconds_an_iteration=taken[-1],
            seconds_of_certificate=ended - times[-1],
            gap_so_far=solved.certificate.gap,
            peak_memory_gib=peak_memory(),
        )
    if len(taken) > 1:
        report.add(kind="growth", exponent=exponent(arguments.out_of_core, taken))


if __name__ == "__main__":
    main()
