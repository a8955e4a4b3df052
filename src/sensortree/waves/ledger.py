"""The ledger of a run: what was ordered, what came of it, what was answered.

A purchase is keyed by (row, sensor), and there is never a second one of a key. An order
is written, with its money set aside, and is on the disk *before* the oracle is asked; what
came of it is on the disk before it is used. All changes are made one after another, each
in a transaction of its own, so that whoever orders sees what all others have ordered, and
the money of all of them together stays within the limit. ::

    ordered ─┬─► bought        a reading came and is paid for
             ├─► unusable      the same, but the sensor cannot read what came
             ├─► unavailable   the oracle said that there is none; nothing is paid
             └─► lost          no answer came; it may have been charged, and its
                               money stays set aside

An order whose process was killed before an answer came stays "ordered". It can be asked
for again with its token, which never changes.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from decimal import Decimal, localcontext
from functools import lru_cache
from threading import RLock
from typing import Any, Literal, NamedTuple

from sensortree.exceptions import DataError, StorageError

Key = int | str
State = Literal["ordered", "bought", "unusable", "unavailable", "lost"]
Because = Literal["policy", "limit", "unavailable", "money", "unsettled"]

VERSION = "1"
DIGITS = 100  # of sums of money, so that none is ever rounded
PAID = ("bought", "unusable")
# Rows that stopped for one of these go on when there is more money, or an order is settled.
FOR_NOW = ("money", "unsettled")

TABLES = """
CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS totals (name TEXT PRIMARY KEY, amount {money} NOT NULL);
CREATE TABLE IF NOT EXISTS slots (sensor TEXT PRIMARY KEY, free_at {real} NOT NULL);
CREATE TABLE IF NOT EXISTS orders (
    key TEXT NOT NULL,
    sensor TEXT NOT NULL,
    state TEXT NOT NULL,
    price {money} NOT NULL,
    reading TEXT,
    reason TEXT,
    at TEXT NOT NULL,
    PRIMARY KEY (key, sensor)
) {by_key};
CREATE TABLE IF NOT EXISTS answers (
    key TEXT PRIMARY KEY,
    place INTEGER NOT NULL,
    because TEXT NOT NULL,
    around TEXT,
    referred INTEGER NOT NULL,
    spent {money} NOT NULL,
    said {bytes} NOT NULL,
    call TEXT NOT NULL,
    block TEXT NOT NULL
) {by_key};
"""
ORDER = "key, sensor, state, price, reading, reason"
ANSWER = "key, place, because, around, referred, spent, said"


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
    """Result of trying to order a sensor for some rows."""

    granted: list[str]  # rows for which it is ordered now, the money set aside
    there: dict[str, Order]  # rows for which it had been ordered before
    denied: list[str]  # rows for which the money of the run does not suffice


class Stop(NamedTuple):
    """Where a row has stopped; outputs of the policy are float64, as bytes."""

    key: str
    place: int
    because: Because
    around: str | None
    referred: int
    spent: Decimal
    outputs: bytes


class Totals(NamedTuple):
    """Money and rows of a run so far."""

    spent: Decimal  # price of all readings that came
    reserved: Decimal  # set aside for orders that have no answer yet
    lost: Decimal  # price of orders without an answer: the most charged for nothing
    rows: int  # that have stopped

    @property
    def bound(self) -> Decimal:
        """The most that the run may have cost by now; it is never above the limit."""
        return total((self.spent, self.reserved, self.lost))


# how entries are written ------------------------------------------------------------------


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


# the ledger -------------------------------------------------------------------------------


class Ledger(ABC):
    """What a run has bought and answered; `SqliteLedger` or `PostgresLedger`.

    It belongs to one run of one policy over rows of unique keys. A run that was cut off, or
    that is given more rows or more money, goes on with the same ledger. What names the
    database are its public attributes, which travel to workers; connections do not.
    """

    def __init__(self) -> None:
        self._turn, self._process, self._inside = RLock(), 0, False
        self._connection: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {name: at for name, at in vars(self).items() if name[0] != "_"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]  # made anew when unpickled

    # what a database has of its own -------------------------------------------------------

    @abstractmethod
    def _connect(self) -> Any:
        """A new connection; the tables are made if they are not there."""

    @abstractmethod
    def _begin(self, change: bool) -> AbstractContextManager[None]:
        """A transaction; while one changes something, nobody else does."""

    @abstractmethod
    def _run(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run a statement in a transaction, and give its lines if it has any.

        It has ``?`` for each value, and ``{keys}`` where a list of keys stands, which is
        given last.
        """

    @abstractmethod
    def _insert(self, statement: str, lines: Sequence[tuple[Any, ...]]) -> None:
        """Insert lines, at least one, by a statement with a place for ``{lines}``."""

    @abstractmethod
    def _lines(self, connection: Any, statement: str) -> Iterator[tuple[Any, ...]]:
        """Lines of a statement, not all in memory at once."""

    @abstractmethod
    def _errors(self) -> AbstractContextManager[None]:
        """Turns errors of the database into a `StorageError`."""

    @abstractmethod
    def now(self) -> float:
        """Seconds, by a clock that is the same for all who use the ledger."""

    # connections --------------------------------------------------------------------------

    def close(self) -> None:
        """Close the connection; using the ledger again opens it again."""
        with self._turn:
            if self._connection is not None and self._process == os.getpid():
                self._connection.close()
            self._connection = None

    @contextmanager
    def _transaction(self, change: bool = False) -> Iterator[None]:
        """A transaction on the connection of this process, opened again if it was lost.

        Inside another one it is the same.
        """
        with self._turn:
            if self._inside:
                yield
                return
            with self._errors():
                lost = getattr(self._connection, "closed", self._connection is None)
                if (
                    lost or self._process != os.getpid()
                ):  # a forked process has none yet
                    self._connection, self._process = self._connect(), os.getpid()
                with self._begin(change):
                    self._inside = True
                    try:
                        yield
                    finally:
                        self._inside = False

    def _read(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Lines of a statement that changes nothing."""
        with self._transaction():
            return self._run(statement, *values)

    def _stream(self, statement: str) -> Iterator[tuple[Any, ...]]:
        """Lines of a statement, on a connection of its own."""
        with self._errors():
            connection = self._connect()
            try:
                yield from self._lines(connection, statement)
            finally:
                connection.close()

    # a run --------------------------------------------------------------------------------

    def begin(self, model: str, keys: str) -> str:
        """Begin a run, or go on with it, and give the ledger's own random name.

        `model` is the digest of the policy; `keys` says what they are, "int" or "str".
        """
        about = {"version": VERSION, "model": model, "keys": keys}
        about["id"] = secrets.token_hex(16)
        with self._transaction(change=True):
            found = dict(self._run("SELECT name, value FROM about"))
            if not found:
                found = about
                for name, value in about.items():
                    self._run("INSERT INTO about VALUES (?, ?)", name, value)
        self._check_model(found, model)
        if found["keys"] != keys:
            raise DataError(
                f"the keys of {self} are of type {found['keys']}, and these are of type "
                f"{keys}, so that none would be found; give keys of the same type."
            )
        return str(found["id"])

    def kind_of(self, model: str) -> str:
        """What the keys of the run of a policy are: "int" or "str"."""
        found: dict[str, str] = dict(self._read("SELECT name, value FROM about"))
        if found:
            self._check_model(found, model)
        return found.get("keys", "str")

    def _check_model(self, about: dict[str, str], model: str) -> None:
        """Refuse to go on for another policy."""
        if about["version"] != VERSION:
            raise StorageError(
                f"{self} is of a later version of sensortree; upgrade sensortree."
            )
        if about["model"] != model:
            raise StorageError(
                f"{self} is of another model (digest {about['model'][:12]}..., this one "
                f"is {model[:12]}...); begin another ledger, and give what was bought as "
                f"known columns of rows."
            )

    def totals(self) -> Totals:
        """Money and rows so far."""
        found = dict(self._read("SELECT name, amount FROM totals"))
        spent, reserved, lost, rows = (
            Decimal(found.get(name, 0)) for name in Totals._fields
        )
        return Totals(spent, reserved, lost, int(rows))

    # orders -------------------------------------------------------------------------------

    def claim(
        self,
        sensor: str,
        keys: Sequence[str],
        prices: Sequence[Decimal],
        limit: Decimal | None,
    ) -> Claim:
        """Order a sensor for rows without an order of it, as far as the money goes.

        Money is set aside in the same transaction, for the first rows first.
        """
        granted: list[str] = []
        denied: list[str] = []
        with self._transaction(change=True):
            there = self._orders_of(sensor, keys)
            sums = self.totals()
            left = None if limit is None else total((limit, -sums.bound))
            reserved, lines, at = Decimal(0), [], _now()
            for key, price in zip(keys, prices, strict=True):
                if key in there:
                    continue
                after = total((reserved, price))
                if left is not None and after > left:
                    denied.append(key)
                    continue
                reserved = after
                granted.append(key)
                lines.append((key, sensor, "ordered", str(price), None, None, at))
            if lines:
                self._insert("INSERT INTO orders {lines}", lines)
                self._add(reserved=reserved)
        return Claim(granted, there, denied)

    def settle(self, sensor: str, outcomes: Sequence[Outcome]) -> dict[str, Order]:
        """Write what came of orders, and return what the ledger then says of them.

        If another process has settled an order meanwhile, its entry stays.
        """
        with self._transaction(change=True):
            keys = [outcome.key for outcome in outcomes]
            before = self._orders_of(sensor, keys)
            new = [o for o in outcomes if before[o.key].state == "ordered"]
            if not new:
                return before
            after = {o.key: before[o.key]._replace(**o._asdict()) for o in new}
            self._insert(
                "INSERT INTO orders {lines} ON CONFLICT (key, sensor) DO UPDATE SET "
                "state = excluded.state, reading = excluded.reading, "
                "reason = excluded.reason",
                [(*o[:3], str(o.price), *o[4:], _now()) for o in after.values()],
            )
            spent = total(o.price for o in after.values() if o.state in PAID)
            lost = total(o.price for o in after.values() if o.state == "lost")
            released = total(o.price for o in after.values())
            self._add(spent=spent, lost=lost, reserved=-released)
        return before | after

    def orders(self, keys: Sequence[str]) -> list[Order]:
        """All that was ordered for some rows."""
        return self._orders("key IN {keys}", keys)

    def _orders(self, where: str, *values: Any) -> list[Order]:
        lines = self._read(f"SELECT {ORDER} FROM orders WHERE {where}", *values)
        return [
            Order(key, sensor, state, Decimal(price), *rest)
            for key, sensor, state, price, *rest in lines
        ]

    def _orders_of(self, sensor: str, keys: Sequence[str]) -> dict[str, Order]:
        """Orders of a sensor for some rows, by their keys."""
        found = self._orders("sensor = ? AND key IN {keys}", sensor, keys)
        return {order.key: order for order in found}

    def _add(self, **amounts: Decimal) -> None:
        """Add to totals; nobody else changes them meanwhile."""
        sums = self.totals()._asdict()
        for name, amount in amounts.items():
            if amount:
                after = total((Decimal(sums[name]), amount))
                self._run(
                    "UPDATE totals SET amount = ? WHERE name = ?", str(after), name
                )

    def unsettled(self) -> list[Order]:
        """Orders without an answer: being asked for, or cut off."""
        return self._orders("state = 'ordered' ORDER BY key, sensor")

    def settle_by_hand(
        self, key: Key, sensor: str, values: Sequence[Any] | None
    ) -> None:
        """Enter what came of an order that was cut off, by the seller's bill.

        Parameters
        ----------
        key : int or str
        sensor : str
        values : sequence in the sensor's column order, or None
            What was bought; None if nothing was, and nothing is paid.
        """
        written = str(key)
        there = self._orders_of(sensor, [written]).get(written)
        if there is None or there.state != "ordered":
            state = f"it is {there.state}" if there else "there is none"
            raise StorageError(
                f"no order of sensor {sensor!r} for row {key!r} waits to be settled: "
                f"{state}; see unsettled()."
            )
        outcome = (
            Outcome(written, "unavailable", None, "settled by hand")
            if values is None
            else Outcome(written, "bought", write_reading(sensor, values))
        )
        self.settle(sensor, [outcome])

    def slot(self, sensor: str, n: int, per_second: float) -> float:
        """Take the next free time for n lookups; returns the seconds until then."""
        now = self.now()
        with self._transaction(change=True):
            found = self._run("SELECT free_at FROM slots WHERE sensor = ?", sensor)
            start = max(now, float(found[0][0]) if found else now)
            self._run(
                "INSERT INTO slots VALUES (?, ?) "
                "ON CONFLICT (sensor) DO UPDATE SET free_at = excluded.free_at",
                sensor,
                start + n / per_second,
            )
        return start - now

    # answers ------------------------------------------------------------------------------

    def stop(self, call: str, block: str, stops: Sequence[Stop]) -> None:
        """Write where rows of a block have stopped; refuse a row that another block has.

        Within a call of `acquire`, which is named, no key may come twice.
        """
        keys = [stop.key for stop in stops]
        with self._transaction(change=True):
            before = self._run(
                "SELECT key, call, block FROM answers WHERE key IN {keys}", keys
            )
            for key, other, number in before:
                if other == call and number != block:
                    raise DataError(
                        f"key {key!r} is that of two rows; keys must be unique. Nothing "
                        f"was bought twice. Correct the keys and call again."
                    )
            self._insert(
                f"INSERT INTO answers ({ANSWER}, call, block) {{lines}} "
                "ON CONFLICT (key) DO UPDATE SET place = excluded.place, "
                "because = excluded.because, around = excluded.around, "
                "referred = excluded.referred, spent = excluded.spent, "
                "said = excluded.said, call = excluded.call, block = excluded.block",
                [
                    (*stop[:5], str(stop.spent), stop.outputs, call, block)
                    for stop in stops
                ],
            )
            self._add(rows=Decimal(len(keys) - len(before)))

    def stops(self, keys: Sequence[str]) -> list[Stop]:
        """Where some rows have stopped, as far as they have."""
        lines = self._read(f"SELECT {ANSWER} FROM answers WHERE key IN {{keys}}", keys)
        return [_stop(line) for line in lines]

    def all_stops(self) -> Iterator[Stop]:
        """Where all rows have stopped, in the order of their keys as text."""
        lines = self._stream(f"SELECT {ANSWER} FROM answers ORDER BY key")
        return map(_stop, lines)

    def bought(self, sensor: str) -> Iterator[tuple[Key, list[Any]]]:
        """Key and values of all readings of a sensor that were bought."""
        kind = self._read("SELECT value FROM about WHERE name = 'keys'")
        lines = self._stream(
            "SELECT key, sensor, reading FROM orders WHERE state = 'bought'"
        )
        for key, of, reading in lines:
            if of == sensor:
                yield read_key(key, kind[0][0]), read_reading(reading)

    # added up -----------------------------------------------------------------------------

    def order_sums(self) -> Iterator[tuple[str, State, Decimal, int]]:
        """How many orders of a sensor there are in a state, at a price."""
        lines = self._stream(
            "SELECT sensor, state, price, count(*) FROM orders "
            "GROUP BY sensor, state, price"
        )
        for sensor, state, price, count in lines:
            yield sensor, state, Decimal(price), int(count)

    def stop_sums(self) -> dict[str, int]:
        """How many rows have stopped, by the reason."""
        lines = self._read("SELECT because, count(*) FROM answers GROUP BY because")
        return {because: int(count) for because, count in lines}


# within a transaction ---------------------------------------------------------------------


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _stop(line: tuple[Any, ...]) -> Stop:
    key, place, because, around, referred, spent, outputs = line
    return Stop(key, place, because, around, referred, Decimal(spent), bytes(outputs))


def tables(**types: str) -> list[str]:
    """Statements that make a ledger, with a database's names of types."""
    made = TABLES.format(**types).split(";\n")
    zeros = [
        f"INSERT INTO totals VALUES ('{name}', '0') ON CONFLICT (name) DO NOTHING"
        for name in Totals._fields
    ]
    return [statement for statement in made if statement.strip()] + zeros
