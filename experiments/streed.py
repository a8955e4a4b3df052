"""pystreed beside ours: the optimal tree of yes-or-no questions, with prices of sensors.

`pystreed` proves its tree optimal on the training rows among all trees of a depth, over
columns that are binary already. Here a column becomes the questions whether it is above
each of its quartiles; a sensor is paid at its first question on a way, and its others are
free. Part of the extra `compare`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from datasets import Dataset

DEPTH = 4
QUARTILES = (0.25, 0.5, 0.75)
# Error that buying everything is worth.
SHARES = (3.4, 1.2, 0.35, 0.1, 0.015)


def streed_lines(data: Dataset) -> Iterator[dict[str, Any]]:
    """Error and mean cost of optimal trees, by split and error that everything is worth."""
    from pystreed import CostSpecifier, STreeDCostSensitiveClassifier

    classes, y = np.unique(data.y, return_inverse=True)
    mistakes = 1.0 - np.eye(len(classes))
    everything = sum(data.costs.values())
    for split, (train, test) in enumerate(data.splits()):
        cuts = [np.unique(np.quantile(x, QUARTILES)) for x in data.X[train].T]
        asked, asked_test = (
            questions(data.X[train], cuts),
            questions(data.X[test], cuts),
        )
        for share in SHARES:
            prices = question_prices(data, cuts, share / everything)
            model = STreeDCostSensitiveClassifier(max_depth=DEPTH)
            model.fit(asked, y[train], CostSpecifier(mistakes.tolist(), prices))
            yield {
                "split": split,
                "value": share,
                "cost": float(path_costs(model.tree_, asked_test, data, cuts).mean()),
                "error": float(np.mean(model.predict(asked_test) != y[test])),
            }


def questions(X: Any, cuts: list[Any]) -> Any:
    """Whether each column is above each of its cuts, (n_rows, n_questions)."""
    return np.hstack([x[:, None] > c for x, c in zip(X.T, cuts, strict=True)]).astype(
        int
    )


def owners(data: Dataset, cuts: list[Any]) -> list[str]:
    """Sensor of each question."""
    sensor_of = {c: sensor for sensor, columns in data.sensors.items() for c in columns}
    return [sensor_of[c] for c in range(len(cuts)) for _ in cuts[c]]


def question_prices(data: Dataset, cuts: list[Any], weight: float) -> list[Any]:
    """Price of each question: that of its sensor, and nothing once the sensor is paid."""
    from pystreed import FeatureCostSpecifier

    return [  # from question to question, both included
        FeatureCostSpecifier(weight * data.costs[s], 0.0, s, at, at)
        for at, s in enumerate(owners(data, cuts))
    ]


def path_costs(tree: Any, asked: Any, data: Dataset, cuts: list[Any]) -> Any:
    """Price of the sensors on the way of each row, (n_rows,)."""
    sensor_of, cost = owners(data, cuts), np.zeros(len(asked))
    stack: list[tuple[Any, Any, frozenset[str]]] = [
        (tree, np.arange(len(asked)), frozenset())
    ]
    while stack:
        vertex, rows, paid = stack.pop()
        if vertex.is_leaf_node():
            cost[rows] = data.cost(paid)
            continue
        paid |= {sensor_of[vertex.feature]}
        yes = asked[rows, vertex.feature] == 1
        stack += [
            (vertex.left_child, rows[~yes], paid),
            (vertex.right_child, rows[yes], paid),
        ]
    return cost
