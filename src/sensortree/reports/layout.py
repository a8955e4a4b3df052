"""What is drawn of a tree, and where its words, boxes and edges go.

`Outline`: nodes that know the same are one vertex with several ways out. In a large tree,
ways that few rows take are folded: those of one vertex into one line, and a vertex of which
all ways are rare into a line of its own.

`Layout`: the picture reads from left to right. Every leaf has a row of its own; a node
stands in the row of the first leaf below it, so its first way goes on straight to the right
and the others hang below, side by side, the last one leftmost. Every decision moves one
column to the right. Hence no two vertices share a cell of this grid, and no two edges
cross. A row is as high as what stands in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from sensortree.reports.words import known_words, percent, purchase_lines, range_words
from sensortree.sensors.sensor import SensorSet
from sensortree.tree.forks import Way, fork_at, leaves_behind
from sensortree.tree.tree import SensorTree
from sensortree.types import Array

SIZE = 8.0  # of the letters; like all lengths below, in points
LINE = 1.25 * SIZE
PAD = 5.0  # between a text and what is around it
INDENT = 12.0  # from a node's left side to the last edge that hangs below it
BAR = 72.0  # length of a bar that shows a mix of classes
TRUTH = "true classes"  # head of these bars
LINES = 32  # leaves of a tree that is drawn whole
NO_BREAK = "\u00a0"  # a space that keeps a price and a share in one line
THINNEST, THICKEST = 0.8, 8.0  # edges that no row and that every row takes, in points
RARE = 0.01  # share of rows; in a larger tree a way that fewer take is folded


@dataclass(frozen=True)
class Outline:
    """What is drawn of a tree, from one vertex on."""

    nodes: tuple[int, ...]  # that the vertex stands for; none at an end
    # Leaves that may be reached; at an end of several leaves these are folded.
    leaves: tuple[int, ...]
    # Sensors known there; where several ways are gathered, at their fork.
    known: frozenset[str]
    below: tuple[Outline, ...] = ()  # what its ways lead to; none at an end
    gathered: int = 1  # how many ways of its parent lead here

    @property
    def n_lines(self) -> int:
        """Ends, each a line of the picture."""
        return sum(outline.n_lines for outline in self.below) or 1


def without_rare(
    tree: SensorTree, leaf_share: Array, max_leaves: int | None
) -> Outline:
    """Outline of a tree in which ways that few rows take are folded.

    Nothing is folded in a tree of at most `max_leaves`. In a larger one, all that fewer
    than 1 % of the rows take is, and more, the rarest first, until so many lines are left.
    """
    if max_leaves is None or tree.n_leaves <= max_leaves:
        return _outline(tree)
    shares = [*leaf_share, *(np.abs(tree.path_signs).T @ leaf_share)]
    # Folding more never makes more lines, so the least that is enough is found by halving.
    enough = sorted({RARE, *(float(np.nextafter(s, 2)) for s in shares if s >= RARE)})
    low, high = 0, len(enough) - 1
    while low < high:
        middle = (low + high) // 2
        if _folded(tree, leaf_share, enough[middle]).n_lines <= max_leaves:
            high = middle
        else:
            low = middle + 1
    return _folded(tree, leaf_share, enough[low])


def around(tree: SensorTree, on_way: Sequence[int], max_leaves: int | None) -> Outline:
    """Outline of a tree in which every way off one row's way is folded by itself.

    `on_way` are the nodes that the row passed. Nothing is folded in a tree of at most
    `max_leaves`.
    """
    if max_leaves is None or tree.n_leaves <= max_leaves:
        return _outline(tree)
    passed = {0, *on_way}

    def shown(ways: Sequence[Way]) -> list[Way | Outline]:
        return [way if way.end in passed else _end(tree, way.end) for way in ways]

    return _outline(tree, shown)


def _folded(tree: SensorTree, leaf_share: Array, least: float) -> Outline:
    """Outline in which ways that less than a share of the rows take are folded."""

    def shown(ways: Sequence[Way]) -> list[Way | Outline]:
        ends = [_end(tree, way.end) for way in ways]
        rare = [end for end in ends if leaf_share[list(end.leaves)].sum() < least]
        folded = tuple(leaf for end in rare for leaf in end.leaves)
        if len(rare) == len(ends):
            return []
        if len(folded) < 2:  # a line either way
            return list(ways)
        kept: list[Way | Outline] = [
            way for way, end in zip(ways, ends, strict=True) if end not in rare
        ]
        fork = tree.nodes[ways[0].signs[0][0]]
        rest = Outline((), folded, fork.sensors, gathered=len(rare))
        return [*kept, rare[0] if len(rare) == 1 else rest]

    return _outline(tree, shown)


def _outline(
    tree: SensorTree, shown: Callable[[Sequence[Way]], Sequence[Way | Outline]] = list
) -> Outline:
    """Outline of a tree; `shown` says what is shown of the ways out of a fork."""

    def outline(end: int) -> Outline:
        here = _end(tree, end)
        if end < 0:
            return here
        fork = fork_at(tree, end)
        below = tuple(
            way if isinstance(way, Outline) else outline(way.end)
            for way in shown(fork.ways)
        )
        return replace(here, nodes=fork.nodes, below=below) if below else here

    return outline(0 if tree.n_nodes else ~0)


def _end(tree: SensorTree, end: int) -> Outline:
    """All that is behind a way as one line."""
    vertex = tree.leaves[~end] if end < 0 else tree.nodes[end]
    return Outline((), leaves_behind(tree, end), vertex.sensors)


@dataclass(frozen=True, eq=False)
class Vertex:
    """A vertex of the picture with the edge that leads to it."""

    # The tree's nodes that it stands for: one, or several that know the same; none at
    # an end of the picture.
    nodes: tuple[int, ...]
    # The leaves that may be reached from it; an end of several leaves is folded.
    leaves: tuple[int, ...]
    parent: Vertex | None = field(repr=False)
    way: int  # its place among its parent's ways
    n_ways: int  # ways that lead on from it
    gathered: int  # how many ways of the tree the edge that leads here stands for
    known: tuple[str, ...]  # sensors known here
    # Sensors bought on the way here from the parent; at the root, those known there.
    bought: tuple[str, ...]
    price: float  # price of `bought`
    share: float  # share of rows that come here
    row: int  # cell of the picture
    column: int
    refers: bool = False  # whether it is an end where rows are referred to a person

    @property
    def is_leaf(self) -> bool:
        """Whether it is an end of the picture: a leaf, or several that are folded."""
        return not self.nodes

    @property
    def is_folded(self) -> bool:
        """Whether it stands for several leaves."""
        return self.is_leaf and len(self.leaves) > 1

    @property
    def number(self) -> int:
        """First of its nodes, or of its leaves, as the tree numbers them."""
        return (self.nodes or self.leaves)[0]

    @property
    def name(self) -> str:
        """What it is, with its numbers."""
        kind = "leaf" if self.is_leaf else "node"
        numbers = self.nodes or self.leaves
        if len(numbers) == 1:
            return f"{kind} {numbers[0]}"
        return f"{'leaves' if self.is_leaf else 'nodes'} {range_words(numbers)}"

    @property
    def thickness(self) -> float:
        """Width of the edge that leads here, in points."""
        return THINNEST + (THICKEST - THINNEST) * self.share

    @property
    def kind(self) -> str:
        """What the edge that leads here is: "buy", "stop" (or rare), or "unreached"."""
        if not self.share:
            return "unreached"
        return "buy" if self.bought else "stop"


def placed(
    outline: Outline,
    sensors: SensorSet,
    node_share: Array,
    leaf_share: Array,
    price: Callable[[frozenset[str], frozenset[str]], float],
    tree: SensorTree,
) -> tuple[Vertex, ...]:
    """Vertices of an outline of a tree, depth first, each in its cell of the picture.

    `price` is given what is known at a vertex, and at its parent.
    """
    found: list[Vertex] = []
    n_rows = 0

    def place(part: Outline, parent: Vertex | None, way: int) -> None:
        nonlocal n_rows
        before = frozenset(parent.known if parent else ())
        if part.nodes:
            share = float(node_share[part.nodes[0]])
        else:
            share = float(leaf_share[list(part.leaves)].sum())
        here = Vertex(
            part.nodes,
            part.leaves,
            parent,
            way,
            len(part.below),
            part.gathered,
            sensors.in_order(part.known),
            sensors.in_order(part.known - before),
            price(part.known, before),
            share,
            n_rows,
            parent.column + 1 if parent else 0,
            not part.nodes and all(tree.leaves[leaf].refers for leaf in part.leaves),
        )
        found.append(here)
        n_rows += not part.below
        for i, below in enumerate(part.below):
            place(below, here, i)

    place(outline, None, 0)
    return tuple(found)


def edge_words(vertex: Vertex, price: str, share: bool = False) -> str:
    """Words on the edge that leads to a vertex: what is decided, and its price.

    With `share`, also how many rows take it, where there are more ways than two.
    """
    many = share and vertex.parent is not None and vertex.parent.n_ways > 2
    taken = f": {percent(vertex.share)}".replace(" ", NO_BREAK) if many else ""
    if vertex.gathered > 1:
        return f"{vertex.gathered} rarer ways{taken}"
    if vertex.bought:
        return purchase_lines(vertex.bought, price + taken)
    does = "to a person" if vertex.refers else "stop"
    return "" if vertex.parent is None else f"{does}{taken}"


def node_words(vertex: Vertex, second: str) -> str:
    """What stands in a node's box: what is known there, and a second line."""
    return f"{known_words(vertex.known)}\n{second}"


@dataclass(frozen=True)
class Mix:
    """Classes of the rows at the ends of the picture, as bars with a legend."""

    # Of the classes that have a colour, and of the others together.
    names: tuple[str, ...]
    # For every end the share of each; empty where no row came.
    shares: Sequence[Sequence[float]]


@dataclass(frozen=True)
class Column:
    """A column of the table, a cell for each row."""

    head: str
    cells: Sequence[str]
    align: str = "right"


class Layout:
    """Where everything goes, in points from the upper left corner, y downwards negative."""

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
        self.x = {0: PAD + self._label_width(self.vertices[0])}  # left, of each column
        self.right: dict[int, float] = {}  # of each node's box, by its number
        self.table_left = self.x[0]
        for column in range(1 + max(v.column for v in self.vertices)):
            for v in self.vertices:
                if v.column == column and not v.is_leaf:
                    right = self.x[column] + self._measure(self.words[v]) + 2 * PAD
                    self.right[v.number] = right
                    self.table_left = max(self.table_left, right + 3 * PAD)
            at = max(self.right.values(), default=self.x[column]) + 2 * PAD
            for v in self.vertices:
                if v.parent is None or v.parent.column != column:
                    continue
                end = self.start(v) + self._label_width(v)
                if v.is_leaf:  # nothing else stands in the rest of its row
                    self.table_left = max(self.table_left, end)
                else:
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
        self.table: list[tuple[Column, float]] = []  # and the side of its words
        for column in self.columns:
            right = left + max(map(self._measure, (column.head, *column.cells)))
            self.table.append((column, left if column.align == "left" else right))
            left = right + 3 * PAD
        self.heads = [(column.head, x, column.align) for column, x in self.table]
        self._bars = left
        if self.mix is not None:
            self.heads.append((TRUTH, left, "left"))
            left += max(BAR, self._measure(TRUTH)) + 3 * PAD
        self.width = left - 2 * PAD

    def bar(self, leaf: Vertex) -> Iterator[tuple[int, float, float]]:
        """Parts of a leaf's bar: number of the class, left side, width."""
        assert self.mix is not None
        left = self._bars
        for i, share in enumerate(self.mix.shares[leaf.row]):
            yield i, left, BAR * share
            left += BAR * share

    def _set_legend(self) -> None:
        """Put the names of the classes below, in as many lines as they need."""
        # Name of each class, and where it stands with a square before it.
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
