"""What a policy asks and of whom, for the page of a report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from sensortree.display.figures import PERCENT, money
from sensortree.display.markup import Markup, Words, bold, html, join, paragraph, table
from sensortree.display.svg import escaped
from sensortree.display.tree import TreeDisplay
from sensortree.display.vertices import Vertex
from sensortree.display.words import percent

if TYPE_CHECKING:
    from sensortree.display.report_page import ReportPage

LINES = 14  # ends of the tree that are told in words
TOLD = 3  # answers of an end that are told
LISTED = 30  # sensors up to which those that are never bought are listed
NOBODY = (
    "Nothing is bought for anybody: at this cost weight, training found nothing that is "
    "worth its price. If that is not what you want, say what a wrong answer costs in money."
)


def asks(page: ReportPage) -> Iterable[str]:
    """The way of examples through the tree, in words; then every sensor."""
    whole = page.tree
    folded = TreeDisplay(whole.tree, whole.sensors, whole.leaf_share, max_leaves=LINES)
    vertices = folded.vertices
    unit = page.about.unit
    yield _told(page, vertices, vertices[0])
    untold = [v for v in vertices if not v.share]
    if untold:
        yield paragraph("Ways that none of these examples took are left out.")
    if any(rule.words for rule in page.rules):
        yield paragraph(
            "“Roughly when” is a summary. The decision weighs all that is known at that "
            "point; the condition is the one on a single value that tells best who of "
            "these examples goes which way, and the percentage says for how many it does.",
            kind="faint",
        )
    if not any(use.share for use in page.report.sensors):
        yield paragraph(NOBODY)
    priced = dict(zip(page.tree.sensors.names, page.tree.sensors.costs, strict=True))
    varying = set(page.tree.sensors.varying.tolist())
    lines = [
        (
            use.sensor,
            f"{money(priced[use.sensor])}{' on average' if i in varying else ''}",
            percent(use.share),
            money(use.spend),
        )
        for i, use in enumerate(page.report.sensors)
        if use.share or len(page.report.sensors) <= LISTED
    ]
    never = len(page.report.sensors) - len(lines)
    if never:
        lines.append((f"{never} others", "", "0 %", "0"))
    yield table(
        "What is bought, and how often",
        (
            "what",
            f"price ({unit})" if unit else "price",
            "of the examples",
            "spent per example",
        ),
        lines,
    )


def _told(page: ReportPage, vertices: Sequence[Vertex], first: Vertex) -> str:
    """A vertex and all below it as a list within a list."""
    below = [v for v in vertices if v.parent is first and v.share]
    words = html(_way(page, first))
    inside = "".join(_told(page, vertices, v) for v in below)
    nested = f"<ul>{inside}</ul>" if inside else ""
    item = f"<li>{words}{nested}</li>"
    return f"<ul>{item}</ul>" if first.parent is None else item


def _way(page: ReportPage, vertex: Vertex) -> Markup:
    """What is decided on the way to a vertex, by how many, and what comes of it."""
    who: Words = "Everyone"
    if vertex.parent is not None:
        who = join(bold(percent(vertex.share)), " of all")
    bought = ", ".join(vertex.bought)
    price = page.money(vertex.price) if vertex.price else "free"
    if vertex.gathered > 1:
        did: Words = f" take one of {vertex.gathered} rarer ways"
    elif bought and vertex.parent is None:
        did = join(": ", bold(bought), f" ({price})")
    elif bought:
        did = join(" buy ", bold(bought), f" ({price})")
    elif vertex.parent is None:
        did = ": nothing is bought"
    else:
        did = " are handed over to a person" if vertex.refers else " stop"
    result: Words = f". {_outcome(page, vertex)}" if vertex.is_leaf else "."
    return join(who, did, result, _rule_words(page, vertex))


def _outcome(page: ReportPage, vertex: Vertex) -> str:
    """What the examples of an end are answered, and how often that is right."""
    found = [page.report.leaves[leaf] for leaf in vertex.leaves]
    total = sum(use.share for use in found)
    if not total:
        return "No example."
    answers: dict[Any, float] = {}
    for use in found:
        for label, share in use.answers.items():
            answers[label] = answers.get(label, 0.0) + use.share * share / total
    error = sum(use.share * use.error for use in found if use.rows) / total
    order = sorted(answers, key=lambda label: -answers[label])
    given = [label for label in order if answers[label]]
    if len(given) == 1:
        said = f"Answered {given[0]}"
    else:
        told = ", ".join(f"{a} ({percent(answers[a])})" for a in given[:TOLD])
        more = len(given) - TOLD
        said = f"Answered {told}{f' and {more} more' if more > 0 else ''}"
    if vertex.refers:
        said = said.replace("Answered", "Best guess", 1)
    n_rows = sum(use.rows for use in found)
    return f"{said}; right for {percent(1 - error)} of {n_rows:,}."


def _rule_words(page: ReportPage, vertex: Vertex) -> Words:
    if vertex.parent is None or vertex.gathered > 1:
        return ""
    end = vertex.nodes[0] if vertex.nodes else ~vertex.leaves[0]
    rule = page.rule_of.get((vertex.parent.nodes[0], end))
    if rule is None or rule.words is None:
        return ""
    words = f" Roughly when {rule.words} ({percent(rule.agrees)})."
    words = words.replace(" %", PERCENT)
    return Markup(f'<span class="rule">{escaped(words)}</span>')
