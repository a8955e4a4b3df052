"""`Referral`: what it costs to refer an example to a person, and which are referred."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensortree.exceptions import ParameterError
from sensortree.sensors.loss import class_position
from sensortree.sensors.sensor import SensorSet
from sensortree.sensors.table import Table, cost_column
from sensortree.types import Array, Mask


@dataclass(frozen=True)
class Promise:
    """What is promised of the answers that are given, and the rows that proved it."""

    error: float  # largest share of wrong answers
    confidence: (
        float  # probability that the rows set aside prove no promise that is wrong
    )
    rows: int  # that were set aside
    answered: int  # how many of them are answered
    wrong: int  # and how many of those wrongly

    def __str__(self) -> str:
        return (
            f"promised: an error of at most {self.error:g} of those who are answered, with "
            f"confidence {self.confidence:g}, by {self.rows} rows set aside "
            f"({self.wrong} wrong of {self.answered} answered)"
        )


@dataclass(frozen=True, eq=False)
class Referral:
    """What a referral costs, and which answers are referred besides those of the tree."""

    # What it costs, in the unit of the risk, to refer an example of each class; None if a
    # column says it, or if it is not known.
    by_class: Array | None = None
    column: int | None = (
        None  # position of the column that holds what each example costs
    )
    least_confidence: float = 0.0  # answers of a lower probability are referred too
    # What `guarantee_error` has proved of the others.
    promise: Promise | None = field(default=None, metadata={"digest": "never"})

    def __str__(self) -> str:
        parts = []
        if self.by_class is not None:
            costs = [f"{cost:g}" for cost in dict.fromkeys(self.by_class.tolist())]
            parts.append(f"a person costs {' or '.join(costs)}")
        if self.column is not None:
            parts.append(f"what a person costs is column {self.column}")
        if self.least_confidence:
            parts.append(
                f"answers of a probability below {self.least_confidence:.4g} go to a person"
            )
        if self.promise is not None:
            parts.append(str(self.promise))
        return "; ".join(parts)

    @property
    def priced(self) -> bool:
        """Whether it is known what a referral costs."""
        return self.by_class is not None or self.column is not None

    def costs(self, table: Table, n_classes: int) -> Array:
        """What referring each row costs if it is of each class, (n_rows, n_classes)."""
        shape = table.shape[0], n_classes
        if self.column is None:
            assert self.by_class is not None  # priced
            return np.broadcast_to(self.by_class, shape)
        what = f"column {self.column} of X, the refer_cost,"
        each = cost_column(table, self.column, what)
        return np.broadcast_to(each[:, None], shape)

    def doubts(self, confidence: Array) -> Mask:
        """Whether answers of these probabilities are referred, (n_rows,)."""
        return np.asarray(confidence < self.least_confidence)


def resolve_referral(
    refer_cost: Any, classes: NDArray[Any], sensors: SensorSet
) -> Referral | None:
    """Say what a declared `refer_cost` means; None: never refer.

    It is None, a number, a mapping of class to number, or the name of a column.
    """
    if refer_cost is None:
        return None
    if isinstance(refer_cost, str):
        return Referral(column=_column(refer_cost, sensors))
    names = classes.tolist()
    if not isinstance(refer_cost, Mapping):
        return Referral(np.full(len(names), _price(refer_cost, "refer_cost")))
    for name in refer_cost:
        class_position(name, names, "refer_cost")
    if forgotten := [name for name in names if name not in refer_cost]:
        raise ParameterError(
            f"refer_cost does not say what it costs to hand over an example of class "
            f"{forgotten[0]!r}; give one number for each class, or one for all."
        )
    each = [_price(refer_cost[name], f"refer_cost of {name!r}") for name in names]
    return Referral(np.array(each))


def _price(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ParameterError(
            f"{where} must be a number, at least 0, got {value!r}; it is what a person "
            f"costs, in the unit of the risk."
        )
    if not 0 <= float(value) < np.inf:
        raise ParameterError(f"{where} must be finite and at least 0, got {value!r}.")
    return float(value)


def _column(name: str, sensors: SensorSet) -> int:
    """Position of a column that is free."""
    if name not in sensors.column_names:
        raise ParameterError(
            f"refer_cost names column {name!r}, which X does not have; give a number, a "
            f"number for each class, or the name of a column."
        )
    column = sensors.column_names.index(name)
    for sensor, columns in enumerate(sensors.columns):
        if column in columns and (
            sensors.costs[sensor] > 0 or sensor in sensors.varying
        ):
            raise ParameterError(
                f"refer_cost is column {name!r}, which sensor {sensors.names[sensor]!r} "
                f"reads at a price; what a person costs must be known for nothing: make "
                f"it a sensor of its own, of cost 0."
            )
    return column
