"""`Pen`: draws the parts of a layout on axes."""

from __future__ import annotations

from typing import Any

from sensortree.display.layout import (
    LINE,
    PAD,
    SIZE,
    THICKEST,
    THINNEST,
    Layout,
    Vertex,
)
from sensortree.display.tradeoff import new_figure

BUY, STOP, UNREACHED = "#0072B2", "#595959", "#A6A6A6"  # also apart in grey


class Pen:
    """Draws the parts of a layout on axes."""

    def __init__(self, ax: Any, layout: Layout, scale: float):
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


def prepare(ax: Any, layout: Layout) -> float:
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


def _thickness(vertex: Vertex) -> float:
    return THINNEST + (THICKEST - THINNEST) * vertex.share


def _colour(vertex: Vertex) -> str:
    if not vertex.share:
        return UNREACHED
    return BUY if vertex.bought else STOP


def _ink(vertex: Vertex) -> str:
    return "black" if vertex.share else UNREACHED


def draw(display: Any, layout: Layout, ax: Any) -> None:
    """Draw a layout for a display, which keeps the axes, the figure and the artists.

    Without axes a new figure is made that is as large as the layout needs.
    """
    figure = new_figure(1, 1) if ax is None else ax.figure
    if ax is None:
        figure.set_size_inches(layout.width / 72, layout.height / 72)
        ax = figure.add_axes((0, 0, 1, 1))
    display.ax_, display.figure_ = ax, figure
    pen = Pen(ax, layout, prepare(ax, layout))
    pen.head()
    edges = [v for v in layout.vertices if v.parent or v.bought]
    display.edges_ = [pen.edge(v) for v in edges]
    display.edge_labels_ = [pen.edge_label(v) for v in edges if layout.labels[v]]
    display.nodes_ = [pen.node(v) for v in layout.vertices if not v.is_leaf]
    display.leaves_ = [pen.leaf(v) for v in layout.vertices if v.is_leaf]
