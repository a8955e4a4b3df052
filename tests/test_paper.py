"""Every theorem, corollary, proposition, figure and identity of the paper, as claims.

The paper is cited by its LaTeX labels. Algorithm 1 and the clustering of its subsets are
in `test_structure.py`.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from strategies import random_problem, random_tree, trees_with_data

from sensortree import SensorTreeClassifier, cascade_tree
from sensortree.program import SurrogateProblem, compact_form, path_form, solve
from sensortree.program.risk import (
    hinge,
    leaf_risk,
    max_form,
    max_risk,
    product_form,
    savings,
    savings_lost,
    surrogate_risk,
)


def paths(tree):
    return tree.positive_paths, tree.negative_paths


# fig:tree ------------------------------------------------------------------------------


def test_the_figures_path_matrices_are_the_papers(figure_tree):
    P = [[0, 0, 0], [0, 1, 0], [1, 0, 0], [1, 0, 1]]
    N = [[1, 1, 0], [1, 0, 0], [0, 0, 1], [0, 0, 0]]
    np.testing.assert_array_equal(figure_tree.positive_paths, P)
    np.testing.assert_array_equal(figure_tree.negative_paths, N)
    np.testing.assert_array_equal(figure_tree.path_signs, np.subtract(P, N))


def test_the_figures_leaves_know_what_the_caption_says(figure_tree):
    known = [sorted(leaf.sensors) for leaf in figure_tree.leaves]
    assert known == [["1", "2"], ["1", "2", "3"], ["1", "3"], ["1", "2", "3"]]


def test_the_weights_of_node_1_are_the_savings_of_the_other_side(figure_tree):
    # "(w_n,1)_1 = π_3 + π_4", and C_1^p = {leaf 3, leaf 4}.
    pi = np.array([[1.0, 2.0, 4.0, 8.0]])
    lost_if_negative, lost_if_positive = savings_lost(pi, *paths(figure_tree))
    np.testing.assert_array_equal(lost_if_negative, [[4 + 8, 2, 8]])
    np.testing.assert_array_equal(lost_if_positive, [[1 + 2, 1, 4]])


# eq.point_risk, eq.savings --------------------------------------------------------------


def test_leaf_risk_is_error_plus_weighted_price():
    risk = leaf_risk([[1, 0], [0, 0]], leaf_cost=[2.0, 5.0], cost_weight=0.1)
    np.testing.assert_allclose(risk, [[1.2, 0.5], [0.2, 0.5]])


def test_maximal_risk_is_everything_bought_and_wrong():
    assert max_risk([2.0, 3.0], cost_weight=0.1) == pytest.approx(1.5)


def test_savings_are_correctness_plus_what_was_not_bought():
    # eq.savings: π_k = 1[f_k = y] + α · (cost of the sensors not in S_k)
    costs, alpha = np.array([2.0, 3.0, 5.0]), 0.1
    acquired = np.array([[True, False, False], [True, True, True]])
    correct = np.array([[True, False], [False, True], [True, True]])
    risk = leaf_risk(~correct, acquired @ costs, alpha)
    by_hand = correct + alpha * (~acquired @ costs)
    np.testing.assert_allclose(savings(risk, max_risk(costs, alpha)), by_hand)


# eq.erm_prod_ind: the state variable G_k ------------------------------------------------


@pytest.mark.parametrize("n_leaves", range(1, 8))
def test_each_sign_pattern_reaches_exactly_one_leaf(n_leaves):
    for seed in range(5):
        tree = random_tree(np.random.default_rng(seed), n_leaves)
        signs = np.array(list(product((-1.0, 1.0), repeat=tree.n_nodes)))
        signs = signs.reshape(2**tree.n_nodes, tree.n_nodes)
        leaf = tree.route(signs)
        indicator = np.eye(tree.n_leaves)
        reached = np.array(
            [
                product_form(np.tile(row, (len(signs), 1)), signs, *paths(tree))
                for row in indicator
            ]
        )
        np.testing.assert_array_equal(reached.sum(axis=0), 1)
        np.testing.assert_array_equal(reached.argmax(axis=0), leaf)
        assert set(leaf) == set(range(tree.n_leaves))


def test_zero_decision_takes_the_negative_child(figure_tree):
    assert figure_tree.route(np.zeros((1, 3))).tolist() == [0]


# thm.erm_reform -------------------------------------------------------------------------


def figure_product(R_max, pi, g, leaf_4_node):
    """eq.example_prod; the paper prints g_2 in leaf 4 where the figure has g_3."""
    below, above = g <= 0, g > 0
    return (
        (R_max - pi[0]) * below[0] * below[1]
        + (R_max - pi[1]) * below[0] * above[1]
        + (R_max - pi[2]) * above[0] * below[2]
        + (R_max - pi[3]) * above[0] * above[leaf_4_node]
    )


def figure_max(R_max, pi, g, third_term_node):
    """eq.example_max; the paper prints g_2 in the third term where P, N have g_3."""
    below, above = g <= 0, g > 0
    return (
        R_max
        - sum(pi)
        + max(
            (pi[2] + pi[3]) * below[0] + pi[1] * below[1],
            (pi[2] + pi[3]) * below[0] + pi[0] * above[1],
            (pi[0] + pi[1]) * above[0] + pi[3] * below[third_term_node],
            (pi[0] + pi[1]) * above[0] + pi[2] * above[2],
        )
    )


def test_theorem_the_product_equals_the_maximum_once_g3_stands_for_the_misprint(
    figure_tree,
):
    rng = np.random.default_rng(0)
    for signs in product((-1.0, 1.0), repeat=3):
        for _ in range(50):
            pi, g = rng.random(4), np.array(signs) * rng.random(3)
            R_max = pi.max() + rng.random()
            by_product = figure_product(R_max, pi, g, leaf_4_node=2)
            assert figure_max(R_max, pi, g, third_term_node=2) == pytest.approx(
                by_product
            )
            ours = product_form(R_max - pi[None], g[None], *paths(figure_tree))
            assert ours[0] == pytest.approx(by_product)
            ours = max_form(pi[None], R_max, g[None], *paths(figure_tree))
            assert ours[0] == pytest.approx(by_product)


def test_the_misprint_matters():
    # As printed (g_2 in both places) the two sides differ: g_1 > 0, g_2 > 0, g_3 <= 0.
    pi, g = np.array([0.1, 0.2, 0.3, 0.4]), np.array([1.0, 1.0, -1.0])
    printed = figure_product(1.0, pi, g, leaf_4_node=1)
    assert figure_max(1.0, pi, g, third_term_node=1) != pytest.approx(printed)


def test_three_of_the_four_maxima_in_the_proof_are_one():
    # eq.proofstep: "there will always be 3 maximization terms equal to 1 and 1 equal to 0"
    for g in product((-1, 1), repeat=3):
        above, below = [v > 0 for v in g], [v <= 0 for v in g]
        terms = [
            max(above[0], above[1]),
            max(above[0], below[1]),
            max(below[0], above[2]),
            max(below[0], below[2]),
        ]
        assert sorted(terms) == [False, True, True, True]


# cor:tree_emp_risk ----------------------------------------------------------------------


@given(trees_with_data())
def test_corollary_product_form_equals_max_form_on_any_tree(case):
    tree, pi, g = case
    R_max = pi.max() + 0.5
    by_product = product_form(R_max - pi, g, *paths(tree))
    np.testing.assert_allclose(
        max_form(pi, R_max, g, *paths(tree)), by_product, atol=1e-12
    )
    routed = np.take_along_axis(R_max - pi, tree.route(g)[:, None], axis=1)[:, 0]
    np.testing.assert_allclose(by_product, routed)


@given(trees_with_data())
def test_the_reformulation_holds_for_any_maximal_risk_per_example(case):
    # What tight savings rest on: the identity never uses that R_max is one number.
    tree, pi, g = case
    leaf_risks = 2.0 - pi
    worst = leaf_risks.max(axis=1)
    kept = savings(leaf_risks, worst)
    by_product = product_form(leaf_risks, g, *paths(tree))
    np.testing.assert_allclose(
        max_form(kept, worst, g, *paths(tree)), by_product, atol=1e-12
    )


# the convex surrogate -------------------------------------------------------------------


def test_the_hinge_bounds_both_indicators():
    z = np.linspace(-5, 5, 101)
    assert np.all(hinge(z) >= (z > 0))
    assert np.all(hinge(-z) >= (z <= 0))


def test_the_printed_hinge_does_not_bound_the_indicator():
    # prop.lp_tree prints φ(z) = max(1 - z, 0): too small from z = 0 on, where ours is not.
    z = np.linspace(0.1, 5, 50)
    printed = np.maximum(1 - z, 0)
    assert np.all(printed < (z > 0))
    assert np.all(hinge(z) > printed)


@given(trees_with_data())
def test_the_surrogate_is_at_least_the_risk(case):
    tree, pi, g = case
    R_max = pi.max() + 0.5
    surrogate = surrogate_risk(pi, R_max, g, *paths(tree))
    assert np.all(surrogate >= max_form(pi, R_max, g, *paths(tree)) - 1e-12)


@given(trees_with_data())
def test_the_surrogate_is_convex_in_the_decisions(case):
    tree, pi, g = case
    h = g[::-1]

    def value(decisions):
        return surrogate_risk(pi, 3.0, decisions, *paths(tree))

    assert np.all(value((g + h) / 2) <= (value(g) + value(h)) / 2 + 1e-12)


@given(trees_with_data())
def test_the_recursion_equals_the_maximum_over_paths(case):
    tree, pi, g = case
    features = [np.ones((len(g), 1))] * tree.n_nodes
    lost = savings_lost(pi, *paths(tree))
    problem = SurrogateProblem(tree.negative, tree.positive, features, *lost)
    constant = 3.0 - pi.sum(axis=1)
    if tree.n_nodes:
        by_recursion = constant + problem.values(g)
        by_paths = surrogate_risk(pi, 3.0, g, *paths(tree))
        np.testing.assert_allclose(by_recursion, by_paths, atol=1e-12)


@given(trees_with_data())
def test_swapping_children_and_negating_decisions_changes_no_surrogate(case):
    tree, pi, g = case
    P, N = paths(tree)
    swapped = surrogate_risk(pi, 3.0, -g, N, P)
    np.testing.assert_allclose(swapped, surrogate_risk(pi, 3.0, g, P, N), atol=1e-12)


# prop.lp_tree ---------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_the_linear_program_has_the_papers_size_and_rows(seed):
    problem = random_problem(seed, n_samples=7, n_leaves=4, n_features=3)
    n, K, D = 7, 4, 3
    program = path_form(problem)
    # K rows for γ and 2 (K-1) for the hinges, per example; α, β >= 0 are bounds.
    assert program.matrix.shape[0] == n * (K + 2 * (K - 1))
    assert program.matrix.shape[1] == (K - 1) * D + n + 2 * n * (K - 1)


@pytest.mark.parametrize("seed", range(5))
def test_any_decisions_are_feasible_with_their_surrogate_as_objective(seed):
    problem = random_problem(seed, n_samples=9, n_leaves=5)
    rng = np.random.default_rng(seed)
    coef = [rng.normal(size=d) for d in problem.n_features]
    g = problem.margins(coef)
    gamma = problem.values(g)
    flat = np.concatenate(coef)
    x = np.r_[flat, gamma, hinge(g).T.ravel(), hinge(-g).T.ravel()]
    program = path_form(problem)
    assert np.all(program.matrix @ x >= program.bound - 1e-9)
    assert program.cost @ x == pytest.approx(problem.value(coef))
    # γ is as small as its rows allow: some leaf's row is tight for each example.
    slack = (program.matrix @ x - program.bound)[: 9 * 5].reshape(5, 9)
    np.testing.assert_allclose(slack.min(axis=0), 0, atol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_the_compact_form_has_the_same_optimum_in_fewer_rows(seed):
    problem = random_problem(seed, n_leaves=6)
    assert compact_form(problem).matrix.nnz < path_form(problem).matrix.nnz
    optimum = solve(problem, "scipy-path").certificate.upper
    assert solve(problem, "scipy").certificate.upper == pytest.approx(optimum, rel=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_no_random_coefficients_beat_the_linear_program(seed):
    problem = random_problem(seed)
    optimum = solve(problem).certificate.upper
    rng = np.random.default_rng(seed)
    for _ in range(200):
        coef = [rng.normal(size=d) * rng.exponential() for d in problem.n_features]
        assert problem.value(coef) >= optimum - 1e-9


def test_the_fitted_surrogate_bounds_the_training_risk(two_sensors):
    X, y, sensors, costs = two_sensors
    model = SensorTreeClassifier.as_published(
        sensors, costs=costs, cost_weight=0.02, structure="exhaustive"
    ).fit(X, y)
    risk = np.mean((model.predict(X) != y) + 0.02 * model.acquisition_cost(X))
    R_max = 1 + 0.02 * 10
    columns = {1: [0, 1], 2: [0, 1, 2, 3]}  # of the leaf with one sensor, with both
    leaf_error = np.column_stack(
        [
            model.policy_.classifiers[leaf.sensors].predict(
                X[:, columns[len(leaf.sensors)]]
            )
            != (y == "yes")
            for leaf in model.tree_.leaves
        ]
    )
    pi = R_max - leaf_risk(leaf_error, [1.0, 10.0], 0.02)
    surrogate = (np.sum(R_max - pi.sum(axis=1)) + model.certificate_.upper) / len(y)
    assert surrogate >= risk
    # and without any decision (g = 0) the surrogate is no better
    at_zero = np.mean(
        surrogate_risk(pi, R_max, np.zeros((len(y), 1)), *paths(model.tree_))
    )
    assert surrogate <= at_zero + 1e-9


# repeatability --------------------------------------------------------------------------


def test_learning_is_repeatable(two_sensors):
    X, y, sensors, costs = two_sensors
    first, second = (
        SensorTreeClassifier(sensors, costs=costs).fit(X, y).policy_.decisions[0].coef
        for _ in range(2)
    )
    np.testing.assert_array_equal(first, second)


def test_a_cascade_is_a_special_tree():
    tree = cascade_tree(["a", "b", "c"])
    assert [len(leaf.sensors) for leaf in tree.leaves] == [1, 2, 3]
    np.testing.assert_array_equal(tree.path_signs, [[-1, 0], [1, -1], [1, 1]])


def unrestricted_leaf(tree, pi):
    """Leaf of each example when a decision may be any function: one feature per example."""
    lost = savings_lost(pi, *paths(tree))
    features = [np.eye(len(pi))] * tree.n_nodes
    problem = SurrogateProblem(tree.negative, tree.positive, features, *lost)
    return tree.route(problem.margins(solve(problem).coef))


def test_with_two_leaves_unrestricted_decisions_find_the_best_leaf():
    pi = np.random.default_rng(3).random((30, 2))
    leaf = unrestricted_leaf(cascade_tree(["a", "b"]), pi)
    np.testing.assert_array_equal(leaf, pi.argmax(axis=1))


def test_with_three_leaves_they_need_not():
    # A side with savings p, q counts as (p² + q²)/(p + q), which is less than max(p, q):
    # here 0.833 < 0.9 < 1. Global optimality is of the bound, not of the risk.
    pi = np.array([[0.9, 1.0, 0.5]])
    assert unrestricted_leaf(cascade_tree(["a", "b", "c"]), pi).tolist() == [0]
    pi = np.array([[0.8, 1.0, 0.5]])
    assert unrestricted_leaf(cascade_tree(["a", "b", "c"]), pi).tolist() == [1]
