"""Lower bounds of the optimum, from pulls that are within their capacities.

The bound is the sum of all pulls, minus what coefficients could gain from the part of the
coupling r that is left where it should not be. With a ridge penalty that is

    sum_d (|r_d| - l1)_+² / (2 l2),

and without, where coefficients could gain without end, we prove that what is left can be
made 0, and take off what that costs at most. Let e be the part of r outside [-l1, l1] and
room_i how far example i's pull may move. For Xᵀ δ = -e take δ = -room² X (Xᵀ room² X)⁻¹ e.
With room X = Q C, Q orthogonal, and s = C⁻ᵀ e this is δ_i = -room_i (Q s)_i: no pull moves
further than it may if |s| <= 1, and the sum of all pulls changes by at most |room| |s|.

Before that, pulls move until their coupling is where a bound is best. The coupling of a
node is r_j = sum_i (pull_negative - pull_positive)_ij φ_j(x_i).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sensortree.program.chunks import Chunks, totals
from sensortree.program.proof_rows import ProofRows
from sensortree.program.scaling import as_scale, exact_total, find_turns, spread
from sensortree.program.surrogate import Penalty

Vector = NDArray[np.float64]

# a dual point made feasible -----------------------------------------------------------

MAX_ATTEMPTS = 30


@dataclass(frozen=True, eq=False)
class Columns:
    """What a node's coefficients multiply, as the proof sees it.

    Attributes
    ----------
    scale : ndarray of shape (D_j,)
        What the columns are divided by: powers of 2, to between 1/2 and 1.
    turn : ndarray of shape (D_j, k), or None
        Orthogonal combinations, if there are no penalties and the columns nearly depend
        on each other.
    """

    scale: Vector
    turn: Vector | None

    @property
    def n_directions(self) -> int:
        """How many directions pulls move along."""
        return self.scale.size if self.turn is None else self.turn.shape[1]


def set_columns(
    rows: Chunks, sizes: Sequence[Vector], shared: Sequence[int], penalty: Penalty
) -> list[Columns]:
    """Scale columns of given sizes; without penalties, turn them too where that helps.

    `sizes` are the largest absolute values, (D,), of the columns of each distinct array;
    `shared` says which of these each node has.
    """
    scales = [np.exp2(np.ceil(np.log2(as_scale(size)))) for size in sizes]
    rows.note(ProofRows.set_scale, scales)
    turns: list[Vector | None] = [None] * len(scales)
    if not penalty.l2 and not penalty.l1:
        turns = find_turns(rows, len(scales))
    return [Columns(scales[k], turns[k]) for k in shared]


def coupling_of(rows: Chunks, nodes: Sequence[int]) -> tuple[list[float], list[Vector]]:
    """Sum of |pull| and the scaled coupling of some nodes."""
    found = totals(
        [np.array(size), *coupling]
        for size, coupling in (
            ([s for s, _ in each], [c for _, c in each])
            for each in rows.ask(ProofRows.couplings, list(nodes))
        )
    )
    return found[0].tolist(), found[1:]


def exact_coupling(rows: Chunks, j: int) -> Vector:
    """The scaled coupling of a node, as if in twice the precision and rounded once."""
    return exact_total(rows.ask(ProofRows.exact_coupling, j))


def restore_coupling(
    rows: Chunks,
    columns: Sequence[Columns],
    aims: Sequence[Vector],
    slacks: Sequence[Vector],
    enough: Callable[[int, Vector], bool],
    precisely: bool = False,
) -> bool:
    """Move pulls within their capacities until couplings are within `slacks` of `aims`.

    Alternating projections: each step is the least-squares correction in which examples
    move in proportion to the room they have, then a cut to the bounds. Since pull = 0 has
    coupling 0, the bounds and a coupling of 0 always meet. A node is done when `enough`
    says so of what its coupling is off by, or rounding is all that is left. Returns
    whether any pull was moved.
    """
    best = [np.inf] * len(columns)
    going = list(range(len(columns)))
    for attempt in range(MAX_ATTEMPTS):
        sizes, found = coupling_of(rows, going)
        residual: dict[int, Vector] = {}
        better = []
        for j, size, coupling in zip(going, sizes, found, strict=True):
            turn = columns[j].turn
            if turn is not None:
                coupling = turn.T @ exact_coupling(rows, j)
            off = coupling - aims[j]
            off = off - np.clip(off, -slacks[j], slacks[j])
            largest_off = float(np.abs(off).max(initial=0.0))
            if largest_off < best[j]:
                best[j] = largest_off
                better.append(j)
            if largest_off > 1e-15 * size and not enough(j, off):
                residual[j] = off
        if better:
            rows.note(ProofRows.keep, better)
        steps = _steps(rows, residual, bool(precisely and attempt))
        going = list(steps)
        if not going:
            break
        if attempt + 1 < MAX_ATTEMPTS:
            rows.note(ProofRows.move, steps)
    rows.note(ProofRows.take_best)
    return attempt > 0


def _steps(
    rows: Chunks, residual: dict[int, Vector], precisely: bool
) -> dict[int, Vector]:
    """Steps that take residuals away, (Xᵀ room² X) step = residual, where there are such.

    Fast, or precisely: from the triangle of room X, half the digits are not lost by
    squaring.
    """
    if not residual:
        return {}
    steps: dict[int, Vector] = {}
    grams = totals(rows.ask(ProofRows.room_grams, list(residual)))
    for (j, off), gram in zip(residual.items(), grams, strict=True):
        if not np.all(np.isfinite(gram)):
            continue
        if precisely:
            norms, sizes, turn = spread(gram, rows, ProofRows.room_triangle, j)
            kept = sizes > 1e-13 * sizes[0]
            along = turn[kept] @ (off / norms)
            step = turn[kept].T @ (along / sizes[kept] ** 2) / norms
        else:
            # Columns of rare or settled examples weigh little: give each the same weight.
            unit = 1.0 / np.sqrt(np.maximum(gram.diagonal(), np.finfo(float).tiny))
            step = (
                unit
                * np.linalg.lstsq(gram * np.outer(unit, unit), unit * off, 1e-13)[0]
            )
        if np.all(np.isfinite(step)):
            steps[j] = step
    return steps


def dual_values(rows: Chunks) -> tuple[list[float], list[Vector]]:
    """Sum of each node's pulls, and its coupling, unscaled."""
    found = totals(
        [np.array([value for value, _ in each]), *(c for _, c in each)]
        for each in rows.ask(ProofRows.dual_values)
    )
    return found[0].tolist(), found[1:]


# lower bounds -------------------------------------------------------------------------

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
) -> Iterator[tuple[float, Vector]]:
    """What it costs at most to bring couplings within `slacks`, and what is left to do.

    `spare` is what may be spent on a node. Directions that would cost more are left.
    """
    n_nodes = len(columns)
    sums, couplings = coupling_of(rows, range(n_nodes))
    squares, *grams = totals(
        [np.array([square for square, _ in each]), *(gram for _, gram in each)]
        for each in rows.ask(ProofRows.free_grams)
    )
    for j, (coupling, slack) in enumerate(zip(couplings, slacks, strict=True)):
        length, rounding = float(squares[j]) ** 0.5, n_rows * EPSILON * sums[j]
        norms, sizes, turn = spread(grams[j], rows, ProofRows.free_triangle, j)
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
        cost = length * float(np.linalg.norm(along[moved] / sizes[moved]))
        yield cost, norms * (np.abs(turn[~proved]).T @ along[~proved])
