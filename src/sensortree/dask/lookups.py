"""`Lookup`: a paid oracle that is asked for many rows at once, and what if it fails."""

from __future__ import annotations

import asyncio
import inspect
import random
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import isfinite
from numbers import Real
from threading import Thread
from typing import Any

from sensortree.dask.entries import Key
from sensortree.exceptions import OracleError, ParameterError, SensorError
from sensortree.policy.values import index_of
from sensortree.sensors.sensor_set import SensorSet
from sensortree.text import listed


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
        oracle that charges for a token once charges for the row once, whatever happens.
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
        mapping by column or a sequence in column order; None, or a key that is not there,
        says that the sensor is unavailable for the row, and is not paid. An exception in
        place of a reading says that this row failed.
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
        Seconds that a call may take; then it has failed. What is awaited is cancelled; a
        function that was called cannot be, and what it still returns is not looked at.
    patience : int or None, default=3
        Calls in a row that may fail with all attempts: then the run ends with an
        `OracleError`, rather than that a mistake in `ask` makes a sensor unavailable for
        everybody. None goes on without the sensor, as long as that may be.

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
            value = getattr(self, name)
            if value is None and name == "patience":
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ParameterError(
                    f"{name} of a Lookup is a whole number of at least 1, got {value!r}."
                )
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


class Failure(Exception):  # noqa: N818 - it says what became of a row, nobody raises it
    """Why no answer came for a row."""


def check_oracles(oracles: Any, sensors: SensorSet) -> dict[str, Lookup]:
    """Oracles by sensor, each a `Lookup`; a bare function is one with its defaults."""
    if not isinstance(oracles, Mapping):
        raise ParameterError(
            f"oracles must be a mapping of sensors to functions or Lookups, got "
            f"{type(oracles).__name__}; write oracles={{{sensors.names[0]!r}: ...}}."
        )
    found = {}
    for name, oracle in oracles.items():
        lookup = oracle if isinstance(oracle, Lookup) else Lookup(oracle)
        found[sensors.names[index_of(name, sensors)]] = lookup
    return found


def check_all_can_be_had(
    bought: Iterable[str], oracles: Mapping[str, Lookup], known: Iterable[str]
) -> None:
    """Refuse to begin if a sensor that a policy may buy has no oracle."""
    lacking = [name for name in bought if name not in oracles and name not in known]
    if lacking:
        raise SensorError(
            f"no oracle gives {listed(lacking)}, which the policy may buy; name one in "
            f"oracles, or give the columns with rows if they are known for nothing."
        )


async def ask_until_answered(
    lookup: Lookup,
    ask: Ask,
    wait: Callable[[int], Awaitable[None]],
    seed: int,
) -> list[Any]:
    """Ask for some rows, again for those that fail; a `Failure` for who fails always.

    Parameters
    ----------
    lookup : Lookup
    ask : Ask
    wait : callable
        Waits until so many rows may be asked for again.
    seed : int
        Of how much the times between attempts vary.
    """
    replies: list[Any] = [None] * len(ask.keys)
    left = list(range(len(ask.keys)))
    for attempt in range(1, lookup.attempts + 1):
        if attempt > 1:
            await asyncio.sleep(pause(lookup, ask.tokens[left[0]], attempt, seed))
            await wait(len(left))
        part = Ask(
            ask.sensor,
            ask.columns,
            tuple(ask.keys[i] for i in left),
            tuple(ask.tokens[i] for i in left),
            attempt,
        )
        try:
            said = await _within(_call(lookup.ask, part), lookup.timeout)
        except OracleError:
            raise
        except Exception as error:
            said = [error] * len(left)
        else:
            said = in_order(part, said)
        for i, reply in zip(left, said, strict=True):
            failed = isinstance(reply, Exception)
            replies[i] = Failure(_words(reply)) if failed else reply
        left = [i for i in left if isinstance(replies[i], Failure)]
        if not left:
            break
    return replies


def pause(lookup: Lookup, token: str, attempt: int, seed: int) -> float:
    """Seconds before an attempt: doubled each time, and varied by half."""
    if not lookup.backoff:
        return 0.0
    share = random.Random(f"{seed}/{token}/{attempt}").uniform(0.5, 1.5)
    return float(lookup.backoff * 2 ** (attempt - 2) * share)


def in_order(ask: Ask, said: Any) -> Sequence[Any]:
    """Readings in the order of the keys; an error if there are not as many."""
    if isinstance(said, Mapping):
        strange = [key for key in said if key not in set(ask.keys)]
        if strange:
            raise OracleError(
                f"the oracle of sensor {ask.sensor!r} gave a reading of "
                f"{strange[0]!r}, for which it was not asked; give the keys as they came."
            )
        return [said.get(key) for key in ask.keys]
    if isinstance(said, (str, bytes)) or not hasattr(said, "__len__"):
        raise OracleError(
            f"the oracle of sensor {ask.sensor!r} gave {type(said).__name__}; give a "
            f"sequence in the order of ask.keys, or a mapping by key."
        )
    if len(said) != len(ask.keys):
        raise OracleError(
            f"the oracle of sensor {ask.sensor!r} gave {len(said)} readings of "
            f"{len(ask.keys)} rows; give None for a row that it has nothing of."
        )
    rows = said.to_numpy() if hasattr(said, "to_numpy") else said
    return list(rows)


def _words(error: Exception) -> str:
    kind = type(error).__name__
    return f"{kind}: {error}" if str(error) else kind


async def _within(answer: Awaitable[Any], timeout: float | None) -> Any:
    """What is awaited, if it comes in time."""
    if timeout is None:
        return await answer
    try:
        async with asyncio.timeout(timeout) as limit:
            return await answer
    except TimeoutError as error:
        if not limit.expired():  # the oracle's own
            raise
        raise TimeoutError(f"no answer within {timeout:g} s") from error


async def _call(ask: Callable[[Ask], Any], part: Ask) -> Any:
    """Await an oracle, or call it in a thread of its own."""
    awaited = inspect.iscoroutinefunction(ask) or inspect.iscoroutinefunction(
        getattr(ask, "__call__", None)  # noqa: B004 - an object that is called
    )
    said = ask(part) if awaited else await _in_a_thread(ask, part)
    return await said if inspect.isawaitable(said) else said


def _in_a_thread(ask: Callable[[Ask], Any], part: Ask) -> asyncio.Future[Any]:
    """What a function returns; nobody waits for it once its caller has gone."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()

    def give(set_it: Callable[[Any], None], value: Any) -> None:
        if not future.done():
            set_it(value)

    def work() -> None:
        set_it: Callable[[Any], None] = future.set_result
        try:
            value = ask(part)
        except StopIteration as error:  # which a future cannot hold
            set_it, value = future.set_exception, RuntimeError(_words(error))
        except BaseException as error:
            set_it, value = future.set_exception, error
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(give, set_it, value)

    Thread(target=work, name=f"oracle of {part.sensor}", daemon=True).start()
    return future
