"""Draw what `solver.py --output` wrote: ratios, and growth with size.

python benchmarks/plot.py docs/results/solver.jsonl docs/images/solver.svg
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

COLOURS = {
    "structured": "#0072b2",
    "structured, own features": "#56b4e9",
    "highs": "#d55e00",
    "clarabel": "#009e73",
    "highs-simplex": "#cc79a7",
}


def main(source: str, target: str) -> None:
    """Read the lines, draw two panels, save."""
    lines = Path(source).read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    draw_comparison(left, [row for row in rows if row["kind"] == "compare"])
    draw_growth(right, [row for row in rows if row["kind"] == "growth in N"])
    matplotlib.rcParams["svg.hashsalt"] = "sensortree"
    figure.savefig(target, metadata={"Date": None})
    Path(source).with_suffix(".md").write_text(table(rows), encoding="utf-8")


def table(rows: list[dict]) -> str:
    """The comparison and the exponents, in Markdown."""
    machine = next(row["machine"] for row in rows if row["kind"] == "machine")
    lines = [
        f"Machine: {machine}.",
        "",
        "| N | K | p | solver | LP rows | seconds | iterations | gap | memory, MiB | "
        "times slower |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row['N']:,} | {row['K']} | {row['p']} | {row['solver']} | {row['rows']:,} | "
        f"{measured(row)} |"
        for row in rows
        if row["kind"] == "compare"
    ]
    exponents = {
        row["kind"][-1]: (row["of_seconds"], row["of_seconds_per_iteration"])
        for row in rows
        if row["kind"].startswith("exponent")
    }
    shown = "; ".join(
        f"{name}: {total:.2f} ({each:.2f} per iteration)"
        for name, (total, each) in exponents.items()
    )
    lines += ["", f"Exponents of the structured solver's seconds in size: {shown}."]
    return "\n".join(lines) + "\n"


def measured(row: dict) -> str:
    """What was measured of a solver, or why it was not."""
    if row["seconds"] is None:
        return f"{row['ended']} | | | |"
    return (
        f"{row['seconds']:.3g} | {row['iterations']:,} | {row['gap']:.0e} | "
        f"{row['memory_mib']:.0f} | {row['times_slower']:.3g}"
    )


def draw_comparison(ax: plt.Axes, rows: list[dict]) -> None:
    """Seconds of each solver on each problem."""
    sizes = sorted({(row["N"], row["K"]) for row in rows})
    for name, colour in COLOURS.items():
        mine = {
            (row["N"], row["K"]): row["seconds"]
            for row in rows
            if row["solver"] == name and row["seconds"] is not None
        }
        known = [k for k, size in enumerate(sizes) if size in mine]
        seconds = [mine[sizes[k]] for k in known]
        ax.plot(known, seconds, "o-", color=colour, label=name)
    ax.set_yscale("log")
    ax.set_xticks(range(len(sizes)), [f"N={n:,}\nK={k}" for n, k in sizes])
    ax.set_ylabel("seconds, one thread")
    ax.set_title("the same problems, gap 1e-6", fontsize=10)
    ax.grid(alpha=0.3)
    ax.legend()


def draw_growth(ax: plt.Axes, rows: list[dict]) -> None:
    """Seconds of the structured solver against the number of examples."""
    sizes = [row["N"] for row in rows]
    seconds = [row["seconds"] for row in rows]
    ax.loglog(sizes, seconds, "o-", color=COLOURS["structured"], label="structured")
    linear = [seconds[0] * n / sizes[0] for n in sizes]
    ax.loglog(sizes, linear, "--", color="grey", label="linear in N")
    ax.set_xlabel("examples N (K=8, 21 features)")
    ax.set_title("growth", fontsize=10)
    ax.grid(alpha=0.3)
    ax.legend()


if __name__ == "__main__":
    main(*sys.argv[1:3])
