"""Parts of an HTML page. Whatever comes from data is escaped here, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sensortree.display.svg import escaped


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
    """A table whose first cells name the lines.

    Parameters
    ----------
    caption : str
    head : sequence of str
    lines : iterable of sequences of words
    left : int, default=1
        How many of the first columns are set to the left, as words are.
    """
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
