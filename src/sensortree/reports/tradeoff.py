"""`TradeoffCurve`: error against mean cost, and `Choice`, a point picked from it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sensortree.exceptions import DataError, ParameterError
from sensortree.reports.drawing import boxed
from sensortree.reports.tables import TextTable
from sensortree.reports.tradeoff_display import TradeoffDisplay
from sensortree.sensors.table import pandas_frame
from sensortree.text import listed, rounded
from sensortree.types import Array, Mask

Point = tuple[float, float]  # mean cost, error


@dataclass(frozen=True, eq=False)
class TradeoffCurve:
    """Error against mean cost, a point for each cost weight, the cheapest weight last.

    Make it with `tradeoff_curve`, or with `from_points` of figures measured elsewhere.

    Attributes
    ----------
    cost_weight : ndarray of shape (n_weights,)
        In descending order, so that what buys least comes first; NaN where not known.
    error : ndarray of shape (n_weights,)
        Share of wrong answers on held-out rows; with a `loss` or
        another `risk`, its mean.
    mean_cost : ndarray of shape (n_weights,)
        Mean price of the sensors bought for a held-out row.
    error_se, cost_se : ndarray of shape (n_weights,)
        Standard errors of both over folds; NaN with fewer than two.
    fold_error, fold_cost : ndarray of shape (n_weights, n_folds)
        The same on each fold.
    measure : str
        What `error` counts: "error", "loss" where mistakes are priced, or the risk that
        was asked for.
    nothing, everything : (mean cost, error) or None
        Of classifiers that know only the free sensors, and of those that know all, the
        same for every row, as in reports: fitted and measured on the same folds as the
        curve. None if not measured, or if not all may be bought together.
    unit : str
        What costs are counted in; "" if not given.
    metrics : mapping of str to ndarray of shape (n_weights,)
        "accuracy", "auroc" (of several classes the mean of each against the others),
        "brier" and "log_loss" at each point, whatever `error` counts: over the held-out
        rows of all folds together. Empty if not measured.
    end_metrics : mapping of str to mapping of str to float
        The same of "nothing" and "everything", where they were measured.

    Examples
    --------
    >>> from sensortree.results import TradeoffCurve
    >>> curve = TradeoffCurve.from_points([(1, 0.4), (2, 0.3), (3, 0.1), (4, 0.2)])
    >>> curve.hull()
    [(1.0, 0.4), (3.0, 0.1)]
    >>> round(curve.error_at_cost(2.0), 3), round(curve.cost_at_error(0.25), 3)
    (0.25, 2.0)
    >>> curve.error_at_cost(2.0, mix=False)
    0.3
    """

    cost_weight: Array
    error: Array
    mean_cost: Array
    error_se: Array
    cost_se: Array
    fold_error: Array
    fold_cost: Array
    measure: str = "error"
    nothing: Point | None = field(default=None, kw_only=True)
    everything: Point | None = field(default=None, kw_only=True)
    unit: str = field(default="", kw_only=True)
    metrics: Mapping[str, Array] = field(default_factory=dict, kw_only=True)
    end_metrics: Mapping[str, Mapping[str, float]] = field(
        default_factory=dict, kw_only=True
    )

    @classmethod
    def from_folds(
        cls,
        cost_weight: ArrayLike,
        fold_error: ArrayLike,
        fold_cost: ArrayLike,
        fold_weight: ArrayLike | None = None,
        **others: Any,
    ) -> TradeoffCurve:
        """Curve of figures of folds; points are put in order of their cost weights.

        Parameters
        ----------
        cost_weight : array-like of shape (n_weights,)
        fold_error, fold_cost : array-like of shape (n_weights, n_folds)
        fold_weight : array-like of shape (n_folds,), default=None
            What each fold counts in the means; all the same by default.
        **others
            `measure`, `nothing`, `everything`, `unit`, `metrics`, `end_metrics`.
        """
        weight = np.asarray(cost_weight, dtype=np.float64)
        error = np.asarray(fold_error, dtype=np.float64)
        cost = np.asarray(fold_cost, dtype=np.float64)
        if error.ndim != 2 or error.shape != cost.shape or len(error) != len(weight):
            raise DataError(
                f"fold_error and fold_cost have shapes {error.shape} and {cost.shape} for "
                f"{len(weight)} cost weights; give a row for each weight and a column for "
                f"each fold."
            )
        order = np.argsort(-weight, kind="stable")
        error, cost = error[order], cost[order]
        others["metrics"] = {
            name: np.asarray(values, dtype=np.float64)[order]
            for name, values in others.get("metrics", {}).items()
        }
        share = np.ones(error.shape[1]) if fold_weight is None else fold_weight
        counted = np.asarray(share, dtype=np.float64)
        return cls(
            weight[order],
            np.average(error, axis=1, weights=counted),
            np.average(cost, axis=1, weights=counted),
            standard_error(error),
            standard_error(cost),
            error,
            cost,
            **others,
        )

    @classmethod
    def from_points(
        cls, points: Iterable[Point], cost_weight: ArrayLike | None = None
    ) -> TradeoffCurve:
        """Curve of (mean cost, error) pairs that were measured elsewhere.

        Parameters
        ----------
        points : iterable of (float, float)
        cost_weight : array-like of shape (n_points,), default=None
            Their cost weights, if they have any.
        """
        given = np.array(list(points), dtype=np.float64)
        if given.ndim != 2 or given.shape[1] != 2:
            raise DataError(
                f"points have shape {given.shape}; give at least one pair of mean cost "
                f"and error."
            )
        weight = np.full(len(given), np.nan) if cost_weight is None else cost_weight
        return cls.from_folds(weight, given[:, 1:], given[:, :1])

    def __len__(self) -> int:
        return len(self.error)

    @property
    def points(self) -> list[Point]:
        """Mean cost and error of each point."""
        return list(zip(self.mean_cost.tolist(), self.error.tolist(), strict=True))

    def metric(self, name: str) -> Array:
        """Give a metric at each point, (n_weights,).

        Parameters
        ----------
        name : str
            One of `metrics`.
        """
        if name not in self.metrics:
            known = listed(sorted(self.metrics)) if self.metrics else "none"
            raise ParameterError(
                f"the curve has no metric {name!r}; those that it has: {known}."
            )
        return self.metrics[name]

    def hull(self) -> list[Point]:
        """Lower left convex hull, cheapest first: (mean cost, error) of its corners.

        What lies between two corners is reached by tossing a coin for each example, which
        of two models answers it.
        """
        chain: list[Point] = []
        for x, y in sorted(set(self.points)):
            if chain and y >= chain[-1][1]:
                continue  # dearer and no better
            while len(chain) > 1 and _turns_up(chain[-2], chain[-1], (x, y)):
                chain.pop()
            chain.append((x, y))
        return chain

    def cost_at_error(self, error: float, *, mix: bool = True) -> float:
        """Least mean cost at which an error is reached; NaN if it never is.

        Parameters
        ----------
        error : float
        mix : bool, default=True
            Read it off the hull, as two models mixed at random reach it; False for the
            cheapest single point.
        """
        corners = self.hull()
        if not mix:
            reached = self.mean_cost[self.error <= error]
            return float(reached.min()) if reached.size else float("nan")
        if error >= corners[0][1]:
            return corners[0][0]
        for (x0, y0), (x1, y1) in pairwise(corners):
            if y1 <= error:
                return x0 + (y0 - error) / (y0 - y1) * (x1 - x0)
        return float("nan")

    def error_at_cost(self, cost: float, *, mix: bool = True) -> float:
        """Least error at a mean cost; NaN below the cheapest point.

        Parameters
        ----------
        cost : float
        mix : bool, default=True
            As in `cost_at_error`.
        """
        if not cost >= self.mean_cost.min():
            return float("nan")
        if not mix:
            return float(self.error[self.mean_cost <= cost].min())
        costs, errors = zip(*self.hull(), strict=True)
        return float(np.interp(cost, costs, errors))

    def budget_share(
        self,
        error: float,
        first: float | None = None,
        everything: float | None = None,
        *,
        mix: bool = True,
    ) -> float:
        """Share of the budget at an error, in the paper's convention.

        What is spent beyond the first sensor, as a share of what all others cost.

        Parameters
        ----------
        error : float
        first, everything : float, default=None
            Cost of the first sensor, and of all; by default those of `nothing` and of
            `everything`.
        mix : bool, default=True
            As in `cost_at_error`.
        """
        first = self._end(self.nothing, "first") if first is None else first
        if everything is None:
            everything = self._end(self.everything, "everything")
        return (self.cost_at_error(error, mix=mix) - first) / (everything - first)

    def _end(self, end: Point | None, name: str) -> float:
        if end is None:
            raise ParameterError(
                f"the curve does not know what {name} costs; give {name}=."
            )
        return end[0]

    def choose(
        self,
        budget: float | None = None,
        max_error: float | None = None,
        without: Collection[int] = (),
    ) -> Choice:
        """Pick a point: for a budget, for an error, or by the one-standard-error rule.

        Parameters
        ----------
        budget : float, default=None
            The point of the least error whose mean cost is at most this.
        max_error : float, default=None
            The cheapest point whose error is at most this. With neither, the cheapest
            whose error is within one standard error of the least.
        without : collection of int, default=()
            Places of points that are known not to keep what they promise.

        Returns
        -------
        choice : Choice
            With the points beside it, and whether it meets what was asked for.
        """
        check_targets(budget, max_error)
        goal, bounded = self.mean_cost, self.error
        if budget is not None:
            rule, target, goal, bounded = "budget", float(budget), bounded, goal
        elif max_error is not None:
            rule, target = "max_error", float(max_error)
        else:
            least = _least(bounded, goal)
            target = float(bounded[least] + np.nan_to_num(self.error_se[least]))
            rule = "one standard error"
        within = bounded <= target
        within[list(without)] = False
        best = _least(goal, bounded, within) if within.any() else _least(bounded, goal)
        chosen = choice_at(self, best, rule, target, bool(within[best]))
        return replace(chosen, note=_advice(chosen)) if rule == "budget" else chosen

    def plot(
        self,
        ax: Any = None,
        *,
        chosen: Choice | None = None,
        unit: str = "",
        metric: str | None = None,
    ) -> TradeoffDisplay:
        """Draw the curve, with buying nothing and buying everything if it knows them.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        chosen : Choice, default=None
            A point to ring, such as ``curve.choose(budget=5)``.
        unit : str, default=""
            What a cost is counted in.
        metric : str, default=None
            One of `metrics` to draw, without bars; by default what was minimised.

        Returns
        -------
        display : TradeoffDisplay
        """
        display = TradeoffDisplay.from_curve(
            self, chosen=chosen, unit=unit, metric=metric
        )
        return display.plot(ax)

    def _repr_html_(self) -> str:
        picture = boxed(TradeoffDisplay.from_curve(self).to_svg())
        said = f"<summary>{len(self)} points, ± one standard error</summary>"
        return f"{picture}<details>{said}{self._table({}).to_html()}</details>"

    def to_dict(self) -> dict[str, Any]:
        """Give the curve as plain numbers, strings and lists; None for NaN."""
        return {
            "measure": self.measure,
            "unit": self.unit,
            "nothing": self.nothing and [float(value) for value in self.nothing],
            "everything": self.everything
            and [float(value) for value in self.everything],
            "end_metrics": {
                end: {name: _number(value) for name, value in values.items()}
                for end, values in self.end_metrics.items()
            },
            "points": [
                {
                    **{name: _number(v) for name, v in self._line(i).items()},
                    "fold_error": self.fold_error[i].tolist(),
                    "fold_cost": self.fold_cost[i].tolist(),
                }
                for i in range(len(self))
            ],
        }

    def to_frame(self) -> Any:
        """Give the curve as a pandas frame, a line for each cost weight."""
        return pandas_frame([self._line(i) for i in range(len(self))])

    def _line(self, i: int) -> dict[str, float]:
        names = ("cost_weight", "mean_cost", "cost_se", "error", "error_se")
        line = {name: float(getattr(self, name)[i]) for name in names}
        return line | {name: float(v[i]) for name, v in self.metrics.items()}

    def __str__(self) -> str:
        return self.to_text()

    def to_text(self, metric: str | None = None) -> str:
        """Give the points as a table, with a metric beside them if one is named.

        Parameters
        ----------
        metric : str, default=None
            One of `metrics`.
        """
        beside = {} if metric is None else {metric: self.metric(metric)}
        said = [self._table(beside).to_text()]

        def of_end(name: str) -> str:
            known = self.end_metrics.get(name, {})
            return "".join(f", {m} {known[m]:.4f}" for m in beside if m in known)

        said += [
            f"buying {name}: cost {rounded(end[0])}, {self.measure} {self._told(end[1])}"
            f"{of_end(name)}"
            for name, end in (
                ("nothing", self.nothing),
                ("everything", self.everything),
            )
            if end is not None
        ]
        return "\n".join(said)

    def _told(self, error: float) -> str:
        """How an error is written."""
        return f"{error:.4f}" if self.measure == "error" else rounded(error)

    def _table(self, beside: Mapping[str, Array]) -> TextTable:
        """The points, with metrics beside them."""
        cost = f"mean cost ({self.unit})" if self.unit else "mean cost"
        lines = [
            [
                f"{self.cost_weight[i]:.3g}",
                _with_se(rounded(self.mean_cost[i]), self.cost_se[i]),
                _with_se(self._told(self.error[i]), self.error_se[i]),
                *(f"{values[i]:.4f}" for values in beside.values()),
            ]
            for i in range(len(self))
        ]
        return TextTable(("cost weight", cost, self.measure, *beside), lines)


def _turns_up(a: Point, b: Point, c: Point) -> bool:
    return (b[0] - a[0]) * (c[1] - a[1]) <= (b[1] - a[1]) * (c[0] - a[0])


def standard_error(folds: Array) -> Array:
    """Standard error of the mean of folds, (n_weights,); NaN of fewer than two."""
    n_folds = folds.shape[1]
    if n_folds < 2:
        return np.full(len(folds), np.nan)
    return np.asarray(folds.std(axis=1, ddof=1) / np.sqrt(n_folds))


def _with_se(value: str, se: float) -> str:
    return value if np.isnan(se) else f"{value} ± {rounded(se, 2)}"


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


@dataclass(frozen=True)
class Choice:
    """What was picked from a trade-off curve, and what the points beside it would give.

    Attributes
    ----------
    rule : {"budget", "max_error", "one standard error"}
        What was asked for.
    target : float
        The budget or the error that was asked for; by the one-standard-error rule, the
        least error and its standard error together.
    met : bool
        Whether the point meets it; if none does, the cheapest is taken for a budget, and
        the one of the least error for an error.
    index : int
        Its place on the curve.
    cost_weight, mean_cost, error : float
        The point, as measured on held-out rows; of a model that was fitted for it, what
        that model itself is worth there.
    cheaper, dearer : dict or None
        ``cost_weight``, ``mean_cost`` and ``error`` of the points of the next lower and
        next higher mean cost; None at an end of the curve.
    measure : str
        What `error` counts.
    note : str
        What else there is to know.

    Examples
    --------
    >>> from sensortree.results import TradeoffCurve
    >>> curve = TradeoffCurve.from_points([(1, 0.4), (2, 0.3), (3, 0.1)], [0.9, 0.3, 0.1])
    >>> print(curve.choose(budget=2.5))
    budget 2.5: cost weight 0.3, mean cost 2, error 0.3000
    cheaper: cost weight 0.9, mean cost 1, error 0.4000
    dearer: cost weight 0.1, mean cost 3, error 0.1000
    """

    rule: str
    target: float
    met: bool
    index: int
    cost_weight: float
    mean_cost: float
    error: float
    cheaper: Mapping[str, float] | None
    dearer: Mapping[str, float] | None
    measure: str = "error"
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Give the choice as plain numbers, strings and dicts."""
        return asdict(self)

    def __str__(self) -> str:
        own = {name: getattr(self, name) for name in NAMES}
        asked = f"{self.rule} {self.target:.4g}"
        if not self.met:
            asked += " is not met"
        lines = [f"{asked}: {self._words(own)}"]
        lines += [
            f"{name}: {self._words(beside)}"
            for name, beside in (("cheaper", self.cheaper), ("dearer", self.dearer))
            if beside is not None
        ]
        return "\n".join([*lines, self.note] if self.note else lines)

    def _words(self, point: Mapping[str, float]) -> str:
        error = point["error"]
        told = f"{error:.4f}" if error < 1e4 else rounded(error)
        return (
            f"cost weight {point['cost_weight']:.3g}, mean cost "
            f"{rounded(point['mean_cost'])}, {self.measure} {told}"
        )


NAMES = ("cost_weight", "mean_cost", "error")
RULES = ("budget", "max_error", "one standard error")
MOST_LEFT = 0.5  # share of a budget: who spends less of it is told what to try


def check_targets(budget: float | None, max_error: float | None) -> None:
    """Refuse what cannot be asked for: no number, NaN, less than 0, or both at once."""
    for name, value in (("budget", budget), ("max_error", max_error)):
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        if value is not None and not (is_number and value >= 0):
            raise ParameterError(
                f"{name} must be None or a number that is at least 0, got {value!r}."
            )
    if budget is not None and max_error is not None:
        raise ParameterError(
            f"budget={budget:g} and max_error={max_error:g} were both given; ask for one, "
            f"and read off the curve what the other will be."
        )


def _advice(chosen: Choice) -> str:
    """What to try where a budget falls into a jump of the curve."""
    above, target = chosen.dearer, chosen.target
    if above is None or above["mean_cost"] <= target or not chosen.met:
        return ""
    if chosen.mean_cost > MOST_LEFT * target:
        return ""
    return (
        f"most of the budget is left, since no cost weight was found that spends more than "
        f"this and less than {above['mean_cost']:.4g}; max_cost={target:g} lets "
        f"everybody spend up to the budget"
    )


def choice_at(
    curve: TradeoffCurve, index: int, rule: str, target: float, met: bool
) -> Choice:
    """The choice of one point of a curve, with the points beside it."""
    order = np.lexsort([-curve.cost_weight, curve.mean_cost]).tolist()
    place = order.index(index)

    def point(at: int) -> dict[str, float]:
        return {name: float(getattr(curve, name)[at]) for name in NAMES}

    return Choice(
        rule,
        target,
        met,
        index,
        **point(index),
        cheaper=point(order[place - 1]) if place else None,
        dearer=point(order[place + 1]) if place + 1 < len(order) else None,
        measure=curve.measure,
        note="",
    )


def _least(first: Array, then: Array, among: Mask | None = None) -> int:
    """Where a value is least, of those allowed; of equals where another is least."""
    places = np.arange(len(first)) if among is None else np.flatnonzero(among)
    return int(places[np.lexsort([then[places], first[places]])[0]])
