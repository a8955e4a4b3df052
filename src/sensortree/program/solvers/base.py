"""What a solver is: a function from a problem to coefficients and a dual point."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec

from sensortree.exceptions import MissingDependencyError
from sensortree.program.linear_program import LinearProgram, compact_form, path_form
from sensortree.program.surrogate import Array, Coef, DualPoint, SurrogateProblem


@dataclass(frozen=True, eq=False)
class RawSolution:
    """What a solver returns; it may be sloppy, since we certify."""

    coef: Coef
    dual: DualPoint
    iterations: int


# Problem, ridge weight of each coefficient, relative accuracy -> raw solution.
Run = Callable[[SurrogateProblem, Array, float], RawSolution]
# The same for a linear program -> solution vector, row multipliers, iterations.
RunLinear = Callable[[LinearProgram, Array, float], tuple[Array, Array, int]]


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
        Solver(name, partial(_solve_form, compact_form, run_linear), ridge, module),
        Solver(
            f"{name}-path", partial(_solve_form, path_form, run_linear), ridge, module
        ),
    )


def _solve_form(
    form: Callable[[SurrogateProblem], LinearProgram],
    run_linear: RunLinear,
    problem: SurrogateProblem,
    ridge: Array,
    tol: float,
) -> RawSolution:
    program = form(problem)
    x, multipliers, iterations = run_linear(program, ridge, tol)
    return RawSolution(program.coef_of(x), program.dual_of(multipliers), iterations)
