"""`Task`: what learning must know of the target: classes to tell apart, or numbers.

Everything that differs between the two, where rows are learned from, stands here: each has
what the other has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.utils.multiclass import check_classification_targets

from sensortree.constants import (
    ELIMINATOR_FEWEST_ROUNDS,
    ELIMINATOR_ROUNDS,
    FLOAT32_EPS,
    LOGISTIC_TERMS,
    NUMBER_LEVELS,
    RIDGE_TERMS,
    SCREEN_LEAST_LIKELY,
    TELLS_CLEARLY,
    TELLS_VERY_CLEARLY,
    TINY,
)
from sensortree.exceptions import DataError
from sensortree.leaves.boosting import trees_of
from sensortree.leaves.coding import Coding
from sensortree.leaves.standardising import moments
from sensortree.policy.decisions import NUMBER_PARTS, PARTS, Part
from sensortree.sensors.loss import Loss, weighted_quantile
from sensortree.sensors.reader import LARGEST
from sensortree.types import Array, Rows

if TYPE_CHECKING:
    from sensortree.leaves.rows import TrainingRows

Subset = frozenset[str]
Measure = Callable[[Array], Array]


class ClassTask:
    """Classes to tell apart; leaves say how likely each is."""

    # Kinds of leaves, from simple to complex; those of degree 1 and 2 come first.
    kinds = ("linear", "logistic2", "boosted")
    # What decision functions may look at, by name.
    parts: Mapping[str, tuple[Part, ...]] = PARTS
    # Terms up to which leaves of degree 2 have products.
    most_terms = LOGISTIC_TERMS

    def check(self, y: NDArray[Any]) -> NDArray[Any]:
        """Give a column of the table as a target: anything but continuous numbers."""
        check_classification_targets(y)
        return y

    def encode(self, y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Give the classes, and y as positions among them."""
        classes, codes = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise DataError(
                f"y has one class only, {classes.tolist()[0]!r}; a classifier needs rows "
                f"of at least two classes (with a weight above 0)."
            )
        return classes, codes

    def targets(self, y: NDArray[Any], weight: Array) -> Array:
        """What a least-squares screen regresses: indicators, (n_rows, n_classes)."""
        return np.asarray(np.eye(int(y.max()) + 1)[y])

    def read(self, scores: Array, rows: TrainingRows) -> Array:
        """What a screen's scores say, as far as they are only judged: the largest wins."""
        return scores

    def stand_in(self, scores: Array, rows: TrainingRows) -> Array:
        """What a screen's scores say in place of leaves: probabilities."""
        return as_probabilities(scores)

    def judged(self, predicted: Array, rows: TrainingRows) -> Array:
        """What a loss may judge: probabilities where it scores these, else scores."""
        return predicted if rows.loss.score is None else as_probabilities(predicted)

    def levels(self, y: NDArray[Any], weight: Array) -> Rows:
        """The target as positions of few levels: the classes."""
        return np.asarray(y)

    def compared(self, predicted: Array, y: NDArray[Any], loss: Loss) -> Array:
        """What kinds of leaves are compared by, (n_rows,): log-loss."""
        return _log_loss(predicted, y, FLOAT32_EPS)

    def tells(self, y: NDArray[Any], loss: Loss) -> list[tuple[Measure, float]]:
        """Losses by which sensors may tell more, with the standard errors asked for.

        Clearly by log-loss; or, since a classifier may be too sure, by Brier score.
        """

        def brier(posterior: Array) -> Array:
            truth = np.eye(posterior.shape[1])[y]
            return np.asarray(((posterior - truth) ** 2).sum(axis=1))

        return [
            (lambda posterior: _log_loss(posterior, y, TINY), TELLS_CLEARLY),
            (brier, TELLS_VERY_CLEARLY),
        ]

    def trusted(
        self, predicted: Mapping[Subset, Array], rows: TrainingRows
    ) -> Array | None:
        """The posterior of the least log-loss; None if knowing nothing is as good.

        Posteriors are out of fold, or their log-loss flatters those who have seen the rows.
        """
        y, weight = rows.y, rows.weight / rows.weight.sum()

        def log_loss(belief: Array) -> float:
            with np.errstate(divide="ignore"):
                return float(-weight @ np.log(belief[np.arange(len(y)), y]))

        prior = np.bincount(y, rows.weight) / rows.weight.sum()
        best = min(predicted.values(), key=log_loss)
        return best if log_loss(best) < -weight @ np.log(prior[y]) else None

    def n_trees(self, n_classes: int) -> int:
        """Trees of one round of boosting: one for two classes, else one for each."""
        return 1 if n_classes == 2 else n_classes

    def eliminator(
        self, y: NDArray[Any], shape: tuple[int, ...], coding: Coding
    ) -> HistGradientBoostingClassifier:
        """Few rounds of trees, not fitted yet, that say which sensors are needed."""
        n_rounds = 2 * ELIMINATOR_ROUNDS // (int(y.max()) + 1)
        return HistGradientBoostingClassifier(
            max_iter=max(ELIMINATOR_FEWEST_ROUNDS, n_rounds), **trees_of(shape, coding)
        )


class NumberTask:
    """Numbers to predict; leaves say the answer and its spread."""

    kinds = ("linear", "quadratic", "boosted")
    parts: Mapping[str, tuple[Part, ...]] = NUMBER_PARTS
    most_terms = RIDGE_TERMS

    def check(self, y: NDArray[Any]) -> NDArray[Any]:
        """Numbers that can be squared."""
        try:
            numbers = y.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise DataError(
                f"y must hold numbers, got {y.dtype}: {error}. To tell classes apart, use "
                f"SensorTreeClassifier."
            ) from error
        large = np.flatnonzero(~(np.abs(numbers) <= LARGEST))
        if large.size:
            raise DataError(
                f"y holds {numbers[large[0]]:g} in row {large[0]}; a number is at most "
                f"{LARGEST:g} in size: leave the row out, or correct it."
            )
        return numbers

    def encode(self, y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """No classes, and the numbers as they are."""
        return np.empty(0), y

    def targets(self, y: NDArray[Any], weight: Array) -> Array:
        """The numbers, standardised."""
        center, scale = moments(y[:, None], weight)
        return np.asarray((y[:, None] - center) / scale)

    def read(self, scores: Array, rows: TrainingRows) -> Array:
        """Answer and spread by a standardised number, (n_rows, 2).

        The spread is the same for all rows, and so is what makes a quantile of a mean.
        """
        y, weight, loss = rows.y, rows.weight, rows.loss
        center, scale = moments(y[:, None], weight)
        number = center[0] + scale[0] * scores[:, 0]
        left = y - number
        spread = float(np.sqrt(np.average(left**2, weights=weight)))
        quantile = getattr(loss, "quantile", None)
        if quantile is not None:
            number = number + weighted_quantile(left, weight, quantile)
        answer = np.clip(number, y.min(), y.max())
        return np.column_stack([answer, np.full(len(answer), spread)])

    stand_in = read

    def judged(self, predicted: Array, rows: TrainingRows) -> Array:
        """Predictions, unchanged."""
        return predicted

    def levels(self, y: NDArray[Any], weight: Array) -> Rows:
        """Groups of equal weight, from low to high."""
        _, values = np.unique(y, return_inverse=True)
        mass = np.bincount(values, weight)
        middle = (np.cumsum(mass) - mass / 2) / mass.sum()
        levels = np.floor(NUMBER_LEVELS * middle).astype(np.intp)
        return np.asarray(levels[values])

    def compared(self, predicted: Array, y: NDArray[Any], loss: Loss) -> Array:
        """The loss itself."""
        return loss.judge(y, predicted)

    def tells(self, y: NDArray[Any], loss: Loss) -> list[tuple[Measure, float]]:
        """Clearly by the loss itself."""
        return [(lambda predicted: loss.judge(y, predicted), TELLS_CLEARLY)]

    def trusted(
        self, predicted: Mapping[Subset, Array], rows: TrainingRows
    ) -> Array | None:
        """The predictions of the leaves of the least loss."""
        loss, weight = rows.loss, rows.weight / rows.weight.sum()

        def mean(each: Array) -> float:
            return float(weight @ loss.judge(rows.y, each))

        best = min(predicted.values(), key=mean)
        return best if mean(best) < loss.stake else None

    def n_trees(self, n_classes: int) -> int:
        """One."""
        return 1

    def eliminator(
        self, y: NDArray[Any], shape: tuple[int, ...], coding: Coding
    ) -> HistGradientBoostingRegressor:
        """Few rounds of trees."""
        grown = trees_of(shape, coding)
        return HistGradientBoostingRegressor(max_iter=ELIMINATOR_ROUNDS, **grown)


Task = ClassTask | NumberTask
CLASSES, NUMBERS = ClassTask(), NumberTask()


def as_probabilities(scores: Array) -> Array:
    """Scores of classes as probabilities, none of which is near 0."""
    likely = np.maximum(scores, SCREEN_LEAST_LIKELY)
    return np.asarray(likely / likely.sum(axis=1, keepdims=True))


def _log_loss(posterior: Array, y: Rows, least: float) -> Array:
    """Log-loss of each row, no probability being below some least one."""
    likely = posterior[np.arange(len(y)), y]
    return np.asarray(-np.log(np.maximum(likely, least)))
