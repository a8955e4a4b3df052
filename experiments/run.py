"""The runner of all studies: measures what is missing, then writes tables and figures.

    python -m experiments.run list                    the studies
    python -m experiments.run money                   everything of one
    python -m experiments.run money bupa pima         some of its data
    python -m experiments.run paper --quick           few rows, few values: minutes
    python -m experiments.run paper --minutes 15      starts nothing new after that
    python -m experiments.run paper --only cascade    what a progress line would say
    python -m experiments.run paper --tables          runs nothing

A study is a grid of cells. Each cell is measured in a process, and its lines are appended
to docs/results/<file>.jsonl at once when it ends; lines that are there are not measured
again, so a run may be interrupted, and the same command goes on. To measure something
again, delete its lines. Commit, versions, machine and seeds are in <file>.json; the field
``run`` of a line says which.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from experiments import study as registry
from experiments.data import MissingFileError
from experiments.provenance import note_run
from experiments.results import FOLDER, Line, append, read
from experiments.study import Cell, Study
from sensortree.exceptions import FewRowsWarning


def main(arguments: list[str] | None = None) -> None:
    """Run the study that the arguments name, or list those there are."""
    arguments = sys.argv[1:] if arguments is None else arguments
    known = registry.names()
    name = arguments[0] if arguments else "--help"
    if name == "list":
        print("\n".join(f"{name:14} {registry.title(name)}" for name in known))
        return
    if name in ("-h", "--help"):
        print(__doc__)
        return
    if name not in known:
        raise SystemExit(f"{name} is not a study; those are {', '.join(known)}.")
    run(registry.study(name), arguments[1:], f"python -m experiments.run {name}")


def run(study: Study, arguments: list[str] | None = None, program: str = "") -> None:
    """Measure what is missing of a study, and of those along with it; write the tables."""
    given = parsed(study, arguments, program)
    folder = given.output or (FOLDER / "quick" if given.quick else FOLDER)
    deadline = time.monotonic() + 60 * given.minutes
    if not given.tables:
        for one in (*study.along, study):
            todo = missing(
                one, wanted(one, given.data, given.quick), given.quick, folder
            )
            todo = [cell for cell in todo if given.only in str(cell)]
            measure(one, todo, folder, given.n_jobs, deadline)
    for one in (*study.along, study):
        write(one, folder)


def parsed(study: Study, arguments: list[str] | None, program: str) -> Any:
    """The arguments, with names of data that the study knows."""
    parser = argparse.ArgumentParser(program or None)
    known = [n for one in (*study.along, study) for n in (*one.data, *one.on_request)]
    known = list(dict.fromkeys(known))
    parser.add_argument(
        "data", nargs="*", metavar="DATA", help=f"of {', '.join(known)}"
    )
    parser.add_argument("--quick", action="store_true", help="few rows, few values")
    parser.add_argument("--n-jobs", type=int, default=1, help="cells run at a time")
    parser.add_argument("--output", type=Path, help="folder of the results")
    parser.add_argument("--only", default="", help="what a cell's name must contain")
    parser.add_argument(
        "--minutes", type=float, default=math.inf, help="start nothing new after that"
    )
    parser.add_argument("--tables", action="store_true", help="run nothing")
    given = parser.parse_args(arguments)
    for name in given.data:
        if name not in known:
            parser.error(f"{name} is not among its data; those are {', '.join(known)}")
    return given


def wanted(study: Study, data: list[str], quick: bool) -> list[str]:
    """Data of a study that are to be run, in its order."""
    usual = study.quickly if quick and study.quickly is not None else study.data
    known = (*study.data, *study.on_request)
    return [name for name in known if name in (data or usual)]


# the grid -----------------------------------------------------------------------------


def missing(study: Study, data: Iterable[str], quick: bool, folder: Path) -> list[Cell]:
    """Cells with something to measure; what cannot be measured is said on stderr."""
    lines = read(folder / f"{study.file}.jsonl")
    done, found, absent = study.done(lines), [], []
    for name in data:
        try:
            found += [
                replace(cell, quick=quick).without(done, study.key)
                for cell in study.cells(name, quick, lines)
            ]
        except MissingFileError as error:
            absent.append(error)
            say(f"{name} is left out: {error}")
    if absent and not found:
        raise absent[0]
    return installed([cell for cell in found if cell.values])


def installed(cells: list[Cell]) -> list[Cell]:
    """Cells whose packages are there."""
    for package in dict.fromkeys(cell.needs for cell in cells if cell.needs):
        if importlib.util.find_spec(package) is None:
            say(f"{package} is not here: pip install 'sensortree[compare]' brings it.")
            cells = [cell for cell in cells if cell.needs != package]
    return cells


def measure(
    study: Study, todo: list[Cell], folder: Path, n_jobs: int, deadline: float
) -> None:
    """Measure cells side by side, times alone at the end; append each as it comes in."""
    if not todo:
        return
    path = folder / f"{study.file}.jsonl"
    number, provenance = 0, note_run(path.with_suffix(".json"), study.seeds)

    def tasks(cells: list[Cell]) -> Iterator[Any]:
        for cell in cells:
            if time.monotonic() < deadline:
                known = study.known(cell, read(path))
                left = cell.without(study.done(known), study.key)
                yield delayed(measured)(study, left, known)

    together = [cell for cell in todo if not cell.alone]
    alone = [cell for cell in todo if cell.alone]
    for group, jobs in ((together, n_jobs), (alone, 1)):
        parallel = Parallel(
            n_jobs=jobs, return_as="generator_unordered", pre_dispatch="n_jobs"
        )
        for cell, lines, seconds in parallel(tasks(group)):
            number += 1
            append(path, ({**line, "run": provenance} for line in lines))
            say(f"[{number}/{len(todo)}] {cell}: {seconds:.1f} s")
    if number < len(todo):
        left = len(todo) - number
        say(f"{left} of {len(todo)} are left; the same command runs them.")


def measured(
    study: Study, cell: Cell, known: list[Line]
) -> tuple[Cell, list[Line], float]:
    """Lines of a cell, what identifies them first, and how long they took."""
    started = time.perf_counter()
    # Everybody's methods have one thread, also those that would take more by themselves.
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", FewRowsWarning)
        lines = [*known, *(study.measure(cell) if cell.values else ())]
    lines = [in_order({**cell.fields, **line}, study.key) for line in lines]
    return cell, lines, time.perf_counter() - started


def in_order(line: Line, key: tuple[str, ...]) -> Line:
    """A line that begins with what identifies it."""
    return {**{name: line[name] for name in key if name in line}, **line}


def say(text: str) -> None:
    """Write to stderr at once."""
    print(text, file=sys.stderr, flush=True)


# what is read -------------------------------------------------------------------------


def write(study: Study, folder: Path) -> None:
    """Write every table and figure of a study, and print the tables."""
    lines = [read(folder / f"{one.file}.jsonl") for one in (study, *study.along)]
    if not lines[0]:
        say(f"there is nothing in {study.file}.jsonl, so no table is written.")
        return
    for name, text in study.pages(*lines).items():
        (folder / name).write_text(text, encoding="utf-8")
        print(f"{name}\n\n{text}")
    for name, figure in study.pictures(*lines).items():
        from experiments.figures import save

        save(figure, folder / name)


if __name__ == "__main__":
    main()
