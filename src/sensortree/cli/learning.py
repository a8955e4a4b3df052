"""`fit`, `curve` and `compare`: what is learned from a table."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sensortree.cli import options
from sensortree.cli.console import (
    StepsOfAFit,
    check_free,
    emit,
    picture,
    say,
    working,
    write,
)

if TYPE_CHECKING:
    from sensortree.cli.data_file import DataFile
    from sensortree.cli.layout import Layout
    from sensortree.cli.problem import Problem
    from sensortree.cli.sensors_file import SensorsFile

# What is compared: the name, and the class of sensortree if it has it.
METHODS = {
    "sensor tree": "SensorTreeClassifier",
    "alternating tree": "AlternatingTreeClassifier",
    "cascade": "CascadeClassifier",
    "one subset for all": "StaticSubsetClassifier",
    "CSTC": "CSTCClassifier",
}


def fit(
    data: options.Data,
    sensors: options.Sensors,
    target: options.Target = None,
    task: options.TargetTask = options.Task.auto,
    groups: options.Groups = None,
    budget: Annotated[
        float | None,
        typer.Option(
            "--budget",
            metavar="B",
            min=0,
            show_default=False,
            help="Mean cost per example to keep to; the cost weight is chosen for it.",
        ),
    ] = None,
    risk: options.RiskMeasure = None,
    mistake_cost: options.MistakeCost = None,
    refer_cost: options.ReferCost = None,
    cost_weight: options.CostWeight = None,
    max_cost: options.MaxCost = None,
    classifier: options.LeafClassifier = options.Classifier.auto,
    structure: options.Tree = options.Structure.auto,
    max_time: options.MaxTime = None,
    log: options.Log = None,
    id_column: options.Id = "id",
    label_influenced_buying: options.LabelInfluencedBuying = False,
    jobs: options.Jobs = 1,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="JSON", help="Where the model goes."),
    ] = Path("model.json"),
    delimiter: options.Delimiter = None,
    encoding: options.Encoding = None,
    decimal: options.Decimal = None,
    thousands: options.Thousands = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Learn a sensor tree, and write it to a model file."""
    from sensortree import save
    from sensortree.cli.data_file import read_data
    from sensortree.cli.layout import Layout
    from sensortree.cli.logs import only_bought, read_log, rows_left
    from sensortree.cli.problem import name_parts
    from sensortree.cli.sensors_file import read_sensors_file

    if budget is not None and cost_weight is not None:
        raise typer.BadParameter(
            "give a budget or a cost weight, not both.", param_hint="--budget"
        )
    check_free(output, force)
    layout = Layout(delimiter, encoding, decimal, thousands)
    file, table = read_sensors_file(sensors), read_data(data, layout)
    bought: dict[str, Any] = {}
    if log is None:
        problem = _posed(table, file, target, task.value, groups)
    else:
        acquired = read_log(log, table.whole(), list(file.sensors), id_column)
        kept = only_bought(table, file, acquired)
        problem = _posed(kept, file, target, task.value, groups)
        bought["acquired"] = acquired[rows_left(table, problem.data)]
        bought["label_influenced_buying"] = label_influenced_buying
    chosen = {
        **problem.settings(cost_weight, max_cost, mistake_cost, risk, refer_cost),
        **_leaf(problem, classifier),
        "structure": structure.value,
        "max_time": max_time,
        "n_jobs": jobs,
    }
    estimator = _estimator(chosen, budget, problem.numbers)
    with working("fit") as work:
        estimator.set_callbacks(StepsOfAFit(work))
        estimator.fit(problem.X, problem.y, groups=problem.groups, **bought)
    model = name_parts(estimator, problem)
    save(model, output)
    emit(
        "fit", _fit_document(model, problem, output), _fit_text(model, output), as_json
    )


def curve(
    data: options.Data,
    sensors: options.Sensors,
    target: options.Target = None,
    task: options.TargetTask = options.Task.auto,
    groups: options.Groups = None,
    cost_weights: Annotated[
        str | None,
        typer.Option(
            "--cost-weights",
            metavar="W,W,...",
            show_default=False,
            help="Cost weights to fit at; by default from buying nothing to everything.",
        ),
    ] = None,
    cv: options.Folds = 5,
    risk: options.RiskMeasure = None,
    mistake_cost: options.MistakeCost = None,
    refer_cost: options.ReferCost = None,
    max_cost: options.MaxCost = None,
    classifier: options.LeafClassifier = options.Classifier.auto,
    structure: options.Tree = options.Structure.auto,
    max_time: options.MaxTime = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot",
            metavar="SVG",
            show_default=False,
            help="Picture of the curve; .svg, .png or .pdf.",
        ),
    ] = None,
    metric: Annotated[
        options.Metric | None,
        typer.Option(
            "--metric",
            show_default=False,
            help="Measure of probabilities or answers to print, and to draw, beside what "
            "is minimised.",
        ),
    ] = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print a CSV table.")] = False,
    delimiter: options.Delimiter = None,
    encoding: options.Encoding = None,
    decimal: options.Decimal = None,
    thousands: options.Thousands = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Give error against mean cost over several cost weights."""
    from sensortree import tradeoff_curve
    from sensortree.cli.layout import Layout

    weights = _numbers(cost_weights)
    if plot is not None:
        check_free(plot, force, "--plot")
    layout = Layout(delimiter, encoding, decimal, thousands)
    problem = _pose(data, sensors, target, layout, task.value, groups)
    chosen = {
        **problem.settings(None, max_cost, mistake_cost, risk, refer_cost),
        **_leaf(problem, classifier),
        "structure": structure.value,
        "max_time": max_time,
    }
    estimator = _estimator(chosen, None, problem.numbers)
    with working("curve") as work:
        estimator.set_callbacks(StepsOfAFit(work))
        found = tradeoff_curve(
            estimator,
            problem.X,
            problem.y,
            cost_weights=weights,
            cv=cv,
            groups=problem.groups,
        )
    if plot is not None:
        write(plot, _curve_picture(found, plot, metric))
    text = _curve_csv(found, metric) if as_csv else found.to_text(metric)
    emit("curve", found.to_dict(), text, as_json)


def compare(
    data: options.Data,
    sensors: options.Sensors,
    target: options.Target = None,
    groups: options.Groups = None,
    risk: options.RiskMeasure = None,
    mistake_cost: options.MistakeCost = None,
    cost_weight: options.CostWeight = None,
    max_cost: options.MaxCost = None,
    cv: options.Folds = 5,
    classifier: options.LeafClassifier = options.Classifier.auto,
    structure: options.Tree = options.Structure.auto,
    delimiter: options.Delimiter = None,
    encoding: options.Encoding = None,
    decimal: options.Decimal = None,
    thousands: options.Thousands = None,
    as_json: options.Json = False,
) -> None:
    """Compare methods on held-out rows of one table."""
    import sensortree
    from sensortree.cli.comparison import compared, comparison_text
    from sensortree.cli.layout import Layout

    layout = Layout(delimiter, encoding, decimal, thousands)
    problem = _pose(data, sensors, target, layout, groups=groups)
    chosen = {
        **problem.settings(None, max_cost, mistake_cost, risk),
        "refer_cost": None,  # not all methods can hand over
        "classifier": classifier.value,
        "structure": structure.value,
    }
    weight = problem.settings(cost_weight, max_cost, mistake_cost, risk)["cost_weight"]
    methods = {label: getattr(sensortree, name) for label, name in METHODS.items()}
    with working("compare", len(methods) + 2) as work:
        lines = compared(methods, chosen, problem, weight, cv, work)
    document = {"cost_weight": weight, "cv": cv, "methods": lines}
    emit("compare", document, comparison_text(document, problem.file.unit), as_json)


def _leaf(problem: Problem, classifier: options.Classifier) -> dict[str, str]:
    """What leaves are fitted with, by the name that the estimator has for it."""
    if not problem.numbers:
        return {"classifier": classifier.value}
    quadratic = classifier is options.Classifier.logistic2
    return {"regressor": "quadratic" if quadratic else classifier.value}


def _estimator(chosen: dict[str, Any], budget: float | None, numbers: bool) -> Any:
    import sensortree

    kind = "SensorTreeRegressor" if numbers else "SensorTreeClassifier"
    if budget is None:
        return getattr(sensortree, kind)(**chosen)
    kept = {name: value for name, value in chosen.items() if name != "cost_weight"}
    return getattr(sensortree, f"{kind}CV")(**kept, budget=budget)


def _pose(
    data: Path,
    sensors: Path,
    target: str | None,
    layout: Layout,
    task: str = "classification",
    groups: str | None = None,
) -> Problem:
    """Read and check everything before any work is done."""
    from sensortree.cli.data_file import read_data
    from sensortree.cli.sensors_file import read_sensors_file

    file = read_sensors_file(sensors)
    return _posed(read_data(data, layout), file, target, task, groups)


def _posed(
    table: DataFile,
    file: SensorsFile,
    target: str | None,
    task: str,
    groups: str | None = None,
) -> Problem:
    """Check a table against the sensors, and say what is not plain."""
    from sensortree.cli.problem import pose, summarise

    problem = pose(table, file, target, task, groups)
    unused = summarise(problem)["unused_columns"]
    for note in problem.notes:
        say(note)
    if unused:
        say(f"not used: {', '.join(unused)}", "warning")
    return problem


def _numbers(text: str | None) -> list[float] | None:
    """Numbers separated by commas."""
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError as error:
        raise typer.BadParameter(
            f"{text!r} must be numbers separated by commas.",
            param_hint="--cost-weights",
        ) from error


def _fit_document(model: Any, problem: Problem, output: Path) -> dict[str, Any]:
    proof, chosen = model.certificate_, getattr(model, "chosen_", None)
    return {
        "output": str(output),
        "rows": len(problem.y),
        "cost_weight": model.policy_.cost_weight,
        "leaves": model.tree_.n_leaves,
        "tree": model.tree_.to_dict(),
        "decisions": model.decision_report_.kept,
        "risk": model.decision_report_.risk[model.decision_report_.kept],
        "certificate": {
            k: getattr(proof, k)
            for k in ("lower", "upper", "gap", "reach", "speaks_of")
        },
        "comparison": _compared(model),
        "chosen": None if chosen is None else chosen.to_dict(),
        "about": asdict(model.about_),
        "digest": model.policy_.digest,
    }


def _compared(model: Any) -> dict[str, Any] | None:
    return None if model.comparison_ is None else model.comparison_.to_dict()


def _fit_text(model: Any, output: Path) -> str:
    report, about, compared = model.decision_report_, model.about_, model.comparison_
    held_out = [] if about.held_out is None else [about.score]
    lines = [
        f"{model.tree_}\n",
        *([] if compared is None else [str(compared)]),
        *held_out,
        f"decisions: {report.kept}, training risk {report.risk[report.kept]:.4g}",
        f"linear program: {model.certificate_}",
        f"{output} written; `sensortree evaluate` says what it does on other rows.",
    ]
    if hasattr(model, "chosen_"):  # for a budget
        lines.insert(1, str(model.chosen_))
    return "\n".join(lines)


def _curve_csv(found: Any, metric: str | None) -> str:
    columns = {name: getattr(found, name) for name in ("cost_weight", "mean_cost")}
    columns["error"] = found.error
    if metric is not None:
        columns[str(metric)] = found.metric(metric)
    lines = [",".join(columns)]
    lines += [
        ",".join(repr(float(value)) for value in line)
        for line in zip(*columns.values(), strict=True)
    ]
    return "\n".join(lines)


def _curve_picture(found: Any, path: Path, metric: str | None) -> bytes:
    from sensortree.display import TradeoffDisplay

    drawn = TradeoffDisplay.from_curve(found, metric=metric).plot()
    return picture(drawn.figure_, path)
