"""`Baseline`: the same sensors for every example, which decisions must beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

EVERYTHING, NOTHING, FIXED = "everything", "nothing", "best fixed set"


@dataclass(frozen=True, eq=False)
class Baseline:
    """A classifier that knows the same sensors of every example.

    It was fitted on the rows that the policy was fitted on.

    Attributes
    ----------
    name : str
    sensors : frozenset of str
    classifier : classifier on these sensors
        Its classes are positions, as those of a policy's classifiers.
    """

    name: str
    sensors: frozenset[str]
    classifier: Any
