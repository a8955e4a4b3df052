"""`Score`: how probabilities are judged, where not only the answer counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

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

Judged = Callable[[Rows, Array], Array]


@dataclass(frozen=True, eq=False)
class Score:
    """What predicted probabilities lose, once the class is known.

    Attributes
    ----------
    name : str
    judge : callable
        Classes, as positions, and probabilities, (n_rows, n_classes), to losses, (n_rows,).
    largest : float
        The most that a prediction can lose.
    """

    name: str
    judge: Judged = field(metadata={"digest": "never"})
    largest: float = field(metadata={"digest": "never"})

    def expect(self, belief: Array, predicted: Array) -> Array:
        """Expected loss of predictions where classes are this likely, (n_rows,)."""
        losses = [
            self.judge(np.full(len(predicted), c), predicted)
            for c in range(belief.shape[1])
        ]
        return np.asarray((belief * np.stack(losses, axis=1)).sum(axis=1))

    def of_knowing_nothing(self, n_classes: int) -> float:
        """What is lost, in the mean, where all classes are equally likely."""
        even = np.full((1, n_classes), 1.0 / n_classes)
        return float(self.expect(even, even)[0])


def brier(y: Rows, predicted: Array) -> Array:
    """Half the squared distance from the class: 0 if sure and right, 1 if sure and wrong.

    Of two classes, the squared distance of the probability of either from the truth.
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


@dataclass(frozen=True, eq=False)
class OwnJudge:
    """A user's own function of classes and probabilities, whose values are checked.

    Attributes
    ----------
    function : callable
        (y, probabilities) to an array of losses that are at least 0.
    classes : ndarray of shape (n_classes,)
    """

    function: Callable[..., Any]
    classes: NDArray[Any]

    @property
    def name(self) -> str:
        """The name of the function."""
        return getattr(self.function, "__name__", type(self.function).__name__)

    def __call__(self, y: Rows, predicted: Array) -> Array:
        """Losses of predictions; what the function gives wrong is named."""
        losses = np.asarray(self.function(self.classes[y], predicted), dtype=np.float64)
        if losses.shape != (len(y),):
            raise ParameterError(
                f"risk {self.name} gave an array of shape {losses.shape} for {len(y)} "
                f"rows; it must give one number for each."
            )
        wrong = ~(np.isfinite(losses) & (losses >= 0))
        if wrong.any():
            worst = int(np.argmax(wrong))
            raise ParameterError(
                f"risk {self.name} gave {losses[worst]:g} for class "
                f"{self.classes[y[worst]]!r} and probabilities "
                f"{np.round(predicted[worst], 4).tolist()}; it must be finite and at least "
                f"0: bound it, as log-loss is by clipping."
            )
        return losses


def own_score(function: Callable[..., Any], classes: NDArray[Any]) -> Score:
    """A score by a user's own function; see `OwnJudge`."""
    judge = OwnJudge(function, classes)
    truth, said = np.divmod(np.arange(len(classes) ** 2), len(classes))
    largest = float(judge(truth, np.eye(len(classes))[said]).max())
    if not largest > 0:
        raise ParameterError(
            f"risk {judge.name} is 0 for every certain answer, right or wrong, so that "
            f"nothing is worth buying; give a function that is larger where predictions "
            f"are worse."
        )
    return Score(judge.name, judge, largest)


def forgotten_judge(y: Rows, predicted: Array) -> Array:
    """What is lost is not known where a function was not kept: NaN."""
    return np.full(len(y), np.nan)


def named_score(name: str) -> Score:
    """The score of a name; of a function that is not kept, one that knows nothing."""
    return SCORES.get(name) or Score(name, forgotten_judge, np.inf)


def resolve_score(risk: Any, classes: NDArray[Any]) -> Score | None:
    """Say what a declared risk means for some classes; None for wrong answers."""
    if isinstance(risk, str) and risk == "error":
        return None
    if isinstance(risk, str) and risk in SCORES:
        return SCORES[risk]
    if callable(risk):
        return own_score(risk, classes)
    raise ParameterError(
        f"risk must be 'error', {', '.join(map(repr, SCORES))} or a function of classes "
        f"and probabilities, got {risk!r}."
    )
