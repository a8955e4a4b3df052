"""What a model is about: classes, sensors, losses, and what training saw of the columns."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensortree.cells.words import DECIMALS, THOUSANDS, ColumnFormat
from sensortree.exceptions import ModelFileError, SensorError
from sensortree.persistence.codecs import (
    FLAG,
    ROWS,
    TEXT,
    TEXTS,
    WORDS,
    Codec,
    array,
    integer,
    keyed,
    later,
    nullable,
    real,
    record,
    word,
)
from sensortree.persistence.fields import Fields, number, scalar
from sensortree.policy.about import About, HeldOut
from sensortree.sensors.loss import Loss, NumberLoss, named_distance, named_score
from sensortree.sensors.referral import Promise, Referral
from sensortree.sensors.seen import Seen
from sensortree.sensors.sensor import SensorSet, Terms

# Prerequisites of all sensors together; checking them takes the square of the time.
MAX_SENSORS = 10_000
MAX_AFTER = 300
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(INTEGERS, (int,)),
    "float32": (int, float),
    "float64": (int, float),
    "bool": (bool,),
    "str": (str,),
    "object": (str, int, float, bool),
}
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


# answers ----------------------------------------------------------------------------------

BY_CLASS = nullable(array("classes", least=0.0))
MATRIX = nullable(array("classes", "classes", least=0.0))


def write_answers(classes: NDArray[Any], loss: Loss) -> dict[str, Any]:
    """Classes with their type, and what mistakes cost; or that answers are numbers."""
    if isinstance(loss, NumberLoss):
        return {"task": "regression", "numbers": NUMBER_LOSS.write(loss)}
    name = "str" if classes.dtype.kind == "U" else classes.dtype.name
    values = [v.item() if isinstance(v, np.generic) else v for v in classes.tolist()]
    if name not in TYPES or not all(type(v) in TYPES[name] for v in values):
        raise ModelFileError(
            f"the classes are of type {classes.dtype}; a model file holds classes that "
            f"are text, integers, numbers or truth values."
        )
    form = {
        "classes": {"type": name, "values": values},
        "loss": MATRIX.write(loss.matrix),
    }
    if loss.score is not None:
        by_class = BY_CLASS.write(loss.by_class)
        form["risk"] = {"name": loss.score.name, "by_class": by_class}
    return form


def read_answers(problem: Fields) -> tuple[NDArray[Any], Loss]:
    """The same; none and a `NumberLoss`, or at least two classes, all different.

    A risk of your own is known by its name only.
    """
    if problem.has("task"):
        if problem.text("task") != "regression":
            raise problem.wrong("task", "must be 'regression', or absent")
        return np.empty(0), NUMBER_LOSS.read(problem, "numbers", {})
    classes = _read_classes(problem.child("classes"))
    sizes = {"classes": len(classes)}
    matrix = MATRIX.read(problem, "loss", sizes)
    if not problem.has("risk"):
        problem.optional("risk")
        return classes, Loss(matrix)
    risk = problem.child("risk")
    score = named_score(risk.text("name"))
    by_class = BY_CLASS.read(risk, "by_class", sizes)
    risk.end()
    return classes, Loss(matrix, score, by_class)


def _read_classes(fields: Fields) -> NDArray[Any]:
    name = fields.text("type")
    if name not in TYPES:
        raise fields.wrong("type", f"is {name[:80]!r}, which is no type of classes")
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


def _number_loss(**parts: Any) -> NumberLoss:
    return NumberLoss(
        **parts, distance=named_distance(parts["risk"], parts["quantile"])
    )


def _check_number_loss(loss: NumberLoss, fields: Fields) -> None:
    if loss.quantile is not None and not 0 < loss.quantile < 1:
        raise fields.wrong(
            "quantile", f"must be between 0 and 1, got {loss.quantile:g}"
        )
    if loss.low > loss.high:
        raise fields.wrong("low", f"is above {fields.place('high')}")


NUMBER_LOSS = record(
    _number_loss,
    _check_number_loss,
    risk=TEXT,
    quantile=nullable(real()),
    low=real(),
    high=real(),
    stake=real(0.0),
)


# sensors ----------------------------------------------------------------------------------


def _check_terms(terms: Terms, fields: Fields) -> None:
    if terms.price_column is not None and not terms.varies:
        raise fields.wrong("", "has a price column but does not vary")


TERMS = record(
    Terms,
    _check_terms,
    group=nullable(TEXT),
    surcharge=real(0.0),
    after=Codec(sorted, lambda f, key, _: frozenset(f.texts(key))),
    one_of=nullable(TEXT),
    varies=FLAG,
    price_column=nullable(integer(0, "columns")),
    own_price=later(real(0.0)),
)


def write_sensors(sensors: SensorSet) -> list[dict[str, Any]]:
    """Sensors in their order, with columns, prices and terms."""
    return [
        {
            "name": name,
            "columns": list(map(int, columns)),
            "cost": number(cost),
            **TERMS.write(terms),
            "after": list(sensors.in_order(terms.after)),
        }
        for name, columns, cost, terms in zip(
            sensors.names, sensors.columns, sensors.costs, sensors.terms, strict=True
        )
    ]


def read_sensors(fields: Fields, column_names: tuple[str, ...]) -> SensorSet:
    """Sensors that claim every column once, and their prerequisites."""
    names: list[str] = []
    columns, costs, all_terms = [], [], []
    n_after, table = 0, len(column_names)
    for sensor in fields.children("sensors"):
        if len(names) == MAX_SENSORS:
            raise ModelFileError(f"the file has more than {MAX_SENSORS:,} sensors.")
        names.append(sensor.text("name"))
        columns.append(sensor.positions("columns", table))
        costs.append(sensor.number("cost", least=0.0))
        all_terms.append(TERMS.whole(sensor, {"columns": table}))
        n_after += len(all_terms[-1].after)
        if n_after > MAX_AFTER:
            raise ModelFileError(f"the file has more than {MAX_AFTER:,} prerequisites.")
    if len(set(names)) < len(names):
        raise fields.wrong("sensors", "has two sensors of one name")
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


def _check_referral(referral: Referral, fields: Fields) -> None:
    if referral.by_class is not None and referral.column is not None:
        raise fields.wrong("", "has costs by class and a column of them")


REFERRAL = record(
    Referral,
    _check_referral,
    by_class=BY_CLASS,
    column=nullable(integer(0, "columns")),
    least_confidence=real(0.0, 1.0),
    promise=nullable(
        record(
            Promise,
            error=real(0.0),
            confidence=real(0.0),
            rows=ROWS,
            answered=ROWS,
            wrong=ROWS,
        ),
        absent=True,
    ),
)


# training ---------------------------------------------------------------------------------


def _check_about(about: About, fields: Fields) -> None:
    if about.fitted and not TIME.fullmatch(about.fitted):
        raise fields.wrong("fitted", "must be a time as 2026-01-31T12:00:00Z")


FIGURES = ("risk", "loss", "error", "cost")
HELD_OUT = record(
    HeldOut,
    None,
    **{f"{name}{se}": real(0.0) for name in FIGURES for se in ("", "_se")},
    rows=ROWS,
)
# A text; null if it is not known.
_KNOWN = Codec(
    lambda text: text or None, lambda f, key, s: nullable(TEXT).read(f, key, s) or ""
)
ABOUT = record(
    About,
    _check_about,
    unit=_KNOWN,
    target=_KNOWN,
    data=_KNOWN,
    fitted=_KNOWN,
    rows=nullable(ROWS),
    held_out=nullable(HELD_OUT),
)


def _check_seen(seen: Seen, fields: Fields) -> None:
    ends = (seen.low, seen.middle, seen.high)
    there = [end for end in ends if end is not None]
    if len(there) not in (0, 3) or (there and seen.levels is not None):
        raise fields.wrong("", "must have low, middle and high, or none")
    if there != sorted(there):
        raise fields.wrong("", "has numbers that are not in order")


SEEN = record(
    Seen,
    _check_seen,
    missing=real(0.0, 1.0),
    low=later(real()),
    middle=later(real()),
    high=later(real()),
    levels=later(
        Codec(
            lambda levels: [number(level) for level in levels],
            lambda f, key, _: tuple(scalar(v, f.place(key)) for v in f.items(key)),
        )
    ),
)


def read_seen(fields: Fields, sensors: SensorSet) -> tuple[tuple[Seen, ...], ...]:
    """What training saw of the columns of each sensor."""
    where, found = fields.place("seen"), []
    listed = fields.items("seen", len(sensors))
    for columns, stored in zip(sensors.columns, listed, strict=True):
        if not isinstance(stored, list) or len(stored) != len(columns):
            raise ModelFileError(f"{where} must say something of each column.")
        found.append(tuple(SEEN.whole(Fields(each, where), {}) for each in stored))
    return tuple(found)


# How the cells of columns were written that are not plain numbers or text.
READING = keyed(
    record(
        ColumnFormat,
        decimal=word(DECIMALS),
        thousands=word(THOUSANDS),
        unit=WORDS,
        missing=TEXTS,
        date=WORDS,
    ),
    "column",
    TEXT,
)
