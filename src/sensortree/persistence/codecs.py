"""Codecs: how a value stands in a document, to be written and to be read.

A `Codec` is of one value, a `Form` of an object with keys; `record` makes the form of a
dataclass from the codecs of its attributes. Shapes are told by name, as in
``array("nodes", "leaves")``: `sizes` says how many nodes and leaves a model has.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sized
from dataclasses import dataclass
from typing import Any, ClassVar

from sensortree.persistence.fields import Fields, check_text, numbers, scalar
from sensortree.persistence.fields import number as plain_number

Sizes = Mapping[str, int]
# A number, the name of a size, or what one is worked out from.
Size = int | str | Callable[[Sizes], int]


@dataclass(frozen=True)
class Codec:
    """How one value stands in a document."""

    write: Callable[[Any], Any]  # from a value to what JSON can hold
    # From an object, a key of it, and sizes, to the value; refuses what cannot be.
    read: Callable[[Fields, str, Sizes], Any]
    later: bool = False  # whether None is not written, as in older files


@dataclass(frozen=True)
class Form:
    """How an object stands in a document."""

    write: Callable[[Any], dict[str, Any]]
    # Takes the keys of an object, given sizes, and gives what they mean.
    take: Callable[[Fields, Sizes], Any]

    later: ClassVar[bool] = False

    def read(self, fields: Fields, key: str, sizes: Sizes) -> Any:
        """Read the object at a key, which holds nothing else."""
        return self.whole(fields.child(key), sizes)

    def whole(self, fields: Fields, sizes: Sizes) -> Any:
        """Read an object that holds nothing else."""
        made = self.take(fields, sizes)
        fields.end()
        return made


def record(
    make: Callable[..., Any],
    check: Callable[[Any, Fields], None] | None = None,
    **parts: Codec | Form,
) -> Form:
    """Give the form of a dataclass whose attributes are keys, or of a dict.

    What was read is a size for what comes after it, by the name of its key: an integer
    by its value, an array by its length. `check` refuses what does not fit together.
    """

    def write(value: Any) -> dict[str, Any]:
        given = value if isinstance(value, dict) else None
        values = {k: getattr(value, k) if given is None else given[k] for k in parts}
        return {
            key: part.write(values[key])
            for key, part in parts.items()
            if not (part.later and values[key] is None)
        }

    def take(fields: Fields, sizes: Sizes) -> Any:
        found: dict[str, Any] = {}
        sizes = dict(sizes)
        for key, part in parts.items():
            value = found[key] = part.read(fields, key, sizes)
            if isinstance(value, (int, Sized)):
                sizes[key] = value if isinstance(value, int) else len(value)
        made = make(**found)
        if check is not None:
            check(made, fields)
        return made

    return Form(write, take)


def size_of(size: Size, sizes: Sizes) -> int:
    """A size as a number."""
    if callable(size):
        return size(sizes)
    return sizes[size] if isinstance(size, str) else size


def real(least: float = -math.inf, most: float = math.inf) -> Codec:
    """A finite number within bounds."""

    def read(fields: Fields, key: str, sizes: Sizes) -> float:
        value = fields.number(key, least)
        if value > most:
            raise fields.wrong(key, f"is {value:g}; it is at most {most:g}")
        return value

    return Codec(float, read)


def integer(low: Size, high: Size) -> Codec:
    """An integer from a range, its end left out."""
    return Codec(
        int, lambda f, key, s: f.integer(key, size_of(low, s), size_of(high, s))
    )


def array(*shape: Size, least: float = -math.inf) -> Codec:
    """Finite numbers in an array, row after row."""

    def read(fields: Fields, key: str, sizes: Sizes) -> Any:
        return fields.numbers(key, tuple(size_of(n, sizes) for n in shape), least)

    return Codec(numbers, read)


def scales(size: Size) -> Codec:
    """Numbers that can be divided by."""
    return Codec(numbers, lambda f, key, s: f.scales(key, (size_of(size, s),)))


def word(words: tuple[str, ...]) -> Codec:
    """One of some words."""

    def read(fields: Fields, key: str, sizes: Sizes) -> str:
        value = fields.take(key)
        if not isinstance(value, str) or value not in words:
            raise fields.wrong(
                key,
                f"must be one of {', '.join(map(repr, words))}, got {repr(value)[:80]}",
            )
        return value

    return Codec(str, read)


def nullable(part: Codec | Form, absent: bool = False) -> Codec:
    """The same or null; if `absent`, older files do not have the key."""

    def read(fields: Fields, key: str, sizes: Sizes) -> Any:
        if fields.has(key):
            return part.read(fields, key, sizes)
        return fields.optional(key) if absent else fields.take(key)

    return Codec(lambda value: None if value is None else part.write(value), read)


def later(part: Codec | Form) -> Codec:
    """The same, or no such key, as in older files, for None."""
    return Codec(part.write, nullable(part, absent=True).read, later=True)


def listed(form: Form, length: Size | None = None) -> Codec:
    """Several of a form, as a tuple."""

    def read(fields: Fields, key: str, sizes: Sizes) -> tuple[Any, ...]:
        n = None if length is None else size_of(length, sizes)
        return tuple(form.whole(each, sizes) for each in fields.children(key, n))

    return Codec(lambda values: [form.write(value) for value in values], read)


def keyed(form: Form, key: str, name: Codec) -> Codec:
    """A dict, as a list of objects whose key holds the name of each."""

    def write(values: Mapping[Any, Any]) -> list[dict[str, Any]]:
        return [{key: name.write(k), **form.write(v)} for k, v in values.items()]

    def read(fields: Fields, place: str, sizes: Sizes) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for entry in fields.children(place):
            own = name.read(entry, key, sizes)
            if own in found:
                raise entry.wrong("", f"is the second of {key} {own!r}")
            found[own] = form.whole(entry, sizes)
        return found

    return Codec(write, read)


def _read_value(fields: Fields, key: str, sizes: Sizes) -> float:
    value = scalar(fields.take(key), fields.place(key))
    if type(value) not in (int, float):
        raise fields.wrong(key, "must be a number")
    return float(value)


def _read_words(fields: Fields, key: str, sizes: Sizes) -> str:
    value = fields.take(key)
    return "" if value == "" else check_text(value, fields.place(key))


FLAG = Codec(bool, lambda f, key, _: f.flag(key))
TEXT = Codec(str, lambda f, key, _: f.text(key))
# Text that may be empty.
WORDS = Codec(str, _read_words)
TEXTS = Codec(list, lambda f, key, _: f.texts(key))
# A number that need not be finite.
VALUE = Codec(plain_number, _read_value)
PAIR = Codec(numbers, lambda f, key, _: tuple(f.numbers(key, (2,)).tolist()))
# Rows of training; more than anybody has.
ROWS = integer(0, 10**15)
