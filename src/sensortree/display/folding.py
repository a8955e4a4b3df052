"""`Outline`: which vertices of a tree are drawn, and which are folded into one line.

Nodes that know the same are one vertex with several ways out. In a large tree, ways that
few rows take are folded: those of one vertex into one line, and a vertex of which all
ways are rare into a line of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sensortree.tree.forks import Way, fork_at, leaves_behind
from sensortree.tree.tree import SensorTree
from sensortree.types import Array

LINES = 32  # leaves of a tree that is drawn whole
RARE = 0.01  # share of rows; in a larger tree a way that fewer take is folded


@dataclass(frozen=True)
class Outline:
    """What is drawn of a tree, from one vertex on.

    Attributes
    ----------
    nodes : tuple of int
        Nodes that the vertex stands for; none at an end.
    leaves : tuple of int
        Leaves that may be reached; at an end of several leaves these are folded.
    known : frozenset of str
        Sensors known there; where several ways are gathered, at their fork.
    below : tuple of Outline
        What its ways lead to; none at an end.
    gathered : int
        How many ways of its parent lead here.
    """

    nodes: tuple[int, ...]
    leaves: tuple[int, ...]
    known: frozenset[str]
    below: tuple[Outline, ...] = ()
    gathered: int = 1

    @property
    def n_lines(self) -> int:
        """Ends, each a line of the picture."""
        return sum(outline.n_lines for outline in self.below) or 1


def whole(tree: SensorTree) -> Outline:
    """Outline of a tree in which nothing is folded."""
    return _outline(tree, _root(tree), list)


def without_rare(
    tree: SensorTree, leaf_share: Array, max_leaves: int | None
) -> Outline:
    """Outline of a tree in which ways that few rows take are folded.

    Parameters
    ----------
    tree : SensorTree
    leaf_share : ndarray of shape (n_leaves,)
    max_leaves : int or None
        Nothing is folded in a tree of so many leaves. In a larger one, that is all that
        fewer than 1 % of the rows take, and more, the rarest first, until so many lines
        are left.
    """
    if max_leaves is None or tree.n_leaves <= max_leaves:
        return whole(tree)
    shares = [*leaf_share, *(np.abs(tree.path_signs).T @ leaf_share)]
    # Folding more never makes more lines, so the least that is enough is found by halving.
    enough = sorted({RARE, *(float(np.nextafter(s, 2)) for s in shares if s >= RARE)})
    low, high = 0, len(enough) - 1
    while low < high:
        middle = (low + high) // 2
        if _folded(tree, leaf_share, enough[middle]).n_lines <= max_leaves:
            high = middle
        else:
            low = middle + 1
    return _folded(tree, leaf_share, enough[low])


def around(tree: SensorTree, on_way: Sequence[int], max_leaves: int | None) -> Outline:
    """Outline of a tree in which every way off one row's way is folded by itself.

    Parameters
    ----------
    tree : SensorTree
    on_way : sequence of int
        Nodes that the row passed.
    max_leaves : int or None
        Nothing is folded in a tree of so many leaves.
    """
    if max_leaves is None or tree.n_leaves <= max_leaves:
        return whole(tree)
    passed = {_root(tree), *on_way}

    def shown(ways: Sequence[Way]) -> list[Way | Outline]:
        return [way if way.end in passed else _end(tree, way.end) for way in ways]

    return _outline(tree, _root(tree), shown)


def _folded(tree: SensorTree, leaf_share: Array, least: float) -> Outline:
    """Outline in which ways that less than a share of the rows take are folded."""

    def shown(ways: Sequence[Way]) -> list[Way | Outline]:
        ends = [_end(tree, way.end) for way in ways]
        rare = [end for end in ends if leaf_share[list(end.leaves)].sum() < least]
        folded = tuple(leaf for end in rare for leaf in end.leaves)
        if len(rare) == len(ends):
            return []
        if len(folded) < 2:  # a line either way
            return list(ways)
        kept: list[Way | Outline] = [
            way for way, end in zip(ways, ends, strict=True) if end not in rare
        ]
        fork = tree.nodes[ways[0].signs[0][0]]
        rest = Outline((), folded, fork.sensors, gathered=len(rare))
        return [*kept, rare[0] if len(rare) == 1 else rest]

    return _outline(tree, _root(tree), shown)


def _outline(
    tree: SensorTree,
    end: int,
    shown: Callable[[Sequence[Way]], list[Way | Outline]],
) -> Outline:
    """Outline from a vertex on; `shown` says what is shown of the ways out of a fork."""
    here = _end(tree, end)
    if end < 0:
        return here
    fork = fork_at(tree, end)
    below = tuple(
        way if isinstance(way, Outline) else _outline(tree, way.end, shown)
        for way in shown(fork.ways)
    )
    return replace(here, nodes=fork.nodes, below=below) if below else here


def _end(tree: SensorTree, end: int) -> Outline:
    """All that is behind a way as one line."""
    vertex = tree.leaves[~end] if end < 0 else tree.nodes[end]
    return Outline((), leaves_behind(tree, end), vertex.sensors)


def _root(tree: SensorTree) -> int:
    return 0 if tree.n_nodes else ~0
