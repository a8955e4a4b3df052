"""`Vertex`: what is drawn of a tree, each with the edge that leads to it and its cell."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sensortree.display.folding import Outline
from sensortree.display.words import bought_words, known_words, percent, range_words
from sensortree.sensors.sensor import SensorSet
from sensortree.tree.tree import SensorTree
from sensortree.types import Array

NO_BREAK = "\u00a0"  # a space that keeps a price and a share in one line
THINNEST, THICKEST = 0.8, 8.0  # edges that no row and that every row takes, in points


@dataclass(frozen=True, eq=False)
class Vertex:
    """A vertex of the picture with the edge that leads to it.

    Attributes
    ----------
    nodes : tuple of int
        The tree's nodes that it stands for: one, or several that know the same; none at
        an end of the picture.
    leaves : tuple of int
        The leaves that may be reached from it; an end of several leaves is folded.
    parent : Vertex or None
    way : int
        Its place among its parent's ways.
    n_ways : int
        Ways that lead on from it.
    gathered : int
        How many ways of the tree the edge that leads here stands for.
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
    refers : bool
        Whether it is an end where rows are handed over to a person.
    """

    nodes: tuple[int, ...]
    leaves: tuple[int, ...]
    parent: Vertex | None = field(repr=False)
    way: int
    n_ways: int
    gathered: int
    known: tuple[str, ...]
    bought: tuple[str, ...]
    price: float
    share: float
    row: int
    column: int
    refers: bool = False

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
        return bought_words(vertex.bought, price + taken)
    does = "to a person" if vertex.refers else "stop"
    return "" if vertex.parent is None else f"{does}{taken}"


def node_words(vertex: Vertex, second: str) -> str:
    """What stands in a node's box: what is known there, and a second line."""
    return f"{known_words(vertex.known)}\n{second}"


def share_words(vertex: Vertex) -> str:
    """Second line in a node's box: for how many rows."""
    return f"{vertex.name}: {percent(vertex.share)} of rows"
