"""What is run for the paper: problems x leaf classifiers x methods x splits x values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from experiments.data import (
    Dataset,
    at_cost_one,
    by_column,
    few,
    load,
    path_of,
    split_at_random,
)
from experiments.methods import (
    METHODS,
    few_values,
    fitted_path,
    in_units,
    on_stages,
    tested,
    timed,
)
from experiments.results import Line
from experiments.studies import forest
from experiments.study import Cell
from sensortree import SensorTreeClassifier

SMALL = ("pima", "segment", "segment-official", "landsat", "sun", "letter")
FETCHED = ("letter-openml", "landsat-openml", "pima-openml", "segment-openml")
# Many features, and their files.
WIDE = {"forest": "covtype", "miniboone": "MiniBooNE_PID.txt", "cifar": "cifar"}
LEAVES = ("linear", "text", "ours")
TREES = ("Myopic", "AM", "LP, as published", "ours", "static subset")
CASCADES = ("AM on a cascade", "LP on a cascade", "LP on a cascade, tight")
OUTSIDE = ("boosted trees on all sensors", "CEGB", "pystreed")
# Where only a cascade is published, and its leaves are linear.
WITH_CASCADE = ("pima", "landsat", "letter")
SEVERAL_CLASSES = ("landsat", "letter")
TOO_LARGE = ("letter",)  # for pystreed: 16,000 rows of 26 classes
TIMED = ("LP, as published", "AM", "ours", "CSTC", "ASTC", "CEGB")
SECONDS = "seconds: "
TIMED_AT = 0.35  # error that everything is worth
SEARCH_SECONDS = 1200.0  # Algorithm 1 on many features would take hours
WIDE_WEIGHTS = (0.02, 0.01, 0.005, 0.002)


def problem(name: str, quick: bool = False) -> Dataset:
    """Few sensors of cost 1, in the order of the stages; the first is known at the root."""
    data = at_cost_one(load(name.removesuffix("-official")))
    if name == "segment":
        data = split_at_random(data)
    return few(data) if quick else data


def wide(name: str, quick: bool = False) -> Dataset:
    """Many features of cost 1."""
    data = by_column(load(name))
    return few(data) if quick else data


def cells(name: str, quick: bool, lines: list[Line]) -> Iterator[Cell]:
    """Everything there is to run on a problem."""
    return wide_cells(name, quick) if name in WIDE else small_cells(name, quick)


def small_cells(name: str, quick: bool) -> Iterator[Cell]:
    """Trees, cascades, what users would take instead, and times."""
    rows = name.removesuffix("-openml")
    cases = [(leaves, method) for leaves in LEAVES for method in TREES]
    if rows in WITH_CASCADE:
        cases += [("linear", method) for method in CASCADES]
    if rows in SEVERAL_CLASSES:
        cases += [("rest", method) for method in (*TREES[:3], *CASCADES)]
    cases += [
        ("trees", method)
        for method in OUTSIDE
        if quick or (method, rows) not in [("pystreed", large) for large in TOO_LARGE]
    ]
    n_splits = len(problem(name, quick).splits)
    for leaves, method in cases:
        values = tuple(written(value) for value in METHODS[method].values)
        for split in range(n_splits):
            yield Cell(
                {"data": name, "leaves": leaves, "method": method, "split": split},
                "value",
                few_values(values) if quick else values,
                needs=METHODS[method].needs,
            )
    for method in TIMED:
        yield Cell(
            {"data": name, "leaves": "ours", "method": SECONDS + method, "split": 0},
            "value",
            (TIMED_AT,),
            alone=True,
            needs=METHODS[method].needs,
        )


def written(value: float) -> float:
    """A value with the three digits that a line has."""
    return float(f"{value:.3g}")


def wide_cells(name: str, quick: bool) -> Iterator[Cell]:
    """Trees with learned structures, and ASTC and CSTC, which on Forest have a study."""
    path_of(WIDE[name])  # says so now if the file is missing
    if name not in forest.LABELS:
        for fields, value in forest.settings(quick):
            fields = {"data": name, "leaves": "linear", **fields, "split": 0}
            yield Cell(fields, "value", (value,))
    for method in ("ours", "LP, as published"):
        yield Cell(
            {"data": name, "leaves": "ours", "method": method, "split": 0},
            "value",
            WIDE_WEIGHTS[:1] if quick else WIDE_WEIGHTS,
        )


def measure(cell: Cell) -> Iterator[Line]:
    """Lines of a cell."""
    if cell.fields["data"] in WIDE:
        return wide_lines(cell)
    if cell.alone:
        return iter([{"value": TIMED_AT, "fit_seconds": seconds(cell)}])
    return small_lines(cell)


def small_lines(cell: Cell) -> Iterator[Line]:
    """A method along its values on one split."""
    data, method = problem(cell.fields["data"], cell.quick), cell.fields["method"]
    exactly = {written(value): value for value in METHODS[method].values}
    weights = in_units(method, [exactly[value] for value in cell.values], data)
    model = on_stages(method, cell.fields["leaves"], data)
    return path_lines(model, weights, data, cell)


def wide_lines(cell: Cell) -> Iterator[Line]:
    """ASTC and CSTC at one value, or a tree with a learned structure at some."""
    data, method = wide(cell.fields["data"], cell.quick), cell.fields["method"]
    if method in forest.RUNS:
        for value in cell.values:
            line = forest.fitted(method, value, data)
            yield {**line, "leaves": cell.fields["leaves"], "n_leaves": line["leaves"]}
        return
    model: Any = SensorTreeClassifier(max_time=SEARCH_SECONDS)
    if method == "LP, as published":
        model = SensorTreeClassifier.as_published(
            structure="greedy", n_exact=3, max_time=SEARCH_SECONDS
        )
    yield from path_lines(model, cell.values, data, cell)


def path_lines(model: Any, weights: Any, data: Dataset, cell: Cell) -> Iterator[Line]:
    """Fit along some weights, and test."""
    X, y, X_test, y_test = data.rows(cell.fields["split"])
    path, took = fitted_path(model, X, y, weights)
    for value, fitted in zip(cell.values, path, strict=True):
        line = tested(fitted, X_test, y_test)
        spent = float(f"{took.cpu / len(path):.3g}")
        yield {"value": value, **line, "cpu_seconds": spent}


def seconds(cell: Cell) -> float:
    """CPU seconds of a whole fit at one value."""
    data = problem(cell.fields["data"], cell.quick)
    X, y, *_ = data.rows()
    name = cell.fields["method"].removeprefix(SECONDS)
    given = {"sensors": data.sensors, "costs": data.costs}
    if name in ("CSTC", "ASTC"):
        return timed(lambda: METHODS[name].make(**given).fit(X, y))[1].cpu
    if name == "CEGB":
        return fitted_path(METHODS[name].make(**given), X, y, METHODS[name].values[:1])[
            1
        ].cpu
    weights = in_units(name, [TIMED_AT], data)
    return fitted_path(on_stages(name, cell.fields["leaves"], data), X, y, weights)[
        1
    ].cpu
