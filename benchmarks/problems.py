"""Surrogate problems to time solvers on: synthetic ones of any size, and Forest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from experiments.data import arrays_of
from sensortree.program import SurrogateProblem


def balanced_children(n_leaves: int) -> tuple[list[int], list[int]]:
    """Children of the nodes of a balanced tree, numbered depth first, -1 for a leaf."""
    negative, positive = [-1] * (n_leaves - 1), [-1] * (n_leaves - 1)
    made = 0

    def build(leaves: int) -> int:
        nonlocal made
        node, made = made, made + 1
        if leaves // 2 > 1:
            negative[node] = build(leaves // 2)
        if leaves - leaves // 2 > 1:
            positive[node] = build(leaves - leaves // 2)
        return node

    if n_leaves > 1:
        build(n_leaves)
    return negative, positive


def chain_children(n_leaves: int) -> tuple[list[int], list[int]]:
    """Children of the nodes of a chain: every negative child is a leaf."""
    n_nodes = n_leaves - 1
    return [-1] * n_nodes, [*range(1, n_nodes), -1][:n_nodes]


CHILDREN = {"balanced": balanced_children, "chain": chain_children}


def from_savings(
    features: np.ndarray,
    savings: np.ndarray,
    tight: bool = True,
    shape: str = "balanced",
) -> SurrogateProblem:
    """A tree of a shape whose nodes all see the same features."""
    if tight:
        savings = savings - savings.min(axis=1, keepdims=True)
    negative, positive = CHILDREN[shape](savings.shape[1])
    n_nodes = len(negative)
    empty = np.zeros((len(savings), n_nodes))
    P, N = SurrogateProblem(
        negative, positive, [features] * n_nodes, empty, empty
    ).paths
    return SurrogateProblem(
        negative, positive, [features] * n_nodes, savings @ P, savings @ N
    )


def synthetic(
    n_samples: int,
    n_leaves: int,
    n_features: int,
    seed: int = 0,
    shape: str = "balanced",
) -> SurrogateProblem:
    """Leaves are right with a probability that is logistic in the features."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features - 1))
    scores = 0.5 * X @ rng.normal(size=(n_features - 1, n_leaves))
    right = rng.random((n_samples, n_leaves)) < 1 / (1 + np.exp(-scores))
    savings = right + 0.3 * rng.random(n_leaves)
    return from_savings(np.c_[X, np.ones(n_samples)], savings, shape=shape)


def with_own_features(problem: SurrogateProblem) -> SurrogateProblem:
    """The same problem with a copy of its features at each node."""
    return replace(problem, features=[array.copy() for array in problem.features])


def forest(
    n_samples: int | None = None, n_leaves: int = 16, cost_weight: float = 0.005
) -> SurrogateProblem:
    """Forest cover, class 2 against the rest, 54 features and an intercept at each node.

    Leaf k knows elevation and k random features; it classifies by least squares on these
    and their squares, fitted on 20,000 random rows.
    """
    rng = np.random.default_rng(0)
    X, label = arrays_of("covtype", "X", "y")
    X, y = X.astype(float), 2.0 * (label == 1) - 1
    X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)
    order = rng.permutation(len(X))
    rows = np.sort(order[:n_samples])
    risk = np.empty((len(rows), n_leaves))
    for leaf in range(n_leaves):
        known = np.unique(np.r_[0, rng.choice(54, 1 + leaf, replace=False)])
        basis = np.c_[np.ones(len(X)), X[:, known], X[:, known] ** 2]
        some = basis[order[:20_000]]
        gram = some.T @ some + 1e-3 * np.eye(some.shape[1])
        weights = np.linalg.solve(gram, some.T @ y[order[:20_000]])
        wrong = np.sign(basis[rows] @ weights) != y[rows]
        risk[:, leaf] = wrong + cost_weight * len(known)
    return from_savings(np.c_[X[rows], np.ones(len(rows))], risk.max() - risk)
