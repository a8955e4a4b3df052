"""`save` and `load`: one file, replaced at once or not at all.

And its text: the limits of a file, its digest, and JSON without extensions.
"""

from __future__ import annotations

import collections
import contextlib
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sensortree.exceptions import ModelFileError
from sensortree.persistence.model import read_model, write_model
from sensortree.persistence.saved import SavedModel

FORMAT = "sensortree-model"
FORMAT_VERSION = 2
MAX_BYTES = 16 * 2**20
MAX_DEPTH = 32
MAX_STRING = 4096
# At most these many values, strings, and lists and objects, in a file of MAX_BYTES: so
# that reading it never takes more than 64 MiB.
MAX_VALUES = 800_000
MAX_STRINGS = 500_000
MAX_CONTAINERS = 200_000
CHUNK = 2**18
NO_DIGEST = "0" * 64

QUOTE, COMMA = ord('"'), ord(",")
OPEN, CLOSE = (ord("["), ord("{")), (ord("]"), ord("}"))


def save(
    model: Any, path: str | os.PathLike[str], *, foreign: str | None = None
) -> None:
    """Write a fitted model to a file: one JSON document, numbers and text only.

    A file that is there is replaced at once, when the new one is complete and on the
    disk: whatever happens meanwhile, there is the old file or the new one. A process that
    is killed may leave a file ``.sensortree-*.tmp`` beside it, which can be removed.

    Parameters
    ----------
    model : fitted classifier of sensortree, `Policy` or `SavedModel`
    path : str or path
        The file; by convention its name ends in ``.json``.
    foreign : {None, "skops"}, default=None
        How classifiers and transformers are written that are none of the kinds that the
        format knows: not at all, which is an error that names them, or by skops
        (extra ``skops``). Such a file is read only with ``load(path, trusted=[...])``.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> import sensortree
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> model = sensortree.SensorTreeClassifier().fit(X, X[:, 0] > 0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.json")
    ...     sensortree.save(model, path)
    ...     loaded = sensortree.load(path)
    >>> bool((loaded.predict_proba(X) == model.predict_proba(X)).all())
    True
    """
    try:
        text = render(write_model(model, foreign))
    except (ValueError, UnicodeEncodeError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(f"the model cannot be written: {error}.") from error
    if foreign is None:  # what cannot be read back is not written
        read_model(parse(text, max(len(text), MAX_BYTES)))
    replace_file(Path(path), text)


def load(
    path: str | os.PathLike[str],
    *,
    trusted: Sequence[str] | None = None,
    max_bytes: int = MAX_BYTES,
) -> SavedModel:
    """Read a model that `save` wrote; needs no scikit-learn, runs no code of the file.

    Parameters
    ----------
    path : str or path
    trusted : list of str, default=None
        For files with parts written by skops: the types that may be made, as skops
        names them. None refuses such files.
    max_bytes : int, default=16 MiB
        Larger files are refused before they are read. The other limits (values, strings,
        lists) grow with it.

    Returns
    -------
    model : SavedModel
        Its answers are those of the model that was saved, to the last bit.

    Raises
    ------
    ModelFileError
        If the file is anything but a whole model file of a known version: it says what
        is wrong.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import sensortree
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "model.json"
    ...     _ = path.write_text('{"format": "a recipe"}')
    ...     sensortree.load(path)
    Traceback (most recent call last):
        ...
    sensortree.exceptions.ModelFileError: the file is not a sensortree model: its
    'format' is not 'sensortree-model'.
    """
    with open(path, "rb") as file:
        # One byte more, so that a file that grows meanwhile is seen to be too large.
        text = file.read(min(os.fstat(file.fileno()).st_size, max_bytes) + 1)
    if len(text) > max_bytes:
        raise ModelFileError(
            f"the file is larger than {max_bytes:,} bytes; if it is meant to be, read it "
            f"with load(path, max_bytes=...)."
        )
    return read_model(parse(text, max_bytes), trusted)


def replace_file(path: Path, text: bytes) -> None:
    """Write beside the target, force it to the disk, then put it in the target's place."""
    # A link stays a link: what it points to is replaced.
    path = Path(os.path.realpath(path))
    name = path.parent / f".sensortree-{secrets.token_hex(8)}.tmp"
    try:
        with open(name, "xb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():  # permissions stay, too
            shutil.copymode(path, name)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
    with contextlib.suppress(OSError):  # and its name, where folders can be opened
        descriptor = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def render(document: dict[str, Any]) -> bytes:
    """A document as the text of a file, one line per section, with its digest."""
    head = {"format": FORMAT, "format_version": FORMAT_VERSION, "digest": NO_DIGEST}
    lines = [
        f"{json.dumps(key)}: {json.dumps(value, allow_nan=False)}"
        for key, value in {**head, **document}.items()
    ]
    text = ("{\n" + ",\n".join(lines) + "\n}\n").encode()
    return text.replace(NO_DIGEST.encode(), digest_of(text, NO_DIGEST).encode(), 1)


def digest_of(text: bytes, digest: str) -> str:
    """SHA-256 of a file's text in which the digest itself is 64 zeros."""
    blank = text.replace(digest.encode(), NO_DIGEST.encode(), 1)
    return hashlib.sha256(blank).hexdigest()


def parse(text: bytes, max_bytes: int = MAX_BYTES) -> dict[str, Any]:
    """The document in a file's text, if it is whole, of this format, and unchanged."""
    _check_kind(text)
    _check_sizes(text, max(1.0, max_bytes / MAX_BYTES))
    document = _decode(text)
    if not isinstance(document, dict):
        raise ModelFileError(
            f"a model file holds one JSON object, this one holds a "
            f"{type(document).__name__}."
        )
    _check_version(document)
    digest = document.get("digest")
    if not isinstance(digest, str) or len(digest) != 64 or not digest.isascii():
        raise ModelFileError("the file's 'digest' is not 64 hexadecimal digits.")
    if digest_of(text, digest) != digest:
        raise ModelFileError(
            "the file's digest does not match its contents: it was changed or damaged "
            "after it was written; save the model again."
        )
    return document


def _check_kind(text: bytes) -> None:
    """Refuse what other programs write, by name."""
    if not text.strip():
        raise ModelFileError("the model file is empty.")
    if text[:1] == b"\x80" or text[:2] == b"\x1f\x8b":
        raise ModelFileError(
            "this looks like a pickle or joblib file, which can run code when it is read; "
            "write the model with sensortree.save, which holds data only."
        )
    if text[:2] == b"PK":
        raise ModelFileError(
            "this is a zip archive (a skops file?), not a model file; write the model "
            "with sensortree.save."
        )


def _check_sizes(text: bytes, scale: float) -> None:
    """Check depth and counts before anything is built; quotes and brackets suffice."""
    # Of equal length, so that what is left of quotes begins or ends a string.
    plain = text.replace(b"\\\\", b"__").replace(b'\\"', b"__")
    _check_count(plain.count(b'"') / 2, MAX_STRINGS * scale, "strings")
    inside, depth, values, containers, length, digits = 0, 0, 0, 0, 0, 0
    for start in range(0, len(plain), CHUNK):
        chunk = np.frombuffer(plain, np.uint8, min(CHUNK, len(plain) - start), start)
        parity = np.bitwise_xor.accumulate((chunk == QUOTE).view(np.uint8)) ^ inside
        length = _check_run(parity != 0, length, "string")
        digit = (chunk >= ord("0")) & (chunk <= ord("9")) & (parity == 0)
        digits = _check_run(digit, digits, "number")
        inside = int(parity[-1])
        outside = chunk[parity == 0]
        opened = (outside == OPEN[0]) | (outside == OPEN[1])
        closed = (outside == CLOSE[0]) | (outside == CLOSE[1])
        level = opened.astype(np.int32)
        level -= closed
        np.cumsum(level, out=level)
        if depth + int(level.max(initial=0)) > MAX_DEPTH:
            raise ModelFileError(
                f"the file nests lists and objects more than {MAX_DEPTH} deep."
            )
        depth += int(level[-1]) if level.size else 0
        containers += int(opened.sum())
        values += int((outside == COMMA).sum()) + int(opened.sum())
        _check_count(containers, MAX_CONTAINERS * scale, "lists and objects")
        _check_count(values, MAX_VALUES * scale, "values")
    if inside or depth > 0:
        raise ModelFileError(
            "the file is truncated: it ends within a string, a list or an object."
        )


def _check_count(count: float, most: float, what: str) -> None:
    if count > most:
        raise ModelFileError(f"the file holds more than {int(most):,} {what}.")


def _check_run(inside: Any, length: int, what: str) -> int:
    """Check lengths of strings or numbers; bytes of the one open at the chunk's end.

    `inside` says which bytes of the chunk belong to one, `length` how many came before.
    """
    ends = np.flatnonzero(~inside)
    last = int(ends[-1]) if ends.size else -1
    gaps = np.diff(ends, prepend=-1 - length)
    longest = max(int(gaps.max(initial=0)) - 2, len(inside) - 2 - last)
    if longest > MAX_STRING:
        raise ModelFileError(
            f"the file holds a {what} of more than {MAX_STRING} bytes."
        )
    return len(inside) - 1 - last if ends.size else length + len(inside)


def _decode(text: bytes) -> Any:
    """Parse JSON proper: no NaN, no repeated keys."""
    try:
        decoded = text.decode("ascii")  # one byte per character in memory, too
    except UnicodeDecodeError as error:
        raise ModelFileError(
            f"the file is not JSON in ASCII, as save writes it: {error}."
        ) from error
    try:
        return json.loads(
            decoded, object_pairs_hook=_distinct, parse_constant=_no_constant
        )
    except json.JSONDecodeError as error:
        raise ModelFileError(f"the file is not JSON: {error}.") from error
    except (ValueError, RecursionError, MemoryError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(f"the file cannot be read as JSON: {error}.") from error


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        counts = collections.Counter(key for key, _ in pairs)
        twice = counts.most_common(1)[0][0]
        raise ModelFileError(f"the key {twice[:80]!r} occurs twice in one object.")
    return result


def _no_constant(name: str) -> Any:
    raise ModelFileError(
        f"the file holds {name}, which is not JSON; every number in a model file is "
        f"finite."
    )


def _check_version(document: dict[str, Any]) -> None:
    if document.get("format") != FORMAT:
        raise ModelFileError(
            f"the file is not a sensortree model: its 'format' is not {FORMAT!r}."
        )
    version = document.get("format_version")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise ModelFileError("the file's 'format_version' is not a positive integer.")
    if version > FORMAT_VERSION:
        raise ModelFileError(
            f"the file is from the future: it has a newer 'format_version' than this "
            f"sensortree reads, {FORMAT_VERSION}; install a newer sensortree."
        )
