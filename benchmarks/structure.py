"""The searches for a structure: what they find, in what time; and against the literal one.

    python -m benchmarks.structure                   everything, hours on one core
    python -m benchmarks.structure segment digits    some data sets
    python -m benchmarks.structure ratio             only against the literal search
    python -m benchmarks.structure large             only Forest with 36,603 rows

Columns are sensors of cost 1; 16 leaves (8 on segment). Seconds are of one process with one
thread, by its own clock, so that other jobs on the machine do not count. The literal search
(``n_exact="all"``) trains the classifier of every extension; the same search with the
screen is timed on the same 4,000 rows of Forest, both with 4 leaves, since the literal one
does not end in an hour with 16, and both end with the same loss (eq.subsets_min, out of
fold). It is run as a study is, by `experiments.run`, with its options: lines go to
docs/results/search.jsonl and the tables to docs/results/search.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sklearn.ensemble import HistGradientBoostingClassifier

from experiments.methods import timed
from experiments.results import Line
from experiments.run import run
from experiments.studies.structures import data_of
from experiments.study import Cell, Study
from experiments.tables import markdown, of, or_dash
from sensortree import SensorTreeClassifier
from sensortree.estimators.validation import read_rows
from sensortree.learning.prepare import prepare
from sensortree.progress import TextProgress
from sensortree.structure.search import run_search

COST_WEIGHTS = {
    "segment": 0.01,
    "digits": 0.01,
    "landsat": 0.01,
    "forest": 0.005,
    "letter": 0.01,
}
SEARCHES = ("chain", "branched", "planned", "greedy")
EXACT = (1, 2, 3, 5, 8, "all")
SAMPLE, RATIO_LEAVES = 4_000, 4
# Leaf classifiers of the largest fits, by the names they have in the table.
LARGE: dict[str, Any] = {
    "auto": "logistic2",
    "auto, boosted leaves": HistGradientBoostingClassifier(random_state=0),
}


def cells(what: str, quick: bool, lines: list[Line]) -> Iterator[Cell]:
    """A cell for each search, or each of another kind."""
    kind = what if what in ("ratio", "large") else "search"
    data = "forest" if what in ("ratio", "large") else what
    for name in {"ratio": EXACT, "large": LARGE}.get(kind, SEARCHES):
        yield Cell({"kind": kind, "data": data, "name": str(name)}, alone=True)


def measure(cell: Cell) -> list[Line]:
    """Fit or search once."""
    kind, data, name = (cell.fields[field] for field in ("kind", "data", "name"))
    if kind == "search":
        return [search_line(data, name)]
    if kind == "ratio":
        return [ratio_line("all" if name == "all" else int(name))]
    return [large_line(name)]


def search_line(name: str, structure: str) -> Line:
    """Fit once, and say what the search found."""
    X, y, *_ = data_of(name).rows()
    model = SensorTreeClassifier(structure=structure, cost_weight=COST_WEIGHTS[name])
    _, seconds = timed(lambda: model.fit(X, y))
    report, risk = model.structure_report_, model.decision_report_.risk
    return {
        "subsets": len(report.subsets),
        "sensors": len({sensor for subset in report.subsets for sensor in subset}),
        "loss": report.steps[-1]["loss"] if report.steps else None,
        "risk": risk[model.decision_report_.kept],
        "seconds": seconds.cpu,
        "classifiers": report.n_classifiers,
        "screened": report.n_screened,
    }


def ratio_line(n_exact: int | str) -> Line:
    """Search alone, by Algorithm 1, on a sample of Forest."""
    X, y, *_ = data_of("forest").rows()
    model = SensorTreeClassifier(
        n_exact=n_exact, n_leaves=RATIO_LEAVES, cost_weight=COST_WEIGHTS["forest"]
    )
    settings = model._settings()
    rows = read_rows(model, settings, X[:SAMPLE], y[:SAMPLE], None, None)
    prepared = prepare(rows, settings, TextProgress(verbose=False))
    (_, report), seconds = timed(
        lambda: run_search(prepared.search, "greedy", model.cost_weight, None)
    )
    return {
        "seconds": seconds.cpu,
        "loss": report.steps[-1]["loss"],
        "leaves": len(report.subsets),
        "classifiers": report.n_classifiers,
        "screened": report.n_screened,
    }


def large_line(classifier: str) -> Line:
    """Fit the default structure to 36,603 rows of Forest, in one process."""
    X, y, *_ = data_of("forest36603").rows()
    model = SensorTreeClassifier(
        cost_weight=COST_WEIGHTS["forest"], classifier=LARGE[classifier]
    )
    _, seconds = timed(lambda: model.fit(X, y))
    return {
        "seconds": seconds.cpu,
        "chosen": model.structure_report_.structure,
        "leaves": model.tree_.n_leaves,
    }


def pages(lines: list[Line]) -> dict[str, str]:
    """What each search found, against the literal one, and on all rows of Forest."""
    tables = [
        found_table(of(lines, kind="search")),
        ratio_table(of(lines, kind="ratio")),
    ]
    tables += [
        f"Forest, 36,603 rows, {line['name']}: {line['seconds']:.0f} seconds "
        f"({line['chosen']}, {line['leaves']} leaves).\n"
        for line in of(lines, kind="large")
    ]
    return {"search.md": "\n".join(table for table in tables if table)}


def found_table(lines: list[Line]) -> str:
    """What each search found."""
    heads = ["data", "search", "subsets", "sensors", "its loss", "training risk"]
    rows = [
        [
            line["data"],
            line["name"],
            f"{line['subsets']}",
            f"{line['sensors']}",
            or_dash(line.get("loss", float("nan")), ".4f"),
            f"{line['risk']:.4f}",
            f"{line['seconds']:.0f}",
            f"{line['classifiers']}",
            f"{line['screened']}",
        ]
        for line in lines
        if line["name"] in SEARCHES
    ]
    return markdown([[*heads, "seconds", "classifiers trained", "screened"], *rows])


def ratio_table(lines: list[Line]) -> str:
    """Loss and seconds of each search against the literal one's."""
    found = [line for n in EXACT for line in of(lines, name=str(n))]
    literal = next(iter(of(found, name="all")), None)
    heads = ["compared exactly", "loss", "against the literal loss", "seconds"]
    rows = [[*heads, "times faster", "classifiers trained", "screened"]]
    for line in found:
        against = faster = "-"
        if literal is not None:
            against = f"{100 * (line['loss'] / literal['loss'] - 1):+.1f} %"
            faster = f"{literal['seconds'] / line['seconds']:.1f}"
        rows.append(
            [
                line["name"],
                f"{line['loss']:.4f}",
                against,
                f"{line['seconds']:.0f}",
                faster,
                f"{line['classifiers']}",
                f"{line['screened']}",
            ]
        )
    return markdown(rows) if found else ""


STUDY = Study(
    file="search",
    key=("kind", "data", "name"),
    data=(*COST_WEIGHTS, "ratio", "large"),
    cells=cells,
    measure=measure,
    pages=pages,
    seeds="Forest's permutation 0, split of digits 0, boosted leaves 0",
)

if __name__ == "__main__":
    run(STUDY, program="python -m benchmarks.structure")
