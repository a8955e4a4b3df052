"""HiGHS through highspy: its interior point without crossover, for linear programs.

Its active-set method for quadratic programs ends in "Solve error" on problems of this
shape (HiGHS 1.15, 60 examples and 4 leaves), so no ridge penalty is declared.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sensortree.exceptions import SolverError
from sensortree.program.solvers.base import (
    LinearProgram,
    Options,
    solvers_for_both_forms,
)
from sensortree.types import Array


def run(
    program: LinearProgram, options: Options, method: str = "ipm"
) -> tuple[Array, Array, int]:
    """Solve by one of HiGHS's methods, one thread."""
    import highspy

    highs = highspy.Highs()
    accuracy = max(1e-10, 1e-2 * options.tol)
    settings: dict[str, Any] = {
        "output_flag": False,
        "threads": 1,
        "solver": method,
        "run_crossover": "off",  # we certify; a vertex is not needed
        "primal_feasibility_tolerance": accuracy,
        "dual_feasibility_tolerance": accuracy,
        "ipm_optimality_tolerance": accuracy,
    }
    for name, value in settings.items():
        highs.setOptionValue(name, value)
    highs.passModel(_model(highspy, program))
    highs.run()
    status = highs.getModelStatus()
    solution = highs.getSolution()
    if not solution.value_valid or not solution.dual_valid:
        raise SolverError(
            f"HiGHS gave no solution: {highs.modelStatusToString(status)}"
        )
    info = highs.getInfo()
    iterations = max(info.ipm_iteration_count, info.simplex_iteration_count)
    return np.array(solution.col_value), np.array(solution.row_dual), int(iterations)


def _model(highspy: Any, program: LinearProgram) -> Any:
    """Fill HiGHS's own structure, by rows."""
    n_rows, n_columns = program.matrix.shape
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = n_columns, n_rows
    lp.col_cost_ = program.cost
    lp.col_lower_ = np.where(np.isinf(program.lower), -highspy.kHighsInf, program.lower)
    lp.col_upper_ = np.full(n_columns, highspy.kHighsInf)
    lp.row_lower_ = program.bound
    lp.row_upper_ = np.full(n_rows, highspy.kHighsInf)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = program.matrix.indptr
    lp.a_matrix_.index_ = program.matrix.indices
    lp.a_matrix_.value_ = program.matrix.data
    return lp


SOLVERS = solvers_for_both_forms("highs", run, ridge=False, module="highspy")
