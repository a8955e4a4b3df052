"""Trees learned from logs with a quarter of complete rows, beside what else could be done.

A logger buys sensors in one order and stops where the mean of what it saw is far from the
middle, so often that it is expected to buy everything for a quarter of the rows. What was
not bought is hidden. Trees are learned

    everything was bought     from all sensors of all rows, which nobody has
    from the log              from the log, by ``fit(..., acquired=...)``
    complete rows             from the rows for which everything was bought
    mean imputation           from all rows, gaps filled with the mean of what was bought

and tested on rows that have all sensors. All have quadratic leaves and the cascade of the
logger's order, so that they differ in the rows alone. The risk is error plus weighted cost.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.data import Dataset, load
from experiments.results import Line
from experiments.study import Cell, Study
from experiments.tables import markdown, of
from sensortree import SensorTreeClassifier

Array = NDArray[Any]
REPETITIONS, COMPLETE = 40, 0.25
FIRST = 10  # repetitions that are also shown alone
# Rows to learn from, and cost weight.
SETS = {
    "pima": (500, 0.002),
    "landsat": (3000, 0.02),
    "letter": (3000, 0.03),
    "segment": (1500, 0.01),
}
QUICK_ROWS = 200
ALL, LOG, COMPLETE_ROWS, MEANS = (
    "everything was bought",
    "from the log",
    "complete rows",
    "mean imputation",
)
ARMS = (ALL, LOG, COMPLETE_ROWS, MEANS)


def columns_of(data: Dataset) -> list[list[int]]:
    """Columns of each sensor, in the order of the logger: the cheapest first."""
    assert data.sensors is not None
    names = sorted(data.sensors, key=lambda name: data.prices[name])
    return [list(data.sensors[name]) for name in names]


def seen(X: Array, columns: list[list[int]]) -> Array:
    """What a logger sees of each sensor, of mean 0 and variance 1, (n_rows, n_sensors)."""
    scaled = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)
    z = np.stack([scaled[:, own].mean(axis=1) for own in columns], axis=1)
    return np.asarray(z / np.maximum(z.std(axis=0), 1e-12))


def bought(z: Array, rng: Any) -> Array:
    """How many sensors a logger buys for each row, (n_rows,)."""
    n_rows, n_sensors = z.shape
    rounds = np.arange(n_sensors)
    before = np.hstack([np.zeros((n_rows, 1)), np.cumsum(z, axis=1)[:, :-1]])
    logit = 1.2 * (np.abs(before / np.sqrt(np.maximum(rounds, 1))) - 0.8) * (rounds > 0)

    def goes_on(base: float) -> Array:
        return np.asarray(1 / (1 + np.exp(base + logit)))

    low, high = -20.0, 20.0
    while high - low > 1e-6:  # the larger the base, the fewer complete rows
        base = (low + high) / 2
        more = goes_on(base).prod(axis=1).mean() > COMPLETE
        low, high = (base, high) if more else (low, base)
    alive = rng.random(z.shape) < goes_on(low)
    return np.asarray(np.logical_and.accumulate(alive, axis=1).sum(axis=1))


def cells(name: str, quick: bool, lines: list[Line]) -> Iterator[Cell]:
    """All arms on the same rows, again and again."""
    yield Cell({"data": name}, "repetition", tuple(range(1 if quick else REPETITIONS)))


def measure(cell: Cell) -> Iterator[Line]:
    """Draw rows and a log, learn in every way, and test."""
    data = load(cell.fields["data"])
    n_rows, cost_weight = SETS[data.name]
    columns = columns_of(data)
    z = seen(data.X, columns)
    for repetition in cell.values:
        rng = np.random.default_rng(repetition)
        order = rng.permutation(len(data.y))
        n_learned = QUICK_ROWS if cell.quick else n_rows
        rows, test = order[:n_learned], order[n_rows:]
        X, y = data.X[rows], data.y[rows]
        n_bought = bought(z[rows], rng)
        position = np.arange(1, len(columns) + 1)
        acquired = np.where(position <= n_bought[:, None], position, 0)
        complete = n_bought == len(columns)
        hidden = X.copy()
        for sensor, own in enumerate(columns):
            hidden[np.ix_(acquired[:, sensor] == 0, own)] = np.nan
        filled = np.where(np.isnan(hidden), np.nanmean(hidden, axis=0), hidden)
        line: Line = {"repetition": repetition, "complete": float(complete.mean())}
        given: dict[str, tuple[Any, ...]] = {
            ALL: (X, y),
            LOG: (hidden, y),
            COMPLETE_ROWS: (X[complete], y[complete]),
            MEANS: (filled, y),
        }
        for arm, (readings, labels) in given.items():
            model = tree(data, cost_weight)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of classes with few rows
                log = {"acquired": in_declared_order(acquired, data)}
                model.fit(readings, labels, **(log if arm == LOG else {}))
            error = float((model.predict(data.X[test]) != data.y[test]).mean())
            cost = float(model.acquisition_cost(data.X[test]).mean())
            line[arm] = error + cost_weight * cost
            line[f"{arm}: cost"] = cost
        yield line


def tree(data: Dataset, cost_weight: float) -> SensorTreeClassifier:
    """What learns, whatever it learns from."""
    return SensorTreeClassifier(
        data.sensors,
        costs=data.costs,
        cost_weight=cost_weight,
        classifier="logistic2",
        structure="cascade",
        outages=False,
        n_jobs=1,
    )


def in_declared_order(acquired: Array, data: Dataset) -> Array:
    """Positions of purchases with a column for each sensor as the set declares them."""
    assert data.sensors is not None
    names = list(data.sensors)
    by_price = sorted(names, key=lambda name: data.prices[name])
    return np.asarray(acquired[:, [by_price.index(name) for name in names]])


def pages(lines: list[Line]) -> dict[str, str]:
    """Risks, the share of the gap that is closed, and the gain over complete rows."""
    head = ["data", "repetitions", "complete", *ARMS]
    rows = [[*head, "gap closed", "gain", "standard error"]]
    for name in SETS:
        every = of(lines, data=name)
        first = [line for line in every if line["repetition"] < FIRST]
        both = (first, every) if len(every) > len(first) else (first,)
        rows += [[name, *shown(some)] for some in both if some]
    return {"log_learning.md": markdown(rows)}


def shown(some: list[Line]) -> list[str]:
    """One line of the table, of some repetitions."""
    risk = {arm: np.array([line[arm] for line in some]) for arm in ARMS}
    gain = risk[COMPLETE_ROWS] - risk[LOG]
    gap = risk[COMPLETE_ROWS] - risk[ALL]
    spread = gain.std(ddof=1) / len(gain) ** 0.5 if len(gain) > 1 else np.nan
    return [
        f"{len(some)}",
        f"{100 * np.mean([line['complete'] for line in some]):.0f} %",
        *(f"{risk[arm].mean():.4f}" for arm in ARMS),
        f"{100 * gain.mean() / gap.mean():.0f} %",
        f"{gain.mean():.4f}",
        f"{spread:.4f}",
    ]


STUDY = Study(
    file="log_learning",
    key=("data", "repetition"),
    data=tuple(SETS),
    cells=cells,
    measure=measure,
    pages=pages,
    quickly=("pima",),
    seeds="rows and logs by repetition",
)
