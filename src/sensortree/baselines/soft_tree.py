"""The objective of CSTC: a tree of regressions that examples pass with probabilities.

Nodes are numbered level by level: the children of node k are 2k + 1, below, and 2k + 2,
above. Node k regresses the target t on the columns x (the last is constant) by β^k; an
example goes up with probability σ(κ(xβ^k a^k - θ^k)), with κ = 1 as published, and a^k = 1
for one output. With p_i^k the probability that example i comes to node k, p^l its mean, and
π_l the path to the node l of the last level, the objective is

    sum_k [ sum_i w_i p_i^k |t_i - x_i β^k|² + ρ |β^k|_1 ]
    + λ sum_l p^l sum_α c_α ( sum_{j on π_l} |β_α^j|² )^½,      sum_i w_i = 1,

where β_α are the coefficients of sensor α: of one column as published, of several by our
extension. Every root is √g = min_z (g/z + z)/2. With all z at their best, the objective is
a quadratic function of the coefficients of a node of the last level, and a smooth function
of those of any other node and of its threshold.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve
from scipy.optimize import minimize
from scipy.special import expit

from sensortree.constants import CSTC_CLAMP, CSTC_CONJUGATE_STEPS, EPS
from sensortree.types import Array


@dataclass(frozen=True, eq=False)
class SoftTree:
    """What is learned.

    Attributes
    ----------
    coef : ndarray of shape (n_nodes, n_columns, n_outputs)
        β, the constant's last.
    threshold : ndarray of shape (n_inner,)
        θ of the nodes above the last level.
    direction : ndarray of shape (n_inner, n_outputs)
        a: which combination of the outputs sends examples on.
    """

    coef: Array
    threshold: Array
    direction: Array

    def with_node(self, k: int, coef: Array, threshold: float | None) -> SoftTree:
        """Give the same tree with another node k."""
        all_coef, thresholds = self.coef.copy(), self.threshold.copy()
        all_coef[k] = coef
        if threshold is not None:
            thresholds[k] = threshold
        return replace(self, coef=all_coef, threshold=thresholds)


@dataclass(frozen=True, eq=False)
class SoftTreeProblem:
    """What is learned from.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_columns)
        The last column is constant.
    target : ndarray of shape (n_samples, n_outputs)
    weight : ndarray of shape (n_samples,)
        Of sum 1.
    owner : ndarray of shape (n_columns - 1,)
        The sensor of each column.
    costs : ndarray of shape (n_sensors,)
    depth : int
        Number of levels.
    cost_weight, l1, steepness : float
        λ, ρ and κ.
    """

    X: Array
    target: Array
    weight: Array
    owner: NDArray[np.intp]
    costs: Array
    depth: int
    cost_weight: float
    l1: float
    steepness: float = 1.0

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return int(2**self.depth - 1)

    @property
    def n_inner(self) -> int:
        """Number of nodes above the last level; the others come after them."""
        return int(2 ** (self.depth - 1) - 1)

    def up(self, tree: SoftTree, k: int) -> Array:
        """Probability of going up at node k, (n_samples,)."""
        score = self.X @ (tree.coef[k] @ tree.direction[k])
        return np.asarray(expit(self.steepness * (score - tree.threshold[k])))

    def loss(self, tree: SoftTree, k: int) -> Array:
        """Squared loss of node k on each example, (n_samples,)."""
        return np.asarray(((self.X @ tree.coef[k] - self.target) ** 2).sum(axis=1))

    def reach(self, tree: SoftTree) -> Array:
        """p: probability of coming to each node, (n_nodes, n_samples)."""
        p = np.ones((self.n_nodes, len(self.X)))
        for k in range(self.n_inner):
            up = self.up(tree, k)
            p[2 * k + 1], p[2 * k + 2] = p[k] * (1.0 - up), p[k] * up
        return p

    def squares(self, coef: Array) -> Array:
        """|β_α|² of each sensor at a node, (n_sensors,)."""
        own = (coef[:-1] ** 2).sum(axis=1)
        sums = np.bincount(self.owner, own, minlength=len(self.costs))
        return np.asarray(sums, dtype=np.float64)

    def path_norms(self, tree: SoftTree) -> Array:
        """(sum_{j on π_k} |β_α^j|²)^½ on the path to each node, (n_nodes, n_sensors)."""
        squares = np.array([self.squares(coef) for coef in tree.coef])
        for k in range(1, self.n_nodes):
            squares[k] += squares[(k - 1) // 2]
        return np.asarray(np.sqrt(squares))

    def objective(self, tree: SoftTree) -> float:
        """Value of the objective."""
        shares = self.reach(tree) * self.weight
        fit = sum(shares[k] @ self.loss(tree, k) for k in range(self.n_nodes))
        costs = self.path_norms(tree)[self.n_inner :] @ self.costs
        paid = shares[self.n_inner :].sum(axis=1) @ costs
        sparse = np.abs(tree.coef[:, :-1]).sum()
        return float(fit + self.l1 * sparse + self.cost_weight * paid)


def fit_last_level(
    problem: SoftTreeProblem, tree: SoftTree, k: int, share: Array, norms: Array
) -> Array:
    """Best coefficients of a node as if it were of the last level: a closed form.

    Minimises  sum_i share_i |t_i - x_i β|² + ½ sum (ρ/γ + λ p c/η) β²  with γ, η where
    they are best for the present coefficients; of these, 0 stays 0.

    The share, (n_samples,), is weight times probability of coming there; the norms,
    (n_sensors,), are η of the path to the node.
    """
    X, now = problem.X, tree.coef[k]
    gram = X.T @ (share[:, None] * X)
    moments = X.T @ (share[:, None] * problem.target)
    pull = node_pull(problem, now, share.sum() * norm_weights(problem, norms))
    coef: Array = np.zeros(now.shape)
    for output in range(now.shape[1]):
        free = np.append(now[:-1, output] != 0, True)
        system = 2.0 * gram[np.ix_(free, free)]
        # So little that only what is otherwise undetermined feels it.
        ridge = 1e-10 * max(float(share.sum()), EPS)
        system.flat[:: len(system) + 1] += pull[free, output] + ridge
        # Pulls differ by many powers of ten; scaled, the system is as good as it can be.
        unit = 1.0 / np.sqrt(np.diag(system))
        coef[free, output] = unit * solve(
            unit[:, None] * system * unit,
            2.0 * unit * moments[free, output],
            assume_a="pos",
            check_finite=False,
        )
    return coef


def norm_weights(problem: SoftTreeProblem, norms: Array) -> Array:
    """λ c_α / η_α; 0 where η is."""
    used = norms > 0
    weights = np.where(used, problem.costs / np.where(used, norms, 1.0), 0.0)
    return np.asarray(problem.cost_weight * weights)


def node_pull(problem: SoftTreeProblem, coef: Array, sensor_pull: Array) -> Array:
    """Curvature that the penalties add to each coefficient, with γ at its best."""
    size = np.abs(coef[:-1])
    sparse = np.where(size > 0, problem.l1 / np.where(size > 0, size, 1.0), 0.0)
    pull = np.zeros_like(coef)
    pull[:-1] = sparse + sensor_pull[problem.owner][:, None]
    return np.asarray(pull)


@dataclass(frozen=True, eq=False)
class InnerNode:
    """The objective as a function of one inner node, all else and all z held.

    Going up is worth ``above`` to an example, and going down ``below``: the expected
    losses of the nodes there, and the expected costs of the paths, as far as they do not
    depend on this node. Each path l through the node adds  λ/2 sum_α c_α |β_α|² / η_αl.

    Attributes
    ----------
    problem : SoftTreeProblem
    share : ndarray of shape (n_samples,)
        Weight times probability of coming to the node.
    direction : ndarray of shape (n_outputs,)
    below, above : ndarray of shape (n_samples,)
    paths_below, paths_above : ndarray of shape (n_samples, n_paths)
        Probability of ending each path, once an example went down or up.
    pull_below, pull_above : ndarray of shape (n_paths, n_sensors)
        λ c_α / η_αl.
    sparse_pull : ndarray of shape (n_columns, n_outputs)
        ρ / γ.
    """

    problem: SoftTreeProblem
    share: Array
    direction: Array
    below: Array
    above: Array
    paths_below: Array
    paths_above: Array
    pull_below: Array
    pull_above: Array
    sparse_pull: Array

    def value(self, coef: Array, threshold: float) -> tuple[float, Array, float]:
        """Value and derivatives by the coefficients and by the threshold."""
        X, owner = self.problem.X, self.problem.owner
        outputs = X @ coef
        residual = outputs - self.problem.target
        steep = self.problem.steepness
        up = expit(steep * (outputs @ self.direction - threshold))
        squares = self.problem.squares(coef)
        worth_up = self.above + self.paths_above @ (0.5 * self.pull_above @ squares)
        worth_down = self.below + self.paths_below @ (0.5 * self.pull_below @ squares)
        each = (residual**2).sum(axis=1) + up * worth_up + (1.0 - up) * worth_down
        value = self.share @ each + 0.5 * (self.sparse_pull * coef**2).sum()
        # d/d(score), which the coefficients and the threshold reach alike.
        slope = steep * self.share * up * (1.0 - up) * (worth_up - worth_down)
        ends_above = (self.share * up) @ self.paths_above
        ends_below = (self.share * (1.0 - up)) @ self.paths_below
        pull = ends_above @ self.pull_above + ends_below @ self.pull_below
        gradient = X.T @ (
            2.0 * self.share[:, None] * residual + slope[:, None] * self.direction
        )
        gradient += self.sparse_pull * coef
        gradient[:-1] += pull[owner][:, None] * coef[:-1]
        return float(value), gradient, float(-slope.sum())


def inner_node(
    problem: SoftTreeProblem, tree: SoftTree, k: int, share: Array, norms: Array
) -> InnerNode:
    """Hold everything but node k, and every z at its best.

    The norms, (n_nodes, n_sensors), are η of the path to each node.
    """
    squares = problem.squares(tree.coef[k])

    def subtree(v: int) -> tuple[Array, Array, Array]:
        """Worth of coming to v, chance of each path below, and their pulls."""
        loss = problem.loss(tree, v)
        if v >= problem.n_inner:
            pull = norm_weights(problem, norms[v])
            # η is the root now; what depends on node k is counted in `value`.
            fixed = (
                problem.cost_weight * problem.costs @ norms[v] - 0.5 * pull @ squares
            )
            return loss + fixed, np.ones((len(loss), 1)), pull[None, :]
        up = problem.up(tree, v)[:, None]
        low, low_paths, low_pull = subtree(2 * v + 1)
        high, high_paths, high_pull = subtree(2 * v + 2)
        worth = loss + up[:, 0] * high + (1.0 - up[:, 0]) * low
        paths = np.hstack([(1.0 - up) * low_paths, up * high_paths])
        return worth, paths, np.vstack([low_pull, high_pull])

    below, paths_below, pull_below = subtree(2 * k + 1)
    above, paths_above, pull_above = subtree(2 * k + 2)
    return InnerNode(
        problem,
        share,
        tree.direction[k],
        below,
        above,
        paths_below,
        paths_above,
        pull_below,
        pull_above,
        node_pull(problem, tree.coef[k], np.zeros(len(problem.costs))),
    )


def fit_inner(
    problem: SoftTreeProblem, tree: SoftTree, k: int, share: Array, norms: Array
) -> SoftTree:
    """Improve an inner node by conjugate gradients; coefficients of 0 stay 0."""
    node = inner_node(problem, tree, k, share, norms)
    coef, threshold = tree.coef[k], float(tree.threshold[k])
    free = coef != 0
    free[-1] = True
    paths = share @ np.hstack([node.paths_below, node.paths_above])
    pull = 0.5 * paths @ np.vstack([node.pull_below, node.pull_above])
    curved = node.sparse_pull + 2.0 * share.sum()
    curved[:-1] += pull[problem.owner][:, None]
    # Steps in units in which the curvature is about the same everywhere.
    scale = 1.0 / np.sqrt(np.append(curved[free], max(share.sum(), EPS)) + EPS)

    def unpack(z: Array) -> tuple[Array, float]:
        moved = np.zeros_like(coef)
        moved[free] = z[:-1] * scale[:-1]
        return moved, float(z[-1] * scale[-1])

    def value(z: Array) -> tuple[float, Array]:
        found, by_coef, by_threshold = node.value(*unpack(z))
        return found, scale * np.append(by_coef[free], by_threshold)

    start = np.append(coef[free], threshold) / scale
    found = minimize(
        value,
        start,
        jac=True,
        method="CG",
        options={"maxiter": CSTC_CONJUGATE_STEPS, "gtol": 1e-7},
    )
    if not found.fun < value(start)[0]:
        return tree
    return tree.with_node(k, *unpack(found.x))


def clamp(tree: SoftTree) -> SoftTree:
    """Set coefficients that are nearly 0 to 0."""
    coef = tree.coef.copy()
    kept = coef[:, :-1]
    kept[np.abs(kept) < CSTC_CLAMP] = 0.0
    return replace(tree, coef=coef)


def descend(
    problem: SoftTreeProblem, tree: SoftTree, tol: float, max_iter: int
) -> tuple[SoftTree, list[float]]:
    """Improve one node after another, level by level, until the objective stands still.

    Returns
    -------
    tree : SoftTree
    objectives : list of float
        After each pass, the start's first.
    """
    tree = clamp(tree)
    objectives = [problem.objective(tree)]
    for _ in range(max_iter):
        for k in range(problem.n_nodes):
            share = problem.reach(tree)[k] * problem.weight
            norms = problem.path_norms(tree)
            if k < problem.n_inner:
                tree = fit_inner(problem, tree, k, share, norms)
            else:
                coef = fit_last_level(problem, tree, k, share, norms[k])
                tree = tree.with_node(k, coef, None)
            tree = clamp(tree)
        objectives.append(problem.objective(tree))
        if objectives[-2] - objectives[-1] < tol * abs(objectives[-2]):
            break
    return tree, objectives
