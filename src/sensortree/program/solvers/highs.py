"""HiGHS through highspy: interior point for linear programs, active set for ridge."""

from __future__ import annotations

from typing import Any

import numpy as np

from sensortree.exceptions import SolverError
from sensortree.program.linear_program import LinearProgram
from sensortree.program.solvers.base import solvers_for_both_forms
from sensortree.program.surrogate import Array


def run(program: LinearProgram, ridge: Array, tol: float) -> tuple[Array, Array, int]:
    """Solve by HiGHS, one thread."""
    import highspy

    highs = highspy.Highs()
    quadratic = bool(np.any(ridge > 0))
    options: dict[str, Any] = {
        "output_flag": False,
        "threads": 1,
        "solver": "choose" if quadratic else "ipm",
        "primal_feasibility_tolerance": 1e-9,
        "dual_feasibility_tolerance": 1e-9,
        "ipm_optimality_tolerance": 1e-10,
    }
    for name, value in options.items():
        highs.setOptionValue(name, value)
    highs.passModel(_model(highspy, program, ridge))
    highs.run()
    status = highs.getModelStatus()
    solution = highs.getSolution()
    if not solution.value_valid or not solution.dual_valid:
        raise SolverError(
            f"HiGHS gave no solution: {highs.modelStatusToString(status)}"
        )
    info = highs.getInfo()
    iterations = info.qp_iteration_count if quadratic else info.ipm_iteration_count
    return np.array(solution.col_value), np.array(solution.row_dual), int(iterations)


def _model(highspy: Any, program: LinearProgram, ridge: Array) -> Any:
    """Fill HiGHS's own structure, by rows."""
    n_rows, n_columns = program.matrix.shape
    model = highspy.HighsModel()
    lp = model.lp_
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
    if np.any(ridge > 0):
        hessian = model.hessian_
        hessian.dim_ = n_columns
        hessian.format_ = highspy.HessianFormat.kTriangular
        hessian.start_ = np.r_[
            np.arange(ridge.size), np.full(n_columns + 1 - ridge.size, ridge.size)
        ].astype(np.int32)
        hessian.index_ = np.arange(ridge.size, dtype=np.int32)
        hessian.value_ = ridge
    return model


SOLVERS = solvers_for_both_forms("highs", run, ridge=True, module="highspy")
