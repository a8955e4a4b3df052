"""Columns that answer alone: a very good test, or known only after the decision.

A column tells a class by its levels, or by intervals of its numbers, wherever these are
cut: a class of two rows in a hundred is told as well as one of fifty.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensortree.exceptions import DataError
from sensortree.sensors.sensor import SensorSet
from sensortree.sensors.table import (
    NotNumberError,
    Table,
    as_numbers,
    as_text,
    columns_of,
)
from sensortree.types import Array

LEAST_ROWS = 40  # with fewer, a column may tell by chance
TELLS = 0.99  # share of rows whose answer a column tells on its own
OF_THE_OTHERS = 0.8  # the same, of rows that are not of the most frequent class
ROWS_OF_AN_INTERVAL = 5  # it is one if it tells so many rows more
INTERVALS = 2  # for each class, at most
QUESTION = "is it known before the decision?"


@dataclass(frozen=True)
class Alone:
    """A column that answers alone, for a share of the rows that have its sensor."""

    sensor: str
    column: str
    share: float

    def __str__(self) -> str:
        return f"column {self.column!r} of sensor {self.sensor!r} {said(self.share)}"


def said(share: float) -> str:
    """What speaks against a column that answers alone."""
    return f"tells the answer of {share:.1%} of the rows on its own; {QUESTION}"


def columns_alone(
    sensors: SensorSet, table: Table, y: NDArray[Any], known: NDArray[np.bool_]
) -> tuple[Alone, ...]:
    """Columns that answer alone, where a sensor is `known`, (n_rows, n_sensors)."""
    codes, found = as_codes(y), []
    for sensor, name in enumerate(sensors.names):
        rows, at = np.flatnonzero(known[:, sensor]), sensors.columns[sensor]
        if len(rows) < LEAST_ROWS:
            continue
        columns = columns_of(table.take(rows, at))
        for column, number in zip(columns, at, strict=True):
            share = share_told(_values(column), codes[rows])
            if share:
                found.append(Alone(name, sensors.column_names[number], share))
    return tuple(found)


def _values(column: NDArray[Any]) -> NDArray[Any]:
    """Numbers, or texts; what is neither tells nothing."""
    try:
        return as_numbers(column)
    except NotNumberError:
        pass
    try:
        return as_text(column).astype(str)
    except DataError:
        return np.zeros(len(column))


def as_codes(y: NDArray[Any]) -> NDArray[np.intp]:
    """Classes as numbers from 0; an amount as the quarter of the rows that it is in."""
    if y.dtype.kind == "f" and len(np.unique(y)) > 4:
        y = np.searchsorted(np.quantile(y, [0.25, 0.5, 0.75]), y)
    return np.unique(y, return_inverse=True)[1].reshape(-1)


def share_told(values: NDArray[Any], codes: NDArray[np.intp]) -> float:
    """Share of rows whose class a column tells on its own; 0 if it does not tell it."""
    n_rows, n_classes = len(codes), int(codes.max(initial=0)) + 1
    others = n_rows - np.bincount(codes, minlength=1).max()
    if n_rows < LEAST_ROWS or others < ROWS_OF_AN_INTERVAL:
        return 0.0
    most = min((1 - TELLS) * n_rows, (1 - OF_THE_OTHERS) * others)
    if values.dtype.kind != "f":
        _, level = np.unique(values, return_inverse=True)
        if (level.max() + 1) * ROWS_OF_AN_INTERVAL > n_rows:
            return 0.0  # too few rows of each to tell anything by
        counts = np.zeros((level.max() + 1, n_classes))
        np.add.at(counts, (level, codes), 1)
        wrong = n_rows - counts.max(axis=1).sum()
    else:
        there = ~np.isnan(values)
        gone = np.bincount(codes[~there], minlength=1)
        rest = _runs(values[there], codes[there], n_classes)
        if len(rest) > INTERVALS * n_classes + 2 * most:
            return 0.0  # more intervals and errors than there may be
        wrong = gone.sum() - gone.max() + _errors_of_intervals(rest)
    return float(1 - wrong / n_rows) if wrong <= most else 0.0


def _runs(values: Array, codes: NDArray[np.intp], n_classes: int) -> Array:
    """Rows of each class, in stretches of numbers that are of one class or equal."""
    if not len(values):
        return np.zeros((0, n_classes))
    order = np.lexsort((codes, values))
    values, codes = values[order], codes[order]
    first = np.flatnonzero(np.r_[True, values[1:] != values[:-1]])
    low, high = codes[first], codes[np.r_[first[1:], len(codes)] - 1]
    same = (low[1:] == high[1:]) & (low[:-1] == high[:-1]) & (low[1:] == low[:-1])
    run = np.repeat(np.cumsum(np.r_[0, ~same]), np.diff(np.r_[first, len(codes)]))
    counts = np.zeros((int(run[-1]) + 1, n_classes))
    np.add.at(counts, (run, codes), 1)
    return counts


def _errors_of_intervals(runs: Array) -> float:
    """Rows of another class than their interval, cut where that pays best."""
    # cost[c]: errors, and cuts at so many rows each, where the last interval is of class
    # c; wrong[c]: the errors among them.
    n_classes = runs.shape[1]
    cost, wrong = np.zeros(n_classes), np.zeros(n_classes)
    for run in runs:
        best = int(cost.argmin())
        cut = cost > cost[best] + ROWS_OF_AN_INTERVAL
        wrong = np.where(cut, wrong[best], wrong) + run.sum() - run
        cost = np.minimum(cost, cost[best] + ROWS_OF_AN_INTERVAL) + run.sum() - run
    return float(wrong[cost.argmin()])
