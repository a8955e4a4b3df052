"""`RoutingProblem`: which leaf each example should reach, and the true risk of doing so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sensortree.program.risk import savings, savings_lost
from sensortree.program.surrogate import SurrogateProblem
from sensortree.tree.tree import SensorTree
from sensortree.types import Array, Mask, Rows

Coef = list[Array]


@dataclass(frozen=True, eq=False)
class RoutingProblem:
    """A tree, what its decision functions see, and what each leaf would cost.

    Attributes
    ----------
    tree : SensorTree
    features : tuple of n_nodes arrays of shape (n_samples, D_j)
        What each decision function is linear in, the intercept column last. Nodes that
        know the same share one array.
    leaf_risk : ndarray of shape (n_samples, n_leaves)
    weight : ndarray of shape (n_samples,)
    max_risk : float
        The paper's R_max: all sensors bought and the worst loss.
    n_classes : int, default=2
        How many probabilities a posterior among the features has.
    """

    tree: SensorTree
    features: tuple[Array, ...]
    leaf_risk: Array
    weight: Array
    max_risk: float
    n_classes: int = 2

    @property
    def n_features(self) -> tuple[int, ...]:
        """Length of each node's coefficients (D_j)."""
        return tuple(features.shape[1] for features in self.features)

    def with_risk(self, leaf_risk: Array) -> RoutingProblem:
        """Give the same problem with other leaf risks."""
        return replace(self, leaf_risk=leaf_risk)

    def take(self, rows: NDArray[np.intp]) -> RoutingProblem:
        """Give the same problem on some of the rows."""
        taken = {id(features): features[rows] for features in self.features}
        return RoutingProblem(
            self.tree,
            tuple(taken[id(features)] for features in self.features),
            self.leaf_risk[rows],
            self.weight[rows],
            self.max_risk,
            self.n_classes,
        )

    def on_subtree(self, tree: SensorTree, nodes: Rows, leaves: Mask) -> RoutingProblem:
        """Give the same problem on a tree of which some nodes and leaves are left."""
        features = tuple(self.features[j] for j in nodes)
        kept = self.leaf_risk[:, leaves]
        return replace(self, tree=tree, features=features, leaf_risk=kept)

    def margins(self, coef: Sequence[Array]) -> Array:
        """Values of every decision function, (n_samples, n_nodes)."""
        columns = [phi @ theta for phi, theta in zip(self.features, coef, strict=True)]
        return np.stack(columns, axis=1) if columns else np.empty((len(self.weight), 0))

    def route(self, coef: Sequence[Array]) -> Rows:
        """The leaf that each example is led to, (n_samples,)."""
        return self.tree.route(self.margins(coef))

    def visits(self, coef: Sequence[Array]) -> Rows:
        """How many examples are led to each leaf, (n_leaves,)."""
        return np.bincount(self.route(coef), minlength=self.tree.n_leaves)

    def risks(self, coef: Sequence[Array]) -> Array:
        """Risk of each example at the leaf it is led to, times weight over mean weight."""
        leaf = self.route(coef)
        reached = np.take_along_axis(self.leaf_risk, leaf[:, None], axis=1)[:, 0]
        return np.asarray(self.weight / self.weight.mean() * reached)

    def risk(self, coef: Sequence[Array]) -> float:
        """Mean risk of the leaves that the decision functions lead to: no surrogate."""
        return float(self.risks(coef).mean())

    def constant_risk(self) -> Array:
        """Mean risk of sending every example to one leaf, (n_leaves,)."""
        return np.asarray(self.weight @ self.leaf_risk / self.weight.sum())

    def constant_coef(self, leaf: int) -> Coef:
        """Decision functions that send every example to one leaf: intercepts alone."""
        return [
            sign * np.eye(1, n, n - 1)[0]
            for sign, n in zip(self.tree.path_signs[leaf], self.n_features, strict=True)
        ]

    def worst(self, savings: str) -> Array | float:
        """What savings are against: "published" is R_max, "tight" each example's worst."""
        if savings == "published":
            return self.max_risk
        return np.asarray(self.leaf_risk.max(axis=1))

    def surrogate(self, max_risk: Array | float) -> SurrogateProblem:
        """Give the convex bound of the risk; savings are against `max_risk` (R_max)."""
        kept = self.weight[:, None] * savings(self.leaf_risk, max_risk)
        tree = self.tree
        return SurrogateProblem(
            tree.negative,
            tree.positive,
            self.features,
            *savings_lost(kept, tree.positive_paths, tree.negative_paths),
        )
