"""What else the same rows could have had: answers of baselines, or less to spend."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sensortree.exceptions import DataError
from sensortree.policy.about import Baseline
from sensortree.policy.batch import Walk
from sensortree.policy.classifiers import posterior
from sensortree.policy.policy import Policy
from sensortree.reports.measures import MEASURES, Interval, wilson
from sensortree.reports.report_sums import ReportSums, right_answers, row_weights
from sensortree.sensors.table import Table, is_missing
from sensortree.threads import one_thread
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

    def use(
        self, own: Array, weight: Array, intervals: Iterator[Interval]
    ) -> BaselineUse:
        """Means, and by how much the policy has less.

        Parameters
        ----------
        own : ndarray of shape (4,)
            Mean error, loss, cost and total of the policy.
        weight : ndarray of shape (n_rows,)
        intervals : iterator of (float, float)
            Of the measures and of what the policy has less, or none.
        """
        mean = np.full(len(MEASURES), np.nan)
        between: dict[str, Interval] = {}
        less: dict[str, Interval] = {}
        if self.measures is not None:
            mean = weight @ self.measures
            between = dict(zip(MEASURES, intervals, strict=False))
            less = dict(zip(MEASURES, intervals, strict=False))
            if between:
                between["error"] = wilson(self.measures[:, 0] > 0, weight)
        error, loss, cost, total = map(float, mean)
        return BaselineUse(
            self.name,
            self.sensors,
            error,
            loss,
            cost,
            total,
            between,
            dict(zip(MEASURES, (mean - own).tolist(), strict=True)),
            less,
            self.note,
        )


def rival_of(
    policy: Policy,
    baseline: Baseline,
    table: Table,
    truth: NDArray[np.intp],
    rows: Rows,
) -> Rival:
    """Answer some rows by a baseline of a policy."""
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


LIMITS = 12  # at most


@dataclass(frozen=True)
class LimitedUse:
    """Means per row where no row may cost more than a limit; None is the policy's own."""

    limit: float | None
    error: float
    loss: float
    cost: float


@one_thread()
def limited(
    policy: Policy, table: Table, y: ArrayLike, sample_weight: ArrayLike | None = None
) -> tuple[LimitedUse, ...]:
    """Answer rows within several limits, from nothing to what the policy spends.

    Decisions stay as they were learned; who cannot pay for what is decided is sent where
    training says that it is served best (`max_cost`). A limit at which some rows would
    have to buy what the table does not hold is left out.

    Parameters
    ----------
    policy : Policy
    table : Table
    y : array-like of shape (n_rows,)
        Right answers.
    sample_weight : array-like of shape (n_rows,), default=None
    """
    truth = right_answers(y, table.shape[0], policy)
    weight = row_weights(sample_weight, table.shape[0])
    whole = ReportSums(Walk(policy, table), truth, weight)
    uses = []
    for limit in some_limits(whole.cost[weight > 0]):
        walk = Walk(replace(policy, max_cost=limit), table)
        try:
            uses.append(_limited_use(limit, ReportSums(walk, truth, weight)))
        except DataError:
            continue
    return (*uses, _limited_use(None, whole))


def some_limits(costs: Array) -> list[float]:
    """Nothing, and some of the amounts that rows pay, all but the highest.

    Examples
    --------
    >>> some_limits(np.array([4.0, 1.0, 1.0, 9.0]))
    [0.0, 1.0, 4.0]
    """
    amounts = np.unique(np.r_[0.0, costs])[:-1]
    at = np.linspace(0, len(amounts) - 1, min(LIMITS, len(amounts)))
    return [float(amounts[i]) for i in np.unique(at.round().astype(int))]


def _limited_use(limit: float | None, rows: ReportSums) -> LimitedUse:
    error, loss, cost, _ = rows.mean()
    return LimitedUse(limit, error, loss, cost)
