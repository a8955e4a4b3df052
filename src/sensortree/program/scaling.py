"""`Scaling`: a problem as a solver sees it, of size 1, whatever the user's units are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sensortree.program.arrays import like
from sensortree.program.chunks import Chunks, InMemory, largest
from sensortree.program.column_rows import ColumnRows, find_turns
from sensortree.program.directions import as_scale
from sensortree.program.solvers import Candidate, Options, Progress
from sensortree.program.surrogate import Coef, DualPoint, SurrogateProblem

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Scaling:
    """How columns and savings are brought to size 1, and what penalties then are.

    Attributes
    ----------
    shared : tuple of n_nodes ints
        Which of the distinct arrays of features each node has.
    scale : list of ndarray of shape (D,)
        What columns of each distinct array are divided by.
    turns : list of ndarray of shape (D, k), or None
        How columns that nearly repeat each other are then combined: a program without
        penalties only depends on what columns span, but for directions that double
        precision does not resolve.
    size : float
        What savings are divided by.
    ridge, lasso : ndarray of shape (p,)
        Penalties of the coefficients.
    """

    shared: tuple[int, ...]
    scale: list[Vector]
    turns: list[Vector | None]
    size: float
    ridge: Vector
    lasso: Vector

    @classmethod
    def of_problem(cls, problem: SurrogateProblem, l2: float, l1: float) -> Scaling:
        """Scaling of a problem in memory."""
        return cls.of(InMemory([ColumnRows(problem)]), problem.shared, l2, l1)

    @classmethod
    def of(cls, rows: Chunks, shared: Sequence[int], l2: float, l1: float) -> Scaling:
        """Scale columns and savings; without penalties, turn columns too.

        Parameters
        ----------
        rows : Chunks
            Of ColumnRows.
        shared : sequence of n_nodes ints
        l2, l1 : float
        """
        (most, *sizes) = largest(rows.ask(ColumnRows.sizes))
        size = float(most[0]) or 1.0
        scale = [as_scale(each) for each in sizes]
        rows.note(ColumnRows.set_scale, scale)
        turns: list[Vector | None] = [None] * len(scale)
        if l2 or l1:  # coefficients have a price: columns stay what they are
            flat = np.concatenate([scale[k] for k in shared])
            ridge, lasso = l2 / size / flat**2, l1 / size / flat
        else:
            turns = find_turns(rows, len(scale))
            widths = [
                each.size if turn is None else turn.shape[1]
                for each, turn in zip(scale, turns, strict=True)
            ]
            ridge = lasso = np.zeros(sum(widths[k] for k in shared))
        return cls(tuple(shared), scale, turns, size, ridge, lasso)

    def applied(self, problem: SurrogateProblem) -> SurrogateProblem:
        """A problem of size 1: any rows of the one that this was made for."""
        arrays = []
        for array, scale, turn in zip(
            problem.arrays, self.scale, self.turns, strict=True
        ):
            scaled = array * like(1.0 / scale, array)
            arrays.append(scaled if turn is None else scaled @ like(turn, array))
        return problem.with_arrays(arrays, self.size)

    def options(
        self,
        tol: float,
        n_jobs: int | None,
        callback: Callable[[Progress], object] | None,
    ) -> Options:
        """What a solver is asked for."""
        return Options(self.ridge, self.lasso, tol, n_jobs, callback)

    def coef_back(self, coef: Coef) -> Coef:
        """Give coefficients in the user's units."""
        turned = (self.turns[k] for k in self.shared)
        return [
            (theta if turn is None else turn @ theta) / self.scale[k]
            for theta, turn, k in zip(coef, turned, self.shared, strict=True)
        ]

    def dual_back(self, dual: DualPoint) -> DualPoint:
        """Give pulls in the user's units."""
        return replace(
            dual,
            pull_negative=dual.pull_negative * self.size,
            pull_positive=dual.pull_positive * self.size,
        )

    def back(self, candidate: Candidate) -> tuple[Coef, DualPoint]:
        """Give coefficients and pulls in the user's units."""
        return self.coef_back(candidate.coef), self.dual_back(candidate.dual)
