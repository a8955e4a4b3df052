"""A dual point made feasible: signs, flow, capacities, and then the coupling.

What a solver returns is only nearly feasible. Signs are clipped, flow is conserved, pulls
are cut to their capacity; moving them within their capacities brings the coupling
r_j = sum_i (pull_negative - pull_positive)_ij φ_j(x_i) to where a bound is best. Rounding
is all that is left of the way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensortree.program.arrays import Array, like, namespace, to_numpy
from sensortree.program.directions import spread
from sensortree.program.surrogate import DualPoint, SurrogateProblem

Vector = NDArray[np.float64]


def most_negative(dual: DualPoint) -> float:
    """Size of the most negative multiplier, 0 if none is negative."""
    parts = (
        dual.flow_negative,
        dual.flow_positive,
        dual.pull_negative,
        dual.pull_positive,
    )
    least = (
        float(namespace(part).min(_number(part))) for part in parts if part.shape[1]
    )
    return max(0.0, -min(least, default=0.0))


def capacities_of(
    problem: SurrogateProblem, dual: DualPoint, least: float
) -> list[tuple[Any, Any]]:
    """Make the flow a unit flow; return a · flow_negative, b · flow_positive by node.

    Each edge gets at least the share `least` of what comes to its node.
    """
    xp = namespace(problem.lost_if_negative)
    capacities = []
    inflow: dict[int, Array] = {}
    for j in range(problem.n_nodes):
        down, up = _number(dual.flow_negative[:, j]), _number(dual.flow_positive[:, j])
        zero = xp.zeros_like(down)
        down, up = xp.maximum(down, zero), xp.maximum(up, zero)
        total = down + up
        known = total > 0
        share = xp.where(known, down / xp.where(known, total, zero + 1), zero + 0.5)
        share = xp.clip(share, least, 1 - least)
        flow = inflow.pop(j, zero + 1)
        flow_negative = flow * share
        flow_positive = flow - flow_negative
        inflow[int(problem.negative[j])] = flow_negative  # -1: a leaf, not asked again
        inflow[int(problem.positive[j])] = flow_positive
        capacities.append(
            (
                problem.lost_if_negative[:, j] * flow_negative,
                problem.lost_if_positive[:, j] * flow_positive,
            )
        )
    return capacities


def pulls_of(dual: DualPoint, capacities: Sequence[tuple[Any, Any]]) -> list[Any]:
    """The difference of each node's two pulls, each cut to its capacity."""
    pulls = []
    for j, (high, low) in enumerate(capacities):
        xp, zero = namespace(high), 0.0 * high
        one, other = (
            _number(dual.pull_negative[:, j]),
            _number(dual.pull_positive[:, j]),
        )
        pulls.append(
            xp.minimum(xp.maximum(one, zero), high)
            - xp.minimum(xp.maximum(other, zero), low)
        )
    return pulls


def without_the_smallest(pulls: Sequence[Any], spare: float) -> list[Any]:
    """Set pulls that are near 0 to 0, where they often must be; costs `spare` at most."""
    small = spare / (len(pulls) * pulls[0].shape[0])
    return [
        namespace(pull).where(
            namespace(pull).abs(pull) <= small, namespace(pull).zeros_like(pull), pull
        )
        for pull in pulls
    ]


def restore_coupling(
    columns: Array,
    coupling_of: Callable[[Array], Vector],
    pull: Array,
    low: Array,
    high: Array,
    aim: Vector,
    slack: Vector,
    precisely: bool = False,
) -> Array:
    """Move `pull` within [low, high] until its coupling is within `slack` of `aim`.

    Alternating projections: each step is the least-squares correction in which examples
    move in proportion to the room they have, then a cut to the bounds. Since pull = 0 has
    coupling 0, the bounds and a coupling of 0 always meet.
    """
    xp = namespace(columns)
    best, best_size = pull, np.inf
    for attempt in range(30):
        coupling = coupling_of(pull)
        residual = coupling - aim - np.clip(coupling - aim, -slack, slack)
        size = float(np.abs(residual).max(initial=0.0))
        if size < best_size:
            best, best_size = pull, size
        if size <= 1e-15 * float(xp.sum(xp.abs(pull))):
            break
        room = xp.maximum(xp.minimum(high - pull, pull - low), 1e-4 * (high - low))
        if precisely and attempt:
            step = _precise_step(columns, room, residual)
        else:
            step = _step(columns, room, residual)
        if not np.all(np.isfinite(step)):
            break
        weighted = columns * (room * room)[:, None]
        moved = pull - weighted @ like(step, columns)
        pull = xp.minimum(xp.maximum(moved, low), high)
    return best


def _step(columns: Array, room: Array, residual: Vector) -> Vector:
    """Solve (Xᵀ room² X) step = residual, fast, where the matrix is not too singular."""
    gram = to_numpy(columns.T @ (columns * (room * room)[:, None]))
    if not np.all(np.isfinite(gram)):
        return np.full(residual.shape, np.nan)
    # Columns of rare or settled examples weigh little: give each the same weight.
    unit = 1.0 / np.sqrt(np.maximum(gram.diagonal(), np.finfo(float).tiny))
    step = np.linalg.lstsq(gram * np.outer(unit, unit), unit * residual, 1e-13)[0]
    return np.asarray(unit * step)


def _precise_step(columns: Array, room: Array, residual: Vector) -> Vector:
    """The same, from the triangle of room X: half the digits are not lost by squaring."""
    norms, sizes, turn = spread(columns, room)
    kept = sizes > 1e-13 * sizes[0]
    along = turn[kept] @ (residual / norms)
    return np.asarray(turn[kept].T @ (along / sizes[kept] ** 2) / norms)


def _number(array: Array) -> Array:
    """Replace NaN by 0."""
    xp = namespace(array)
    return xp.where(xp.isfinite(array), array, xp.zeros_like(array))
