"""Arguments and options that several commands share, and how `--help` groups them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperCommand

from sensortree.cli.sensors_file import Risk, Task

SENSORS_FILE = "In place of what the sensors file says"
FORMAT = "How files are written (found out, unless you say it)"
LOG = "A log of purchases"


class Command(TyperCommand):
    """A command whose help shows options by panel, below the others."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write a section for each panel."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                kind = f"{parameter.param_type_name.capitalize()}s"
                panel = getattr(parameter, "rich_help_panel", None) or kind
                sections.setdefault(panel, []).append(record)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


def option(written: str, help: str, **more: Any) -> Any:
    """Declare an option, written as in its help: ``--output -o TOML``."""
    *names, metavar = written.split()
    return typer.Option(*names, metavar=metavar, help=help, **more)


def flag(name: str, help: str, **more: Any) -> Any:
    """Declare an option without a value."""
    return typer.Option(name, help=help, **more)


def output_file(metavar: str, help: str) -> Any:
    """Declare where a command writes."""
    return option(f"--output -o {metavar}", help)


IS_FILE: dict[str, Any] = {"exists": True, "dir_okay": False}
DATA = "CSV file with a header, or Parquet file (.parquet)."
Data = Annotated[Path, typer.Argument(metavar="DATA", help=DATA, **IS_FILE)]
MODEL = "Model file that `fit` or sensortree.save wrote."
Model = Annotated[Path, typer.Argument(metavar="MODEL", help=MODEL, **IS_FILE)]
Force = Annotated[bool, flag("--force", "Replace a file that exists.")]
Json = Annotated[bool, flag("--json", "Print one JSON document.")]
Strict = Annotated[
    bool, flag("--strict", "Refuse values that training never saw, do not only warn.")
]

# what is learned --------------------------------------------------------------------------


def from_file(written: str, help: str, **more: Any) -> Any:
    """Declare an option that wins over what the sensors file says."""
    return option(written, help, rich_help_panel=SENSORS_FILE, **more)


SENSORS = "Sensors and prices; `init` writes one."
Sensors = Annotated[Path, option("--sensors TOML", SENSORS, **IS_FILE)]
Target = Annotated[
    str | None, from_file("--target COLUMN", "Column of the right answers.")
]
TARGET = "Column of the right answers; by default the one that the model learned."
Learned = Annotated[str | None, option("--target COLUMN", TARGET)]
TargetTask = Annotated[
    Task, from_file("--task TASK", "classification, regression or auto.")
]
Groups = Annotated[
    str | None,
    option(
        "--groups COLUMN",
        "Rows with the same value belong together, such as visits of one patient, and are "
        "held out together.",
    ),
]
RiskMeasure = Annotated[
    Risk | None,
    from_file(
        "--risk RISK",
        "Loss to minimise beside the cost: error, brier or log_loss; of numbers squared "
        "or absolute.",
    ),
]
MistakeCost = Annotated[
    float | None, from_file("--mistake-cost COST", "What one wrong answer costs.")
]
ReferCost = Annotated[
    float | None,
    from_file(
        "--refer-cost COST",
        "What it costs to refer an example to a person; unless you or the file say it, "
        "never refer.",
        min=0,
    ),
]
CostWeight = Annotated[
    float | None,
    from_file(
        "--cost-weight W",
        "Error, or loss, that one unit of cost is worth: else 1 if mistakes have a price, "
        "or 0.01.",
        min=0,
    ),
]
MaxCost = Annotated[
    float | None, from_file("--max-cost COST", "No example ever spends more.", min=0)
]
MAX_TIME = "Begin nothing new after this time; finish the rest."
MaxTime = Annotated[float | None, option("--max-time SECONDS", MAX_TIME)]
LeafClassifier = Annotated[
    Literal["auto", "linear", "logistic2", "boosted"],
    option("--classifier NAME", "Leaves: auto, linear, logistic2, boosted."),
]
Tree = Annotated[
    Literal[
        "auto",
        "chain",
        "backward",
        "planned",
        "branched",
        "greedy",
        "exhaustive",
        "cascade",
    ],
    option(
        "--structure NAME",
        "Tree to learn: auto, chain, backward, planned, branched, greedy, exhaustive or "
        "cascade.",
    ),
]
Jobs = Annotated[int, option("--jobs N", "Classifiers to fit at a time.")]
Folds = Annotated[int, option("--cv N", "Folds, held out in turn.", min=2)]

# a log ------------------------------------------------------------------------------------

Log = Annotated[
    Path | None,
    option(
        "--log CSV",
        "What another rule bought for each row: a line for each purchase, with columns "
        "`sensor`, `time` and the id; or a column for each sensor, with its position, 0 "
        "for never. Cells that were not bought are not used.",
        rich_help_panel=LOG,
        **IS_FILE,
    ),
]
ID = "Column of DATA and of the log that names the row."
Id = Annotated[str, option("--id COLUMN", ID, rich_help_panel=LOG)]
LabelInfluencedBuying = Annotated[
    bool,
    flag(
        "--label-influenced-buying",
        "Who bought knew the right answer, or a sign of it.",
        rich_help_panel=LOG,
    ),
]

# how a file is written --------------------------------------------------------------------


def _of_format(name: str, metavar: str, help: str) -> inspect.Parameter:
    declared = option(f"--{name} {metavar}", help, rich_help_panel=FORMAT)
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[str | None, declared],
    )


FORMAT_OPTIONS = [
    _of_format(
        "delimiter", "CHARACTER", "What separates cells; `tab` for a tabulator."
    ),
    _of_format("encoding", "NAME", "Of letters, such as utf-8 or cp1252."),
    _of_format("decimal", "MARK", "Decimal mark: `.` or `,`."),
    _of_format("thousands", "MARK", "Groups digits: `,` `.` `'` `space` or `none`."),
]


def reads_tables(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of `FORMAT`; it takes them as one `layout`."""
    own = inspect.signature(command, eval_str=True, locals={"Layout": Any})
    names = [parameter.name for parameter in FORMAT_OPTIONS]

    @wraps(command)
    def run(**given: Any) -> None:
        from sensortree.cli.tables import Layout

        layout = Layout(*(given.pop(name) for name in names))
        command(layout=layout, **given)

    parameters = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in own.parameters.values()
        if parameter.name != "layout"
    ]
    signature = own.replace(parameters=[*parameters, *FORMAT_OPTIONS])
    vars(run)["__signature__"] = signature
    run.__annotations__ = {p.name: p.annotation for p in signature.parameters.values()}
    return run
