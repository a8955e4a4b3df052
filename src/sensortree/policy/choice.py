"""`Choice`: the point of a trade-off curve that a budget or an error asks for."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from numbers import Real
from typing import Any

import numpy as np

from sensortree.exceptions import ParameterError
from sensortree.types import Array


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
        lines = [f"{asked}: {self._said(own)}"]
        lines += [
            f"{name}: {self._said(beside)}"
            for name, beside in (("cheaper", self.cheaper), ("dearer", self.dearer))
            if beside is not None
        ]
        return "\n".join([*lines, self.note] if self.note else lines)

    def _said(self, point: Mapping[str, float]) -> str:
        return (
            f"cost weight {point['cost_weight']:.3g}, mean cost "
            f"{point['mean_cost']:.4g}, {self.measure} {point['error']:.4f}"
        )


NAMES = ("cost_weight", "mean_cost", "error")
RULES = ("budget", "max_error", "one standard error")
MOST_LEFT = 0.5  # share of a budget: who spends less of it is told what to try


def choose(
    curve: Any,
    budget: float | None = None,
    max_error: float | None = None,
    without: Collection[int] = (),
) -> Choice:
    """Pick a point for a budget, for an error, or by the one-standard-error rule.

    Points in `without` are known not to keep what they promise.
    """
    check_targets(budget, max_error)
    cost, error = curve.mean_cost, curve.error
    if budget is not None:
        rule, target, within = "budget", float(budget), cost <= budget
        within[list(without)] = False
        best = _least(error, cost, within) if within.any() else _least(cost, error)
    elif max_error is not None:
        rule, target, within = "max_error", float(max_error), error <= max_error
        within[list(without)] = False
        best = _least(cost, error, within) if within.any() else _least(error, cost)
    else:
        least = _least(error, cost)
        target = float(error[least] + np.nan_to_num(curve.error_se[least]))
        rule, within = "one standard error", error <= target
        within[list(without)] = False
        best = _least(cost, error, within) if within.any() else least
    chosen = choice_at(curve, best, rule, target, bool(within[best]))
    return replace(chosen, note=_advice(chosen)) if rule == "budget" else chosen


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


def choice_at(curve: Any, index: int, rule: str, target: float, met: bool) -> Choice:
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


def _least(first: Array, then: Array, among: Any = None) -> int:
    """Where a value is least, of those allowed; of equals where another is least."""
    places = np.arange(len(first)) if among is None else np.flatnonzero(among)
    return int(places[np.lexsort([then[places], first[places]])[0]])
