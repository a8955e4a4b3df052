"""Parts of a model that only skops can write: classifiers and transformers of others."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Any

from sensortree.exceptions import MissingDependencyError, ModelFileError
from sensortree.persistence.fields import Fields

LINE = 4096  # a string is not longer


def write_foreign(value: Any, what: str, foreign: str | None) -> dict[str, Any]:
    """An object of scikit-learn or of others, by skops, if that was asked for."""
    if foreign is None:
        raise ModelFileError(
            f"{what} is a {type(value).__name__}, which a model file cannot hold as plain "
            f"numbers; use a classifier or a transformer that it can, or write "
            f"save(model, path, foreign='skops') and load(path, trusted=[...])."
        )
    if foreign != "skops":
        raise ModelFileError(f"foreign must be None or 'skops', got {foreign!r}.")
    try:
        packed = base64.b64encode(_skops().dumps(value)).decode()
    except Exception as error:
        if isinstance(error, MissingDependencyError):
            raise
        raise ModelFileError(f"skops cannot write {what}: {error}") from error
    lines = [packed[i : i + LINE] for i in range(0, len(packed), LINE)]
    return {"kind": "skops", "type": _type_name(value), "data": lines}


def read_foreign(fields: Fields, trusted: Sequence[str] | None) -> Any:
    """An object that skops wrote, if its types are trusted."""
    name, lines = fields.text("type"), fields.items("data")
    if trusted is None:
        raise ModelFileError(
            f"{fields.where} is a {name[:200]}, written by skops; if you trust the file, "
            f"read it with load(path, trusted=[...]), naming the types that "
            f"skops.io.get_untrusted_types would list, or an empty list."
        )
    if not all(isinstance(line, str) for line in lines):
        raise ModelFileError(f"{fields.where}.data must hold text only.")
    try:
        packed = base64.b64decode("".join(lines), validate=True)
    except (ValueError, binascii.Error) as error:
        raise ModelFileError(f"{fields.where}.data is not base64: {error}.") from error
    try:
        value = _skops().loads(packed, trusted=list(trusted))
    except Exception as error:
        if isinstance(error, MissingDependencyError):
            raise
        raise ModelFileError(f"skops cannot read {fields.where}: {error}") from error
    if _type_name(value) != name:
        raise ModelFileError(f"{fields.where} is not the {name[:200]} that it says.")
    return value


def _type_name(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _skops() -> Any:
    try:
        import skops.io
    except ImportError as error:
        raise MissingDependencyError(
            "skops is needed for classifiers and transformers that a model file cannot "
            "hold as numbers; install it with pip install 'sensortree[skops]'."
        ) from error
    return skops.io
