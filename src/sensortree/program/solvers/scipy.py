"""SciPy's HiGHS: always there, no quadratic term."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linprog

from sensortree.exceptions import SolverError
from sensortree.program.solvers.base import (
    LinearProgram,
    Options,
    solvers_for_both_forms,
)
from sensortree.types import Array


def run(program: LinearProgram, options: Options) -> tuple[Array, Array, int]:
    """Solve by HiGHS's simplex, or its interior point where that ends in nothing.

    Either goes on to a vertex, which is exact to rounding.
    """
    rows: Any = -program.matrix  # SciPy's stubs do not know that it takes sparse arrays
    for method in ("highs", "highs-ipm"):
        result = linprog(
            program.cost,
            A_ub=rows,
            b_ub=-program.bound,
            bounds=np.c_[program.lower, np.full(program.lower.size, np.inf)],
            method=method,
        )
        if result.x is not None:
            break
    else:
        raise SolverError(f"SciPy's HiGHS gave no solution: {result.message}")
    # SciPy's marginals are those of rows <= bound, hence at most 0.
    return result.x, -result.ineqlin.marginals, int(result.nit)


SOLVERS = solvers_for_both_forms("scipy", run, ridge=False)
