"""Ours beside the paper's: Tables 1 and 2, distance to published curves, training times."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from experiments import __file__ as home
from experiments.results import Line
from experiments.studies import forest
from experiments.studies.paper.grid import FETCHED, SECONDS, TREES
from experiments.tables import Point, markdown, mean, of, or_dash, rule
from sensortree.results import TradeoffCurve

PAPER = Path(home).with_name("paper.toml")
LEAVES = {
    "rest": "one against the rest",
    "linear": "linear",
    "text": "as the text",
    "ours": "ours",
}
PRINTED = {"Myopic": "Myopic", "AM": "AM", "LP, as published": "LP"}
# Published method, and ours that are compared with it on a cascade with linear leaves.
CASCADES = {
    "Myopic": ("Myopic",),
    "AM": ("AM on a cascade",),
    "LP": ("LP on a cascade", "LP on a cascade, tight"),
}
OUTSIDE = ("CEGB", "pystreed", "boosted trees on all sensors")
TITLES = {
    "sun": "SUN, indoor or outdoor (another task)",
    "segment": "segment, five random splits",
    "segment-official": "segment, official split",
}
SENSORS = {
    "letter": "pixel_count 5, moments 7, edge_features 4 columns",
    "landsat": "4 bands of 9 columns",
    "sun": "function 36, materials 38, surface_spatial 28 columns",
    "segment": "location 3, pixel_intensity 1, colour 3, excess_colour 3, hsv 3, "
    "line_density 2, edges 4 columns",
}
ROWS = {
    "letter": "16,000 / 4,000, official",
    "landsat": "4,435 / 2,000, official",
    "sun": "3,540, two classes; five random splits, 30 % for testing",
    "segment": "2,310, five random splits, 30 % for testing; and 210 / 2,100, official",
}


def paper() -> dict[str, Any]:
    """The published numbers."""
    with PAPER.open("rb") as file:
        return tomllib.load(file)


def curve(lines: Iterable[Line], data: str, leaves: str, method: str) -> list[Point]:
    """Mean cost and error at each value, over the splits that all values have."""
    mine = of(lines, data=data, leaves=leaves, method=method)
    values = sorted({i["value"] for i in mine})
    at = {(i["value"], i["split"]): (i["cost"], i["error"]) for i in mine}
    splits = [
        s
        for s in sorted({i["split"] for i in mine})
        if all((v, s) in at for v in values)
    ]
    if not splits:
        return []
    means = [np.mean([at[v, s] for s in splits], axis=0).tolist() for v in values]
    return [(cost, error) for cost, error in means]


def n_splits(lines: Iterable[Line], data: str, leaves: str, method: str) -> int:
    """Number of splits that a method was run on."""
    mine = of(lines, data=data, leaves=leaves, method=method)
    return len({i["split"] for i in mine})


def ends(lines: Iterable[Line], data: str, leaves: str) -> tuple[Point, Point] | None:
    """Cost and error with the first sensor alone, and with all: what Myopic spans."""
    points = curve(lines, data, leaves, "Myopic")
    return (min(points), max(points)) if points else None


def shares(
    found: list[Point], target: float, first: float, everything: float
) -> tuple[float, float]:
    """Share of the budget at an error: after the first sensor, and of all."""
    if not found:
        return float("nan"), float("nan")
    traced = TradeoffCurve.from_points(found)
    share = traced.budget_share(target, first, everything)
    return share, traced.cost_at_error(target) / everything


def percent(share: tuple[float, float], known: bool = True) -> str:
    """Both shares, as Markdown."""
    if not known:
        return "-"
    if np.isnan(share[0]):
        return "never"
    return f"{100 * share[0]:.0f} ({100 * share[1]:.0f})"


def table1() -> str:
    """What the paper says of its data, and what is measured here."""
    rows = [["data", "classes", "stages in the paper", "sensors here", "rows here"]]
    rows += [
        [
            TITLES.get(i["data"], i["data"]) if i["data"] == "sun" else i["data"],
            str(i["classes"]),
            ", ".join(i["stages"]),
            SENSORS[i["data"]],
            ROWS[i["data"]],
        ]
        for i in paper()["table1"]
    ]
    return markdown(rows)


def table2(lines: list[Line], printed_target: bool) -> str:
    """Share of the budget at the printed errors, or at the 95 % rule."""
    known = {i["data"]: i for i in paper()["table2"]}
    rows = [["data", "target", "leaves", "error: first, all", *TREES]]
    measured = {i["data"] for i in lines}
    names = ["letter", "landsat", "segment", "segment-official", "sun", "pima"]
    names += FETCHED
    for name in [n for n in names if n in measured]:
        source = name.removesuffix("-official")
        printed = known.get(source)
        if printed_target and (printed is None or source == "sun"):
            continue
        title = TITLES.get(name, name)
        if printed is not None and source != "sun":
            cells = [
                f"{printed['share'][PRINTED[m]]}" if m in PRINTED else "" for m in TREES
            ]
            target = f"{100 * printed['target']:.1f} %"
            rows.append([title, target, "*printed*", "", *cells])
        for leaves, words in LEAVES.items():
            span = ends(lines, name, leaves)
            if span is None:
                continue
            target = (
                printed["target"]
                if printed_target and printed
                else rule(span[0][1], span[1][1])
            )
            first, everything = span
            complete = n_splits(lines, name, leaves, "Myopic")
            cells = []
            for method in TREES:
                points = curve(lines, name, leaves, method)
                share = shares(points, target, first[0], everything[0])
                few = n_splits(lines, name, leaves, method) < complete
                cells.append(
                    percent(share, bool(points)) + "†" * (few and bool(points))
                )
            errors = f"{first[1]:.3f}, {everything[1]:.3f}"
            rows.append([title, f"{100 * target:.1f} %", words, errors, *cells])
    return markdown(rows)


def deviations(lines: list[Line]) -> str:
    """Printed shares that no leaf classifier of ours comes within 10 points of."""
    words = []
    for row in paper()["table2"]:
        name = row["data"]
        if name == "sun":
            continue
        for method, theirs in PRINTED.items():
            ours = {}
            for leaves in LEAVES:
                span = ends(lines, name, leaves)
                points = curve(lines, name, leaves, method)
                if span and points:
                    share = shares(points, row["target"], span[0][0], span[1][0])[0]
                    ours[leaves] = 100 * share
            reached = {k: v for k, v in ours.items() if not np.isnan(v)}
            if not ours:
                continue
            printed = row["share"][theirs]
            if not reached:
                words.append(f"- {name}, {method}: printed {printed} %, ours never.")
                continue
            nearest = min(reached, key=lambda k: abs(reached[k] - printed))
            verdict = (
                "within" if abs(reached[nearest] - printed) <= 10 else "not within"
            )
            words.append(
                f"- {name}, {method}: printed {printed} %, nearest ours "
                f"{reached[nearest]:.0f} % ({LEAVES[nearest]} leaves): {verdict} 10 points."
            )
    return "\n".join(words) + "\n"


def distance(ours: list[Point], theirs: list[Point]) -> tuple[float, float, int]:
    """Mean absolute and mean signed difference in error at the costs published.

    Ours is a lower hull; published costs below its cheapest point are left out.
    """
    at_cost = TradeoffCurve.from_points(ours).error_at_cost
    differences = [at_cost(cost) - error for cost, error in theirs]
    known = [d for d in differences if not np.isnan(d)]
    if not known:
        return float("nan"), float("nan"), 0
    return float(np.mean(np.abs(known))), float(np.mean(known)), len(known)


def published(data: str, method: str) -> list[Point]:
    """Digitised curve of the cascade with linear classifiers."""
    found: list[Point] = [
        (cost, error)
        for i in paper()["curve"]
        if (i["data"], i["method"]) == (data, method)
        and i["classifiers"].startswith("multinomial")
        for cost, error in i["points"]
    ]
    return found


def cascades(lines: list[Line]) -> str:
    """How far cascades with linear leaves are from the published curves."""
    rows = [
        ["data", "leaves", "published", "ours", "mean absolute", "ours less theirs"]
    ]
    for data in ("landsat", "letter", "pima"):
        for leaves in ("rest", "linear"):
            span = ends(lines, data, leaves)
            for method, names in CASCADES.items():
                for name in names:
                    points = curve(lines, data, leaves, name)
                    if not points or span is None:
                        continue
                    # As published: mixed at random with buying nothing more.
                    mixed = [*points, span[0]]
                    apart, signed, _ = distance(mixed, published(data, method))
                    found = [f"{apart:.3f}", f"{signed:+.3f}"]
                    rows.append([data, LEAVES[leaves], method, name, *found])
    return markdown(rows)


def outside(lines: list[Line]) -> str:
    """Error of what users would take instead, and of ours, at the same costs."""
    rows = [["data", "instead", "its error at its costs", "ours at these costs"]]
    for data in dict.fromkeys(i["data"] for i in lines):
        ours = curve(lines, data, "ours", "ours")
        for method in OUTSIDE:
            theirs = curve(lines, data, "trees", method)
            if not theirs or not ours:
                continue
            some = TradeoffCurve.from_points(theirs).hull()
            at_cost = TradeoffCurve.from_points(ours).error_at_cost
            rows.append(
                [
                    TITLES.get(data, data),
                    method,
                    ", ".join(f"{error:.3f} at {cost:.3g}" for cost, error in some),
                    ", ".join(or_dash(at_cost(cost), ".3f") for cost, _ in some),
                ]
            )
    return markdown(rows)


def a_value(lines: list[Line], data: str, method: str) -> float:
    """CPU seconds at one value of a path with linear leaves, which are fitted once."""
    found = of(lines, data=data, leaves="linear", method=method)
    return mean(found, "cpu_seconds") if found else float("nan")


def times(lines: list[Line]) -> str:
    """CPU seconds of the decisions by AM and by the program, as a ratio; and of a fit."""
    known = {i["data"]: i["seconds"] for i in paper()["table2"]}
    names = ("AM", "LP, as published", "ours", "CSTC", "ASTC", "CEGB")
    rows = [
        [
            "data",
            "AM, a value",
            "LP, a value",
            "ratio",
            "printed: AM, LP, ratio",
            *(f"{n}, fit" for n in names),
        ]
    ]
    for data in dict.fromkeys(i["data"] for i in lines):
        fits = {
            i["method"].removeprefix(SECONDS): i["fit_seconds"]
            for i in of(lines, data=data)
            if i["method"].startswith(SECONDS)
        }
        am, lp = (a_value(lines, data, n) for n in ("AM", "LP, as published"))
        if np.isnan(am / lp) and not fits:
            continue
        said = "-"
        if data in known:
            printed = known[data]
            ratio = printed["AM"] / printed["LP"]
            said = f"{printed['AM']:g}, {printed['LP']:g}, {ratio:.1f}"
        figures = [am, lp, am / lp]
        rows.append(
            [
                TITLES.get(data, data),
                *(or_dash(f, ".2g") for f in figures),
                said,
                *(f"{fits[n]:.3g}" if n in fits else "-" for n in names),
            ]
        )
    return markdown(rows)


def many(lines: list[Line], of_forest: list[Line]) -> str:
    """ASTC and CSTC beside their published curves, and trees on the same rows."""
    text = forest.page(of_forest) if of_forest else ""
    for data in ("forest", "miniboone", "cifar"):
        for method in ("ours", "LP, as published", "ASTC", "CSTC"):
            points = curve(lines, data, "ours", method)
            points = points or curve(lines, data, "linear", method)
            if points:
                shown = ", ".join(f"{e:.3f} at {c:.3g}" for c, e in sorted(points))
                text += f"\n- {data}, {method}: error {shown} features."
    return text + "\n" if text else "Nothing was run.\n"
