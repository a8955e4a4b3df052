"""A model's tree as a notebook shows it."""

from __future__ import annotations

from typing import Any

from sensortree.display.svg import boxed
from sensortree.display.tree import TreeDisplay

LARGEST = 100_000  # bytes; a notebook keeps every picture that it ever showed


def tree_in_notebook(model: Any, before: str) -> str:
    """Part of an HTML page that shows the tree of a fitted or a loaded model.

    It stands behind what is shown before, and both together are not too large.
    """
    display = TreeDisplay.from_estimator(model)
    for tips in (True, False):
        picture = display.to_svg(tips=tips)
        html = before + boxed(picture)
        if len(html.encode()) < LARGEST:
            return html
    return (
        f"{before}<p>The tree has {model.tree_.n_leaves} leaves: too large to be shown "
        f"here. <code>to_html()</code> gives a page that shows it.</p>"
    )
