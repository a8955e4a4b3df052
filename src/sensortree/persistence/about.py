"""What a model is about, in a model file."""

from __future__ import annotations

import re
from dataclasses import asdict, fields
from typing import Any

from sensortree.exceptions import ModelFileError
from sensortree.persistence.fields import Fields, check_text
from sensortree.policy.about import About, HeldOut

TEXTS = ("unit", "target", "data", "fitted")
FIGURES = tuple(field.name for field in fields(HeldOut) if field.name != "rows")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
MAX_ROWS = 10**15


def write_about(about: About) -> dict[str, Any]:
    """Unit, target, data, date, rows and held-out score; null for what is not known."""
    held_out = None if about.held_out is None else asdict(about.held_out)
    return {
        **{name: getattr(about, name) or None for name in TEXTS},
        "rows": about.rows,
        "held_out": held_out,
    }


def read_about(document: Fields) -> About:
    """What the model is about; files of version 1 do not say."""
    if not document.has("about"):
        return About()
    found = document.child("about")
    texts = {name: _text(found, name) for name in TEXTS}
    if texts["fitted"] and not TIME.fullmatch(texts["fitted"]):
        raise ModelFileError(
            f"{found.place('fitted')} must be a time as 2026-01-31T12:00:00Z."
        )
    has_rows = found.has("rows")
    rows = found.integer("rows", 0, MAX_ROWS) if has_rows else found.take("rows")
    has_score = found.has("held_out")
    score = _read_score(found.child("held_out")) if has_score else None
    if not has_score:
        found.take("held_out")
    found.end()
    return About(**texts, rows=rows, held_out=score)


def _text(found: Fields, name: str) -> str:
    value = found.take(name)
    return "" if value is None else check_text(value, found.place(name))


def _read_score(found: Fields) -> HeldOut:
    figures = {name: found.number(name, least=0.0) for name in FIGURES}
    score = HeldOut(**figures, rows=found.integer("rows", 0, MAX_ROWS))
    found.end()
    return score
