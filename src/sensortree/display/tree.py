"""`TreeDisplay`: which sensors are bought, for how many rows, at what price.

The picture reads from left to right. Every leaf has a row of its own; a node stands in
the row of the first leaf below it, so its negative child goes on straight to the right
and its positive child hangs below. Buying moves one column to the right. Hence no two
vertices share a cell of this grid, and no two edges cross.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sensortree.display.tradeoff import new_figure
from sensortree.sensors import SensorSet
from sensortree.tree import Leaf, Node, SensorTree

Array = NDArray[np.float64]

BUY, STOP, UNREACHED = "#0072B2", "#595959", "#A6A6A6"  # also apart in grey
WRAP = 26  # characters in a line of sensor names
SIZE = 8.0  # of the letters; like all lengths below, in points
LINE = 1.25 * SIZE
PAD = 5.0  # between a text and what is around it
INDENT = 12.0  # from a node's left side to the edge that hangs below it
THINNEST, THICKEST = 0.8, 8.0  # edges that no row and that every row takes


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


class TreeDisplay:
    """A tree of sensors, with the share of rows that takes each way.

    Parameters
    ----------
    tree : SensorTree
    sensors : SensorSet
    leaf_share : array-like of shape (n_leaves,)
        Share of rows that reach each leaf.
    leaf_accuracy : array-like of shape (n_leaves,), default=None
        Share of right answers at each leaf, NaN where no row came.
    unit : str, default=""
        What a price is counted in, for the head of the cost column.

    Attributes
    ----------
    node_share : ndarray of shape (n_nodes,)
        Share of rows that reach each node.
    leaf_cost : ndarray of shape (n_leaves,)
        Price of all sensors known at each leaf.
    vertices : tuple of Vertex
        The tree, depth first, each vertex with the edge that leads to it.
    ax_ : matplotlib Axes
        Where `plot` drew.
    figure_ : matplotlib Figure
        The figure of `ax_`.
    nodes_ : list of matplotlib Text
        The boxes, in the tree's numbering.
    edges_ : list of matplotlib Line2D
        The edges, as in `vertices`; the root has one if something is known there.
    edge_labels_ : list of matplotlib Text
        What is written on the edges.
    leaves_ : list of lists of matplotlib Text
        The cells of each leaf's line in the table on the right.

    Examples
    --------
    >>> import numpy as np
    >>> from sensortree import SensorTreeClassifier
    >>> from sensortree.display import TreeDisplay
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = X[:, 0] + (np.abs(X[:, 0]) < 0.5) * X[:, 1] > 0
    >>> model = SensorTreeClassifier(
    ...     {"cheap": [0], "dear": [1]}, costs={"cheap": 0, "dear": 5}, cost_weight=0.02)
    >>> display = TreeDisplay.from_estimator(model.fit(X, y), X, y)
    >>> float(display.leaf_share.sum())
    1.0
    >>> display.leaf_cost
    array([0., 5.])

    Then ``display.plot()`` draws it.
    """

    def __init__(
        self,
        tree: SensorTree,
        sensors: SensorSet,
        leaf_share: ArrayLike,
        leaf_accuracy: ArrayLike | None = None,
        *,
        unit: str = "",
    ):
        self.tree = tree
        self.sensors = sensors
        self.leaf_share = np.asarray(leaf_share, dtype=np.float64)
        self.leaf_accuracy = (
            None if leaf_accuracy is None else np.asarray(leaf_accuracy, np.float64)
        )
        self.unit = unit

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any, y: Any = None, *, unit: str = ""
    ) -> TreeDisplay:
        """Follow the rows of a table through a fitted tree.

        Parameters
        ----------
        model : fitted classifier with ``tree_``, ``sensors_``, ``apply`` and ``predict``
        X : array-like or data frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), default=None
            Right answers, for the accuracy at the leaves.
        unit : str, default=""
            What a price is counted in.

        Returns
        -------
        display : TreeDisplay
            Not drawn yet; call its `plot`.
        """
        leaf = model.apply(X)
        n_leaves = model.tree_.n_leaves
        rows = np.bincount(leaf, minlength=n_leaves)
        accuracy = None
        if y is not None:
            correct = np.asarray(model.predict(X)) == np.asarray(y)
            right = np.bincount(leaf, weights=correct, minlength=n_leaves)
            accuracy = np.divide(
                right, rows, out=np.full(n_leaves, np.nan), where=rows > 0
            )
        return cls(model.tree_, model.sensors_, rows / len(leaf), accuracy, unit=unit)

    @property
    def node_share(self) -> Array:
        """Share of rows that reach each node, (n_nodes,)."""
        return np.asarray(np.abs(self.tree.path_signs).T @ self.leaf_share)

    @property
    def leaf_cost(self) -> Array:
        """Price of all sensors known at each leaf, (n_leaves,)."""
        return np.array(
            [self.sensors.cost_of(leaf.sensors) for leaf in self.tree.leaves]
        )

    @property
    def vertices(self) -> tuple[Vertex, ...]:
        """The tree, depth first, each vertex with the edge that leads to it."""
        node_share = self.node_share
        placed: list[Vertex] = []
        count = {Node: 0, Leaf: 0}

        def place(vertex: Leaf | Node, parent: Vertex | None, positive: bool) -> None:
            number, row = count[type(vertex)], count[Leaf]
            count[type(vertex)] += 1
            is_leaf = isinstance(vertex, Leaf)
            bought = vertex.sensors - set(parent.known if parent else ())
            here = Vertex(
                number,
                is_leaf,
                parent,
                positive,
                self.sensors.in_order(vertex.sensors),
                self.sensors.in_order(bought),
                self.sensors.cost_of(bought),
                float((self.leaf_share if is_leaf else node_share)[number]),
                row,
                _column(parent, hangs_below=positive and not is_leaf and not bought),
            )
            placed.append(here)
            if isinstance(vertex, Node):
                place(vertex.negative, here, False)
                place(vertex.positive, here, True)

        place(self.tree.root, None, False)
        return tuple(placed)

    def plot(self, ax: Any = None) -> TreeDisplay:
        """Draw the tree.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw, with letters as large as fit there; by default a new figure
            that is as large as the tree needs.

        Returns
        -------
        self
        """
        figure = new_figure(1, 1) if ax is None else ax.figure
        layout = _Layout(self)
        if ax is None:
            figure.set_size_inches(layout.width / 72, layout.height / 72)
            ax = figure.add_axes((0, 0, 1, 1))
        self.ax_, self.figure_ = ax, figure
        pen = _Pen(ax, layout, _prepare(ax, layout))
        pen.head()
        edges = [v for v in layout.vertices if v.parent or v.bought]
        self.edges_ = [pen.edge(v) for v in edges]
        self.edge_labels_ = [pen.edge_label(v) for v in edges if layout.labels[v]]
        self.nodes_ = [pen.node(v) for v in layout.vertices if not v.is_leaf]
        self.leaves_ = [pen.leaf(v) for v in layout.vertices if v.is_leaf]
        return self


def _column(parent: Vertex | None, hangs_below: bool) -> int:
    """Column of a vertex: a choice among several stays in the column of its parent."""
    if parent is None:
        return 0
    return parent.column if hangs_below else parent.column + 1


def _node_words(vertex: Vertex) -> str:
    """Words in a node's box: what is known there, and for how many rows."""
    if vertex.parent and not vertex.bought and vertex.positive:
        known = "otherwise"
    else:
        known = _wrapped(vertex.known) or "nothing known"
    return f"{known}\nnode {vertex.number}: {_percent(vertex.share)} of rows"


def _edge_words(vertex: Vertex, money: Callable[[float], str]) -> str:
    """Words on the edge that leads to a vertex: what is decided, and its price."""
    if vertex.bought:
        return "buy " + _wrapped((*vertex.bought, f"+{money(vertex.price)}"))
    if vertex.parent is None or (vertex.positive and not vertex.is_leaf):
        return ""
    return "stop" if vertex.is_leaf else "go on"


def _wrapped(names: Iterable[str]) -> str:
    return "\n".join(
        textwrap.wrap(
            ", ".join(names), WRAP, break_long_words=False, break_on_hyphens=False
        )
    )


def _percent(share: float) -> str:
    """Share in percent; a few rows are not written as none, nor most as all."""
    if 0 < share < 0.001:
        return "< 0.1 %"
    if 0.999 < share < 1:
        return "> 99.9 %"
    return f"{100 * share:.1f} %"


def money_format(prices: ArrayLike) -> Callable[[float], str]:
    """Way to write prices: with as many decimals as all of them need, up to two."""
    prices = np.asarray(prices, dtype=np.float64)
    for decimals in (0, 2):
        if np.allclose(prices, np.round(prices, decimals), rtol=0, atol=1e-9):
            return lambda price: f"{price:,.{decimals}f}"
    return lambda price: f"{price:,.4g}"


class _Layout:
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

    def __init__(self, display: TreeDisplay):
        self.vertices = display.vertices
        money = money_format(display.sensors.costs)
        self.words = {v: _node_words(v) for v in self.vertices if not v.is_leaf}
        self.labels = {v: _edge_words(v, money) for v in self.vertices}
        self.columns = _table(display, money)
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


def _table(
    display: TreeDisplay, money: Callable[[float], str]
) -> list[tuple[str, list[str], str]]:
    """Columns of the table of leaves: head, cells, alignment."""
    unit = f"\n({display.unit})" if display.unit else ""
    in_order = display.sensors.in_order
    leaves = display.tree.leaves
    columns = [
        ("leaf", [str(number) for number in range(len(leaves))], "right"),
        (
            "sensors known",
            [_wrapped(in_order(leaf.sensors)) or "nothing" for leaf in leaves],
            "left",
        ),
        ("share\nof rows", [_percent(share) for share in display.leaf_share], "right"),
        (f"cost{unit}", [money(cost) for cost in display.leaf_cost], "right"),
    ]
    if display.leaf_accuracy is not None:
        accuracy = ["–" if np.isnan(a) else f"{a:.3f}" for a in display.leaf_accuracy]
        columns.append(("accuracy", accuracy, "right"))
    return columns


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


def _prepare(ax: Any, layout: _Layout) -> float:
    """Let the data units of the axes be points, and return the scale that this takes."""
    pixels = ax.get_window_extent()
    width, height = (
        side * 72 / ax.figure.dpi for side in (pixels.width, pixels.height)
    )
    scale = min(1.0, width / layout.width, height / layout.height)
    ax.set_xlim(0, width / scale)
    ax.set_ylim(-height / scale, 0)
    ax.axis("off")
    return float(scale)


class _Pen:
    """Draws the parts of a layout on axes."""

    def __init__(self, ax: Any, layout: _Layout, scale: float):
        self.ax = ax
        self.layout = layout
        self.scale = scale

    def head(self) -> None:
        """Write the head of the table."""
        for head, _, left, right, align in self.layout.table:
            x = left if align == "left" else right
            for i, line in enumerate(reversed(head.split("\n"))):
                y = -self.layout.head + PAD + i * LINE
                self._text(x, y, line, STOP, ha=align, va="baseline")

    def edge(self, vertex: Vertex) -> Any:
        """Draw the edge that leads to a vertex."""
        layout, parent = self.layout, vertex.parent
        start, y = layout.start(vertex), layout.y(vertex)
        end = layout.table_left - PAD if vertex.is_leaf else layout.x[vertex.column]
        if parent and vertex.column == parent.column:
            xs, ys = [start, start], [layout.y(parent), y]
        elif parent and vertex.positive:
            xs, ys = [start, start, end], [layout.y(parent), y, y]
        else:
            beneath = PAD if parent else 0  # begins under the parent's box
            xs, ys = [start - beneath, end], [y, y]
        return self.ax.plot(
            xs,
            ys,
            color=_colour(vertex),
            linewidth=_thickness(vertex) * self.scale,
            linestyle="-" if vertex.share else (0, (3, 2)),
            solid_capstyle="butt",
            solid_joinstyle="miter",
            zorder=1,
        )[0]

    def edge_label(self, vertex: Vertex) -> Any:
        """Write above the edge that leads to a vertex."""
        x = self.layout.start(vertex) + 2 * PAD
        y = self.layout.y(vertex) + _thickness(vertex) / 2 + 2
        words = self.layout.labels[vertex]
        return self._text(x, y, words, _colour(vertex), va="bottom")

    def node(self, vertex: Vertex) -> Any:
        """Draw a node's box."""
        frame = {
            "boxstyle": f"round,pad={(PAD - 1) / SIZE}",
            "facecolor": "white",
            "edgecolor": _colour(vertex),
            "linewidth": self.scale,
        }
        x = self.layout.x[vertex.column] + PAD
        words = self.layout.words[vertex]
        return self._text(x, self.layout.y(vertex), words, _ink(vertex), bbox=frame)

    def leaf(self, vertex: Vertex) -> list[Any]:
        """Write a leaf's line of the table."""
        return [
            self._text(
                left if align == "left" else right,
                self.layout.y(vertex),
                cells[vertex.number],
                _ink(vertex),
                ha=align,
            )
            for _, cells, left, right, align in self.layout.table
        ]

    def _text(self, x: float, y: float, text: str, colour: str, **options: Any) -> Any:
        return self.ax.text(
            x,
            y,
            text,
            color=colour,
            fontsize=SIZE * self.scale,
            linespacing=LINE / SIZE,
            parse_math=False,
            **{"va": "center", "ha": "left", "zorder": 2, **options},
        )


def _thickness(vertex: Vertex) -> float:
    return THINNEST + (THICKEST - THINNEST) * vertex.share


def _colour(vertex: Vertex) -> str:
    if not vertex.share:
        return UNREACHED
    return BUY if vertex.bought else STOP


def _ink(vertex: Vertex) -> str:
    return "black" if vertex.share else UNREACHED
