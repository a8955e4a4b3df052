"""`Task`: what learning must know of the target: classes to tell apart, or numbers.

Everything that differs between the two, where rows are learned from, stands here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.utils.multiclass import check_classification_targets

from sensortree.exceptions import DataError
from sensortree.leaves import engine, regression
from sensortree.leaves.boosting import booster, trees_of
from sensortree.leaves.coding import Coding
from sensortree.leaves.standardising import moments
from sensortree.policy.decisions import NUMBER_PARTS, PARTS, Part
from sensortree.policy.flow import Flow, measure_flow, measure_number_flow
from sensortree.sensors.loss import Loss
from sensortree.sensors.number_loss import weighted_quantile
from sensortree.sensors.reader import LARGEST
from sensortree.tree.tree import SensorTree
from sensortree.types import Array, Rows

if TYPE_CHECKING:
    from sensortree.leaves.rows import TrainingRows

# Probability that a screen gives to a class at least.
LEAST = 1e-3
# Probability that a log-loss takes for the least where kinds of leaves are compared.
LEAST_LIKELY = float(np.finfo(np.float32).eps)
TINY = float(np.finfo(float).tiny)
# Standard errors by which sensors must tell more than those that are free.
CLEARLY, VERY_CLEARLY = 1.0, 2.0
# Groups of equal weight that numbers are put in where the information on them is measured,
# and where low and high ones are dealt out to folds.
LEVELS = 8
# Rounds of trees that say which sensors are needed, of all outputs together; fewer for
# each of many classes, but some.
ROUNDS, FEWEST_ROUNDS = 30, 4

Subset = frozenset[str]
Measure = Callable[[Array], Array]


class Task(ABC):
    """What learning must know of the target."""

    # "classification" or "regression", as users say.
    name: ClassVar[str]
    # Kinds of leaves, from simple to complex; those of degree 1 and 2 come first.
    kinds: ClassVar[tuple[str, str, str]]
    # What decision functions may look at, by name.
    parts: ClassVar[Mapping[str, tuple[Part, ...]]]
    # What kinds of leaves are compared by.
    measure: ClassVar[str]
    # Terms up to which leaves of degree 2 have products.
    most_terms: ClassVar[int]

    @abstractmethod
    def check(self, y: NDArray[Any]) -> NDArray[Any]:
        """Give a column of the table as a target, or say why it is none."""

    @abstractmethod
    def encode(self, y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Give the classes, and the target as positions among them, or as numbers."""

    @abstractmethod
    def targets(self, y: NDArray[Any], weight: Array) -> Array:
        """What a least-squares screen regresses, (n_rows, n_targets)."""

    @abstractmethod
    def read(self, scores: Array, rows: TrainingRows) -> Array:
        """What a screen's scores say, as far as they are only judged."""

    @abstractmethod
    def stand_in(self, scores: Array, rows: TrainingRows) -> Array:
        """What a screen's scores say in place of leaves, (n_rows, n_outputs)."""

    @abstractmethod
    def judged(self, said: Array, rows: TrainingRows) -> Array:
        """What a loss may judge of what leaves, or a screen, say."""

    @abstractmethod
    def levels(self, y: NDArray[Any], weight: Array) -> Rows:
        """The target as positions of few levels."""

    @abstractmethod
    def compared(self, said: Array, y: NDArray[Any], loss: Loss) -> Array:
        """What kinds of leaves are compared by, (n_rows,)."""

    @abstractmethod
    def unexplained(self, said: Array, rows: TrainingRows) -> Array:
        """What leaves leave unexplained, (n_rows, n_targets)."""

    @abstractmethod
    def tells(self, y: NDArray[Any], loss: Loss) -> list[tuple[Measure, float]]:
        """Losses by which sensors may tell more, with the standard errors asked for."""

    @abstractmethod
    def trusted(self, said: Mapping[Subset, Array], rows: TrainingRows) -> Array | None:
        """What the best of some leaves says; None if knowing nothing is as good."""

    @abstractmethod
    def n_trees(self, n_classes: int) -> int:
        """Trees of one round of boosting."""

    @abstractmethod
    def eliminator(
        self, y: NDArray[Any], shape: tuple[int, ...], coding: Coding
    ) -> Any:
        """Boosted trees that say which sensors are needed, not fitted yet."""

    @abstractmethod
    def flow(
        self,
        tree: SensorTree,
        decisions: Array,
        answers: tuple[NDArray[Any], NDArray[Any]],
        losses: tuple[Array, Array],
        y: NDArray[Any],
        n_classes: int,
        weight: Array,
    ) -> Flow:
        """Where training rows go in a tree, given what leaves and nodes answer and lose."""


class ClassTask(Task):
    """Classes to tell apart; leaves say how likely each is."""

    name = "classification"
    kinds = ("linear", "logistic2", "boosted")
    parts = PARTS
    measure = "log-loss"
    most_terms = engine.TERMS

    def check(self, y: NDArray[Any]) -> NDArray[Any]:
        """Anything that is no continuous number."""
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
        """Indicators of the classes."""
        return np.asarray(np.eye(int(y.max()) + 1)[y])

    def read(self, scores: Array, rows: TrainingRows) -> Array:
        """Scores as they are: the largest is the answer."""
        return scores

    def stand_in(self, scores: Array, rows: TrainingRows) -> Array:
        """Scores as probabilities."""
        return as_probabilities(scores)

    def judged(self, said: Array, rows: TrainingRows) -> Array:
        """Probabilities where these are judged, else scores will do."""
        return said if rows.loss.score is None else as_probabilities(said)

    def levels(self, y: NDArray[Any], weight: Array) -> Rows:
        """The classes."""
        return np.asarray(y)

    def compared(self, said: Array, y: NDArray[Any], loss: Loss) -> Array:
        """Log-loss."""
        likely = said[np.arange(len(y)), y]
        return np.asarray(-np.log(np.maximum(likely, LEAST_LIKELY)))

    def unexplained(self, said: Array, rows: TrainingRows) -> Array:
        """By how much classes, 1 or 0, differ from the posterior."""
        differs = np.eye(len(rows.classes))[rows.y] - said
        same = len(rows.classes) == 2  # twice, but for the sign
        return np.asarray(differs[:, 1:] if same else differs)

    def tells(self, y: NDArray[Any], loss: Loss) -> list[tuple[Measure, float]]:
        """Clearly by log-loss; or, since a classifier may be too sure, by Brier score."""

        def log_loss(posterior: Array) -> Array:
            likely = posterior[np.arange(len(y)), y]
            return np.asarray(-np.log(np.maximum(likely, TINY)))

        def brier(posterior: Array) -> Array:
            truth = np.eye(posterior.shape[1])[y]
            return np.asarray(((posterior - truth) ** 2).sum(axis=1))

        return [(log_loss, CLEARLY), (brier, VERY_CLEARLY)]

    def trusted(self, said: Mapping[Subset, Array], rows: TrainingRows) -> Array | None:
        """The posterior of the least log-loss."""
        return trusted_posterior(said, rows.y, rows.weight)

    def n_trees(self, n_classes: int) -> int:
        """One for two classes, else one for each."""
        return 1 if n_classes == 2 else n_classes

    def eliminator(
        self, y: NDArray[Any], shape: tuple[int, ...], coding: Coding
    ) -> HistGradientBoostingClassifier:
        """Few rounds of trees."""
        n_rounds = max(FEWEST_ROUNDS, 2 * ROUNDS // (int(y.max()) + 1))
        return booster(shape, n_rounds, coding)

    def flow(
        self,
        tree: SensorTree,
        decisions: Array,
        answers: tuple[NDArray[Any], NDArray[Any]],
        losses: tuple[Array, Array],
        y: NDArray[Any],
        n_classes: int,
        weight: Array,
    ) -> Flow:
        """With counts of the classes and answers."""
        return measure_flow(tree, decisions, *answers, *losses, y, n_classes, weight)


class NumberTask(Task):
    """Numbers to predict; leaves say the answer and its spread."""

    name = "regression"
    kinds = ("linear", "quadratic", "boosted")
    parts = NUMBER_PARTS
    measure = "loss"
    most_terms = regression.TERMS

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

    def stand_in(self, scores: Array, rows: TrainingRows) -> Array:
        """The same."""
        return self.read(scores, rows)

    def judged(self, said: Array, rows: TrainingRows) -> Array:
        """What is said, as it is."""
        return said

    def levels(self, y: NDArray[Any], weight: Array) -> Rows:
        """Groups of equal weight, from low to high."""
        _, values = np.unique(y, return_inverse=True)
        mass = np.bincount(values, weight)
        middle = (np.cumsum(mass) - mass / 2) / mass.sum()
        levels = np.floor(LEVELS * middle).astype(np.intp)
        return np.asarray(levels[values])

    def compared(self, said: Array, y: NDArray[Any], loss: Loss) -> Array:
        """The loss itself."""
        return loss.judge(y, said)

    def unexplained(self, said: Array, rows: TrainingRows) -> Array:
        """By how much numbers differ from answers."""
        return np.asarray(rows.y - said[:, 0])[:, None]

    def tells(self, y: NDArray[Any], loss: Loss) -> list[tuple[Measure, float]]:
        """Clearly by the loss itself."""
        return [(lambda said: loss.judge(y, said), CLEARLY)]

    def trusted(self, said: Mapping[Subset, Array], rows: TrainingRows) -> Array | None:
        """What is said by the leaves of the least loss."""
        loss, weight = rows.loss, rows.weight / rows.weight.sum()

        def mean(each: Array) -> float:
            return float(weight @ loss.judge(rows.y, each))

        best = min(said.values(), key=mean)
        return best if mean(best) < loss.stake else None

    def n_trees(self, n_classes: int) -> int:
        """One."""
        return 1

    def eliminator(
        self, y: NDArray[Any], shape: tuple[int, ...], coding: Coding
    ) -> HistGradientBoostingRegressor:
        """Few rounds of trees."""
        return HistGradientBoostingRegressor(max_iter=ROUNDS, **trees_of(shape, coding))

    def flow(
        self,
        tree: SensorTree,
        decisions: Array,
        answers: tuple[NDArray[Any], NDArray[Any]],
        losses: tuple[Array, Array],
        y: NDArray[Any],
        n_classes: int,
        weight: Array,
    ) -> Flow:
        """With means of the numbers and answers."""
        return measure_number_flow(tree, decisions, *answers, *losses, y, weight)


CLASSES, NUMBERS = ClassTask(), NumberTask()


def as_probabilities(scores: Array) -> Array:
    """Scores of classes as probabilities, none of them below `LEAST`."""
    likely = np.maximum(scores, LEAST)
    return np.asarray(likely / likely.sum(axis=1, keepdims=True))


def trusted_posterior(
    posteriors: Mapping[Subset, Array], y: NDArray[np.intp], sample_weight: Array
) -> Array | None:
    """Posterior of the least log-loss, the first of equals; None if the prior beats it.

    Parameters
    ----------
    posteriors : mapping of subset to ndarray of shape (n_samples, n_classes)
        Out of fold, or their log-loss flatters those who have seen the rows.
    y : ndarray of shape (n_samples,)
    sample_weight : ndarray of shape (n_samples,)
    """
    rows = np.arange(len(y))
    weight = sample_weight / sample_weight.sum()

    def log_loss(belief: Array) -> float:
        with np.errstate(divide="ignore"):
            return float(-weight @ np.log(belief[rows, y]))

    prior = np.bincount(y, sample_weight) / sample_weight.sum()
    best = min(posteriors.values(), key=log_loss)
    beats_prior = log_loss(best) < -weight @ np.log(prior[y])
    return best if beats_prior else None
