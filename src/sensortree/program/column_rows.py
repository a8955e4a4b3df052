"""`ColumnRows`: the columns of some rows of a problem, scaled and perhaps turned."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sensortree.program.arrays import Array, like
from sensortree.program.chunks import Chunks, largest, totals
from sensortree.program.directions import (
    column_sizes,
    directions,
    gram_of,
    joined_triangle,
    triangle,
)
from sensortree.program.surrogate import SurrogateProblem

Vector = NDArray[np.float64]


class ColumnRows:
    """Some rows, whose columns are divided by a scale and perhaps combined.

    Parameters
    ----------
    problem : SurrogateProblem

    Attributes
    ----------
    scale : list of ndarray of shape (D,)
        Of each distinct array of features.
    turned : list of arrays of shape (n_rows, k), or None
        Combinations of its scaled columns, if there are any.
    """

    def __init__(self, problem: SurrogateProblem):
        self.problem = problem
        self.scale: list[Vector] = []
        self.turned: list[Array | None] = []

    def sizes(self) -> list[Vector]:
        """The largest saving, (1,); largest absolute values of all distinct columns."""
        sizes = [column_sizes(array) for array in self.problem.arrays]
        return [np.array([self.problem.largest_loss()]), *sizes]

    def set_scale(self, scale: list[Vector]) -> None:
        """Divide distinct columns by these; they are not turned."""
        self.scale = scale
        self.turned = [None] * len(scale)

    def grams(self) -> list[Vector]:
        """Products of scaled columns with each other, by distinct array."""
        return [
            gram_of(array) / np.outer(scale, scale)
            for array, scale in zip(self.problem.arrays, self.scale, strict=True)
        ]

    def scaled_triangle(self, k: int) -> Vector:
        """R of scaled columns of a distinct array."""
        return triangle(self.scaled(k))

    def combined_sizes(self, k: int, combined: Vector) -> Vector:
        """Largest absolute values of combinations of scaled columns."""
        array = self.scaled(k)
        return column_sizes(array @ like(combined, array))

    def set_turn(self, k: int, turn: Vector) -> None:
        """Move pulls along combinations of scaled columns."""
        array = self.scaled(k)
        self.turned[k] = array @ like(turn, array)

    def scaled(self, k: int) -> Array:
        """The columns X of a distinct array."""
        array = self.problem.arrays[k]
        return array * like(1.0 / self.scale[k], array)


def find_turns(rows: Chunks, n_arrays: int) -> list[Vector | None]:
    """Replace scaled columns that nearly depend on each other by orthogonal ones.

    Parameters
    ----------
    rows : Chunks
        Of ColumnRows that know their scale.
    n_arrays : int
        How many distinct arrays of features there are.

    Returns
    -------
    turns : list of ndarray of shape (D, k), or None
        None where columns are independent enough, and kept.
    """
    grams: Sequence[Vector] = totals(rows.ask(ColumnRows.grams))
    turns = [_find_turn(rows, k, grams[k]) for k in range(n_arrays)]
    for k, turn in enumerate(turns):
        if turn is not None:
            rows.note(ColumnRows.set_turn, k, turn)
    return turns


def _find_turn(rows: Chunks, k: int, gram: Vector) -> Vector | None:
    """Combinations of the columns of one distinct array, or None."""

    def triangle_of_all() -> Vector:
        return joined_triangle(list(rows.ask(ColumnRows.scaled_triangle, k)))

    def sizes_of(combined: Vector) -> Vector:
        found = rows.ask(ColumnRows.combined_sizes, k, combined)
        return np.asarray(largest([sizes] for sizes in found)[0])

    return directions(gram, triangle_of_all, sizes_of)
