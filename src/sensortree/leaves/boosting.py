"""`BoostedEngine`: boosted leaf classifiers whose number of rounds follows the data.

All folds of a subset of sensors are one job with one number of rounds: that of the least
log-loss on the rows that are held out. Folds are boosted side by side, some rounds at a
time, until more rounds no longer help. Of many rows, trees may be larger and steps
longer, and folds are held out several at a time. A category is one column, which trees
split by sets of its levels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)

from sensortree.leaves.coding import Coded, CodedTrees, Coding, coded
from sensortree.leaves.sklearn_private import (
    OnceBinned,
    boosted_baseline,
    boosted_scores,
)
from sensortree.policy.classifiers import posterior, probabilities
from sensortree.types import Array, Mask, Rows

# What a leaf value is shrunk by, as a ridge on its second derivatives.
L2 = 3.0
# Rows that are many, and groups of folds that are then held out in turn.
MANY_ROWS, MANY_GROUPS = 6_000, 3
# Bins of all columns together, at most, and of a column at least and at most.
BINS = 2**15
FEWEST_BINS, MOST_BINS = 16, 255
# Rounds that are boosted at a time, at first; later ones are half of those before.
CHUNK = 10
MAX_ROUNDS = 200
# Nats a row: what a chunk must save is a share of the log-loss, or of these if it is less.
LITTLE = 1e-2
# Learning rate where there are more than two classes, at least.
LEAST_RATE = 0.2
# Rows up to which all folds choose the number of rounds; of more, two do.
FEW_ROWS = 2_000
# Rounds where no row is held out to choose them by, and of numbers rather than classes.
UNJUDGED, NUMBERED = 50, 20
TINY = float(np.finfo(np.float32).tiny)
# Columns that are all numbers.
PLAIN = Coding((), ())


@dataclass(frozen=True)
class TreeSize:
    """How trees are boosted.

    Attributes
    ----------
    learning_rate : float
        The share of a step that is taken.
    leaves : int
        Leaves of a tree at most.
    rows : int
        Rows of a leaf at least.
    saved : float
        Share of the log-loss that another chunk of rounds must save.
    """

    learning_rate: float
    leaves: int
    rows: int
    saved: float

    def of_classes(self, n_classes: int) -> TreeSize:
        """The same where a round grows a tree for each class: short steps are longer."""
        if n_classes <= 2:
            return self
        return replace(self, learning_rate=max(self.learning_rate, LEAST_RATE))


# Of few rows "medium"; of many "large" or "huge" where there is much to tell, else "small".
SIZES = {
    "small": TreeSize(0.1, 8, 40, 2e-3),
    "medium": TreeSize(0.2, 15, 20, 1e-2),
    "large": TreeSize(0.3, 63, 10, 5e-3),
    "huge": TreeSize(0.3, 255, 10, 5e-3),
}


class BoostedTrees(ClassifierMixin, BaseEstimator):
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
        trees = booster(np.shape(X), UNJUDGED, size=size)
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class BoostedEngine:
    """Boosted trees on any columns, for the same rows, classes and folds.

    Parameters
    ----------
    y : ndarray of shape (n_samples,)
        Classes as integers.
    n_classes : int
    weight : ndarray of shape (n_samples,), default=None
        None stands for ones. A row of weight 0 is judged, and not learned from.
    fold : ndarray of shape (n_samples,), default=None
        The fold that a row is held out with; -1 for a row that never is. None stands for
        -1 throughout.
    size : {"small", "medium", "large", "huge"}, default=None
        Of the trees, also where some folds are left out; None as in `BoostedTrees`.

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
        self.y, self.n_classes, self.weight = y, n_classes, weight
        self.taught = np.ones(len(y), dtype=bool) if weight is None else weight > 0
        n_taught = int(self.taught.sum())
        self.size = SIZES[size or usual_size(n_taught)].of_classes(n_classes)
        self.fold = np.full(len(y), -1) if fold is None else np.asarray(fold)
        self.folds = [int(f) for f in np.unique(self.fold) if f >= 0]

    def judge(self, X: Array | Coded) -> tuple[Array, int]:
        """Posterior of each row by a classifier that was fitted without the row's fold.

        Parameters
        ----------
        X : ndarray of shape (n_samples, width), or Coded

        Returns
        -------
        posterior : ndarray of shape (n_samples, n_classes)
        n_rounds : int
            Of all of these classifiers, and of the one that is fitted to all rows.
        """
        rows = coded(X)
        if not rows.shape[1]:  # with nothing known there is nothing to overfit
            prior = self._fit(rows, UNJUDGED)
            return posterior(prior, rows.values, self.n_classes), UNJUDGED
        said, n_rounds = self._judge_without(self._groups(), rows)
        seen = self.fold < 0
        if seen.any():
            fitted = self._fit(rows, n_rounds)
            said[seen] = posterior(fitted, rows.values[seen], self.n_classes)
        return said, n_rounds

    def judge_some(self, X: Array | Coded, folds: Sequence[int]) -> tuple[Array, int]:
        """As `judge`, of the rows of some folds; others are said to be of no class."""
        return self._judge_without([[fold] for fold in folds], coded(X))

    def loss_of_some(self, X: Array | Coded) -> Array:
        """Log-loss of the rows of the first folds that are held out together."""
        group = self._groups()[0]
        said, _ = self._judge_without([group], coded(X))
        judged = np.flatnonzero(np.isin(self.fold, group))
        return -np.log(np.maximum(said[judged, self.y[judged]], TINY))

    def _groups(self) -> list[list[int]]:
        """Folds that are held out together: each by itself, unless rows are many."""
        few = self.taught.sum() < MANY_ROWS
        n_groups = len(self.folds) if few else MANY_GROUPS
        return [self.folds[k::n_groups] for k in range(min(n_groups, len(self.folds)))]

    def _judge_without(
        self, groups: Sequence[Sequence[int]], X: Coded
    ) -> tuple[Array, int]:
        """Posterior of the rows of each group by a booster without it, and its rounds."""
        said = np.zeros((len(self.y), self.n_classes))
        boosted = [self._without(group, X) for group in groups]
        n_rounds = _boost(boosted) if boosted else UNJUDGED
        for each in boosted:
            said[each.judged] = each.posterior(each.best, self.n_classes)
        return said, n_rounds

    def fit(self, X: Array | Coded, n_rounds: int | None = UNJUDGED) -> Any:
        """The classifier fitted to all rows, which is asked with readings not coded.

        Parameters
        ----------
        X : ndarray of shape (n_samples, width), or Coded
        n_rounds : int or None, default=50
            What `judge` found on the same columns; None stands for the default.
        """
        rows = coded(X)
        fitted = self._fit(rows, n_rounds or UNJUDGED)
        if isinstance(fitted, DummyClassifier) or not rows.coding.levels:
            return fitted
        return CodedTrees(fitted, rows.coding)

    def _fit(self, X: Coded, n_rounds: int) -> Any:
        """The classifier fitted to all rows, which is asked with readings as coded."""
        X, y, weight = X.take(self.taught), self.y[self.taught], self._weight()
        if not X.shape[1] or (y == y[0]).all():
            prior = DummyClassifier(strategy="prior")
            return prior.fit(X.values, y, weight)
        trees = booster(X.shape, n_rounds, X.coding, self.size)
        return trees.fit(X.values, y, weight)

    def _weight(self, rows: Mask | None = None) -> Array | None:
        """Weights of those of some rows that are learned from; None if all count alike."""
        if self.weight is None:
            return None
        own = self.weight[self.taught if rows is None else self.taught & rows]
        return None if (own == 1.0).all() else own

    def _without(self, group: Sequence[int], X: Coded) -> _Fold:
        held_out = np.isin(self.fold, group)
        train, judged = self.taught & ~held_out, np.flatnonzero(held_out)
        weight = np.ones(len(self.y)) if self.weight is None else self.weight
        return _Fold(
            X.take(train),
            self.y[train],
            self._weight(train),
            judged,
            X.values[judged],
            self.y[judged],
            weight[judged],
            self.size,
        )


def boosted_numbers(X: Coded, numbers: Array, weight: Array, X_new: Coded) -> Array:
    """Numbers of new rows by a few rounds of trees, (n_new, n_outputs).

    Parameters
    ----------
    X : Coded
        Readings of n_samples rows.
    numbers : ndarray of shape (n_samples, n_outputs)
    weight : ndarray of shape (n_samples,)
    X_new : Coded
        Readings of n_new rows.
    """
    grown = trees_of(X.shape, X.coding)
    trees = HistGradientBoostingRegressor(max_iter=NUMBERED, **grown)
    # Bins take much longer with weights.
    own = None if (weight == weight[0]).all() else weight
    fits = (trees.fit(X.values, each, own) for each in numbers.T)
    return np.column_stack([fitted.predict(X_new.values) for fitted in fits])


def booster(
    shape: tuple[int, ...],
    n_rounds: int,
    coding: Coding = PLAIN,
    size: TreeSize | None = None,
) -> HistGradientBoostingClassifier:
    """A booster for so many rows and columns, not fitted yet."""
    grown = trees_of(shape, coding, size)
    return HistGradientBoostingClassifier(max_iter=n_rounds, **grown)


def usual_size(n_rows: int) -> str:
    """The size of trees on so many rows, where nothing more is known of them."""
    return "large" if n_rows >= MANY_ROWS else "medium"


def trees_of(
    shape: tuple[int, ...], coding: Coding = PLAIN, size: TreeSize | None = None
) -> dict[str, Any]:
    """How trees of a size are grown on so many rows and columns."""
    size = size or SIZES[usual_size(shape[0])]
    fewest = max(FEWEST_BINS, coding.most_levels)  # a level is a bin
    return {
        "learning_rate": size.learning_rate,
        "l2_regularization": L2,
        "max_leaf_nodes": size.leaves,
        "min_samples_leaf": size.rows,
        "max_bins": int(np.clip(BINS // max(1, shape[1]), fewest, MOST_BINS)),
        "categorical_features": coding.is_category if coding.levels else None,
        "early_stopping": False,
        "random_state": 0,
    }


@dataclass(eq=False)
class _Fold:
    """A booster in the making, and what it says of the rows that it has not seen.

    Attributes
    ----------
    judged : ndarray of shape (n_judged,)
        Where these rows stand.
    scores : ndarray of shape (n_judged, n_outputs)
        After all rounds so far.
    best : ndarray of shape (n_judged, n_outputs)
        After the number of rounds that is best so far.
    """

    X: Coded
    y: Rows
    weight: Array | None
    judged: Rows
    X_judged: Array
    y_judged: Rows
    weight_judged: Array
    size: TreeSize
    booster: Any = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.classes = np.unique(self.y)
        n_outputs = 1 if len(self.classes) <= 2 else len(self.classes)
        self.scores = self.best = np.zeros((len(self.judged), n_outputs))
        if len(self.classes) > 1:
            like = booster(self.X.shape, 0, self.X.coding, self.size).get_params()
            self.booster = OnceBinned(**{**like, "warm_start": True})

    def boost(self, done: int, n_rounds: int) -> list[Array]:
        """Scores after each of some more rounds, (n_judged, n_outputs) each."""
        if self.booster is None:
            return [self.scores] * n_rounds
        self.booster.set_params(max_iter=done + n_rounds)
        self.booster.fit(self.X.values, self.y, self.weight)
        if not done:
            self.scores = self.scores + boosted_baseline(self.booster)
        after = []
        for added in boosted_scores(self.booster, self.X_judged, done):
            self.scores = self.scores + added
            after.append(self.scores)
        return after

    def posterior(self, scores: Array, n_classes: int) -> Array:
        """Probability of every class, of those that were there to be learned."""
        said = np.zeros((len(scores), n_classes))
        if self.booster is None:
            said[:, self.classes] = 1.0
        else:
            likely = probabilities(np.ascontiguousarray(scores, dtype=np.float64))
            said[:, self.classes] = likely
        return said

    def loss(self, scores: Array) -> float:
        """Log-loss of the rows that were held out, summed by weight."""
        said = self.posterior(scores, int(max(self.y.max(), self.y_judged.max())) + 1)
        true = said[np.arange(len(self.judged)), self.y_judged]
        return float(-self.weight_judged @ np.log(np.maximum(true, TINY)))


def _boost(folds: list[_Fold]) -> int:
    """Boost all folds by one number of rounds, which it gives."""
    few = sum(len(fold.judged) for fold in folds) <= FEW_ROWS
    choosing = folds if few else folds[:2]
    n_rounds = _choose_rounds(choosing)
    for fold in folds[len(choosing) :]:
        fold.best = fold.boost(0, n_rounds)[-1]
    return n_rounds


def _choose_rounds(folds: list[_Fold]) -> int:
    """Boost folds until more rounds do not help; the number of rounds that is best."""
    done, best, least = 0, 0, np.inf
    little = LITTLE * sum(fold.weight_judged.sum() for fold in folds)
    share = folds[0].size.saved
    while done < MAX_ROUNDS:
        chunk = min(max(CHUNK, done // 2), MAX_ROUNDS - done)
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
        if not least < before - share * max(least, little):
            break
    return best
