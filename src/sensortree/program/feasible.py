"""A dual point made feasible: pulls move until their coupling is where a bound is best.

The coupling of a node is r_j = sum_i (pull_negative - pull_positive)_ij φ_j(x_i). Rounding
is all that is left of the way there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sensortree.program.chunks import Chunks, total, totals
from sensortree.program.column_rows import find_turns
from sensortree.program.directions import (
    as_scale,
    exact_total,
    joined_triangle,
    spread,
)
from sensortree.program.proof_rows import ProofRows
from sensortree.program.surrogate import Penalty

Vector = NDArray[np.float64]

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

    Parameters
    ----------
    rows : Chunks
        Of ProofRows.
    sizes : list of ndarray of shape (D,)
        Largest absolute values of the columns of each distinct array.
    shared : sequence of n_nodes ints
        Which distinct array each node has.
    penalty : Penalty
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
    """Steps that take residuals away, of the nodes that have one that is a number."""
    if not residual:
        return {}
    grams = totals(rows.ask(ProofRows.room_grams, list(residual)))
    steps = {}
    for (j, off), gram in zip(residual.items(), grams, strict=True):
        step = _precise_step(rows, j, gram, off) if precisely else _step(gram, off)
        if np.all(np.isfinite(step)):
            steps[j] = step
    return steps


def _step(gram: Vector, residual: Vector) -> Vector:
    """Solve (Xᵀ room² X) step = residual, fast, where the matrix is not too singular."""
    if not np.all(np.isfinite(gram)):
        return np.full(residual.shape, np.nan)
    # Columns of rare or settled examples weigh little: give each the same weight.
    unit = 1.0 / np.sqrt(np.maximum(gram.diagonal(), np.finfo(float).tiny))
    step = np.linalg.lstsq(gram * np.outer(unit, unit), unit * residual, 1e-13)[0]
    return np.asarray(unit * step)


def _precise_step(rows: Chunks, j: int, gram: Vector, residual: Vector) -> Vector:
    """The same, from the triangle of room X: half the digits are not lost by squaring."""
    if not np.all(np.isfinite(gram)):
        return np.full(residual.shape, np.nan)

    def triangle_over(norms: Vector) -> Vector:
        return joined_triangle(list(rows.ask(ProofRows.room_triangle, j, norms)))

    norms, sizes, turn = spread(gram, triangle_over)
    kept = sizes > 1e-13 * sizes[0]
    along = turn[kept] @ (residual / norms)
    return np.asarray(turn[kept].T @ (along / sizes[kept] ** 2) / norms)


def dual_values(rows: Chunks) -> tuple[list[float], list[Vector]]:
    """Sum of each node's pulls, and its coupling, unscaled."""
    found = totals(
        [np.array([value for value, _ in each]), *(c for _, c in each)]
        for each in rows.ask(ProofRows.dual_values)
    )
    return found[0].tolist(), found[1:]


def n_rows_of(rows: Chunks) -> int:
    """How many rows all chunks have."""
    return int(total(rows.ask(count_rows)))


def count_rows(rows: ProofRows) -> int:
    """How many rows a chunk has."""
    return rows.problem.n_samples
