"""`Loss`: what a prediction costs, by its answer, its probabilities, or its distance."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Real
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sensortree.exceptions import ParameterError
from sensortree.types import Array, Rows

# Probability that the log-loss takes for the least: no prediction loses more than 9.2.
LEAST_LIKELY = 1e-4
# What curves measure beside the cost, whatever was minimised, and how it is written.
METRICS = {
    "accuracy": "accuracy",
    "auroc": "AUROC",
    "brier": "mean Brier score",
    "log_loss": "mean log-loss",
}
# Equally likely values that stand for a normal variable where a mean over it is wanted.
SLICES = 16

# True values, as positions of classes or as numbers, and predictions, to losses, (n_rows,).
Judge = Callable[[Any, Array], Array]


@dataclass(frozen=True, eq=False)
class OwnRisk:
    """Your own function of true values and predictions, whose losses are checked."""

    function: Callable[..., Any]  # (y, predictions) to losses that are at least 0
    classes: NDArray[Any] | None = (
        None  # predictions are their probabilities, or numbers
    )

    @property
    def name(self) -> str:
        """The name of the function."""
        return getattr(self.function, "__name__", type(self.function).__name__)

    def __call__(self, y: Any, predicted: Array) -> Array:
        """Losses of predictions, (n_rows,); an error names a value that is wrong."""
        true = y if self.classes is None else self.classes[y]
        losses = np.asarray(self.function(true, predicted), dtype=np.float64)
        shape = predicted.shape if self.classes is None else predicted.shape[:1]
        if losses.shape != shape:
            raise ParameterError(
                f"risk {self.name} gave an array of shape {losses.shape} for {len(y)} "
                f"rows; it must give one number for each."
            )
        wrong = ~(np.isfinite(losses) & (losses >= 0))
        if wrong.any():
            row = int(np.argmax(wrong))
            if self.classes is None:
                where, remedy = f"{predicted[row]:g} where {y[row]:g} was right", ""
            else:
                shown = np.round(predicted[row], 4).tolist()
                where = f"class {true[row]!r} and probabilities {shown}"
                remedy = ": bound it, as log-loss is by clipping"
            raise ParameterError(
                f"risk {self.name} gave {losses[row]:g} for {where}; it must be finite "
                f"and at least 0{remedy}."
            )
        return losses


def forgotten(y: Any, predicted: Array) -> Array:
    """NaN: a function of your own is not kept in a model file, only its name."""
    return np.full(len(y), np.nan)


# probabilities ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Score:
    """What predicted probabilities lose, once the class is known."""

    name: str
    # Of positions of classes and probabilities, (n_rows, n_classes).
    judge: Judge = field(metadata={"digest": "never"})
    # The most that a prediction can lose.
    largest: float = field(metadata={"digest": "never"})

    def expect(self, belief: Array, predicted: Array) -> Array:
        """Expected loss of predictions where classes are this likely, (n_rows,)."""
        losses = [
            self.judge(np.full(len(predicted), c), predicted)
            for c in range(belief.shape[1])
        ]
        return np.asarray((belief * np.stack(losses, axis=1)).sum(axis=1))

    def of_knowing_nothing(self, n_classes: int) -> float:
        """Mean loss where all classes are equally likely, and predicted so."""
        even = np.full((1, n_classes), 1.0 / n_classes)
        return float(self.expect(even, even)[0])


def brier(y: Rows, predicted: Array) -> Array:
    """Half the squared distance from the class: 0 if sure and right, 1 if sure and wrong.

    With two classes, the squared distance of the probability of either from the truth.
    """
    wanted = np.eye(predicted.shape[1])[y]
    return np.asarray(((predicted - wanted) ** 2).sum(axis=1) / 2)


def log_loss(y: Rows, predicted: Array) -> Array:
    """Minus the logarithm of the class's probability, taken as `LEAST_LIKELY` at least."""
    likely = predicted[np.arange(len(y)), y]
    return -np.log(np.clip(likely, LEAST_LIKELY, 1.0))


SCORES: dict[str, Score] = {
    "brier": Score("brier", brier, 1.0),
    "log_loss": Score("log_loss", log_loss, -float(np.log(LEAST_LIKELY))),
}


def own_score(function: Callable[..., Any], classes: NDArray[Any]) -> Score:
    """A score by a function of your own; see `OwnRisk`."""
    judge = OwnRisk(function, classes)
    truth, answer = np.divmod(np.arange(len(classes) ** 2), len(classes))
    largest = float(judge(truth, np.eye(len(classes))[answer]).max())
    if not largest > 0:
        raise ParameterError(
            f"risk {judge.name} is 0 for every certain answer, right or wrong, so that "
            f"nothing is worth buying; give a function that is larger where predictions "
            f"are worse."
        )
    return Score(judge.name, judge, largest)


def named_score(name: str) -> Score:
    """The score of a name; NaN for a function of your own, which a file does not keep."""
    return SCORES.get(name) or Score(name, forgotten, np.inf)


# answers ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Loss:
    """What predictions cost."""

    # Row: the true class; column: the answer. None is 1 for a wrong answer, 0 for a right
    # one. It decides which answer is given.
    matrix: Array | None = None
    # How probabilities are judged, in place of the answer; None if that counts.
    score: Score | None = field(default=None, metadata={"digest": "if set"})
    # What an example of each class counts, where probabilities are judged.
    by_class: Array | None = field(default=None, metadata={"digest": "if set"})

    # Whether answers are numbers, rather than classes.
    numbers: ClassVar[bool] = False

    @property
    def plain(self) -> bool:
        """Whether the loss is 1 for a wrong answer and 0 for a right one."""
        return self.matrix is None and self.score is None

    @property
    def name(self) -> str:
        """What the mean loss is called: "error", "loss", or the name of the score."""
        if self.score is not None:
            return self.score.name
        return "error" if self.matrix is None else "loss"

    def n_outputs(self, n_classes: int) -> int:
        """Columns of a prediction: the probabilities of the classes."""
        return n_classes

    def judge(self, y: Rows, posterior: Array) -> Array:
        """What predicted probabilities lose, (n_rows,)."""
        if self.score is None:
            return self.of(y, self.answer(posterior))
        losses = self.score.judge(y, posterior)
        return losses if self.by_class is None else losses * self.by_class[y]

    def expect(self, belief: Array, posterior: Array) -> Array:
        """Expected loss of predictions if classes have the probabilities `belief`."""
        if self.score is None:
            return self.expected(belief, self.answer(posterior)[:, None])[:, 0]
        if self.by_class is not None:
            belief = belief * self.by_class
        return self.score.expect(belief, posterior)

    def answer(self, posterior: Array) -> Rows:
        """Answer of the least expected loss, (n_rows,); the first of equals."""
        if self.matrix is None or self.per_mistake is not None:
            if posterior.shape[1] == 2:  # many times faster
                return np.asarray(posterior[:, 1] > posterior[:, 0], dtype=np.intp)
            return np.asarray(posterior.argmax(axis=1))
        # One row at a time, so that rows beside it cannot change a row's last bit.
        expected = (posterior[:, None, :] @ self.matrix)[:, 0]
        return np.asarray(expected.argmin(axis=1))

    def of(self, y: Rows, answer: Rows) -> Array:
        """Loss of answers, in the shape of `answer`; `y` must broadcast to it."""
        if self.matrix is None:
            return np.asarray(answer != y, dtype=np.float64)
        return np.asarray(self.matrix[y, answer])

    def error(self, y: NDArray[Any], answer: NDArray[Any]) -> Array:
        """1 for wrong answers, 0 for right ones, in the shape of `answer`."""
        return np.asarray(answer != y, dtype=np.float64)

    def expected(self, belief: Array, answers: Rows) -> Array:
        """Expected loss of answers, (n_rows, n_answers), by what classes are likely."""
        if self.matrix is None:
            return 1.0 - np.take_along_axis(belief, answers, axis=1)
        return np.take_along_axis(belief @ self.matrix, answers, axis=1)

    def at_stake(self, y: NDArray[Any], n_classes: int) -> Array:
        """Mean cost of a wrong answer for each example, (n_rows,).

        A score is scaled to agree with the squared distance from the class where nothing
        is known.
        """
        stakes = np.ones(n_classes)
        if self.score is not None:
            stake = self.score.of_knowing_nothing(n_classes) / (1.0 - 1.0 / n_classes)
            stakes = stake * (stakes if self.by_class is None else self.by_class)
        elif self.matrix is not None:
            stakes = self.matrix.sum(axis=1) / (n_classes - 1)
        return np.asarray(stakes[y])

    @cached_property
    def per_mistake(self) -> float | None:
        """What each wrong answer costs, if a matrix says the same of all; else None."""
        if self.matrix is None:
            return None
        wrong = ~np.eye(len(self.matrix), dtype=bool)
        cost = float(self.matrix[wrong][0])
        same = (self.matrix == np.where(wrong, cost, 0.0)).all()
        return cost if same and cost > 0 else None

    @property
    def stake(self) -> float:
        """The most that knowing nothing can cost."""
        return self.largest

    @property
    def largest(self) -> float:
        """The most that a prediction can cost."""
        if self.score is not None:
            most = 1.0 if self.by_class is None else float(self.by_class.max())
            return most * self.score.largest
        return 1.0 if self.matrix is None else float(self.matrix.max())


def loss_of_risk(risk: Any, by_class: Array | None, classes: NDArray[Any]) -> Loss:
    """Give the loss by a kind of risk, examples of each class counting what is given.

    The risk is "error", the name of a score, or a function.
    """
    if isinstance(risk, str) and risk in ("error", *SCORES):
        score = SCORES.get(risk)
    elif callable(risk):
        score = own_score(risk, classes)
    else:
        raise ParameterError(
            f"risk must be 'error', {', '.join(map(repr, SCORES))} or a function of "
            f"classes and probabilities, got {risk!r}."
        )
    if by_class is None:
        return Loss(score=score)
    matrix = by_class[:, None] * (1.0 - np.eye(len(classes)))
    return Loss(matrix) if score is None else Loss(matrix, score, by_class)


def resolve_class_weight(
    class_weight: str | Mapping[Any, float] | None,
    classes: NDArray[Any],
    y: Rows,
    weight: Array,
) -> Array | None:
    """What an example of each class counts, (n_classes,); None if all count the same.

    "balanced" lets every class count the same as a whole, and an example 1 in the mean;
    classes that a mapping leaves out count 1. `y` are positions in `classes`.
    """
    if class_weight is None:
        return None
    if isinstance(class_weight, str):
        if class_weight != "balanced":
            raise ParameterError(
                f"class_weight must be 'balanced', a mapping of class to number or None, "
                f"got {class_weight!r}."
            )
        counts = np.bincount(y, weight, minlength=len(classes))
        return np.asarray(weight.sum() / (len(classes) * counts))
    counted = np.ones(len(classes))
    for name, value in class_weight.items():
        at = class_position(name, classes.tolist(), "class_weight")
        if not isinstance(value, Real) or not 0 < float(value) < np.inf:
            raise ParameterError(
                f"class_weight of {name!r} must be a finite number above 0, got {value!r}; "
                f"leave rows of a class that does not count out."
            )
        counted[at] = float(value)
    return counted


def class_position(name: Any, classes: Sequence[Any], what: str) -> int:
    """Position of a class that a parameter names."""
    if name not in classes:
        shown = ", ".join(map(repr, classes[:8]))
        raise ParameterError(
            f"{what} names class {name!r}, which y does not have; its classes are "
            f"{shown}{', ...' if len(classes) > 8 else ''}."
        )
    return classes.index(name)


def resolve_loss(loss: ArrayLike | Mapping[Any, Any], classes: NDArray[Any]) -> Loss:
    """Say what a declaration of losses means for some classes.

    Parameters
    ----------
    loss : number, mapping or array-like of shape (n_classes, n_classes)
        A number: what each wrong answer costs. A mapping of class to number: what it
        costs to mistake an example of that class for another. A mapping of class to
        mapping of answer to number, 0 where not listed. An array: row the true class,
        column the answer, in sorted order of the classes.
    classes : ndarray of shape (n_classes,)

    Examples
    --------
    >>> import numpy as np
    >>> resolve_loss(500, np.array(["ill", "well"])).matrix
    array([[  0., 500.],
           [500.,   0.]])
    """
    n_classes = len(classes)
    if isinstance(loss, Real):
        if not 0 < float(loss) < np.inf:
            raise ParameterError(
                f"loss must be a finite number above 0, got {loss!r}; a number is what one "
                f"wrong answer costs, in the unit of the prices."
            )
        return Loss(float(loss) * (1.0 - np.eye(n_classes)))
    if isinstance(loss, Mapping):
        matrix = _from_mapping(loss, classes)
    else:
        try:
            matrix = np.array(loss, dtype=np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise ParameterError(
                f"loss must be None, a mapping of classes, or a matrix of numbers, got "
                f"{loss!r}."
            ) from error
    if matrix.shape != (n_classes, n_classes):
        raise ParameterError(
            f"loss has shape {matrix.shape}, but there are {n_classes} classes; give a "
            f"row for each true class and a column for each answer."
        )
    if not np.isfinite(matrix).all() or (matrix < 0).any():
        raise ParameterError(
            "loss must hold finite numbers that are at least 0; if a right answer earns "
            "something, make the other answers dearer."
        )
    return Loss(matrix)


def _from_mapping(loss: Mapping[Any, Any], classes: NDArray[Any]) -> Array:
    names = classes.tolist()
    matrix = np.zeros((len(names), len(names)))
    for true, value in loss.items():
        row = class_position(true, names, "loss")
        if isinstance(value, Mapping):
            for answer, cost in value.items():
                matrix[row, class_position(answer, names, "loss")] = cost
        else:
            matrix[row] = value
            matrix[row, row] = 0.0
    by_answer = any(isinstance(value, Mapping) for value in loss.values())
    forgotten = [name for name in names if name not in loss]
    if forgotten and not by_answer:
        raise ParameterError(
            f"loss does not say what it costs to mistake class {forgotten[0]!r}; give one "
            f"number for each class."
        )
    return matrix


# numbers ----------------------------------------------------------------------------------


def squared(y: Array, predicted: Array) -> Array:
    """Squared distance from the truth: its best answer is the mean."""
    return np.asarray((y - predicted) ** 2)


def absolute(y: Array, predicted: Array) -> Array:
    """Distance from the truth: its best answer is the median."""
    return np.abs(y - predicted)


@dataclass(frozen=True)
class Pinball:
    """What a quantile loses: each unit too low counts `quantile`, too high the rest to 1.

    Its best answer is the value that is not exceeded with this probability.
    """

    quantile: float

    def __call__(self, y: Array, predicted: Array) -> Array:
        """Loss of some answers, in their shape."""
        low = y - predicted
        return np.asarray(np.maximum(self.quantile * low, (self.quantile - 1) * low))


DISTANCES: dict[str, Judge] = {"squared": squared, "absolute": absolute}
RISKS = (*DISTANCES, "pinball")


@dataclass(frozen=True, eq=False)
class NumberLoss(Loss):
    """What numeric answers cost.

    Predictions are arrays of shape (n_rows, 2): the answer, and the spread, which is the
    standard deviation that the truth is expected to have around it.
    """

    risk: str = "squared"  # or "absolute", "pinball", the name of a user's own function
    # Which value is answered: it is not exceeded with this probability. None is the mean.
    quantile: float | None = None
    low: float = 0.0  # least number that was learned from, and so that is answered
    high: float = 0.0  # and the largest
    stake: float = 1.0  # mean loss of the best answer that is the same for all
    distance: Judge = field(default=squared, metadata={"digest": "never"})

    numbers: ClassVar[bool] = True

    @property
    def plain(self) -> bool:
        """Whether the loss is 1 for a wrong answer: no number is simply wrong."""
        return False

    @property
    def name(self) -> str:
        """What the mean loss is called."""
        return self.risk

    def n_outputs(self, n_classes: int) -> int:
        """Columns of a prediction: answer and spread."""
        return 2

    def judge(self, y: NDArray[Any], posterior: Array) -> Array:
        """What predictions lose, (n_rows,)."""
        return self.distance(y, posterior[:, 0])

    def expect(self, belief: Array, posterior: Array) -> Array:
        """Expected loss of predictions if numbers are normal, distributed as `belief`."""
        quantile = 0.5 if self.quantile is None else self.quantile
        answer, spread = belief.T
        middle = answer - NormalDist().inv_cdf(quantile) * spread
        shares = (np.arange(SLICES) + 0.5) / SLICES
        slices = np.array([NormalDist().inv_cdf(share) for share in shares])
        slices = np.asarray(slices / np.sqrt((slices**2).mean()))  # of variance 1
        values = middle[:, None] + spread[:, None] * slices
        given = np.broadcast_to(posterior[:, :1], values.shape)
        losses = self.distance(values.ravel(), given.ravel())
        return np.asarray(losses.reshape(values.shape).mean(axis=1))

    def answer(self, posterior: Array) -> NDArray[Any]:
        """The number that is answered, (n_rows,)."""
        return np.asarray(posterior[:, 0])

    def of(self, y: NDArray[Any], answer: NDArray[Any]) -> Array:
        """Loss of answers, (n_rows,)."""
        return self.distance(y, answer)

    def error(self, y: NDArray[Any], answer: NDArray[Any]) -> Array:
        """Distance of answers from the truth."""
        return np.asarray(np.abs(answer - y))

    def at_stake(self, y: NDArray[Any], n_classes: int) -> Array:
        """Mean cost of knowing nothing about each example, (n_rows,)."""
        return np.full(len(y), self.stake)

    @property
    def most_worth(self) -> float:
        """The most that knowing more can save an example, whatever the data.

        Numbers lie between `low` and `high`: of them, the variance is at most a quarter
        of the range squared, the mean distance from the median half of the range.
        """
        width = self.high - self.low
        if self.risk == "squared":
            return width**2 / 4
        if self.risk in RISKS:
            quantile = 0.5 if self.quantile is None else self.quantile
            scale = 2.0 if self.risk == "absolute" else 1.0
            return scale * quantile * (1 - quantile) * width
        return self.largest

    @property
    def largest(self) -> float:
        """The most that an answer within the range can cost."""
        ends = np.array([self.low, self.high])
        return float(np.max(self.distance(ends, ends[::-1])))


def weighted_quantile(values: Array, weight: Array, quantile: float) -> float:
    """The least value that a share of the weight does not exceed.

    Examples
    --------
    >>> import numpy as np
    >>> weighted_quantile(np.array([3.0, 1.0, 2.0]), np.ones(3), 0.5)
    2.0
    """
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weight[order])
    # Weights that add up to the same in another order are the same.
    at = int(np.searchsorted(reached, quantile * reached[-1] * (1 - 1e-12)))
    return float(values[order[min(at, len(order) - 1)]])


def quantile_of(risk: Any, quantile: Any) -> float | None:
    """Which value is answered: the median, a quantile, or None for the mean."""
    if not isinstance(quantile, Real) or not 0 < float(quantile) < 1:
        raise ParameterError(
            f"quantile must be a number between 0 and 1, got {quantile!r}; 0.9 is the "
            f"value that 9 of 10 do not exceed."
        )
    if risk == "pinball":
        return float(quantile)
    if float(quantile) != 0.5:
        raise ParameterError(
            f"quantile={quantile!r} is for risk='pinball', but the risk is {risk!r}; set "
            f"that, or leave quantile at 0.5."
        )
    return 0.5 if risk == "absolute" else None


def named_distance(risk: str, quantile: float | None) -> Judge:
    """The distance of a name; NaN for a function of your own, which is not kept."""
    if risk == "pinball":
        return Pinball(0.5 if quantile is None else quantile)
    return DISTANCES.get(risk, forgotten)


def loss_of_numbers(risk: Any, quantile: Any, y: Array, weight: Array) -> NumberLoss:
    """Give the loss by a kind of risk, for numbers like these.

    The risk is "squared", "absolute", "pinball" with its quantile, or a function.

    Examples
    --------
    >>> import numpy as np
    >>> loss = loss_of_numbers("squared", 0.5, np.array([1.0, 3.0]), np.ones(2))
    >>> loss.stake, loss.largest, loss.most_worth
    (1.0, 4.0, 1.0)
    """
    answered = quantile_of(risk, quantile)
    if isinstance(risk, str) and risk in RISKS:
        name, distance = risk, named_distance(risk, answered)
    elif callable(risk):
        distance = OwnRisk(risk)
        name = distance.name
    else:
        raise ParameterError(
            f"risk must be {', '.join(map(repr, RISKS))} or a function of numbers and "
            f"answers, got {risk!r}."
        )
    mean = float(np.average(y, weights=weight))
    best = mean if answered is None else weighted_quantile(y, weight, answered)
    losses = distance(y, np.full(len(y), best))
    low, high = float(y.min()), float(y.max())
    stake = float(np.average(losses, weights=weight))
    loss = NumberLoss(
        risk=name,
        quantile=answered,
        low=low,
        high=high,
        stake=stake,
        distance=distance,
    )
    if low < high and not loss.largest > 0:
        raise ParameterError(
            f"risk {name} is 0 for {low:g} where {high:g} is right, and the other way "
            f"round, so that nothing is worth buying; give a function that is larger "
            f"where answers are worse."
        )
    return loss
