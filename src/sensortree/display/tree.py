"""`TreeDisplay`: which sensors are bought, for how many rows, at what price."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sensortree.costs import leaf_costs
from sensortree.display.layout import Layout, TableColumn, Vertex, percent, wrapped
from sensortree.display.pen import draw
from sensortree.sensors import SensorSet
from sensortree.tree import Leaf, Node, SensorTree

Array = NDArray[np.float64]


class TreeDisplay:
    """A tree of sensors, with the share of rows that takes each way.

    Parameters
    ----------
    tree : SensorTree
    sensors : SensorSet
    leaf_share : array-like of shape (n_leaves,)
        Share of rows that reach each leaf. Rows that can afford none are in no share.
    leaf_accuracy : array-like of shape (n_leaves,), default=None
        Share of right answers at each leaf, NaN where no row came.
    unit : str, default=""
        What a price is counted in, for the head of the cost column.

    Attributes
    ----------
    node_share : ndarray of shape (n_nodes,)
        Share of rows that reach each node.
    leaf_cost : ndarray of shape (n_leaves,)
        Price of the way to each leaf.
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

    ax_: Any
    figure_: Any

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
        ends = leaf >= 0  # others stop at a node, since they can afford no leaf
        rows = np.bincount(leaf[ends], minlength=n_leaves)
        accuracy = None
        if y is not None:
            correct = np.asarray(model.predict(X)) == np.asarray(y)
            right = np.bincount(leaf[ends], correct[ends], n_leaves)
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
        """Price of the way to each leaf, (n_leaves,)."""
        return leaf_costs(self.tree, self.sensors)

    @property
    def vertices(self) -> tuple[Vertex, ...]:
        """The tree, depth first, each vertex with the edge that leads to it."""
        return placed(
            self.tree, self.sensors, self.node_share, self.leaf_share, _price(self)
        )

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
        money = money_format(self.sensors.costs)
        layout = Layout(self.vertices, _table(self, money), money)
        draw(self, layout, ax)
        return self


def placed(
    tree: SensorTree,
    sensors: SensorSet,
    node_share: Array,
    leaf_share: Array,
    price: Callable[[frozenset[str], frozenset[str]], float],
) -> tuple[Vertex, ...]:
    """Vertices of a tree, depth first, each in its cell of the picture.

    `price` is given what is known at a vertex, and at its parent.
    """
    found: list[Vertex] = []
    count = {Node: 0, Leaf: 0}

    def place(vertex: Leaf | Node, parent: Vertex | None, positive: bool) -> None:
        number, row = count[type(vertex)], count[Leaf]
        count[type(vertex)] += 1
        is_leaf = isinstance(vertex, Leaf)
        known = frozenset(parent.known if parent else ())
        bought = vertex.sensors - known
        here = Vertex(
            number,
            is_leaf,
            parent,
            positive,
            sensors.in_order(vertex.sensors),
            sensors.in_order(bought),
            price(vertex.sensors, known),
            float((leaf_share if is_leaf else node_share)[number]),
            row,
            _column(parent, hangs_below=positive and not is_leaf and not bought),
        )
        found.append(here)
        if isinstance(vertex, Node):
            place(vertex.negative, here, False)
            place(vertex.positive, here, True)

    place(tree.root, None, False)
    return tuple(found)


def _price(display: TreeDisplay) -> Callable[[frozenset[str], frozenset[str]], float]:
    """Price of an edge, with the discounts for what is known before."""
    return lambda then, known: float(display.sensors.cost_of(then, known))


def _column(parent: Vertex | None, hangs_below: bool) -> int:
    """Column of a vertex: a choice among several stays in the column of its parent."""
    if parent is None:
        return 0
    return parent.column if hangs_below else parent.column + 1


def money_format(prices: ArrayLike) -> Callable[[float], str]:
    """Way to write prices: with as many decimals as all of them need, up to two."""
    prices = np.asarray(prices, dtype=np.float64)
    for decimals in (0, 2):
        if np.allclose(prices, np.round(prices, decimals), rtol=0, atol=1e-9):
            return lambda price: f"{price:,.{decimals}f}"
    return lambda price: f"{price:,.4g}"


def _table(display: TreeDisplay, money: Callable[[float], str]) -> list[TableColumn]:
    """Columns of the table of leaves: head, cells, alignment."""
    unit = f"\n({display.unit})" if display.unit else ""
    in_order = display.sensors.in_order
    leaves = display.tree.leaves
    columns = [
        ("leaf", [str(number) for number in range(len(leaves))], "right"),
        (
            "sensors known",
            [wrapped(in_order(leaf.sensors)) or "nothing" for leaf in leaves],
            "left",
        ),
        ("share\nof rows", [percent(share) for share in display.leaf_share], "right"),
        (f"cost{unit}", [money(cost) for cost in display.leaf_cost], "right"),
    ]
    if display.leaf_accuracy is not None:
        accuracy = ["–" if np.isnan(a) else f"{a:.3f}" for a in display.leaf_accuracy]
        columns.append(("accuracy", accuracy, "right"))
    return columns
