"""What training saw of each column, in a model file."""

from __future__ import annotations

from typing import Any

from sensortree.exceptions import ModelFileError
from sensortree.persistence.fields import Fields, number, scalar
from sensortree.sensors.seen import Seen
from sensortree.sensors.sensor_set import SensorSet

SHARES = "a share is at most 1"


def write_seen(seen: tuple[tuple[Seen, ...], ...]) -> list[list[dict[str, Any]]]:
    """One object for each column of each sensor; what is not known is left out."""
    return [[_write_column(column) for column in columns] for columns in seen]


def _write_column(column: Seen) -> dict[str, Any]:
    if column.levels is not None:
        levels = [number(level) for level in column.levels]
        return {"missing": column.missing, "levels": levels}
    return {key: value for key, value in vars(column).items() if value is not None}


def read_seen(fields: Fields, sensors: SensorSet) -> tuple[tuple[Seen, ...], ...]:
    """What training saw of the columns of each sensor."""
    where, found = fields.place("seen"), []
    listed = fields.items("seen", len(sensors))
    for columns, stored in zip(sensors.columns, listed, strict=True):
        if not isinstance(stored, list) or len(stored) != len(columns):
            raise ModelFileError(f"{where} must say something of each column.")
        found.append(tuple(_read_column(Fields(each, where)) for each in stored))
    return tuple(found)


def _read_column(fields: Fields) -> Seen:
    missing = fields.number("missing", least=0.0)
    if missing > 1:
        raise ModelFileError(f"{fields.place('missing')} is {missing:g}; {SHARES}.")
    if fields.has("levels"):
        where = fields.place("levels")
        levels = tuple(scalar(value, where) for value in fields.items("levels"))
        fields.end()
        return Seen(missing, levels=levels)
    if not fields.has("low"):
        fields.end()
        return Seen(missing)
    low, middle, high = (fields.number(key) for key in ("low", "middle", "high"))
    if not low <= middle <= high:
        raise ModelFileError(f"{fields.where} has numbers that are not in order.")
    fields.end()
    return Seen(missing, low, middle, high)
