"""`Progress`: tells scikit-learn's callbacks how far a fit has come, and hears "stop"."""

from __future__ import annotations

from typing import Any

from sklearn.callback import CallbackSupportMixin, with_callbacks

__all__ = ["CallbackSupportMixin", "Progress", "with_callbacks"]


class Progress:
    """The steps of one fit, each told to the callbacks when it has ended.

    Parameters
    ----------
    estimator : estimator with scikit-learn's callback support
    """

    def __init__(self, estimator: Any):
        self.estimator = estimator
        self.context = estimator._init_callback_context(max_subtasks=None)
        self.context.call_on_fit_task_begin(estimator=estimator)
        self.stopped = False

    def step(self, name: str) -> None:
        """Say that a step has ended; a callback that answers True stops the search."""
        task = self.context.subcontext(task_name=name)
        task.call_on_fit_task_begin(estimator=self.estimator)
        self.stopped |= bool(task.call_on_fit_task_end(estimator=self.estimator))

    def end(self) -> None:
        """Say that the fit has ended."""
        self.context.call_on_fit_task_end(estimator=self.estimator)
