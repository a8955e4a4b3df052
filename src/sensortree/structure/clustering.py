"""Sensor subsets to a binary tree, by their largest common part."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

from sensortree.exceptions import TreeError
from sensortree.tree.tree import Leaf, Node, SensorTree


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

    >>> from sensortree import cluster_subsets
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
