"""Policies judged on logs: how often 95 % intervals cover what is true.

A policy is learned once; rows that it has not seen are then drawn, a logger whose chance of
stopping is known buys for them, and what was not bought is hidden. What is true is the
policy's error and cost on all such rows. Loggers:

    confident   buys in one order, and stops where what it saw is far from the middle
    impatient   buys in any order, and stops where what it saw is high
    curious     buys next what the last readings suggest, and stops where the last is high

Beside them: the chance of stopping taken to be the same for all (λ wrong), what the policy
will lose taken to be the same for all (q wrong), a logger that knew the label, with and
without saying so, and loggers that hardly ever go on, which must be refused.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise, starmap
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.dummy import DummyClassifier, DummyRegressor

from experiments.data import Dataset, load, stages_of
from experiments.results import Line
from experiments.study import Cell, Study
from experiments.tables import markdown, of
from sensortree import SensorTreeClassifier, evaluate_from_log

Array = NDArray[Any]
LOGGERS = ("confident", "impatient", "curious")
MASKS, BATCHES = 20, 10  # masks of a line, lines of a scenario
TURNS = (2, 5)  # lines of each scenario after which others have their turn
# Rows to learn from, rows that are not learned from, rows of a log, cost weight.
SIZES = {
    "landsat": (2000, 4435, 3000, 0.02),
    "letter": (4000, 16000, 4000, 0.03),
    "pima": (300, 468, 468, 0.002),
    "forest": (4000, 12000, 2000, 0.01),
}
# What is asked of the judgement, and of the logger: label says whether it knows the label.
TOLD: dict[str, dict[str, Any]] = {
    "as it is": {},
    "λ wrong": {"stopping": DummyClassifier()},
    "q wrong": {"outlook": DummyRegressor()},
    "label, said": {"label_influenced_buying": True},
    "label, not said": {},
    "hardly ever goes on": {},
}


@dataclass(frozen=True, eq=False)
class Held:
    """A policy, rows that it has not seen, and what is true of them."""

    model: Any
    X: Array
    y: Array
    z: Array  # what a logger sees of each sensor, of mean 0 and variance 1
    n_log: int
    error: float
    cost: float


@lru_cache(maxsize=1)
def held(name: str, quick: bool) -> Held:
    """Learn a policy from some rows of a set, and hold the others."""
    data = with_stages(name)
    n_learned, n_held, n_log, cost_weight = SIZES[name]
    order = np.random.default_rng(0).permutation(len(data.y))
    learned, rows = order[:n_learned], order[n_learned : n_learned + n_held]
    model = SensorTreeClassifier(
        data.sensors, costs=data.costs, cost_weight=cost_weight, n_jobs=1
    ).fit(data.X[learned], data.y[learned])
    X, y = data.X[rows], data.y[rows]
    scaled = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)
    seen = [scaled[:, list(c)].mean(axis=1) for c in model.sensors_.columns]
    z = np.stack([s / max(s.std(), 1e-12) for s in seen], axis=1)
    return Held(
        model,
        X,
        y,
        z,
        200 if quick else n_log,
        float((model.predict(X) != y).mean()),
        float(model.acquisition_cost(X).mean()),
    )


def with_stages(name: str) -> Dataset:
    """A set with sensors of several columns."""
    data = load(name)
    if data.sensors is not None:
        return data
    sensors, costs = stages_of("covtype")
    return replace(data, sensors=sensors, costs=costs)


def log(
    logger: str, z: Array, known_label: Array | None, rare: bool, rng: Any
) -> tuple[Array, Array]:
    """What a logger buys, and its chance of stopping after each round.

    Parameters
    ----------
    logger : str
    z : ndarray of shape (n_rows, n_sensors)
    known_label : ndarray of shape (n_rows,) or None
        -1 or 1, if the logger knows it.
    rare : bool
        Whether it hardly ever goes on.
    rng : Generator

    Returns
    -------
    acquired : ndarray of int of shape (n_rows, n_sensors)
    chance : ndarray of shape (n_rows, n_sensors)
    """
    n_rows, n_sensors = z.shape
    acquired, chances = np.zeros(z.shape, dtype=int), np.empty(z.shape)
    known, alive = np.zeros(z.shape, dtype=bool), np.ones(n_rows, dtype=bool)
    last = np.zeros(n_rows)
    often = 0.35 ** (1 / n_sensors)  # goes on in the mean
    base = np.log((1 - often) / often) + (3.5 if rare else 0.0)
    for round_ in range(n_sensors):
        mean = np.where(known, z, 0).sum(axis=1) / np.sqrt(max(round_, 1))
        if logger == "confident":
            logit = 1.2 * (np.abs(mean) - 0.8) * (round_ > 0)
            worth = np.tile(-np.arange(n_sensors, dtype=float), (n_rows, 1))
        elif logger == "impatient":
            logit = mean
            worth = rng.random(z.shape)
        else:
            logit = 0.9 * last
            leaning = np.outer(mean, np.linspace(-1, 1, n_sensors))
            worth = (
                leaning - 0.5 * np.arange(n_sensors) + 0.5 * rng.gumbel(size=z.shape)
            )
        if known_label is not None:
            logit = logit + known_label
        chances[:, round_] = 1 / (1 + np.exp(-(base + logit)))
        alive &= rng.random(n_rows) >= chances[:, round_]
        bought = np.where(known, -np.inf, worth).argmax(axis=1)
        rows = np.flatnonzero(alive)
        acquired[rows, bought[rows]] = round_ + 1
        known[rows, bought[rows]] = True
        last[rows] = z[rows, bought[rows]]
    return acquired, chances


def true_share(asked: Array, acquired: Array, chances: Array) -> float:
    """Effective size as a share of the rows, by the chances that are true."""
    complete = ~(asked & (acquired == 0)).any(axis=1)
    needed = np.where(asked, acquired, 0).max(axis=1)
    stay = np.cumprod(1 - chances, axis=1)
    weight = np.ones(len(asked))
    some = complete & (needed > 0)
    weight[some] = 1 / stay[some, needed[some] - 1]
    weight[~complete] = 0
    squares = float(weight @ weight)
    return float(weight.sum()) ** 2 / squares / len(weight) if squares else 0.0


def cells(name: str, quick: bool, lines: list[Line]) -> Iterator[Cell]:
    """Every logger as it is, those to be refused, and what is judged wrongly, by turns."""
    usual, few = "as it is", "hardly ever goes on"
    turns = [(few, range(1))]
    for batches in starmap(range, pairwise((0, *TURNS, BATCHES))):
        turns += [(told, batches) for told in TOLD if told != few]
    turns.sort(key=lambda turn: turn[0] != usual)
    if quick:
        turns = [(told, range(1)) for told in TOLD]
    for told, batches in turns:
        for logger in LOGGERS:
            fields = {"data": name, "logger": logger, "told": told}
            yield Cell(fields, "batch", tuple(batches))


def measure(cell: Cell) -> Iterator[Line]:
    """Judge the policy on logs that differ in the rows drawn, and in what was bought."""
    told, logger = cell.fields["told"], cell.fields["logger"]
    have = held(cell.fields["data"], cell.quick)
    middle = np.median(have.y)
    for batch in cell.values:
        found = []
        for mask in range(2 if cell.quick else MASKS):
            rng = np.random.default_rng([batch, mask])
            rows = rng.integers(len(have.y), size=have.n_log)
            label = np.where(have.y[rows] > middle, 1.0, -1.0)
            acquired, chances = log(
                logger,
                have.z[rows],
                label if told.startswith("label") else None,
                told == "hardly ever goes on",
                rng,
            )
            asked = have.model.acquired(have.X[rows])
            hidden = have.X[rows].copy()
            for s, columns in enumerate(have.model.sensors_.columns):
                hidden[np.ix_(acquired[:, s] == 0, list(columns))] = np.nan
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # nothing hidden may be met
                judged = evaluate_from_log(
                    have.model,
                    hidden,
                    have.y[rows],
                    acquired=acquired,
                    hidden_odds=(),
                    **TOLD[told],
                )
            found.append((judged, true_share(asked, acquired, chances)))
        yield {"batch": batch, **summary(found, have)}


def summary(found: list[tuple[Any, float]], have: Held) -> Line:
    """What some judgements say together."""
    told = [one for one, _ in found if not one.refused]
    line: Line = {
        "masks": len(found),
        "refused": len(found) - len(told),
        "share": float(np.mean([one.support.effective_share for one, _ in found])),
        "true_share": float(np.mean([share for _, share in found])),
        "complete": float(
            np.mean([one.support.n_complete / one.support.n_rows for one, _ in found])
        ),
        "mean_weight": float(np.mean([one.support.mean_weight for one, _ in found])),
        "told_below": sum(not one.refused and share < 0.01 for one, share in found),
        "refused_above": sum(bool(one.refused) and share > 0.1 for one, share in found),
    }
    for name, truth in (("error", have.error), ("cost", have.cost)):
        means = [getattr(one, name) for one in told]
        line |= {
            f"{name}_truth": truth,
            f"{name}_covered": sum(m.low <= truth <= m.high for m in means),
            f"{name}_off": float(np.mean([m.value - truth for m in means or ()]))
            if means
            else None,
            f"{name}_half": float(np.mean([(m.high - m.low) / 2 for m in means]))
            if means
            else None,
        }
    return line


def pages(lines: list[Line]) -> dict[str, str]:
    """Coverage of every scenario, and what was refused."""
    rows = [
        [
            *("data", "logger", "told", "masks", "complete", "worth", "by true λ"),
            *("refused", "error: off", "±", "covered", "cost: off", "±", "covered"),
        ]
    ]
    for name in SIZES:
        for told in TOLD:
            for logger in LOGGERS:
                some = of(lines, data=name, told=told, logger=logger)
                if some:
                    rows.append([name, logger, told, *scenario(some)])
    return {"logs.md": f"{markdown(rows)}\n{verdict(lines)}"}


def scenario(some: list[Line]) -> list[str]:
    """One line of the table."""
    masks = sum(line["masks"] for line in some)
    refused = sum(line["refused"] for line in some)

    def mean(field: str) -> float:
        return float(np.mean([line[field] for line in some if field in line]))

    told = masks - refused
    cells_ = [
        str(masks),
        *(f"{100 * mean(f):.0f} %" for f in ("complete", "share", "true_share")),
        str(refused),
    ]
    for name in ("error", "cost"):
        if not told:
            cells_ += ["-", "-", "-"]
            continue
        covered = sum(line[f"{name}_covered"] for line in some)
        cells_ += [
            f"{mean(f'{name}_off'):+.4f}",
            f"{mean(f'{name}_half'):.4f}",
            f"{100 * covered / told:.1f} %",
        ]
    return cells_


def verdict(lines: list[Line]) -> str:
    """Scenarios whose intervals cover between 92 and 98 %; wrong refusals."""
    usual = [line for line in lines if line["told"] == "as it is"]
    good, n_all = 0, 0
    for name in SIZES:
        for logger in LOGGERS:
            some = of(usual, data=name, logger=logger)
            told = sum(line["masks"] - line["refused"] for line in some)
            for measure_ in ("error", "cost") if told else ():
                covered = sum(line[f"{measure_}_covered"] for line in some) / told
                good, n_all = good + (0.92 <= covered <= 0.98), n_all + 1
    shares = {"below 1 %": (0.0, 0.01), "above 10 %": (0.1, 1.01)}
    counts = {
        name: refusals(lines, least, most) for name, (least, most) in shares.items()
    }
    below = sum(line["told_below"] for line in lines)
    above = sum(line["refused_above"] for line in lines)
    said = " ".join(
        f"Of {n} scenarios worth {name}, {all_} had all of their logs refused and {none} "
        f"none."
        for name, (n, all_, none) in counts.items()
    )
    return (
        f"As it is, {good} of {n_all} intervals cover between 92 and 98 %. By the true "
        f"chances: {said} Log by log, {below} worth less than 1 % were not refused, and "
        f"{above} worth more than 10 % were.\n"
    )


def refusals(lines: list[Line], least: float, most: float) -> tuple[int, int, int]:
    """Scenarios of some true worth; those refused in every log, and in none."""
    found = []
    for name in SIZES:
        for told in TOLD:
            for logger in LOGGERS:
                some = of(lines, data=name, told=told, logger=logger)
                share = np.mean([line["true_share"] for line in some] or [np.nan])
                if least <= share < most:
                    masks = sum(line["masks"] for line in some)
                    found.append((sum(line["refused"] for line in some), masks))
    return len(found), sum(r == m for r, m in found), sum(r == 0 for r, _ in found)


STUDY = Study(
    file="logs",
    key=("data", "logger", "told", "batch"),
    data=tuple(SIZES),
    cells=cells,
    measure=measure,
    pages=pages,
    quickly=("pima",),
    seeds="rows 0, logs by batch and mask",
)
