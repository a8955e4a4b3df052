"""`TreeDisplay`: which sensors are bought, for how many rows, at what price."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sensortree.display.folding import LINES, without_rare
from sensortree.display.layout import Layout
from sensortree.display.leaf_table import LeafTable
from sensortree.display.lines import lines_of
from sensortree.display.pen import draw
from sensortree.display.svg import boxed, page, svg
from sensortree.display.vertices import (
    Vertex,
    edge_words,
    node_words,
    placed,
    share_words,
)
from sensortree.display.words import money_format, percent
from sensortree.exceptions import DataError, ParameterError
from sensortree.sensors.sensor import SensorSet
from sensortree.tree.paths import leaf_costs
from sensortree.tree.tree import SensorTree
from sensortree.types import Array, Rows

TOLD = 10  # ways of a line that are told where the mouse rests


class TreeDisplay:
    """A tree of sensors, with the share of rows that takes each way.

    Nodes that know the same and follow each other are one box with several ways out: what
    can be bought there, or to stop. In a large tree, what few rows reach is folded.

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
    leaf_answers : array-like of shape (n_leaves, n_classes), default=None
        Rows that are given each answer at each leaf, or shares of them.
    classes : array-like of shape (n_classes,), default=None
        Names of these classes.
    judged : str, default=""
        On which rows `leaf_accuracy` was found, for the head of its column.
    unit : str, default=""
        What a price is counted in, for the head of the cost column.
    max_leaves : int or None, default=32
        A tree of so many leaves is drawn whole. In a larger one, ways that fewer than 1 %
        of the rows take are folded into one line at each box, and more, the rarest first,
        until so many lines are left. None folds nothing.
    leaf_numbers : array-like of shape (n_leaves, 2), default=None
        Mean and standard deviation of the numbers at each leaf, of a regressor.

    Attributes
    ----------
    node_share : ndarray of shape (n_nodes,)
        Share of rows that reach each node.
    leaf_cost : ndarray of shape (n_leaves,)
        Price of the way to each leaf.
    vertices : tuple of Vertex
        What is drawn, depth first, each vertex with the edge that leads to it.
    ax_ : matplotlib Axes
        Where `plot` drew.
    figure_ : matplotlib Figure
        The figure of `ax_`.
    nodes_ : list of matplotlib Text
        The boxes, as in `vertices`.
    edges_ : list of matplotlib Line2D
        The edges, as in `vertices`; the root has one if something is known there.
    edge_labels_ : list of matplotlib Text
        What is written on the edges.
    leaves_ : list of lists of matplotlib Text
        The cells of each line of the table on the right.
    bars_ : list of lists of matplotlib Rectangle
        For each line the parts of the bar that shows its classes.
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

    Then ``display.plot()`` draws it; ``display.to_svg()`` and ``display.to_text()`` do
    without matplotlib:

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
        leaf_answers: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        judged: str = "",
        unit: str = "",
        max_leaves: int | None = LINES,
        leaf_numbers: ArrayLike | None = None,
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
        self.leaf_answers = (
            None if leaf_answers is None else np.asarray(leaf_answers, np.float64)
        )
        self.classes = None if classes is None else np.asarray(classes)
        self.judged = judged
        self.unit = unit
        self.max_leaves = max_leaves
        self.leaf_numbers = (
            None if leaf_numbers is None else np.asarray(leaf_numbers, np.float64)
        )
        _check_classes(self)
        if max_leaves is not None and max_leaves < 1:
            raise ParameterError(
                f"max_leaves must be at least 1, got {max_leaves}; None draws all leaves."
            )

    def __repr__(self) -> str:
        return f"TreeDisplay({len(self.sensors)} sensors, {self.tree.n_leaves} leaves)"

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any = None,
        y: Any = None,
        *,
        prices: ArrayLike | None = None,
        unit: str | None = None,
        max_leaves: int | None = LINES,
    ) -> TreeDisplay:
        """Follow rows through a fitted tree.

        Parameters
        ----------
        model : fitted classifier of this package, or a loaded model
        X : array-like or data frame of shape (n_samples, n_features), default=None
            By default the training rows, whose ways, classes and answers, judged out of
            fold with ``cv``, the model has kept.
        y : array-like of shape (n_samples,), default=None
            Right answers to X, for how often each leaf is right, and for its classes.
        prices : array-like of shape (n_samples, n_sensors), default=None
            Prices of each row of X, if the model was fitted with such.
        unit : str, default=None
            What a price is counted in; by default what the model says.
        max_leaves : int or None, default=32
            Leaves of a tree that is drawn whole; in a larger one, what few rows reach is
            folded until so many lines are left. None folds nothing.

        Returns
        -------
        display : TreeDisplay
            Not drawn yet; call its `plot` or `to_svg`.
        """
        if X is None:
            if y is not None:
                raise DataError("y was given without X; give the rows it belongs to.")
            return _of_training(cls, model, unit, max_leaves)
        unit = model.about_.unit if unit is None else unit
        given = {} if prices is None else {"prices": prices}
        leaf = model.apply(X, **given)
        n_leaves = model.tree_.n_leaves
        ends = leaf >= 0  # others stop at a node, since they can afford no leaf
        rows = np.bincount(leaf[ends], minlength=n_leaves)
        share = rows / len(leaf)
        answer = np.asarray(model.predict(X, **given))
        if not len(getattr(model, "classes_", ())):  # numbers are predicted
            numbers = answer if y is None else np.asarray(y, dtype=np.float64)
            if numbers.shape != leaf.shape:
                raise DataError(
                    f"y has shape {numbers.shape}, but X has {len(leaf)} rows; give one "
                    f"right answer for each."
                )
            return cls(
                model.tree_,
                model.sensors_,
                share,
                unit=unit,
                max_leaves=max_leaves,
                leaf_numbers=_numbers_by_leaf(leaf[ends], numbers[ends], n_leaves),
            )
        kept = {
            "leaf_answers": _by_leaf(leaf, answer, model),
            "classes": model.classes_,
            "unit": unit,
            "max_leaves": max_leaves,
        }
        if y is None:
            return cls(model.tree_, model.sensors_, share, **kept)
        truth = np.asarray(y)
        if truth.shape != leaf.shape:
            raise DataError(
                f"y has shape {truth.shape}, but X has {len(leaf)} rows; give one right "
                f"answer for each."
            )
        right = np.bincount(leaf[ends], (answer == truth)[ends], n_leaves)
        accuracy = np.divide(right, rows, out=np.full(n_leaves, np.nan), where=rows > 0)
        mix = _by_leaf(leaf, truth, model)
        return cls(
            model.tree_, model.sensors_, share, accuracy, leaf_classes=mix, **kept
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
        """What is drawn, depth first, each vertex with the edge that leads to it."""
        return placed(
            without_rare(self.tree, self.leaf_share, self.max_leaves),
            self.sensors,
            self.node_share,
            self.leaf_share,
            _price(self),
            self.tree,
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
        return svg(self._layout, self._tip if tips else lambda vertex: (), zoom)

    def to_html(self, title: str = "Sensor tree") -> str:
        """Draw the tree as an HTML page of its own; see `to_svg`.

        Parameters
        ----------
        title : str, default="Sensor tree"

        Returns
        -------
        html : str
        """
        return page(boxed(self.to_svg()), title)

    def to_text(self) -> str:
        """Draw the tree as lines of text, folded as in the picture.

        Returns
        -------
        text : str

        Examples
        --------
        >>> from sensortree import SensorSet, TreeDisplay, exhaustive_tree
        >>> sensors = SensorSet(("a", "b", "c"), ((0,), (1,), (2,)), (1.0, 2.0, 5.0))
        >>> tree = exhaustive_tree(sensors.names, root=["a"])
        >>> print(TreeDisplay(tree, sensors, [0.5, 0.2, 0.1, 0.15, 0.05]).to_text())
        buy a, +1: nodes 0–1, 100.0 % of rows
        ├─ stop: leaf 0, 50.0 % of rows
        ├─ buy b, +2: node 2, 30.0 % of rows
        │  ├─ stop: leaf 1, 20.0 % of rows
        │  └─ buy c, +5: leaf 2, 10.0 % of rows
        └─ buy c, +5: node 3, 20.0 % of rows
           ├─ stop: leaf 3, 15.0 % of rows
           └─ buy b, +2: leaf 4, 5.0 % of rows
        """
        money = money_format(self.sensors.costs)
        table = _table(self, ())
        return lines_of(
            self.vertices,
            lambda v: _price_words(self, v, money),
            lambda v: ", ".join(table.told(v)[: self._n_told]),
        )

    @property
    def _n_told(self) -> int:
        """How much is known of a leaf's answers: which they are, and how many are right."""
        told = self.leaf_answers, self.leaf_accuracy, self.leaf_numbers
        return sum(each is not None for each in told)

    def _layout(self, measure: Callable[[str], float]) -> Layout:
        vertices = self.vertices
        money, table = money_format(self.sensors.costs), _table(self, vertices)
        return Layout(
            vertices,
            table.columns(money, self.unit),
            {v: node_words(v, share_words(v)) for v in vertices if not v.is_leaf},
            {v: edge_words(v, _price_words(self, v, money), True) for v in vertices},
            measure,
            table.bars(),
        )

    def _tip(self, vertex: Vertex) -> list[str]:
        """All that is known about a vertex; the first lines are about its edge."""
        money = money_format(self.sensors.costs)
        lines = [f"{vertex.name}: {percent(vertex.share)} of rows"]
        if vertex.bought:
            price = _price_words(self, vertex, money)
            lines.append(f"bought: {', '.join(vertex.bought)}, +{price}")
        elif vertex.gathered > 1:
            lines.append(f"{vertex.gathered} ways that few rows take")
        else:
            lines.append("nothing more is bought")
        lines.append(f"known: {', '.join(vertex.known) or 'nothing'}")
        if vertex.is_folded:
            lines += self._folded_lines(vertex)
        if vertex.is_leaf:
            lines += _table(self, (vertex,)).told(vertex)
        return lines

    def _folded_lines(self, vertex: Vertex) -> list[str]:
        """Leaves that are folded, those that most rows reach first."""
        first = sorted(vertex.leaves, key=lambda leaf: -self.leaf_share[leaf])[:TOLD]
        lines = []
        for leaf in first:
            more = self.tree.leaves[leaf].sensors.difference(vertex.known)
            names = ", ".join(self.sensors.in_order(more)) or "nothing"
            share = percent(self.leaf_share[leaf])
            lines.append(f"leaf {leaf}: {share} of rows, + {names}")
        return lines


def _of_training(
    cls: type[TreeDisplay], model: Any, unit: str | None, max_leaves: int | None
) -> TreeDisplay:
    """The ways of the training rows, which a policy keeps."""
    policy = model.policy_
    flow, answers = policy.flow, policy.flow.answers
    rows = flow.leaf_rows
    if flow.numbers is not None:
        return cls(
            policy.tree,
            policy.sensors,
            rows / max(float(rows.sum()), 1e-300),
            judged="in training",
            unit=policy.about.unit if unit is None else unit,
            max_leaves=max_leaves,
            leaf_numbers=np.stack([flow.numbers.mean, flow.numbers.deviation], axis=1),
        )
    accuracy = None
    if answers is not None:
        nobody = np.full(len(rows), np.nan)
        accuracy = np.divide(answers.right, rows, out=nobody, where=rows > 0)
    return cls(
        policy.tree,
        policy.sensors,
        rows / max(float(rows.sum()), 1e-300),
        accuracy,
        leaf_classes=flow.leaf_classes,
        leaf_answers=None if answers is None else answers.given,
        classes=policy.classes,
        judged="in training",
        unit=policy.about.unit if unit is None else unit,
        max_leaves=max_leaves,
    )


def _numbers_by_leaf(leaf: Rows, numbers: Array, n_leaves: int) -> Array:
    """Mean and standard deviation of numbers at each leaf, (n_leaves, 2)."""
    rows = np.maximum(np.bincount(leaf, minlength=n_leaves), 1)
    mean = np.bincount(leaf, numbers, n_leaves) / rows
    off = np.bincount(leaf, (numbers - mean[leaf]) ** 2, n_leaves) / rows
    return np.stack([mean, np.sqrt(off)], axis=1)


def _by_leaf(leaf: Rows, labels: NDArray[Any], model: Any) -> Array:
    """Rows of each label at each leaf, (n_leaves, n_classes)."""
    ends, n_leaves = leaf >= 0, model.tree_.n_leaves
    counts = [
        np.bincount(leaf[ends & (labels == label)], minlength=n_leaves)
        for label in model.classes_
    ]
    return np.stack(counts, axis=1).astype(np.float64)


def _check_classes(display: TreeDisplay) -> None:
    """Refuse classes without names, or of another number."""
    names = display.classes
    shape = (display.tree.n_leaves, 0 if names is None else len(names))
    for what in ("leaf_classes", "leaf_answers"):
        mix = getattr(display, what)
        if mix is not None and mix.shape != shape:
            raise DataError(
                f"{what} has shape {mix.shape}, but the tree has {shape[0]} leaves and "
                f"{shape[1]} classes are named; give a line per leaf, a column per class, "
                f"and the names as classes."
            )


def _price(display: TreeDisplay) -> Callable[[frozenset[str], frozenset[str]], float]:
    """Price of an edge, with the discounts for what is known before."""
    return lambda then, known: float(display.sensors.cost_of(then, known))


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


def _table(display: TreeDisplay, vertices: Sequence[Vertex]) -> LeafTable:
    """What is known of the leaves, for the ends among some vertices."""
    return LeafTable(
        [vertex for vertex in vertices if vertex.is_leaf],
        display.leaf_share,
        display.leaf_cost,
        display.leaf_accuracy,
        display.leaf_classes,
        display.leaf_answers,
        display.judged,
        _class_names(display),
        display.leaf_numbers,
    )
