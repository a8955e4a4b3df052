"""`SensorsFile`: what a sensors.toml declares, every part of it checked.

::

    target = "sick"                 # column of the right answers
    unit = "dollars"                # what prices are counted in
    mistake_cost = 500              # what one wrong answer costs, in the same unit
    refer_cost = 40                 # what it costs to hand over to a person
    cost_weight = 1                 # error, or loss, that one unit of cost is worth
    max_cost = 300                  # no example ever spends more
    decimal = ","                   # in the cells of all columns: 37,3
    thousands = "."                 # and 1.234,5

    [reading]                       # columns that are written in another way
    leukocytes = { decimal = ".", thousands = "," }
    age = { missing = ["999"] }     # words, or numbers, that stand for nothing

    [loss]                          # in place of mistake_cost, where classes differ
    0 = 60
    1 = 4000                        # or by answer: 1 = { 0 = 4000 }

    [sensors.blood]
    columns = ["glucose", "crp"]    # what it reads
    cost = 17.61                    # a number, or the column that holds the price
    group = "blood draw"            # sensors that share what is paid once
    discounted_cost = 15.51         # price if another of the group was bought before
    fee = 2.10                      # or: paid once, on top of cost, by the first
    after = ["history"]             # what must be known before
    one_of = "imaging"              # at most one sensor with this label is bought
    transformer = ["impute", "scale"]  # for all its columns, or by column:
                                       # { city = "one-hot", seen = "date" }
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from sensortree.cells.formats import DECIMALS, PLAIN_FORMAT, THOUSANDS, ColumnFormat
from sensortree.exceptions import SensorError
from sensortree.text import listed

MAX_BYTES = 2**20
# What a TOML comment cannot hold as it is, and what a string cannot: quotes, backslashes.
CONTROLS = {i: f"\\u{i:04x}" for i in (*range(0x20), 0x7F)}
ESCAPES = CONTROLS | {ord(character): f"\\{character}" for character in '"\\'}
TRANSFORMERS = ("one-hot", "date", "impute", "scale")
FIRST = ("one-hot", "date")  # they make numbers, which the others need
RISKS = ("error", "brier", "log_loss", "squared", "absolute")
TASKS = ("auto", "classification", "regression")
TOP = (
    "target",
    "task",
    "unit",
    "mistake_cost",
    "risk",
    "refer_cost",
    "cost_weight",
    "max_cost",
    "decimal",
    "thousands",
    "reading",
    "loss",
    "sensors",
)
KEYS = (
    "columns",
    "cost",
    "group",
    "discounted_cost",
    "fee",
    "after",
    "one_of",
    "transformer",
)


@dataclass(frozen=True)
class Declared:
    """One sensor as it is declared.

    Attributes
    ----------
    columns : tuple of str
    cost : float or str
        A string is the name of a column.
    terms : dict
        Those of group, discounted_cost, fee, after and one_of that are given.
    steps : dict of column to names of transformers, in order
    """

    columns: tuple[str, ...]
    cost: float | str
    terms: Mapping[str, Any] = field(default_factory=dict)
    steps: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class SensorsFile:
    """What a sensors.toml declares.

    Attributes
    ----------
    path : Path
    sensors : dict of str to Declared
    target : str or None
    unit : str
    cost_weight, max_cost : float or None
    loss : dict of class to number or to dict of answer to number, or None
        Classes as text.
    risk : {"error", "brier", "log_loss", "squared", "absolute"}
        What is minimised beside the cost; the last two of numbers.
    task : {"auto", "classification", "regression"}
        Whether the target is classes or a number.
    mistake_cost : float or None
        What every wrong answer costs; never beside `loss`.
    refer_cost : float or None
        What it costs to hand an example over to a person; None if nobody is.
    form : ColumnFormat or None
        How numbers are written in all columns but those of `reading`.
    reading : dict of column to ColumnFormat
    """

    path: Path
    sensors: Mapping[str, Declared]
    target: str | None = None
    unit: str = ""
    cost_weight: float | None = None
    max_cost: float | None = None
    loss: Mapping[str, float | Mapping[str, float]] | None = None
    mistake_cost: float | None = None
    form: ColumnFormat | None = None
    reading: Mapping[str, ColumnFormat] = field(default_factory=dict)
    risk: str = "error"
    refer_cost: float | None = None
    task: str = "auto"

    @property
    def known(self) -> dict[str, ColumnFormat]:
        """How the columns are written of which the file says so."""
        everywhere = {} if self.form is None else dict.fromkeys(self.columns, self.form)
        return {**everywhere, **self.reading}

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column that a sensor reads or is priced by, each once."""
        read = [column for s in self.sensors.values() for column in s.columns]
        prices = [s.cost for s in self.sensors.values() if isinstance(s.cost, str)]
        return tuple(dict.fromkeys([*read, *prices]))


def read_sensors_file(path: Path) -> SensorsFile:
    """Read and check a sensors.toml."""
    top = _Section(path, "", _parse(path))
    top.know(TOP)
    sensors = top.table("sensors", required=True)
    if not sensors.values:
        raise top.wrong("sensors", "declares no sensor; add [sensors.NAME].")
    declared = {name: _sensor(sensors.table(name)) for name in sensors.values}
    _check_columns(path, declared)
    _check_after(path, declared)
    if "mistake_cost" in top.values and "loss" in top.values:
        raise top.wrong(
            "mistake_cost",
            "and [loss] both say what wrong answers cost; remove one: [loss] is for "
            "classes that differ.",
        )
    return SensorsFile(
        path,
        declared,
        top.text("target"),
        top.text("unit") or "",
        top.number("cost_weight"),
        top.number("max_cost"),
        _loss(top.table("loss")) if "loss" in top.values else None,
        _mistake_cost(top),
        _form(top),
        _reading(top.table("reading")) if "reading" in top.values else {},
        top.choice("risk", RISKS, "error"),
        top.number("refer_cost"),
        top.choice("task", TASKS, "auto"),
    )


def _form(section: _Section) -> ColumnFormat | None:
    """How numbers are written, where a section says so."""
    if not {"decimal", "thousands"} & set(section.values):
        return None
    decimal = section.choice("decimal", DECIMALS, ".")
    thousands = section.choice("thousands", THOUSANDS, "")
    if decimal == thousands:
        raise section.wrong(
            "decimal", f"and thousands are both {decimal!r}; write one that differs."
        )
    return ColumnFormat(decimal, thousands)


def _reading(section: _Section) -> dict[str, ColumnFormat]:
    """How numbers are written, by column."""
    forms = {}
    for column in section.values:
        own = section.table(column)
        own.know(("decimal", "thousands", "missing"))
        missing = own.names("missing") if "missing" in own.values else ()
        forms[column] = replace(_form(own) or PLAIN_FORMAT, missing=missing)
    return forms


def _mistake_cost(top: _Section) -> float | None:
    cost = top.number("mistake_cost")
    if cost == 0:
        raise top.wrong("mistake_cost", "must be above 0; or remove it.")
    return cost


def toml_key(name: str) -> str:
    """A name as a key, in quotes where it needs them."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml_string(name)


def toml_string(text: str) -> str:
    r"""Text in quotes, so that it is read as it is.

    Examples
    --------
    >>> print(toml_string('say "\\o/"\n'))
    "say \"\\o/\"\u000a"
    """
    return f'"{text.translate(ESCAPES)}"'


def _parse(path: Path) -> dict[str, Any]:
    with open(path, "rb") as file:
        text = file.read(MAX_BYTES + 1)
    if len(text) > MAX_BYTES:
        raise SensorError(
            f"{path} is larger than {MAX_BYTES:,} bytes; is it a TOML file?"
        )
    try:
        return tomllib.loads(text.decode())
    except UnicodeDecodeError as error:
        raise SensorError(f"{path} is not UTF-8 (byte {error.start + 1}).") from error
    except (ValueError, RecursionError) as error:  # also endless digits, or brackets
        raise SensorError(f"{path} is not TOML: {error}.") from error


@dataclass(frozen=True)
class _Section:
    """A table of the file, and its name for messages."""

    path: Path
    name: str
    values: dict[str, Any]

    def wrong(self, key: str, what: str) -> SensorError:
        """The error of one key: file, section, key, and what to do."""
        section = f", [{self.name}]" if self.name else ""
        return SensorError(f"{self.path}{section}: {key} {what}")

    def know(self, keys: Iterable[str]) -> None:
        """Refuse keys that mean nothing."""
        keys = list(keys)
        for key in self.values:
            if key not in keys:
                close = get_close_matches(key, keys, n=1)
                meant = f"did you mean {close[0]}?" if close else ""
                meant = meant or f"the keys are {', '.join(keys)}."
                raise self.wrong(key, f"is not a key of this section; {meant}")

    def table(self, key: str, required: bool = False) -> _Section:
        """A section below this one."""
        name = f"{self.name}.{key}" if self.name else key
        if required and key not in self.values:
            raise self.wrong(key, f"is missing; add a section [{name}.NAME].")
        value = self.values[key]
        if not isinstance(value, dict):
            raise self.wrong(key, f"must be a section, got {value!r}; write [{name}].")
        return _Section(self.path, name, value)

    def text(self, key: str) -> str | None:
        """A string that is not empty."""
        value = self.values.get(key)
        if value is not None and (not isinstance(value, str) or not value):
            raise self.wrong(key, f'must be text, got {value!r}; write {key} = "...".')
        return value

    def choice(self, key: str, known: tuple[str, ...], usual: str) -> str:
        """One of several texts."""
        value = self.values.get(key, usual)
        if not isinstance(value, str) or value not in known:
            raise self.wrong(key, f"must be one of {listed(known)}, got {value!r}.")
        return value

    def number(self, key: str) -> float | None:
        """A finite number of at least 0."""
        value = self.values.get(key)
        return None if value is None else self.as_number(key, value)

    def as_number(self, key: str, value: Any) -> float:
        """Give a value as a finite number of at least 0."""
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not is_number or not 0 <= value <= sys.float_info.max:
            raise self.wrong(
                key, f"must be a finite number of at least 0, got {value!r}."
            )
        return float(value)

    def names(self, key: str) -> tuple[str, ...]:
        """A name, or a list of different names."""
        value = self.values[key]
        value = [value] if isinstance(value, str) else value
        if not isinstance(value, list) or not all(
            isinstance(name, str) and name for name in value
        ):
            raise self.wrong(
                key, f'must list names, got {value!r}; write {key} = ["a", "b"].'
            )
        for name in value:
            if value.count(name) > 1:
                raise self.wrong(key, f"lists {name!r} twice.")
        return tuple(value)


def _sensor(section: _Section) -> Declared:
    section.know(KEYS)
    if not section.values.get("columns"):
        raise section.wrong("columns", 'are missing; write columns = ["..."].')
    columns = section.names("columns")
    if "cost" not in section.values:
        raise section.wrong(
            "cost", "is missing; write a price, 0 for what is known anyway."
        )
    cost = section.values["cost"]
    if not isinstance(cost, str) or not cost:
        cost = section.as_number("cost", cost)
    terms: dict[str, Any] = {
        "group": section.text("group"),
        "one_of": section.text("one_of"),
        "discounted_cost": section.number("discounted_cost"),
        "fee": section.number("fee"),
        "after": section.names("after") if "after" in section.values else None,
    }
    terms = {key: value for key, value in terms.items() if value is not None}
    _check_terms(section, cost, terms)
    return Declared(columns, cost, terms, _steps(section, columns))


def _check_terms(section: _Section, cost: float | str, terms: dict[str, Any]) -> None:
    """Let the library judge which terms go together."""
    from sensortree.sensors.sensor import Sensor

    try:
        Sensor([0], cost, **terms)
    except SensorError as error:
        raise SensorError(f"{section.path}, [{section.name}]: {error}") from error


def _steps(section: _Section, columns: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Transformers of each column that has any."""
    value = section.values.get("transformer")
    if value is None:
        return {}
    if not isinstance(value, dict):
        steps = _transformers(section, "transformer", value)
        return dict.fromkeys(columns, steps)
    for column in value:
        if column not in columns:
            raise section.wrong(
                "transformer",
                f"names column {column!r}, which the sensor does not read; its columns "
                f"are {listed(columns)}.",
            )
    return {
        column: _transformers(section, f"transformer.{column}", given)
        for column, given in value.items()
    }


def _transformers(section: _Section, key: str, value: Any) -> tuple[str, ...]:
    names = value if isinstance(value, list) else [value]
    for name in names:
        if name not in TRANSFORMERS:
            raise section.wrong(
                key, f"must be one of {listed(TRANSFORMERS)} or a list, got {name!r}."
            )
    if not names or len(set(names)) < len(names):
        raise section.wrong(key, "must list each transformer once.")
    late = [name for name in names[1:] if name in FIRST]
    if late:
        raise section.wrong(
            key, f"has {late[0]!r} after another; it comes first, for it makes numbers."
        )
    return tuple(names)


def _loss(section: _Section) -> dict[str, float | Mapping[str, float]]:
    """What mistakes cost, by class as text."""
    if not section.values:
        raise section.wrong("it", "is empty; give a number for each class.")
    nested = [isinstance(value, dict) for value in section.values.values()]
    if any(nested) != all(nested):
        raise section.wrong(
            "it", "mixes numbers and tables; give one number, or one table, per class."
        )
    losses: dict[str, float | Mapping[str, float]] = {}
    for name, value in section.values.items():
        if isinstance(value, dict):
            answers = section.table(name)
            losses[name] = {a: answers.as_number(a, v) for a, v in value.items()}
        else:
            losses[name] = section.as_number(name, value)
    return losses


def _check_columns(path: Path, sensors: Mapping[str, Declared]) -> None:
    """Each column belongs to one sensor; a column of prices to none."""
    owner: dict[str, str] = {}
    for name, sensor in sensors.items():
        for column in sensor.columns:
            if column in owner:
                raise SensorError(
                    f"{path}, [sensors.{name}]: columns has {column!r}, which belongs to "
                    f"[sensors.{owner[column]}] already; each column belongs to one sensor."
                )
            owner[column] = name
    for name, sensor in sensors.items():
        if isinstance(sensor.cost, str) and sensor.cost in owner:
            raise SensorError(
                f"{path}, [sensors.{name}]: cost is column {sensor.cost!r}, which "
                f"[sensors.{owner[sensor.cost]}] reads; a column of prices belongs to no "
                f"sensor."
            )


def _check_after(path: Path, sensors: Mapping[str, Declared]) -> None:
    for name, sensor in sensors.items():
        for before in sensor.terms.get("after", ()):
            if before not in sensors:
                raise SensorError(
                    f"{path}, [sensors.{name}]: after names {before!r}, which is not a "
                    f"sensor; the sensors are {listed(sensors)}."
                )
