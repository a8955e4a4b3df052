"""Decisions in plain words: what is likely, and what a purchase changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sensortree.text import chance_words, frequency_words
from sensortree.types import Array

if TYPE_CHECKING:
    from sensortree.policy.about import About
    from sensortree.policy.policy import Policy
    from sensortree.policy.reasons import Change, Influence

FEW = 20  # rows, below which they are counted out
FOLLOWING = "with what may follow"
NAMED = 3  # sensors that are named one by one
FOR, AGAINST, SMALL = 3, 2, 0.2  # influences that are told, and what is too small


def class_words(label: Any) -> str:
    """A class by its name; of a number it is said that it is one."""
    return label if isinstance(label, str) else f"class {label}"


def belief_words(label: Any, probability: float) -> str:
    """What would be answered by what is known so far, and how likely that is."""
    return f"so far {class_words(label)} (probability {chance_words(probability)})"


def number_words(answer: float, spread: float) -> str:
    """A number with how far off it may be."""
    return f"{answer:.4g} ± {spread:.2g}"


def belief_of(policy: Policy, said: Array) -> str:
    """What would be answered by what is known so far, and how sure that is.

    Parameters
    ----------
    policy : Policy
    said : ndarray of shape (n_outputs,)
        What a leaf says of one row.
    """
    if policy.loss.numbers:
        return f"so far {number_words(*said.tolist())}"
    at = int(policy.loss.answer(said[None, :])[0])
    return belief_words(policy.labels[at], float(said[at]))


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
        return f"{who} move{ending} the answer by {change.moved:.3g} in the mean"
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
        changes = f"{who} would move the answer by {change.moved:.3g} in the mean"
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
    """What speaks for a decision and, if anything does, what against it.

    The weightiest come first.

    Parameters
    ----------
    influences : sequence of Influence
        Largest first.
    sign : {-1, 1}
        The side of the score that was taken.
    """
    least = SMALL * max((abs(i.contribution) for i in influences), default=0.0)
    told = [i for i in influences if abs(i.contribution) >= max(least, 1e-12)]
    pro = [i.words for i in told if sign * i.contribution > 0][:FOR]
    contra = [i.words for i in told if sign * i.contribution < 0][:AGAINST]
    said = ", ".join(pro) or "what is usual here"
    return f"{said}; against it: {', '.join(contra)}" if contra else said
