"""`CSTCClassifier`: a tree of regressions learned jointly, with soft routing.

The objective, below the class: nodes are numbered level by level, the children of node k
are 2k + 1, below, and 2k + 2, above. Node k regresses the target t on the columns x (the
last is constant) by β^k; an example goes up with probability σ(κ(xβ^k a^k - θ^k)), with
κ = 1 as published, and a^k = 1 for one output. With p_i^k the probability that example i
comes to node k, p^l its mean, and π_l the path to the node l of the last level, it is

    sum_k [ sum_i w_i p_i^k |t_i - x_i β^k|² + ρ |β^k|_1 ]
    + λ sum_l p^l sum_α c_α ( sum_{j on π_l} |β_α^j|² )^½,      sum_i w_i = 1,

where β_α are the coefficients of sensor α: of one column as published, of several by our
extension. Every root is √g = min_z (g/z + z)/2. With all z at their best, the objective is
a quadratic function of the coefficients of a node of the last level, and a smooth function
of those of any other node and of its threshold.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.linalg import solve
from scipy.optimize import minimize
from scipy.special import expit

from sensortree.baselines.linear_tree import (
    LinearData,
    LinearVertex,
    answers,
    fit_linear_tree,
    halving_threshold,
    least_squares,
    main_direction,
)
from sensortree.constants import CSTC_CLAMP, CSTC_CONJUGATE_STEPS, EPS
from sensortree.estimators.base import (
    ABOVE_0,
    AT_LEAST_0,
    AT_LEAST_1,
    BaseSensorTreeClassifier,
    Interval,
)
from sensortree.estimators.parameters import parameters
from sensortree.exceptions import FewRowsWarning, SensorError
from sensortree.learning.fit import Fitted
from sensortree.learning.prepare import Prepared
from sensortree.leaves.folds import assign_folds, run_numbers
from sensortree.types import Array, Rows

# Where an example ends: at a node (the side is 0), or beside it, where a child was pruned.
Place = tuple[int, int]

# Times that a node's penalties are renewed when it is first fitted.
STARTING_STEPS = 3


@parameters
class CSTCClassifier(BaseSensorTreeClassifier):
    """Learn a tree of linear classifiers jointly, with soft routing (CSTC).

    *Cost-Sensitive Tree of Classifiers* (Xu, Kusner, Weinberger and Chen, ICML 2013; JMLR
    2014), the linear version. Every node regresses the class (-1 or 1) with squared
    loss, and sends an example up with the probability that the logistic function gives
    its score above a threshold. The objective is the expected squared loss of all nodes,
    a penalty `l1` on the coefficients (ρ), and `cost_weight` (λ) times the expected cost
    of a path, where the number of distinct sensors is relaxed to a mixed norm. It is
    minimised node by node: in closed form at the last level, by conjugate gradients
    through the routing above it. It starts from the top down, half of the examples on
    each side. Then nodes are pruned from the bottom while the accuracy on held-out rows
    does not drop, and what gives answers is fitted once more to the sensors it has kept.

    Our extensions: several classes are regressed together, one column each, and examples
    are sent on along the direction in which the outputs of a node differ most at the
    start; a sensor of several columns has one norm and is paid once; every regression
    has a constant; prerequisites are bought along. Columns are standardised. Class
    probabilities are the logistic function of the score times the factor that makes the
    training examples most likely.

    Parameters
    ----------
    sensors, costs, loss, max_cost, unit
        As in `SensorTreeClassifier`.
    cost_weight : "auto" or float, default="auto"
        λ of the objective, times `loss` where that is a number; "auto" as in
        `SensorTreeClassifier`. It is the squared loss that one unit of cost is worth
        where the coefficients of a sensor, on standardised columns, have norm 1. They are
        usually smaller; so a sensor counts less than its price, and this must be larger
        than the `cost_weight` of the other methods to buy as little.
    l1 : float, default=0.001
        ρ of the objective.
    depth : int, default=3
        Number of classifiers on a path, before pruning.
    steepness : float, default=1.0
        Factor of a score above its threshold, in the logistic function; 1 as published.
        It is the same to have classes of -κ and κ, and penalties κ times as large.
    n_folds : int, default=5
        One of so many parts of the rows is held out to prune and to check the last fits.
    tol : float, default=1e-5
        The descent ends when a pass over all nodes lowers the objective by less than this
        share.
    max_iter : int, default=100
        Number of passes at most.

    Attributes
    ----------
    objectives_ : list of float
        The objective before the first and after each pass.
    n_iter_ : int
        Number of passes.
    pruned_ : list of int
        Nodes that were pruned; the children of node k are 2k + 1 and 2k + 2.
    tree_, sensors_, classes_, policy_, n_features_in_, feature_names_in_
        As in `SensorTreeClassifier`.

    Examples
    --------
    Where `x0` is high, for three of four examples, the class is sure; else `x1` decides:

    >>> import numpy as np
    >>> from sensortree import CSTCClassifier
    >>> X = np.random.default_rng(0).uniform(size=(400, 2))
    >>> X[:, 0] = X[:, 0] > 0.25
    >>> y = (X[:, 0] == 1) | (X[:, 1] > 0.5)
    >>> model = CSTCClassifier(
    ...     costs={"x1": 5.0}, cost_weight=0.2, depth=2, steepness=10)
    >>> print(model.fit(X, y).tree_)
    node 0 knows x0
    ├─ g0 ≤ 0, buy x1: leaf 0 stops with x0, x1
    └─ g0 > 0: leaf 1 stops with x0
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaseSensorTreeClassifier._parameter_constraints,
        "l1": [AT_LEAST_0],
        "depth": [Interval(Integral, 1, 10, closed="both")],
        "steepness": [ABOVE_0],
        "n_folds": [Interval(Integral, 2, None, closed="left")],
        "tol": [AT_LEAST_0],
        "max_iter": [AT_LEAST_1],
    }

    cost_weight: float | str = "auto"
    l1: float = 0.001
    depth: int = 3
    steepness: float = 1.0
    n_folds: int = 5
    tol: float = 1e-5
    max_iter: int = 100

    def _learn(self, prepared: Prepared) -> Fitted:
        return fit_linear_tree(prepared, self._settings(), self._grow)

    def _grow(self, data: LinearData) -> tuple[LinearVertex, dict[str, Any]]:
        """Start, descend, prune, fit what answers once more."""
        sensors = data.market.sensors
        for name, terms in zip(sensors.names, sensors.terms, strict=True):
            if terms.one_of is not None:
                raise SensorError(
                    f"sensor {name!r} is one of alternatives ({terms.one_of!r}), which "
                    f"CSTCClassifier cannot choose between; remove 'one_of', or use "
                    f"SensorTreeClassifier."
                )
        stake = float(self.loss) if isinstance(self.loss, Real) else 1.0
        train, held_out = split_rows(data, self.n_folds)
        problem = SoftTreeProblem(
            np.hstack([data.X[train], np.ones((len(train), 1))]),
            data.target[train],
            data.weight[train] / data.weight[train].sum(),
            data.owner,
            sensors.costs,
            self.depth,
            self._settings().cost_weight / stake,
            self.l1,
            self.steepness,
        )
        tree, objectives = descend(problem, start(problem), self.tol, self.max_iter)
        hard = HardTree(data, tree)
        alive = prune_nodes(hard, held_out)
        evidence = {
            "objectives": objectives,
            "n_iter": len(objectives) - 1,
            "pruned": sorted(set(range(problem.n_nodes)) - alive),
        }
        fits = refit(hard, alive, train, held_out)
        return as_vertices(hard, alive, fits), evidence


def split_rows(data: LinearData, n_folds: int) -> tuple[Rows, Rows]:
    """Rows to learn from, and rows held out; the same if none can be."""
    with warnings.catch_warnings():
        # A class of one row is learned from and not held out; that is all.
        warnings.simplefilter("ignore", FewRowsWarning)
        reading = run_numbers(data.readings.T, len(data.y))
        fold = assign_folds(data.y, reading, n_folds, data.unit, data.classes)
    train, held_out = np.flatnonzero(fold != 0), np.flatnonzero(fold == 0)
    if not len(train) or not len(held_out):
        return np.arange(len(fold)), np.arange(len(fold))
    return train, held_out


# the objective, and its descent ----------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SoftTree:
    """What is learned."""

    coef: Array  # β, the constant's last, (n_nodes, n_columns, n_outputs)
    threshold: Array  # θ of the nodes above the last level, (n_inner,)
    # a: which combination of the outputs sends examples on, (n_inner, n_outputs).
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
    """What is learned from."""

    X: Array  # the last column is constant, (n_samples, n_columns)
    target: Array  # (n_samples, n_outputs)
    weight: Array  # of sum 1, (n_samples,)
    owner: Rows  # the sensor of each column but the last, (n_columns - 1,)
    costs: Array  # (n_sensors,)
    depth: int  # number of levels
    cost_weight: float  # λ
    l1: float  # ρ
    steepness: float = 1.0  # κ

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


class Side(NamedTuple):
    """What lies below an inner node on one side, all else and all z held."""

    worth: Array  # to an example that goes there, as far as it is fixed, (n_samples,)
    paths: Array  # probability of ending each path, (n_samples, n_paths)
    pull: Array  # λ c_α / η_αl, (n_paths, n_sensors)

    def to(self, squares: Array) -> Array:
        """Expected losses and costs of going there, (n_samples,)."""
        return np.asarray(self.worth + self.paths @ (0.5 * self.pull @ squares))


@dataclass(frozen=True, eq=False)
class InnerNode:
    """The objective as a function of one inner node, all else and all z held.

    What lies above and below is worth the expected losses of the nodes there, and the
    expected costs of the paths, as far as they do not depend on this node. Each path l
    through the node adds  λ/2 sum_α c_α |β_α|² / η_αl.
    """

    problem: SoftTreeProblem
    share: Array  # weight times probability of coming to the node, (n_samples,)
    direction: Array  # (n_outputs,)
    below: Side
    above: Side
    sparse_pull: Array  # ρ / γ, (n_columns, n_outputs)

    def value(self, coef: Array, threshold: float) -> tuple[float, Array, float]:
        """Value and derivatives by the coefficients and by the threshold."""
        X, owner = self.problem.X, self.problem.owner
        outputs = X @ coef
        residual = outputs - self.problem.target
        steep = self.problem.steepness
        up = expit(steep * (outputs @ self.direction - threshold))
        squares = self.problem.squares(coef)
        worth_up, worth_down = self.above.to(squares), self.below.to(squares)
        each = (residual**2).sum(axis=1) + up * worth_up + (1.0 - up) * worth_down
        value = self.share @ each + 0.5 * (self.sparse_pull * coef**2).sum()
        # d/d(score), which the coefficients and the threshold reach alike.
        slope = steep * self.share * up * (1.0 - up) * (worth_up - worth_down)
        ends_above = (self.share * up) @ self.above.paths
        ends_below = (self.share * (1.0 - up)) @ self.below.paths
        pull = ends_above @ self.above.pull + ends_below @ self.below.pull
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

    def subtree(v: int) -> Side:
        loss = problem.loss(tree, v)
        if v >= problem.n_inner:
            pull = norm_weights(problem, norms[v])
            # η is the root now; what depends on node k is counted in `value`.
            fixed = (
                problem.cost_weight * problem.costs @ norms[v] - 0.5 * pull @ squares
            )
            return Side(loss + fixed, np.ones((len(loss), 1)), pull[None, :])
        up = problem.up(tree, v)[:, None]
        low, high = subtree(2 * v + 1), subtree(2 * v + 2)
        worth = loss + up[:, 0] * high.worth + (1.0 - up[:, 0]) * low.worth
        paths = np.hstack([(1.0 - up) * low.paths, up * high.paths])
        return Side(worth, paths, np.vstack([low.pull, high.pull]))

    below, above = subtree(2 * k + 1), subtree(2 * k + 2)
    sparse = node_pull(problem, tree.coef[k], np.zeros(len(problem.costs)))
    return InnerNode(problem, share, tree.direction[k], below, above, sparse)


def fit_inner(
    problem: SoftTreeProblem, tree: SoftTree, k: int, share: Array, norms: Array
) -> SoftTree:
    """Improve an inner node by conjugate gradients; coefficients of 0 stay 0."""
    node = inner_node(problem, tree, k, share, norms)
    coef, threshold = tree.coef[k], float(tree.threshold[k])
    free = coef != 0
    free[-1] = True
    paths = share @ np.hstack([node.below.paths, node.above.paths])
    pull = 0.5 * paths @ np.vstack([node.below.pull, node.above.pull])
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

    Also gives the objective after each pass, the start's first.
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


# from the start to what answers -----------------------------------------------------------


def start(problem: SoftTreeProblem) -> SoftTree:
    """Fit each node as if it were of the last level, from the top down.

    Thresholds are where half of the examples that come to a node go up.
    """
    n_outputs = problem.target.shape[1]
    width = problem.X.shape[1]
    tree = SoftTree(
        np.zeros((problem.n_nodes, width, n_outputs)),
        np.zeros(problem.n_inner),
        np.ones((problem.n_inner, n_outputs)),
    )
    for k in range(problem.n_nodes):
        share = problem.reach(tree)[k] * problem.weight
        tree = tree.with_node(k, np.ones((width, n_outputs)), None)
        for _ in range(STARTING_STEPS):
            norms = problem.path_norms(tree)[k]
            coef = fit_last_level(problem, tree, k, share, norms)
            tree = tree.with_node(k, coef, None)
        if k < problem.n_inner:
            outputs = problem.X @ tree.coef[k]
            tree.direction[k] = main_direction(outputs, share)
            score = outputs @ tree.direction[k]
            found = halving_threshold(score, share)
            half = float(score[0]) if found is None else found
            tree = tree.with_node(k, tree.coef[k], half)
    return tree


class HardTree:
    """A learned tree with its routing made sharp: up where the score is above θ."""

    def __init__(self, data: LinearData, tree: SoftTree):
        self.data, self.tree = data, tree
        self.n_nodes, self.n_inner = len(tree.coef), len(tree.threshold)
        scores = [data.X @ coef[:-1] + coef[-1] for coef in tree.coef]
        # Whether node k sends an example up, (n_inner, n_samples).
        self.up = np.array(
            [
                scores[k] @ tree.direction[k] > tree.threshold[k]
                for k in range(self.n_inner)
            ]
        ).reshape(self.n_inner, len(data.y))
        # The class that node k gives to an example, (n_nodes, n_samples).
        self.answers = np.array([answers(s) for s in scores])

    def ends(self, alive: set[int], rows: Rows) -> dict[Place, Rows]:
        """Rows that end at each place: at a node, or on a side whose child is gone."""
        found: dict[Place, Rows] = {}

        def walk(k: int, rows: Rows) -> None:
            children = (2 * k + 1, 2 * k + 2)
            if alive.isdisjoint(children):
                found[k, 0] = rows
                return
            up = self.up[k, rows]
            for child, side, going in (
                (children[0], -1, rows[~up]),
                (children[1], +1, rows[up]),
            ):
                if child in alive:
                    walk(child, going)
                else:
                    found[k, side] = going

        walk(0, rows)
        return found

    def accuracy(self, alive: set[int], rows: Rows) -> float:
        """Weight of the rows that get the right answer."""
        y, weight = self.data.y, self.data.weight
        return float(
            sum(
                weight[here] @ (self.answers[k, here] == y[here])
                for (k, _), here in self.ends(alive, rows).items()
            )
        )


def prune_nodes(hard: HardTree, held_out: Rows) -> set[int]:
    """Take nodes away from the bottom up while held-out rows are answered no worse.

    Who would have come to a pruned node gets its parent's answer.
    """
    alive = set(range(hard.n_nodes))
    present = hard.accuracy(alive, held_out)
    for k in reversed(range(1, hard.n_nodes)):
        if alive.isdisjoint((2 * k + 1, 2 * k + 2)):
            without = hard.accuracy(alive - {k}, held_out)
            if without >= present:
                alive, present = alive - {k}, without
    return alive


def refit(
    hard: HardTree, alive: set[int], train: Rows, held_out: Rows
) -> dict[Place, tuple[Array, Array]]:
    """Fit what answers at each place to who comes there, without penalties.

    Coefficients that are 0 stay 0; a fit that answers held-out rows worse is not kept.
    """
    data = hard.data
    checked = hard.ends(alive, held_out)
    fits: dict[Place, tuple[Array, Array]] = {}
    for place, rows in hard.ends(alive, train).items():
        k, here = place[0], checked[place]
        fits[place] = hard.tree.coef[k, :-1], hard.tree.coef[k, -1]
        if not len(rows):
            continue
        used = np.flatnonzero(hard.tree.coef[k, :-1].any(axis=1))
        fitted = least_squares(data, rows, data.weight[rows], used)
        new = answers(data.X[here] @ fitted[0] + fitted[1])
        gained = data.weight[here] @ (new == data.y[here])
        if gained >= data.weight[here] @ (hard.answers[k, here] == data.y[here]):
            fits[place] = fitted
    return fits


def as_vertices(
    hard: HardTree, alive: set[int], fits: dict[Place, tuple[Array, Array]]
) -> LinearVertex:
    """Say what is left of a tree as linear vertices."""
    tree = hard.tree

    def build(k: int) -> LinearVertex:
        if (k, 0) in fits:
            return LinearVertex(*fits[k, 0])
        children = [
            build(child) if child in alive else LinearVertex(*fits[k, side])
            for child, side in ((2 * k + 1, -1), (2 * k + 2, +1))
        ]
        combined = tree.coef[k] @ tree.direction[k]
        return LinearVertex(
            tree.coef[k, :-1],
            tree.coef[k, -1],
            combined[:-1],
            float(tree.threshold[k] - combined[-1]),
            *children,
        )

    return build(0)
