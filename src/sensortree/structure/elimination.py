"""`elimination_order`: sensors by how long boosted trees cannot do without them.

Trees are boosted on all sensors, those that lower the loss least for their price are left
out, and so on with the rest. Sensors that tell something only together are found in this
way; a search that adds one at a time does not see them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensortree.constants import ELIMINATED_PART, ELIMINATED_SINGLY
from sensortree.leaves.coding import Coded, Coding, side_by_side
from sensortree.leaves.sklearn_private import boosted_rounds
from sensortree.types import Array

# Boosted trees for a target and so many rows and columns, not fitted yet.
Trees = Callable[[NDArray[Any], tuple[int, ...], Coding], Any]


def elimination_order(
    blocks: Sequence[Array | Coded],
    y: NDArray[Any],
    weight: Array,
    trees: Trees,
    prices: Array,
    out_of_time: Callable[[], bool] = lambda: False,
) -> list[int]:
    """Positions of sensors, the one that was left out last first.

    Parameters
    ----------
    blocks : sequence of n_sensors arrays of shape (n_rows, width), or Coded
    y : ndarray of shape (n_rows,)
        Classes as integers, or numbers.
    weight : ndarray of shape (n_rows,)
    trees : callable
        Gives trees to be boosted.
    prices : ndarray of shape (n_sensors,)
    out_of_time : callable
        Asked before trees are boosted; what is left then is in declared order.
    """
    left, gone = list(range(len(blocks))), []
    while len(left) > 1 and not out_of_time():
        saved = loss_saved([blocks[j] for j in left], y, weight, trees)
        rate = saved / np.maximum(prices[left], np.finfo(float).tiny)
        n_gone = 1 if len(left) <= ELIMINATED_SINGLY else len(left) // ELIMINATED_PART
        # Of equals the last goes first, so that the first is kept.
        least = np.lexsort((-np.arange(len(left)), rate))[:n_gone].tolist()
        gone += [left[k] for k in least]
        left = [j for k, j in enumerate(left) if k not in least]
    return left + gone[::-1]


def loss_saved(
    blocks: Sequence[Array | Coded], y: NDArray[Any], weight: Array, trees: Trees
) -> Array:
    """How much splits on each sensor lower the loss of boosted trees, (n_sensors,)."""
    X, owner = side_by_side(blocks)
    saved = np.zeros(len(blocks))
    if (y == y[0]).all():
        return saved
    # Bins take much longer with weights.
    own = None if (weight == weight[0]).all() else weight
    boosted = trees(y, X.shape, X.coding).fit(X.values, y, own)
    for nodes in (tree for each in boosted_rounds(boosted) for tree in each):
        splits = nodes[nodes["is_leaf"] == 0]
        np.add.at(saved, owner[splits["feature_idx"]], splits["gain"])
    return saved
