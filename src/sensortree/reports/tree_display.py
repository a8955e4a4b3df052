"""`TreeDisplay`: the ways of many rows through a tree; `PathDisplay`: that of one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sensortree.exceptions import DataError, ParameterError
from sensortree.policy.policy import Policy
from sensortree.policy.reasons import class_words, number_words
from sensortree.reports.drawing import CLASSES, Picture, boxed, page
from sensortree.reports.layout import (
    LINES,
    Column,
    Layout,
    Mix,
    Vertex,
    around,
    edge_words,
    node_words,
    placed,
    without_rare,
)
from sensortree.reports.report_sums import one_for_each
from sensortree.reports.words import known_column, money_format, percent, shortened
from sensortree.sensors.sensor import SensorSet
from sensortree.text import chance_words
from sensortree.tree.paths import leaf_costs, path_costs, vertex_paths
from sensortree.tree.tree import SensorTree
from sensortree.types import Array

if TYPE_CHECKING:
    from sensortree.reports.explanation import Explanation, PassedFork
    from sensortree.reports.interface import PolicyAnswers

LARGEST = 100_000  # bytes; a notebook keeps every picture that it ever showed
TOLD = 10  # folded leaves, or classes, of a line that are told where the mouse rests
ANSWERS = 2  # answers of a line that are told

Money = Callable[[float], str]  # how a price is written


class TreeDisplay(Picture):
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
        self.leaf_accuracy = _floats(leaf_accuracy)
        self.leaf_classes = _floats(leaf_classes)
        self.leaf_answers = _floats(leaf_answers)
        self.leaf_numbers = _floats(leaf_numbers)
        self.classes = None if classes is None else np.asarray(classes)
        self.judged = judged
        self.unit = unit
        self.max_leaves = max_leaves
        shape = tree.n_leaves, 0 if self.classes is None else len(self.classes)
        for what in ("leaf_classes", "leaf_answers"):
            mix = getattr(self, what)
            if mix is not None and mix.shape != shape:
                raise DataError(
                    f"{what} has shape {mix.shape}, but the tree has {shape[0]} leaves and "
                    f"{shape[1]} classes are named; give a line per leaf, a column per "
                    f"class, and the names as classes."
                )
        if max_leaves is not None and max_leaves < 1:
            raise ParameterError(
                f"max_leaves must be at least 1, got {max_leaves}; None draws all leaves."
            )

    def __repr__(self) -> str:
        return f"TreeDisplay({len(self.sensors)} sensors, {self.tree.n_leaves} leaves)"

    @classmethod
    def from_estimator(
        cls,
        model: PolicyAnswers,
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
        if X is None and y is not None:
            raise DataError("y was given without X; give the rows it belongs to.")
        policy = model.policy_
        shown = _of_training(policy) if X is None else _of_rows(model, X, y, prices)
        unit = policy.about.unit if unit is None else unit
        return cls(
            policy.tree, policy.sensors, **shown, unit=unit, max_leaves=max_leaves
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
            lambda then, known: float(self.sensors.cost_of(then, known)),
            self.tree,
        )

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
        lines: list[str] = []
        bars: dict[Vertex | None, str] = {None: ""}
        for v in self.vertices:
            root, last = v.parent is None, not v.parent or v.way == v.parent.n_ways - 1
            mark = "" if root else "└─ " if last else "├─ "
            bars[v] = bars[v.parent] + ("" if root else "   " if last else "│  ")
            which = f"{len(v.leaves)} leaves" if v.is_folded else v.name
            answer = ", ".join(self._judged(v)) if v.is_leaf else ""
            lines.append(
                f"{bars[v.parent]}{mark}{self._decided(v)}: {which}, "
                f"{percent(v.share)} of rows{'; ' if answer else ''}{answer}"
            )
        return "\n".join(lines)

    def _decided(self, vertex: Vertex) -> str:
        """What is bought on the way to a vertex, in one line."""
        if vertex.bought:
            return f"buy {', '.join(vertex.bought)}, +{self._price(vertex)}"
        if vertex.gathered > 1:
            return f"{vertex.gathered} rarer ways"
        return "nothing is known" if vertex.parent is None else "stop"

    def _price(self, vertex: Vertex) -> str:
        """Price of what an edge buys; a mean where every example has its own."""
        terms = self.sensors.terms
        varies = any(terms[self.sensors.index(name)].varies for name in vertex.bought)
        money = money_format(self.sensors.costs)
        return money(vertex.price) + (" on average" if varies else "")

    def _layout(self, measure: Callable[[str], float]) -> Layout:
        vertices = self.vertices
        ends = [vertex for vertex in vertices if vertex.is_leaf]
        return Layout(
            vertices,
            self._columns(ends),
            {
                v: node_words(v, f"{v.name}: {percent(v.share)} of rows")
                for v in vertices
                if not v.is_leaf
            },
            {v: edge_words(v, self._price(v), True) for v in vertices},
            measure,
            None if self.leaf_classes is None else self._bars(ends, self.leaf_classes),
        )

    def _tip(self, vertex: Vertex) -> list[str]:
        """All that is known about a vertex; the first lines are about its edge."""
        did = "nothing more is bought"
        if vertex.bought:
            did = f"bought: {', '.join(vertex.bought)}, +{self._price(vertex)}"
        elif vertex.gathered > 1:
            did = f"{vertex.gathered} ways that few rows take"
        lines = [
            f"{vertex.name}: {percent(vertex.share)} of rows",
            did,
            f"known: {', '.join(vertex.known) or 'nothing'}",
        ]
        if vertex.is_folded:  # leaves that most rows reach first
            first = sorted(vertex.leaves, key=lambda leaf: -self.leaf_share[leaf])
            for leaf in first[:TOLD]:
                more = self.tree.leaves[leaf].sensors.difference(vertex.known)
                bought = ", ".join(self.sensors.in_order(more)) or "nothing"
                share = percent(self.leaf_share[leaf])
                lines.append(f"leaf {leaf}: {share} of rows, + {bought}")
        if not vertex.is_leaf:
            return lines
        lines += self._judged(vertex)
        if self.leaf_classes is not None:
            shares, names = self._shares(self.leaf_classes, vertex), self._class_names
            order = np.argsort(-shares, kind="stable")[:TOLD]
            lines += [
                f"truly {names[i]}: {percent(shares[i])}" for i in order if shares[i]
            ]
        return lines

    # the table of leaves ------------------------------------------------------------------

    @property
    def _class_names(self) -> list[str]:
        """Names of the classes; a numeric label is prefixed with "class"."""
        classes = [] if self.classes is None else self.classes.tolist()
        return [class_words(label) for label in classes]

    def _columns(self, ends: Sequence[Vertex]) -> list[Column]:
        """Columns of the table: a line for each leaf, or for several that are folded."""
        money = money_format(self.sensors.costs)
        unit = f"\n({self.unit})" if self.unit else ""
        costs = [cost_words(self.leaf_cost[list(end.leaves)], money) for end in ends]
        return [
            *end_columns(ends),
            Column("share\nof rows", [percent(end.share) for end in ends]),
            Column(f"cost{unit}", costs),
            *(
                Column(head, [words(end, values) for end in ends], align)
                for head, align, words, values in self._measures()
            ),
        ]

    def _judged(self, end: Vertex) -> list[str]:
        """What is answered in a line, and how often rightly."""
        return [
            f"{head}: {words(end, values)}".replace("\n", " ")
            for head, _, words, values in self._measures()
        ]

    def _measures(
        self,
    ) -> Iterator[tuple[str, str, Callable[[Vertex, Array], str], Array]]:
        """What is known of answers: head, alignment, and the words for an end's values."""
        judged = f"\n({self.judged})" if self.judged else ""
        if self.leaf_answers is not None:
            yield "answers", "left", self._answer_words, self.leaf_answers
        if self.leaf_accuracy is not None:
            yield f"right{judged}", "right", self._right_words, self.leaf_accuracy
        if self.leaf_numbers is not None:
            yield f"mean ± sd{judged}", "right", self._number_words, self.leaf_numbers

    def _answer_words(self, end: Vertex, answers: Array) -> str:
        """What is answered in a line, the most frequent first; "–" without rows."""
        shares, names = self._shares(answers, end), self._class_names
        given = [i for i in np.argsort(-shares, kind="stable") if shares[i]]
        if len(given) == 1:
            return shortened(names[given[0]], 20)
        told = [
            f"{shortened(names[i], 20)} {chance_words(float(shares[i]))}"
            for i in given[:ANSWERS]
        ]
        return ", ".join(told + ["…"] * (len(given) > ANSWERS)) or "–"

    def _right_words(self, end: Vertex, accuracy: Array) -> str:
        """How many answers of a line are right; "–" without rows."""
        leaves = list(end.leaves)
        right, share = accuracy[leaves], self.leaf_share[leaves]
        mean = float(right[0])
        if leaves[1:]:
            came = ~np.isnan(right) & (share > 0)
            if not came.any():
                return "–"
            mean = float(np.average(right[came], weights=share[came]))
        return "–" if np.isnan(mean) else percent(mean)

    def _number_words(self, end: Vertex, numbers: Array) -> str:
        """Mean and standard deviation of the numbers of a line; "–" without rows."""
        leaves = list(end.leaves)
        share, (mean, deviation) = self.leaf_share[leaves], numbers[leaves].T
        total = float(share.sum())
        if not total:
            return "–"
        middle = float(share @ mean) / total
        squared = float(share @ (deviation**2 + (mean - middle) ** 2)) / total
        return number_words(middle, float(np.sqrt(squared)))

    def _bars(self, ends: Sequence[Vertex], classes: Array) -> Mix:
        """Classes of each line; the most frequent have a colour of their own."""
        names = [shortened(name, 32) for name in self._class_names]
        shares = np.array([self._shares(classes, end) for end in ends])
        if len(names) > len(CLASSES):
            overall = np.array([end.share for end in ends]) @ shares
            first = np.sort(np.argsort(-overall, kind="stable")[: len(CLASSES) - 1])
            others = f"{len(names) - len(first)} other classes"
            names = [*(names[i] for i in first), others]
            reached = shares.any(axis=1, keepdims=True)
            rest = reached - shares[:, first].sum(axis=1, keepdims=True)
            shares = np.hstack([shares[:, first], rest])
        return Mix(tuple(names), [s.tolist() if s.any() else [] for s in shares])

    def _shares(self, rows_of: Array, end: Vertex) -> Array:
        """Share of each class among the rows of a line, (n_classes,); 0 without rows."""
        rows = rows_of[list(end.leaves)]
        total = rows.sum(axis=1, keepdims=True)
        shares = np.divide(rows, total, out=np.zeros_like(rows), where=total > 0)
        if len(shares) == 1:
            return np.asarray(shares[0])
        weight = self.leaf_share[list(end.leaves)] * (total[:, 0] > 0)
        return np.asarray(weight @ shares / max(float(weight.sum()), 1e-300))


def end_columns(ends: Sequence[Vertex]) -> list[Column]:
    """Columns that name the leaves of each line, and what is known there at least."""
    cells = [
        f"{len(end.leaves)} leaves" if end.is_folded else str(end.number)
        for end in ends
    ]
    known = known_column([(end.known, end.is_folded) for end in ends])
    return [Column("leaf", cells), Column(*known)]


def cost_words(costs: Array, money: Money) -> str:
    """Price of the way to a leaf, or the least and the most of several."""
    return " to ".join(dict.fromkeys((money(costs.min()), money(costs.max()))))


def tree_in_notebook(model: PolicyAnswers, before: str) -> str:
    """Part of an HTML page that shows the tree of a fitted or a loaded model.

    It follows what is shown before; together they stay below `LARGEST` bytes.
    """
    display = TreeDisplay.from_estimator(model)
    for tips in (True, False):
        html = before + boxed(display.to_svg(tips=tips))
        if len(html.encode()) < LARGEST:
            return html
    return (
        f"{before}<p>The tree has {display.tree.n_leaves} leaves: too large to be shown "
        f"here. <code>to_html()</code> gives a page that shows it.</p>"
    )


# what is shown of a model -----------------------------------------------------------------


def _of_training(policy: Policy) -> dict[str, Any]:
    """The ways of the training rows, which a policy keeps."""
    flow, answers, rows = policy.flow, policy.flow.answers, policy.flow.leaf_rows
    share = rows / max(float(rows.sum()), 1e-300)
    shown: dict[str, Any] = {"leaf_share": share, "judged": "in training"}
    if flow.numbers is not None:
        numbers = np.stack([flow.numbers.mean, flow.numbers.deviation], axis=1)
        return shown | {"leaf_numbers": numbers}
    shown |= {"leaf_classes": flow.leaf_classes, "classes": policy.classes}
    if answers is None:
        return shown
    accuracy = _share(answers.right, rows)
    return shown | {"leaf_accuracy": accuracy, "leaf_answers": answers.given}


def _of_rows(
    model: PolicyAnswers, X: Any, y: Any, prices: ArrayLike | None
) -> dict[str, Any]:
    """The ways of some rows, with what they are answered."""
    given = {} if prices is None else {"prices": prices}
    leaf, answer = model.apply(X, **given), np.asarray(model.predict(X, **given))
    tree, classes = model.policy_.tree, model.policy_.classes
    truth = None if y is None else one_for_each("y", y, len(leaf), "right answer")
    ends = leaf >= 0  # others stop at a node, since they can afford no leaf
    rows = np.bincount(leaf[ends], minlength=tree.n_leaves).astype(np.float64)
    shown: dict[str, Any] = {"leaf_share": rows / len(leaf)}

    def by_leaf(values: NDArray[Any]) -> Array:
        counts = np.bincount(leaf[ends], values[ends], tree.n_leaves)
        return counts.astype(np.float64)

    if not len(classes):  # numbers are predicted
        numbers = np.asarray(answer if truth is None else truth, dtype=np.float64)
        mean = by_leaf(numbers) / np.maximum(rows, 1)
        off = by_leaf((numbers - mean[leaf]) ** 2) / np.maximum(rows, 1)
        return shown | {"leaf_numbers": np.stack([mean, np.sqrt(off)], axis=1)}

    def of_labels(labels: NDArray[Any]) -> Array:
        each = [by_leaf(np.asarray(labels == label)) for label in classes]
        return np.stack(each, axis=1)

    shown |= {"leaf_answers": of_labels(answer), "classes": classes}
    if truth is None:
        return shown
    accuracy = _share(by_leaf(answer == truth), rows)
    return shown | {"leaf_accuracy": accuracy, "leaf_classes": of_labels(truth)}


def _share(part: Array, rows: Array) -> Array:
    """Part of the rows of each leaf; NaN where there are none."""
    empty = np.full(len(rows), np.nan)
    return np.asarray(np.divide(part, rows, out=empty, where=rows > 0))


def _floats(values: ArrayLike | None) -> Array | None:
    return None if values is None else np.asarray(values, dtype=np.float64)


# one example's way ------------------------------------------------------------------------


@dataclass(eq=False, repr=False)
class PathDisplay(Picture):
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
    ax_, figure_, nodes_, edges_, edge_labels_, leaves_
        What `plot` drew, as in `TreeDisplay`.

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

    tree: SensorTree
    sensors: SensorSet
    place: int
    answer: str
    beliefs: Mapping[int, str]
    _: KW_ONLY
    prices: Array | None = None
    unit: str = ""
    max_leaves: int | None = LINES

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
        unit, max_leaves
            As in `from_explanation`.

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
        return number_words(at.answer, at.spread)
    return f"{at.answer} ({at.probabilities[at.answer]:.2f})"
