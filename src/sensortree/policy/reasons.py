"""Why a decision went the way it did: what adds to its score, and what it changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sensortree.policy.decisions import (
    PREDICTION,
    PROBABILITY,
    Meaning,
    feature_meanings,
)
from sensortree.policy.walk import Evidence, sum_of_bill
from sensortree.text import (
    chance_words,
    frequency_words,
    plain,
    reading_words,
    rounded,
    value_words,
)
from sensortree.tree.forks import Way, fork_of, leaves_behind
from sensortree.types import Array

if TYPE_CHECKING:
    from sensortree.policy.about import About
    from sensortree.policy.policy import Policy


SHOWN = 3  # contributions in the text

# Values of each sensor's columns, as they were told or read.
Values = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class Contribution:
    """What one decision feature adds to a score.

    `value` is None where the reading is missing; the feature then counts as its mean.
    """

    name: str
    value: float | None
    standardised: float
    contribution: float


@dataclass(frozen=True)
class Influence:
    """What one thing that is known adds to a score, in plain words.

    It is a column with its value, as it was before a transformer ("smoking = former"), the
    probability so far, or a price. All decision features that are made of it are one.
    """

    words: str
    contribution: float


@dataclass(frozen=True)
class Change:
    """Training rows, by weight, and how many of them are answered otherwise elsewhere."""

    rows: float
    changed: float

    # By how much answers that are numbers change, in the mean; None of classes.
    moved: ClassVar[float | None] = None

    @property
    def share(self) -> float:
        """Share that is answered otherwise."""
        return self.changed / self.rows


@dataclass(frozen=True)
class Move(Change):
    """Training rows, by weight, and by how much, in the mean, their answers change."""

    @property
    def moved(self) -> float:  # type: ignore[override]  # a number of each, here
        """By how much."""
        return self.changed


class Reason:
    """Why a step was taken: the last decision before it. Worked out when it is asked for.

    As text it is one plain sentence; `details` has the numbers.

    Attributes
    ----------
    node : int
    score : float
        The value of the decision function; above 0 is the positive side.
    """

    def __init__(
        self,
        policy: Policy,
        node: int,
        score: float,
        evidence: Evidence,
        values: Values,
        end: int,
        towards: frozenset[str],
        obstacle: str,
        known: frozenset[str],
        prices: Array | None,
    ):
        self._policy, self._evidence, self._values = policy, evidence, values
        self._end, self._towards, self._obstacle = end, towards, obstacle
        self._known, self._prices = known, prices
        self._columns = evidence.columns(policy.places[~node])
        self.node, self.score = node, score

    @property
    def contributions(self) -> tuple[Contribution, ...]:
        """What each feature adds to the score, largest first, without the intercept."""
        return contributions_to(self._policy, self.node, self._columns)

    @property
    def influences(self) -> tuple[Influence, ...]:
        """What each thing that is known adds to the score, in words, largest first."""
        return influences_on(self._policy, self.node, self._columns, self._values)

    @property
    def share(self) -> float | None:
        """Share of the training rows at this node that went the same way."""
        return shares_of(self._policy, self.node)[int(self.score > 0)]

    @property
    def proba(self) -> Array:
        """Class probabilities at the node, before what was bought then, (n_classes,)."""
        likely = self._evidence.posterior(self._policy.places[~self.node])
        return np.asarray(likely[0])

    @property
    def change(self) -> Change | None:
        """Training rows that went the same way, and whose answer that changed.

        None where no row went there, or the model was learned before this was counted.
        """
        way = self._way
        return None if way is None else changes_of(self._policy, way)

    @property
    def bought(self) -> tuple[str, ...]:
        """Sensors that the decision led to, in declared order; none where it stops."""
        bought = self._towards - self._policy.places[~self.node].sensors
        return self._policy.sensors.in_order(bought)

    @property
    def text(self) -> str:
        """Why, in one plain sentence."""
        policy, way = self._policy, self._way
        belief = belief_of(policy, self.proba)
        here, names = policy.places[~self.node], self.bought
        if self._obstacle != "policy":
            return f"{belief}; {obstacle_words(self._obstacle, names)}"
        if way is not None and names:
            subject, change = names_words(names), self.change
            if change is None:
                return f"{belief}; {subject} next"
            follows = way.end >= 0  # a node
            changes = purchase_words(subject, len(names), change, follows)
            return f"{belief}; {changes}"
        if way is not None and way.end < 0 and policy.places[~way.end].refers:
            return f"{belief}; hands over to a person"
        other = most_useful(policy, self.node)
        if other is None:
            return f"{belief}; stops here"
        more = policy.places[~other.end].sensors - here.sensors
        names = policy.sensors.in_order(more)
        costs = [self._price(k) for k in leaves_behind(policy.tree, other.end)]
        cost = cost_words(min(costs), max(costs), policy.about)
        change, follows = would_change(policy, other), other.end >= 0
        return f"{belief}; {stop_words(names, change, cost, follows)}"

    @property
    def details(self) -> str:
        """The score, what adds most to it, and how many went this way."""
        shown = ", ".join(
            f"{c.name} {c.contribution:+.3g}" for c in self.contributions[:SHOWN]
        )
        share = (
            "" if self.share is None else f"; {100 * self.share:.1f} % went this way"
        )
        return f"node {self.node}: g = {self.score:+.3g} ({shown}){share}"

    def to_dict(self) -> dict[str, Any]:
        """Give the reason as plain numbers, strings, lists and dicts."""
        change = self.change
        form: dict[str, Any] = plain(
            {
                "text": self.text,
                "node": self.node,
                "score": self.score,
                "share": self.share,
                **output_words(self._policy.labels, self.proba),
                "change": None if change is None else vars(change),
                "influences": [vars(influence) for influence in self.influences],
                "contributions": [vars(c) for c in self.contributions],
            }
        )
        return form

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<Reason: {self.text}>"

    @property
    def _way(self) -> Way | None:
        """The way that was taken out of the fork; None if it had to stop at the node."""
        below = self._policy.places[self._end].leaves_below
        if not below or self._end == ~self.node:
            return None
        fork = fork_of(self._policy.tree, self.node)
        for way in fork.ways:
            if below[0] in leaves_behind(self._policy.tree, way.end):
                return way
        return None

    def _price(self, place: int) -> float:
        path = self._policy.places[place].path
        return sum_of_bill(path, self._policy.sensors, self._prices, self._known)


def by_class(classes: Iterable[Any], proba: Array) -> dict[str, float]:
    """Probabilities by the name of their class."""
    return dict(zip(map(str, classes), proba.tolist(), strict=True))


def output_words(classes: Sequence[Any], output: Array) -> dict[str, Any]:
    """Output of a leaf for one row: `proba` by class; or `prediction` and `spread`."""
    if classes:
        return {"proba": by_class(classes, output)}
    return {"prediction": float(output[0]), "spread": float(output[1])}


def shares_of(policy: Policy, node: int) -> tuple[float, float] | tuple[None, None]:
    """Shares of the training rows at a node that went to its negative, positive side."""
    flow, tree = policy.flow, policy.tree
    rows = [
        float(flow.leaf_rows[tree.path_signs[:, node] == side].sum())
        for side in (-1, 1)
    ]
    came = sum(rows)
    return (rows[0] / came, rows[1] / came) if came else (None, None)


def changes_of(policy: Policy, way: Way) -> Change | None:
    """Training rows that took a way, and how many of them it answers otherwise."""
    answers, numbers = policy.flow.answers, policy.flow.numbers
    rows = policy.flow.leaf_rows[list(leaves_behind(policy.tree, way.end))].sum()
    node, sign = way.signs[-1]
    if numbers is not None and rows:
        return Move(float(rows), float(numbers.moved[node, int(sign > 0)]))
    if answers is None or not rows:
        return None
    return Change(float(rows), float(answers.changed[node, int(sign > 0)]))


def would_change(policy: Policy, way: Way) -> Change | None:
    """Training rows that stopped at a fork, and how many a way would answer otherwise."""
    answers, numbers = policy.flow.answers, policy.flow.numbers
    node, sign = way.signs[-1]
    rows = policy.flow.leaf_rows[list(policy.stop_leaves[node])].sum()
    if numbers is not None and rows:
        return Move(float(rows), float(numbers.would_move[node, int(sign > 0)]))
    if answers is None or not rows:
        return None
    return Change(float(rows), float(answers.would_change[node, int(sign > 0)]))


def most_useful(policy: Policy, node: int) -> Way | None:
    """The way that buys at a node's fork and would change most answers of who stopped.

    The first of equals; None if nothing can be bought there.
    """
    tree, best, most = policy.tree, None, -1.0
    for way in fork_of(tree, node).ways:
        if policy.places[~way.end].sensors == tree.nodes[node].sensors:
            continue
        change = would_change(policy, way)
        changed = 0.0 if change is None else change.changed
        if changed > most:
            best, most = way, changed
    return best


def contributions_to(
    policy: Policy, node: int, columns: Array
) -> tuple[Contribution, ...]:
    """What each feature adds to a node's score, largest first.

    `columns` are those of the node's decision features as they are, (1, width).
    """
    every = [contribution for contribution, _ in _contributions(policy, node, columns)]
    return tuple(sorted(every, key=lambda c: -abs(c.contribution)))


def influences_on(
    policy: Policy, node: int, columns: Array, values: Values
) -> tuple[Influence, ...]:
    """What each thing that is known adds to a node's score, largest first.

    `columns` are those of the node's decision features as they are, (1, width).
    """
    sums: dict[str, float] = {}
    for contribution, meaning in _contributions(policy, node, columns):
        words = _thing_words(policy, contribution, meaning, values)
        sums[words] = sums.get(words, 0.0) + contribution.contribution
    every = [Influence(words, total) for words, total in sums.items()]
    return tuple(sorted(every, key=lambda influence: -abs(influence.contribution)))


def _thing_words(
    policy: Policy, contribution: Contribution, meaning: Meaning, values: Values
) -> str:
    """What a feature is about, with its value."""
    if meaning.about == PROBABILITY:
        return "the probability"
    if meaning.about == PREDICTION:
        return "the answer so far"
    if isinstance(meaning.about, str):  # a price, or what only its maker knows
        value = "missing" if contribution.value is None else contribution.value
        return f"{contribution.name} = {value_words(value)}"
    return " and ".join(
        reading_words(policy.columns_of[sensor][at], values[sensor][at])
        for sensor, at in sorted(meaning.about)
    )


def _contributions(
    policy: Policy, node: int, columns: Array
) -> list[tuple[Contribution, Meaning]]:
    """What each feature adds to a node's score, with what it means, in their order."""
    features, coef = policy.decisions[node].features, policy.decisions[node].coef
    row = columns[0]
    missing = np.isnan(row)
    standardised = np.where(missing, 0.0, (row - features.center) / features.scale)
    meanings = feature_meanings(policy, node, len(row))
    every = [
        (
            Contribution(
                meaning.name,
                None if gone else float(value),
                float(z),
                float(theta * z),
            ),
            meaning,
        )
        for meaning, value, z, gone, theta in zip(
            meanings, row, standardised, missing, coef, strict=False
        )
    ]
    for column, theta in zip(
        np.flatnonzero(features.may_miss), coef[len(row) : -1], strict=True
    ):
        gone, meaning = float(missing[column]), meanings[column]
        absent = Contribution(
            f"{meaning.name} is missing", gone, gone, float(gone * theta)
        )
        every.append((absent, meaning))
    return every


FEW = 20  # rows, below which they are counted out
FOLLOWING = "with what may follow"
NAMED = 3  # sensors that are named one by one
FOR, AGAINST, SMALL = 3, 2, 0.2  # influences that are told, and what is too small


def class_words(label: Any) -> str:
    """A class by its name; a numeric label is prefixed with "class"."""
    return label if isinstance(label, str) else f"class {label}"


def belief_words(label: Any, probability: float) -> str:
    """What would be answered by what is known so far, and how likely that is."""
    return f"so far {class_words(label)} (probability {chance_words(probability)})"


def number_words(answer: float, spread: float) -> str:
    """A number with how far off it may be."""
    return f"{rounded(answer)} ± {rounded(spread, 2)}"


def belief_of(policy: Policy, output: Array) -> str:
    """What would be answered so far, by a leaf's output for one row, and how surely."""
    if policy.loss.numbers:
        return f"so far {number_words(*output.tolist())}"
    at = int(policy.loss.answer(output[None, :])[0])
    return belief_words(policy.labels[at], float(output[at]))


def change_words(change: Change) -> str:
    """How many rows like this one are answered otherwise."""
    counts = [round(number, 6) for number in (change.changed, change.rows)]
    whole = all(float(number).is_integer() for number in counts)
    if whole and (change.rows < FEW or not change.changed):
        changed = f"{counts[0]:.0f}" if change.changed else "none"
        return f"{changed} of {counts[1]:.0f} like this"
    return f"{frequency_words(change.share)} like this"


def names_words(names: Sequence[str]) -> str:
    """Sensors as the subject of a sentence."""
    if len(names) > NAMED:
        return f"{', '.join(names[: NAMED - 1])} and {len(names) - NAMED + 1} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)


def purchase_words(subject: str, number: int, change: Change, may_follow: bool) -> str:
    """What a purchase of so many sensors does to the answer in the end.

    With `may_follow`, more may be bought after it.
    """
    ending = "s" if number == 1 else ""
    who = f"{subject}, {FOLLOWING}," if may_follow else subject
    if change.moved is not None:
        return (
            f"{who} move{ending} the answer by {rounded(change.moved, 3)} in the mean"
        )
    return f"{who} change{ending} the answer for {change_words(change)}"


def cost_words(low: float, high: float, about: About) -> str:
    """A price, or the least and the most of several."""
    return about.money(low) if low == high else f"{low:g} to {about.money(high)}"


def stop_words(
    names: Sequence[str], change: Change | None, cost: str, may_follow: bool
) -> str:
    """What it would do to buy more, and what that would cost.

    With `may_follow`, more may be bought after it.
    """
    who = names_words(names) + (f", {FOLLOWING}," if may_follow else "")
    if change is None:
        return f"stops here: {who} would cost {cost}"
    changes = f"{who} would change the answer for {change_words(change)}"
    if change.moved is not None:
        changes = (
            f"{who} would move the answer by {rounded(change.moved, 3)} in the mean"
        )
    return f"stops here: {changes}, and cost {cost}"


def obstacle_words(obstacle: str, names: Sequence[str]) -> str:
    """What keeps an example from going where it was sent, and what it does instead."""
    because = {
        "limit": "what it would buy next is beyond the limit",
        "unavailable": "what it would buy next cannot be had",
    }[obstacle]
    instead = f"{names_words(names)} instead" if names else "stops here"
    return f"{because}: {instead}"


def influence_words(influences: Sequence[Influence], sign: int) -> str:
    """What speaks for the side of a score, -1 or 1, and, if anything does, what against it.

    The weightiest come first.
    """
    least = SMALL * max((abs(i.contribution) for i in influences), default=0.0)
    told = [i for i in influences if abs(i.contribution) >= max(least, 1e-12)]
    pro = [i.words for i in told if sign * i.contribution > 0][:FOR]
    contra = [i.words for i in told if sign * i.contribution < 0][:AGAINST]
    words = ", ".join(pro) or "what is usual here"
    return f"{words}; against it: {', '.join(contra)}" if contra else words
