"""Trees that are built or given, and changed: pruned, without some sensors, with exits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations

import numpy as np

from sensortree.constants import EXHAUSTIVE_LEAVES
from sensortree.exceptions import TreeError
from sensortree.sensors.sensor import SensorSet
from sensortree.tree.tree import Leaf, Node, SensorTree
from sensortree.types import Rows


def exhaustive_tree(
    sensors: Sequence[str],
    root: Iterable[str] = (),
    next_ones: Callable[[frozenset[str]], Sequence[str]] | None = None,
) -> SensorTree:
    """Build the tree of every order in which sensors can be bought.

    At each vertex the options are to stop, or to buy one of the remaining sensors; a
    choice among several is a chain of nodes that know the same, in the order of `sensors`.

    Parameters
    ----------
    sensors : sequence of str
    root : iterable of str, default=()
        Sensors known at the root.
    next_ones : callable, default=None
        Lists what may be bought next when some are known; all others by default.

    Examples
    --------
    >>> from sensortree import exhaustive_tree
    >>> print(exhaustive_tree(["a", "b", "c"], root=["a"]))
    node 0 knows a
    ├─ g0 ≤ 0: leaf 0 stops with a
    └─ g0 > 0: node 1
       ├─ g1 ≤ 0, buy b: node 2
       │  ├─ g2 ≤ 0: leaf 1 stops with a, b
       │  └─ g2 > 0, buy c: leaf 2 stops with a, b, c
       └─ g1 > 0, buy c: node 3
          ├─ g3 ≤ 0: leaf 3 stops with a, c
          └─ g3 > 0, buy b: leaf 4 stops with a, b, c
    """
    known = frozenset(root)
    options = next_ones or (lambda known: [s for s in sensors if s not in known])
    room = EXHAUSTIVE_LEAVES

    def below(known: frozenset[str]) -> Leaf | Node:
        nonlocal room
        room -= 1
        if room < 0:
            others = len(set(sensors) - frozenset(root))
            counted = f"{exhaustive_leaves(others)} leaves, " if not next_ones else ""
            raise TreeError(
                f"the exhaustive tree over {others} sensors has {counted}more than "
                f"{EXHAUSTIVE_LEAVES}{'' if counted else ' leaves'}; use "
                f"structure='cascade', give a tree, group columns into fewer sensors, "
                f"or name more root_sensors."
            )
        vertex: Leaf | Node | None = None
        for sensor in reversed(options(known)):
            bought = below(known | {sensor})
            vertex = bought if vertex is None else Node(known, bought, vertex)
        return Leaf(known) if vertex is None else Node(known, Leaf(known), vertex)

    return SensorTree(below(known))


def exhaustive_leaves(n_sensors: int) -> int:
    """Count the leaves of the exhaustive tree over sensors not known at its root."""
    n_leaves = 1
    for remaining in range(1, n_sensors + 1):
        n_leaves = 1 + remaining * n_leaves
    return n_leaves


def cascade_tree(order: Sequence[str], root: Iterable[str] | None = None) -> SensorTree:
    """Build the chain that buys sensors in a given order and may stop after each.

    Parameters
    ----------
    order : sequence of str
    root : iterable of str, default=None
        Sensors known at the root; None means the first of the order.

    Examples
    --------
    >>> from sensortree import cascade_tree
    >>> print(cascade_tree(["a", "b", "c"]))
    node 0 knows a
    ├─ g0 ≤ 0: leaf 0 stops with a
    └─ g0 > 0, buy b: node 1
       ├─ g1 ≤ 0: leaf 1 stops with a, b
       └─ g1 > 0, buy c: leaf 2 stops with a, b, c
    """
    if len(set(order)) < len(order):
        raise TreeError(
            f"the order {list(order)!r} of a cascade lists a sensor twice; list each once."
        )
    known = frozenset(order[:1] if root is None else root)
    stages = [known]
    for sensor in order:
        if sensor not in known:
            known |= {sensor}
            stages.append(known)
    return chain_tree(stages)


def chain_tree(stages: Sequence[frozenset[str]]) -> SensorTree:
    """Build the chain that knows ever more and may stop at each stage."""
    vertex: Leaf | Node = Leaf(stages[-1])
    for stage in reversed(stages[:-1]):
        vertex = Node(stage, Leaf(stage), vertex)
    return SensorTree(vertex)


def cluster_subsets(subsets: Iterable[Iterable[str]]) -> SensorTree:
    """Build a tree whose leaves are the given subsets, by hierarchical clustering.

    The two with the most sensors in common are grouped under a node that knows what they
    have in common; then again, until one is left. Ties go to the earliest pair; of a pair
    the earlier is the negative child. A subset given twice is one leaf.

    Parameters
    ----------
    subsets : iterable of iterables of str

    Examples
    --------
    Nested subsets give back their cascade:

    >>> from sensortree.structure import cluster_subsets
    >>> print(cluster_subsets([["a"], ["a", "b"], ["a", "b", "c"]]))
    node 0 knows a
    ├─ g0 ≤ 0: leaf 0 stops with a
    └─ g0 > 0, buy b: node 1
       ├─ g1 ≤ 0: leaf 1 stops with a, b
       └─ g1 > 0, buy c: leaf 2 stops with a, b, c
    """
    distinct = dict.fromkeys(frozenset(subset) for subset in subsets)
    vertices: list[Leaf | Node] = [Leaf(subset) for subset in distinct]
    if not vertices:
        raise TreeError("there are no subsets to make a tree of; give at least one.")
    while len(vertices) > 1:
        # max keeps the first of equals, and pairs come in order
        i, j = max(
            combinations(range(len(vertices)), 2),
            key=lambda pair: len(vertices[pair[0]].sensors & vertices[pair[1]].sensors),
        )
        common = vertices[i].sensors & vertices[j].sensors
        vertices[i] = Node(common, vertices[i], vertices[j])
        del vertices[j]
    return SensorTree(vertices[0])


def check_tree_fits(tree: SensorTree, sensors: SensorSet) -> None:
    """Raise `TreeError` unless a user's tree speaks of exactly these sensors."""
    unknown = sorted(tree.sensors - set(sensors.names))
    if unknown:
        raise TreeError(
            f"the tree names sensor {unknown[0]!r}, which is not declared; the sensors "
            f"are {', '.join(map(repr, sensors.names))}."
        )
    forgotten = [name for name in sensors.names if name not in tree.sensors]
    if forgotten:
        raise TreeError(
            f"the tree forgets sensor {forgotten[0]!r}: no leaf knows it; add it to the "
            f"tree, or remove it and its columns from sensors and X."
        )


def prune(tree: SensorTree, visits: Rows) -> tuple[SensorTree, Rows]:
    """Keep the leaves that examples reach, at least one, and the nodes between them.

    Gives the numbers of the nodes that are left, too, in the order of the pruned tree.
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


def without_sensors(tree: SensorTree, gone: frozenset[str]) -> SensorTree:
    """The tree that never buys some sensors.

    A purchase of them alone is skipped. Decisions between ways that are then the same are
    taken out.

    Examples
    --------
    >>> from sensortree import cascade_tree
    >>> from sensortree.structure.trees import without_sensors
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
        same = stops and positive.sensors == known
        if same and isinstance(positive, Node) and positive.negative == negative:
            return positive
        return Node(known, negative, positive)

    return SensorTree(walk(tree.root))


def with_exits(tree: SensorTree) -> SensorTree:
    """Let examples be handed over to a person wherever something is known.

    A leaf that says nothing of it becomes a decision between an answer and a person, with
    the same sensors. Nodes that know the same, of which none can stop, get such an exit
    before them; not where nothing is known, as all examples look the same there.

    Examples
    --------
    >>> from sensortree import cascade_tree
    >>> from sensortree.structure.trees import with_exits
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
