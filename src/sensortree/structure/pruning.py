"""Take nodes out of a tree that send every example the same way."""

from __future__ import annotations

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
