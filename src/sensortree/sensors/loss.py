"""`Loss`: what a wrong answer costs, by class and answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sensortree.exceptions import ParameterError
from sensortree.types import Array


@dataclass(frozen=True, eq=False)
class Loss:
    """What answers cost.

    Attributes
    ----------
    matrix : ndarray of shape (n_classes, n_classes) or None
        Row: the true class; column: the answer. None is 1 for a wrong answer, 0 for a
        right one.
    """

    matrix: Array | None = None

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
        """What it costs to mistake an example of each class, in the mean, (n_classes,)."""
        if self.matrix is None:
            return np.ones(n_classes)
        return np.asarray(self.matrix.sum(axis=1) / (n_classes - 1))

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
    def largest(self) -> float:
        """The most that an answer can cost."""
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
            f"mistake_cost must be a finite number above 0, got {cost!r}; it is what one "
            f"wrong answer costs, in the unit of the prices."
        )
    return Loss(float(cost) * (1.0 - np.eye(n_classes)))


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
