"""`Step` and `Decision`: what a policy says next, and in the end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from sensortree.policy.reasons import Reason
from sensortree.types import Array

Because = Literal["policy", "limit", "unavailable"]


class Step(NamedTuple):
    """What to do next, given what is known.

    Attributes
    ----------
    action : {"acquire", "stop"}
    sensor : str or None
        The sensor to acquire next.
    sensors : tuple of str
        All that will be acquired before the next decision, in order.
    columns : tuple of str
        Columns that `sensor` reads.
    cost : float
        Price of `sensor` now.
    spent : float
        Price of what was acquired so far.
    worst_case_remaining : float
        The most that may still be spent, the price of `sensor` included.
    proba : ndarray of shape (n_classes,)
        Class probabilities by what is known where the policy stands.
    why : Reason or None
        The last decision: its node and score, what adds most to the score, the share of
        training rows that went the same way; None before the first.
    """

    action: Literal["acquire", "stop"]
    sensor: str | None
    sensors: tuple[str, ...]
    columns: tuple[str, ...]
    cost: float
    spent: float
    worst_case_remaining: float
    proba: Array
    why: Reason | None


@dataclass(frozen=True, eq=False)
class Decision:
    """The answer of a session, and what it took.

    Attributes
    ----------
    label : class
    proba : ndarray of shape (n_classes,)
        Probabilities of ``policy.classes``.
    spent : float
        Price of what the policy asked for and got.
    saved : float
        What buying everything would have cost on top.
    acquired : tuple of str
        What it asked for and got, in order.
    place : int
        The leaf; ``~node`` if it had to stop at a node.
    stopped_because : {"policy", "limit", "unavailable"}
    rerouting_loss : float
        Where a limit or an unavailable sensor forced another way: how much more the
        training examples that came to the same node lose there, on average, than where
        they went. On a detour: how much more those that it was learned from lose on it.
    around : str or None
        The unavailable sensor on whose detour it ended; `place` is one of the detour.
    """

    label: Any
    proba: Array
    spent: float
    saved: float
    acquired: tuple[str, ...]
    place: int
    stopped_because: Because
    rerouting_loss: float
    around: str | None = None
