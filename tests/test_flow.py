"""Claims about where training examples went, and what another way would have changed."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris

from sensortree import (
    CSTCClassifier,
    Leaf,
    Node,
    Program,
    SensorTree,
    SensorTreeClassifier,
)
from sensortree.policy.flow import measure_flow, stop_leaves

FORK = SensorTree(
    Node(["a"], Leaf(["a"]), Node(["a"], Leaf(["a", "b"]), Leaf(["a", "c"])))
)


def test_answers_that_a_way_changed_and_would_have_changed_are_counted():
    # Rows 0 and 1 stop, row 2 buys b, rows 3 and 4 buy c; row 4 counts twice.
    decisions = np.array([[-1, 1], [-1, -1], [1, -1], [1, 1], [1, 1]])
    at_node = np.array([0, 1, 0, 0, 1])
    leaf_answers = np.stack([at_node, [0, 0, 1, 0, 0], [1, 1, 1, 1, 1]], axis=1)
    node_answers = np.stack([at_node, at_node], axis=1)
    y = np.array([0, 0, 1, 0, 1])
    answers = measure_flow(
        FORK,
        decisions,
        leaf_answers,
        node_answers,
        leaf_answers != y[:, None],
        node_answers != y[:, None],
        y,
        2,
        np.array([1.0, 1, 1, 1, 2]),
    ).answers
    # stop: 0 and 1; b: 1; c: 1 for row 3 and for row 4
    np.testing.assert_array_equal(answers.given, [[1, 1], [0, 1], [0, 3]])
    np.testing.assert_array_equal(answers.right, [1, 1, 2])
    # b changed row 2; c changed row 3, and row 4 was answered 1 before
    np.testing.assert_array_equal(answers.changed, [[0, 2], [1, 1]])
    # who stopped: row 0 would go on to c, which says 1; row 1 to b, which says 0
    np.testing.assert_array_equal(answers.would_change, [[0, 2], [1, 1]])
    assert stop_leaves(FORK) == [[0], [0]]


@pytest.mark.parametrize("method", [SensorTreeClassifier, CSTCClassifier])
def test_counted_answers_are_those_of_the_examples(method):
    X, y = load_iris(return_X_y=True)
    model = method({"sepal": [0, 1], "petal": [2], "width": [3]}, cost_weight=0.002)
    flow = model.fit(X, y).policy_.flow
    np.testing.assert_allclose(flow.answers.given.sum(axis=1), flow.leaf_rows)
    np.testing.assert_allclose(flow.answers.given.sum(), len(y))
    wrong = 1 - flow.answers.right.sum() / len(y)
    assert wrong == pytest.approx(flow.total_loss)
    assert (flow.answers.changed.sum(axis=1) <= flow.node_rows + 1e-9).all()


def test_a_stop_changes_no_answer_where_nodes_and_leaves_share_classifiers():
    X, y = load_iris(return_X_y=True)
    model = SensorTreeClassifier({"sepal": [0, 1], "petal": [2, 3]}, cost_weight=0.002)
    model.set_params(
        root_sensors=["sepal"], structure="cascade", program=Program(fallback=False)
    )
    policy = model.fit(X, y).policy_
    stops = [
        (node, side)
        for node in range(policy.tree.n_nodes)
        for side, children in enumerate(policy.tree.children)
        if children[node] < 0
        and policy.tree.leaves[~children[node]].sensors
        == policy.tree.nodes[node].sensors
    ]
    assert stops
    answers = policy.flow.answers
    for node, side in stops:
        assert answers.changed[node, side] == answers.would_change[node, side] == 0
