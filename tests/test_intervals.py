"""Claims about certified intervals, judged by an independent program and by fractions."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
from degenerate import Degenerate, degenerate, disproof, exact_value, rival_coefficients
from strategies import random_problem

from sensortree.exceptions import CertificateWarning
from sensortree.program import SurrogateProblem, solve
from sensortree.program.chunks import InMemory
from sensortree.program.scaling import ColumnRows, exact_parts, exact_total, find_turns


def quietly(case, **options):
    """Solve, certified or not."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CertificateWarning)
        return solve(case.problem, l1=case.l1, l2=case.l2, **options)


def nearly_equal(seed, closeness):
    """Three columns and an intercept per node; the last equals the first, nearly."""
    problem = random_problem(seed, n_leaves=2 + seed % 4, n_features=3)
    rng = np.random.default_rng(1000 + seed)
    features = [
        np.c_[f, f[:, 0] + closeness * rng.normal(size=len(f))]
        for f in problem.features
    ]
    return Degenerate(
        replace(problem, features=features),
        near=[[(0, 3, closeness)] for _ in features],
    )


def times(problem, factor):
    return replace(
        problem,
        lost_if_negative=factor * problem.lost_if_negative,
        lost_if_positive=factor * problem.lost_if_positive,
    )


# degenerate problems ----------------------------------------------------------------------


def wrong_intervals(seeds):
    found = {}
    for seed in seeds:
        case = degenerate(seed)
        solution = quietly(case)
        wrong = disproof(case, solution.coef, solution.certificate)
        if wrong is not None:
            found[seed] = (case.story, wrong)
    return found


def test_no_interval_of_60_degenerate_problems_is_wrong():
    assert wrong_intervals(range(60)) == {}


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 1000, 100))
def test_no_interval_of_1000_degenerate_problems_is_wrong(start):
    assert wrong_intervals(range(start, start + 100)) == {}


def test_nearly_all_degenerate_problems_are_certified():
    verdicts = [quietly(degenerate(seed)).certificate.converged for seed in range(60)]
    assert sum(verdicts) >= 57


def test_the_judge_finds_an_interval_that_is_wrong():
    case = nearly_equal(0, 1e-8)
    solution = solve(case.problem)
    proof = solution.certificate
    too_high = replace(proof, lower=proof.upper * (1 + 1e-6), upper=proof.upper * 1.1)
    too_low = replace(proof, upper=proof.upper * (1 - 1e-6))
    assert "is reached" in disproof(case, solution.coef, too_high)
    assert "but the coefficients have" in disproof(case, solution.coef, too_low)


# nearly equal columns ---------------------------------------------------------------------


@pytest.mark.parametrize("closeness", [1e-4, 1e-6, 1e-8])
def test_nearly_equal_columns_are_certified_at_their_own_optimum(closeness):
    for seed in range(6):
        case = nearly_equal(seed, closeness)
        solution = solve(case.problem)
        assert solution.certificate.converged
        assert disproof(case, solution.coef, solution.certificate) is None
        best = float(exact_value(case, rival_coefficients(case)))
        assert solution.certificate.upper == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("name", ["scipy", "highs", "clarabel"])
def test_general_solvers_see_that_columns_differ(name):
    case = nearly_equal(3, 1e-8)
    best = float(exact_value(case, rival_coefficients(case)))
    certificate = solve(case.problem, name).certificate
    assert certificate.converged
    assert certificate.upper == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("penalty", [{}, {"l2": 1e-3}, {"l1": 0.03}], ids=str)
def test_a_looser_tolerance_is_certified_as_often(penalty):
    for seed in range(12):
        problem = nearly_equal(seed, 1e-4).problem
        for tol in (1e-6, 1e-4, 1e-2):
            assert solve(problem, tol=tol, **penalty).certificate.converged, (seed, tol)


def test_columns_that_are_told_apart_leave_no_limit():
    for problem in (random_problem(1), nearly_equal(1, 1e-8).problem):
        certificate = solve(problem).certificate
        assert certificate.reach == np.inf
        assert "coefficients" not in str(certificate)


def test_columns_equal_to_the_last_digits_limit_what_is_claimed_and_say_so():
    problem = random_problem(1)
    tripled = [np.c_[f, f[:, 0] + f[:, 1] - 0.1] for f in problem.features]
    certificate = solve(replace(problem, features=tripled)).certificate
    assert certificate.converged
    assert 1e6 <= certificate.reach < np.inf
    assert f"over coefficients up to {certificate.reach:.0e} lies in" in str(
        certificate
    )


@pytest.mark.parametrize("penalty", [{"l2": 1e-3}, {"l1": 0.1}], ids=str)
def test_a_penalty_leaves_no_limit(penalty):
    problem = random_problem(1)
    doubled = [np.c_[f, f] for f in problem.features]
    certificate = solve(replace(problem, features=doubled), **penalty).certificate
    assert certificate.converged
    assert certificate.reach == np.inf


# units ------------------------------------------------------------------------------------


@pytest.mark.parametrize("penalty", [{}, {"l2": 0.1}, {"l1": 0.1}], ids=str)
@pytest.mark.parametrize("factor", [1e-12, 1e-6, 1e-3, 1e3, 1e6, 1e12])
def test_scaled_savings_scale_the_interval_and_keep_the_verdict(factor, penalty):
    scaled = {name: factor * weight for name, weight in penalty.items()}
    for seed in range(4):
        problem = random_problem(seed, n_leaves=2 + seed)
        mine = solve(problem, **penalty).certificate
        theirs = solve(times(problem, factor), **scaled).certificate
        assert mine.converged
        assert theirs.converged
        assert theirs.upper == pytest.approx(factor * mine.upper, rel=1e-9)
        assert theirs.lower == pytest.approx(factor * mine.lower, rel=1e-7)
        assert theirs.upper - theirs.lower <= 1e-6 * theirs.upper


@pytest.mark.parametrize("factor", [1e-12, 1e12])
def test_a_poor_answer_is_poor_in_any_unit(factor):
    with pytest.warns(CertificateWarning):
        certificate = solve(
            times(random_problem(0), factor), callback=lambda p: p.iteration == 2
        ).certificate
    assert not certificate.converged
    assert certificate.gap > 1e-3


@pytest.mark.parametrize("factor", [1e-12, 1.0, 1e12])
def test_an_optimum_of_0_is_judged_in_the_unit_of_the_savings(factor):
    problem = SurrogateProblem(
        [-1], [-1], [[[1.0, 1.0], [-1.0, 1.0]]], [[1.0], [0.0]], [[0.0], [1.0]]
    )
    certificate = solve(times(problem, factor)).certificate
    assert certificate.converged
    assert certificate.unit == factor
    assert certificate.upper <= 1e-6 * factor


# warnings ---------------------------------------------------------------------------------


def test_the_advice_of_a_warning_helps():
    case = nearly_equal(0, 1e-11)
    with pytest.warns(CertificateWarning) as caught:
        solve(case.problem, tol=1e-10)
    message = str(caught[0].message)
    assert "the optimum" in message
    assert "lies in [" in message
    tol = float(re.search(r"ask for tol=(.*)\.$", message)[1])
    assert solve(case.problem, tol=tol).certificate.converged
    assert solve(case.problem, l2=1e-3).certificate.converged
    left_out = [f[:, :3] for f in case.problem.features]
    assert solve(replace(case.problem, features=left_out)).certificate.converged


def test_who_stops_a_solver_is_not_told_about_columns():
    with pytest.warns(CertificateWarning, match="Let it run on") as caught:
        solve(random_problem(0), callback=lambda progress: progress.iteration == 2)
    assert "Columns" not in str(caught[0].message)


# directions -------------------------------------------------------------------------------


def directions(*parts):
    """Combinations of columns whose rows are in several parts."""
    rows = []
    for X in parts:
        nothing = np.zeros((len(X), 1))
        rows.append(ColumnRows(SurrogateProblem([-1], [-1], [X], nothing, nothing)))
        rows[-1].set_scale([np.ones(X.shape[1])])
    return find_turns(InMemory(rows), 1)[0]


@pytest.mark.parametrize("ends", [[], [20], [2, 30, 47]])
def test_directions_are_orthogonal_and_span_the_columns(ends):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    X = np.c_[X, X[:, 0] + 1e-7 * rng.normal(size=50), X[:, 1], np.zeros(50)]
    turned = X @ directions(*np.split(X, ends))
    assert turned.shape == (50, 4)
    np.testing.assert_allclose(np.abs(turned).max(axis=0), 1.0)
    assert np.linalg.cond(turned / np.linalg.norm(turned, axis=0)) < 1 + 1e-6
    left = X - turned @ np.linalg.lstsq(turned, X, rcond=None)[0]
    assert np.abs(left).max() < 1e-14


def test_independent_columns_are_left_as_they_are():
    assert directions(np.random.default_rng(0).normal(size=(50, 4))) is None


@pytest.mark.parametrize("n_rows", [1, 2, 3, 100, 20_001])
def test_exact_products_have_all_their_digits(n_rows):
    rng = np.random.default_rng(n_rows)
    X, w = rng.normal(size=(2, n_rows, 2)), rng.normal(size=n_rows)
    # What is added is taken away again, but for a part in 1e12.
    X = np.r_[X[0], -X[0], 1e-12 * X[1]]
    w3 = np.r_[w, w, w]
    parts = zip(np.array_split(X, 3), np.array_split(w3, 3), strict=True)
    product = exact_total([exact_parts(*each) for each in parts])
    np.testing.assert_allclose(product, X[2 * n_rows :].T @ w, rtol=1e-12)
