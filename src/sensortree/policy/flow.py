"""`Flow`: where the training examples went in a tree, and what else they could have had."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sensortree.tree.tree import SensorTree
from sensortree.types import Array


@dataclass(frozen=True, eq=False)
class Flow:
    """Training examples on their way through a tree; losses are out of fold with ``cv``.

    Attributes
    ----------
    node_rows : ndarray of shape (n_nodes,)
        Examples, by weight, that come to each node.
    leaf_classes : ndarray of shape (n_leaves, n_classes)
        Examples of each class that end in each leaf.
    leaf_loss : ndarray of shape (n_nodes, n_leaves)
        Mean loss of each leaf's answers over the examples that come to a node; over all
        examples where none does.
    stop_loss : ndarray of shape (n_nodes,)
        Mean loss of answering at the node itself.
    kept_loss : ndarray of shape (n_nodes,)
        Mean loss of the leaves that those examples really go to.
    total_loss : float
        Mean loss of the policy over all examples.
    """

    node_rows: Array
    leaf_classes: Array
    leaf_loss: Array
    stop_loss: Array
    kept_loss: Array
    total_loss: float

    @property
    def leaf_rows(self) -> Array:
        """Examples, by weight, that end in each leaf, (n_leaves,)."""
        return np.asarray(self.leaf_classes.sum(axis=1))

    def share(self, rows: float) -> float:
        """A number of examples as a share of all."""
        return float(rows) / max(float(self.leaf_classes.sum()), 1e-300)


def measure_flow(
    tree: SensorTree,
    decisions: Array,
    loss_at: Array,
    stop_loss: Array,
    y: NDArray[np.intp],
    n_classes: int,
    weight: Array,
) -> Flow:
    """Send training examples through a tree, and average what becomes of them.

    Parameters
    ----------
    tree : SensorTree
    decisions : ndarray of shape (n_samples, n_nodes)
    loss_at : ndarray of shape (n_samples, n_leaves)
        Loss of each leaf's answer.
    stop_loss : ndarray of shape (n_samples, n_nodes)
        Loss of the answer at each node.
    y : ndarray of shape (n_samples,)
    n_classes : int
    weight : ndarray of shape (n_samples,)
    """
    leaf = tree.route(decisions)
    passed = tree.passed(decisions)
    kept = loss_at[np.arange(len(leaf)), leaf]
    classes = np.zeros((tree.n_leaves, n_classes))
    np.add.at(classes, (leaf, y), weight)
    share = passed * weight[:, None]
    node_rows = share.sum(axis=0)
    # A node that nobody comes to is judged by everybody.
    share[:, node_rows == 0] = weight[:, None]
    share /= share.sum(axis=0)
    return Flow(
        node_rows,
        classes,
        share.T @ loss_at,
        (share * stop_loss).sum(axis=0),
        share.T @ kept,
        float(weight @ kept / weight.sum()),
    )
