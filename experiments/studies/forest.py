"""ASTC and CSTC on Forest, beside their published curves.

54 sensors of cost 1, 36,603 training rows and 58,101 test rows, as in the publications,
which do not say which; ours are a random permutation with seed 0. Nor do they say whether
there are seven classes ("forest-7"), or class 2 against the rest ("forest"): both are run.
A line per label, method and value of the traced parameter. CPU times are of one thread.
CSTC is run with the published slope of its routing, and with a steeper one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from experiments.data import Dataset, by_column, few, load
from experiments.methods import METHODS, few_values, tested, timed
from experiments.results import Line
from experiments.study import Cell, Study
from experiments.tables import markdown, of, points

LABELS = {"forest": "binary", "forest-7": "7 classes"}
RUNS: dict[str, tuple[str, dict[str, Any]]] = {
    "ASTC": ("ASTC", {}),
    "ASTC soft": ("ASTC", {"soft": True}),
    "CSTC": ("CSTC", {}),
    "CSTC, steepness 5": ("CSTC", {"steepness": 5.0}),
}
# Mean number of features and test error, read off the figure of Kusner et al. (AAAI 2014).
PUBLISHED = {
    "ASTC": "3 .249, 6 .247, 9 .245, 12 .244, 15 .243, 30 .239, 45 .237",
    "ASTC soft": "3 .268, 6 .250, 9 .251, 12 .249, 15 .251, 30 .254, 45 .254",
    "CSTC": "3 .265, 5 .264, 8 .257, 13 .254, 23 .249, 49 .248",
}


def cells(name: str, quick: bool, lines: list[Line]) -> Iterator[Cell]:
    """A cell for each method and value."""
    for fields, value in settings(quick):
        yield Cell({"label": LABELS[name], **fields}, "value", (value,))


def settings(quick: bool) -> Iterator[tuple[Line, float]]:
    """Each method with each of its values."""
    for name, (kind, _) in RUNS.items():
        values = METHODS[kind].values
        for value in few_values(values) if quick else values:
            yield {"method": name}, value


def measure(cell: Cell) -> Iterator[Line]:
    """Fit at each value, and test."""
    name = next(n for n, label in LABELS.items() if label == cell.fields["label"])
    data = by_column(load(name))
    data = few(data) if cell.quick else data
    for value in cell.values:
        yield fitted(cell.fields["method"], value, data)


def fitted(name: str, value: float, data: Dataset) -> Line:
    """Fit once, and test."""
    X, y, X_test, y_test = data.rows()
    kind, more = RUNS[name]
    traced = METHODS[kind].traced
    model, seconds = timed(
        lambda: METHODS[kind].make(**more, **{traced: value}).fit(X, y)
    )
    return {
        traced: value,
        "value": value,
        **tested(model, X_test, y_test),
        "leaves": model.tree_.n_leaves,
        "cpu_seconds": seconds.cpu,
        "seconds": seconds.wall,
        "passes": getattr(model, "n_iter_", None),
    }


def pages(lines: list[Line]) -> dict[str, str]:
    """The table, and how far ours are from the published."""
    return {"forest.md": page(lines)}


def page(lines: list[Line]) -> str:
    """The table, and the comparison if both labels were run."""
    if {line["label"] for line in lines} != set(LABELS.values()):
        return table(lines)
    return table(lines) + "\n" + comparison(lines)


def table(lines: list[Line]) -> str:
    """Cost and error of each method and label, published beside ours; and CPU time."""
    rows = [["method", "published", *LABELS.values(), "CPU seconds, binary"]]
    for name in RUNS:
        mine = [of(lines, method=name, label=label) for label in LABELS.values()]
        by_cost = sorted(mine[0], key=lambda line: line["cost"])
        seconds = ", ".join(f"{line['cpu_seconds']:.1f}" for line in by_cost)
        shown = [listed(same) for same in mine]
        rows.append([name, PUBLISHED.get(name, "-"), *shown, seconds])
    return markdown(rows)


def listed(lines: list[Line]) -> str:
    """Cost and error of each line, the cheapest first."""
    shown = [f"{cost:.3g} {error:.3f}" for cost, error in points(lines)]
    return ", ".join(shown).replace(" 0.", " .") or "-"


def comparison(lines: list[Line]) -> str:
    """How far our errors are from the published ones, and how long CSTC takes."""
    words = []
    for label in LABELS.values():
        for name, shown in PUBLISHED.items():
            costs, errors = measured(lines, name, label, "error")
            if not len(costs):
                continue
            given = [tuple(map(float, pair.split())) for pair in shown.split(", ")]
            within = [p for p in given if costs[0] <= p[0] <= costs[-1]]
            ours = np.interp([cost for cost, _ in within], costs, errors)
            differences = ours - [error for _, error in within]
            words.append(
                f"- {name}, {label}: {np.mean(np.abs(differences)):.3f} from the "
                f"published errors on average, at the {len(within)} of {len(given)} "
                f"published costs that ours span (ours less theirs: "
                f"{np.mean(differences):+.3f})."
            )
    astc = measured(lines, "ASTC", "binary", "cpu_seconds")
    cost, seconds = measured(lines, "CSTC", "binary", "cpu_seconds")
    if len(astc[0]) and len(cost):
        ratios = seconds / np.interp(cost, *astc)
        shown = ", ".join(
            f"{r:.1f} at {c:.3g}" for c, r in zip(cost, ratios, strict=True)
        )
        words.append(
            f"- CSTC takes as many times the CPU time of ASTC: {shown} features."
        )
    return "\n".join(words) + "\n"


def measured(lines: list[Line], name: str, label: str, what: str) -> tuple[Any, Any]:
    """Costs in increasing order, and a measure at each."""
    mine = sorted(of(lines, method=name, label=label), key=lambda line: line["cost"])
    return np.array([i["cost"] for i in mine]), np.array([i[what] for i in mine])


STUDY = Study(
    file="forest",
    key=("label", "method", "value"),
    data=tuple(LABELS),
    quickly=("forest",),
    cells=cells,
    measure=measure,
    pages=pages,
    seeds="Forest's permutation 0",
)
