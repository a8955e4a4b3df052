"""What users would take instead: LightGBM's penalties, pystreed, everything for everybody.

Each has `fit_path` as ours have, and what it gives has `predict` and `acquisition_cost`.
LightGBM and pystreed are part of the extra `compare`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier


@dataclass(frozen=True)
class BoostedOnEverything:
    """Boosted trees on all sensors, bought for every row."""

    sensors: dict[str, list[int]]
    costs: dict[str, float]

    def fit_path(self, X: Any, y: Any, values: Iterable[float]) -> list[Everything]:
        """Fit once: it does not look at prices."""
        model = HistGradientBoostingClassifier(early_stopping=False, random_state=0)
        bought = Everything(model.fit(X, y), sum(self.costs.values()))
        return [bought for _ in values]


@dataclass(frozen=True)
class Everything:
    """A classifier that has bought all sensors."""

    model: Any
    price: float

    def predict(self, X: Any) -> Any:
        """Classes."""
        return self.model.predict(X)

    def acquisition_cost(self, X: Any) -> Any:
        """The price of all sensors, (n_rows,)."""
        return np.full(len(X), self.price)


# LightGBM ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class CEGB:
    """LightGBM with lazy feature penalties; a row pays for the sensors on its paths."""

    sensors: dict[str, list[int]]
    costs: dict[str, float]

    def fit_path(self, X: Any, y: Any, tradeoffs: Iterable[float]) -> list[Penalised]:
        """Fit at each trade-off."""
        from lightgbm import LGBMClassifier

        owner = np.empty(X.shape[1], dtype=int)
        for number, columns in enumerate(self.sensors.values()):
            owner[columns] = number
        prices = np.array([self.costs[s] for s in self.sensors])
        settings = {
            "cegb_penalty_feature_lazy": (prices / prices.sum())[owner].tolist(),
            "random_state": 0,
            "n_jobs": 1,
            "verbose": -1,
        }
        return [
            Penalised(
                LGBMClassifier(cegb_tradeoff=tradeoff, **settings).fit(X, y),
                owner,
                prices,
            )
            for tradeoff in tradeoffs
        ]


@dataclass(frozen=True)
class Penalised:
    """Boosted trees of LightGBM, the sensor of each column, and prices."""

    model: Any
    owner: Any
    prices: Any

    def predict(self, X: Any) -> Any:
        """Classes."""
        return self.model.predict(X)

    def acquisition_cost(self, X: Any) -> Any:
        """Price of the sensors that a row's paths look at, (n_rows,)."""
        return self.used_sensors(X) @ self.prices

    def used_sensors(self, X: Any) -> Any:
        """Sensors that some path of some tree looks at, (n_rows, n_sensors)."""
        n_sensors = len(self.prices)
        leaves = self.model.predict(X, pred_leaf=True).reshape(len(X), -1)
        used = np.zeros((len(X), n_sensors), dtype=bool)
        for number, info in enumerate(self.model.booster_.dump_model()["tree_info"]):
            on_path = np.zeros((max(info["num_leaves"], 1), n_sensors), dtype=bool)
            stack = [(info["tree_structure"], np.zeros(n_sensors, dtype=bool))]
            while stack:
                vertex, seen = stack.pop()
                if "split_feature" in vertex:
                    seen = seen.copy()
                    seen[self.owner[vertex["split_feature"]]] = True
                    stack += [
                        (vertex["left_child"], seen),
                        (vertex["right_child"], seen),
                    ]
                else:
                    on_path[vertex.get("leaf_index", 0)] = seen
            used |= on_path[leaves[:, number]]
        return used


# pystreed ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class STreeD:
    """pystreed's optimal tree of yes-or-no questions, with prices of sensors.

    `pystreed` proves its tree optimal on the training rows among all trees of a depth, over
    columns that are binary already. Here a column becomes the questions whether it is above
    each of its quantiles; a sensor is paid at its first question on a way, and its others
    are free.
    """

    sensors: dict[str, list[int]]
    costs: dict[str, float]
    depth: int = 4
    quantiles: tuple[float, ...] = (0.25, 0.5, 0.75)

    def fit_path(self, X: Any, y: Any, weights: Iterable[float]) -> list[Questions]:
        """Fit at each cost weight."""
        from pystreed import CostSpecifier, STreeDCostSensitiveClassifier

        classes, numbers = np.unique(y, return_inverse=True)
        mistakes = (1.0 - np.eye(len(classes))).tolist()
        cuts = [np.unique(np.quantile(x, self.quantiles)) for x in X.T]
        sensor_of = {c: s for s, columns in self.sensors.items() for c in columns}
        owners = [sensor_of[c] for c in range(len(cuts)) for _ in cuts[c]]
        asked, found = questions(X, cuts), []
        for weight in weights:
            model = STreeDCostSensitiveClassifier(max_depth=self.depth)
            prices = self.question_prices(owners, weight)
            model.fit(asked, numbers, CostSpecifier(mistakes, prices))
            found.append(Questions(model, classes, cuts, owners, self.costs))
        return found

    def question_prices(self, owners: list[str], weight: float) -> list[Any]:
        """Price of each question: its sensor's, and nothing once the sensor is paid."""
        from pystreed import FeatureCostSpecifier

        return [  # from question to question, both included
            FeatureCostSpecifier(weight * self.costs[s], 0.0, s, at, at)
            for at, s in enumerate(owners)
        ]


@dataclass(frozen=True)
class Questions:
    """An optimal tree, its classes, where columns are cut, and the sensors asked."""

    model: Any
    classes: Any
    cuts: list[Any]
    owners: list[str]
    costs: dict[str, float]

    def predict(self, X: Any) -> Any:
        """Classes."""
        return self.classes[self.model.predict(questions(X, self.cuts))]

    def acquisition_cost(self, X: Any) -> Any:
        """Price of the sensors on the way of each row, (n_rows,)."""
        asked, cost = questions(X, self.cuts), np.zeros(len(X))
        stack: list[tuple[Any, Any, frozenset[str]]] = [
            (self.model.tree_, np.arange(len(X)), frozenset())
        ]
        while stack:
            vertex, rows, paid = stack.pop()
            if vertex.is_leaf_node():
                cost[rows] = sum(self.costs[sensor] for sensor in paid)
                continue
            paid |= {self.owners[vertex.feature]}
            yes = asked[rows, vertex.feature] == 1
            stack += [
                (vertex.left_child, rows[~yes], paid),
                (vertex.right_child, rows[yes], paid),
            ]
        return cost


def questions(X: Any, cuts: list[Any]) -> Any:
    """Whether each column is above each of its cuts, (n_rows, n_questions)."""
    return np.hstack([x[:, None] > c for x, c in zip(X.T, cuts, strict=True)]).astype(
        int
    )
