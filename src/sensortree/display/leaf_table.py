"""The table beside a tree: a line for each leaf, or for several that are folded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sensortree.display.colours import CLASSES
from sensortree.display.layout import Column, Mix
from sensortree.display.vertices import Vertex
from sensortree.display.words import known_column, percent, shortened
from sensortree.types import Array

TOLD = 10  # classes of a leaf that are told where the mouse rests


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
    names : sequence of str
        Of the classes.
    """

    ends: Sequence[Vertex]
    share: Array
    cost: Array
    accuracy: Array | None = None
    mix: Array | None = None
    names: Sequence[str] = ()

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
        if self.accuracy is not None:
            found = [self._mean_accuracy(end) for end in self.ends]
            cells = ["–" if np.isnan(a) else f"{a:.3f}" for a in found]
            columns.append(Column("accuracy", cells))
        if self.mix is not None:
            cells = [self._most_frequent(end) for end in self.ends]
            columns.append(Column("most frequent", cells, "left"))
        return columns

    def bars(self) -> Mix | None:
        """Classes of each line; the most frequent have a colour of their own."""
        if self.mix is None:
            return None
        names = [shortened(name, 32) for name in self.names]
        shares = np.array([self.class_shares(end) for end in self.ends])
        if len(names) > len(CLASSES):
            overall = np.array([end.share for end in self.ends]) @ shares
            first = np.sort(np.argsort(-overall, kind="stable")[: len(CLASSES) - 1])
            others = f"{len(names) - len(first)} other classes"
            names = [*(names[i] for i in first), others]
            reached = shares.any(axis=1, keepdims=True)
            rest = reached - shares[:, first].sum(axis=1, keepdims=True)
            shares = np.hstack([shares[:, first], rest])
        return Mix(tuple(names), [s.tolist() if s.any() else [] for s in shares])

    def class_shares(self, end: Vertex) -> Array:
        """Share of each class among the rows of a line, (n_classes,); 0 without rows."""
        assert self.mix is not None
        rows = self.mix[list(end.leaves)]
        total = rows.sum(axis=1, keepdims=True)
        shares = np.divide(rows, total, out=np.zeros_like(rows), where=total > 0)
        if len(shares) == 1:
            return np.asarray(shares[0])
        weight = self.share[list(end.leaves)] * (total[:, 0] > 0)
        return np.asarray(weight @ shares / max(float(weight.sum()), 1e-300))

    def class_words(self, end: Vertex) -> list[str]:
        """Classes of a line with their shares, the most frequent first."""
        if self.mix is None:
            return []
        mix = self.class_shares(end)
        order = np.argsort(-mix, kind="stable")[:TOLD]
        return [f"{self.names[i]}: {percent(mix[i])}" for i in order if mix[i]]

    def _most_frequent(self, end: Vertex) -> str:
        """Most frequent class of a line, and its share."""
        mix = self.class_shares(end)
        if not mix.any():
            return "–"
        return f"{shortened(self.names[int(mix.argmax())], 20)}: {percent(mix.max())}"

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
