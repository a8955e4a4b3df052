"""Tables and pictures of what `ablation.py` measured, for the page docs/ablation.md.

python experiments/ablation_report.py
"""

from __future__ import annotations

from typing import Any

import matplotlib
import numpy as np
from ablation import RESULTS, tasks
from datasets import FILES
from lines import read

from sensortree import TradeoffCurve

matplotlib.use("svg")
import matplotlib.pyplot as plt

IMAGES = RESULTS.parent.parent / "images"
# Errors printed in the paper's Table 2, with its budget shares in percent.
PRINTED = {"landsat": (0.15, 75), "letter": (0.40, 49)}
DRAWN = {
    "as published": "#999999",
    "AM x 5, as published": "#e69f00",
    "all": "#0072b2",
    "all, boosted leaves": "#56b4e9",
    "CEGB": "#d55e00",
    "static subset": "#009e73",
}


def table(name: str) -> str:
    """Budget shares at target errors, as Markdown; the mean over splits."""
    lines = [line for line in read(RESULTS) if line["data"] == name]
    static = [line for line in lines if line["method"] == "static"]
    if not static:
        return f"{name}: nothing was run.\n"
    subsets = [line for line in static if line["subset"] != "oracle"]
    first, everything = (f(line["cost"] for line in subsets) for f in (min, max))

    def mean_error(cost: float) -> float:
        return float(
            np.mean([line["error"] for line in subsets if line["cost"] == cost])
        )

    at_first, at_all = mean_error(first), mean_error(everything)
    targets = [at_all + 0.05 * (at_first - at_all)]
    targets += [PRINTED[name][0]] if name in PRINTED else []
    budgets = [first + share * (everything - first) for share in (0.15, 0.3, 0.6)]
    rows = [
        ["method"]
        + [f"share at {100 * target:.1f} % error" for target in targets]
        + [f"error at cost {budget:.3g}" for budget in budgets]
        + ["seconds a fit"]
    ]
    for method in tasks():
        ours = [line for line in lines if line["method"] == method]
        if not ours:
            continue
        groups = {method: ours}
        if method.startswith("static"):
            groups = {
                f"{method} subset": [i for i in ours if i["subset"] != "oracle"],
                f"{method} oracle": [i for i in ours if i["subset"] == "oracle"],
            }
        for label, members in groups.items():
            rows.append(
                [label, *_figures(members, targets, budgets, first, everything)]
            )
    widths = [max(len(row[c]) for row in rows) for c in range(len(rows[0]))]
    rows.insert(1, ["-" * width for width in widths])
    body = "\n".join(
        "| "
        + " | ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True))
        + " |"
        for row in rows
    )
    return (
        f"{name}: {at_first:.4f} with the first sensor (cost {first:g}), {at_all:.4f} with "
        f"all (cost {everything:g})\n\n{body}\n"
    )


def curve_of(lines: list[dict[str, Any]]) -> TradeoffCurve:
    """Mean cost and error at each setting."""
    return TradeoffCurve.from_points((line["cost"], line["error"]) for line in lines)


def _figures(
    lines: list[dict[str, Any]],
    targets: list[float],
    budgets: list[float],
    first: float,
    everything: float,
) -> list[str]:
    curve = curve_of(lines)
    shares = [curve.budget_share(t, first, everything) for t in targets]
    errors = [curve.error_at_cost(b) for b in budgets]
    seconds = [line.get("seconds", np.nan) for line in lines]
    return [
        *("never" if np.isnan(s) else f"{100 * s:.1f} %" for s in shares),
        *("-" if np.isnan(e) else f"{e:.4f}" for e in errors),
        "-" if np.isnan(seconds[0]) else f"{np.mean(seconds):.1f}",
    ]


def against_alternating() -> str:
    """How often the default's training risk is at most that of five random starts."""
    ours, theirs = "all", "AM x 5, inputs of all"
    risks: dict[tuple[str, float], dict[str, float]] = {}
    for line in read(RESULTS):
        if line["method"] in (ours, theirs):
            pair = risks.setdefault((line["data"], line["cost_weight"]), {})
            pair[line["method"]] = line["training_risk"]
    counts = []
    for name in FILES:
        pairs = [risk for (data, _), risk in risks.items() if data == name]
        won = sum(pair[ours] <= pair[theirs] for pair in pairs)
        counts.append(f"{name} {won} of {len(pairs)}")
    return (
        "Training risk of the default at most that of alternating minimisation from five "
        "random starts with the same inputs, by cost weight, mean over splits: "
        + ", ".join(counts)
        + ".\n"
    )


def picture(name: str) -> None:
    """Draw the lower hulls of the main methods, error against mean cost."""
    figure, axes = plt.subplots(figsize=(5.2, 3.6), layout="constrained")
    lines = [line for line in read(RESULTS) if line["data"] == name]
    for method, colour in DRAWN.items():
        source = method.removesuffix(" subset")
        ours = [
            line
            for line in lines
            if line["method"] == source and line.get("subset") != "oracle"
        ]
        if ours:
            chain = curve_of(ours).hull()
            axes.plot(*zip(*chain, strict=True), "o-", ms=3, color=colour, label=method)
    axes.set(title=name, xlabel="mean cost of the sensors bought", ylabel="test error")
    axes.legend(fontsize=8)
    axes.grid(alpha=0.3)
    matplotlib.rcParams["svg.hashsalt"] = "sensortree"
    figure.savefig(IMAGES / f"ablation_{name}.svg", metadata={"Date": None})


if __name__ == "__main__":
    page = RESULTS.with_suffix(".md")
    text = "\n".join([*(table(name) for name in FILES), against_alternating()])
    page.write_text(text, encoding="utf-8")
    print(page.read_text(encoding="utf-8"))
    for dataset in FILES:
        picture(dataset)
