"""What a solver is: a function from a problem to coefficients and a dual point."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec

from sensortree.exceptions import MissingDependencyError, ProblemError
from sensortree.program.arrays import is_foreign
from sensortree.program.linear_program import (
    LinearProgram,
    compact_form,
    path_form,
    with_l1,
)
from sensortree.program.surrogate import Coef, DualPoint, SurrogateProblem
from sensortree.types import Array


@dataclass(frozen=True, eq=False)
class Candidate:
    """Coefficients and the dual point that goes with them."""

    coef: Coef
    dual: DualPoint


@dataclass(frozen=True, eq=False)
class RawSolution:
    """What a solver returns; it may be sloppy, since we certify.

    Attributes
    ----------
    candidates : list of Candidate
        The first one that is certified is taken, or else the best.
    iterations : int
    stopped : bool
        Whether the user stopped it.
    """

    candidates: list[Candidate]
    iterations: int
    stopped: bool = False


@dataclass(frozen=True, eq=False)
class Options:
    """What a solver is asked for besides the problem.

    Attributes
    ----------
    ridge, lasso : ndarray of shape (p,)
        Weight of θ_d²/2 and of |θ_d| in the objective, for each coefficient.
    tol : float
        Gap to reach, relative to the larger of |objective| and 1, the largest saving of
        the scaled problem.
    n_jobs : int or None
        Threads that may be used; None leaves it to the solver.
    callback : callable or None
        Called after each iteration with a `Progress`; returns True to stop.
    """

    ridge: Array
    lasso: Array
    tol: float
    n_jobs: int | None = None
    callback: Callable[[Progress], object] | None = None


@dataclass(frozen=True)
class Progress:
    """Where a solver stands.

    Attributes
    ----------
    iteration : int
    upper, lower : float
        Its own estimates of the bounds; the certificate is computed at the end.
    """

    iteration: int
    upper: float
    lower: float


Run = Callable[[SurrogateProblem, Options], RawSolution]
# Linear program, options -> solution vector, row multipliers, iterations.
RunLinear = Callable[[LinearProgram, Options], tuple[Array, Array, int]]


@dataclass(frozen=True)
class Solver:
    """A registered solver and what it can do.

    Attributes
    ----------
    name : str
    run : callable
    ridge : bool
        Whether it can minimise a ridge penalty (a quadratic program).
    module : str or None
        The optional module it needs, and the extra that installs it.
    """

    name: str
    run: Run
    ridge: bool
    module: str | None = None

    @property
    def installed(self) -> bool:
        """Whether the module it needs is there; asked without importing it."""
        return self.module is None or find_spec(self.module) is not None

    def require(self) -> None:
        """Raise `MissingDependencyError` if the module it needs is not there."""
        if not self.installed:
            raise MissingDependencyError(
                f"solver {self.name!r} needs {self.module}, which is not installed; run "
                f"pip install 'sensortree[solvers]'."
            )


def solvers_for_both_forms(
    name: str, run_linear: RunLinear, *, ridge: bool, module: str | None = None
) -> tuple[Solver, Solver]:
    """Register a general solver on the compact form, and on the paper's path form."""
    return (
        Solver(name, partial(solve_form, compact_form, run_linear), ridge, module),
        Solver(
            f"{name}-path", partial(solve_form, path_form, run_linear), ridge, module
        ),
    )


def solve_form(
    form: Callable[[SurrogateProblem], LinearProgram],
    run_linear: RunLinear,
    problem: SurrogateProblem,
    options: Options,
) -> RawSolution:
    """Write a problem in a form, hand it over, read the answer."""
    if is_foreign(problem.lost_if_negative):
        raise ProblemError(
            "general solvers take NumPy arrays; use solver='structured' for arrays of "
            "another library."
        )
    program = form(problem)
    if options.lasso.any():
        program = with_l1(program, options.lasso)
    x, multipliers, iterations = run_linear(program, options)
    candidate = Candidate(program.coef_of(x), program.dual_of(multipliers))
    return RawSolution([candidate], iterations)
