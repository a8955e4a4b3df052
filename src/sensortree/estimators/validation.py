"""Check X, y and weights against the sensors, once and for all: data → training rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.model_selection import check_cv
from sklearn.utils import assert_all_finite, check_consistent_length
from sklearn.utils.validation import column_or_1d

from sensortree.estimators.prediction import checked_table
from sensortree.exceptions import DataError, ParameterError
from sensortree.learning.settings import Settings
from sensortree.learning.worth import referral_may_pay
from sensortree.leaves.compiling import compile_transformer
from sensortree.leaves.fitting import accepts_nan
from sensortree.leaves.folds import Arranged, Dealing, arrange
from sensortree.leaves.rows import TrainingRows
from sensortree.leaves.sklearn_private import check_sample_weight, rows_of
from sensortree.leaves.task import CLASSES
from sensortree.logs.continuing import LogRows, blocks_seen, continue_rows
from sensortree.logs.purchases import Log, check_labels_there
from sensortree.sensors.market import Market, priced, read_prices
from sensortree.sensors.reader import column_kinds, fit_reader, float_table
from sensortree.sensors.referral import resolve_referral
from sensortree.sensors.sensor import Sensor, SensorSet, resolve_sensors
from sensortree.sensors.table import Table, is_missing
from sensortree.types import Mask, Rows


def read_rows(
    estimator: Any,
    settings: Settings,
    X: Any,
    y: Any,
    sample_weight: ArrayLike | None,
    prices: ArrayLike | None,
    log: Log | None = None,
    groups: ArrayLike | None = None,
) -> TrainingRows:
    """Validate the data once and for all, and read every sensor.

    The estimator is told how many columns X has, and their names, as scikit-learn asks.
    Of a log, what was bought is read, and nothing else. Rows of equal groups are held out
    together.
    """
    table, sensors, transformers = _resolve(estimator, settings, X)
    table = priced(table, prices, sensors)
    if table.prices is not None:
        sensors = sensors.with_varying(
            np.logical_not(np.isnan(table.prices).all(axis=0))
        )
    bought = None if log is None else _bought(log, table, sensors)
    kinds = column_kinds(table, sensors, transformers, bought)
    if not transformers and not any("text" in held for held in kinds):
        table = float_table(table, sensors, bought)
    target = _check_target(estimator, settings, y, table, log)
    weight = check_sample_weight(
        sample_weight, table.data, dtype=np.float64, ensure_non_negative=True
    )
    rows = np.flatnonzero(weight > 0)  # those that count
    labels, weight = target[rows], weight[rows]
    classes, codes = settings.task.encode(labels)
    loss = settings.losses(classes, codes, weight)
    weighted = sample_weight is not None
    takes_nan = accepts_nan(settings.leaf(settings.classifier))
    sensors, paid = _with_prices(sensors, table, rows, weight)
    referral = resolve_referral(settings.refer_cost, classes, sensors)
    person = None if referral is None else referral.costs(table, len(classes))[rows]
    reader, blocks = fit_reader(
        sensors,
        {name: clone(transformer) for name, transformer in transformers.items()},
        table,
        rows,
        labels,
        weight if weighted else None,
        takes_nan,
        kinds,
        takes_nan
        and settings.classifier != "auto",  # which compares all kinds of leaves
        None if bought is None else bought[rows],
    )
    plain = {n: compile_transformer(t) for n, t in reader.transformers.items()}
    reader = replace(reader, transformers=plain)
    group = None if groups is None else read_groups(groups, len(target), rows)
    fold = _split(settings, table, target, rows, group)
    # Rows are sorted by their columns as these stand in X, so that the order in which
    # sensors are declared does not decide which rows are held out together.
    in_X = sorted(range(len(sensors)), key=lambda sensor: min(sensors.columns[sensor]))
    read = [blocks[sensor] for sensor in in_X]
    varying = [sensor for sensor in in_X if sensor in sensors.varying]
    own = np.empty((len(rows), 0)) if paid is None else paid[:, varying]
    if person is not None:
        own = np.hstack([own, person[:, :1]])
    if bought is not None:
        own = np.hstack([own, bought[rows][:, in_X]])
    given = Arranged(np.arange(len(rows)), fold, group)
    dealing = None
    if isinstance(settings.cv, Integral):
        n_folds, seed = int(settings.cv), settings.random_state
        dealing = Dealing(settings.task, n_folds, seed, classes)
    columns = [column for block in read for column in block.T]
    arranged = arrange(columns, [*own.T, codes], weight, given, dealing)
    order, fold, group = arranged.order, arranged.fold, arranged.group
    blocks = [block[order] for block in blocks]
    codes = codes[order]
    continued = None
    if log is not None and bought is not None:
        level = settings.task.levels(codes, weight[order])
        held = bought[rows][order]
        known = log.label_influenced_buying
        logged = LogRows(sensors, blocks, held, level, fold, known)
        own_paid = None if paid is None else paid[order]
        continued = continue_rows(logged, Market(sensors, own_paid).free())
    unit, seen = np.arange(len(rows)) if group is None else group, blocks
    if continued is not None:  # rows of the same stand-in are not independent
        unit = unit[continued.other[0]]
        seen = blocks_seen(continued, [block.shape[1] for block in blocks])
    return TrainingRows(
        reader,
        seen,
        codes,
        classes,
        weight[order],
        weighted,
        fold,
        None if paid is None else paid[order],
        loss,
        rows[order],
        unit,
        getattr(y, "name", "") if isinstance(getattr(y, "name", ""), str) else "",
        referral,
        None if person is None else person[order],
        person is not None and referral_may_pay(person, loss, len(classes)),
        settings.task,
        continued,
    )


def _bought(log: Log, table: Table, sensors: SensorSet) -> Mask | None:
    """What is known of each row, (n_rows, n_sensors); None if that is everything."""
    purchases = log.purchases(table, sensors, read_prices(table, sensors))
    never = np.flatnonzero(~purchases.bought.any(axis=0))
    if never.size:
        raise DataError(
            f"sensor {sensors.names[never[0]]!r} was bought for no row of the log, so that "
            f"nothing can be learned of it; leave it out."
        )
    return None if purchases.bought.all() else purchases.bought


def _split(
    settings: Settings, table: Table, y: NDArray[Any], rows: Rows, group: Rows | None
) -> Rows:
    """Fold of each row by the user's splitter; -1 where there is none.

    A splitter is shown the rows that count, and their groups, and no others.
    """
    cv = settings.cv
    if cv is None or isinstance(cv, Integral):
        return np.full(len(rows), -1)
    if isinstance(cv, str) or not (hasattr(cv, "split") or isinstance(cv, Iterable)):
        raise ParameterError(
            f"cv must be a number of folds from 2 on, a splitter such as KFold(5), or "
            f"pairs of training and held-out rows, got {cv!r}."
        )
    data, codes = rows_of(table.data, rows), y[rows]
    splitter = check_cv(cv, codes, classifier=settings.task is CLASSES)
    try:
        splits: Iterable[Any] = list(splitter.split(data, codes, group))
    except ValueError as error:
        raise DataError(
            f"cv={cv!r} cannot split these {len(rows)} rows ({error}); take a number of "
            f"folds instead, such as cv=5, or another splitter."
        ) from error
    if hasattr(cv, "split"):  # it has seen these rows; given pairs speak of all
        splits = ((rows[train], rows[test]) for train, test in splits)
    fold = folds_of_splits(splits, len(y), rows)
    if group is not None:
        check_whole(fold, group, rows)
    return fold


def _check_target(
    estimator: Any, settings: Settings, y: Any, table: Table, log: Log | None
) -> NDArray[Any]:
    """Give y as one class, or number, per row."""
    if y is None:
        raise DataError(
            f"requires y to be passed, but the target y is None; "
            f"{type(estimator).__name__} learns from labelled data."
        )
    y = column_or_1d(y, warn=True)
    if log is not None:
        check_labels_there(y)
    assert_all_finite(y, input_name="y")
    check_consistent_length(table.data, y)
    return settings.task.check(np.asarray(y))


def _resolve(
    estimator: Any, settings: Settings, X: Any
) -> tuple[Table, SensorSet, dict[str, Any]]:
    """Check X and the declaration of sensors against each other."""
    sensors = settings.sensors
    declared = sensors.values() if isinstance(sensors, Mapping) else ()
    own_types = any(isinstance(s, Sensor) and s.transformer for s in declared)
    table = checked_table(estimator, X, own_types)
    if 0 in table.shape:
        raise DataError(
            f"X has {table.shape[0]} rows and {table.shape[1]} columns; give at least one "
            f"of each."
        )
    return table, *resolve_sensors(sensors, settings.costs, table)


def _with_prices(
    sensors: SensorSet,
    table: Table,
    rows: NDArray[np.intp],
    weight: NDArray[np.float64],
) -> tuple[SensorSet, NDArray[np.float64] | None]:
    """Prices of each row, if they differ; a sensor's own cost is then their mean."""
    paid = read_prices(table, sensors)
    if paid is None:
        return sensors, None
    paid = paid[rows]
    mean = np.average(paid, axis=0, weights=weight)
    costs = np.where([t.varies for t in sensors.terms], mean, sensors.costs)
    return replace(sensors, costs=costs), paid


def folds_of_splits(
    splits: Iterable[tuple[Rows, Rows]], n_samples: int, rows: Rows
) -> Rows:
    """Fold of those rows that count, (n_rows,), each of which must be held out once.

    Splits are (train, test), positions among all rows.
    """
    fold = np.full(n_samples, -1)
    times = np.zeros(n_samples, dtype=int)
    for number, (_, test) in enumerate(splits):
        fold[test] = number
        np.add.at(times, test, 1)
    wrong = rows[times[rows] != 1]
    if wrong.size:
        raise DataError(
            f"cv holds row {wrong[0]} out {times[wrong[0]]} times; each row must be held "
            f"out exactly once, as by KFold or StratifiedKFold."
        )
    return fold[rows]


def read_groups(groups: Any, n_rows: int, rows: Rows) -> Rows:
    """Number of the group of each of those rows that count, (n_counted,).

    Groups are given as labels of any kind, one for each row of X.
    """
    try:
        labels = column_or_1d(np.asarray(groups))
    except ValueError as error:
        raise DataError(
            f"groups must be one label for each row of X: {error}"
        ) from error
    if len(labels) != n_rows:
        raise DataError(
            f"groups has {len(labels)} labels for {n_rows} rows of X; give one for each "
            f"row."
        )
    labels = labels[rows]
    listed = labels.tolist()
    gaps = np.isnat(labels) if labels.dtype.kind in "mM" else map(is_missing, listed)
    for row, gap in zip(rows.tolist(), gaps, strict=True):
        if gap:
            raise DataError(
                f"groups has a gap in row {row}; give a row that belongs to no other a "
                f"label of its own."
            )
    numbers: dict[Any, int] = {}
    try:
        found = [numbers.setdefault(label, len(numbers)) for label in listed]
    except TypeError as error:
        raise DataError(
            f"groups holds a label that cannot be compared: {error}; give numbers or text."
        ) from error
    return np.array(found, dtype=np.intp)


def check_whole(fold: Rows, group: Rows, rows: Rows) -> None:
    """Refuse folds of the user's own that take a group apart."""
    held: dict[int, int] = {}
    seen: NDArray[Any] = np.column_stack([group, fold, rows])
    for name, own, row in seen.tolist():
        if held.setdefault(name, own) != own:
            raise DataError(
                f"cv holds row {row} out with fold {own}, and others of its group with "
                f"fold {held[name]}; take a splitter that keeps groups whole, such as "
                f"GroupKFold or StratifiedGroupKFold, or a number."
            )
