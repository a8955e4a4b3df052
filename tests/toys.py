"""A policy made by hand, whose answers fit in a comment."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sensortree import Leaf, Node, Policy, SensorSet, SensorTree
from sensortree.policy.classifiers import ConstantScorer
from sensortree.policy.decisions import DecisionFeatures, DecisionFunction, Raw
from sensortree.policy.flow import Answers, Flow
from sensortree.sensors.loss import Loss
from sensortree.sensors.reader import SensorReader
from sensortree.sensors.sensor import Terms

TREE = SensorTree(Node(["a"], Leaf(["a"]), Leaf(["a", "b"])))
# Two tests of one group: the first costs 1 more than it would as the second.
BLOOD = (Terms(group="blood", surcharge=1.0), Terms(group="blood", surcharge=1.0))


def toy_policy(
    *, loss=None, max_cost=None, terms=(), cost_weight=1.0, stop_loss=0.3
) -> Policy:
    """Everybody buys a (1 dollar); who has a > 0 buys b too (3 dollars).

    With a alone the answer is "no", with both it is "yes" (4 to 1). Of ten training rows,
    four went on to b. b always changes the answer.
    """
    sensors = SensorSet(
        ("a", "b"), ((0,), (1,)), np.array([1.0, 3.0]), ("A", "B"), terms
    )
    features = DecisionFeatures(
        (Raw(),), np.zeros(1), np.ones(1), np.zeros(1, dtype=bool)
    )
    return Policy(
        SensorReader(sensors, {}, (1, 1), allow_nan=False),
        TREE,
        (DecisionFunction(features, np.array([2.0, 0.0])),),
        {
            frozenset(): ConstantScorer(np.array([0.5, 0.5])),
            frozenset("a"): ConstantScorer(np.array([0.9, 0.1])),
            frozenset("ab"): ConstantScorer(np.array([0.2, 0.8])),
        },
        np.array(["no", "yes"]),
        Flow(
            node_rows=np.array([10.0]),
            leaf_classes=np.array([[5.0, 1.0], [1.0, 3.0]]),
            leaf_loss=np.array([[0.5, 0.2]]),
            stop_loss=np.array([stop_loss]),
            kept_loss=np.array([0.2]),
            total_loss=0.2,
            answers=Answers(
                given=np.array([[6.0, 0.0], [0.0, 4.0]]),
                right=np.array([5.0, 3.0]),
                changed=np.array([[0.0, 4.0]]),
                would_change=np.array([[0.0, 6.0]]),
            ),
        ),
        Loss(None if loss is None else np.array(loss, dtype=float)),
        cost_weight,
        max_cost,
    )


def per_row_prices(policy: Policy) -> Policy:
    """The same policy, where b has another price for every row, and g looks at it."""
    varying = policy.sensors.with_varying([False, True])
    decision = policy.decisions[0]
    features = replace(
        decision.features,
        center=np.zeros(2),
        scale=np.ones(2),
        may_miss=np.zeros(2, dtype=bool),
    )
    return replace(
        policy,
        reader=replace(policy.reader, sensors=varying),
        decisions=(DecisionFunction(features, np.array([2.0, -0.1, 0.0])),),
    )


FORK = SensorTree(
    Node(["a"], Leaf(["a"]), Node(["a"], Leaf(["a", "b"]), Leaf(["a", "c"])))
)


def forked_policy(*, max_cost=None) -> Policy:
    """Everybody buys a (1 dollar), then stops, or buys b (3 dollars) or c (5 dollars).

    g0 = A and g1 = A - 2: up to 0 stops, up to 2 buys b, above buys c. Of ten training
    rows six stopped, three bought b and one bought c.
    """
    sensors = SensorSet(
        ("a", "b", "c"), ((0,), (1,), (2,)), np.array([1.0, 3.0, 5.0]), ("A", "B", "C")
    )
    features = DecisionFeatures(
        (Raw(),), np.zeros(1), np.ones(1), np.zeros(1, dtype=bool)
    )
    likely = {"": 0.5, "a": 0.1, "ab": 0.8, "ac": 0.9}
    return Policy(
        SensorReader(sensors, {}, (1, 1, 1), allow_nan=False),
        FORK,
        (
            DecisionFunction(features, np.array([1.0, 0.0])),
            DecisionFunction(features, np.array([1.0, -2.0])),
        ),
        {
            frozenset(known): ConstantScorer(np.array([1 - yes, yes]))
            for known, yes in likely.items()
        },
        np.array(["no", "yes"]),
        Flow(
            node_rows=np.array([10.0, 4.0]),
            leaf_classes=np.array([[5.0, 1.0], [1.0, 2.0], [0.0, 1.0]]),
            leaf_loss=np.array([[0.5, 0.2, 0.1], [0.6, 0.2, 0.1]]),
            stop_loss=np.array([0.5, 0.6]),
            kept_loss=np.array([0.2, 0.2]),
            total_loss=0.2,
        ),
        Loss(None),
        0.01,
        max_cost,
    )
