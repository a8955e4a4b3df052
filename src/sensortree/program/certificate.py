"""`Certificate`: how far coefficients are from the optimum, proved from the data.

Any coefficients give an upper bound: evaluate the objective there. Any dual point that is
feasible gives a lower bound. What a solver returns is only nearly feasible, so we make it
so, and take off what coefficients could gain from what is left. All that is read of rows
is sums over chunks of them (`proof_rows`), wherever these are.

What cannot be made feasible, because columns depend on each other to the last digits,
costs something in proportion to the coefficients. With an l1 penalty none that are better
than those returned have |θ|₁ above upper / l1. Without one the bound is said to speak of
coefficients up to `reach`. Nothing is taken on a solver's word; a wrong dual point gives a
poor bound, not a wrong one.

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
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensortree.program.arrays import is_foreign
from sensortree.program.chunks import Chunks, InMemory, cut, largest, total, totals
from sensortree.program.proof_rows import ProofRows
from sensortree.program.scaling import as_scale, exact_total, find_turns, spread
from sensortree.program.surrogate import DualPoint, Penalty, SurrogateProblem
from sensortree.text import PlainForm
from sensortree.threads import one_thread

Vector = NDArray[np.float64]

# Without a penalty a bound speaks of coefficients up to the first of these at least, and
# up to the second times those returned, on columns scaled to size 1.
REACH = 1e6
BEYOND = 100.0
# Share of the tolerance that may be given away to repair a coupling, and to reach further.
SHARE = 0.1
# Rows that are not worth dividing.
AT_ONCE = 1 << 13
EPSILON = float(np.finfo(float).eps)


@dataclass(frozen=True)
class Certificate(PlainForm):
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
    speaks_of : str
        Of a fit, which decisions this is about, beside those that the model makes.

    Examples
    --------
    >>> from sensortree.results import Certificate
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
    speaks_of: str = ""

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
        said = f"\nabout {self.speaks_of}" if self.speaks_of else ""
        return (
            f"{state} to a gap of {self.gap:.1e} (asked for {self.tol:.0e}): the optimum"
            f"{limit if np.isfinite(self.reach) else ''} lies in [{self.lower:.10g}, "
            f"{self.upper:.10g}]{said}"
        )


@one_thread()
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
    n_samples = problem.n_samples
    at_once = max(1, n_samples) if is_foreign(problem.lost_if_negative) else AT_ONCE
    parts = cut(n_samples, at_once, max(problem.n_features, default=0))
    rows = [ProofRows(problem.part(some), dual.part(some)) for some in parts]
    return certify_rows(InMemory(rows), problem.shared, coef, tol, penalty or Penalty())


def certify_rows(
    rows: Chunks,
    shared: Sequence[int],
    coef: Sequence[Any],
    tol: float,
    penalty: Penalty,
) -> Certificate:
    """The same of ProofRows in chunks; `shared` is that of their problem."""
    proof = Proof(rows, shared, coef, penalty)
    unit, upper = proof.unit, proof.objective(1e-3 * tol)
    certificate = Certificate(
        upper=upper,
        lower=0.0,  # all terms of the objective are at least 0
        tol=tol,
        unit=unit,
        sign_violation=max(rows.ask(ProofRows.most_negative)),
        residual=np.inf,
    )
    spare = SHARE * tol * max(unit, upper)
    # A little flow on every edge makes room for the repair, and costs as little. Where
    # that is not enough the repair may cost what it will: a poor bound is better than none.
    attempts = [(0.0, spare), (0.03 * tol, spare), (0.03 * tol, np.inf)]
    for least, most in attempts[:2] if penalty.l2 else attempts:
        rows.note(ProofRows.begin, least)
        if penalty.l2 > 0:
            bound = proof.ridge_bound(upper, tol * max(unit, upper))
            reach = np.inf
        else:
            rows.note(ProofRows.drop_small, SHARE * spare / (len(coef) * proof.n_rows))
            bound = proof.free_bound(0.1 * SHARE * tol, most)
            reach = proof.reach(bound, upper, spare)
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


MAX_ATTEMPTS = 30
# Share of the gap by which a coupling may be off, with a ridge penalty.
SMALL_SHARE = 1e-3


@dataclass(frozen=True)
class Bound:
    """A lower bound, the residual that was left, and what the bound loses by it."""

    value: float  # for coefficients that gain nothing from the residual
    residual: float
    # What one unit of coefficients can gain from the residual: of their norm on scaled
    # columns without a penalty, of |θ|₁ with an l1 penalty.
    slope: float = 0.0


class Proof:
    """Coefficients on ProofRows in chunks, and bounds from the rows' pulls.

    Columns are divided by a `scale`, powers of 2, to between 1/2 and 1. Without penalties
    they have a `turn` where they nearly depend on each other: see `find_turns`.
    """

    def __init__(
        self, rows: Chunks, shared: Sequence[int], coef: Sequence[Any], penalty: Penalty
    ):
        (largest_loss, *sizes) = largest(rows.ask(ProofRows.sizes))
        self.rows, self.penalty, self.unit = rows, penalty, float(largest_loss[0])
        self.coef = [np.asarray(theta, float) for theta in coef]
        self.n_rows = int(total(rows.ask(ProofRows.n_rows)))
        scales = [np.exp2(np.ceil(np.log2(as_scale(size)))) for size in sizes]
        rows.note(ProofRows.set_scale, scales)
        turns: list[Vector | None] = [None] * len(scales)
        if not penalty.l2 and not penalty.l1:
            turns = find_turns(rows, len(scales))
        self.scale, self.turn = [scales[k] for k in shared], [turns[k] for k in shared]
        self.slacks = [penalty.l1 / scale for scale in self.scale]

    def objective(self, share: float) -> float:
        """The objective; huge coefficients, whose margins cancel, in twice the precision.

        Rounding in the margins that may be worth more than a `share` of the objective, or
        of the unit, is not accepted.
        """
        penalty = self.penalty.value(self.coef)
        value = float(total(self.rows.ask(ProofRows.value, self.coef))) + penalty
        lost = total(self.rows.ask(ProofRows.lost))
        most = [
            theta.size * float(scale @ np.abs(theta))
            for scale, theta in zip(self.scale, self.coef, strict=True)
        ]
        if EPSILON * float(lost @ np.array(most)) <= share * max(self.unit, value):
            return value
        return float(total(self.rows.ask(ProofRows.exact_value, self.coef))) + penalty

    def reach(self, bound: Bound, upper: float, spare: float) -> float:
        """How large coefficients are considered, in the unit of the bound's slope."""
        if self.penalty.l1 > 0:  # none better are larger: the surrogate is at least 0
            return upper / self.penalty.l1
        if not bound.slope:
            return np.inf
        norms = (
            float(np.linalg.norm(theta * scale))
            for scale, theta in zip(self.scale, self.coef, strict=True)
        )
        needed = 2 * max(REACH, *(BEYOND * norm for norm in norms))
        return max(needed, spare / bound.slope)

    def exact_coupling(self, j: int) -> Vector:
        """The scaled coupling of a node, as if in twice the precision and rounded once."""
        return exact_total(self.rows.ask(ProofRows.exact_coupling, j))

    def restore(
        self,
        aims: Sequence[Vector],
        slacks: Sequence[Vector],
        enough: Callable[[int, Vector], bool],
        precisely: bool = False,
    ) -> bool:
        """Move pulls within their capacities until couplings are within `slacks` of `aims`.

        Alternating projections: each step is the least-squares correction in which
        examples move in proportion to the room they have, then a cut to the bounds. Since
        pull = 0 has coupling 0, the bounds and a coupling of 0 always meet. A node is done
        when `enough` says so of what its coupling is off by, or rounding is all that is
        left. Returns whether any pull was moved.
        """
        rows, best = self.rows, [np.inf] * len(aims)
        going = list(range(len(aims)))
        for attempt in range(MAX_ATTEMPTS):
            sizes, *found = totals(rows.ask(ProofRows.couplings, going))
            residual: dict[int, Vector] = {}
            better = []
            for j, size, coupling in zip(going, sizes.tolist(), found, strict=True):
                turn = self.turn[j]
                if turn is not None:
                    coupling = turn.T @ self.exact_coupling(j)
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
            steps = self._steps(residual, bool(precisely and attempt))
            going = list(steps)
            if not going:
                break
            if attempt + 1 < MAX_ATTEMPTS:
                rows.note(ProofRows.move, steps)
        rows.note(ProofRows.take_best)
        return attempt > 0

    def _steps(self, residual: dict[int, Vector], precisely: bool) -> dict[int, Vector]:
        """Steps that take residuals away: (Xᵀ room² X) step = residual, if there is one.

        Fast, or precisely: from the triangle of room X, half the digits are not lost by
        squaring.
        """
        if not residual:
            return {}
        steps: dict[int, Vector] = {}
        grams = totals(self.rows.ask(ProofRows.room_grams, list(residual)))
        for (j, off), gram in zip(residual.items(), grams, strict=True):
            if not np.all(np.isfinite(gram)):
                continue
            if precisely:
                norms, sizes, turn = spread(gram, self.rows, ProofRows.room_triangle, j)
                kept = sizes > 1e-13 * sizes[0]
                along = turn[kept] @ (off / norms)
                step = turn[kept].T @ (along / sizes[kept] ** 2) / norms
            else:
                # Columns of rare or settled examples weigh little: all get one weight.
                unit = 1.0 / np.sqrt(np.maximum(gram.diagonal(), np.finfo(float).tiny))
                even = gram * np.outer(unit, unit)
                step = unit * np.linalg.lstsq(even, unit * off, 1e-13)[0]
            if np.all(np.isfinite(step)):
                steps[j] = step
        return steps

    # lower bounds ---------------------------------------------------------------------

    def ridge_bound(self, upper: float, asked: float) -> Bound:
        """The dual objective with a ridge penalty, for all coefficients.

        The coupling r is brought near l2 θ (and l1), where the bound is best. What is left,
        δ, costs at most |θ| |δ| + δ² / (2 l2). A small share of what is between the bound
        and the objective `upper`, or of the gap `asked` for, is little enough.
        """
        bound, l2 = self._dual_objective(), self.penalty.l2
        spare = SMALL_SHARE * max(asked, upper - bound.value)

        def enough(j: int, off: Vector) -> bool:
            left = np.abs(off) * self.scale[j]
            cost = left @ np.abs(self.coef[j]) + left @ left / (2 * l2)
            return bool(cost <= spare / len(self.coef))

        aims = [l2 * t / scale for scale, t in zip(self.scale, self.coef, strict=True)]
        moved = self.restore(aims, self.slacks, enough)
        return self._dual_objective() if moved else bound

    def _dual_objective(self) -> Bound:
        """The dual objective of the present pulls, with a ridge penalty."""
        value, residual, penalty = 0.0, 0.0, self.penalty
        pulled, *couplings = totals(self.rows.ask(ProofRows.dual_values))
        for scale, theta, pull, coupling in zip(
            self.scale, self.coef, pulled.tolist(), couplings, strict=True
        ):
            excess = np.maximum(np.abs(coupling) - penalty.l1, 0.0)
            left = np.abs(excess - penalty.l2 * np.abs(theta)) / scale
            value += pull - float(excess @ excess) / (2 * penalty.l2)
            residual = max(residual, float(left.max(initial=0.0)))
        return Bound(value, residual)

    def free_bound(self, shrink: float, most: float) -> Bound:
        """The dual objective without a ridge penalty, made feasible by proof.

        `shrink` is the share by which pulls are made smaller, to give them room; `most` is
        what the repair may cost.
        """
        rows, l1, n_nodes = self.rows, self.penalty.l1, len(self.coef)
        nothing = [
            np.zeros(scale.size if turn is None else turn.shape[1])
            for scale, turn in zip(self.scale, self.turn, strict=True)
        ]
        slacks = (
            self.slacks if l1 else nothing
        )  # columns are turned without penalties only
        self.restore(nothing, slacks, lambda j, off: False, precisely=not l1)
        # Each pull a little towards 0, where the coupling is 0: all of them get room.
        rows.note(ProofRows.shrink, [1.0 - shrink] * n_nodes)
        if l1 > 0 and most == np.inf:  # or so far that the coupling is in its place
            _, *couplings = totals(rows.ask(ProofRows.couplings, range(n_nodes)))
            outside = [
                float(np.max(np.abs(coupling) / slack))
                for coupling, slack in zip(couplings, self.slacks, strict=True)
            ]
            rows.note(ProofRows.shrink, [1.0 / max(1.0, far) for far in outside])
        pulled, *_ = totals(rows.ask(ProofRows.dual_values))
        value, residual, slope = sum(pulled.tolist()), 0.0, 0.0
        for scale, (cost, left) in zip(
            self.scale, self._repairs(most / n_nodes), strict=True
        ):
            value -= cost
            residual = max(residual, float(left.max()))
            if l1 > 0:
                slope = max(slope, float((left * scale).max()))
            else:
                slope += float(np.linalg.norm(left))
        return Bound(value, residual, slope)

    def _repairs(self, spare: float) -> Iterator[tuple[float, Vector]]:
        """What it costs at most to bring couplings within slacks, and what is left to do.

        `spare` is what may be spent on a node. Directions that would cost more are left.
        """
        rows, nodes = self.rows, range(len(self.coef))
        sums, *couplings = totals(rows.ask(ProofRows.couplings, nodes))
        squares, *grams = totals(rows.ask(ProofRows.free_grams))
        for j, (coupling, slack) in enumerate(zip(couplings, self.slacks, strict=True)):
            length = float(squares[j]) ** 0.5
            rounding = self.n_rows * EPSILON * float(sums[j])
            norms, sizes, turn = spread(grams[j], rows, ProofRows.free_triangle, j)
            n_columns = norms.size
            sizes = sizes - 1e-14 * n_columns * sizes[0]  # rounding in C
            most = min(1.0, spare / length if length else 1.0) / n_columns**0.5
            for exact in (False, True):  # the first is faster, and mostly enough
                doubt = rounding
                if exact:
                    coupling = self.exact_coupling(j)
                    doubt = EPSILON * rounding + EPSILON * np.abs(coupling).max()
                excess = coupling - np.clip(coupling, -slack, slack)
                along = np.abs(turn @ (excess / norms)) + float(np.sum(doubt / norms))
                proved = along <= most * sizes
                if proved.all():
                    break
            moved = proved & (along > 0)
            cost = length * float(np.linalg.norm(along[moved] / sizes[moved]))
            yield cost, norms * (np.abs(turn[~proved]).T @ along[~proved])
