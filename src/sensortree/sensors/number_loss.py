"""`NumberLoss`: what an answer costs that is a number, by how far it is from the truth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Real
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sensortree.exceptions import ParameterError
from sensortree.sensors.loss import Loss
from sensortree.types import Array

# Equally likely values that stand for a normal variable where a mean over it is wanted.
SLICES = 16

Distance = Callable[[Array, Array], Array]


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
        short = y - predicted
        return np.asarray(
            np.maximum(self.quantile * short, (self.quantile - 1) * short)
        )


@dataclass(frozen=True, eq=False)
class OwnDistance:
    """A user's own function of numbers and answers, whose values are checked.

    Attributes
    ----------
    function : callable
        (y, predicted) to an array of losses that are at least 0.
    """

    function: Callable[..., Any]

    @property
    def name(self) -> str:
        """The name of the function."""
        return getattr(self.function, "__name__", type(self.function).__name__)

    def __call__(self, y: Array, predicted: Array) -> Array:
        """Losses of answers; what the function gives wrong is named."""
        losses = np.asarray(self.function(y, predicted), dtype=np.float64)
        if losses.shape != predicted.shape:
            raise ParameterError(
                f"risk {self.name} gave an array of shape {losses.shape} for "
                f"{len(predicted)} rows; it must give one number for each."
            )
        wrong = ~(np.isfinite(losses) & (losses >= 0))
        if wrong.any():
            worst = int(np.argmax(wrong))
            raise ParameterError(
                f"risk {self.name} gave {losses[worst]:g} for {predicted[worst]:g} where "
                f"{y[worst]:g} was right; it must be finite and at least 0."
            )
        return losses


def forgotten_distance(y: Array, predicted: Array) -> Array:
    """What is lost is not known where a function was not kept: NaN."""
    return np.full(len(predicted), np.nan)


DISTANCES: dict[str, Distance] = {"squared": squared, "absolute": absolute}
RISKS = (*DISTANCES, "pinball")


@dataclass(frozen=True, eq=False)
class NumberLoss(Loss):
    """What answers cost that are numbers.

    Predictions are arrays of shape (n_rows, 2): the answer, and the spread, which is the
    standard deviation that the truth is expected to have around it.

    Attributes
    ----------
    risk : str
        "squared", "absolute", "pinball", or the name of a user's own function.
    quantile : float or None
        Which value is answered: it is not exceeded with this probability. None is the
        mean.
    low, high : float
        Least and largest number that was learned from, and so the range of answers.
    stake : float
        What is lost, in the mean, by one answer for all, the best there is.
    distance : callable
        Numbers and answers to losses, (n_rows,).
    """

    risk: str = "squared"
    quantile: float | None = None
    low: float = 0.0
    high: float = 0.0
    stake: float = 1.0
    distance: Distance = field(default=squared, metadata={"digest": "never"})

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
        """Expected loss of predictions where numbers are as `belief` says, and normal."""
        quantile = 0.5 if self.quantile is None else self.quantile
        answer, spread = belief.T
        middle = answer - NormalDist().inv_cdf(quantile) * spread
        values = middle[:, None] + spread[:, None] * normal_slices()
        said = np.broadcast_to(posterior[:, :1], values.shape)
        losses = self.distance(values.ravel(), said.ravel())
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
        """What it costs to know nothing about each example, in the mean, (n_rows,)."""
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


def normal_slices() -> Array:
    """Equally likely values of a normal variable, of mean 0 and variance 1, (SLICES,)."""
    shares = (np.arange(SLICES) + 0.5) / SLICES
    values = np.array([NormalDist().inv_cdf(share) for share in shares])
    return np.asarray(values / np.sqrt((values**2).mean()))


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


def resolve_distance(risk: Any, quantile: float | None) -> tuple[str, Distance]:
    """Say what a declared risk of numbers is called, and means."""
    if isinstance(risk, str) and risk in DISTANCES:
        return risk, DISTANCES[risk]
    if isinstance(risk, str) and risk == "pinball":
        return risk, Pinball(0.5 if quantile is None else quantile)
    if callable(risk):
        own = OwnDistance(risk)
        return own.name, own
    raise ParameterError(
        f"risk must be {', '.join(map(repr, RISKS))} or a function of numbers and "
        f"answers, got {risk!r}."
    )


def named_distance(risk: str, quantile: float | None) -> Distance:
    """The distance of a name; of a function that is not kept, one that knows nothing."""
    known = isinstance(risk, str) and risk in RISKS
    return resolve_distance(risk, quantile)[1] if known else forgotten_distance


def loss_of_numbers(risk: Any, quantile: Any, y: Array, weight: Array) -> NumberLoss:
    """Give the loss by a kind of risk, for numbers like these.

    Parameters
    ----------
    risk : "squared", "absolute", "pinball" or callable
    quantile : float
        For "pinball".
    y : ndarray of shape (n_samples,)
    weight : ndarray of shape (n_samples,)

    Examples
    --------
    >>> import numpy as np
    >>> loss = loss_of_numbers("squared", 0.5, np.array([1.0, 3.0]), np.ones(2))
    >>> loss.stake, loss.largest, loss.most_worth
    (1.0, 4.0, 1.0)
    """
    answered = quantile_of(risk, quantile)
    name, distance = resolve_distance(risk, answered)
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
