"""What each improvement on the published method is worth: test error against mean cost.

Every method sees the same training rows, tree and leaf classifiers, and is fitted at the
same cost weights. A line per data set, method and cost weight (of a static subset, per
subset; of LightGBM, per trade-off), means over splits. About an hour on one core.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, combinations
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from sklearn.ensemble import HistGradientBoostingClassifier

from experiments.data import Dataset, few, load
from experiments.figures import finish, hull, panel
from experiments.methods import (
    METHODS,
    few_values,
    fitted_path,
    over_splits,
    tested,
)
from experiments.results import Line
from experiments.study import Cell, Study
from experiments.tables import (
    aligned,
    curve_of,
    mean,
    of,
    or_dash,
    percent,
    points,
    rule,
)
from sensortree import (
    AlternatingTreeClassifier,
    Program,
    QuadraticLogisticRegression,
    SensorTreeClassifier,
)

# Error that buying everything is worth, from "buy nothing" to "buy everything".
SHARES = (
    *(3.4, 2.6, 2.0, 1.7, 1.4, 1.2, 1.0, 0.85, 0.7, 0.5),
    *(0.35, 0.25, 0.18, 0.12, 0.08, 0.05, 0.03, 0.015, 0.005),
)
PUBLISHED = SensorTreeClassifier.as_published
published = Program.as_published
ALTERNATING = "AM x 5, inputs of all"
TREES: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "as published": (PUBLISHED, {}),
    "all": (SensorTreeClassifier, {}),
    "+ tight savings": (PUBLISHED, {"program": published(savings="tight")}),
    "+ out-of-fold": (PUBLISHED, {"cv": 5}),
    "+ out-of-fold, smoothed errors": (
        PUBLISHED,
        {"cv": 5, "program": published(errors="smoothed")},
    ),
    "+ posterior": (
        PUBLISHED,
        {"program": published(decision_features="posterior+raw")},
    ),
    "+ out-of-fold, posterior": (
        PUBLISHED,
        {"cv": 5, "program": published(decision_features="posterior+raw")},
    ),
    "+ refinement": (PUBLISHED, {"program": published(refine=True)}),
    "+ ridge": (PUBLISHED, {"program": published(l2="auto")}),
    "+ fallback": (PUBLISHED, {"program": published(fallback=True)}),
    "all but refinement": (SensorTreeClassifier, {"program": Program(refine=False)}),
    "all but smoothed errors": (
        SensorTreeClassifier,
        {"program": Program(errors="observed")},
    ),
    "AM x 5, as published": (AlternatingTreeClassifier, {}),
    ALTERNATING: (
        AlternatingTreeClassifier,
        {
            "cv": 5,
            "errors": "smoothed",
            "decision_features": "posterior+raw",
            "l2": "auto",
        },
    ),
    "all, boosted leaves": (SensorTreeClassifier, {"classifier": "boosted"}),
}
STATIC: dict[str, Callable[[], Any]] = {
    "static": QuadraticLogisticRegression,
    "static, boosted": lambda: HistGradientBoostingClassifier(
        early_stopping=False, random_state=0
    ),
}
ORDER = ("static", *TREES, "static, boosted", "CEGB")
# Errors printed in the paper's Table 2.
PRINTED = {"landsat": 0.15, "letter": 0.40}
DRAWN = {
    "as published": "#999999",
    "AM x 5, as published": "#e69f00",
    "all": "#0072b2",
    "all, boosted leaves": "#56b4e9",
    "CEGB": "#d55e00",
    "static subset": "#009e73",
}


def cells(name: str, quick: bool, lines: list[Line]) -> Iterator[Cell]:
    """Each method on all splits; cost weights share their leaf classifiers."""
    everything = load(name).everything
    weights = tuple(share / everything for share in SHARES)
    for method in ORDER:
        fields = {"data": name, "method": method}
        if method in TREES:
            yield Cell(fields, "cost_weight", few_values(weights) if quick else weights)
        else:
            needs = "lightgbm" if method == "CEGB" else None
            yield Cell(fields, "cost_weight", needs=needs)


def measure(cell: Cell) -> list[Line]:
    """Lines of a method, means over splits."""
    data, method = load(cell.fields["data"]), cell.fields["method"]
    data = few(data) if cell.quick else data
    if method in STATIC:
        return over_splits(static_lines(data, STATIC[method]()))
    if method == "CEGB":
        return over_splits(cegb_lines(data))
    return over_splits(tree_lines(data, method, cell.values))


def told(data: Dataset) -> dict[str, Any]:
    """Sensors, root and tree: every order of buying if small, else the cheapest first."""
    return {
        "sensors": data.sensors,
        "costs": data.costs,
        "structure": "exhaustive" if len(data.prices) <= 4 else "cascade",
        "root_sensors": [data.first_sensor],
    }


def tree_lines(
    data: Dataset, method: str, weights: tuple[float, ...]
) -> Iterator[Line]:
    """Fit along some cost weights on each split; give one line per cost weight."""
    make, settings = TREES[method]
    for split in range(len(data.splits)):
        X, y, X_test, y_test = data.rows(split)
        path, seconds = fitted_path(make(**told(data), **settings), X, y, weights)
        for weight, fitted in zip(weights, path, strict=True):
            yield {
                "split": split,
                "cost_weight": weight,
                **tested(fitted, X_test, y_test),
                "training_risk": training_risk(fitted),
                "seconds": seconds.wall / len(weights),
            }


def training_risk(model: Any) -> float:
    """Risk that the decisions were learned to make small, on the rows they saw."""
    if isinstance(model, AlternatingTreeClassifier):
        return float(model.training_risks_.min())
    return float(model.decision_report_.learned_risk)


def static_lines(data: Dataset, classifier: Any) -> Iterator[Line]:
    """Every subset that knows the first sensor, bought for everybody; and the oracle."""
    others = [s for s in data.prices if s != data.first_sensor]
    subsets = [
        frozenset({data.first_sensor, *more})
        for more in chain.from_iterable(
            combinations(others, k) for k in range(len(others) + 1)
        )
    ]
    for split in range(len(data.splits)):
        X, y, X_test, y_test = data.rows(split)
        wrong = []
        for subset in subsets:
            columns = data.columns(subset)
            classifier.fit(X[:, columns], y)
            wrong.append(classifier.predict(X_test[:, columns]) != y_test)
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
                "error": float(error[np.arange(len(error)), best].mean()),
            }


def cegb_lines(data: Dataset) -> Iterator[Line]:
    """LightGBM with lazy feature penalties, one line per trade-off."""
    method = METHODS["CEGB"]
    model = method.make(sensors=data.sensors, costs=data.costs)
    for split in range(len(data.splits)):
        X, y, X_test, y_test = data.rows(split)
        path, _ = fitted_path(model, X, y, method.values)
        for tradeoff, fitted in zip(method.values, path, strict=True):
            line = tested(fitted, X_test, y_test)
            yield {"split": split, "tradeoff": tradeoff, **line}


# what is read -------------------------------------------------------------------------


def pages(lines: list[Line]) -> dict[str, str]:
    """A table of each data set, and training risks against alternating minimisation."""
    tables = [table(of(lines, data=name), name) for name in STUDY.data]
    return {"ablation.md": "\n".join([*tables, against_alternating(lines)])}


def table(lines: list[Line], name: str) -> str:
    """Budget shares at target errors, errors at some budgets."""
    subsets = [i for i in of(lines, method="static") if i["subset"] != "oracle"]
    if not subsets:
        return f"{name}: nothing was run.\n"
    first, everything = (f(line["cost"] for line in subsets) for f in (min, max))
    at_first, at_all = (mean(of(subsets, cost=c), "error") for c in (first, everything))
    targets = [rule(at_first, at_all)]
    targets += [PRINTED[name]] if name in PRINTED else []
    budgets = [first + share * (everything - first) for share in (0.15, 0.3, 0.6)]
    rows = [
        ["method"]
        + [f"share at {100 * target:.1f} % error" for target in targets]
        + [f"error at cost {budget:.3g}" for budget in budgets]
        + ["seconds a fit"]
    ]
    for label, mine in groups(lines):
        curve = curve_of(mine)
        shares = [curve.budget_share(t, first, everything) for t in targets]
        errors = [curve.error_at_cost(b) for b in budgets]
        seconds = np.mean([line.get("seconds", np.nan) for line in mine])
        rows.append(
            [
                label,
                *(percent(share) for share in shares),
                *(or_dash(error, ".4f") for error in errors),
                or_dash(float(seconds), ".1f"),
            ]
        )
    return (
        f"{name}: {at_first:.4f} with the first sensor (cost {first:g}), {at_all:.4f} with "
        f"all (cost {everything:g})\n\n{aligned(rows)}"
    )


def groups(lines: list[Line]) -> Iterator[tuple[str, list[Line]]]:
    """Lines of each method that was run; of a static one, subsets and the oracle."""
    for method in ORDER:
        mine = of(lines, method=method)
        if mine and method in STATIC:
            yield f"{method} subset", [i for i in mine if i["subset"] != "oracle"]
            yield f"{method} oracle", of(mine, subset="oracle")
        elif mine:
            yield method, mine


def against_alternating(lines: list[Line]) -> str:
    """How often the default's training risk is at most that of five random starts."""
    counts = []
    for name in STUDY.data:
        ours, theirs = (
            {
                i["cost_weight"]: i["training_risk"]
                for i in of(lines, data=name, method=m)
            }
            for m in ("all", ALTERNATING)
        )
        both = [weight for weight in ours if weight in theirs]
        won = sum(ours[weight] <= theirs[weight] for weight in both)
        counts.append(f"{name} {won} of {len(both)}")
    return (
        "Training risk of the default at most that of alternating minimisation from five "
        "random starts with the same inputs, by cost weight, mean over splits: "
        + ", ".join(counts)
        + ".\n"
    )


def pictures(lines: list[Line]) -> dict[str, Figure]:
    """Error against mean cost on each data set that was run."""
    measured = [name for name in STUDY.data if of(lines, data=name)]
    return {f"ablation_{name}.svg": picture(lines, name) for name in measured}


def picture(lines: list[Line], name: str) -> Figure:
    """The lower hulls of the main methods."""
    figure, axes = panel(title=name, xlabel="mean cost of the sensors bought")
    measured = dict(groups(of(lines, data=name)))
    for method, colour in DRAWN.items():
        hull(axes, points(measured.get(method, [])), colour, method, lw=1.5)
    finish(axes, fontsize=8)
    return figure


STUDY = Study(
    file="ablation",
    key=("data", "method", "cost_weight"),
    data=("landsat", "letter", "pima", "heart"),
    cells=cells,
    measure=measure,
    pages=pages,
    pictures=pictures,
    seeds="splits 0, starts of AM 0",
)
