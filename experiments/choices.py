"""How the defaults were chosen: risk on validation rows, never on test rows.

    python experiments/choices.py               all data sets, about half an hour
    python experiments/choices.py pima heart    some

Each variant changes one parameter of the default. Rows are those of the official training
set where there is one; 70 % of them are fitted on, at most 3,000, and the rest judged, over
8 random splits (2 where there is an official one) and 9 cost weights.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from ablation import SHARES, methods
from datasets import FILES, Dataset, load
from sklearn.model_selection import StratifiedShuffleSplit

from sensortree import QuadraticLogisticRegression, SensorTreeClassifier

VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "errors observed": {"errors": "observed"},
    "not refined": {"refine": False},
    "savings published": {"savings": "published"},
    "decisions posterior": {"decision_features": "posterior"},
    "decisions raw": {"decision_features": "raw"},
    "decisions quadratic": {"decision_features": "quadratic"},
    "l2 = 0": {"l2": 0.0},
    "in-sample": {"cv": None},
    "leaves C = 1": {"classifier": QuadraticLogisticRegression(C=1.0)},
}
ALTERNATING = "AM x 5, inputs of all"  # beside the variants of the default


def validation_risk(data: Dataset, make: Any, parameters: dict[str, Any]) -> float:
    """Mean risk on validation rows over splits and cost weights."""
    official = (data.official >= 0).any()
    rows = np.flatnonzero(data.official <= 0)
    splitter = StratifiedShuffleSplit(
        2 if official else 8, test_size=0.3, random_state=7
    )
    everything = data.cost(frozenset(data.sensors))
    weights = [share / everything for share in SHARES[2::2]]
    risks = []
    for train, test in splitter.split(rows, data.y[rows]):
        train, test = rows[train[:3000]], rows[test]
        path = make(
            sensors=data.sensors,
            costs=data.costs,
            structure=data.structure,
            root_sensors=[data.first_sensor],
            **parameters,
        ).fit_path(data.X[train], data.y[train], weights)
        for weight, model in zip(weights, path, strict=True):
            wrong = model.predict(data.X[test]) != data.y[test]
            cost = model.acquisition_cost(data.X[test])
            risks.append(np.mean(wrong + weight * cost))
    return float(np.mean(risks))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="*", choices=[*FILES, []], default=list(FILES))
    names = parser.parse_args().data
    print("| variant | " + " | ".join(names) + " |")
    print("|---|" + "---|" * len(names))
    sets = [load(name) for name in names]
    models = {name: (SensorTreeClassifier, p) for name, p in VARIANTS.items()}
    models[ALTERNATING] = (methods()[ALTERNATING], {})
    for variant, (make, parameters) in models.items():
        risks = [f"{validation_risk(data, make, parameters):.4f}" for data in sets]
        print(f"| {variant} | " + " | ".join(risks) + " |", flush=True)
