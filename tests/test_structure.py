"""Claims about learned structures: Algorithm 1 literally, chains, grown trees, pruning."""

from __future__ import annotations

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from sensortree import (
    AlternatingTreeClassifier,
    Leaf,
    Node,
    Program,
    Sensor,
    SensorTree,
    SensorTreeClassifier,
    cascade_tree,
)
from sensortree.exceptions import TreeError
from sensortree.structure import cluster_subsets, greedy_subsets
from sensortree.structure.algorithm1 import Search, forward_chain
from sensortree.structure.losses import LeastSquaresScreen
from sensortree.structure.trees import prune


def table_search(errors: dict[tuple[int, ...], list[float]], costs, cost_weight):
    """A search over errors written down by hand; unlisted subsets are always wrong."""
    n_samples = len(next(iter(errors.values())))
    named = {frozenset(subset): row for subset, row in errors.items()}

    def exact(subsets):
        rows = [
            np.array(named.get(s, [1.0] * n_samples))
            + cost_weight * sum(costs[j] for j in s)
            for s in subsets
        ]
        return np.column_stack(rows)

    def screen(subsets):
        raise AssertionError("the literal algorithm screens nothing")

    return Search(len(costs), exact, screen, None, np.ones(n_samples))


# Algorithm 1 ------------------------------------------------------------------------------


def test_algorithm_1_on_a_problem_solved_by_hand():
    # Sensor 0 is right on examples 0 and 1, sensor 1 on 2 and 3, both together on 0 to 2.
    # The first subset takes sensor 0: loss (0 + 0 + 1 + 1)/4 + .1 = .6 with min over the
    # empty subset (risk 1): (.1 + .1 + 1 + 1)/4 = .55. Adding 1 to it would give .2 on
    # three and 1 on one: .4, so it grows on. The second starts anew: sensor 1 lowers
    # example 3 from 1 to .1 and example 2 from .2 to .1.
    errors = {
        (): [1, 1, 1, 1],
        (0,): [0, 0, 1, 1],
        (1,): [1, 1, 0, 0],
        (0, 1): [0, 0, 0, 1],
    }
    subsets, steps = greedy_subsets(table_search(errors, [1, 1], 0.1), 2)
    assert subsets == [{0, 1}, {1}]
    losses = [step.loss for step in steps]
    assert losses == pytest.approx([0.55, 0.4, (0.2 + 0.2 + 0.1 + 0.1) / 4])
    assert [step.added for step in steps] == [0, 1, 1]


def test_ties_go_to_the_lowest_sensor_and_no_gain_stops_the_search():
    errors = {(): [1, 1], (0,): [0, 1], (1,): [0, 1], (0, 1): [0, 1]}
    subsets, _ = greedy_subsets(table_search(errors, [1, 1], 0.1), 3)
    assert subsets == [{0}, frozenset(), frozenset()]


def test_free_sensors_are_taken_only_if_the_loss_falls():
    errors = {(): [1, 0], (0,): [1, 0], (1,): [0, 0], (0, 1): [0, 0]}
    subsets, _ = greedy_subsets(table_search(errors, [0, 0], 0.1), 2)
    assert subsets == [{1}, frozenset()]


def test_one_sensor_and_a_price_beyond_its_worth():
    errors = {(): [1, 0], (0,): [0, 0]}
    assert greedy_subsets(table_search(errors, [1], 0.4), 2)[0] == [{0}, frozenset()]
    # at a price of 1 nothing is bought: risk 1 either way for the first example
    assert greedy_subsets(table_search(errors, [1], 1.0), 2)[0] == [frozenset()] * 2


def test_subsets_may_start_from_root_sensors():
    errors = {(0,): [1, 1], (0, 1): [0, 1], (0, 2): [1, 0], (0, 1, 2): [0, 0]}
    subsets, _ = greedy_subsets(table_search(errors, [1, 1, 1], 0.1), 2, frozenset({0}))
    assert all(0 in subset for subset in subsets)


# clustering -------------------------------------------------------------------------------


def test_nested_subsets_give_back_their_cascade():
    order = ["c", "a", "d", "b"]
    stages = [order[: k + 1] for k in range(4)]
    assert cluster_subsets(stages) == cascade_tree(order)


def test_the_two_with_most_in_common_are_grouped_first():
    tree = cluster_subsets([["a", "b", "c"], ["d"], ["a", "b", "e"]])
    pair = Node({"a", "b"}, Leaf({"a", "b", "c"}), Leaf({"a", "b", "e"}))
    assert tree == SensorTree(Node(set(), pair, Leaf({"d"})))


def test_duplicates_are_one_leaf_and_nothing_is_an_error():
    assert cluster_subsets([["a"], ["a"]]) == SensorTree(Leaf({"a"}))
    with pytest.raises(TreeError, match="no subsets"):
        cluster_subsets([])


# chains -----------------------------------------------------------------------------------


def test_a_chain_takes_what_saves_most_error_per_unit_of_cost():
    # Sensor 0 saves .75 for 3, sensor 1 saves .5 for 1: sensor 1 first.
    errors = {
        (): [1, 1, 1, 1],
        (0,): [0, 0, 0, 1],
        (1,): [0, 0, 1, 1],
        (0, 1): [0, 0, 0, 0],
    }
    steps = forward_chain(
        table_search(errors, [3, 1], 0.0),
        lambda more, known: sum([3, 1][j] for j in more - known),
        5,
        frozenset(),
    )
    assert [step.added for step in steps] == [1, 0]
    assert [step.loss for step in steps] == pytest.approx([0.5, 0.0])


def test_a_chain_ends_where_nothing_is_saved():
    errors = {(): [1, 1], (0,): [0, 1], (0, 1): [0, 1], (1,): [1, 1]}
    steps = forward_chain(
        table_search(errors, [1, 1], 0.0),
        lambda more, known: len(more - known),
        5,
        frozenset(),
    )
    assert [step.added for step in steps] == [0]


def test_a_chain_goes_on_in_blocks_that_save_error_together():
    # After sensor 0 no single sensor saves anything, nor do 1 and 2; the best four, all
    # that are left, are right on every example.
    n, errors = 100, {(): [1.0] * 100, (0,): [0.0] * 50 + [1.0] * 50}
    for j in range(1, 5):
        errors[0, j] = errors[0,]
    for pair in ((1, 2), (1, 3), (1, 2, 3)):
        errors[(0, *pair)] = errors[0,]
    errors[0, 1, 2, 3, 4] = [0.0] * n
    search = table_search(errors, [1] * 5, 0.0)

    def price(more, known):
        return len(more - known)

    steps = forward_chain(search, price, 9, frozenset())
    assert [step.subset for step in steps] == [{0}, {0, 1, 2, 3, 4}]
    assert [step.loss for step in steps] == pytest.approx([0.5, 0.0])
    assert len(forward_chain(search, price, 1, frozenset())) == 1


# growth -----------------------------------------------------------------------------------


@pytest.mark.parametrize("n_sensors", [6, 70])  # with products of readings, and without
def test_screening_extensions_together_is_screening_each(n_sensors):
    rng = np.random.default_rng(0)
    blocks = [rng.normal(size=(90, 1 + j % 2)) for j in range(n_sensors)]
    y, fold = rng.integers(0, 3, 90), np.arange(90) % 4 - 1
    screen = LeastSquaresScreen(
        blocks, np.eye(int(y.max()) + 1)[y], rng.random(90), fold
    )
    known = frozenset({0, 3})
    extended = [known, *(known | {j} for j in (1, 2, 4, 5)), known | {4, 5}]
    together = dict(screen.scores_with(known, extended))
    assert sorted(together) == list(range(len(extended)))
    for k, subset in enumerate(extended):
        np.testing.assert_allclose(together[k], screen.scores(subset), atol=1e-5)


# the screen -------------------------------------------------------------------------------


def test_the_screen_is_cross_fitted_least_squares():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.integers(0, 2, 60)
    weight, fold = rng.random(60) + 0.5, np.arange(60) % 3
    screen = LeastSquaresScreen([X[:, :1], X[:, 1:]], np.eye(2)[y], weight, fold)
    scores = screen.scores([0])
    center = np.average(X[:, 0], weights=weight)
    x = (X[:, 0] - center) / np.sqrt(
        np.average((X[:, 0] - center) ** 2, weights=weight)
    )
    phi = np.column_stack([np.ones(60), x, x * x])
    for held_out in range(3):
        train = fold != held_out
        weighted = phi[train] * weight[train, None]
        system = weighted.T @ phi[train] + 1e-3 * weight.sum() * np.eye(3)
        coef = np.linalg.solve(system, weighted.T @ np.eye(2)[y[train]])
        np.testing.assert_allclose(scores[~train], phi[~train] @ coef, atol=1e-8)


def test_the_screened_search_ends_at_nearly_the_literal_loss():
    X, y = load_breast_cancer(return_X_y=True)
    X = X[:, :8]
    losses = []
    for n_exact in (3, "all"):
        model = SensorTreeClassifier(
            structure="greedy", n_leaves=4, n_exact=n_exact, cost_weight=0.01
        ).fit(X, y)
        losses.append(model.structure_report_.steps[-1]["loss"])
    assert losses[0] <= 1.1 * losses[1]


# pruning ----------------------------------------------------------------------------------


def test_pruning_keeps_the_leaves_that_are_reached():
    tree = cascade_tree(["a", "b", "c", "d"])
    pruned, nodes = prune(tree, np.array([5, 0, 2, 1]))
    assert pruned == SensorTree(
        Node(
            {"a"},
            Leaf({"a"}),
            Node({"a", "b", "c"}, Leaf({"a", "b", "c"}), Leaf({"a", "b", "c", "d"})),
        )
    )
    assert nodes.tolist() == [0, 2]
    alone, nodes = prune(tree, np.array([0, 0, 7, 0]))
    assert alone == SensorTree(Leaf({"a", "b", "c"}))
    assert nodes.tolist() == []


def test_pruning_keeps_parents_before_children():
    leaf = [Leaf({"a"}), Leaf({"a", "b"}), Leaf({"a", "c"}), Leaf({"a", "d"})]
    tree = SensorTree(
        Node({"a"}, Node({"a"}, leaf[0], leaf[1]), Node({"a"}, leaf[2], leaf[3]))
    )
    assert prune(tree, np.ones(4, dtype=int))[1].tolist() == [0, 1, 2]


def test_no_leaf_of_a_learned_tree_is_empty_on_its_training_rows():
    X, y = load_breast_cancer(return_X_y=True)
    for structure in ("chain", "branched", "greedy", "auto"):
        model = SensorTreeClassifier(
            structure=structure, cost_weight=0.005, cv=None, n_leaves=6
        ).fit(X[:, :7], y)
        visits = np.bincount(model.apply(X[:, :7]), minlength=model.tree_.n_leaves)
        assert visits.all(), structure
        report = model.structure_report_
        assert model.tree_.n_leaves == len(report.subsets) - report.pruned


# in the estimator -------------------------------------------------------------------------


def informative(n_sensors: int, n_rows: int, n_informative: int):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, n_sensors))
    where = rng.permutation(n_sensors)[:n_informative]
    return X, X[:, where].sum(axis=1) > 0, {f"x{j}" for j in where}


@pytest.mark.parametrize("structure", ["chain", "branched"])
def test_informative_sensors_are_found_among_many(structure):
    X, y, expected = informative(60, 600, 3)
    model = SensorTreeClassifier(
        structure=structure, cost_weight=0.01, classifier=LogisticRegression()
    ).fit(X, y)
    bought = {s for leaf in model.tree_.leaves for s in leaf.sensors}
    assert bought
    assert bought <= expected
    assert model.score(X, y) > 0.8


@pytest.mark.slow
def test_of_a_thousand_sensors_only_informative_ones_are_bought():
    X, y, expected = informative(1000, 5000, 20)
    model = SensorTreeClassifier(
        structure="auto", cost_weight=0.002, classifier=LogisticRegression()
    ).fit(X, y)
    bought = {s for leaf in model.tree_.leaves for s in leaf.sensors}
    assert len(bought) > 10
    assert bought <= expected


def test_the_default_learns_a_structure_and_says_what_it_compared():
    X, y = load_breast_cancer(return_X_y=True)
    model = SensorTreeClassifier(cost_weight=0.005).fit(X[:, :8], y)
    compared, report = model.comparison_, model.structure_report_
    tried = {name.partition(", ")[0] for name in compared.risk}
    assert {"chain", "branched", "cascade", "nothing"} <= tried
    assert compared.chosen.partition(", ")[0] == report.structure
    assert f"structure {report.structure!r}" in str(report)
    assert f"chose {compared.chosen}; risk" in str(compared)


def test_the_same_tree_whatever_n_jobs():
    X, y = load_breast_cancer(return_X_y=True)
    trees = [
        SensorTreeClassifier(cost_weight=0.005, n_jobs=n).fit(X[:, :8], y).tree_
        for n in (1, 2)
    ]
    assert trees[0] == trees[1]


def test_no_time_ends_with_a_tree_that_works():
    X, y = load_digits(return_X_y=True)
    model = SensorTreeClassifier(
        structure="chain",
        max_time=1e-9,
        classifier=LogisticRegression(),
        program=Program(fallback=False),
    ).fit(X, y)
    assert model.structure_report_.stopped == "max_time was over"
    assert model.predict(X).shape == y.shape


class Listener:
    """A callback of scikit-learn's protocol that counts steps, and may say stop."""

    def __init__(self, stop_after: int | None = None):
        self.steps, self.stop_after, self.torn_down = [], stop_after, False

    def setup(self, estimator, context):
        self.steps.append("setup")

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context):
        self.steps.append(context.task_name)
        return self.stop_after is not None and len(self.steps) > self.stop_after

    def teardown(self, estimator, context):
        self.torn_down = True


def test_callbacks_hear_of_each_step_and_can_end_the_search():
    X, y = load_breast_cancer(return_X_y=True)
    X, listener = X[:, :8], Listener()
    chain = SensorTreeClassifier(structure="chain", n_leaves=5)
    chain.set_callbacks(listener).fit(X, y)
    assert listener.steps.count("structure") >= 4
    assert listener.steps[-3:] == ["leaf classifiers", "decisions", "fit"]
    assert listener.torn_down
    hasty = Listener(stop_after=3)
    chain = SensorTreeClassifier(structure="chain", n_leaves=5).set_callbacks(hasty)
    chain.fit(X, y)
    assert chain.structure_report_.stopped == "a callback said stop"
    assert hasty.steps.count("structure") <= 4
    assert chain.predict(X).shape == y.shape


class Interrupting(LogisticRegression):
    def fit(self, X, y, sample_weight=None):
        if X.shape[1] > 2:
            raise KeyboardInterrupt
        return super().fit(X, y, sample_weight)


def test_an_interrupted_search_leaves_the_model_as_it_was():
    X, y = load_breast_cancer(return_X_y=True)
    X, listener = X[:, :6], Listener()
    model = SensorTreeClassifier(structure="cascade", n_leaves=2).fit(X, y)
    before = model.tree_
    model.set_params(structure="chain", classifier=Interrupting(), n_leaves=6)
    with pytest.raises(KeyboardInterrupt):
        model.set_callbacks(listener).fit(X, y)
    assert model.tree_ is before
    assert listener.torn_down


def test_boosted_leaves_take_part_in_the_search():
    X, y = load_breast_cancer(return_X_y=True)
    boosted = HistGradientBoostingClassifier(max_iter=10, early_stopping=False)
    model = SensorTreeClassifier(
        structure="chain", n_leaves=4, classifier=boosted, cost_weight=0.001
    ).fit(X[:, :8], y)
    assert model.structure_report_.n_classifiers >= 3
    assert model.score(X[:, :8], y) > 0.9


def test_trees_are_screened_by_themselves_on_few_rows():
    # y depends on a sine that no quadratic sees: least squares would take the linear hint.
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(1500, 3))
    y = (np.sin(12 * X[:, 1]) + 0.3 * X[:, 2] > 0).astype(int)
    boosted = HistGradientBoostingClassifier(max_iter=30, early_stopping=False)
    chain = SensorTreeClassifier(
        structure="chain", n_exact=1, classifier=boosted, cost_weight=0.01
    ).fit(X, y)
    assert chain.structure_report_.subsets[0] == ["x1"]


def test_other_methods_learn_structures_too():
    X, y = load_breast_cancer(return_X_y=True)
    model = AlternatingTreeClassifier(structure="greedy", n_leaves=3).fit(X[:, :6], y)
    assert model.structure_report_.structure == "greedy"


def test_a_path_gives_each_cost_weight_its_own_structure():
    X, y = load_breast_cancer(return_X_y=True)
    X = X[:, :8]
    weights = [0.1, 0.001]
    path = SensorTreeClassifier().fit_path(X, y, weights)
    alone = [SensorTreeClassifier(cost_weight=w).fit(X, y) for w in weights]
    for one, other in zip(path, alone, strict=True):
        assert one.tree_ == other.tree_
        np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))


def test_what_else_was_judged_does_not_matter():
    # "auto" judges the subsets of several trees; the tree it takes must come out as if it
    # had been the only one.
    X, y = load_breast_cancer(return_X_y=True)
    X = X[:, :8]
    auto = SensorTreeClassifier(cost_weight=0.02).fit(X, y)
    winner = auto.structure_report_.structure
    alone = SensorTreeClassifier(cost_weight=0.02, structure=winner).fit(X, y)
    assert auto.tree_ == alone.tree_
    assert auto.certificate_ == alone.certificate_
    np.testing.assert_array_equal(auto.predict_proba(X), alone.predict_proba(X))


@pytest.mark.slow
def test_a_cluster_of_two_processes_finds_the_same_tree_even_if_one_dies():
    distributed = pytest.importorskip(
        "distributed", reason="the extra 'dask' is absent"
    )
    X, y = load_breast_cancer(return_X_y=True)
    X = X[:, :8]
    serial = SensorTreeClassifier(cost_weight=0.005).fit(X, y)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
        parallel_config("dask"),
    ):
        parallel = SensorTreeClassifier(cost_weight=0.005).fit(X, y)
        assert parallel.tree_ == serial.tree_
        np.testing.assert_array_equal(
            parallel.predict_proba(X), serial.predict_proba(X)
        )
        victim = next(iter(cluster.workers.values()))
        client.loop.call_later(0.5, victim.kill)
        again = SensorTreeClassifier(cost_weight=0.005).fit(X, y)
        assert again.tree_ == serial.tree_


@pytest.mark.slow
def test_a_backward_chain_finds_sensors_that_tell_something_only_together():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1_500, 8))
    y = ((X[:, 5] > 0) ^ (X[:, 7] > 0)).astype(int)
    model = SensorTreeClassifier(
        structure="backward", cost_weight=0.01, program=Program(fallback=False)
    ).fit(X, y)
    added = [step["added"] for step in model.structure_report_.steps]
    assert set(added[:2]) == {"x5", "x7"}
    assert model.acquired(X)[:, [5, 7]].all()
    assert model.acquisition_cost(X).mean() == pytest.approx(2, abs=0.02)


def test_a_backward_chain_buys_first_what_costs_less_after_what_must_come_before():
    X = np.random.default_rng(0).normal(size=(1_500, 3))
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    sensors = {
        "dear": Sensor(0, 9),
        "cheap": Sensor(1, 1, after=["first"]),
        "first": Sensor(2, 0.5),
    }
    model = SensorTreeClassifier(
        sensors,
        structure="backward",
        cost_weight=0.001,
        program=Program(fallback=False),
    )
    steps = model.fit(X, y).structure_report_.steps
    assert [step["added"] for step in steps] == ["cheap", "dear"]
    assert set(steps[0]["subset"]) == {"first", "cheap"}
