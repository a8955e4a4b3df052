"""A block of rows, from where the ledger knows them to where they stop, in waves.

In a wave every row of the block asks for its next sensor; rows that ask for the same are
asked for together, in calls of the size that its oracle takes. Each call goes the same way:
the order is written, a slot in time is taken, the oracle is asked, the reply is written,
and only then is it used. The slot is taken last, since writing may have to wait for others:
calls that took their slots before would come late, and all at once.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from threading import Event
from typing import Any, Literal

import numpy as np

from sensortree.exceptions import OracleError
from sensortree.policy.policy import Policy
from sensortree.sensors.seen import Unseen, merge_unseen
from sensortree.types import Rows
from sensortree.waves.ledger import (
    FOR_NOW,
    Ledger,
    Outcome,
    read_key,
    token_of,
    write_reading,
)
from sensortree.waves.oracles import Ask, Failure, Lookup, ask_until_answered
from sensortree.waves.rows import BlockRows, Wish, unusable

Unsettled = Literal["ask", "hold"]


@dataclass(frozen=True)
class Job:
    """What is to be done with every block of a call of `acquire`; see there."""

    policy: Policy
    oracles: Mapping[str, Lookup]
    ledger: Ledger
    key: str | None
    known: tuple[str, ...]
    prices: Mapping[str, str]
    limit: Decimal | None
    unsettled: Unsettled
    call: str  # a random name of the call
    block_rows: int
    seed: int


class Interrupted(Exception):  # noqa: N818 - another block has the error
    """The call ends, since another block failed or the user stopped it."""


def answer_block(
    job: Job, block: str, part: Any, ending: Event | None = None
) -> tuple[Unseen, ...]:
    """Buy for the rows of a block what the policy wants, and write where they stop.

    Nothing new is asked once `ending` is set. Returns what training never saw of what
    was bought.
    """
    stand = BlockRows.read(part, job.policy, job.key, job.known, job.prices)
    run = job.ledger.begin(job.policy.digest, stand.kind)
    before = [s for s in job.ledger.stops(stand.keys) if s.because not in FOR_NOW]
    done = {stand.position[stop.key] for stop in before}
    rows = np.array([r for r in range(len(stand.keys)) if r not in done], np.intp)
    stand.recall(job.ledger.orders([stand.keys[r] for r in rows]))
    waves = Waves(job, stand, run, ending or Event())
    asyncio.run(waves.go(rows))
    job.ledger.stop(job.call, block, [*before, *stand.stops(rows)])
    return merge_unseen(waves.unseen)


class Waves:
    """The waves of one block.

    `run` is the ledger's own name, of which tokens are made. `unseen` is what training
    never saw of what was bought.
    """

    def __init__(self, job: Job, stand: BlockRows, run: str, ending: Event):
        self._job, self._stand = job, stand
        self._run, self._ending = run, ending
        self._failed: Counter[str] = Counter()  # calls in a row
        self._doors = {
            name: asyncio.Semaphore(lookup.at_once)
            for name, lookup in job.oracles.items()
        }
        self.unseen: list[Unseen] = []

    async def go(self, rows: Rows) -> None:
        """Go on, wave by wave, until no row asks for a sensor that it can get."""
        while rows.size:
            wishes = self._stand.wishes(rows)
            calls = [call for wish in wishes for call in self._calls(wish)]
            for sensor, failures in await self._all(calls):
                # Rows without an answer are settled now that others have theirs.
                await self._settle(sensor, failures)
            asked = [row for wish in wishes for row in wish.rows]
            waiting = self._stand.waiting
            rows = np.array([row for row in asked if row not in waiting], np.intp)

    def _calls(self, wish: Wish) -> list[Any]:
        """Buy what rows wish for, in calls of at most so many rows."""
        size = self._job.oracles[wish.sensor].size
        keys = [self._stand.keys[row] for row in wish.rows]
        return [
            self._buy_or_end(wish.sensor, keys[some], wish.prices[some])
            for some in (slice(at, at + size) for at in range(0, len(keys), size))
        ]

    async def _all(self, calls: Sequence[Any]) -> list[Any]:
        """Results of all calls; if one fails, those under way are finished first."""
        tasks = [asyncio.create_task(call) for call in calls]
        try:
            return list(await asyncio.gather(*tasks))
        except BaseException:
            await asyncio.gather(*tasks, return_exceptions=True)
            raise

    async def _buy_or_end(
        self, sensor: str, keys: list[str], prices: list[Decimal]
    ) -> tuple[str, list[Outcome]]:
        """Buy; if that fails, nothing more is ordered."""
        try:
            return await self._buy(sensor, keys, prices)
        except BaseException:
            self._ending.set()
            raise

    async def _buy(
        self, sensor: str, keys: list[str], prices: list[Decimal]
    ) -> tuple[str, list[Outcome]]:
        """Order a sensor for some rows and take the replies; returns rows without any."""
        job, lookup = self._job, self._job.oracles[sensor]
        async with self._doors[sensor]:
            if self._ending.is_set():
                raise Interrupted
            claim = await asyncio.to_thread(
                job.ledger.claim, sensor, keys, prices, job.limit
            )
            cut_off = [o.key for o in claim.there.values() if o.state == "ordered"]
            self._stand.recall(
                [o for o in claim.there.values() if o.state != "ordered"]
            )
            self._stand.wait(claim.denied, "money")
            if job.unsettled == "hold":
                self._stand.wait(cut_off, "unsettled")
                cut_off = []
            wanted = claim.granted + cut_off
            if not wanted:
                return sensor, []
            ask = Ask(
                sensor,
                job.policy.columns_of[sensor],
                tuple(read_key(key, self._stand.kind) for key in wanted),
                tuple(token_of(self._run, key, sensor) for key in wanted),
            )
            await self._slot(sensor, len(ask.keys))
            replies = await ask_until_answered(
                lookup, ask, lambda n: self._slot(sensor, n), job.seed
            )
        outcomes = self._outcomes(ask, replies)
        lost = [outcome for outcome in outcomes if outcome.state == "lost"]
        self._be_patient(lookup, ask, lost)
        await self._settle(sensor, [o for o in outcomes if o.state != "lost"])
        return sensor, lost

    async def _slot(self, sensor: str, n: int) -> None:
        """Wait until so many rows may be asked for, given what all others ask."""
        rate = self._job.oracles[sensor].per_second
        if rate is not None:
            ledger, began = self._job.ledger, time.monotonic()
            seconds = await asyncio.to_thread(ledger.slot, sensor, n, rate)
            await asyncio.sleep(seconds - (time.monotonic() - began))

    def _be_patient(self, lookup: Lookup, ask: Ask, lost: list[Outcome]) -> None:
        """Count calls in a row without an answer; end the run if there are too many."""
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

    def _outcomes(self, ask: Ask, replies: Sequence[Any]) -> list[Outcome]:
        """What came of each order."""
        outcomes, came, values = [], [], []
        for key, reply in zip(map(str, ask.keys), replies, strict=True):
            if reply is None:
                outcomes.append(Outcome(key, "unavailable"))
            elif isinstance(reply, Failure):
                outcomes.append(Outcome(key, "lost", None, str(reply)))
            else:
                came.append(key)
                values.append(reply)
        bad, unseen = unusable(self._job.policy, ask.sensor, values)
        self.unseen += unseen
        for i, (key, read) in enumerate(zip(came, values, strict=True)):
            state: Any = "unusable" if i in bad else "bought"
            reading = write_reading(ask.sensor, read)
            outcomes.append(Outcome(key, state, reading, bad.get(i)))
        return outcomes

    async def _settle(self, sensor: str, outcomes: Sequence[Outcome]) -> None:
        """Write what came, and take over what the ledger then says."""
        if outcomes:
            settle = self._job.ledger.settle
            settled = await asyncio.to_thread(settle, sensor, outcomes)
            self._stand.recall(settled.values())
