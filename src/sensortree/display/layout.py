"""`Layout`: where the words, boxes and edges of a tree go.

The picture reads from left to right. Every leaf has a row of its own; a node stands in
the row of the first leaf below it, so its negative child goes on straight to the right
and its positive child hangs below. Buying moves one column to the right. Hence no two
vertices share a cell of this grid, and no two edges cross.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

WRAP = 26  # characters in a line of sensor names
SIZE = 8.0  # of the letters; like all lengths below, in points
LINE = 1.25 * SIZE
PAD = 5.0  # between a text and what is around it
INDENT = 12.0  # from a node's left side to the edge that hangs below it
THINNEST, THICKEST = 0.8, 8.0  # edges that no row and that every row takes

TableColumn = tuple[str, list[str], str]  # head, cells, alignment


@dataclass(frozen=True, eq=False)
class Vertex:
    """A vertex with the edge that leads to it.

    Attributes
    ----------
    number : int
        As the tree numbers its nodes or its leaves.
    is_leaf : bool
    parent : Vertex or None
    positive : bool
        Whether it is its parent's positive child.
    known : tuple of str
        Sensors known here.
    bought : tuple of str
        Sensors bought on the way here from the parent; at the root, those known there.
    price : float
        Price of `bought`.
    share : float
        Share of rows that come here.
    row, column : int
        Cell of the picture.
    """

    number: int
    is_leaf: bool
    parent: Vertex | None = field(repr=False)
    positive: bool
    known: tuple[str, ...]
    bought: tuple[str, ...]
    price: float
    share: float
    row: int
    column: int


class Layout:
    """Where everything goes, in points from the upper left corner.

    Attributes
    ----------
    width, height : float
        Size of the picture.
    row_height : float
    head : float
        Depth of the head of the table.
    x : dict of int to float
        Left side of each column of nodes.
    right : dict of int to float
        Right side of each node's box.
    table : list of (head, cells, left, right, align)
        Columns of the table of leaves.
    """

    def __init__(
        self,
        vertices: tuple[Vertex, ...],
        columns: list[TableColumn],
        money: Callable[[float], str],
        node_words: Callable[[Vertex], str] | None = None,
    ):
        self.vertices = vertices
        self.columns = columns
        words = node_words or _share_words
        self.words = {
            v: f"{_known_words(v)}\n{words(v)}" for v in vertices if not v.is_leaf
        }
        self.labels = {v: _edge_words(v, money) for v in self.vertices}
        self._set_rows()
        self._set_columns()
        self._set_table()

    def _set_rows(self) -> None:
        """Make rows as high as the highest text, with a label above its edge."""
        label = max(_height(text) for text in self.labels.values())
        label += THICKEST / 2 + PAD
        texts = [
            *self.words.values(),
            *(c for _, cells, _ in self.columns for c in cells),
        ]
        box = max(_height(text) for text in texts) + 2 * PAD
        self.row_height = max(box + PAD, 2 * label, box / 2 + label)
        n_rows = sum(v.is_leaf for v in self.vertices)
        self.head = 2 * LINE + 2 * PAD
        self.height = self.head + n_rows * self.row_height + PAD

    def _set_columns(self) -> None:
        """Push columns to the right until boxes and labels have the room they need."""
        self.x = {0: PAD + self._label_width(self.vertices[0])}
        self.right: dict[int, float] = {}
        self.table_left = self.x[0]
        n_columns = 1 + max(v.column for v in self.vertices)
        for column in range(n_columns):
            for v in self.vertices:
                if v.column == column and not v.is_leaf:
                    words = _width(self.words[v]) + 2 * PAD
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
        if vertex.positive:
            return self.x[vertex.parent.column] + INDENT
        return self.right[vertex.parent.number]

    def _label_width(self, vertex: Vertex) -> float:
        text = self.labels[vertex]
        return _width(text) + 4 * PAD if text else 0.0

    def y(self, vertex: Vertex) -> float:
        """Height of a vertex's row."""
        return -self.head - (vertex.row + 0.5) * self.row_height

    def _set_table(self) -> None:
        left = self.table_left
        self.table = []
        for head, cells, align in self.columns:
            right = left + max(_width(text) for text in (head, *cells))
            self.table.append((head, cells, left, right, align))
            left = right + 3 * PAD
        self.width = left - 2 * PAD


def _known_words(vertex: Vertex) -> str:
    """First line in a node's box: what is known there."""
    if vertex.parent and not vertex.bought and vertex.positive:
        return "otherwise"
    return wrapped(vertex.known) or "nothing known"


def _share_words(vertex: Vertex) -> str:
    """Second line in a node's box: for how many rows."""
    return f"node {vertex.number}: {percent(vertex.share)} of rows"


def _edge_words(vertex: Vertex, money: Callable[[float], str]) -> str:
    """Words on the edge that leads to a vertex: what is decided, and its price."""
    if vertex.bought:
        return "buy " + wrapped((*vertex.bought, f"+{money(vertex.price)}"))
    if vertex.parent is None or (vertex.positive and not vertex.is_leaf):
        return ""
    return "stop" if vertex.is_leaf else "go on"


def wrapped(names: Iterable[str]) -> str:
    """Names, with commas, in lines of a fair length."""
    return "\n".join(
        textwrap.wrap(
            ", ".join(names), WRAP, break_long_words=False, break_on_hyphens=False
        )
    )


def percent(share: float) -> str:
    """Share in percent; a few rows are not written as none, nor most as all."""
    if 0 < share < 0.001:
        return "< 0.1 %"
    if 0.999 < share < 1:
        return "> 99.9 %"
    return f"{100 * share:.1f} %"


def _width(text: str) -> float:
    """Width of the longest line."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=SIZE)
    return max(
        float(text_to_path.get_text_width_height_descent(line, font, False)[0])
        for line in text.split("\n")
    )


def _height(text: str) -> float:
    return LINE * len(text.split("\n")) if text else 0.0
