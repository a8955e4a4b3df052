"""What each improvement on the published method is worth: test error against mean cost.

    python experiments/ablation.py                  all data sets, about an hour on one core
    python experiments/ablation.py landsat pima     some

Every method sees the same training rows, tree and leaf classifiers, and is fitted at the
same cost weights. Lines go to docs/results/ablation.jsonl, one per method and cost weight,
means over splits; those that are there already are not run again. `ablation_report.py`
makes the tables and pictures.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from itertools import chain, combinations
from typing import Any

import numpy as np
from datasets import FILES, Dataset, load
from lines import FOLDER, append, over_splits, read
from sklearn.ensemble import HistGradientBoostingClassifier

from sensortree import (
    AlternatingTreeClassifier,
    QuadraticLogisticRegression,
    SensorTreeClassifier,
)

RESULTS = FOLDER / "ablation.jsonl"
# Error that buying everything is worth, from "buy nothing" to "buy everything".
SHARES = (
    *(3.4, 2.6, 2.0, 1.7, 1.4, 1.2, 1.0, 0.85, 0.7, 0.5),
    *(0.35, 0.25, 0.18, 0.12, 0.08, 0.05, 0.03, 0.015, 0.005),
)
PUBLISHED = SensorTreeClassifier.as_published


def methods() -> dict[str, Any]:
    """Name of each method, and how to make it from the common parameters."""
    return {
        "as published": PUBLISHED,
        "all": SensorTreeClassifier,
        "+ tight savings": lambda **p: PUBLISHED(savings="tight", **p),
        "+ out-of-fold": lambda **p: PUBLISHED(cv=5, **p),
        "+ out-of-fold, smoothed errors": lambda **p: PUBLISHED(
            cv=5, errors="smoothed", **p
        ),
        "+ posterior": lambda **p: PUBLISHED(decision_features="posterior+raw", **p),
        "+ out-of-fold, posterior": lambda **p: PUBLISHED(
            cv=5, decision_features="posterior+raw", **p
        ),
        "+ refinement": lambda **p: PUBLISHED(refine=True, **p),
        "+ ridge": lambda **p: PUBLISHED(l2="auto", **p),
        "+ fallback": lambda **p: PUBLISHED(fallback=True, **p),
        "all but refinement": lambda **p: SensorTreeClassifier(refine=False, **p),
        "all but smoothed errors": lambda **p: SensorTreeClassifier(
            errors="observed", **p
        ),
        "AM x 5, as published": AlternatingTreeClassifier,
        "AM x 5, inputs of all": lambda **p: AlternatingTreeClassifier(
            cv=5,
            errors="smoothed",
            decision_features="posterior+raw",
            l2="auto",
            **p,
        ),
        "all, boosted leaves": lambda **p: SensorTreeClassifier(
            classifier="boosted", **p
        ),
    }


def cost_weights(data: Dataset) -> list[float]:
    """Error per unit of cost, from "buy nothing" to "buy everything"."""
    everything = data.cost(frozenset(data.sensors))
    return [share / everything for share in SHARES]


def tree_lines(
    data: Dataset, weights: list[float], make: Any
) -> Iterator[dict[str, Any]]:
    """Fit along some cost weights on each split; give one line per cost weight."""
    for split, (train, test) in enumerate(data.splits()):
        model = make(
            sensors=data.sensors,
            costs=data.costs,
            structure=data.structure,
            root_sensors=[data.first_sensor],
        )
        started = time.perf_counter()
        path = model.fit_path(data.X[train], data.y[train], weights)
        seconds = time.perf_counter() - started
        for weight, fitted in zip(weights, path, strict=True):
            yield {
                "split": split,
                "cost_weight": weight,
                "cost": float(fitted.acquisition_cost(data.X[test]).mean()),
                "error": float(np.mean(fitted.predict(data.X[test]) != data.y[test])),
                "training_risk": training_risk(fitted),
                "seconds": seconds / len(weights),
            }


def training_risk(model: Any) -> float:
    """Risk that the decisions were learned to make small, on the rows they saw."""
    if isinstance(model, AlternatingTreeClassifier):
        return float(model.training_risks_.min())
    return float(model.decision_report_.learned_risk)


def static_lines(data: Dataset, classifier: Any) -> Iterator[dict[str, Any]]:
    """Every subset that knows the first sensor, bought for everybody; and the oracle."""
    others = [s for s in data.sensors if s != data.first_sensor]
    subsets = [
        frozenset({data.first_sensor, *more})
        for more in chain.from_iterable(
            combinations(others, k) for k in range(len(others) + 1)
        )
    ]
    for split, (train, test) in enumerate(data.splits()):
        wrong = []
        for subset in subsets:
            columns = data.columns(subset)
            classifier.fit(data.X[np.ix_(train, columns)], data.y[train])
            wrong.append(
                classifier.predict(data.X[np.ix_(test, columns)]) != data.y[test]
            )
            yield {
                "split": split,
                "subset": sorted(subset),
                "cost": data.cost(subset),
                "error": float(wrong[-1].mean()),
            }
        cost = np.array([data.cost(subset) for subset in subsets])
        error = np.array(wrong, dtype=float).T
        for share in SHARES:
            best = np.argmin(error + share / cost.max() * cost, axis=1)
            yield {
                "split": split,
                "subset": "oracle",
                "cost": float(cost[best].mean()),
                "error": float(error[np.arange(len(test)), best].mean()),
            }


def cegb_lines(data: Dataset) -> Iterator[dict[str, Any]]:
    """LightGBM with lazy feature penalties; a row pays for the sensors on its paths."""
    from lightgbm import LGBMClassifier

    owner = np.empty(data.X.shape[1], dtype=int)
    for number, columns in enumerate(data.sensors.values()):
        owner[columns] = number
    prices = np.array([data.costs[s] for s in data.sensors])
    for split, (train, test) in enumerate(data.splits()):
        for tradeoff in np.geomspace(1e-4, 30, 12):
            model = LGBMClassifier(
                cegb_tradeoff=tradeoff,
                cegb_penalty_feature_lazy=(prices / prices.sum())[owner].tolist(),
                random_state=0,
                n_jobs=1,
                verbose=-1,
            ).fit(data.X[train], data.y[train])
            sensors = used_sensors(model, data.X[test], owner, len(prices))
            yield {
                "split": split,
                "tradeoff": tradeoff,
                "cost": float((sensors @ prices).mean()),
                "error": float(np.mean(model.predict(data.X[test]) != data.y[test])),
            }


def used_sensors(model: Any, X: Any, owner: Any, n_sensors: int) -> Any:
    """Sensors that some path of some tree looks at, (n_rows, n_sensors)."""
    leaves = model.predict(X, pred_leaf=True).reshape(len(X), -1)
    used = np.zeros((len(X), n_sensors), dtype=bool)
    for number, info in enumerate(model.booster_.dump_model()["tree_info"]):
        on_path = np.zeros((max(info["num_leaves"], 1), n_sensors), dtype=bool)
        stack = [(info["tree_structure"], np.zeros(n_sensors, dtype=bool))]
        while stack:
            vertex, seen = stack.pop()
            if "split_feature" in vertex:
                seen = seen.copy()
                seen[owner[vertex["split_feature"]]] = True
                stack += [(vertex["left_child"], seen), (vertex["right_child"], seen)]
            else:
                on_path[vertex.get("leaf_index", 0)] = seen
        used |= on_path[leaves[:, number]]
    return used


def tasks() -> dict[str, Any]:
    """Name of each method, and what gives its lines for a data set."""
    boosted = HistGradientBoostingClassifier(early_stopping=False, random_state=0)
    logistic = QuadraticLogisticRegression()
    return {
        "static": lambda data, weights: static_lines(data, logistic),
        **{
            name: lambda data, weights, make=make: tree_lines(data, weights, make)
            for name, make in methods().items()
        },
        "static, boosted": lambda data, weights: static_lines(data, boosted),
        "CEGB": lambda data, weights: cegb_lines(data),
    }


def run(names: list[str]) -> None:
    """Run what is not among the results yet, and append it."""
    done = {(i["data"], i["method"], i.get("cost_weight")) for i in read(RESULTS)}
    for name in names:
        data = load(name)
        for method, task in tasks().items():
            weights = [w for w in cost_weights(data) if (name, method, w) not in done]
            if (name, method, None) in done or not weights:
                continue
            started = time.perf_counter()
            lines = [
                {"data": name, "method": method, **line} for line in task(data, weights)
            ]
            append(RESULTS, over_splits(lines))
            print(
                f"{name}, {method}: {time.perf_counter() - started:.0f} s", flush=True
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="*", choices=[*FILES, []], default=list(FILES))
    run(parser.parse_args().data)
