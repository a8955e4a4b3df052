"""Forest with boosted leaves: test error against the number of features bought.

Class 2 against the rest, 36,603 training and 58,101 test rows, 54 columns of cost 1, a
learned chain whose leaves are gradient boosted trees. Beside the curve stand targets, each
an error at a number of features. The 15,688 validation rows are answered too: a change to
the search is judged on those.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

from experiments.data import by_column, few, load
from experiments.methods import few_values, fitted_path, tested, tested_risk
from experiments.results import Line
from experiments.study import Cell, Study
from experiments.tables import curve_of, markdown
from sensortree import SensorTreeClassifier

WEIGHTS = (0.03, 0.02, 0.008, 0.003, 0.0012)
# (features, test error) to reach.
TARGETS = ((3.7, 0.139), (5.7, 0.117), (9.0, 0.110))


def cells(name: str, quick: bool, lines: list[Line]) -> Iterator[Cell]:
    """All cost weights, which share their classifiers."""
    yield Cell({}, "cost_weight", few_values(WEIGHTS) if quick else WEIGHTS)


def measure(cell: Cell) -> Iterator[Line]:
    """Fit along the cost weights, in one process, and test."""
    data = by_column(load("forest"))
    X, y, X_test, y_test = (few(data) if cell.quick else data).rows()
    X_valid, y_valid = data.X[data.validation], data.y[data.validation]
    leaf = HistGradientBoostingClassifier(
        max_iter=20 if cell.quick else 200,
        max_leaf_nodes=127,
        early_stopping=False,
        random_state=0,
    )
    model = SensorTreeClassifier(structure="chain", classifier=leaf, n_jobs=1)
    path, seconds = fitted_path(model, X, y, cell.values)
    for weight, fitted in zip(cell.values, path, strict=True):
        report = fitted.structure_report_
        wrong = fitted.predict(X_test) != y_test
        judged = tested(fitted, X_valid, y_valid)
        yield {
            **tested_risk(wrong, fitted.acquisition_cost(X_test), weight),
            "validation_error": judged["error"],
            "validation_cost": judged["cost"],
            "leaves": fitted.tree_.n_leaves,
            "order": [step["added"] for step in report.steps],
            "classifiers": report.n_classifiers,
            "screened": report.n_screened,
            "path_seconds": seconds.cpu,
        }


def pages(lines: list[Line]) -> dict[str, str]:
    """The curve, and the error on its lower hull at each target."""
    heads = ["cost weight", "features", "test error", "validation: features", "error"]
    rows = [[*heads, "leaves"]]
    rows += [
        [
            f"{i['cost_weight']:g}",
            f"{i['cost']:.2f}",
            f"{i['error']:.4f}",
            f"{i['validation_cost']:.2f}",
            f"{i['validation_error']:.4f}",
            f"{i['leaves']}",
        ]
        for i in lines
    ]
    curve, reached = curve_of(lines), [["features", "target", "reached", ""]]
    for cost, target in TARGETS:
        error = curve.error_at_cost(cost)
        said = "met" if error <= target else "missed"
        said = "nothing as cheap" if np.isnan(error) else said
        reached.append([f"{cost:g}", f"{target:.3f}", f"{error:.4f}", said])
    last = lines[-1]
    words = (
        f"{last['path_seconds']:.0f} seconds for all cost weights together: "
        f"{last['screened']} subsets screened, {last['classifiers']} with their "
        f"classifier.\n"
    )
    return {"boosted.md": "\n".join([markdown(rows), markdown(reached), words])}


STUDY = Study(
    file="boosted",
    key=("cost_weight",),
    data=("forest",),
    cells=cells,
    measure=measure,
    pages=pages,
    seeds="Forest's permutation 0, trees 0",
)
