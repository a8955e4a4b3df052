"""Which structure serves best: test risk of each, decisions learned the same way.

One sensor of cost 1 per column, the default leaf classifier and size. "static" buys one
subset for everybody: of the stages of the learned chain, the one whose risk is least when
cross-validated on the training rows. A line per data set, structure and cost weight; what
"auto" took is not fitted again. "forest" has 12,000 training rows, "forest36603" all of
them, letter 4,000. An hour on two cores.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.model_selection import cross_val_predict

from experiments.data import Dataset, by_column, few, first_rows, load
from experiments.methods import few_values, fitted_path, tested_risk
from experiments.results import Line
from experiments.study import Cell, Study
from experiments.tables import markdown, of
from sensortree import QuadraticLogisticRegression, SensorTreeClassifier

FEW, SMALL = (0.05, 0.02, 0.01, 0.005), (0.02, 0.01, 0.005, 0.002)
WEIGHTS = {
    "segment": FEW,
    "heart": FEW,
    "pima": FEW,
    "landsat": FEW,
    "digits": FEW,
    "forest": SMALL,
    "letter": FEW,
    "forest36603": SMALL,
}
N_TRAIN = {"letter": 4_000, "forest": 12_000}
LEARNED = ("auto", "chain", "backward", "branched", "planned", "greedy")
STRUCTURES = (*LEARNED, "static")
# Algorithm 1 would take hours here; the table shows a dash.
TOO_SLOW = {("forest36603", "greedy")}
WITHIN = 0.01


def data_of(name: str, quick: bool = False) -> Dataset:
    """Columns as sensors; some rows of the larger sets."""
    data = by_column(load("forest" if name == "forest36603" else name))
    if name in N_TRAIN:
        data = first_rows(data, N_TRAIN[name])
    return few(data) if quick else data


def cells(name: str, quick: bool, lines: list[Line]) -> Iterator[Cell]:
    """Each structure; its cost weights share their classifiers."""
    weights = few_values(WEIGHTS[name])[:2] if quick else WEIGHTS[name]
    for structure in STRUCTURES:
        if (name, structure) not in TOO_SLOW:
            yield Cell({"data": name, "structure": structure}, "cost_weight", weights)


def known(cell: Cell, lines: list[Line]) -> list[Line]:
    """Lines of "auto" where it took this structure."""
    name, structure = cell.fields["data"], cell.fields["structure"]
    taken = of(lines, data=name, structure="auto", chosen=structure)
    taken = [line for line in taken if line["cost_weight"] in cell.values]
    return [{**line, "structure": structure} for line in taken]


def measure(cell: Cell) -> Iterator[Line]:
    """Fit along the cost weights, and test."""
    if cell.fields["structure"] == "static":
        return static_lines(cell)
    return tree_lines(cell)


def tree_lines(cell: Cell) -> Iterator[Line]:
    """A tree of the structure at each cost weight."""
    name, structure = cell.fields["data"], cell.fields["structure"]
    X, y, X_test, y_test = data_of(name, cell.quick).rows()
    model = SensorTreeClassifier(structure=structure)
    path, seconds = fitted_path(model, X, y, cell.values)
    for weight, fitted in zip(cell.values, path, strict=True):
        report, compared = fitted.structure_report_, fitted.comparison_
        wrong = fitted.predict(X_test) != y_test
        yield {
            **tested_risk(wrong, fitted.acquisition_cost(X_test), weight),
            "chosen": report.structure,
            "validated": {} if compared is None else compared.risk,
            "leaves": fitted.tree_.n_leaves,
            "classifiers": report.n_classifiers,
            "screened": report.n_screened,
            "path_seconds": seconds.wall,
        }


def static_lines(cell: Cell) -> Iterator[Line]:
    """The stage of the chain with the least cross-validated risk, bought for everybody."""
    name = cell.fields["data"]
    X, y, X_test, y_test = data_of(name, cell.quick).rows()
    started = time.perf_counter()
    chain = SensorTreeClassifier(structure="chain", cost_weight=min(WEIGHTS[name])).fit(
        X, y
    )
    leaf = QuadraticLogisticRegression()
    stages = [[int(s[1:]) for s in known] for known in chain.structure_report_.subsets]
    errors = [
        np.mean(cross_val_predict(leaf, X[:, stage], y, cv=5) != y) for stage in stages
    ]
    wrong: dict[int, Any] = {}
    for weight in cell.values:
        risks = [e + weight * len(s) for e, s in zip(errors, stages, strict=True)]
        best = int(np.argmin(risks))
        if best not in wrong:
            leaf.fit(X[:, stages[best]], y)
            wrong[best] = leaf.predict(X_test[:, stages[best]]) != y_test
        cost = np.full(len(y_test), float(len(stages[best])))
        yield {
            **tested_risk(wrong[best], cost, weight),
            "validated": {"static": float(risks[best])},
            "path_seconds": time.perf_counter() - started,
        }


def pages(lines: list[Line]) -> dict[str, str]:
    """Test risks, and the verdict."""
    return {"structures.md": "\n".join([table(lines), verdict(lines)])}


def by_setting(lines: list[Line]) -> dict[tuple[str, float], dict[str, Line]]:
    """Lines by data set and cost weight, then by structure."""
    found: dict[tuple[str, float], dict[str, Line]] = {
        (name, weight): {} for name, weights in WEIGHTS.items() for weight in weights
    }
    for line in lines:
        found[line["data"], line["cost_weight"]][line["structure"]] = line
    return {key: same for key, same in found.items() if same}


def table(lines: list[Line]) -> str:
    """Test risk by data set and cost weight; the least is starred."""
    rows = [["data", "cost weight", *STRUCTURES, "validated"]]
    for (name, weight), same in by_setting(lines).items():
        least = min(same[s]["risk"] for s in STRUCTURES if s in same)
        compared = {
            **same.get("auto", {}).get("validated", {}),
            **same.get("static", {}).get("validated", {}),
        }
        validated = ", ".join(f"{s} {risk:.4f}" for s, risk in compared.items())
        risks = [shown(same.get(structure), least) for structure in STRUCTURES]
        rows.append([name, f"{weight:g}", *risks, validated])
    return markdown(rows)


def shown(line: Line | None, least: float) -> str:
    """Test risk of a structure, or a dash; with its error if "auto" took it."""
    if line is None:
        return "-"
    risk = f"{line['risk']:.4f}{'*' if line['risk'] == least else ''}"
    if line["structure"] == "auto":
        return f"{risk} ± {line['standard_error']:.4f} ({line['chosen']})"
    return risk


def verdict(lines: list[Line]) -> str:
    """How often "auto" is near the best structure, and where it loses to "static"."""
    complete = {
        key: same
        for key, same in by_setting(lines).items()
        if {"auto", "chain", "branched", "static"} <= set(same)
    }
    near, worse = 0, []
    for (name, weight), same in complete.items():
        auto = same["auto"]
        best = min(same[s]["risk"] for s in LEARNED if s in same)
        near += auto["risk"] <= (1 + WITHIN) * best
        if auto["risk"] > same["static"]["risk"] + auto["standard_error"]:
            worse.append(f"{name} at {weight:g}")
    return (
        f"Within 1 % of the test risk of the best structure that was run: {near} of "
        f"{len(complete)} (rows without static are not counted). Worse than the static "
        f"subset by more than one standard error of auto's mean risk: "
        f"{', '.join(worse) or 'never'}.\n"
    )


STUDY = Study(
    file="structures",
    key=("data", "structure", "cost_weight"),
    data=tuple(WEIGHTS),
    cells=cells,
    measure=measure,
    pages=pages,
    known=known,
    seeds="Forest's permutation 0, split of digits 0",
)
