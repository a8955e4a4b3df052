"""What leaves answer with, in a model file: classifiers, or regressions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sensortree.persistence import classifiers
from sensortree.persistence.fields import Fields
from sensortree.persistence.numbers import read_number_scorer, write_number_scorer
from sensortree.policy.classifiers import NumberScorer


def write_classifier(scorer: Any, what: str, foreign: str | None) -> dict[str, Any]:
    """A plain classifier or regression, or one of others by skops."""
    if isinstance(scorer, NumberScorer):
        return write_number_scorer(scorer, what, foreign)
    return classifiers.write_classifier(scorer, what, foreign)


def read_classifier(
    fields: Fields, width: int, n_classes: int, trusted: Sequence[str] | None
) -> Any:
    """A classifier of readings of a width; a regression if there are no classes."""
    if not n_classes:
        return read_number_scorer(fields, width, trusted)
    return classifiers.read_classifier(fields, width, n_classes, trusted)
