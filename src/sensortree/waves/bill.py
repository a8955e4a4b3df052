"""`Bill`: what a run has bought and answered, added up from its ledger."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice
from typing import Any
from warnings import warn

import numpy as np
from numpy.typing import NDArray

from sensortree.exceptions import StorageError
from sensortree.policy.policy import Policy
from sensortree.text import PlainForm, aligned
from sensortree.types import Array, Mask, Rows
from sensortree.waves.ledger import PAID, Ledger, read_key, total

AT_ONCE = 50_000  # answers that are read together
COLUMNS = ("bought", "unusable", "unavailable", "lost", "ordered")


@dataclass(frozen=True)
class SensorBill:
    """Orders of one sensor, by what came of them.

    Attributes
    ----------
    bought : int
        Readings that came.
    unusable : int
        Readings that came and were paid for, but that the sensor cannot read.
    unavailable : int
        The oracle had none; nothing was paid.
    lost : int
        No answer came, however often it was asked.
    ordered : int
        Nothing has come yet: cut off, or being asked for.
    spent : Decimal
        Price of what came.
    """

    bought: int = 0
    unusable: int = 0
    unavailable: int = 0
    lost: int = 0
    ordered: int = 0
    spent: Decimal = Decimal(0)


@dataclass(frozen=True)
class Bill(PlainForm):
    """What a run has bought and answered: the lines of its ledger, added up.

    ``to_dict`` gives money as text, to the last digit.

    Attributes
    ----------
    rows : int
        Rows that have an answer.
    because : dict of str to int
        How many of them stopped for which reason: "policy" wanted no more, its own "limit"
        was reached, or something was "unavailable"; for now, the "money" of the run did
        not suffice, or an order is "unsettled".
    sensors : dict of sensor to SensorBill
    spent : Decimal
        Price of all readings that came.
    reserved : Decimal
        Set aside for orders of which nothing has come.
    lost : Decimal
        Price of orders that no answer came to; at most so much was charged for nothing.
    """

    rows: int
    because: dict[str, int]
    sensors: dict[str, SensorBill]
    spent: Decimal
    reserved: Decimal
    lost: Decimal

    def __str__(self) -> str:
        lines = [
            [name, *(f"{getattr(bill, c):,}" for c in COLUMNS), f"{bill.spent:,}"]
            for name, bill in self.sensors.items()
        ]
        why = ", ".join(f"{count:,} {reason}" for reason, count in self.because.items())
        parts = [f"{self.rows:,} rows stopped ({why}), {self.spent:,} spent"]
        if self.reserved:
            parts.append(f"{self.reserved:,} set aside for orders without an answer")
        if self.lost:
            parts.append(f"up to {self.lost:,} more for orders that were lost")
        return "\n".join(
            ["; ".join(parts), aligned(("sensor", *COLUMNS, "spent"), lines)]
        )


def bill_of(ledger: Ledger) -> Bill:
    """Add up the lines of a ledger, and check that its totals agree.

    Parameters
    ----------
    ledger : Ledger

    Returns
    -------
    bill : Bill
    """
    counts: dict[str, dict[str, Any]] = {}
    money = {"spent": Decimal(0), "ordered": Decimal(0), "lost": Decimal(0)}
    for sensor, state, price, count in ledger.order_sums():
        line = counts.setdefault(sensor, {"spent": Decimal(0)})
        line[state] = line.get(state, 0) + count
        amount = total((price * count,))
        if state in PAID:
            line["spent"] = total((line["spent"], amount))
            money["spent"] = total((money["spent"], amount))
        elif state != "unavailable":
            money[state] = total((money[state], amount))
    because = ledger.stop_sums()
    bill = Bill(
        sum(because.values()),
        dict(sorted(because.items())),
        {name: SensorBill(**counts[name]) for name in sorted(counts)},
        money["spent"],
        money["ordered"],
        money["lost"],
    )
    sums = ledger.totals()
    if (bill.spent, bill.reserved, bill.lost, bill.rows) != tuple(sums):
        raise StorageError(
            f"the lines of {ledger} add up to {bill.spent} spent and {bill.rows} rows, its "
            f"totals say {sums.spent} and {sums.rows}; somebody else is writing to it, or "
            f"it was changed by hand."
        )
    return bill


@dataclass(frozen=True, eq=False)
class Answers:
    """Answers of some rows, as a run has written them.

    Attributes
    ----------
    key : ndarray of shape (n_rows,)
    label : ndarray of shape (n_rows,)
        Classes, or numbers.
    outputs : ndarray of shape (n_rows, n_outputs)
        Class probabilities; of numbers, the answer and its spread.
    spent : list of Decimal
    place : ndarray of int of shape (n_rows,)
        The leaf, or ``~node`` where a row stands that has not come to one.
    because : ndarray of str of shape (n_rows,)
        Why it stopped; see `Bill`.
    around : list of str or None
        The sensor on whose detour the place is.
    referred : ndarray of bool of shape (n_rows,)
    """

    key: NDArray[Any]
    label: NDArray[Any]
    outputs: Array
    spent: list[Decimal]
    place: Rows
    because: NDArray[Any]
    around: list[str | None]
    referred: Mask

    @property
    def said(self) -> Array:
        """The old name of `outputs`."""
        warn("Answers.said is now Answers.outputs.", FutureWarning, stacklevel=2)
        return self.outputs


def answers(
    policy: Policy, ledger: Ledger, at_once: int = AT_ONCE
) -> Iterator[Answers]:
    """Read the answers of a run, so many rows at a time, in the order of keys as text.

    Parameters
    ----------
    policy : Policy
        The one that they are of.
    ledger : Ledger
    at_once : int, default=50000

    Yields
    ------
    answers : Answers
    """
    kind = ledger.kind_of(policy.digest)
    stops = ledger.all_stops()
    while some := list(islice(stops, at_once)):
        outputs = np.frombuffer(b"".join(stop.outputs for stop in some), np.float64)
        outputs = outputs.reshape(len(some), policy.n_outputs)
        yield Answers(
            np.array([read_key(stop.key, kind) for stop in some]),
            policy.answers(outputs),
            outputs,
            [stop.spent for stop in some],
            np.array([stop.place for stop in some], np.intp),
            np.array([stop.because for stop in some]),
            [stop.around for stop in some],
            np.array([bool(stop.referred) for stop in some]),
        )
