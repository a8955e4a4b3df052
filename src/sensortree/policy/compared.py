"""A policy's rows answered by its baselines: what decisions save, row by row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sensortree.exceptions import DataError
from sensortree.policy.baselines import Baseline
from sensortree.policy.classifiers import posterior
from sensortree.policy.measures import MEASURES, Interval, wilson
from sensortree.policy.policy import Policy
from sensortree.sensors.table import Table, is_missing
from sensortree.types import Array, Rows


@dataclass(frozen=True)
class BaselineUse:
    """What a classifier that buys the same for all would have done with the same rows.

    Attributes
    ----------
    name : {"everything", "best fixed set", "nothing"}
    sensors : tuple of str
        What is bought for every row; of nothing, what is free.
    error, loss, cost, total : float
        Means per row; NaN where the rows do not hold what it must read.
    intervals : mapping of str to (float, float)
        As those of a `CostReport`.
    saved : mapping of str to float
        By how much the policy has less of each; below 0, the baseline has less.
    saved_intervals : mapping of str to (float, float)
        95 % intervals of these differences, which are taken row by row.
    note : str or None
        What keeps this from being a fair comparison.
    """

    name: str
    sensors: tuple[str, ...]
    error: float
    loss: float
    cost: float
    total: float
    intervals: Mapping[str, Interval]
    saved: Mapping[str, float]
    saved_intervals: Mapping[str, Interval]
    note: str | None


@dataclass(frozen=True, eq=False)
class Rival:
    """A baseline's answers: error, loss, cost and total of each row, (n_rows, 4).

    There are none where the rows do not hold what it must read.
    """

    name: str
    sensors: tuple[str, ...]
    measures: Array | None
    note: str | None


def rivals_of(
    policy: Policy, table: Table, truth: NDArray[np.intp], rows: Rows
) -> list[Rival]:
    """Answer some rows by every baseline of a policy."""
    return [_rival(policy, b, table, truth, rows) for b in policy.baselines or ()]


def _rival(
    policy: Policy,
    baseline: Baseline,
    table: Table,
    truth: NDArray[np.intp],
    rows: Rows,
) -> Rival:
    sensors, reader = policy.sensors, policy.reader
    names = sensors.in_order(baseline.sensors)
    missing = {name: _missing(policy, name, table, rows) for name in names}
    never = [name for name, where in missing.items() if where.all()]
    if never:
        note = f"not known, since these rows have no values of {', '.join(never)}"
        return Rival(baseline.name, names, None, note)
    try:
        read = [reader.read(table, sensors.index(name), rows)[0] for name in names]
    except DataError as error:
        note = f"not known, since not all of these rows can be read: {error}"
        return Rival(baseline.name, names, None, note)
    readings = np.hstack(read) if read else np.empty((len(rows), 0))
    belief = posterior(baseline.classifier, readings, policy.n_outputs)
    answer = policy.loss.answer(belief)
    prices = reader.prices(table)
    own = None if prices is None else prices[rows]
    cost = np.broadcast_to(sensors.cost_of(names, prices=own), len(rows))
    right = truth[rows]
    loss = policy.loss.judge(right, belief)
    total = loss + policy.cost_weight * cost
    wrong = policy.loss.error(right, answer)
    measures = np.stack([wrong, loss, cost, total], axis=1)
    return Rival(baseline.name, names, measures, _answered_blindly(missing))


def _answered_blindly(missing: Mapping[str, NDArray[np.bool_]]) -> str | None:
    """In how many rows a baseline answers without values that it has paid for."""
    lacks = np.any(list(missing.values()), axis=0) if missing else np.zeros(1)
    if not lacks.any():
        return None
    return (
        f"in {100 * float(np.mean(lacks)):.1f} % of these rows some of its sensors have no "
        f"values, and it answers without them, at the full price"
    )


def _missing(policy: Policy, name: str, table: Table, rows: Rows) -> NDArray[np.bool_]:
    """Rows of which a sensor has no values at all."""
    sensors = policy.sensors
    values = np.asarray(table.take(rows, sensors.columns[sensors.index(name)]))
    if values.dtype.kind == "f":
        return np.asarray(np.isnan(values).all(axis=1))
    if values.dtype.kind != "O":
        return np.zeros(len(rows), dtype=bool)
    return np.array([all(is_missing(v) for v in row) for row in values], dtype=bool)


def columns_of(rivals: Sequence[Rival], own: Array) -> list[Array]:
    """What needs an interval: measures of each rival that answers, less the policy's."""
    answering = [rival.measures for rival in rivals if rival.measures is not None]
    return [part for measures in answering for part in (measures, measures - own)]


def uses_of(
    rivals: Sequence[Rival], own: Array, weight: Array, intervals: Iterator[Interval]
) -> tuple[BaselineUse, ...]:
    """Means of the baselines, and by how much the policy has less.

    Parameters
    ----------
    rivals : sequence of Rival
    own : ndarray of shape (n_rows, 4)
        Error, loss, cost and total of the policy.
    weight : ndarray of shape (n_rows,)
    intervals : iterator of (float, float)
        Of the columns that `columns_of` gives, or none.
    """
    return tuple(_use(rival, weight @ own, weight, intervals) for rival in rivals)


def _use(
    rival: Rival, own: Array, weight: Array, intervals: Iterator[Interval]
) -> BaselineUse:
    """Means of one baseline, and its intervals."""
    mean = np.full(len(MEASURES), np.nan)
    between: dict[str, Interval] = {}
    less: dict[str, Interval] = {}
    if rival.measures is not None:
        mean = weight @ rival.measures
        between = dict(zip(MEASURES, intervals, strict=False))
        less = dict(zip(MEASURES, intervals, strict=False))
        if between:
            between["error"] = wilson(rival.measures[:, 0] > 0, weight)
    error, loss, cost, total = map(float, mean)
    return BaselineUse(
        rival.name,
        rival.sensors,
        error,
        loss,
        cost,
        total,
        between,
        dict(zip(MEASURES, (mean - own).tolist(), strict=True)),
        less,
        rival.note,
    )
