"""`TreeDisplay`: which sensors are bought, for how many rows, at what price."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sensortree.display.colours import CLASSES
from sensortree.display.layout import (
    Column,
    Layout,
    Mix,
    Vertex,
    edge_words,
    node_words,
    share_words,
)
from sensortree.display.pen import draw
from sensortree.display.svg import page, svg
from sensortree.display.words import known_column, money_format, percent, shortened
from sensortree.exceptions import DataError
from sensortree.sensors.sensor_set import SensorSet
from sensortree.tree.paths import leaf_costs
from sensortree.tree.tree import Leaf, Node, SensorTree
from sensortree.types import Array

TOLD = 10  # classes of a leaf that are told where the mouse rests


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
    leaf_classes : array-like of shape (n_leaves, n_classes), default=None
        Rows of each class at each leaf, or shares of them.
    classes : array-like of shape (n_classes,), default=None
        Names of these classes.
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
    bars_ : list of lists of matplotlib Rectangle
        For each leaf the parts of the bar that shows its classes.
    legend_ : list of matplotlib Text
        Names of the classes that have a colour.

    Examples
    --------
    >>> import numpy as np
    >>> from sensortree import SensorTreeClassifier
    >>> from sensortree import TreeDisplay
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = X[:, 0] + (np.abs(X[:, 0]) < 0.5) * X[:, 1] > 0
    >>> model = SensorTreeClassifier(
    ...     {"cheap": [0], "dear": [1]}, costs={"cheap": 0, "dear": 5}, cost_weight=0.02)
    >>> display = TreeDisplay.from_estimator(model.fit(X, y), X, y)
    >>> float(display.leaf_share.sum())
    1.0
    >>> display.leaf_cost
    array([0., 5.])

    Then ``display.plot()`` draws it, and ``display.to_svg()`` does without matplotlib:

    >>> display.to_svg().startswith("<svg")
    True
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
        leaf_classes: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        unit: str = "",
    ):
        self.tree = tree
        self.sensors = sensors
        self.leaf_share = np.asarray(leaf_share, dtype=np.float64)
        self.leaf_accuracy = (
            None if leaf_accuracy is None else np.asarray(leaf_accuracy, np.float64)
        )
        self.leaf_classes = (
            None if leaf_classes is None else np.asarray(leaf_classes, np.float64)
        )
        self.classes = None if classes is None else np.asarray(classes)
        self.unit = unit
        _check_classes(self)

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any = None,
        y: Any = None,
        *,
        prices: ArrayLike | None = None,
        unit: str = "",
    ) -> TreeDisplay:
        """Follow rows through a fitted tree.

        Parameters
        ----------
        model : fitted classifier of this package, or a loaded model
        X : array-like or data frame of shape (n_samples, n_features), default=None
            By default the training rows, whose ways and classes the model has kept.
        y : array-like of shape (n_samples,), default=None
            Right answers to X, for accuracy and classes at the leaves.
        prices : array-like of shape (n_samples, n_sensors), default=None
            Prices of each row of X, if the model was fitted with such.
        unit : str, default=""
            What a price is counted in.

        Returns
        -------
        display : TreeDisplay
            Not drawn yet; call its `plot` or `to_svg`.
        """
        if X is None:
            if y is not None:
                raise DataError("y was given without X; give the rows it belongs to.")
            return _of_training(cls, model, unit)
        given = {} if prices is None else {"prices": prices}
        leaf = model.apply(X, **given)
        n_leaves = model.tree_.n_leaves
        ends = leaf >= 0  # others stop at a node, since they can afford no leaf
        rows = np.bincount(leaf[ends], minlength=n_leaves)
        share = rows / len(leaf)
        if y is None:
            return cls(model.tree_, model.sensors_, share, unit=unit)
        truth = np.asarray(y)
        if truth.shape != leaf.shape:
            raise DataError(
                f"y has shape {truth.shape}, but X has {len(leaf)} rows; give one right "
                f"answer for each."
            )
        correct = np.asarray(model.predict(X, **given)) == truth
        right = np.bincount(leaf[ends], correct[ends], n_leaves)
        accuracy = np.divide(right, rows, out=np.full(n_leaves, np.nan), where=rows > 0)
        mix = [
            np.bincount(leaf[ends & (truth == c)], minlength=n_leaves)
            for c in model.classes_
        ]
        return cls(
            model.tree_,
            model.sensors_,
            share,
            accuracy,
            leaf_classes=np.stack(mix, axis=1),
            classes=model.classes_,
            unit=unit,
        )

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
        draw(self, self._layout, ax)
        return self

    def to_svg(self, *, tips: bool = True) -> str:
        """Draw the tree as the text of an SVG picture, without matplotlib.

        It needs nothing from elsewhere, follows the light or dark theme of the page it
        stands on, and says more where the mouse rests.

        Parameters
        ----------
        tips : bool, default=True
            Whether all that is known about a vertex is shown where the mouse rests; this
            is about a third of the text.

        Returns
        -------
        svg : str
            Of a file, or for the inside of an HTML page.
        """
        return svg(self._layout, self._tip if tips else lambda vertex: ())

    def to_html(self, title: str = "Sensor tree") -> str:
        """Draw the tree as an HTML page of its own; see `to_svg`.

        Parameters
        ----------
        title : str, default="Sensor tree"

        Returns
        -------
        html : str
        """
        return page(self.to_svg(), title)

    def _layout(self, measure: Callable[[str], float]) -> Layout:
        vertices = self.vertices
        money = money_format(self.sensors.costs)
        return Layout(
            vertices,
            _table(self, money),
            {v: node_words(v, share_words(v)) for v in vertices if not v.is_leaf},
            {v: edge_words(v, _price_words(self, v, money)) for v in vertices},
            measure,
            _mix(self),
        )

    def _tip(self, vertex: Vertex) -> list[str]:
        """All that is known about a vertex; the first lines are about its edge."""
        money = money_format(self.sensors.costs)
        what = f"{'leaf' if vertex.is_leaf else 'node'} {vertex.number}"
        lines = [f"{what}: {percent(vertex.share)} of rows"]
        if vertex.bought:
            price = _price_words(self, vertex, money)
            lines.append(f"bought: {', '.join(vertex.bought)}, +{price}")
        else:
            lines.append("nothing more is bought")
        lines.append(f"known: {', '.join(vertex.known) or 'nothing'}")
        if vertex.is_leaf:
            lines += _class_lines(self, vertex.number)
        return lines


def _of_training(cls: type[TreeDisplay], model: Any, unit: str) -> TreeDisplay:
    """The ways of the training rows, which a policy keeps."""
    policy = model.policy_
    rows = policy.flow.leaf_rows
    return cls(
        policy.tree,
        policy.sensors,
        rows / max(float(rows.sum()), 1e-300),
        leaf_classes=policy.flow.leaf_classes,
        classes=policy.classes,
        unit=unit,
    )


def _check_classes(display: TreeDisplay) -> None:
    """Refuse classes without names, or of another number."""
    mix, names = display.leaf_classes, display.classes
    if mix is None:
        return
    shape = (display.tree.n_leaves, 0 if names is None else len(names))
    if mix.shape != shape:
        raise DataError(
            f"leaf_classes has shape {mix.shape}, but the tree has {shape[0]} leaves and "
            f"{shape[1]} classes are named; give a line per leaf, a column per class, "
            f"and the names as classes."
        )


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


def _price_words(
    display: TreeDisplay, vertex: Vertex, money: Callable[[float], str]
) -> str:
    """Price of what an edge buys; a mean where every example has its own."""
    terms = display.sensors.terms
    varies = any(terms[display.sensors.index(name)].varies for name in vertex.bought)
    return money(vertex.price) + (" on average" if varies else "")


def _class_names(display: TreeDisplay) -> list[str]:
    """Names of the classes; of a number it is said that it is one."""
    classes = [] if display.classes is None else display.classes.tolist()
    return [name if isinstance(name, str) else f"class {name}" for name in classes]


def _class_lines(display: TreeDisplay, leaf: int) -> list[str]:
    """Classes at a leaf with their shares, the most frequent first."""
    if display.leaf_classes is None:
        return []
    mix, names = _shares(display.leaf_classes)[leaf], _class_names(display)
    order = np.argsort(-mix, kind="stable")[:TOLD]
    return [f"{names[i]}: {percent(mix[i])}" for i in order if mix[i]]


def _shares(rows: Array) -> Array:
    """Rows as shares of their line; all 0 where there are none."""
    total = rows.sum(axis=1, keepdims=True)
    shares = np.zeros_like(rows)
    np.divide(rows, total, out=shares, where=total > 0)
    return shares


def _mix(display: TreeDisplay) -> Mix | None:
    """Classes at the leaves; the most frequent have a colour of their own."""
    if display.leaf_classes is None:
        return None
    rows = display.leaf_classes
    names = [shortened(name, 32) for name in _class_names(display)]
    shares = _shares(rows)
    if len(names) > len(CLASSES):
        overall = display.leaf_share @ shares
        first = np.sort(np.argsort(-overall, kind="stable")[: len(CLASSES) - 1])
        names = [names[i] for i in first] + [f"{len(names) - len(first)} other classes"]
        shares = np.hstack(
            [shares[:, first], 1 - shares[:, first].sum(1, keepdims=True)]
        )
    reached = rows.sum(axis=1) > 0
    return Mix(
        tuple(names),
        [s.tolist() if r else [] for s, r in zip(shares, reached, strict=True)],
    )


def _table(display: TreeDisplay, money: Callable[[float], str]) -> list[Column]:
    """Columns of the table of leaves."""
    unit = f"\n({display.unit})" if display.unit else ""
    in_order = display.sensors.in_order
    known = [in_order(leaf.sensors) for leaf in display.tree.leaves]
    columns = [
        Column("leaf", [str(number) for number in range(len(known))]),
        Column(*known_column(known)),
        Column("share\nof rows", [percent(share) for share in display.leaf_share]),
        Column(f"cost{unit}", [money(cost) for cost in display.leaf_cost]),
    ]
    if display.leaf_accuracy is not None:
        accuracy = ["–" if np.isnan(a) else f"{a:.3f}" for a in display.leaf_accuracy]
        columns.append(Column("accuracy", accuracy))
    if display.leaf_classes is not None:
        columns.append(Column("most frequent", _most_frequent(display), "left"))
    return columns


def _most_frequent(display: TreeDisplay) -> list[str]:
    """Most frequent class at each leaf, and its share."""
    assert display.leaf_classes is not None
    names, shares = _class_names(display), _shares(display.leaf_classes)
    return [
        f"{shortened(names[mix.argmax()], 20)}: {percent(mix.max())}"
        if mix.any()
        else "–"
        for mix in shares
    ]
