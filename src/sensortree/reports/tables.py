"""A report as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sensortree.reports.drawing import boxed, escaped
from sensortree.reports.measures import MEASURES, Interval
from sensortree.reports.tradeoff_display import TradeoffDisplay
from sensortree.reports.tree_display import TreeDisplay
from sensortree.reports.words import percent
from sensortree.text import aligned

if TYPE_CHECKING:
    from sensortree.reports.baselines import BaselineUse
    from sensortree.reports.report import CostReport
    from sensortree.reports.report_sums import ClassUse


WIDEST = 12  # classes whose confusion is printed as a table
OFTEN = 8  # of more classes, the confusions that are listed


def report_text(report: CostReport) -> str:
    """All parts of a report, in the order in which they are asked for."""
    parts = [
        f"{report.n_rows} rows{_counted_in(report)}\n{_summary_text(report)}",
        "" if report.referral is None else str(report.referral),
        _baselines_text(report),
        _sensors_text(report),
        _leaves_text(report),
        *([] if report.fit else _of_classes(report)),
        _unseen_text(report),
    ]
    return "\n\n".join(part for part in parts if part)


def _of_classes(report: CostReport) -> list[str]:
    """What there is to say only of classes."""
    return [_classes_text(report), _recognised_text(report), _confusion_text(report)]


def _counted_in(report: CostReport) -> str:
    """Unit of the money, and what a wrong answer stands for."""
    unit = f" {report.unit}" if report.unit else ""
    said = f"; costs in{unit}" if unit else ""
    if report.mistake_cost is not None:
        said += f"; a wrong answer counts as {report.mistake_cost:,.6g}{unit}"
    return said


def _summary_text(report: CostReport) -> str:
    """Measures with intervals, quantiles of the cost, and the share of everything."""
    lines = []
    shown = MEASURES if report.has_loss else ("error", "cost", "total")
    of_classes = () if report.fit else ("auroc", "brier", "log_loss")
    for measure in (*shown, *of_classes):
        mean = _number(getattr(report, measure))
        lines.append([measure, mean, _between(report.intervals.get(measure))])
    if report.fit:
        lines += [["R²", _number(report.fit.r2), ""]]
        lines += [["root mean square", _number(report.fit.rmse), ""]]
    quantiles = ", ".join(
        f"{cost:.4g} ({100 * share:.0f} %)" for share, cost in report.quantiles.items()
    )
    return (
        f"{aligned(('per row', 'mean', '95 % interval'), lines)}\n"
        f"total is {'loss' if report.has_loss else 'error'} + {report.cost_weight:g} × "
        f"cost\n"
        f"cost quantiles: {quantiles}\n"
        f"everything would cost {report.everything:.4g}: "
        f"{100 * report.share_of_everything:.1f} % of it was spent"
    )


def _sensors_text(report: CostReport) -> str:
    lines = [
        [use.sensor, f"{100 * use.share:.1f} %", f"{use.spend:.4g}"]
        for use in report.sensors
    ]
    return aligned(("sensor", "rows", "spend"), lines)


def _leaves_text(report: CostReport) -> str:
    lines = [
        [
            use.place,
            str(use.rows),
            *_shown(use.error, use.loss, use.cost, has_loss=report.has_loss),
            (", ".join(use.sensors) or "nothing") + (", to a person" * use.refers),
        ]
        for use in report.leaves
    ]
    loss = ("loss",) if report.has_loss else ()
    return aligned(("place", "rows", "error", *loss, "cost", "sensors"), lines, "left")


def _classes_text(report: CostReport) -> str:
    names = [use.sensor for use in report.sensors]
    lines = [
        [
            str(use.label),
            str(use.rows),
            *_shown(use.error, use.loss, use.cost, has_loss=report.has_loss),
            *(f"{100 * use.sensors[name]:.1f} %" for name in names),
        ]
        for use in report.classes
    ]
    loss = ("loss",) if report.has_loss else ()
    return aligned(("class", "rows", "error", *loss, "cost", *names), lines)


def _shown(error: float, loss: float, cost: float, has_loss: bool) -> list[str]:
    numbers = (error, loss, cost) if has_loss else (error, cost)
    return [_number(number) for number in numbers]


def _baselines_text(report: CostReport) -> str:
    """The policy beside what buys the same for all."""
    if not report.baselines:
        return ""
    loss = ("loss",) if report.has_loss else ()
    own = _shown(report.error, report.loss, report.cost, has_loss=report.has_loss)
    lines = [["this policy", *own, _number(report.total), "", ""]]
    lines += [_baseline_line(use, report.has_loss) for use in report.baselines]
    head = ("on the same rows", "error", *loss, "cost", "total", "saved", "buys")
    notes = [
        f"{use.name}: {use.note}" for use in report.baselines if use.note is not None
    ]
    return "\n".join(
        [
            aligned(head, lines, "left"),
            "saved is the total of the baseline less that of the policy, with its 95 % "
            "interval; below 0, the baseline is better",
            *notes,
        ]
    )


def _baseline_line(use: BaselineUse, has_loss: bool) -> list[str]:
    between = _between(use.saved_intervals.get("total"))
    return [
        use.name,
        *_shown(use.error, use.loss, use.cost, has_loss=has_loss),
        _number(use.total),
        f"{_number(use.saved['total'])} {between}".rstrip(),
        ", ".join(use.sensors) or "nothing",
    ]


def _recognised_text(report: CostReport) -> str:
    """Every class against the others."""
    lines = [
        [
            str(use.label),
            *(_with_interval(use, name) for name in ("sensitivity", "specificity")),
            _with_interval(use, "precision"),
            _number(use.auroc),
        ]
        for use in report.classes
    ]
    head = ("class", "sensitivity", "specificity", "precision", "AUROC")
    return aligned(head, lines)


def _with_interval(use: ClassUse, name: str) -> str:
    return f"{_number(getattr(use, name))} {_between(use.intervals.get(name))}".rstrip()


def _confusion_text(report: CostReport) -> str:
    """Answers to each class; of many classes, what is mistaken for what most often."""
    labels = list(map(str, report.labels))
    if len(labels) <= WIDEST:
        lines = [
            [label, *(f"{n:g}" for n in row)]
            for label, row in zip(labels, report.confusion, strict=True)
        ]
        return aligned(("class \\ answer", *labels), lines)
    table = np.array(report.confusion)
    np.fill_diagonal(table, 0)
    order = np.argsort(-table, axis=None, kind="stable")[:OFTEN]
    often = [np.unravel_index(at, table.shape) for at in order if table.flat[at]]
    lines = [[labels[i], labels[j], f"{table[i, j]:g}"] for i, j in often]
    return aligned(("most often mistaken", "for", "rows"), lines) if lines else ""


def _number(number: float) -> str:
    return "–" if np.isnan(number) else f"{number:.4g}"


def _between(interval: Interval | None) -> str:
    if interval is None or np.isnan(interval[0]):
        return ""
    return f"({interval[0]:.3g} to {interval[1]:.3g})"


def _unseen_text(report: CostReport) -> str:
    """Columns that hold what training never saw, and rows that do."""
    if not report.unseen:
        return ""
    lines = [
        (one.column, one.sensor, one.what, f"{one.n_rows:,}", str(one.seen))
        for one in report.unseen
    ]
    head = ("never seen in training", "sensor", "what", "rows", "training had")
    return aligned(head, lines, "left")


LARGEST = 100_000  # bytes; a notebook keeps every picture that it ever showed


def tree_in_notebook(model: Any, before: str) -> str:
    """Part of an HTML page that shows the tree of a fitted or a loaded model.

    It stands behind what is shown before, and both together are not too large.
    """
    display = TreeDisplay.from_estimator(model)
    for tips in (True, False):
        picture = display.to_svg(tips=tips)
        html = before + boxed(picture)
        if len(html.encode()) < LARGEST:
            return html
    return (
        f"{before}<p>The tree has {model.tree_.n_leaves} leaves: too large to be shown "
        f"here. <code>to_html()</code> gives a page that shows it.</p>"
    )


def curve_in_notebook(curve: Any) -> str:
    """Part of an HTML page that shows a `TradeoffCurve`: a picture, and its points."""
    picture = TradeoffDisplay.from_curve(curve).to_svg()
    lines = [
        [
            f"{curve.cost_weight[i]:.3g}",
            _with_se(curve.mean_cost[i], curve.cost_se[i]),
            _with_se(curve.error[i], curve.error_se[i]),
        ]
        for i in range(len(curve))
    ]
    head = ("cost weight", "mean cost", str(curve.measure))
    points = table_in_notebook("", head, lines)
    said = f"<summary>{len(curve)} points, ± one standard error</summary>"
    return f"{boxed(picture)}<details>{said}{points}</details>"


def report_in_notebook(report: Any) -> str:
    """Part of an HTML page that shows a `CostReport` as tables."""
    names = ("error", *(("loss",) if report.has_loss else ()), "cost", "total")
    if report.fit is None:
        names = (*names, "auroc", "brier", "log_loss")
    measures = []
    for name in names:
        low, high = report.intervals.get(name, (None, None))
        between = "" if low is None or low != low else f"{low:.4g} to {high:.4g}"
        measures.append([name, _number(getattr(report, name)), between])
    spent = (
        f"everything would cost {report.everything:.4g}: "
        f"{percent(report.share_of_everything)} of it was spent"
    )
    beside = [
        [use.name, _number(use.error), _number(use.cost), _number(use.total)]
        for use in report.baselines
    ]
    sensors = [
        [use.sensor, percent(use.share), f"{use.spend:.4g}"] for use in report.sensors
    ]
    leaves = [
        [
            use.place,
            str(use.rows),
            _number(use.error),
            _number(use.cost),
            ", ".join(use.sensors) or "nothing",
        ]
        for use in report.leaves
    ]
    classes = [
        [str(use.label), str(use.rows), _number(use.error), _number(use.cost)]
        for use in report.classes
    ]
    return "\n".join(
        [
            f"<p><b>{report.n_rows} rows</b>; {spent}</p>",
            table_in_notebook("", ("per row", "mean", "95 % interval"), measures),
            table_in_notebook(
                "beside", ("bought for all", "error", "cost", "total"), beside
            )
            if beside
            else "",
            table_in_notebook(
                "what is bought", ("sensor", "rows", "spend per row"), sensors
            ),
            "<details><summary>leaves and classes</summary>",
            table_in_notebook(
                "", ("place", "rows", "error", "cost", "sensors"), leaves
            ),
            table_in_notebook("", ("class", "rows", "error", "cost"), classes),
            "</details>",
        ]
    )


def table_in_notebook(
    caption: str, head: Sequence[str], lines: Iterable[Sequence[str]]
) -> str:
    """Table in a box that scrolls; its first column to the left."""
    said = f"<caption>{escaped(caption)}</caption>" if caption else ""
    rows = [("th", head), *(("td", line) for line in lines)]
    inside = "\n".join(
        "<tr>"
        + "".join(
            f'<{tag} style="text-align:{"right" if i else "left"}">'
            f"{escaped(cell)}</{tag}>"
            for i, cell in enumerate(cells)
        )
        + "</tr>"
        for tag, cells in rows
    )
    return boxed(f'<table style="border-spacing:1em 0;margin:0">{said}{inside}</table>')


def _number(value: float) -> str:
    return "–" if value != value else f"{value:.4g}"


def _with_se(value: float, error: float) -> str:
    return f"{value:.4g}" if error != error else f"{value:.4g} ± {error:.2g}"
