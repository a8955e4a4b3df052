"""`Prepared`: training rows with all that fits on them share, and their kinds of leaves.

Which kinds are compared for ``classifier="auto"`` is decided by work that is counted, never
timed, so that the same rows give the same leaf.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from sensortree.constants import (
    BOOSTED_CLASS_ROWS,
    BOOSTED_LEAF,
    BOOSTED_ROUNDS,
    BOOSTED_SUBSETS,
    BOOSTED_WORK,
    CLOSE_COST_WEIGHTS,
    HUGE_ROWS,
    JUDGED_ROWS,
    QUADRATIC_WORK,
    SIZED_COLUMNS,
)
from sensortree.learning.settings import Settings
from sensortree.leaves.boosting import SIZES, BoostedEngine, BoostedTrees, usual_size
from sensortree.leaves.classifiers import LeafClassifiers
from sensortree.leaves.fitting import accepts_nan, engine_of
from sensortree.leaves.rows import TrainingRows
from sensortree.logs.leaves import LoggedClassifiers
from sensortree.progress import Stopwatch, TextProgress
from sensortree.structure.losses import standardised
from sensortree.structure.search import StructureSearch, open_search
from sensortree.types import Array

Known = frozenset[str]
Share = Callable[[LeafClassifiers], LeafClassifiers]


@dataclass
class Winners:
    """What was taken at which cost weight, where fits learn from each other.

    Once `settled`, nothing more is learned: fits may then come in any order.
    """

    won: dict[float, str] = field(default_factory=dict)
    settled: bool = False

    def expected(self, cost_weight: float) -> frozenset[str]:
        """What won at the next cost weights below and above; nothing at an end.

        If these are close, what won at the closer: where one thing takes over from
        another, they are about as good.
        """
        below = max((w for w in self.won if w <= cost_weight), default=None)
        above = min((w for w in self.won if w >= cost_weight), default=None)
        if below is None or above is None:
            return frozenset()
        if above <= CLOSE_COST_WEIGHTS * below:
            closer = below if cost_weight**2 < below * above else above
            return frozenset({self.won[closer]})
        return frozenset({self.won[below], self.won[above]})

    def add(self, cost_weight: float, name: str) -> None:
        """Remember who won, unless nothing more is to be learned."""
        if not self.settled:
            self.won[cost_weight] = name


@dataclass(frozen=True, eq=False)
class Prepared:
    """One reading of the data, for any number of fits that differ in what it costs."""

    leaves: LeafClassifiers  # what one fit asked for is there for the next
    settings: Settings  # how structures are searched for
    progress: TextProgress  # is told of each step, and may say stop
    # What won in fits at other cost weights, where they are only measured; None where the
    # model is kept, and must not depend on other fits.
    winners: Winners | None = None
    # Kinds of leaves that are compared, the one that searches go by first; none if the user
    # named one.
    kinds: tuple[str, ...] = ()
    not_compared: dict[str, str] = field(default_factory=dict)  # kinds, and why not
    of_kind: dict[str, LeafClassifiers] = field(default_factory=dict)
    # Gives leaves that share their classifiers with other fits.
    share: Share = lambda leaves: leaves

    @cached_property
    def search(self) -> StructureSearch:
        """The search for a structure, begun when it is first asked for."""
        settings = self.settings
        return open_search(
            self.leaves,
            settings.n_leaves,
            None if settings.n_exact == "all" else int(settings.n_exact),
            settings.max_cost,
            self.progress,
        )

    def leaves_of(self, kind: str) -> LeafClassifiers:
        """Leaves of a kind."""
        if not kind or (self.kinds and kind == self.kinds[0]):
            return self.leaves
        if kind not in self.of_kind:
            data, watch = self.leaves.data, self.progress.watch
            own = leaves_of_kind(kind, data, self.settings, watch)
            self.of_kind[kind] = self.share(own)
        return self.of_kind[kind]

    def led_by(self, kind: str) -> Prepared:
        """The same with another kind of leaf first, and a search of its own."""
        kinds = kind, *(other for other in self.kinds if other != kind)
        return replace(self, leaves=self.leaves_of(kind), kinds=kinds)

    def by_screens(self) -> Prepared:
        """The same with searches that trust the screen, and share its answers."""
        other = replace(self, settings=replace(self.settings, n_exact=0))
        other.__dict__["search"] = replace(self.search, n_exact=0)
        return other

    def with_leaves(self, leaves: LeafClassifiers) -> Prepared:
        """The same with other leaves; the search, and what it screened, is shared."""
        if leaves is self.leaves:
            return self
        other = replace(self, leaves=leaves)
        other.__dict__["search"] = self.search
        return other

    def without(self, fold: int) -> Prepared:
        """The rows outside a fold, for the same searches without it."""
        rows = np.flatnonzero(self.leaves.data.fold != fold)
        part = self.leaves.take(rows)
        own = self.progress.part()
        return Prepared(
            part, self.settings, own, self.winners, self.kinds, self.not_compared
        )


def prepare(
    rows: TrainingRows,
    settings: Settings,
    progress: TextProgress,
    share: Share = lambda leaves: leaves,
) -> Prepared:
    """Give training rows their leaf classifiers; none is fitted to all rows yet."""
    watch = progress.watch
    if settings.classifier != "auto":
        named = share(named_leaves(rows, settings, watch))
        return Prepared(named, settings, progress, share=share)
    kinds, out = kinds_of(rows, settings)
    leaves = {
        kind: share(leaves_of_kind(kind, rows, settings, watch)) for kind in kinds
    }
    first = leaves[kinds[0]]
    return Prepared(first, settings, progress, None, kinds, out, leaves, share)


# kinds of leaves ------------------------------------------------------------------------


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
    least = BOOSTED_CLASS_ROWS * max(2, len(rows.classes))
    if len(rows.y) < least:
        out[boosted] = f"wants {least} rows or more, there are {len(rows.y)}"
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
    of_log = rows.continued is not None
    classifiers = LoggedClassifiers if of_log else LeafClassifiers
    return classifiers(rows, settings.kept_leaf, settings.n_jobs, watch=watch)


def leaves_of_kind(
    kind: str, rows: TrainingRows, settings: Settings, watch: Stopwatch
) -> LeafClassifiers:
    """Leaves of a kind that is compared; the policy refuses gaps that it does not take."""
    takes_nan = accepts_nan(settings.leaf(kind))
    rows = replace(rows, reader=replace(rows.reader, allow_nan=takes_nan))
    return named_leaves(rows, replace(settings, classifier=kind), watch)


def widest(rows: TrainingRows, settings: Settings) -> list[Known]:
    """A third of the sensors that may be bought together, and all, of so many columns.

    Those that go with the target most come first.
    """
    market = rows.market(settings.max_cost)
    width = [block.shape[1] for block in rows.coded_blocks]
    known, nested = market.free(), list[Known]()
    for name in by_association(rows):
        more = None if name in known else market.extension(known, name)
        if more is None:
            continue
        if nested and sum(width[rows.sensors.index(s)] for s in more) > SIZED_COLUMNS:
            continue
        known = more
        nested.append(known)
    few = max(1, round(len(nested) / 3))
    return list(dict.fromkeys(nested[k - 1] for k in (few, len(nested)) if nested))


def by_association(rows: TrainingRows) -> list[str]:
    """Names of sensors, that whose columns go with the target most first."""
    targets = rows.task.targets(rows.y, rows.weight)
    share = rows.weight / rows.weight.sum()
    targets = share[:, None] * (targets - share @ targets)
    strength = []
    for block in rows.blocks:
        columns = standardised(block, rows.weight)
        strength.append(float(((columns.T @ targets) ** 2).sum()))
    ranked = zip(np.round(strength, 9).tolist(), rows.sensors.names, strict=True)
    return [name for _, name in sorted(ranked, key=lambda each: (-each[0], each[1]))]


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
    folds = every[: int(np.searchsorted(held, JUDGED_ROWS)) + 1]
    weight = rows.weight if rows.weighted else None
    engine = engine_of(one.classifier, rows.y, rows.n_outputs, weight, rows.fold)
    if isinstance(engine, BoostedEngine) and len(folds) < len(every):
        proba, _ = engine.judge_some(rows.coded(subset), folds)
        at = np.flatnonzero(np.isin(rows.fold, folds))
    else:
        one.judge([subset])
        proba = one.posteriors[subset]
        at = np.flatnonzero(rows.fold >= 0)
    other.judge([subset])

    def lost(likely: Array) -> Array:
        return np.asarray(rows.task.compared(likely[at], rows.y[at], rows.loss))

    ahead = lost(other.posteriors[subset]) - lost(proba)
    lead = rows.take(at).each_row().each(ahead)
    error = float(lead.std() / np.sqrt(len(lead)))
    return float(lead.mean()) / error if error else 0.0


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
