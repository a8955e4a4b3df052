"""`Certificate`: how far coefficients are from the optimum, proved from the data.

Any coefficients give an upper bound: evaluate the objective there. Any dual point that is
feasible gives a lower bound. What a solver returns is only nearly feasible, so we make it
so (`feasible`), and take off what coefficients could gain from what is left (`bounds`).
All that is read of rows is sums over chunks of them (`proof_rows`), wherever these are.

What cannot be made feasible, because columns depend on each other to the last digits,
costs something in proportion to the coefficients. With an l1 penalty none that are better
than those returned have |θ|₁ above upper / l1. Without one the bound is said to speak of
coefficients up to `reach`. Nothing is taken on a solver's word; a wrong dual point gives a
poor bound, not a wrong one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensortree.program.arrays import is_foreign
from sensortree.program.bounds import (
    EPSILON,
    Bound,
    Columns,
    free_bound,
    ridge_bound,
    set_columns,
)
from sensortree.program.chunks import Chunks, InMemory, cut, largest, total
from sensortree.program.proof_rows import ProofRows
from sensortree.program.surrogate import DualPoint, Penalty, SurrogateProblem
from sensortree.text import plain
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

    def to_dict(self) -> dict[str, Any]:
        """Give the certificate as plain values for JSON; None for infinity."""
        form: dict[str, Any] = plain(asdict(self))
        return form

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
    """The same, of rows in chunks.

    Parameters
    ----------
    rows : Chunks
        Of ProofRows.
    shared : sequence of n_nodes ints
        Which of the distinct arrays of features each node has.
    coef, tol, penalty
        As in `certify`.
    """
    coef = [np.asarray(theta, float) for theta in coef]
    (largest_loss, *sizes) = largest(rows.ask(ProofRows.sizes))
    unit = float(largest_loss[0])
    columns = set_columns(rows, sizes, shared, penalty)
    upper = _objective(rows, columns, coef, penalty, unit, 1e-3 * tol)
    certificate = Certificate(
        upper=upper,
        lower=0.0,  # all terms of the objective are at least 0
        tol=tol,
        unit=unit,
        sign_violation=max(rows.ask(ProofRows.most_negative)),
        residual=np.inf,
    )
    spare = SHARE * tol * max(unit, upper)
    n_rows = int(total(rows.ask(ProofRows.n_rows)))
    # A little flow on every edge makes room for the repair, and costs as little. Where
    # that is not enough the repair may cost what it will: a poor bound is better than none.
    attempts = [(0.0, spare), (0.03 * tol, spare), (0.03 * tol, np.inf)]
    for least, most in attempts[:2] if penalty.l2 else attempts:
        rows.note(ProofRows.begin, least)
        if penalty.l2 > 0:
            asked = tol * max(unit, upper)
            bound = ridge_bound(rows, columns, coef, penalty, upper, asked)
            reach = np.inf
        else:
            rows.note(ProofRows.drop_small, SHARE * spare / (len(coef) * n_rows))
            shrink = 0.1 * SHARE * tol
            bound = free_bound(rows, columns, n_rows, penalty.l1, shrink, most)
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
    rows: Chunks,
    columns: Sequence[Columns],
    coef: list[Vector],
    penalty: Penalty,
    unit: float,
    share: float,
) -> float:
    """The objective; huge coefficients, whose margins cancel, in twice the precision.

    Rounding in the margins that may be worth more than a `share` of the objective, or of
    the unit, is not accepted.
    """
    value = float(total(rows.ask(ProofRows.value, coef))) + penalty.value(coef)
    lost = total(rows.ask(ProofRows.lost))
    most = [
        theta.size * float(node.scale @ np.abs(theta))
        for node, theta in zip(columns, coef, strict=True)
    ]
    if EPSILON * float(lost @ np.array(most)) <= share * max(unit, value):
        return value
    exact = float(total(rows.ask(ProofRows.exact_value, coef)))
    return exact + penalty.value(coef)


def _reach(
    bound: Bound,
    columns: Sequence[Columns],
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
