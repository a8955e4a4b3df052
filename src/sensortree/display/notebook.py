"""Trees, curves and reports as a notebook shows them.

Tables have the colours of the page around them, on light and on dark paper.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sensortree.display.svg import boxed, escaped
from sensortree.display.tradeoff import TradeoffDisplay
from sensortree.display.tree import TreeDisplay
from sensortree.display.words import percent

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
