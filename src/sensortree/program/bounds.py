"""Lower bounds of the optimum, from pulls that are within their capacities.

The bound is the sum of all pulls, minus what coefficients could gain from the part of the
coupling r that is left where it should not be. With a ridge penalty that is

    sum_d (|r_d| - l1)_+² / (2 l2),

and without, where coefficients could gain without end, we prove that what is left can be
made 0, and take off what that costs at most. Let e be the part of r outside [-l1, l1] and
room_i how far example i's pull may move. For Xᵀ δ = -e take δ = -room² X (Xᵀ room² X)⁻¹ e.
With room X = Q C, Q orthogonal, and s = C⁻ᵀ e this is δ_i = -room_i (Q s)_i: no pull moves
further than it may if |s| <= 1, and the sum of all pulls changes by at most |room| |s|.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensortree.program.arrays import Array, namespace, to_numpy
from sensortree.program.columns import Columns
from sensortree.program.directions import exact_product, spread
from sensortree.program.feasible import restore_coupling
from sensortree.program.surrogate import Penalty

Vector = NDArray[np.float64]

EPSILON = float(np.finfo(float).eps)


@dataclass(frozen=True)
class Bound:
    """A lower bound, the residual that was left, and what the bound loses by it.

    Attributes
    ----------
    value : float
        The bound for coefficients that gain nothing from the residual.
    residual : float
    slope : float
        What one unit of coefficients can gain from the residual: of their norm on scaled
        columns without a penalty, of |θ|₁ with an l1 penalty.
    """

    value: float
    residual: float
    slope: float = 0.0


def ridge_bound(
    columns: Sequence[Columns],
    coef: Sequence[Vector],
    pulls: Sequence[Any],
    capacities: Sequence[tuple[Any, Any]],
    penalty: Penalty,
) -> Bound:
    """The dual objective with a ridge penalty, for all coefficients."""
    value, residual = 0.0, 0.0
    for node, theta, pull, (high, low) in zip(
        columns, coef, pulls, capacities, strict=True
    ):
        moved = restore_coupling(
            node.array,
            node.coupling,
            pull,
            -low,
            high,
            aim=penalty.l2 * theta / node.scale,
            slack=penalty.l1 / node.scale,
        )
        coupling = to_numpy(node.features.T @ moved)
        excess = np.maximum(np.abs(coupling) - penalty.l1, 0.0)
        bound = _dual_value(moved, high, low)
        bound -= float(excess @ excess) / (2 * penalty.l2)
        left = np.abs(excess - penalty.l2 * np.abs(theta)) / node.scale
        value += bound
        residual = max(residual, float(left.max(initial=0.0)))
    return Bound(value, residual)


def free_bound(
    columns: Sequence[Columns],
    pulls: Sequence[Any],
    capacities: Sequence[tuple[Any, Any]],
    l1: float,
    shrink: float,
    most: float,
) -> Bound:
    """The dual objective without a ridge penalty, made feasible by proof.

    `shrink` is the share by which pulls are made smaller, to give them room; `most` is
    what the repair may cost.
    """
    value, residual, slope = 0.0, 0.0, 0.0
    for node, pull, (high, low) in zip(columns, pulls, capacities, strict=True):
        slack = l1 / node.scale
        moved = restore_coupling(
            node.turned,
            node.coupling if node.turn is None else node.turned_coupling,
            pull,
            -low,
            high,
            aim=np.zeros(node.turned.shape[1]),
            slack=slack if node.turn is None else np.zeros(node.turned.shape[1]),
            precisely=not l1,
        )
        # Each pull a little towards 0, where the coupling is 0: all of them get room.
        moved = moved * (1.0 - shrink)
        if l1 > 0 and most == np.inf:  # or so far that the coupling is in its place
            outside = np.max(np.abs(node.coupling(moved)) / slack)
            moved = moved / max(1.0, float(outside))
        room = namespace(moved).minimum(high - moved, moved + low)
        cost, left = _cost_of_repair(node, moved, slack, room, most / len(columns))
        value += _dual_value(moved, high, low) - cost
        residual = max(residual, float(left.max()))
        if l1 > 0:
            slope = max(slope, float((left * node.scale).max()))
        else:
            slope += float(np.linalg.norm(left))
    return Bound(value, residual, slope)


def _cost_of_repair(
    columns: Columns, pull: Array, slack: Vector, room: Array, spare: float
) -> tuple[float, Vector]:
    """What it costs at most to bring a coupling within `slack`, and what is left to do.

    Parameters
    ----------
    columns : Columns
    pull : Array of shape (n_samples,)
    slack : ndarray of shape (D,)
    room : Array of shape (n_samples,)
        How far each pull may move.
    spare : float
        What may be spent. Directions that would cost more are left.
    """
    xp = namespace(pull)
    norms, sizes, turn = spread(columns.array, room)
    n_columns = norms.size
    sizes = sizes - 1e-14 * n_columns * sizes[0]  # rounding in C
    length = float(xp.sum(room * room)) ** 0.5
    most = min(1.0, spare / length if length else 1.0) / n_columns**0.5
    rounding = pull.shape[0] * EPSILON * float(xp.sum(xp.abs(pull)))
    for exact in (False, True):  # the first is faster, and mostly enough
        if exact:
            coupling = exact_product(columns.array, pull)
            doubt = EPSILON * rounding + EPSILON * np.abs(coupling).max()
        else:
            coupling, doubt = columns.coupling(pull), rounding
        excess = coupling - np.clip(coupling, -slack, slack)
        along = np.abs(turn @ (excess / norms)) + float(np.sum(doubt / norms))
        proved = along <= most * sizes
        if proved.all():
            break
    moved = proved & (along > 0)
    moves = along[moved] / sizes[moved]
    cost = length * float(np.linalg.norm(moves))
    return cost, norms * (np.abs(turn[~proved]).T @ along[~proved])


def _dual_value(pull: Array, high: Array, low: Array) -> float:
    """Sum of a node's pulls: for a given difference their largest sum fills one."""
    xp = namespace(pull)
    return float(xp.sum(xp.minimum(2 * high - pull, pull + 2 * low)))
