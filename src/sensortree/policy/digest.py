"""`fingerprint`: one digest of plain values, arrays and dataclasses of them."""

from __future__ import annotations

import hashlib
import pickle  # only to digest foreign estimators; nothing is ever unpickled
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np


def fingerprint(value: Any) -> str:
    """SHA-256 of a value, the same for equal values in any process, as 64 hex digits."""
    digest = hashlib.sha256()
    for piece in _pieces(value):
        digest.update(len(piece).to_bytes(8, "little"))
        digest.update(piece)
    return digest.hexdigest()


def _pieces(value: Any) -> Iterator[bytes]:
    """What a value is made of, as bytes, in a fixed order."""
    if isinstance(value, np.generic):  # a model file has no word for NumPy's types
        value = value.item()
    if is_dataclass(value) and not isinstance(value, type):
        yield type(value).__name__.encode()
        for each in fields(value):
            item = getattr(value, each.name)
            if each.name == "native":  # a quicker copy of what the arrays say
                continue
            said = each.metadata.get("digest")
            if said == "never" or (item is None and said == "if set"):
                continue
            yield from _pieces(item)
    elif isinstance(value, np.ndarray):
        yield from _array_pieces(value)
    elif isinstance(value, Mapping):
        items = sorted((list(_pieces(k)), v) for k, v in value.items())
        for key, item in items:
            yield from key
            yield from _pieces(item)
    elif isinstance(value, (frozenset, set)):
        yield from (piece for item in sorted(value) for piece in _pieces(item))
        yield b"set"
    elif isinstance(value, (tuple, list)):
        yield len(value).to_bytes(8, "little")
        for item in value:
            yield from _pieces(item)
    elif value is None or isinstance(value, (bool, int, float, str)):
        yield repr(value).encode()
    else:
        yield pickle.dumps(value, protocol=4)


def _array_pieces(value: np.ndarray[Any, Any]) -> Iterator[bytes]:
    yield repr(value.shape).encode()
    if value.dtype.kind in "biuf":
        kind = {"b": np.bool_, "f": np.float64}.get(value.dtype.kind, np.int64)
        yield np.ascontiguousarray(value, dtype=kind).tobytes()
    else:
        yield from _pieces(value.tolist())
