"""`Layout`: how a table is written in its file, as far as somebody says so."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

from sensortree.cells.formats import DECIMALS, THOUSANDS
from sensortree.exceptions import DataError

NAMES = {"tab": "\t", "space": " ", "none": ""}


@dataclass(frozen=True)
class Layout:
    """How a table is written; what is None is found out by looking at the file.

    Attributes
    ----------
    delimiter : str or None
        What separates the cells of a line; "tab" for a tabulator.
    encoding : str or None
        Such as "utf-8" or "cp1252".
    decimal : {".", ","} or None
    thousands : {"", ",", ".", " ", "'"} or None
        Also "none" and "space".
    """

    delimiter: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    thousands: str | None = None

    def __post_init__(self) -> None:
        for name in ("delimiter", "thousands"):
            given = getattr(self, name)
            object.__setattr__(self, name, NAMES.get(given, given))
        _check(self)


def _check(layout: Layout) -> None:
    delimiter = layout.delimiter
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise DataError(
            f"the delimiter must be one character or 'tab', got {delimiter!r}."
        )
    if layout.decimal not in (None, *DECIMALS):
        raise DataError(f"the decimal mark must be '.' or ',', got {layout.decimal!r}.")
    if layout.thousands not in (None, *THOUSANDS):
        raise DataError(
            f"thousands must be one of ',', '.', \"'\", 'space' or 'none', got "
            f"{layout.thousands!r}."
        )
    if layout.thousands and layout.thousands == (layout.decimal or "."):
        raise DataError(
            f"{layout.thousands!r} cannot be the decimal mark and separate thousands too; "
            f"pass --decimal and --thousands that differ."
        )
    if layout.encoding is not None:
        try:
            codecs.lookup(layout.encoding)
        except LookupError as error:
            raise DataError(
                f"there is no encoding {layout.encoding!r}; try utf-8, cp1252 or utf-16."
            ) from error
