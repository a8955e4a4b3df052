"""`CostReport`: what a policy spent on some rows, on what, and what it was worth."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sensortree.exceptions import DataError, ParameterError
from sensortree.policy.batch import send
from sensortree.policy.compared import (
    BaselineUse,
    columns_of,
    rivals_of,
    uses_of,
)
from sensortree.policy.measures import (
    MEASURES,
    Interval,
    auroc,
    brier,
    mean_intervals,
    wilson,
)
from sensortree.policy.policy import Policy
from sensortree.policy.report_text import report_text
from sensortree.sensors.seen import Unseen, merged
from sensortree.sensors.table import Table, pandas_frame
from sensortree.text import plain
from sensortree.tree.paths import path_bill
from sensortree.types import Array, Mask, Rows

QUANTILES = (0.0, 0.25, 0.5, 0.75, 0.9, 1.0)
FRAMES = ("summary", "baselines", "sensors", "leaves", "classes", "confusion")
SHARES = ("sensitivity", "specificity", "precision")


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
    `answers` is the share of its rows that get each answer, `classes` the share that has
    each class.
    """

    place: str
    leaf: int
    sensors: tuple[str, ...]
    rows: int
    share: float
    error: float
    loss: float
    cost: float
    answers: Mapping[Any, float]
    classes: Mapping[Any, float]


@dataclass(frozen=True)
class ClassUse:
    """What happened to the rows of one class; `sensors` is the share that acquires each.

    The class against all others: `sensitivity` is the share of its rows that are answered
    with it, `specificity` the share of other rows that are not, `precision` the share of
    such answers that are right, `auroc` the area under the ROC curve; NaN where there is
    none. Of two classes, the sensitivity of one is the specificity of the other.
    """

    label: Any
    rows: int
    share: float
    error: float
    loss: float
    cost: float
    sensors: Mapping[str, float]
    sensitivity: float
    specificity: float
    precision: float
    auroc: float
    intervals: Mapping[str, Interval]


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
    mistake_cost : float or None
        Money that a wrong answer counts as; None if answers are not wrong alike, or money
        does not count.
    unit : str
        What prices are counted in; "" if nobody said.
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
        ``label``, ``rows``, ``share``, ``error``, ``loss``, ``cost``, the share that
        acquires each of ``sensors``, and ``sensitivity``, ``specificity``, ``precision``
        and ``auroc`` against the other classes, of every class that occurs.
    baselines : tuple of BaselineUse
        The same rows answered by classifiers that buy the same for all, fitted on the same
        training rows: everything, the best fixed set, nothing. ``saved`` is what the
        policy has less, row by row.
    auroc : float
        Area under the ROC curve, the mean of the classes against the others; NaN if all
        rows are of one class.
    brier : float
        Mean of half the squared distance of the probabilities from 0 and 1.
    confusion : tuple of tuples of float
        Weight of rows of each class (line) that get each answer (column), in the order of
        `labels`.
    labels : tuple
        All classes.
    intervals : mapping of str to (float, float)
        95 % intervals: of shares (error, sensitivity) by Wilson, of means (loss, cost,
        total, and what is saved) percentiles over 1,000 times rows drawn anew, or normal
        ones from 10,000 rows on, of the AUROC by DeLong. They say how sure the figures
        are for this policy, not how it would vary if it were fitted again. Empty if
        `n_bootstrap` was 0.
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
    mistake_cost: float | None
    unit: str
    quantiles: Mapping[float, float]
    everything: float
    share_of_everything: float
    sensors: tuple[SensorUse, ...]
    leaves: tuple[PlaceUse, ...]
    classes: tuple[ClassUse, ...]
    baselines: tuple[BaselineUse, ...]
    auroc: float
    brier: float
    confusion: tuple[tuple[float, ...], ...]
    labels: tuple[Any, ...]
    intervals: Mapping[str, Interval]
    unseen: tuple[Unseen, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Give the report as plain numbers, strings, lists and dicts; None for NaN."""
        form: dict[str, Any] = plain(asdict(self))
        return form

    def to_frame(self, kind: str = "summary") -> Any:
        """Give one part of the report as a pandas frame.

        Parameters
        ----------
        kind : {"summary", "baselines", "sensors", "leaves", "classes", "confusion"}
            Measures with their intervals; or a line per baseline, sensor, place or class.
            By default the summary.
        """
        if kind not in FRAMES:
            raise ParameterError(
                f"there is no frame of kind {kind!r}; the kinds are "
                f"{', '.join(map(repr, FRAMES))}."
            )
        if kind == "summary":
            lines = [_interval_line(self, m) for m in (*MEASURES, "auroc", "brier")]
            return pandas_frame(lines, "measure")
        if kind == "confusion":
            lines = [
                {"class": label, **dict(zip(self.labels, row, strict=True))}
                for label, row in zip(self.labels, self.confusion, strict=True)
            ]
            return pandas_frame(lines, "class")
        index = {"sensors": "sensor", "leaves": "place", "classes": "label"}
        lines = [_flat(asdict(use)) for use in getattr(self, kind)]
        return pandas_frame(lines, index.get(kind, "name"))

    def _repr_html_(self) -> str:
        from sensortree.display.notebook import report_in_notebook

        return report_in_notebook(self)

    def __str__(self) -> str:
        return report_text(self)


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
        Number of times that rows are drawn anew for the intervals; 0 for no intervals.
    random_state : int, default=0
        Seed of these draws.
    """
    truth = _positions(y, table.shape[0], policy)
    weight = _weights(sample_weight, table.shape[0])
    rows = _Rows(policy, table, truth, weight)
    rivals = rivals_of(policy, table, truth, np.flatnonzero(rows.counted))
    counted = rows.weight[rows.counted]
    own = rows.measures[rows.counted]
    intervals: list[Interval] = []
    if n_bootstrap > 0:
        values = np.hstack([own, *columns_of(rivals, own)])
        intervals = mean_intervals(values, counted, n_bootstrap, random_state)
    mean = dict(zip(MEASURES, rows.mean(), strict=True))
    belief, right = rows.belief[rows.counted], truth[rows.counted]
    areas, area, area_interval = auroc(belief, right, counted)
    everything = float(rows.weight @ rows.everything)
    return CostReport(
        n_rows=int((weight > 0).sum()),
        **mean,
        cost_weight=policy.cost_weight,
        has_loss=not policy.loss.plain,
        mistake_cost=_mistake_cost(policy),
        unit=policy.about.unit,
        quantiles=_quantiles(rows.cost, rows.weight),
        everything=everything,
        share_of_everything=mean["cost"] / everything if everything else 0.0,
        sensors=tuple(rows.sensor_uses()),
        leaves=tuple(rows.place_uses()),
        classes=tuple(rows.class_uses(areas, with_intervals=bool(intervals))),
        baselines=uses_of(rivals, own, counted, iter(intervals[len(MEASURES) :])),
        auroc=area,
        brier=brier(belief, right, counted),
        confusion=rows.confusion(weight),
        labels=tuple(policy.classes.tolist()),
        intervals=_intervals(rows, intervals, area_interval),
        unseen=rows.unseen,
    )


def bills(policy: Policy, place: Rows, prices: Array | None) -> tuple[Array, Mask]:
    """What rows that stop at some places are charged, by sensor, and what they acquire.

    Parameters
    ----------
    policy : Policy
    place : ndarray of shape (n_rows,)
    prices : ndarray of shape (n_rows, n_sensors) or None

    Returns
    -------
    spend : ndarray of shape (n_rows, n_sensors)
    acquired : ndarray of bool of shape (n_rows, n_sensors)
    """
    sensors = policy.sensors
    spend = np.zeros((len(place), len(sensors)))
    acquired = np.zeros(spend.shape, dtype=bool)
    for at in np.unique(place):
        rows = np.flatnonzero(place == at)
        own = None if prices is None else prices[rows]
        for name, price in path_bill(policy.paths[at], sensors, own).items():
            spend[rows, sensors.index(name)] = price
            acquired[rows, sensors.index(name)] = True
    return spend, acquired


def _mistake_cost(policy: Policy) -> float | None:
    """Money that a wrong answer counts as, if one counts as the other."""
    loss = 1.0 if policy.loss.plain else policy.loss.per_mistake
    if loss is None or policy.loss.score is not None or not policy.cost_weight:
        return None
    return loss / policy.cost_weight


class _Rows:
    """Rows with their answers and bills.

    Attributes
    ----------
    place : ndarray of shape (n_rows,)
    spend : ndarray of shape (n_rows, n_sensors)
    acquired : ndarray of bool of shape (n_rows, n_sensors)
    belief : ndarray of shape (n_rows, n_classes)
    answer : ndarray of shape (n_rows,)
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
        self.place, self.unseen = walk.place, merged(walk.unseen)
        self.belief = walk.posterior()
        self.answer = answer = policy.loss.answer(self.belief)
        prices = policy.reader.prices(table)
        self.spend, self.acquired = bills(policy, self.place, prices)
        self.cost = self.spend.sum(axis=1)
        everything = policy.sensors.cost_of(policy.sensors.names, prices=prices)
        self.everything = np.broadcast_to(everything, len(truth))
        loss = policy.loss.judge(truth, self.belief)
        total = loss + policy.cost_weight * self.cost
        self.measures = np.stack([answer != truth, loss, self.cost, total], axis=1)

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
                self._shares(self.answer, here),
                self._shares(self.truth, here),
            )

    def _shares(
        self, position: NDArray[np.intp], here: NDArray[np.bool_]
    ) -> dict[Any, float]:
        """Share of each class, or answer, among some rows; 0 without rows."""
        names = self.policy.classes.tolist()
        weight = np.bincount(position[here], self.weight[here], len(names))
        shares = weight / max(float(weight.sum()), 1e-300)
        return dict(zip(names, shares.tolist(), strict=True))

    def confusion(self, weight: Array) -> tuple[tuple[float, ...], ...]:
        """Weight of the rows of each class that get each answer."""
        n_classes = len(self.policy.classes)
        table = np.zeros((n_classes, n_classes))
        np.add.at(table, (self.truth, self.answer), weight)
        return tuple(map(tuple, table.tolist()))

    def _place_name(self, place: int) -> str:
        if place >= 0:
            return f"leaf {place}"
        return "start" if ~place == self.policy.tree.n_nodes else f"node {~place}"

    def class_uses(self, areas: Array, with_intervals: bool) -> Iterable[ClassUse]:
        """What happened to each class that occurs."""
        for label, name in enumerate(self.policy.classes.tolist()):
            here = (self.truth == label) & self.counted
            if here.any():
                weight = self.weight[here]
                share = weight @ self.acquired[here] / weight.sum()
                error, loss, cost, _ = self.mean(here)
                shares, between = self._recognised(label)
                yield ClassUse(
                    name,
                    int(here.sum()),
                    float(weight.sum()),
                    error,
                    loss,
                    cost,
                    dict(zip(self.policy.sensors.names, share.tolist(), strict=True)),
                    **shares,
                    auroc=float(areas[label]),
                    intervals=between if with_intervals else {},
                )

    def _recognised(self, label: int) -> tuple[dict[str, float], dict[str, Interval]]:
        """Sensitivity, specificity and precision of one class, with intervals."""
        has, said = self.truth == label, self.answer == label
        asked = ((has, said), (~has, ~said), (said, has))
        shares, between = {}, {}
        for name, (among, right) in zip(SHARES, asked, strict=True):
            weight = self.weight[among]
            total = float(weight.sum())
            shares[name] = (
                float(weight @ right[among]) / total if total else float("nan")
            )
            between[name] = wilson(right[among], weight)
        return shares, between


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
    rows: _Rows, means: Sequence[Interval], area: Interval
) -> dict[str, Interval]:
    """Intervals of all measures, given those of means; without any, none."""
    if not means:
        return {}
    between = dict(zip(MEASURES, means, strict=False))
    wrong = rows.measures[rows.counted, 0] > 0
    between["error"] = wilson(wrong, rows.weight[rows.counted])
    if rows.policy.loss.plain:
        between["loss"] = between["error"]
    return {**between, "auroc": area}


def _interval_line(report: CostReport, measure: str) -> dict[str, Any]:
    low, high = report.intervals.get(measure, (float("nan"), float("nan")))
    mean = getattr(report, measure)
    return {"measure": measure, "mean": mean, "low": low, "high": high}


def _flat(line: dict[str, Any]) -> dict[str, Any]:
    """A line whose mappings are columns of their own; intervals are two."""
    flat: dict[str, Any] = {}
    for key, value in line.items():
        if not isinstance(value, Mapping):
            flat[key] = value
        elif key.endswith("intervals"):
            of = "saved " if key.startswith("saved") else ""
            for name, (low, high) in value.items():
                flat |= {f"{of}{name} low": low, f"{of}{name} high": high}
        else:
            word = {"sensors": "share", "answers": "answer", "classes": "class"}
            flat |= {f"{word.get(key, key)} {name}": v for name, v in value.items()}
    return flat
