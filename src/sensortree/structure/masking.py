"""`MaskedScreen`: a quick guess of what any subset of sensors could predict.

Trees are boosted on rows whose sensors were blanked out at random. NaN goes the way of each
node that was best for it in training, so the trees answer for any subset of sensors. Rows
are halved; each half is answered by trees that were boosted on the other.

A tree is small, and often does not look at the sensor that a search adds: what it says of
all rows is kept for each part of its own sensors that is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)

from sensortree.constants import (
    MASKED_COPIES,
    MASKED_KEPT,
    MASKED_L2,
    MASKED_LEARNING_RATE,
    MASKED_ROUNDS,
    MASKED_ROWS,
    MASKED_TREE_LEAVES,
)
from sensortree.leaves.coding import Coded, side_by_side
from sensortree.leaves.folds import halves_of
from sensortree.leaves.sklearn_private import (
    boosted_baseline,
    boosted_levels,
    boosted_rounds,
)
from sensortree.leaves.standardising import moments
from sensortree.policy.classifiers import probabilities
from sensortree.types import Array, Mask, Rows


class MaskedScreen:
    """Scores for any subset of sensors, by trees that have not seen the row.

    `blocks` are the readings of each sensor, (n_samples, width); NaN stays NaN. y are
    classes as integers, or `numbers`, which are standardised. Rows of one fold are in one
    half. `always` are never blanked out, since they are known in any case.
    """

    def __init__(
        self,
        blocks: Sequence[Array | Coded],
        y: NDArray[Any],
        weight: Array,
        fold: Rows,
        always: frozenset[int] = frozenset(),
        numbers: bool = False,
    ):
        booster: Any = HistGradientBoostingClassifier
        if numbers:
            booster = HistGradientBoostingRegressor
            center, scale = moments(y[:, None], weight)
            y = (y - center) / scale
        self.numbers = numbers
        X, owner = side_by_side(blocks)
        rng = np.random.default_rng(0)
        half = halves_of(fold, rng)
        self.halves = []
        for answered in (half == 0, half == 1):
            rows, train = np.flatnonzero(answered), np.flatnonzero(~answered)
            if len(rows):
                train = train if len(train) else rows
                learned = X.take(train), y[train], weight[train]
                fitted = _boosted(booster, *learned, owner, always, rng)
                self.halves.append(_Half(rows, fitted, X.values[rows], owner))
        n_classes = 1 + max(int(half.classes.max()) for half in self.halves)
        self.shape = len(y), 1 if numbers else n_classes

    def scores(self, subset: Sequence[int]) -> Array:
        """Probability of every class, (n_samples, n_classes); or numbers, one column."""
        known = sum(1 << int(j) for j in subset)
        predicted = np.zeros(self.shape)
        for half in self.halves:
            if self.numbers:
                predicted[half.rows] = half.sums(known).T
            else:
                predicted[half.rows[:, None], half.classes] = half.posterior(known)
        return predicted


def _boosted(
    booster: Any,
    X: Coded,
    y: NDArray[Any],
    weight: Array,
    owner: Rows,
    always: frozenset[int],
    rng: np.random.Generator,
) -> Any:
    """Trees boosted on copies of rows, sensors blanked out; the target if it is one."""
    if (y == y[0]).all():
        return y[0]
    n_copies = int(np.clip(MASKED_ROWS // len(y), 1, MASKED_COPIES))
    copies = np.tile(X.values, (n_copies, 1))
    known = _random_subsets(len(copies), int(owner.max()) + 1, rng)
    known[:, sorted(always)] = True
    copies[~known[:, owner]] = np.nan
    # Bins take much longer with weights.
    equal = bool((weight == weight[0]).all())
    return booster(
        max_iter=MASKED_ROUNDS,
        learning_rate=MASKED_LEARNING_RATE,
        l2_regularization=MASKED_L2,
        max_leaf_nodes=MASKED_TREE_LEAVES,
        categorical_features=X.coding.is_category if X.coding.levels else None,
        early_stopping=False,
        random_state=0,
    ).fit(copies, np.tile(y, n_copies), None if equal else np.tile(weight, n_copies))


def _random_subsets(n: int, n_sensors: int, rng: np.random.Generator) -> Mask:
    """Sensors that are known, (n, n_sensors); small subsets are as likely as large ones.

    As many have one or two sensors as have n / 2 to n: searches begin with few.
    """
    size = np.exp(rng.uniform(0.0, np.log(n_sensors + 1), n)).astype(int)
    rank = rng.random((n, n_sensors)).argsort(axis=1).argsort(axis=1)
    return np.asarray(rank < size[:, None])


class _Half:
    """Rows, and trees that have not seen them."""

    def __init__(self, rows: Rows, fitted: Any, X: Array, owner: Rows):
        self.rows = rows
        self.trees: list[list[_Tree]] = []
        if hasattr(fitted, "predict"):
            self.classes = getattr(fitted, "classes_", np.zeros(1, np.intp))
            self.baseline = boosted_baseline(fitted).astype(np.float32)
            self.trees = [
                [_Tree(*tree, X, owner) for tree in zip(trees, sides, strict=True)]
                for trees, sides in zip(
                    boosted_rounds(fitted), boosted_levels(fitted), strict=True
                )
            ]
        else:
            self.classes = np.array([fitted])
            self.baseline = np.array([fitted], np.float32)
        self.room = MASKED_KEPT // max(1, len(rows))

    def posterior(self, known: int) -> Array:
        """Probability of every class that was there to be learned."""
        if not self.trees:
            return np.ones((len(self.rows), 1))
        scores = self.sums(known)
        return probabilities(np.ascontiguousarray(scores.T, dtype=np.float64))

    def sums(self, known: int) -> Array:
        """What the trees add up to, (n_outputs, n_rows)."""
        scores = np.repeat(self.baseline[:, None], len(self.rows), axis=1)
        for trees in self.trees:
            for output, tree in enumerate(trees):
                part = known & tree.looks_at
                value = tree.kept.get(part)
                if value is None:
                    value = tree.kept[part] = tree.value(known)
                    self.room -= 1
                scores[output] += value
        if self.room < 0:
            for tree in chain.from_iterable(self.trees):
                self.room += len(tree.kept)
                tree.kept.clear()
        return np.asarray(scores)


class _Tree:
    """A tree, where the rows go at each of its nodes, and its earlier answers.

    `sides` are the codes that go left and right at nodes that look at a category.
    `looks_at` are its sensors, as bits; `kept` is what it says when some of them are known.
    """

    def __init__(
        self, nodes: Any, sides: dict[int, tuple[Rows, Rows]], X: Array, owner: Rows
    ):
        self.kept: dict[int, Any] = {}
        self.looks_at = 0
        self.steps: list[tuple[int, int, int, int, Mask] | np.float32] = []
        for at, node in enumerate(nodes):
            if node["is_leaf"]:
                self.steps.append(np.float32(node["value"]))
                continue
            column = int(node["feature_idx"])
            sensor = 1 << int(owner[column])
            self.looks_at |= sensor
            reading, missing_left = X[:, column], bool(node["missing_go_to_left"])
            blank = int(node["left"] if missing_left else node["right"])
            if at in sides:
                left, right = sides[at]
                goes_left = np.isin(reading, left)
                if missing_left:
                    goes_left = ~np.isin(reading, right)
            else:
                goes_left = reading <= node["num_threshold"]
                if missing_left:
                    goes_left |= np.isnan(reading)
            ways = int(node["left"]), int(node["right"])
            self.steps.append((sensor, *ways, blank, goes_left))

    def value(self, known: int, at: int = 0) -> Any:
        """The prediction below a node: a number, or one for each row."""
        step = self.steps[at]
        if isinstance(step, np.float32):
            return step
        sensor, left, right, blank, goes_left = step
        if not known & sensor:
            return self.value(known, blank)
        return np.where(goes_left, self.value(known, left), self.value(known, right))
