"""General solvers beyond the registry: other forms of the program, HiGHS's simplex.

The registry has the compact form (hinges eliminated from the recursion, four rows per
node and example) and the paper's path form. Here are the two in between,

    recursive   the recursion with its hinges kept as variables α, β:
                v_j - v_negative - a_j β_j >= 0,   β_j + m_j >= 1,   β_j >= 0,
                v_j - v_positive - b_j α_j >= 0,   α_j - m_j >= 1,   α_j >= 0,
    margins     the compact rows with the margins m = φ·θ as variables, so that each
                feature stands in the matrix once instead of twice; for Clarabel,

and HiGHS's dual simplex on the compact form.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy import sparse

from sensortree.program import SurrogateProblem
from sensortree.program.solvers import Candidate, Options, RawSolution, Solver
from sensortree.program.solvers.base import (
    LinearProgram,
    RunLinear,
    compact_form,
    solve_form,
)
from sensortree.program.solvers.clarabel import run as run_clarabel
from sensortree.program.solvers.clarabel import settings as clarabel_settings
from sensortree.program.solvers.highs import run as run_highs
from sensortree.program.surrogate import DualPoint


def recursive_form(problem: SurrogateProblem) -> LinearProgram:
    """Keep the hinges: x = (θ, α, β, v), all but θ node-major."""
    n, n_nodes = problem.n_samples, problem.n_nodes
    size, n_coef = n * n_nodes, sum(problem.n_features)
    a, b = problem.lost_if_negative, problem.lost_if_positive
    drops = [_drops(side, n) for side in (problem.negative, problem.positive)]
    phi = sparse.block_diag([sparse.csr_array(f) for f in problem.features])
    one, nothing = sparse.eye_array(size), sparse.csr_array((size, n_coef))
    matrix = sparse.block_array(
        [
            [nothing, None, -sparse.diags_array(a.T.ravel()), drops[0]],
            [None, -sparse.diags_array(b.T.ravel()), None, drops[1]],
            [phi, None, one, None],
            [-phi, one, None, None],
        ],
        format="csr",
    )
    cost, lower = np.zeros(n_coef + 3 * size), np.full(n_coef + 3 * size, -np.inf)
    cost[n_coef + 2 * size :][:n] = 1.0
    lower[n_coef : n_coef + 2 * size] = 0.0

    def dual_of(multipliers: np.ndarray) -> DualPoint:
        return DualPoint(*(z.T for z in multipliers.reshape(4, n_nodes, n)))

    return LinearProgram(
        cost=cost,
        matrix=matrix,
        bound=np.repeat([0.0, 0.0, 1.0, 1.0], size),
        lower=lower,
        n_coef=n_coef,
        coef_of=lambda x: problem.split(x[:n_coef]),
        dual_of=dual_of,
    )


def run_clarabel_with_margins(
    problem: SurrogateProblem, options: Options
) -> RawSolution:
    """Solve the compact rows over (θ, m, v), with φ·θ - m = 0."""
    import clarabel

    n, n_nodes = problem.n_samples, problem.n_nodes
    size, n_coef = n * n_nodes, sum(problem.n_features)
    a, b = (x.T.ravel() for x in (problem.lost_if_negative, problem.lost_if_positive))
    low, high = (_drops(side, n) for side in (problem.negative, problem.positive))
    phi = sparse.block_diag([sparse.csr_array(f) for f in problem.features])
    one, zero = sparse.eye_array(size), sparse.csr_array((size, size))
    matrix = sparse.block_array(
        [
            [phi, -one, None],
            [None, -sparse.diags_array(a), -low],
            [None, None, -low],
            [None, sparse.diags_array(b), -high],
            [None, zero, -high],
        ],
        format="csc",
    )
    bounds = np.concatenate([0 * a, -a, 0 * a, -b, 0 * b])
    cost = np.zeros(n_coef + 2 * size)
    cost[n_coef + size :][:n] = 1.0
    solution = clarabel.DefaultSolver(
        sparse.csc_matrix((cost.size, cost.size)),
        cost,
        sparse.csc_matrix(matrix),
        bounds,
        [clarabel.ZeroConeT(size), clarabel.NonnegativeConeT(4 * size)],
        clarabel_settings(options),
    ).solve()
    z1, z2, z3, z4 = np.array(solution.z)[size:].reshape(4, n_nodes, n)
    dual = DualPoint(
        (z1 + z2).T,
        (z3 + z4).T,
        problem.lost_if_negative * z1.T,
        problem.lost_if_positive * z3.T,
    )
    coef = problem.split(np.array(solution.x)[:n_coef])
    return RawSolution([Candidate(coef, dual)], int(solution.iterations))


def _drops(children: np.ndarray, n: int) -> sparse.csr_array:
    """v_j - v_child, node-major; v of a leaf is 0."""
    inner = np.flatnonzero(children >= 0)
    signs = sparse.csr_array(
        (np.full(inner.size, -1.0), (inner, children[inner])), shape=2 * [len(children)]
    )
    return sparse.kron(sparse.eye_array(len(children)) + signs, sparse.eye_array(n))


def _on(form: object, run_linear: RunLinear, name: str) -> Solver:
    return Solver(name, partial(solve_form, form, run_linear), ridge=False)


RIVALS = {
    solver.name: solver
    for solver in (
        _on(recursive_form, run_highs, "highs-recursive"),
        _on(recursive_form, run_clarabel, "clarabel-recursive"),
        Solver("clarabel-margins", run_clarabel_with_margins, ridge=False),
        _on(compact_form, partial(run_highs, method="simplex"), "highs-simplex"),
    )
}


def n_rows(solver: str, problem: SurrogateProblem) -> int:
    """Rows of the linear program that a solver is given, bounds of variables aside."""
    n, n_nodes = problem.n_samples, problem.n_nodes
    per_example = {"path": 3 * n_nodes + 1, "margins": 5 * n_nodes}
    return n * per_example.get(solver.partition("-")[2], 4 * n_nodes)
