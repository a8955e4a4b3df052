"""Referral: are promised errors kept, and who is handed over at what error.

A model with the paper's leaves is fitted once on 40 % of the rows (4,000 at most), at
prices by which all sensors together are worth a tenth of a wrong answer. All other rows
stand for the world: what is promised is compared with the error on all of them. 200 times,
rows are set aside from it, half as many as there are, drawn independently as new rows would
be, and half the error that the model had on held-out rows of its training is promised with
confidence .9. The same is then done with halves: one half is set aside, and the promise is
compared with the other half, whose own error is uncertain too.

The curves: a tree that learned to hand over, at several prices of a person; and a
classifier on all sensors that hands over the least probable answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.model_selection import train_test_split

from experiments.data import Dataset, load
from experiments.results import Line
from experiments.study import Cell, Study
from experiments.tables import markdown, of
from sensortree import SensorTreeClassifier, guarantee_error
from sensortree.exceptions import DataError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CONFIDENCE, DRAWS = 0.9, 200
MOST_ROWS, SHARE = 4_000, 0.4
# Wrong answers that all sensors together cost.
WORTH = 0.1
PRICES = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5)
SHARES = tuple(np.linspace(0.0, 0.7, 15).round(2).tolist())


def cells(name: str, quick: bool, lines: list[Line]) -> Iterator[Cell]:
    """Promises; trees at several prices of a person; thresholds on all sensors."""
    shared = {"data": name}
    yield Cell({**shared, "what": "promise"}, "value", (None,))
    prices = PRICES[1:4] if quick else PRICES
    yield Cell({**shared, "what": "tree"}, "value", prices)
    yield Cell({**shared, "what": "all sensors"}, "value", SHARES)


def split(data: Dataset, quick: bool) -> tuple[Any, Any, Any, Any]:
    """Rows to fit, and the world; by seed 0."""
    n_rows = 300 if quick else min(int(SHARE * len(data.y)), MOST_ROWS)
    X, world, y, truth = train_test_split(
        data.X, data.y, train_size=n_rows, stratify=data.y, random_state=0
    )
    return X, y, world, truth


def measure(cell: Cell) -> Iterator[Line]:
    """Fit on the rows to fit; all figures are of the world."""
    data = load(cell.fields["data"])
    X, y, world, truth = split(data, cell.quick)
    costs = data.costs or {f"x{i}": 1.0 for i in range(X.shape[1])}
    weight = WORTH / sum(costs.values())
    model = SensorTreeClassifier(
        data.sensors,
        costs=data.costs,
        cost_weight=weight,
        classifier="logistic2",
        n_jobs=1,
    )
    if cell.fields["what"] == "promise":
        yield promises(model.fit(X, y), world, truth, 20 if cell.quick else DRAWS)
    elif cell.fields["what"] == "tree":
        for price in cell.values:
            fitted = model.set_params(refer_cost=price).fit(X, y)
            referred, wrong = fitted.referred(world), fitted.predict(world) != truth
            yield {
                "value": price,
                **answered(wrong, referred),
                "cost": float(fitted.acquisition_cost(world).mean()),
                "converged": bool(fitted.certificate_.converged),
            }
    else:
        everything = {"sensors": sorted(costs)}
        fitted = model.set_params(structure=everything, cost_weight=0.0).fit(X, y)
        sure = fitted.predict_proba(world).max(axis=1)
        order = np.argsort(sure, kind="stable")
        wrong = fitted.predict(world) != truth
        for share in cell.values:
            referred = np.zeros(len(sure), dtype=bool)
            referred[order[: round(share * len(sure))]] = True
            cost = float(fitted.acquisition_cost(world).mean())
            yield {"value": share, **answered(wrong, referred), "cost": cost}


def answered(wrong: Any, referred: Any) -> Line:
    """Share that is handed over, and error of the others."""
    left = ~referred
    error = float(wrong[left].mean()) if left.any() else None
    return {"referred": float(referred.mean()), "error": error}


def promises(model: SensorTreeClassifier, world: Any, truth: Any, draws: int) -> Line:
    """How often an error was proved, and how often it was exceeded."""
    held_out = model.about_.held_out
    promised = round(max(held_out.error / 2, 0.005), 3)
    rng, n_rows = np.random.default_rng(0), len(truth)
    drawn, halves = [], []
    for _ in range(draws):
        aside = rng.integers(0, n_rows, n_rows // 2)
        drawn.append(kept(model, promised, world, truth, aside, np.arange(n_rows)))
        order = rng.permutation(n_rows)
        aside, rest = order[: n_rows // 2], order[n_rows // 2 :]
        halves.append(kept(model, promised, world, truth, aside, rest))
    return {
        "promised": promised,
        "error": float((model.predict(world) != truth).mean()),
        "rows": n_rows // 2,
        "draws": draws,
        **summed(drawn, promised, ""),
        **summed(halves, promised, "halves_"),
    }


def kept(
    model: Any, promised: float, world: Any, truth: Any, aside: Any, new: Any
) -> Line | None:
    """What became of one promise on new rows; None if rows did not prove it."""
    try:
        sure = guarantee_error(
            model, world[aside], truth[aside], error=promised, confidence=CONFIDENCE
        )
    except DataError:
        return None
    wrong = sure.predict(world[new]) != truth[new]
    return answered(wrong, sure.referred(world[new]))


def summed(found: list[Line | None], promised: float, of_: str) -> Line:
    """Promises given and broken, and the mean share that is handed over."""
    given = [line for line in found if line is not None]
    errors = [line["error"] or 0.0 for line in given]
    shares = [line["referred"] for line in given]
    return {
        f"{of_}given": len(given),
        f"{of_}broken": sum(error > promised for error in errors),
        f"{of_}referred": float(np.mean(shares)) if given else None,
        f"{of_}mean_error": float(np.mean(errors)) if given else None,
    }


def pages(lines: list[Line]) -> dict[str, str]:
    """Promises that were kept; and error at shares that are handed over."""
    heads = ["data", "error", "promised", "rows set aside", "proved", "exceeded"]
    rows = [[*heads, "handed over", "error of the others", "exceeded, on halves"]]
    for i in of(lines, what="promise"):
        given, draws = i["given"], i["draws"]
        share = f"{i['referred']:.1%}" if "referred" in i else "–"
        error = f"{i['mean_error']:.4f}" if "mean_error" in i else "–"
        rows.append(
            [
                i["data"],
                f"{i['error']:.4f}",
                f"{i['promised']:g}",
                f"{i['rows']:,}",
                f"{given} of {draws}",
                f"{i['broken'] / draws:.1%}",
                share,
                error,
                f"{i['halves_broken'] / draws:.1%}",
            ]
        )
    curve = [["data", "a person costs", "handed over", "error of the others", "cost"]]
    curve[0] += ["all sensors, as many handed over: error", "cost"]
    for i in of(lines, what="tree"):
        plain = of(lines, what="all sensors", data=i["data"])
        known = [line for line in plain if "error" in line]
        shares = [line["referred"] for line in known]
        beside = "–"
        if known and i["referred"] <= shares[-1]:
            beside = (
                f"{np.interp(i['referred'], shares, [k['error'] for k in known]):.4f}"
            )
        curve.append(
            [
                i["data"],
                f"{i['value']:g}",
                f"{i['referred']:.1%}",
                f"{i['error']:.4f}" if "error" in i else "–",
                f"{i['cost']:.3g}",
                beside,
                f"{plain[0]['cost']:.3g}" if plain else "–",
            ]
        )
    return {"referral.md": markdown(rows), "referral_curves.md": markdown(curve)}


def pictures(lines: list[Line]) -> dict[str, Figure]:
    """Error of those who are answered against the share that is handed over."""
    from matplotlib.figure import Figure

    names = [n for n in STUDY.data if of(lines, data=n, what="tree")]
    if not names:
        return {}
    figure = Figure(figsize=(9.0, 5.4), layout="constrained")
    panels = np.ravel(figure.subplots(2, 3))
    for axes, name in zip(panels, names, strict=False):
        plain = [i for i in of(lines, data=name, what="all sensors") if "error" in i]
        tree = [i for i in of(lines, data=name, what="tree") if "error" in i]
        tree.sort(key=lambda i: i["referred"])
        for found, colour, marker, label in (
            (plain, "0.5", "-", f"all sensors ({plain[0]['cost']:.3g} each)"),
            (tree, "C0", "o-", "tree"),
        ):
            x, y = [i["referred"] for i in found], [i["error"] for i in found]
            axes.plot(x, y, marker, ms=4, color=colour, label=label)
        for i in tree[:: max(1, len(tree) // 3)]:
            axes.annotate(f" {i['cost']:.3g}", (i["referred"], i["error"]), fontsize=7)
        axes.set(title=name, xlabel="share handed over", ylabel="error of the others")
        axes.legend(fontsize=7)
        axes.grid(alpha=0.3)
    for axes in panels[len(names) :]:
        axes.set_axis_off()
    return {"referral.svg": figure}


STUDY = Study(
    file="referral",
    key=("data", "what", "value"),
    data=("landsat", "letter", "segment", "pima", "digits"),
    cells=cells,
    measure=measure,
    pages=pages,
    pictures=pictures,
    quickly=("pima",),
    seeds="split 0, draws 0",
)
