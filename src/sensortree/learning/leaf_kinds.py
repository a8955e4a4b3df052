"""Kinds of leaves: which are compared for ``classifier="auto"``, and how they are made.

Work is counted, never timed, so that the same rows give the same leaf.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sensortree.constants import (
    BOOSTED_JUDGED,
    BOOSTED_LEAF,
    BOOSTED_MIN_ROWS,
    BOOSTED_ROUNDS,
    BOOSTED_SUBSETS,
    BOOSTED_WORK,
    CLEARLY,
    HUGE_ROWS,
    QUADRATIC_WORK,
    SIZED_COLUMNS,
)
from sensortree.learning.settings import Settings
from sensortree.leaves.boosting import (
    SIZES,
    BoostedEngine,
    BoostedTrees,
    usual_size,
)
from sensortree.leaves.classifiers import LeafClassifiers
from sensortree.leaves.fitting import accepts_nan, engine_of
from sensortree.leaves.rows import TrainingRows
from sensortree.progress import Stopwatch
from sensortree.types import Array

Known = frozenset[str]


def kinds_of(
    rows: TrainingRows, settings: Settings
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Kinds of leaves that are compared, the usual one first; and others, with why not."""
    linear, quadratic, boosted = rows.task.kinds
    if any(np.isnan(block).any() for block in rows.blocks):
        why = "takes no missing readings, and some are not filled in"
        return (boosted,), dict.fromkeys((linear, quadratic), why)
    out: dict[str, str] = {}
    width = max((rows.features(s).shape[1] for s in widest(rows, settings)), default=0)
    n_terms, most = width * (width + 3) // 2, rows.task.most_terms
    work = float(rows.weight.sum()) * n_terms * rows.task.n_trees(len(rows.classes))
    if n_terms > most or work > QUADRATIC_WORK:
        out[quadratic] = (
            f"has {n_terms} terms for {width} columns, {work:.1e} for all rows and "
            f"classes; {QUADRATIC_WORK:.0e} is the most, and {most} terms"
        )
    work = boosted_work(rows, settings.n_leaves)
    if len(rows.y) < BOOSTED_MIN_ROWS:
        out[boosted] = f"wants {BOOSTED_MIN_ROWS} rows or more, there are {len(rows.y)}"
    elif work > BOOSTED_WORK:
        out[boosted] = (
            f"would look at about {work:.1e} readings; {BOOSTED_WORK:.0e} is the most"
        )
    elif not (rows.fold >= 0).any():
        out[boosted] = "is compared on held-out rows only"
    usual = (quadratic, linear, boosted)
    return tuple(kind for kind in usual if kind not in out), out


def named_leaves(
    rows: TrainingRows, settings: Settings, watch: Stopwatch
) -> LeafClassifiers:
    """Leaves of the kind that the user named; boosted trees of the size that suits."""
    if settings.classifier == "boosted":
        trees = settings.leaf("boosted")
        with watch.stage("leaf classifiers"):
            trees = sized_trees(trees, rows, widest(rows, settings))
        settings = replace(settings, classifier=trees)
    return LeafClassifiers(rows, settings.kept_leaf, settings.n_jobs, watch=watch)


def leaves_of_kind(
    kind: str,
    rows: TrainingRows,
    settings: Settings,
    watch: Stopwatch,
) -> LeafClassifiers:
    """Leaves of a kind that is compared; the policy refuses gaps that it does not take."""
    takes_nan = accepts_nan(settings.leaf(kind))
    rows = replace(rows, reader=replace(rows.reader, allow_nan=takes_nan))
    return named_leaves(rows, replace(settings, classifier=kind), watch)


def widest(rows: TrainingRows, settings: Settings) -> list[Known]:
    """A third of the sensors that may be bought together, and all, of so many columns."""
    market = rows.market(settings.max_cost)
    width = [block.shape[1] for block in rows.coded_blocks]
    known, nested = market.free(), list[Known]()
    for name in rows.sensors.names:
        more = None if name in known else market.extension(known, name)
        if more is None:
            continue
        if nested and sum(width[rows.sensors.index(s)] for s in more) > SIZED_COLUMNS:
            continue
        known = more
        nested.append(known)
    few = max(1, round(len(nested) / 3))
    return list(dict.fromkeys(nested[k - 1] for k in (few, len(nested)) if nested))


def sized_trees(trees: Any, rows: TrainingRows, subsets: Sequence[Known]) -> Any:
    """Boosted trees of the size that suits the rows: of few, the usual; of many, by loss.

    Large trees are right where much can be told; where little can, they learn noise. A
    part of the rows is held out to see. Huge ones are for many rows of each class, where
    large ones are better than small.
    """
    usual = usual_size(len(rows.y))
    held_out = bool(subsets) and bool((rows.fold >= 0).any())
    if usual != "large" or not held_out or not isinstance(trees, BoostedTrees):
        return trees
    weight = rows.weight if rows.weighted else None

    def lost(size: str) -> float:
        engine = BoostedEngine(rows.y, len(rows.classes), weight, rows.fold, size)
        each = [engine.loss_of_some(rows.coded(subset)).mean() for subset in subsets]
        return float(np.mean(each))

    large, small = lost("large"), lost("small")
    if small < large:
        return BoostedTrees("small")
    enough = len(rows.y) >= HUGE_ROWS * len(rows.classes)
    return BoostedTrees("huge" if enough and lost("huge") < large else "large")


def lead_of_kind(one: LeafClassifiers, other: LeafClassifiers, subset: Known) -> float:
    """Standard errors by which one kind of leaf leads another, by log-loss held out.

    Boosted leaves, which take longest, are judged on whole folds, as many as say enough.
    Of numbers by what is lost.
    """
    rows = one.data
    every = [int(f) for f in np.unique(rows.fold) if f >= 0]
    held = np.cumsum([rows.weight[rows.fold == f].sum() for f in every])
    folds = every[: int(np.searchsorted(held, BOOSTED_JUDGED)) + 1]
    weight = rows.weight if rows.weighted else None
    engine = engine_of(one.classifier, rows.y, rows.n_outputs, weight, rows.fold)
    if isinstance(engine, BoostedEngine) and len(folds) < len(every):
        said, _ = engine.judge_some(rows.coded(subset), folds)
        at = np.flatnonzero(np.isin(rows.fold, folds))
    else:
        one.judge([subset])
        said = one.posteriors[subset]
        at = np.flatnonzero(rows.fold >= 0)
    other.judge([subset])

    def lost(likely: Array) -> Array:
        return np.asarray(rows.task.compared(likely[at], rows.y[at], rows.loss))

    ahead = lost(other.posteriors[subset]) - lost(said)
    lead = rows.take(at).each_row().each(ahead)
    error = float(lead.std() / np.sqrt(len(lead)))
    return float(lead.mean()) / error if error else 0.0


def likeliest(leaves: Mapping[str, LeafClassifiers], subsets: Sequence[Known]) -> str:
    """The kind of leaf of the least held-out log-loss with some of the sensors.

    Boosted leaves only if they are clearly likelier.
    """
    first, *others = leaves
    for kind in others if subsets else ():
        lead = lead_of_kind(leaves[kind], leaves[first], subsets[0])
        if lead > (CLEARLY if kind == "boosted" else 0.0):
            first = kind
    return first


def boosted_work(rows: TrainingRows, n_leaves: int | str) -> float:
    """Readings that trees look at in a fit with boosted leaves, counted roughly."""
    n_leaves = BOOSTED_SUBSETS if isinstance(n_leaves, str) else n_leaves
    n_outputs = rows.task.n_trees(len(rows.classes))
    n_sensors, weight = len(rows.blocks), float(rows.weight.sum())
    n_subsets = min(2**n_sensors - 1, n_leaves)
    n_folds = len(np.unique(rows.fold[rows.fold >= 0]))
    n_trees = BOOSTED_ROUNDS * n_outputs * n_subsets * (n_folds + 1)
    # A leaf knows half of what a path of that length can buy.
    share = min(1.0, n_leaves / n_sensors) / 2
    width = share * sum(block.shape[1] for block in rows.coded_blocks)
    return float(n_trees * (BOOSTED_LEAF * SIZES["medium"].leaves + weight * width))
