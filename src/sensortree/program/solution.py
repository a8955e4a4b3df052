"""`solve`: scale, hand over to a solver, undo the scaling, certify."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from numbers import Real

import numpy as np

from sensortree.exceptions import CertificateWarning, ParameterError
from sensortree.program.certificate import Certificate, certify
from sensortree.program.solvers import SOLVERS
from sensortree.program.surrogate import Array, DualPoint, SurrogateProblem


@dataclass(frozen=True, eq=False)
class Solution:
    """Coefficients of every decision function, with their proof.

    Attributes
    ----------
    coef : list of ndarray of shape (D_j,)
        θ_j of each node.
    certificate : Certificate
    dual : DualPoint
        The dual point the certificate was made from, as the solver gave it.
    solver : str
    iterations : int
    seconds : float
        Time spent in the solver, certificate not included.
    """

    coef: list[Array]
    certificate: Certificate
    dual: DualPoint
    solver: str
    iterations: int
    seconds: float


def solve(
    problem: SurrogateProblem,
    solver: str = "scipy",
    tol: float = 1e-6,
    l2: float = 0.0,
) -> Solution:
    """Minimise the surrogate, and prove how close the answer is.

    Parameters
    ----------
    problem : SurrogateProblem
    solver : str, default="scipy"
        "scipy", "highs" or "clarabel"; with "-path" behind it, the solver is given the
        paper's path form instead of the compact one.
    tol : float, default=1e-6
        Relative gap to be certified. A larger one is returned with a warning.
    l2 : float, default=0.0
        Weight of the ridge penalty (l2/2) |θ|² added to the objective.

    Returns
    -------
    solution : Solution

    Examples
    --------
    >>> from sensortree.program import SurrogateProblem, solve
    >>> problem = SurrogateProblem(
    ...     [-1], [-1], [[[1.0], [2.0]]], [[1.0], [0.0]], [[0.0], [2.0]])
    >>> solution = solve(problem)
    >>> round(solution.certificate.upper, 6)
    1.5
    >>> solution.certificate.converged
    True
    """
    _check_options(solver, tol, l2)
    back_end = SOLVERS[solver]
    back_end.require()
    if l2 > 0 and not back_end.ridge:
        able = ", ".join(repr(s.name) for s in SOLVERS.values() if s.ridge)
        raise ParameterError(
            f"solver {solver!r} cannot minimise a ridge penalty (l2={l2:g}); use one of "
            f"{able}, or l2=0."
        )
    started = time.perf_counter()
    # A solver sees columns and savings of size 1, whatever the user's units are.
    scaled, column_scale, size = problem.scaled()
    ridge = l2 / size / np.concatenate([*column_scale, np.empty(0)]) ** 2
    raw = back_end.run(scaled, ridge, tol)
    seconds = time.perf_counter() - started
    coef = [c / scale for c, scale in zip(raw.coef, column_scale, strict=True)]
    dual = DualPoint(
        raw.dual.flow_negative,
        raw.dual.flow_positive,
        raw.dual.pull_negative * size,
        raw.dual.pull_positive * size,
    )
    certificate = certify(problem, coef, dual, tol=tol, l2=l2)
    if not certificate.converged:
        warnings.warn(
            f"solver {solver!r} stopped after {raw.iterations} iterations with a "
            f"certified gap of {certificate.gap:.2e}, more than tol={tol:g}; raise tol, "
            f"or try another solver.",
            CertificateWarning,
            stacklevel=2,
        )
    return Solution(coef, certificate, dual, solver, raw.iterations, seconds)


def _check_options(solver: str, tol: float, l2: float) -> None:
    if solver not in SOLVERS:
        raise ParameterError(
            f"solver must be one of {', '.join(map(repr, SOLVERS))}, got {solver!r}."
        )
    for name, value, least in (("tol", tol, "more than 0"), ("l2", l2, "at least 0")):
        right = isinstance(value, Real) and not isinstance(value, bool)
        if (
            not right
            or not np.isfinite(value)
            or value < 0
            or (value == 0 and least[0] == "m")
        ):
            raise ParameterError(f"{name} must be finite and {least}, got {value!r}.")
