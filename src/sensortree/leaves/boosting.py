"""`BoostedEngine`: boosted leaf classifiers whose number of rounds follows the data.

All folds of a subset of sensors are one job with one number of rounds: that of the least
loss on the rows that are held out. Folds are boosted side by side, some rounds at a
time, until more rounds no longer help. Of many rows, trees may be larger and steps
longer, and folds are held out several at a time. A category is one column, which trees
split by sets of its levels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier

from sensortree.constants import (
    BOOSTED_BINS,
    BOOSTED_CHUNK,
    BOOSTED_FEW_ROWS,
    BOOSTED_FEWEST_BINS,
    BOOSTED_FOLD_GROUPS,
    BOOSTED_L2,
    BOOSTED_LEAST_RATE,
    BOOSTED_LITTLE,
    BOOSTED_MANY_ROWS,
    BOOSTED_MAX_ROUNDS,
    BOOSTED_MOST_BINS,
    BOOSTED_UNJUDGED,
    FLOAT32_TINY,
)
from sensortree.leaves.coding import Coded, CodedTrees, Coding, coded
from sensortree.leaves.folds import FoldedRows
from sensortree.leaves.sklearn_private import (
    OnceBinned,
    boosted_baseline,
    boosted_scores,
)
from sensortree.policy.classifiers import posterior, probabilities
from sensortree.types import Array, Mask, Rows

# Columns that are all numbers.
PLAIN = Coding((), ())


@dataclass(frozen=True)
class TreeSize:
    """How trees are boosted."""

    learning_rate: float  # the share of a step that is taken
    leaves: int  # leaves of a tree at most
    rows: int  # rows of a leaf at least
    saved: float  # share of the log-loss that another chunk of rounds must save

    def of_classes(self, n_classes: int) -> TreeSize:
        """The same where a round grows a tree for each class: short steps are longer."""
        if n_classes <= 2:
            return self
        return replace(self, learning_rate=max(self.learning_rate, BOOSTED_LEAST_RATE))


# Of few rows "medium"; of many "large" or "huge" where there is much to tell, else "small".
SIZES = {
    "small": TreeSize(0.1, 8, 40, 2e-3),
    "medium": TreeSize(0.2, 15, 20, 1e-2),
    "large": TreeSize(0.3, 63, 10, 5e-3),
    "huge": TreeSize(0.3, 255, 10, 5e-3),
}


def usual_size(n_rows: int) -> str:
    """The size of trees on so many rows, where nothing more is known of them."""
    return "large" if n_rows >= BOOSTED_MANY_ROWS else "medium"


def groups_of(folds: Sequence[int], n_rows: int) -> list[list[int]]:
    """Folds that are held out together: each by itself, unless rows are many."""
    n_groups = len(folds)
    if usual_size(n_rows) == "large":
        n_groups = min(BOOSTED_FOLD_GROUPS, n_groups)
    return [list(folds[k::n_groups]) for k in range(n_groups)]


def trees_of(
    shape: tuple[int, ...], coding: Coding = PLAIN, size: TreeSize | None = None
) -> dict[str, Any]:
    """How trees of a size are grown on so many rows and columns."""
    size = size or SIZES[usual_size(shape[0])]
    fewest = max(BOOSTED_FEWEST_BINS, coding.most_levels)  # a level is a bin
    bins = BOOSTED_BINS // max(1, shape[1])
    return {
        "learning_rate": size.learning_rate,
        "l2_regularization": BOOSTED_L2,
        "max_leaf_nodes": size.leaves,
        "min_samples_leaf": size.rows,
        "max_bins": int(np.clip(bins, fewest, BOOSTED_MOST_BINS)),
        "categorical_features": coding.is_category if coding.levels else None,
        "early_stopping": False,
        "random_state": 0,
    }


class TakesNaN(BaseEstimator):
    """Says that an estimator can be fitted on NaN."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class BoostedTrees(TakesNaN, ClassifierMixin, BaseEstimator):
    """What "boosted" stands for: gradient boosting with rounds that follow the data.

    Leaves are fitted by `BoostedEngine`, and are ordinary
    HistGradientBoostingClassifiers. By itself it is one of 50 rounds.

    Parameters
    ----------
    size : {"small", "medium", "large", "huge"}, default=None
        Of the trees; None is "medium", and "large" of many rows.
    """

    def __init__(self, size: str | None = None):
        self.size = size

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> BoostedTrees:
        """Fit as many rounds as suit most tables."""
        size = SIZES[self.size_for(len(y))].of_classes(len(np.unique(y)))
        grown = trees_of(np.shape(X), size=size)
        trees = HistGradientBoostingClassifier(max_iter=BOOSTED_UNJUDGED, **grown)
        self.fitted_ = trees.fit(X, y, sample_weight)
        self.classes_ = self.fitted_.classes_
        return self

    def size_for(self, n_rows: int) -> str:
        """The size of trees on so many rows."""
        return self.size or usual_size(n_rows)

    def predict_proba(self, X: Any) -> Array:
        """Probability of every class, (n_samples, n_classes)."""
        return np.asarray(self.fitted_.predict_proba(X))

    def predict(self, X: Any) -> Any:
        """Most probable class, (n_samples,)."""
        return self.fitted_.predict(X)


class BoostedEngine(FoldedRows):
    """Boosted trees on any columns, for the same rows, classes and folds.

    The size is that of the trees, also where some folds are left out; None as in
    `BoostedTrees`.

    Examples
    --------
    >>> import numpy as np
    >>> from sensortree.leaves.boosting import BoostedEngine
    >>> X = np.random.default_rng(0).normal(size=(400, 2))
    >>> y = ((X[:, 0] > 0) ^ (X[:, 1] > 0)).astype(int)
    >>> engine = BoostedEngine(y, 2, fold=np.arange(400) % 5)
    >>> posterior, n_rounds = engine.judge(X)
    >>> bool((posterior.argmax(axis=1) == y).mean() > 0.9)
    True
    """

    def __init__(
        self,
        y: Rows,
        n_classes: int,
        weight: Array | None = None,
        fold: Rows | None = None,
        size: str | None = None,
    ):
        super().__init__(y, weight, fold)
        self.n_classes, self.n_taught = n_classes, int(self.taught.sum())
        self.size = SIZES[size or usual_size(self.n_taught)].of_classes(n_classes)

    def judge(self, X: Array | Coded) -> tuple[Array, int]:
        """Posterior of each row by a classifier that was fitted without the row's fold.

        Beside it, the number of rounds of all of these classifiers, and of the one that is
        fitted to all rows.
        """
        rows = coded(X)
        if not rows.shape[1]:  # with nothing known there is nothing to overfit
            prior = self._fit(rows, BOOSTED_UNJUDGED)
            return posterior(prior, rows.values, self.n_classes), BOOSTED_UNJUDGED
        groups = groups_of(self.folds, self.n_taught)
        proba, n_rounds = self._judge_without(groups, rows)
        seen = self.fold < 0
        if seen.any():
            fitted = self._fit(rows, n_rounds)
            proba[seen] = posterior(fitted, rows.values[seen], self.n_classes)
        return proba, n_rounds

    def judge_some(self, X: Array | Coded, folds: Sequence[int]) -> tuple[Array, int]:
        """As `judge`, of the rows of some folds; all others have probabilities of 0."""
        return self._judge_without([[fold] for fold in folds], coded(X))

    def loss_of_some(self, X: Array | Coded) -> Array:
        """Log-loss of the rows of the first folds that are held out together."""
        without = self._without(groups_of(self.folds, self.n_taught)[0], coded(X))
        self._boost([without])
        return without.lost(without.answer(without.best))

    def _judge_without(
        self, groups: Sequence[Sequence[int]], X: Coded
    ) -> tuple[Array, int]:
        """Posterior of the rows of each group by a booster without it, and its rounds."""
        proba = np.zeros((len(self.y), self.n_classes))
        boosted = [self._without(group, X) for group in groups]
        n_rounds = self._boost(boosted) if boosted else BOOSTED_UNJUDGED
        for each in boosted:
            proba[each.judged] = each.answer(each.best)
        return proba, n_rounds

    def _boost(self, folds: list[BoostedFold]) -> int:
        """Boost all folds by one number of rounds, which it gives."""
        few = sum(len(fold.judged) for fold in folds) <= BOOSTED_FEW_ROWS
        choosing = folds if few else folds[:2]
        little = BOOSTED_LITTLE * sum(fold.weight_judged.sum() for fold in choosing)
        n_rounds = choose_rounds(
            choosing,
            lambda before, least: before - self.size.saved * max(least, little),
        )
        for fold in folds[len(choosing) :]:
            fold.best = fold.boost(0, n_rounds)[-1]
        return n_rounds

    def fit(self, X: Array | Coded, n_rounds: int | None = None) -> Any:
        """The classifier fitted to all rows, which is asked with readings not coded.

        The number of rounds is what `judge` found on the same columns, else 50.
        """
        rows = coded(X)
        fitted = self._fit(rows, n_rounds or BOOSTED_UNJUDGED)
        if isinstance(fitted, DummyClassifier) or not rows.coding.levels:
            return fitted
        return CodedTrees(fitted, rows.coding)

    def _fit(self, X: Coded, n_rounds: int) -> Any:
        """The classifier fitted to all rows, which is asked with readings as coded."""
        X, y = X.take(self.taught), self.y[self.taught]
        weight = self._weight(self.taught)
        if not X.shape[1] or (y == y[0]).all():
            prior = DummyClassifier(strategy="prior")
            return prior.fit(X.values, y, weight)
        grown = trees_of(X.shape, X.coding, self.size)
        trees = HistGradientBoostingClassifier(max_iter=n_rounds, **grown)
        return trees.fit(X.values, y, weight)

    def _weight(self, rows: Mask) -> Array | None:
        """Weights of some rows that are learned from; None if all count alike."""
        own = self.weight[rows]
        return None if (own == 1.0).all() else own

    def _without(self, group: Sequence[int], X: Coded) -> BoostedFold:
        held_out = np.isin(self.fold, group)
        train, judged = self.taught & ~held_out, np.flatnonzero(held_out)
        y, rows, truth = self.y[train], X.take(train), self.y[judged]
        classes = np.unique(y)
        trees = None
        if len(classes) > 1:
            grown = trees_of(rows.shape, rows.coding, self.size)
            trees = OnceBinned(warm_start=True, **grown)

        def posterior_of(scores: Array) -> Array:
            """Probability of every class, of those that were there to be learned."""
            proba = np.zeros((len(judged), self.n_classes))
            likely: Any = 1.0
            if trees is not None:
                likely = probabilities(np.ascontiguousarray(scores, dtype=np.float64))
            proba[:, classes] = likely
            return proba

        def log_loss(proba: Array) -> Array:
            likely = proba[np.arange(len(judged)), truth]
            return np.asarray(-np.log(np.maximum(likely, FLOAT32_TINY)))

        return BoostedFold(
            trees,
            rows.values,
            y,
            self._weight(train),
            judged,
            X.values[judged],
            self.weight[judged],
            1 if len(classes) <= 2 else len(classes),
            posterior_of,
            log_loss,
        )


@dataclass(eq=False)
class BoostedFold:
    """A booster in the making, and what it scores on rows that it has not seen."""

    booster: Any  # none where there is nothing to learn
    X: Array
    y: NDArray[Any]
    weight: Array | None
    judged: Rows
    X_judged: Array
    weight_judged: Array
    n_outputs: int
    answer: Callable[[Array], Array]  # what scores say of the rows that are judged
    lost: Callable[[Array], Array]  # what such answers lose
    scores: Array = field(init=False)  # after all rounds so far, (n_judged, n_outputs)
    # After the number of rounds that is best so far, (n_judged, n_outputs).
    best: Array = field(init=False)

    def __post_init__(self) -> None:
        self.scores = self.best = np.zeros((len(self.X_judged), self.n_outputs))

    def boost(self, done: int, n_rounds: int) -> list[Array]:
        """Scores after each of some more rounds, (n_judged, n_outputs) each."""
        if self.booster is None:
            return [self.scores] * n_rounds
        self.booster.set_params(max_iter=done + n_rounds)
        self.booster.fit(self.X, self.y, self.weight)
        if not done:
            self.scores = self.scores + boosted_baseline(self.booster)
        after = []
        for added in boosted_scores(self.booster, self.X_judged, done):
            self.scores = self.scores + added
            after.append(self.scores)
        return after

    def loss(self, scores: Array) -> float:
        """Loss of the rows that were held out, summed by weight."""
        return float(self.weight_judged @ self.lost(self.answer(scores)))


def choose_rounds(
    folds: Sequence[BoostedFold], goal: Callable[[float, float], float]
) -> int:
    """Boost folds until more rounds do not help; the number of rounds that is best.

    Another chunk of rounds follows while the least loss is below a goal, which is set by
    the least one before this chunk and the least one now.
    """
    done, best, least = 0, 1, np.inf
    while done < BOOSTED_MAX_ROUNDS:
        chunk = min(max(BOOSTED_CHUNK, done // 2), BOOSTED_MAX_ROUNDS - done)
        after = [fold.boost(done, chunk) for fold in folds]
        losses = [
            sum(fold.loss(scores) for fold, scores in zip(folds, at, strict=True))
            for at in zip(*after, strict=True)
        ]
        before, found = least, int(np.argmin(losses))
        if losses[found] < least:
            best, least = done + found + 1, losses[found]
            for fold, scores in zip(folds, after, strict=True):
                fold.best = scores[found]
        done += chunk
        if not least < goal(before, least):
            break
    return best
