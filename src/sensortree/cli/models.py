"""A model file, and data in the form that its model wants."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import typer
from numpy.typing import NDArray

from sensortree.cli.data_file import DataFile, class_finder
from sensortree.exceptions import DataError, ModelFileError
from sensortree.persistence import load
from sensortree.persistence.saved import SavedModel
from sensortree.sensors.transforms import InTurn, OneHot, Ordinal, SideBySide, Typed
from sensortree.text import listed

Categories = dict[str, tuple[Any, ...]]


def open_model(path: Path, strict: bool = False) -> SavedModel:
    """Load a model file; its name is in whatever is wrong with it."""
    try:
        loaded: SavedModel = load(path).set_strict(strict)
        return loaded
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from error


def categories_of(model: SavedModel) -> Categories:
    """Categories of the columns that hold such, by name."""
    reader, found = model.policy_.reader, {}
    for name, columns in zip(reader.sensors.names, reader.sensors.columns, strict=True):
        known = _categories(reader.transformers.get(name), len(columns))
        for column, values in zip(columns, known, strict=True):
            if values is not None:
                found[reader.sensors.column_names[column]] = values
    return found


def _categories(transform: Any, n_columns: int) -> list[tuple[Any, ...] | None]:
    """Categories of each column of a transform; None for numbers."""
    if isinstance(transform, (OneHot, Ordinal)):
        return list(transform.categories)
    if isinstance(transform, InTurn):
        first, *rest = transform.steps
        typed = isinstance(first, Typed) and rest  # which leaves columns where they are
        return _categories(rest[0] if typed else first, n_columns)
    known: list[tuple[Any, ...] | None] = [None] * n_columns
    if isinstance(transform, SideBySide):
        for at, part in transform.parts:
            for position, values in zip(at, _categories(part, len(at)), strict=True):
                known[position] = values
    return known


def is_text(categories: tuple[Any, ...] | None) -> bool:
    """Whether a column's categories are text, which is then read as it stands."""
    return categories is not None and any(isinstance(c, str) for c in categories)


def table_for(model: SavedModel, data: DataFile) -> NDArray[Any]:
    """The columns that a model reads, in its order."""
    categories = categories_of(model)
    read: list[NDArray[Any]] = []
    for column in model.sensors_.column_names:
        data.require(column, "the model")
        if is_text(categories.get(column)):
            read.append(data.texts(column))
        else:
            remedy = "the model was fitted on numbers in this column."
            read.append(data.numbers(column, remedy))
    objects = any(values.dtype == object for values in read)
    return np.stack([v.astype(object) if objects else v for v in read], axis=1)


def labels_for(model: SavedModel, data: DataFile, target: str | None) -> NDArray[Any]:
    """Right answers as classes of a model, by default from the column it learned."""
    target = target or model.about_.target
    if not target:
        raise typer.BadParameter(
            "the model does not say what it learned to predict; name the column of the "
            "right answers.",
            param_hint="--target",
        )
    classes = {str(label): label for label in model.classes_.tolist()}
    find, labels = class_finder(classes), []
    for row, cell in enumerate(data.require(target, "--target")):
        label = find(cell)
        if label is None:
            raise DataError(
                f"{data.place(row, target)}: {cell!r} is not a class of the model; its "
                f"classes are {listed(classes)}."
            )
        labels.append(label)
    return np.array(labels)


@contextmanager
def rows_as_lines(data: DataFile) -> Iterator[None]:
    """Say in which line of the file the row is that the library complains about."""
    try:
        yield
    except DataError as error:
        found = re.search(r"\brow (\d+)\b", str(error))
        if found is None or int(found[1]) >= len(data):
            raise DataError(f"{data.path}: {error}") from error
        raise DataError(
            f"{data.path}: {error} Row {found[1]} is {data.unit} "
            f"{data.lines[int(found[1])]} of the file."
        ) from error
