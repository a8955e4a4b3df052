"""The structured solver beside general ones: one command, one table.

    python -m benchmarks.solver --quick          under ten minutes
    python -m benchmarks.solver                  with the largest sizes and every form
    python -m benchmarks.solver --leaves         up to 128 leaves, seconds and memory
    python -m benchmarks.solver --threads        one thread beside two
    python -m benchmarks.solver --forest         all of Forest on this machine
    python -m benchmarks.solver --forest --torch cuda    the same on a GPU

`highs` (interior point without crossover) and `clarabel` are given the compact form, with
`-path` behind the name the paper's own, with `-recursive` and `-margins` those in between
(`rivals.py`); `highs-simplex` is HiGHS's dual simplex. The structured solver is timed
twice: where all nodes share their features, and where each has an array of its own, which
is the same linear program. Each solver has one thread (`solve` sees to BLAS for all of
them, and HiGHS is told) and a process of its own, so that its peak memory, above what the
problem itself takes, is seen; a run beyond the time limit is ended and its line says so.
Seconds are the clock's, cpu_seconds those that the process had: on a machine with other
work, ratios of the latter are the fairer ones. General solvers are asked for a hundredth of
the gap, since their tolerance is on residuals; every answer is certified by us and its gap
is in the table. Ratios are of seconds in the same run. Results go to stdout, and with
``--output FILE`` also to a file of JSON lines.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.problems import forest, synthetic, with_own_features
from benchmarks.rivals import RIVALS, n_rows
from experiments.results import append
from sensortree.exceptions import CertificateWarning
from sensortree.program import SOLVERS, Progress, Solver, SurrogateProblem, solve

ROOT = Path(__file__).resolve().parent.parent
SIZES = [(1_000, 4, 9), (2_000, 8, 21), (4_000, 8, 21), (5_000, 16, 31)]
OWN = "structured, own features"
BEST_FORMS = ["highs", "clarabel", "clarabel-margins"]
OTHER_FORMS = ["highs-path", "highs-recursive", "clarabel-path", "clarabel-recursive"]
LIMIT, QUICK_LIMIT = 240, 120  # seconds for one solver on one problem
MANY_LEAVES = [
    (6_000, k, 21, shape) for k in (16, 64, 128) for shape in ("balanced", "chain")
]
THREADS = [(n, k, 21) for n in (4_000, 40_000) for k in (8, 16)]
GROWTH = {
    "N": [(n, 8, 21) for n in (1_000, 5_000, 25_000, 200_000)],
    "K": [(5_000, k, 11) for k in (2, 4, 8, 16, 32)],
    "D": [(5_000, 8, d) for d in (5, 11, 21, 41)],
}


def main() -> int:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--quick", action="store_true", help="leave out the slowest runs"
    )
    parser.add_argument("--one", help=argparse.SUPPRESS)  # JSON: size and solver
    parser.add_argument("--leaves", action="store_true", help="only many leaves")
    parser.add_argument("--threads", action="store_true", help="only threads")
    parser.add_argument("--forest", action="store_true", help="only Forest")
    parser.add_argument("--rows", type=int, help="rows of Forest; all by default")
    parser.add_argument("--tol", type=float, help="gap for Forest, 1e-4 by default")
    parser.add_argument(
        "--torch", metavar="DEVICE", help="PyTorch arrays on this device"
    )
    parser.add_argument("--jobs", type=int, default=1, help="threads for Forest")
    parser.add_argument("--output", help="also write JSON lines to this file")
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(run_one(**json.loads(arguments.one))))
        return 0
    report = Report(arguments.output)
    report.add(kind="machine", machine=machine())
    if arguments.forest:
        run_forest(arguments, report)
    elif arguments.leaves:
        many_leaves(report)
    elif arguments.threads:
        compare_threads(report)
    else:
        compare(arguments.quick, report)
        grow(arguments.quick, report)
    return 0


class Report:
    """Prints a line per measurement, and keeps it as JSON."""

    def __init__(self, path: str | None):
        self.path = Path(path) if path else None
        if self.path:
            self.path.unlink(missing_ok=True)

    def add(self, **row: Any) -> None:
        """Show and keep one measurement."""
        shown = "  ".join(
            f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v}"
            for k, v in row.items()
        )
        print(shown, flush=True)
        if self.path:
            append(self.path, [row])


def machine() -> str:
    """The machine and the versions, in one line."""
    import scipy

    return (
        f"{platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}, NumPy {np.__version__}, "
        f"SciPy {scipy.__version__}"
    )


def timed(
    problem: SurrogateProblem,
    solver: str,
    tol: float = 1e-6,
    **options: Any,
) -> Any:
    """Solve, certificate warnings aside: the gap is in the table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CertificateWarning)
        return solve(problem, solver, tol, **options)


def compare(quick: bool, report: Report) -> None:
    """Every solver on the same problems."""
    for size in SIZES:
        rivals = rivals_at(size[0], quick)
        problem = synthetic(*size)
        base: float | None = None
        for solver in ("structured", OWN, *rivals):
            measured = in_own_process(size, solver, QUICK_LIMIT if quick else LIMIT)
            base = base or measured["seconds"]
            seconds = measured["seconds"]
            report.add(
                kind="compare",
                N=size[0],
                K=size[1],
                D=size[2],
                p=sum(problem.n_features),
                rows=n_rows(solver, problem),
                solver=solver,
                **measured,
                times_slower=seconds / base if seconds else None,
            )


def rivals_at(n_samples: int, quick: bool) -> list[str]:
    """General solvers to be timed at a size: all of them where they are quick enough."""
    if n_samples <= 2_000 or (n_samples <= 4_000 and not quick):
        return [*BEST_FORMS, "highs-simplex", *OTHER_FORMS]
    if not quick:
        return [*BEST_FORMS, "highs-simplex"]
    return BEST_FORMS if n_samples <= 4_000 else ["highs"]


def in_own_process(
    size: tuple[int, ...], solver: str, limit: float, **options: Any
) -> dict[str, Any]:
    """Measure a solver in a fresh process, which is ended at the limit."""
    task = json.dumps({"size": size, "solver": solver, **options})
    command = [sys.executable, "-m", "benchmarks.solver", "--one", task]
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=limit + 10,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"seconds": None, "ended": f"no answer in {limit} s"}
    if done.returncode:
        reason = done.stderr.strip().rpartition("\n")[2]
        return {"seconds": None, "ended": reason}
    measured: dict[str, Any] = json.loads(done.stdout)
    return measured


def run_one(
    size: list[int],
    solver: str,
    shape: str = "balanced",
    tol: float = 1e-6,
    n_jobs: int = 1,
) -> dict[str, Any]:
    """Measure a solver here: the fastest of a few runs, and the memory of the first."""
    SOLVERS.update(RIVALS)
    problem = synthetic(*size, shape=shape)
    if solver == OWN:
        problem = with_own_features(problem)
    name = solver.partition(",")[0]
    spent: list[float] = []
    SOLVERS[name] = clocked(SOLVERS[name], spent)
    before = peak_memory()
    runs, cpu = [], []
    while not runs or (len(runs) < 20 and sum(run.seconds for run in runs) < 2):
        runs.append(timed(problem, name, tol, n_jobs=n_jobs))
        cpu.append(sum(spent))  # a solver may be asked twice
        spent.clear()
        if len(runs) == 1:
            memory = peak_memory() - before
    best = min(runs, key=lambda run: run.seconds)
    return {
        "seconds": best.seconds,
        "cpu_seconds": min(cpu),
        "iterations": best.iterations,
        "gap": best.certificate.gap,
        "memory_mib": 1024 * memory,
    }


def clocked(solver: Solver, spent: list[float]) -> Solver:
    """The same solver, which also notes the time that the process had for each run."""

    def run(problem: SurrogateProblem, options: Any) -> Any:
        started = time.process_time()
        found = solver.run(problem, options)
        spent.append(time.process_time() - started)
        return found

    return replace(solver, run=run)


def many_leaves(report: Report) -> None:
    """Time and memory of our own solver with features of each node's own."""
    for *size, shape in MANY_LEAVES:
        measured = in_own_process(tuple(size), OWN, 600, shape=shape, tol=1e-4)
        report.add(kind="leaves", N=size[0], K=size[1], shape=shape, **measured)


def compare_threads(report: Report) -> None:
    """Seconds on one thread and on two."""
    for size in THREADS:
        for solver in ("structured", OWN):
            seconds = {
                n_jobs: in_own_process(size, solver, 600, n_jobs=n_jobs)["seconds"]
                for n_jobs in (1, 2)
            }
            report.add(
                kind="threads",
                N=size[0],
                K=size[1],
                solver=solver,
                one=seconds[1],
                two=seconds[2],
                times_faster=seconds[1] / seconds[2],
            )


def grow(quick: bool, report: Report) -> None:
    """How the structured solver's seconds grow with N, K and D."""
    for name, sizes in GROWTH.items():
        if quick:
            sizes = [size for size in sizes if size[0] <= 50_000]
        values, seconds, per_iteration = [], [], []
        for size in sizes:
            problem = synthetic(*size)
            timed(problem, "structured", n_jobs=1)
            run = timed(problem, "structured", n_jobs=1)
            values.append(size["NKD".index(name)])
            seconds.append(run.seconds)
            per_iteration.append(run.seconds / max(1, run.iterations))
            report.add(
                kind=f"growth in {name}",
                N=size[0],
                K=size[1],
                D=size[2],
                seconds=run.seconds,
                iterations=run.iterations,
                gap=run.certificate.gap,
                peak_memory_gib=peak_memory(),
            )
        report.add(
            kind=f"exponent in {name}",
            of_seconds=exponent(values, seconds),
            of_seconds_per_iteration=exponent(values, per_iteration),
        )


def exponent(sizes: list[int], seconds: list[float]) -> float:
    """Slope of log seconds against log size."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def peak_memory() -> float:
    """Most memory this process has had, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def run_forest(arguments: argparse.Namespace, report: Report) -> None:
    """All of Forest, or some rows of it."""
    problem = forest(arguments.rows)
    if arguments.torch:
        problem = to_torch(problem, arguments.torch)
        # The first call on a device loads its libraries; that is not the solver's time.
        timed(to_torch(forest(2_000), arguments.torch), "structured")
    milestones: dict[float, tuple[int, float]] = {}
    started = time.perf_counter()

    def watch(progress: Progress) -> None:
        gap = (progress.upper - progress.lower) / max(1.0, abs(progress.upper))
        for goal in (1e-2, 1e-3, 1e-4, 1e-5, 1e-6):
            if 0 <= gap <= goal and goal not in milestones:
                milestones[goal] = (progress.iteration, time.perf_counter() - started)

    run = timed(
        problem,
        "structured",
        arguments.tol or 1e-4,
        n_jobs=arguments.jobs,
        callback=watch,
    )
    total = time.perf_counter() - started
    for goal, (iteration, seconds) in milestones.items():
        report.add(
            kind="forest, own estimate", gap=goal, iteration=iteration, seconds=seconds
        )
    report.add(
        kind="forest",
        N=problem.n_samples,
        K=problem.n_leaves,
        p=sum(problem.n_features),
        device=arguments.torch or f"{arguments.jobs} threads",
        seconds=run.seconds,
        seconds_with_certificate=total,
        iterations=run.iterations,
        gap=run.certificate.gap,
        peak_memory_gib=peak_memory(),
    )


def to_torch(problem: SurrogateProblem, device: str) -> SurrogateProblem:
    """Move a problem's arrays to a PyTorch device."""
    import torch

    def move(array: np.ndarray) -> Any:
        return torch.asarray(np.ascontiguousarray(array), device=device)

    shared = {id(array): move(array) for array in problem.features}
    return SurrogateProblem(
        problem.negative,
        problem.positive,
        [shared[id(array)] for array in problem.features],
        move(problem.lost_if_negative),
        move(problem.lost_if_positive),
    )


if __name__ == "__main__":
    raise SystemExit(main())
