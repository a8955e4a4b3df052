"""How far a fit has come: told to the user in text, and to scikit-learn's callbacks."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sklearn.callback import CallbackSupportMixin, with_callbacks

__all__ = [
    "CallbackSupportMixin",
    "Progress",
    "TextProgress",
    "all_or_nothing",
    "with_callbacks",
]


class TextProgress:
    """The steps of one fit, one line each on stderr if the user wants them.

    Parameters
    ----------
    verbose : bool
    at_most : int, default=None
        Steps that there can be, where that is known.
    """

    def __init__(self, verbose: bool, at_most: int | None = None):
        self.verbose, self.started = verbose, time.monotonic()
        self.at_most, self.done = at_most, 0
        self.stopped = False

    def step(self, name: str, detail: str = "") -> None:
        """Say that a step has ended, and what is left if all steps are taken."""
        self.done += 1
        if self.verbose:
            seconds = time.monotonic() - self.started
            said = f"{name}: {detail}" if detail else name
            if self.at_most is not None and self.done < self.at_most:
                left = seconds / self.done * (self.at_most - self.done)
                said += (
                    f" (step {self.done} of at most {self.at_most}, {left:.0f} s left)"
                )
            sys.stderr.write(f"[sensortree] {seconds:7.1f} s  {said}\n")


class Progress(TextProgress):
    """The steps of one fit, told to scikit-learn's callbacks too when they have ended.

    Parameters
    ----------
    estimator : estimator with scikit-learn's callback support
    at_most : int, default=None
    """

    def __init__(self, estimator: Any, at_most: int | None = None):
        super().__init__(estimator.verbose, at_most)
        self.estimator = estimator
        self.context = estimator._init_callback_context(max_subtasks=at_most)
        self.context.call_on_fit_task_begin(estimator=estimator)

    def step(self, name: str, detail: str = "") -> None:
        """Say that a step has ended; a callback that answers True stops the search."""
        super().step(name, detail)
        task = self.context.subcontext(task_name=name)
        task.call_on_fit_task_begin(estimator=self.estimator)
        self.stopped |= bool(task.call_on_fit_task_end(estimator=self.estimator))

    def end(self) -> None:
        """Say that the fit has ended."""
        self.context.call_on_fit_task_end(estimator=self.estimator)


@contextmanager
def all_or_nothing(model: Any) -> Iterator[None]:
    """Keep a model as it was if fitting it ends in an error or is interrupted."""
    before = dict(vars(model))
    try:
        yield
    except BaseException:
        vars(model).clear()
        vars(model).update(before)
        raise
