"""`TreeShape`: the tree as the solver walks it, and where it is cut.

A `Cut` is an edge that divides nodes in two, so that the Newton matrix is a large product.
For k above the edge and l below it, M_kl is a factor of k times a factor of l: what an
example's circuit is above the edge and what it is below meet in one current. So all that
couples the two sides is one matrix product, and the same holds within each side.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from sensortree.program.arrays import Array
from sensortree.program.surrogate import SurrogateProblem


@dataclass(frozen=True)
class Edges:
    """Edges of one side whose parents and whose children stand next to each other."""

    side: int  # 0 for negative, 1 for positive
    parents: slice
    children: slice


@dataclass(frozen=True, eq=False)
class TreeShape:
    """The tree, its nodes renumbered level by level, its coefficients cut by cut.

    Within a level the negative children of the level above come first, so that a few
    `Edges` hold a whole level and what goes up or down the tree is done a level at a
    time. Coefficients are ordered so that those on either side of a cut are contiguous.
    """

    order: list[int]  # our node -> the problem's node
    negative: list[int]  # -1 for a leaf
    positive: list[int]
    levels: list[slice]  # nodes of each level, the root's first
    edges: list[list[Edges]]  # from each level to the next
    nodes: list[int]  # place among the coefficients -> our node
    place: list[int]  # our node -> place among the coefficients
    columns: list[slice]  # of each node's coefficients
    cuts: list[Cut]

    @cached_property
    def downwards(self) -> list[Edges]:
        """All edges, the root's first."""
        return [edge for edges in self.edges for edge in edges]

    @cached_property
    def upwards(self) -> list[tuple[slice, list[Edges]]]:
        """Each level with the edges below it, the lowest level first."""
        return list(zip(self.levels, self.edges, strict=True))[::-1]

    @property
    def n_coef(self) -> int:
        """Number of coefficients of all nodes (p)."""
        return int(self.columns[self.nodes[-1]].stop)

    def coefficients(self) -> NDArray[np.intp]:
        """Position of each of our coefficients among the problem's."""
        widths = np.zeros(len(self.order), dtype=np.intp)
        for ours, node in enumerate(self.order):
            widths[node] = self.columns[ours].stop - self.columns[ours].start
        ends = np.cumsum([0, *widths])
        nodes = [self.order[ours] for ours in self.nodes]
        return np.concatenate([np.arange(ends[k], ends[k + 1]) for k in nodes])

    @classmethod
    def of(cls, problem: SurrogateProblem) -> TreeShape:
        """Shape of a problem's tree."""
        children = (problem.negative.tolist(), problem.positive.tolist())
        levels = [[0]]
        while levels[-1]:
            below = [side[node] for side in children for node in levels[-1]]
            levels.append([node for node in below if node >= 0])
        order = [node for level in levels for node in level]
        ours = {node: k for k, node in enumerate(order)} | {-1: -1}
        negative, positive = ([ours[side[node]] for node in order] for side in children)
        ends = np.cumsum([0] + [len(level) for level in levels[:-1]]).tolist()
        slices = [slice(*between) for between in pairwise(ends)]
        edges = [
            [
                run
                for side, child in enumerate((negative, positive))
                for run in _runs(side, range(level.start, level.stop), child)
            ]
            for level in slices
        ]
        widths = [problem.n_features[node] for node in order]
        nodes, cuts = divide(negative, positive, widths)
        place = np.argsort(nodes).tolist()
        ends = np.cumsum([0, *(widths[j] for j in nodes)]).tolist()
        columns = [slice(ends[at], ends[at + 1]) for at in place]
        return cls(
            order, negative, positive, slices, edges, nodes, place, columns, cuts
        )


def _runs(side: int, level: Iterable[int], child: list[int]) -> list[Edges]:
    """Edges of a level and a side, as few as contiguous parents allow."""
    runs: list[Edges] = []
    for j in level:
        if child[j] < 0:
            continue
        if runs and runs[-1].parents.stop == j:
            last = runs.pop()
            runs.append(
                Edges(
                    side,
                    slice(last.parents.start, j + 1),
                    slice(last.children.start, child[j] + 1),
                )
            )
        else:
            runs.append(Edges(side, slice(j, j + 1), slice(child[j], child[j] + 1)))
    return runs


def fill_drops(tree: TreeShape, v: Array, drops: Array) -> Array:
    """Fill in the drops v_j - v_child over each node's edges; v of a leaf is 0."""
    drops[...] = v
    for edge in tree.downwards:
        drops[edge.side, edge.parents, :] -= v[edge.children, :]
    return drops


def outflow(tree: TreeShape, flow: Array) -> Array:
    """Adjoint of `fill_drops`: what flows out of each node, less what flows in."""
    total = flow[0, ...] + flow[1, ...]
    for edge in tree.downwards:
        total[edge.children, :] -= flow[edge.side, edge.parents, :]
    return total


# cuts ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """An edge of the tree."""

    parent: int
    side: int  # 0 for negative, 1 for positive
    child: int


@dataclass(frozen=True)
class Cut:
    """An edge that divides some nodes that hang together: those above it, those below."""

    node: int  # the lower end of the edge
    above: slice  # places of the nodes on either side; the second follows on the first
    below: slice
    rows: slice  # the same of their coefficients
    columns: slice
    # Edges from the cut one up to the topmost node, each with the child on the other side
    # of its parent, or -1 if that is not among the nodes.
    climb: tuple[tuple[Step, int], ...]
    aside: tuple[Step, ...]  # edges below such children, parents first
    down: tuple[Step, ...]  # edges below the cut, parents first


def divide(
    negative: list[int], positive: list[int], widths: list[int]
) -> tuple[list[int], list[Cut]]:
    """Cut a tree near its middle, and so on down to single nodes.

    A child, -1 for a leaf, comes after its parent; `widths` are the numbers of coefficients
    of nodes. Returns the node at each place, so that both sides of every cut are
    contiguous, and the cuts, the widest first.
    """
    above = {
        child: Step(parent, side, child)
        for side, children in enumerate((negative, positive))
        for parent, child in enumerate(children)
        if child >= 0
    }
    halves: list[tuple[int, list[int], list[int]]] = []
    parts = [list(range(len(widths)))]
    while any(len(part) > 1 for part in parts):
        halved = []
        for part in parts:
            if len(part) == 1:
                halved.append(part)
                continue
            node = _middle(part, above, widths)
            lower = _hanging_from(node, part, above)
            upper = [k for k in part if k not in set(lower)]
            halves.append((node, upper, lower))
            halved += [upper, lower]
        parts = halved
    order = [node for (node,) in parts]
    place = {node: at for at, node in enumerate(order)}
    ends = [0, *accumulate(widths[node] for node in order)]

    def cut(node: int, upper: list[int], lower: list[int]) -> Cut:
        start = min(place[k] for k in upper)
        places = [start, start + len(upper), start + len(upper) + len(lower)]
        a, b, c = (ends[at] for at in places)
        climb, at = [], node
        while at != upper[0]:
            step = above[at]
            children = (negative[step.parent], positive[step.parent])
            other = children[1 - step.side]
            climb.append((step, other if other in upper else -1))
            at = step.parent
        passed = {upper[0]} | {end for step, o in climb for end in (step.child, o)}
        return Cut(
            node,
            slice(*places[:2]),
            slice(*places[1:]),
            slice(a, b),
            slice(b, c),
            tuple(climb),
            tuple(above[k] for k in upper if k not in passed),
            tuple(above[k] for k in lower if k != node),
        )

    return order, [cut(*half) for half in halves]


def _middle(part: list[int], above: dict[int, Step], widths: list[int]) -> int:
    """The node of a part whose subtree there is nearest to half of it."""
    size = {node: widths[node] for node in part}
    for node in reversed(part[1:]):
        size[above[node].parent] += size[node]
    return min(part[1:], key=lambda node: (abs(size[part[0]] - 2 * size[node]), node))


def _hanging_from(node: int, part: list[int], above: dict[int, Step]) -> list[int]:
    """The nodes of a part that are below a node, that one first."""
    hanging = {node}
    for k in part:
        if k in above and above[k].parent in hanging:
            hanging.add(k)
    return [k for k in part if k in hanging]
