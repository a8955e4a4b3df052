"""Planted problems: how near a default fit comes to the best policy there is.

    python -m benchmarks.planted                          all problems, three sizes
    python -m benchmarks.planted xor parity --rows 300    some problems, one size
    python -m benchmarks.planted --list                   what the problems are
    python -m benchmarks.planted --output FILE --jobs 2   keep lines; measure those missing
    python -m benchmarks.planted --table FILE [FILE]      only the table, before / after

Each problem has discrete sensors, some with a little noise, and its best policy is known by
dynamic programming, its best fixed set by enumeration (`benchmarks.population`). Risk is
that of the fitted model on the whole population, mean of the seeds. The ratio is (tree -
optimum) / (best fixed set - optimum); where the best fixed set is the optimum, it is the
excess over it that counts, marked with a plus sign. Seconds are of one process, by its own
clock. To compare two versions of the library, run it with PYTHONPATH set to each, and ask
for a table of both files.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from benchmarks.planted_problems import PROBLEMS
from experiments.results import Line, append, read
from sensortree import SensorTreeClassifier

ROWS, SEEDS = (300, 1_000, 5_000), 5
# Risks this near are the same: lines keep six digits.
SAME = 1e-5


def measure(problem: str, n_rows: int, seed: int) -> Line:
    """Fit once with default settings, and judge the model on the whole population."""
    warnings.simplefilter("ignore")
    population = PROBLEMS[problem]()
    X, y = population.sample(n_rows, seed)
    seen = np.unique(y)
    loss = None if population.loss is None else population.losses[np.ix_(seen, seen)]
    model = SensorTreeClassifier(population.declared(), cost_weight=1, loss=loss)
    started = time.process_time()
    try:
        model.fit(X, y)
    except Exception as error:
        error.add_note(f"while fitting {problem}, {n_rows} rows, seed {seed}")
        raise
    seconds = time.process_time() - started
    risk, cost = population.risk(model)
    return {
        "problem": problem,
        "rows": n_rows,
        "seed": seed,
        "optimum": population.optimum,
        "fixed": population.fixed[0],
        "risk": risk,
        "cost": cost,
        "seconds": seconds,
        "chosen": chosen(model),
        "leaves": model.tree_.n_leaves,
    }


def chosen(model: Any) -> str:
    """The structure and the kind of leaf that a fit took, by any version of the library."""
    compared = getattr(model, "comparison_", None)
    if compared is not None:
        return str(compared.chosen)
    leaf = getattr(model, "leaf_report_", None)
    kind = "" if leaf is None else f", {leaf.choice}"
    return f"{model.structure_report_.structure}{kind}"


def gap(line: Line) -> float:
    """By how much the best policy is better than the best fixed set."""
    found = float(line["fixed"] - line["optimum"])
    return found if found > SAME else 0.0


def shortfall(lines: Sequence[Line]) -> float:
    """How far the mean risk is above the optimum: as a share of the gap if there is one."""
    excess = float(np.mean([line["risk"] - line["optimum"] for line in lines]))
    return excess / (gap(lines[0]) or 1.0) if abs(excess) > SAME else 0.0


def of(lines: Sequence[Line], **fields: Any) -> list[Line]:
    """The lines with these fields."""
    return [line for line in lines if all(line[k] == v for k, v in fields.items())]


def table(files: Sequence[Sequence[Line]]) -> str:
    """A row for each problem, then means and the worst; files beside each other."""
    lines = [line for file in files for line in file]
    if not lines:
        return "no lines"
    sizes = sorted({line["rows"] for line in lines})
    known = [name for name in PROBLEMS if of(lines, problem=name)]
    heads = ["problem", "optimum", "best fixed set"]
    heads += [f"{what}, {size:,}" for what in ("risk", "ratio") for size in sizes]
    shown = [[*heads, "seconds", "chosen"]]

    def beside(say: Any, **fields: Any) -> str:
        """What is said of each file, or a dash where it has no such lines."""
        found = [of(file, **fields) for file in files]
        return " / ".join(say(some) if some else "-" for some in found)

    for name in known:
        first = of(lines, problem=name)[0]
        cells = [name, f"{first['optimum']:.3f}", f"{first['fixed']:.3f}"]
        cells += [beside(said_risk, problem=name, rows=size) for size in sizes]
        cells += [beside(said_shortfall, problem=name, rows=size) for size in sizes]
        cells += [beside(said_seconds, problem=name), beside(said_chosen, problem=name)]
        shown.append(cells)
    for title, positive in (("ratio", True), ("excess", False)):
        names = [n for n in known if (gap(of(lines, problem=n)[0]) > 0) == positive]
        for what, summary in (("mean", np.mean), ("worst", np.max)):
            cells = [f"**{what} {title}**", "", ""] + [""] * len(sizes)
            for size in sizes:

                def said(
                    some: list[Line], by: Any = summary, names: Any = names
                ) -> str:
                    each = [of(some, problem=name) for name in names]
                    found = [shortfall(measured) for measured in each if measured]
                    return f"{by(found):.3f}" if found else "-"

                cells.append(beside(said, rows=size))
            shown.append([*cells, "", ""])
    rows = ["| " + " | ".join(row) + " |" for row in shown]
    return "\n".join([rows[0], "|" + "---|" * len(shown[0]), *rows[1:]])


def said_risk(lines: list[Line]) -> str:
    """Mean risk."""
    return f"{np.mean([line['risk'] for line in lines]):.3f}"


def said_shortfall(lines: list[Line]) -> str:
    """The ratio, or the excess with its sign."""
    return f"{shortfall(lines):{'.2f' if gap(lines[0]) else '+.3f'}}"


def said_seconds(lines: list[Line]) -> str:
    """Mean seconds of a fit."""
    return f"{np.mean([line['seconds'] for line in lines]):.1f}"


def said_chosen(lines: list[Line]) -> str:
    """What was chosen, the most frequent first."""
    names = [line["chosen"] for line in lines]
    counts = {name: names.count(name) for name in names}
    ranked = sorted(counts, key=lambda name: (-counts[name], name))
    return "; ".join(f"{name} ({counts[name]})" for name in ranked)


def said_problems() -> str:
    """Every problem in one line, with its optimum and its best fixed set."""
    lines = ["| problem | optimum | best fixed set | what it is |", "|---|---|---|---|"]
    for name, make in PROBLEMS.items():
        population = make()
        risk, bought = population.fixed
        what = " ".join((make.__doc__ or "").split())
        lines.append(
            f"| {name} | {population.optimum:.3f} | {risk:.3f} "
            f"({', '.join(bought) or 'nothing'}) | {what} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problems", nargs="*", choices=[*PROBLEMS, []])
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument(
        "--output", type=Path, help="file of JSON lines; goes on with it"
    )
    parser.add_argument("--table", type=Path, nargs="+", metavar="FILE")
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    if arguments.list:
        print(said_problems())
        return
    if arguments.table:
        print(table([read(file) for file in arguments.table]))
        return
    lines = read(arguments.output) if arguments.output else []
    have = {(line["problem"], line["rows"], line["seed"]) for line in lines}
    problems = arguments.problems or list(PROBLEMS)
    wanted = [
        cell
        for cell in product(problems, arguments.rows, range(arguments.seeds))
        if cell not in have
    ]
    work = (delayed(measure)(*cell) for cell in wanted)
    for line in Parallel(arguments.jobs, return_as="generator_unordered")(work):
        if arguments.output:
            append(arguments.output, [line])
        lines.append(line)
    asked = [line for line in lines if line["problem"] in problems]
    print(table([asked]))


if __name__ == "__main__":
    main()
