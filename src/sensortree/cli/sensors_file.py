"""`SensorsFile`: what a sensors.toml declares, with every part checked.

``docs/cli.md`` explains the keys; a test reads its example with this module.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, cast, get_args

from sensortree.cells.words import DECIMALS, PLAIN_FORMAT, THOUSANDS, ColumnFormat
from sensortree.cli.console import say
from sensortree.exceptions import SensorError
from sensortree.text import listed

MAX_BYTES = 2**20
# What a TOML comment cannot hold, and what a string cannot: also quotes and backslashes.
CONTROLS = {i: f"\\u{i:04x}" for i in (*range(0x20), 0x7F)}
ESCAPES = CONTROLS | {ord(character): f"\\{character}" for character in '"\\'}
TRANSFORMERS = ("one-hot", "date", "impute", "scale")
FIRST = ("one-hot", "date")  # they make numbers, which the others need
Risk = Literal["error", "brier", "log_loss", "squared", "absolute"]
Task = Literal["auto", "classification", "regression"]
MONEY = ("unit", "loss", "risk", "refer_cost", "cost_weight", "max_cost")
TOP = ("target", "task", *MONEY, "decimal", "thousands", "reading", "sensors")
TERMS = ("group", "discounted_cost", "fee", "after", "one_of")
KEYS = ("columns", "cost", *TERMS, "transformer")


@dataclass(frozen=True)
class Declared:
    """One sensor as it is declared."""

    columns: tuple[str, ...]
    cost: float | str  # a string is the name of a column
    # Those of `TERMS` that are given.
    terms: Mapping[str, Any] = field(default_factory=dict)
    # Transformers by column, in order.
    steps: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class SensorsFile:
    """What a sensors.toml declares: attributes as its keys, None if left out."""

    path: Path
    sensors: Mapping[str, Declared]
    target: str | None = None
    unit: str = ""
    cost_weight: float | None = None
    max_cost: float | None = None
    loss: float | Mapping[str, Any] | None = None  # of all, or by class as text
    form: ColumnFormat | None = None  # of numbers in all columns but those of `reading`
    reading: Mapping[str, ColumnFormat] = field(default_factory=dict)
    risk: Risk = "error"
    refer_cost: float | None = None
    task: Task = "auto"

    @property
    def known(self) -> dict[str, ColumnFormat]:
        """How columns are written, by column, as far as the file says."""
        everywhere = {} if self.form is None else dict.fromkeys(self.columns, self.form)
        return {**everywhere, **self.reading}

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column that holds readings or prices, each once."""
        read = [column for s in self.sensors.values() for column in s.columns]
        prices = [s.cost for s in self.sensors.values() if isinstance(s.cost, str)]
        return tuple(dict.fromkeys([*read, *prices]))


def read_sensors_file(path: Path) -> SensorsFile:
    """Read and check a sensors.toml."""
    top = _Section(path, "", _parse(path))
    if "mistake_cost" in top.values:
        if "loss" in top.values:
            raise top.wrong(
                "mistake_cost",
                "and loss both say what wrong answers cost; remove mistake_cost, the old "
                "name of a loss that is one number.",
            )
        top.values["loss"] = top.values.pop("mistake_cost")
        say(f"{path}: mistake_cost is now called loss.")
    top.know(TOP)
    if "sensors" not in top.values:
        raise top.wrong("sensors", "is missing; add a section [sensors.NAME].")
    sensors = top.table("sensors")
    if not sensors.values:
        raise top.wrong("sensors", "declares no sensor; add [sensors.NAME].")
    declared = {name: _sensor(sensors.table(name)) for name in sensors.values}
    _check_names(path, declared)
    return SensorsFile(
        path,
        declared,
        target=top.text("target"),
        unit=top.text("unit") or "",
        cost_weight=top.number("cost_weight"),
        max_cost=top.number("max_cost"),
        loss=_loss(top),
        form=_form(top),
        reading=_reading(top.table("reading")) if "reading" in top.values else {},
        risk=cast(Risk, top.choice("risk", get_args(Risk), "error")),
        refer_cost=top.number("refer_cost"),
        task=cast(Task, top.choice("task", get_args(Task), "auto")),
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


def toml_key(name: str) -> str:
    """A name as a key, in quotes where it needs them."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml_string(name)


def toml_string(text: str) -> str:
    r"""Text in quotes, escaped.

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
        """Refuse unknown keys."""
        keys = list(keys)
        for key in self.values:
            if key not in keys:
                close = get_close_matches(key, keys, n=1)
                meant = f"did you mean {close[0]}?" if close else ""
                meant = meant or f"the keys are {', '.join(keys)}."
                raise self.wrong(key, f"is not a key of this section; {meant}")

    def table(self, key: str) -> _Section:
        """A section below this one."""
        name = f"{self.name}.{key}" if self.name else key
        value = self.values[key]
        if not isinstance(value, dict):
            raise self.wrong(key, f"must be a section, got {value!r}; write [{name}].")
        return _Section(self.path, name, value)

    def text(self, key: str) -> str | None:
        """A string that is not empty, if there is one."""
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
        """A finite number of at least 0, if there is one."""
        value = self.values.get(key)
        if value is None:
            return None
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
    from sensortree.sensors.sensor import Sensor

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
        cost = section.number("cost")
    read: dict[str, Callable[[str], Any]] = {
        **dict.fromkeys(("group", "one_of"), section.text),
        **dict.fromkeys(("discounted_cost", "fee"), section.number),
        "after": section.names,
    }
    terms = {key: read[key](key) for key in TERMS if key in section.values}
    try:
        Sensor([0], cost, **terms)  # the library judges which terms go together
    except SensorError as error:
        raise SensorError(f"{section.path}, [{section.name}]: {error}") from error
    return Declared(columns, cost, terms, _steps(section, columns))


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


def _loss(top: _Section) -> float | dict[str, Any] | None:
    """What mistakes cost: one number, or by class as text."""
    if not isinstance(top.values.get("loss"), dict):
        if top.number("loss") == 0:
            raise top.wrong("loss", "must be above 0; or remove it.")
        return top.number("loss")
    section = top.table("loss")
    if not section.values:
        raise section.wrong("it", "is empty; give a number for each class.")
    nested = [isinstance(value, dict) for value in section.values.values()]
    if any(nested) != all(nested):
        raise section.wrong(
            "it", "mixes numbers and tables; give one number, or one table, per class."
        )
    if not all(nested):
        return {name: section.number(name) for name in section.values}
    by_answer = {name: section.table(name) for name in section.values}
    return {
        name: {a: of.number(a) for a in of.values} for name, of in by_answer.items()
    }


def _check_names(path: Path, sensors: Mapping[str, Declared]) -> None:
    """Check that a column has one sensor, a price column none; and names in `after`."""
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
        for before in sensor.terms.get("after", ()):
            if before not in sensors:
                raise SensorError(
                    f"{path}, [sensors.{name}]: after names {before!r}, which is not a "
                    f"sensor; the sensors are {listed(sensors)}."
                )
