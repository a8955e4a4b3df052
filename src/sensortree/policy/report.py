"""`CostReport`: what a policy spent on some rows, on what, and what it was worth."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sensortree.exceptions import DataError, ParameterError
from sensortree.policy.batch import send
from sensortree.policy.policy import Policy
from sensortree.sensors.seen import Unseen, merged
from sensortree.sensors.table import Table, pandas_frame
from sensortree.text import aligned, plain
from sensortree.tree.paths import path_bill
from sensortree.types import Array

QUANTILES = (0.0, 0.25, 0.5, 0.75, 0.9, 1.0)
MEASURES = ("error", "loss", "cost", "total")
COVERAGE = 0.95
FRAMES = ("summary", "sensors", "leaves", "classes")


@dataclass(frozen=True)
class SensorUse:
    """What became of one sensor: share of rows that acquire it, spend per row of all."""

    sensor: str
    share: float
    spend: float


@dataclass(frozen=True)
class PlaceUse:
    """What happened at one place where rows stop; means are NaN where none does.

    `leaf` is negative where a row could afford no leaf: ``~node``, as `apply` gives it.
    """

    place: str
    leaf: int
    sensors: tuple[str, ...]
    rows: int
    share: float
    error: float
    loss: float
    cost: float


@dataclass(frozen=True)
class ClassUse:
    """What happened to the rows of one class; `sensors` is the share that acquires each."""

    label: Any
    rows: int
    share: float
    error: float
    loss: float
    cost: float
    sensors: Mapping[str, float]


@dataclass(frozen=True)
class CostReport:
    """What a policy spent on some rows, on what, and what it was worth.

    All means are per row, by the rows' weights; costs are what the rows really paid, with
    discounts and prices of their own.

    Attributes
    ----------
    n_rows : int
        Rows of a weight above 0.
    error : float
        Share of wrong answers.
    loss : float
        Mean loss of the answers, in the unit of the policy's loss matrix; without one, the
        error.
    cost : float
        Mean price of what a row acquires.
    total : float
        ``loss + cost_weight * cost``: with losses in the unit of prices and a cost weight
        of 1, all the money that a row takes.
    cost_weight : float
    has_loss : bool
        Whether the policy has a loss matrix.
    quantiles : mapping of float to float
        Costs that 0, 25, 50, 75, 90 and 100 % of the rows do not exceed.
    everything : float
        Mean price of acquiring all sensors.
    share_of_everything : float
        Cost as a share of that; 0 if all is free.
    sensors : tuple of SensorUse
        ``sensor``, ``share`` of rows that acquire it, ``spend`` per row. What a group pays
        once is charged to its first sensor on the row's way; spends add up to `cost`.
    leaves : tuple of PlaceUse
        ``place``, ``leaf``, ``sensors``, ``rows``, ``share``, ``error``, ``loss``, ``cost``
        of every leaf, and of every node where rows stop since they can afford no more.
    classes : tuple of ClassUse
        ``label``, ``rows``, ``share``, ``error``, ``loss``, ``cost``, and the share that
        acquires each of ``sensors``, of every class that occurs.
    intervals : mapping of str to (float, float)
        95 % bootstrap intervals of error, loss, cost and total: percentiles over rows
        drawn anew. They say how sure the figures are for this policy, not how it would
        vary if it were fitted again. Empty if `n_bootstrap` was 0.
    unseen : tuple of Unseen
        Columns that hold what training never saw: ``sensor``, ``column``, ``what`` of it
        ("level", "range" or "missing"), the first ``row`` with its ``value``, ``n_rows``,
        and what was ``seen``. Only what a row acquires is looked at.

    Examples
    --------
    >>> import numpy as np
    >>> from sensortree import SensorTreeClassifier
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = X[:, 0] + (np.abs(X[:, 0]) < 0.5) * X[:, 1] > 0
    >>> model = SensorTreeClassifier(
    ...     {"cheap": [0], "dear": [1]}, costs={"cheap": 1, "dear": 5}, cost_weight=0.02)
    >>> report = model.fit(X, y).report(X, y)
    >>> bool(abs(report.cost - sum(use.spend for use in report.sensors)) < 1e-9)
    True
    >>> [use.share < 1 for use in report.sensors]
    [False, True]
    """

    n_rows: int
    error: float
    loss: float
    cost: float
    total: float
    cost_weight: float
    has_loss: bool
    quantiles: Mapping[float, float]
    everything: float
    share_of_everything: float
    sensors: tuple[SensorUse, ...]
    leaves: tuple[PlaceUse, ...]
    classes: tuple[ClassUse, ...]
    intervals: Mapping[str, tuple[float, float]]
    unseen: tuple[Unseen, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Give the report as plain numbers, strings, lists and dicts; None for NaN."""
        form: dict[str, Any] = plain(asdict(self))
        return form

    def to_frame(self, kind: str = "summary") -> Any:
        """Give one part of the report as a pandas frame.

        Parameters
        ----------
        kind : {"summary", "sensors", "leaves", "classes"}, default="summary"
            Measures with their intervals; or a line per sensor, place or class.
        """
        if kind not in FRAMES:
            raise ParameterError(
                f"there is no frame of kind {kind!r}; the kinds are "
                f"{', '.join(map(repr, FRAMES))}."
            )
        if kind == "summary":
            lines = [_interval_line(self, measure) for measure in MEASURES]
            return pandas_frame(lines, "measure")
        if kind == "classes":
            lines = [_class_line(use) for use in self.classes]
            return pandas_frame(lines, "label")
        lines = [asdict(use) for use in getattr(self, kind)]
        return pandas_frame(lines, {"sensors": "sensor", "leaves": "place"}[kind])

    def __str__(self) -> str:
        return "\n\n".join(
            [
                f"{self.n_rows} rows\n{_summary_text(self)}",
                _sensors_text(self),
                _leaves_text(self),
                _classes_text(self),
                *([_unseen_text(self)] if self.unseen else []),
            ]
        )


def cost_report(
    policy: Policy,
    table: Table,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    n_bootstrap: int = 1000,
    random_state: int = 0,
) -> CostReport:
    """Send rows through a policy, and add up what they cost and what answers they got.

    Parameters
    ----------
    policy : Policy
    table : Table
    y : array-like of shape (n_rows,)
        Right answers.
    sample_weight : array-like of shape (n_rows,), default=None
        Weight 0 is the same as leaving the row out.
    n_bootstrap : int, default=1000
        Number of times that rows are drawn anew for the intervals; 0 for none.
    random_state : int, default=0
        Seed of these draws.
    """
    truth = _positions(y, table.shape[0], policy)
    weight = _weights(sample_weight, table.shape[0])
    rows = _Rows(policy, table, truth, weight)
    mean = dict(zip(MEASURES, rows.mean(), strict=True))
    everything = float(rows.weight @ rows.everything)
    return CostReport(
        n_rows=int((weight > 0).sum()),
        **mean,
        cost_weight=policy.cost_weight,
        has_loss=policy.loss.matrix is not None,
        quantiles=_quantiles(rows.cost, rows.weight),
        everything=everything,
        share_of_everything=mean["cost"] / everything if everything else 0.0,
        sensors=tuple(rows.sensor_uses()),
        leaves=tuple(rows.place_uses()),
        classes=tuple(rows.class_uses()),
        intervals=_intervals(rows, n_bootstrap, random_state),
        unseen=rows.unseen,
    )


class _Rows:
    """Rows with their answers and bills.

    Attributes
    ----------
    place : ndarray of shape (n_rows,)
    spend : ndarray of shape (n_rows, n_sensors)
    acquired : ndarray of bool of shape (n_rows, n_sensors)
    measures : ndarray of shape (n_rows, 4)
        Error, loss, cost and total of each row.
    """

    def __init__(
        self, policy: Policy, table: Table, truth: NDArray[np.intp], weight: Array
    ):
        self.policy = policy
        self.truth = truth
        self.weight = weight / weight.sum()
        self.counted = weight > 0
        walk = send(policy, table)
        self.place = walk.place
        self.unseen = merged(walk.unseen)
        answer = policy.loss.answer(walk.posterior())
        prices = policy.reader.prices(table)
        self.spend, self.acquired = self._bills(prices)
        self.cost = self.spend.sum(axis=1)
        everything = policy.sensors.cost_of(policy.sensors.names, prices=prices)
        self.everything = np.broadcast_to(everything, len(truth))
        loss = policy.loss.of(truth, answer)
        total = loss + policy.cost_weight * self.cost
        self.measures = np.stack([answer != truth, loss, self.cost, total], axis=1)

    def _bills(self, prices: Array | None) -> tuple[Array, NDArray[np.bool_]]:
        """Price that each sensor charges each row, and which are acquired."""
        sensors = self.policy.sensors
        spend = np.zeros((len(self.place), len(sensors)))
        acquired = np.zeros(spend.shape, dtype=bool)
        for place in np.unique(self.place):
            rows = np.flatnonzero(self.place == place)
            own = None if prices is None else prices[rows]
            bill = path_bill(self.policy.paths[place], sensors, own)
            for name, price in bill.items():
                spend[rows, sensors.index(name)] = price
                acquired[rows, sensors.index(name)] = True
        return spend, acquired

    def mean(self, rows: Any = slice(None)) -> list[float]:
        """Mean of every measure over some rows; NaN over none."""
        weight = self.weight[rows]
        total = weight.sum()
        if not total:
            return [float("nan")] * len(MEASURES)
        return [float(m) for m in weight @ self.measures[rows] / total]

    def sensor_uses(self) -> Iterable[SensorUse]:
        """Use of every sensor, in the declared order."""
        share, spend = self.weight @ self.acquired, self.weight @ self.spend
        for sensor, name in enumerate(self.policy.sensors.names):
            yield SensorUse(name, float(share[sensor]), float(spend[sensor]))

    def place_uses(self) -> Iterable[PlaceUse]:
        """Use of every leaf, then of the other places where rows stop."""
        leaves = range(self.policy.tree.n_leaves)
        others = sorted(int(p) for p in np.unique(self.place[self.counted]) if p < 0)
        for place in (*leaves, *reversed(others)):
            here = self.place == place
            error, loss, cost, _ = self.mean(here)
            yield PlaceUse(
                self._place_name(place),
                place,
                self.policy.places[place].names,
                int((here & self.counted).sum()),
                float(self.weight[here].sum()),
                error,
                loss,
                cost,
            )

    def _place_name(self, place: int) -> str:
        if place >= 0:
            return f"leaf {place}"
        return "start" if ~place == self.policy.tree.n_nodes else f"node {~place}"

    def class_uses(self) -> Iterable[ClassUse]:
        """What happened to each class that occurs."""
        for label, name in enumerate(self.policy.classes.tolist()):
            here = (self.truth == label) & self.counted
            if here.any():
                weight = self.weight[here]
                share = weight @ self.acquired[here] / weight.sum()
                error, loss, cost, _ = self.mean(here)
                yield ClassUse(
                    name,
                    int(here.sum()),
                    float(weight.sum()),
                    error,
                    loss,
                    cost,
                    dict(zip(self.policy.sensors.names, share.tolist(), strict=True)),
                )


def _unseen_text(report: CostReport) -> str:
    lines = [
        (one.column, one.sensor, one.what, f"{one.n_rows:,}", str(one.seen))
        for one in report.unseen
    ]
    head = ("never seen in training", "sensor", "what", "rows", "training had")
    return aligned(head, lines, "left")


def _positions(y: ArrayLike, n_rows: int, policy: Policy) -> NDArray[np.intp]:
    """Right answers as positions among the policy's classes."""
    labels = np.asarray(y)
    if labels.shape != (n_rows,):
        raise DataError(
            f"y has shape {labels.shape}, but X has {n_rows} rows; give one right answer "
            f"for each."
        )
    known = policy.classes.tolist()
    position = {label: i for i, label in enumerate(known)}
    for label in labels.tolist():
        if label not in position:
            raise DataError(
                f"y holds class {label!r}, which the policy does not know; its classes "
                f"are {', '.join(map(repr, known[:8]))}{', ...' if len(known) > 8 else ''}."
            )
    return np.array([position[label] for label in labels.tolist()], dtype=np.intp)


def _weights(sample_weight: ArrayLike | None, n_rows: int) -> Array:
    """Weights of the rows, (n_rows,), of which one at least is above 0."""
    if not n_rows:
        raise DataError("X has no rows; a report needs at least one.")
    if sample_weight is None:
        return np.ones(n_rows)
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n_rows,):
        raise DataError(
            f"sample_weight has shape {weight.shape}, but X has {n_rows} rows; give one "
            f"weight for each."
        )
    if not np.isfinite(weight).all() or (weight < 0).any() or not weight.any():
        raise DataError(
            "sample_weight must hold finite numbers that are at least 0, not all 0."
        )
    return weight


def _quantiles(cost: Array, weight: Array) -> dict[float, float]:
    """Least costs that some shares of the rows do not exceed."""
    order = np.argsort(cost, kind="stable")
    order = order[weight[order] > 0]
    reached = np.cumsum(weight[order])
    # What rounding leaves of a sum must not ask for one row more.
    wanted = np.array(QUANTILES) * reached[-1] * (1 - 1e-12)
    at = np.minimum(np.searchsorted(reached, wanted), len(order) - 1)
    return dict(zip(QUANTILES, cost[order][at].tolist(), strict=True))


def _intervals(
    rows: _Rows, n_bootstrap: int, random_state: int
) -> dict[str, tuple[float, float]]:
    """Percentile intervals of the means, over rows drawn anew."""
    if n_bootstrap < 1:
        return {}
    rng = np.random.default_rng(random_state)
    weight, measures = rows.weight[rows.counted], rows.measures[rows.counted]
    n_rows = len(weight)
    means = np.empty((n_bootstrap, len(MEASURES)))
    for draw in range(n_bootstrap):
        times = np.bincount(rng.integers(n_rows, size=n_rows), minlength=n_rows)
        drawn = times * weight
        means[draw] = drawn @ measures / drawn.sum()
    tails = [(1 - COVERAGE) / 2, (1 + COVERAGE) / 2]
    low, high = np.quantile(means, tails, axis=0).tolist()
    return dict(zip(MEASURES, zip(low, high, strict=True), strict=True))


def _interval_line(report: CostReport, measure: str) -> dict[str, Any]:
    low, high = report.intervals.get(measure, (float("nan"), float("nan")))
    mean = getattr(report, measure)
    return {"measure": measure, "mean": mean, "low": low, "high": high}


def _class_line(use: ClassUse) -> dict[str, Any]:
    line = asdict(use)
    return {**line, **{f"share {s}": v for s, v in line.pop("sensors").items()}}


def _summary_text(report: CostReport) -> str:
    """Measures with intervals, quantiles of the cost, and the share of everything."""
    lines = []
    for measure in MEASURES if report.has_loss else ("error", "cost", "total"):
        mean = f"{getattr(report, measure):.4g}"
        low_high = report.intervals.get(measure)
        between = f"({low_high[0]:.4g} to {low_high[1]:.4g})" if low_high else ""
        lines.append([measure, mean, between])
    quantiles = ", ".join(
        f"{cost:.4g} ({100 * share:.0f} %)" for share, cost in report.quantiles.items()
    )
    return (
        f"{aligned(('per row', 'mean', '95 % interval'), lines)}\n"
        f"total is {'loss' if report.has_loss else 'error'} + {report.cost_weight:g} × "
        f"cost\n"
        f"cost quantiles: {quantiles}\n"
        f"everything would cost {report.everything:.4g}: "
        f"{100 * report.share_of_everything:.1f} % of it was spent"
    )


def _sensors_text(report: CostReport) -> str:
    lines = [
        [use.sensor, f"{100 * use.share:.1f} %", f"{use.spend:.4g}"]
        for use in report.sensors
    ]
    return aligned(("sensor", "rows", "spend"), lines)


def _leaves_text(report: CostReport) -> str:
    lines = [
        [
            use.place,
            str(use.rows),
            *_shown(use.error, use.loss, use.cost, has_loss=report.has_loss),
            ", ".join(use.sensors) or "nothing",
        ]
        for use in report.leaves
    ]
    loss = ("loss",) if report.has_loss else ()
    return aligned(("place", "rows", "error", *loss, "cost", "sensors"), lines, "left")


def _classes_text(report: CostReport) -> str:
    names = [use.sensor for use in report.sensors]
    lines = [
        [
            str(use.label),
            str(use.rows),
            *_shown(use.error, use.loss, use.cost, has_loss=report.has_loss),
            *(f"{100 * use.sensors[name]:.1f} %" for name in names),
        ]
        for use in report.classes
    ]
    loss = ("loss",) if report.has_loss else ()
    return aligned(("class", "rows", "error", *loss, "cost", *names), lines)


def _shown(error: float, loss: float, cost: float, has_loss: bool) -> list[str]:
    numbers = (error, loss, cost) if has_loss else (error, cost)
    return ["–" if np.isnan(number) else f"{number:.4g}" for number in numbers]
