"""`OnWorkers`: chunks of rows that stay on the workers of a Dask cluster.

A worker keeps its chunks between tasks; tasks and what they say travel, rows do not. A
chunk whose worker is lost is made anew on another: Dask gives the rows again, and the log
of what chunks were told is done again, to the same bits. So a lost worker costs time and
changes nothing.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from sensortree.exceptions import DataError
from sensortree.outofcore.chunk import LoggedChunks, Source, Told, caught_up
from sensortree.threads import one_thread

# Seconds after which the client looks whether workers are still there, and that it waits
# for one where none is.
PATIENCE = 1.0
WITHOUT_WORKERS = 300.0
# Losses after which it gives up.
MOST_LOSSES = 100

# Chunks of this process by run and number, each with its version.
_STORE: dict[tuple[str, int], tuple[int, Any]] = {}


@one_thread()
def do_on_worker(
    run: str,
    numbers: Sequence[int],
    version: int,
    pending: Sequence[Told],
    asked: Told | None,
    sources: Sequence[Source] | None,
) -> list[Any] | None:
    """Bring some chunks up to date, and ask them; None if one of them is not here.

    `numbers` says which chunks, `version` the one that they should have: 0 if they are to
    be made, by their `sources`. `pending` is what they have not done yet; they say what the
    last of it gives if nothing is `asked`.
    """
    if sources is None:
        found = [_STORE.pop((run, number), (-1, None)) for number in numbers]
        if any(has != version for has, _ in found):
            return None
        chunks = [chunk for _, chunk in found]
    else:
        chunks = [source.make() for source in sources]
    answers = [caught_up(chunk, pending, asked) for chunk in chunks]
    for number, chunk in zip(numbers, chunks, strict=True):
        _STORE[run, number] = (version + len(pending), chunk)
    return answers


def forget(run: str) -> None:
    """Drop all chunks of a run that this process has."""
    for key in [key for key in _STORE if key[0] == run]:
        _STORE.pop(key, None)


@dataclass(eq=False)
class Share:
    """Chunks that one thread of a worker has."""

    worker: str  # its address
    numbers: list[int]
    version: int | None = None  # None for chunks that are to be made


class OnWorkers(LoggedChunks):
    """Chunks on the workers of a Dask client; arguments of sources may be futures."""

    def __init__(self, client: Any, sources: Sequence[Source]):
        super().__init__()
        self.client, self.sources = client, list(sources)
        self.run = uuid.uuid4().hex
        threads = self._threads()
        workers = [worker for worker in sorted(threads) for _ in range(threads[worker])]
        numbers = np.array_split(np.arange(len(self.sources)), len(workers))
        self.shares = [
            Share(worker, its.tolist())
            for worker, its in zip(workers, numbers, strict=True)
            if its.size
        ]
        self.made_again = 0

    def _threads(self) -> dict[str, int]:
        """Threads of the workers that are there, by address."""
        self.client.wait_for_workers(1, timeout=WITHOUT_WORKERS)
        return dict(self.client.nthreads())

    def _submit(self, share: Share, asked: Told | None) -> Any:
        version = share.version
        makes = [self.sources[k] for k in share.numbers] if version is None else None
        return self.client.submit(
            do_on_worker,
            self.run,
            share.numbers,
            version or 0,
            self.log[version or 0 :],
            asked,
            makes,
            workers=[share.worker],
            allow_other_workers=False,
            pure=False,
        )

    def _call(self, asked: Told | None) -> list[Any]:
        """What each chunk says; those that were lost are made anew first."""
        import distributed

        found: dict[int, Any] = {}
        waiting = {k: self._submit(each, asked) for k, each in enumerate(self.shares)}
        while waiting:
            with suppress(TimeoutError):
                distributed.wait(
                    list(waiting.values()), PATIENCE, return_when="FIRST_COMPLETED"
                )
            ready = [k for k, future in waiting.items() if future.done()]
            for k in ready:
                share, answers = self.shares[k], _result(waiting.pop(k))
                if answers is None:
                    waiting[k] = self._made_anew(share, asked)
                else:
                    found.update(zip(share.numbers, answers, strict=True))
                    share.version = len(self.log)
            if not ready:
                there = self._threads()
                for k in [k for k in waiting if self.shares[k].worker not in there]:
                    waiting.pop(k).cancel()
                    waiting[k] = self._made_anew(self.shares[k], asked)
        return [found[number] for number in range(len(self.sources))]

    def _made_anew(self, share: Share, asked: Told | None) -> Any:
        """Submit the making of lost chunks, on the worker that has the fewest."""
        there = self._threads()
        self.made_again += 1
        if self.made_again > MOST_LOSSES:
            raise DataError(
                f"workers were lost {self.made_again} times while a model was fitted; "
                f"see their logs: memory is the usual cause, so give them more of it, or "
                f"take more workers."
            )
        if share.worker not in there:
            has = Counter(each.worker for each in self.shares)
            share.worker = min(there, key=lambda worker: (has[worker], worker))
        share.version = None
        return self._submit(share, asked)

    def close(self) -> None:
        """Let the workers drop all chunks."""
        self.client.run(forget, self.run)


def _result(future: Any) -> list[Any] | None:
    """What some chunks said; None if they were lost."""
    from distributed.client import FutureCancelledError
    from distributed.scheduler import KilledWorker

    try:
        answers: list[Any] | None = future.result()
    except (KilledWorker, FutureCancelledError, OSError):
        return None
    return answers
