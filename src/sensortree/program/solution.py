"""`solve`: scale, hand over to a solver, undo the scaling, certify."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensortree.exceptions import CertificateWarning, ParameterError
from sensortree.program.certificate import Certificate, certify
from sensortree.program.solvers import SOLVERS, Options, Progress, Solver
from sensortree.program.surrogate import DualPoint, Penalty, SurrogateProblem


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

    coef: list[NDArray[np.float64]]
    certificate: Certificate
    dual: DualPoint
    solver: str
    iterations: int
    seconds: float


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
        Threads of the structured solver; None means 1. The answer does not depend on it.
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
    started = time.perf_counter()
    # A solver sees columns and savings of size 1, whatever the user's units are.
    scaled, column_scale, size = problem.scaled()
    flat_scale = np.concatenate(column_scale)
    options = Options(
        ridge=l2 / size / flat_scale**2,
        lasso=l1 / size / flat_scale,
        tol=tol,
        unit=1.0 / size,
        n_jobs=n_jobs or 1,
        callback=callback,
    )
    raw = back_end.run(scaled, options)
    seconds = time.perf_counter() - started
    best: tuple[list[NDArray[np.float64]], DualPoint, Certificate] | None = None
    for candidate in raw.candidates:
        coef = [c / s for c, s in zip(candidate.coef, column_scale, strict=True)]
        dual = _times(candidate.dual, size)
        certificate = certify(problem, coef, dual, tol=tol, penalty=Penalty(l2, l1))
        if best is None or certificate.gap < best[2].gap:
            best = coef, dual, certificate
        if certificate.converged:
            break
    assert best is not None  # a solver returns at least one candidate
    coef, dual, certificate = best
    if not certificate.converged:
        warnings.warn(
            f"solver {solver!r} stopped after {raw.iterations} iterations with a "
            f"certified gap of {certificate.gap:.2e}, more than tol={tol:g}; raise tol, "
            f"add a small l2, or try another solver.",
            CertificateWarning,
            stacklevel=2,
        )
    return Solution(coef, certificate, dual, solver, raw.iterations, seconds)


def _times(dual: DualPoint, size: float) -> DualPoint:
    """Give pulls in the user's unit."""
    return replace(
        dual,
        pull_negative=dual.pull_negative * size,
        pull_positive=dual.pull_positive * size,
    )


def _check_options(
    solver: str, tol: float, l2: float, l1: float, n_jobs: int | None
) -> Solver:
    if solver not in SOLVERS:
        raise ParameterError(
            f"solver must be one of {', '.join(map(repr, SOLVERS))}, got {solver!r}."
        )
    _check_number("tol", tol, positive=True)
    _check_number("l2", l2, positive=False)
    _check_number("l1", l1, positive=False)
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


def _check_number(name: str, value: Any, *, positive: bool) -> None:
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not np.isfinite(value) or value < 0 or (positive and value == 0):
        least = "more than 0" if positive else "at least 0"
        raise ParameterError(f"{name} must be finite and {least}, got {value!r}.")
