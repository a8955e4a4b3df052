"""`Layout`: where the words, boxes and edges of a tree go.

The picture reads from left to right. Every leaf has a row of its own; a node stands in
the row of the first leaf below it, so its first way goes on straight to the right and the
others hang below, side by side, the last one leftmost. Every decision moves one column to
the right. Hence no two vertices share a cell of this grid, and no two edges cross. A row
is as high as what stands in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sensortree.display.vertices import THICKEST, Vertex

SIZE = 8.0  # of the letters; like all lengths below, in points
LINE = 1.25 * SIZE
PAD = 5.0  # between a text and what is around it
INDENT = 12.0  # from a node's left side to the last edge that hangs below it
BAR = 72.0  # length of a bar that shows a mix of classes
TRUTH = "true classes"  # head of these bars


@dataclass(frozen=True)
class Mix:
    """Classes of the rows at the ends of the picture, as bars with a legend.

    Attributes
    ----------
    names : tuple of str
        Of the classes that have a colour, and of the others together.
    shares : sequence of sequence of float
        For every end the share of each; empty where no row came.
    """

    names: tuple[str, ...]
    shares: Sequence[Sequence[float]]


@dataclass(frozen=True)
class Column:
    """A column of the table, a cell for each row; `width` is the least that it takes."""

    head: str
    cells: Sequence[str]
    align: str = "right"
    width: float = 0.0


class Layout:
    """Where everything goes, in points from the upper left corner, y downwards negative.

    Attributes
    ----------
    width, height : float
        Size of the picture.
    x : dict of int to float
        Left side of each column of nodes.
    right : dict of int to float
        Right side of each node's box.
    table : list of (Column, left, right)
        Columns of the table of leaves.
    bars : float or None
        Left side of the bars that show the classes.
    legend : list of (name, x, y)
        Names of the classes, each with room for a square before it.
    """

    def __init__(
        self,
        vertices: tuple[Vertex, ...],
        columns: Sequence[Column],
        words: Mapping[Vertex, str],
        labels: Mapping[Vertex, str],
        measure: Callable[[str], float],
        mix: Mix | None = None,
    ):
        self.vertices = vertices
        self.columns = list(columns)
        self.words = words
        self.labels = labels
        self.mix = mix
        self._measure = measure
        self._set_rows()
        self._set_strands()
        self._set_columns()
        self._set_table()
        self._set_legend()

    def _set_rows(self) -> None:
        """Give each row the height that its texts need, labels above their edges."""
        n_rows = sum(v.is_leaf for v in self.vertices)
        above, below = [LINE] * n_rows, [LINE] * n_rows
        for v in self.vertices:
            cells = [column.cells[v.row] for column in self.columns]
            texts = cells if v.is_leaf else [self.words[v]]
            half = max(map(_height, texts)) / 2 + PAD
            label = _height(self.labels[v]) + THICKEST / 2 + PAD
            above[v.row] = max(above[v.row], half, label)
            below[v.row] = max(below[v.row], half)
        heads = [column.head.count("\n") + 1 for column in self.columns]
        self.head = max(heads) * LINE + 2 * PAD
        self._rows, y = [], -self.head
        for row in range(n_rows):
            y -= above[row]
            self._rows.append(y)
            y -= below[row] + PAD / 2
        self.height = PAD - y

    def _set_strands(self) -> None:
        """Put the edges that hang below a node side by side, from the last one on."""
        self._strand: dict[Vertex, float] = {}
        taken: dict[Vertex, float] = {}
        for v in reversed(self.vertices):
            if v.parent is not None and v.way:
                left = taken.get(v.parent, -v.thickness / 2)
                self._strand[v] = INDENT + left + v.thickness / 2
                taken[v.parent] = left + v.thickness

    def _set_columns(self) -> None:
        """Push columns to the right until boxes and labels have the room they need."""
        self.x = {0: PAD + self._label_width(self.vertices[0])}
        self.right: dict[int, float] = {}
        self.table_left = self.x[0]
        n_columns = 1 + max(v.column for v in self.vertices)
        for column in range(n_columns):
            for v in self.vertices:
                if v.column == column and not v.is_leaf:
                    words = self._measure(self.words[v]) + 2 * PAD
                    self.right[v.number] = self.x[column] + words
                    self.table_left = max(
                        self.table_left, self.right[v.number] + 3 * PAD
                    )
            self._make_room_after(column)

    def _make_room_after(self, column: int) -> None:
        """Find where the next column begins, and where the table may begin."""
        at = max(self.right.values(), default=self.x[column]) + 2 * PAD
        for v in self.vertices:
            if v.parent is None or v.parent.column != column:
                continue
            end = self.start(v) + self._label_width(v)
            if v.is_leaf:  # nothing else stands in the rest of its row
                self.table_left = max(self.table_left, end)
            elif v.column > column:
                at = max(at, end)
        self.x[column + 1] = at

    def start(self, vertex: Vertex) -> float:
        """Left end of the horizontal part of the edge that leads to a vertex."""
        if vertex.parent is None:
            return PAD
        if vertex.way:
            return self.x[vertex.parent.column] + self._strand[vertex]
        return self.right[vertex.parent.number]

    def way(self, vertex: Vertex) -> list[tuple[float, float]]:
        """Points of the edge that leads to a vertex."""
        parent, start, y = vertex.parent, self.start(vertex), self.y(vertex)
        end = self.table_left - PAD if vertex.is_leaf else self.x[vertex.column]
        if parent and vertex.way:
            return [(start, self.y(parent)), (start, y), (end, y)]
        beneath = PAD if parent else 0  # begins under the parent's box
        return [(start - beneath, y), (end, y)]

    def label_at(self, vertex: Vertex) -> tuple[float, float]:
        """Lower left corner of the words on the edge that leads to a vertex."""
        return self.start(vertex) + 2 * PAD, self.y(vertex) + vertex.thickness / 2 + 2

    def box(self, node: Vertex) -> tuple[float, float, float, float]:
        """Left, lower, right and upper side of a node's box."""
        half = _height(self.words[node]) / 2 + PAD - 1
        x, y = self.x[node.column], self.y(node)
        return x, y - half, self.right[node.number], y + half

    def _label_width(self, vertex: Vertex) -> float:
        text = self.labels[vertex]
        return self._measure(text) + 4 * PAD if text else 0.0

    def y(self, vertex: Vertex) -> float:
        """Height of a vertex's row."""
        return self._rows[vertex.row]

    def _set_table(self) -> None:
        left = self.table_left
        self.table: list[tuple[Column, float, float]] = []
        self.bars: float | None = None
        for column in self.columns:
            texts = (column.head, *column.cells)
            right = left + max(column.width, *map(self._measure, texts))
            self.table.append((column, left, right))
            left = right + 3 * PAD
        if self.mix is not None:
            self.bars = left
            left += max(BAR, self._measure(TRUTH)) + 3 * PAD
        self.width = left - 2 * PAD

    def _set_legend(self) -> None:
        """Put the names of the classes below, in as many lines as they need."""
        self.legend: list[tuple[str, float, float]] = []
        if self.mix is None:
            return
        left, y = PAD, -self.height - LINE / 2
        for name in self.mix.names:
            width = LINE + self._measure(name)
            if left > PAD and left + width > self.width - PAD:
                left, y = PAD, y - 1.4 * LINE
            self.legend.append((name, left, y))
            left += width + 3 * PAD
        self.width = max(self.width, left if y == self.legend[0][2] else 0.0)
        self.height = LINE + PAD - y


def _height(text: str) -> float:
    return LINE * len(text.split("\n")) if text else 0.0
