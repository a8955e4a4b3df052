"""`Pen`: draws the parts of a layout on axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sensortree.display.colours import CLASSES, Colours
from sensortree.display.layout import BAR, LINE, PAD, SIZE, TRUTH, Layout
from sensortree.display.tradeoff import new_figure
from sensortree.display.vertices import Vertex


class Pen:
    """Draws the parts of a layout on axes."""

    def __init__(self, ax: Any, layout: Layout, scale: float):
        self.ax = ax
        self.layout = layout
        self.scale = scale
        self.colours = Colours.on(ax.figure.get_facecolor())

    def head(self) -> None:
        """Write the head of the table."""
        for column, left, right in self.layout.table:
            x = left if column.align == "left" else right
            self._head_word(x, column.head, column.align)
        if self.layout.bars is not None:
            self._head_word(self.layout.bars, TRUTH, "left")

    def _head_word(self, x: float, head: str, align: str) -> None:
        y = -self.layout.head + PAD  # of the last lines, which stand beside each other
        self._text(x, y, head, self.colours.stop, ha=align, va="baseline")

    def edge(self, vertex: Vertex) -> Any:
        """Draw the edge that leads to a vertex."""
        xs, ys = zip(*self.layout.way(vertex), strict=True)
        return self.ax.plot(
            xs,
            ys,
            color=self.colours.of(vertex.kind),
            linewidth=vertex.thickness * self.scale,
            linestyle="-" if vertex.share else (0, (3, 2)),
            solid_capstyle="butt",
            solid_joinstyle="miter",
            zorder=1,
        )[0]

    def edge_label(self, vertex: Vertex) -> Any:
        """Write above the edge that leads to a vertex."""
        x, y = self.layout.label_at(vertex)
        colour = self.colours.of(vertex.kind)
        return self._text(x, y, self.layout.labels[vertex], colour, va="bottom")

    def node(self, vertex: Vertex) -> Any:
        """Draw a node's box."""
        frame = {
            "boxstyle": f"round,pad={(PAD - 1) / SIZE}",
            "facecolor": self.colours.paper,
            "edgecolor": self.colours.of(vertex.kind),
            "linewidth": self.scale,
        }
        x = self.layout.x[vertex.column] + PAD
        words, y = self.layout.words[vertex], self.layout.y(vertex)
        return self._text(x, y, words, self._ink(vertex), bbox=frame)

    def leaf(self, vertex: Vertex) -> list[Any]:
        """Write a leaf's line of the table."""
        return [
            self._text(
                left if column.align == "left" else right,
                self.layout.y(vertex),
                column.cells[vertex.row],
                self._ink(vertex),
                ha=column.align,
            )
            for column, left, right in self.layout.table
        ]

    def bar(self, vertex: Vertex) -> list[Any]:
        """Draw the classes of a leaf as a bar of several colours."""
        layout, parts = self.layout, []
        assert layout.mix is not None
        assert layout.bars is not None
        left = layout.bars
        for i, share in enumerate(layout.mix.shares[vertex.row]):
            where = (left, layout.y(vertex) - LINE / 2)
            parts.append(self._rectangle(where, BAR * share, i))
            left += BAR * share
        return parts

    def legend(self) -> list[Any]:
        """Write the names of the classes, each with its colour before it."""
        named = []
        for i, (name, x, y) in enumerate(self.layout.legend):
            self._rectangle((x, y - 0.35 * LINE), 0.7 * LINE, i, 0.7 * LINE)
            named.append(self._text(x + LINE, y, name, self.colours.ink))
        return named

    def _rectangle(
        self, where: tuple[float, float], width: float, i: int, height: float = LINE
    ) -> Any:
        from matplotlib.patches import Rectangle

        return self.ax.add_patch(
            Rectangle(
                where,
                width,
                height,
                facecolor=CLASSES[i],
                edgecolor=self.colours.paper,
                linewidth=0.5 * self.scale,
            )
        )

    def _ink(self, vertex: Vertex) -> str:
        if vertex.share and vertex.is_folded:
            return self.colours.stop
        return self.colours.ink if vertex.share else self.colours.unreached

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


def font_width() -> Callable[[str], float]:
    """Way to measure the longest line of a text in matplotlib's font."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=SIZE)

    def width(text: str) -> float:
        return max(
            float(text_to_path.get_text_width_height_descent(line, font, False)[0])
            for line in text.split("\n")
        )

    return width


def draw(
    display: Any, arrange: Callable[[Callable[[str], float]], Layout], ax: Any
) -> None:
    """Draw a layout for a display, which keeps the axes, the figure and the artists.

    Without axes a new figure is made that is as large as the layout needs. `arrange` is
    given a way to measure texts.
    """
    figure = new_figure(1, 1) if ax is None else ax.figure
    layout = arrange(font_width())
    if ax is None:
        figure.set_size_inches(layout.width / 72, layout.height / 72)
        ax = figure.add_axes((0, 0, 1, 1))
    display.ax_, display.figure_ = ax, figure
    pen = Pen(ax, layout, prepare(ax, layout))
    pen.head()
    edges = [v for v in layout.vertices if v.parent or v.bought]
    leaves = [v for v in layout.vertices if v.is_leaf]
    display.edges_ = [pen.edge(v) for v in edges]
    display.edge_labels_ = [pen.edge_label(v) for v in edges if layout.labels[v]]
    display.nodes_ = [pen.node(v) for v in layout.vertices if not v.is_leaf]
    display.leaves_ = [pen.leaf(v) for v in leaves]
    display.bars_ = [pen.bar(v) for v in leaves] if layout.mix else []
    display.legend_ = pen.legend()
