"""Arguments and options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Classifier(StrEnum):
    """Leaf classifiers that a model file can hold."""

    auto = "auto"
    linear = "linear"
    logistic2 = "logistic2"
    boosted = "boosted"


class Risk(StrEnum):
    """What can be minimised beside the cost."""

    error = "error"
    brier = "brier"
    log_loss = "log_loss"
    squared = "squared"
    absolute = "absolute"


class Task(StrEnum):
    """What the target is: classes, or a number."""

    auto = "auto"
    classification = "classification"
    regression = "regression"


class Metric(StrEnum):
    """What curves measure beside what is minimised."""

    accuracy = "accuracy"
    auroc = "auroc"
    brier = "brier"
    log_loss = "log_loss"


class Structure(StrEnum):
    """Trees that need no more words."""

    auto = "auto"
    chain = "chain"
    backward = "backward"
    planned = "planned"
    branched = "branched"
    greedy = "greedy"
    exhaustive = "exhaustive"
    cascade = "cascade"


Data = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        exists=True,
        dir_okay=False,
        show_default=False,
        help="CSV file with a header, or Parquet file (.parquet).",
    ),
]
Model = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL",
        exists=True,
        dir_okay=False,
        show_default=False,
        help="Model file that `fit` or sensortree.save wrote.",
    ),
]
Sensors = Annotated[
    Path,
    typer.Option(
        "--sensors",
        metavar="TOML",
        exists=True,
        dir_okay=False,
        show_default=False,
        help="Sensors and prices; `init` writes a first one.",
    ),
]
Target = Annotated[
    str | None,
    typer.Option(
        "--target",
        metavar="COLUMN",
        show_default=False,
        help="Column of the right answers; by default the one that the sensors file names.",
    ),
]
Groups = Annotated[
    str | None,
    typer.Option(
        "--groups",
        metavar="COLUMN",
        show_default=False,
        help="Column that says which rows belong together, such as visits of one patient: "
        "they are held out together. No sensor may read it.",
    ),
]
Truth = Annotated[
    str,
    typer.Option(
        "--target",
        metavar="COLUMN",
        show_default=False,
        help="Column of the right answers.",
    ),
]
Learned = Annotated[
    str | None,
    typer.Option(
        "--target",
        metavar="COLUMN",
        show_default=False,
        help="Column of the right answers; by default the one that the model learned.",
    ),
]
Log = Annotated[
    Path | None,
    typer.Option(
        "--log",
        metavar="CSV",
        exists=True,
        dir_okay=False,
        show_default=False,
        help="What another rule bought for each row, and in what order: a line for each "
        "purchase, with columns `sensor`, `time` and the id; or a column for each sensor, "
        "with positions. Cells of DATA that were not bought are not used.",
    ),
]
Id = Annotated[
    str,
    typer.Option(
        "--id",
        metavar="COLUMN",
        help="Column of DATA and of the log that says which row is which.",
    ),
]
LabelInfluencedBuying = Annotated[
    bool,
    typer.Option(
        "--label-influenced-buying",
        help="Who bought what is in the log knew the right answer, or a sign of it.",
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        "--delimiter",
        metavar="CHARACTER",
        show_default=False,
        help="What separates the cells of a CSV file, `tab` for a tabulator; by default "
        "found out.",
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        "--encoding",
        metavar="NAME",
        show_default=False,
        help="How a CSV file writes letters, such as utf-8 or cp1252; by default found "
        "out.",
    ),
]
Decimal = Annotated[
    str | None,
    typer.Option(
        "--decimal",
        metavar="MARK",
        show_default=False,
        help="Decimal mark of all numbers, `.` or `,`; by default found out for each "
        "column.",
    ),
]
Thousands = Annotated[
    str | None,
    typer.Option(
        "--thousands",
        metavar="MARK",
        show_default=False,
        help="What groups digits: `,`, `.`, `'`, `space` or `none`; by default found out "
        "for each column.",
    ),
]
CostWeight = Annotated[
    float | None,
    typer.Option(
        "--cost-weight",
        metavar="W",
        min=0,
        show_default=False,
        help="Error, or loss, that one unit of cost is worth; by default that of the "
        "sensors file, or 1 if mistakes have a price, else 0.01.",
    ),
]
RiskMeasure = Annotated[
    Risk | None,
    typer.Option(
        "--risk",
        show_default=False,
        help="What is minimised beside the cost: wrong answers, or how far probabilities "
        "are off; of numbers, squared or absolute distance; by default what the sensors "
        "file says, or error, or squared.",
    ),
]
TargetTask = Annotated[
    Task,
    typer.Option(
        "--task",
        help="Whether the target is classes or a number; auto is what the sensors file "
        "says, or else by how many different numbers there are.",
    ),
]
MistakeCost = Annotated[
    float | None,
    typer.Option(
        "--mistake-cost",
        metavar="COST",
        show_default=False,
        help="What one wrong answer costs, in the unit of the prices; by default what the "
        "sensors file says.",
    ),
]
ReferCost = Annotated[
    float | None,
    typer.Option(
        "--refer-cost",
        metavar="COST",
        min=0,
        show_default=False,
        help="What it costs to hand an example over to a person, in the unit of wrong "
        "answers, or of their price; by default what the sensors file says, or nobody is "
        "handed over.",
    ),
]
MaxTime = Annotated[
    float | None,
    typer.Option(
        "--max-time",
        metavar="SECONDS",
        show_default=False,
        help="Time after which nothing new is begun; what was found is finished.",
    ),
]
MaxCost = Annotated[
    float | None,
    typer.Option(
        "--max-cost",
        metavar="COST",
        min=0,
        show_default=False,
        help="No example ever spends more.",
    ),
]
LeafClassifier = Annotated[
    Classifier, typer.Option("--classifier", help="Classifier of the leaves.")
]
Tree = Annotated[Structure, typer.Option("--structure", help="Which tree is learned.")]
Jobs = Annotated[
    int, typer.Option("--jobs", metavar="N", help="Classifiers fitted at a time.")
]
Folds = Annotated[
    int,
    typer.Option("--cv", metavar="N", min=2, help="Folds that are held out in turn."),
]
Force = Annotated[
    bool, typer.Option("--force", help="Replace a file that is there already.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict", help="Refuse values that training never saw, instead of warning."
    ),
]
