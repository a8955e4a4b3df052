"""The sensors.toml that `init` writes: one to begin with, for a person to go on."""

from __future__ import annotations

from collections.abc import Iterable

from sensortree.cli.data_file import DataFile
from sensortree.cli.sensors_file import ESCAPES, toml_key, toml_string

ROWS_TO_NAME = 20  # with fewer, what is measured may differ by chance

HEAD = """\
# Sensors and prices for {path}.
# A sensor is a group of columns that are bought together at one price. Merge sections
# whose columns come together, remove those that are not to be used, and set the prices.

target = {target}
# unit = "dollars"       # what prices are counted in
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
#   transformer = "impute"   "one-hot", "impute", "scale", a list of them, or by column
"""


def starter(data: DataFile, target: str, separator: str | None) -> str:
    """The text of a first sensors.toml for a data file."""
    columns = [name for name in data.columns if name != target]
    labels = list(dict.fromkeys(map(str, data.texts(target))))
    losses = "\n".join(f"# {toml_key(label)} = 1.0" for label in sorted(labels)[:20])
    # A comment holds no control characters either, and a file no half characters.
    path = data.path.name.encode("utf-8", "replace").decode().translate(ESCAPES)
    head = HEAD.format(path=path, target=toml_string(target), losses=losses)
    sections = [
        _section(data, name, group) for name, group in grouped(columns, separator)
    ]
    return "\n".join([head, *sections])


def grouped(
    columns: Iterable[str], separator: str | None
) -> list[tuple[str, list[str]]]:
    """Sensors: one per column, or per part of the name before a separator."""
    groups: dict[str, list[str]] = {}
    for column in columns:
        prefix = column.partition(separator)[0] if separator else column
        groups.setdefault(prefix or column, []).append(column)
    return list(groups.items())


def _section(data: DataFile, name: str, columns: list[str]) -> str:
    """One sensor, with what was seen in its columns."""
    needed = {column: _step(data, column) for column in columns}
    steps = {column: step for column, step in needed.items() if step is not None}
    listed = ", ".join(map(toml_string, columns))
    lines = [
        f"[sensors.{toml_key(name)}]",
        f"columns = [{listed}]  # {_seen(data, columns)}",
        "cost = 1.0",
    ]
    same = len(set(steps.values())) == 1 and len(steps) == len(columns)
    if same:
        lines.append(f"transformer = {toml_string(steps[columns[0]])}")
    elif steps:
        pairs = ", ".join(f"{toml_key(c)} = {toml_string(s)}" for c, s in steps.items())
        lines.append(f"transformer = {{ {pairs} }}")
    return "\n".join(lines) + "\n"


def _step(data: DataFile, column: str) -> str | None:
    """The transformer that a column needs."""
    if data.is_text(column):
        return "one-hot"
    return "impute" if data.missing(column) else None


def _seen(data: DataFile, columns: list[str]) -> str:
    """What the columns hold, in a few words."""
    words = []
    for column in columns[:4]:
        kind, missing = "numbers", data.missing(column)
        if data.is_text(column):
            kind = f"text, {len(set(data.columns[column]))} different"
        kind += f", {missing} missing" if missing else ""
        words.append(kind + (", an identifier?" if _names_rows(data, column) else ""))
    if len(columns) > 1 and len(set(words)) == 1:
        words = words[:1]
    return "; ".join(words)


def _names_rows(data: DataFile, column: str) -> bool:
    """Whether a column looks like a name of its row: no two alike, nothing measured."""
    cells = data.columns[column]
    if len(cells) < ROWS_TO_NAME or len(set(cells)) < len(cells):
        return False
    return data.is_text(column) or bool((data.numbers(column, "") % 1 == 0).all())
