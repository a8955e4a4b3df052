"""`CostReport`: what a policy spent on some rows, on what, and what it was worth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sensortree.exceptions import DataError, ParameterError
from sensortree.policy.about import Baseline
from sensortree.policy.batch import Walk, send
from sensortree.policy.classifiers import posterior
from sensortree.policy.policy import Policy
from sensortree.reports.alone import Alone, columns_alone
from sensortree.reports.report_sums import (
    MEASURES,
    ClassUse,
    Interval,
    NumberFit,
    PlaceUse,
    ReferralUse,
    ReportSums,
    SensorUse,
    auroc,
    mean_intervals,
    measures_of,
    number_fit,
    right_answers,
    row_weights,
    scores,
    wilson,
)
from sensortree.reports.tables import report_in_notebook, report_text
from sensortree.sensors.seen import Unseen
from sensortree.sensors.table import Table, is_missing, pandas_frame
from sensortree.text import plain
from sensortree.threads import one_thread
from sensortree.types import Array, Rows

QUANTILES = (0.0, 0.25, 0.5, 0.75, 0.9, 1.0)
OF_PROBABILITIES = ("auroc", "brier", "log_loss")
LIMITS = 12  # within which rows are answered, at most
FRAMES = ("summary", "baselines", "sensors", "leaves", "classes", "confusion")


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
        Share of wrong answers; of numbers, their mean distance from the truth.
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
        What prices are counted in; "" if not given.
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
    log_loss : float
        Mean of minus the natural logarithm of the right class's probability, which counts
        as 0.0001 at least.
    confusion : tuple of tuples of float
        Weight of rows of each class (line) that get each answer (column), in the order of
        `labels`.
    labels : tuple
        All classes.
    intervals : mapping of str to (float, float)
        95 % intervals: of shares (error, sensitivity) by Wilson, of means (loss, cost,
        total, and what is saved) percentiles over 1,000 times rows drawn anew, or normal
        ones from 10,000 rows on, of the AUROC by DeLong. They say how sure the figures
        are for this policy, not how it would vary if it were fitted again.
    referral : ReferralUse or None
        ``share`` of rows that are referred to a person, what that ``cost``, ``error`` of
        the others; None for a model that never refers. `error` counts best guesses for
        those rows; `loss` and `total` what a person costs, where that is known.
    unseen : tuple of Unseen
        Columns that hold what training never saw: ``sensor``, ``column``, ``what`` of it
        ("level", "range" or "missing"), the first ``row`` with its ``value``, ``n_rows``,
        and what was ``seen``. Only what a row acquires is looked at.
    alone : tuple of Alone
        Columns that tell (almost) every answer on their own: ``sensor``, ``column``, the
        ``share`` told of the rows that acquire it. Each may be known only afterwards.
    fit : NumberFit or None
        ``r2`` and ``rmse`` of answers that are numbers; None of classes.

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
    log_loss: float
    confusion: tuple[tuple[float, ...], ...]
    labels: tuple[Any, ...]
    intervals: Mapping[str, Interval]
    unseen: tuple[Unseen, ...] = ()
    alone: tuple[Alone, ...] = ()
    referral: ReferralUse | None = None
    fit: NumberFit | None = None

    def to_dict(self) -> dict[str, Any]:
        """Give the report as plain numbers, strings, lists and dicts; None for NaN."""
        form: dict[str, Any] = plain(asdict(self))
        return form if self.fit else {k: v for k, v in form.items() if k != "fit"}

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
            measured = MEASURES if self.fit else (*MEASURES, *OF_PROBABILITIES)
            lines = [
                {"measure": m, "mean": getattr(self, m), "low": low, "high": high}
                for m in measured
                for low, high in (self.intervals[m],)
            ]
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

    _repr_html_ = report_in_notebook
    __str__ = report_text


@one_thread()
def cost_report(
    policy: Policy,
    table: Table,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
) -> CostReport:
    """Send rows through a policy, and add up what they cost and what answers they got.

    A weight of 0 is the same as leaving the row out.
    """
    truth = right_answers(y, table.shape[0], policy)
    weight = row_weights(sample_weight, table.shape[0])
    rows = ReportSums(send(policy, table), truth, weight)
    at = np.flatnonzero(rows.counted)
    rivals = [rival_of(policy, b, table, truth, at) for b in policy.baselines or ()]
    counted = rows.weight[rows.counted]
    own = rows.measures[rows.counted]
    belief, right = rows.belief[rows.counted], truth[rows.counted]
    numbers, area = policy.loss.numbers, float("nan")
    judged = np.empty((len(right), 0)) if numbers else scores(belief, right)
    others = [rival.measures for rival in rivals if rival.measures is not None]
    beside = [part for other in others for part in (other, other - own)]
    means = iter(mean_intervals(np.hstack([own, *beside, judged]), counted))
    mean = dict(zip(MEASURES, rows.mean(), strict=True))
    intervals = {measure: next(means) for measure in MEASURES}
    baselines = tuple(rival.use(counted @ own, counted, means) for rival in rivals)
    areas, brier, log_loss = np.empty(0), area, area
    fit: NumberFit | None = None
    if numbers:
        fit = number_fit(right, belief[:, 0], counted)
    else:
        intervals["error"] = wilson(own[:, 0] > 0, counted)
        if not _has_loss(policy):
            intervals["loss"] = intervals["error"]
        areas, area, intervals["auroc"] = auroc(belief, right, counted)
        intervals["brier"], intervals["log_loss"] = means
        brier, log_loss = (counted @ judged).tolist()
    everything = float(rows.weight @ rows.everything)
    return CostReport(
        n_rows=int((weight > 0).sum()),
        **mean,
        cost_weight=policy.cost_weight,
        has_loss=_has_loss(policy),
        mistake_cost=_mistake_cost(policy),
        unit=policy.about.unit,
        quantiles=_quantiles(rows.cost, rows.weight),
        everything=everything,
        share_of_everything=mean["cost"] / everything if everything else 0.0,
        sensors=tuple(rows.sensor_uses()),
        leaves=tuple(rows.place_uses()),
        classes=tuple(rows.class_uses(areas)),
        baselines=baselines,
        auroc=area,
        brier=brier,
        log_loss=log_loss,
        confusion=rows.confusion(weight),
        labels=tuple(policy.classes.tolist()),
        intervals=intervals,
        unseen=rows.unseen,
        alone=columns_alone(
            policy.sensors, table, truth, rows.acquired & rows.counted[:, None]
        ),
        referral=rows.referral_use(),
        fit=fit,
    )


def _has_loss(policy: Policy) -> bool:
    """Whether what rows lose is other than the share of wrong answers."""
    priced = policy.referral is not None and policy.referral.priced
    return priced or not policy.loss.plain


def _mistake_cost(policy: Policy) -> float | None:
    """Money that a wrong answer counts as, if one counts as the other."""
    loss = 1.0 if policy.loss.plain else policy.loss.per_mistake
    alike = policy.loss.score is None and not policy.loss.numbers
    if loss is None or not alike or not policy.cost_weight:
        return None
    return loss / policy.cost_weight


def _quantiles(cost: Array, weight: Array) -> dict[float, float]:
    """Least costs that some shares of the rows do not exceed."""
    order = np.argsort(cost, kind="stable")
    order = order[weight[order] > 0]
    reached = np.cumsum(weight[order])
    # What rounding leaves of a sum must not ask for one row more.
    wanted = np.array(QUANTILES) * reached[-1] * (1 - 1e-12)
    at = np.minimum(np.searchsorted(reached, wanted), len(order) - 1)
    return dict(zip(QUANTILES, cost[order][at].tolist(), strict=True))


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


# the same rows answered otherwise ---------------------------------------------------------


@dataclass(frozen=True)
class BaselineUse:
    """How a classifier that buys the same for all would have answered the same rows."""

    name: str  # "everything", "best fixed set" or "nothing"
    sensors: tuple[str, ...]  # bought for every row; for "nothing", the free ones
    # Means per row; NaN where the rows do not hold what it must read:
    error: float
    loss: float
    cost: float
    total: float
    intervals: Mapping[str, Interval]  # as those of a `CostReport`
    # By how much the policy has less of each; below 0, the baseline has less.
    saved: Mapping[str, float]
    # 95 % intervals of these differences, which are taken row by row.
    saved_intervals: Mapping[str, Interval]
    note: str | None  # what keeps this from being a fair comparison


class Rival(NamedTuple):
    """A baseline's answers to some rows."""

    name: str
    sensors: tuple[str, ...]
    # Error, loss, cost and total of each row, (n_rows, 4); None where the rows do not
    # hold what it must read.
    measures: Array | None
    note: str | None

    def use(
        self, own: Array, weight: Array, intervals: Iterator[Interval]
    ) -> BaselineUse:
        """Means, and by how much the policy, whose means are `own`, has less.

        If there are any, intervals of both come next.
        """
        mean = np.full(len(MEASURES), np.nan)
        between: dict[str, Interval] = {}
        less: dict[str, Interval] = {}
        if self.measures is not None:
            mean = weight @ self.measures
            between = {measure: next(intervals) for measure in MEASURES}
            less = {measure: next(intervals) for measure in MEASURES}
            between["error"] = wilson(self.measures[:, 0] > 0, weight)
        return BaselineUse(
            self.name,
            self.sensors,
            **dict(zip(MEASURES, mean.tolist(), strict=True)),
            intervals=between,
            saved=dict(zip(MEASURES, (mean - own).tolist(), strict=True)),
            saved_intervals=less,
            note=self.note,
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
    belief, right = (
        posterior(baseline.classifier, readings, policy.n_outputs),
        truth[rows],
    )
    prices = reader.prices(table)
    own = None if prices is None else prices[rows]
    cost = np.broadcast_to(sensors.cost_of(names, prices=own), len(rows))
    loss, answer = policy.loss.judge(right, belief), policy.loss.answer(belief)
    measures = measures_of(policy, right, answer, loss, cost)
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

    Decisions stay as they were learned; a row that cannot pay for what is decided goes
    where it is best served, according to training (`max_cost`). A limit at which some
    rows would have to buy what the table does not hold is left out.
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
