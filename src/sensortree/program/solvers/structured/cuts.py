"""`Cut`: an edge that divides nodes in two, so that the Newton matrix is a large product.

For k above an edge and l below it, M_kl is a factor of k times a factor of l: what an
example's circuit is above the edge and what it is below meet in one current. So all that
couples the two sides is one matrix product, and the same holds within each side.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate


@dataclass(frozen=True)
class Step:
    """An edge of the tree."""

    parent: int
    side: int  # 0 for negative, 1 for positive
    child: int


@dataclass(frozen=True)
class Cut:
    """An edge that divides some nodes that hang together: those above it, those below.

    Attributes
    ----------
    node : int
        The lower end of the edge.
    above, below : slice
        Places of the nodes on either side; the second follows on the first.
    rows, columns : slice
        The same of their coefficients.
    climb : tuple of (Step, int)
        Edges from the cut one up to the topmost node, each with the child on the other
        side of its parent, or -1 if that is not among the nodes.
    aside : tuple of Step
        Edges below such children, parents first.
    down : tuple of Step
        Edges below the cut, parents first.
    """

    node: int
    above: slice
    below: slice
    rows: slice
    columns: slice
    climb: tuple[tuple[Step, int], ...]
    aside: tuple[Step, ...]
    down: tuple[Step, ...]


def divide(
    negative: list[int], positive: list[int], widths: list[int]
) -> tuple[list[int], list[Cut]]:
    """Cut a tree near its middle, and so on down to single nodes.

    Parameters
    ----------
    negative, positive : list of int
        Children of each node, -1 for a leaf. A child comes after its parent.
    widths : list of int
        Coefficients of each node.

    Returns
    -------
    order : list of int
        The node at each place: both sides of every cut are contiguous.
    cuts : list of Cut
        The widest first.
    """
    above = {
        child: Step(parent, side, child)
        for side, children in enumerate((negative, positive))
        for parent, child in enumerate(children)
        if child >= 0
    }
    halves: list[tuple[int, list[int], list[int]]] = []
    parts = [list(range(len(widths)))]
    while any(len(part) > 1 for part in parts):
        halved = []
        for part in parts:
            if len(part) == 1:
                halved.append(part)
                continue
            node = _middle(part, above, widths)
            lower = _hanging_from(node, part, above)
            upper = [k for k in part if k not in set(lower)]
            halves.append((node, upper, lower))
            halved += [upper, lower]
        parts = halved
    order = [node for (node,) in parts]
    place = {node: at for at, node in enumerate(order)}
    ends = [0, *accumulate(widths[node] for node in order)]

    def cut(node: int, upper: list[int], lower: list[int]) -> Cut:
        start = min(place[k] for k in upper)
        places = [start, start + len(upper), start + len(upper) + len(lower)]
        a, b, c = (ends[at] for at in places)
        climb, at = [], node
        while at != upper[0]:
            step = above[at]
            children = (negative[step.parent], positive[step.parent])
            other = children[1 - step.side]
            climb.append((step, other if other in upper else -1))
            at = step.parent
        passed = {upper[0]} | {end for step, o in climb for end in (step.child, o)}
        return Cut(
            node,
            slice(*places[:2]),
            slice(*places[1:]),
            slice(a, b),
            slice(b, c),
            tuple(climb),
            tuple(above[k] for k in upper if k not in passed),
            tuple(above[k] for k in lower if k != node),
        )

    return order, [cut(*half) for half in halves]


def _middle(part: list[int], above: dict[int, Step], widths: list[int]) -> int:
    """The node of a part whose subtree there is nearest to half of it."""
    size = {node: widths[node] for node in part}
    for node in reversed(part[1:]):
        size[above[node].parent] += size[node]
    return min(part[1:], key=lambda node: (abs(size[part[0]] - 2 * size[node]), node))


def _hanging_from(node: int, part: list[int], above: dict[int, Step]) -> list[int]:
    """The nodes of a part that are below a node, that one first."""
    hanging = {node}
    for k in part:
        if k in above and above[k].parent in hanging:
            hanging.add(k)
    return [k for k in part if k in hanging]
