"""`Certificate`: how far coefficients are from the optimum, proved from the data.

Any coefficients give an upper bound: evaluate the objective there. Any dual point that
is feasible gives a lower bound. What a solver returns is only nearly feasible, so we
make it so: signs are clipped, flow is conserved, pulls are cut to their capacity. Moving
the pulls within their capacities then brings the coupling
r_j = sum_i (pull_negative - pull_positive)_ij φ_j(x_i) to where the bound is best: l2 θ
with a ridge penalty, into [-l1, l1] without; rounding is all that is left of the way. The
bound is the sum of all pulls, minus what coefficients could gain from what is left. With
a ridge penalty that is

    sum_d (|r_d| - l1)_+² / (2 l2),

and without, where coefficients could gain without end, we prove that what is left can be
made 0, and take off what that costs at most. Let e be the part of r outside [-l1, l1] and
room_i how far example i's pull may move. For Xᵀ δ = -e take δ = -room² X (Xᵀ room² X)⁻¹ e.
With room X = Q C, Q orthogonal, and s = C⁻ᵀ e this is δ_i = -room_i (Q s)_i: no pull moves
further than it may if |s| <= 1, and the sum of all pulls changes by at most |room| |s|.

What cannot be made 0 so, because columns depend on each other to the last digits, costs
something in proportion to the coefficients. With an l1 penalty none that are better than
those returned have |θ|₁ above upper / l1. Without one the bound is said to speak of
coefficients up to `reach`. Nothing is taken on a solver's word; a wrong dual point gives a
poor bound, not a wrong one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensortree.program.arrays import Array, like, namespace, to_numpy
from sensortree.program.directions import (
    column_sizes,
    directions,
    exact_product,
    triangle,
)
from sensortree.program.surrogate import DualPoint, Penalty, SurrogateProblem

Vector = NDArray[np.float64]

# Without a penalty a bound speaks of coefficients up to the first of these at least, and
# up to the second times those returned, on columns scaled to size 1.
REACH = 1e6
BEYOND = 100.0
# Share of the tolerance that may be given away to repair a coupling, and to reach further.
SHARE = 0.1
EPSILON = float(np.finfo(float).eps)


@dataclass(frozen=True)
class Certificate:
    """Proved bounds of the optimum of a surrogate problem.

    Attributes
    ----------
    upper : float
        The objective at the returned coefficients.
    lower : float
        No coefficients (up to `reach`) have a smaller objective.
    tol : float
        The gap that was asked for.
    reach : float
        The lower bound speaks of all coefficients whose norm, at each node and on columns
        scaled to size 1, is at most this. Infinite, unless there is no penalty and columns
        of a node depend on each other to the last digits.
    sign_violation : float
        The most negative multiplier of the solver, as it came (0 if none was negative).
    residual : float
        Largest entry of the coupling r that was left after the repair and that no
        penalty explains.
    unit : float
        The largest saving that a decision can lose for an example. Where the objective is
        smaller, the gap is in this unit.

    Examples
    --------
    >>> from sensortree import Certificate
    >>> proof = Certificate(upper=10.0, lower=9.999999, tol=1e-6)
    >>> proof.converged
    True
    """

    upper: float
    lower: float
    tol: float
    reach: float = np.inf
    sign_violation: float = 0.0
    residual: float = 0.0
    unit: float = 0.0

    @property
    def gap(self) -> float:
        """(upper - lower) / max(unit, |upper|); 0 if the bounds are equal."""
        apart = self.upper - self.lower
        return apart / max(self.unit, abs(self.upper)) if apart else 0.0

    @property
    def converged(self) -> bool:
        """Whether the gap is at most the tolerance."""
        return bool(self.gap <= self.tol)

    def __str__(self) -> str:
        state = "certified" if self.converged else "NOT certified"
        limit = f" over coefficients up to {self.reach:.0e}"
        return (
            f"{state} to a gap of {self.gap:.1e} (asked for {self.tol:.0e}): the optimum"
            f"{limit if np.isfinite(self.reach) else ''} lies in [{self.lower:.10g}, "
            f"{self.upper:.10g}]"
        )


@dataclass(frozen=True)
class _Bound:
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


@dataclass(frozen=True, eq=False)
class _Columns:
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
    def of(cls, features: Array, penalty: Penalty) -> _Columns:
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


def certify(
    problem: SurrogateProblem,
    coef: Sequence[Any],
    dual: DualPoint,
    *,
    tol: float = 1e-6,
    penalty: Penalty | None = None,
) -> Certificate:
    """Bound the optimum from both sides, whatever `coef` and `dual` are.

    Parameters
    ----------
    problem : SurrogateProblem
    coef : list of array-likes of shape (D_j,)
    dual : DualPoint
    tol : float, default=1e-6
    penalty : Penalty, default=None
        What is added to the surrogate.
    """
    penalty = penalty or Penalty()
    coef = [np.asarray(theta, float) for theta in coef]
    unit = problem.largest_loss()
    shared: dict[int, _Columns] = {}
    for features in problem.features:
        if id(features) not in shared:
            shared[id(features)] = _Columns.of(features, penalty)
    columns = [shared[id(features)] for features in problem.features]
    upper = _objective(problem, columns, coef, penalty, unit, 1e-3 * tol)
    certificate = Certificate(
        upper=upper,
        lower=0.0,  # all terms of the objective are at least 0
        tol=tol,
        unit=unit,
        sign_violation=_most_negative(dual),
        residual=np.inf,
    )
    spare = SHARE * tol * max(unit, upper)
    # A little flow on every edge makes room for the repair, and costs as little. Where
    # that is not enough the repair may cost what it will: a poor bound is better than none.
    attempts = [(0.0, spare), (0.03 * tol, spare), (0.03 * tol, np.inf)]
    for least, most in attempts[:2] if penalty.l2 else attempts:
        capacities = _capacities(problem, dual, least)
        pulls = _pulls(dual, capacities)
        if penalty.l2 > 0:
            bound = _ridge_bound(columns, coef, pulls, capacities, penalty)
            reach = np.inf
        else:
            pulls = _without_the_smallest(pulls, SHARE * spare)
            bound = _free_bound(
                columns, pulls, capacities, penalty.l1, 0.1 * SHARE * tol, most
            )
            reach = _reach(bound, columns, coef, upper, penalty.l1, spare)
        lower = bound.value - (bound.slope * reach if bound.slope else 0.0)
        if lower >= certificate.lower:
            # Columns were scaled to between 1/2 and 1.
            limit = reach / 2 if bound.slope and not penalty.l1 else np.inf
            certificate = replace(
                certificate, lower=lower, residual=bound.residual, reach=limit
            )
        if certificate.converged:
            break
    return certificate


def _objective(
    problem: SurrogateProblem,
    columns: Sequence[_Columns],
    coef: Sequence[Vector],
    penalty: Penalty,
    unit: float,
    share: float,
) -> float:
    """The objective; huge coefficients, whose margins cancel, in twice the precision.

    Rounding in the margins that may be worth more than a `share` of the objective, or of
    the unit, is not accepted.
    """
    value = problem.value(coef, penalty)
    xp = namespace(problem.lost_if_negative)
    lost = xp.sum(problem.lost_if_negative + problem.lost_if_positive, axis=0)
    largest = [
        theta.size * float(node.scale @ np.abs(theta))
        for node, theta in zip(columns, coef, strict=True)
    ]
    if EPSILON * float(to_numpy(lost) @ np.array(largest)) <= share * max(unit, value):
        return value
    margins = [
        like(exact_product(features.T, like(theta, features)), features)
        for features, theta in zip(problem.features, coef, strict=True)
    ]
    surrogate = xp.sum(problem.values(xp.stack(margins, axis=1)))
    return float(surrogate) + penalty.value(coef)


def _reach(
    bound: _Bound,
    columns: Sequence[_Columns],
    coef: Sequence[Vector],
    upper: float,
    l1: float,
    spare: float,
) -> float:
    """How large coefficients are considered, in the unit of the bound's slope."""
    if l1 > 0:  # no better ones are larger, since the surrogate is at least 0
        return upper / l1
    if not bound.slope:
        return np.inf
    norms = (
        float(np.linalg.norm(theta * node.scale))
        for node, theta in zip(columns, coef, strict=True)
    )
    needed = 2 * max(REACH, *(BEYOND * norm for norm in norms))
    return max(needed, spare / bound.slope)


def _pulls(dual: DualPoint, capacities: Sequence[tuple[Any, Any]]) -> list[Any]:
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


def _without_the_smallest(pulls: Sequence[Any], spare: float) -> list[Any]:
    """Set pulls that are near 0 to 0, where they often must be; costs `spare` at most."""
    small = spare / (len(pulls) * pulls[0].shape[0])
    return [
        namespace(pull).where(
            namespace(pull).abs(pull) <= small, namespace(pull).zeros_like(pull), pull
        )
        for pull in pulls
    ]


def _dual_value(pull: Array, high: Array, low: Array) -> float:
    """Sum of a node's pulls: for a given difference their largest sum fills one."""
    xp = namespace(pull)
    return float(xp.sum(xp.minimum(2 * high - pull, pull + 2 * low)))


def _ridge_bound(
    columns: Sequence[_Columns],
    coef: Sequence[Vector],
    pulls: Sequence[Any],
    capacities: Sequence[tuple[Any, Any]],
    penalty: Penalty,
) -> _Bound:
    """The dual objective with a ridge penalty, for all coefficients."""
    value, residual = 0.0, 0.0
    for node, theta, pull, (high, low) in zip(
        columns, coef, pulls, capacities, strict=True
    ):
        moved = _restore_coupling(
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
    return _Bound(value, residual)


def _free_bound(
    columns: Sequence[_Columns],
    pulls: Sequence[Any],
    capacities: Sequence[tuple[Any, Any]],
    l1: float,
    shrink: float,
    most: float,
) -> _Bound:
    """The dual objective without a ridge penalty, made feasible by proof.

    `shrink` is the share by which pulls are made smaller, to give them room; `most` is
    what the repair may cost.
    """
    value, residual, slope = 0.0, 0.0, 0.0
    for node, pull, (high, low) in zip(columns, pulls, capacities, strict=True):
        slack = l1 / node.scale
        moved = _restore_coupling(
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
    return _Bound(value, residual, slope)


def _cost_of_repair(
    columns: _Columns, pull: Array, slack: Vector, room: Array, spare: float
) -> tuple[float, Vector]:
    """What it costs at most to bring a coupling within `slack`, and what is left to do.

    Parameters
    ----------
    columns : _Columns
    pull : Array of shape (n_samples,)
    slack : ndarray of shape (D,)
    room : Array of shape (n_samples,)
        How far each pull may move.
    spare : float
        What may be spent. Directions that would cost more are left.
    """
    xp = namespace(pull)
    norms, sizes, turn = _spread(columns.array, room)
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


def _spread(columns: Array, room: Array) -> tuple[Vector, Vector, Vector]:
    """Norms of the columns of room X, and singular values and vectors of room X / norms."""
    weighted = columns * room[:, None]
    gram = to_numpy(weighted.T @ weighted)
    norms = np.sqrt(gram.diagonal())
    norms = np.where(norms > 0, norms, 1.0)
    squares, vectors = np.linalg.eigh(gram / np.outer(norms, norms))
    if squares[0] > 1e-4 * squares[-1]:  # squaring has cost no digit that matters
        return norms, np.sqrt(squares[::-1]), vectors.T[::-1]
    C = triangle(weighted * like(1.0 / norms, weighted))
    _, sizes, turn = np.linalg.svd(C, full_matrices=True)
    return norms, np.r_[sizes, np.zeros(norms.size - sizes.size)], turn


def _number(array: Array) -> Array:
    """Replace NaN by 0."""
    xp = namespace(array)
    return xp.where(xp.isfinite(array), array, xp.zeros_like(array))


def _most_negative(dual: DualPoint) -> float:
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


def _capacities(
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


def _restore_coupling(
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
    norms, sizes, turn = _spread(columns, room)
    kept = sizes > 1e-13 * sizes[0]
    along = turn[kept] @ (residual / norms)
    return np.asarray(turn[kept].T @ (along / sizes[kept] ** 2) / norms)
