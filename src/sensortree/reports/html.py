"""Parts of the HTML pages of reports, and `Page`, what these have in common.

Whatever comes from data is escaped here, and nowhere else.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

from sensortree.policy.about import now
from sensortree.policy.policy import Policy
from sensortree.reports.drawing import DARK, LIGHT, escaped
from sensortree.reports.report_sums import Interval
from sensortree.reports.words import percent

if TYPE_CHECKING:
    from sensortree.reports.tree_display import TreeDisplay


@dataclass(frozen=True)
class Markup:
    """Text that is HTML already; plain text is escaped where it meets it."""

    html: str


Words = str | Markup
SHORT = 16  # lines of a table


def html(words: Words) -> str:
    """Words as HTML."""
    return words.html if isinstance(words, Markup) else escaped(words)


def join(*words: Words) -> Markup:
    """Words one after another."""
    return Markup("".join(map(html, words)))


def bold(words: Words) -> Markup:
    """Words that matter."""
    return Markup(f"<b>{html(words)}</b>")


def paragraph(*words: Words, kind: str = "") -> str:
    """A paragraph, of a class of its own or not."""
    of = f' class="{kind}"' if kind else ""
    return f"<p{of}>{join(*words).html}</p>"


def bullets(items: Iterable[Words]) -> str:
    """A list."""
    inside = "".join(f"<li>{html(item)}</li>" for item in items)
    return f"<ul>{inside}</ul>" if inside else ""


def section(title: str, parts: Iterable[str], kind: str = "") -> str:
    """A section with a heading, of a class of its own or not."""
    inside = "\n".join(part for part in parts if part)
    of = f' class="{kind}"' if kind else ""
    return f"<section{of}>\n<h2>{escaped(title)}</h2>\n{inside}\n</section>"


def table(
    caption: str, head: Sequence[str], lines: Iterable[Sequence[Words]], left: int = 1
) -> str:
    """A table whose first cells name the lines; `left` columns are set as words are."""
    heads = "".join(
        f'<th scope="col"{_side(i, left)}>{escaped(name)}</th>'
        for i, name in enumerate(head)
    )
    written = [_line(line, left) for line in lines]
    rows = "\n".join(written)
    # A short one is not torn apart on paper.
    kind = "wide short" if len(written) <= SHORT else "wide"
    told = escaped(caption)
    return (
        f'<p class="faint caption">{told}</p>\n'
        f'<div class="{kind}" tabindex="0"><table aria-label="{told}">\n'
        f"<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>"
    )


def _line(cells: Sequence[Words], left: int) -> str:
    first = f'<th scope="row">{html(cells[0])}</th>'
    rest = "".join(
        f"<td{_side(i, left)}>{html(cell)}</td>"
        for i, cell in enumerate(cells[1:], start=1)
    )
    return f"<tr>{first}{rest}</tr>"


def _side(column: int, left: int) -> str:
    return "" if column < left else ' class="number"'


UPRIGHT = 1000  # pixels of a picture that can be read on upright paper

STYLE = f"""
:root{{color-scheme:light dark;--ink:{LIGHT.ink};--paper:{LIGHT.paper};--faint:#595959;
--line:#d5d8dc;--panel:#f4f6f8;--ours:{LIGHT.buy}}}
@media (prefers-color-scheme:dark){{:root{{--ink:{DARK.ink};--paper:{DARK.paper};
--faint:#adb3ba;--line:#3a4048;--panel:#20252b;--ours:{DARK.buy}}}}}
@media print{{:root{{color-scheme:light;--ink:#000;--paper:#fff;--faint:#444;--line:#bbb;
--panel:#fff;--ours:{LIGHT.buy}}}}}
""" + files("sensortree.reports").joinpath("report.css").read_text("utf-8")


def figures(cards: Iterable[tuple[str, str]]) -> str:
    """Figures that matter most, each with words below."""
    inside = "".join(
        f"<div><b>{escaped(figure)}</b><span>{escaped(words)}</span></div>"
        for figure, words in cards
    )
    return f'<div class="cards">{inside}</div>'


def tree_section(tree: TreeDisplay, more: str) -> str:
    """The picture of a tree; one too wide for upright paper has a page of its own."""
    picture = tree.to_svg(zoom=False)
    note = paragraph(
        "From left to right: what is known, what is bought next, and where examples stop. "
        "A line is as wide as the share of examples that takes it; a dashed one is taken "
        f"by none. {more}",
        kind="faint",
    )
    boxed = f'<div class="wide" tabindex="0">{picture}</div>'
    width = re.search(r' width="([\d.]+)"', picture)  # in pixels, of its first tag
    kind = "landscape" if width and float(width[1]) > UPRIGHT else ""
    return section("The tree", [boxed, note], kind)


@dataclass(frozen=True, eq=False)
class Page:
    """What the pages of reports have in common."""

    policy: Policy
    data: str  # name of the rows that were looked at; "" if they have none
    title: str  # heading of the page; "" for the usual one

    @property
    def unit(self) -> str:
        """What prices are counted in."""
        return self.policy.about.unit

    @property
    def source(self) -> str:
        """Where the rows come from, behind their number."""
        return f" of {self.data}" if self.data else ""

    def money(self, amount: float) -> str:
        """An amount of money with its unit."""
        return f"{money(amount)} {self.unit}" if self.unit else money(amount)

    def whole(
        self, title: str, told: str, parts: Iterable[str], facts: Mapping[str, str]
    ) -> str:
        """The HTML page, which needs nothing from elsewhere.

        `title` is the usual heading, `told` says in a line what was looked at. The parts
        stand between the head and the facts about the model, of which `facts` come first.
        """
        about, written, title = self.policy.about, now(), escaped(self.title or title)
        rows = "" if about.rows is None else f"{about.rows:,} rows"
        facts = {
            **facts,
            "asked": about.target,
            "learned from": " of ".join(part for part in (rows, about.data) if part),
            "learned on": about.fitted.partition("T")[0],
            "prices in": about.unit,
            "classes": ", ".join(map(str, self.policy.labels)),
            "cost weight": f"{self.policy.cost_weight:g}",
            "report written": written,
            "model's digest": self.policy.digest,
        }
        named = "".join(
            f"<dt>{escaped(name)}</dt><dd>{escaped(fact)}</dd>"
            for name, fact in facts.items()
            if fact
        )
        date = written.partition("T")[0]
        body = [
            f"<h1>{title}</h1>",
            paragraph(f"{told}; written on {date}.", kind="faint"),
            *parts,
            section("Where this comes from", [f"<dl>{named}</dl>"]),
        ]
        inside = "\n".join(part for part in body if part)
        return (
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width,initial-scale=1">\n'
            f"<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n"
            f"<body>\n<main>\n{inside}\n</main>\n</body>\n</html>\n"
        )


NO_BREAK = "\u00a0"
PERCENT = f"{NO_BREAK}%"


def money(amount: float) -> str:
    """An amount of money: whole if it is, else to the cent; small ones to three digits."""
    size = abs(amount)
    if size >= 1000 or math.isclose(amount, round(amount), abs_tol=1e-9):
        text = f"{round(amount):,}"
    else:
        text = f"{amount:.2f}" if size >= 0.1 else f"{amount:.2g}"
    return text.replace("-", "−")


def share(number: float) -> str:
    """A share in percent, never torn apart."""
    return percent(number).replace(" ", NO_BREAK)


def between(low: float, high: float, written: Callable[[float], str]) -> str:
    """An interval; what both ends are counted in stands once."""
    least, most = written(low), written(high)
    if most.endswith(PERCENT):
        least = least.removesuffix(PERCENT)
    return f"{least} to {most}"


def says_nothing(low: float, high: float, written: Callable[[float], str]) -> bool:
    """Whether an interval says nothing, since both ends are written alike."""
    return written(low) == written(high)


def figure(
    value: float,
    interval: Interval | None,
    written: Callable[[float], str],
) -> Words:
    """A figure, with its interval below it."""
    if math.isnan(value):
        return "–"
    if interval is None or math.isnan(interval[0]) or says_nothing(*interval, written):
        return written(value)
    inside = escaped(between(*interval, written))
    return join(written(value), Markup(f'<span class="between">{inside}</span>'))


@dataclass(frozen=True)
class Shown:
    """How a figure of a report is shown: what it is called, and in what it is counted."""

    words: str
    written: Callable[[float], str]
    times: float = 1.0  # how many of what it is counted in are 1 in the report
    unit: str = ""

    @property
    def named(self) -> str:
        """What it is called, with its unit."""
        return f"{self.words} ({self.unit})" if self.unit else self.words

    def told(self, value: float) -> str:
        """The figure with its unit."""
        text = self.written(self.times * value)
        return f"{text} {self.unit}" if self.unit else text

    def sure(self, words: str, interval: Interval) -> str:
        """Words with an interval behind them, if that says anything."""
        low, high = (self.times * end for end in interval)
        if math.isnan(low) or says_nothing(low, high, self.written):
            return words
        return f"{words}; {between(low, high, self.written)}"

    def figure(self, value: float, interval: Interval) -> Words:
        """The figure without its unit, its interval below it."""
        low, high = (self.times * end for end in interval)
        return figure(self.times * value, (low, high), self.written)
