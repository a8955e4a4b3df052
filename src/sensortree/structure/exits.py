"""Exits: where an example may be handed over to a person."""

from __future__ import annotations

from sensortree.tree.tree import Leaf, Node, SensorTree


def with_exits(tree: SensorTree) -> SensorTree:
    """Let examples be handed over to a person wherever something is known.

    A leaf that says nothing of it becomes a decision between an answer and a person, with
    the same sensors. Nodes that know the same, of which none can stop, get such an exit
    before them; not where nothing is known, as all examples look the same there.

    Parameters
    ----------
    tree : SensorTree

    Examples
    --------
    >>> from sensortree import cascade_tree
    >>> from sensortree.structure.exits import with_exits
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
