"""Classes, columns, sensors and prices of a model file."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensortree.exceptions import ModelFileError, SensorError
from sensortree.persistence.fields import Fields, check_text, number, numbers, scalar
from sensortree.sensors.loss import Loss
from sensortree.sensors.scores import named_score
from sensortree.sensors.sensor import Terms
from sensortree.sensors.sensor_set import SensorSet

# Prerequisites of all sensors together; checking them takes the square of the time.
MAX_SENSORS = 10_000
MAX_AFTER = 300
NUMBERS = (
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float32", "float64"),
)
TYPES: dict[str, tuple[type, ...]] = {
    **{name: (int,) for name in NUMBERS if "int" in name},
    "float32": (int, float),
    "float64": (int, float),
    "bool": (bool,),
    "str": (str,),
    "object": (str, int, float, bool),
}


def write_classes(classes: NDArray[Any]) -> dict[str, Any]:
    """Classes with their type."""
    name = "str" if classes.dtype.kind == "U" else classes.dtype.name
    values = [v.item() if isinstance(v, np.generic) else v for v in classes.tolist()]
    if name not in TYPES or not all(type(v) in TYPES[name] for v in values):
        raise ModelFileError(
            f"the classes are of type {classes.dtype}; a model file holds classes that "
            f"are text, integers, numbers or truth values."
        )
    return {"type": name, "values": values}


def read_classes(fields: Fields) -> NDArray[Any]:
    """Classes, at least two, all different."""
    name = fields.text("type")
    if name not in TYPES:
        raise ModelFileError(
            f"{fields.place('type')} is {name[:80]!r}, which is no type of classes."
        )
    where = fields.place("values")
    values = [scalar(value, where) for value in fields.items("values")]
    fields.end()
    if not all(type(v) in TYPES[name] for v in values):
        raise ModelFileError(f"{where} must hold values of type {name}.")
    if len(values) < 2 or len(set(values)) < len(values):
        raise ModelFileError(f"{where} must hold at least two different classes.")
    try:
        return np.array(values, dtype=name)
    except OverflowError as error:
        raise ModelFileError(f"{where} holds a number that {name} cannot.") from error


def write_sensors(sensors: SensorSet) -> list[dict[str, Any]]:
    """Sensors in their order, with columns, prices and terms."""
    return [
        {
            "name": name,
            "columns": list(map(int, columns)),
            "cost": number(cost),
            "group": terms.group,
            "surcharge": float(terms.surcharge),
            "after": list(sensors.in_order(terms.after)),
            "one_of": terms.one_of,
            "varies": bool(terms.varies),
            "price_column": (
                None if terms.price_column is None else int(terms.price_column)
            ),
            **(
                {} if terms.own_price is None else {"own_price": float(terms.own_price)}
            ),
        }
        for name, columns, cost, terms in zip(
            sensors.names, sensors.columns, sensors.costs, sensors.terms, strict=True
        )
    ]


def read_sensors(fields: Fields, column_names: tuple[str, ...]) -> SensorSet:
    """Sensors that claim every column once, and their prerequisites."""
    names: list[str] = []
    columns, costs, all_terms = [], [], []
    n_after = 0
    for sensor in fields.children("sensors"):
        if len(names) == MAX_SENSORS:
            raise ModelFileError(f"the file has more than {MAX_SENSORS:,} sensors.")
        names.append(sensor.text("name"))
        columns.append(sensor.positions("columns", len(column_names)))
        costs.append(sensor.number("cost", least=0.0))
        terms = _read_terms(sensor, len(column_names))
        n_after += len(terms.after)
        if n_after > MAX_AFTER:
            raise ModelFileError(f"the file has more than {MAX_AFTER:,} prerequisites.")
        all_terms.append(terms)
        sensor.end()
    if len(set(names)) < len(names):
        raise ModelFileError(f"{fields.place('sensors')} has two sensors of one name.")
    try:
        return SensorSet(
            tuple(names),
            tuple(columns),
            np.array(costs, dtype=np.float64),
            column_names,
            tuple(all_terms),
        )
    except SensorError as error:
        raise ModelFileError(f"the sensors of the file cannot be: {error}") from error


def _read_terms(sensor: Fields, n_columns: int) -> Terms:
    labels = {}
    for key in ("group", "one_of"):
        label = sensor.take(key)
        labels[key] = None if label is None else check_text(label, sensor.place(key))
    varies = sensor.flag("varies")
    price_column = None
    if sensor.has("price_column"):
        price_column = sensor.integer("price_column", 0, n_columns)
        if not varies:
            raise ModelFileError(
                f"{sensor.where} has a price column but does not vary."
            )
    else:
        sensor.take("price_column")
    return Terms(
        labels["group"],
        sensor.number("surcharge", least=0.0),
        frozenset(sensor.texts("after")),
        labels["one_of"],
        varies,
        price_column,
        sensor.number("own_price", least=0.0) if sensor.has("own_price") else None,
    )


def write_loss(loss: Loss) -> dict[str, Any]:
    """The loss matrix, row after row, and, where probabilities are judged, how."""
    said: dict[str, Any] = {
        "loss": None if loss.matrix is None else numbers(loss.matrix)
    }
    if loss.score is not None:
        by_class = None if loss.by_class is None else numbers(loss.by_class)
        said["risk"] = {"name": loss.score.name, "by_class": by_class}
    return said


def read_loss(fields: Fields, n_classes: int) -> Loss:
    """The loss matrix, null for 1 per error; and how probabilities are judged.

    A function of the user's own is known by its name only.
    """
    matrix = None
    if fields.has("loss"):
        matrix = fields.numbers("loss", (n_classes, n_classes), least=0.0)
    else:
        fields.take("loss")
    if not fields.has("risk"):
        fields.optional("risk")
        return Loss(matrix)
    risk = fields.child("risk")
    score = named_score(risk.text("name"))
    by_class = None
    if risk.has("by_class"):
        by_class = risk.numbers("by_class", (n_classes,), least=0.0)
    else:
        risk.take("by_class")
    risk.end()
    return Loss(matrix, score, by_class)
