"""A model file, and data in the form that its model wants."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray

from sensortree.cells.dates import day_numbers
from sensortree.cells.formats import PLAIN_FORMAT
from sensortree.cells.words import MISSING, cut
from sensortree.cli.data_file import DataFile, beside, class_finder, columns_note
from sensortree.exceptions import DataError, ModelFileError
from sensortree.persistence import load
from sensortree.persistence.saved import SavedModel
from sensortree.persistence.written import as_known, is_text
from sensortree.policy.masked import MaskedPolicy
from sensortree.text import listed
from sensortree.tree.tree import Leaf, Node


def open_model(path: Path, strict: bool = False) -> SavedModel:
    """Load a model file; its name is in whatever is wrong with it."""
    try:
        loaded: SavedModel = load(path).set_strict(strict)
        return loaded
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from error


@dataclass(frozen=True, eq=False)
class ModelTable:
    """The columns that a model reads, in its order.

    Attributes
    ----------
    X : ndarray of shape (n_rows, n_columns)
        NaN where a cell is missing, or cannot be read.
    unreadable : dict of column to dict of row to what is wrong with the cell
    notes : list of str
        How columns were read, where that is not as in training.
    """

    X: NDArray[Any]
    unreadable: dict[str, dict[int, str]]
    notes: list[str]


def table_for(model: SavedModel, data: DataFile) -> ModelTable:
    """Read the columns that a model can ask for; others may be absent."""
    categories, needed = model.written_.categories, columns_needed(model)
    data = data.knowing(model.written_.formats)
    read: list[NDArray[Any]] = []
    unreadable: dict[str, dict[int, str]] = {}
    notes: dict[str, list[str]] = {}
    for column in model.sensors_.column_names:
        text = is_text(categories.get(column))
        if column not in data.columns and column not in needed:
            read.append(_absent(len(data), text))
            continue
        data.require(column, "the model")
        if text:
            read.append(_known_levels(data.texts(column), categories[column]))
        else:
            values, unreadable[column], notes[column] = _read_numbers(
                data, column, model
            )
            read.append(values)
    return ModelTable(beside(read), unreadable, columns_note(notes))


def columns_needed(model: SavedModel) -> set[str]:
    """Columns of sensors that the tree can buy, and of prices."""
    sensors, tree = model.sensors_, model.tree_
    vertices: list[Leaf | Node] = [*tree.leaves, *tree.nodes]
    bought = {name for vertex in vertices for name in vertex.sensors}
    prices = {sensors.terms[j].price_column for j in sensors.varying}
    owned = {c for name in bought for c in sensors.columns[sensors.index(name)]}
    needed = {*owned, *(column for column in prices if column is not None)}
    return {sensors.column_names[column] for column in needed}


def _absent(n_rows: int, text: bool) -> NDArray[Any]:
    """A column that is not there."""
    return np.full(n_rows, "", dtype=object) if text else np.full(n_rows, np.nan)


def _known_levels(texts: NDArray[Any], categories: tuple[Any, ...]) -> NDArray[Any]:
    """Categories as the model knows them, but for capitals and spaces."""
    table = {text: as_known(text, categories) for text in dict.fromkeys(texts)}
    levels = np.empty(len(texts), dtype=object)
    levels[:] = [table[text] for text in texts]
    return levels


def _read_numbers(
    data: DataFile, column: str, model: SavedModel
) -> tuple[NDArray[np.float64], dict[int, str], list[str]]:
    """A column of numbers or dates, cells that are none, and how it was read."""
    cells, form = data.columns[column], data.known.get(column, PLAIN_FORMAT)
    if form.date:
        days = day_numbers(cells, form.date)
        none = np.flatnonzero(np.isnan(days)).tolist()
        wrong = {
            row: f"{cut(cells[row])} is not a date, {form.date}"
            for row in none
            if cells[row] not in MISSING
        }
        return days, wrong, []
    found = data.read(column)
    astray = found.strays or found.other_units
    wrong = {
        row: why
        for row, cell in enumerate(cells if astray else ())
        if (why := found.why_not(cell))
    }
    style = (found.form.decimal, found.form.thousands)
    as_before = model.reading_ is not None and style == (form.decimal, form.thousands)
    return found.values, wrong, [] if as_before else found.style_notes()


class Labels(NamedTuple):
    """Right answers as classes of a model, of the rows that have one."""

    rows: NDArray[np.intp]
    classes: NDArray[Any]
    n_empty: int
    unknown: dict[int, str]
    target: str


def _numbers_for(data: DataFile, target: str) -> Labels:
    """Right answers that are numbers."""
    cells = data.require(target, "--target")
    kept = np.array([cell not in MISSING for cell in cells], dtype=bool)
    if not kept.any():
        raise DataError(f"{data.path}: the target {target!r} is empty in all rows.")
    numbers = data.rows(kept).numbers(target, "the model answers with numbers.")
    return Labels(np.flatnonzero(kept), numbers, int((~kept).sum()), {}, target)


def labels_for(model: SavedModel, data: DataFile, target: str | None) -> Labels:
    """Find the right answers of a table, by default in the column that was learned."""
    target = target or model.about_.target
    if not target:
        raise typer.BadParameter(
            "the model does not say what it learned to predict; name the column of the "
            "right answers.",
            param_hint="--target",
        )
    if model.policy_.loss.numbers:
        return _numbers_for(data, target)
    classes = {str(label): label for label in model.classes_.tolist()}
    find = class_finder(classes)
    rows, labels, unknown, n_empty = [], [], {}, 0
    for row, cell in enumerate(data.require(target, "--target")):
        label = find(cell)
        if label is None and isinstance(cell, str):
            label = find(as_known(cell, classes))
        if label is not None:
            rows.append(row)
            labels.append(label)
        elif cell in MISSING:
            n_empty += 1
        else:
            unknown[row] = f"{cut(cell)} is not a class of the model"
    if not rows:
        row = min(unknown, default=0)
        raise DataError(
            f"{data.place(row, target)}: {cut(data.columns[target][row])} is not a class "
            f"of the model, nor is that of any other row; its classes are "
            f"{listed(classes)}."
        )
    return Labels(np.array(rows), np.array(labels), n_empty, unknown, target)


def problems_of(model: SavedModel, data: DataFile, table: ModelTable) -> dict[int, str]:
    """Rows that cannot be answered, each with the reason."""
    problems = dict(data.broken)
    problems |= bad_prices(model, table)
    rows = np.array([i for i in range(len(data)) if i not in problems], dtype=np.intp)
    problems |= _unreadable_and_bought(model, table, rows)
    rows = np.array([i for i in rows.tolist() if i not in problems], dtype=np.intp)
    problems |= _refused(model, table.X, rows)
    return dict(sorted(problems.items()))


def bad_prices(model: SavedModel, table: ModelTable) -> dict[int, str]:
    """Rows with a price that is none."""
    problems = {}
    for sensor in map(int, model.sensors_.varying):
        column = model.sensors_.terms[sensor].price_column
        if column is not None:
            prices = table.X[:, column].astype(np.float64)
            name = model.sensors_.column_names[column]
            for row in np.flatnonzero(~(prices >= 0)).tolist():
                problems[row] = f"column {name!r}: no price of at least 0"
    return problems


def _unreadable_and_bought(
    model: SavedModel, table: ModelTable, rows: NDArray[np.intp]
) -> dict[int, str]:
    """Rows that buy a sensor with a cell that is no number, or needed and missing."""
    sensors, reader = model.sensors_, model.policy_.reader
    known = np.ones((len(table.X), len(sensors)), dtype=bool)
    why: dict[tuple[int, int], str] = {}
    for j, (name, columns) in enumerate(
        zip(sensors.names, sensors.columns, strict=True)
    ):
        # A model that knows what it saw also knows what to put where nothing is.
        takes_missing = (
            reader.allow_nan or name in reader.transformers or reader.seen is not None
        )
        for column in columns:
            label = sensors.column_names[column]
            wrong = table.unreadable.get(label, {})
            if not takes_missing:
                empty = np.flatnonzero(np.isnan(table.X[:, column].astype(np.float64)))
                wrong = {**dict.fromkeys(empty.tolist(), "is empty"), **wrong}
            for row, what in wrong.items():
                known[row, j] = False
                said = what if what == "is empty" else f": {what}"
                why.setdefault((row, j), f"column {label!r}{_spaced(said)}")
    rows = rows[~known[rows].all(axis=1)]
    if not rows.size:
        return {}
    action = MaskedPolicy(model.policy_).act(table.X[rows], known[rows])
    asked = zip(rows.tolist(), action.tolist(), strict=True)
    return {row: why[row, a - 1] for row, a in asked if a > 0}


def _spaced(said: str) -> str:
    return said if said.startswith(":") else f" {said}"


def _refused(
    model: SavedModel, X: NDArray[Any], rows: NDArray[np.intp]
) -> dict[int, str]:
    """Rows that the model refuses, found by halving."""
    if not rows.size:
        return {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # whoever asks for the answers is told
            model.predict(X[rows])
    except DataError as error:
        if len(rows) == 1:
            return {int(rows[0]): re.sub(r"row 0, | in row 0\b(?!,)", "", str(error))}
        half = len(rows) // 2
        return {**_refused(model, X, rows[:half]), **_refused(model, X, rows[half:])}
    return {}


@contextmanager
def rows_as_lines(data: DataFile, rows: Sequence[int]) -> Iterator[None]:
    """Say in which line of the file a row is that the library complains about.

    `rows` are the rows of the file that the library is given.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        except DataError as error:
            raise DataError(
                f"{data.path}: {in_lines(str(error), data, rows)}"
            ) from error
    told = {(in_lines(str(w.message), data, rows), w.category): None for w in caught}
    for message, category in told:
        warnings.warn(message, category, stacklevel=2)


def in_lines(message: str, data: DataFile, rows: Sequence[int]) -> str:
    """A message of the library, with lines of the file in place of rows."""

    def line(found: re.Match[str]) -> str:
        row = int(found[1])
        return f"{data.unit} {data.lines[rows[row]]}" if row < len(rows) else found[0]

    return re.sub(r"\brow (\d+)\b", line, message)
