"""Change a tree: take out what nobody reaches or needs, add exits to a person."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sensortree.tree.tree import Leaf, Node, SensorTree


def prune(
    tree: SensorTree, visits: NDArray[np.intp]
) -> tuple[SensorTree, NDArray[np.intp]]:
    """Keep the leaves that examples reach, and the nodes between them.

    Parameters
    ----------
    tree : SensorTree
    visits : ndarray of shape (n_leaves,)
        How many examples reach each leaf; at least one leaf is reached.

    Returns
    -------
    pruned : SensorTree
    nodes : ndarray
        Which nodes of the tree are left, in the order of the pruned tree.
    """
    kept: list[int] = []
    n_nodes = n_leaves = 0

    def walk(vertex: Leaf | Node) -> Leaf | Node | None:
        nonlocal n_nodes, n_leaves
        if isinstance(vertex, Leaf):
            n_leaves += 1
            return vertex if visits[n_leaves - 1] else None
        node, place = n_nodes, len(kept)
        n_nodes += 1
        negative, positive = walk(vertex.negative), walk(vertex.positive)
        if negative is None or positive is None:
            return positive if negative is None else negative
        kept.insert(place, node)  # a parent comes before its children
        return Node(vertex.sensors, negative, positive)

    root = walk(tree.root)
    assert root is not None  # some leaf is reached
    return SensorTree(root), np.array(kept, dtype=np.intp)


def without_sensors(
    tree: SensorTree,
    gone: frozenset[str],
    allowed: Callable[[frozenset[str]], bool] = lambda known: True,
) -> SensorTree | None:
    """The tree that never buys some sensors; None if what is left is not `allowed`.

    A purchase of them alone is skipped. Decisions between ways that are then the same are
    taken out.

    Examples
    --------
    >>> from sensortree import cascade_tree
    >>> from sensortree.structure.pruning import without_sensors
    >>> print(without_sensors(cascade_tree(["a", "b", "c"]), frozenset({"b"})))
    node 0 knows a
    ├─ g0 ≤ 0: leaf 0 stops with a
    └─ g0 > 0, buy c: leaf 1 stops with a, c
    """

    def walk(vertex: Leaf | Node) -> Leaf | Node:
        known = vertex.sensors - gone
        if isinstance(vertex, Leaf):
            return Leaf(known, refers=vertex.refers)
        negative, positive = walk(vertex.negative), walk(vertex.positive)
        if negative == positive:
            return negative
        # who goes on to what another way has too stops there instead
        stops = isinstance(negative, Leaf) and not negative.refers
        if not stops or isinstance(positive, Leaf) or positive.sensors != known:
            return Node(known, negative, positive)
        if positive.negative == negative:
            return positive
        return Node(known, negative, positive)

    left = SensorTree(walk(tree.root))
    sets = {leaf.sensors for leaf in left.leaves} | {
        node.sensors for node in left.nodes
    }
    return left if all(map(allowed, sets)) else None


def with_exits(tree: SensorTree) -> SensorTree:
    """Let examples be handed over to a person wherever something is known.

    A leaf that says nothing of it becomes a decision between an answer and a person, with
    the same sensors. Nodes that know the same, of which none can stop, get such an exit
    before them; not where nothing is known, as all examples look the same there.

    Examples
    --------
    >>> from sensortree import cascade_tree
    >>> from sensortree.structure import with_exits
    >>> print(with_exits(cascade_tree(["a", "b"])))
    node 0 knows a
    ├─ g0 ≤ 0: node 1
    │  ├─ g1 ≤ 0: leaf 0 stops with a
    │  └─ g1 > 0: leaf 1 hands over to a person with a
    └─ g0 > 0, buy b: node 2
       ├─ g2 ≤ 0: leaf 2 stops with a, b
       └─ g2 > 0: leaf 3 hands over to a person with a, b
    """

    def walk(vertex: Leaf | Node, before: frozenset[str] | None) -> Leaf | Node:
        known = vertex.sensors
        if isinstance(vertex, Leaf):
            if vertex.refers is not None:
                return vertex
            return Node(known, Leaf(known, refers=False), Leaf(known, refers=True))
        sides = walk(vertex.negative, known), walk(vertex.positive, known)
        first = before != known  # of those that know the same
        if first and known and not _stops(vertex, known):
            return Node(known, Node(known, *sides), Leaf(known, refers=True))
        return Node(known, *sides)

    return SensorTree(walk(tree.root, None))


def _stops(vertex: Leaf | Node, known: frozenset[str]) -> bool:
    """Whether one can stop with what is known, without buying."""
    if vertex.sensors != known:
        return False
    if isinstance(vertex, Leaf):
        return True
    return _stops(vertex.negative, known) or _stops(vertex.positive, known)
