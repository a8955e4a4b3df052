"""`TextProgress`: how far a fit has come, when it must end, and where its time went."""

from __future__ import annotations

import logging
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

LOG = logging.getLogger("sensortree.fit")
# Steps that are told at INFO; those of a search, and candidates, at DEBUG.
STAGE_ENDS = ("reading", "leaf classifiers", "decisions", "tree", "fit on all rows")


# Why nothing new is to be begun.
TOLD_TO_STOP, OUT_OF_TIME = "a callback said stop", "max_time was over"


class Stopwatch:
    """Seconds by stage, and how often something was done.

    A stage inside another stops the clock of the outer one.
    """

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.counts: Counter[str] = Counter()
        self._open: list[str] = []
        self._since = monotonic()

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count the time until the end of the block for a stage."""
        self._switch()
        self._open.append(name)
        try:
            yield
        finally:
            self._switch()
            self._open.pop()

    def _switch(self) -> None:
        now = monotonic()
        if self._open:
            self.seconds[self._open[-1]] += now - self._since
        self._since = now


class TextProgress:
    """The steps of one fit: logged, and one line each on stderr if the user wants them.

    There can be `at_most` steps, where that is known; `max_time` seconds from now nothing
    new is begun. As a part of a `whole`, it ends when that must, and nothing of it is more
    than a detail.
    """

    def __init__(
        self,
        verbose: bool,
        at_most: int | None = None,
        max_time: float | None = None,
        whole: TextProgress | None = None,
    ):
        self.whole = whole
        self.verbose, self.started = verbose, monotonic()
        self.at_most, self.done = at_most, 0
        self.deadline = None if max_time is None else self.started + max_time
        self.told_to_stop = False
        self.watch = Stopwatch()

    @property
    def stopped(self) -> str | None:
        """Why nothing new is to be begun; None if it may be."""
        if self.whole is not None:
            return self.whole.stopped
        if self.told_to_stop:
            return TOLD_TO_STOP
        if self.deadline is not None and monotonic() > self.deadline:
            return OUT_OF_TIME
        return None

    def step(self, name: str, detail: str = "") -> None:
        """Say that a step has ended, and how much time is left where that is limited.

        Steps are not alike, and few of those that there can be are taken: nothing else
        says when it ends.
        """
        self.done += 1
        words = f"{name}: {detail}" if detail else name
        if self.at_most is not None and self.done < self.at_most:
            words += f" (step {self.done} of at most {self.at_most}"
            if self.deadline is not None:
                left = max(0.0, self.deadline - monotonic())
                words += f", {left:.0f} s of max_time left"
            words += ")"
        self.say(words, logging.INFO if name in STAGE_ENDS else logging.DEBUG)

    def say(self, words: str, level: int = logging.DEBUG) -> None:
        """Log some words, and write a line if the user wants lines."""
        seconds = monotonic() - self.started
        level = level if self.whole is None else logging.DEBUG
        LOG.log(level, "%.1f s: %s", seconds, words)
        if self.verbose:
            sys.stderr.write(f"[sensortree] {seconds:7.1f} s  {words}\n")

    def expect(self, left: int) -> None:
        """Say how many steps are left, now that it is known."""
        if self.at_most is not None:
            self.at_most = self.done + left

    def part(self) -> TextProgress:
        """Progress of a part of the work: no lines of its own, the same end."""
        return TextProgress(verbose=False, whole=self)
