"""`CSTCClassifier`: a tree of regressions learned jointly, with soft routing."""

from __future__ import annotations

import warnings
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from sensortree.baselines.linear_tree import (
    LinearData,
    LinearVertex,
    answers,
    fit_linear_tree,
    halving_threshold,
    least_squares,
    main_direction,
)
from sensortree.baselines.soft_tree import (
    SoftTree,
    SoftTreeProblem,
    descend,
    fit_last_level,
)
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
from sensortree.leaves.folds import Dealt, assign_folds, run_numbers
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
        settings = self._settings()
        stake = float(self.loss) if isinstance(self.loss, Real) else 1.0
        grow = partial(
            grow_tree,
            cost_weight=settings.cost_weight / stake,
            l1=float(self.l1),
            depth=int(self.depth),
            steepness=float(self.steepness),
            n_folds=int(self.n_folds),
            tol=float(self.tol),
            max_iter=int(self.max_iter),
        )
        return fit_linear_tree(prepared, settings, grow)


def grow_tree(
    data: LinearData,
    *,
    cost_weight: float,
    l1: float,
    depth: int,
    steepness: float,
    n_folds: int,
    tol: float,
    max_iter: int,
) -> tuple[LinearVertex, dict[str, Any]]:
    """Start, descend, prune, fit what answers once more."""
    _check_no_alternatives(data)
    train, held_out = split_rows(data, n_folds)
    problem = SoftTreeProblem(
        np.hstack([data.X[train], np.ones((len(train), 1))]),
        data.target[train],
        data.weight[train] / data.weight[train].sum(),
        data.owner,
        data.market.sensors.costs,
        depth,
        cost_weight,
        l1,
        steepness,
    )
    tree, objectives = descend(problem, start(problem), tol, max_iter)
    hard = HardTree(data, tree)
    alive = prune_nodes(hard, held_out)
    fits = refit(hard, alive, train, held_out)
    evidence = {
        "objectives": objectives,
        "n_iter": len(objectives) - 1,
        "pruned": sorted(set(range(problem.n_nodes)) - alive),
    }
    return as_vertices(hard, alive, fits), evidence


def split_rows(data: LinearData, n_folds: int) -> tuple[Rows, Rows]:
    """Rows to learn from, and rows held out; the same if none can be."""
    with warnings.catch_warnings():
        # A class of one row is learned from and not held out; that is all.
        warnings.simplefilter("ignore", FewRowsWarning)
        reading = run_numbers(data.readings.T, len(data.y))
        fold = assign_folds(Dealt(data.y, reading, data.unit, data.classes), n_folds)
    train, held_out = np.flatnonzero(fold != 0), np.flatnonzero(fold == 0)
    if not len(train) or not len(held_out):
        return np.arange(len(fold)), np.arange(len(fold))
    return train, held_out


def _check_no_alternatives(data: LinearData) -> None:
    sensors = data.market.sensors
    for name, terms in zip(sensors.names, sensors.terms, strict=True):
        if terms.one_of is not None:
            raise SensorError(
                f"sensor {name!r} is one of alternatives ({terms.one_of!r}), which "
                f"CSTCClassifier cannot choose between; remove 'one_of', or use "
                f"SensorTreeClassifier."
            )


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
    """A learned tree with its routing made sharp: up where the score is above θ.

    Attributes
    ----------
    up : ndarray of bool of shape (n_inner, n_samples)
    answers : ndarray of shape (n_nodes, n_samples)
        Class that each node gives to each example.
    """

    def __init__(self, data: LinearData, tree: SoftTree):
        self.data, self.tree = data, tree
        self.n_nodes, self.n_inner = len(tree.coef), len(tree.threshold)
        scores = [data.X @ coef[:-1] + coef[-1] for coef in tree.coef]
        self.up = np.array(
            [
                scores[k] @ tree.direction[k] > tree.threshold[k]
                for k in range(self.n_inner)
            ]
        ).reshape(self.n_inner, len(data.y))
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

    def support(self, k: int) -> Rows:
        """Columns that node k looks at."""
        return np.flatnonzero(self.tree.coef[k, :-1].any(axis=1))


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
        fitted = least_squares(data, rows, data.weight[rows], hard.support(k))
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
