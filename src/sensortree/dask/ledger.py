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

An order that nothing came of, since its process was killed, stays "ordered" and can be
asked for again with its token, which is the same ever after.
"""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Protocol

from sensortree.dask.entries import (
    PAID,
    Claim,
    Key,
    Order,
    Outcome,
    State,
    Stop,
    Totals,
    read_key,
    read_reading,
    total,
    write_reading,
)
from sensortree.exceptions import DataError, StorageError

VERSION = "1"
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
TOTALS = ("spent", "reserved", "lost", "rows")
ANSWER = "key, place, because, around, referred, spent, said"


class Desk(Protocol):
    """What a ledger asks of its database, within one transaction.

    Statements have ``?`` for each value, and ``{keys}`` where a list of keys stands, which
    is given last.
    """

    def all(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Lines that a statement gives."""

    def run(self, statement: str, *values: Any) -> None:
        """Run a statement that gives nothing."""

    def many(self, statement: str, lines: Sequence[tuple[Any, ...]]) -> None:
        """Insert many lines by a statement that ends in a place for ``{lines}``."""

    def settle(self, sensor: str, lines: Sequence[Outcome]) -> None:
        """Write what came of orders of a sensor."""


class Ledger(ABC):
    """What a run has bought and answered; `SqliteLedger` or `PostgresLedger`.

    It belongs to one run of one policy over rows of unique keys. A run that was cut off, or
    that is given more rows or more money, goes on with the same ledger.
    """

    # what a database has of its own -------------------------------------------------------

    @abstractmethod
    def _change(self) -> AbstractContextManager[Desk]:
        """A transaction during which nobody else changes anything."""

    @abstractmethod
    def _look(self) -> AbstractContextManager[Desk]:
        """A transaction that only reads."""

    @abstractmethod
    def _stream(self, statement: str) -> Iterator[tuple[Any, ...]]:
        """Lines of a statement, not all in memory at once."""

    @abstractmethod
    def now(self) -> float:
        """Seconds, by a clock that is the same for all who use the ledger."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the database; using the ledger again opens it again."""

    # a run --------------------------------------------------------------------------------

    def begin(self, model: str, keys: str) -> str:
        """Begin a run, or go on with it, and give the ledger's own random name.

        Parameters
        ----------
        model : str
            Digest of the policy.
        keys : {"int", "str"}
            What keys are.
        """
        about = {
            "version": VERSION,
            "model": model,
            "keys": keys,
            "id": secrets.token_hex(16),
        }
        with self._change() as desk:
            found: dict[str, str] = dict(desk.all("SELECT name, value FROM about"))
            if not found:
                found = about
                for name, value in about.items():
                    desk.run("INSERT INTO about VALUES (?, ?)", name, value)
        self._check_model(found, model)
        if found["keys"] != keys:
            raise DataError(
                f"the keys of {self} are of type {found['keys']}, and these are of type "
                f"{keys}, so that none would be found; give keys of the same type."
            )
        return found["id"]

    def kind_of(self, model: str) -> str:
        """What the keys of the run of a policy are: "int" or "str"."""
        with self._look() as desk:
            found: dict[str, str] = dict(desk.all("SELECT name, value FROM about"))
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
        with self._look() as desk:
            return _read_totals(desk)

    # orders -------------------------------------------------------------------------------

    def claim(
        self,
        sensor: str,
        keys: Sequence[str],
        prices: Sequence[Decimal],
        limit: Decimal | None,
    ) -> Claim:
        """Order a sensor for rows that have no order of it, as far as the money goes.

        Money is set aside in the same transaction, for the first rows first.
        """
        granted: list[str] = []
        denied: list[str] = []
        with self._change() as desk:
            there = {order.key: order for order in _orders(desk, keys, sensor)}
            sums = _read_totals(desk)
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
                desk.many("INSERT INTO orders {lines}", lines)
                _add(desk, reserved=reserved)
        return Claim(granted, there, denied)

    def settle(self, sensor: str, outcomes: Sequence[Outcome]) -> dict[str, Order]:
        """Write what came of orders, and give what the ledger then says of them.

        What another process has written of an order meanwhile counts, and stays.
        """
        with self._change() as desk:
            keys = [outcome.key for outcome in outcomes]
            before = {order.key: order for order in _orders(desk, keys, sensor)}
            new = [o for o in outcomes if before[o.key].state == "ordered"]
            if not new:
                return before
            desk.settle(sensor, new)
            price = {state: Decimal(0) for state in ("bought", "unavailable", "lost")}
            for outcome in new:
                paid = "bought" if outcome.state in PAID else outcome.state
                price[paid] = total((price[paid], before[outcome.key].price))
            released = total(price.values())
            _add(desk, spent=price["bought"], lost=price["lost"], reserved=-released)
        return before | {
            o.key: before[o.key]._replace(
                state=o.state, reading=o.reading, reason=o.reason
            )
            for o in new
        }

    def orders(self, keys: Sequence[str]) -> list[Order]:
        """All that was ordered for some rows."""
        with self._look() as desk:
            return _orders(desk, keys)

    def unsettled(self) -> list[Order]:
        """Orders of which nothing has come: being asked for, or cut off."""
        with self._look() as desk:
            lines = desk.all(
                "SELECT key, sensor, state, price, reading, reason FROM orders "
                "WHERE state = 'ordered' ORDER BY key, sensor"
            )
        return [_order(line) for line in lines]

    def settle_by_hand(
        self, key: Key, sensor: str, values: Sequence[Any] | None
    ) -> None:
        """Say what came of an order that was cut off, as the seller's bill has it.

        Parameters
        ----------
        key : int or str
        sensor : str
        values : sequence in the sensor's column order, or None
            What was bought; None if nothing was, and nothing is paid.
        """
        written = str(key)
        with self._look() as desk:
            there = [o.state for o in _orders(desk, [written], sensor)]
        if there != ["ordered"]:
            state = f"it is {there[0]}" if there else "there is none"
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
        """Take the next free time for n lookups; gives the seconds until then."""
        now = self.now()
        with self._change() as desk:
            found = desk.all("SELECT free_at FROM slots WHERE sensor = ?", sensor)
            start = max(now, float(found[0][0]) if found else now)
            desk.run(
                "INSERT INTO slots VALUES (?, ?) "
                "ON CONFLICT (sensor) DO UPDATE SET free_at = excluded.free_at",
                sensor,
                start + n / per_second,
            )
        return start - now

    # answers ------------------------------------------------------------------------------

    def stop(self, call: str, block: str, stops: Sequence[Stop]) -> None:
        """Write where rows of a block have stopped; refuse a row that another block has.

        Parameters
        ----------
        call : str
            Name of the call of `acquire`, within which no key may come twice.
        block : str
        stops : sequence of Stop
        """
        keys = [stop.key for stop in stops]
        with self._change() as desk:
            before = desk.all(
                "SELECT key, call, block FROM answers WHERE key IN {keys}", keys
            )
            for key, other, number in before:
                if other == call and number != block:
                    raise DataError(
                        f"key {key!r} is that of two rows; keys must be unique. Nothing "
                        f"was bought twice. Correct the keys and call again."
                    )
            desk.many(
                f"INSERT INTO answers ({ANSWER}, call, block) {{lines}} "
                "ON CONFLICT (key) DO UPDATE SET place = excluded.place, "
                "because = excluded.because, around = excluded.around, "
                "referred = excluded.referred, spent = excluded.spent, "
                "said = excluded.said, call = excluded.call, block = excluded.block",
                [
                    (*stop[:5], str(stop.spent), stop.said, call, block)
                    for stop in stops
                ],
            )
            _add(desk, rows=Decimal(len(keys) - len(before)))

    def stops(self, keys: Sequence[str]) -> list[Stop]:
        """Where those of some rows that have stopped did so."""
        with self._look() as desk:
            lines = desk.all(
                f"SELECT {ANSWER} FROM answers WHERE key IN {{keys}}", keys
            )
        return [_stop(line) for line in lines]

    def all_stops(self) -> Iterator[Stop]:
        """Where all rows have stopped, in the order of their keys as text."""
        lines = self._stream(f"SELECT {ANSWER} FROM answers ORDER BY key")
        return map(_stop, lines)

    def bought(self, sensor: str) -> Iterator[tuple[Key, list[Any]]]:
        """Key and values of all readings of a sensor that were bought."""
        with self._look() as desk:
            kind = desk.all("SELECT value FROM about WHERE name = 'keys'")
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
        with self._look() as desk:
            lines = desk.all("SELECT because, count(*) FROM answers GROUP BY because")
        return {because: int(count) for because, count in lines}


# within a transaction ---------------------------------------------------------------------


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _orders(desk: Desk, keys: Sequence[str], sensor: str | None = None) -> list[Order]:
    """Orders of some rows: all, or those of a sensor."""
    statement = "SELECT key, sensor, state, price, reading, reason FROM orders WHERE "
    if sensor is None:
        lines = desk.all(statement + "key IN {keys}", keys)
    else:
        lines = desk.all(statement + "sensor = ? AND key IN {keys}", sensor, keys)
    return [_order(line) for line in lines]


def _order(line: tuple[Any, ...]) -> Order:
    key, sensor, state, price, reading, reason = line
    return Order(key, sensor, state, Decimal(price), reading, reason)


def _stop(line: tuple[Any, ...]) -> Stop:
    key, place, because, around, referred, spent, said = line
    return Stop(key, place, because, around, referred, Decimal(spent), bytes(said))


def _read_totals(desk: Desk) -> Totals:
    found = dict(desk.all("SELECT name, amount FROM totals"))
    spent, reserved, lost, rows = (Decimal(found.get(name, 0)) for name in TOTALS)
    return Totals(spent, reserved, lost, int(rows))


def _add(desk: Desk, **amounts: Decimal) -> None:
    """Add to totals; nobody else changes them meanwhile."""
    sums = _read_totals(desk)._asdict()
    for name, amount in amounts.items():
        if amount:
            after = total((Decimal(sums[name]), amount))
            desk.run("UPDATE totals SET amount = ? WHERE name = ?", str(after), name)


def tables(**types: str) -> list[str]:
    """Statements that make a ledger, with a database's names of types."""
    made = TABLES.format(**types).split(";\n")
    zeros = [
        f"INSERT INTO totals VALUES ('{name}', '0') ON CONFLICT (name) DO NOTHING"
        for name in TOTALS
    ]
    return [statement for statement in made if statement.strip()] + zeros
