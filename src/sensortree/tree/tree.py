"""`Leaf`, `Node`, `SensorTree`: what is known where, and the way through (𝒯; fig:tree).

Every vertex carries the set of sensors known there; a child knows at least what its
parent knows; an edge buys the difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sensortree.exceptions import TreeError
from sensortree.types import Mask, Rows

MAX_DEPTH = 256  # a path of more decisions is a mistake; recursion stays safe below it


@dataclass(frozen=True)
class Leaf:
    """A vertex where an example stops and is classified with what is known.

    Parameters
    ----------
    sensors : iterable of str
        The sensors known there (S_k in the paper). Empty: only the class prior is known.
    refers : bool or None, default=None
        Whether an example is handed over to a person there, rather than answered. None
        leaves that to a fit with a `refer_cost`; elsewhere it is answered.

    Examples
    --------
    >>> from sensortree import Leaf
    >>> Leaf(["blood"]) == Leaf({"blood"})
    True
    >>> Leaf(["blood"], refers=True) == Leaf(["blood"])
    False
    """

    sensors: frozenset[str]
    refers: bool | None = field(default=None, metadata={"digest": "if set"})

    def __post_init__(self) -> None:
        object.__setattr__(self, "sensors", _sensor_names(self.sensors))
        if self.refers not in (None, False, True):
            raise TreeError(
                f"a leaf's refers must be True, False or None, got {self.refers!r}."
            )


@dataclass(frozen=True)
class Node:
    """A vertex where a decision function g_j sends an example to one of two children.

    Parameters
    ----------
    sensors : iterable of str
        The sensors known there; the decision function sees these and no others.
    negative : Leaf or Node
        Where g_j <= 0 leads. Zero is negative.
    positive : Leaf or Node
        Where g_j > 0 leads.

    Examples
    --------
    >>> from sensortree import Leaf, Node
    >>> Node([], negative=Leaf([]), positive=Leaf(["blood"])).sensors
    frozenset()
    """

    sensors: frozenset[str]
    negative: Leaf | Node
    positive: Leaf | Node

    def __post_init__(self) -> None:
        object.__setattr__(self, "sensors", _sensor_names(self.sensors))
        for side, child in (("negative", self.negative), ("positive", self.positive)):
            if not isinstance(child, (Leaf, Node)):
                raise TreeError(
                    f"the {side} child of a node must be a Leaf or a Node, got "
                    f"{type(child).__name__}."
                )
            if not self.sensors <= child.sensors:
                raise TreeError(
                    f"the {side} child knows {_shown(child.sensors)} but its parent "
                    f"knows {_shown(self.sensors)}; a child knows at least what its "
                    f"parent knows: add {_shown(self.sensors - child.sensors)}."
                )


@dataclass(frozen=True)
class SensorTree:
    """A binary tree of decisions about which sensors to acquire (𝒯 in the paper).

    Nodes and leaves are numbered depth first, the negative child first; so a child node
    comes after its parent, and the leaves read from left to right.

    Parameters
    ----------
    root : Leaf or Node

    Examples
    --------
    The tree of the paper's figure (label fig:tree):

    >>> from sensortree import Leaf, Node, SensorTree
    >>> tree = SensorTree(
    ...     Node(["1"],
    ...          Node(["1", "2"], Leaf(["1", "2"]), Leaf(["1", "2", "3"])),
    ...          Node(["1", "3"], Leaf(["1", "3"]), Leaf(["1", "2", "3"]))))
    >>> tree.path_signs
    array([[-1, -1,  0],
           [-1,  1,  0],
           [ 1,  0, -1],
           [ 1,  0,  1]])
    >>> print(tree)
    node 0 knows 1
    ├─ g0 ≤ 0, buy 2: node 1
    │  ├─ g1 ≤ 0: leaf 0 stops with 1, 2
    │  └─ g1 > 0, buy 3: leaf 1 stops with 1, 2, 3
    └─ g0 > 0, buy 3: node 2
       ├─ g2 ≤ 0: leaf 2 stops with 1, 3
       └─ g2 > 0, buy 2: leaf 3 stops with 1, 2, 3
    """

    root: Leaf | Node
    nodes: tuple[Node, ...] = field(init=False, repr=False, compare=False)
    leaves: tuple[Leaf, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.root, (Leaf, Node)):
            raise TreeError(
                f"the root of a tree must be a Leaf or a Node, got "
                f"{type(self.root).__name__}."
            )
        _check_depth(self.root)
        vertices = tuple(_depth_first(self.root))
        nodes = tuple(v for v in vertices if isinstance(v, Node))
        leaves = tuple(v for v in vertices if isinstance(v, Leaf))
        object.__setattr__(self, "nodes", nodes)
        object.__setattr__(self, "leaves", leaves)

    @property
    def n_nodes(self) -> int:
        """Number of internal nodes (K - 1 in the paper)."""
        return len(self.nodes)

    @property
    def n_leaves(self) -> int:
        """Number of leaves (K in the paper)."""
        return len(self.leaves)

    @cached_property
    def children(self) -> tuple[Rows, Rows]:
        """Negative and positive child of each node: a node, or ``~leaf`` for a leaf."""
        children = np.empty((2, self.n_nodes), dtype=np.intp)
        n_nodes = n_leaves = 0

        def number(vertex: Leaf | Node) -> int:
            nonlocal n_nodes, n_leaves
            if isinstance(vertex, Leaf):
                n_leaves += 1
                return ~(n_leaves - 1)
            node = n_nodes
            n_nodes += 1
            children[0, node] = number(vertex.negative)
            children[1, node] = number(vertex.positive)
            return node

        number(self.root)
        children.flags.writeable = False
        return children[0], children[1]

    @property
    def negative(self) -> Rows:
        """Negative child of each node, (n_nodes,): a node's index, or -1 for a leaf."""
        return np.maximum(self.children[0], -1)

    @property
    def positive(self) -> Rows:
        """Positive child of each node, (n_nodes,): a node's index, or -1 for a leaf."""
        return np.maximum(self.children[1], -1)

    @cached_property
    def path_signs(self) -> NDArray[np.int_]:
        """P - N: the sign each leaf needs at each node, (n_leaves, n_nodes)."""
        signs = np.zeros((self.n_leaves, self.n_nodes), dtype=np.int_)
        first, last = self._leaf_ranges
        for node in range(self.n_nodes):
            split = _first_positive_leaf(self, node)
            signs[first[node] : split, node] = -1
            signs[split : last[node], node] = +1
        signs.flags.writeable = False
        return signs

    @cached_property
    def _leaf_ranges(self) -> tuple[Rows, Rows]:
        """First leaf, and one past the last leaf, below each node."""
        first = np.empty(self.n_nodes, dtype=np.intp)
        last = np.empty(self.n_nodes, dtype=np.intp)
        for node in reversed(range(self.n_nodes)):  # children come after parents
            low, high = (int(children[node]) for children in self.children)
            first[node] = ~low if low < 0 else first[low]
            last[node] = ~high + 1 if high < 0 else last[high]
        return first, last

    @property
    def positive_paths(self) -> Mask:
        """P: leaves whose path takes a node's positive side, (n_leaves, n_nodes)."""
        return self.path_signs > 0

    @property
    def negative_paths(self) -> Mask:
        """N: leaves whose path takes a node's negative side, (n_leaves, n_nodes)."""
        return self.path_signs < 0

    @property
    def sensors(self) -> frozenset[str]:
        """All sensors that some leaf knows."""
        return frozenset().union(*(leaf.sensors for leaf in self.leaves))

    @property
    def depth(self) -> int:
        """Largest number of decisions on a path."""
        return int(np.abs(self.path_signs).sum(axis=1).max(initial=0))

    def route(self, decisions: ArrayLike) -> Rows:
        """Leaf that each example reaches (G_k in the paper).

        Parameters
        ----------
        decisions : array-like of shape (n_samples, n_nodes)
            Values of the decision functions; greater than 0 takes the positive child.

        Returns
        -------
        leaf : ndarray of shape (n_samples,)
        """
        taken = np.asarray(decisions) > 0
        if taken.ndim != 2 or taken.shape[1] != self.n_nodes:
            raise TreeError(
                f"decisions must have shape (n_samples, {self.n_nodes}), got "
                f"{taken.shape}; give one column per node."
            )
        start = 0 if self.n_nodes else ~0
        at = np.full(len(taken), start, dtype=np.intp)
        negative, positive = self.children
        for node in range(self.n_nodes):  # children come after parents
            here = at == node
            at[here] = np.where(taken[here, node], positive[node], negative[node])
        return ~at

    def passed(self, decisions: ArrayLike) -> Mask:
        """Nodes on the way of each example, (n_samples, n_nodes).

        Parameters
        ----------
        decisions : array-like of shape (n_samples, n_nodes)
        """
        on_path = self.path_signs != 0
        return np.asarray(on_path[self.route(decisions)])

    def to_dict(self) -> dict[str, Any]:
        """Give the tree as plain nested dicts and sorted lists.

        Examples
        --------
        >>> from sensortree import Leaf, Node, SensorTree
        >>> SensorTree(Node([], Leaf([]), Leaf(["a"]))).to_dict()
        {'sensors': [], 'negative': {'sensors': []}, 'positive': {'sensors': ['a']}}
        """

        def plain(vertex: Leaf | Node) -> dict[str, Any]:
            form: dict[str, Any] = {"sensors": sorted(vertex.sensors)}
            if isinstance(vertex, Leaf) and vertex.refers is not None:
                form["refers"] = vertex.refers
            if isinstance(vertex, Node):
                form["negative"] = plain(vertex.negative)
                form["positive"] = plain(vertex.positive)
            return form

        return plain(self.root)

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> SensorTree:
        """Build a tree from plain nested dicts, the inverse of `to_dict`.

        A leaf is ``{"sensors": [...]}``, and may say whether it ``"refers"``; a node also
        has ``"negative"`` and ``"positive"``.

        Examples
        --------
        >>> from sensortree import SensorTree
        >>> tree = SensorTree.from_dict({
        ...     "sensors": ["age"],
        ...     "negative": {"sensors": ["age"]},
        ...     "positive": {"sensors": ["age", "blood"]}})
        >>> tree.n_leaves
        2
        """

        def build(form: Any, where: str) -> Leaf | Node:
            if not isinstance(form, Mapping):
                raise TreeError(
                    f"{where} must be a dict with the key 'sensors', got "
                    f"{type(form).__name__}."
                )
            unknown = sorted(str(k) for k in set(form) - _VERTEX_KEYS)
            if unknown:
                raise TreeError(
                    f"{where} has the unknown key {unknown[0]!r}; a vertex has "
                    f"'sensors', a node also 'negative' and 'positive', and a leaf may "
                    f"have 'refers'."
                )
            if "sensors" not in form:
                raise TreeError(f"{where} lacks the key 'sensors'.")
            if ("negative" in form) != ("positive" in form):
                missing = "positive" if "negative" in form else "negative"
                raise TreeError(
                    f"{where} has one child only; add {missing!r}, or remove the other "
                    f"to make it a leaf."
                )
            if "negative" not in form:
                return Leaf(form["sensors"], form.get("refers"))
            if "refers" in form:
                raise TreeError(
                    f"{where} is a node, where nobody stops; only a leaf 'refers'."
                )
            return Node(
                form["sensors"],
                build(form["negative"], f"{where}['negative']"),
                build(form["positive"], f"{where}['positive']"),
            )

        return cls(build(form, "the tree"))

    def text(
        self,
        label: Callable[[Leaf | Node, int], str] | None = None,
        order: Iterable[str] | None = None,
    ) -> str:
        """Draw the tree with text.

        Parameters
        ----------
        label : callable, default=None
            Given a vertex and its number, returns words to put behind it, instead of the
            sensors that a leaf knows.
        order : iterable of str, default=None
            Order in which sensors are listed; alphabetical by default.
        """
        rank = {name: i for i, name in enumerate(order or sorted(self.sensors))}

        def names(sensors: Iterable[str]) -> str:
            return ", ".join(sorted(sensors, key=rank.__getitem__)) or "nothing"

        def words(vertex: Leaf | Node, number: int) -> str:
            kind = "leaf" if isinstance(vertex, Leaf) else "node"
            if label is not None:
                return f"{kind} {number} {label(vertex, number)}"
            if isinstance(vertex, Node):
                return f"{kind} {number}"
            stops = "hands over to a person" if vertex.refers else "stops"
            return f"{kind} {number} {stops} with {names(vertex.sensors)}"

        lines: list[str] = []
        count = [0, 0]

        def draw(vertex: Leaf | Node, edge: str, indent: str, below: str) -> None:
            kind = int(isinstance(vertex, Leaf))
            number = count[kind]
            count[kind] += 1
            lines.append(indent + edge + words(vertex, number))
            if isinstance(vertex, Leaf):
                return
            for child, sign, mark, bar in (
                (vertex.negative, "≤", "├─ ", "│  "),
                (vertex.positive, ">", "└─ ", "   "),
            ):
                bought = child.sensors - vertex.sensors
                buy = f", buy {names(bought)}" if bought else ""
                draw(child, f"{mark}g{number} {sign} 0{buy}: ", below, below + bar)

        draw(self.root, "", "", "")
        if isinstance(self.root, Node):
            lines[0] = lines[0].replace(
                "node 0", f"node 0 knows {names(self.root.sensors)}", 1
            )
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.text()


_VERTEX_KEYS = {"sensors", "negative", "positive", "refers"}


def _sensor_names(sensors: Any) -> frozenset[str]:
    """Check a vertex's sensors."""
    if isinstance(sensors, (str, Mapping)) or not isinstance(sensors, Iterable):
        raise TreeError(
            f"a vertex's sensors must be a list or set of names, got {sensors!r}; write "
            f"['blood']."
        )
    names = frozenset(sensors)
    for name in names:
        if not isinstance(name, str):
            raise TreeError(
                f"a vertex's sensors are named by strings, got {name!r} of type "
                f"{type(name).__name__}."
            )
    return names


def _shown(sensors: Iterable[str]) -> str:
    return "{" + ", ".join(sorted(repr(name) for name in sensors)) + "}"


def _check_depth(root: Leaf | Node) -> None:
    level, depth = [root], 0
    while level := [c for v in level if isinstance(v, Node) for c in _children(v)]:
        depth += 1
        if depth > MAX_DEPTH:
            raise TreeError(
                f"the tree has a path of more than {MAX_DEPTH} decisions; group columns "
                f"into fewer sensors, or give a smaller tree."
            )


def _children(node: Node) -> tuple[Leaf | Node, Leaf | Node]:
    return node.negative, node.positive


def _depth_first(root: Leaf | Node) -> Iterator[Leaf | Node]:
    """List the vertices, a parent before its children, the negative side first."""
    stack = [root]
    while stack:
        vertex = stack.pop()
        yield vertex
        if isinstance(vertex, Node):
            stack += (vertex.positive, vertex.negative)


def _first_positive_leaf(tree: SensorTree, node: int) -> int:
    """First leaf on the positive side of a node."""
    child = int(tree.children[1][node])
    return ~child if child < 0 else int(tree._leaf_ranges[0][child])
