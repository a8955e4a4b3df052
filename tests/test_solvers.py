"""Conformance: every registered solver on every known problem. A missing one fails."""

from __future__ import annotations

import numpy as np
import pytest
from strategies import random_problem

from sensortree import Program, SensorTreeClassifier
from sensortree.exceptions import ParameterError
from sensortree.program import SOLVERS, Penalty, SurrogateProblem, approximate, solve

LINEAR = list(SOLVERS)
RIDGE = [name for name, solver in SOLVERS.items() if solver.ridge]


def shapes():
    """Twenty-four random problems: 2 to 9 leaves, both kinds of savings."""
    for seed in range(24):
        yield pytest.param(
            {
                "seed": seed,
                "n_samples": 20 + 5 * seed,
                "n_leaves": 2 + seed % 8,
                "n_features": 1 + seed % 5,
                "tight": seed % 2 == 1,
            },
            id=f"seed{seed}",
        )


def test_every_registered_solver_is_installed_here():
    assert [name for name, solver in SOLVERS.items() if not solver.installed] == []


@pytest.mark.parametrize("shape", list(shapes()))
def test_all_solvers_and_forms_agree_on_the_optimum(shape):
    problem = random_problem(**shape)
    solutions = {name: solve(problem, name, tol=1e-8) for name in LINEAR}
    optima = {name: s.certificate.upper for name, s in solutions.items()}
    reference = optima["scipy-path"]
    for name, solution in solutions.items():
        assert solution.certificate.gap <= 1e-6, name
        assert solution.certificate.lower <= min(optima.values()) + 1e-9, name
        assert optima[name] == pytest.approx(reference, rel=1e-7, abs=1e-7), name


@pytest.mark.parametrize("l2", [1e-3, 1.0, 30.0])
@pytest.mark.parametrize("seed", range(3))
def test_all_solvers_agree_with_a_ridge_penalty(seed, l2):
    problem = random_problem(seed, n_leaves=4)
    solutions = [solve(problem, name, l2=l2) for name in RIDGE]
    for solution in solutions:
        assert solution.certificate.converged
        assert solution.certificate.reach == np.inf
        assert solution.certificate.upper == pytest.approx(
            solutions[0].certificate.upper, rel=1e-6
        )
        np.testing.assert_allclose(
            np.concatenate(solution.coef), np.concatenate(solutions[0].coef), atol=2e-3
        )


@pytest.mark.parametrize(("l2", "l1"), [(0.0, 0.5), (0.0, 20.0), (0.5, 2.0)])
@pytest.mark.parametrize("seed", range(3))
def test_all_solvers_agree_with_an_l1_penalty(seed, l2, l1):
    problem = random_problem(seed, n_leaves=4)
    names = RIDGE if l2 else LINEAR
    reference = solve(problem, "clarabel", l2=l2, l1=l1).certificate.upper
    for name in names:
        certificate = solve(problem, name, l2=l2, l1=l1).certificate
        assert certificate.converged, name
        assert certificate.upper == pytest.approx(reference, rel=1e-6), name


@pytest.mark.parametrize(("l2", "l1"), [(0.0, 0.0), (0.0, 0.5), (1.0, 0.0), (0.5, 2.0)])
@pytest.mark.parametrize("seed", range(4))
def test_an_approximation_is_within_its_tolerance(seed, l2, l1):
    problem = random_problem(seed, n_leaves=6)
    proof = solve(problem, l2=l2, l1=l1).certificate
    value = problem.value(approximate(problem, 1e-4, l2, l1), Penalty(l2, l1))
    assert value - proof.lower <= 1e-4 * max(proof.unit, value)


def test_a_lone_leaf_has_nothing_to_approximate():
    assert (
        approximate(SurrogateProblem([], [], [], np.empty((3, 0)), np.empty((3, 0))))
        == []
    )


def test_a_large_l1_penalty_leaves_no_coefficient():
    problem = random_problem(1, n_leaves=4)
    solution = solve(problem, l1=1e3)
    np.testing.assert_allclose(np.concatenate(solution.coef), 0, atol=1e-6)


@pytest.mark.parametrize("name", LINEAR)
def test_toy_one_node_one_feature(name):
    # Example 1 (φ = 1) loses 1 by going negative, example 2 (φ = 2) loses 2 by going
    # positive: V = (1 - θ)_+ + 2 (1 + 2θ)_+ is least at θ = -1/2, where it is 3/2.
    problem = SurrogateProblem([-1], [-1], [[[1.0], [2.0]]], [[1], [0]], [[0], [2]])
    solution = solve(problem, name)
    assert solution.certificate.upper == pytest.approx(1.5, abs=1e-7)
    np.testing.assert_allclose(solution.coef, [[-0.5]], atol=1e-6)


@pytest.mark.parametrize("name", LINEAR)
def test_toy_without_features_weighs_the_two_sides(name):
    # Intercept alone, one example: a (1 - m) = b (1 + m) at m = (a - b)/(a + b), where
    # V = 2ab/(a + b).
    problem = SurrogateProblem([-1], [-1], [[[1.0]]], [[3.0]], [[1.0]])
    solution = solve(problem, name)
    assert solution.certificate.upper == pytest.approx(1.5, abs=1e-7)
    np.testing.assert_allclose(solution.coef, [[0.5]], atol=1e-6)


@pytest.mark.parametrize("name", LINEAR)
def test_a_separable_node_costs_nothing(name):
    problem = SurrogateProblem(
        [-1], [-1], [[[1.0, 1.0], [-1.0, 1.0]]], [[1], [0]], [[0], [1]]
    )
    assert solve(problem, name).certificate.upper == pytest.approx(0, abs=1e-7)


@pytest.mark.parametrize("name", LINEAR)
def test_problems_without_any_savings_cost_nothing(name):
    problem = SurrogateProblem(
        [-1], [-1], [np.ones((3, 1))], np.zeros((3, 1)), np.zeros((3, 1))
    )
    solution = solve(problem, name)
    assert solution.certificate.upper == 0
    assert solution.certificate.converged


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_units_of_columns_do_not_matter(name, scale):
    problem = random_problem(5, n_leaves=4)
    features = [f * np.r_[scale, 1, 1, 1] for f in problem.features]
    rescaled = SurrogateProblem(
        problem.negative,
        problem.positive,
        features,
        problem.lost_if_negative,
        problem.lost_if_positive,
    )
    optimum = solve(problem, "scipy-path").certificate.upper
    solution = solve(rescaled, name)
    assert solution.certificate.converged
    assert solution.certificate.upper == pytest.approx(optimum, rel=1e-6)


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize("factor", [1e-3, 1e4])
def test_scaling_all_savings_scales_the_optimum(name, factor):
    problem = random_problem(6, n_leaves=5)
    scaled = SurrogateProblem(
        problem.negative,
        problem.positive,
        problem.features,
        factor * problem.lost_if_negative,
        factor * problem.lost_if_positive,
    )
    optimum = solve(problem, "scipy-path").certificate.upper
    assert solve(scaled, name).certificate.upper == pytest.approx(
        factor * optimum, rel=1e-6
    )


@pytest.mark.parametrize("name", LINEAR)
def test_permuting_samples_changes_no_optimum(name):
    problem = random_problem(7, n_leaves=5)
    order = np.random.default_rng(0).permutation(problem.n_samples)
    permuted = SurrogateProblem(
        problem.negative,
        problem.positive,
        [f[order] for f in problem.features],
        problem.lost_if_negative[order],
        problem.lost_if_positive[order],
    )
    optimum = solve(problem, name).certificate.upper
    assert solve(permuted, name).certificate.upper == pytest.approx(optimum, rel=1e-7)


@pytest.mark.parametrize("name", LINEAR)
def test_swapping_children_negates_the_decisions_and_keeps_the_optimum(name):
    problem = random_problem(8, n_leaves=4)
    swapped = SurrogateProblem(
        problem.positive,
        problem.negative,
        problem.features,
        problem.lost_if_positive,
        problem.lost_if_negative,
    )
    solution = solve(problem, name)
    mirrored = solve(swapped, name)
    assert mirrored.certificate.upper == pytest.approx(
        solution.certificate.upper, rel=1e-7
    )
    negated = [-theta for theta in solution.coef]
    assert swapped.value(negated) == pytest.approx(solution.certificate.upper, rel=1e-9)


def test_a_solver_without_ridge_names_those_that_have_it():
    with pytest.raises(ParameterError, match=r"cannot minimise a ridge.*'clarabel'"):
        solve(random_problem(0), "scipy", l2=1.0)


@pytest.mark.parametrize("savings", ["tight", "published"])
@pytest.mark.parametrize(
    ("data", "n_rows"),
    [
        ("pima", 768),
        ("heart_cleveland", 303),
        pytest.param("letter", 1000, marks=pytest.mark.slow),
        pytest.param("satimage", 600, marks=pytest.mark.slow),
    ],
)
def test_solvers_agree_on_real_problems(real_data, data, n_rows, savings):
    arrays = real_data(data)
    X = np.nan_to_num(arrays["X"].astype(float))[:n_rows]
    sensors = {
        str(name): np.flatnonzero(arrays["sensor_of_feature"] == s)
        for s, name in enumerate(arrays["sensor_names"])
    }
    costs = dict(zip(sensors, arrays["sensor_costs"].tolist(), strict=True))
    optima = {}
    for solver in ("structured", "scipy", "highs", "clarabel"):
        model = SensorTreeClassifier(
            sensors,
            costs=costs,
            cost_weight=0.003,
            program=Program(savings=savings, solver=solver, l2=0.0),
        ).fit(X, arrays["y"][:n_rows])
        assert model.certificate_.converged, solver
        optima[solver] = model.certificate_.upper
    for solver, optimum in optima.items():
        assert optimum == pytest.approx(optima["scipy"], rel=1e-6), solver
