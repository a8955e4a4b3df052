"""`Fields`: an object of a document, each value checked as it is taken."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from sensortree.exceptions import ModelFileError
from sensortree.types import Array, Mask

# JSON has no such numbers; where one may occur it stands as {"float": "NaN"}.
NOT_FINITE = ("NaN", "Infinity", "-Infinity")


class Fields:
    """What stands where an object of a document is expected, at a place for messages."""

    def __init__(self, value: Any, where: str):
        if not isinstance(value, dict):
            raise ModelFileError(f"{where} must be an object, got {_type(value)}.")
        self._values = dict(value)
        self.where = where

    def place(self, key: str) -> str:
        """Name a value in a message; with "" the object itself."""
        return f"{self.where}.{key}" if self.where and key else self.where or key

    def wrong(self, key: str, why: str) -> ModelFileError:
        """The error that says what is wrong with a value."""
        return ModelFileError(f"{self.place(key)} {why}.")

    def take(self, key: str) -> Any:
        """Any value; each is taken once."""
        if key not in self._values:
            raise self.wrong(key, "is missing")
        return self._values.pop(key)

    def optional(self, key: str) -> Any:
        """Any value; None where older files do not have it."""
        return self._values.pop(key, None)

    def has(self, key: str) -> bool:
        """Whether a value is there and not null."""
        return self._values.get(key) is not None

    def end(self) -> None:
        """Refuse what nobody took."""
        if self._values:
            key = min(self._values)[:80]
            raise self.wrong(key, "is not a key of this format")

    def child(self, key: str) -> Fields:
        """An object."""
        return Fields(self.take(key), self.place(key))

    def children(self, key: str, length: int | None = None) -> Iterator[Fields]:
        """Objects of a list."""
        for i, value in enumerate(self.items(key, length)):
            yield Fields(value, f"{self.place(key)}[{i}]")

    def items(self, key: str, length: int | None = None) -> list[Any]:
        """A list."""
        value = self.take(key)
        if not isinstance(value, list):
            raise self.wrong(key, f"must be a list, got {_type(value)}")
        if length is not None and len(value) != length:
            raise self.wrong(key, f"has {len(value)} entries, expected {length}")
        return value

    def peek(self, key: str) -> Any:
        """Any value, which is still to be taken; None if it is missing."""
        return self._values.get(key)

    def length(self, key: str) -> int:
        """Length of a list that is still to be taken; 0 if it is none."""
        value = self.peek(key)
        return len(value) if isinstance(value, list) else 0

    def text(self, key: str) -> str:
        """A string that is not empty."""
        return check_text(self.take(key), self.place(key))

    def texts(self, key: str, length: int | None = None) -> tuple[str, ...]:
        """Strings that are all different."""
        place = self.place(key)
        names = tuple(check_text(v, place) for v in self.items(key, length))
        if len(set(names)) < len(names):
            raise ModelFileError(f"{place} names something twice.")
        return names

    def flag(self, key: str) -> bool:
        """True or false."""
        value = self.take(key)
        if not isinstance(value, bool):
            raise self.wrong(key, f"must be true or false, got {_type(value)}")
        return value

    def number(self, key: str, least: float = -math.inf) -> float:
        """A finite number."""
        value = self.take(key)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.wrong(key, f"must be a number, got {_type(value)}")
        return float(_finite([value], self.place(key), least)[0])

    def integer(self, key: str, low: int, high: int) -> int:
        """An integer from a range, its end left out."""
        return _integers([self.take(key)], self.place(key), low, high)[0]

    def integers(
        self, key: str, low: int, high: int, length: int | None = None
    ) -> list[int]:
        """Integers from a range, its end left out."""
        return _integers(self.items(key, length), self.place(key), low, high)

    def positions(self, key: str, n: int) -> tuple[int, ...]:
        """Different integers from 0 to n, without n."""
        found = tuple(self.integers(key, 0, n))
        if len(set(found)) < len(found):
            raise self.wrong(key, "names a position twice")
        return found

    def marks(self, key: str, n: int) -> Mask:
        """Such positions as an array of bool, (n,)."""
        marks = np.zeros(n, dtype=bool)
        marks[list(self.positions(key, n))] = True
        return marks

    def numbers(
        self, key: str, shape: tuple[int, ...], least: float = -math.inf
    ) -> Array:
        """Finite numbers, row after row, as an array of a shape."""
        values = self.items(key, math.prod(shape))
        return _finite(values, self.place(key), least).reshape(shape)

    def scales(self, key: str, shape: tuple[int, ...]) -> Array:
        """Numbers that can be divided by."""
        values = self.numbers(key, shape, least=0.0)
        if (values == 0).any():
            raise self.wrong(key, "holds 0, by which nothing divides")
        return values


def _finite(values: list[Any], where: str, least: float) -> Array:
    """Finite numbers that are not below the least, as an array."""
    if not all(type(v) is float or type(v) is int for v in values):
        raise ModelFileError(f"{where} must hold numbers only.")
    try:
        array = np.array(values, dtype=np.float64)
    except OverflowError as error:
        raise ModelFileError(f"{where} holds a number that is too large.") from error
    if not np.isfinite(array).all():
        raise ModelFileError(f"{where} holds a number that is not finite.")
    if (array < least).any():
        raise ModelFileError(f"{where} holds a number below {least:g}.")
    return array


def _integers(values: list[Any], where: str, low: int, high: int) -> list[int]:
    """Integers from the low one to before the high one."""
    if not all(type(v) is int for v in values):
        raise ModelFileError(f"{where} must hold integers only.")
    if values and not (low <= min(values) and max(values) < high):
        raise ModelFileError(f"{where} is out of range: expected {low} to {high - 1}.")
    return values


def check_text(value: Any, where: str) -> str:
    """A string that is not empty and that UTF-8 can hold."""
    if not isinstance(value, str) or not value:
        raise ModelFileError(f"{where} must be text, not empty, got {_type(value)}.")
    if not value.isascii() and any("\ud800" <= c <= "\udfff" for c in value):
        raise ModelFileError(f"{where} holds half of a surrogate pair.")
    return value


def number(value: Any) -> Any:
    """A number for a document; one that is not finite as {"float": its name}."""
    value = value.item() if isinstance(value, np.generic) else value
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return {"float": "NaN" if math.isnan(value) else NOT_FINITE[1 + (value < 0)]}


def numbers(values: Any) -> list[Any]:
    """Numbers of an array, row after row."""
    array = np.asarray(values)
    listed = array.ravel().tolist()
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        return [number(value) for value in listed]
    return list(listed)


def scalar(value: Any, where: str) -> Any:
    """Text, a number, a truth value or None from a document."""
    if isinstance(value, dict):
        if set(value) != {"float"} or value["float"] not in NOT_FINITE:
            raise ModelFileError(f'{where} must be a value, or {{"float": "NaN"}}.')
        return float(value["float"])
    if isinstance(value, list):
        raise ModelFileError(f"{where} must be a single value, got a list.")
    if isinstance(value, str) and value:
        return check_text(value, where)
    if isinstance(value, float) and not math.isfinite(value):
        raise ModelFileError(f"{where} holds a number that is not finite.")
    if isinstance(value, int) and abs(value) >= 2**64:
        raise ModelFileError(f"{where} holds a number that is too large.")
    return value


def plain(value: Any, where: str) -> Any:
    """Reports and the like as what JSON can hold."""
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name), where) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item, where) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist(), where)
    if isinstance(value, (set, frozenset)):
        return sorted(plain(item, where) for item in value)
    if isinstance(value, (list, tuple)):
        return [plain(item, where) for item in value]
    value = number(value)
    if value is None or isinstance(value, (str, bool, int, float, dict)):
        return value
    raise ModelFileError(
        f"{where} holds a {type(value).__name__}, which a model file cannot."
    )


def from_plain(value: Any, where: str) -> Any:
    """What `plain` made, with numbers that are not finite put back."""
    if isinstance(value, dict) and set(value) != {"float"}:
        return {key: from_plain(item, where) for key, item in value.items()}
    if isinstance(value, list):
        return [from_plain(item, where) for item in value]
    return scalar(value, where)


def _type(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "a truth value"}
    return "null" if value is None else names.get(type(value), "a number")
