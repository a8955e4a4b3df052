"""Error against budget, ours with the published curves beside them.

`<data>` has the paper's methods on its trees, `<data>_cascade` cascades with linear leaves
and the curves read off their publication, `forest` many features.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from matplotlib.figure import Figure

from experiments.figures import finish, hull, panel
from experiments.results import Line
from experiments.studies.forest import LABELS
from experiments.studies.paper.grid import TREES
from experiments.studies.paper.tables import (
    LEAVES,
    PRINTED,
    TITLES,
    curve,
    ends,
    paper,
    published,
)
from experiments.tables import of, points

COLOURS = {
    "Myopic": "#d55e00",
    "AM": "#e69f00",
    "LP, as published": "#999999",
    "ours": "#0072b2",
    "static subset": "#009e73",
    "CEGB": "#cc79a7",
}
CASCADES = {
    "Myopic": ("Myopic", "#d55e00"),
    "AM": ("AM on a cascade", "#e69f00"),
    "LP": ("LP on a cascade, tight", "#0072b2"),
}
MANY = {"ASTC": "#009e73", "CSTC": "#e69f00", "ASTC soft": "#56b4e9"}


def drawn(lines: list[Line], of_forest: list[Line]) -> Iterator[tuple[str, Figure]]:
    """Every figure that there are lines for, by name."""
    for data in dict.fromkeys(i["data"] for i in lines):
        if ends(lines, data, "ours") is not None:
            yield data, trees(lines, data)
        if curve(lines, data, "linear", "LP on a cascade, tight"):
            yield f"{data}_cascade", cascade(lines, data)
    yield "forest", many(lines, of_forest)


def trees(lines: list[Line], data: str) -> Figure:
    """The paper's methods with the text's leaves and with ours; its printed points."""
    figure = Figure(figsize=(8.4, 3.4), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    known = {i["data"]: i for i in paper()["table2"]}.get(data)
    for axes, leaves in zip(panels, ("text", "ours"), strict=True):
        span = ends(lines, data, leaves)
        for method in (*TREES, "CEGB"):
            kind = "trees" if method == "CEGB" else leaves
            found = curve(lines, data, kind, method)
            hull(axes, found, COLOURS[method], method, lw=1.2)
            if known and span and data != "sun" and method in PRINTED:
                share = known["share"][PRINTED[method]] / 100
                cost = span[0][0] + share * (span[1][0] - span[0][0])
                axes.plot(cost, known["target"], "x", color=COLOURS[method], ms=7)
        words = "as the paper's text" if leaves == "text" else "ours"
        axes.set(title=f"leaves {words}", xlabel="mean cost")
        axes.grid(alpha=0.3)
    panels[0].set(ylabel="test error")
    panels[0].legend(fontsize=7, title="crosses: printed", title_fontsize=7)
    figure.suptitle(TITLES.get(data, data), fontsize=10)
    return figure


def cascade(lines: list[Line], data: str) -> Figure:
    """Cascades with linear leaves, solid; as published, dashed.

    Of one class against the rest where there are several: nearer to the published.
    """
    leaves = "rest" if ends(lines, data, "rest") else "linear"
    figure, axes = panel(title=f"{data}: cascade, {LEAVES[leaves]} leaves")
    span = ends(lines, data, leaves)
    for theirs, (ours, colour) in CASCADES.items():
        found = curve(lines, data, leaves, ours)
        if found and span:
            hull(axes, [*found, span[0]], colour, f"{theirs}, ours", lw=1.2)
        traced(axes, published(data, theirs), colour, f"{theirs}, published")
    finish(axes, fontsize=7)
    return figure


def many(lines: list[Line], of_forest: list[Line]) -> Figure:
    """ASTC and CSTC on Forest, solid for class 2 against the rest; published dashed."""
    figure, axes = panel(title="Forest", xlabel="mean number of features")
    styles = dict(zip(LABELS.values(), ("o-", "^:"), strict=True))
    for method, colour in MANY.items():
        for label, style in styles.items():
            found = points(of(of_forest, method=method, label=label))
            traced(axes, found, colour, f"{method}, {label}", style)
        for given in of(paper()["curve"], data="forest", method=method):
            traced(axes, given["points"], colour, f"{method}, published")
    for method in ("ours", "LP, as published"):
        found = curve(lines, "forest", "ours", method)
        hull(axes, found, COLOURS[method], method, lw=1.2)
    finish(axes, fontsize=6)
    return figure


def traced(
    axes: Any, found: list[Any], colour: str, label: str, style: str = "s--"
) -> None:
    """Draw points as they are, if there are any."""
    if found:
        costs, errors = zip(*found, strict=True)
        axes.plot(costs, errors, style, ms=3, lw=1, color=colour, label=label)
