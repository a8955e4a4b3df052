"""A chunk of rows: what a fit does with it, what makes it, and what it was told.

Tasks that change chunks are kept in a log, so that a chunk that was lost is made anew: they
depend on nothing but the chunk and their arguments, and done again to a new chunk they
give the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from sensortree.learning.pose import (
    Posed,
    Shown,
    costs_of_leaves,
    leaf_risks,
    pose_with,
    seen_at,
    shown_levels,
)
from sensortree.learning.settings import Settings
from sensortree.leaves.classifiers import LeafClassifiers
from sensortree.leaves.logistic import posterior_of, rounded
from sensortree.leaves.ridge import FoldedLabels, RidgePart
from sensortree.leaves.rows import TrainingRows
from sensortree.policy.decisions import DecisionFeatures, Part, feature_columns
from sensortree.program.solution import ProblemRows
from sensortree.tree.tree import SensorTree
from sensortree.types import Array, Mask, Rows

Subset = frozenset[str]
Coef = list[Array]


class FitRows:
    """Training rows of a chunk; `leaves` knows their posteriors."""

    ridge: RidgePart  # while a leaf classifier is fitted
    posed: Posed
    program: ProblemRows  # while it is solved

    def __init__(self, data: TrainingRows):
        self.leaves = LeafClassifiers(data, None, None)
        self.folded = np.argsort(data.fold, kind="stable")

    @property
    def settled(self) -> bool:
        """Whether a copy is complete: no step is in progress."""
        program = getattr(self, "program", None)
        return program is None or program.settled

    # leaf classifiers -----------------------------------------------------------------

    def sums(self, subset: Subset) -> tuple[float, Array]:
        """Weight of the rows, and weighted sums of columns."""
        data = self.leaves.data
        X = data.features(subset)
        return float(data.weight.sum()), data.weight @ X

    def squares(self, subset: Subset, center: Array) -> tuple[float, Array]:
        """Whether a reading is no number, and weighted sums of squared deviations."""
        data = self.leaves.data
        X = data.features(subset)
        wrong = float(not np.isfinite(X).all())
        return wrong, data.weight @ (X - center) ** 2

    def open_ridge(
        self, subset: Subset, degree: int, C: Any, moments: Any, single: bool
    ) -> None:
        """Prepare ridge logistic regressions on a subset."""
        data, order = self.leaves.data, self.folded
        labels = FoldedLabels(
            data.y[order], data.weight[order], data.fold[order], len(data.classes), C
        )
        X = data.features(subset)[order]
        self.ridge = RidgePart(X, degree, labels, moments, single)

    def judge_ridge(
        self, subset: Subset, coef: Array, fits: Mapping[int, Array], only: Any
    ) -> None:
        """Find posteriors by the fits without each fold, and forget the basis."""
        data = self.leaves.data
        folded = np.empty((len(data.y), len(data.classes)))
        for rows, fold, terms in self.ridge.blocks():
            if fold in only:
                folded[rows] = np.eye(2)[only[fold]]
                continue
            folded[rows] = posterior_of(fits.get(fold, coef), terms)
        posterior = np.empty_like(folded)
        posterior[self.folded] = folded
        self.leaves.posteriors[subset] = rounded(posterior)

    def close_ridge(self) -> None:
        """Forget the basis."""
        del self.ridge

    def judge(self, subset: Subset, scorers: Mapping[int, Any]) -> None:
        """Find posteriors by classifiers without each fold; -1 has seen all."""
        data = self.leaves.data
        X = data.features(subset)
        posterior = np.empty((len(data.y), len(data.classes)))
        for fold in np.unique(data.fold):
            scorer = scorers.get(int(fold), scorers[-1])
            held_out = data.fold == fold
            posterior[held_out] = scorer.predict_proba(X[held_out])
        self.leaves.posteriors[subset] = rounded(posterior)

    def log_losses(self, subsets: Sequence[Subset]) -> Array:
        """Weighted sums of the log-loss of each subset's posterior."""
        data = self.leaves.data
        rows = np.arange(len(data.y))
        with np.errstate(divide="ignore"):
            return np.array(
                [
                    -data.weight @ np.log(self.leaves.posteriors[s][rows, data.y])
                    for s in subsets
                ]
            )

    # the routing problem --------------------------------------------------------------

    def _columns(self, subset: Subset, parts: tuple[Part, ...]) -> tuple[Array, Array]:
        _, weight = self.leaves.data.distinct()
        return feature_columns(parts, *seen_at(subset, self.leaves)), weight

    def shown_levels(self, subset: Subset) -> Shown:
        """Levels of what a node reads, with the weight of the rows that show them."""
        readings, _, _ = seen_at(subset, self.leaves)
        return shown_levels(readings, self.leaves.data.distinct()[1])

    def column_sums(
        self, subset: Subset, parts: tuple[Part, ...]
    ) -> tuple[Array, Array, Mask]:
        """Weight and weighted sums of a node's columns, NaN left out; where NaN is."""
        columns, weight = self._columns(subset, parts)
        missing = np.isnan(columns)
        shared = np.where(missing, 0.0, weight[:, None])
        known = np.where(missing, 0.0, columns)
        some = np.asarray(missing.any(axis=0))
        return shared.sum(axis=0), (shared * known).sum(axis=0), some

    def column_squares(
        self, subset: Subset, parts: tuple[Part, ...], center: Array
    ) -> Array:
        """Weighted sums of squared deviations of a node's columns, NaN left out."""
        columns, weight = self._columns(subset, parts)
        missing = np.isnan(columns)
        shared = np.where(missing, 0.0, weight[:, None])
        known = np.where(missing, 0.0, columns)
        return np.asarray((shared * (known - center) ** 2).sum(axis=0))

    def pose(
        self,
        tree: SensorTree,
        settings: Settings,
        features: Mapping[Subset, DecisionFeatures],
        best: Subset | None,
    ) -> None:
        """Pose the routing problem: what each node sees, what each leaf would cost."""
        belief = None if best is None else self.leaves.posteriors[best]
        risks = leaf_risks(tree, self.leaves, settings, belief)
        self.posed = pose_with(tree, self.leaves, settings, features, risks)

    def spreads(self) -> Array:
        """Weight of the rows, and of the difference between worst and best leaf."""
        problem = self.posed.problem
        spread = np.ptp(problem.leaf_risk, axis=1)
        return np.array([problem.weight.sum(), problem.weight @ spread])

    def open_program(self, savings: str) -> None:
        """Prepare the linear program."""
        problem = self.posed.problem
        self.program = ProblemRows(problem.surrogate(problem.worst(savings)))

    def close_program(self) -> None:
        """Forget the program."""
        del self.program

    def risks(self, coefs: Sequence[Coef]) -> Array:
        """Weighted sums of risks: observed and learned, of some coefficients."""
        posed = self.posed
        found = np.empty((len(coefs), 2))
        for k, coef in enumerate(coefs):
            leaf = posed.problem.route(coef)
            for c, problem in enumerate((posed.observed, posed.problem)):
                reached = problem.leaf_risk[np.arange(len(leaf)), leaf]
                found[k, c] = problem.weight @ reached
        return found

    def constant_risks(self) -> Array:
        """Weighted sums of the observed risk of each leaf, if all went there."""
        observed = self.posed.observed
        return observed.weight @ observed.leaf_risk

    def visits(self, coef: Coef) -> tuple[Rows, float]:
        """Distinct rows that reach each leaf, and what all rows pay."""
        problem = self.posed.problem
        leaf = problem.route(coef)
        paid = costs_of_leaves(problem.tree, self.leaves)[np.arange(len(leaf)), leaf]
        visits = np.bincount(leaf, minlength=problem.tree.n_leaves)
        return visits, float(problem.weight @ paid)

    def posteriors(self, numbers: Rows) -> dict[Subset, Array]:
        """Posteriors of those rows of this chunk that are asked for."""
        rows = np.flatnonzero(np.isin(self.leaves.data.rows, numbers))
        return {s: judged[rows] for s, judged in self.leaves.posteriors.items()}


def make_rows(
    frame: TrainingRows,
    pieces: Sequence[Array],
    labels: tuple[Rows, Rows, Rows, Rows, Array],
) -> FitRows:
    """A chunk of readings that come in pieces.

    `frame` has no rows, and all that they have in common. Pieces are (n, width): readings
    of all sensors, then prices, if rows have their own. Labels are five arrays of shape
    (n_rows,): where each row stands among the pieces, one after the other; its class, its
    fold, its number among all rows, and its weight.
    """
    place, y, fold, numbers, weight = labels
    readings = np.concatenate(pieces)[place]
    ends = np.cumsum(frame.reader.widths)
    *blocks, prices = map(np.ascontiguousarray, np.split(readings, ends, axis=1))
    data = replace(
        frame,
        blocks=blocks,
        y=y.astype(np.intp),
        weight=weight,
        fold=fold.astype(np.intp),
        rows=numbers,
        prices=None if frame.prices is None else prices,
        unit=numbers,
    )
    return FitRows(data)


# made, and made anew ----------------------------------------------------------------------


class Source(NamedTuple):
    """What makes a chunk: a function, and what it is given."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]

    def make(self) -> Any:
        """A new chunk."""
        return self.function(*self.arguments)


class Told(NamedTuple):
    """A task, and what it was given besides the chunk."""

    task: Callable[..., Any]
    arguments: tuple[Any, ...]

    def done_to(self, chunk: Any) -> Any:
        """Do the task; where rounding is all that is left, numbers overflow."""
        with np.errstate(all="ignore"):
            return self.task(chunk, *self.arguments)


def caught_up(chunk: Any, pending: Sequence[Told], asked: Told | None) -> Any:
    """What a chunk says when all pending tasks are done to it, and then what is asked."""
    answer = None
    for each in pending if asked is None else (*pending, asked):
        answer = each.done_to(chunk)
    return answer


class LoggedChunks:
    """Chunks that do what a log says; `_call` gives what each of them answers.

    `log` has the tasks that change chunks, in the order in which they were told. A chunk
    that has done the first `n` of them is at version `n`.
    """

    def __init__(self) -> None:
        self.log: list[Told] = []

    @contextmanager
    def working(self) -> Iterator[None]:
        """Chunks have nothing in common that must be held."""
        yield

    def ask(self, task: Callable[..., Any], *arguments: Any) -> Iterator[Any]:
        """What a task that changes nothing says of each chunk, in order."""
        return iter(self._call(Told(task, arguments)))

    def tell(self, task: Callable[..., Any], *arguments: Any) -> list[Any]:
        """The same of a task that changes the chunks."""
        self.note(task, *arguments)
        return list(self._call(None))

    def note(self, task: Callable[..., Any], *arguments: Any) -> None:
        """Note a task that changes chunks, to be done before the next one; no answer."""
        self.log.append(Told(task, arguments))

    def _call(self, asked: Told | None) -> Iterable[Any]:
        """What each chunk answers, or says of what it was told last."""
        raise NotImplementedError
