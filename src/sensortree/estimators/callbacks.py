"""`Progress`: how far a fit has come, told to scikit-learn's callbacks too."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sklearn.callback import CallbackSupportMixin, with_callbacks

from sensortree.leaves.sklearn_private import begin_callbacks
from sensortree.progress import LOG, TextProgress

__all__ = [
    "CallbackSupportMixin",
    "Progress",
    "all_or_nothing",
    "with_callbacks",
]


class Progress(TextProgress):
    """The steps of one fit, told to scikit-learn's callbacks too when they have ended.

    Parameters
    ----------
    estimator : estimator with scikit-learn's callback support
    verbose : bool
    at_most : int, default=None
    max_time : float, default=None
    """

    def __init__(
        self,
        estimator: Any,
        verbose: bool,
        at_most: int | None = None,
        max_time: float | None = None,
    ):
        super().__init__(verbose, at_most, max_time)
        self.estimator = estimator
        self.context = begin_callbacks(estimator, at_most)
        self.context.call_on_fit_task_begin(estimator=estimator)

    def step(self, name: str, detail: str = "") -> None:
        """Say that a step has ended; a callback that answers True stops the search."""
        super().step(name, detail)
        task = self.context.subcontext(task_name=name)
        task.call_on_fit_task_begin(estimator=self.estimator)
        self.told_to_stop |= bool(task.call_on_fit_task_end(estimator=self.estimator))

    def end(self) -> None:
        """Say that the fit has ended, and log where its time went."""
        spent = (f"{stage} {s:.2f} s" for stage, s in self.watch.seconds.items())
        LOG.info("%s fitted: %s", type(self.estimator).__name__, ", ".join(spent))
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
