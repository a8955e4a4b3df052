"""PhysioNet 2012 as the log that it is: trees from it, beside what else could be done.

12,000 stays in intensive care, 14 % of deaths; clinicians decided which groups of readings
were done. Sensors are the eight groups that more than half of the stays have (troponin and
cholesterol, of 27 and 8 %, are left out), at cost 1 each. The risk is the log-loss. 60 % of
the stays (seed 0) are learned from:

    from the log        trees, by ``fit(..., acquired=...)``
    complete rows       trees, of the stays that have all eight groups
    mean imputation     trees, gaps filled with the mean of training
    native boosting     scikit-learn's boosting, which takes gaps as they are, and so sees
                        what was ordered; of one to eight groups, each next the one that
                        lowers the held-out log-loss of training stays most

All are tested on those of the other stays that have all eight groups, since only there each
can be given what it asks for: they are sicker than others. A tree is also judged on all
other stays by `evaluate_from_log`. When things were ordered is not in the file: the groups
are taken to come in one order, the more frequent first. A reading that is missing in a
group that was done is the mean of training.

The leak: how well death is foretold by which groups, or readings, were done; what native
boosting reaches on all other stays as they were logged; and what it says where it learned
from all eight groups and is given fewer, as a policy would.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import cross_val_predict

from experiments.data import arrays_of, few, load
from experiments.methods import few_values
from experiments.results import Line
from experiments.study import Cell, Study
from experiments.tables import markdown, of
from sensortree import SensorTreeClassifier, evaluate_from_log

Array = NDArray[Any]
Groups = tuple[str, ...]
WEIGHTS = (0.02, 0.01, 0.004, 0.002)
RARE, N_GROUPS = ("troponin", "cholesterol"), 8
LOG, COMPLETE, MEANS = "from the log", "complete rows", "mean imputation"
TREES = (LOG, COMPLETE, MEANS)
BOOSTING, GIVEN_FEWER = "native boosting", "native boosting of all, given fewer"
DONE = "what was done, without a reading"
COSTS = (2, 3, 4)  # at which the ways are compared


@dataclass(frozen=True, eq=False)
class Stays:
    """Stays to learn from, or to test on.

    Attributes
    ----------
    X : ndarray of shape (n_stays, n_readings)
        Gaps are the mean of training.
    gaps : ndarray of bool of shape (n_stays, n_readings)
        Readings that were never done.
    done : ndarray of bool of shape (n_stays, n_groups)
    y : ndarray of shape (n_stays,)
    measured : ndarray of bool of shape (n_stays, n_all)
        Which of all readings were done, of groups that are left out too.
    """

    X: Array
    gaps: Array
    done: Array
    y: Array
    measured: Array

    @property
    def complete(self) -> Array:
        """Stays that have all groups."""
        return np.asarray(self.done.all(axis=1))

    def take(self, rows: Array) -> Stays:
        """Some of the stays."""
        return Stays(*(each[rows] for each in vars(self).values()))


@dataclass(frozen=True, eq=False)
class Clinic:
    """Stays to learn from and to test on, and what can be ordered for them."""

    sensors: dict[str, list[int]]
    learned: Stays
    test: Stays

    @property
    def order(self) -> list[str]:
        """Groups, those that are done more often first."""
        often = dict(zip(self.sensors, self.learned.done.mean(axis=0), strict=True))
        return sorted(self.sensors, key=lambda name: -often[name])

    def as_logged(self, stays: Stays) -> Array:
        """Readings with NaN for groups that were not done."""
        X = stays.X.copy()
        for group, columns in enumerate(self.sensors.values()):
            X[np.ix_(~stays.done[:, group], columns)] = np.nan
        return np.asarray(X)

    def ordered(self, stays: Stays, groups: Groups, of: Groups) -> Array:
        """Readings of some groups with all their gaps, NaN of those that are not given."""
        X = np.where(stays.gaps, np.nan, stays.X)
        for group, columns in self.sensors.items():
            if group not in groups:
                X[:, columns] = np.nan
        return np.asarray(X[:, [c for name in of for c in self.sensors[name]]])


def clinic(quick: bool) -> Clinic:
    """Read the stays, and which groups of readings were done."""
    data = load("physionet")
    data = few(data) if quick else data
    assert data.sensors is not None
    sensors = {name: list(c) for name, c in data.sensors.items() if name not in RARE}
    (readings,) = arrays_of("physionet", "X")
    gaps = np.isnan(readings)
    done = np.stack([~gaps[:, own].all(axis=1) for own in sensors.values()], axis=1)
    # the columns of groups that are left out
    used = sorted(column for own in sensors.values() for column in own)
    place = {column: at for at, column in enumerate(used)}
    sensors = {name: [place[c] for c in own] for name, own in sensors.items()}
    every = Stays(data.X[:, used], gaps[:, used], done, data.y, ~gaps)
    train, test = data.splits[0]
    return Clinic(sensors, every.take(train), every.take(test))


def cells(name: str, quick: bool, lines: list[Line]) -> Iterator[Cell]:
    """Every way to learn, at some cost weights or numbers of groups."""
    weights = few_values(WEIGHTS) if quick else WEIGHTS
    for way in TREES:
        yield Cell({"data": name, "way": way}, "setting", weights)
    n_groups = tuple(range(1, N_GROUPS + 1))
    for way in (BOOSTING, GIVEN_FEWER):
        yield Cell({"data": name, "way": way}, "setting", n_groups)
    yield Cell({"data": name, "way": DONE}, "setting", ("groups", "readings"))


def measure(cell: Cell) -> Iterator[Line]:
    """Learn in one way, and test."""
    have, way = clinic(cell.quick), cell.fields["way"]
    for setting in cell.values:
        if way in TREES:
            line = tree_line(have, way, setting)
        elif way == DONE:
            line = leaked(have, setting)
        else:
            line = boosted(have, best_groups(cell.quick)[:setting], way == GIVEN_FEWER)
        yield {"setting": setting, **line}


def tree_line(have: Clinic, way: str, weight: float) -> Line:
    """A tree: tested where everything was done, and judged on all stays."""
    model = SensorTreeClassifier(
        have.sensors,
        cost_weight=weight,
        risk="log_loss",
        classifier="boosted",
        structure="branched",
        outages=False,
        n_jobs=1,
    )
    learned, test = have.learned, have.test
    if way == LOG:
        X = have.as_logged(learned)
        model.fit(X, learned.y, acquired=learned.done, order=have.order)
    elif way == COMPLETE:
        model.fit(learned.X[learned.complete], learned.y[learned.complete])
    else:
        model.fit(learned.X, learned.y)
    whole = test.take(test.complete)
    said = model.predict_proba(whole.X)[:, 1]
    # what the tree did not ask for is taken away: what it says must not change
    hidden = whole.X.copy()
    for group, own in enumerate(have.sensors.values()):
        hidden[np.ix_(~model.acquired(whole.X)[:, group], own)] = np.nan
    moved = np.abs(model.predict_proba(hidden)[:, 1] - said).max()
    judged = evaluate_from_log(
        model,
        have.as_logged(test),
        test.y,
        acquired=test.done,
        order=have.order,
        hidden_odds=(),
    )
    return {
        **tested(said, whole.y),
        "cost": float(model.acquisition_cost(whole.X).mean()),
        "moved": float(moved),
        "refused": judged.refused,
        "worth": judged.support.effective_share,
        "judged_loss": [judged.loss.value, judged.loss.low, judged.loss.high],
        "judged_cost": [judged.cost.value, judged.cost.low, judged.cost.high],
    }


def tested(said: Array, died: Array) -> Line:
    """How well deaths were foretold."""
    return {
        "auroc": float(roc_auc_score(died, said)),
        "log_loss": float(log_loss(died, said)),
        "said": float(said.mean()),
        "died": float(died.mean()),
        "stays": len(died),
    }


def boosted(have: Clinic, groups: Groups, of_all: bool) -> Line:
    """Boosting that takes gaps as they are, given some groups.

    Learned from just these groups, or from all of them; as many as are given are paid.
    """
    learned, whole = have.learned, have.test.take(have.test.complete)
    from_ = tuple(have.sensors) if of_all else groups
    model = booster().fit(have.ordered(learned, from_, from_), learned.y)
    said = model.predict_proba(have.ordered(whole, groups, from_))[:, 1]
    line: Line = {**tested(said, whole.y), "cost": float(len(groups))}
    if not of_all:
        everybody = model.predict_proba(have.ordered(have.test, groups, groups))[:, 1]
        line["as_logged"] = tested(everybody, have.test.y)
    return line


def booster() -> HistGradientBoostingClassifier:
    """Small trees, until they no longer help."""
    return HistGradientBoostingClassifier(
        learning_rate=0.05,
        max_iter=400,
        max_leaf_nodes=15,
        early_stopping=True,
        random_state=0,
    )


@lru_cache(maxsize=1)
def best_groups(quick: bool) -> Groups:
    """All groups, each next the one with which held-out training stays are told best."""
    have = clinic(quick)
    learned = have.learned

    def loss(groups: Groups) -> float:
        X = have.ordered(learned, groups, groups)
        said = cross_val_predict(booster(), X, learned.y, cv=3, method="predict_proba")
        return float(log_loss(learned.y, said))

    chosen: Groups = ()
    while left := [name for name in have.sensors if name not in chosen]:
        chosen = min([(*chosen, name) for name in left], key=loss)
    return chosen


def leaked(have: Clinic, what: str) -> Line:
    """Deaths foretold without a reading, by the groups or readings that were done."""
    learned, test = have.learned, have.test
    marks = [
        stays.done if what == "groups" else stays.measured for stays in (learned, test)
    ]
    seen, shown = (mark.astype(np.float64) for mark in marks)
    model = LogisticRegression(max_iter=1000).fit(seen, learned.y)
    return {**tested(model.predict_proba(shown)[:, 1], test.y), "cost": 0.0}


def pages(lines: list[Line]) -> dict[str, str]:
    """What each way tells at what cost; the same at equal cost; the leak."""
    return {
        "log_physionet.md": every_setting(lines),
        "log_physionet_equal.md": at_equal_cost(lines),
        "log_physionet_leak.md": leak(lines),
    }


def every_setting(lines: list[Line]) -> str:
    """Trees at each cost weight."""
    rows = [
        [
            *("tree", "cost weight", "cost", "AUROC", "log-loss"),
            *("all stays: worth", "cost", "log-loss"),
        ]
    ]
    rows += [
        [
            way,
            f"{line['setting']:g}",
            f"{line['cost']:.2f}",
            f"{line['auroc']:.4f}",
            f"{line['log_loss']:.4f}",
            f"{100 * line['worth']:.0f} %",
            "refused" if line.get("refused") else interval(line["judged_cost"], 2),
            "refused" if line.get("refused") else interval(line["judged_loss"], 3),
        ]
        for way in TREES
        for line in sorted(of(lines, way=way), key=lambda one: -one["setting"])
    ]
    return markdown(rows)


def interval(told: list[float], digits: int) -> str:
    """A value with its interval."""
    value, low, high = (f"{one:.{digits}f}" for one in told)
    return f"{value} ({low} to {high})"


def at_equal_cost(lines: list[Line]) -> str:
    """AUROC and log-loss at some costs, on straight lines between those measured."""
    ways = (*TREES, BOOSTING)
    rows = [["", *(f"{what} at {c}" for c in COSTS for what in ("AUROC", "log-loss"))]]
    for way in ways:
        some = sorted(of(lines, way=way), key=lambda one: one["cost"])
        if not some:
            continue
        costs = [line["cost"] for line in some]
        row = [way]
        for cost in COSTS:
            for field in ("auroc", "log_loss"):
                there = costs[0] <= cost <= costs[-1]
                value = np.interp(cost, costs, [line[field] for line in some])
                row.append(f"{value:.4f}" if there else "-")
        rows.append(row)
    return markdown(rows)


def leak(lines: list[Line]) -> str:
    """What is foretold by what was done, and what deaths are said where it is decided."""
    rows = [["", "groups given", "AUROC", "deaths said", "deaths"]]
    rows += [
        [f"{DONE}: {line['setting']}", "none", *foretold(line)]
        for line in of(lines, way=DONE)
    ]
    whole = of(lines, way=BOOSTING, setting=N_GROUPS)
    rows += [
        [f"{BOOSTING}, as logged", "what was done", *foretold(line["as_logged"])]
        for line in whole
    ]
    rows += [
        [way, f"{line['cost']:.2f}".removesuffix(".00"), *foretold(line)]
        for way in (GIVEN_FEWER, LOG)
        for line in sorted(of(lines, way=way), key=lambda one: one["cost"])
    ]
    moved = [line["moved"] for line in lines if "moved" in line]
    most = f"{max(moved):.1g}" if moved else "-"
    return (
        f"{markdown(rows)}\nIf all that a tree did not ask for is hidden, what it says "
        f"changes by at most {most}.\n"
    )


def foretold(line: Line) -> list[str]:
    """How well deaths were told apart, how many were said, and how many there were."""
    return [
        f"{line['auroc']:.3f}",
        f"{100 * line['said']:.1f} %",
        f"{100 * line['died']:.1f} %",
    ]


STUDY = Study(
    file="log_physionet",
    key=("data", "way", "setting"),
    data=("physionet",),
    cells=cells,
    measure=measure,
    pages=pages,
    seeds="split 0",
)
