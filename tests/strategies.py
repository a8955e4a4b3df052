"""Random trees, savings, decisions and problems, for property tests."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from sensortree import Leaf, Node, SensorTree
from sensortree.program import SurrogateProblem
from sensortree.program.risk import savings_lost


def random_tree(
    rng: np.random.Generator, n_leaves: int, n_sensors: int = 6
) -> SensorTree:
    """A tree of any shape, each child knowing at least what its parent knows."""
    names = [f"s{i}" for i in range(n_sensors)]

    def below(known: frozenset[str], leaves: int):
        known = known | {n for n in names if rng.random() < 0.3}
        if leaves == 1:
            return Leaf(known)
        left = int(rng.integers(1, leaves))
        return Node(known, below(known, left), below(known, leaves - left))

    return SensorTree(below(frozenset(), n_leaves))


def random_savings(
    rng: np.random.Generator, n_samples: int, n_leaves: int, tight: bool = False
) -> np.ndarray:
    """Savings as they occur: right or wrong, minus a price per leaf."""
    right = rng.random((n_samples, n_leaves)) < 0.7
    kept = right + 0.3 * rng.random(n_leaves)
    return kept - kept.min(axis=1, keepdims=True) if tight else kept


def random_problem(
    seed: int,
    n_samples: int = 60,
    n_leaves: int = 5,
    n_features: int = 4,
    tight: bool = False,
) -> SurrogateProblem:
    """A surrogate problem on a random tree with random features and an intercept."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, n_leaves)
    kept = random_savings(rng, n_samples, n_leaves, tight)
    features = [
        np.c_[rng.normal(size=(n_samples, n_features - 1)), np.ones(n_samples)]
        for _ in range(tree.n_nodes)
    ]
    lost = savings_lost(kept, tree.positive_paths, tree.negative_paths)
    return SurrogateProblem(tree.negative, tree.positive, features, *lost)


seeds = st.integers(0, 2**32 - 1)
leaf_counts = st.integers(1, 9)


@st.composite
def trees_with_data(draw, n_samples: int = 20):
    """(tree, savings, decisions): one random tree and data for it."""
    rng = np.random.default_rng(draw(seeds))
    tree = random_tree(rng, draw(leaf_counts))
    kept = random_savings(rng, n_samples, tree.n_leaves, draw(st.booleans()))
    decisions = rng.normal(size=(n_samples, tree.n_nodes)) * 2
    decisions[rng.random(decisions.shape) < 0.1] = 0.0  # zero is negative
    return tree, kept, decisions
