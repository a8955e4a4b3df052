"""`Loss`: what a prediction costs: by its answer, or by its probabilities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sensortree.exceptions import ParameterError
from sensortree.sensors.scores import Score, resolve_score
from sensortree.types import Array, Rows


@dataclass(frozen=True, eq=False)
class Loss:
    """What predictions cost.

    Attributes
    ----------
    matrix : ndarray of shape (n_classes, n_classes) or None
        Row: the true class; column: the answer. None is 1 for a wrong answer, 0 for a
        right one. It decides which answer is given.
    score : Score or None
        How probabilities are judged, in place of the answer; None if that counts.
    by_class : ndarray of shape (n_classes,) or None
        What an example of each class counts, where probabilities are judged.
    """

    matrix: Array | None = None
    score: Score | None = field(default=None, metadata={"digest": "if set"})
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
        """Expected loss of predictions where classes are so likely as `belief` says."""
        if self.score is None:
            return self.expected(belief, self.answer(posterior)[:, None])[:, 0]
        if self.by_class is not None:
            belief = belief * self.by_class
        return self.score.expect(belief, posterior)

    def answer(self, posterior: Array) -> NDArray[np.intp]:
        """Answer of the least expected loss, (n_rows,); the first of equals."""
        if self.matrix is None or self.per_mistake is not None:
            if posterior.shape[1] == 2:  # many times faster
                return np.asarray(posterior[:, 1] > posterior[:, 0], dtype=np.intp)
            return np.asarray(posterior.argmax(axis=1))
        # One row at a time, so that rows beside it cannot change a row's last bit.
        expected = (posterior[:, None, :] @ self.matrix)[:, 0]
        return np.asarray(expected.argmin(axis=1))

    def of(self, y: NDArray[np.intp], answer: NDArray[np.intp]) -> Array:
        """Loss of answers, in the shape of `answer`; `y` must broadcast to it."""
        if self.matrix is None:
            return np.asarray(answer != y, dtype=np.float64)
        return np.asarray(self.matrix[y, answer])

    def error(self, y: NDArray[Any], answer: NDArray[Any]) -> Array:
        """1 for wrong answers, 0 for right ones, in the shape of `answer`."""
        return np.asarray(answer != y, dtype=np.float64)

    def expected(self, belief: Array, answers: NDArray[np.intp]) -> Array:
        """Expected loss of several answers per row, by the probabilities of the classes.

        Parameters
        ----------
        belief : ndarray of shape (n_rows, n_classes)
        answers : ndarray of int of shape (n_rows, n_answers)
        """
        if self.matrix is None:
            return 1.0 - np.take_along_axis(belief, answers, axis=1)
        return np.take_along_axis(belief @ self.matrix, answers, axis=1)

    def stakes(self, n_classes: int) -> Array:
        """What it costs to mistake an example of each class, in the mean, (n_classes,).

        A score is put beside the squared distance from the class: both are what is lost
        where nothing is known.
        """
        if self.score is not None:
            stake = self.score.of_knowing_nothing(n_classes) / (1.0 - 1.0 / n_classes)
            own = np.ones(n_classes) if self.by_class is None else self.by_class
            return stake * own
        if self.matrix is None:
            return np.ones(n_classes)
        return np.asarray(self.matrix.sum(axis=1) / (n_classes - 1))

    def at_stake(self, y: NDArray[Any], n_classes: int) -> Array:
        """What it costs to mistake each example, in the mean, (n_rows,)."""
        return np.asarray(self.stakes(n_classes)[y])

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
        """What is at stake where nothing is known, at most."""
        return self.largest

    @property
    def largest(self) -> float:
        """The most that a prediction can cost."""
        if self.score is not None:
            most = 1.0 if self.by_class is None else float(self.by_class.max())
            return most * self.score.largest
        return 1.0 if self.matrix is None else float(self.matrix.max())


def loss_per_mistake(cost: float, n_classes: int) -> Loss:
    """Give the loss by which every wrong answer costs the same.

    Examples
    --------
    >>> loss_per_mistake(500, 2).matrix
    array([[  0., 500.],
           [500.,   0.]])
    """
    if not isinstance(cost, Real) or not 0 < float(cost) < np.inf:
        raise ParameterError(
            f"loss must be a finite number above 0, got {cost!r}; a number is what one "
            f"wrong answer costs, in the unit of the prices."
        )
    return Loss(float(cost) * (1.0 - np.eye(n_classes)))


def loss_of_risk(
    risk: Any, by_class: NDArray[np.float64] | None, classes: NDArray[Any]
) -> Loss:
    """Give the loss by a kind of risk, examples of each class counting what is given.

    Parameters
    ----------
    risk : "error", name of a score, or callable
    by_class : ndarray of shape (n_classes,) or None
    classes : ndarray of shape (n_classes,)
    """
    score = resolve_score(risk, classes)
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

    Parameters
    ----------
    class_weight : None, "balanced" or mapping of class to number
        "balanced" lets every class count the same as a whole, and an example 1 in the
        mean; classes that a mapping leaves out count 1.
    classes : ndarray of shape (n_classes,)
    y : ndarray of shape (n_samples,)
        Positions in `classes`.
    weight : ndarray of shape (n_samples,)
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
    names = classes.tolist()
    counted = np.ones(len(names))
    for name, value in class_weight.items():
        if name not in names:
            raise ParameterError(
                f"class_weight names class {name!r}, which y does not have; its classes "
                f"are {', '.join(map(repr, names[:8]))}{', ...' if len(names) > 8 else ''}."
            )
        if not isinstance(value, Real) or not 0 < float(value) < np.inf:
            raise ParameterError(
                f"class_weight of {name!r} must be a finite number above 0, got {value!r}; "
                f"leave rows of a class that does not count out."
            )
        counted[names.index(name)] = float(value)
    return counted


def resolve_loss(
    loss: ArrayLike | Mapping[Any, Any] | None, classes: NDArray[Any]
) -> Loss:
    """Say what a declaration of losses means for some classes.

    Parameters
    ----------
    loss : None, mapping or array-like of shape (n_classes, n_classes)
        None: 1 for each error. A mapping of class to number: what it costs to mistake an
        example of that class for another. A mapping of class to mapping of answer to
        number, 0 where not listed. An array: row the true class, column the answer, in
        sorted order of the classes.
    classes : ndarray of shape (n_classes,)
    """
    if loss is None:
        return Loss()
    n_classes = len(classes)
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
            "loss must hold finite numbers that are at least 0; what a right answer "
            "earns is said by making the others dearer."
        )
    return Loss(matrix)


def _from_mapping(loss: Mapping[Any, Any], classes: NDArray[Any]) -> Array:
    names = classes.tolist()
    matrix = np.zeros((len(names), len(names)))

    def position(name: Any) -> int:
        if name not in names:
            raise ParameterError(
                f"loss names class {name!r}, which y does not have; its classes are "
                f"{', '.join(map(repr, names[:8]))}{', ...' if len(names) > 8 else ''}."
            )
        return int(names.index(name))

    for true, value in loss.items():
        row = position(true)
        if isinstance(value, Mapping):
            for answer, cost in value.items():
                matrix[row, position(answer)] = cost
        else:
            matrix[row] = value
            matrix[row, row] = 0.0
    if not any(isinstance(value, Mapping) for value in loss.values()):
        forgotten = [name for name in names if name not in loss]
        if forgotten:
            raise ParameterError(
                f"loss does not say what it costs to mistake class {forgotten[0]!r}; "
                f"give one number for each class."
            )
    return matrix
