"""The paper's tables and figures: data sets x methods x trade-off values.

    python experiments/reproduce.py                       everything, hours on two cores
    python experiments/reproduce.py pima landsat          some problems (see problems.py)
    python experiments/reproduce.py --quick               every method, few rows, minutes
    python experiments/reproduce.py --minutes 15          starts nothing new after that
    python experiments/reproduce.py --only cascade        what a progress line would say

Lines go to docs/results/reproduce.jsonl, one per problem, leaf classifier, method, split
and value; those that are there already are not run again. ASTC and CSTC on Forest go to
forest.jsonl, as by `forest.py`. The runs, with commit, versions, seeds and machine, are in
reproduce.json. `tables.py` and `figures.py` then write what is read.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import forest
import numpy as np
from ablation import cegb_lines
from datasets import Dataset, MissingFileError
from joblib import Parallel, delayed
from lines import FOLDER, append, read
from methods import CASCADES, LEAVES, METHODS, TREES, system, values_of
from problems import LABELS, SMALL, WANTED, WIDE, Problem, problem, wide
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from streed import streed_lines

from sensortree import FewRowsWarning, SensorTreeClassifier, __version__

ROOT = Path(__file__).resolve().parent.parent
# Where only a cascade is published, and its leaves are linear.
WITH_CASCADE = ("pima", "landsat", "letter")
SEVERAL_CLASSES = ("landsat", "letter")
# What a quick run leaves out: other rows or labels of data that it has.
SAME = ("segment-official", "forest-7")
OUTSIDE = ("boosted trees on all sensors", "CEGB", "pystreed")
# Packages of the extra `compare`, by what they are needed for.
NEEDS = {"CEGB": "lightgbm", "pystreed": "pystreed"}
TOO_LARGE = ("letter",)  # for pystreed: 16,000 rows of 26 classes
TIMED = ("LP, as published", "AM", "ours", "CSTC", "ASTC", "CEGB")
TIMED_AT = 0.35  # error that everything is worth
SEARCH_SECONDS = 1200.0  # Algorithm 1 on many features would take hours
WIDE_WEIGHTS = (0.02, 0.01, 0.005, 0.002)
PACKAGES = ("numpy", "scipy", "scikit-learn", "joblib", "lightgbm", "pystreed")


@dataclass(frozen=True)
class Unit:
    """What one process runs: a method on one split, at values that share its leaves."""

    data: str
    leaves: str
    method: str
    split: int
    values: tuple[float, ...]
    quick: bool = False
    openml: bool = False

    def __str__(self) -> str:
        return f"{self.data}, {self.leaves} leaves, {self.method}, split {self.split}"


def units(name: str, quick: bool, openml: bool) -> list[Unit]:
    """Everything there is to run on a problem."""
    if name in WIDE:
        return wide_units(name, quick)
    cases = [(leaves, method) for leaves in LEAVES for method in TREES]
    if name in WITH_CASCADE:
        cases += [("linear", method) for method in CASCADES]
    if name in SEVERAL_CLASSES:
        cases += [("rest", method) for method in (*TREES[:3], *CASCADES)]
    splits = range(len(problem(name, quick, openml).splits))
    found = [
        Unit(name, leaves, method, split, values_of(method, quick), quick, openml)
        for leaves, method in cases
        for split in splits
    ]
    found += [
        Unit(name, "trees", method, split, (0.0,), quick, openml)
        for method in OUTSIDE
        for split in splits
        if not (method == "pystreed" and name in TOO_LARGE and not quick)
    ]
    times = [
        Unit(name, "ours", f"seconds: {method}", 0, (TIMED_AT,), quick, openml)
        for method in TIMED
    ]
    return found + times


def wide_units(name: str, quick: bool) -> list[Unit]:
    """ASTC and CSTC, and trees with learned structures, on many features."""
    wide(name, quick)  # says so now if the file is missing
    found = []
    for method, (kind, _) in forest.RUNS.items():
        values = METHODS[kind].values[::4] if quick else METHODS[kind].values
        found += [Unit(name, "linear", method, 0, (v,), quick) for v in values]
    if name != "forest-7":
        values = WIDE_WEIGHTS[:1] if quick else WIDE_WEIGHTS
        found += [
            Unit(name, "ours", method, 0, values, quick)
            for method in ("ours", "LP, as published")
        ]
    return found


def run(unit: Unit) -> list[dict[str, Any]]:
    """Lines of a unit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", FewRowsWarning)
        if unit.data in WIDE:
            lines = list(wide_lines(unit))
        else:
            few = problem(unit.data, unit.quick, unit.openml)
            if unit.method.startswith("seconds: "):
                lines = [seconds(unit, few)]
            elif unit.method in OUTSIDE:
                lines = list(outside_lines(unit, few))
            else:
                lines = list(path_lines(unit, few))
    data = f"{unit.data} (OpenML)" if unit.openml else unit.data
    return [
        {"data": data, "leaves": unit.leaves, "method": unit.method, **line}
        for line in lines
    ]


def path_lines(unit: Unit, few: Problem) -> Iterator[dict[str, Any]]:
    """Fit along the values on one split, and test."""
    data, (train, test) = few.data, few.splits[unit.split]
    weights = unit.values
    if unit.method != "Myopic":
        weights = tuple(v / few.everything for v in unit.values)
    model = system(unit.method, unit.leaves, few)
    started = time.process_time()
    path = model.fit_path(data.X[train], data.y[train], weights)
    spent = (time.process_time() - started) / len(weights)
    for value, fitted in zip(unit.values, path, strict=True):
        yield {
            "split": unit.split,
            "value": value,
            **tested(fitted, data.X[test], data.y[test]),
            "cpu_seconds": float(f"{spent:.3g}"),
        }


def tested(model: Any, X: Any, y: Any) -> dict[str, float]:
    """Mean cost and error on test rows."""
    return {
        "cost": float(model.acquisition_cost(X).mean()),
        "error": float(np.mean(model.predict(X) != y)),
    }


def outside_lines(unit: Unit, few: Problem) -> Iterator[dict[str, Any]]:
    """What users would take instead, on one split."""
    data, (train, test) = few.data, few.splits[unit.split]
    if unit.method == "CEGB":
        for line in cegb_lines(one_split(data, train, test)):
            value = float(f"{line.pop('tradeoff'):.3g}")
            yield {**line, "split": unit.split, "value": value}
        return
    if unit.method == "pystreed":
        for line in streed_lines(one_split(data, train, test)):
            yield {**line, "split": unit.split}
        return
    model = HistGradientBoostingClassifier(early_stopping=False, random_state=0)
    model.fit(data.X[train], data.y[train])
    error = float(np.mean(model.predict(data.X[test]) != data.y[test]))
    yield {"split": unit.split, "value": 0.0, "cost": few.everything, "error": error}


def one_split(data: Dataset, train: Any, test: Any) -> Dataset:
    """The rows of one split, as an official one."""
    rows = np.concatenate([train, test])
    official = np.repeat(np.array([0, 1], dtype=np.int8), [len(train), len(test)])
    return replace(data, X=data.X[rows], y=data.y[rows], official=official)


def seconds(unit: Unit, few: Problem) -> dict[str, Any]:
    """CPU seconds of a whole fit at one value."""
    data, (train, _) = few.data, few.splits[0]
    X, y = data.X[train], data.y[train]
    method, weight = unit.method.removeprefix("seconds: "), TIMED_AT / few.everything
    line: dict[str, Any] = {"split": 0, "value": TIMED_AT}
    if method == "CEGB":
        started = time.process_time()
        next(cegb_lines(one_split(data, train, train[:1])))
        return {**line, "fit_seconds": time.process_time() - started}
    if method in ("CSTC", "ASTC"):
        model = METHODS[method].make(sensors=data.sensors, costs=data.costs)
        started = time.process_time()
        model.fit(X, y)
        return {**line, "fit_seconds": time.process_time() - started}
    model = system(method, unit.leaves, few)
    started = time.process_time()
    model.fit_path(X, y, [weight])
    return {**line, "fit_seconds": time.process_time() - started}


def wide_lines(unit: Unit) -> Iterator[dict[str, Any]]:
    """ASTC and CSTC at one value, or a tree with a learned structure at some."""
    rows = wide(unit.data, unit.quick)
    arrays = (rows.X, rows.y, rows.X_test, rows.y_test)
    if unit.method in forest.RUNS:
        label = LABELS.get(unit.data, "binary")
        for value in unit.values:
            yield {"split": 0, **forest.cell(unit.method, label, value, arrays)}
        return
    model: Any = SensorTreeClassifier(max_time=SEARCH_SECONDS)
    if unit.method == "LP, as published":
        model = SensorTreeClassifier.as_published(
            structure="greedy", n_exact=3, max_time=SEARCH_SECONDS
        )
    started = time.process_time()
    path = model.fit_path(rows.X, rows.y, unit.values)
    spent = (time.process_time() - started) / len(unit.values)
    for value, fitted in zip(unit.values, path, strict=True):
        yield {
            "split": 0,
            "value": value,
            **tested(fitted, rows.X_test, rows.y_test),
            "cpu_seconds": float(f"{spent:.3g}"),
        }


# the grid -----------------------------------------------------------------------------


def file_of(line: dict[str, Any], folder: Path) -> Path:
    """Where a line goes: ASTC and CSTC on Forest have a file that forest.py knows."""
    goes = line["data"] in LABELS and line["method"] in forest.RUNS
    return folder / ("forest.jsonl" if goes else "reproduce.jsonl")


def done_in(folder: Path) -> set[tuple[Any, ...]]:
    """Problem, leaves, method, split and value of the lines that are there."""
    done = {
        (i["data"], i["leaves"], i["method"], i["split"], i["value"])
        for i in read(folder / "reproduce.jsonl")
    }
    names = {label: name for name, label in LABELS.items()}
    for line in read(folder / "forest.jsonl"):
        done.add((names[line["label"]], "linear", line["method"], 0, line["value"]))
    return done


def missing(unit: Unit, done: set[tuple[Any, ...]]) -> Unit:
    """The unit with the values that are not there yet."""
    data = f"{unit.data} (OpenML)" if unit.openml else unit.data
    key = (data, unit.leaves, unit.method, unit.split)
    if unit.method in NEEDS:  # their values are their own
        return unit if not any(k[:4] == key for k in done) else replace(unit, values=())
    return replace(unit, values=tuple(v for v in unit.values if (*key, v) not in done))


def collect(names: list[str], quick: bool, openml: bool, folder: Path) -> list[Unit]:
    """Units with something to run; what cannot be run is said on stderr."""
    done, found = done_in(folder), []
    for name in names:
        try:
            found += [missing(unit, done) for unit in units(name, quick, openml)]
        except MissingFileError as problem_with:
            if name not in WANTED:
                raise
            say(f"{name} is left out: {problem_with} {WANTED[name]}")
    for method, package in NEEDS.items():
        if importlib.util.find_spec(package) is None:
            say(f"{method} is left out: pip install 'sensortree[compare]' brings it.")
            found = [unit for unit in found if method not in unit.method]
    return [unit for unit in found if unit.values]


def say(text: str) -> None:
    """Write to stderr at once."""
    print(text, file=sys.stderr, flush=True)


def timed_run(unit: Unit) -> tuple[Unit, list[dict[str, Any]], float]:
    """Lines of a unit, and how long they took."""
    started = time.perf_counter()
    lines = run(unit)
    return unit, lines, time.perf_counter() - started


def execute(todo: list[Unit], folder: Path, n_jobs: int, minutes: float) -> None:
    """Run units side by side, times alone at the end; write each as it comes in."""
    folder.mkdir(parents=True, exist_ok=True)
    provenance = note_run(folder)
    deadline = time.monotonic() + 60 * minutes
    together = [u for u in todo if not u.method.startswith("seconds: ")]
    alone = [u for u in todo if u.method.startswith("seconds: ")]
    number = 0
    for group, jobs in ((together, n_jobs), (alone, 1)):
        tasks = (delayed(timed_run)(u) for u in group if time.monotonic() < deadline)
        parallel = Parallel(
            n_jobs=jobs, return_as="generator_unordered", pre_dispatch="n_jobs"
        )
        for unit, lines, spent in parallel(tasks):
            number += 1
            for line in lines:
                append(file_of(line, folder), [{**line, "run": provenance}])
            say(f"[{number}/{len(todo)}] {unit}: {spent:.1f} s")
    if number < len(todo):
        say(
            f"{len(todo) - number} of {len(todo)} are left; the same command runs them."
        )


def note_run(folder: Path) -> int:
    """Add this run's commit, versions and machine to reproduce.json; give its number."""
    path = folder / "reproduce.json"
    runs = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    this = provenance_of()
    if this not in runs:
        runs.append(this)
        path.write_text(json.dumps(runs, indent=1) + "\n", encoding="utf-8")
    return int(runs.index(this))


def provenance_of() -> dict[str, Any]:
    """What a result depends on besides its settings."""
    from importlib.metadata import PackageNotFoundError, version

    versions = {"sensortree": __version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "-"
    return {
        "commit": git("rev-parse", "--short", "HEAD"),
        "changed": bool(git("status", "--porcelain", "--", "src", "experiments")),
        "versions": versions,
        "machine": f"{processor()}, {os.cpu_count()} cores, {platform.system()}",
        "seeds": "splits 0, starts of AM 0, Forest's permutation 0",
    }


def git(*arguments: str) -> str:
    """What git says, or nothing where there is no repository."""
    try:
        said = subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return said.stdout.strip()


def processor() -> str:
    """Name of the processor."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.machine()
    names = [i.split(":", 1)[1].strip() for i in text.splitlines() if "model name" in i]
    return names[0] if names else platform.machine()


def main(arguments: list[str] | None = None) -> None:
    """Run what is missing, then write tables and figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    everything = [*SMALL, *WIDE]
    quickly = [name for name in everything if name not in SAME]
    parser.add_argument("data", nargs="*", metavar="problem", default=[])
    parser.add_argument("--quick", action="store_true", help="few rows, few values")
    parser.add_argument("--openml", action="store_true", help="fetch data from OpenML")
    parser.add_argument("--output", type=Path, help="folder of the results")
    parser.add_argument("--n-jobs", type=int, default=1, help="units run at a time")
    parser.add_argument(
        "--only", default="", help="what the description of a unit must contain"
    )
    parser.add_argument("--minutes", type=float, default=np.inf)
    given = parser.parse_args(arguments)
    unknown = [name for name in given.data if name not in everything]
    if unknown:
        parser.error(
            f"{unknown[0]} is not a problem; those are {', '.join(everything)}"
        )
    folder = given.output or (FOLDER / "quick" if given.quick else FOLDER)
    names = given.data or (quickly if given.quick else everything)
    todo = collect(names, given.quick, given.openml, folder)
    todo = [unit for unit in todo if given.only in str(unit)]
    execute(todo, folder, given.n_jobs, given.minutes)
    from figures import draw
    from tables import write

    write(folder)
    draw(folder)


if __name__ == "__main__":
    main()
