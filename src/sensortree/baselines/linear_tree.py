"""Trees of linear classifiers: what is learned from, and the policy they become.

Methods that learn structure, decisions and answers together end here. Each vertex is a
regression of the class on the sensors known there; a score sends examples on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from sensortree.constants import SHARPNESS, TINY
from sensortree.learning.fit import Fitted
from sensortree.learning.prepare import Prepared
from sensortree.learning.settings import Settings
from sensortree.leaves.rows import TrainingRows
from sensortree.leaves.standardising import moments
from sensortree.policy.classifiers import ConstantScorer, LogisticScorer, probabilities
from sensortree.policy.decisions import DecisionFeatures, DecisionFunction, Raw
from sensortree.policy.flow import measure_flow
from sensortree.policy.policy import Policy
from sensortree.sensors.market import Market
from sensortree.structure.search import report_of_built
from sensortree.tree.tree import Leaf, Node, SensorTree
from sensortree.types import Array, Rows


@dataclass(frozen=True, eq=False)
class LinearData:
    """Training rows as regressions see them: standardised columns, numbers for classes."""

    # Columns of all sensors in declared order, of mean 0 and variance 1,
    # (n_samples, n_columns).
    X: Array
    # -1 and 1 for two classes, as published; else one column per class, 1 for it and 0 for
    # the others (our extension), (n_samples, n_outputs).
    target: Array
    y: Rows  # positions in `classes`, (n_samples,)
    weight: Array  # (n_samples,)
    owner: Rows  # the sensor that each column belongs to, (n_columns,)
    center: Array  # (n_columns,)
    scale: Array
    market: Market
    readings: Array  # columns as they were read; rows are sorted by them
    classes: NDArray[Any]
    unit: Rows  # equal for rows that are held out together, (n_samples,)

    def columns_of(self, names: frozenset[str]) -> Rows:
        """Columns of some sensors, in declared order."""
        return np.flatnonzero(self.market.sensors.mask(names)[self.owner])


def linear_data(data: TrainingRows, max_cost: float | None) -> LinearData:
    """Give distinct training rows, standardised."""
    rows, weight = data.distinct()
    readings = np.hstack([block[rows] for block in data.blocks])
    center, scale = moments(readings, weight)
    # What rounding leaves of a constant column is no reading.
    varies = (np.abs(readings - center) > 1e-12 * np.abs(center)).any(axis=0)
    y, n_classes = data.y[rows], len(data.classes)
    target = np.eye(n_classes)[y] if n_classes > 2 else 2.0 * y[:, None] - 1.0
    widths = [block.shape[1] for block in data.blocks]
    return LinearData(
        np.where(varies, (readings - center) / scale, 0.0),
        np.asarray(target, dtype=np.float64),
        y,
        weight,
        np.repeat(np.arange(len(widths)), widths),
        center,
        scale,
        data.market(max_cost),
        readings,
        data.classes,
        data.observations().together(),
    )


@dataclass(frozen=True, eq=False)
class LinearVertex:
    """A vertex of a tree of linear classifiers, on standardised columns."""

    coef: Array  # (n_columns, n_outputs)
    intercept: Array  # the answer is the sign of one output, or the largest of several
    # Rows whose product with it is above the threshold go to `positive`, (n_columns,); None
    # at a leaf.
    direction: Array | None = None
    threshold: float = 0.0
    negative: LinearVertex | None = None
    positive: LinearVertex | None = None

    def scores(self, X: Array) -> Array:
        """Outputs of its regression, (n_rows, n_outputs)."""
        return np.asarray(X @ self.coef + self.intercept)


def answers(scores: Array) -> Rows:
    """Class that scores stand for: the sign of one, the largest of several."""
    if scores.shape[1] == 1:
        return np.asarray(scores[:, 0] > 0, dtype=np.intp)
    return np.asarray(scores.argmax(axis=1))


def least_squares(
    data: LinearData, rows: Rows, weight: Array, columns: Rows
) -> tuple[Array, Array]:
    """Weighted least squares on some columns and a constant.

    Coefficients, (n_columns, n_outputs), are 0 for the other columns, and of least norm
    where rows do not determine them; the intercept is (n_outputs,).
    """
    root = np.sqrt(weight)[:, None]
    basis = np.hstack([data.X[np.ix_(rows, columns)], np.ones((len(rows), 1))])
    found = np.linalg.lstsq(root * basis, root * data.target[rows], rcond=1e-10)[0]
    coef = np.zeros((data.X.shape[1], data.target.shape[1]))
    coef[columns] = found[:-1]
    return coef, found[-1]


def main_direction(scores: Array, weight: Array) -> Array:
    """Direction in which outputs differ most between rows, (n_outputs,).

    What sends examples on where there are several outputs (our extension); 1 for one
    output, as published.
    """
    n_outputs = scores.shape[1]
    if n_outputs == 1:
        return np.ones(1)
    centered = scores - np.average(scores, axis=0, weights=weight)
    vectors = np.linalg.eigh((weight[:, None] * centered).T @ centered)[1]
    first = np.asarray(vectors[:, -1])
    return np.asarray(first * np.sign(first[np.argmax(np.abs(first))]))


def halving_threshold(score: Array, weight: Array) -> float | None:
    """Threshold above which lies half of the weight, as nearly as ties allow.

    Halfway between two scores; None if all scores are the same.

    Examples
    --------
    >>> import numpy as np
    >>> halving_threshold(np.array([3.0, 1.0, 2.0, 9.0]), np.ones(4))
    2.5
    """
    order = np.argsort(score, kind="stable")
    score, total = score[order], np.cumsum(weight[order])
    gaps = np.flatnonzero(np.diff(score) > 1e-9 * np.ptp(score))
    if not len(gaps):
        return None
    cut = gaps[np.argmin(np.abs(total[gaps] - 0.5 * total[-1]))]
    return float(0.5 * (score[cut] + score[cut + 1]))


def fit_linear_tree(
    prepared: Prepared,
    settings: Settings,
    grow: Callable[[LinearData], tuple[LinearVertex, Mapping[str, Any]]],
) -> Fitted:
    """Learn structure, decisions and answers together; then say it as a policy.

    `grow` gives the root of a tree of linear classifiers, and the evidence for it. In the
    policy a vertex knows what it and its ancestors look at. Probabilities are the logistic
    function of its scores times a positive factor, the most likely on the training rows
    that come there; so the answer is that of the scores.
    """
    data = prepared.leaves.data
    linear = linear_data(data, settings.max_cost)
    root, evidence = grow(linear)
    prepared.progress.step("tree")
    sensors, n_varying = data.sensors, len(data.sensors.varying)
    everyone = np.arange(len(linear.y))
    leaf_scorers: list[LogisticScorer] = []
    node_scorers: list[LogisticScorer] = []
    decisions: list[DecisionFunction] = []

    def walk(vertex: LinearVertex, known: frozenset[str], rows: Rows) -> Leaf | Node:
        if vertex.direction is not None and not vertex.direction.any():
            # Everybody goes the same way, so nothing is bought to decide.
            only = vertex.positive if vertex.threshold < 0 else vertex.negative
            assert only is not None
            return walk(only, known, rows)
        used = vertex.coef.any(axis=1)
        if vertex.direction is not None:
            used = used | (vertex.direction != 0)
        for owner in np.unique(linear.owner[used]):
            known = known | sensors.closure(sensors.names[owner])
        columns = linear.columns_of(known)
        scorer = _scorer(vertex, linear, columns, rows if len(rows) else everyone)
        if vertex.direction is None:
            leaf_scorers.append(scorer)
            return Leaf(known)
        node_scorers.append(scorer)
        features = DecisionFeatures(
            (Raw(),),
            np.r_[linear.center[columns], np.zeros(n_varying)],
            np.r_[linear.scale[columns], np.ones(n_varying)],
            np.zeros(len(columns) + n_varying, dtype=bool),
        )
        theta = vertex.direction[columns], np.zeros(n_varying), -vertex.threshold
        decisions.append(DecisionFunction(features, np.r_[theta]))
        assert vertex.negative is not None
        assert vertex.positive is not None
        above = linear.X[rows] @ vertex.direction > vertex.threshold
        negative = walk(vertex.negative, known, rows[~above])
        return Node(known, negative, walk(vertex.positive, known, rows[above]))

    tree = SensorTree(walk(root, frozenset(), everyone))
    vertices: list[tuple[Leaf | Node, LogisticScorer]] = [
        *zip(tree.nodes, node_scorers, strict=True),
        *zip(tree.leaves, leaf_scorers, strict=True),
    ]
    readings = {
        v.sensors: linear.readings[:, linear.columns_of(v.sensors)] for v, _ in vertices
    }
    beliefs = [scorer.predict_proba(readings[v.sensors]) for v, scorer in vertices]
    given = np.stack([data.loss.answer(belief) for belief in beliefs], axis=1)
    lost = np.stack([data.loss.judge(linear.y, belief) for belief in beliefs], axis=1)
    no_prices = np.zeros((len(linear.y), n_varying))
    margins = [
        decision(readings[node.sensors], None, no_prices)
        for node, decision in zip(tree.nodes, decisions, strict=True)
    ]
    flow = measure_flow(
        tree,
        np.stack(margins, axis=1) if margins else np.empty((len(linear.y), 0)),
        given[:, tree.n_nodes :],
        given[:, : tree.n_nodes],
        lost[:, tree.n_nodes :],
        lost[:, : tree.n_nodes],
        linear.y,
        len(data.classes),
        linear.weight,
    )
    prior = np.bincount(linear.y, linear.weight) / linear.weight.sum()
    by_subset = {vertex.sensors: scorer for vertex, scorer in reversed(vertices)}
    own = {~j: scorer for j, scorer in enumerate(node_scorers)}
    policy = Policy(
        data.reader,
        tree,
        tuple(decisions),
        {**by_subset, frozenset(): ConstantScorer(prior)},
        data.classes,
        flow,
        data.loss,
        float(settings.cost_weight),
        None if settings.max_cost is None else float(settings.max_cost),
        {**own, **dict(enumerate(leaf_scorers))},
    )
    return Fitted(policy, report_of_built("learned", tree, sensors), evidence)


def _scorer(
    vertex: LinearVertex, linear: LinearData, columns: Rows, rows: Rows
) -> LogisticScorer:
    """Give a vertex's regression with probabilities that fit the rows that come there."""
    factor = sharpness(
        vertex.scores(linear.X[rows]), linear.y[rows], linear.weight[rows]
    )
    return LogisticScorer(
        linear.center[columns],
        linear.scale[columns],
        1,
        factor * vertex.coef[columns],
        factor * vertex.intercept,
    )


def sharpness(scores: Array, y: Rows, weight: Array) -> float:
    """Positive factor of the scores that makes the classes most likely."""
    rows = np.arange(len(y))

    def surprise(log_factor: float) -> float:
        likely = probabilities(np.exp(log_factor) * scores)[rows, y]
        return float(-weight @ np.log(np.maximum(likely, TINY)))

    found = minimize_scalar(surprise, bounds=SHARPNESS, method="bounded")
    return float(np.exp(found.x))
