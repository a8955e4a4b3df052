"""`StaticSubsetClassifier`: the same sensors for every example, chosen greedily."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from sensortree.estimators.base import BaseSensorTreeClassifier, Interval
from sensortree.estimators.presets import FixedSettings
from sensortree.leaves.classifiers import LeafClassifiers
from sensortree.leaves.fitting import is_linear
from sensortree.program.routing import RoutingProblem
from sensortree.sensors.market import Market
from sensortree.structure import LeastSquaresScreen
from sensortree.structure.search import StructureReport, StructureSearch
from sensortree.tree.tree import Leaf, SensorTree
from sensortree.types import Array

Subset = frozenset[str]
EPS = float(np.finfo(float).eps)
# Sensors that may be added in a row without saving any error.
PATIENCE = 3


class StaticSubsetClassifier(FixedSettings, BaseSensorTreeClassifier):
    """Buy the same sensors for every example: the best subset that greed finds.

    What decisions must beat. Sensors are added one after another, each time the one that
    saves most error per unit of cost, by cross-validation, until three in a row save none
    or nothing is within the budget; of the subsets on the way, the one of the least error
    plus weighted cost is kept.

    Parameters
    ----------
    sensors, costs, loss, max_cost, classifier, calibration, cv, n_jobs
        As in `SensorTreeClassifier`.
    cost_weight : float, default=0.01
        Error that one unit of cost is worth. With 0, the error alone counts, within the
        budget.
    budget : float, default=None
        The most that the subset may cost, on average where prices differ.
    n_exact : int or "all", default=3
        Extensions compared at each step by training their classifier; a screen picks
        them, by least squares for logistic classifiers, else by the classifier itself on
        2,000 rows.

    Attributes
    ----------
    structure_report_ : StructureReport
        Its steps are the subsets on the way, with their errors.
    tree_, sensors_, classes_, policy_, n_features_in_, feature_names_in_
        As in `SensorTreeClassifier`; the tree is one leaf.

    Examples
    --------
    >>> import numpy as np
    >>> from sensortree import StaticSubsetClassifier
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> y = X[:, 0] + 0.5 * X[:, 2] > 0
    >>> print(StaticSubsetClassifier(budget=2).fit(X, y).tree_)
    leaf 0 stops with x0, x2
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaseSensorTreeClassifier._parameter_constraints,
        "budget": [None, Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        sensors: Any = None,
        *,
        costs: Any = None,
        cost_weight: float = 0.01,
        budget: float | None = None,
        loss: Any = None,
        max_cost: float | None = None,
        n_exact: int | str = 3,
        classifier: Any = "logistic2",
        calibration: str | None = None,
        cv: Any = 5,
        n_jobs: int | None = None,
    ):
        self.sensors = sensors
        self.costs = costs
        self.cost_weight = cost_weight
        self.budget = budget
        self.loss = loss
        self.max_cost = max_cost
        self.n_exact = n_exact
        self.classifier = classifier
        self.calibration = calibration
        self.cv = cv
        self.n_jobs = n_jobs

    def _choose_structure(
        self, leaves: LeafClassifiers, search: StructureSearch
    ) -> tuple[SensorTree, StructureReport]:
        """Add sensors while the budget lasts; keep the subset of the least risk."""
        way = self._forward(leaves)
        risk = [error + self.cost_weight * cost for _, error, cost in way]
        kept = way[int(np.argmin(risk))][0]
        order = leaves.data.sensors.in_order
        steps = [
            {
                "added": ", ".join(order(subset - before)),
                "subset": order(subset),
                "loss": error,
            }
            for (before, _, _), (subset, error, _) in pairwise(way)
        ]
        report = StructureReport(
            "static",
            [list(order(kept))],
            steps,
            "no more was within the budget, or saved error",
        )
        return SensorTree(Leaf(kept)), report

    def _forward(self, leaves: LeafClassifiers) -> list[tuple[Subset, float, float]]:
        """Subsets on the way with their error and mean price, from the free sensors on."""
        data = leaves.data
        market = data.market(self.max_cost)
        budget = np.inf if self.budget is None else float(self.budget)
        screen = self._screen(leaves)
        known = market.free()
        error = self._errors([known], leaves)[0]
        way = [(known, error, mean_cost(market, known))]
        least, useful = error, 0
        while len(way) - 1 - useful < PATIENCE:
            options = affordable(market, known, budget)
            if not options:
                break
            n_exact = len(options) if self.n_exact == "all" else int(self.n_exact)
            if len(options) > n_exact:
                values = rates(screen(options), error, market, options, known)
                best = np.argsort(values, kind="stable")[:n_exact]
                options = [options[k] for k in sorted(best)]
            errors = self._errors(options, leaves)
            values = rates(errors, error, market, options, known)
            best_one = int(np.argmin(values))
            known, error = options[best_one], errors[best_one]
            way.append((known, error, mean_cost(market, known)))
            if error < least:
                least, useful = error, len(way) - 1
        return way

    def _errors(
        self, subsets: Sequence[Subset], leaves: LeafClassifiers
    ) -> list[float]:
        """Mean loss of the subsets' classifiers, out of fold."""
        leaves.judge(subsets)
        return [_mean_loss(leaves, leaves.posteriors[subset]) for subset in subsets]

    def _screen(self, leaves: LeafClassifiers) -> Any:
        """Give a function that estimates the mean losses of subsets cheaply."""
        data = leaves.data
        if not is_linear(leaves.classifier):
            return lambda subsets: [
                _mean_loss(leaves, said) for said in leaves.screen(subsets).values()
            ]
        squares: list[LeastSquaresScreen] = []

        def said(subset: Subset) -> Array:
            if not squares:
                squares.append(
                    LeastSquaresScreen(data.blocks, data.y, data.weight, data.fold)
                )
            return squares[0].scores(sorted(map(data.sensors.index, subset)))

        return lambda subsets: [_mean_loss(leaves, said(s)) for s in subsets]

    def _fit_decisions(
        self, problem: RoutingProblem, observed: RoutingProblem
    ) -> list[Array]:
        """There is nothing to decide."""
        return []


def mean_cost(market: Market, subset: Subset, known: Subset = frozenset()) -> float:
    """Mean price of a subset when another is known."""
    return float(np.mean(market.cost(subset, known)))


def affordable(market: Market, known: Subset, budget: float) -> list[Subset]:
    """Subsets with one more sensor, and what it needs, that are within the budget."""
    extended = [
        market.extension(known, name)
        for name in market.sensors.names
        if name not in known
    ]
    return [
        more
        for more in dict.fromkeys(extended)
        if more is not None and mean_cost(market, more) <= budget * (1 + 1e-12)
    ]


def rates(
    errors: Sequence[float],
    error: float,
    market: Market,
    options: Sequence[Subset],
    known: Subset,
) -> Array:
    """Error saved per unit of cost, as negative numbers; what is lost is not priced."""
    changes = np.asarray(errors) - error
    prices = [max(mean_cost(market, more, known), EPS) for more in options]
    return np.where(changes < 0, changes / np.array(prices), changes)


def _mean_loss(leaves: LeafClassifiers, posterior: Array) -> float:
    data = leaves.data
    losses = data.loss.of(data.y, data.loss.answer(posterior))
    return float(data.weight @ losses / data.weight.sum())
