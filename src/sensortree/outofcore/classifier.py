"""`DaskSensorTreeClassifier`: the sensor tree of rows that do not fit into memory."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from numbers import Integral, Real
from operator import call
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from sensortree.estimators.base import Interval, all_or_nothing
from sensortree.estimators.parameters import parameters
from sensortree.estimators.sensor_tree import SensorTreeClassifier
from sensortree.estimators.validation import read_rows
from sensortree.exceptions import DataError, ParameterError, PriceWarning
from sensortree.learning.choose import choose_recipe
from sensortree.learning.fit import counted, price_message, report_from_now
from sensortree.learning.joint import Learner
from sensortree.learning.prepare import prepare
from sensortree.learning.settings import Settings
from sensortree.leaves.rows import TrainingRows
from sensortree.outofcore.chunk import Source
from sensortree.outofcore.disk import OnDisk
from sensortree.outofcore.learning import Sample, fit_in_chunks, widths_of
from sensortree.outofcore.partitions import (
    Digests,
    Partitions,
    all_digests,
    digests,
    joined,
    parts_beside,
    priced_by_all,
    read_part,
    some_rows,
)
from sensortree.outofcore.readings import Cluster, Ordered, ThisMachine
from sensortree.outofcore.workers import OnWorkers
from sensortree.policy.about import About, now
from sensortree.program.chunks import Chunks, InMemory
from sensortree.program.solvers.structured.chunk import block_rows
from sensortree.progress import TextProgress
from sensortree.threads import one_thread, threads_asked
from sensortree.types import Array, Rows


@parameters
class DaskSensorTreeClassifier(SensorTreeClassifier):
    """`SensorTreeClassifier` for rows in a Dask cluster, or in files on one machine.

    The tree, the kind of leaf, calibration and detours are chosen on a sample of the rows.
    Leaf classifiers ("linear" and "logistic2"), their errors out of fold, decisions and
    certificate are of all rows: the objective is that of a fit in memory to all rows with
    the same tree. Rows stay where they are: on the workers of the current
    ``distributed.Client``; without one on this machine, and with `max_memory` in files.

    Parameters
    ----------
    sensors, costs, cost_weight, risk, loss, class_weight, max_cost, structure, n_leaves, \
            n_exact, max_time, root_sensors, classifier, calibration, cv, random_state, \
            program, calibrate_leaves, outages, n_jobs, verbose, unit
        As in `SensorTreeClassifier`. `cv` is a number or None; `program` has the solver
        that it has by default.
    refer_cost
        Must be None: no example is referred.
    sample_rows : int, default=20_000
        Rows of the sample. Which ones is decided by their content alone. Boosted leaves
        and classifiers of other libraries are fitted to the sample too.
    max_memory : int or str, default=None
        Bytes, or as in "2GB": rows are then kept in temporary files of this machine, and
        as many of them in memory as this allows.

    Attributes
    ----------
    policy_ : Policy
        Everything that is needed to predict; also all other attributes of
        `SensorTreeClassifier`. What pictures say of training examples is of the sample.
    n_sample_ : int
        Rows of the sample.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from sensortree.dask import DaskSensorTreeClassifier
    >>> X = np.random.default_rng(0).normal(size=(400, 2))
    >>> y = X[:, 0] + (np.abs(X[:, 0]) < 0.5) * X[:, 1] > 0
    >>> model = DaskSensorTreeClassifier(
    ...     {"cheap": [0], "dear": [1]}, costs={"cheap": 0, "dear": 5}, cost_weight=0.02)
    >>> X, y = da.from_array(X, chunks=(100, 2)), da.from_array(y, chunks=100)
    >>> model.fit(X, y).certificate_.converged
    True
    >>> model.predict(X).compute().shape
    (400,)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **SensorTreeClassifier._parameter_constraints,
        "cv": [None, Interval(Integral, 2, None, closed="left")],
        "sample_rows": [Interval(Integral, 100, None, closed="left")],
        "max_memory": [None, str, Interval(Real, 0, None, closed="neither")],
    }

    sample_rows: int = 20_000
    max_memory: int | str | None = None

    @one_thread()
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        prices: Any = None,
        *,
        groups: Any = None,
        acquired: Any = None,
        order: Any = None,
        label_influenced_buying: bool = False,
        unbought: Any = "ignore",
    ) -> Any:
        """Learn the decision functions, and what leaves answer.

        Parameters
        ----------
        X : dask DataFrame, dask Array, or path to a folder of Parquet files
            All sensors of all examples.
        y : dask Series, dask Array, or name of a column of X
            Classes.
        sample_weight : dask Series, dask Array, or name of a column of X, default=None
            Weight 0 is the same as leaving the row out, weight 2 as repeating it, held out
            with the first.
        prices : dask Array or DataFrame of shape (n_samples, n_sensors), default=None
            Prices of each example, in the order of the sensors; NaN for a sensor's own.
        groups, acquired, order, label_influenced_buying, unbought
            Are not taken yet: rows that belong together, and what a log holds, are learned
            from in memory.

        Returns
        -------
        self
        """
        for name, given in (("groups", groups), ("acquired", acquired)):
            if given is not None:
                raise ParameterError(
                    f"DaskSensorTreeClassifier does not take {name} yet; leave it out, or "
                    f"fit SensorTreeClassifier in memory, to a sample if need be."
                )
        with all_or_nothing(self), ExitStack() as held:
            self._check_parameters()
            settings = self._settings()
            progress = TextProgress(settings.verbose, max_time=settings.max_time)
            partitions = Partitions.of(X, y, sample_weight, prices)
            max_memory = bytes_of(self.max_memory)
            client = None if max_memory else current_client()
            folder = Path(held.enter_context(tempfile.TemporaryDirectory()))
            place = ThisMachine(folder) if client is None else Cluster(client)
            with progress.watch.stage("reading"):
                every = all_digests(place.map(digests, *partitions.given))
                drawn, table, own = self._drawn(place, partitions, every)
                taken = read_rows(
                    self,
                    settings,
                    table,
                    every.labels[drawn],
                    None if sample_weight is None else every.weight[drawn],
                    own,
                )
                codes = codes_of(every.labels, taken.classes)
                loss = settings.losses(taken.classes, codes, every.weight)
                taken = replace(taken, loss=loss, target=partitions.target)
                every.check_prices(taken.sensors)
                readers = [taken.reader] * len(partitions.X)
                X, _, weight, paid = partitions.given
                place.read(every.lengths, read_part, X, weight, paid, readers)
                if taken.prices is not None:
                    taken = priced_by_all(taken, place.column, every.weight)
                frame = taken.take(np.arange(0))
                ordered = Ordered(place, frame, codes, every.weight, settings)
            learn = counted(self._jointly().compare, progress.watch)
            sample = self._sample(ordered, taken, drawn, settings, learn, progress)
            progress.step("sample")
            n_coef = sum(widths_of(sample.tree, sample.leaves, settings))
            at_once = block_rows(max(1, sample.tree.n_nodes))
            sources = ordered.sources(at_once, n_coef)
            rows = held.enter_context(
                chunks_of(sources, client, folder, max_memory, settings.n_jobs)
            )
            fitted = fit_in_chunks(
                rows, ordered, sample, settings, self._program, learn
            )
            compared = fitted.evidence["comparison"]
            about = About(
                settings.unit,
                taken.target,
                fitted=now(),
                rows=len(codes),
                held_out=None if compared is None else compared.held_out,
            )
            fitted = replace(fitted, policy=replace(fitted.policy, about=about))
            self._show(fitted)
            self.n_sample_ = len(taken.y)
        advice = price_message(fitted, sample.prepared.leaves, settings)
        if advice:
            warnings.warn(advice, PriceWarning, stacklevel=3)
        return self

    def _drawn(
        self, place: Cluster | ThisMachine, partitions: Partitions, every: Digests
    ) -> tuple[Rows, Any, Array | None]:
        """The rows of the sample: which, their table, and their prices if given."""
        n_sample = min(self.sample_rows, len(every.numbers))
        below = int(np.partition(every.numbers, n_sample - 1)[n_sample - 1])
        drawn = np.flatnonzero(every.numbers <= np.uint64(below))
        limits = [below] * len(partitions.X)
        parts = list(place.map(some_rows, *partitions.given, limits))
        tables, prices = zip(*parts, strict=True)
        own = None if prices[0] is None else np.concatenate(prices)
        return drawn, joined(tables), own

    def _check_together(self, parameters: Any) -> None:
        super()._check_together(parameters)
        solver = self._program.solver
        if solver != "structured":
            raise ParameterError(
                f"solver must be 'structured' where rows are in chunks, got {solver!r}."
            )
        if parameters["refer_cost"] is not None:
            raise ParameterError(
                "DaskSensorTreeClassifier cannot take refer_cost; fit "
                "SensorTreeClassifier in memory, to a sample if need be."
            )
        bytes_of(parameters["max_memory"])

    def _sample(
        self,
        ordered: Ordered,
        taken: TrainingRows,
        drawn: Rows,
        settings: Settings,
        learn: Learner,
        progress: TextProgress,
    ) -> Sample:
        """The tree and the kind of leaf of a fit to the sample.

        Its rows are put in the order, and into the folds, that they have among all rows.
        """
        place = np.empty(len(ordered.order), dtype=np.intp)
        place[ordered.order] = np.arange(len(place))
        numbers = drawn[taken.rows]
        arranged = np.argsort(place[numbers], kind="stable")
        data = taken.take(arranged)
        numbers = numbers[arranged]
        data = replace(data, fold=ordered.fold[place[numbers]])
        settings = settings.priced_for(data.loss)
        prepared = prepare(data, settings, progress)
        report = report_from_now(progress.watch)
        chosen = choose_recipe(
            prepared, settings, learn, simpler=self._program.fallback
        )
        return Sample(prepared, chosen, numbers, report)

    # predicting -----------------------------------------------------------------------

    def predict(self, X: Any, prices: Any = None) -> Any:
        """Class of each example, (n_samples,); of a Dask collection, a Dask array."""
        return self._in_parts(X, prices, super().predict, self.classes_.dtype, ())

    def predict_proba(self, X: Any, prices: Any = None) -> Any:
        """Probability of each class, (n_samples, n_classes)."""
        shape = (len(self.classes_),)
        return self._in_parts(X, prices, super().predict_proba, np.dtype(float), shape)

    def acquired(self, X: Any, prices: Any = None) -> Any:
        """Which sensors each example buys, (n_samples, n_sensors)."""
        shape = (len(self.sensors_),)
        return self._in_parts(X, prices, super().acquired, np.dtype(bool), shape)

    def acquisition_cost(self, X: Any, prices: Any = None) -> Any:
        """What each example pays, (n_samples,)."""
        return self._in_parts(X, prices, super().acquisition_cost, np.dtype(float), ())

    def _in_parts(
        self,
        X: Any,
        prices: Any,
        answer: Callable[..., Any],
        dtype: np.dtype[Any],
        shape: tuple[int, ...],
    ) -> Any:
        """Answers by partition, computed when needed; at once for rows in memory."""
        check_is_fitted(self)
        if not hasattr(X, "to_delayed"):
            return answer(X, prices)
        import dask.array as da
        from dask.delayed import delayed

        if hasattr(X, "rechunk"):
            X = X.rechunk({1: -1})
        lengths = getattr(X, "chunks", [[np.nan] * X.npartitions])[0]
        own = parts_beside(X, prices, "prices", "row of prices")
        task = delayed(call, pure=True)
        policy = delayed(answer, pure=True)
        parts = [
            da.from_delayed(
                task(policy, part, paid), shape=(length, *shape), dtype=dtype
            )
            for part, paid, length in zip(
                np.ravel(X.to_delayed()), own, lengths, strict=True
            )
        ]
        return da.concatenate(parts)


def codes_of(labels: NDArray[Any], classes: NDArray[Any]) -> Rows:
    """Positions of labels among the classes of the sample."""
    places = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    unknown = np.flatnonzero(classes[places] != labels)
    if unknown.size:
        raise DataError(
            f"class {labels[unknown[0]]!r} is so rare that no row of the sample has it; "
            f"set a larger sample_rows, or leave its rows out."
        )
    return places


def current_client() -> Any:
    """The client that is current, or None."""
    try:
        from distributed import default_client

        return default_client()
    except (ImportError, ValueError):
        return None


def bytes_of(limit: float | str | None) -> float | None:
    """A number of bytes, also from text such as "2GB"."""
    if not isinstance(limit, str):
        return limit
    from dask.utils import parse_bytes

    try:
        return float(parse_bytes(limit))
    except ValueError:
        raise ParameterError(
            f"max_memory must be a number of bytes or as in '2GB', got {limit!r}; units "
            f"are kB, MB, GB, KiB, MiB and GiB."
        ) from None


@contextmanager
def chunks_of(
    sources: list[Source],
    client: Any,
    folder: Path,
    max_memory: float | None,
    n_jobs: int | None,
) -> Iterator[Chunks]:
    """Chunks on workers, in files or in memory; let go in the end."""
    if client is not None:
        rows = OnWorkers(client, sources)
        try:
            yield rows
        finally:
            rows.close()
    elif max_memory is not None:
        yield OnDisk(folder / "chunks", sources, max_memory)
    else:
        made = [source.make() for source in sources]
        yield InMemory(made, threads_asked(n_jobs))
