"""A report as one HTML page, for people who decide: it needs nothing from elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sensortree.display.colours import DARK, LIGHT
from sensortree.display.figures import between, money, says_nothing, share
from sensortree.display.markup import paragraph, section, table
from sensortree.display.report_answers import answers
from sensortree.display.report_asks import asks
from sensortree.display.report_outages import outages
from sensortree.display.report_saves import saves
from sensortree.display.report_spending import spends
from sensortree.display.svg import escaped
from sensortree.display.tree import TreeDisplay

UPRIGHT = 1000  # pixels of a picture that can be read on upright paper

STYLE = f"""
:root{{color-scheme:light dark;--ink:{LIGHT.ink};--paper:{LIGHT.paper};--faint:#595959;
--line:#d5d8dc;--panel:#f4f6f8;--ours:{LIGHT.buy}}}
@media (prefers-color-scheme:dark){{:root{{--ink:{DARK.ink};--paper:{DARK.paper};
--faint:#adb3ba;--line:#3a4048;--panel:#20252b;--ours:{DARK.buy}}}}}
*{{box-sizing:border-box}}
html{{-webkit-text-size-adjust:100%}}
body{{margin:0 auto;padding:1rem;max-width:68rem;background:var(--paper);color:var(--ink);
font:16px/1.5 Helvetica,Arial,'Liberation Sans',sans-serif;overflow-wrap:anywhere}}
h1{{font-size:1.6rem;line-height:1.2;margin:.5rem 0}}
h2{{font-size:1.2rem;margin:2rem 0 .5rem;border-bottom:1px solid var(--line)}}
p{{margin:.5rem 0;max-width:44rem}}
.faint{{color:var(--faint);font-size:.9rem}}
.cards{{display:grid;grid-template-columns:repeat(auto-fit,minmax(10rem,1fr));gap:.75rem;
margin:1rem 0}}
.cards div{{background:var(--panel);border-radius:6px;padding:.75rem}}
.cards b{{display:block;font-size:1.5rem;line-height:1.2}}
.cards span{{display:block;font-size:.85rem;color:var(--faint)}}
.wide{{overflow-x:auto;margin:.75rem 0}}
table{{border-collapse:collapse;font-variant-numeric:tabular-nums;overflow-wrap:normal}}
th,td{{padding:.25rem .75rem .25rem 0;text-align:left;vertical-align:top;
border-bottom:1px solid var(--line)}}
thead th{{font-weight:600;vertical-align:bottom}}
tbody th{{font-weight:400;min-width:6rem}}
.number{{text-align:right;white-space:nowrap}}
@media (max-width:40rem){{
table{{font-size:.85rem}}
th,td{{padding-right:.5rem}}
tbody th{{min-width:4.5rem}}
.number{{white-space:normal}}
}}
.between{{display:block;font-size:.8rem;color:var(--faint)}}
ul{{padding-left:1.25rem;margin:.25rem 0}}
li{{margin:.25rem 0}}
.rule{{color:var(--faint);font-size:.9rem}}
.beside{{width:100%;max-width:36rem;height:auto;display:block}}
.beside text{{fill:var(--ink)}}
.axis{{stroke:var(--faint);stroke-width:1}}
.limited,.learned{{fill:none;stroke:var(--ours);stroke-width:1.5}}
.learned{{stroke-dasharray:5 3}}
circle.limited,circle.learned{{fill:var(--ours);stroke:none}}
.dot{{stroke:var(--faint);stroke-width:1.5}}
circle.dot{{fill:var(--faint);stroke:none}}
.chosen{{stroke:var(--ours);stroke-width:2}}
circle.chosen{{fill:var(--ours);stroke:none}}
.beside text.words{{stroke:none}}
.beside text.chosen{{fill:var(--ours);font-weight:bold}}
dl{{display:grid;grid-template-columns:max-content 1fr;gap:.25rem 1rem;margin:.5rem 0}}
dt{{color:var(--faint)}}
dd{{margin:0}}
@page{{margin:15mm}}
@page landscape{{size:landscape}}
@media print{{
:root{{color-scheme:light;--ink:#000;--paper:#fff;--faint:#444;--line:#bbb;--panel:#fff;
--ours:{LIGHT.buy}}}
body{{max-width:none;padding:0;font-size:10.5pt}}
.cards div{{border:1px solid var(--line)}}
.wide{{overflow:visible}}
.wide svg{{max-width:100%;height:auto}}
.beside{{max-width:11cm}}
.landscape{{page:landscape}}
table{{font-size:9pt}}
h2{{break-after:avoid}}
.caption{{break-after:avoid}}
tr,li,.cards,svg,dl,.short{{break-inside:avoid}}
}}
"""

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
        ``lower`` and ``upper`` bound of the linear program's optimum.
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
    """

    report: Any
    tree: TreeDisplay
    rules: Sequence[Any]
    about: Any
    certificate: Mapping[str, float] | None
    data: str
    written: str
    digest: str
    title: str
    limits: Sequence[Any] = ()
    outages: Any = None
    curve: Any = None
    chosen: Any = None
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
        body = "\n".join(part for part in parts if part)
        return (
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width,initial-scale=1">\n'
            f"<title>{escaped(self.title)}</title>\n<style>{STYLE}</style>\n</head>\n"
            f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
        )

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
    inside = "".join(
        f"<div><b>{escaped(figure)}</b><span>{escaped(words)}</span></div>"
        for figure, words in cards
    )
    return f'<div class="cards">{inside}</div>'


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
    if page.certificate is not None and page.tree.tree.n_nodes:
        lower, upper = page.certificate["lower"], page.certificate["upper"]
        yield paragraph(
            f"The decisions come from a linear program whose least value is proven to lie "
            f"between {lower:.10g} and {upper:.10g}: learning found what it looked for. "
            f"What that is worth on new examples is what the intervals above say."
        )
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
    picture = page.tree.to_svg(zoom=False)
    note = paragraph(
        "From left to right: what is known, what is bought next, and where examples stop. "
        "A line is as wide as the share of examples that takes it; a dashed one is taken "
        "by none. On a phone the picture scrolls; the sentences above say the same.",
        kind="faint",
    )
    boxed = f'<div class="wide" tabindex="0">{picture}</div>'
    kind = "landscape" if _width(picture) > UPRIGHT else ""
    return section("The tree", [boxed, note], kind)


def _width(picture: str) -> float:
    """Width of a picture in pixels, as its first tag says."""
    said = re.search(r' width="([\d.]+)"', picture)
    return float(said[1]) if said else 0.0


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
    inside = "".join(
        f"<dt>{escaped(name)}</dt><dd>{escaped(fact)}</dd>"
        for name, fact in facts.items()
        if fact
    )
    yield f"<dl>{inside}</dl>"
