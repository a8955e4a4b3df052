"""`report_page_from_log`: what a log says about a policy, as one HTML page."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from sensortree.logs.estimate import Estimate
from sensortree.logs.evaluation import policy_of
from sensortree.logs.judgement import (
    Band,
    LogEvaluation,
    measures_of,
    support_words,
)
from sensortree.reports.html import (
    Page,
    Words,
    between,
    bold,
    bullets,
    figure,
    figures,
    money,
    paragraph,
    section,
    share,
    table,
    tree_section,
)
from sensortree.reports.tree_display import TreeDisplay

# What is assumed, each with what would make it wrong.
ASSUMED = (
    "Buying ended for no reason that is not in the log. A nurse who looks at a patient and "
    "orders nothing, and writes down nothing of what she saw, breaks this.",
    "A reading is the same whenever it is bought. A test that upsets the next one breaks "
    "this.",
    "Rows of every kind had a chance of all that the policy asks for them. A rule that "
    "never scans the young says nothing about scanning the young.",
    "The rows are such as will come, and the policy was not learned from them.",
)
# How a measure is written.
WRITTEN = {"error": share, "loss": money, "cost": money, "total": money}


def report_page_from_log(
    model: Any, judged: LogEvaluation, *, data: str = "", title: str = ""
) -> str:
    """Give what a log says about a policy as one HTML page, for people who decide.

    What it would answer and spend beside what was done, whom it would ask for what, what
    that rests on and assumes, how hidden reasons could change it; or why the log cannot
    tell.

    Parameters
    ----------
    model : Policy, fitted classifier or loaded model
    judged : LogEvaluation
        Of the same policy.
    data : str, default=""
        Name of the log, for the page.
    title : str, default=""
        Heading of the page; by default it says what is predicted.

    Returns
    -------
    html : str
        It loads nothing from elsewhere, and runs no script; it can be read on a phone and
        printed.

    Examples
    --------
    >>> import numpy as np
    >>> import sensortree
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1500, 2))
    >>> y = X[:, 0] + (np.abs(X[:, 0]) < 0.5) * X[:, 1] > 0
    >>> model = sensortree.SensorTreeClassifier(cost_weight=0.02).fit(X[:500], y[:500])
    >>> bought = np.column_stack([np.ones(1000, int), 2 * (rng.random(1000) < 0.6)])
    >>> judged = sensortree.evaluate_from_log(
    ...     model, X[500:], y[500:], acquired=bought)
    >>> page = sensortree.report_page_from_log(model, judged, data="log.csv")
    >>> page.startswith("<!DOCTYPE html>")
    True
    """
    policy = policy_of(model)
    tree = TreeDisplay.from_estimator(model, unit=policy.about.unit)
    return LogPage(policy, data, title, tree, judged).to_html()


@dataclass(frozen=True, eq=False)
class LogPage(Page):
    """All that the page shows.

    Attributes
    ----------
    tree : TreeDisplay
        The ways of the rows that the policy was learned from.
    judged : LogEvaluation
    """

    tree: TreeDisplay
    judged: LogEvaluation

    def to_html(self) -> str:
        """Give the page."""
        judged, target = self.judged, self.policy.about.target
        n_rows = f"{judged.support.n_rows:,} rows{self.source}"
        parts = [section("What this rests on", self._rests())]
        if judged.refused:
            why = f" {judged.refused} No estimate is given."
            sorry = bold("This log cannot tell what the policy would do.")
            parts.insert(0, paragraph(sorry, why))
        else:
            parts = [
                figures(self._cards()),
                section("Beside what was done", self._beside()),
                section("What it would ask", self._asks()),
                *parts,
            ]
        if judged.bands and not judged.refused:
            hidden = section("If hidden reasons had played a part", self._hidden())
            parts.append(hidden)
        if self.policy.tree.n_nodes:
            learned = "The shares are of the rows it was learned from."
            parts.append(tree_section(self.tree, learned))
        return self.whole(
            f"{target}: what the log says" if target else "What the log says",
            f"Judged from {n_rows}, for which another rule decided what was bought",
            parts,
            {"judged from": n_rows},
        )

    def _cards(self) -> Iterable[tuple[str, str]]:
        error, cost = self.judged.error, self.judged.cost
        right = between(1 - error.high, 1 - error.low, share)
        yield share(1 - error.value), f"right answers expected; 95 % interval {right}"
        sure = between(cost.low, cost.high, money)
        yield self.money(cost.value), f"to be spent on a row on average; {sure}"
        more = self.judged.difference.cost
        sign = -1 if more.value < 0 else 1
        words = "less" if sign < 0 else "more"
        low, high = sorted((sign * more.low, sign * more.high))
        sure = f"{words} than the log's rule spent; {between(low, high, money)}"
        yield self.money(sign * more.value), sure

    def _beside(self) -> Iterable[str]:
        sides = (self.judged, self.judged.logger, self.judged.difference)
        yield table(
            "Per row, with 95 % intervals",
            ("", "the policy", "the log's rule", "difference"),
            [
                [name, *(_figure(getattr(side, name), WRITTEN[name]) for side in sides)]
                for name in measures_of(self.judged)
            ],
        )
        yield paragraph(
            "Rows whose log went on speak, by weights, for rows like them whose log ended; "
            "what could be expected of those is learned too. The figures are right if "
            "either was learned rightly.",
            kind="faint",
        )

    def _asks(self) -> Iterable[str]:
        yield table(
            "Share of rows that would be asked for a sensor, and what is spent on it per "
            "row",
            ("sensor", "rows", "spend"),
            [
                [use.sensor, _figure(use.share, share), _figure(use.spend)]
                for use in self.judged.sensors
            ],
        )
        yield table(
            "Where rows would stop",
            ("place", "knows", "rows", "wrong answers", "seen in the log"),
            [
                [
                    use.place,
                    ", ".join(use.sensors) or "nothing",
                    _figure(use.share, share),
                    _figure(use.error, share),
                    f"{use.rows:,}",
                ]
                for use in self.judged.leaves
            ],
            left=2,
        )

    def _rests(self) -> Iterable[str]:
        yield table(
            "How much of the log speaks", ("", ""), support_words(self.judged.support)
        )
        yield from (paragraph(note) for note in self.judged.notes)
        yield paragraph("What is assumed:")
        yield bullets(ASSUMED)

    def _hidden(self) -> Iterable[str]:
        names = measures_of(self.judged)

        def ends(band: Band, name: str) -> str:
            low, high = getattr(band, name)
            return between(low, high, WRITTEN[name])

        yield table(
            "If what nobody wrote down had made the odds of stopping larger or smaller by "
            "up to so many times",
            ("odds", *names),
            [
                [f"× {band.odds:g}", *(ends(band, name) for name in names)]
                for band in self.judged.bands
            ],
        )


def _figure(one: Estimate, written: Callable[[float], str] = money) -> Words:
    return figure(one.value, (one.low, one.high), written)
