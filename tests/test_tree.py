"""Claims about trees: numbering, routing, forms, builders."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from strategies import leaf_counts, random_tree, seeds

from sensortree import Leaf, Node, SensorTree, cascade_tree, exhaustive_tree
from sensortree.exceptions import TreeError
from sensortree.structure.trees import exhaustive_leaves
from sensortree.tree.tree import MAX_DEPTH


@given(seeds, leaf_counts)
def test_a_child_node_comes_after_its_parent_and_has_one_parent(seed, n_leaves):
    tree = random_tree(np.random.default_rng(seed), n_leaves)
    children = np.r_[tree.negative, tree.positive]
    assert np.all((tree.negative == -1) | (tree.negative > np.arange(tree.n_nodes)))
    assert np.all((tree.positive == -1) | (tree.positive > np.arange(tree.n_nodes)))
    assert sorted(children[children >= 0]) == list(range(1, tree.n_nodes))


@given(seeds, leaf_counts)
def test_dict_form_is_plain_json_and_comes_back_equal(seed, n_leaves):
    tree = random_tree(np.random.default_rng(seed), n_leaves)
    assert SensorTree.from_dict(json.loads(json.dumps(tree.to_dict()))) == tree


@given(seeds, leaf_counts)
def test_the_text_form_names_every_vertex_once(seed, n_leaves):
    tree = random_tree(np.random.default_rng(seed), n_leaves)
    lines = str(tree).splitlines()
    assert len(lines) == tree.n_leaves + tree.n_nodes
    assert sum("leaf" in line for line in lines) == tree.n_leaves


def test_trees_compare_and_hash_by_value():
    one, same = (SensorTree(Node([], Leaf([]), Leaf(["a"]))) for _ in range(2))
    assert one == same
    assert hash(one) == hash(same)
    assert one != SensorTree(Node([], Leaf([]), Leaf(["b"])))


def test_trees_are_frozen():
    with pytest.raises(AttributeError):
        Leaf(["a"]).sensors = frozenset()
    with pytest.raises(ValueError):
        cascade_tree("ab").path_signs[0, 0] = 5


def test_a_lone_leaf_is_a_tree():
    tree = SensorTree(Leaf(["a"]))
    assert (tree.n_leaves, tree.n_nodes, tree.depth) == (1, 0, 0)
    assert tree.route(np.empty((3, 0))).tolist() == [0, 0, 0]
    assert str(tree) == "leaf 0 stops with a"


def test_a_leaf_may_know_nothing():
    assert "stops with nothing" in str(SensorTree(Node([], Leaf([]), Leaf(["a"]))))


@pytest.mark.parametrize(
    ("n_sensors", "n_leaves"), [(0, 1), (1, 2), (2, 5), (3, 16), (4, 65)]
)
def test_the_exhaustive_tree_has_as_many_leaves_as_counted(n_sensors, n_leaves):
    names = [f"s{i}" for i in range(n_sensors)]
    assert exhaustive_leaves(n_sensors) == n_leaves
    assert exhaustive_tree(["root", *names], root=["root"]).n_leaves == n_leaves


def test_the_exhaustive_tree_holds_every_order_of_buying():
    tree = exhaustive_tree(["a", "b", "c"])
    counts = {}
    for leaf in tree.leaves:
        counts[len(leaf.sensors)] = counts.get(len(leaf.sensors), 0) + 1
    assert counts == {0: 1, 1: 3, 2: 6, 3: 6}  # ordered selections of 3 sensors


def test_an_exhaustive_tree_too_large_says_how_large():
    with pytest.raises(TreeError, match="over 7 sensors has 13700 leaves"):
        exhaustive_tree([f"s{i}" for i in range(7)])


def test_a_cascade_may_know_several_sensors_at_its_root_or_none():
    assert cascade_tree("abc", root="ab").n_leaves == 2
    assert cascade_tree("abc", root=()).leaves[0].sensors == frozenset()


def test_a_cascade_refuses_a_sensor_twice():
    with pytest.raises(TreeError, match="twice"):
        cascade_tree(["a", "b", "a"])


def test_a_path_of_too_many_decisions_is_refused():
    vertex = Leaf([])
    for _ in range(MAX_DEPTH + 1):
        vertex = Node([], Leaf([]), vertex)
    with pytest.raises(TreeError, match="more than 256 decisions"):
        SensorTree(vertex)


def test_routing_wants_one_column_per_node(figure_tree):
    with pytest.raises(TreeError, match=r"\(n_samples, 3\), got \(2, 2\)"):
        figure_tree.route(np.zeros((2, 2)))
