"""What rows lose and pay on a tree, exactly and as the bound that is minimised.

`RoutingProblem` holds the data of both: what each node sees, what each leaf risks.

Each function returns one value per example; the caller sums or averages. Shapes:
``leaf_risk``, ``savings`` (n_samples, n_leaves); ``decisions`` (n_samples, n_nodes);
``positive_paths`` (P), ``negative_paths`` (N) (n_leaves, n_nodes).

The paper drops the constant R_max - sum_k π_k from its linear program; every function
here restores it, so that risks and surrogates can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sensortree.program.surrogate import SurrogateProblem
from sensortree.tree.tree import SensorTree
from sensortree.types import Array, Mask, Rows

Paths = NDArray[np.bool_]
Coef = list[Array]


def leaf_risk(error: ArrayLike, leaf_cost: ArrayLike, cost_weight: float) -> Array:
    """Leaf risk (R_k): loss at each leaf plus the weighted price of its sensors.

    Parameters
    ----------
    error : array-like of shape (n_samples, n_leaves)
        1 where the leaf's classifier is wrong, 0 where it is right; or a loss in money.
    leaf_cost : array-like of shape (n_leaves,) or (n_samples, n_leaves)
        Price of the sensors known at each leaf.
    cost_weight : float
        Error per unit of cost (α in the paper).

    Examples
    --------
    >>> leaf_risk([[1, 0]], leaf_cost=[0.0, 3.0], cost_weight=0.1)
    array([[1. , 0.3]])
    """
    return np.asarray(error, float) + cost_weight * np.asarray(leaf_cost, float)


def max_risk(costs: ArrayLike, cost_weight: float, loss: float = 1.0) -> float:
    """Maximal risk (R_max): all sensors are bought and the answer is wrong.

    Examples
    --------
    >>> max_risk([1.0, 3.0], cost_weight=0.1)
    1.4
    """
    return loss + cost_weight * float(np.sum(costs))


def savings(leaf_risk: ArrayLike, max_risk: ArrayLike) -> Array:
    """Savings (π; eq.savings): what stopping at a leaf keeps, against the worst case.

    Parameters
    ----------
    leaf_risk : array-like of shape (n_samples, n_leaves)
    max_risk : float or array-like of shape (n_samples,)
        At least as large as each leaf risk, or savings would be negative.

    Examples
    --------
    >>> savings([[1.0, 0.3]], max_risk=1.4)
    array([[0.4, 1.1]])
    """
    kept = np.reshape(np.asarray(max_risk, float), (-1, 1)) - np.asarray(leaf_risk)
    # Rounding may leave -1e-17 where the worst case is met exactly.
    return np.asarray(np.maximum(kept, 0.0))


def savings_lost(
    savings: Array, positive_paths: Paths, negative_paths: Paths
) -> tuple[Array, Array]:
    """Savings lost by each decision: those of the leaves it makes unreachable.

    Going negative loses the sum of π over C_j^p, the leaves on the node's positive side;
    going positive that over C_j^n. Both (n_samples, n_nodes).
    """
    return savings @ positive_paths, savings @ negative_paths


def hinge(margin: ArrayLike) -> Array:
    """Hinge (φ): max(0, 1 + z), which bounds 1[z > 0]; φ(-z) bounds 1[z <= 0]."""
    return np.maximum(0.0, 1.0 + np.asarray(margin, float))


def product_form(
    leaf_risk: Array, decisions: Array, positive_paths: Paths, negative_paths: Paths
) -> Array:
    """Risk as a sum over leaves of products of indicators (eq.erm_prod_ind)."""
    taken = decisions[:, None, :] > 0
    agrees = np.where(positive_paths, taken, True) & np.where(
        negative_paths, ~taken, True
    )
    reached = agrees.prod(axis=2)
    return np.asarray((leaf_risk * reached).sum(axis=1))


def max_form(
    savings: Array,
    max_risk: ArrayLike,
    decisions: Array,
    positive_paths: Paths,
    negative_paths: Paths,
) -> Array:
    """Risk as one maximum over paths of sums of indicators (eq.erm_tree)."""
    taken = (decisions > 0).astype(float)
    paths = (positive_paths, negative_paths)
    return _largest_path(savings, max_risk, taken, 1 - taken, *paths)


def surrogate_risk(
    savings: Array,
    max_risk: ArrayLike,
    decisions: Array,
    positive_paths: Paths,
    negative_paths: Paths,
) -> Array:
    """Surrogate (R_φ): the max form with a hinge for each indicator; convex in g."""
    paths = (positive_paths, negative_paths)
    above, below = hinge(decisions), hinge(-np.asarray(decisions))
    return _largest_path(savings, max_risk, above, below, *paths)


def _largest_path(
    savings: Array,
    max_risk: ArrayLike,
    if_positive: Array,
    if_negative: Array,
    positive_paths: Paths,
    negative_paths: Paths,
) -> Array:
    """max_k w_p,k · if_positive + w_n,k · if_negative, with the paper's weights w.

    And R_max - sum_k π_k, which the paper's linear program leaves out.
    """
    on_negative, on_positive = savings_lost(savings, positive_paths, negative_paths)
    paths: Any = on_positive * if_positive @ positive_paths.T
    paths = paths + on_negative * if_negative @ negative_paths.T
    constant = np.asarray(max_risk, float) - savings.sum(axis=1)
    return np.asarray(constant + paths.max(axis=1))


@dataclass(frozen=True, eq=False)
class RoutingProblem:
    """Which leaf each example should reach: what decisions see, what leaves would cost."""

    tree: SensorTree
    # What each decision function is linear in, (n_samples, D_j), the intercept column
    # last. Nodes that know the same share one array.
    features: tuple[Array, ...]
    leaf_risk: Array  # (n_samples, n_leaves)
    weight: Array  # (n_samples,)
    max_risk: float  # the paper's R_max: all sensors bought and the worst loss
    n_classes: int = 2  # how many probabilities a posterior among the features has

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
        return replace(
            self,
            features=tuple(taken[id(features)] for features in self.features),
            leaf_risk=self.leaf_risk[rows],
            weight=self.weight[rows],
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
