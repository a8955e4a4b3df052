"""A picture of a tree as lines of text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sensortree.display.vertices import Vertex
from sensortree.display.words import percent


def lines_of(
    vertices: Sequence[Vertex],
    price: Callable[[Vertex], str],
    answer: Callable[[Vertex], str],
) -> str:
    """Vertices below each other, each with what is decided on the way to it.

    Parameters
    ----------
    vertices : sequence of Vertex
        Depth first.
    price : callable
        Given a vertex, what the edge that leads to it costs, in words.
    answer : callable
        Given a leaf, what is answered there, in words; "" if that is not known.
    """
    lines: list[str] = []
    bars: dict[Vertex | None, str] = {None: ""}
    for v in vertices:
        last = v.parent is None or v.way == v.parent.n_ways - 1
        mark = "" if v.parent is None else "└─ " if last else "├─ "
        bars[v] = bars[v.parent] + (
            "" if v.parent is None else "   " if last else "│  "
        )
        which = f"{len(v.leaves)} leaves" if v.is_folded else v.name
        share = f"{percent(v.share)} of rows"
        said = answer(v) if v.is_leaf else ""
        lines.append(
            f"{bars[v.parent]}{mark}{_decided(v, price(v))}: {which}, {share}"
            f"{'; ' if said else ''}{said}"
        )
    return "\n".join(lines)


def _decided(vertex: Vertex, price: str) -> str:
    """What is bought on the way to a vertex, in one line."""
    if vertex.bought:
        return f"buy {', '.join(vertex.bought)}, +{price}"
    if vertex.gathered > 1:
        return f"{vertex.gathered} rarer ways"
    return "nothing is known" if vertex.parent is None else "stop"
