"""`SensorTreeClassifier`: the decisions of a tree, jointly, by one linear program."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from sensortree.decision import DecisionFunction, fit_decision_features
from sensortree.estimators.base import (
    BaseSensorTreeClassifier,
    HasMethods,
    Interval,
    StrOptions,
    TrainingData,
)
from sensortree.program import SOLVERS, SurrogateProblem, solve
from sensortree.program.certificate import Certificate
from sensortree.risk import max_risk, savings, savings_lost
from sensortree.tree import SensorTree

Array = NDArray[np.float64]


class SensorTreeClassifier(BaseSensorTreeClassifier):
    """Classify with the sensors that are worth their price, example by example.

    The method of Wang, Trapeznikov and Saligrama, *Sensor Selection by Linear
    Programming*: the leaves of a tree classify with the sensors bought on the way there,
    and the decision functions of all nodes are learned together by one linear program
    whose global optimum is certified.

    Parameters
    ----------
    sensors : dict of str to `Sensor` or columns, default=None
        Which columns are bought together. None makes each column a sensor of cost 1.
    costs : dict of str to float, default=None
        Prices of sensors that `sensors` declares by their columns alone.
    cost_weight : float, default=0.01
        Error that one unit of cost is worth (α in the paper). Larger buys less.
    structure : {"auto", "exhaustive", "cascade"}, SensorTree or dict, default="auto"
        The tree. "exhaustive" holds every order of buying, "cascade" buys the cheapest
        first, "auto" is exhaustive up to 4 sensors and a cascade above; or a tree of your
        own, also as nested dicts.
    root_sensors : "auto" or list of str, default="auto"
        Sensors that every example acquires before the first decision, in the structures
        that are built. "auto" takes the free ones, or else the cheapest. An empty list
        starts from nothing: the first decisions are then the same for all examples.
    classifier : "logistic2" or scikit-learn classifier, default="logistic2"
        Leaf classifier, fitted once per distinct set of sensors. "logistic2" is the
        paper's: logistic regression on the degree-2 polynomial basis.
    savings : {"tight", "published"}, default="tight"
        What an example's savings are measured against: the worst leaf for that example,
        or the paper's one maximal risk, all sensors bought and a wrong answer. The risk is
        the same, but the tight bound is closer to it: an example for which all leaves are
        equally good no longer pulls every decision towards 0.
    solver : str, default="structured"
        Solver of the linear program; see `sensortree.program.solve`.
    tol : float, default=1e-6
        Relative gap to which the optimum is certified.
    l2 : float, default=0.0
        Ridge penalty (l2/2) |θ|² on the decision functions; 0 is the paper's program.
    l1 : float, default=0.0
        Penalty l1 |θ|₁ on the decision functions.
    fallback : bool, default=True
        Send every example to the single best leaf if that has the lower risk on the
        training data. False keeps what the linear program says, as published.
    n_jobs : int, default=None
        Number of leaf classifiers fitted at a time, as in joblib, and of threads of the
        structured solver. The result does not depend on it.

    Attributes
    ----------
    tree_ : SensorTree
        The tree; its numbering is that of `apply`.
    certificate_ : Certificate
        Proved bounds of the linear program's optimum.
    fallback_leaf_ : int or None
        The leaf that all examples go to, if the fallback was used.
    sensors_ : SensorSet
        Names, columns and prices.
    classes_ : ndarray of shape (n_classes,)
        The classes.
    policy_ : Policy
        Everything that is needed to predict, without the data and the solver.
    n_features_in_ : int
        Number of columns seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns seen during `fit`, if they are all strings.

    Examples
    --------
    >>> import numpy as np
    >>> from sensortree import SensorTreeClassifier
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = X[:, 0] + (np.abs(X[:, 0]) < 0.5) * X[:, 1] > 0
    >>> model = SensorTreeClassifier(
    ...     {"cheap": [0], "dear": [1]}, costs={"cheap": 0, "dear": 5}, cost_weight=0.02)
    >>> model.fit(X, y).certificate_.converged
    True
    >>> print(model.tree_)
    node 0 knows cheap
    ├─ g0 ≤ 0: leaf 0 stops with cheap
    └─ g0 > 0, buy dear: leaf 1 stops with cheap, dear
    >>> bool(model.acquisition_cost(X).mean() < 5)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "cost_weight": [Interval(Real, 0, None, closed="left")],
        "structure": [
            StrOptions({"auto", "exhaustive", "cascade"}),
            SensorTree,
            Mapping,
        ],
        "root_sensors": [StrOptions({"auto"}), list, tuple, set, frozenset],
        "classifier": [str, HasMethods(["fit", "predict"])],
        "savings": [StrOptions({"tight", "published"})],
        "solver": [StrOptions(set(SOLVERS))],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "l2": [Interval(Real, 0, None, closed="left")],
        "l1": [Interval(Real, 0, None, closed="left")],
        "fallback": ["boolean"],
        "n_jobs": [None, Integral],
    }

    def __init__(
        self,
        sensors: Any = None,
        *,
        costs: Any = None,
        cost_weight: float = 0.01,
        structure: Any = "auto",
        root_sensors: Any = "auto",
        classifier: Any = "logistic2",
        savings: str = "tight",
        solver: str = "structured",
        tol: float = 1e-6,
        l2: float = 0.0,
        l1: float = 0.0,
        fallback: bool = True,
        n_jobs: int | None = None,
    ):
        self.sensors = sensors
        self.costs = costs
        self.cost_weight = cost_weight
        self.structure = structure
        self.root_sensors = root_sensors
        self.classifier = classifier
        self.savings = savings
        self.solver = solver
        self.tol = tol
        self.l2 = l2
        self.l1 = l1
        self.fallback = fallback
        self.n_jobs = n_jobs

    def _fit_decisions(
        self, tree: SensorTree, data: TrainingData, risk: Array
    ) -> tuple[DecisionFunction, ...]:
        """Minimise the surrogate of the risk over all decision functions at once."""
        self.fallback_leaf_ = None
        if not tree.n_nodes:
            self.certificate_ = Certificate(upper=0.0, lower=0.0, tol=self.tol)
            return ()
        rows, weight = data.distinct()
        known = {
            subset: data.features(subset)[rows]
            for subset in dict.fromkeys(node.sensors for node in tree.nodes)
        }
        basis = {
            subset: fit_decision_features(readings, weight)
            for subset, readings in known.items()
        }
        features = {
            subset: basis[subset](readings) for subset, readings in known.items()
        }
        worst = (
            max_risk(data.sensors.costs, self.cost_weight)
            if self.savings == "published"
            else risk[rows].max(axis=1)
        )
        kept = savings(risk[rows], worst)
        problem = SurrogateProblem(
            tree.negative,
            tree.positive,
            tuple(features[node.sensors] for node in tree.nodes),
            *savings_lost(
                weight[:, None] * kept, tree.positive_paths, tree.negative_paths
            ),
        )
        solution = solve(
            problem,
            self.solver,
            self.tol,
            self.l2,
            self.l1,
            n_jobs=effective_n_jobs(self.n_jobs),
        )
        self.certificate_ = solution.certificate
        coef = solution.coef
        if self.fallback:
            routed = tree.route(problem.margins(coef))
            self.fallback_leaf_ = better_constant_leaf(routed, risk[rows], weight)
        if self.fallback_leaf_ is not None:
            coef = constant_coef(
                tree.path_signs[self.fallback_leaf_], problem.n_features
            )
        return tuple(
            DecisionFunction(basis[node.sensors], theta)
            for node, theta in zip(tree.nodes, coef, strict=True)
        )


def better_constant_leaf(
    routed: NDArray[np.intp], leaf_risk: Array, weight: Array
) -> int | None:
    """Best leaf to send all examples to, if that beats where they were routed."""
    constant = weight @ leaf_risk
    achieved = weight @ np.take_along_axis(leaf_risk, routed[:, None], axis=1)[:, 0]
    best = int(np.argmin(constant))
    return best if constant[best] < achieved else None


def constant_coef(signs: NDArray[np.int_], n_features: tuple[int, ...]) -> list[Array]:
    """Coefficients of decision functions that are constant: only the intercept speaks."""
    return [
        sign * np.eye(1, n, n - 1)[0] for sign, n in zip(signs, n_features, strict=True)
    ]
