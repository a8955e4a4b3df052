"""`choose_leaf`: which kind of leaf classifier suits the rows, for ``classifier="auto"``.

The kinds are compared by their log-loss on rows that are held out, with a few sensors and
with many: those that tell most about the class, each by itself. The simplest within one
standard error of the least is taken. A kind that would take out of proportion long is not
compared: work is counted, never timed, so that the same rows give the same leaf. Boosted
leaves take longest, and are compared only where a few trees find something in what the best
of the others leaves unexplained.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sensortree.learning.degree import lead_of_products
from sensortree.learning.settings import Settings
from sensortree.leaves.boosting import (
    SIZES,
    BoostedEngine,
    BoostedTrees,
    boosted_numbers,
    usual_size,
)
from sensortree.leaves.classifiers import LeafClassifiers
from sensortree.leaves.fitting import accepts_nan, engine_of
from sensortree.leaves.rows import FOLDS, TrainingRows
from sensortree.progress import Stopwatch
from sensortree.types import Array, Rows

# Columns of the larger subset, unless one sensor has more; a category is one.
WIDE = 32
# Distinct rows from which boosted leaves are compared.
ENOUGH_TO_BOOST = 500
# Weight of rows to judge boosted leaves on: whole folds, as many as that takes.
JUDGED = 1_200
# Standard errors by which what is left unexplained must be seen, for them to be compared;
# levels of a category from which they are compared in any case.
SEEN, MANY_LEVELS = 1.0, 10
# Rounds and subsets that are counted on, before anything is known; readings that take as
# long as one more leaf of a tree; readings that a fit with boosted leaves may take.
ROUNDS, SUBSETS, LEAF, BOOSTED_WORK = 40, 16, 4_000, 2e9
# Terms of all rows and classes that one quadratic leaf may take.
QUADRATIC_WORK = 5e8
# Rows of each class from which huge trees are tried.
HUGE_ROWS = 5_000
# Bins of a column where the information in it is measured.
BINS = 16
# Standard errors by which the more complex must be better.
CLEARLY = 1.0

Subset = frozenset[str]


@dataclass(frozen=True)
class LeafReport:
    """Which kind of leaf classifier was taken, and what it was compared with.

    Attributes
    ----------
    choice : {"linear", "logistic2", "boosted"}
        Of numbers, "quadratic" in place of "logistic2".
    subsets : list of list of str
        The sensors that the kinds were compared with.
    log_loss : dict of str to list of float
        Held-out log-loss of each kind with each of them, of classes.
    error : dict of str to float
        Standard error of the difference to the least mean.
    n_rows : int
        Rows that it is a mean of.
    not_compared : dict of str to str
        Kinds that were left out, and why.
    loss : dict of str to list of float
        Held-out loss of each kind with each of the subsets, of numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from sensortree import SensorTreeClassifier
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> model = SensorTreeClassifier().fit(X, (X ** 2).sum(axis=1) > 1.5)
    >>> model.leaf_report_.choice
    'logistic2'
    """

    choice: str
    subsets: list[list[str]]
    log_loss: dict[str, list[float]] = field(default_factory=dict)
    error: dict[str, float] = field(default_factory=dict)
    n_rows: int = 0
    not_compared: dict[str, str] = field(default_factory=dict)
    loss: dict[str, list[float]] = field(default_factory=dict)

    def __str__(self) -> str:
        likely = {
            kind: f"{np.mean(losses):.4f}" for kind, losses in self.log_loss.items()
        }
        lost = {kind: f"{np.mean(losses):.4g}" for kind, losses in self.loss.items()}
        shown = ", ".join(f"{kind} {mean}" for kind, mean in (likely | lost).items())
        said = f"leaf {'regressor' if lost else 'classifier'} {self.choice!r}"
        if shown:
            measure = "loss" if lost else "log-loss"
            said += f"; {measure} on {self.n_rows} rows held out: {shown}"
        left = "; ".join(f"{kind} {why}" for kind, why in self.not_compared.items())
        return f"{said}\nnot compared: {left}" if left else said


def leaves_of(
    rows: TrainingRows, settings: Settings, watch: Stopwatch
) -> tuple[LeafClassifiers, LeafReport | None]:
    """Give training rows their leaf classifiers, of the kind that suits them if "auto".

    What was judged on the way is kept.
    """
    if settings.classifier != "auto":
        if settings.classifier == "boosted":
            with watch.stage("leaf choice"):
                subsets = compared_subsets(rows, settings.max_cost)
                sized = sized_trees(settings.leaf("boosted"), rows, subsets)
                settings = replace(settings, classifier=sized)
        return _leaves(rows, settings, watch), None
    with watch.stage("leaf choice"):
        judged, report = choose_leaf(complete_rows(rows), settings)
    # What the leaf does not take, the policy refuses.
    takes_nan = accepts_nan(settings.leaf(report.choice))
    rows = replace(rows, reader=replace(rows.reader, allow_nan=takes_nan))
    taken = judged.classifier or report.choice
    leaves = _leaves(rows, replace(settings, classifier=taken), watch)
    if settings.calibration is None and rows.continued is None:
        leaves.posteriors.update(judged.posteriors)
        leaves.starts.update(judged.starts)
    return leaves, report


def complete_rows(rows: TrainingRows) -> TrainingRows:
    """Rows that nobody stands in for; of a log, those for which most was bought."""
    log = rows.continued
    if log is None:
        return rows
    part = rows.take(np.flatnonzero(log.has(log.reach[0])))
    assert part.continued is not None
    return replace(part, continued=part.continued.first_set())


def _leaves(
    rows: TrainingRows, settings: Settings, watch: Stopwatch
) -> LeafClassifiers:
    return LeafClassifiers(rows, settings.kept_leaf, settings.n_jobs, watch=watch)


@dataclass(frozen=True, eq=False)
class Judged:
    """What a kind of leaf says of rows that it has not seen.

    Attributes
    ----------
    classifier : scikit-learn classifier or None
        Of that kind.
    said : dict of subset to ndarray of shape (n_samples, n_classes)
        Right where a row was judged.
    posteriors, starts : dict by subset
        The same where all rows were, and what it was found with.
    """

    classifier: Any = None
    said: dict[Subset, Array] = field(default_factory=dict)
    posteriors: dict[Subset, Array] = field(default_factory=dict)
    starts: dict[Subset, Any] = field(default_factory=dict)


def choose_leaf(rows: TrainingRows, settings: Settings) -> tuple[Judged, LeafReport]:
    """Compare kinds of leaves; what the one taken says, and the report."""
    subsets = compared_subsets(rows, settings.max_cost)
    in_order = rows.sensors.in_order
    named = [list(in_order(subset)) for subset in subsets]
    out = not_compared(rows, subsets, settings)
    every = rows.task.kinds
    kinds = [kind for kind in every if kind not in out]
    if set(every[:2]) <= set(kinds):
        out |= the_other_degree(rows, settings)
        kinds = [kind for kind in every if kind not in out]
    if not subsets or len(kinds) == 1:
        return Judged(), LeafReport(kinds[0], named, not_compared=out)
    fold = rows.fold
    given = bool((fold >= 0).any())
    if not given:  # nothing is held out for the fit, but here it has to be
        readings = np.hstack(rows.blocks)
        fold = rows.task.folds(readings, rows.y, FOLDS, rows.classes)
    folds = [int(f) for f in np.unique(fold) if f >= 0]
    if not folds:
        return Judged(), LeafReport(every[1], named, not_compared=out)
    judged = {
        kind: judge_kind(settings.leaf(kind), rows, fold, folds, subsets)
        for kind in kinds
        if kind != "boosted"
    }
    if "boosted" in kinds:
        # Of many levels others learn noise. Who then looks at what they leave unexplained
        # of a level sees the opposite of what its other rows say.
        sure = has_many_levels(rows, subsets)
        seen = np.inf if sure else unexplained(judged, rows, fold, folds[0], subsets)
        if seen > SEEN:
            folds = boosted_folds(rows, fold, folds)
            boosted = settings.leaf("boosted")
            boosted = sized_trees(boosted, replace(rows, fold=fold), subsets)
            judged["boosted"] = judge_kind(boosted, rows, fold, folds, subsets)
        else:
            out["boosted"] = (
                f"finds nothing that others leave unexplained: {seen:.1f} standard errors "
                f"on rows held out, where more than {SEEN:g} would be something"
            )
    losses = losses_of(judged, rows, fold, folds)
    means = {kind: loss.mean(axis=0) for kind, loss in losses.items()}
    choice, error = simplest_of_the_best(means)
    measured = {kind: loss.mean(axis=1).tolist() for kind, loss in losses.items()}
    report = LeafReport(
        choice,
        named,
        {} if rows.loss.numbers else measured,
        error,
        len(means[choice]),
        out,
        measured if rows.loss.numbers else {},
    )
    kept = judged[choice]
    return kept if given else Judged(kept.classifier), report


def sized_trees(trees: Any, rows: TrainingRows, subsets: Sequence[Subset]) -> Any:
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


def the_other_degree(rows: TrainingRows, settings: Settings) -> dict[str, str]:
    """The degree that is not compared, and why; neither if a screen cannot say."""
    found = lead_of_products(rows, settings)
    if found is None:
        return {}
    lead, asked = found
    linear, quadratic, _ = rows.task.kinds
    if lead > asked:
        return {
            linear: f"tells less where a tree stops: products of readings lower "
            f"the loss by {lead:.1f} standard errors"
        }
    return {
        quadratic: f"tells no more where a tree stops: products of readings lower "
        f"the loss by {lead:.1f} standard errors, more than {asked:g} is asked for"
    }


def has_many_levels(rows: TrainingRows, subsets: Iterable[Subset]) -> bool:
    """Whether trees would split a category of many levels somewhere."""
    return any(rows.coded(each).coding.most_levels >= MANY_LEVELS for each in subsets)


def unexplained(
    judged: Mapping[str, Judged],
    rows: TrainingRows,
    fold: Rows,
    out: int,
    subsets: Sequence[Subset],
) -> float:
    """Standard errors by which trees see what the best of some kinds leaves unexplained.

    That is d, by which classes (1 or 0) differ from the posterior, or numbers from what
    is answered; trees that are boosted
    on the d of other folds say t of those of one fold. The mean of d t is above 0 if they
    have seen something, and below if what they learned was noise.
    """
    every = [int(f) for f in np.unique(fold[fold >= 0])]
    losses = losses_of(judged, rows, fold, every)
    best = judged[min(losses, key=lambda kind: float(losses[kind].mean()))]
    first, weight = rows.distinct()
    train, test = first[fold[first] != out], fold[first] == out
    seen = np.zeros(int(test.sum()))
    for subset in subsets:
        differs = rows.task.unexplained(best.said[subset], rows)
        X, rest = rows.coded(subset), weight[fold[first] != out]
        new = X.take(first[test])
        said = boosted_numbers(X.take(train), differs[train], rest, new)
        seen += (said * differs[first[test]]).sum(axis=1)
    seen *= weight[test]
    error = float(seen.std() / np.sqrt(len(seen)))
    return float(seen.mean()) / error if error else 0.0


def losses_of(
    judged: Mapping[str, Judged], rows: TrainingRows, fold: Rows, folds: Sequence[int]
) -> dict[str, Array]:
    """Loss of each kind with each subset on the distinct rows of some folds.

    Of classes the log-loss.

    Times the weight of the row, (n_subsets, n_rows).
    """
    first, weight = rows.distinct()
    kept = np.isin(fold[first], folds)
    first, share = first[kept], weight[kept] / weight[kept].mean()
    y, task, loss = rows.y[first], rows.task, rows.loss
    return {
        kind: share
        * np.array([task.compared(said[first], y, loss) for said in each.said.values()])
        for kind, each in judged.items()
    }


def compared_subsets(rows: TrainingRows, max_cost: float | None) -> list[Subset]:
    """A third of the sensors, and as many as may be bought, the most telling first."""
    market = rows.market(max_cost)
    levels = rows.task.levels(rows.y, rows.weight)
    told = [information(block, levels, rows.weight) for block in rows.blocks]
    width = dict(
        zip(rows.sensors.names, [b.shape[1] for b in rows.coded_blocks], strict=True)
    )
    known = market.free()
    nested = [known] if known else []
    for sensor in np.argsort(-np.array(told), kind="stable"):
        name = rows.sensors.names[sensor]
        more = None if name in known else market.extension(known, name)
        if more is None or (nested and sum(width[s] for s in more) > WIDE):
            continue
        known = more
        nested.append(known)
    few = max(1, round(len(nested) / 3))
    return list(dict.fromkeys(nested[k - 1] for k in (few, len(nested)) if nested))


def information(block: Array, y: Rows, weight: Array) -> float:
    """Most nats that a column of a sensor tells about the class, in bins of equal weight.

    Whatever the kind of leaf, it has to use this information.
    """
    total = weight.sum()
    prior = np.bincount(y, weight) / total
    most = 0.0
    for column in block.T:
        _, values = np.unique(column, return_inverse=True)  # NaN is a value
        mass = np.bincount(values, weight)
        middle = (np.cumsum(mass) - mass / 2) / total
        bins = np.floor(BINS * middle).astype(int)[values]
        joint = np.zeros((BINS, len(prior)))
        np.add.at(joint, (bins, y), weight / total)
        apart = joint.sum(axis=1, keepdims=True) * prior
        there = joint > 0
        most = max(most, float(joint[there] @ np.log(joint[there] / apart[there])))
    return most


def not_compared(
    rows: TrainingRows, subsets: Sequence[Subset], settings: Settings
) -> dict[str, str]:
    """Kinds that cannot be compared, or would take too long, and why."""
    if any(np.isnan(block).any() for block in rows.blocks):
        why = "takes no missing readings, and some are not filled in"
        return dict.fromkeys(rows.task.kinds[:2], why)
    out: dict[str, str] = {}
    n_outputs = rows.task.n_trees(len(rows.classes))
    terms = rows.task.most_terms
    weight = float(rows.weight.sum())
    width = max((rows.features(s).shape[1] for s in subsets), default=0)
    n_terms = width * (width + 3) // 2
    work = weight * n_terms * n_outputs
    if n_terms > terms or work > QUADRATIC_WORK:
        out[rows.task.kinds[1]] = (
            f"has {n_terms} terms for {width} columns, {work:.1e} for all rows and "
            f"classes; {QUADRATIC_WORK:.0e} is the most, and {terms} terms"
        )
    work = boosted_work(rows, settings.n_leaves)
    n_distinct = len(rows.distinct()[0])
    if n_distinct < ENOUGH_TO_BOOST:
        out["boosted"] = (
            f"wants {ENOUGH_TO_BOOST} distinct rows or more, there are {n_distinct}"
        )
    elif work > BOOSTED_WORK:
        out["boosted"] = (
            f"would look at about {work:.1e} readings for {n_outputs} outputs; "
            f"{BOOSTED_WORK:.0e} is the most"
        )
    return out


def boosted_work(rows: TrainingRows, n_leaves: int | str) -> float:
    """Readings that trees look at in a fit with boosted leaves, counted roughly."""
    n_leaves = SUBSETS if isinstance(n_leaves, str) else n_leaves
    n_outputs = rows.task.n_trees(len(rows.classes))
    n_sensors, weight = len(rows.blocks), float(rows.weight.sum())
    n_subsets = min(2**n_sensors - 1, n_leaves)
    n_folds = len(np.unique(rows.fold[rows.fold >= 0]))
    n_trees = ROUNDS * n_outputs * n_subsets * (n_folds + 1)
    # A leaf knows half of what a path of that length can buy.
    share = min(1.0, n_leaves / n_sensors) / 2
    width = share * sum(block.shape[1] for block in rows.coded_blocks)
    return float(n_trees * (LEAF * SIZES["medium"].leaves + weight * width))


def boosted_folds(rows: TrainingRows, fold: Rows, folds: list[int]) -> list[int]:
    """Folds that kinds are compared on where one of them is boosted, which takes long."""
    held = np.cumsum([rows.weight[fold == f].sum() for f in folds])
    return folds[: int(np.searchsorted(held, JUDGED)) + 1]


def judge_kind(
    classifier: Any,
    rows: TrainingRows,
    fold: Rows,
    folds: list[int],
    subsets: Iterable[Subset],
) -> Judged:
    """Judge one kind of leaf with some subsets, on some folds at least."""
    weight = rows.weight if rows.weighted else None
    engine = engine_of(classifier, rows.y, rows.n_outputs, weight, fold)
    assert engine is not None  # every kind has one
    found = Judged(classifier)
    for subset in subsets:
        if isinstance(engine, BoostedEngine):
            X = rows.coded(subset)
            if len(folds) < len(engine.folds):
                found.said[subset], _ = engine.judge_some(X, folds)
                continue
            found.said[subset], found.starts[subset] = engine.judge(X)
        else:
            readings = rows.features(subset)
            found.said[subset], found.starts[subset] = engine.judge(readings)
        found.posteriors[subset] = found.said[subset]
    return found


def simplest_of_the_best(losses: dict[str, Array]) -> tuple[str, dict[str, float]]:
    """The first kind within one standard error of the least mean, and these errors."""
    mean = {kind: float(loss.mean()) for kind, loss in losses.items()}
    best = min(mean, key=mean.__getitem__)
    error = {
        kind: float((loss - losses[best]).std() / np.sqrt(len(loss)))
        for kind, loss in losses.items()
    }
    good = [kind for kind in mean if mean[kind] - mean[best] <= CLEARLY * error[kind]]
    return good[0], error
