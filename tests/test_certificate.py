"""Claims about the certificate: it believes nobody, and is never wrong."""

from __future__ import annotations

import numpy as np
import pytest
from strategies import random_problem

from sensortree.exceptions import CertificateWarning
from sensortree.program import DualPoint, Penalty, certify, solve
from sensortree.program import certificate as certificate_module
from sensortree.program import solution as solution_module
from sensortree.program.proof_rows import ProofRows
from sensortree.program.solvers import Candidate, RawSolution, Solver


def zeros(problem):
    shape = (problem.n_samples, problem.n_nodes)
    return [np.zeros(shape) for _ in range(4)]


@pytest.mark.parametrize("l2", [0.0, 1.0])
@pytest.mark.parametrize("seed", range(10))
def test_the_gap_is_never_negative_whatever_the_dual(seed, l2):
    problem = random_problem(seed)
    best = solve(problem, "clarabel", l2=l2)
    rng = np.random.default_rng(seed)
    for size in (1e-3, 1.0, 1e3):
        shape = (problem.n_samples, problem.n_nodes)
        dual = DualPoint(*(size * rng.normal(size=(4, *shape))))
        certificate = certify(problem, best.coef, dual, penalty=Penalty(l2))
        assert certificate.lower <= best.certificate.upper + 1e-9


@pytest.mark.parametrize("seed", range(5))
def test_the_upper_bound_is_the_value_at_the_coefficients(seed):
    problem = random_problem(seed)
    coef = [np.random.default_rng(seed).normal(size=d) for d in problem.n_features]
    certificate = certify(problem, coef, DualPoint(*zeros(problem)))
    assert certificate.upper == pytest.approx(problem.value(coef))
    assert certificate.lower >= 0


@pytest.mark.parametrize(
    "wrong",
    [
        lambda d: DualPoint(
            d.flow_negative, d.flow_positive, -d.pull_negative, -d.pull_positive
        ),
        lambda d: DualPoint(
            d.flow_negative, d.flow_positive, 0 * d.pull_negative, 0 * d.pull_positive
        ),
        lambda d: DualPoint(
            d.flow_positive, d.flow_negative, d.pull_positive, d.pull_negative
        ),
        lambda d: DualPoint(
            1 + 0 * d.flow_negative,
            0 * d.flow_positive,
            d.pull_negative,
            d.pull_positive,
        ),
        lambda d: DualPoint(
            d.flow_negative, d.flow_positive, np.nan * d.pull_negative, d.pull_positive
        ),
        lambda d: DualPoint(
            d.flow_negative[::-1],
            d.flow_positive[::-1],
            d.pull_negative[::-1],
            d.pull_positive[::-1],
        ),
    ],
    ids=[
        "wrong sign",
        "no pull",
        "wrong side",
        "all flow negative",
        "NaN",
        "of other examples",
    ],
)
def test_a_wrong_dual_is_refuted(wrong):
    problem = random_problem(2, n_samples=80, n_leaves=5)
    solution = solve(problem)
    assert solution.certificate.converged
    certificate = certify(problem, solution.coef, wrong(solution.dual))
    assert not certificate.converged
    assert certificate.gap > 1e-3


def test_pulls_beyond_their_capacity_are_cut_before_they_count():
    problem = random_problem(2, n_samples=80, n_leaves=5)
    solution = solve(problem)
    dual = solution.dual
    doubled = DualPoint(
        dual.flow_negative,
        dual.flow_positive,
        2 * dual.pull_negative,
        2 * dual.pull_positive,
    )
    lower = certify(problem, solution.coef, doubled).lower
    assert lower <= solution.certificate.upper


def test_a_negative_multiplier_is_reported():
    problem = random_problem(2)
    dual = DualPoint(*zeros(problem))
    dual.pull_negative[3, 0] = -0.25
    assert certify(problem, solve(problem).coef, dual).sign_violation == 0.25


def test_wrong_coefficients_are_refuted_by_the_right_dual():
    problem = random_problem(3)
    solution = solve(problem)
    worse = [theta + 0.5 for theta in solution.coef]
    assert not certify(problem, worse, solution.dual).converged


def test_the_lower_bound_survives_duplicated_and_constant_columns():
    problem = random_problem(4)
    features = [
        np.c_[f, f[:, 0], np.zeros(len(f)), np.ones(len(f))] for f in problem.features
    ]
    wide = type(problem)(
        problem.negative,
        problem.positive,
        features,
        problem.lost_if_negative,
        problem.lost_if_positive,
    )
    optimum = solve(problem).certificate.upper
    for name in ("structured", "scipy", "highs", "clarabel"):
        certificate = solve(wide, name).certificate
        assert certificate.converged
        assert certificate.upper == pytest.approx(optimum, rel=1e-6)


def test_a_sloppy_solver_is_not_silent(monkeypatch):
    def sloppy(problem, options):
        coef = [np.zeros(d) for d in problem.n_features]
        return RawSolution([Candidate(coef, DualPoint(*zeros(problem)))], iterations=3)

    monkeypatch.setitem(
        solution_module.SOLVERS, "sloppy", Solver("sloppy", sloppy, ridge=False)
    )
    # It is asked twice, the second time for more.
    with pytest.warns(CertificateWarning, match=r"after 6 iterations: NOT certified"):
        solution = solve(random_problem(0), "sloppy")
    assert not solution.certificate.converged


def test_subgradients_support_the_objective_from_below():
    problem = random_problem(5)
    rng = np.random.default_rng(0)
    for penalty in (Penalty(), Penalty(l2=2.0), Penalty(l1=1.5)):
        for _ in range(50):
            here = [rng.normal(size=d) for d in problem.n_features]
            there = [rng.normal(size=d) for d in problem.n_features]
            slope = problem.subgradient(here, penalty)
            step = sum(g @ (b - a) for g, a, b in zip(slope, here, there, strict=True))
            value = problem.value(here, penalty)
            assert problem.value(there, penalty) >= value + step - 1e-9


@pytest.mark.parametrize("seed", range(5))
def test_with_a_ridge_a_coupling_is_not_repaired_beyond_what_that_is_worth(
    seed, monkeypatch
):
    problem = random_problem(seed, n_samples=400)
    solution = solve(problem, tol=1e-4, l2=1.0)
    repairs = []
    move = ProofRows.move
    monkeypatch.setattr(
        ProofRows, "move", lambda rows, steps: (repairs.append(1), move(rows, steps))
    )
    ridge = {"tol": 1e-4, "penalty": Penalty(1.0)}
    bound = certify(problem, solution.coef, solution.dual, **ridge)
    needed = len(repairs)
    monkeypatch.setattr(certificate_module, "SMALL_SHARE", 0.0)
    closest = certify(problem, solution.coef, solution.dual, **ridge)
    assert needed < len(repairs) - needed
    assert closest.lower - bound.lower <= 1e-3 * 1e-4 * bound.upper + 1e-12
