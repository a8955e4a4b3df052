"""`fit`, `curve` and `compare`: what is learned from a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from sensortree.cli import options
from sensortree.cli.console import (
    Work,
    as_csv,
    check_free,
    emit,
    picture,
    say,
    working,
    write,
)
from sensortree.cli.options import flag, option, output_file
from sensortree.cli.sensors_file import read_sensors_file
from sensortree.exceptions import SensorTreeError
from sensortree.text import aligned, rounded

if TYPE_CHECKING:
    from sensortree.cli.problem import Problem
    from sensortree.curves.held_out import Measured

# What is compared: the name, and the class of sensortree; then the same where a number is
# learned.
METHODS = {
    "sensor tree": "SensorTreeClassifier",
    "alternating tree": "AlternatingTreeClassifier",
    "cascade": "CascadeClassifier",
    "one subset for all": "StaticSubsetClassifier",
    "CSTC": "CSTCClassifier",
}
OF_NUMBERS = {
    "sensor tree": "SensorTreeRegressor",
    "one subset for all": "StaticSubsetRegressor",
}


@options.grouped
def fit(
    data: options.Data,
    sensors: options.Sensors,
    learning: options.TreeLearning,
    purchases: options.Purchases,
    layout: options.Layout,
    budget: float | None = option(
        "--budget B", "Mean cost per example to keep to; sets the cost weight.", min=0
    ),
    cost_weight: options.CostWeight = None,
    jobs: options.Jobs = 1,
    output: Path = output_file("JSON", "Where to write the model.", Path("model.json")),
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Learn a sensor tree, and write it to a model file."""
    from sensortree import save
    from sensortree.cli.problem import name_parts
    from sensortree.learning.fit import ended_early

    if budget is not None and cost_weight is not None:
        raise typer.BadParameter(
            "give a budget or a cost weight, not both.", param_hint="--budget"
        )
    check_free(output, force)
    problem, bought = _read(data, sensors, learning, layout, purchases)
    given = {"cost_weight": cost_weight, "n_jobs": jobs}
    estimator = _estimator(problem, learning, budget, **given)
    with working("fit") as work:
        estimator.set_callbacks(work)
        estimator.fit(problem.X, problem.y, groups=problem.groups, **bought)
    model = name_parts(estimator, problem)
    alone = _answering_alone(problem, model)
    for line in alone:
        say(line, "warning")
    save(model, output)
    proof, chosen = model.certificate_, getattr(model, "chosen_", None)
    report, compared, about = model.decision_report_, model.comparison_, model.about_
    certificate = ("lower", "upper", "gap", "reach", "speaks_of")
    document = {
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
        "alone": alone,
        "about": asdict(about),
        "digest": model.policy_.digest,
    }
    early = ended_early(model.structure_report_, compared)
    if early is not None:
        say(
            f"{early} before every tree was compared: with more time, the tree may differ."
        )
    lines = [
        f"{model.tree_}\n",
        *([] if chosen is None else [str(chosen)]),  # for a budget
        *([] if compared is None else [str(compared)]),
        *([] if about.held_out is None else [about.score]),
        f"decisions: {report.kept}, training risk {rounded(report.risk[report.kept])}",
        f"linear program: {proof}",
        f"{output} written; `sensortree evaluate` says what it does on other rows.",
    ]
    emit("fit", document, "\n".join(lines), as_json)


def _answering_alone(problem: Problem, model: Any) -> list[str]:
    """Sentences on columns that answer alone, and may be known only afterwards."""
    import numpy as np

    from sensortree.reports.alone import columns_alone
    from sensortree.sensors.table import Table

    known = np.ones((len(problem.y), len(model.sensors_)), dtype=bool)
    found = columns_alone(model.sensors_, Table(problem.X), problem.y, known)
    return list(map(str, found))


@options.grouped
def curve(
    data: options.Data,
    sensors: options.Sensors,
    learning: options.TreeLearning,
    layout: options.Layout,
    cost_weights: str | None = option(
        "--cost-weights W,W,...",
        "Cost weights to fit at; by default from buying nothing to everything.",
    ),
    cv: options.Folds = 5,
    plot: Path | None = option("--plot SVG", "Draw the curve; .svg, .png or .pdf."),
    metric: Literal["accuracy", "auroc", "brier", "log_loss"] | None = option(
        "--metric NAME",
        "Print, and draw, accuracy, auroc, brier or log_loss beside what is minimised.",
    ),
    in_csv: bool = flag("--csv", "Print a CSV table."),
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Measure error against mean cost for several cost weights."""
    from sensortree import tradeoff_curve
    from sensortree.display import TradeoffDisplay

    weights = None
    try:
        if cost_weights is not None:
            weights = [float(part) for part in cost_weights.split(",")]
    except ValueError as error:
        raise typer.BadParameter(
            f"{cost_weights!r} must be numbers separated by commas.",
            param_hint="--cost-weights",
        ) from error
    if plot is not None:
        check_free(plot, force, "--plot")
    problem, _ = _read(data, sensors, learning, layout)
    estimator, rows = _estimator(problem, learning), (problem.X, problem.y)
    with working("curve") as work:
        estimator.set_callbacks(work)
        found = tradeoff_curve(estimator, *rows, weights, cv, groups=problem.groups)
    if plot is not None:
        drawn = TradeoffDisplay.from_curve(found, metric=metric).plot()
        write(plot, picture(drawn.figure_, plot))
    text = found.to_text(metric)
    if in_csv:
        names = ("cost_weight", "mean_cost", "error")
        columns = {name: getattr(found, name) for name in names}
        columns |= {} if metric is None else {metric: found.metric(metric)}
        lines = zip(*(values.tolist() for values in columns.values()), strict=True)
        text = as_csv(columns, lines).rstrip("\n")
    emit("curve", found.to_dict(), text, as_json)


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
    problem, _ = _read(data, sensors, learning, layout)
    settings = _settings(problem, learning, cost_weight=cost_weight)
    # Not all methods can refer.
    settings |= {"refer_cost": None, **_leaf(problem, learning)}
    with working("compare", len(METHODS) + 2) as work:
        lines, weight = _compared(settings, problem, cv, work)
    document = {"cost_weight": weight, "cv": cv, "methods": lines}
    emit("compare", document, _comparison_text(document, problem), as_json)


def _compared(
    settings: Mapping[str, Any],
    problem: Problem,
    n_folds: int,
    work: Work,
) -> tuple[list[dict[str, Any]], float]:
    """Error, cost and risk of each method, and of buying everything and nothing.

    And the cost weight.

    They are measured on the folds of a curve. Where all examples get the same sensors,
    leaf classifiers of the first method answer.
    """
    import sensortree
    from sensortree.curves.held_out import HeldOutFolds
    from sensortree.policy.about import EVERYTHING, NOTHING
    from sensortree.progress import TextProgress

    lines: list[dict[str, Any]] = []
    cost_weight: Any = settings["cost_weight"]
    ends: dict[str, Measured | None] = {}
    for label, method in METHODS.items():
        if problem.numbers and label not in OF_NUMBERS:
            reason = "it learns classes, and the target is a number."
            lines.append({"method": label, "refused": reason})
            work.advance(label)
            continue
        method = OF_NUMBERS[label] if problem.numbers else method
        estimator = getattr(sensortree, method)()
        known = estimator.get_params(deep=False)
        estimator.set_params(**{k: v for k, v in settings.items() if k in known})
        if "risk" not in known and settings["risk"] != "error":
            reason = f"it minimises a loss of its own, not {settings['risk']}."
            lines.append({"method": label, "refused": reason})
            work.advance(label)
            continue
        quiet = TextProgress(verbose=False)
        try:
            rows = problem.X, problem.y, n_folds, None, None
            folds = HeldOutFolds(estimator, *rows, quiet, groups=problem.groups)
            cost_weight = folds.settings.cost_weight  # as "auto" finds it
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
    lines += [_line(name, end, cost_weight) for name, end in ends.items()]
    return lines, float(cost_weight)


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


def _comparison_text(document: Mapping[str, Any], problem: Problem) -> str:
    """The comparison as a table."""
    lines, notes, unit = [], [], problem.file.unit
    told = rounded if problem.numbers else "{:.4f}".format
    error = "mean distance" if problem.numbers else "error"
    for line in document["methods"]:
        if "refused" in line:
            lines.append([line["method"], "–", "–", "–"])
            notes.append(f"{line['method']}: {line['refused']}")
            continue
        lines.append(
            [
                line["method"],
                f"{told(line['error'])} ± {told(line['error_se'])}",
                f"{rounded(line['mean_cost'])} ± {rounded(line['mean_cost_se'], 2)}",
                rounded(line["total"]),
            ]
        )
    cost = f"mean cost ({unit})" if unit else "mean cost"
    return "\n".join(
        [
            aligned(("method", error, cost, "total"), lines),
            f"total is loss + {rounded(document['cost_weight'], 6)} × cost, on held-out "
            f"rows ({document['cv']} folds); ± is one standard error over rows",
            *notes,
        ]
    )


# what all three do ------------------------------------------------------------------------


def _read(
    data: Path,
    sensors: Path,
    learning: options.Learning,
    layout: options.Layout,
    purchases: options.Purchases | None = None,
) -> tuple[Problem, dict[str, Any]]:
    """Read and check everything before any work is done; say how it was read.

    Also what a log says was bought, as `fit` takes it.
    """
    from sensortree.cli.models import only_bought, read_log, rows_left
    from sensortree.cli.problem import pose, summarise
    from sensortree.cli.tables import read_data

    file, whole = read_sensors_file(sensors), read_data(data, layout)
    table, acquired, bought = whole, None, dict[str, Any]()
    if purchases is not None and purchases.log is not None:
        acquired = read_log(purchases, whole.whole(), list(file.sensors))
        table = only_bought(whole, file, acquired)
    problem = pose(table, file, learning.target, learning.task, learning.groups)
    if purchases is not None and acquired is not None:
        bought["acquired"] = acquired[rows_left(whole, problem.data)]
        bought["label_influenced_buying"] = purchases.label_influenced_buying
    unused = summarise(problem)["unused_columns"]
    for note in problem.notes:
        say(note)
    if unused:
        say(f"not used: {', '.join(unused)}", "warning")
    return problem, bought


def _settings(
    problem: Problem, learning: options.Learning, **more: Any
) -> dict[str, Any]:
    """Parameters that estimators of all methods have."""
    names = ("risk", "loss", "max_cost")
    given = {name: getattr(learning, name) for name in names}
    return {**problem.settings(**given, **more), "structure": learning.structure}


def _leaf(problem: Problem, learning: options.Learning) -> dict[str, Any]:
    """The parameter that says what leaves are."""
    leaf = learning.classifier
    if problem.numbers:
        return {"regressor": "quadratic" if leaf == "logistic2" else leaf}
    return {"classifier": leaf}


def _estimator(
    problem: Problem,
    learning: options.TreeLearning,
    budget: float | None = None,
    cost_weight: float | None = None,
    **more: Any,
) -> Any:
    """An estimator of trees, of classes or numbers; with a budget, one that keeps to it."""
    import sensortree

    given = {"refer_cost": learning.refer_cost, "cost_weight": cost_weight}
    settings = {**_settings(problem, learning, **given), **more}
    settings |= _leaf(problem, learning)
    kind = "SensorTreeRegressor" if problem.numbers else "SensorTreeClassifier"
    if budget is not None:
        del settings["cost_weight"]
        kind, settings = f"{kind}CV", {**settings, "budget": budget}
    return getattr(sensortree, kind)(**settings, max_time=learning.max_time)
