"""Claims about trees of linear classifiers: ASTC, CSTC, and what they share."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LinearRegression

from sensortree import ASTCClassifier, CSTCClassifier, Sensor
from sensortree.baselines.astc import IncrementalRegression, add_sensors
from sensortree.baselines.cstc import (
    HardTree,
    SoftTree,
    SoftTreeProblem,
    descend,
    fit_last_level,
    inner_node,
    prune_nodes,
    split_rows,
    start,
)
from sensortree.baselines.linear_tree import LinearData, linear_data
from sensortree.estimators.validation import read_rows
from sensortree.exceptions import SensorError

# ASTC -------------------------------------------------------------------------------------


def linear(X, y, sensors=None, costs=None, weight=None) -> LinearData:
    model = ASTCClassifier(sensors, costs=costs)
    return linear_data(read_rows(model, model._settings(), X, y, weight, None), None)


def explained(data: LinearData, columns, weight) -> float:
    """Share of the variance that least squares on some columns explains."""
    if not len(columns):
        return 0.0
    fit = LinearRegression().fit(data.X[:, columns], data.target, weight)
    left = data.target - fit.predict(data.X[:, columns]).reshape(data.target.shape)
    mean = np.average(data.target, axis=0, weights=weight)
    total = (weight[:, None] * (data.target - mean) ** 2).sum()
    return 1 - (weight[:, None] * left**2).sum() / total


@pytest.mark.parametrize("load", [load_iris, load_breast_cancer])
def test_gains_of_the_incremental_regression_are_those_of_least_squares(load):
    X, y = load(return_X_y=True)
    data = linear(X[:, :9], y)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(data.y))
    regression = IncrementalRegression(data.X, data.target, weight)
    known = [2, 0]
    regression.add(known)
    groups = [np.array([1]), np.array([3]), np.array([1, 3]), np.array([0])]
    present = explained(data, known, weight)
    gains = [explained(data, [*known, *g], weight) - present for g in groups]
    np.testing.assert_allclose(regression.gains(groups), gains, atol=1e-9)


def test_sensors_are_added_by_variance_explained_per_unit_of_cost():
    X, y = load_breast_cancer(return_X_y=True)
    sensors = {"a": [0, 1], "b": [2], "c": [3, 4, 5], "d": [6], "e": [7, 8]}
    costs = {"a": 1.0, "b": 2.0, "c": 2.0, "d": 3.0, "e": 1.5}
    data = linear(X[:, :9], y, sensors, costs)
    rows, weight = np.arange(len(data.y)), data.weight
    known, left = frozenset(), 5.0
    while True:  # the same by brute force
        present = explained(data, data.columns_of(known), weight)
        rates = {
            name: (explained(data, data.columns_of(known | {name}), weight) - present)
            / costs[name]
            for name in sensors
            if name not in known and costs[name] <= left
        }
        if not rates:
            break
        best = max(rates, key=rates.__getitem__)
        known, left = known | {best}, left - costs[best]
    assert add_sensors(data, rows, weight, frozenset(), 5.0) == known


def test_a_sensor_that_others_explain_is_not_bought():
    X, y = load_breast_cancer(return_X_y=True)
    twice = np.c_[X[:, :3], X[:, :3] @ [[1.0, 2.0], [1.0, 0.0], [-3.0, 0.0]]]
    model = ASTCClassifier(budget=9, depth=2).fit(twice, y)
    assert model.acquisition_cost(twice).max() == 3


def test_half_of_the_examples_of_a_node_go_to_each_child():
    X, y = load_breast_cancer(return_X_y=True)
    model = ASTCClassifier(budget=2).fit(X, y)
    counts = np.bincount(model.apply(X))
    assert model.tree_.n_leaves == 4
    assert np.ptp(counts) <= 2


@pytest.mark.parametrize("budget", [1.0, 2.0, 4.0])
def test_every_node_of_astc_keeps_its_budget(budget):
    X, y = load_breast_cancer(return_X_y=True)
    model = ASTCClassifier(budget=budget).fit(X, y)
    for node in model.tree_.nodes:
        for child in (node.negative, node.positive):
            assert len(child.sensors - node.sensors) <= budget
    assert len(model.tree_.root.sensors) <= budget
    assert model.acquisition_cost(X).max() <= 3 * budget


@pytest.mark.parametrize("load", [load_iris, load_breast_cancer])
@pytest.mark.parametrize("method", [ASTCClassifier, CSTCClassifier])
def test_one_level_without_a_price_is_least_squares(method, load):
    X, y = load(return_X_y=True)
    data, rows = linear(X, y), slice(None)
    if method is ASTCClassifier:
        model = ASTCClassifier(budget=30, depth=1)
    else:
        model = CSTCClassifier(cost_weight=0, l1=0, depth=1)
        rows = split_rows(data, model.n_folds)[0]  # the others are held out
    given = data.readings[rows], data.target[rows], data.weight[rows]
    plain = LinearRegression().fit(*given)
    scores = plain.predict(X)
    said = scores.argmax(axis=1) if scores.shape[1] > 1 else scores[:, 0] > 0
    np.testing.assert_array_equal(model.fit(X, y).predict(X), said)


def follow(vertex, x):
    """Scores of the leaf that a standardised row comes to, by the published rule."""
    while vertex.direction is not None:
        up = x @ vertex.direction > vertex.threshold
        vertex = vertex.positive if up else vertex.negative
    return x @ vertex.coef + vertex.intercept


@pytest.mark.parametrize("load", [load_iris, load_breast_cancer])
@pytest.mark.parametrize(
    "method", [ASTCClassifier(), CSTCClassifier(cost_weight=0.005, steepness=5)]
)
def test_the_policy_answers_as_the_tree_of_regressions_does(method, load):
    X, y = load(return_X_y=True)
    model = method.fit(X[::2], y[::2])
    data = linear(X[::2], y[::2])
    root, _ = method._grow(data)
    scores = np.array([follow(root, x) for x in (X - data.center) / data.scale])
    said = scores.argmax(axis=1) if scores.shape[1] > 1 else scores[:, 0] > 0
    np.testing.assert_array_equal(model.predict(X), said)


def test_the_leaves_of_a_linear_tree_that_know_the_same_may_answer_differently():
    X = np.random.default_rng(0).normal(size=(300, 1))
    y = np.abs(X[:, 0] - np.median(X)) > 0.7  # no line says this, two lines do
    model = ASTCClassifier(depth=2).fit(X, y)
    assert [leaf.sensors for leaf in model.tree_.leaves] == [{"x0"}, {"x0"}]
    assert model.score(X, y) > 0.9


# CSTC -------------------------------------------------------------------------------------


def soft_problem(n_classes=2, depth=3, steepness=1.0, n=60) -> SoftTreeProblem:
    rng = np.random.default_rng(3)
    X = np.c_[rng.normal(size=(n, 5)), np.ones(n)]
    y = rng.integers(n_classes, size=n)
    target = np.eye(n_classes)[y] if n_classes > 2 else 2.0 * y[:, None] - 1
    weight = rng.uniform(0.5, 2.0, n)
    owner, costs = np.array([0, 0, 1, 2, 2]), np.array([1.0, 3.0, 0.5])
    return SoftTreeProblem(
        X, target, weight / weight.sum(), owner, costs, depth, 0.07, 0.02, steepness
    )


def random_tree(problem: SoftTreeProblem) -> SoftTree:
    rng = np.random.default_rng(4)
    n_outputs = problem.target.shape[1]
    return SoftTree(
        rng.normal(size=(problem.n_nodes, 6, n_outputs)),
        rng.normal(size=problem.n_inner),
        rng.normal(size=(problem.n_inner, n_outputs)),
    )


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("steepness", [1.0, 3.0])
@pytest.mark.parametrize("k", [0, 1, 2])
def test_the_gradient_of_an_inner_node_is_that_of_finite_differences(
    n_classes, steepness, k
):
    problem = soft_problem(n_classes, steepness=steepness)
    tree = random_tree(problem)
    share = problem.reach(tree)[k] * problem.weight
    node = inner_node(problem, tree, k, share, problem.path_norms(tree))
    shape = tree.coef[k].shape

    def value(z):
        return node.value(z[:-1].reshape(shape), z[-1])[0]

    # Away from where the roots were replaced, and there.
    for point in (random_tree(soft_problem(n_classes)).coef[5], tree.coef[k]):
        z = np.append(point, 0.3)
        _, by_coef, by_threshold = node.value(point, 0.3)
        numeric = approx_fprime(z, value, 1e-7)
        np.testing.assert_allclose(
            np.append(by_coef, by_threshold), numeric, atol=2e-6, rtol=1e-5
        )


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("k", [0, 1, 2])
def test_it_is_the_gradient_of_the_objective_too(n_classes, k):
    # (g/z + z)/2 touches the root where z is best.
    problem = soft_problem(n_classes, steepness=2.0)
    tree = random_tree(problem)
    share = problem.reach(tree)[k] * problem.weight
    node = inner_node(problem, tree, k, share, problem.path_norms(tree))
    _, by_coef, by_threshold = node.value(tree.coef[k], tree.threshold[k])

    def objective(z):
        moved = tree.with_node(k, z[:-1].reshape(tree.coef[k].shape), z[-1])
        return problem.objective(moved)

    numeric = approx_fprime(np.append(tree.coef[k], tree.threshold[k]), objective, 1e-7)
    np.testing.assert_allclose(np.append(by_coef, by_threshold), numeric, atol=3e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_closed_form_at_the_last_level_ends_where_the_objective_is_least(n_classes):
    problem = soft_problem(n_classes)
    tree, k = random_tree(problem), 5
    for _ in range(400):
        share = problem.reach(tree)[k] * problem.weight
        norms = problem.path_norms(tree)[k]
        coef = fit_last_level(problem, tree, k, share, norms)
        tree = tree.with_node(k, coef, None)

    def objective(z):
        return problem.objective(tree.with_node(k, z.reshape(tree.coef[k].shape), None))

    numeric = approx_fprime(tree.coef[k].ravel(), objective, 1e-7)
    moves = np.abs(tree.coef[k].ravel()) > 1e-4  # others are at the corner at 0
    assert moves.sum() > 3
    np.testing.assert_allclose(numeric[moves], 0, atol=1e-5)


def test_the_probabilities_of_a_level_sum_to_one():
    problem = soft_problem()
    p = problem.reach(random_tree(problem))
    np.testing.assert_allclose(p[3:].sum(axis=0), 1)
    np.testing.assert_allclose(p[1] + p[2], 1)


def test_a_sensor_is_paid_once_on_a_path_by_the_mixed_norm():
    # Twice the same coefficients on a path cost √2 as much, not twice.
    problem = soft_problem(depth=2)
    tree = random_tree(problem)
    twice = tree.with_node(1, tree.coef[0], None)
    norms = problem.path_norms(twice)
    np.testing.assert_allclose(norms[1], np.sqrt(2) * norms[0])
    own = np.sqrt((tree.coef[0, :2] ** 2).sum())  # the first sensor has two columns
    assert norms[0, 0] == pytest.approx(own)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_objective_never_rises(n_classes):
    problem = soft_problem(n_classes, n=200)
    _, objectives = descend(problem, start(problem), 1e-7, 40)
    assert len(objectives) > 5
    assert np.diff(objectives).max() < 1e-6


def test_half_of_the_examples_go_up_at_the_start():
    problem = soft_problem(n=200)
    tree = start(problem)
    for k in range(problem.n_inner):
        share = problem.reach(tree)[k] * problem.weight
        up = problem.up(tree, k) > 0.5
        assert share @ up == pytest.approx(share.sum() / 2, rel=0.03)


def test_pruning_keeps_the_answers_to_held_out_rows():
    X, y = load_breast_cancer(return_X_y=True)
    data = linear(X, y)
    rng = np.random.default_rng(0)
    coef = rng.normal(size=(7, 31, 1))
    coef[5] = coef[2]  # a child that adds nothing
    tree = SoftTree(coef, rng.normal(size=3), np.ones((3, 1)))
    hard, held_out = HardTree(data, tree), np.arange(0, len(y), 3)
    everyone = set(range(7))
    alive = prune_nodes(hard, held_out)
    assert 5 not in alive
    assert hard.accuracy(alive, held_out) >= hard.accuracy(everyone, held_out)
    for k in alive - {0}:
        assert (k - 1) // 2 in alive


def test_a_larger_cost_weight_buys_less():
    X, y = load_breast_cancer(return_X_y=True)
    model = CSTCClassifier()
    path = model.fit_path(X, y, [0.001, 0.01, 0.1, 1.0, 10.0])
    cost = [fitted.acquisition_cost(X).mean() for fitted in path]
    assert np.all(np.diff(cost) <= 0)
    assert cost[0] > 2
    assert cost[-1] == 0


def test_several_classes_are_an_extension_that_works():
    X, y = load_iris(return_X_y=True)
    sensors = {"sepal": [0, 1], "petal": [2, 3]}
    for model in (ASTCClassifier(sensors), CSTCClassifier(sensors, steepness=10)):
        model.fit(X, y)
        assert model.tree_.n_leaves > 1
        assert model.score(X, y) > 0.9
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_prerequisites_are_bought_along():
    X, y = load_breast_cancer(return_X_y=True)
    sensors = {
        "visit": Sensor(list(range(10)), 1.0),
        "scan": Sensor(list(range(10, 30)), 2.0, after=["visit"]),
    }
    for model in (ASTCClassifier(budget=3), CSTCClassifier(cost_weight=0.01)):
        bought = model.set_params(sensors=sensors).fit(X, y).acquired(X)
        assert bought[:, 1].any()
        assert bought[bought[:, 1], 0].all()


def test_cstc_refuses_alternatives_it_cannot_choose_between():
    X, y = load_iris(return_X_y=True)
    sensors = {
        "quick": Sensor([0, 1], 1.0, one_of="scan"),
        "good": Sensor([2, 3], 2.0, one_of="scan"),
    }
    with pytest.raises(SensorError, match="cannot choose between"):
        CSTCClassifier(sensors).fit(X, y)
    bought = ASTCClassifier(sensors, budget=3).fit(X, y).acquired(X)
    assert (bought.sum(axis=1) <= 1).all()
