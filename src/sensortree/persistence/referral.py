"""What it costs to hand an example over to a person, in a model file."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from sensortree.exceptions import ModelFileError
from sensortree.persistence.about import MAX_ROWS
from sensortree.persistence.fields import Fields, numbers
from sensortree.sensors.referral import Promise, Referral


def write_referral(referral: Referral | None) -> dict[str, Any]:
    """Costs by class or their column, and the least confidence; nothing for None."""
    if referral is None:
        return {}
    by_class = referral.by_class
    return {
        "referral": {
            "by_class": None if by_class is None else numbers(by_class),
            "column": referral.column,
            "least_confidence": float(referral.least_confidence),
            "promise": None if referral.promise is None else asdict(referral.promise),
        }
    }


def read_referral(problem: Fields, n_classes: int, n_columns: int) -> Referral | None:
    """The same; None in files that do not say it."""
    if not problem.has("referral"):
        problem.optional("referral")
        return None
    found = problem.child("referral")
    by_class = column = None
    if found.has("by_class"):
        by_class = found.numbers("by_class", (n_classes,), least=0.0)
    else:
        found.take("by_class")
    if found.has("column"):
        column = found.integer("column", 0, n_columns)
    else:
        found.take("column")
    if by_class is not None and column is not None:
        raise ModelFileError(f"{found.where} has costs by class and a column of them.")
    least = found.number("least_confidence", least=0.0)
    if least > 1:
        raise ModelFileError(
            f"{found.place('least_confidence')} must be a probability, got {least:g}."
        )
    promise = _read_promise(found.child("promise")) if found.has("promise") else None
    found.optional("promise")
    found.end()
    return Referral(by_class, column, least, promise)


def _read_promise(found: Fields) -> Promise:
    shares = {name: found.number(name, least=0.0) for name in ("error", "confidence")}
    counts = {
        name: found.integer(name, 0, MAX_ROWS) for name in ("rows", "answered", "wrong")
    }
    found.end()
    return Promise(shares["error"], shares["confidence"], **counts)
