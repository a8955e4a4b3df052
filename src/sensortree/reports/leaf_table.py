"""The table beside a tree: a line for each leaf, or for several that are folded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sensortree.reports.drawing import CLASSES
from sensortree.reports.layout import Column, Mix, Vertex
from sensortree.reports.words import known_column, percent, shortened
from sensortree.text import chance_words
from sensortree.types import Array

ANSWERS = 2  # answers of a line that are told
TOLD_CLASSES = 10  # classes of a leaf that are told where the mouse rests


@dataclass(frozen=True, eq=False)
class LeafTable:
    """What is known of the leaves of a tree, for the lines of a picture.

    Attributes
    ----------
    ends : sequence of Vertex
        The lines: leaves, and leaves that are folded.
    share, cost : ndarray of shape (n_leaves,)
    accuracy : ndarray of shape (n_leaves,) or None
        NaN where no row came.
    mix : ndarray of shape (n_leaves, n_classes) or None
        Rows of each class, or shares of them.
    answers : ndarray of shape (n_leaves, n_classes) or None
        Rows that are given each answer, or shares of them.
    judged : str
        On which rows answers were judged, for the head of the column.
    names : sequence of str
        Of the classes.
    numbers : ndarray of shape (n_leaves, 2) or None
        Mean and standard deviation of what is predicted, if it is a number.
    """

    ends: Sequence[Vertex]
    share: Array
    cost: Array
    accuracy: Array | None = None
    mix: Array | None = None
    answers: Array | None = None
    judged: str = ""
    names: Sequence[str] = ()
    numbers: Array | None = None

    def columns(self, money: Callable[[float], str], unit: str) -> list[Column]:
        """Columns of the table."""
        columns = [
            leaf_lines(self.ends),
            known_lines(self.ends),
            Column("share\nof rows", [percent(end.share) for end in self.ends]),
            Column(
                f"cost\n({unit})" if unit else "cost",
                [cost_words(self.cost[list(end.leaves)], money) for end in self.ends],
            ),
        ]
        if self.answers is not None:
            cells = [self.answer_words(end) for end in self.ends]
            columns.append(Column("answers", cells, "left"))
        if self.accuracy is not None:
            head = f"right\n({self.judged})" if self.judged else "right"
            cells = [self.right_words(end) for end in self.ends]
            columns.append(Column(head, cells))
        if self.numbers is not None:
            head = f"mean ± sd\n({self.judged})" if self.judged else "mean ± sd"
            columns.append(Column(head, [self.number_words(e) for e in self.ends]))
        return columns

    def number_words(self, end: Vertex) -> str:
        """Mean and standard deviation of the numbers of a line; "–" without rows."""
        assert self.numbers is not None
        leaves = list(end.leaves)
        share, (mean, deviation) = self.share[leaves], self.numbers[leaves].T
        total = float(share.sum())
        if not total:
            return "–"
        middle = float(share @ mean) / total
        squared = float(share @ (deviation**2 + (mean - middle) ** 2)) / total
        return f"{middle:.4g} ± {np.sqrt(squared):.2g}"

    def bars(self) -> Mix | None:
        """Classes of each line; the most frequent have a colour of their own."""
        if self.mix is None:
            return None
        names = [shortened(name, 32) for name in self.names]
        shares = np.array([self._shares(self.mix, end) for end in self.ends])
        if len(names) > len(CLASSES):
            overall = np.array([end.share for end in self.ends]) @ shares
            first = np.sort(np.argsort(-overall, kind="stable")[: len(CLASSES) - 1])
            others = f"{len(names) - len(first)} other classes"
            names = [*(names[i] for i in first), others]
            reached = shares.any(axis=1, keepdims=True)
            rest = reached - shares[:, first].sum(axis=1, keepdims=True)
            shares = np.hstack([shares[:, first], rest])
        return Mix(tuple(names), [s.tolist() if s.any() else [] for s in shares])

    def answer_words(self, end: Vertex) -> str:
        """What is answered in a line, the most frequent first; "–" without rows."""
        assert self.answers is not None
        shares = self._shares(self.answers, end)
        given = [i for i in np.argsort(-shares, kind="stable") if shares[i]]
        if len(given) == 1:
            return shortened(self.names[given[0]], 20)
        said = [
            f"{shortened(self.names[i], 20)} {chance_words(float(shares[i]))}"
            for i in given[:ANSWERS]
        ]
        return ", ".join(said + ["…"] * (len(given) > ANSWERS)) or "–"

    def right_words(self, end: Vertex) -> str:
        """How many answers of a line are right; "–" without rows."""
        accuracy = self._mean_accuracy(end)
        return "–" if np.isnan(accuracy) else percent(accuracy)

    def told(self, end: Vertex) -> list[str]:
        """What is answered in a line, how often rightly, and what would have been right."""
        lines = []
        if self.numbers is not None:
            lines.append(f"mean ± sd: {self.number_words(end)}")
        if self.answers is not None:
            lines.append(f"answers: {self.answer_words(end)}")
        if self.accuracy is not None:
            judged = f" ({self.judged})" if self.judged else ""
            lines.append(f"right{judged}: {self.right_words(end)}")
        if self.mix is None:
            return lines
        shares = self._shares(self.mix, end)
        order = np.argsort(-shares, kind="stable")[:TOLD_CLASSES]
        true = [f"truly {self.names[i]}: {percent(shares[i])}" for i in order]
        return lines + [line for line, i in zip(true, order, strict=True) if shares[i]]

    def _shares(self, rows_of: Array, end: Vertex) -> Array:
        """Share of each class among the rows of a line, (n_classes,); 0 without rows."""
        rows = rows_of[list(end.leaves)]
        total = rows.sum(axis=1, keepdims=True)
        shares = np.divide(rows, total, out=np.zeros_like(rows), where=total > 0)
        if len(shares) == 1:
            return np.asarray(shares[0])
        weight = self.share[list(end.leaves)] * (total[:, 0] > 0)
        return np.asarray(weight @ shares / max(float(weight.sum()), 1e-300))

    def _mean_accuracy(self, end: Vertex) -> float:
        """Share of right answers in a line; NaN without rows."""
        assert self.accuracy is not None
        some = list(end.leaves)
        if len(some) == 1:
            return float(self.accuracy[some[0]])
        came = ~np.isnan(self.accuracy[some]) & (self.share[some] > 0)
        if not came.any():
            return float("nan")
        return float(
            np.average(self.accuracy[some][came], weights=self.share[some][came])
        )


def leaf_lines(ends: Sequence[Vertex]) -> Column:
    """Column that says which leaf each line is, or how many."""
    cells = [
        f"{len(end.leaves)} leaves" if end.is_folded else str(end.number)
        for end in ends
    ]
    return Column("leaf", cells)


def known_lines(ends: Sequence[Vertex]) -> Column:
    """Column that says what is known in each line; where leaves are folded, at least."""
    return Column(*known_column([(end.known, end.is_folded) for end in ends]))


def cost_words(costs: Array, money: Callable[[float], str]) -> str:
    """Price of the way to a leaf, or the least and the most of several."""
    low, high = money(costs.min()), money(costs.max())
    return low if low == high else f"{low} to {high}"
