"""A block of rows, from where the ledger knows them to where they stop, in waves.

In a wave every row of the block asks for its next sensor; rows that ask for the same are
asked for together, in calls of the size that its oracle takes. Each call goes the same way:
the order is written, a slot in time is taken, the oracle is asked, what came is written,
and only then is it known. The slot comes last before the call, since writing may wait for
others: calls that are late would come together.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from threading import Event
from typing import Any, Literal

import numpy as np

from sensortree.dask.entries import (
    FOR_NOW,
    Order,
    Outcome,
    read_key,
    token_of,
    write_reading,
)
from sensortree.dask.ledger import Ledger
from sensortree.dask.lookups import Ask, Failure, Lookup, ask_until_answered
from sensortree.dask.rows import Naming, read_known
from sensortree.dask.standing import Standing, Wish, standing, unusable
from sensortree.exceptions import DataError, OracleError
from sensortree.policy.policy import Policy
from sensortree.policy.values import in_column_order
from sensortree.sensors.seen import Unseen, merged
from sensortree.types import Rows

Unsettled = Literal["ask", "hold"]


@dataclass(frozen=True)
class Job:
    """What is to be done with every block of a call of `acquire`.

    Attributes
    ----------
    policy : Policy
    oracles : mapping of sensor to Lookup
    ledger : Ledger
    where : Naming
    limit : Decimal or None
    unsettled : {"ask", "hold"}
    call : str
        A random name of the call.
    block_rows : int
    seed : int
    """

    policy: Policy
    oracles: Mapping[str, Lookup]
    ledger: Ledger
    where: Naming
    limit: Decimal | None
    unsettled: Unsettled
    call: str
    block_rows: int
    seed: int


class Interrupted(Exception):  # noqa: N818 - another block has the error
    """The call ends, since another block failed or the user wants it to."""


def answer_block(
    job: Job, block: str, part: Any, ending: Event | None = None
) -> tuple[Unseen, ...]:
    """Buy for the rows of a block what the policy wants, and write where they stop.

    Returns
    -------
    unseen : tuple of Unseen
        What training never saw of what was bought.
    """
    given = read_known(part, job.policy, job.where)
    if not given.keys:
        return ()
    run = job.ledger.begin(job.policy.digest, given.kind)
    stand = standing(job.policy, given, job.where.known)
    position = {key: row for row, key in enumerate(stand.keys)}
    before = [s for s in job.ledger.stops(stand.keys) if s.because not in FOR_NOW]
    done = {position[stop.key] for stop in before}
    rows = np.array([r for r in range(len(stand.keys)) if r not in done], np.intp)
    stand.recall(job.ledger.orders([stand.keys[r] for r in rows]), position)
    waves = Waves(job, stand, position, run, given.kind, ending or Event())
    asyncio.run(waves.go(rows))
    job.ledger.stop(job.call, block, [*before, *stand.stops(rows)])
    return merged(waves.unseen)


class Waves:
    """The waves of one block.

    Parameters
    ----------
    job : Job
    stand : Standing
    position : dict of str to int
        Rows by their keys.
    run : str
        The ledger's own name, of which tokens are made.
    kind : {"int", "str"}
        What keys are.
    ending : Event
        Nothing new is asked once it is set.

    Attributes
    ----------
    unseen : list of Unseen
    """

    def __init__(
        self,
        job: Job,
        stand: Standing,
        position: dict[str, int],
        run: str,
        kind: str,
        ending: Event,
    ):
        self._job, self._stand, self._position = job, stand, position
        self._run, self._kind, self._ending = run, kind, ending
        self._failed: Counter[str] = Counter()  # calls in a row
        self._doors: dict[str, asyncio.Semaphore] = {}
        self.unseen: list[Unseen] = []

    async def go(self, rows: Rows) -> None:
        """Go on, wave by wave, until no row asks for what it can get."""
        self._doors = {
            name: asyncio.Semaphore(lookup.at_once)
            for name, lookup in self._job.oracles.items()
        }
        while rows.size:
            wishes = list(self._stand.wishes(rows))
            calls = [
                self._buy_or_end(*call)
                for wish in wishes
                for call in _calls(wish, self._job.oracles[wish.sensor].size)
            ]
            for sensor, failures in await self._all(calls):
                if (
                    failures
                ):  # those that no answer came to, now that others were answered
                    await self._settle(sensor, failures)
            asked = [row for wish in wishes for row in wish.rows.tolist()]
            waiting = self._stand.waiting
            rows = np.array([row for row in asked if row not in waiting], np.intp)

    async def _buy_or_end(
        self, sensor: str, rows: list[int], prices: list[Decimal]
    ) -> tuple[str, list[Outcome]]:
        """Buy, and see to it that nothing more is ordered if that fails."""
        try:
            return await self._buy(sensor, rows, prices)
        except BaseException:
            self._ending.set()
            raise

    async def _buy(
        self, sensor: str, rows: list[int], prices: list[Decimal]
    ) -> tuple[str, list[Outcome]]:
        """Order a sensor for some rows and know what came; gives who got no answer."""
        job, lookup = self._job, self._job.oracles[sensor]
        async with self._doors[sensor]:
            self._check_going_on()
            keys = [self._stand.keys[row] for row in rows]
            claim = await asyncio.to_thread(
                job.ledger.claim, sensor, keys, prices, job.limit
            )
            cut_off = [o.key for o in claim.there.values() if o.state == "ordered"]
            self._know([o for o in claim.there.values() if o.state != "ordered"])
            self._wait(claim.denied, "money")
            if job.unsettled == "hold":
                self._wait(cut_off, "unsettled")
                cut_off = []
            if not claim.granted and not cut_off:
                return sensor, []
            ask = self._ask(sensor, claim.granted + cut_off)
            await self._slot(sensor, len(ask.keys))
            replies = await ask_until_answered(
                lookup, ask, lambda n: self._slot(sensor, n), job.seed
            )
        outcomes = self._outcomes(ask, replies)
        lost = [outcome for outcome in outcomes if outcome.state == "lost"]
        self._be_patient(lookup, ask, lost)
        await self._settle(sensor, [o for o in outcomes if o.state != "lost"])
        return sensor, lost

    async def _all(self, calls: Sequence[Any]) -> list[Any]:
        """What all calls give; if one fails, the others that have ordered are ended."""
        tasks = [asyncio.create_task(call) for call in calls]
        try:
            return list(await asyncio.gather(*tasks))
        except BaseException:
            await asyncio.gather(*tasks, return_exceptions=True)
            raise

    def _check_going_on(self) -> None:
        if self._ending.is_set():
            raise Interrupted

    def _ask(self, sensor: str, keys: list[str]) -> Ask:
        """What the oracle is asked, with the token of each order."""
        return Ask(
            sensor,
            self._job.policy.columns_of[sensor],
            tuple(read_key(key, self._kind) for key in keys),
            tuple(token_of(self._run, key, sensor) for key in keys),
        )

    async def _slot(self, sensor: str, n: int) -> None:
        """Wait until so many rows may be asked for, by all who ask."""
        rate = self._job.oracles[sensor].per_second
        if rate is not None:
            ledger, began = self._job.ledger, time.monotonic()
            seconds = await asyncio.to_thread(ledger.slot, sensor, n, rate)
            await asyncio.sleep(seconds - (time.monotonic() - began))

    def _be_patient(self, lookup: Lookup, ask: Ask, lost: list[Outcome]) -> None:
        """Count calls in a row to which no answer came at all, and end if too many."""
        if len(lost) < len(ask.keys):
            self._failed[ask.sensor] = 0
            return
        self._failed[ask.sensor] += 1
        if lookup.patience is not None and self._failed[ask.sensor] >= lookup.patience:
            raise OracleError(
                f"the oracle of sensor {ask.sensor!r} failed in {lookup.patience} calls in "
                f"a row, {lookup.attempts} times each, last with {lost[-1].reason!r}; mend "
                f"it, or let rows go on without it: Lookup(..., patience=None)."
            )

    # what came ----------------------------------------------------------------------------

    def _outcomes(self, ask: Ask, replies: Sequence[Any]) -> list[Outcome]:
        """What came of each order."""
        policy, sensor = self._job.policy, ask.sensor
        outcomes, came, values = [], [], []
        for key, reply in zip(map(str, ask.keys), replies, strict=True):
            if reply is None:
                outcomes.append(Outcome(key, "unavailable"))
            elif isinstance(reply, Failure):
                outcomes.append(Outcome(key, "lost", None, str(reply)))
            else:
                came.append(key)
                values.append(_in_column_order(ask, reply))
        bad, unseen = unusable(policy, sensor, values) if values else ({}, [])
        self.unseen += unseen
        for i, (key, read) in enumerate(zip(came, values, strict=True)):
            state: Any = "unusable" if i in bad else "bought"
            text = write_reading(sensor, read)
            outcomes.append(Outcome(key, state, text, bad.get(i)))
        return outcomes

    async def _settle(self, sensor: str, outcomes: Sequence[Outcome]) -> None:
        """Write what came, and know what the ledger then says."""
        if outcomes:
            settle = self._job.ledger.settle
            self._know(
                list((await asyncio.to_thread(settle, sensor, outcomes)).values())
            )

    def _know(self, orders: Sequence[Order]) -> None:
        self._stand.recall(orders, self._position)

    def _wait(
        self, keys: Sequence[str], because: Literal["money", "unsettled"]
    ) -> None:
        for key in keys:
            self._stand.waiting[self._position[key]] = because


def _calls(wish: Wish, size: int) -> Iterator[tuple[str, list[int], list[Decimal]]]:
    """A wish in calls of at most so many rows."""
    rows = wish.rows.tolist()
    for start in range(0, len(rows), size):
        end = start + size
        yield wish.sensor, rows[start:end], wish.prices[start:end]


def _in_column_order(ask: Ask, reply: Any) -> tuple[Any, ...]:
    """A reading in the order of the sensor's columns."""
    try:
        return in_column_order(ask.sensor, ask.columns, reply)
    except DataError as error:
        raise OracleError(
            f"the oracle of sensor {ask.sensor!r} gave what is no reading: {error}"
        ) from error
