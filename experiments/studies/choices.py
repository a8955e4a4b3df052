"""How the defaults were chosen: risk on validation rows, never on test rows.

Each variant changes one parameter of the default. Rows are those of the official training
set where there is one; 70 % of them are fitted on, at most 3,000, and the rest judged, over
8 random splits (2 where there is an official one) and 9 cost weights. A line per data set
and variant: the mean risk, error plus weighted cost. About half an hour.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedShuffleSplit

from experiments.data import Dataset, load, training_rows
from experiments.methods import few_values, fitted_path
from experiments.results import Line
from experiments.studies.ablation import ALTERNATING, SHARES, TREES, told
from experiments.study import Cell, Study
from experiments.tables import markdown, of
from sensortree import Program, QuadraticLogisticRegression, SensorTreeClassifier

WEIGHED = SHARES[2::2]
VARIANTS: dict[str, tuple[Any, dict[str, Any]]] = {
    "default": (SensorTreeClassifier, {}),
    "errors observed": (SensorTreeClassifier, {"program": Program(errors="observed")}),
    "not refined": (SensorTreeClassifier, {"program": Program(refine=False)}),
    "savings published": (
        SensorTreeClassifier,
        {"program": Program(savings="published")},
    ),
    "decisions posterior": (
        SensorTreeClassifier,
        {"program": Program(decision_features="posterior")},
    ),
    "decisions raw": (
        SensorTreeClassifier,
        {"program": Program(decision_features="raw")},
    ),
    "decisions quadratic": (
        SensorTreeClassifier,
        {"program": Program(decision_features="quadratic")},
    ),
    "l2 = 0": (SensorTreeClassifier, {"program": Program(l2=0.0)}),
    "in-sample": (SensorTreeClassifier, {"cv": None}),
    "leaves C = 1": (
        SensorTreeClassifier,
        {"classifier": QuadraticLogisticRegression(C=1.0)},
    ),
    ALTERNATING: TREES[ALTERNATING],  # beside the variants of the default
}


def cells(name: str, quick: bool, lines: list[Line]) -> Iterator[Cell]:
    """Each variant."""
    for variant in VARIANTS:
        yield Cell({"data": name, "variant": variant})


def measure(cell: Cell) -> Iterator[Line]:
    """Mean risk on validation rows over splits and cost weights."""
    data = load(cell.fields["data"])
    n_splits = 1 if cell.quick else 2 if data.official else 8
    data = training_rows(data) if data.official else data
    shares = few_values(WEIGHED) if cell.quick else WEIGHED
    make, settings = VARIANTS[cell.fields["variant"]]
    risks = [
        risk
        for train, test in validation_splits(data, n_splits, cell.quick)
        for risk in validation_risks(
            data, make(**told(data), **settings), shares, train, test
        )
    ]
    yield {"risk": float(np.mean(risks))}


def validation_splits(
    data: Dataset, n_splits: int, quick: bool
) -> Iterator[tuple[Any, Any]]:
    """Rows to fit on, and rows to judge."""
    splitter = StratifiedShuffleSplit(n_splits, test_size=0.3, random_state=7)
    for train, test in splitter.split(data.X, data.y):
        yield train[: 300 if quick else 3000], test


def validation_risks(
    data: Dataset, model: Any, shares: tuple[float, ...], train: Any, test: Any
) -> Iterator[float]:
    """Mean risk at each cost weight."""
    weights = [share / data.everything for share in shares]
    path, _ = fitted_path(model, data.X[train], data.y[train], weights)
    for weight, fitted in zip(weights, path, strict=True):
        wrong = fitted.predict(data.X[test]) != data.y[test]
        yield np.mean(wrong + weight * fitted.acquisition_cost(data.X[test]))


def pages(lines: list[Line]) -> dict[str, str]:
    """Mean risk of each variant."""
    names = [name for name in STUDY.data if of(lines, data=name)]
    risks = {(line["data"], line["variant"]): f"{line['risk']:.4f}" for line in lines}
    rows = [["variant", *names]]
    rows += [[v, *(risks.get((name, v), "-") for name in names)] for v in VARIANTS]
    return {"choices.md": markdown(rows)}


STUDY = Study(
    file="choices",
    key=("data", "variant"),
    data=("pima", "heart", "landsat", "letter"),
    cells=cells,
    measure=measure,
    pages=pages,
    seeds="splits 7, starts of AM 0",
)
