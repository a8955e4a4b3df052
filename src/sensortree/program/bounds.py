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

import numpy as np
from numpy.typing import NDArray

from sensortree.program.chunks import Chunks, totals
from sensortree.program.directions import joined_triangle, spread
from sensortree.program.feasible import (
    Columns,
    coupling_of,
    dual_values,
    exact_coupling,
    restore_coupling,
)
from sensortree.program.proof_rows import ProofRows
from sensortree.program.surrogate import Penalty

Vector = NDArray[np.float64]

EPSILON = float(np.finfo(float).eps)
# Share of the gap by which a coupling may be off, with a ridge penalty.
SMALL_SHARE = 1e-3


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
    rows: Chunks,
    columns: Sequence[Columns],
    coef: Sequence[Vector],
    penalty: Penalty,
    upper: float,
    asked: float,
) -> Bound:
    """The dual objective with a ridge penalty, for all coefficients.

    The coupling r is brought near l2 θ (and l1), where the bound is best. What is left,
    δ, costs at most |θ| |δ| + δ² / (2 l2). A small share of what is between the bound and
    the objective `upper`, or of the gap `asked` for, is little enough.
    """
    bound = _dual_objective(rows, columns, coef, penalty)
    spare = SMALL_SHARE * max(asked, upper - bound.value)

    def enough(j: int, off: Vector) -> bool:
        left = np.abs(off) * columns[j].scale
        cost = left @ np.abs(coef[j]) + left @ left / (2 * penalty.l2)
        return bool(cost <= spare / len(columns))

    moved = restore_coupling(
        rows,
        columns,
        aims=[
            penalty.l2 * t / node.scale for node, t in zip(columns, coef, strict=True)
        ],
        slacks=[penalty.l1 / node.scale for node in columns],
        enough=enough,
    )
    return _dual_objective(rows, columns, coef, penalty) if moved else bound


def _dual_objective(
    rows: Chunks, columns: Sequence[Columns], coef: Sequence[Vector], penalty: Penalty
) -> Bound:
    """The dual objective of the present pulls, with a ridge penalty."""
    value, residual = 0.0, 0.0
    for node, theta, pulled, coupling in zip(
        columns, coef, *dual_values(rows), strict=True
    ):
        excess = np.maximum(np.abs(coupling) - penalty.l1, 0.0)
        left = np.abs(excess - penalty.l2 * np.abs(theta)) / node.scale
        value += pulled - float(excess @ excess) / (2 * penalty.l2)
        residual = max(residual, float(left.max(initial=0.0)))
    return Bound(value, residual)


def free_bound(
    rows: Chunks,
    columns: Sequence[Columns],
    n_rows: int,
    l1: float,
    shrink: float,
    most: float,
) -> Bound:
    """The dual objective without a ridge penalty, made feasible by proof.

    `shrink` is the share by which pulls are made smaller, to give them room; `most` is
    what the repair may cost.
    """
    n_nodes = len(columns)
    slacks = [l1 / node.scale for node in columns]
    restore_coupling(
        rows,
        columns,
        aims=[np.zeros(node.n_directions) for node in columns],
        slacks=[
            slack if node.turn is None else np.zeros(node.n_directions)
            for node, slack in zip(columns, slacks, strict=True)
        ],
        enough=lambda j, off: False,
        precisely=not l1,
    )
    # Each pull a little towards 0, where the coupling is 0: all of them get room.
    rows.note(ProofRows.shrink, [1.0 - shrink] * n_nodes)
    if l1 > 0 and most == np.inf:  # or so far that the coupling is in its place
        _, couplings = coupling_of(rows, range(n_nodes))
        outside = [
            float(np.max(np.abs(coupling) / slack))
            for coupling, slack in zip(couplings, slacks, strict=True)
        ]
        rows.note(ProofRows.shrink, [1.0 / max(1.0, far) for far in outside])
    value, residual, slope = sum(dual_values(rows)[0]), 0.0, 0.0
    repairs = _costs_of_repairs(rows, columns, slacks, n_rows, most / n_nodes)
    for node, (cost, left) in zip(columns, repairs, strict=True):
        value -= cost
        residual = max(residual, float(left.max()))
        if l1 > 0:
            slope = max(slope, float((left * node.scale).max()))
        else:
            slope += float(np.linalg.norm(left))
    return Bound(value, residual, slope)


def _costs_of_repairs(
    rows: Chunks,
    columns: Sequence[Columns],
    slacks: Sequence[Vector],
    n_rows: int,
    spare: float,
) -> list[tuple[float, Vector]]:
    """What it costs at most to bring couplings within `slacks`, and what is left to do.

    Parameters
    ----------
    rows : Chunks
    columns : list of Columns
    slacks : list of ndarray of shape (D_j,)
    n_rows : int
        How many rows there are.
    spare : float
        What may be spent on a node. Directions that would cost more are left.
    """
    n_nodes = len(columns)
    sums, couplings = coupling_of(rows, range(n_nodes))
    rooms = totals(
        [np.array([square for square, _ in each]), *(gram for _, gram in each)]
        for each in rows.ask(ProofRows.free_grams)
    )
    return [
        _cost_of_repair(
            rows,
            j,
            gram=rooms[1 + j],
            length=float(rooms[0][j]) ** 0.5,
            coupling=couplings[j],
            rounding=n_rows * EPSILON * sums[j],
            slack=slacks[j],
            spare=spare,
        )
        for j in range(n_nodes)
    ]


def _cost_of_repair(
    rows: Chunks,
    j: int,
    *,
    gram: Vector,
    length: float,
    coupling: Vector,
    rounding: float,
    slack: Vector,
    spare: float,
) -> tuple[float, Vector]:
    """The same of one node; `length` and `gram` are of its rooms and weighted columns."""

    def triangle_over(norms: Vector) -> Vector:
        return joined_triangle(list(rows.ask(ProofRows.free_triangle, j, norms)))

    norms, sizes, turn = spread(gram, triangle_over)
    n_columns = norms.size
    sizes = sizes - 1e-14 * n_columns * sizes[0]  # rounding in C
    most = min(1.0, spare / length if length else 1.0) / n_columns**0.5
    for exact in (False, True):  # the first is faster, and mostly enough
        if exact:
            coupling = exact_coupling(rows, j)
            doubt = EPSILON * rounding + EPSILON * np.abs(coupling).max()
        else:
            doubt = rounding
        excess = coupling - np.clip(coupling, -slack, slack)
        along = np.abs(turn @ (excess / norms)) + float(np.sum(doubt / norms))
        proved = along <= most * sizes
        if proved.all():
            break
    moved = proved & (along > 0)
    moves = along[moved] / sizes[moved]
    cost = length * float(np.linalg.norm(moves))
    return cost, norms * (np.abs(turn[~proved]).T @ along[~proved])
