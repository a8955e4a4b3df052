"""What a study is: a grid of cells, how a cell is measured, its tables and figures."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from experiments import studies
from experiments.results import Line

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Key = tuple[Any, ...]


@dataclass(frozen=True)
class Cell:
    """What one process measures: lines that share their fields, one at each value.

    Attributes
    ----------
    fields : dict
        What its lines share, such as data, method and split.
    traced : str
        Field that differs between its lines.
    values : tuple
        What the traced field is to be; None where all is measured together, in lines that
        lack that field.
    quick : bool
        On few rows.
    alone : bool
        Measured at the end, when nothing else runs: its seconds count.
    needs : str or None
        Package that must be installed.
    """

    fields: Line
    traced: str = ""
    values: tuple[Any, ...] = (None,)
    quick: bool = False
    alone: bool = False
    needs: str | None = None

    def __str__(self) -> str:
        return ", ".join(
            value if isinstance(value, str) else f"{name} {value}"
            for name, value in self.fields.items()
        )

    def key(self, value: Any, names: tuple[str, ...]) -> Key:
        """What identifies the line at a value."""
        return key_of({**self.fields, self.traced: value}, names)

    def without(self, done: set[Key], names: tuple[str, ...]) -> Cell:
        """The cell with the values that are not there yet."""
        left = tuple(v for v in self.values if self.key(v, names) not in done)
        return replace(self, values=left)


def key_of(line: Line, names: tuple[str, ...]) -> Key:
    """What identifies a line: some of its fields, None for those that it lacks."""
    return tuple(line.get(name) for name in names)


def nothing_known(cell: Cell, lines: list[Line]) -> list[Line]:
    """No line of a cell follows from others."""
    return []


def no_pictures(*lines: list[Line]) -> dict[str, Figure]:
    """No figure is drawn."""
    return {}


@dataclass(frozen=True)
class Study:
    """A grid and its tables.

    Attributes
    ----------
    file : str
        Lines go to ``<file>.jsonl``, what they were measured with to ``<file>.json``.
    key : tuple of str
        Fields that identify a line; what is there already is not measured again.
    data : tuple of str
        What it is run on. A name is whatever `cells` understands.
    cells : callable
        Cells on one of the data, given whether it is a quick run and the lines so far.
    measure : callable
        Lines of a cell, without the fields that they share.
    pages : callable
        Tables as Markdown by the name of their file, given its lines (not empty), then
        those of each study along with it.
    pictures : callable
        Figures by the name of their file, given the same.
    known : callable
        Lines of a cell that follow from the lines so far.
    on_request : tuple of str
        Data that it is run on only if they are named.
    quickly : tuple of str or None
        What a quick run is run on; None for all.
    along : tuple of Study
        Studies that are run before it, since its tables read their lines too.
    seeds : str
        Where randomness is.
    """

    file: str
    key: tuple[str, ...]
    data: tuple[str, ...]
    cells: Callable[[str, bool, list[Line]], Iterable[Cell]]
    measure: Callable[[Cell], Iterable[Line]]
    pages: Callable[..., dict[str, str]]
    pictures: Callable[..., dict[str, Figure]] = no_pictures
    known: Callable[[Cell, list[Line]], list[Line]] = nothing_known
    on_request: tuple[str, ...] = ()
    quickly: tuple[str, ...] | None = None
    along: tuple[Study, ...] = field(default=())
    seeds: str = "splits 0"

    def done(self, lines: list[Line]) -> set[Key]:
        """What identifies each of some lines."""
        return {key_of(line, self.key) for line in lines}


def names() -> list[str]:
    """The studies there are: the files of `experiments.studies`."""
    return sorted(found.name for found in pkgutil.iter_modules(studies.__path__))


def title(name: str) -> str:
    """First line of what a study says about itself."""
    module = importlib.import_module(f"{studies.__name__}.{name}")
    return (module.__doc__ or "").partition("\n")[0]


def study(name: str) -> Study:
    """A study by its name."""
    found: Study = importlib.import_module(f"{studies.__name__}.{name}").STUDY
    return found
