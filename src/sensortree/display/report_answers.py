"""How well a policy answers, for the page of a report."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from sensortree.display.figures import figure, money, share
from sensortree.display.markup import Words, paragraph, table

if TYPE_CHECKING:
    from sensortree.display.report_page import ReportPage

MANY = 12  # classes from which a confusion is no table
OFTEN = 10  # of more classes, the confusions that are listed

RANKED = "how often the likelier of two is the right one; 0.5 is chance, 1 the best"
DISTANT = "squared distance from the truth, halved; 0 if sure and right, 1 if wrong"
SURPRISED = "minus the logarithm of the right class's probability; 0 is the best"


def answers(page: ReportPage) -> Iterable[str]:
    """Every class against the others, and what is mistaken for what."""
    report = page.report
    few = len(report.labels) <= MANY
    lines: list[list[Words]] = [
        [
            str(use.label),
            f"{use.rows:,}",
            *(
                figure(getattr(use, name), use.intervals[name] if few else None, share)
                for name in ("sensitivity", "specificity", "precision")
            ),
            "–" if math.isnan(use.auroc) else f"{use.auroc:.3f}",
            money(use.cost),
        ]
        for use in report.classes
    ]
    yield table(
        f"Every class against the others{', with 95 % intervals' if few else ''}",
        (
            "class",
            "examples",
            "sensitivity",
            "specificity",
            "precision",
            "AUROC",
            "spent",
        ),
        lines,
    )
    yield paragraph(
        "Sensitivity: of the examples of a class, how many are answered with it. "
        "Specificity: of the others, how many are not. Precision: of such answers, how "
        "many are right.",
        kind="faint",
    )
    yield table(
        "How good the probabilities are, with 95 % intervals",
        ("measure", "of all examples", "what it is"),
        [
            [name, figure(value, report.intervals.get(key), "{:.3f}".format), words]
            for key, value, name, words in (
                ("auroc", report.auroc, "AUROC", RANKED),
                ("brier", report.brier, "Brier score", DISTANT),
                ("log_loss", report.log_loss, "log-loss", SURPRISED),
            )
        ],
        left=3,
    )
    labels = [str(label) for label in report.labels]
    if few:
        counts = [
            [label, *(f"{n:,g}" for n in row)]
            for label, row in zip(labels, report.confusion, strict=True)
        ]
        yield table(
            "How many examples of each class (line) get each answer (column)",
            ("class", *labels),
            counts,
        )
        return
    often = sorted(
        (
            (-report.confusion[i][j], i, j)
            for i in range(len(labels))
            for j in range(len(labels))
            if i != j and report.confusion[i][j]
        ),
    )[:OFTEN]
    mistakes = [[labels[i], labels[j], f"{-n:,g}"] for n, i, j in often]
    if mistakes:
        heads = ("class", "taken for", "examples")
        yield table("What is mistaken most often", heads, mistakes, left=2)
