"""`Log`: what chunks of rows were told, so that one that was lost can be made anew."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np


class Told(NamedTuple):
    """A task, and what it was given besides the chunk."""

    task: Callable[..., Any]
    arguments: tuple[Any, ...]

    def done_to(self, chunk: Any) -> Any:
        """Do the task; where rounding is all that is left, numbers overflow."""
        with np.errstate(all="ignore"):
            return self.task(chunk, *self.arguments)


class Source(NamedTuple):
    """What makes a chunk: a function, and what it is given."""

    make: Callable[..., Any]
    arguments: tuple[Any, ...]


@dataclass(eq=False)
class Log:
    """Tasks that change chunks, in the order in which they were told.

    A chunk that has done the first `n` of them is at version `n`. Tasks depend on nothing
    but the chunk and their arguments: done again to a new chunk, they give the same bits.
    """

    told: list[Told] = field(default_factory=list)

    @property
    def version(self) -> int:
        """Of a chunk that has done all of them."""
        return len(self.told)

    def add(self, task: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        """Write a task down."""
        self.told.append(Told(task, arguments))

    def since(self, version: int) -> list[Told]:
        """What a chunk of a version has not done yet."""
        return self.told[version:]


def caught_up(chunk: Any, pending: Sequence[Told]) -> Any:
    """What the last of some tasks says of a chunk, all of them done to it."""
    said = None
    for each in pending:
        said = each.done_to(chunk)
    return said


class Logged:
    """Chunks that are asked by a log; `_call` says what each of them answers."""

    def __init__(self) -> None:
        self.log = Log()

    @contextmanager
    def working(self) -> Iterator[None]:
        """Nothing is held in common."""
        yield

    def ask(self, task: Callable[..., Any], *arguments: Any) -> Iterator[Any]:
        """What a task that changes nothing says of each chunk, in order."""
        return iter(self._call(Told(task, arguments)))

    def tell(self, task: Callable[..., Any], *arguments: Any) -> list[Any]:
        """The same of a task that changes the chunks."""
        self.note(task, *arguments)
        return list(self._call(None))

    def note(self, task: Callable[..., Any], *arguments: Any) -> None:
        """Have chunks changed by a task that says nothing, before the next one."""
        self.log.add(task, arguments)

    def _call(self, asked: Told | None) -> Iterable[Any]:
        """What each chunk answers, or says of what it was told last."""
        raise NotImplementedError
