"""All that the page of a report shows, put together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from typing import Any

import numpy as np

from sensortree.policy.about import now
from sensortree.policy.policy import Policy
from sensortree.reports.baselines import LimitedUse
from sensortree.reports.beside import Line, Point, beside
from sensortree.reports.drawing import escaped
from sensortree.reports.html import (
    PERCENT,
    Interval,
    Markup,
    Words,
    between,
    bold,
    bullets,
    figure,
    figures,
    html,
    join,
    money,
    named,
    paragraph,
    says_nothing,
    section,
    share,
    table,
    tree_section,
    whole_page,
)
from sensortree.reports.layout import Vertex
from sensortree.reports.report import CostReport
from sensortree.reports.rules import plain_rules
from sensortree.reports.tree_display import TreeDisplay
from sensortree.reports.words import percent
from sensortree.sensors.table import Table


def page_of(
    policy: Policy,
    table: Table,
    report: CostReport,
    model: Any = None,
    *,
    limits: Sequence[LimitedUse] = (),
    data: str = "",
    title: str = "",
) -> ReportPage:
    """The page of a report on the rows of a table.

    Parameters
    ----------
    policy : Policy
    table : Table
        The rows, for rules in plain words.
    report : CostReport
        Of these rows.
    model : object, default=None
        What knows more about its training: `certificate_`, `outage_report_`, `curve_`
        with `chosen_`, `comparison_`, as far as it has them.
    limits : sequence of LimitedUse, default=()
        The same rows with less to spend.
    data, title : str, default=""
    """
    certificate = getattr(model, "certificate_", None)
    proof = certificate if isinstance(certificate, dict) else None
    if is_dataclass(certificate) and not isinstance(certificate, type):
        proof = asdict(certificate)
    return ReportPage(
        report,
        tree_of(policy, report),
        plain_rules(policy, table),
        policy.about,
        proof,
        data,
        now(),
        policy.digest,
        title or _title(policy.about.target),
        limits,
        getattr(model, "outage_report_", None),
        getattr(model, "curve_", None),
        getattr(model, "chosen_", None),
        getattr(model, "comparison_", None),
    )


def tree_of(policy: Policy, report: CostReport) -> TreeDisplay:
    """The tree with the ways of the rows of a report."""
    leaves = [use for use in report.leaves if use.leaf >= 0]
    classes = [[use.share * share for share in use.classes.values()] for use in leaves]
    return TreeDisplay(
        policy.tree,
        policy.sensors,
        [use.share for use in leaves],
        [1 - use.error for use in leaves],
        leaf_classes=np.array(classes),
        classes=policy.classes,
        unit=policy.about.unit,
    )


def _title(target: str) -> str:
    """Heading of a page that was given none."""
    if not target:
        return "What is asked, and what that is worth"
    return f"{target}: what is asked, and what that is worth"


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
        for label, part in use.answers.items():
            answers[label] = answers.get(label, 0.0) + use.share * part / total
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


MOST_OUTAGES = 20  # sensors at most
LEARNED = "go another way, which was learned for them"
LEFT = "take the best way that is left, or stop"


def outages(page: ReportPage) -> Iterable[str]:
    """A line for each sensor that the tree buys, the one that is missed most first."""
    weight = page.report.cost_weight
    found = sorted(page.outages.outages.items(), key=lambda one: -one[1].lost)
    head = ["without", "those held up", "are", "each example loses"]
    lines = [
        [
            sensor,
            LEARNED if outage.taken else LEFT,
            share(outage.share),
            page.money(outage.lost / weight) if weight else f"{outage.lost:.3g}",
        ]
        for sensor, outage in found[:MOST_OUTAGES]
    ]
    counted = "price and wrong answers together" if weight else "loss"
    yield table(
        f"Examples whose way needs the sensor, and what all examples then have more on "
        f"average, {counted}; measured in training, on rows held out.",
        head,
        lines,
        left=2,
    )
    if len(found) > MOST_OUTAGES:
        yield paragraph(
            f"{len(found) - MOST_OUTAGES} sensors are missed less than these."
        )


WORDS = {
    "everything": "buying everything",
    "best fixed set": "the best fixed set",
    "nothing": "buying nothing",
}


def saves(page: ReportPage) -> Iterable[str]:
    """Sentences and a table of the policy beside its baselines."""
    report = page.report
    known = [use for use in report.baselines if not math.isnan(use.total)]
    if not report.baselines:
        yield paragraph(
            "This model does not hold classifiers that buy the same for all, so nothing "
            "can be said here: it is of a method that learns none, or from before they "
            "were kept."
        )
        return
    yield bullets(_verdict(page, uses) for uses in _alike(known))
    yield bullets(f"{use.name}: {use.note}." for use in report.baselines if use.note)
    worth = 1 / report.cost_weight if report.cost_weight else math.inf
    together = math.isfinite(worth)
    head = ["on the same examples", "wrong answers", "price"]
    if shows_loss(report):
        head.insert(2, "loss")
    head += ["together", "saved by decisions"] if together else []
    lines = [_compared(page, "this policy", report, None, worth)]
    lines += [_compared(page, use.name, use, use, worth) for use in known]
    yield table(_counted(page, worth), head, lines)
    for use in known:
        if use.name == "best fixed set":
            which = ", ".join(use.sensors) or "nothing"
            yield paragraph(
                f"The best fixed set is: {which}. Of the sets that training compared, it "
                f"has the least error and weighted cost if all examples get the same.",
                kind="faint",
            )


def _counted(page: ReportPage, worth: float) -> str:
    """What stands in the column "together"."""
    each, report = "Mean per example, and its 95 % interval", page.report
    if not math.isfinite(worth):
        return f"{each}."
    if report.mistake_cost is not None:
        mistake = page.money(report.mistake_cost)
        return f"{each}. Together is price plus {mistake} for a wrong answer."
    times = "" if math.isclose(worth, 1) else f"{money(worth)} times the "
    return f"{each}. Together is price plus {times}loss."


def _compared(
    page: ReportPage, name: str, line: Any, use: Any, worth: float
) -> list[Words]:
    """A line of the table of baselines; `use` is None for the policy."""
    intervals = line.intervals
    cells: list[Words] = [
        bold(name) if use is None else name,
        figure(line.error, intervals.get("error"), share),
    ]
    if shows_loss(page.report):
        cells.append(figure(line.loss, intervals.get("loss"), money))
    cells.append(figure(line.cost, intervals.get("cost"), money))
    if math.isfinite(worth):
        cells.append(figure(*_times(line.total, intervals.get("total"), worth), money))
        if use is None:
            cells.append("")
        else:
            saved = _times(use.saved["total"], use.saved_intervals.get("total"), worth)
            cells.append(figure(*saved, money))
    return cells


def _times(
    value: float, interval: Interval | None, factor: float
) -> tuple[float, Interval | None]:
    if interval is None:
        return value * factor, None
    return value * factor, (interval[0] * factor, interval[1] * factor)


def _alike(known: Sequence[Any]) -> list[list[Any]]:
    """Baselines, those that buy the same together."""
    found: dict[tuple[str, ...], list[Any]] = {}
    for use in known:
        found.setdefault(use.sensors, []).append(use)
    return list(found.values())


def _verdict(page: ReportPage, uses: Sequence[Any]) -> Markup:
    """What the policy does better or worse than a baseline, in a sentence."""
    use, names = uses[0], [WORDS.get(use.name, use.name) for use in uses]
    what = f"Against {', which is also '.join(names)}"
    saved, fewer = use.saved["cost"], use.saved["error"]
    low, high = use.saved_intervals["error"]
    if not (saved or fewer or low or high):
        return join(bold(what), ": it buys the same, and answers the same.")
    return join(bold(what), f": it {_cheaper(page, use)}; {_righter(use)}.")


def _cheaper(page: ReportPage, use: Any) -> str:
    saved = use.saved["cost"]
    low, high = use.saved_intervals["cost"]
    if abs(saved) < 1e-9:
        return "costs the same"
    word, ends = ("less", (low, high)) if saved > 0 else ("more", (-high, -low))
    sure = "" if says_nothing(*ends, money) else f" ({between(*ends, money)})"
    return f"costs {page.money(abs(saved))} {word} per example{sure}"


def _righter(use: Any) -> str:
    fewer = use.saved["error"]
    low, high = use.saved_intervals["error"]
    if low <= 0 <= high:
        return (
            f"no clear difference in wrong answers ({_points(-high)} to {_points(-low)} "
            f"percentage points)"
        )
    word, ends = ("fewer", (low, high)) if fewer > 0 else ("more", (-high, -low))
    return (
        f"{100 * abs(fewer):.1f} percentage points {word} wrong answers "
        f"({100 * ends[0]:.1f} to {100 * ends[1]:.1f})"
    )


def _points(share: float) -> str:
    return f"{100 * share:+.1f}".replace("-", "−")


@dataclass(frozen=True)
class Height:
    """What stands upright in the picture: shares of wrong answers, or a mean loss.

    Attributes
    ----------
    name : {"error", "loss"}
        The measure of a report.
    words : str
        The same for people.
    of_curve : float
        What a curve's measure is multiplied by.
    """

    name: str
    words: str
    of_curve: float

    def written(self, value: float) -> str:
        """A value for people."""
        return share(value) if self.name == "error" else money(value)


def shows_loss(report: Any) -> bool:
    """Whether some wrong answers are worse than others."""
    return report.has_loss and report.mistake_cost is None


def height_of(page: ReportPage) -> Height:
    """Loss where some wrong answers are worse than others, else their share."""
    report, unit = page.report, page.about.unit
    if shows_loss(report):
        of = f" ({unit})" if unit and math.isclose(report.cost_weight, 1) else ""
        return Height("loss", f"mean loss{of}", 1.0)
    mistake = report.mistake_cost * report.cost_weight if report.has_loss else 1.0
    return Height("error", "wrong answers", 1 / mistake)


def spends(page: ReportPage) -> Iterable[str]:
    """The curve, with the policy and its baselines, and what its lines are."""
    report, height = page.report, height_of(page)
    points = [
        Point(name, use.cost, getattr(use, height.name), *_interval(use, height.name))
        for name, use in (("this policy", report), *_known(report))
    ]
    points[0] = replace(points[0], chosen=True)
    lines = []
    if len(page.limits) > 1:
        ends = [(use.cost, getattr(use, height.name)) for use in page.limits]
        lines.append(Line("this tree with less to spend", tuple(ends), "limited"))
    if page.curve is not None:
        found = zip(page.curve.mean_cost, page.curve.error, strict=True)
        ends = sorted((float(c), height.of_curve * float(e)) for c, e in found)
        lines.append(Line("trees of other cost weights", tuple(ends), "learned"))
    picture = beside(points, page.about.unit, lines, height.words, height.written)
    yield f'<figure style="margin:0">{picture}</figure>'
    yield from _captions(page, height)


def _known(report: Any) -> list[tuple[str, Any]]:
    """Baselines that could be measured."""
    return [(use.name, use) for use in report.baselines if not math.isnan(use.total)]


def _interval(use: Any, measure: str) -> tuple[float, float]:
    value = getattr(use, measure)
    low, high = use.intervals.get(measure, (value, value))
    return low, high


def _captions(page: ReportPage, height: Height) -> Iterable[str]:
    """What was measured how."""
    yield paragraph(
        f"Points are of these {page.report.n_rows:,} examples, with 95 % intervals.",
        kind="faint",
    )
    if len(page.limits) > 1:
        first = page.limits[0]
        yield paragraph(
            f"The solid line is this tree on the same examples, if none may cost more than "
            f"a limit, from {page.money(first.limit)} ({height.words} "
            f"{height.written(getattr(first, height.name))}) up to no limit. Decisions are "
            f"as they were learned, and who cannot pay goes where training served such "
            f"best; a tree that is learned for less money may do better.",
            kind="faint",
        )
    elif page.report.cost:
        yield paragraph(
            "What this tree would do with less to spend cannot be told: these examples "
            "lack values that it would buy.",
            kind="faint",
        )
    if page.curve is None:
        yield paragraph(
            "What trees of other cost weights would cost and answer was not measured when "
            "the model was learned; fitted for a budget, a model keeps that curve.",
            kind="faint",
        )
        return
    chosen = page.chosen
    yield paragraph(
        f"The dashed line was measured when the model was learned, on training rows held "
        f"out in turn: each dot is a tree learned at another cost weight. This model is "
        f"the one at {chosen.cost_weight:.3g}, which there cost "
        f"{page.money(chosen.mean_cost)} on average, with {height.words} of "
        f"{height.written(height.of_curve * chosen.error)}.",
        kind="faint",
    )
