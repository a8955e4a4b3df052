"""Neighbours of a tree: the same tree with one leaf, sensor or purchase changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from sensortree.structure.pruning import prune
from sensortree.tree.tree import Leaf, Node, SensorTree

Known = frozenset[str]


def without_leaf(tree: SensorTree, leaf: int) -> SensorTree:
    """Take out a leaf of several, and the node above it."""
    return prune(tree, (np.arange(tree.n_leaves) != leaf).astype(np.intp))[0]


def with_split(tree: SensorTree, leaf: int, bought: Sequence[Known]) -> SensorTree:
    """Let a leaf buy on: one further set of sensors, or the one or the other of two."""
    known = tree.leaves[leaf].sensors
    leaves: list[Leaf | Node] = [Leaf(known | more) for more in bought]
    onward = leaves[0] if len(leaves) == 1 else Node(known, leaves[0], leaves[1])
    number = -1

    def walk(vertex: Leaf | Node) -> Leaf | Node:
        nonlocal number
        if isinstance(vertex, Node):
            return Node(vertex.sensors, walk(vertex.negative), walk(vertex.positive))
        number += 1
        return Node(known, vertex, onward) if number == leaf else vertex

    return SensorTree(walk(tree.root))


def exchanged(known: Known, one: str, other: str) -> Known:
    """The same sensors, one in the place of the other where only one is known."""
    if (one in known) == (other in known):
        return known
    return known ^ {one, other}


def with_exchange(tree: SensorTree, one: str, other: str) -> SensorTree:
    """Put two sensors in each other's places throughout the tree."""
    return _mapped(tree, lambda known: exchanged(known, one, other))


def without_sensor(tree: SensorTree, sensor: str) -> SensorTree:
    """Never buy a sensor; nodes that offer the same twice become one."""
    return _mapped(tree, lambda known: known - {sensor})


def _mapped(tree: SensorTree, change: Callable[[Known], Known]) -> SensorTree:
    """Change what every vertex knows, and leave out what became needless."""

    def walk(vertex: Leaf | Node) -> Leaf | Node:
        known = change(vertex.sensors)
        if isinstance(vertex, Leaf):
            return Leaf(known, vertex.refers)
        return _node(known, walk(vertex.negative), walk(vertex.positive))

    return SensorTree(walk(tree.root))


def _node(known: Known, negative: Leaf | Node, positive: Leaf | Node) -> Leaf | Node:
    """A node, or one of its children if that offers all that the node would."""
    if negative == positive:
        return negative
    for child, other in ((positive, negative), (negative, positive)):
        if (
            isinstance(child, Node)
            and child.sensors == known
            and other in (child.negative, child.positive)
        ):
            return child
    return Node(known, negative, positive)
