"""`one_thread`: linear algebra and boosting on one thread, wherever the library runs.

Fits, solves and predictions are made of many small products. Shared by several threads,
each of them waits for the slowest thread, and where another process wants the same cores,
the slowest waits for its turn: a fit then takes up to forty times as long. So our calls
keep BLAS and OpenMP at one thread, and large work shares its rows among threads of its own
(`chunks.InMemory`). Sums are made in the same order on any machine.

The number of threads of BLAS belongs to the process: it is set by the first of our calls,
and set back when the last one that overlaps with it has ended. That of OpenMP belongs to
the thread that makes the call.
"""

from __future__ import annotations

import os
import sys
import threading
from contextlib import ContextDecorator
from functools import cache
from importlib.util import find_spec
from typing import Any

__all__ = ["one_thread", "spare_threads", "threads_asked"]


class _Pool:
    """Thread pools of one kind: how many threads they had, while they are held at one."""

    def __init__(self) -> None:
        self.before: dict[Any, int] = {}

    def hold(self, libraries: list[Any]) -> None:
        """Set each library to one thread, and keep what it was set to at first."""
        for library in libraries:
            threads = library.get_num_threads()
            if library not in self.before:
                self.before[library] = threads
            if threads != 1:
                _set_threads(library, 1)

    def release(self) -> None:
        """Set the libraries back to what they were."""
        while self.before:
            library, threads = self.before.popitem()
            if threads != 1:
                _set_threads(library, threads)


def _set_threads(library: Any, threads: int) -> None:
    """Set the threads of a library, also where another thread of Python has set them.

    threadpoolctl ignores, of OpenBLAS, all threads of Python but the first that asked.
    """
    let_go = getattr(library, "clear_controlling_thread", None)
    if let_go is None:
        library.set_num_threads(threads)
        return
    let_go(force=True)
    library.set_num_threads(threads)
    let_go(force=True)


class _Here(threading.local):
    """What one thread of Python has: calls that are under way, one inside the other."""

    def __init__(self) -> None:
        self.depth, self.looked_at, self.openmp = 0, 0, _Pool()


class _Process:
    """What all threads of Python share: calls that are under way, and BLAS."""

    def __init__(self) -> None:
        self.lock, self.calls, self.blas = threading.Lock(), 0, _Pool()
        self.looked_at, self.libraries = 0, (list[Any](), list[Any]())

    def find(self) -> tuple[list[Any], list[Any]]:
        """Libraries of BLAS and of OpenMP; looked for again when modules were imported."""
        if self.looked_at != (loaded := len(sys.modules)):
            from threadpoolctl import ThreadpoolController

            found = ThreadpoolController().lib_controllers
            known = {each.filepath: each for part in self.libraries for each in part}
            found = [known.get(each.filepath, each) for each in found]
            blas = [each for each in found if each.user_api == "blas"]
            self.libraries = blas, [each for each in found if each.user_api == "openmp"]
            self.looked_at = loaded
        return self.libraries


_process, _here = _Process(), _Here()


class one_thread(ContextDecorator):  # noqa: N801  # reads as what it does
    """Keep BLAS and OpenMP at one thread inside; set them back at the end.

    It may be entered again inside itself, and by several threads at once. A process in
    which nothing but NumPy is installed goes without.

    Examples
    --------
    >>> from sensortree.threads import one_thread
    >>> with one_thread():
    ...     pass
    """

    def __enter__(self) -> None:
        """Hold the pools, also those of libraries that were loaded since."""
        outermost = not _here.depth
        if not outermost and _here.looked_at == len(sys.modules):
            _here.depth += 1
            return
        if not _can_be_held():
            _here.depth += 1
            return
        with _process.lock:
            blas, openmp = _process.find()
            _process.calls += outermost
            _process.blas.hold(blas)
        _here.openmp.hold(openmp)
        _here.looked_at = _process.looked_at
        _here.depth += 1

    def __exit__(self, *error: object) -> None:
        """Set the pools back if this was the outermost call."""
        _here.depth -= 1
        if _here.depth or not _can_be_held():
            return
        _here.openmp.release()
        with _process.lock:
            _process.calls -= 1
            if not _process.calls:
                _process.blas.release()


@cache
def _can_be_held() -> bool:
    """Whether threadpoolctl is there, which comes with scikit-learn."""
    return "threadpoolctl" in sys.modules or find_spec("threadpoolctl") is not None


def spare_threads() -> int:
    """Threads that large work may open: one for each core that is there for it.

    Those are the cores that the process may use, by its affinity and its cgroup's quota,
    shared among our calls that are under way, and no more than the caller allowed BLAS:
    by an environment variable, by threadpoolctl, or as joblib and Dask do for workers.

    Examples
    --------
    >>> from threadpoolctl import threadpool_limits
    >>> from sensortree.threads import spare_threads
    >>> with threadpool_limits(1):
    ...     spare_threads()
    1
    """
    from joblib import cpu_count

    with one_thread(), _process.lock:
        cores = cpu_count() // _process.calls
        return int(max(1, min([cores, *_process.blas.before.values()])))


def threads_asked(n_jobs: int | None) -> int | None:
    """Threads that a user asked for, in joblib's way; None leaves it to us.

    Examples
    --------
    >>> from sensortree.threads import threads_asked
    >>> threads_asked(2), threads_asked(None)
    (2, None)
    """
    from joblib import effective_n_jobs

    threads = int(effective_n_jobs(n_jobs))
    return None if n_jobs is None and threads == 1 else threads


def _after_fork() -> None:
    """Start anew in a forked process: calls of other threads do not go on there."""
    global _process
    before, _process = _process, _Process()
    _process.calls, _process.blas = int(bool(_here.depth)), before.blas
    if not _here.depth:
        _process.blas.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
