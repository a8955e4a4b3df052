"""Arguments and options that several commands share, and how `--help` groups them."""

from __future__ import annotations

import codecs
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import typer
from typer.core import TyperCommand

from sensortree.cells.words import DECIMALS, THOUSANDS
from sensortree.cli.console import say
from sensortree.cli.sensors_file import Risk, Task
from sensortree.exceptions import DataError

SENSORS_FILE = "In place of what the sensors file says"
FORMAT = "How files are written (found out, unless you say it)"
LOG = "A log of purchases"
Structure = Literal[
    "auto",
    "chain",
    "backward",
    "planned",
    "branched",
    "greedy",
    "exhaustive",
    "cascade",
]
NAMES = {"tab": "\t", "space": " ", "none": ""}  # of marks


class Command(TyperCommand):
    """A command whose help has a section for each panel of options."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write a section for each panel."""
        titles = ("Arguments", "Options", SENSORS_FILE, LOG, FORMAT)
        sections: dict[str, list[tuple[str, str]]] = {title: [] for title in titles}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                kind = f"{parameter.param_type_name.capitalize()}s"
                panel = getattr(parameter, "rich_help_panel", None) or kind
                sections[panel].append(record)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


def option(written: str, help: str, default: Any = None, **more: Any) -> Any:
    """Declare an option, written as in its help: ``--output -o TOML``.

    It is the default of a parameter; within ``Annotated``, its own default is ``...``.
    """
    *names, metavar = written.split()
    return typer.Option(default, *names, metavar=metavar, help=help, **more)


def flag(name: str, help: str, default: Any = False, **more: Any) -> Any:
    """Declare an option without a value, as `option` does."""
    return typer.Option(default, name, help=help, **more)


def output_file(metavar: str, help: str, default: Any = None) -> Any:
    """Declare where a command writes."""
    return option(f"--output -o {metavar}", help, default)


IS_FILE: dict[str, Any] = {"exists": True, "dir_okay": False}
DATA = "CSV file with a header, or Parquet file (.parquet)."
Data = Annotated[Path, typer.Argument(metavar="DATA", help=DATA, **IS_FILE)]
MODEL = "Model file that `fit` or sensortree.save wrote."
Model = Annotated[Path, typer.Argument(metavar="MODEL", help=MODEL, **IS_FILE)]
Force = Annotated[bool, flag("--force", "Replace a file that exists.", ...)]
Json = Annotated[bool, flag("--json", "Print one JSON document.", ...)]
Strict = Annotated[
    bool,
    flag("--strict", "Refuse values that training never saw, do not only warn.", ...),
]

# what is learned --------------------------------------------------------------------------


def from_file(written: str, help: str, default: Any = None, **more: Any) -> Any:
    """Declare an option that wins over what the sensors file says."""
    return option(written, help, default, rich_help_panel=SENSORS_FILE, **more)


SENSORS = "Sensors and prices; `init` writes one."
Sensors = Annotated[Path, option("--sensors TOML", SENSORS, ..., **IS_FILE)]
Target = Annotated[
    str | None, from_file("--target COLUMN", "Column of the right answers.", ...)
]
TARGET = "Column of the right answers; by default the one that the model learned."
Learned = Annotated[str | None, option("--target COLUMN", TARGET, ...)]
TASK = "classification, regression or auto."
CostWeight = Annotated[
    float | None,
    from_file(
        "--cost-weight W",
        "Error, or loss, that one unit of cost is worth: else 1 if mistakes have a price, "
        "or 0.01.",
        ...,
        min=0,
    ),
]
Jobs = Annotated[int, option("--jobs N", "Classifiers to fit at a time.", ...)]
Folds = Annotated[int, option("--cv N", "Folds, held out in turn.", ..., min=2)]

# groups -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Learning:
    """What is learned, by what, and from which rows."""

    target: Target = None
    task: Task = from_file("--task TASK", TASK, "auto")
    groups: str | None = option(
        "--groups COLUMN",
        "Rows with the same value belong together, such as visits of one patient, and "
        "are held out together.",
    )
    classifier: Literal["auto", "linear", "logistic2", "boosted"] = option(
        "--classifier NAME", "Leaves: auto, linear, logistic2, boosted.", "auto"
    )
    structure: Structure = option(
        "--structure NAME",
        "Tree to learn: auto, chain, backward, planned, branched, greedy, exhaustive "
        "or cascade.",
        "auto",
    )
    risk: Risk | None = from_file(
        "--risk RISK",
        "Loss to minimise beside the cost: error, brier or log_loss; of numbers "
        "squared or absolute.",
    )
    loss: float | None = from_file("--loss COST", "What one wrong answer costs.")
    mistake_cost: float | None = from_file(
        "--mistake-cost COST", "Old name.", hidden=True
    )
    max_cost: float | None = from_file(
        "--max-cost COST", "No example ever spends more.", min=0
    )

    def __post_init__(self) -> None:
        if self.mistake_cost is None:
            return
        if self.loss is not None:
            raise typer.BadParameter(
                "--loss and --mistake-cost are one option; leave out --mistake-cost, its "
                "old name.",
                param_hint="--mistake-cost",
            )
        say("--mistake-cost is now called --loss.")
        object.__setattr__(self, "loss", self.mistake_cost)


@dataclass(frozen=True)
class TreeLearning(Learning):
    """What only trees can do."""

    refer_cost: float | None = from_file(
        "--refer-cost COST",
        "What it costs to refer an example to a person; unless you or the file say "
        "it, never refer.",
        min=0,
    )
    max_time: float | None = option(
        "--max-time SECONDS", "Begin nothing new after this time; finish the rest."
    )


@dataclass(frozen=True)
class Purchases:
    """A log of what another rule bought, if there is one."""

    log: Path | None = option(
        "--log CSV",
        "What another rule bought for each row: a line for each purchase, with "
        "columns `sensor`, `time` and the id; or a column for each sensor, with its "
        "position, 0 for never. Cells that were not bought are not used.",
        rich_help_panel=LOG,
        **IS_FILE,
    )
    id_column: str = option(
        "--id COLUMN",
        "Column of DATA and of the log that names the row.",
        "id",
        rich_help_panel=LOG,
    )
    label_influenced_buying: bool = flag(
        "--label-influenced-buying",
        "Who bought knew the right answer, or a sign of it.",
        rich_help_panel=LOG,
    )


def of_format(written: str, help: str, default: Any) -> Any:
    """Declare an option that says how files are written."""
    return option(written, help, default, rich_help_panel=FORMAT)


@dataclass(frozen=True)
class Layout:
    """How a file is written; None means: found out by looking at the file."""

    delimiter: Annotated[
        str | None,
        of_format(
            "--delimiter CHARACTER", "What separates cells; `tab` for a tabulator.", ...
        ),
    ] = None
    encoding: Annotated[
        str | None,
        of_format("--encoding NAME", "Of letters, such as utf-8 or cp1252.", ...),
    ] = None
    decimal: Annotated[
        str | None, of_format("--decimal MARK", "Decimal mark: `.` or `,`.", ...)
    ] = None
    thousands: Annotated[
        str | None,
        of_format(
            "--thousands MARK", "Groups digits: `,` `.` `'` `space` or `none`.", ...
        ),
    ] = None

    def __post_init__(self) -> None:
        for name in ("delimiter", "thousands"):
            given = getattr(self, name)
            object.__setattr__(self, name, NAMES.get(given, given))
        delimiter, decimal, thousands = self.delimiter, self.decimal, self.thousands
        if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
            raise DataError(
                f"the delimiter must be one character or 'tab', got {delimiter!r}."
            )
        if decimal not in (None, *DECIMALS):
            raise DataError(f"the decimal mark must be '.' or ',', got {decimal!r}.")
        if thousands not in (None, *THOUSANDS):
            raise DataError(
                f"thousands must be one of ',', '.', \"'\", 'space' or 'none', got "
                f"{thousands!r}."
            )
        if thousands and thousands == (decimal or "."):
            raise DataError(
                f"{thousands!r} cannot be the decimal mark and separate thousands too; "
                f"pass --decimal and --thousands that differ."
            )
        if self.encoding is not None:
            try:
                codecs.lookup(self.encoding)
            except LookupError as error:
                raise DataError(
                    f"there is no encoding {self.encoding!r}; try utf-8, cp1252 or utf-16."
                ) from error


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command take a group of options as one parameter: an instance of its class."""
    groups: dict[str, Any] = {}
    parameters: list[inspect.Parameter] = []
    keyword = inspect.Parameter.KEYWORD_ONLY
    for given in inspect.signature(command, eval_str=True).parameters.values():
        group = given.annotation
        if not is_dataclass(group):
            parameters.append(given.replace(kind=keyword))
            continue
        groups[given.name] = group
        types = get_type_hints(group, include_extras=True)
        for own in fields(group):
            declared = inspect.Parameter(own.name, keyword, default=own.default)
            parameters.append(declared.replace(annotation=types[own.name]))

    @wraps(command)
    def run(**values: Any) -> None:
        for name, group in groups.items():
            own = {field.name: values.pop(field.name) for field in fields(group)}
            values[name] = group(**own)
        command(**values)

    vars(run)["__signature__"] = inspect.Signature(parameters)
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run
