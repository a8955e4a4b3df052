"""A report as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sensortree.policy.measures import MEASURES, Interval
from sensortree.text import aligned

if TYPE_CHECKING:
    from sensortree.policy.compared import BaselineUse
    from sensortree.policy.report import CostReport
    from sensortree.policy.tally import ClassUse

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
