"""Error against budget, ours with the published curves beside them, as SVG.

    python experiments/figures.py             what reproduce.py wrote to docs/results
    python experiments/figures.py FOLDER      or elsewhere

`reproduce_<data>.svg` has the paper's methods on its trees, `reproduce_<data>_cascade.svg`
cascades with linear leaves and the curves read off their publication,
`reproduce_forest.svg` many features.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import matplotlib
from lines import FOLDER, read
from tables import (
    LEAVES,
    METHODS,
    PRINTED,
    TITLES,
    Point,
    curve,
    ends,
    paper,
    published,
)

from sensortree import TradeoffCurve

matplotlib.use("svg")
import matplotlib.pyplot as plt

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


def draw(folder: Path) -> None:
    """Draw every figure that there are lines for."""
    matplotlib.rcParams["svg.hashsalt"] = "sensortree"
    matplotlib.rcParams["svg.fonttype"] = "none"
    lines = read(folder / "reproduce.jsonl")
    for data in dict.fromkeys(i["data"] for i in lines):
        if ends(lines, data, "ours") is not None:
            trees(lines, data, folder)
        if curve(lines, data, "linear", "LP on a cascade, tight"):
            cascade(lines, data, folder)
    many(lines, read(folder / "forest.jsonl"), folder)


def trees(lines: list[dict[str, Any]], data: str, folder: Path) -> None:
    """The paper's methods with the text's leaves and with ours; its printed points."""
    figure, panels = plt.subplots(
        1, 2, figsize=(8.4, 3.4), layout="constrained", sharey=True
    )
    known = {i["data"]: i for i in paper()["table2"]}.get(data)
    for axes, leaves in zip(panels, ("text", "ours"), strict=True):
        span = ends(lines, data, leaves)
        for method in (*METHODS, "CEGB"):
            kind = "trees" if method == "CEGB" else leaves
            line(axes, curve(lines, data, kind, method), COLOURS[method], method)
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
    save(figure, folder / f"reproduce_{slug(data)}.svg")


def cascade(lines: list[dict[str, Any]], data: str, folder: Path) -> None:
    """Cascades with linear leaves, solid; as published, dashed.

    Of one class against the rest where there are several: nearer to the published.
    """
    figure, axes = plt.subplots(figsize=(5.2, 3.6), layout="constrained")
    leaves = "rest" if ends(lines, data, "rest") else "linear"
    span = ends(lines, data, leaves)
    for theirs, (ours, colour) in CASCADES.items():
        points = curve(lines, data, leaves, ours)
        if points and span:
            line(axes, [*points, span[0]], colour, f"{theirs}, ours")
        given = published(data, theirs)
        if given:
            costs, errors = zip(*given, strict=True)
            label = f"{theirs}, published"
            axes.plot(costs, errors, "s--", ms=3, lw=1, color=colour, label=label)
    axes.set(
        title=f"{data}: cascade, {LEAVES[leaves]} leaves",
        xlabel="mean cost",
        ylabel="test error",
    )
    axes.legend(fontsize=7)
    axes.grid(alpha=0.3)
    save(figure, folder / f"reproduce_{slug(data)}_cascade.svg")


def many(
    lines: list[dict[str, Any]], of_forest: list[dict[str, Any]], folder: Path
) -> None:
    """ASTC and CSTC on Forest, solid for class 2 against the rest; published dashed."""
    figure, axes = plt.subplots(figsize=(5.2, 3.6), layout="constrained")
    for method, colour in MANY.items():
        for label, style in (("binary", "o-"), ("7 classes", "^:")):
            points = sorted(
                (i["cost"], i["error"])
                for i in of_forest
                if (i["method"], i["label"]) == (method, label)
            )
            if points:
                costs, errors = zip(*points, strict=True)
                name = f"{method}, {label}"
                axes.plot(costs, errors, style, ms=3, lw=1, color=colour, label=name)
        for given in paper()["curve"]:
            if (given["data"], given["method"]) == ("forest", method):
                costs, errors = zip(*given["points"], strict=True)
                name = f"{method}, published"
                axes.plot(costs, errors, "s--", ms=3, lw=1, color=colour, label=name)
    for method in ("ours", "LP, as published"):
        line(axes, curve(lines, "forest", "ours", method), COLOURS[method], method)
    axes.set(title="Forest", xlabel="mean number of features", ylabel="test error")
    axes.legend(fontsize=6)
    axes.grid(alpha=0.3)
    save(figure, folder / "reproduce_forest.svg")


def line(axes: Any, points: list[Point], colour: str, label: str) -> None:
    """Draw a lower hull."""
    if points:
        costs, errors = zip(*TradeoffCurve.from_points(points).hull(), strict=True)
        axes.plot(costs, errors, "o-", ms=3, lw=1.2, color=colour, label=label)


def slug(data: str) -> str:
    """Part of a file's name."""
    return data.replace(" (OpenML)", "-openml")


def save(figure: Any, path: Path) -> None:
    """Write the same bytes for the same data."""
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
