"""`Fork`: nodes that know the same, one after another, as one vertex with several ways out.

A choice among several purchases is a chain of nodes that know the same. Who looks at a tree
wants to see the choice: what can be bought there, and whether one can stop.
"""

from __future__ import annotations

from dataclasses import dataclass

from sensortree.tree.tree import SensorTree


@dataclass(frozen=True)
class Way:
    """A way out of a fork.

    Attributes
    ----------
    end : int
        Where it leads, as in `SensorTree.children`: a node that knows more, or ``~leaf``.
    signs : tuple of (int, int)
        The nodes of the fork that lead there, each with the sign of g_j that it takes.
    """

    end: int
    signs: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Fork:
    """Nodes that know the same and follow each other, and all ways out of them.

    Attributes
    ----------
    nodes : tuple of int
        Depth first, so the first is where examples come in.
    ways : tuple of Way
        One more than nodes, in the order of the leaves behind them.
    """

    nodes: tuple[int, ...]
    ways: tuple[Way, ...]


def fork_at(tree: SensorTree, first: int) -> Fork:
    """All nodes that know what a node knows and follow it, as one fork.

    Parameters
    ----------
    tree : SensorTree
    first : int
        A node.

    Examples
    --------
    >>> from sensortree import exhaustive_tree
    >>> from sensortree.tree.forks import fork_at
    >>> fork = fork_at(exhaustive_tree(["a", "b", "c"], root=["a"]), 0)
    >>> fork.nodes
    (0, 1)
    >>> [way.end for way in fork.ways]  # stop at leaf 0, buy b at node 2, c at node 3
    [-1, 2, 3]
    """
    known = tree.nodes[first].sensors
    negative, positive = tree.children
    nodes: list[int] = []
    ways: list[Way] = []

    def follow(end: int, signs: tuple[tuple[int, int], ...]) -> None:
        if end < 0 or tree.nodes[end].sensors != known:
            ways.append(Way(end, signs))
            return
        nodes.append(end)
        follow(int(negative[end]), (*signs, (end, -1)))
        follow(int(positive[end]), (*signs, (end, +1)))

    follow(first, ())
    return Fork(tuple(nodes), tuple(ways))


def fork_of(tree: SensorTree, node: int) -> Fork:
    """The fork that a node belongs to.

    Examples
    --------
    >>> from sensortree import exhaustive_tree
    >>> from sensortree.tree.forks import fork_of
    >>> fork_of(exhaustive_tree(["a", "b", "c"], root=["a"]), 1).nodes
    (0, 1)
    """
    first, known = node, tree.nodes[node].sensors
    negative, positive = (side.tolist() for side in tree.children)
    while first:  # its parent comes before it
        side = negative if first in negative else positive
        parent = side.index(first)
        if tree.nodes[parent].sensors != known:
            break
        first = parent
    return fork_at(tree, first)


def leaves_behind(tree: SensorTree, end: int) -> tuple[int, ...]:
    """Leaves that a way may lead to, by where it ends."""
    if end < 0:
        return (~end,)
    return tuple(tree.path_signs[:, end].nonzero()[0].tolist())
