"""A log of purchases beside a table: a line for each, or a column for each sensor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sensortree.cells.words import MISSING, cut
from sensortree.cli.data_file import DataFile, read_data
from sensortree.exceptions import DataError
from sensortree.text import listed

if TYPE_CHECKING:
    from sensortree.cli.models import ModelTable
    from sensortree.cli.sensors_file import SensorsFile
    from sensortree.persistence.saved import SavedModel

# Columns of a long log; the times may as well be positions.
SENSOR, TIMES = "sensor", ("time", "position")


def read_log(
    path: Path, data: DataFile, names: Sequence[str], id_column: str
) -> NDArray[np.int64]:
    """Positions of purchases for every row of a table, (n_rows, n_sensors).

    Parameters
    ----------
    path : Path
        A long log has the columns ``sensor``, ``time`` (or ``position``) and the id; a
        wide one a column for each sensor, and the id, or the rows of the table in order.
    data : DataFile
        The table that it belongs to.
    names : sequence of str
        Sensors of the model.
    id_column : str
        Column of both files that says which row is which.
    """
    log = read_data(path).whole()
    if SENSOR in log.columns:
        return _long(log, data, names, id_column)
    return _wide(log, data, names, id_column)


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
        "id": log.texts(_id(log, id_column)).tolist(),
        "sensor": log.texts(SENSOR).tolist(),
        "time": [None if cell in MISSING else cell for cell in log.columns[there[0]]],
    }
    ids = data.texts(_id(data, id_column))
    try:
        return acquired_from_events(events, ids, names)
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
    for row, one in enumerate(data.texts(_id(data, id_column)).tolist()):
        if one not in row_of:
            raise DataError(
                f"{data.place(row)}: {log.path} has no row with {id_column} {cut(one)}."
            )
        acquired[row] = whole[row_of[one]]
    return acquired


def _id(file: DataFile, column: str) -> str:
    """The column that says which row is which."""
    file.require(column, "--id")
    return column


def only_bought(
    table: DataFile, file: SensorsFile, acquired: NDArray[np.int64]
) -> DataFile:
    """The table with nothing in the cells of sensors that were not bought."""
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
    """Where the rows that are left stand in the table that they were taken from."""
    place = {line: row for row, line in enumerate(table.lines)}
    return np.array([place[line] for line in left.lines], dtype=np.intp)


def unreadable_and_bought(
    model: SavedModel, read: ModelTable, acquired: NDArray[np.int64]
) -> dict[int, str]:
    """Rows for which a sensor was bought that has a cell which cannot be read."""
    sensors = model.sensors_
    free = sensors.costs == 0  # and so known, whatever the log says
    problems: dict[int, str] = {}
    for sensor, columns in enumerate(sensors.columns):
        for column in columns:
            name = sensors.column_names[column]
            for row, why in read.unreadable.get(name, {}).items():
                if acquired[row, sensor] or free[sensor]:
                    problems.setdefault(row, f"column {name!r}: {why}")
    return problems
