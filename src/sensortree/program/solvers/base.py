"""What a solver is: a function from a problem to coefficients and a dual point.

A general solver takes a `LinearProgram`. A form takes a `SurrogateProblem` to matrices and
knows how to read coefficients and a dual point out of what such a solver returns.
`path_form` is the paper's own program (label prop.lp_tree); `compact_form` has the same
optimum with fewer and shorter rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sensortree.exceptions import MissingDependencyError, ProblemError
from sensortree.program.arrays import is_foreign
from sensortree.program.surrogate import Coef, DualPoint, SurrogateProblem
from sensortree.types import Array


@dataclass(frozen=True, eq=False)
class Candidate:
    """Coefficients and the dual point that goes with them."""

    coef: Coef
    dual: DualPoint


@dataclass(frozen=True, eq=False)
class RawSolution:
    """What a solver returns; it may be sloppy, since we certify."""

    candidates: list[
        Candidate
    ]  # the first that is certified is taken, or else the best
    iterations: int
    stopped: bool = False  # by the user


@dataclass(frozen=True, eq=False)
class Options:
    """What a solver is asked for besides the problem."""

    ridge: Array  # (p,): weight of θ_d²/2 in the objective, for each coefficient
    lasso: Array  # (p,): weight of |θ_d|
    # Gap to reach, relative to the larger of |objective| and 1, the largest saving of the
    # scaled problem.
    tol: float
    n_jobs: int | None = None  # threads that may be used; None leaves it to the solver
    # Called after each iteration; returns True to stop.
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


# linear programs ----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LinearProgram:
    """Minimise cost·x subject to matrix @ x >= bound and x >= lower.

    Attributes
    ----------
    cost : ndarray of shape (n_variables,)
    matrix : sparse array of shape (n_rows, n_variables)
    bound : ndarray of shape (n_rows,)
    lower : ndarray of shape (n_variables,)
        -inf for free variables.
    n_coef : int
        The first n_coef variables are the coefficients θ, node by node.
    coef_of : callable
        Solution vector -> coefficients.
    dual_of : callable
        Multipliers of the rows, at least 0 -> `DualPoint`.
    """

    cost: Array
    matrix: sparse.csr_array
    bound: Array
    lower: Array
    n_coef: int
    coef_of: Callable[[Array], Coef]
    dual_of: Callable[[Array], DualPoint]


def path_form(problem: SurrogateProblem) -> LinearProgram:
    """Write the paper's linear program (prop.lp_tree), one row per example and leaf.

    With x = (θ, γ, α, β), node-major, and the paper's weights
    w_p,k = P_k ∘ lost_if_positive, w_n,k = N_k ∘ lost_if_negative:

        minimise    sum_i γ_i
        subject to  γ_i - w_p,k·α_i - w_n,k·β_i >= 0     one per leaf k   (epigraph)
                    α_ij - g_j(x_i) >= 1,  α_ij >= 0      one per node j  (hinge_positive)
                    β_ij + g_j(x_i) >= 1,  β_ij >= 0      one per node j  (hinge_negative)

    Multipliers: those of the leaf rows are the flow that ends at each leaf, those of the
    hinge rows are the pulls.
    """
    n, n_nodes, n_leaves = problem.n_samples, problem.n_nodes, problem.n_leaves
    P, N = problem.paths

    def weights(lost: Array, on_path: NDArray[np.bool_]) -> sparse.sparray:
        """-w of each leaf and node, over examples."""
        return sparse.block_array(
            [
                [sparse.diags_array(-lost[:, j] * leaf[j]) for j in range(n_nodes)]
                for leaf in on_path
            ]
        )

    flows = sparse.vstack([sparse.eye_array(n)] * n_leaves)
    epigraph = (
        weights(problem.lost_if_positive, P),
        weights(problem.lost_if_negative, N),
    )
    decisions = sparse.block_diag([sparse.csr_array(f) for f in problem.features])
    ones = sparse.eye_array(n * n_nodes)
    matrix = sparse.block_array(
        [
            [None, flows, *epigraph],
            [-decisions, None, ones, None],
            [decisions, None, None, ones],
        ],
        format="csr",
    )
    n_coef = sum(problem.n_features)
    hinges = 2 * n * n_nodes

    def dual_of(multipliers: Array) -> DualPoint:
        leaf_flow = multipliers[: n * n_leaves].reshape(n_leaves, n)
        pulls = multipliers[n * n_leaves :].reshape(2, n_nodes, n)
        return DualPoint(leaf_flow.T @ N, leaf_flow.T @ P, pulls[1].T, pulls[0].T)

    return LinearProgram(
        cost=np.r_[np.zeros(n_coef), np.ones(n), np.zeros(hinges)],
        matrix=matrix,
        bound=np.r_[np.zeros(n * n_leaves), np.ones(hinges)],
        lower=np.r_[np.full(n_coef + n, -np.inf), np.zeros(hinges)],
        n_coef=n_coef,
        coef_of=lambda x: problem.split(x[:n_coef]),
        dual_of=dual_of,
    )


def compact_form(problem: SurrogateProblem) -> LinearProgram:
    """Write the recursion, hinges eliminated: four short rows per example and node.

    With x = (θ, v), v node-major, v of a leaf = 0, m_j = φ_j·θ_j:

        minimise    sum_i v_i,root
        subject to  v_j - v_negative(j) + a_j m_j >= a_j,   v_j - v_negative(j) >= 0,
                    v_j - v_positive(j) - b_j m_j >= b_j,   v_j - v_positive(j) >= 0.

    Multipliers z1..z4: z1 + z2 and z3 + z4 are the flows on the two edges, a z1 and b z3
    the pulls.
    """
    n, n_nodes = problem.n_samples, problem.n_nodes
    blocks: list[list[sparse.csr_array | None]] = []
    bounds = []
    for j in range(n_nodes):
        for sign, lost, child in (
            (+1.0, problem.lost_if_negative[:, j], problem.negative[j]),
            (-1.0, problem.lost_if_positive[:, j], problem.positive[j]),
        ):
            pull = sparse.csr_array((sign * lost)[:, None] * problem.features[j])
            for with_margin in (True, False):
                row: list[sparse.csr_array | None] = [None] * (2 * n_nodes)
                row[j] = pull if with_margin else sparse.csr_array(pull.shape)
                row[n_nodes + j] = sparse.eye_array(n, format="csr")
                if child >= 0:
                    row[n_nodes + child] = -sparse.eye_array(n, format="csr")
                blocks.append(row)
                bounds.append(lost if with_margin else np.zeros(n))
    n_coef = sum(problem.n_features)

    def dual_of(multipliers: Array) -> DualPoint:
        z = multipliers.reshape(n_nodes, 4, n)
        return DualPoint(
            flow_negative=(z[:, 0] + z[:, 1]).T,
            flow_positive=(z[:, 2] + z[:, 3]).T,
            pull_negative=problem.lost_if_negative * z[:, 0].T,
            pull_positive=problem.lost_if_positive * z[:, 2].T,
        )

    cost = np.zeros(n_coef + n * n_nodes)
    cost[n_coef : n_coef + n] = 1.0
    return LinearProgram(
        cost=cost,
        matrix=sparse.block_array(blocks, format="csr"),
        bound=np.concatenate(bounds),
        lower=np.full(cost.size, -np.inf),
        n_coef=n_coef,
        coef_of=lambda x: problem.split(x[:n_coef]),
        dual_of=dual_of,
    )


def with_l1(program: LinearProgram, weights: Array) -> LinearProgram:
    """Add sum_d weights_d |θ_d| to the objective, by a variable t_d >= ±θ_d each."""
    n_rows, n_variables = program.matrix.shape
    picks = sparse.eye_array(program.n_coef, n_variables, format="csr")
    ones = sparse.eye_array(program.n_coef)
    matrix = sparse.block_array(
        [[program.matrix, None], [-picks, ones], [picks, ones]], format="csr"
    )
    return replace(
        program,
        cost=np.r_[program.cost, weights],
        matrix=matrix,
        bound=np.r_[program.bound, np.zeros(2 * program.n_coef)],
        lower=np.r_[program.lower, np.full(program.n_coef, -np.inf)],
        dual_of=lambda multipliers: program.dual_of(multipliers[:n_rows]),
    )


# Linear program, options -> solution vector, row multipliers, iterations.
RunLinear = Callable[[LinearProgram, Options], tuple[Array, Array, int]]


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
