"""`Columns`: what a node's coefficients multiply, scaled to size 1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sensortree.program.arrays import Array, like, to_numpy
from sensortree.program.directions import column_sizes, directions, exact_product
from sensortree.program.surrogate import Penalty

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Columns:
    """What a node's coefficients multiply, and the same columns scaled to size 1.

    Attributes
    ----------
    features : Array of shape (n_samples, D_j)
    array : Array of shape (n_samples, D_j)
        The scaled columns X.
    scale : ndarray of shape (D_j,)
    turn : ndarray of shape (D_j, k), or None
        Orthogonal combinations, if there are no penalties and the columns nearly depend
        on each other.
    turned : Array of shape (n_samples, k)
    """

    features: Array
    array: Array
    scale: Vector
    turn: Vector | None
    turned: Array

    @classmethod
    def of(cls, features: Array, penalty: Penalty) -> Columns:
        """Scale a node's columns; without penalties, turn them too where that helps."""
        scale = column_sizes(features)
        if not penalty.l2:  # powers of 2: no digit of the columns is changed
            scale = np.exp2(np.ceil(np.log2(scale)))
        array = features * like(1.0 / scale, features)
        turn = None if penalty.l2 or penalty.l1 else directions(array)
        turned = array if turn is None else array @ like(turn, array)
        return cls(features, array, scale, turn, turned)

    def coupling(self, pull: Array) -> Vector:
        """Xᵀ pull."""
        return to_numpy(self.array.T @ pull)

    def turned_coupling(self, pull: Array) -> Vector:
        """Coupling of the orthogonal combinations."""
        assert self.turn is not None
        return np.asarray(self.turn.T @ exact_product(self.array, pull))
