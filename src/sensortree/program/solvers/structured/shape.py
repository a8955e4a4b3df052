"""`TreeShape`: the tree as the solver walks it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sensortree.program.arrays import Array
from sensortree.program.solvers.structured.cuts import Cut, divide
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
    for edges in tree.edges:
        for edge in edges:
            drops[edge.side, edge.parents, :] -= v[edge.children, :]
    return drops


def outflow(tree: TreeShape, flow: Array) -> Array:
    """Adjoint of `fill_drops`: what flows out of each node, less what flows in."""
    total = flow[0, ...] + flow[1, ...]
    for edges in tree.edges:
        for edge in edges:
            total[edge.children, :] -= flow[edge.side, edge.parents, :]
    return total
