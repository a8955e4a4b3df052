"""`LeafClassifiers`: classifiers of sensor subsets, each fitted once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, TypeVar

from sensortree.leaves.boosting import BoostedEngine
from sensortree.leaves.coding import Coded
from sensortree.leaves.fitting import (
    engine_of,
    fit_by_engine,
    fit_leaf_classifiers,
    judge_by_engine,
    judge_leaf_classifiers,
    screen_leaf_classifiers,
)
from sensortree.leaves.rows import TrainingRows
from sensortree.progress import Stopwatch
from sensortree.types import Array, Rows

Asked = TypeVar("Asked")


Subsets = Iterable[frozenset[str]]


def timed(
    method: Callable[[LeafClassifiers, Subsets], Asked],
) -> Callable[[LeafClassifiers, Subsets], Asked]:
    """Count the time of a method, and how many subsets it has judged."""

    @wraps(method)
    def timed_method(leaves: LeafClassifiers, subsets: Subsets) -> Asked:
        before = len(leaves.posteriors)
        with leaves.watch.stage("leaf classifiers"):
            found = method(leaves, subsets)
        leaves.watch.counts["judged"] += len(leaves.posteriors) - before
        return found

    return timed_method


@dataclass(frozen=True, eq=False)
class LeafClassifiers:
    """Classifiers of sensor subsets, each fitted once, when it is first asked for.

    Attributes
    ----------
    data : TrainingRows
    classifier : scikit-learn classifier
    n_jobs : int or None
    classifiers : dict of subset to classifier, fitted on all rows
    posteriors : dict of subset to ndarray of shape (n_samples, n_classes), out of fold
    starts : dict of subset to what its engine found
        Where fits to all rows set out from.
    watch : Stopwatch
        Counts the time that they take.
    """

    data: TrainingRows
    classifier: Any
    n_jobs: int | None
    classifiers: dict[frozenset[str], Any] = field(default_factory=dict)
    posteriors: dict[frozenset[str], Array] = field(default_factory=dict)
    starts: dict[frozenset[str], Any] = field(default_factory=dict)
    watch: Stopwatch = field(default_factory=Stopwatch)

    def take(self, rows: Rows) -> LeafClassifiers:
        """LeafClassifiers of some of the rows, who learn from those rows alone."""
        part = self.data.take(rows)
        return LeafClassifiers(part, self.classifier, self.n_jobs, watch=self.watch)

    @timed
    def judge(self, subsets: Iterable[frozenset[str]]) -> None:
        """Find the posteriors of those subsets that have none yet."""
        data = self.data
        new = [s for s in dict.fromkeys(subsets) if s not in self.posteriors]
        engine = self._engine(data.fold)
        if engine is not None:
            read = self._read(engine, new)
            for subset, judged in judge_by_engine(engine, read, self.n_jobs).items():
                self.posteriors[subset], self.starts[subset] = judged
            return
        features = {subset: data.features(subset) for subset in new}
        self.posteriors.update(
            judge_leaf_classifiers(
                self.classifier,
                features,
                data.y,
                data.n_outputs,
                data.weight if data.weighted else None,
                data.fold,
                self.n_jobs,
            )
        )

    @timed
    def fit(self, subsets: Iterable[frozenset[str]]) -> dict[frozenset[str], Any]:
        """Give the classifiers of some subsets, fitting those that are not fitted yet."""
        data, wanted = self.data, list(subsets)
        new = [s for s in dict.fromkeys(wanted) if s not in self.classifiers]
        engine = self._engine(None)
        if engine is not None:
            read = self._read(engine, new)
            made = fit_by_engine(engine, read, self.starts, self.n_jobs)
        else:
            features = {subset: data.features(subset) for subset in new}
            weight = data.weight if data.weighted else None
            made = fit_leaf_classifiers(
                self.classifier, features, data.y, weight, self.n_jobs
            )
        self.classifiers.update(made)
        return {subset: self.classifiers[subset] for subset in wanted}

    def _engine(self, fold: Rows | None) -> Any:
        data = self.data
        weight = data.weight if data.weighted else None
        return engine_of(self.classifier, data.y, data.n_outputs, weight, fold)

    def _read(self, engine: Any, subsets: Subsets) -> dict[frozenset[str], Any]:
        """What an engine is given of each subset: trees get categories as codes."""
        read: Callable[[frozenset[str]], Array | Coded] = self.data.features
        if isinstance(engine, BoostedEngine):
            read = self.data.coded
        return {subset: read(subset) for subset in subsets}

    @timed
    def screen(self, subsets: Iterable[frozenset[str]]) -> dict[frozenset[str], Array]:
        """Posteriors of light copies of the classifiers of some subsets."""
        data = self.data
        return screen_leaf_classifiers(
            self.classifier,
            {subset: data.features(subset) for subset in subsets},
            data.y,
            data.n_outputs,
            self.n_jobs,
        )
