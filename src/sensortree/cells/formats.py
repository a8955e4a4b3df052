"""`ColumnFormat`: how the cells of a column are written in the table of a model."""

from __future__ import annotations

from dataclasses import dataclass

DECIMALS = (".", ",")
THOUSANDS = ("", ",", ".", " ", "'")


@dataclass(frozen=True)
class ColumnFormat:
    """How numbers, or dates, are written in one column of a table.

    Attributes
    ----------
    decimal : {".", ","}
    thousands : {"", ",", ".", " ", "'"}
        What groups the digits of large numbers; "" for nothing.
    unit : str
        What may stand behind a number, such as "mg".
    missing : tuple of str
        Words that stand for a missing number, beyond those that every table has.
    date : str
        The form of the dates, such as "DD.MM.YYYY"; "" in a column of numbers.
    """

    decimal: str = "."
    thousands: str = ""
    unit: str = ""
    missing: tuple[str, ...] = ()
    date: str = ""


PLAIN_FORMAT = ColumnFormat()
