"""`Lookup`: a paid oracle that is asked for many rows at once, and again if it fails."""

from __future__ import annotations

import asyncio
import inspect
import logging
import random
from collections.abc import Awaitable, Callable, Mapping, Set
from concurrent.futures import Future
from dataclasses import dataclass, replace
from math import isfinite
from numbers import Real
from threading import Thread
from typing import Any

from sensortree.exceptions import DataError, OracleError, ParameterError
from sensortree.policy.oracles import error_text, within
from sensortree.policy.session_input import in_column_order, index_of
from sensortree.sensors.sensor import SensorSet
from sensortree.waves.ledger import Key

LOG = logging.getLogger("sensortree.acquire")


def check_count(name: str, value: Any) -> None:
    """Refuse what is no whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ParameterError(
            f"{name} must be a whole number of at least 1, got {value!r}."
        )


@dataclass(frozen=True)
class Ask:
    """What an oracle is asked: the reading of one sensor for some rows.

    Attributes
    ----------
    sensor : str
    columns : tuple of str
        What a reading holds, in this order.
    keys : tuple of int or of str
        The rows.
    tokens : tuple of str
        One for each row: the same whenever the same sensor is asked for the same row. An
        oracle that charges each token once charges each row once, whatever happens.
    attempt : int
        1, and more if it failed before.
    """

    sensor: str
    columns: tuple[str, ...]
    keys: tuple[Key, ...]
    tokens: tuple[str, ...]
    attempt: int = 1


@dataclass(frozen=True)
class Lookup:
    """A paid oracle: how it is asked for many rows, how fast, and how often.

    Parameters
    ----------
    ask : callable
        Given an `Ask`, returns or awaits the readings: a sequence in the order of its
        keys, an array of shape (n_keys, n_columns), or a mapping by key. A reading is a
        mapping by column or a sequence in column order. None, or a missing key, means that
        the sensor is unavailable for the row; nothing is paid. An exception in place of a
        reading means that this row failed, and so does a reply that is malformed: a page
        of text, another number of readings or values, keys that were not asked for.
    size : int, default=1000
        Rows in one call, at most.
    at_once : int, default=4
        Calls under way at a time, for each block of rows.
    per_second : float, default=None
        Rows that may be asked for in a second, by all workers together; None for any.
    attempts : int, default=4
        How often it is asked for a row before the row goes on without it.
    backoff : float, default=0.5
        Seconds before the second attempt; they double with each, and vary by half.
    timeout : float, default=None
        Seconds that a call may take; then it has failed. An awaited call is cancelled; a
        function cannot be, and what it still returns is ignored.
    patience : int or None, default=3
        Calls in a row that may fail with all attempts. Then the run ends with an
        `OracleError`, so that a mistake in `ask` does not make a sensor unavailable for
        every row. None always goes on without the sensor.

    Examples
    --------
    >>> from sensortree.dask import Lookup
    >>> bureau = {"ann": [4.0], "bob": [2.5]}
    >>> Lookup(lambda ask: [bureau.get(key) for key in ask.keys], per_second=50).size
    1000
    """

    ask: Callable[[Ask], Any]
    size: int = 1000
    at_once: int = 4
    per_second: float | None = None
    attempts: int = 4
    backoff: float = 0.5
    timeout: float | None = None
    patience: int | None = 3

    def __post_init__(self) -> None:
        if not callable(self.ask):
            raise ParameterError(
                f"ask must be a function of an Ask, got {type(self.ask).__name__}."
            )
        for name in ("size", "at_once", "attempts", "patience"):
            if self.patience is not None or name != "patience":
                check_count(f"{name} of a Lookup", getattr(self, name))
        for name in ("per_second", "backoff", "timeout"):
            value = getattr(self, name)
            if value is None and name != "backoff":
                continue
            if not isinstance(value, Real) or not isfinite(value):
                raise ParameterError(
                    f"{name} of a Lookup is a number of seconds or rows, got {value!r}."
                )
            if value < 0 or (value == 0 and name != "backoff"):
                raise ParameterError(f"{name} of a Lookup is above 0, got {value!r}.")


class Failure(Exception):  # noqa: N818 - what became of a row; nobody raises it
    """Why no answer came for a row."""


def check_oracles(oracles: Any, sensors: SensorSet) -> dict[str, Lookup]:
    """Oracles by sensor, each a `Lookup`; a bare function is one with its defaults."""
    if not isinstance(oracles, Mapping):
        raise ParameterError(
            f"oracles must be a mapping of sensors to functions or Lookups, got "
            f"{type(oracles).__name__}; write oracles={{{sensors.names[0]!r}: ...}}."
        )
    return {
        sensors.names[index_of(name, sensors)]: (
            oracle if isinstance(oracle, Lookup) else Lookup(oracle)
        )
        for name, oracle in oracles.items()
    }


async def ask_until_answered(
    lookup: Lookup,
    ask: Ask,
    wait: Callable[[int], Awaitable[None]],
    seed: int,
) -> list[Any]:
    """Ask for some rows, and again for those that fail; a `Failure` if they always do.

    `wait` waits until so many rows may be asked for again. `seed` decides how the times
    between attempts vary.
    """
    replies: list[Any] = [None] * len(ask.keys)
    left = list(range(len(ask.keys)))
    for attempt in range(1, lookup.attempts + 1):
        if attempt > 1:
            await asyncio.sleep(pause(lookup, ask.tokens[left[0]], attempt, seed))
            await wait(len(left))
        part = replace(
            ask,
            keys=tuple(ask.keys[i] for i in left),
            tokens=tuple(ask.tokens[i] for i in left),
            attempt=attempt,
        )
        try:
            given = await within(_call(lookup.ask, part), lookup.timeout)
        except OracleError:
            raise
        except Exception as error:
            some = [error] * len(left)
        else:
            some = readings(part, given)
        for i, reply in zip(left, some, strict=True):
            failed = isinstance(reply, Exception)
            replies[i] = Failure(error_text(reply)) if failed else reply
        left = [i for i in left if isinstance(replies[i], Failure)]
        if not left:
            break
    return replies


def pause(lookup: Lookup, token: str, attempt: int, seed: int) -> float:
    """Seconds before an attempt: doubled each time, and varied by half."""
    share = random.Random(f"{seed}/{token}/{attempt}").uniform(0.5, 1.5)
    return float(lookup.backoff * 2 ** (attempt - 2) * share)


def readings(ask: Ask, given: Any) -> list[Any]:
    """A reading for each key, in column order; an error for each that is malformed."""

    def read(reply: Any) -> Any:
        if reply is None or isinstance(reply, Exception):
            return reply
        try:
            return in_column_order(ask.sensor, ask.columns, reply)
        except DataError as error:
            return error

    try:
        found = [read(reply) for reply in in_order(ask, given)]
    except DataError as error:
        found = [error] * len(ask.keys)
    if any(isinstance(one, DataError) for one in found):  # which may quote values
        LOG.warning("malformed reply for %r, attempt %d", ask.sensor, ask.attempt)
    return found


def in_order(ask: Ask, given: Any) -> list[Any]:
    """Replies in the order of the keys; an error if there are not as many."""
    if isinstance(given, Mapping):
        strange = [key for key in given if key not in set(ask.keys)]
        if strange:
            raise DataError(
                f"the oracle of sensor {ask.sensor!r} gave a reading of "
                f"{strange[0]!r}, for which it was not asked; give the keys as they came."
            )
        return [given.get(key) for key in ask.keys]
    text = isinstance(given, (str, bytes, bytearray, Set))
    if text or not hasattr(given, "__len__") or getattr(given, "shape", None) == ():
        raise DataError(
            f"the oracle of sensor {ask.sensor!r} gave {type(given).__name__}; give a "
            f"sequence in the order of ask.keys, or a mapping by key."
        )
    if len(given) != len(ask.keys):
        raise DataError(
            f"the oracle of sensor {ask.sensor!r} gave {len(given)} readings of "
            f"{len(ask.keys)} rows; give None for a row that it has no reading of."
        )
    return list(given.to_numpy() if hasattr(given, "to_numpy") else given)


async def _call(ask: Callable[[Ask], Any], part: Ask) -> Any:
    """Await an oracle, or call it in a thread of its own."""
    awaited = inspect.iscoroutinefunction(ask) or inspect.iscoroutinefunction(
        getattr(ask, "__call__", None)  # noqa: B004 - an object that is called
    )
    given = ask(part) if awaited else await _in_a_thread(ask, part)
    return await given if inspect.isawaitable(given) else given


def _in_a_thread(ask: Callable[[Ask], Any], part: Ask) -> asyncio.Future[Any]:
    """A function's result as a future, which is dropped if nobody waits any more."""
    future: Future[Any] = Future()
    future.set_running_or_notify_cancel()  # a call that has begun cannot be cancelled

    def work() -> None:
        try:
            future.set_result(ask(part))
        except StopIteration as error:  # which asyncio cannot hold
            future.set_exception(RuntimeError(error_text(error)))
        except BaseException as error:
            future.set_exception(error)

    Thread(target=work, name=f"oracle of {part.sensor}", daemon=True).start()
    return asyncio.wrap_future(future)
