"""`solve`: scale, hand over to a solver, undo the scaling, certify; or `approximate`.

`solve_rows` does the same to rows in chunks, which stay where they are.
"""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensortree.exceptions import CertificateWarning, ParameterError, SolverError
from sensortree.program.arrays import to_numpy
from sensortree.program.certificate import Certificate, certify, certify_rows
from sensortree.program.chunks import Chunks, InMemory, Within
from sensortree.program.proof_rows import ProofRows
from sensortree.program.scaling import ColumnRows, Scaling
from sensortree.program.solvers import (
    SOLVERS,
    Candidate,
    Options,
    Progress,
    RawSolution,
    Solver,
)
from sensortree.program.solvers.structured.chunk import Blocks, Chunk
from sensortree.program.solvers.structured.interior_point import Arrived, minimise
from sensortree.program.surrogate import Coef, DualPoint, Penalty, SurrogateProblem
from sensortree.threads import one_thread

LOG = logging.getLogger("sensortree.solver")

Vector = NDArray[np.float64]

# What a solver whose answer could not be certified is asked for: this times the
# tolerance, and at least this much.
CLOSER = 1e-2
CLOSEST = 1e-8
# Margins that rounding leaves where the optimum is 0.
NOISE = 1e-10

# Coefficients, their proof, and the dual point that it was made from.
Proved = tuple[Coef, Certificate, DualPoint | None]


@dataclass(frozen=True, eq=False)
class Solution:
    """Coefficients of every decision function, with their proof.

    Attributes
    ----------
    coef : list of ndarray of shape (D_j,)
        θ_j of each node.
    certificate : Certificate
    dual : DualPoint or None
        The dual point the certificate was made from, as the solver gave it; None of rows
        in chunks, where it stays.
    solver : str
    iterations : int
    seconds : float
        Time spent in the solver, certificate not included.
    """

    coef: Coef
    certificate: Certificate
    dual: DualPoint | None
    solver: str
    iterations: int
    seconds: float


@one_thread()
def solve(
    problem: SurrogateProblem,
    solver: str = "structured",
    tol: float = 1e-6,
    l2: float = 0.0,
    l1: float = 0.0,
    *,
    n_jobs: int | None = None,
    callback: Callable[[Progress], object] | None = None,
) -> Solution:
    """Minimise the surrogate, and prove how close the answer is.

    Parameters
    ----------
    problem : SurrogateProblem
    solver : str, default="structured"
        "structured" is our own, for all penalties and array libraries; "scipy", "highs"
        and "clarabel" are general solvers, with "-path" behind the name on the paper's
        path form instead of the compact one.
    tol : float, default=1e-6
        Relative gap to be certified. A larger one is returned with a warning.
    l2 : float, default=0.0
        Weight of the ridge penalty (l2/2) |θ|² added to the objective.
    l1 : float, default=0.0
        Weight of the penalty l1 |θ|₁ added to the objective.
    n_jobs : int, default=None
        Threads of the structured solver. None: one, or as many as the process has cores
        for where the problem is large. The answer does not depend on it.
    callback : callable, default=None
        Called by the structured solver after each iteration with a `Progress`; if it
        returns True, the solver stops and its best point so far is certified.

    Returns
    -------
    solution : Solution

    Examples
    --------
    >>> from sensortree.program import SurrogateProblem, solve
    >>> problem = SurrogateProblem(
    ...     [-1], [-1], [[[1.0], [2.0]]], [[1.0], [0.0]], [[0.0], [2.0]])
    >>> solution = solve(problem)
    >>> round(solution.certificate.upper, 5)
    1.5
    >>> solution.certificate.converged
    True
    """
    back_end = _check_options(solver, tol, l2, l1, n_jobs)
    if not problem.n_nodes:  # a lone leaf decides nothing
        nothing = DualPoint(*[problem.lost_if_negative] * 4)
        return Solution([], Certificate(0.0, 0.0, tol), nothing, solver, 0, 0.0)
    penalty, (scaling, scaled) = Penalty(l2, l1), _scaled(problem, l2, l1)

    def run(aim: float) -> RawSolution:
        options = Options(scaling.ridge, scaling.lasso, aim, n_jobs, callback)
        return back_end.run(scaled, options)

    def prove(candidate: Candidate) -> Proved:
        coef, dual = scaling.back(candidate)
        coef = without_noise(coef, largest_margins(problem, coef))
        return coef, certify(problem, coef, dual, tol=tol, penalty=penalty), dual

    return best_proved(
        solver, tol, penalty, run, lambda raw: map(prove, raw.candidates)
    )


@one_thread()
def approximate(
    problem: SurrogateProblem,
    tol: float = 1e-4,
    l2: float = 0.0,
    l1: float = 0.0,
    *,
    n_jobs: int | None = None,
) -> Coef:
    """Minimise the surrogate as nearly as the structured solver says; nothing is proved.

    For coefficients that are only compared with others.

    Parameters
    ----------
    problem : SurrogateProblem
    tol : float, default=1e-4
        Relative gap to come near to, by the solver's own estimate.
    l2, l1 : float, default=0.0
        Weights of the penalties, as in `solve`.
    n_jobs : int, default=None
        Threads, as in `solve`.

    Returns
    -------
    coef : list of ndarray of shape (D_j,)

    Examples
    --------
    >>> from sensortree.program import SurrogateProblem, approximate
    >>> problem = SurrogateProblem(
    ...     [-1], [-1], [[[1.0], [2.0]]], [[1.0], [0.0]], [[0.0], [2.0]])
    >>> round(problem.value(approximate(problem)), 3)
    1.5
    """
    back_end = _check_options("structured", tol, l2, l1, n_jobs)
    if not problem.n_nodes:
        return []
    scaling, scaled = _scaled(problem, l2, l1)
    raw = back_end.run(scaled, Options(scaling.ridge, scaling.lasso, tol, n_jobs))
    coef = scaling.coef_back(raw.candidates[0].coef)
    return without_noise(coef, largest_margins(problem, coef))


def _scaled(
    problem: SurrogateProblem, l2: float, l1: float
) -> tuple[Scaling, SurrogateProblem]:
    """How a problem in memory is scaled, and the scaled one."""
    scaling = Scaling.of(InMemory([ColumnRows(problem)]), problem.shared, l2, l1)
    return scaling, scaling.applied(problem)


def best_proved(
    solver: str,
    tol: float,
    penalty: Penalty,
    run: Callable[[float], Any],
    points_of: Callable[[Any], Iterable[Proved]],
) -> Solution:
    """Solve for the tolerance, and once more for a smaller gap if the proof needs it.

    The proof has to repair the dual point. Where that takes more than the tolerance, a
    solver is asked once more, for more; and for no less if the tolerance is loose.

    `run` solves to a gap; what it gives has `iterations` and `stopped`. `points_of` proves
    the points that it gave, one after the other. The first that is certified is taken, or
    else the best.
    """
    best: Proved | None = None
    seconds, iterations = 0.0, 0
    for aim in (tol, min(CLOSER * tol, CLOSEST)):
        started = time.perf_counter()
        try:
            raw = run(aim)
        except SolverError:
            if best is None:
                raise
            break  # it cannot be had closer
        seconds += time.perf_counter() - started
        iterations += raw.iterations
        for point in points_of(raw):
            if best is None or point[1].gap < best[1].gap:
                best = point
            if point[1].converged:
                break
        if raw.stopped or (best is not None and best[1].converged):
            break
    assert best is not None  # a solver returns at least one point
    coef, certificate, dual = best
    LOG.debug("%s, %d iterations, %.3f s: %s", solver, iterations, seconds, certificate)
    if not certificate.converged:
        warnings.warn(
            f"solver {solver!r} stopped after {iterations} iterations: {certificate}. "
            f"{_advice(certificate, penalty, raw.stopped)}",
            CertificateWarning,
            stacklevel=4,
        )
    return Solution(coef, certificate, dual, solver, iterations, seconds)


def largest_margins(problem: SurrogateProblem, coef: Coef) -> Vector:
    """Largest absolute margin at each node, (n_nodes,)."""
    margins = np.abs(to_numpy(problem.margins(coef)))
    return np.asarray(margins.max(axis=0, initial=0.0))


def without_noise(coef: Coef, margins: Vector) -> Coef:
    """Coefficients with those of a node at exactly 0 that decide nothing.

    Margins, of which the largest of each node is given, count in units of 1, the hinge's.
    Where none of a node's is above rounding, its optimum is 0, and what is left would send
    examples anywhere.
    """
    return [
        theta if most > NOISE else np.zeros_like(theta)
        for theta, most in zip(coef, margins, strict=True)
    ]


def _advice(certificate: Certificate, penalty: Penalty, stopped: bool) -> str:
    """What to do about a gap that is larger than was asked for."""
    if stopped:
        return "Let it run on for a smaller gap."
    return (
        f"The interval is proved, only wider than asked for. Columns that nearly repeat "
        f"each other are the usual cause: leave some out, add a "
        f"{'larger' if penalty.l2 else 'small'} l2, or ask for "
        f"tol={2 * certificate.gap:.0e}."
    )


def _check_options(
    solver: str, tol: float, l2: float, l1: float, n_jobs: int | None
) -> Solver:
    if solver not in SOLVERS:
        raise ParameterError(
            f"solver must be one of {', '.join(map(repr, SOLVERS))}, got {solver!r}."
        )
    for name, value in (("tol", tol), ("l2", l2), ("l1", l1)):
        number = isinstance(value, Real) and not isinstance(value, bool)
        enough = value > 0 or (value == 0 and name != "tol") if number else False
        if not (enough and np.isfinite(value)):
            least = "more than 0" if name == "tol" else "at least 0"
            raise ParameterError(f"{name} must be finite and {least}, got {value!r}.")
    if n_jobs is not None and (not isinstance(n_jobs, Integral) or n_jobs < 1):
        raise ParameterError(
            f"n_jobs must be None or an integer that is at least 1, got {n_jobs!r}."
        )
    back_end = SOLVERS[solver]
    back_end.require()
    if l2 > 0 and not back_end.ridge:
        able = ", ".join(repr(s.name) for s in SOLVERS.values() if s.ridge)
        raise ParameterError(
            f"solver {solver!r} cannot minimise a ridge penalty (l2={l2:g}); use one of "
            f"{able}, or l2=0."
        )
    return back_end


# rows in chunks ---------------------------------------------------------------------------


class ProblemRows:
    """Some rows of a problem, and what solving it keeps of them."""

    columns: ColumnRows  # while columns are scaled
    solving: Chunk  # while the interior point is on its way
    proof: ProofRows  # while a certificate is made

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

    def prove(self, best: bool) -> None:
        """Have a certificate made of the best multipliers, or of the last."""
        self.proof = ProofRows(self.problem, self.solving.dual(self.problem, best))

    def forget(self, what: str) -> None:
        """Forget the columns, the solving or the proof, which is over."""
        delattr(self, what)

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
    """As `solve`, of ProblemRows in chunks; it gives the same bits for chunks as of `cut`.

    Examples
    --------
    >>> from sensortree.program import SurrogateProblem, solve
    >>> from sensortree.program.chunks import InMemory
    >>> from sensortree.program.solution import ProblemRows, solve_rows
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
    rows.note(ProblemRows.forget, "columns")
    blocks: list[Blocks] = []  # of the present attempt

    def run(aim: float) -> Arrived:
        if blocks:
            rows.note(ProblemRows.forget, "solving")
        rows.note(ProblemRows.open, scaling)
        blocks[:] = [Blocks(Within(rows, "solving"), scaling.applied(frame))]
        options = Options(scaling.ridge, scaling.lasso, aim, 1, callback)
        return minimise(blocks[0], options)

    def prove(point: tuple[Vector, bool]) -> Proved:
        theta, is_best = point
        coef = scaling.coef_back(blocks[0].coef_of(theta))
        margins = np.max(list(rows.ask(ProblemRows.margins, coef)), axis=0)
        coef = without_noise(coef, margins)
        rows.note(ProblemRows.prove, is_best)
        proof = certify_rows(Within(rows, "proof"), frame.shared, coef, tol, penalty)
        rows.note(ProblemRows.forget, "proof")
        return coef, proof, None

    solved = best_proved(
        "structured", tol, penalty, run, lambda end: map(prove, end.points)
    )
    rows.note(ProblemRows.forget, "solving")
    return solved
