"""Trim a tree to the decisions that pay on rows they were not learned from."""

from __future__ import annotations

import numpy as np

from sensortree.learning.validated import Rehearsed
from sensortree.types import Mask


def trim(rehearsed: Rehearsed, by: float = 0.0) -> Rehearsed:
    """Take decisions out that do not lower the risk, from the leaves up.

    Who comes by such a decision goes where the risk is less for all of them.

    Parameters
    ----------
    rehearsed : Rehearsed
    by : float, default=0.0
        Standard errors by which a decision must lower the risk.
    """
    if not rehearsed.parts or not rehearsed.posed.problem.tree.n_nodes:
        return rehearsed
    return rehearsed.on_leaves(leaves_that_pay(rehearsed, by))


def leaves_that_pay(rehearsed: Rehearsed, by: float) -> Mask:
    """Leaves that decisions lead to which lower the risk by so many errors, (n_leaves,)."""
    observed = rehearsed.posed.observed
    tree = observed.tree
    judged = [(observed.take(test), coef) for test, coef in rehearsed.parts]
    margins = np.vstack([part.margins(coef) for part, coef in judged])
    risk = np.vstack([part.leaf_risk for part, _ in judged])
    weight = np.concatenate([part.weight for part, _ in judged])
    passed = tree.passed(margins)
    below = np.empty(margins.shape)  # risk of each example, put at each node
    ways = np.zeros(tree.n_nodes, dtype=int)  # -1 or 1: one way for all
    for node in reversed(range(tree.n_nodes)):
        negative, positive = (
            risk[:, ~child[node]] if child[node] < 0 else below[:, child[node]]
            for child in tree.children
        )
        here = passed[:, node]
        dearer = weight[here] @ (negative - positive)[here] > 0
        single = positive if dearer else negative
        decided = np.where(margins[:, node] > 0, positive, negative)
        gain = (weight * (single - decided))[here]
        if gain.sum() <= by * np.linalg.norm(gain):
            ways[node], decided = 1 if dearer else -1, single
        below[:, node] = decided
    signs = tree.path_signs
    return np.asarray(((signs == ways) | (signs == 0) | (ways == 0)).all(axis=1))
