"""`Rule`: which rows take a way of the tree, in one condition; a summary, not the decision.

A decision weighs all that is known. People ask "who gets the blood test?" and want one
sentence. Of the conditions on one column, or on how likely the answers are, the one that
tells best who takes a way is looked for on given rows, and how often it is right is said.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensortree.policy.classifiers import posterior
from sensortree.policy.policy import Policy
from sensortree.sensors.table import Table
from sensortree.text import value_words
from sensortree.tree.forks import Way, fork_at, leaves_behind
from sensortree.types import Array, Mask, Rows

FEWEST = 20  # rows at a fork from which a rule is looked for, and that take a way
LEVELS = 12  # categories of a column from which a rule is made, and thresholds
# Of the rows that the commoner choice is wrong about, the share that a rule must get right.
WORTH = 0.3

Condition = tuple[str, Mask]  # in words, and for which rows it holds


@dataclass(frozen=True)
class Rule:
    """A condition that tells roughly who takes a way out of a fork."""

    fork: int  # first node of the fork
    end: int  # where the way leads: a node, or ``~leaf``
    words: str | None  # the condition; None if no single one tells it
    # Share of the rows at the fork about which it is right; NaN without a condition.
    agrees: float
    rows: int  # rows that came to the fork


def plain_rules(policy: Policy, table: Table) -> tuple[Rule, ...]:
    """Rules for every way out of every fork that enough rows come to.

    Of the rows, only what they acquire is read.
    """
    place, tree = policy.apply(table), policy.tree
    rules: list[Rule] = []
    seen: set[int] = set()
    for first in range(tree.n_nodes):
        if first in seen:
            continue
        fork = fork_at(tree, first)
        seen.update(fork.nodes)
        behind = [np.isin(place, leaves_behind(tree, way.end)) for way in fork.ways]
        rows = np.flatnonzero(np.any(behind, axis=0))
        if len(rows) < FEWEST:
            continue
        conditions = list(_conditions(policy, table, first, rows))
        rules += [
            _best(first, way, conditions, taken[rows])
            for way, taken in zip(fork.ways, behind, strict=True)
        ]
    return tuple(rules)


def _best(first: int, way: Way, conditions: Iterable[Condition], taken: Mask) -> Rule:
    """Condition that is right for the most rows about a way; of equals the first."""
    n_rows, share = len(taken), float(taken.mean())
    guess = max(share, 1 - share)
    words, best = None, guess + WORTH * (1 - guess)
    if FEWEST <= taken.sum() < n_rows:
        for condition, holds in conditions:
            agrees = float((holds == taken).mean())
            if agrees > best:
                words, best = condition, agrees
    return Rule(first, way.end, words, best if words else float("nan"), n_rows)


def _conditions(
    policy: Policy, table: Table, node: int, rows: Rows
) -> Iterable[Condition]:
    """Conditions on how likely the answers are, then on each column that is known."""
    here, sensors = policy.places[~node], policy.sensors
    read = [
        policy.reader.read(table, sensors.index(name), rows)[0] for name in here.names
    ]
    if read:
        likely = posterior(here.classifier, np.hstack(read), here.n_classes)
        yield from _likely_conditions(policy, likely)
    for name in here.names:
        for column in sensors.columns[sensors.index(name)]:
            values = np.asarray(table.take(rows, [column]))[:, 0]
            yield from _column_conditions(sensors.column_names[column], values)


def _likely_conditions(policy: Policy, likely: Array) -> Iterable[Condition]:
    """Conditions on the probability of the one class of two, or of the likeliest."""
    binary = likely.shape[1] == 2
    values = 100 * (likely[:, 1] if binary else likely.max(axis=1))
    which = f"of {policy.classes[1]}" if binary else "of the likeliest answer"
    rounded = {round(float(level)) for level in _levels(values)}
    # Below the least, and at least more than the largest, is nobody.
    levels = sorted(n for n in rounded if values.min() < n <= values.max())
    name = f"the probability {which}"
    for i, low in enumerate(levels):
        yield f"{name} is at least {low} %", values >= low
        yield f"{name} is below {low} %", values < low
        for high in levels[i + 1 :] if binary else ():
            inside = (values >= low) & (values < high)
            yield f"{name} is between {low} and {high} %", inside
            yield f"{name} is below {low} % or at least {high} %", ~inside


def _column_conditions(name: str, values: NDArray[Any]) -> Iterable[Condition]:
    """Conditions on the values of one column."""
    numbers = _numbers(values)
    if numbers is None:
        texts = np.array([str(value) for value in values])
        kinds, counts = np.unique(texts, return_counts=True)
        if len(kinds) <= LEVELS:
            for kind in kinds[np.argsort(-counts, kind="stable")].tolist():
                yield f"{name} is {kind}", texts == kind
                yield f"{name} is not {kind}", texts != kind
        return
    missing = np.isnan(numbers)
    if missing.any():
        yield f"{name} is missing", missing
    for level in sorted(
        {float(f"{level:.3g}") for level in _levels(numbers[~missing])}
    ):
        yield f"{name} is at least {level:g}", numbers >= level
        yield f"{name} is below {level:g}", numbers < level
    inner = np.unique(numbers[~missing])[1:-1]  # what is at an end has been said
    for level in inner.tolist() if len(inner) + 2 <= LEVELS else ():
        yield f"{name} is {value_words(level)}", numbers == level
        yield f"{name} is not {value_words(level)}", numbers != level


def _numbers(values: NDArray[Any]) -> Array | None:
    """A column as numbers, None missing; None if it has something else."""
    if values.dtype.kind in "biuf":
        return values.astype(np.float64)
    if any(isinstance(value, str) for value in values):
        return None
    try:
        return np.array([np.nan if v is None else v for v in values], dtype=np.float64)
    except (TypeError, ValueError):
        return None


def _levels(values: Array) -> list[float]:
    """Thresholds: all values of few, or else some, evenly spread among the rows."""
    if not values.size:
        return []
    distinct = np.unique(values)
    if len(distinct) > LEVELS:
        distinct = np.unique(np.quantile(values, np.linspace(0, 1, 4 * LEVELS + 1)))
    return [float(level) for level in distinct[1:]]
