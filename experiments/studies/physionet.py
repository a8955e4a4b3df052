"""PhysioNet 2012: who dies in intensive care, from as few readings as possible.

12,000 stays, 14 % of deaths, so that hardly any reading changes an answer: the risk is the
log-loss. 60 % of the rows (seed 0) are fitted on; missing readings are the mean of these,
as others have it. Sensors are the 41 readings, or the ten groups of them, at cost 1 each.
Leaves are boosted and trees branch: what "auto" took by log-loss and risk on held-out
training rows, at the weights where it was asked. A line per guise and cost weight: test
AUROC, log-loss and mean cost.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from sklearn.metrics import log_loss, roc_auc_score

from experiments.data import by_column, few, load
from experiments.methods import few_values, timed
from experiments.results import Line
from experiments.study import Cell, Study
from experiments.tables import markdown, of
from sensortree import SensorTreeClassifier

WEIGHTS = (0.01, 0.004, 0.002, 0.001)
GUISES = ("readings", "groups")
# Test AUROC of a neural method, by mean number of readings bought.
NEURAL = {3: 0.785, 5: 0.803, 8: 0.826}


def cells(name: str, quick: bool, lines: list[Line]) -> Iterator[Cell]:
    """A cell for each guise and weight."""
    for guise in GUISES:
        for weight in few_values(WEIGHTS) if quick else WEIGHTS:
            yield Cell({"data": name, "sensors": guise}, "cost_weight", (weight,))


def measure(cell: Cell) -> Iterator[Line]:
    """Fit at a cost weight, and test."""
    data = load(cell.fields["data"])
    data = by_column(data) if cell.fields["sensors"] == "readings" else data
    data = few(data) if cell.quick else data
    X, y, X_test, y_test = data.rows()
    for weight in cell.values:
        model = SensorTreeClassifier(
            data.sensors,
            costs=data.costs,
            cost_weight=weight,
            risk="log_loss",
            classifier="boosted",
            structure="branched",
            outages=False,
        )
        fitted, seconds = timed(lambda model=model: model.fit(X, y))
        likely = fitted.predict_proba(X_test)
        yield {
            "cost_weight": weight,
            "auroc": float(roc_auc_score(y_test, likely[:, 1])),
            "log_loss": float(log_loss(y_test, likely)),
            "cost": float(np.mean(fitted.acquisition_cost(X_test))),
            "leaves": fitted.tree_.n_leaves,
            "cpu_seconds": seconds.cpu,
        }


def pages(lines: list[Line]) -> dict[str, str]:
    """Cost, AUROC and log-loss at each weight, and between them at the published costs."""
    rows = [["sensors", "cost weight", "mean cost", "AUROC", "log-loss", "leaves"]]
    rows += [
        [
            guise,
            f"{line['cost_weight']:g}",
            f"{line['cost']:.2f}",
            f"{line['auroc']:.4f}",
            f"{line['log_loss']:.4f}",
            str(line["leaves"]),
        ]
        for guise in GUISES
        for line in sorted(of(lines, sensors=guise), key=lambda one: one["cost"])
    ]
    return {"physionet.md": markdown(rows) + "\n" + between(lines)}


def between(lines: list[Line]) -> str:
    """AUROC at the costs of the neural method, on straight lines between ours."""
    mine = sorted(of(lines, sensors="readings"), key=lambda one: one["cost"])
    costs = [line["cost"] for line in mine]
    rows = [["readings", "neural method", "ours"]]
    for cost, published in NEURAL.items():
        spanned = bool(costs) and costs[0] <= cost <= costs[-1]
        ours = np.interp(cost, costs, [line["auroc"] for line in mine]) if costs else 0
        rows.append(
            [str(cost), f"{published:.3f}", f"{ours:.3f}" if spanned else "not spanned"]
        )
    return markdown(rows)


STUDY = Study(
    file="physionet",
    key=("data", "sensors", "cost_weight"),
    data=("physionet",),
    cells=cells,
    measure=measure,
    pages=pages,
    seeds="split 0",
)
