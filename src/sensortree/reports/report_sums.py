"""`ReportSums`: answers and bills of rows, added up by sensor, by place and by class.

Then measures of answers: shares, ranks and means with intervals.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sensortree.exceptions import DataError
from sensortree.policy.batch import Walk
from sensortree.policy.policy import Policy
from sensortree.sensors.loss import SCORES
from sensortree.sensors.referral import Promise
from sensortree.sensors.seen import merge_unseen
from sensortree.sensors.table import Table
from sensortree.tree.paths import path_bill
from sensortree.types import Array, Mask, Rows

Interval = tuple[float, float]
MEASURES = ("error", "loss", "cost", "total")
COVERAGE = 0.95
DRAWS = 1000  # of rows anew, for an interval
MANY = 10_000  # rows from which a mean is as good as normal
DEVIATIONS = 1.959963984540054  # of a normal variable that hold 95 %


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
    each class; `refers` says whether it hands all of them over to a person, `referred` the
    share that is handed over, whose best guesses `error` counts.
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
    refers: bool = False
    referred: float = 0.0


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
class ReferralUse:
    """Use and cost of referring to a person, on some rows."""

    share: float  # share of the rows that are referred
    cost: float | None  # per row of all, in the unit of the loss; None without a price
    error: float  # share of wrong answers among the others; NaN if all are referred
    error_interval: Interval  # its 95 % interval, by Wilson
    guess_error: float  # of best guesses for those referred; NaN if none is
    promise: Promise | None = None  # of the others; see `guarantee_error`

    def __str__(self) -> str:
        text = f"handed over to a person: {self.share:.1%} of the rows"
        if self.cost is not None:
            text += f", at {self.cost:.4g} per row of all"
        if not np.isnan(self.error):
            low, high = self.error_interval
            text += f"; error of the others {self.error:.4g} ({low:.3g} to {high:.3g})"
        if not np.isnan(self.guess_error):
            text += (
                f"; best guesses for those handed over err in {self.guess_error:.1%}"
            )
        return text if self.promise is None else f"{text}\n{self.promise}"


class ReportSums:
    """Rows at the end of their walk through a policy, with their answers and bills.

    Right answers are positions among the policy's classes, or numbers, (n_rows,). What is
    worked out by sensor is (n_rows, n_sensors), beliefs are (n_rows, n_classes).
    """

    def __init__(self, walk: Walk, truth: NDArray[Any], weight: Array):
        self.policy = policy = walk.policy
        self.truth = truth
        self.weight = weight / weight.sum()
        self.counted = weight > 0
        self.place, self.unseen = walk.place, merge_unseen(walk.unseen)
        self.belief = walk.posterior()
        self.answer = policy.loss.answer(self.belief)
        prices = walk.prices
        self.spend, self.acquired = bills(policy, self.place, prices)
        self.cost = self.spend.sum(axis=1)
        everything = policy.sensors.cost_of(policy.sensors.names, prices=prices)
        self.everything = np.broadcast_to(everything, len(truth))
        self.referred = policy.hands_over(self.place, self.belief)
        self.person = person_costs(policy, walk.table, truth)
        loss = losses_of(policy, walk.table, truth, self.referred, self.belief)
        self.measures = measures_of(policy, truth, self.answer, loss, self.cost)

    def mean(self, rows: Any = slice(None)) -> list[float]:
        """Mean of every measure over some rows; NaN over none."""
        weight = self.weight[rows]
        total = weight.sum()
        if not total:
            return [float("nan")] * len(MEASURES)
        return [float(m) for m in weight @ self.measures[rows] / total]

    def referral_use(self) -> ReferralUse | None:
        """Use and cost of referral; None for a policy that never refers."""
        if self.policy.referral is None:
            return None
        rows = self.counted
        referred, weight = self.referred[rows], self.weight[rows]
        wrong = self.measures[rows, 0] > 0
        paid = None
        if self.person is not None:
            costs = np.where(referred, self.person[rows], 0.0)
            paid = float(weight @ costs / weight.sum())
        return ReferralUse(
            _share(referred, weight),
            paid,
            _share(wrong[~referred], weight[~referred]),
            wilson(wrong[~referred], weight[~referred]),
            _share(wrong[referred], weight[referred]),
            self.policy.referral.promise,
        )

    def sensor_uses(self) -> Iterator[SensorUse]:
        """Use of every sensor, in the declared order."""
        share, spend = self.weight @ self.acquired, self.weight @ self.spend
        for sensor, name in enumerate(self.policy.sensors.names):
            yield SensorUse(name, float(share[sensor]), float(spend[sensor]))

    def place_uses(self) -> Iterator[PlaceUse]:
        """Use of every leaf, then of the other places where rows stop."""
        policy = self.policy
        others = sorted(int(p) for p in np.unique(self.place[self.counted]) if p < 0)
        for place in (*range(policy.tree.n_leaves), *reversed(others)):
            here = self.place == place
            error, loss, cost, _ = self.mean(here)
            yield PlaceUse(
                policy.place_name(place).removeprefix("the "),
                place,
                policy.places[place].names,
                int((here & self.counted).sum()),
                float(self.weight[here].sum()),
                error,
                loss,
                cost,
                self._shares(self.answer, here),
                self._shares(self.truth, here),
                policy.places[place].refers,
                _share(self.referred[here], self.weight[here]),
            )

    def _shares(self, position: NDArray[np.intp], here: Mask) -> dict[Any, float]:
        """Share of each class, or answer, among some rows; 0 without rows."""
        names = self.policy.labels
        if not names:
            return {}
        weight = np.bincount(position[here], self.weight[here], len(names))
        shares = weight / max(float(weight.sum()), 1e-300)
        return dict(zip(names, shares.tolist(), strict=True))

    def confusion(self, weight: Array) -> tuple[tuple[float, ...], ...]:
        """Weight of the rows of each class that get each answer."""
        n_classes = len(self.policy.classes)
        if not n_classes:
            return ()
        table = np.zeros((n_classes, n_classes))
        np.add.at(table, (self.truth, self.answer), weight)
        return tuple(map(tuple, table.tolist()))

    def class_uses(self, areas: Array) -> Iterator[ClassUse]:
        """What happened to each class that occurs."""
        for label, name in enumerate(self.policy.labels):
            has, answered = self.truth == label, self.answer == label
            here = has & self.counted
            if not here.any():
                continue
            weight = self.weight[here]
            share = weight @ self.acquired[here] / weight.sum()
            error, loss, cost, _ = self.mean(here)
            recognised = {  # among these, those that are right
                "sensitivity": (has, answered),
                "specificity": (~has, ~answered),
                "precision": (answered, has),
            }
            shares, between = {}, {}
            for measure, (among, right) in recognised.items():
                shares[measure] = _share(right[among], self.weight[among])
                between[measure] = wilson(right[among], self.weight[among])
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
                intervals=between,
            )


def _share(right: Mask, weight: Array) -> float:
    """Share of some rows; NaN of none."""
    total = float(weight.sum())
    return float(weight @ right) / total if total else float("nan")


def bills(policy: Policy, place: Rows, prices: Array | None) -> tuple[Array, Mask]:
    """What rows that stop at some places pay for each sensor, and which they acquire.

    Prices, and what is given, have shape (n_rows, n_sensors).
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


def measures_of(
    policy: Policy, truth: Rows, answer: Rows, loss: Array, cost: Array
) -> Array:
    """Error, loss, cost and total of each row, (n_rows, 4)."""
    error = policy.loss.error(truth, answer)
    return np.stack([error, loss, cost, loss + policy.cost_weight * cost], axis=1)


def losses_of(
    policy: Policy, table: Table, truth: Rows, referred: Mask, belief: Array
) -> Array:
    """What rows lose: by their answers, or what a person costs, (n_rows,).

    Without a price of a person, referred rows lose what the best guess loses. `truth`
    holds positions of the classes, `belief` is (n_rows, n_classes).
    """
    lost = policy.loss.judge(truth, belief)
    costs = person_costs(policy, table, truth)
    return lost if costs is None else np.where(referred, costs, lost)


def person_costs(policy: Policy, table: Table, truth: Rows) -> Array | None:
    """What referring each row costs, (n_rows,); None if no price was given."""
    if policy.referral is None or not policy.referral.priced:
        return None
    costs = policy.referral.costs(table, len(policy.classes))
    return np.asarray(costs[np.arange(len(truth)), truth])


def one_for_each(name: str, values: Any, n_rows: int, what: str) -> NDArray[Any]:
    """Values as an array, of which there must be one for each row."""
    array = np.asarray(values)
    if array.shape != (n_rows,):
        raise DataError(
            f"{name} has shape {array.shape}, but X has {n_rows} rows; give one {what} for "
            f"each."
        )
    return array


def right_answers(y: ArrayLike, n_rows: int, policy: Policy) -> NDArray[Any]:
    """Right answers as positions among the policy's classes, or as numbers."""
    labels = one_for_each("y", y, n_rows, "right answer")
    if policy.loss.numbers:
        return _right_numbers(labels)
    known = policy.classes.tolist()
    position = {label: i for i, label in enumerate(known)}
    for label in labels.tolist():
        if label not in position:
            raise DataError(
                f"y holds class {label!r}, which the policy does not know; its classes "
                f"are {', '.join(map(repr, known[:8]))}{', ...' if len(known) > 8 else ''}."
            )
    return np.array([position[label] for label in labels.tolist()], dtype=np.intp)


def _right_numbers(y: NDArray[Any]) -> Array:
    """Right answers that are numbers."""
    try:
        numbers = y.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"y must hold numbers, as in training: {error}.") from error
    if not np.isfinite(numbers).all():
        row = int(np.argmin(np.isfinite(numbers)))
        raise DataError(f"y holds {numbers[row]:g} in row {row}; leave the row out.")
    return numbers


def row_weights(sample_weight: ArrayLike | None, n_rows: int) -> Array:
    """Weights of the rows, (n_rows,), of which one at least is above 0."""
    if not n_rows:
        raise DataError("X has no rows; a report needs at least one.")
    if sample_weight is None:
        return np.ones(n_rows)
    given = np.asarray(sample_weight, dtype=np.float64)
    weight = one_for_each("sample_weight", given, n_rows, "weight")
    if not np.isfinite(weight).all() or (weight < 0).any() or not weight.any():
        raise DataError(
            "sample_weight must hold finite numbers that are at least 0, not all 0."
        )
    return weight


# how good answers are, and how sure that is -----------------------------------------------
#
# Weights sum to 1. By Kish, weighted rows are worth as many equal ones as keep the variance
# of a mean: 1 / sum(weight**2).


def wilson(right: NDArray[np.bool_], weight: Array) -> Interval:
    """Wilson's interval of a share; it is right of 0 and of 1 too. NaN without rows."""
    total = float(weight.sum())
    if not total:
        return float("nan"), float("nan")
    share = min(max(float(weight @ right) / total, 0.0), 1.0)
    n_rows = total**2 / float(weight @ weight)
    squared = DEVIATIONS**2 / n_rows
    middle = (share + squared / 2) / (1 + squared)
    spread = np.sqrt(squared * (share * (1 - share) + squared / 4)) / (1 + squared)
    return max(0.0, float(middle - spread)), min(1.0, float(middle + spread))


def mean_intervals(values: Array, weight: Array) -> list[Interval]:
    """Interval of the mean of each column of values, (n_rows, n_columns).

    Percentiles of means over rows that are drawn anew, the same for every column; of many
    rows the normal interval, which is then the same.
    """
    if len(weight) > MANY:
        mean = weight @ values
        errors = np.sqrt((weight**2) @ (values - mean) ** 2)
        low, high = mean - DEVIATIONS * errors, mean + DEVIATIONS * errors
    else:
        tails = [(1 - COVERAGE) / 2, (1 + COVERAGE) / 2]
        means = _drawn(values, weight)
        low, high = np.quantile(means, tails, axis=0)
    return list(zip(low.tolist(), high.tolist(), strict=True))


def _drawn(values: Array, weight: Array) -> Array:
    """Means over rows that are drawn anew, (DRAWS, n_columns), always the same ones."""
    rng = np.random.default_rng(0)
    n_rows = len(weight)
    means = np.empty((DRAWS, values.shape[1]))
    for draw in range(DRAWS):
        times = np.bincount(rng.integers(n_rows, size=n_rows), minlength=n_rows)
        drawn = times * weight
        means[draw] = drawn @ values / drawn.sum()
    return means


@dataclass(frozen=True)
class NumberFit:
    """How well numbers are predicted."""

    r2: float  # share of the variance that is explained; NaN if there is none
    rmse: float  # root of the mean squared distance from the truth


def number_fit(y: Array, answer: Array, weight: Array) -> NumberFit:
    """R² and root mean squared error of answers."""
    squared = float(weight @ (y - answer) ** 2)
    variance = float(weight @ (y - weight @ y) ** 2)
    share = 1 - squared / variance if variance > 0 else float("nan")
    return NumberFit(share, float(np.sqrt(squared)))


def scores(belief: Array, truth: NDArray[np.intp]) -> Array:
    """Brier score and log-loss of each row, (n_rows, 2); see `sensors.loss`."""
    judged = [SCORES[name].judge(truth, belief) for name in ("brier", "log_loss")]
    return np.stack(judged, axis=1)


def metrics(
    belief: Array, answer: NDArray[np.intp], truth: NDArray[np.intp], weight: Array
) -> dict[str, float]:
    """Every metric of `sensors.loss` over some rows, given beliefs and right answers."""
    brier, log_loss = (weight @ scores(belief, truth)).tolist()
    return {
        "accuracy": float(weight @ (answer == truth)),
        "auroc": auroc(belief, truth, weight)[1],
        "brier": brier,
        "log_loss": log_loss,
    }


def auroc(
    belief: Array, truth: NDArray[np.intp], weight: Array
) -> tuple[Array, float, Interval]:
    """Areas under the ROC curves, one class against the others, (n_classes,).

    Also their mean, over the classes that have one, and its normal interval by DeLong's
    variance: every row's share in the mean, added up. The area of a class that no row, or
    every row, has is NaN.
    """
    found = [_area(belief[:, c], truth == c, weight) for c in range(belief.shape[1])]
    areas = np.array([area for area, _ in found])
    told = ~np.isnan(areas)
    if not told.any():
        return areas, float("nan"), (float("nan"), float("nan"))
    mean = float(areas[told].mean())
    parts = np.mean([part for _, part in found if part is not None], axis=0)
    spread = DEVIATIONS * float(np.sqrt(((weight * parts) ** 2).sum()))
    return areas, mean, (max(0.0, mean - spread), min(1.0, mean + spread))


def _area(
    score: Array, positive: NDArray[np.bool_], weight: Array
) -> tuple[float, Array | None]:
    """Share of pairs in which the positive has the larger score, and each row's part."""
    ours, others = weight * positive, weight * ~positive
    share = float(ours.sum())
    if not share or not others.sum():
        return float("nan"), None
    _, level = np.unique(score, return_inverse=True)
    with_ours = np.bincount(level, ours) / ours.sum()
    with_others = np.bincount(level, others) / others.sum()
    below = np.cumsum(with_others) - with_others / 2  # of others; half of equals
    above = 1 - np.cumsum(with_ours) + with_ours / 2
    area = float(with_ours @ below)
    part = np.where(
        positive, (below[level] - area) / share, (above[level] - area) / (1 - share)
    )
    return area, part
