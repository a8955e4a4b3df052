"""Claims about training over chunks of rows: on disk, on workers, and workers that die."""

from __future__ import annotations

import os
import signal
import threading

import numpy as np
import pytest
from strategies import random_problem

from sensortree.dask.disk import OnDisk
from sensortree.dask.log import Source
from sensortree.program import solve
from sensortree.program.chunks import InMemory
from sensortree.program.in_chunks import ProblemRows, solve_rows
from sensortree.program.solvers.structured.blocks import parts_of

distributed = pytest.importorskip("distributed", reason="the extra 'dask' is absent")

PROBLEM = random_problem(3, n_samples=8_000, n_leaves=6, n_features=5)
PENALTIES = [{"l2": 1.0}, {"l1": 0.5}, {}]


def sources():
    return [Source(ProblemRows, (PROBLEM.part(some),)) for some in parts_of(PROBLEM)]


def same(solved, solution):
    """Whether coefficients have the same bits, and bounds agree to the last digits."""
    ours, theirs = solved.certificate, solution.certificate
    np.testing.assert_allclose(
        [ours.upper, ours.lower], [theirs.upper, theirs.lower], rtol=1e-14
    )
    for theta, other in zip(solved.coef, solution.coef, strict=True):
        np.testing.assert_array_equal(theta, other)


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_the_problem_has_several_chunks():
    assert len(sources()) > 2


@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
def test_chunks_are_solved_to_the_same_bits_as_the_whole(penalty):
    rows = InMemory([source.make(*source.arguments) for source in sources()])
    same(solve_rows(rows, **penalty), solve(PROBLEM, **penalty))


@pytest.mark.parametrize("max_memory", [0, 1 << 40])
def test_chunks_on_disk_are_solved_to_the_same_bits(tmp_path, max_memory):
    rows = OnDisk(tmp_path, sources(), max_memory)
    same(solve_rows(rows, l2=1.0), solve(PROBLEM, l2=1.0))
    assert bool(rows.held) == (max_memory > 0)
    assert any(tmp_path.iterdir()) == (max_memory == 0)


def test_chunks_on_workers_are_solved_to_the_same_bits(client):
    from sensortree.dask.workers import OnWorkers

    rows = OnWorkers(client, sources())
    assert len({place.worker for place in rows.places}) == 2
    same(solve_rows(rows, l2=1.0), solve(PROBLEM, l2=1.0))
    assert not rows.made_again
    rows.close()


@pytest.mark.parametrize("penalty", PENALTIES[:2], ids=str)
def test_chunks_that_are_lost_in_the_middle_of_a_step_are_made_anew(client, penalty):
    from sensortree.dask import workers

    rows = workers.OnWorkers(client, sources())
    tell = rows.tell

    def lose_one(task, *arguments):
        if rows.log.version == 40:
            del workers._STORE[rows.run, 1]
        return tell(task, *arguments)

    rows.tell = lose_one
    same(solve_rows(rows, **penalty), solve(PROBLEM, **penalty))
    assert rows.made_again == 1
    rows.close()
    assert not any(run == rows.run for run, _ in workers._STORE)


@pytest.mark.slow
def test_a_worker_killed_in_the_middle_changes_nothing():
    from sensortree.dask.workers import OnWorkers

    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        rows = OnWorkers(client, sources())
        victim = next(iter(client.run(os.getpid).values()))

        def kill_once(progress):
            if progress.iteration == 5 and not rows.made_again:
                threading.Timer(0.05, os.kill, (victim, signal.SIGKILL)).start()

        solved = solve_rows(rows, l2=1.0, callback=kill_once)
        assert rows.made_again
        same(solved, solve(PROBLEM, l2=1.0))
