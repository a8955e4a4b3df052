"""`Step` and `Decision`: what a policy says next, and in the end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from sensortree.policy.reasons import Reason, output_words
from sensortree.text import plain
from sensortree.types import Array

Because = Literal["policy", "limit", "unavailable"]


def number_of(classes: tuple[Any, ...], output: Array, at: int) -> float:
    """Answer (0) or spread (1) in the output of a leaf; classes have neither."""
    if classes:
        raise AttributeError(
            "the model answers with classes, not with numbers; see proba."
        )
    return float(output[at])


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
        Class probabilities by what is known where the policy stands; of numbers, the
        answer and its spread.
    why : Reason or None
        The last decision: its node and score, what adds most to the score, the share of
        training rows that went the same way; None before the first.
    classes : tuple of class labels
        What `proba` is of, in its order.
    referred : bool
        Whether to refer the example to a person now, rather than answer.
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
    classes: tuple[Any, ...]
    referred: bool = False

    @property
    def prediction(self) -> float:
        """The number that would be answered now."""
        return number_of(self.classes, self.proba, 0)

    @property
    def spread(self) -> float:
        """How far off that number is expected to be."""
        return number_of(self.classes, self.proba, 1)

    def to_dict(self) -> dict[str, Any]:
        """Give the step as plain values for JSON, as ``sensortree ask --stdin`` does.

        `proba` is by the name of the class; `why` is `Reason.to_dict`, or None.
        """
        form = self._asdict()
        del form["proba"]
        form.update(output_words(form.pop("classes"), self.proba))
        form["why"] = None if self.why is None else self.why.to_dict()
        written: dict[str, Any] = plain(form)
        return written


@dataclass(frozen=True, eq=False)
class Decision:
    """The answer of a session, and what it took.

    Attributes
    ----------
    label : class, or number
    proba : ndarray of shape (n_classes,)
        Probabilities of ``policy.classes``; of numbers, the answer and its spread.
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
    unavailable : mapping of str to str or None
        Sensors that were unavailable, each with the reason that was given, if any.
    classes : tuple of class labels
        What `proba` is of, in its order.
    around : str or None
        The unavailable sensor on whose detour it ended; `place` is one of the detour.
    referred : bool
        Whether the example is referred to a person; `label` is then the best guess.
    """

    label: Any
    proba: Array
    spent: float
    saved: float
    acquired: tuple[str, ...]
    place: int
    stopped_because: Because
    rerouting_loss: float
    unavailable: Mapping[str, str | None]
    classes: tuple[Any, ...]
    around: str | None = None
    referred: bool = False

    @property
    def prediction(self) -> float:
        """The number that is answered."""
        return number_of(self.classes, self.proba, 0)

    @property
    def spread(self) -> float:
        """How far off that number is expected to be."""
        return number_of(self.classes, self.proba, 1)

    def to_dict(self) -> dict[str, Any]:
        """Give the decision as plain values for JSON, as ``sensortree ask`` does.

        `proba` is by the name of the class.
        """
        form = vars(self).copy()
        del form["proba"]
        form.update(output_words(form.pop("classes"), self.proba))
        written: dict[str, Any] = plain(form)
        return written
