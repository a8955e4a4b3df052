"""The sensors.toml that `init` writes: one to begin with, for a person to go on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensortree.cells.styles import PLAIN_STYLE, Style
from sensortree.cli.data_file import DataFile
from sensortree.cli.doubts import Doubt, doubt
from sensortree.cli.sensors_file import CONTROLS, toml_key, toml_string

HEAD = """\
# Sensors and prices for {path}.
# A sensor is a group of columns that are bought together at one price. Merge sections
# whose columns come together, remove those that are not to be used, and set the prices.

target = {target}
{reading}# unit = "dollars"       # what prices are counted in
# mistake_cost = 500     # what one wrong answer costs, in that unit: set it if prices are
#                        # money
# cost_weight = 0.01     # error that one unit of cost is worth; larger buys less
# max_cost = 100         # no example ever spends more

# In place of mistake_cost, where classes differ: what it costs to mistake each. With
# either, cost_weight is 1 unless you set it.
# [loss]
{losses}

# Further keys of a sensor:
#   cost = "price_mri"       each example has its own price, in that column
#   group = "blood draw"     sensors that share what is paid once, with either
#   discounted_cost = 15.51    the price when another of the group was bought before, or
#   fee = 2.10                 what the first of the group pays on top
#   after = ["history"]      sensors that must be known before
#   one_of = "imaging"       at most one sensor with this label is bought
#   transformer = "impute"   "one-hot", "date", "impute", "scale", a list of them, or by
#                            column: {{ city = "one-hot", seen = "date" }}
"""


LEFT_OUT = """\
# Left out, with the reason. To use one of them, take away its marks.
"""


def starter(
    data: DataFile,
    target: str,
    labels: NDArray[Any],
    doubts: Mapping[str, Doubt],
    separator: str | None,
) -> str:
    """The text of a first sensors.toml for a data file.

    `labels` are its classes, `doubts` what speaks against its columns.
    """
    used = used_columns(data, target, doubts)
    classes = sorted(map(str, np.unique(labels)))
    losses = "\n".join(f"# {toml_key(label)} = 1.0" for label in classes[:20])
    # A comment holds no control characters either, and a file no half characters.
    path = _commented(data.path.name)
    top, by_column = _reading(data, used)
    named = toml_string(target)
    if labels.dtype.kind == "f":
        named, losses = f'{named}\ntask = "regression"', "# (of classes)"
    head = HEAD.format(path=path, target=named, losses=losses, reading=top)
    sections = [
        _section(data, name, group, doubts) for name, group in grouped(used, separator)
    ]
    left_out = [
        _marked(data, column, found)
        for column, found in doubts.items()
        if found.leave_out
    ]
    if left_out:
        left_out = [LEFT_OUT, *left_out]
    return "\n".join([head, *by_column, *sections, *left_out])


def doubts_of(data: DataFile, target: str, labels: NDArray[Any]) -> dict[str, Doubt]:
    """What speaks against columns as sensors, by column."""
    found = {c: doubt(data, c, labels) for c in data.columns if c != target}
    return {column: why for column, why in found.items() if why is not None}


def used_columns(data: DataFile, target: str, doubts: Mapping[str, Doubt]) -> list[str]:
    """Columns that become sensors."""
    left_out = {column for column, found in doubts.items() if found.leave_out}
    return [c for c in data.columns if c != target and c not in left_out]


def grouped(
    columns: Iterable[str], separator: str | None
) -> list[tuple[str, list[str]]]:
    """Sensors: one per column, or per part of the name before a separator."""
    groups: dict[str, list[str]] = {}
    for column in columns:
        prefix = column.partition(separator)[0] if separator else column
        groups.setdefault(prefix or column, []).append(column)
    return list(groups.items())


def _reading(data: DataFile, columns: Iterable[str]) -> tuple[str, list[str]]:
    """How numbers are written: what goes for all columns, and a section for the rest."""
    styles = {
        column: Style(data.read(column).form.decimal, data.read(column).form.thousands)
        for column in columns
        if not data.is_text(column) and _shows_style(data, column)
    }
    if set(styles.values()) <= {PLAIN_STYLE}:
        return "", []
    usual = Counter(styles.values()).most_common(1)[0][0]
    top = ""
    if usual != PLAIN_STYLE:
        top = (
            f"decimal = {toml_string(usual.decimal)}           # in the cells of numbers\n"
            f"thousands = {toml_string(usual.thousands)}\n"
        )
    others = [
        f"{toml_key(column)} = {{ decimal = {toml_string(style.decimal)}, thousands = "
        f"{toml_string(style.thousands)} }}"
        for column, style in styles.items()
        if style != usual
    ]
    if not others:
        return top, []
    lines = ["[reading]  # columns whose numbers are written in another way", *others]
    return top, ["\n".join(lines) + "\n"]


def _shows_style(data: DataFile, column: str) -> bool:
    """Whether cells of a column have a decimal mark, or thousands."""
    found = data.read(column)
    if found.example or found.doubtful:
        return True
    return bool((found.values % 1 > 0).any())


def _section(
    data: DataFile, name: str, columns: list[str], doubts: Mapping[str, Doubt]
) -> str:
    """One sensor, with what was seen in its columns."""
    listed = ", ".join(map(toml_string, columns))
    lines = [
        f"# Careful: {_commented(c)} {_commented(doubts[c].reason)}"
        for c in columns
        if c in doubts
    ]
    lines += [
        f"[sensors.{toml_key(name)}]",
        f"columns = [{listed}]  # {_commented(_seen(data, columns))}",
        "cost = 1.0",
    ]
    return "\n".join(lines) + "\n"


def _marked(data: DataFile, column: str, found: Doubt) -> str:
    """A sensor that is left out, as comments."""
    lines = _section(data, column, [column], {}).splitlines()
    if "date" in found.reason:
        lines.append('transformer = "date"')
    lines.insert(0, _commented(f"{column} {found.reason}"))
    return "\n".join(f"# {line}" for line in lines) + "\n"


def _commented(text: str) -> str:
    """Text as a comment may hold it: no control characters, no half characters."""
    return text.encode("utf-8", "replace").decode().translate(CONTROLS)


def _seen(data: DataFile, columns: list[str]) -> str:
    """What the columns hold, in a few words."""
    words = []
    for column in columns[:4]:
        missing = data.missing(column)
        if data.is_text(column):
            kind = f"text, {len(set(data.columns[column]))} different"
        else:
            unit = data.read(column).form.unit
            kind = f"numbers in {unit}" if unit else "numbers"
        words.append(kind + (f", {missing} missing" if missing else ""))
    if len(columns) > 1 and len(set(words)) == 1:
        words = words[:1]
    return "; ".join(words)
