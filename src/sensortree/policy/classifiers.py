"""Leaf classifiers, and their calibration, as plain arrays: what is left after training.

Each is made of NumPy arrays and nothing else, so it can be written to a file and asked
without scikit-learn. A row's answer does not depend on the rows beside it, to the last
bit: whether rows come together or one by one, the same sums are made in the same order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensortree.threads import one_thread
from sensortree.types import Array

# Rows from which products of columns are made column by column, and ensembles are asked
# all at once; rows whose scores are computed together; rows of an ensemble at a time.
MANY_ROWS = 64
TOGETHER = 4
BLOCK = 512

# What a probability of 0 is taken for before its logarithm, as in scikit-learn.
LEAST = 1e-12
# The least probability that a leaf's calibration tells from 0.
LEAST_IN_LEAF = 1e-6


class Scorer:
    """Whatever gives class probabilities for readings, and the most probable class."""

    def predict_proba(self, X: Array) -> Array:
        """Probability of every class, (n_rows, n_classes)."""
        raise NotImplementedError  # each scorer's own

    def predict(self, X: Array) -> NDArray[np.intp]:
        """Most probable class as a position, (n_rows,); the first of equals."""
        return np.asarray(self.predict_proba(X).argmax(axis=1))


@dataclass(frozen=True, eq=False)
class ConstantScorer(Scorer):
    """The class prior: the answer where nothing is known."""

    proba: Array  # (n_classes,)

    def predict_proba(self, X: Array) -> Array:
        """Give the prior, (n_rows, n_classes)."""
        return np.tile(self.proba, (len(X), 1))


@dataclass(frozen=True, eq=False)
class Polynomial:
    """Sums of standardised columns and, at degree 2, of their products."""

    center: Array  # (width,)
    scale: Array  # (width,)
    degree: int  # 1 or 2
    coef: Array  # (n_terms, n_outputs)
    intercept: Array  # (n_outputs,)

    def __post_init__(self) -> None:
        # One layout, so that a loaded model makes the same sums in the same order.
        object.__setattr__(self, "coef", np.ascontiguousarray(self.coef))

    @cached_property
    def _pairs(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        return np.triu_indices(len(self.center))

    def basis(self, X: Array) -> Array:
        """Standardised columns, then every square and product of two of them."""
        return np.ascontiguousarray(self._terms(X)[:, : len(X)].T)

    def _terms(self, X: Array) -> Array:
        """The basis, a row for each term; rows of X are filled up to whole blocks."""
        width, n_rows = len(self.center), -(-len(X) // TOGETHER) * TOGETHER
        linear = np.zeros((width, n_rows))
        linear[:, : len(X)] = ((X - self.center) / self.scale).T
        if self.degree == 1:
            return linear
        if len(X) < MANY_ROWS:
            first, second = self._pairs
            products = linear.take(first, axis=0)
            products *= linear.take(second, axis=0)
            return np.concatenate([linear, products])
        terms = np.empty((width + width * (width + 1) // 2, n_rows))
        quadratic_terms(linear, terms)
        return terms

    def scores(self, X: Array) -> Array:
        """The sums, (n_rows, n_outputs)."""
        terms = self._terms(X)
        # Products of a few rows each, all of one shape: every row goes through the same
        # kernel, however many there are.
        n_blocks = terms.shape[1] // TOGETHER
        blocks = terms.reshape(len(terms), n_blocks, TOGETHER).transpose(1, 2, 0)
        scores = (blocks @ self.coef).reshape(-1, len(self.intercept))[: len(X)]
        scores += self.intercept
        return np.asarray(scores)


@dataclass(frozen=True, eq=False)
class LogisticScorer(Polynomial, Scorer):
    """Logistic regression: one output for two classes, else one per class."""

    def predict_proba(self, X: Array) -> Array:
        """Probability of every class, (n_rows, n_classes)."""
        return probabilities(self.scores(X))


@dataclass(frozen=True, eq=False)
class BoostedScorer(Scorer):
    """An ensemble of boosted trees on numbers and levels, as arrays of nodes.

    The nodes of all trees stand one after another; a leaf is its own child. The trees of
    one round, one for each output, are neighbours.
    """

    # What a node looks at: a reading, or behind the last reading a set of levels.
    feature: NDArray[np.int32]  # (n_nodes,)
    left: NDArray[np.int32]  # (n_nodes,)
    right: NDArray[np.int32]  # (n_nodes,)
    threshold: Array  # a reading at most as large goes left, (n_nodes,)
    value: Array  # it counts at a leaf, (n_nodes,)
    missing_left: NDArray[np.bool_]  # whether NaN goes left, (n_nodes,)
    roots: NDArray[np.int32]  # (n_rounds, n_outputs)
    baseline: Array  # (n_outputs,)
    # The same ensemble, which is quicker on many rows; not written to files.
    native: Any = field(default=None, repr=False)
    # Readings that are levels of one category, ones and zeros; as a feature, a set is 1
    # where one of its readings is 1, else 0. None if there are no sets.
    sets: tuple[tuple[int, ...], ...] | None = field(
        default=None, metadata={"digest": "if set"}
    )

    @cached_property
    def depth(self) -> int:
        """Steps after which every row has come to a leaf."""
        steps, level = 0, self.roots.ravel()
        while (level := np.unique(level[self.left[level] != level])).size:
            level = np.unique(np.concatenate([self.left[level], self.right[level]]))
            steps += 1
        return steps

    @cached_property
    def _ends(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Readings of all sets one after another, and where each begins."""
        sets = self.sets or ()
        sizes = [len(each) for each in sets]
        return np.concatenate([*sets, ()]).astype(np.intp), np.cumsum([0, *sizes])[:-1]

    def features(self, X: Array) -> Array:
        """What nodes look at: readings, then sets, (n_rows, width + n_sets)."""
        if self.sets is None:
            return X
        readings, begins = self._ends
        inside = np.logical_or.reduceat(X[:, readings] == 1.0, begins, axis=1)
        return np.concatenate([X, inside], axis=1)

    def scores(self, X: Array) -> Array:
        """Sum of the trees' values, (n_rows, n_outputs)."""
        if self.native is not None and len(X) >= MANY_ROWS:
            scores = self.native.decision_function(X).reshape(len(X), -1)
            return np.ascontiguousarray(scores)
        blocks = [self._walked(X[i : i + BLOCK]) for i in range(0, len(X), BLOCK)]
        return np.concatenate(blocks) if blocks else np.empty((0, len(self.baseline)))

    def _walked(self, X: Array) -> Array:
        """Sum of the trees' values, round by round, (n_rows, n_outputs)."""
        X, n_rows, n_trees = self.features(X), len(X), self.roots.size
        at = np.repeat(self.roots.reshape(1, -1), n_rows, axis=0)
        rows = np.arange(n_rows)[:, None]
        for _ in range(self.depth):
            reading = X[rows, self.feature[at]]
            goes_left = reading <= self.threshold[at]
            goes_left |= np.isnan(reading) & self.missing_left[at]
            at = np.where(goes_left, self.left[at], self.right[at])
        values = self.value[at].reshape(n_rows, *self.roots.shape)
        start = np.broadcast_to(self.baseline, (n_rows, 1, len(self.baseline)))
        # One after another, as they were learned; np.sum would add them in pairs.
        rounds = np.concatenate([start, values], axis=1) if n_trees else start
        return np.asarray(np.cumsum(rounds, axis=1)[:, -1])

    def predict_proba(self, X: Array) -> Array:
        """Probability of every class, (n_rows, n_classes)."""
        return probabilities(self.scores(X))


def quadratic_terms(linear: Array, terms: Array) -> None:
    """Write columns, then every square and product of two, a row for each term.

    From (width, n_rows) come (width * (width + 3) / 2, n_rows).
    """
    width = at = len(linear)
    terms[:width] = linear
    for column in range(width):
        end = at + width - column
        np.multiply(linear[column:], linear[column], out=terms[at:end])
        at = end


def row_sums(terms: Array) -> Array:
    """Sum of each row, (n_rows,), along the row whatever the layout in memory.

    NumPy adds up columns where these are what lies together, in another order.
    """
    return np.asarray(np.add.reduce(np.ascontiguousarray(terms), axis=1))


def probabilities(scores: Array) -> Array:
    """Sigmoid of one score, or softmax of several, as (n_rows, n_classes)."""
    if scores.shape[1] > 1:
        likely = scores - np.maximum.reduce(scores, axis=1, keepdims=True)
        np.exp(likely, out=likely)
        likely /= row_sums(likely)[:, None]
        return np.asarray(likely)
    second = sigmoid(scores)
    return np.concatenate([1.0 - second, second], axis=1)


def sigmoid(scores: Array) -> Array:
    """1 / (1 + exp(-scores)), of any size."""
    small = np.exp(-np.abs(scores))
    return np.asarray(np.where(scores >= 0, 1.0, small) / (1.0 + small))


def posterior(scorer: Any, X: Array, n_classes: int) -> Array:
    """Probability of every class, (n_rows, n_classes); 0 or 1 if a classifier gives none.

    The classes of a foreign classifier are positions, some of which it may not have seen.
    What predicts numbers says the answer and its spread, (n_rows, 2). Our own scorers make
    products of few numbers for few rows, which BLAS does not share among threads.
    """
    ours = isinstance(scorer, Scorer) or hasattr(scorer, "says")
    if ours and len(X) < MANY_ROWS:
        return _asked(scorer, X, n_classes)
    with one_thread():
        return _asked(scorer, X, n_classes)


def _asked(scorer: Any, X: Array, n_classes: int) -> Array:
    if hasattr(scorer, "says"):
        return np.asarray(scorer.says(X))
    if hasattr(scorer, "predict_proba"):
        classes = getattr(scorer, "classes_", None)
        if len(X) and classes is None:
            return np.asarray(scorer.predict_proba(X))
        proba = np.zeros((len(X), n_classes))
        if len(X):
            proba[:, classes] = scorer.predict_proba(X)
        return proba
    proba = np.zeros((len(X), n_classes))
    if len(X):
        proba[np.arange(len(X)), np.asarray(scorer.predict(X))] = 1.0
    return proba


@dataclass(frozen=True, eq=False)
class Foreign:
    """A fitted regressor of another library."""

    regressor: Any

    def scores(self, X: Array) -> Array:
        """What it predicts, (n_rows, 1)."""
        if not len(X):
            return np.empty((0, 1))
        with one_thread():
            numbers = self.regressor.predict(X)
        return np.asarray(numbers, dtype=np.float64).reshape(-1, 1)


# Whatever sums up readings to one number.
Regression = Polynomial | BoostedScorer | Foreign


@dataclass(frozen=True, eq=False)
class Spread:
    """How far off a regression is expected to be, by the readings and what it says.

    The standard deviation is a sum of standardised columns, of the number that the
    regression gives, and of the squares of all these; it is kept within bounds. A missing
    reading counts as the mean.
    """

    # Of the columns, if they are looked at, and last of the regression's number:
    center: Array  # (width + 1,) or (1,)
    scale: Array  # as center
    coef: Array  # of all of them, then of their squares, (2 * len(center),)
    intercept: float
    least: float
    most: float

    def of(self, X: Array, number: Array) -> Array:
        """Standard deviations, (n_rows,)."""
        features = spread_features(X, number, self.center, self.scale)
        value = row_sums(features * self.coef) + self.intercept
        return np.asarray(np.clip(value, self.least, self.most))


def spread_features(X: Array, number: Array, center: Array, scale: Array) -> Array:
    """Standardised columns and number, then their squares, (n_rows, 2 * len(center))."""
    looked_at = X if len(center) > 1 else X[:, :0]
    columns = np.concatenate([looked_at, number[:, None]], axis=1)
    columns = (columns - center) / scale
    columns[np.isnan(columns)] = 0.0
    return np.concatenate([columns, columns**2], axis=1)


@dataclass(frozen=True, eq=False)
class Answering:
    """How the number of a regression becomes an answer."""

    spread: Spread
    shift: float  # spreads that are added, to answer with a quantile; 0 for the mean
    low: float  # of the numbers that were learned from; answers keep within them
    high: float

    def of(self, X: Array, number: Array) -> Array:
        """Answer and spread of rows that a regression says some number of, (n_rows, 2)."""
        spread = self.spread.of(X, number)
        answer = np.clip(number + self.shift * spread, self.low, self.high)
        return np.stack([answer, spread], axis=1)


@dataclass(frozen=True, eq=False)
class NumberScorer:
    """A number for every row, with its spread."""

    regression: Regression
    answering: Answering

    def says(self, X: Array) -> Array:
        """Answer and spread, (n_rows, 2)."""
        return self.answering.of(X, self.regression.scores(X)[:, 0])

    def predict(self, X: Array) -> Array:
        """Answer, (n_rows,)."""
        return np.asarray(self.says(X)[:, 0])


# calibration ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Sigmoid:
    """Platt's sigmoids, one for each output: 1 / (1 + exp(a t + b))."""

    slope: Array  # a, (n_outputs,)
    offset: Array  # b, (n_outputs,)

    def proba(self, outputs: Array, are_scores: bool) -> Array:
        """Probability of every class, (n_rows, n_classes)."""
        return _together(sigmoid(-(self.slope * outputs + self.offset)))


@dataclass(frozen=True, eq=False)
class Isotonic:
    """Rising steps joined by lines, for each output; beyond their ends they are level."""

    at: tuple[Array, ...]  # of each output some of its values, rising, (n_points,)
    proba_at: tuple[Array, ...]  # and the probabilities there

    def proba(self, outputs: Array, are_scores: bool) -> Array:
        """Probability of every class, (n_rows, n_classes)."""
        each = [
            np.interp(output, at, likely)
            for output, at, likely in zip(
                outputs.T, self.at, self.proba_at, strict=True
            )
        ]
        return _together(np.ascontiguousarray(np.transpose(each)))


@dataclass(frozen=True, eq=False)
class Temperature:
    """All logits times one number, the inverse of the temperature."""

    inverse: float

    def proba(self, outputs: Array, are_scores: bool) -> Array:
        """Probability of every class, (n_rows, n_classes)."""
        if outputs.shape[1] == 1:
            first = -outputs if are_scores else 1 - outputs
            outputs = np.concatenate([first, outputs], axis=1)
        logits = outputs if are_scores else np.log(outputs + LEAST)
        return probabilities(np.ascontiguousarray(self.inverse * logits))


# Whatever turns outputs of a scorer into probabilities of the classes.
Calibration = Sigmoid | Isotonic | Temperature


@dataclass(frozen=True, eq=False)
class LeafCalibration:
    """Corrected probabilities of a classifier, for the examples that end in one leaf.

    Probabilities p become p^slope e^bias, scaled to sum to 1. A slope below 1 means that
    the classifier is too confident about these examples.
    """

    slope: float  # the inverse of a temperature, above 0
    bias: Array  # (n_classes,)

    def __call__(self, posterior: Array) -> Array:
        """Corrected probabilities, (n_rows, n_classes)."""
        return probabilities(self.slope * log_likely(posterior) + self.bias)


def log_likely(posterior: Array) -> Array:
    """Logarithms of probabilities, each taken as `LEAST_IN_LEAF` at least."""
    return np.log(np.maximum(np.ascontiguousarray(posterior), LEAST_IN_LEAF))


def _together(each: Array) -> Array:
    """Probabilities of all classes from those of one, or of each for itself."""
    if each.shape[1] == 1:
        return np.concatenate([1.0 - each, each], axis=1)
    total = row_sums(each)[:, None]
    uniform = np.full_like(each, 1 / each.shape[1])
    return np.divide(each, total, out=uniform, where=total != 0)


@dataclass(frozen=True, eq=False)
class CalibratedScorer(Scorer):
    """A scorer whose outputs are calibrated."""

    scorer: Any
    # Whether the calibration was learned from scores, else from probabilities.
    reads_scores: bool
    calibration: Calibration

    def predict_proba(self, X: Array) -> Array:
        """Probability of every class, (n_rows, n_classes)."""
        if self.reads_scores:
            outputs = self.scorer.scores(X)
        else:
            outputs = self.scorer.predict_proba(X)
            outputs = outputs[:, 1:] if outputs.shape[1] == 2 else outputs
        return self.calibration.proba(outputs, self.reads_scores)


@dataclass(frozen=True, eq=False)
class MeanScorer(Scorer):
    """The mean of several scorers, one for each fold of a calibration."""

    scorers: tuple[Any, ...]

    def predict_proba(self, X: Array) -> Array:
        """Probability of every class, (n_rows, n_classes)."""
        total = sum(scorer.predict_proba(X) for scorer in self.scorers)
        return np.asarray(total / len(self.scorers))
