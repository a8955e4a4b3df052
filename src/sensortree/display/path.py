"""`PathDisplay`: one example's way through a tree."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sensortree.display.layout import Column, Layout, Vertex, edge_words, node_words
from sensortree.display.pen import draw
from sensortree.display.svg import svg
from sensortree.display.tree import placed
from sensortree.display.words import known_column, money_format
from sensortree.sensors.sensor_set import SensorSet
from sensortree.tree.paths import path_costs, vertex_paths
from sensortree.tree.tree import SensorTree
from sensortree.types import Array


class PathDisplay:
    """A tree of sensors, with the way of one example drawn thick and the rest pale.

    Parameters
    ----------
    tree : SensorTree
    sensors : SensorSet
    place : int
        Leaf where the example stops; ``~node`` if it stops at a node.
    answer : str
        What is answered there, in words.
    scores : mapping of int to float
        Score of each node that decided about the example.
    prices : ndarray of shape (1, n_sensors), default=None
        Prices of this example, if it has its own.
    unit : str, default=""
        What a price is counted in, for the head of the cost column.

    Attributes
    ----------
    vertices : tuple of Vertex
        The tree, depth first; the share of a vertex is 1 on the way, else 0.
    ax_ : matplotlib Axes
        Where `plot` drew.
    figure_ : matplotlib Figure
        The figure of `ax_`.
    nodes_ : list of matplotlib Text
        The boxes, in the tree's numbering.
    edges_ : list of matplotlib Line2D
        The edges, as in `vertices`.
    edge_labels_ : list of matplotlib Text
        What is written on the edges.
    leaves_ : list of lists of matplotlib Text
        The cells of each leaf's line in the table on the right.

    Examples
    --------
    >>> import numpy as np
    >>> from sensortree import PathDisplay, SensorTreeClassifier
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = X[:, 0] + (np.abs(X[:, 0]) < 0.5) * X[:, 1] > 0
    >>> model = SensorTreeClassifier(
    ...     {"cheap": [0], "dear": [1]}, costs={"cheap": 0, "dear": 5}, cost_weight=0.02)
    >>> explanation = model.fit(X, y).explain(X[0])
    >>> display = PathDisplay.from_explanation(explanation)
    >>> [vertex.number for vertex in display.vertices if vertex.share]
    [0, 1]

    Then ``display.plot()`` draws it.
    """

    ax_: Any
    figure_: Any

    def __init__(
        self,
        tree: SensorTree,
        sensors: SensorSet,
        place: int,
        answer: str,
        scores: Mapping[int, float],
        *,
        prices: Array | None = None,
        unit: str = "",
    ):
        self.tree = tree
        self.sensors = sensors
        self.place = place
        self.answer = answer
        self.scores = scores
        self.prices = prices
        self.unit = unit

    @classmethod
    def from_explanation(cls, explanation: Any, *, unit: str = "") -> PathDisplay:
        """Show what an explanation says.

        Parameters
        ----------
        explanation : Explanation
            Such as ``model.explain(x)``.
        unit : str, default=""
            What a price is counted in.

        Returns
        -------
        display : PathDisplay
            Not drawn yet; call its `plot`.
        """
        likely = explanation.probabilities[explanation.answer]
        return cls(
            explanation.policy.tree,
            explanation.policy.sensors,
            explanation.leaf,
            f"{explanation.answer} ({likely:.2f})",
            {passage.node: passage.score for passage in explanation.nodes},
            prices=explanation.prices,
            unit=unit,
        )

    @classmethod
    def from_estimator(
        cls, model: Any, x: Any, *, prices: ArrayLike | None = None, unit: str = ""
    ) -> PathDisplay:
        """Follow one row through a fitted tree.

        Parameters
        ----------
        model : fitted classifier of this package, or a loaded model
        x : array-like of shape (n_features,), pandas Series, or table of one row
        prices : array-like of shape (n_sensors,), default=None
            Prices of the row, if the model was fitted with such.
        unit : str, default=""
            What a price is counted in.

        Returns
        -------
        display : PathDisplay
            Not drawn yet; call its `plot`.
        """
        return cls.from_explanation(model.explain(x, prices), unit=unit)

    @property
    def vertices(self) -> tuple[Vertex, ...]:
        """The tree, depth first; the share of a vertex is 1 on the way, else 0."""
        tree = self.tree
        leaf_share = np.zeros(tree.n_leaves)
        node_share = np.zeros(tree.n_nodes)
        if self.place >= 0:
            leaf_share[self.place] = 1.0
            node_share[tree.path_signs[self.place] != 0] = 1.0
        elif ~self.place < tree.n_nodes:
            first = int(np.flatnonzero(tree.path_signs[:, ~self.place])[0])
            above = tree.path_signs[first] != 0
            node_share[: ~self.place + 1] = above[: ~self.place + 1]
        return placed(tree, self.sensors, node_share, leaf_share, self._price)

    def _price(self, then: frozenset[str], known: frozenset[str]) -> float:
        return float(np.sum(self.sensors.cost_of(then, known, self.prices)))

    def plot(self, ax: Any = None) -> PathDisplay:
        """Draw the tree with the way through it.

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

    def to_svg(self) -> str:
        """Draw the tree with the way through it as an SVG picture, without matplotlib.

        Returns
        -------
        svg : str
            As a tree's: it needs nothing from elsewhere and follows the page's theme.
        """
        return svg(self._layout, self._tip)

    def _layout(self, measure: Callable[[str], float]) -> Layout:
        vertices = self.vertices
        money = self._money()
        return Layout(
            vertices,
            self._table(money),
            {v: node_words(v, self._words(v)) for v in vertices if not v.is_leaf},
            {v: edge_words(v, money(v.price)) for v in vertices},
            measure,
        )

    def _money(self) -> Callable[[float], str]:
        prices = self.sensors.costs if self.prices is None else self.prices[0]
        return money_format(prices)

    def _tip(self, vertex: Vertex) -> list[str]:
        """What is known about a vertex; the first lines are about its edge."""
        what = f"{'leaf' if vertex.is_leaf else 'node'} {vertex.number}"
        bought = "nothing more is bought"
        if vertex.bought:
            price = self._money()(vertex.price)
            bought = f"bought: {', '.join(vertex.bought)}, +{price}"
        known = f"known: {', '.join(vertex.known) or 'nothing'}"
        return [f"{what}{'' if vertex.share else ', not on the way'}", bought, known]

    def _words(self, vertex: Vertex) -> str:
        """Second line in a node's box: its score, and the answer if it is given there."""
        words = f"node {vertex.number}"
        if vertex.number in self.scores:
            words += f": g = {self.scores[vertex.number]:+.2f}"
        return f"{words}\n{self.answer}" if self.place == ~vertex.number else words

    def _table(self, money: Callable[[float], str]) -> list[Column]:
        """Columns of the table of leaves."""
        unit = f"\n({self.unit})" if self.unit else ""
        leaves = self.tree.leaves
        costs = path_costs(vertex_paths(self.tree)[1], self.sensors, self.prices)
        known = [self.sensors.in_order(leaf.sensors) for leaf in leaves]
        answers = [self.answer if k == self.place else "" for k in range(len(leaves))]
        return [
            Column("leaf", [str(number) for number in range(len(leaves))]),
            Column(*known_column(known)),
            Column(f"cost{unit}", [money(c) for c in costs.reshape(-1)]),
            Column("answer", answers, "left"),
        ]
