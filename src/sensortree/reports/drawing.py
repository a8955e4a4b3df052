"""`Picture`: a layout drawn as the text of an SVG picture, or by matplotlib.

An SVG picture needs nothing from elsewhere. Light and dark follow the page: a theme that a
notebook or a site names, else what the reader's system prefers. All rules are bound to a
class that is made from the picture itself, so that pictures on one page do not disturb each
other.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from importlib.resources import files
from typing import Any, Self

from sensortree.exceptions import MissingDependencyError
from sensortree.reports.layout import LINE, PAD, SIZE, Layout, Vertex
from sensortree.reports.words import estimated_width

# Of classes; apart for the colour-blind (Okabe, Ito) and on both papers. The last is for
# all the classes that have no colour of their own.
CLASSES = ("#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#A39A00", "#8C8C8C")


@dataclass(frozen=True)
class Colours:
    """What paper, letters and edges are drawn with."""

    paper: Any  # of the background
    ink: str  # of letters
    buy: str  # of edges that buy
    stop: str  # of those that do not
    unreached: str  # of those that no row takes

    def of(self, kind: str) -> str:
        """Colour of a kind of edge."""
        colour: str = getattr(self, kind)
        return colour

    @staticmethod
    def on(paper: Any) -> Colours:
        """Colours for a figure whose background is given as red, green, blue, alpha."""
        red, green, blue, alpha = paper
        if not alpha:  # nobody knows what will be behind it
            return LIGHT
        lightness = 0.299 * red + 0.587 * green + 0.114 * blue
        return replace(DARK if lightness < 0.5 else LIGHT, paper=paper)


LIGHT = Colours("#FFFFFF", "#111111", "#0072B2", "#595959", "#949494")
DARK = Colours("#16191D", "#ECEFF2", "#5CB8F0", "#ADB3BA", "#757B82")

SCALE, LEAST = 1.5, 1.1  # pixels per point, and in a narrow page
PHONE = 600  # pixels up to which a page is that of a phone
BASELINE = (LINE + 0.7 * SIZE) / 2  # of a line of text, from its top
# How JupyterLab, VS Code, Colab and Sphinx themes say that they are dark or light.
DARK_PAGES = (
    "[data-jp-theme-light=false]",
    ".vscode-dark",
    ".vscode-high-contrast",
    "[theme=dark]",
    "[data-theme=dark]",
)
LIGHT_PAGES = (
    "[data-jp-theme-light=true]",
    ".vscode-light",
    "[theme=light]",
    "[data-theme=light]",
)
NOTE = (
    "An edge is as wide as the share of rows that takes it; a dashed one is taken by "
    "none. Rest the mouse on a part of the tree to read more. A double click zooms in, and "
    "out again, as the wheel does while Ctrl is held; what is zoomed in can be dragged. "
    "On a narrow screen the picture scrolls sideways."
)
ZOOM = files("sensortree.reports").joinpath("zoom.js").read_text("utf-8")
ZOOM = ZOOM[ZOOM.index("\n\n") + 1 :]  # without the comment at its head
NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


# as SVG -----------------------------------------------------------------------------------


def boxed(picture: str) -> str:
    """A picture in a box of its own, which scrolls where the page is too narrow."""
    return f'<div style="overflow-x:auto;margin:0.5em 0">{picture}</div>'


def page(picture: str, title: str, note: str = NOTE) -> str:
    """HTML page around a picture, with a note below it."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escaped(title)}</title>\n"
        "<style>\n:root{color-scheme:light dark}\n"
        f"body{{margin:1em;font:14px sans-serif;background:{LIGHT.paper};"
        f"color:{LIGHT.ink}}}\n"
        f"@media (prefers-color-scheme:dark){{body{{background:{DARK.paper};"
        f"color:{DARK.ink}}}}}\n</style>\n</head>\n"
        f"<body>\n{picture}\n<p>{note}</p>\n</body>\n</html>\n"
    )


def _style(name: str, least: float) -> str:
    """Rules for letters and lines, and for the colours of every theme.

    In a page that is too narrow the picture shrinks, down to a width of `least` pixels;
    on a phone, where letters would be too small, it does not shrink at all.
    """
    dark, light = (f":is({','.join(names)}) " for names in (DARK_PAGES, LIGHT_PAGES))
    fixed = (
        f".{name}{{font:{SIZE:g}px Helvetica,Arial,'Liberation Sans',sans-serif}}\n"
        # Inside, since some programs that are no browsers take the height as it stands.
        f"@media screen{{.{name}{{max-width:max(100%,{least:.0f}px);height:auto}}}}\n"
        f"@media screen and (max-width:{PHONE}px){{.{name}{{max-width:none}}}}\n"
        f".{name} path{{fill:none}}\n"
        f".{name} .unreached path{{stroke-dasharray:3 2}}\n"
        f".{name} .row{{fill:none;pointer-events:all}}\n"
        f".{name} .end{{text-anchor:end}}"
    )
    return "\n".join(
        [
            fixed,
            *_colour_rules(f".{name}", LIGHT),
            "@media (prefers-color-scheme:dark){",
            *_colour_rules(f".{name}", DARK),
            "}",
            *_colour_rules(f"{dark}.{name}", DARK),
            *_colour_rules(f"{light}.{name}", LIGHT),
        ]
    )


def _colour_rules(where: str, colours: Colours) -> Iterator[str]:
    yield f"{where} .paper,{where} .box{{fill:{colours.paper}}}"
    yield f"{where} text{{fill:{colours.ink}}}"
    yield f"{where} .head text,{where} .folded text{{fill:{colours.stop}}}"
    yield f"{where} .unreached text{{fill:{colours.unreached}}}"
    for kind in ("buy", "stop", "unreached"):
        colour = colours.of(kind)
        yield f"{where} .{kind} path,{where} .{kind} .box{{stroke:{colour}}}"
        yield f"{where} .edge.{kind} text{{fill:{colour}}}"


def _parts(layout: Layout, tip: Callable[[Vertex], Sequence[str]]) -> Iterator[str]:
    """Elements of the picture, from back to front."""
    size = f'width="{layout.width:.1f}" height="{layout.height:.1f}"'
    yield f'<rect class="paper" {size} rx="3"/>'
    yield _head(layout)
    for vertex in layout.vertices:
        if vertex.parent or vertex.bought:
            yield _edge(layout, vertex, tip(vertex))
    for vertex in layout.vertices:
        part = _leaf if vertex.is_leaf else _node
        yield part(layout, vertex, tip(vertex))
    for i, (name, x, y) in enumerate(layout.legend):
        yield _rectangle(x, 0.35 * LINE - y - 0.7 * LINE, 0.7 * LINE, 0.7 * LINE, i)
        yield _words(x + LINE, y, name)


def _head(layout: Layout) -> str:
    """Head of the table; its last lines stand beside each other."""
    middle = PAD - layout.head
    return _group(
        "head",
        (),
        [
            _words(x, middle + LINE * (head.count("\n") + 1) / 2, head, align)
            for head, x, align in layout.heads
        ],
    )


def _edge(layout: Layout, vertex: Vertex, tip: Sequence[str]) -> str:
    points = layout.way(vertex)
    way = "M" + "L".join(f"{x:.1f} {-y:.1f}" for x, y in points)
    parts = [f'<path d="{way}" stroke-width="{vertex.thickness:.2f}"/>']
    label = layout.labels[vertex]
    if label:
        x, y = layout.label_at(vertex)
        parts.append(_words(x, y + LINE * (label.count("\n") + 1) / 2, label))
    told = all(name in label.replace("\n", " ") for name in vertex.bought)
    return _group(f"edge {vertex.kind}", tip[: 1 if told else 2], parts)


def _node(layout: Layout, vertex: Vertex, tip: Sequence[str]) -> str:
    left, low, right, high = layout.box(vertex)
    box = (
        f'<rect class="box" x="{left:.1f}" y="{-high:.1f}" width="{right - left:.1f}" '
        f'height="{high - low:.1f}" rx="3"/>'
    )
    words = _words(left + PAD, layout.y(vertex), layout.words[vertex])
    return _group(vertex.kind, tip, [box, words])


def _leaf(layout: Layout, vertex: Vertex, tip: Sequence[str]) -> str:
    """A leaf's line of the table, with its bar."""
    left, middle = (
        layout.table_left,
        BASELINE - LINE / 2,
    )  # from the line of the letters
    parts = [
        f'<rect class="row" x="{left:.1f}" y="{-middle - LINE:.1f}" '
        f'width="{layout.width - left:.1f}" height="{2 * LINE:.1f}"/>'
    ]
    for column, x in layout.table:
        parts.append(_words(x, middle, column.cells[vertex.row], column.align))
    for i, left, width in layout.bar(vertex) if layout.mix else ():
        if width:
            parts.append(_rectangle(left, -middle - LINE / 2, width, LINE, i))
    kind = vertex.kind + (" folded" if vertex.is_folded else "")
    return _group(kind, tip, parts, down=middle - layout.y(vertex))


def _group(
    kind: str, tip: Sequence[str], parts: Iterable[str], down: float = 0.0
) -> str:
    """Parts with one tip, all of them moved down."""
    title = "<title>" + "\n".join(map(escaped, tip)) + "</title>" if tip else ""
    move = f' transform="translate(0 {down:.1f})"' if down else ""
    return f'<g class="{kind}"{move}>{title}{"".join(parts)}</g>'


def _rectangle(x: float, y: float, width: float, height: float, i: int) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
        f'fill="{CLASSES[i]}"/>'
    )


def _words(x: float, middle: float, text: str, align: str = "left") -> str:
    """Lines of text around a height."""
    lines = text.split("\n")
    end = "" if align == "left" else ' class="end"'
    first = -middle - LINE * len(lines) / 2 + BASELINE
    height = f' y="{first:.1f}"' if first else ""
    begin = f'<text{end} x="{x:.1f}"{height}>'
    spans = [escaped(lines[0])]
    spans += [
        f'<tspan x="{x:.1f}" dy="{LINE:g}">{escaped(t)}</tspan>' for t in lines[1:]
    ]
    return begin + "".join(spans) + "</text>"


def escaped(text: str) -> str:
    """Text as XML takes it."""
    return escape(NO_XML.sub("\ufffd", text))


# by matplotlib ----------------------------------------------------------------------------


class Pen:
    """Draws the parts of a layout on axes, of which the data units become points."""

    def __init__(self, ax: Any, layout: Layout):
        self.ax = ax
        self.layout = layout
        self.colours = Colours.on(ax.figure.get_facecolor())
        pixels, dpi = ax.get_window_extent(), ax.figure.dpi
        width, height = 72 * pixels.width / dpi, 72 * pixels.height / dpi
        self.scale = min(1.0, width / layout.width, height / layout.height)
        ax.set_xlim(0, width / self.scale)
        ax.set_ylim(-height / self.scale, 0)
        ax.axis("off")

    def head(self) -> None:
        """Write the head of the table; its last lines stand beside each other."""
        y, colour = PAD - self.layout.head, self.colours.stop
        for head, x, align in self.layout.heads:
            self._text(x, y, head, colour, ha=align, va="baseline")

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
        y, ink = self.layout.y(vertex), self._ink(vertex)
        return [
            self._text(x, y, column.cells[vertex.row], ink, ha=column.align)
            for column, x in self.layout.table
        ]

    def bar(self, vertex: Vertex) -> list[Any]:
        """Draw the classes of a leaf as a bar of several colours."""
        low = self.layout.y(vertex) - LINE / 2
        return [
            self._rectangle(left, low, width, LINE, i)
            for i, left, width in self.layout.bar(vertex)
        ]

    def legend(self) -> list[Any]:
        """Write the names of the classes, each with its colour before it."""
        side, named = 0.7 * LINE, []
        for i, (name, x, y) in enumerate(self.layout.legend):
            self._rectangle(x, y - side / 2, side, side, i)
            named.append(self._text(x + LINE, y, name, self.colours.ink))
        return named

    def _rectangle(
        self, x: float, y: float, width: float, height: float, i: int
    ) -> Any:
        from matplotlib.patches import Rectangle

        edge = {"edgecolor": self.colours.paper, "linewidth": 0.5 * self.scale}
        part = Rectangle((x, y), width, height, facecolor=CLASSES[i], **edge)
        return self.ax.add_patch(part)

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


def font_width(text: str) -> float:
    """Width of the longest line of a text in matplotlib's font."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=SIZE)
    return max(
        float(text_to_path.get_text_width_height_descent(line, font, False)[0])
        for line in text.split("\n")
    )


def new_figure(width: float, height: float) -> Any:
    """New figure of a size in inches."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise MissingDependencyError(
            "matplotlib is needed to draw and is not installed; run "
            "pip install 'sensortree[plot]'."
        ) from error
    return pyplot.figure(figsize=(width, height))


# either way -------------------------------------------------------------------------------


class Picture:
    """What can be drawn as a tree; a display says what its layout and its tips are."""

    ax_: Any
    figure_: Any

    def _layout(self, measure: Callable[[str], float]) -> Layout:
        """Where everything goes, given a way to measure texts."""
        raise NotImplementedError  # the display's

    def _tip(self, vertex: Vertex) -> Sequence[str]:
        """Lines to show where the mouse rests on a vertex.

        The first says how many rows come there, the second what is bought on the way.
        """
        raise NotImplementedError  # the display's

    def plot(self, ax: Any = None) -> Self:
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
        layout = self._layout(font_width)
        if ax is None:
            figure.set_size_inches(layout.width / 72, layout.height / 72)
            ax = figure.add_axes((0, 0, 1, 1))
        self.ax_, self.figure_ = ax, figure
        pen = Pen(ax, layout)
        pen.head()
        edges = [v for v in layout.vertices if v.parent or v.bought]
        leaves = [v for v in layout.vertices if v.is_leaf]
        self.edges_ = [pen.edge(v) for v in edges]
        self.edge_labels_ = [pen.edge_label(v) for v in edges if layout.labels[v]]
        self.nodes_ = [pen.node(v) for v in layout.vertices if not v.is_leaf]
        self.leaves_ = [pen.leaf(v) for v in leaves]
        self.bars_ = [pen.bar(v) for v in leaves] if layout.mix else []
        self.legend_ = pen.legend()
        return self

    def to_svg(self, *, tips: bool = True, zoom: bool = True) -> str:
        """Draw the tree as the text of an SVG picture, without matplotlib.

        It needs nothing from elsewhere, follows the light or dark theme of the page it
        stands on, and says more where the mouse rests.

        Parameters
        ----------
        tips : bool, default=True
            Whether all that is known about a vertex is shown where the mouse rests; this
            is about a third of the text.
        zoom : bool, default=True
            Whether the picture carries a script that lets the reader zoom and drag it: a
            double click, or the wheel while Ctrl is held. Where scripts do not run, the
            picture is the same and stands still.

        Returns
        -------
        svg : str
            Of a file, or for the inside of an HTML page.
        """
        layout = self._layout(lambda text: estimated_width(text, SIZE))
        body = "\n".join(_parts(layout, self._tip if tips else lambda vertex: ()))
        name = "sensortree-" + hashlib.sha256(body.encode()).hexdigest()[:10]
        script = f"<script>{ZOOM.replace('NAME', name)}</script>\n" if zoom else ""
        width, height = layout.width, layout.height
        n_leaves = len(layout.vertices[0].leaves)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="{name}" role="img" '
            f'aria-label="sensor tree, {n_leaves} {"leaf" if n_leaves == 1 else "leaves"}" '
            f'width="{SCALE * width:.0f}" height="{SCALE * height:.0f}" '
            f'viewBox="0 0 {width:.1f} {height:.1f}">\n'
            f"<style>\n{_style(name, LEAST * width)}\n</style>\n{body}\n{script}</svg>"
        )
