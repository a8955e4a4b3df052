"""Each risk's own measure: trees learned for errors beside trees learned for log-loss.

Both are learned on the same training rows, with the same sensors, leaves and kinds of
trees, at cost weights from "buys nothing" to "buys everything". A line per data set, risk
and cost weight, means over splits. Curves are compared where both have points, at equal
cost.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from experiments.data import few, load, split_at_random
from experiments.methods import few_values, fitted_path, judged, over_splits, own_tree
from experiments.results import Line
from experiments.study import Cell, Study
from experiments.tables import markdown, of
from sensortree import SensorTreeClassifier
from sensortree.results import TradeoffCurve

SETS = ("landsat", "letter", "segment", "pima", "heart")
# Sets whose test rows are so few that there are more splits.
SPLITS = {"pima": 20, "heart": 20}
# Errors that buying everything is worth; of log-loss, which is larger, twice as much.
SHARES = (
    *(3.4, 2.4, 1.7, 1.2, 0.85, 0.6, 0.45, 0.35, 0.25, 0.18),
    *(0.12, 0.085, 0.06, 0.04, 0.03, 0.02, 0.012, 0.008, 0.005, 0.002),
)
TIMES = {"error": 1.0, "log_loss": 2.0}
NAMES = {"error": "errors", "log_loss": "log-loss"}
# Costs at which curves are compared.
GRID = 101


def cells(name: str, quick: bool, lines: list[Line]) -> Iterator[Cell]:
    """Each risk on all splits; cost weights share their leaf classifiers."""
    for risk, times in TIMES.items():
        weights = tuple(times * share / load(name).everything for share in SHARES)
        values = few_values(weights) if quick else weights
        yield Cell({"data": name, "risk": risk}, "cost_weight", values)


def measure(cell: Cell) -> list[Line]:
    """Fit along the cost weights on each split, and test."""
    data = load(cell.fields["data"])
    if data.name in SPLITS:
        data = split_at_random(data, SPLITS[data.name])
    data = few(data) if cell.quick else data
    model = SensorTreeClassifier(
        data.sensors,
        costs=data.costs,
        classifier="logistic2",
        risk=cell.fields["risk"],
        outages=False,
        **own_tree(data),
    )
    lines = []
    for split in range(len(data.splits)):
        X, y, X_test, y_test = data.rows(split)
        path, _ = fitted_path(model, X, y, cell.values)
        for weight, fitted in zip(cell.values, path, strict=True):
            lines.append(
                {
                    "split": split,
                    "cost_weight": weight,
                    **judged(fitted, X_test, y_test),
                }
            )
    return over_splits(lines)


def at_equal_cost(lines: list[Line], measure: str) -> dict[str, float]:
    """Mean of a measure of each risk's trees, over the costs that both reach.

    What lies between two points is read off the lower hull, as two trees mixed at random
    reach it.
    """
    curves = {
        risk: TradeoffCurve.from_points(
            (line["cost"], line[measure]) for line in of(lines, risk=risk)
        )
        for risk in TIMES
    }
    first = max(float(curve.mean_cost.min()) for curve in curves.values())
    last = min(float(curve.mean_cost.max()) for curve in curves.values())
    costs = np.linspace(first, last, GRID)
    return {
        risk: float(np.mean([curve.error_at_cost(cost) for cost in costs]))
        for risk, curve in curves.items()
    }


def pages(lines: list[Line]) -> dict[str, str]:
    """Both measures of both trees on each set, and how often each has its own."""
    head = [
        "data",
        "measure on test rows",
        *(f"learned for {n}" for n in NAMES.values()),
    ]
    rows, own, compared = [[*head, ""]], 0, 0
    for name in [name for name in SETS if of(lines, data=name)]:
        for measured, words in (("error", "error"), ("log_loss", "log-loss")):
            means = at_equal_cost(of(lines, data=name), measured)
            if len(means) < len(TIMES):
                continue
            other = next(risk for risk in TIMES if risk != measured)
            good = means[measured] < means[other]
            own, compared = own + good, compared + 1
            figures = [f"{means[risk]:.4f}" for risk in TIMES]
            rows.append([name, words, *figures, "its own" if good else "the other's"])
    words = (
        f"On {own} of {compared} curves the tree that was learned for a measure has the "
        f"lower one at equal cost.\n"
    )
    return {"risks.md": "\n".join([markdown(rows), words])}


STUDY = Study(
    file="risks",
    key=("data", "risk", "cost_weight"),
    data=SETS,
    cells=cells,
    measure=measure,
    pages=pages,
    quickly=("heart",),
    seeds="splits 0",
)
