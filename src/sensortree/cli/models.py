"""A model file, and tables and logs in the form that its model takes."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray

from sensortree.cells.words import PLAIN_FORMAT, cut, day_numbers, is_nothing
from sensortree.cli.options import Purchases
from sensortree.cli.tables import (
    DataFile,
    as_objects,
    class_finder,
    columns_note,
    left_out_note,
    read_data,
    stacked,
)
from sensortree.exceptions import DataError, ModelFileError
from sensortree.persistence import load
from sensortree.persistence.saved import SavedModel, as_known, is_text
from sensortree.policy.batch import MaskedPolicy
from sensortree.text import listed

if TYPE_CHECKING:
    from sensortree.cli.sensors_file import SensorsFile

# Columns of a log with a line for each purchase; the times may as well be positions.
SENSOR, TIMES = "sensor", ("time", "position")


def open_model(path: Path, strict: bool = False) -> SavedModel:
    """Load a model file; errors name the file."""
    try:
        loaded: SavedModel = load(path).set_strict(strict)
        return loaded
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from error


class ModelTable(NamedTuple):
    """The columns that a model reads, in its order."""

    # (n_rows, n_columns); NaN where a cell is missing, or cannot be read.
    X: NDArray[Any]
    # What is wrong with a cell, by column and row.
    unreadable: dict[str, dict[int, str]]
    notes: list[str]  # how columns were read, where not as in training


def table_for(model: SavedModel, data: DataFile) -> ModelTable:
    """Read the columns that a model can ask for; others may be absent."""
    categories, needed = model.categories_, columns_needed(model)
    data = data.knowing(model.formats_)
    read: list[NDArray[Any]] = []
    unreadable: dict[str, dict[int, str]] = {}
    notes: dict[str, list[str]] = {}
    for column in model.sensors_.column_names:
        text = is_text(categories.get(column))
        if column not in data.columns and column not in needed:
            absent: Any = "" if text else np.nan
            read.append(np.full(len(data), absent, dtype=object if text else None))
            continue
        data.require(column, "the model")
        if text:
            texts, known = data.texts(column), categories[column]
            level = {text: as_known(text, known) for text in dict.fromkeys(texts)}
            read.append(as_objects([level[text] for text in texts]))
        else:
            values, unreadable[column], notes[column] = _read_numbers(
                data, column, model
            )
            read.append(values)
    return ModelTable(stacked(read), unreadable, columns_note(notes))


def columns_needed(model: SavedModel) -> set[str]:
    """Columns of sensors that the tree can buy, and of prices."""
    sensors, tree = model.sensors_, model.tree_
    bought = {name for leaf in tree.leaves for name in leaf.sensors}
    bought |= {name for node in tree.nodes for name in node.sensors}
    prices = {sensors.terms[j].price_column for j in sensors.varying}
    owned = {c for name in bought for c in sensors.columns[sensors.index(name)]}
    needed = {*owned, *(column for column in prices if column is not None)}
    return {sensors.column_names[column] for column in needed}


def _read_numbers(
    data: DataFile, column: str, model: SavedModel
) -> tuple[NDArray[np.float64], dict[int, str], list[str]]:
    """A column of numbers or dates; its unreadable cells; notes on how it was read."""
    cells, form = data.columns[column], data.known.get(column, PLAIN_FORMAT)
    if form.date:
        days = day_numbers(cells, form.date)
        none = np.flatnonzero(np.isnan(days)).tolist()
        wrong = {
            row: f"{cut(cells[row])} is not a date, {form.date}"
            for row in none
            if not is_nothing(cells[row])
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
    """Right answers, as a model writes them, of the rows that have one."""

    rows: NDArray[np.intp]
    classes: NDArray[Any]
    unknown: dict[int, str]
    notes: list[str]  # on rows that have none


def labels_for(model: SavedModel, data: DataFile, target: str | None) -> Labels:
    """Find the right answers of a table, by default in the column that was learned."""
    target = target or model.about_.target
    if not target:
        raise typer.BadParameter(
            "the model does not say what it learned to predict; name the column of the "
            "right answers.",
            param_hint="--target",
        )
    cells = data.require(target, "--target")
    if model.policy_.loss.numbers:
        return _amounts_for(data, target)
    classes = {str(label): label for label in model.classes_.tolist()}
    find = class_finder(classes)
    rows, labels, unknown = [], [], {}
    empty = np.zeros(len(cells), dtype=bool)
    for row, cell in enumerate(cells):
        label = find(cell)
        if label is None and isinstance(cell, str):
            label = find(as_known(cell, classes))
        if label is not None:
            rows.append(row)
            labels.append(label)
        elif is_nothing(cell):
            empty[row] = True
        else:
            unknown[row] = f"{cut(cell)} is not a class of the model"
    _check_answers(data, target, empty)
    if not rows:
        row = min(unknown)
        raise DataError(
            f"{data.place(row, target)}: {cut(cells[row])} is not a class "
            f"of the model, nor is that of any other row; its classes are "
            f"{listed(classes)}."
        )
    notes = left_out_note(data, target, empty)
    return Labels(np.array(rows), np.array(labels), unknown, notes)


def _amounts_for(data: DataFile, target: str) -> Labels:
    """The right answers of a table, where they are numbers."""
    read, cells = data.read(target), data.columns[target]
    missing = np.isnan(read.values)
    unknown = {
        row: why
        for row in np.flatnonzero(missing).tolist()
        if (why := read.why_not(cells[row]))
    }
    empty = missing.copy()
    empty[list(unknown)] = False
    _check_answers(data, target, empty)
    if missing.all():
        row = min(unknown)
        raise DataError(
            f"{data.place(row, target)}: {unknown[row]}, nor is that of any other row; the "
            f"model answers with numbers."
        )
    notes = left_out_note(data, target, empty)
    return Labels(np.flatnonzero(~missing), read.values[~missing], unknown, notes)


def _check_answers(data: DataFile, target: str, empty: NDArray[np.bool_]) -> None:
    """Refuse a table without any right answer."""
    if empty.all():
        raise DataError(
            f"{data.path}: the target {target!r} is empty in all rows; it must say the "
            f"right answer."
        )


def problems_of(
    model: SavedModel,
    data: DataFile,
    table: ModelTable,
    acquired: NDArray[np.int64] | None = None,
) -> dict[int, str]:
    """Rows that cannot be answered, or judged from a log, each with the reason.

    `acquired` is the log of purchases, if there is one (see `read_log`).
    """
    if acquired is not None:
        bought = _unreadable_and_bought(model, table, acquired)
        return {**bought, **_bad_prices(model, table), **data.broken}
    problems = {**data.broken, **_bad_prices(model, table)}
    rows = np.array([i for i in range(len(data)) if i not in problems], dtype=np.intp)
    problems |= _unreadable_and_asked(model, table, rows)
    rows = np.array([i for i in rows.tolist() if i not in problems], dtype=np.intp)
    problems |= _refused(model, table.X, rows)
    return dict(sorted(problems.items()))


def _bad_prices(model: SavedModel, table: ModelTable) -> dict[int, str]:
    """Rows whose price is missing or negative."""
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
    model: SavedModel, table: ModelTable, acquired: NDArray[np.int64]
) -> dict[int, str]:
    """Rows for which the log bought a sensor with an unreadable cell."""
    sensors = model.sensors_
    free = sensors.costs == 0  # and so known, whatever the log says
    problems: dict[int, str] = {}
    for sensor, columns in enumerate(sensors.columns):
        for column in columns:
            name = sensors.column_names[column]
            for row, why in table.unreadable.get(name, {}).items():
                if acquired[row, sensor] or free[sensor]:
                    problems.setdefault(row, f"column {name!r}: {why}")
    return problems


def _unreadable_and_asked(
    model: SavedModel, table: ModelTable, rows: NDArray[np.intp]
) -> dict[int, str]:
    """Rows that would buy a sensor with an unreadable cell, or a missing one."""
    sensors, reader = model.sensors_, model.policy_.reader
    known = np.ones((len(table.X), len(sensors)), dtype=bool)
    why: dict[tuple[int, int], str] = {}
    for j, (name, columns) in enumerate(
        zip(sensors.names, sensors.columns, strict=True)
    ):
        # A model that remembers its training also fills in missing cells.
        takes_missing = (
            reader.allow_nan or name in reader.transformers or reader.seen is not None
        )
        for column in columns:
            label = sensors.column_names[column]
            wrong = {
                row: f"column {label!r}: {what}"
                for row, what in table.unreadable.get(label, {}).items()
            }
            if not takes_missing:
                empty = np.flatnonzero(np.isnan(table.X[:, column].astype(np.float64)))
                missing = dict.fromkeys(empty.tolist(), f"column {label!r} is empty")
                wrong = {**missing, **wrong}
            for row, what in wrong.items():
                known[row, j] = False
                why.setdefault((row, j), what)
    rows = rows[~known[rows].all(axis=1)]
    if not rows.size:
        return {}
    action = MaskedPolicy(model.policy_).act(table.X[rows], known[rows])
    asked = zip(rows.tolist(), action.tolist(), strict=True)
    return {row: why[row, a - 1] for row, a in asked if a > 0}


def _refused(
    model: SavedModel, X: NDArray[Any], rows: NDArray[np.intp]
) -> dict[int, str]:
    """Rows that the model refuses, found by halving."""
    if not rows.size:
        return {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they are shown when the rows are answered
            model.predict(X[rows])
    except DataError as error:
        if len(rows) == 1:
            return {int(rows[0]): re.sub(r"row 0, | in row 0\b(?!,)", "", str(error))}
        half = len(rows) // 2
        return {**_refused(model, X, rows[:half]), **_refused(model, X, rows[half:])}
    return {}


@contextmanager
def rows_as_lines(data: DataFile, rows: Sequence[int]) -> Iterator[None]:
    """Name lines of the file, in place of rows, in errors and warnings of the library.

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


# the log of a table -----------------------------------------------------------------------


def read_log(
    purchases: Purchases, data: DataFile, names: Sequence[str]
) -> NDArray[np.int64]:
    """Positions of purchases for every row of a table, (n_rows, n_sensors).

    A long log has the columns ``sensor``, ``time`` (or ``position``) and the id; a wide one
    a column for each sensor, and the id, or the rows of the table in order.
    """
    assert purchases.log is not None
    log = read_data(purchases.log).whole()
    if SENSOR in log.columns:
        return _long(log, data, names, purchases.id_column)
    return _wide(log, data, names, purchases.id_column)


def _long(
    log: DataFile, data: DataFile, names: Sequence[str], id_column: str
) -> NDArray[np.int64]:
    """Positions from a line for each purchase."""
    from sensortree.logs import acquired_from_events

    there = [column for column in TIMES if column in log.columns]
    if not there:
        raise DataError(
            f"{log.path} has a column 'sensor', but none of {listed(TIMES)}, so nobody can "
            f"tell what was bought first; its columns are {listed(log.columns)}."
        )
    events = {
        "id": _ids(log, id_column).tolist(),
        "sensor": log.texts(SENSOR).tolist(),
        "time": [None if is_nothing(cell) else cell for cell in log.columns[there[0]]],
    }
    try:
        return acquired_from_events(events, _ids(data, id_column), names)
    except DataError as error:
        raise DataError(f"{log.path}: {error}") from error


def _wide(
    log: DataFile, data: DataFile, names: Sequence[str], id_column: str
) -> NDArray[np.int64]:
    """Positions from a column for each sensor."""
    found = [name for name in names if name in log.columns]
    if not found:
        raise DataError(
            f"{log.path} has neither a column 'sensor' nor one that is named as a sensor "
            f"is; its columns are {listed(log.columns)}, the sensors {listed(names)}."
        )
    position = np.zeros((len(log), len(names)))
    for name in found:
        read = log.numbers(name, "write the position of each purchase, 0 for never")
        position[:, list(names).index(name)] = np.where(np.isnan(read), 0, read)
    bad = np.argwhere((position < 0) | (position % 1 != 0))
    if bad.size:
        row, sensor = bad[0]
        raise DataError(
            f"{log.place(int(row), names[sensor])}: {position[row, sensor]:g} is no "
            f"position; write 1 for what was bought first, 0 for never."
        )
    whole = position.astype(np.int64)
    if id_column not in log.columns:
        if len(log) != len(data):
            raise DataError(
                f"{log.path} has {len(log)} rows, {data.path} {len(data)}; give both a "
                f"column that says which row is which, and name it: --id."
            )
        return whole
    row_of = {one: row for row, one in enumerate(log.texts(id_column).tolist())}
    acquired = np.zeros((len(data), len(names)), dtype=np.int64)
    for row, one in enumerate(_ids(data, id_column).tolist()):
        if one not in row_of:
            raise DataError(
                f"{data.place(row)}: {log.path} has no row with {id_column} {cut(one)}."
            )
        acquired[row] = whole[row_of[one]]
    return acquired


def _ids(file: DataFile, column: str) -> NDArray[Any]:
    """Names of the rows, by the column that holds them."""
    file.require(column, "--id")
    return file.texts(column)


def only_bought(
    table: DataFile, file: SensorsFile, acquired: NDArray[np.int64]
) -> DataFile:
    """The table, with the cells of sensors that were not bought emptied."""
    columns = dict(table.columns)
    for sensor, declared in enumerate(file.sensors.values()):
        if declared.cost == 0:  # and so known, whatever the log says
            continue
        gone = (acquired[:, sensor] == 0).tolist()
        for column in declared.columns:
            if column in columns:
                pairs = zip(columns[column], gone, strict=True)
                columns[column] = ["" if out else cell for cell, out in pairs]
    return replace(table, columns=columns, _read={})


def rows_left(table: DataFile, left: DataFile) -> NDArray[np.intp]:
    """Positions, in the whole table, of the rows that are left."""
    place = {line: row for row, line in enumerate(table.lines)}
    return np.array([place[line] for line in left.lines], dtype=np.intp)
