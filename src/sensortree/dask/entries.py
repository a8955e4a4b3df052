"""Entries of a ledger: orders, what came of them, stops; and how they are written."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Sequence
from decimal import Decimal, localcontext
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from sensortree.exceptions import DataError

Key = int | str
State = Literal["ordered", "bought", "unusable", "unavailable", "lost"]
Because = Literal["policy", "limit", "unavailable", "money", "unsettled"]

DIGITS = 100  # of sums of money, so that none is ever rounded
PAID = ("bought", "unusable")
# Rows that stopped for one of these go on when there is more money, or an order is settled.
FOR_NOW = ("money", "unsettled")


class Order(NamedTuple):
    """What the ledger says of one (row, sensor)."""

    key: str
    sensor: str
    state: State
    price: Decimal
    reading: str | None = None
    reason: str | None = None


class Outcome(NamedTuple):
    """What came of an order."""

    key: str
    state: State
    reading: str | None = None
    reason: str | None = None


class Claim(NamedTuple):
    """What became of the wish to order a sensor for some rows.

    Attributes
    ----------
    granted : list of str
        Rows for which it is ordered now, the money set aside.
    there : dict of str to Order
        Rows for which it had been ordered before.
    denied : list of str
        Rows for which the money of the run does not suffice.
    """

    granted: list[str]
    there: dict[str, Order]
    denied: list[str]


class Stop(NamedTuple):
    """Where a row has stopped, as the ledger has it; `said` is float64, as bytes."""

    key: str
    place: int
    because: Because
    around: str | None
    referred: int
    spent: Decimal
    said: bytes


class Totals(NamedTuple):
    """Money and rows of a run so far.

    Attributes
    ----------
    spent : Decimal
        Price of all readings that came.
    reserved : Decimal
        Set aside for orders of which nothing has come yet.
    lost : Decimal
        Price of orders that no answer came to: at most so much was charged for nothing.
    rows : int
        Rows that have stopped.
    """

    spent: Decimal
    reserved: Decimal
    lost: Decimal
    rows: int

    @property
    def bound(self) -> Decimal:
        """The most that the run may have cost by now; it is never above the limit."""
        return total((self.spent, self.reserved, self.lost))


# what is written --------------------------------------------------------------------------


@lru_cache(maxsize=65536)
def exact(price: float) -> Decimal:
    """A price as it is on paper: to fifteen digits (`on_paper`), in decimals."""
    return Decimal(f"{price:.15g}")


def total(amounts: Iterable[Decimal]) -> Decimal:
    """Amounts of money added up, without rounding."""
    with localcontext() as context:
        context.prec = DIGITS
        return sum(amounts, Decimal(0))


def token_of(ledger: str, key: str, sensor: str) -> str:
    """The token of an order: the same whenever it is asked for, and of no other order."""
    text = json.dumps([ledger, key, sensor])
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def read_key(key: str, kind: str) -> Key:
    """A key as it was given, from how it is written."""
    return int(key) if kind == "int" else key


def write_reading(sensor: str, values: Sequence[Any]) -> str:
    """Values of a sensor as JSON; null for NaN."""
    plain = [None if isinstance(v, float) and math.isnan(v) else v for v in values]
    try:
        return json.dumps(plain)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"the oracle of sensor {sensor!r} gave what a ledger cannot hold ({error}); "
            f"give numbers and text."
        ) from error


def read_reading(text: str) -> list[Any]:
    """Values of a sensor from JSON."""
    return [math.nan if value is None else value for value in json.loads(text)]
