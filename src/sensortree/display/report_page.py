"""A report as one HTML page, for people who decide: it needs nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sensortree.display.figures import between, money, says_nothing, share
from sensortree.display.markup import paragraph, section, table
from sensortree.display.page_parts import figures, named, tree_section, whole_page
from sensortree.display.report_answers import answers
from sensortree.display.report_asks import asks
from sensortree.display.report_outages import outages
from sensortree.display.report_saves import saves
from sensortree.display.report_spending import spends
from sensortree.display.svg import escaped
from sensortree.display.tree import TreeDisplay

# What may be new about a value.
NEVER = {
    "level": "a value never seen",
    "range": "a number far from those seen",
    "missing": "missing, and never was",
}


@dataclass(frozen=True, eq=False)
class ReportPage:
    """All that a report's page shows.

    Attributes
    ----------
    report : CostReport
    tree : TreeDisplay
        The ways that the rows took.
    rules : sequence of Rule
    about : About
        Unit, target, data and date of the training.
    certificate : mapping or None
        ``lower`` and ``upper`` bound of the linear program's optimum, and which decisions
        it ``speaks_of``.
    data : str
        Name of the rows that were reported on.
    written : str
        When, as 2026-01-31T12:00:00Z.
    digest : str
        Of the policy.
    title : str
    limits : sequence of LimitedUse
        The same examples where none may cost more than a limit, the last without one.
    outages : OutageReport or None
    curve, chosen : TradeoffCurve and Choice, or None
        What the model was picked from, as measured in training.
    comparison : Comparison or None
        What the fit compared on held-out rows, and what it took.
    """

    report: Any
    tree: TreeDisplay
    rules: Sequence[Any]
    about: Any
    certificate: Mapping[str, Any] | None
    data: str
    written: str
    digest: str
    title: str
    limits: Sequence[Any] = ()
    outages: Any = None
    curve: Any = None
    chosen: Any = None
    comparison: Any = None
    rule_of: Mapping[tuple[int, int], Any] = field(init=False)

    def __post_init__(self) -> None:
        rules = {(rule.fork, rule.end): rule for rule in self.rules}
        object.__setattr__(self, "rule_of", rules)

    def to_html(self) -> str:
        """Give the page."""
        parts = [
            f"<h1>{escaped(self.title)}</h1>",
            paragraph(_subtitle(self), kind="faint"),
            _seen_before(self),
            _cards(self),
            section("What it asks, and of whom", asks(self)),
            section("What that saves", saves(self)),
            section("What spending less or more would give", spends(self)),
            section("How well it answers", answers(self)),
            _outages(self),
            section("How sure this is", _sure(self)),
            _tree(self),
            section("Where this comes from", _source(self)),
        ]
        return whole_page(self.title, parts)

    def money(self, amount: float) -> str:
        """An amount of money with its unit."""
        unit = f" {self.about.unit}" if self.about.unit else ""
        return f"{money(amount)}{unit}"


# the top ----------------------------------------------------------------------------------


def _subtitle(page: ReportPage) -> str:
    """What was looked at, in a line."""
    source = f" of {page.data}" if page.data else ""
    asked = f"; asked is {page.about.target}" if page.about.target else ""
    date = page.written.partition("T")[0]
    return f"{page.report.n_rows:,} examples{source}{asked}; written on {date}."


def _seen_before(page: ReportPage) -> str:
    """A warning where the examples seem to be those that the model was learned from."""
    if not page.data or page.data != page.about.data:
        return ""
    return paragraph(
        f"The model was learned from a file of this name, {page.data}. If it is the same, "
        f"expect less of new examples: give a table that the model has not seen."
    )


def _cards(page: ReportPage) -> str:
    report = page.report
    low, high = report.intervals["error"]
    cards = [
        (
            share(1 - report.error),
            f"right answers; 95 % interval {between(1 - high, 1 - low, share)}",
        ),
        (
            page.money(report.cost),
            f"spent on an example on average; everything would cost "
            f"{page.money(report.everything)}",
        ),
    ]
    for use in report.baselines:
        if use.name == "everything" and use.saved_intervals:
            low, high = use.saved_intervals["cost"]
            sure = (
                ""
                if says_nothing(low, high, money)
                else f"; {between(low, high, money)}"
            )
            words = f"saved on an example against buying everything{sure}"
            cards.append((page.money(use.saved["cost"]), words))
    low, high = report.intervals["auroc"]
    if low < high and not says_nothing(low, high, "{:.3f}".format):
        cards.append(
            (f"{report.auroc:.3f}", f"AUROC; {between(low, high, '{:.3f}'.format)}")
        )
    return figures(cards)


# how sure ---------------------------------------------------------------------------------


def _sure(page: ReportPage) -> Iterable[str]:
    report, about = page.report, page.about
    yield paragraph(
        f"All figures are of {report.n_rows:,} examples. If they are such as will come, "
        f"and the model was not learned from them, the truth lies in 19 of 20 of the "
        f"intervals. These do not say how another training would differ. Shares have "
        f"Wilson's interval; means, and what is saved on the same examples, percentiles of "
        f"1,000 times examples drawn anew (of more than 10,000 the normal interval); the "
        f"AUROC has DeLong's."
    )
    if about.held_out is not None:
        yield paragraph(
            f"When it was learned, on rows that its decisions had not seen: "
            f"{about.score.partition(': ')[2]}."
        )
    if page.comparison is not None:
        yield paragraph(_taken(page.comparison))
    if page.certificate is not None and page.tree.tree.n_nodes:
        yield paragraph(_proven(page.certificate))
    stopped = [use for use in report.leaves if use.leaf < 0 and use.rows]
    if stopped:
        yield paragraph(
            f"{share(sum(use.share for use in stopped))} of the examples could pay for no "
            f"leaf within the limit that the model was given, and were answered with what "
            f"they had."
        )
    if report.unseen:
        yield table(
            "What training never saw, among what was bought here",
            ("column", "sensor", "what", "examples", "training had"),
            [
                [
                    one.column,
                    one.sensor,
                    NEVER[one.what],
                    f"{one.n_rows:,}",
                    str(one.seen),
                ]
                for one in report.unseen
            ],
        )


def _taken(compared: Any) -> str:
    """What was compared, which was taken, and what that says of its score."""
    others = len(compared.risk.keys() - {compared.chosen})
    said = f'Taken was "{compared.chosen}"'
    if others:
        said += (
            f", compared with {others} other{'s' if others > 1 else ''} on these rows"
        )
    if compared.optimism:
        said += (
            f"; the best of several looks too good by {compared.optimism:.4f}, and the "
            f"error is corrected for that"
        )
    if compared.removed:
        said += f". Not needed, and removed: {', '.join(compared.removed)}"
    return f"{said}."


def _proven(certificate: Mapping[str, Any]) -> str:
    """Between which bounds the optimum lies, and of which decisions."""
    lower, upper = certificate["lower"], certificate["upper"]
    speaks_of = certificate.get("speaks_of")  # files of before do not say
    of = f" This is proven of {speaks_of}." if speaks_of else ""
    return (
        f"The decisions come from a linear program whose least value is proven to lie "
        f"between {lower:.10g} and {upper:.10g}: learning found what it looked for.{of} "
        f"What that is worth on new examples is what the intervals above say."
    )


def _outages(page: ReportPage) -> str:
    if page.outages is None or not page.outages.outages:
        return ""
    return section("If a sensor is not available", outages(page))


# the tree, and the source -----------------------------------------------------------------


def _tree(page: ReportPage) -> str:
    """The picture; one that is too wide for upright paper has a page of its own."""
    if not page.tree.tree.n_nodes:
        known = ", ".join(page.report.leaves[0].sensors) or "nothing"
        same = paragraph(f"There are no decisions: everyone gets {known}.")
        return section("The tree", [same])
    return tree_section(
        page.tree, "On a phone the picture scrolls; the sentences above say the same."
    )


def _source(page: ReportPage) -> Iterable[str]:
    about = page.about
    rows = "" if about.rows is None else f"{about.rows:,} rows"
    learned = " of ".join(part for part in (rows, about.data) if part)
    facts = {
        "reported on": f"{page.report.n_rows:,} examples"
        + (f" of {page.data}" if page.data else ""),
        "asked": about.target,
        "learned from": learned,
        "learned on": about.fitted.partition("T")[0],
        "prices in": about.unit,
        "classes": ", ".join(str(label) for label in page.report.labels),
        "cost weight": f"{page.report.cost_weight:g}",
        "report written": page.written,
        "model's digest": page.digest,
    }
    yield named(facts)
