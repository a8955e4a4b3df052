"""Probabilities before and after leaves are calibrated on the examples that reach them.

The same trees, boosted and logistic leaves, at cost weights from "buys little" to "buys
nearly everything": once as their classifiers say, once calibrated if that lowers held-out
log-loss, as by default. A line per data set, kind of leaf, cost weight and whether leaves
are calibrated, means over splits. About half an hour.
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

SETS = ("landsat", "letter", "segment", "pima", "heart")
# Sets whose test rows are so few that there are more splits.
SPLITS = {"segment": 5, "pima": 20, "heart": 20}
LEAVES = ("logistic2", "boosted")
# Errors that buying everything is worth.
SHARES = (1.2, 0.45, 0.18, 0.06, 0.02)
FORMS = {"as said": False, "calibrated": True}
MEASURES = {"log_loss": "log-loss", "calibration_error": "calibration error"}


def cells(name: str, quick: bool, lines: list[Line]) -> Iterator[Cell]:
    """Each kind of leaf, as said and calibrated; cost weights share classifiers."""
    weights = tuple(share / load(name).everything for share in SHARES)
    values = few_values(weights) if quick else weights
    for leaves in LEAVES:
        for form in FORMS:
            fields = {"data": name, "leaves": leaves, "form": form}
            yield Cell(fields, "cost_weight", values)


def measure(cell: Cell) -> list[Line]:
    """Fit along the cost weights on each split, and test."""
    data = load(cell.fields["data"])
    if data.name in SPLITS:
        data = split_at_random(data, SPLITS[data.name])
    data = few(data) if cell.quick else data
    model = SensorTreeClassifier(
        data.sensors,
        costs=data.costs,
        classifier=cell.fields["leaves"],
        calibrate_leaves=FORMS[cell.fields["form"]],
        outages=False,
        **own_tree(data),
    )
    lines = []
    for split in range(len(data.splits)):
        X, y, X_test, y_test = data.rows(split)
        path, _ = fitted_path(model, X, y, cell.values)
        for weight, fitted in zip(cell.values, path, strict=True):
            changed = fitted.policy_.calibration is not None
            lines.append(
                {
                    "split": split,
                    "cost_weight": weight,
                    "changed": float(changed),
                    **judged(fitted, X_test, y_test),
                }
            )
    return over_splits(lines)


def pages(lines: list[Line]) -> dict[str, str]:
    """Both measures before and after, means over the cost weights."""
    head = ["data", "leaves", "trees calibrated"]
    head += [f"{words}, {form}" for words in MEASURES.values() for form in FORMS]
    rows, lower = [head], dict.fromkeys(MEASURES, 0)
    for name in SETS:
        for leaves in LEAVES:
            here = {
                form: of(lines, data=name, leaves=leaves, form=form) for form in FORMS
            }
            if not all(here.values()):
                continue
            means = {
                (measured, form): float(
                    np.mean([line[measured] for line in here[form]])
                )
                for measured in MEASURES
                for form in FORMS
            }
            changed = np.mean([line["changed"] for line in here["calibrated"]])
            figures = [f"{mean:.4f}" for mean in means.values()]
            rows.append([name, leaves, f"{changed:.0%}", *figures])
            for measured in MEASURES:
                before, after = (means[measured, form] for form in FORMS)
                lower[measured] += after < before
    said = ", ".join(f"{MEASURES[m]} in {n}" for m, n in lower.items())
    words = f"Lower calibrated than as said, of {len(rows) - 1} rows: {said}.\n"
    return {"calibration.md": "\n".join([markdown(rows), words])}


STUDY = Study(
    file="calibration",
    key=("data", "leaves", "form", "cost_weight"),
    data=SETS,
    cells=cells,
    measure=measure,
    pages=pages,
    quickly=("heart",),
    seeds="splits 0",
)
