"""`PassedFork`: where one row had several ways to go, which it took and which not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sensortree.policy.batch import Crossing, Walk
from sensortree.policy.reasons import Change, changes_of, would_change
from sensortree.policy.sentences import belief_words, number_words
from sensortree.tree.forks import Fork, Way, fork_at, leaves_behind
from sensortree.tree.paths import path_bill


@dataclass(frozen=True)
class Purchase:
    """A sensor that was bought, and the price that it charged."""

    sensor: str
    price: float


@dataclass(frozen=True)
class Branch:
    """A way out of a fork, for one row.

    Attributes
    ----------
    place : int
        Where it leads: a leaf, or ``~node`` for a node that knows more.
    bought : tuple of Purchase
        What is bought on it, at the row's prices; nothing where it stops.
    taken : bool
        Whether the row went this way.
    margin : float
        The least of the scores that speak for it, each with its sign: g_j where the way
        takes the positive child, -g_j where it takes the negative. It is 0 or more for the
        way that was decided, and 0 or less for all others.
    cost : (float, float)
        What it costs from here to a leaf, at least and at most.
    share : float or None
        Share of the training rows that came to the fork and went this way; None if none
        came.
    change : Change or None
        Training rows that went this way, and how many of them are answered otherwise in
        the end than at the fork; None if none did, or this was not counted.
    would_change : Change or None
        Training rows that stopped at the fork, and how many of them would have been
        answered otherwise had they been sent this way.
    """

    place: int
    bought: tuple[Purchase, ...]
    taken: bool
    margin: float
    cost: tuple[float, float]
    share: float | None
    change: Change | None = None
    would_change: Change | None = None

    @property
    def words(self) -> str:
        """What is done on it, with prices."""
        return bought_words(self.bought) or "stop"


@dataclass(frozen=True)
class PassedFork:
    """Nodes that know the same, where a row chose one of several ways.

    Attributes
    ----------
    nodes : tuple of int
        All nodes of the fork, those included that the row did not pass.
    known : tuple of str
        Sensors known there.
    spent : float
        Their price.
    rerouted : bool
        Whether the row could not afford what was decided.
    answer : class label
        What would be answered with what is known here.
    probabilities : mapping of class label to float
        By what is known here.
    branches : tuple of Branch
        All ways out, in the order of the tree's leaves; none is taken by a row that has to
        stop at a node.
    spread : float or None
        How far off a number is expected to be; None of classes.
    """

    nodes: tuple[int, ...]
    known: tuple[str, ...]
    spent: float
    rerouted: bool
    answer: Any
    probabilities: Mapping[Any, float]
    branches: tuple[Branch, ...]
    spread: float | None = None

    @property
    def words(self) -> str:
        """What would be answered here, and how sure that is."""
        if self.spread is not None:
            return f"so far {number_words(self.answer, self.spread)}"
        return belief_words(self.answer, self.probabilities[self.answer])

    def to_dict(self) -> dict[str, Any]:
        """Give the fork as plain numbers, strings, lists and dicts."""
        branches = [
            {
                **vars(branch),
                "bought": [vars(purchase).copy() for purchase in branch.bought],
                "cost": list(branch.cost),
                "change": _counts(branch.change),
                "would_change": _counts(branch.would_change),
            }
            for branch in self.branches
        ]
        listed = {
            "nodes": list(self.nodes),
            "known": list(self.known),
            "probabilities": {str(k): v for k, v in self.probabilities.items()},
        }
        own = {k: v for k, v in vars(self).items() if k != "spread" or v is not None}
        return {**own, **listed, "branches": branches}


def _counts(change: Change | None) -> dict[str, float] | None:
    return None if change is None else vars(change).copy()


def passed_forks(walk: Walk, trail: Sequence[Crossing]) -> tuple[PassedFork, ...]:
    """Forks on the way of the one row of a walk, from what was decided at its nodes."""
    found: list[tuple[Fork, list[Crossing]]] = []
    for crossing in trail:
        if not found or crossing.node not in found[-1][0].nodes:
            found.append((fork_at(walk.policy.tree, crossing.node), []))
        found[-1][1].append(crossing)
    return tuple(_passed(walk, fork, crossings) for fork, crossings in found)


def _passed(walk: Walk, fork: Fork, crossings: Sequence[Crossing]) -> PassedFork:
    """What one row decided at a fork.

    Its nodes know the same, so the scores of those that it did not pass cost nothing.
    """
    policy, evidence = walk.policy, crossings[0].evidence
    here = policy.places[~fork.nodes[0]]
    scores = {
        node: float(evidence.score(policy.places[~node])[0]) for node in fork.nodes
    }
    scores.update({c.node: float(c.score[0]) for c in crossings})
    likely, names = evidence.posterior(here), policy.labels
    return PassedFork(
        fork.nodes,
        here.names,
        float(walk.costs[0, here.number]),
        not all(c.goes_on[0] for c in crossings),
        policy.answers(likely).tolist()[0],
        dict(zip(names, likely[0].tolist(), strict=True)) if names else {},
        tuple(_branch(walk, fork, way, scores) for way in fork.ways),
        None if names else float(likely[0, 1]),
    )


def _branch(walk: Walk, fork: Fork, way: Way, scores: Mapping[int, float]) -> Branch:
    """One way out of a fork, for the row of a walk."""
    policy, costs = walk.policy, walk.costs[0]
    here, there = policy.places[~fork.nodes[0]], policy.places[~way.end]
    leaves = list(leaves_behind(policy.tree, way.end))
    beyond = costs[leaves] - costs[here.number]
    came = float(policy.flow.leaf_rows[list(here.leaves_below)].sum())
    rows = float(policy.flow.leaf_rows[leaves].sum())
    bill = path_bill(there.path, policy.sensors, walk.prices)
    return Branch(
        there.number,
        purchases(bill, there.sensors - here.sensors),
        _ends_behind(walk, fork, leaves),
        min(sign * scores[node] for node, sign in way.signs) + 0.0,  # -0.0 is 0.0
        (tidy(beyond.min()), tidy(beyond.max())),
        rows / came if came else None,
        changes_of(policy, way),
        would_change(policy, way),
    )


def _ends_behind(walk: Walk, fork: Fork, leaves: Sequence[int]) -> bool:
    """Whether the row of a walk stops behind a way, by the leaves there."""
    end = int(walk.place[0])
    if end >= 0:
        return end in leaves
    return ~end not in fork.nodes and walk.policy.places[end].leaves_below[0] in leaves


def purchases(bill: Mapping[str, Any], bought: frozenset[str]) -> tuple[Purchase, ...]:
    """Some sensors of a bill with their prices, in order of purchase."""
    return tuple(
        Purchase(name, float(np.sum(price)))
        for name, price in bill.items()
        if name in bought
    )


def bought_words(bought: Sequence[Purchase]) -> str:
    """What is bought, with prices; nothing if nothing is."""
    listed = ", ".join(f"{p.sensor} ({p.price:.4g})" for p in bought)
    return f"buy {listed}" if listed else ""


def tidy(price: float) -> float:
    """Difference of prices, without what rounding leaves."""
    return round(float(price), 9)
