"""`ReportPage`: a report as one HTML page, for people who decide."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any

import numpy as np

from sensortree.policy.about import Comparison, OutageReport
from sensortree.reports.chart import COLOURS, GREY, Chart, Series
from sensortree.reports.drawing import escaped
from sensortree.reports.html import (
    PERCENT,
    Markup,
    Page,
    Shown,
    Words,
    between,
    bold,
    bullets,
    figure,
    figures,
    html,
    join,
    money,
    paragraph,
    says_nothing,
    section,
    share,
    table,
    tree_section,
)
from sensortree.reports.layout import Vertex
from sensortree.reports.report import BaselineUse, CostReport, LimitedUse
from sensortree.reports.report_sums import MEASURES, Interval
from sensortree.reports.rules import plain_rules
from sensortree.reports.tables import WIDEST, mistaken
from sensortree.reports.tradeoff import Choice, TradeoffCurve
from sensortree.reports.tree_display import TreeDisplay
from sensortree.reports.words import percent
from sensortree.sensors.table import Table

LINES = 14  # ends of the tree that are told in words
TOLD = 3  # answers of an end that are told
LISTED = 30  # sensors up to which those that are never bought are listed
MOST_OUTAGES = 20  # sensors at most

NOBODY = (
    "Nothing is bought for anybody: at this cost weight, training found nothing that is "
    "worth its price."
)
PRICE_IT = (
    " If that is not what you want, say what each kind of mistake costs in money: where "
    "one class is rare, no sensor may change the most likely answer."
)
PERSONS = "Nothing is bought for anybody: beside a person, no sensor saves its price."
GUESSED = " Examples that are handed over count with their best guess."
NO_BASELINES = (
    "This model holds no classifiers that buy the same for all, so there is nothing to "
    "compare with: its method learns none, or its file is older than they are."
)
SUMMARY = (
    "“Roughly when” is a summary. The decision weighs all that is known at that point. Of "
    "the conditions on a single value, this one tells best which way these examples go; "
    "the percentage says for how many it is right."
)
RECOGNISED = (
    "Sensitivity: of the examples of a class, how many are answered with it. Specificity: "
    "of the others, how many are not. Precision: of such answers, how many are right."
)
# Measures of probabilities: name, and what it is.
PROBABILITIES = {
    "auroc": (
        "AUROC",
        "how often the likelier of two is the right one; 0.5 is chance, 1 the best",
    ),
    "brier": (
        "Brier score",
        "squared distance from the truth, halved; 0 if sure and right, 1 if wrong",
    ),
    "log_loss": (
        "log-loss",
        "minus the logarithm of the right class's probability; 0 is the best",
    ),
}
BASELINES = {
    "everything": "buying everything",
    "best fixed set": "the best fixed set",
    "nothing": "buying nothing",
}
# What may be new about a value.
NEVER = {
    "level": "a value never seen",
    "range": "a number far from those seen",
    "missing": "missing, and never was",
}


@dataclass(frozen=True, eq=False)
class ReportPage(Page):
    """All that the page of a report shows."""

    table: Table  # the rows, for rules in plain words
    report: CostReport  # of these rows
    # What knows more about its training: `certificate_`, `outage_report_`, `curve_`
    # with `chosen_`, `comparison_`, as far as it has them.
    model: Any = None
    # The same rows where none may cost more than a limit, the last without one.
    limits: Sequence[LimitedUse] = ()

    def to_html(self) -> str:
        """Give the page."""
        target = self.policy.about.target
        what = f"{target}: what" if target else "What"
        told = f"{self.report.n_rows:,} examples{self.source}"
        parts = [
            self._seen_before(),
            *(paragraph(f"Careful: {one}") for one in self.report.alone),
            figures(self._cards()),
            section("What it asks, and of whom", self._asks()),
            section("What that saves", self._saves()),
            section("What spending less or more would give", self._spends()),
            section("How well it answers", self._answers()),
            self._outages(),
            section("How sure this is", self._sure()),
            self._tree_section(),
        ]
        return self.whole(
            f"{what} is asked, and what that is worth",
            f"{told}; asked is {target}" if target else told,
            parts,
            {"reported on": told},
        )

    # the top ------------------------------------------------------------------------------

    def _seen_before(self) -> str:
        """A warning where the examples seem to be those that the model was learned from."""
        if not self.data or self.data != self.policy.about.data:
            return ""
        return paragraph(
            f"The model was learned from a file of this name, {self.data}. If it is the "
            f"same, expect less of new examples: give a table that the model has not seen."
        )

    def _cards(self) -> Iterable[tuple[str, str]]:
        report, referral = self.report, self.report.referral
        right, (low, high) = "right answers", report.intervals["error"]
        error = report.error
        if referral is not None:
            each = "at a price that is not given"
            if referral.cost is not None:
                each = (
                    f"which costs {self._lost.told(referral.cost)} per example of all"
                )
            yield share(referral.share), f"handed over to a person, {each}"
            right, error = "right among those answered", referral.error
            low, high = referral.error_interval
        if not math.isnan(error):
            sure = between(1 - high, 1 - low, share)
            yield share(1 - error), f"{right}; 95 % interval {sure}"
        yield (
            self.money(report.cost),
            f"spent on an example on average; everything would cost "
            f"{self.money(report.everything)}",
        )
        measure, rest = "cost", ""
        if self._shows_loss:
            words = "lost on an example on average, by mistakes"
            if self.policy.loss.score is not None:
                words = self._lost.words
            words += " and persons" if referral is not None else ""
            yield (
                self._lost.told(report.loss),
                self._lost.sure(words, report.intervals["loss"]),
            )
        if self._in_prices:
            measure, rest = "total", ", with what mistakes and persons cost"
            rest = rest if referral is not None else ", with what mistakes cost"
        worth = 1 / report.cost_weight if measure == "total" else 1.0
        prices = Shown("price", money, worth, self.unit)
        for use in report.baselines:
            if use.name == "everything" and use.saved_intervals:
                words = f"saved on an example against buying everything{rest}"
                sure = prices.sure(words, use.saved_intervals[measure])
                yield prices.told(use.saved[measure]), sure
        low, high = report.intervals["auroc"]
        three = "{:.3f}".format
        if low < high and not says_nothing(low, high, three) and referral is None:
            yield f"{report.auroc:.3f}", f"AUROC; {between(low, high, three)}"

    # what is lost -------------------------------------------------------------------------

    @property
    def _shows_loss(self) -> bool:
        """Whether the share of wrong answers does not tell all that is lost."""
        report = self.report
        persons = report.referral is not None
        return report.has_loss and (report.mistake_cost is None or persons)

    @property
    def _in_prices(self) -> bool:
        """Whether losses are given, in the unit of prices."""
        report = self.report
        alike = math.isclose(report.cost_weight, 1) and self.policy.loss.score is None
        return report.has_loss and (report.mistake_cost is not None or alike)

    @property
    def _lost(self) -> Shown:
        """How the mean loss is shown: in the unit of prices, if it can be."""
        score = self.policy.loss.score
        if score is not None:
            name = score.name.replace("_", "-")
            return Shown(f"mean {name}", "{:.3f}".format)
        if not self._in_prices:
            return Shown("mean loss", money)
        return Shown("mean loss", money, 1 / self.report.cost_weight, self.unit)

    @property
    def _guessed(self) -> str:
        """What stands behind shares that count best guesses, if there are any."""
        return GUESSED if self.report.referral is not None else ""

    # what it asks -------------------------------------------------------------------------

    def _asks(self) -> Iterable[str]:
        """The way of examples through the tree, in words; then every sensor."""
        sensors, uses, unit = self.policy.sensors, self.report.sensors, self.unit
        folded = [use.share for use in self.report.leaves if use.leaf >= 0]
        vertices = TreeDisplay(
            self.policy.tree, sensors, folded, max_leaves=LINES
        ).vertices
        rules = {
            (
                rule.fork,
                rule.end,
            ): f" Roughly when {rule.words} ({percent(rule.agrees)})."
            for rule in plain_rules(self.policy, self.table)
            if rule.words
        }
        yield f"<ul>{self._told(vertices, vertices[0], rules)}</ul>"
        if not all(vertex.share for vertex in vertices):
            yield paragraph("Ways that none of these examples took are left out.")
        if rules:
            yield paragraph(SUMMARY, kind="faint")
        if not any(use.share for use in uses):
            yield paragraph(self._nobody)
        lines = [
            (
                use.sensor,
                f"{money(price)}{' on average' if i in sensors.varying else ''}",
                percent(use.share),
                money(use.spend),
            )
            for i, (use, price) in enumerate(zip(uses, sensors.costs, strict=True))
            if use.share or len(uses) <= LISTED
        ]
        if len(uses) > len(lines):
            lines.append((f"{len(uses) - len(lines)} others", "", "0 %", "0"))
        price = f"price ({unit})" if unit else "price"
        head = ("what", price, "of the examples", "spent per example")
        yield table("What is bought, and how often", head, lines)

    @property
    def _nobody(self) -> str:
        """Why nothing is bought, and what to do about it."""
        if self.report.referral is not None and self.report.referral.share > 0:
            return PERSONS
        return NOBODY if self.report.has_loss else NOBODY + PRICE_IT

    def _told(
        self,
        vertices: Sequence[Vertex],
        first: Vertex,
        rules: Mapping[tuple[int, int], str],
    ) -> str:
        """A vertex, and all below it as a list in the list."""
        below = [v for v in vertices if v.parent is first and v.share]
        inside = "".join(self._told(vertices, vertex, rules) for vertex in below)
        rule: Words = ""
        if first.parent is not None and first.gathered == 1:
            end = first.nodes[0] if first.nodes else ~first.leaves[0]
            words = rules.get((first.parent.nodes[0], end), "").replace(" %", PERCENT)
            rule = (
                Markup(f'<span class="rule">{escaped(words)}</span>') if words else ""
            )
        nested = f"<ul>{inside}</ul>" if inside else ""
        return f"<li>{html(join(self._way(first), rule))}{nested}</li>"

    def _way(self, vertex: Vertex) -> Markup:
        """What is decided on the way to a vertex, by how many, and what comes of it."""
        root = vertex.parent is None
        who = "Everyone" if root else join(bold(percent(vertex.share)), " of all")
        price = self.money(vertex.price) if vertex.price else "free"
        did: Words = " are handed over to a person" if vertex.refers else " stop"
        if root and vertex.refers:
            did = " is handed over to a person"
        if vertex.gathered > 1:
            did = f" take one of {vertex.gathered} rarer ways"
        elif vertex.bought:
            bought = bold(", ".join(vertex.bought))
            over = ", and then a person" if vertex.refers else ""
            did = join(": " if root else " buy ", bought, f" ({price}){over}")
        elif root and not vertex.refers:
            did = ": nothing is bought"
        return join(who, did, f". {self._outcome(vertex)}" if vertex.is_leaf else ".")

    def _outcome(self, vertex: Vertex) -> str:
        """What the examples of an end are answered, and how often that is right."""
        found = [self.report.leaves[leaf] for leaf in vertex.leaves]
        total = sum(use.share for use in found)
        if not total:
            return "No example."
        answers: dict[Any, float] = {}
        for use in found:
            for label, part in use.answers.items():
                answers[label] = answers.get(label, 0.0) + use.share * part / total
        error = sum(use.share * use.error for use in found if use.rows) / total
        order = sorted(answers, key=lambda label: -answers[label])
        given = [label for label in order if answers[label]]
        told = str(given[0])
        if given[1:]:
            told = ", ".join(f"{a} ({percent(answers[a])})" for a in given[:TOLD])
            told += f" and {len(given) - TOLD} more" if given[TOLD:] else ""
        said = "Best guess" if vertex.refers else "Answered"
        n_rows = sum(use.rows for use in found)
        over = sum(use.share * use.referred for use in found if use.rows) / total
        guesses = ""
        if over and not vertex.refers:
            guesses = (
                f" {percent(over)} are handed over; their best guesses are counted."
            )
        return f"{said} {told}; right for {percent(1 - error)} of {n_rows:,}.{guesses}"

    # what that saves ----------------------------------------------------------------------

    @property
    def _known(self) -> list[BaselineUse]:
        """Baselines that could be measured."""
        return [use for use in self.report.baselines if not math.isnan(use.total)]

    def _saves(self) -> Iterable[str]:
        """Sentences and a table of the policy beside its baselines."""
        report = self.report
        if not report.baselines:
            yield paragraph(NO_BASELINES)
            return
        alike: dict[tuple[str, ...], list[BaselineUse]] = {}
        for use in self._known:
            alike.setdefault(use.sensors, []).append(use)
        yield bullets(self._verdict(uses) for uses in alike.values())
        yield bullets(
            f"{use.name}: {use.note}." for use in report.baselines if use.note
        )
        head = ["on the same examples", "wrong answers", "price"]
        if report.referral is not None:
            head[1:2] = ["handed over", "wrong, of the answered"]
        if self._shows_loss:
            head.insert(-1, "loss")
        head += ["together", "saved by decisions"] if report.cost_weight else []
        lines = [self._compared(bold("this policy"), report)]
        lines += [self._compared(use.name, use) for use in self._known]
        yield table(self._together(), head, lines)
        for use in self._known:
            if use.name == "best fixed set":
                which = ", ".join(use.sensors) or "nothing"
                yield paragraph(
                    f"The best fixed set is: {which}. Of the sets that training compared, "
                    f"it has the least error and weighted cost if all examples get the "
                    f"same.",
                    kind="faint",
                )

    def _together(self) -> str:
        """Caption: what stands in the column "together"."""
        each, report = "Mean per example, and its 95 % interval", self.report
        if not report.cost_weight:
            return f"{each}."
        if report.mistake_cost is not None:
            mistake = f"{self.money(report.mistake_cost)} for a wrong answer"
            if self._shows_loss:
                mistake = f"loss: {mistake}, and what persons cost"
            return f"{each}. Together is price plus {mistake}."
        worth = 1 / report.cost_weight
        times = "" if math.isclose(worth, 1) else f"{money(worth)} times the "
        return f"{each}. Together is price plus {times}loss."

    def _compared(self, name: Words, line: CostReport | BaselineUse) -> list[Words]:
        """A line of the table: the policy, or a baseline and what is saved against it."""
        between, referral = line.intervals, self.report.referral
        cells = [name, figure(line.error, between["error"], share)]
        if referral is not None and isinstance(line, CostReport):
            answered = figure(referral.error, referral.error_interval, share)
            cells[1:] = [share(referral.share), answered]
        elif referral is not None:
            cells.insert(1, share(0.0))
        if self._shows_loss:
            cells.append(self._lost.figure(line.loss, between["loss"]))
        cells.append(figure(line.cost, between["cost"], money))
        if self.report.cost_weight:
            cells.append(self._in_money(line.total, between["total"]))
            saved: Words = ""
            if isinstance(line, BaselineUse):
                saved = self._in_money(
                    line.saved["total"], line.saved_intervals["total"]
                )
            cells.append(saved)
        return cells

    def _in_money(self, total: float, interval: Interval) -> Words:
        """A total, or a difference of two, in the unit of prices."""
        worth = 1 / self.report.cost_weight
        return figure(total * worth, (interval[0] * worth, interval[1] * worth), money)

    def _verdict(self, uses: Sequence[BaselineUse]) -> Markup:
        """What the policy does better or worse than a baseline, in a sentence."""
        use, names = uses[0], [BASELINES.get(use.name, use.name) for use in uses]
        what = bold(f"Against {', which is also '.join(names)}")
        differs = (use.saved[m] or any(use.saved_intervals[m]) for m in MEASURES)
        if not any(differs):
            return join(what, ": it buys the same, and answers the same.")
        found = [f"it {self._cheaper(use)}"]
        if self._shows_loss:
            found.append(_lower(use, "loss", self._lost))
        elif self.report.referral is None:
            found.append(_righter(use))
        if self._in_prices:
            worth = 1 / self.report.cost_weight
            together = Shown("sum of price and loss", money, worth, self.unit)
            found.append(_lower(use, "total", together))
        return join(what, f": {'; '.join(found)}.")

    def _cheaper(self, use: BaselineUse) -> str:
        saved = use.saved["cost"]
        low, high = use.saved_intervals["cost"]
        if abs(saved) < 1e-9:
            return "costs the same"
        word, ends = ("less", (low, high)) if saved > 0 else ("more", (-high, -low))
        sure = "" if says_nothing(*ends, money) else f" ({between(*ends, money)})"
        return f"costs {self.money(abs(saved))} {word} per example{sure}"

    # what spending less or more would give ------------------------------------------------

    def _spends(self) -> Iterable[str]:
        """The chart: the policy, its baselines, and lines of what else could be spent."""
        report, limits = self.report, self.limits
        name, shown, of_curve = "error", Shown("wrong answers", share), 1.0
        if self._shows_loss:
            name, shown = "loss", self._lost
        elif report.has_loss and report.mistake_cost is not None:
            of_curve = 1 / (report.mistake_cost * report.cost_weight)
        measure, written = shown.named, shown.written
        curve: TradeoffCurve | None = getattr(self.model, "curve_", None)
        chosen: Choice | None = getattr(self.model, "chosen_", None)
        series = []
        if len(limits) > 1:
            cost = np.array([use.cost for use in limits])
            height = shown.times * np.array([getattr(use, name) for use in limits])
            series.append(Series("this tree with less to spend", cost, height))
        if curve is not None:
            heights = of_curve * shown.times * curve.error
            label = "trees of other cost weights"
            series.append(Series(label, curve.mean_cost, heights, dashed=True))
        lines: list[CostReport | BaselineUse] = [*self._known, report]
        for line in lines:
            label, colour = "this policy", COLOURS[0]
            if isinstance(line, BaselineUse):
                label, colour = line.name, GREY
            value, (low, high) = getattr(line, name), line.intervals[name]
            cost = np.array([line.cost])
            height, low, high = shown.times * np.array([[value], [low], [high]])
            point = Series(label, cost, height, low, high, colour, named=True)
            series.append(point)
        chart = Chart(series, measure, self.unit, written=written, from_zero=True)
        yield f'<figure style="margin:0">{chart.to_svg()}</figure>'
        captions = [
            f"Points are of these {report.n_rows:,} examples, with 95 % intervals."
        ]
        if len(limits) > 1:
            first = limits[0]
            captions.append(
                f"The solid line is this tree on the same examples, if none may cost more "
                f"than a limit, from {self.money(first.limit or 0.0)} ({measure} "
                f"{written(shown.times * getattr(first, name))}) up to no limit. Decisions "
                f"are as they were learned; an example that cannot pay goes where training "
                f"served such examples best. A tree learned for less money may do better."
            )
        elif report.cost:
            captions.append(
                "What this tree would do with less to spend cannot be told: these examples "
                "lack values that it would buy."
            )
        if curve is None or chosen is None:
            captions.append(
                "What trees of other cost weights would cost and answer was not measured "
                "when the model was learned; fitted for a budget, a model keeps that curve."
            )
        else:
            captions.append(
                f"The dashed line was measured when the model was learned, on training "
                f"rows held out in turn: each dot is a tree learned at another cost "
                f"weight. This model is the one at {chosen.cost_weight:.3g}, which there "
                f"cost {self.money(chosen.mean_cost)} on average, with {measure} of "
                f"{written(of_curve * shown.times * chosen.error)}."
            )
        yield from (paragraph(caption, kind="faint") for caption in captions)

    # how well it answers ------------------------------------------------------------------

    def _answers(self) -> Iterable[str]:
        """Every class against the others, and what is mistaken for what."""
        report = self.report
        few = len(report.labels) <= WIDEST
        shares = ("sensitivity", "specificity", "precision")
        lines: list[list[Words]] = [
            [
                str(use.label),
                f"{use.rows:,}",
                *(
                    figure(getattr(use, n), use.intervals[n] if few else None, share)
                    for n in shares
                ),
                "–" if math.isnan(use.auroc) else f"{use.auroc:.3f}",
                money(use.cost),
            ]
            for use in report.classes
        ]
        yield table(
            f"Every class against the others{', with 95 % intervals' if few else ''}",
            ("class", "examples", *shares, "AUROC", "spent"),
            lines,
        )
        yield paragraph(RECOGNISED + self._guessed, kind="faint")
        measures: list[list[Words]] = []
        for key, (name, words) in PROBABILITIES.items():
            value, interval = getattr(report, key), report.intervals.get(key)
            measures.append([name, figure(value, interval, "{:.3f}".format), words])
        yield table(
            "How good the probabilities are, with 95 % intervals",
            ("measure", "of all examples", "what it is"),
            measures,
            left=3,
        )
        if few:
            labels = list(map(str, report.labels))
            yield table(
                "How many examples of each class (line) get each answer (column)",
                ("class", *labels),
                [
                    [label, *(f"{n:,g}" for n in row)]
                    for label, row in zip(labels, report.confusion, strict=True)
                ],
            )
            return
        often = [[one, other, f"{n:,g}"] for one, other, n in mistaken(report)]
        if often:
            heads = ("class", "taken for", "examples")
            yield table("What is mistaken most often", heads, often, left=2)

    # how sure this is ---------------------------------------------------------------------

    def _outages(self) -> str:
        """A line for each sensor that the tree buys, the one that is missed most first."""
        told: OutageReport | None = getattr(self.model, "outage_report_", None)
        if told is None or not told.outages:
            return ""
        weight = self.report.cost_weight
        found = sorted(told.outages.items(), key=lambda one: -one[1].lost)
        lines = [
            [
                sensor,
                "go another way, which was learned for them"
                if outage.taken
                else "take the best way that is left, or stop",
                share(outage.share),
                self.money(outage.lost / weight) if weight else f"{outage.lost:.3g}",
            ]
            for sensor, outage in found[:MOST_OUTAGES]
        ]
        counted = "price and wrong answers together" if weight else "loss"
        counted = "price and loss together" if weight and self._shows_loss else counted
        listed = table(
            f"Examples whose way needs the sensor, and what all examples lose on average "
            f"without it, {counted}; measured in training, on rows held out.",
            ("without", "blocked examples", "share", "each example loses"),
            lines,
            left=2,
        )
        more = len(found) - len(lines)
        rest = f"Without one of {more} other sensors, less is lost." if more else ""
        parts = [listed, paragraph(rest) if rest else ""]
        return section("If a sensor is not available", parts)

    def _sure(self) -> Iterable[str]:
        report, about = self.report, self.policy.about
        yield paragraph(
            f"All figures are of {report.n_rows:,} examples. If new examples are like "
            f"these, and the model was not learned from them, 19 of 20 intervals hold the "
            f"truth. They do not say how another training would differ. Shares have "
            f"Wilson's interval; means, and what is saved on the same examples, "
            f"percentiles of 1,000 times examples drawn anew (of more than 10,000 the "
            f"normal interval); the AUROC has DeLong's."
        )
        if about.held_out is not None:
            yield paragraph(
                f"When it was learned, on rows that its decisions had not seen: "
                f"{about.score.partition(': ')[2]}.{self._guessed}"
            )
        comparison: Comparison | None = getattr(self.model, "comparison_", None)
        if comparison is not None:
            yield paragraph(_taken(comparison))
        proof = getattr(self.model, "certificate_", None)
        if is_dataclass(proof) and not isinstance(proof, type):
            proof = asdict(proof)
        if isinstance(proof, dict) and self.policy.tree.n_nodes:
            yield paragraph(_proven(proof))
        stopped = [use for use in report.leaves if use.leaf < 0 and use.rows]
        if stopped:
            yield paragraph(
                f"{share(sum(use.share for use in stopped))} of the examples could pay for "
                f"no leaf within the limit that the model was given, and were answered "
                f"with what they had."
            )
        if report.unseen:
            yield table(
                "What training never saw, among what was bought here",
                ("column", "sensor", "what", "examples", "training had"),
                [
                    [u.column, u.sensor, NEVER[u.what], f"{u.n_rows:,}", str(u.seen)]
                    for u in report.unseen
                ],
            )

    # the tree -----------------------------------------------------------------------------

    def _tree_section(self) -> str:
        """The picture; one that is too wide for upright paper has a page of its own."""
        policy, report = self.policy, self.report
        if not policy.tree.n_nodes:
            known = ", ".join(report.leaves[0].sensors) or "nothing"
            same = paragraph(f"There are no decisions: everyone gets {known}.")
            return section("The tree", [same])
        leaves = [use for use in report.leaves if use.leaf >= 0]
        tree = TreeDisplay(
            policy.tree,
            policy.sensors,
            [use.share for use in leaves],
            [1 - use.error for use in leaves],
            leaf_classes=[
                [use.share * part for part in use.classes.values()] for use in leaves
            ],
            classes=policy.classes,
            unit=self.unit,
        )
        return tree_section(
            tree, "On a phone the picture scrolls; the sentences above say the same."
        )


def _lower(use: BaselineUse, measure: str, shown: Shown) -> str:
    """By how much the policy has less, or more, of something than a baseline."""
    low, high = use.saved_intervals[measure]
    saved, low, high = (shown.times * n for n in (use.saved[measure], low, high))
    of = f" {shown.unit}" if shown.unit else ""
    if low <= 0 <= high:
        ends = between(-high, -low, shown.written)
        return f"no clear difference in the {shown.words} ({ends}{of})"
    word, ends = "less", between(low, high, shown.written)
    if saved < 0:
        word, ends = "more", between(-high, -low, shown.written)
    return f"the {shown.words} is {shown.written(abs(saved))}{of} {word} ({ends})"


def _righter(use: BaselineUse) -> str:
    fewer = use.saved["error"]
    low, high = use.saved_intervals["error"]
    if low <= 0 <= high:
        least, most = (f"{100 * end:+.1f}".replace("-", "−") for end in (-high, -low))
        return f"no clear difference in wrong answers ({least} to {most} percentage points)"
    word, ends = ("fewer", (low, high)) if fewer > 0 else ("more", (-high, -low))
    return (
        f"{100 * abs(fewer):.1f} percentage points {word} wrong answers "
        f"({100 * ends[0]:.1f} to {100 * ends[1]:.1f})"
    )


def _taken(compared: Comparison) -> str:
    """What was compared, which was taken, and what that says of its score."""
    others = len(compared.risk.keys() - {compared.chosen})
    text = f'"{compared.chosen}" was chosen'
    if others:
        text += f" of {others + 1} candidates that were compared on these rows"
    if compared.optimism:
        text += (
            f"; the best of several looks too good by {compared.optimism:.4f}, and the "
            f"error is corrected for that"
        )
    if compared.removed:
        text += f". Not needed, and removed: {', '.join(compared.removed)}"
    return f"{text}."


def _proven(certificate: Mapping[str, Any]) -> str:
    """Between which bounds the optimum lies, and of which decisions."""
    lower, upper = certificate["lower"], certificate["upper"]
    speaks_of = certificate.get("speaks_of")  # files of before do not say
    of = f" This is proven about {speaks_of}." if speaks_of else ""
    return (
        f"The decisions come from a linear program whose least value is proven to lie "
        f"between {lower:.10g} and {upper:.10g}: learning found what it looked for.{of} "
        f"What that is worth on new examples is what the intervals above say."
    )
