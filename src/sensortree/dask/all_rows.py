"""`AllRows`: the few numbers of each row that a fit on Dask has at hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensortree.dask.partitions import Partitions, digests
from sensortree.exceptions import DataError
from sensortree.leaves.rows import TrainingRows
from sensortree.sensors.sensor_set import SensorSet
from sensortree.types import Array, Mask, Rows


@dataclass(frozen=True, eq=False)
class AllRows:
    """What is known here of all rows that count, in the order of the partitions.

    Attributes
    ----------
    lengths : ndarray of shape (n_partitions,)
        Rows of each partition.
    numbers, labels, weight : ndarray of shape (n_rows,)
        As in `Digested`.
    priced : ndarray of bool of shape (n_sensors,), or None
        Whether some row was given a price of its own for a sensor.
    """

    lengths: Rows
    numbers: NDArray[np.uint64]
    labels: NDArray[Any]
    weight: Array
    priced: Mask | None

    def check_prices(self, sensors: SensorSet) -> None:
        """Refuse prices of which no row of the sample has any."""
        if self.priced is None:
            return
        unknown = np.setdiff1d(np.flatnonzero(self.priced), sensors.varying)
        if unknown.size:
            raise DataError(
                f"so few rows have a price for sensor {sensors.names[unknown[0]]!r} that "
                f"none of the sample has; set a larger sample_rows."
            )


def all_rows(reader: Any, partitions: Partitions) -> AllRows:
    """What partitions say of their rows."""
    given = (partitions.X, partitions.y, partitions.weight, partitions.prices)
    found = list(reader.map(digests, *given))
    lengths = np.array([len(each.numbers) for each in found])
    if not lengths.sum():
        raise DataError(
            "X has no rows of a weight above 0; give at least two, of two classes."
        )
    priced = [each.priced for each in found if each.priced is not None]
    return AllRows(
        lengths,
        np.concatenate([each.numbers for each in found]),
        np.concatenate([each.labels for each in found]),
        np.concatenate([each.weight for each in found]),
        np.any(priced, axis=0) if priced else None,
    )


def priced_by_all(
    taken: TrainingRows, column: Callable[[int], Array], weight: Array
) -> TrainingRows:
    """Rows of a sample that know the mean and the highest prices of all rows.

    Parameters
    ----------
    taken : TrainingRows
        The sample.
    column : callable
        Gives a column of all readings; prices of sensors come behind these.
    weight : ndarray of shape (n_rows,)
        Of all rows.
    """
    sensors = taken.sensors
    first = sum(taken.reader.widths)
    costs, varies = sensors.costs.copy(), sensors.mask(())
    total = np.zeros(len(weight))
    for sensor in map(int, sensors.varying):
        own = column(first + sensor)
        costs[sensor], varies[sensor] = np.average(own, weights=weight), True
        total += own
    dearest = float(total.max()) + float(sensors.own_costs[~varies].sum())
    reader = replace(taken.reader, sensors=replace(sensors, costs=costs))
    return replace(taken, reader=reader, dearest=dearest)
