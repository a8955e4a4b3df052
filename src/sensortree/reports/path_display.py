"""`PathDisplay`: one example's way through a tree."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from sensortree.reports.drawing import draw, svg
from sensortree.reports.layout import (
    LINES,
    Column,
    Layout,
    Vertex,
    around,
    edge_words,
    node_words,
    placed,
)
from sensortree.reports.tree_display import cost_words, end_columns
from sensortree.reports.words import money_format
from sensortree.sensors.sensor import SensorSet
from sensortree.tree.paths import path_costs, vertex_paths
from sensortree.tree.tree import SensorTree
from sensortree.types import Array

if TYPE_CHECKING:
    from sensortree.reports.explanation import Explanation, PassedFork
    from sensortree.reports.interface import PolicyAnswers


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
    beliefs : mapping of int to str
        For nodes that decided about the example, what was likely there, in words.
    prices : ndarray of shape (1, n_sensors), default=None
        Prices of this example, if it has its own.
    unit : str, default=""
        What a price is counted in, for the head of the cost column.
    max_leaves : int or None, default=32
        A tree of so many leaves is drawn whole; of a larger one, each way that the row
        did not take is one line. None draws all leaves.

    Attributes
    ----------
    vertices : tuple of Vertex
        What is drawn, depth first; the share of a vertex is 1 on the way, else 0.
    ax_ : matplotlib Axes
        Where `plot` drew.
    figure_ : matplotlib Figure
        The figure of `ax_`.
    nodes_ : list of matplotlib Text
        The boxes, as in `vertices`.
    edges_ : list of matplotlib Line2D
        The edges, as in `vertices`.
    edge_labels_ : list of matplotlib Text
        What is written on the edges.
    leaves_ : list of lists of matplotlib Text
        The cells of each line of the table on the right.

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
        beliefs: Mapping[int, str],
        *,
        prices: Array | None = None,
        unit: str = "",
        max_leaves: int | None = LINES,
    ):
        self.tree = tree
        self.sensors = sensors
        self.place = place
        self.answer = answer
        self.beliefs = beliefs
        self.prices = prices
        self.unit = unit
        self.max_leaves = max_leaves

    def __repr__(self) -> str:
        return f"PathDisplay(place={self.place}, answer={self.answer!r})"

    @classmethod
    def from_explanation(
        cls,
        explanation: Explanation,
        *,
        unit: str | None = None,
        max_leaves: int | None = LINES,
    ) -> PathDisplay:
        """Show what an explanation says.

        Parameters
        ----------
        explanation : Explanation
            Such as ``model.explain(x)``.
        unit : str, default=None
            What a price is counted in; by default what the model says.
        max_leaves : int or None, default=32
            Leaves of a tree that is drawn whole.

        Returns
        -------
        display : PathDisplay
            Not drawn yet; call its `plot`.
        """
        beliefs = {
            fork.nodes[0]: f"so far {_answer(fork)}" for fork in explanation.forks
        }
        return cls(
            explanation.policy.tree,
            explanation.policy.sensors,
            explanation.leaf,
            _answer(explanation),
            beliefs,
            prices=explanation.prices,
            unit=explanation.policy.about.unit if unit is None else unit,
            max_leaves=max_leaves,
        )

    @classmethod
    def from_estimator(
        cls,
        model: PolicyAnswers,
        x: Any,
        *,
        prices: ArrayLike | None = None,
        unit: str | None = None,
        max_leaves: int | None = LINES,
    ) -> PathDisplay:
        """Follow one row through a fitted tree.

        Parameters
        ----------
        model : fitted classifier of this package, or a loaded model
        x : array-like of shape (n_features,), pandas Series, or table of one row
        prices : array-like of shape (n_sensors,), default=None
            Prices of the row, if the model was fitted with such.
        unit : str, default=None
            What a price is counted in; by default what the model says.
        max_leaves : int or None, default=32
            Leaves of a tree that is drawn whole.

        Returns
        -------
        display : PathDisplay
            Not drawn yet; call its `plot`.
        """
        told = model.explain(x, prices)
        return cls.from_explanation(told, unit=unit, max_leaves=max_leaves)

    @property
    def vertices(self) -> tuple[Vertex, ...]:
        """What is drawn, depth first; the share of a vertex is 1 on the way, else 0."""
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
        on_way = np.flatnonzero(node_share).tolist()
        outline = around(tree, on_way, self.max_leaves)
        return placed(outline, self.sensors, node_share, leaf_share, self._price, tree)

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
            self._table([v for v in vertices if v.is_leaf], money),
            {v: node_words(v, self._words(v)) for v in vertices if not v.is_leaf},
            {v: edge_words(v, money(v.price)) for v in vertices},
            measure,
        )

    def _money(self) -> Callable[[float], str]:
        prices = self.sensors.costs if self.prices is None else self.prices[0]
        return money_format(prices)

    def _tip(self, vertex: Vertex) -> list[str]:
        """What is known about a vertex; the first lines are about its edge."""
        bought = "nothing more is bought"
        if vertex.bought:
            price = self._money()(vertex.price)
            bought = f"bought: {', '.join(vertex.bought)}, +{price}"
        known = f"known: {', '.join(vertex.known) or 'nothing'}"
        off = "" if vertex.share else ", not on the way"
        return [f"{vertex.name}{off}", bought, known]

    def _words(self, vertex: Vertex) -> str:
        """Lines in a node's box: what is likely there, or the answer that is given."""
        if ~self.place in vertex.nodes:
            return f"{vertex.name}\n{self.answer}"
        belief = self.beliefs.get(vertex.nodes[0])
        return vertex.name if belief is None else f"{vertex.name}\n{belief}"

    def _table(self, ends: list[Vertex], money: Callable[[float], str]) -> list[Column]:
        """Columns of the table of leaves."""
        unit = f"\n({self.unit})" if self.unit else ""
        paths = vertex_paths(self.tree)[1]
        costs = path_costs(paths, self.sensors, self.prices).reshape(-1)
        answers = [self.answer if self.place in end.leaves else "" for end in ends]
        prices = [cost_words(costs[list(end.leaves)], money) for end in ends]
        return [
            *end_columns(ends),
            Column(f"cost{unit}", prices),
            Column("answer", answers, "left"),
        ]


def _answer(at: Explanation | PassedFork) -> str:
    """Answer of an explanation, or of one of its forks, and how sure it is."""
    if at.spread is not None:
        return f"{at.answer:.4g} ± {at.spread:.2g}"
    return f"{at.answer} ({at.probabilities[at.answer]:.2f})"
