"""`Chunks`: rows that stay where they are; all that is read of them is sums by chunk.

What the interior point, the certificate and the leaf classifiers need of rows are sums,
and a few largest values. So whoever needs them sends a task to all chunks of rows and adds
up what comes back, the first chunk first: the same bits wherever the chunks are, in this
process or elsewhere. Chunks are cut by the number of rows alone.

A task is a function of a chunk and of plain values, so that it can be sent. A chunk keeps
what tasks make of it; the tasks it was told of, in their order, make it anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from itertools import pairwise
from typing import Any, Protocol, TypeVar

import numpy as np

from sensortree.threads import one_thread, spare_threads

Task = Callable[..., Any]
Total = TypeVar("Total")

# Rows are cut into this many chunks, and where they are very many, into chunks of so many;
# but not into more than there is room for the p x p matrices of: 512 MiB.
CHUNKS = 16
CHUNK_ROWS = 1 << 16
ROOM_FOR_MATRICES = 1 << 26


class Chunks(Protocol):
    """Rows in chunks, and what can be asked of them."""

    def ask(self, task: Task, *arguments: Any) -> Iterator[Any]:
        """What a task that changes nothing says of each chunk, in order."""
        ...

    def tell(self, task: Task, *arguments: Any) -> list[Any]:
        """The same of a task that changes the chunks."""
        return list(self.ask(task, *arguments))

    def note(self, task: Task, *arguments: Any) -> None:
        """Have chunks changed by a task that says nothing, before the next one."""
        self.tell(task, *arguments)

    def working(self) -> AbstractContextManager[None]:
        """Hold what many tasks have in common, such as threads, inside."""
        ...


class InMemory(Chunks):
    """Chunks in this process; `n_jobs` threads work on them, None: one for each core."""

    def __init__(self, chunks: Sequence[Any], n_jobs: int | None = 1):
        self.chunks, self.n_jobs = list(chunks), n_jobs
        self._pool: ThreadPoolExecutor | None = None

    @contextmanager
    def working(self) -> Iterator[None]:
        """Use `n_jobs` threads inside; each then has one BLAS thread."""
        threads = spare_threads() if self.n_jobs is None else self.n_jobs
        if threads == 1 or len(self.chunks) == 1:
            yield
            return
        with one_thread(), ThreadPoolExecutor(threads) as pool:
            self._pool = pool
            try:
                yield
            finally:
                self._pool = None

    def ask(self, task: Task, *arguments: Any) -> Iterator[Any]:
        """What a task says of each chunk, in order; one at a time without threads."""
        if self._pool is None:
            return (task(chunk, *arguments) for chunk in self.chunks)
        return self._pool.map(partial(_quietly, task, arguments), self.chunks)


class Within:
    """The part of each chunk that goes by some names, one inside the other."""

    def __init__(self, rows: Chunks, *names: str):
        self.rows, self.names = rows, names

    def ask(self, task: Task, *arguments: Any) -> Iterator[Any]:
        """What a task says of the part."""
        return self.rows.ask(_within, self.names, task, *arguments)

    def tell(self, task: Task, *arguments: Any) -> list[Any]:
        """The same of a task that changes the part."""
        return self.rows.tell(_within, self.names, task, *arguments)

    def note(self, task: Task, *arguments: Any) -> None:
        """Have the part changed."""
        self.rows.note(_within, self.names, task, *arguments)

    def working(self) -> AbstractContextManager[None]:
        """As all chunks do."""
        return self.rows.working()


def _within(chunk: Any, names: Sequence[str], task: Task, *arguments: Any) -> Any:
    for name in names:
        chunk = getattr(chunk, name)
    return task(chunk, *arguments)


def _quietly(task: Task, arguments: tuple[Any, ...], chunk: Any) -> Any:
    """Do a task; where rounding is all that is left, numbers overflow, and callers see."""
    with np.errstate(all="ignore"):
        return task(chunk, *arguments)


def total(parts: Iterable[Total]) -> Total:
    """Sum of some arrays, the first one first: the same bits each time.

    The first one is written to, if it is an array, and no more of them are alive than
    need be.
    """
    found = iter(parts)
    added: Any = next(found)
    for part in found:
        added += part
    return added  # type: ignore[no-any-return]  # of any type that adds


def totals(parts: Iterable[Sequence[Any]]) -> list[Any]:
    """Sums of some arrays each, as `total` gives them."""
    found = iter(parts)
    added = list(next(found))
    for part in found:
        for k, each in enumerate(part):
            added[k] = added[k] + each
    return added


def largest(parts: Iterable[Sequence[Any]]) -> list[Any]:
    """Largest of some arrays each, entry by entry."""
    found = iter(parts)
    most = list(next(found))
    for part in found:
        most = [np.maximum(a, b) for a, b in zip(most, part, strict=True)]
    return most


def cut(n_rows: int, at_once: int, n_coef: int) -> list[slice]:
    """Chunks of some rows, of about equal size; not of less than `at_once`.

    Matrices that are added up have `n_coef` rows and columns.
    """
    n_chunks = max(CHUNKS, n_rows // CHUNK_ROWS)
    room = max(1, ROOM_FOR_MATRICES // max(1, n_coef) ** 2)
    n_chunks = max(1, min(n_chunks, room, -(-n_rows // at_once)))
    ends = [k * n_rows // n_chunks for k in range(n_chunks + 1)]
    return [slice(*between) for between in pairwise(ends)]
