"""`solve_rows`: what `solve` does, of rows that stay where they are."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sensortree.exceptions import SolverError
from sensortree.program.certificate import Certificate, certify_rows
from sensortree.program.chunks import Chunks, Within
from sensortree.program.column_rows import ColumnRows
from sensortree.program.proof_rows import ProofRows
from sensortree.program.scaling import Scaling
from sensortree.program.solution import (
    aims_for,
    largest_margins,
    warn_unless_certified,
    without_noise,
)
from sensortree.program.solvers import Progress
from sensortree.program.solvers.structured.blocks import Blocks
from sensortree.program.solvers.structured.chunk import Chunk
from sensortree.program.solvers.structured.interior_point import minimise
from sensortree.program.surrogate import Coef, Penalty, SurrogateProblem
from sensortree.threads import one_thread

Vector = NDArray[np.float64]


class ProblemRows:
    """Some rows of a problem, and what solving it keeps of them.

    Attributes
    ----------
    problem : SurrogateProblem
    columns : ColumnRows
        While columns are scaled.
    solving : Chunk
        While the interior point is on its way.
    proof : ProofRows
        While a certificate is made.
    """

    columns: ColumnRows
    solving: Chunk
    proof: ProofRows

    def __init__(self, problem: SurrogateProblem):
        self.problem = problem

    @property
    def settled(self) -> bool:
        """Whether a copy knows all that there is to know: not in the middle of a step."""
        solving = getattr(self, "solving", None)
        return solving is None or solving.settled

    def frame(self) -> SurrogateProblem:
        """The problem of none of the rows."""
        return self.problem.part(slice(0, 0))

    def begin(self) -> None:
        """Have columns scaled."""
        self.columns = ColumnRows(self.problem)

    def open(self, scaling: Scaling) -> None:
        """Have the scaled problem solved."""
        self.solving = Chunk(scaling.applied(self.problem))

    def scaled(self) -> None:
        """Forget the columns that were scaled to find out how."""
        del self.columns

    def prove(self, best: bool) -> None:
        """Have a certificate made of the best multipliers, or of the last."""
        self.proof = ProofRows(self.problem, self.solving.dual(self.problem, best))

    def proved(self) -> None:
        """Forget what the certificate was made of."""
        del self.proof

    def close(self) -> None:
        """Forget where the interior point was."""
        del self.solving

    def margins(self, coef: Coef) -> Vector:
        """Largest absolute margin at each node, (n_nodes,)."""
        return largest_margins(self.problem, coef)


@dataclass(frozen=True, eq=False)
class SolvedRows:
    """Coefficients of every decision function, with their proof.

    Attributes
    ----------
    coef : list of ndarray of shape (D_j,)
    certificate : Certificate
    iterations : int
    seconds : float
        Time spent in the solver, certificate not included.
    """

    coef: Coef
    certificate: Certificate
    iterations: int
    seconds: float


@one_thread()
def solve_rows(
    rows: Chunks,
    tol: float = 1e-6,
    l2: float = 0.0,
    l1: float = 0.0,
    *,
    callback: Callable[[Progress], object] | None = None,
) -> SolvedRows:
    """Minimise the surrogate of rows in chunks, and prove how close the answer is.

    Parameters
    ----------
    rows : Chunks
        Of ProblemRows. Chunks as `cut` makes them give the bits that `solve` gives.
    tol, l2, l1, callback
        As in `solve`.

    Examples
    --------
    >>> from sensortree.program import SurrogateProblem, solve
    >>> from sensortree.program.chunks import InMemory
    >>> from sensortree.program.in_chunks import ProblemRows, solve_rows
    >>> problem = SurrogateProblem(
    ...     [-1], [-1], [[[1.0], [2.0]]], [[1.0], [0.0]], [[0.0], [2.0]])
    >>> parts = [problem.part(slice(0, 1)), problem.part(slice(1, 2))]
    >>> solved = solve_rows(InMemory([ProblemRows(part) for part in parts]))
    >>> round(solved.certificate.upper, 5)
    1.5
    """
    frame: SurrogateProblem = next(iter(rows.ask(ProblemRows.frame)))
    if not frame.n_nodes:  # a lone leaf decides nothing
        return SolvedRows([], Certificate(0.0, 0.0, tol), 0, 0.0)
    penalty = Penalty(l2, l1)
    rows.note(ProblemRows.begin)
    scaling = Scaling.of(Within(rows, "columns"), frame.shared, l2, l1)
    rows.note(ProblemRows.scaled)
    best: tuple[Coef, Certificate] | None = None
    seconds, iterations = 0.0, 0
    for aim in aims_for(tol):
        started = time.perf_counter()
        rows.note(ProblemRows.open, scaling)
        blocks = Blocks(Within(rows, "solving"), scaling.applied(frame))
        try:
            end = minimise(blocks, scaling.options(aim, 1, callback))
        except SolverError:
            if best is None:
                raise
            break  # it cannot be had closer
        seconds += time.perf_counter() - started
        iterations += end.iterations
        for theta, is_best in end.points:
            coef = scaling.coef_back(blocks.coef_of(theta))
            margins = np.max(list(rows.ask(ProblemRows.margins, coef)), axis=0)
            coef = without_noise(coef, margins)
            rows.note(ProblemRows.prove, is_best)
            proof = Within(rows, "proof")
            certificate = certify_rows(proof, frame.shared, coef, tol, penalty)
            rows.note(ProblemRows.proved)
            if best is None or certificate.gap < best[1].gap:
                best = coef, certificate
            if certificate.converged:
                break
        rows.note(ProblemRows.close)
        if end.stopped or (best is not None and best[1].converged):
            break
    assert best is not None  # the interior point has one point at least
    coef, certificate = best
    warn_unless_certified("structured", iterations, certificate, penalty, end.stopped)
    return SolvedRows(coef, certificate, iterations, seconds)
