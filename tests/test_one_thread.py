"""Claims about threads inside our calls: one, whatever the machine and its variables."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import numpy as np
import pytest
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, ClassifierMixin
from threadpoolctl import threadpool_info, threadpool_limits

from sensortree import SensorTreeClassifierCV
from sensortree.exceptions import BudgetWarning, CertificateWarning
from sensortree.program import SurrogateProblem, solve
from sensortree.threads import one_thread, spare_threads, threads_asked

ROOT = Path(__file__).parents[1]
VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

# Records the pools from inside: in a leaf classifier, in a callback of the solver, and in
# each of these in a process of joblib's.
INSIDE = """
import json, sys
from test_one_thread import Recorder, pools, rows
from threadpoolctl import threadpool_limits
import numpy as np
from sensortree import (SensorTreeClassifier, SensorTreeClassifierCV, evaluate_from_log,
                        tradeoff_curve)
from sensortree.program import SurrogateProblem, solve

X, y = rows()
threadpool_limits(4)  # what the caller wants for himself
before = pools()
seen = {}
leaf = Recorder()

def during(name, call):
    Recorder.seen.clear()
    given = call()
    seen[name] = sorted({n for threads in Recorder.seen for n in threads})
    assert Recorder.seen, name
    return given

model = SensorTreeClassifier(classifier=leaf, cost_weight=0.01)
during("fit", lambda: model.fit(X, y))
during("fit_path", lambda: model.fit_path(X, y, [0.01, 0.02]))
during("predict", lambda: model.predict(X))
during("predict one row", lambda: model.predict(X[:1]))
during("report", lambda: model.report(X, y))
during("explain", lambda: model.explain(X[0]))
during("session", lambda: model.policy_.acquire(lambda s, c: X[0, int(s[1:])]))
during("tradeoff_curve", lambda: tradeoff_curve(model, X, y, [0.01, 0.1], cv=2))
during("CV", lambda: SensorTreeClassifierCV(
    classifier=leaf, budget=1, cost_weights=[0.01, 0.1], cv=2).fit(X, y))
bought = np.ones(X.shape, dtype=bool)
during("log", lambda: evaluate_from_log(
    model, X, y, acquired=bought, order=["x0", "x1"]))

def callback(progress):
    Recorder.seen.append(pools())

problem = SurrogateProblem([-1], [-1], [X], 1.0 * (X[:, :1] > 0), 1.0 * (X[:, 1:2] > 0))
for n_jobs in (None, 1, 2):
    during(f"solve, n_jobs={n_jobs}", lambda: solve(
        problem, l2=1.0, n_jobs=n_jobs, callback=callback))
print(json.dumps({"seen": seen, "before": before, "after": pools()}))
"""


def pools() -> list[int]:
    """Threads of each pool of this process, as this thread finds them."""
    return [pool["num_threads"] for pool in threadpool_info()]


def rows():
    """Rows of two sensors that tell of two classes."""
    X = np.random.default_rng(0).normal(size=(120, 2))
    return X, (X.sum(axis=1) > 0).astype(int)


class Recorder(ClassifierMixin, BaseEstimator):
    """A leaf classifier that records the thread pools whenever it is called."""

    seen: list[list[int]] = []  # noqa: RUF012  # shared by all copies, on purpose

    def fit(self, X, y):
        self.seen.append(pools())
        self.classes_, self.center_ = np.unique(y), X.mean()
        return self

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def predict_proba(self, X):
        self.seen.append(pools())
        p = 1 / (1 + np.exp(self.center_ - X.sum(axis=1)))
        return np.stack([1 - p, p], axis=1)[:, : len(self.classes_)]


def alone(code: str) -> dict:
    """What a fresh process prints in which no variable limits threads."""
    environment = {k: v for k, v in os.environ.items() if k not in VARIABLES}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT / "tests"), *sys.path])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_every_call_sees_one_thread_and_gives_the_callers_threads_back():
    told = alone(INSIDE)
    assert set(map(tuple, told["seen"].values())) == {(1,)}, told["seen"]
    assert max(told["before"]) == 4
    assert told["after"] == told["before"]


def test_what_joblib_starts_has_one_thread_too():
    told = alone("""
import json
from joblib import parallel_config
from test_one_thread import PoolsInside, rows
from sensortree import SensorTreeClassifier
X, y = rows()
with parallel_config("loky", inner_max_num_threads=4):
    model = SensorTreeClassifier(classifier=PoolsInside(), cost_weight=0.01, n_jobs=2)
    model.fit(X, y)
print(json.dumps([c.inside_ for c in model.policy_.classifiers.values()
                  if hasattr(c, "inside_")]))
""")
    assert told
    assert {threads for inside in told for threads in inside} == {1}


class PoolsInside(Recorder):
    """A leaf classifier that keeps the thread pools which it was fitted in."""

    def fit(self, X, y):
        super().fit(X, y)
        self.inside_ = pools()
        return self


def test_a_library_that_is_loaded_in_the_middle_is_held_at_one_thread_as_well():
    told = alone("""
import json, numpy
from sensortree.threads import one_thread
from threadpoolctl import threadpool_info
def pools():
    return {p["filepath"]: p["num_threads"] for p in threadpool_info()}
with one_thread():
    first = pools()
    import scipy.linalg, sklearn.ensemble
    fresh = [n for path, n in pools().items() if path not in first]
    with one_thread():
        held = pools()
print(json.dumps([first, fresh, held, pools()]))
""")
    first, fresh, held, after = told
    assert set(first.values()) == {1}
    assert fresh, "nothing was loaded in the middle"
    assert set(held.values()) == {1}
    assert [after[path] for path in held if path not in first] == fresh


def test_threads_of_a_user_that_overlap_set_the_pools_back_when_the_last_has_ended():
    with threadpool_limits(3, "blas"):
        before, inside, gate = pools(), [], Barrier(8)

        def work(number: int) -> None:
            gate.wait()
            for _ in range(50):
                with one_thread(), one_thread():
                    inside.append(max(pools()))

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(8)))
        assert set(inside) == {1}
        assert pools() == before


def test_an_error_inside_sets_the_pools_back():
    with threadpool_limits(3):
        before = pools()
        with pytest.raises(ZeroDivisionError), one_thread():
            1 / 0  # noqa: B018 - it only has to raise
        assert pools() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_process_forked_beside_a_call_has_its_threads_back():
    with threadpool_limits(3, "blas"), ThreadPoolExecutor(1) as pool:
        gate = Barrier(2)

        def held() -> None:
            with one_thread():
                gate.wait()
                gate.wait()

        running = pool.submit(held)
        gate.wait()
        child = os.fork()
        if not child:
            blas = [
                p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas"
            ]
            os._exit(int(set(blas) != {3}))
        gate.wait()
        running.result()
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_large_work_opens_no_more_threads_than_the_caller_allows():
    cores = len(os.sched_getaffinity(0))
    with threadpool_limits(1):
        assert spare_threads() == 1
    with threadpool_limits(64):
        assert 1 <= spare_threads() <= cores
    with threadpool_limits(64), one_thread(), ThreadPoolExecutor(1) as pool:
        beside = pool.submit(spare_threads).result()  # two calls are under way
        assert beside <= max(1, cores // 2)


def test_workers_of_joblib_share_the_cores():
    told = Parallel(n_jobs=2)(delayed(spare_threads)() for _ in range(2))
    assert sum(told) <= max(2, len(os.sched_getaffinity(0)))


def test_n_jobs_is_what_the_user_says():
    assert threads_asked(None) is None
    assert threads_asked(1) == 1
    assert threads_asked(3) == 3


def test_warnings_name_the_line_that_called_us():
    X, y = rows()
    with pytest.warns(BudgetWarning) as told:
        SensorTreeClassifierCV(
            {"a": [0], "b": [1]}, budget=-0.0, cost_weights=[0.001], cv=2
        ).fit(X, y)
    assert told[-1].filename == __file__
    problem = SurrogateProblem(
        [-1], [-1], [X], 1.0 * (X[:, :1] > 0), 1.0 * (X[:, 1:] > 0)
    )
    with pytest.warns(CertificateWarning) as told:
        solve(problem, callback=lambda progress: True)
    assert told[-1].filename == __file__
