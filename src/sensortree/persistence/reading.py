"""How the cells of a model's table were written, in a model file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sensortree.cells.formats import (
    DECIMALS,
    PLAIN_FORMAT,
    THOUSANDS,
    ColumnFormat,
)
from sensortree.exceptions import ModelFileError
from sensortree.persistence.fields import Fields, check_text


def write_reading(reading: Mapping[str, ColumnFormat]) -> list[dict[str, Any]]:
    """Formats of the columns that are not plain numbers or text."""
    return [
        {
            "column": column,
            "decimal": form.decimal,
            "thousands": form.thousands,
            "unit": form.unit,
            "missing": list(form.missing),
            "date": form.date,
        }
        for column, form in reading.items()
        if form != PLAIN_FORMAT
    ]


def read_reading(fields: Fields, key: str) -> dict[str, ColumnFormat]:
    """The formats of a document, by column."""
    found: dict[str, ColumnFormat] = {}
    for entry in fields.children(key):
        column = entry.text("column")
        if column in found:
            raise ModelFileError(f"{entry.where} is the second of column {column!r}.")
        found[column] = ColumnFormat(
            _one_of(entry, "decimal", DECIMALS),
            _one_of(entry, "thousands", THOUSANDS),
            _text_or_nothing(entry, "unit"),
            entry.texts("missing"),
            _text_or_nothing(entry, "date"),
        )
        entry.end()
    return found


def _one_of(fields: Fields, key: str, known: tuple[str, ...]) -> str:
    value = fields.take(key)
    if value not in known or not isinstance(value, str):
        raise ModelFileError(
            f"{fields.place(key)} must be one of {', '.join(map(repr, known))}."
        )
    return value


def _text_or_nothing(fields: Fields, key: str) -> str:
    value = fields.take(key)
    return "" if value == "" else check_text(value, fields.place(key))
