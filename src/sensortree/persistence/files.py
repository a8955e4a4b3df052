"""`save` and `load`: one file, replaced at once or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sensortree.exceptions import ModelFileError
from sensortree.persistence.model import read_model, write_model
from sensortree.persistence.saved import SavedModel
from sensortree.persistence.text import MAX_BYTES, parse, render


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
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Force the new name to the disk, where folders can be opened."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
