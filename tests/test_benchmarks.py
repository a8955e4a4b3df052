"""Claims about the benchmarks: the rivals solve the problem they are timed on."""

from __future__ import annotations

import pytest
from strategies import random_problem

from benchmarks.rivals import RIVALS
from sensortree.program import SOLVERS, solve


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "name",
    ["highs-recursive", "clarabel-recursive", "clarabel-margins", "highs-simplex"],
)
def test_the_benchmark_s_own_rivals_are_certified(monkeypatch, name, seed):
    monkeypatch.setitem(SOLVERS, name, RIVALS[name])
    problem = random_problem(seed, n_leaves=3 + seed)
    certificate = solve(problem, name).certificate
    assert certificate.converged
    assert certificate.upper == pytest.approx(
        solve(problem).certificate.upper, rel=1e-6
    )
