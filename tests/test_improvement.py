"""Claims about improving a learned structure, and about telling how far a fit has come."""

from __future__ import annotations

import re

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from strategies import random_tree

from sensortree import (
    AlternatingTreeClassifier,
    Leaf,
    Node,
    SensorTree,
    SensorTreeClassifier,
    cascade_tree,
)
from sensortree.leaves.fitting import _lighter, screen_leaf_classifiers
from sensortree.structure import (
    with_exchange,
    with_split,
    without_leaf,
    without_sensor,
)

ABC = cascade_tree(["a", "b", "c"])


# moves ------------------------------------------------------------------------------------


def test_a_leaf_is_dropped_with_its_node():
    assert without_leaf(ABC, 1) == SensorTree(
        Node({"a"}, Leaf({"a"}), Leaf({"a", "b", "c"}))
    )


def test_a_split_leaf_may_stop_or_buy_one_of_the_options():
    one = with_split(ABC, 2, [frozenset({"d"})])
    assert one == cascade_tree(["a", "b", "c", "d"])
    two = with_split(SensorTree(Leaf({"a"})), 0, [frozenset({"b"}), frozenset({"c"})])
    choice = Node({"a"}, Leaf({"a", "b"}), Leaf({"a", "c"}))
    assert two == SensorTree(Node({"a"}, Leaf({"a"}), choice))


def test_an_exchange_reorders_a_chain_or_brings_in_a_new_sensor():
    assert with_exchange(ABC, "a", "c") == cascade_tree(["c", "b", "a"])
    assert with_exchange(ABC, "b", "d") == cascade_tree(["a", "d", "c"])


def test_without_a_sensor_a_chain_skips_its_stage():
    assert without_sensor(ABC, "b") == cascade_tree(["a", "c"])
    assert without_sensor(ABC, "c") == cascade_tree(["a", "b"])


@pytest.mark.parametrize("seed", range(30))
def test_neighbours_of_any_tree_are_trees(seed):
    # a SensorTree checks itself; what is left to see is that leaves are as announced
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, int(rng.integers(2, 9)))
    leaf = int(rng.integers(tree.n_leaves))
    sets = [vertex.sensors for vertex in tree.leaves]
    assert [i.sensors for i in without_leaf(tree, leaf).leaves] == [
        known for k, known in enumerate(sets) if k != leaf
    ]
    split = with_split(tree, leaf, [frozenset({"new"}), frozenset({"s0", "other"})])
    assert split.n_leaves == tree.n_leaves + 2
    exchange = with_exchange(tree, "s0", "s1")
    assert with_exchange(exchange, "s1", "s0").sensors == tree.sensors
    less = without_sensor(tree, "s2")
    assert {i.sensors for i in less.leaves} == {known - {"s2"} for known in sets}


# the climb --------------------------------------------------------------------------------


def misleading(n: int = 900):
    """Sensor 0 is the best alone, and needless once 1 and 2 are known: y is their sign."""
    rng = np.random.default_rng(0)
    b, c = rng.normal(size=(2, n))
    y = b + c > 0
    a = np.where(rng.random(n) < 0.82, y, ~y) + 0.1 * rng.normal(size=n)
    return np.column_stack([a, b, c]), y


def climbing(**parameters):
    return SensorTreeClassifier(
        structure="chain", classifier=LogisticRegression(), cost_weight=0.03
    ).set_params(**parameters)


def test_a_chain_that_began_with_the_wrong_sensor_is_put_right():
    X, y = misleading()
    plain, improved = climbing().fit(X, y), climbing(improve=5).fit(X, y)
    assert "x0" in plain.tree_.root.sensors
    assert "x0" not in improved.tree_.sensors
    report = improved.structure_report_
    assert report.moves
    assert all(move["after"] < move["before"] for move in report.moves)
    assert "improved: " in str(report)
    assert improved.tree_.n_leaves == len(report.subsets) - report.pruned

    def risk(model):
        return 1 - model.score(X, y) + 0.03 * model.acquisition_cost(X).mean()

    assert risk(improved) < risk(plain)


def test_sensors_that_the_user_wants_at_the_root_stay_there():
    X, y = misleading()
    model = climbing(improve=5, root_sensors=["x0"]).fit(X, y)
    assert "x0" in model.tree_.root.sensors


def test_a_climb_ends_the_same_whenever_it_is_made():
    X, y = load_breast_cancer(return_X_y=True)
    X = X[:, :8]
    once, again = (
        SensorTreeClassifier(structure="grown", improve=2, n_jobs=n).fit(X, y)
        for n in (1, 2)
    )
    assert once.tree_ == again.tree_
    assert once.structure_report_.moves == again.structure_report_.moves


def test_no_time_means_no_moves():
    X, y = misleading()
    model = climbing(improve=5, max_time=1e-9).fit(X, y)
    assert model.structure_report_.moves == []


def test_no_more_leaves_than_allowed_after_a_climb():
    X, y = load_breast_cancer(return_X_y=True)
    model = SensorTreeClassifier(
        structure="chain", improve=4, n_leaves=3, cost_weight=0.001
    ).fit(X[:, :6], y)
    assert model.tree_.n_leaves <= 3


# screens ----------------------------------------------------------------------------------


def test_ensembles_are_screened_with_few_trees_and_others_with_few_rows():
    boosted = HistGradientBoostingClassifier(max_iter=200, max_leaf_nodes=127)
    light, n_rows = _lighter(make_pipeline(StandardScaler(), boosted))
    assert light[-1].max_iter == 30
    assert light[-1].max_leaf_nodes == 31
    assert boosted.max_iter == 200
    forest, _ = _lighter(RandomForestClassifier(n_estimators=500))
    assert forest.n_estimators == 30
    assert _lighter(KNeighborsClassifier())[1] < n_rows


def test_the_screen_answers_rows_by_copies_that_have_not_seen_them():
    # The nearest neighbour of a row that was seen is the row itself: no error at all.
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 1)), rng.integers(0, 2, 300)
    nearest = KNeighborsClassifier(n_neighbors=1)
    (errors,) = screen_leaf_classifiers(nearest, {frozenset("a"): X}, y, 2).values()
    assert 0.4 < errors.mean() < 0.6


# progress ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [SensorTreeClassifier, AlternatingTreeClassifier])
def test_a_verbose_fit_writes_a_line_per_step_to_stderr(kind, capsys):
    X, y = misleading(200)
    kind(structure="chain").fit(X, y)
    assert capsys.readouterr().err == ""
    kind(structure="chain", verbose=True).fit(X, y)
    lines = capsys.readouterr().err.splitlines()
    assert all(line.startswith("[sensortree] ") for line in lines)
    assert re.search(
        r"reading \(step 1 of at most \d+, \d+%, at most \d+ s left", lines[0]
    )
    assert "subsets screened" in lines[1]
    assert "s  leaf classifiers (step" in lines[-2]
    assert lines[-1].endswith("s  decisions")


def test_a_verbose_path_tells_of_every_model(capsys):
    X, y = misleading(200)
    SensorTreeClassifier(structure="cascade", verbose=True).fit_path(X, y, [0.1, 0.01])
    assert capsys.readouterr().err.count("decisions") == 2
