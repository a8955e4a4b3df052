"""`fit`, `curve` and `compare`: what is learned from a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from sensortree.cli import options
from sensortree.cli.console import (
    Work,
    check_free,
    emit,
    picture,
    say,
    working,
    write,
)
from sensortree.cli.options import flag, option, output_file

if TYPE_CHECKING:
    from sensortree.cli.problem import Problem
    from sensortree.cli.sensors_file import SensorsFile
    from sensortree.cli.tables import DataFile
    from sensortree.curves.held_out import Measured

# What is compared: the name, and the class of sensortree if it has it.
METHODS = {
    "sensor tree": "SensorTreeClassifier",
    "alternating tree": "AlternatingTreeClassifier",
    "cascade": "CascadeClassifier",
    "one subset for all": "StaticSubsetClassifier",
    "CSTC": "CSTCClassifier",
}


@options.grouped
def fit(
    data: options.Data,
    sensors: options.Sensors,
    learning: options.TreeLearning,
    purchases: options.Purchases,
    layout: options.Layout,
    budget: Annotated[
        float | None,
        option(
            "--budget B",
            "Mean cost per example to keep to; sets the cost weight.",
            min=0,
        ),
    ] = None,
    cost_weight: options.CostWeight = None,
    jobs: options.Jobs = 1,
    output: Annotated[Path, output_file("JSON", "Where to write the model.")] = Path(
        "model.json"
    ),
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Learn a sensor tree, and write it to a model file."""
    from sensortree import save
    from sensortree.cli.models import only_bought, read_log, rows_left
    from sensortree.cli.problem import name_parts
    from sensortree.cli.sensors_file import read_sensors_file
    from sensortree.cli.tables import read_data

    if budget is not None and cost_weight is not None:
        raise typer.BadParameter(
            "give a budget or a cost weight, not both.", param_hint="--budget"
        )
    check_free(output, force)
    file, table = read_sensors_file(sensors), read_data(data, layout)
    bought: dict[str, Any] = {}
    if purchases.log is None:
        problem = _posed(table, file, learning, learning.task)
    else:
        acquired = read_log(purchases, table.whole(), list(file.sensors))
        kept = only_bought(table, file, acquired)
        problem = _posed(kept, file, learning, learning.task)
        bought["acquired"] = acquired[rows_left(table, problem.data)]
        bought["label_influenced_buying"] = purchases.label_influenced_buying
    settings = _tree_settings(problem, learning, cost_weight)
    estimator = _estimator(problem, {**settings, "n_jobs": jobs}, budget)
    with working("fit") as work:
        estimator.set_callbacks(work)
        estimator.fit(problem.X, problem.y, groups=problem.groups, **bought)
    model = name_parts(estimator, problem)
    save(model, output)
    document = _fit_document(model, problem, output)
    emit("fit", document, _fit_text(model, output), as_json)


def _fit_document(model: Any, problem: Problem, output: Path) -> dict[str, Any]:
    proof, chosen = model.certificate_, getattr(model, "chosen_", None)
    report, compared = model.decision_report_, model.comparison_
    certificate = ("lower", "upper", "gap", "reach", "speaks_of")
    return {
        "output": str(output),
        "rows": len(problem.y),
        "cost_weight": model.policy_.cost_weight,
        "leaves": model.tree_.n_leaves,
        "tree": model.tree_.to_dict(),
        "decisions": report.kept,
        "risk": report.risk[report.kept],
        "certificate": {name: getattr(proof, name) for name in certificate},
        "comparison": None if compared is None else compared.to_dict(),
        "chosen": None if chosen is None else chosen.to_dict(),
        "about": asdict(model.about_),
        "digest": model.policy_.digest,
    }


def _fit_text(model: Any, output: Path) -> str:
    report, about, compared = model.decision_report_, model.about_, model.comparison_
    lines = [
        f"{model.tree_}\n",
        *([str(model.chosen_)] if hasattr(model, "chosen_") else []),  # for a budget
        *([] if compared is None else [str(compared)]),
        *([] if about.held_out is None else [about.score]),
        f"decisions: {report.kept}, training risk {report.risk[report.kept]:.4g}",
        f"linear program: {model.certificate_}",
        f"{output} written; `sensortree evaluate` says what it does on other rows.",
    ]
    return "\n".join(lines)


@options.grouped
def curve(
    data: options.Data,
    sensors: options.Sensors,
    learning: options.TreeLearning,
    layout: options.Layout,
    cost_weights: Annotated[
        str | None,
        option(
            "--cost-weights W,W,...",
            "Cost weights to fit at; by default from buying nothing to everything.",
        ),
    ] = None,
    cv: options.Folds = 5,
    plot: Annotated[
        Path | None, option("--plot SVG", "Draw the curve; .svg, .png or .pdf.")
    ] = None,
    metric: Annotated[
        Literal["accuracy", "auroc", "brier", "log_loss"] | None,
        option(
            "--metric NAME",
            "Print, and draw, accuracy, auroc, brier or log_loss beside what is minimised.",
        ),
    ] = None,
    as_csv: Annotated[bool, flag("--csv", "Print a CSV table.")] = False,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Measure error against mean cost for several cost weights."""
    from sensortree import tradeoff_curve
    from sensortree.display import TradeoffDisplay

    weights = None if cost_weights is None else _numbers(cost_weights)
    if plot is not None:
        check_free(plot, force, "--plot")
    problem = _read_problem(data, sensors, learning, layout, learning.task)
    estimator = _estimator(problem, _tree_settings(problem, learning))
    with working("curve") as work:
        estimator.set_callbacks(work)
        found = tradeoff_curve(
            estimator,
            problem.X,
            problem.y,
            cost_weights=weights,
            cv=cv,
            groups=problem.groups,
        )
    if plot is not None:
        drawn = TradeoffDisplay.from_curve(found, metric=metric).plot()
        write(plot, picture(drawn.figure_, plot))
    text = _curve_csv(found, metric) if as_csv else found.to_text(metric)
    emit("curve", found.to_dict(), text, as_json)


def _numbers(text: str) -> list[float]:
    """Numbers separated by commas."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError as error:
        raise typer.BadParameter(
            f"{text!r} must be numbers separated by commas.",
            param_hint="--cost-weights",
        ) from error


def _curve_csv(found: Any, metric: str | None) -> str:
    columns = {name: getattr(found, name) for name in ("cost_weight", "mean_cost")}
    columns["error"] = found.error
    if metric is not None:
        columns[metric] = found.metric(metric)
    lines = [",".join(columns)]
    lines += [
        ",".join(repr(float(value)) for value in line)
        for line in zip(*columns.values(), strict=True)
    ]
    return "\n".join(lines)


@options.grouped
def compare(
    data: options.Data,
    sensors: options.Sensors,
    learning: options.Learning,
    layout: options.Layout,
    cost_weight: options.CostWeight = None,
    cv: options.Folds = 5,
    as_json: options.Json = False,
) -> None:
    """Compare methods on held-out rows of one table."""
    problem = _read_problem(data, sensors, learning, layout, "classification")
    settings = {
        **_settings(problem, learning),
        "refer_cost": None,  # not all methods can refer
        "classifier": learning.classifier,
    }
    weight = _settings(problem, learning, cost_weight=cost_weight)["cost_weight"]
    with working("compare", len(METHODS) + 2) as work:
        lines = _compared(settings, problem, weight, cv, work)
    document = {"cost_weight": weight, "cv": cv, "methods": lines}
    emit("compare", document, _comparison_text(document, problem.file.unit), as_json)


def _compared(
    settings: Mapping[str, Any],
    problem: Problem,
    cost_weight: float,
    n_folds: int,
    work: Work,
) -> list[dict[str, Any]]:
    """Error, cost and risk of each method, and of buying everything and nothing.

    They are measured on the folds of a curve. Where all examples get the same sensors,
    leaf classifiers of the first method answer.
    """
    import sensortree
    from sensortree.curves.held_out import HeldOutFolds
    from sensortree.exceptions import SensorTreeError
    from sensortree.policy.about import EVERYTHING, NOTHING
    from sensortree.progress import TextProgress

    lines: list[dict[str, Any]] = []
    ends: dict[str, Measured | None] = {}
    for label, method in METHODS.items():
        estimator = getattr(sensortree, method)()
        known = estimator.get_params(deep=False)
        estimator.set_params(**{k: v for k, v in settings.items() if k in known})
        if not hasattr(estimator, "risk") and settings["risk"] != "error":
            reason = f"it minimises a loss of its own, not {settings['risk']}."
            lines.append({"method": label, "refused": reason})
            work.advance(label)
            continue
        quiet = TextProgress(verbose=False)
        try:
            folds = HeldOutFolds(
                estimator,
                problem.X,
                problem.y,
                n_folds,
                None,
                None,
                quiet,
                groups=problem.groups,
            )
            measured = folds.measure(cost_weight)
            if not ends:
                for name in (EVERYTHING, NOTHING):
                    ends[name] = folds.measure_baseline(name)
                    work.advance(name)
        except SensorTreeError as error:
            lines.append({"method": label, "refused": str(error)})
            continue
        finally:
            work.advance(label)
        lines.append(_line(label, measured, cost_weight))
    return lines + [_line(name, end, cost_weight) for name, end in ends.items()]


def _line(label: str, measured: Measured | None, cost_weight: float) -> dict[str, Any]:
    """Means over rows, and the standard errors of two of them."""
    if measured is None:
        reason = "not all sensors may be bought together, by 'after' or 'one_of'."
        return {"method": label, "refused": reason}
    error, loss, cost = measured.mean().tolist()
    noise = measured.noise.tolist()
    return {
        "method": label,
        "error": error,
        "error_se": noise[0],
        "loss": loss,
        "mean_cost": cost,
        "mean_cost_se": noise[2],
        "total": loss + cost_weight * cost,
    }


def _comparison_text(document: Mapping[str, Any], unit: str) -> str:
    """The comparison as a table."""
    from sensortree.text import aligned

    lines, notes = [], []
    for line in document["methods"]:
        if "refused" in line:
            lines.append([line["method"], "–", "–", "–"])
            notes.append(f"{line['method']}: {line['refused']}")
            continue
        lines.append(
            [
                line["method"],
                f"{line['error']:.4f} ± {line['error_se']:.4f}",
                f"{line['mean_cost']:.4g} ± {line['mean_cost_se']:.2g}",
                f"{line['total']:.4g}",
            ]
        )
    cost = f"mean cost ({unit})" if unit else "mean cost"
    return "\n".join(
        [
            aligned(("method", "error", cost, "total"), lines),
            f"total is loss + {document['cost_weight']:g} × cost, on held-out rows "
            f"({document['cv']} folds); ± is one standard error over rows",
            *notes,
        ]
    )


# what all three do ------------------------------------------------------------------------


def _read_problem(
    data: Path,
    sensors: Path,
    learning: options.Learning,
    layout: options.Layout,
    task: str,
) -> Problem:
    """Read and check everything before any work is done."""
    from sensortree.cli.sensors_file import read_sensors_file
    from sensortree.cli.tables import read_data

    file = read_sensors_file(sensors)
    return _posed(read_data(data, layout), file, learning, task)


def _posed(
    table: DataFile, file: SensorsFile, learning: options.Learning, task: str
) -> Problem:
    """Check a table against the sensors, and report how it was read."""
    from sensortree.cli.problem import pose, summarise

    problem = pose(table, file, learning.target, task, learning.groups)
    unused = summarise(problem)["unused_columns"]
    for note in problem.notes:
        say(note)
    if unused:
        say(f"not used: {', '.join(unused)}", "warning")
    return problem


def _settings(
    problem: Problem, learning: options.Learning, **more: Any
) -> dict[str, Any]:
    """Parameters that estimators of all methods have."""
    wanted = problem.settings(
        risk=learning.risk,
        mistake_cost=learning.mistake_cost,
        max_cost=learning.max_cost,
        **more,
    )
    return {**wanted, "structure": learning.structure}


def _tree_settings(
    problem: Problem,
    learning: options.TreeLearning,
    cost_weight: float | None = None,
) -> dict[str, Any]:
    """Parameters of an estimator of trees, of classes or numbers."""
    settings = _settings(
        problem, learning, refer_cost=learning.refer_cost, cost_weight=cost_weight
    )
    settings["max_time"], leaf = learning.max_time, learning.classifier
    if not problem.numbers:
        return {**settings, "classifier": leaf}
    return {**settings, "regressor": "quadratic" if leaf == "logistic2" else leaf}


def _estimator(
    problem: Problem, settings: dict[str, Any], budget: float | None = None
) -> Any:
    """An estimator of trees; with a budget, one that keeps to it."""
    import sensortree

    kind = "SensorTreeRegressor" if problem.numbers else "SensorTreeClassifier"
    if budget is None:
        return getattr(sensortree, kind)(**settings)
    del settings["cost_weight"]
    return getattr(sensortree, f"{kind}CV")(**settings, budget=budget)
