"""Clarabel: a general interior point for linear and quadratic programs."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from sensortree.exceptions import SolverError
from sensortree.program.solvers.base import (
    LinearProgram,
    Options,
    solvers_for_both_forms,
)
from sensortree.types import Array


def run(program: LinearProgram, options: Options) -> tuple[Array, Array, int]:
    """Solve  min cost·x + ½ xᵀPx  subject to  rows @ x + s = bounds, s >= 0."""
    import clarabel

    bounded = np.flatnonzero(np.isfinite(program.lower))
    identity = sparse.eye_array(program.lower.size, format="csr")
    rows = sparse.vstack([-program.matrix, -identity[bounded]], format="csc")
    bounds = np.r_[-program.bound, -program.lower[bounded]]
    quadratic = np.zeros(program.cost.size)
    quadratic[: program.n_coef] = options.ridge
    solution = clarabel.DefaultSolver(
        sparse.csc_matrix(sparse.diags_array(quadratic)),
        program.cost,
        sparse.csc_matrix(rows),
        bounds,
        [clarabel.NonnegativeConeT(bounds.size)],
        settings(options),
    ).solve()
    x, multipliers = np.array(solution.x), np.array(solution.z)
    if not (np.all(np.isfinite(x)) and np.all(np.isfinite(multipliers))):
        raise SolverError(f"Clarabel gave no solution: {solution.status}")
    return x, multipliers[: program.bound.size], int(solution.iterations)


def settings(options: Options) -> Any:
    """Quiet, and as accurate as the gap needs."""
    import clarabel

    chosen = clarabel.DefaultSettings()
    chosen.verbose = False
    accuracy = max(1e-10, 1e-2 * options.tol)
    chosen.tol_gap_abs = chosen.tol_gap_rel = chosen.tol_feas = accuracy
    chosen.max_iter = 500
    return chosen


SOLVERS = solvers_for_both_forms("clarabel", run, ridge=True, module="clarabel")
