"""An explanation as part of an HTML page: the row's way, and the ways it did not take."""

from __future__ import annotations

from typing import Any

from sensortree.display.path import PathDisplay
from sensortree.display.svg import boxed, escaped, page
from sensortree.display.words import percent, range_words

NOTE = (
    "The thick way is the row's. A margin is the least of the scores that speak for a way; "
    "only that of the way that was decided is above 0. A double click zooms into the "
    "picture, and out again."
)
HEADS = ("way", "margin", "price", "to a leaf", "training rows")


def explained(explanation: Any) -> str:
    """Part of an HTML page that says why one row went its way.

    Parameters
    ----------
    explanation : Explanation
    """
    picture = PathDisplay.from_explanation(explanation).to_svg()
    steps = "".join(
        f"<li>{'<br>'.join(escaped(line) for line in step)}</li>"
        for step in explanation.steps
    )
    return "\n".join(
        [
            f"<p><b>{escaped(explanation.summary)}</b></p>",
            f"<ol>{steps}</ol>",
            boxed(picture),
            "<details><summary>Scores and margins</summary>",
            '<div style="overflow-x:auto">',
            *(_fork(fork) for fork in explanation.forks),
            f"<pre>{escaped(explanation.details)}</pre>",
            "</div></details>",
        ]
    )


def explained_page(explanation: Any, title: str) -> str:
    """HTML page of its own that says why one row went its way."""
    return page(explained(explanation), title, NOTE)


def _fork(fork: Any) -> str:
    """Table of the ways out of a fork; the one that was taken is bold."""
    which = f"node{'s' if len(fork.nodes) > 1 else ''} {range_words(fork.nodes)}"
    known = ", ".join(fork.known) or "nothing"
    dear = "; what was decided is too dear" if fork.rerouted else ""
    caption = f"{which}, known: {known}; spent {fork.spent:.4g}{dear}"
    return "\n".join(
        [
            '<table style="border-spacing:1em 0;text-align:right">',
            f'<caption style="text-align:left">{escaped(caption)}</caption>',
            f"<tr>{''.join(f'<th>{head}</th>' for head in HEADS)}</tr>",
            *(_line(branch) for branch in fork.branches),
            "</table>",
        ]
    )


def _line(branch: Any) -> str:
    names = ", ".join(purchase.sensor for purchase in branch.bought)
    price = sum(purchase.price for purchase in branch.bought)
    low, high = branch.cost
    cells = [
        f"buy {names}" if names else "stop",
        f"{branch.margin:+.3g}",
        f"{price:.4g}",
        f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}",
        "–" if branch.share is None else percent(branch.share),
    ]
    weight = ";font-weight:bold" if branch.taken else ""
    tags = "".join(f"<td>{escaped(cell)}</td>" for cell in cells)
    return f'<tr style="text-align:right{weight}">{tags}</tr>'
