"""The paper's tables and figures: data sets x methods x trade-off values.

Of few sensors, with cost 1 per sensor and the first stage of the paper known at the root:
landsat, letter, pima, segment (five random splits), segment-official, sun (another task
than the paper's). Of many features, with cost 1 each: forest, miniboone, cifar. A line per
problem, leaf classifier, method, split and value; everything takes hours on two cores.
ASTC and CSTC on Forest, for both readings of the label, are the study `forest`, which is
run along. The sets `<data>-openml` are fetched from OpenML, if they are named: other rows
than the official ones on landsat and segment.
"""

from __future__ import annotations

from matplotlib.figure import Figure

from experiments.results import Line
from experiments.studies import forest
from experiments.studies.paper import figures, grid, tables
from experiments.study import Study


def pages(lines: list[Line], of_forest: list[Line]) -> dict[str, str]:
    """Every table."""
    return {
        f"reproduce_{name}.md": text
        for name, text in {
            "table1": tables.table1(),
            "table2_printed": "\n".join(
                [tables.table2(lines, True), tables.deviations(lines)]
            ),
            "table2_rule": tables.table2(lines, False),
            "cascades": tables.cascades(lines),
            "outside": tables.outside(lines),
            "times": tables.times(lines),
            "many": tables.many(lines, of_forest),
        }.items()
    }


def pictures(lines: list[Line], of_forest: list[Line]) -> dict[str, Figure]:
    """Every figure that there are lines for."""
    return {
        f"reproduce_{name}.svg": figure
        for name, figure in figures.drawn(lines, of_forest)
    }


STUDY = Study(
    file="reproduce",
    key=("data", "leaves", "method", "split", "value"),
    data=(*grid.SMALL, *grid.WIDE),
    on_request=grid.FETCHED,
    quickly=tuple(n for n in (*grid.SMALL, *grid.WIDE) if n != "segment-official"),
    cells=grid.cells,
    measure=grid.measure,
    pages=pages,
    pictures=pictures,
    along=(forest.STUDY,),
    seeds="splits 0, starts of AM 0, Forest's permutation 0",
)
