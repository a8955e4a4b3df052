"""`TextTable`: a table as text and in a notebook; the tables of a report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sensortree.reports.alone import QUESTION
from sensortree.reports.drawing import boxed, escaped
from sensortree.reports.report_sums import MEASURES, Interval
from sensortree.reports.words import percent
from sensortree.text import aligned, rounded

if TYPE_CHECKING:
    from sensortree.reports.report import BaselineUse, CostReport
    from sensortree.reports.report_sums import ClassUse, PlaceUse

WIDEST = 12  # classes whose confusion is printed as a table
OFTEN = 10  # of more classes, the confusions that are listed
SAVED = (
    "saved is the total of the baseline less that of the policy, with its 95 % interval; "
    "below 0, the baseline is better"
)


@dataclass(frozen=True)
class TextTable:
    """Cells below their heads, the first column to the left."""

    head: Sequence[str]
    lines: Sequence[Sequence[str]]
    last: str = "right"  # where the last column is set
    notes: tuple[str, ...] = ()  # lines below it
    title: str = ""  # what stands above it in a notebook
    bold: int | None = None  # the line that matters most, there

    def to_text(self) -> str:
        """Give the table as lines of text."""
        return "\n".join([aligned(self.head, self.lines, self.last), *self.notes])

    def to_html(self) -> str:
        """Give the table in a box that scrolls, in the colours of the page around it."""
        title = f"<caption>{escaped(self.title)}</caption>" if self.title else ""
        rows = [f"<tr>{_cells('th', self.head)}</tr>"]
        for i, line in enumerate(self.lines):
            weight = ' style="font-weight:bold"' if i == self.bold else ""
            rows.append(f"<tr{weight}>{_cells('td', line)}</tr>")
        inside = "\n".join(rows)
        notes = "".join(f"<p>{escaped(note)}</p>" for note in self.notes)
        style = "border-spacing:1em 0;margin:0"
        return boxed(f'<table style="{style}">{title}{inside}</table>{notes}')


def _cells(tag: str, cells: Sequence[str]) -> str:
    """Cells of a line, the first to the left and the others to the right."""
    first, *rest = cells
    others = "".join(
        f'<{tag} style="text-align:right">{escaped(cell)}</{tag}>' for cell in rest
    )
    return f'<{tag} style="text-align:left">{escaped(first)}</{tag}>{others}'


def report_text(report: CostReport) -> str:
    """All parts of a report, in the order in which they are asked for."""
    summary, *others = report_tables(report)
    parts = [
        f"{_counted(report)}\n{summary.to_text()}",
        "" if report.referral is None else str(report.referral),
        *(table.to_text() for table in others),
    ]
    return "\n\n".join(part for part in parts if part)


def report_in_notebook(report: CostReport) -> str:
    """Part of an HTML page that shows a report; what there is much of is folded."""
    summary, *others = (table.to_html() for table in report_tables(report))
    rows, _, counted = _counted(report).partition(";")
    n_first = 1 + bool(report.baselines)  # baselines and sensors
    return "\n".join(
        [
            f"<p><b>{rows}</b>{escaped(counted and f';{counted}')}</p>",
            summary,
            ""
            if report.referral is None
            else f"<p>{escaped(str(report.referral))}</p>",
            *others[:n_first],
            "<details><summary>leaves and classes</summary>",
            *others[n_first:],
            "</details>",
        ]
    )


def report_tables(report: CostReport) -> Iterator[TextTable]:
    """Tables of a report: measures, baselines, sensors, leaves, classes, what is new."""
    yield _summary(report)
    loss = ("loss",) if report.has_loss else ()
    if report.baselines:
        own = [*_means(report, report), _number(report.total)]
        yield TextTable(
            ("on the same rows", "error", *loss, "cost", "total", "saved", "buys"),
            [
                ["this policy", *own, "", ""],
                *(_baseline(report, use) for use in report.baselines),
            ],
            "left",
            (SAVED, *(f"{b.name}: {b.note}" for b in report.baselines if b.note)),
        )
    yield TextTable(
        ("sensor", "rows", "spend"),
        [[u.sensor, percent(u.share), rounded(u.spend)] for u in report.sensors],
    )
    yield TextTable(
        ("place", "rows", "error", *loss, "cost", "sensors"),
        [
            [
                use.place,
                str(use.rows),
                *_means(report, use),
                (", ".join(use.sensors) or "nothing") + ", to a person" * use.refers,
            ]
            for use in report.leaves
        ],
        "left",
    )
    if not report.fit:
        yield from _of_classes(report, loss)
    if report.alone:
        yield TextTable(
            (f"answers alone; {QUESTION}", "sensor", "rows told"),
            [[one.column, one.sensor, percent(one.share)] for one in report.alone],
            "left",
        )
    if report.unseen:
        yield TextTable(
            ("never seen in training", "sensor", "what", "rows", "training had"),
            [
                [one.column, one.sensor, one.what, f"{one.n_rows:,}", str(one.seen)]
                for one in report.unseen
            ],
            "left",
        )


def _counted(report: CostReport) -> str:
    """Number of rows, unit of the money, and what a wrong answer stands for."""
    unit = f" {report.unit}" if report.unit else ""
    counted = f"{report.n_rows} rows" + (f"; costs in{unit}" if unit else "")
    if report.mistake_cost is not None:
        counted += f"; a wrong answer counts as {report.mistake_cost:,.6g}{unit}"
    return counted


def _summary(report: CostReport) -> TextTable:
    """Measures with intervals, quantiles of the cost, and the share of everything."""
    shown = MEASURES if report.has_loss else ("error", "cost", "total")
    of_classes = () if report.fit else ("auroc", "brier", "log_loss")
    lines = [
        [name, _number(getattr(report, name)), _between(report.intervals.get(name))]
        for name in (*shown, *of_classes)
    ]
    if report.fit:
        lines += [["R²", _number(report.fit.r2), ""]]
        lines += [["root mean square", _number(report.fit.rmse), ""]]
    quantiles = ", ".join(
        f"{rounded(cost)} ({100 * share:.0f} %)"
        for share, cost in report.quantiles.items()
    )
    loss = "loss" if report.has_loss else "error"
    guessed = ("error counts the best guesses for those handed over",)
    notes = (
        *(guessed if report.referral is not None else ()),
        f"total is {loss} + {rounded(report.cost_weight, 6)} × cost",
        f"cost quantiles: {quantiles}",
        f"everything would cost {rounded(report.everything)}: "
        f"{percent(report.share_of_everything)} of it was spent",
    )
    return TextTable(("per row", "mean", "95 % interval"), lines, notes=notes)


def _baseline(report: CostReport, use: BaselineUse) -> list[str]:
    return [
        use.name,
        *_means(report, use),
        _number(use.total),
        _with_interval(use.saved["total"], use.saved_intervals.get("total")),
        ", ".join(use.sensors) or "nothing",
    ]


def _of_classes(report: CostReport, loss: tuple[str, ...]) -> Iterator[TextTable]:
    """What became of each class, how well it is recognised, what it is mistaken for."""
    names = [use.sensor for use in report.sensors]
    yield TextTable(
        ("class", "rows", "error", *loss, "cost", *names),
        [
            [
                str(use.label),
                str(use.rows),
                *_means(report, use),
                *(percent(use.sensors[name]) for name in names),
            ]
            for use in report.classes
        ],
    )
    yield TextTable(
        ("class", "sensitivity", "specificity", "precision", "AUROC"),
        [
            [
                str(use.label),
                *(
                    _with_interval(getattr(use, name), use.intervals.get(name))
                    for name in ("sensitivity", "specificity", "precision")
                ),
                _number(use.auroc),
            ]
            for use in report.classes
        ],
    )
    if len(report.labels) <= WIDEST:
        labels = list(map(str, report.labels))
        yield TextTable(
            ("class \\ answer", *labels),
            [
                [label, *(f"{n:g}" for n in row)]
                for label, row in zip(labels, report.confusion, strict=True)
            ],
        )
        return
    often = [[one, other, f"{n:g}"] for one, other, n in mistaken(report)]
    if often:
        yield TextTable(("most often mistaken", "for", "rows"), often)


def mistaken(report: CostReport) -> list[tuple[str, str, float]]:
    """The most frequent mistakes: a class, the answer, and the weight of such rows."""
    counts = np.array(report.confusion)
    np.fill_diagonal(counts, 0)
    order = np.argsort(-counts, axis=None, kind="stable")[:OFTEN]
    often = [np.unravel_index(at, counts.shape) for at in order if counts.flat[at]]
    labels = report.labels
    return [(str(labels[i]), str(labels[j]), float(counts[i, j])) for i, j in often]


def _means(
    report: CostReport, use: CostReport | BaselineUse | PlaceUse | ClassUse
) -> list[str]:
    """Error, cost, and between them the loss where it is not the error."""
    loss = [use.loss] if report.has_loss else []
    return [_number(number) for number in (use.error, *loss, use.cost)]


def _number(number: float) -> str:
    return "–" if np.isnan(number) else rounded(number)


def _between(interval: Interval | None) -> str:
    if interval is None or np.isnan(interval[0]):
        return ""
    return f"({rounded(interval[0], 3)} to {rounded(interval[1], 3)})"


def _with_interval(number: float, interval: Interval | None) -> str:
    return f"{_number(number)} {_between(interval)}".rstrip()
