"""Methods beside each other on held-out rows of one table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from sensortree.cli.console import Work
from sensortree.cli.problem import Problem
from sensortree.exceptions import SensorTreeError
from sensortree.sensors.loss import resolve_loss
from sensortree.text import aligned
from sensortree.types import Array

EVERYTHING, NOTHING = "every sensor", "no sensor"


def compared(
    methods: Mapping[str, type],
    settings: Mapping[str, Any],
    problem: Problem,
    n_folds: int,
    work: Work,
) -> list[dict[str, Any]]:
    """Error, cost and risk of each method, and of buying everything and nothing."""
    estimators = {
        label: _with_settings(method, settings) for label, method in methods.items()
    }
    everything = {**settings, "structure": {"sensors": sorted(problem.sensors)}}
    estimators[EVERYTHING] = _with_settings(methods["sensor tree"], everything)
    lines: list[dict[str, Any]] = []
    for label, estimator in estimators.items():
        try:
            rows = _held_out(label, estimator, problem, n_folds, work)
        except SensorTreeError as error:
            lines.append({"method": label, "refused": str(error)})
            continue
        lines.append({"method": label, **_means(rows, settings["cost_weight"])})
    rows = _majority(problem, n_folds)
    lines.append({"method": NOTHING, **_means(rows, settings["cost_weight"])})
    return lines


def _with_settings(method: type, settings: Mapping[str, Any]) -> Any:
    """An estimator with those of the settings that it has."""
    estimator = method()
    known = estimator.get_params(deep=False)
    return estimator.set_params(**{k: v for k, v in settings.items() if k in known})


def _held_out(
    label: str, estimator: Any, problem: Problem, n_folds: int, work: Work
) -> Array:
    """Error, loss and cost of each row by a model that has not seen it, (n_rows, 3)."""
    rows = np.empty((len(problem.y), 3))
    for train, test in _folds(problem, n_folds):
        model = clone(estimator).fit(problem.X[train], problem.y[train])
        said, truth = model.predict(problem.X[test]), problem.y[test]
        rows[test, 0] = said != truth
        rows[test, 1] = _loss(problem, truth, said)
        rows[test, 2] = model.acquisition_cost(problem.X[test])
        work.advance(label)
    return rows


def _majority(problem: Problem, n_folds: int) -> Array:
    """The same for the one answer of the least loss, with nothing bought."""
    rows = np.zeros((len(problem.y), 3))
    for train, test in _folds(problem, n_folds):
        truth, seen = problem.y[test], problem.y[train]
        losses = {
            label: _loss(problem, seen, np.full(len(seen), label)).mean()
            for label in np.unique(seen).tolist()
        }
        best = np.full(len(test), min(losses, key=lambda label: losses[label]))
        rows[test, 0] = best != truth
        rows[test, 1] = _loss(problem, truth, best)
    return rows


def _folds(problem: Problem, n_folds: int) -> Any:
    least = np.unique(problem.y, return_counts=True)[1].min()
    folds = StratifiedKFold(
        min(n_folds, max(2, int(least))), shuffle=True, random_state=0
    )
    return folds.split(problem.X, problem.y)


def _loss(problem: Problem, truth: NDArray[Any], said: NDArray[Any]) -> Array:
    classes = np.unique(problem.y)
    loss = resolve_loss(problem.loss, classes)
    return loss.of(np.searchsorted(classes, truth), np.searchsorted(classes, said))


def _means(rows: Array, cost_weight: float) -> dict[str, float]:
    """Means over rows, and the standard errors of two of them."""
    error, loss, cost = rows.mean(axis=0).tolist()
    noise = (rows.std(axis=0) / np.sqrt(len(rows))).tolist()
    return {
        "error": error,
        "error_se": noise[0],
        "loss": loss,
        "mean_cost": cost,
        "mean_cost_se": noise[2],
        "total": loss + cost_weight * cost,
    }


def comparison_text(document: Mapping[str, Any], unit: str) -> str:
    """The comparison as a table."""
    lines = []
    for line in document["methods"]:
        if "refused" in line:
            lines.append([line["method"], "–", "–", "–"])
            continue
        lines.append(
            [
                line["method"],
                f"{line['error']:.4f} ± {line['error_se']:.4f}",
                f"{line['mean_cost']:.4g} ± {line['mean_cost_se']:.2g}",
                f"{line['total']:.4g}",
            ]
        )
    cost = f"mean cost ({unit})" if unit else "mean cost"
    notes = [
        f"{line['method']}: {line['refused']}"
        for line in document["methods"]
        if "refused" in line
    ]
    return "\n".join(
        [
            aligned(("method", "error", cost, "total"), lines),
            f"total is loss + {document['cost_weight']:g} × cost, on held-out rows "
            f"({document['cv']} folds); ± is one standard error over rows",
            *notes,
        ]
    )
