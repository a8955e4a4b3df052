"""`Explanation`: one row's way through the tree, and why it went that way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from sensortree.exceptions import DataError
from sensortree.policy.batch import Crossing, Walk
from sensortree.policy.policy import Policy
from sensortree.policy.reasons import Contribution, contributions_to, shares_of
from sensortree.sensors.table import Table
from sensortree.tree.paths import path_bill
from sensortree.types import Array

if TYPE_CHECKING:
    from sensortree.display import PathDisplay

SHOWN = 3  # contributions of a node in the text


@dataclass(frozen=True)
class Purchase:
    """A sensor that was bought, and the price that it charged."""

    sensor: str
    price: float


@dataclass(frozen=True)
class Passage:
    """A node that the row passed, and what it decided there.

    Attributes
    ----------
    node : int
    known : tuple of str
        Sensors known there.
    spent : float
        Their price.
    score : float
        g_j: above 0 takes the positive child.
    taken : {"negative", "positive"}
        What the score decided.
    rerouted : bool
        Whether the row could not afford that, and was sent to the best place within
        ``max_cost``.
    contributions : tuple of Contribution
        Largest first; with the intercept they add up to the score.
    intercept : float
    bought : tuple of Purchase
        What the row bought next.
    other_cost : (float, float)
        What the other branch would have cost from here, at least and at most.
    share_negative, share_positive : float or None
        Share of the training rows that came to the node and went each way; None if none
        came.
    """

    node: int
    known: tuple[str, ...]
    spent: float
    score: float
    taken: str
    rerouted: bool
    contributions: tuple[Contribution, ...]
    intercept: float
    bought: tuple[Purchase, ...]
    other_cost: tuple[float, float]
    share_negative: float | None
    share_positive: float | None


@dataclass(frozen=True)
class Explanation:
    """One row's way through the tree: what was decided, why, and at what price.

    Attributes
    ----------
    start : tuple of Purchase
        What is bought before the first decision.
    nodes : tuple of Passage
        Every node that the row passed: ``node``, ``known``, ``spent``, ``score``,
        ``taken``, ``rerouted``, ``contributions``, ``intercept``, ``bought``,
        ``other_cost``, ``share_negative``, ``share_positive``.
    leaf : int
        Where the row stops; ``~node`` if it can afford no leaf.
    known : tuple of str
        Sensors known there.
    answer : class label
    probabilities : mapping of class label to float
    expected_loss : mapping of class label to float, or None
        Loss to expect of each answer, if there is a loss matrix.
    spent : float
    everything : float
        What all sensors would have cost.
    policy : Policy

    Examples
    --------
    >>> import numpy as np
    >>> from sensortree import SensorTreeClassifier
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = X[:, 0] + (np.abs(X[:, 0]) < 0.5) * X[:, 1] > 0
    >>> model = SensorTreeClassifier(
    ...     {"cheap": [0], "dear": [1]}, costs={"cheap": 1, "dear": 5}, cost_weight=0.02)
    >>> explanation = model.fit(X, y).explain([3.0, np.nan])
    >>> explanation.answer, explanation.spent
    (True, 1.0)
    >>> node = explanation.nodes[0]
    >>> node.taken, node.other_cost
    ('negative', (5.0, 5.0))
    """

    start: tuple[Purchase, ...]
    nodes: tuple[Passage, ...]
    leaf: int
    known: tuple[str, ...]
    answer: Any
    probabilities: Mapping[Any, float]
    expected_loss: Mapping[Any, float] | None
    spent: float
    everything: float
    policy: Policy = field(repr=False, compare=False)
    prices: Array | None = field(default=None, repr=False, compare=False)

    @property
    def place(self) -> str:
        """Where the row stops, in words: a leaf, a node, or the start."""
        if self.leaf >= 0:
            return f"leaf {self.leaf}"
        at_start = ~self.leaf == self.policy.tree.n_nodes
        return "the start" if at_start else f"node {~self.leaf}"

    @property
    def rerouted_at(self) -> int | None:
        """Node where the row could not afford what was decided; None if nowhere."""
        return next((p.node for p in self.nodes if p.rerouted), None)

    def to_dict(self) -> dict[str, Any]:
        """Give the explanation as plain numbers, strings, lists and dicts."""
        return {
            "start": [vars(purchase).copy() for purchase in self.start],
            "nodes": [_passage_dict(passage) for passage in self.nodes],
            "leaf": self.leaf,
            "known": list(self.known),
            "answer": self.answer,
            "probabilities": _by_name(self.probabilities),
            "expected_loss": _by_name(self.expected_loss),
            "spent": self.spent,
            "everything": self.everything,
            "rerouted_at": self.rerouted_at,
        }

    def __str__(self) -> str:
        likely = f"probability {self.probabilities[self.answer]:.3g}"
        if self.expected_loss is not None:
            likely += f", expected loss {self.expected_loss[self.answer]:.4g}"
        head = (
            f"{self.answer!r} at {self.place} ({likely}); "
            f"spent {self.spent:.4g} of {self.everything:.4g}"
        )
        begin = f"start: {_bought_words(self.start) or 'nothing is known'}"
        passages = [_passage_text(p, p is self.nodes[-1]) for p in self.nodes]
        return "\n".join([head, begin, *passages])

    def plot(self, ax: Any = None) -> PathDisplay:
        """Draw the tree with the row's way.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; by default a new figure.
        """
        from sensortree.display import PathDisplay

        return PathDisplay.from_explanation(self).plot(ax)


def explain(policy: Policy, table: Table) -> Explanation:
    """Follow the one row of a table through a policy.

    Nothing but the sensors that the row acquires is read.
    """
    if table.shape[0] != 1:
        raise DataError(
            f"an explanation is of one row, got {table.shape[0]}; explain them one by one."
        )
    trail: list[Crossing] = []
    walk = Walk(policy, table, trail=trail)
    place = policy.places[int(walk.place[0])]
    bill = path_bill(place.path, policy.sensors, walk.prices)
    first = place.path[0] if place.path else frozenset()
    sensors, names = policy.sensors, policy.classes.tolist()
    likely = walk.posterior()
    matrix = policy.loss.matrix
    expected = None if matrix is None else (likely @ matrix)[0].tolist()
    return Explanation(
        start=_purchases(bill, first),
        nodes=tuple(_passage(walk, crossing, bill) for crossing in trail),
        leaf=place.number,
        known=place.names,
        answer=names[int(policy.loss.answer(likely)[0])],
        probabilities=dict(zip(names, likely[0].tolist(), strict=True)),
        expected_loss=None
        if expected is None
        else dict(zip(names, expected, strict=True)),
        spent=float(walk.cost()[0]),
        everything=float(np.sum(sensors.cost_of(sensors.names, prices=walk.prices))),
        policy=policy,
        prices=walk.prices,
    )


def _passage(walk: Walk, crossing: Crossing, bill: Mapping[str, Any]) -> Passage:
    """What one row decided at a node, and why."""
    policy, tree, costs = walk.policy, walk.policy.tree, walk.costs[0]
    node, score = crossing.node, float(crossing.score[0])
    upward, rerouted = score > 0, not crossing.goes_on[0]
    here = policy.places[~node]
    end = int(walk.place[0]) if rerouted else here.positive if upward else here.negative
    spent = float(costs[~node])
    others = tree.path_signs[:, node] == (-1 if upward else 1)
    beyond = costs[: tree.n_leaves][others] - spent
    negative, positive = shares_of(policy, node)
    return Passage(
        node,
        here.names,
        spent,
        score,
        "positive" if upward else "negative",
        rerouted,
        contributions_to(policy, node, crossing.columns),
        float(policy.decisions[node].coef[-1]),
        _purchases(bill, policy.places[end].sensors - here.sensors),
        (_tidy(beyond.min()), _tidy(beyond.max())),
        negative,
        positive,
    )


def _purchases(bill: Mapping[str, Any], bought: frozenset[str]) -> tuple[Purchase, ...]:
    """Some sensors of a bill with their prices, in order of purchase."""
    return tuple(
        Purchase(name, float(np.sum(price)))
        for name, price in bill.items()
        if name in bought
    )


def _tidy(price: float) -> float:
    """Difference of prices, without what rounding leaves."""
    return round(float(price), 9)


def _by_name(numbers: Mapping[Any, float] | None) -> dict[str, float] | None:
    return None if numbers is None else {str(k): v for k, v in numbers.items()}


def _passage_dict(passage: Passage) -> dict[str, Any]:
    return {
        **vars(passage),
        "known": list(passage.known),
        "contributions": [vars(c).copy() for c in passage.contributions],
        "bought": [vars(purchase).copy() for purchase in passage.bought],
        "other_cost": list(passage.other_cost),
    }


def _bought_words(bought: tuple[Purchase, ...]) -> str:
    listed = ", ".join(f"{p.sensor} ({p.price:.4g})" for p in bought)
    return f"buy {listed}" if listed else ""


def _passage_text(passage: Passage, is_last: bool) -> str:
    """Lines of text about one node."""
    sign = "> 0" if passage.taken == "positive" else "≤ 0"
    action = _bought_words(passage.bought) or ("stop" if is_last else "go on")
    if passage.rerouted:
        action = f"too dear, so the best within max_cost: {action}"
    lines = [f"node {passage.node}: g = {passage.score:+.3g} {sign}, {action}"]
    for c in passage.contributions[:SHOWN]:
        value = "missing" if c.value is None else f"{c.value:.4g}"
        lines.append(f"  {c.contribution:+.3g}  {c.name} = {value}")
    rest = sum(c.contribution for c in passage.contributions[SHOWN:])
    if passage.contributions[SHOWN:]:
        lines.append(f"  {rest:+.3g}  {len(passage.contributions) - SHOWN} more")
    lines.append(f"  {passage.intercept:+.3g}  intercept")
    low, high = passage.other_cost
    more = f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"
    instead = f"cost {more} more" if high > 0 else "buy nothing more"
    other = (
        passage.share_negative
        if passage.taken == "positive"
        else passage.share_positive
    )
    took = "" if other is None else f"; {100 * other:.1f} % of training rows took it"
    lines.append(f"  the other way would {instead}{took}")
    return "\n".join(lines)
