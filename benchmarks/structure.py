"""The searches for a structure: what they find, in what time; and against the literal one.

    python benchmarks/structure.py                   everything, hours on one core
    python benchmarks/structure.py segment digits    some data sets
    python benchmarks/structure.py ratio             only against the literal search
    python benchmarks/structure.py large             only Forest with 36,603 rows

Columns are sensors of cost 1; 16 leaves (8 on segment). Seconds are of one process with one
thread, by its own clock, so that other jobs on the machine do not count. The literal search
(``n_exact="all"``) trains the classifier of every extension; the same search with the
screen is timed on the same 4,000 rows of Forest, both with 4 leaves, since the literal one
does not end in an hour with 16, and both end with the same loss (eq.subsets_min, out of
fold). Lines go to docs/results/search.jsonl and the tables to docs/results/search.md; what
is there already is not run again.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

EXPERIMENTS = Path(__file__).resolve().parents[1] / "experiments"
sys.path.insert(0, str(EXPERIMENTS))  # their data and their files of results

from lines import FOLDER, append, read
from sklearn.ensemble import HistGradientBoostingClassifier
from structures import n_leaves_of, rows_of

from sensortree import SensorTreeClassifier
from sensortree.estimators.validation import read_rows
from sensortree.learning.prepare import prepare
from sensortree.progress import TextProgress
from sensortree.structure.search import run_search

RESULTS = FOLDER / "search.jsonl"
COST_WEIGHTS = {
    "segment": 0.01,
    "digits": 0.01,
    "landsat": 0.01,
    "forest": 0.005,
    "letter": 0.01,
}
SEARCHES = ("chain", "grown", "greedy")
EXACT = (1, 2, 3, 5, 8, "all")
SAMPLE, RATIO_LEAVES = 4_000, 4
# Leaf classifiers of the largest fits, by the names they have in the table.
LARGE: dict[str, Any] = {
    "auto": "logistic2",
    "auto, boosted leaves": HistGradientBoostingClassifier(random_state=0),
}


def search_line(name: str, structure: str) -> dict[str, Any]:
    """Fit once, and say what the search found."""
    X, y, *_ = rows_of(name)
    model = SensorTreeClassifier(
        structure=structure,
        n_leaves=n_leaves_of(name),
        cost_weight=COST_WEIGHTS[name],
    )
    started = time.process_time()
    model.fit(X, y)
    seconds = time.process_time() - started
    report, risk = model.structure_report_, model.decision_report_.risk
    return {
        "subsets": len(report.subsets),
        "sensors": len({sensor for subset in report.subsets for sensor in subset}),
        "loss": report.steps[-1]["loss"] if report.steps else None,
        "risk": risk[model.decision_report_.kept],
        "seconds": seconds,
        "classifiers": report.n_classifiers,
        "screened": report.n_screened,
    }


def ratio_line(n_exact: int | str) -> dict[str, Any]:
    """Search alone, by Algorithm 1, on a sample of Forest."""
    X, y, *_ = rows_of("forest")
    model = SensorTreeClassifier(
        n_exact=n_exact, n_leaves=RATIO_LEAVES, cost_weight=COST_WEIGHTS["forest"]
    )
    settings = model._settings()
    rows = read_rows(model, settings, X[:SAMPLE], y[:SAMPLE], None, None)
    prepared = prepare(rows, settings, TextProgress(verbose=False))
    started = time.process_time()
    _, report = run_search(prepared.search, "greedy", model.cost_weight, None)
    return {
        "seconds": time.process_time() - started,
        "loss": report.steps[-1]["loss"],
        "leaves": len(report.subsets),
        "classifiers": report.n_classifiers,
        "screened": report.n_screened,
    }


def large_line(classifier: str) -> dict[str, Any]:
    """Fit the default structure to 36,603 rows of Forest, in one process."""
    X, y, *_ = rows_of("forest36603")
    model = SensorTreeClassifier(
        cost_weight=COST_WEIGHTS["forest"], classifier=LARGE[classifier]
    )
    started = time.process_time()
    model.fit(X, y)
    return {
        "seconds": time.process_time() - started,
        "chosen": model.structure_report_.structure,
        "leaves": model.tree_.n_leaves,
    }


def table(lines: list[dict[str, Any]]) -> str:
    """What each search found, and the ratios, as Markdown."""
    rows = [
        "| data | search | subsets | sensors | its loss | training risk | seconds "
        "| classifiers trained | screened |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for line in lines:
        if line["kind"] == "search":
            loss = f"{line['loss']:.4f}" if "loss" in line else "-"
            rows.append(
                f"| {line['data']} | {line['name']} | {line['subsets']} "
                f"| {line['sensors']} | {loss} | {line['risk']:.4f} "
                f"| {line['seconds']:.0f} | {line['classifiers']} | {line['screened']} |"
            )
    ratios = {line["name"]: line for line in lines if line["kind"] == "ratio"}
    found = {str(n): ratios[str(n)] for n in EXACT if str(n) in ratios}
    rows += (
        []
        if not found
        else [
            "",
            "| compared exactly | loss | against the literal loss | seconds "
            "| times faster | classifiers trained | screened |",
            "|---|---|---|---|---|---|---|",
        ]
    )
    literal = found.get("all")
    for name, line in found.items():
        against = faster = "-"
        if literal is not None:
            against = f"{100 * (line['loss'] / literal['loss'] - 1):+.1f} %"
            faster = f"{literal['seconds'] / line['seconds']:.1f}"
        rows.append(
            f"| {name} | {line['loss']:.4f} | {against} | {line['seconds']:.0f} "
            f"| {faster} | {line['classifiers']} | {line['screened']} |"
        )
    rows += [
        f"\nForest, 36,603 rows, {line['name']}: {line['seconds']:.0f} seconds "
        f"({line['chosen']}, {line['leaves']} leaves)."
        for line in lines
        if line["kind"] == "large"
    ]
    return "\n".join(rows) + "\n"


def run(wanted: list[str]) -> None:
    """Run what is not among the results yet, and append it."""
    tasks: dict[tuple[str, str, str], Any] = {}
    for name in COST_WEIGHTS:
        for structure in SEARCHES:
            key = ("search", name, structure)
            tasks[key] = lambda n=name, s=structure: search_line(n, s)
    for n_exact in EXACT:
        tasks["ratio", "forest", str(n_exact)] = lambda n=n_exact: ratio_line(n)
    for name in LARGE:
        tasks["large", "forest", name] = lambda n=name: large_line(n)
    done = {(i["kind"], i["data"], i["name"]) for i in read(RESULTS)}
    for (kind, data, name), task in tasks.items():
        asked = data if kind == "search" else kind
        if asked in wanted and (kind, data, name) not in done:
            line = {"kind": kind, "data": data, "name": name, **task()}
            append(RESULTS, [line])
            print(f"{kind}, {data}, {name}: {line['seconds']:.0f} s", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    choices = [*COST_WEIGHTS, "ratio", "large"]
    parser.add_argument("what", nargs="*", choices=[*choices, []], default=[])
    run(parser.parse_args().what or choices)
    RESULTS.with_suffix(".md").write_text(table(read(RESULTS)), encoding="utf-8")
    print(table(read(RESULTS)))
