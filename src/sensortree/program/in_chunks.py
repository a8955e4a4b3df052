"""`solve_rows`: what `solve` does, of rows that stay where they are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sensortree.program.certificate import Certificate, certify_rows
from sensortree.program.chunks import Chunks, Within
from sensortree.program.proof_rows import ProofRows
from sensortree.program.scaling import ColumnRows, Scaling
from sensortree.program.solution import (
    Proved,
    Solution,
    best_proved,
    largest_margins,
    without_noise,
)
from sensortree.program.solvers import Progress
from sensortree.program.solvers.structured.chunk import Blocks, Chunk
from sensortree.program.solvers.structured.interior_point import Arrived, minimise
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


@one_thread()
def solve_rows(
    rows: Chunks,
    tol: float = 1e-6,
    l2: float = 0.0,
    l1: float = 0.0,
    *,
    callback: Callable[[Progress], object] | None = None,
) -> Solution:
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
        return Solution([], Certificate(0.0, 0.0, tol), None, "structured", 0, 0.0)
    penalty = Penalty(l2, l1)
    rows.note(ProblemRows.begin)
    scaling = Scaling.of(Within(rows, "columns"), frame.shared, l2, l1)
    rows.note(ProblemRows.scaled)
    blocks: list[Blocks] = []  # of the present attempt

    def run(aim: float) -> Arrived:
        if blocks:
            rows.note(ProblemRows.close)
        rows.note(ProblemRows.open, scaling)
        blocks[:] = [Blocks(Within(rows, "solving"), scaling.applied(frame))]
        return minimise(blocks[0], scaling.options(aim, 1, callback))

    def prove(point: tuple[Vector, bool]) -> Proved:
        theta, is_best = point
        coef = scaling.coef_back(blocks[0].coef_of(theta))
        margins = np.max(list(rows.ask(ProblemRows.margins, coef)), axis=0)
        coef = without_noise(coef, margins)
        rows.note(ProblemRows.prove, is_best)
        proof = certify_rows(Within(rows, "proof"), frame.shared, coef, tol, penalty)
        rows.note(ProblemRows.proved)
        return coef, proof, None

    solved = best_proved(
        "structured", tol, penalty, run, lambda end: map(prove, end.points)
    )
    rows.note(ProblemRows.close)
    return solved
