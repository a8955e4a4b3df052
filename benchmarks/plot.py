"""Draw what `solver --output` wrote: the table, ratios, and growth with size.

python -m benchmarks.plot docs/results/solver.jsonl docs/images/solver.svg
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from experiments.figures import save
from experiments.results import Line, read
from experiments.tables import markdown, of

COLOURS = {
    "structured": "#0072b2",
    "structured, own features": "#56b4e9",
    "highs": "#d55e00",
    "clarabel": "#009e73",
    "highs-simplex": "#cc79a7",
}


def main(source: str, target: str) -> None:
    """Write the table beside the lines, and the picture."""
    lines = read(Path(source))
    Path(source).with_suffix(".md").write_text(table(lines), encoding="utf-8")
    save(picture(lines), Path(target))


def picture(lines: list[Line]) -> Figure:
    """Seconds of each solver, and growth with the number of examples."""
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    draw_comparison(left, of(lines, kind="compare"))
    draw_growth(right, of(lines, kind="growth in N"))
    return figure


def table(lines: list[Line]) -> str:
    """The comparison and the exponents, in Markdown."""
    (machine,) = {line["machine"] for line in of(lines, kind="machine")}
    heads = ["N", "K", "p", "solver", "LP rows", "seconds", "iterations", "gap"]
    rows = [
        [
            f"{line['N']:,}",
            f"{line['K']}",
            f"{line['p']}",
            line["solver"],
            f"{line['rows']:,}",
            *measured(line),
        ]
        for line in of(lines, kind="compare")
    ]
    shown = "; ".join(
        f"{line['kind'][-1]}: {line['of_seconds']:.2f} "
        f"({line['of_seconds_per_iteration']:.2f} per iteration)"
        for line in lines
        if line["kind"].startswith("exponent")
    )
    return "\n".join(
        [
            f"Machine: {machine}.\n",
            markdown([[*heads, "memory, MiB", "times slower"], *rows]),
            f"Exponents of the structured solver's seconds in size: {shown}.\n",
        ]
    )


def measured(line: Line) -> list[str]:
    """What was measured of a solver, or why it was not."""
    if line.get("seconds") is None:
        return [line["ended"], "", "", "", ""]
    return [
        f"{line['seconds']:.3g}",
        f"{line['iterations']:,}",
        f"{line['gap']:.0e}",
        f"{line['memory_mib']:.0f}",
        f"{line['times_slower']:.3g}",
    ]


def draw_comparison(axes: Any, lines: list[Line]) -> None:
    """Seconds of each solver on each problem."""
    sizes = sorted({(line["N"], line["K"]) for line in lines})
    for name, colour in COLOURS.items():
        mine = {
            (line["N"], line["K"]): line["seconds"]
            for line in lines
            if line["solver"] == name and line.get("seconds") is not None
        }
        known = [k for k, size in enumerate(sizes) if size in mine]
        seconds = [mine[sizes[k]] for k in known]
        axes.plot(known, seconds, "o-", color=colour, label=name)
    axes.set_yscale("log")
    axes.set_xticks(range(len(sizes)), [f"N={n:,}\nK={k}" for n, k in sizes])
    axes.set_ylabel("seconds, one thread")
    axes.set_title("the same problems, gap 1e-6", fontsize=10)
    axes.grid(alpha=0.3)
    axes.legend()


def draw_growth(axes: Any, lines: list[Line]) -> None:
    """Seconds of the structured solver against the number of examples."""
    sizes = [line["N"] for line in lines]
    seconds = [line["seconds"] for line in lines]
    axes.loglog(sizes, seconds, "o-", color=COLOURS["structured"], label="structured")
    linear = [seconds[0] * n / sizes[0] for n in sizes]
    axes.loglog(sizes, linear, "--", color="grey", label="linear in N")
    axes.set_xlabel("examples N (K=8, 21 features)")
    axes.set_title("growth", fontsize=10)
    axes.grid(alpha=0.3)
    axes.legend()


if __name__ == "__main__":
    main(*sys.argv[1:3])
