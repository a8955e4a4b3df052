"""Numbers: held-out risk of a sensor tree beside the best fixed set of sensors.

Columns of data that come with scikit-learn, or that it generates, each a sensor of cost 1.
Of three, one column, or a sum of some, is predicted from others. A unit of cost is worth a
hundredth of what one answer for all loses, as by default; leaves are chosen on training
rows, the same for both. Half of the rows are held out, in each of ten splits. Absolute
errors are measured on what is not generated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_wine,
    make_friedman1,
    make_friedman2,
    make_friedman3,
)
from sklearn.model_selection import ShuffleSplit

from experiments.results import Line
from experiments.study import Cell, Study
from experiments.tables import markdown
from sensortree import SensorTreeRegressor, StaticSubsetRegressor

N_GENERATED, N_SPLITS = 1000, 10
RISKS = ("squared", "absolute")
GENERATED = ("friedman 1", "friedman 2", "friedman 3")
Rows = tuple[np.ndarray, np.ndarray]


def diabetes() -> Rows:
    """Progression of the disease, from ten measurements."""
    X, y = load_diabetes(return_X_y=True)
    return X, y


def wine() -> Rows:
    """Proline, from the other twelve measurements."""
    X, _ = load_wine(return_X_y=True)
    return X[:, :-1], X[:, -1]


def breast_cancer() -> Rows:
    """The worst of a sample's concave points, from means and errors of all measures."""
    X, _ = load_breast_cancer(return_X_y=True)
    return X[:, :20], X[:, 27]


def digits() -> Rows:
    """Ink of the lower half of a digit, from the pixels of its upper half."""
    X, _ = load_digits(return_X_y=True)
    return X[:, :32], X[:, 32:].sum(axis=1)


def friedman1() -> Rows:
    """Generated: five of ten columns matter, two of them together."""
    X, y = make_friedman1(N_GENERATED, n_features=10, noise=1.0, random_state=0)
    return X, y


def friedman2() -> Rows:
    """Generated: four columns, two of them multiplied."""
    X, y = make_friedman2(N_GENERATED, noise=50.0, random_state=0)
    return X, y


def friedman3() -> Rows:
    """Generated: four columns, divided by each other."""
    X, y = make_friedman3(N_GENERATED, noise=0.1, random_state=0)
    return X, y


DATA: dict[str, Callable[[], Rows]] = {
    "diabetes": diabetes,
    "wine": wine,
    "breast cancer": breast_cancer,
    "digits": digits,
    "friedman 1": friedman1,
    "friedman 2": friedman2,
    "friedman 3": friedman3,
}


def cells(name: str, quick: bool, lines: list[Line]) -> Iterator[Cell]:
    """Every split, with each kind of risk; of what is generated, squared."""
    for risk in RISKS[:1] if name in GENERATED else RISKS:
        for split in range(2 if quick else N_SPLITS):
            yield Cell({"data": name, "risk": risk, "split": split})


def measure(cell: Cell) -> Iterator[Line]:
    """Fit the tree and the fixed set on half of the rows; test on the others."""
    X, y = DATA[cell.fields["data"]]()
    splits = ShuffleSplit(N_SPLITS, test_size=0.5, random_state=0).split(X)
    train, test = list(splits)[cell.fields["split"]]
    risk = cell.fields["risk"]
    tree = SensorTreeRegressor(risk=risk).fit(X[train], y[train])
    leaf = tree.comparison_.leaf
    fixed = StaticSubsetRegressor(risk=risk, regressor=leaf).fit(X[train], y[train])
    loss, weight = tree.policy_.loss, tree.policy_.cost_weight
    line: Line = {
        "leaf": leaf,
        "leaves": tree.tree_.n_leaves,
        "certified": bool(tree.certificate_.converged),
        "nothing": float(loss.stake),
    }
    for name, model in (("tree", tree), ("fixed", fixed)):
        lost = loss.of(y[test], model.predict(X[test]))
        cost = model.acquisition_cost(X[test])
        line[f"{name}_loss"] = float(lost.mean())
        line[f"{name}_cost"] = float(cost.mean())
        line[f"{name}_risk"] = float((lost + weight * cost).mean())
    yield line


def pages(lines: list[Line]) -> dict[str, str]:
    """Means over splits, in parts of what one answer for all loses."""
    heads = ["data", "risk", "leaves", "fixed set: cost", "risk", "tree: cost", "risk"]
    rows = [[*heads, "lower by", "certified"]]
    for name in DATA:
        for risk in RISKS:
            own = [i for i in lines if i["data"] == name and i["risk"] == risk]
            if not own:
                continue
            part = {
                key: np.array([i[key] / i["nothing"] for i in own])
                for key in ("tree_risk", "fixed_risk")
            }
            lower = part["fixed_risk"] - part["tree_risk"]
            error = lower.std(ddof=1) / np.sqrt(len(own)) if len(own) > 1 else np.nan
            clearly = "**" if lower.mean() > error else ""
            kinds = [i["leaf"] for i in own]
            rows.append(
                [
                    name,
                    risk,
                    max(sorted(set(kinds)), key=kinds.count),
                    f"{np.mean([i['fixed_cost'] for i in own]):.2f}",
                    f"{part['fixed_risk'].mean():.3f}",
                    f"{np.mean([i['tree_cost'] for i in own]):.2f}",
                    f"{part['tree_risk'].mean():.3f}",
                    f"{clearly}{lower.mean():.4f}{clearly} ± {error:.4f}",
                    f"{sum(i['certified'] for i in own)} of {len(own)}",
                ]
            )
    return {"regression.md": markdown(rows)}


STUDY = Study(
    file="regression",
    key=("data", "risk", "split"),
    data=tuple(DATA),
    cells=cells,
    measure=measure,
    pages=pages,
    seeds="splits 0, generated data 0",
)
