"""`TreeShape`: the tree as the solver walks it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sensortree.program.surrogate import SurrogateProblem


@dataclass(frozen=True, eq=False)
class TreeShape:
    """The tree, renumbered depth first, so that a subtree's columns are contiguous."""

    order: list[int]  # our node -> the problem's node
    negative: list[int]  # -1 for a leaf
    positive: list[int]
    parent: list[int]
    is_negative: list[bool]  # whether a node is its parent's negative child
    columns: list[slice]  # of each node's coefficients
    below: list[slice]  # of the coefficients of each node's subtree, itself included
    size: list[int]  # number of nodes in each node's subtree

    def nodes_below(self, node: int) -> range:
        """The nodes of a subtree; none for a leaf."""
        return range(node, node + self.size[node]) if node >= 0 else range(0)

    @classmethod
    def of(cls, problem: SurrogateProblem) -> TreeShape:
        """Shape of a problem's tree."""
        order: list[int] = []
        stack = [0]
        while stack:
            node = stack.pop()
            order.append(node)
            children = (int(problem.positive[node]), int(problem.negative[node]))
            stack += [child for child in children if child >= 0]
        place = {node: ours for ours, node in enumerate(order)} | {-1: -1}
        negative = [place[int(problem.negative[node])] for node in order]
        positive = [place[int(problem.positive[node])] for node in order]
        parent, size = [-1] * len(order), [1] * len(order)
        for j in reversed(range(len(order))):
            for child in (negative[j], positive[j]):
                if child >= 0:
                    parent[child] = j
                    size[j] += size[child]
        ends = np.cumsum([0] + [problem.n_features[node] for node in order]).tolist()
        return cls(
            order,
            negative,
            positive,
            parent,
            [p >= 0 and negative[p] == j for j, p in enumerate(parent)],
            [slice(ends[j], ends[j + 1]) for j in range(len(order))],
            [slice(ends[j], ends[j + size[j]]) for j in range(len(order))],
            size,
        )
