"""What was known of each row after each round, as numbers that a model can learn from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from sensortree.logs.following import Stand
from sensortree.logs.purchases import NEVER, Purchases
from sensortree.policy.policy import Policy
from sensortree.sensors.reader import SensorReader
from sensortree.sensors.table import Table
from sensortree.types import Array, Mask, Rows

FARTHEST = 3.0  # standard deviations from the mean that a column is let to be


@dataclass(frozen=True, eq=False)
class Histories:
    """Readings of what was bought, and when they came.

    Attributes
    ----------
    purchases : Purchases
    readings : ndarray of shape (n_rows, width)
        NaN where nothing was bought.
    sensor_of : ndarray of shape (width,)
        Sensor that each reading is of.
    prices : ndarray of shape (n_rows, n_varying)
        Prices that differ between rows, which are known at once.
    """

    purchases: Purchases
    readings: Array
    sensor_of: Rows
    prices: Array

    def after(self, n_rounds: int, rows: Rows) -> Array:
        """What is known of some rows after some rounds (H), (n_rows, n_columns).

        Readings, NaN where there are none yet; which sensors are known; prices.
        """
        known = self.purchases.known_after(n_rounds, rows)
        shown = np.where(known[:, self.sensor_of], self.readings[rows], np.nan)
        return np.hstack([shown, known, self.prices[rows]])


def read_histories(
    reader: SensorReader, table: Table, purchases: Purchases
) -> Histories:
    """Read what was bought, and nothing else."""
    n_rows = table.shape[0]
    blocks, sensor_of = [], []
    for sensor, width in enumerate(reader.widths):
        block = np.full((n_rows, width), np.nan)
        rows = np.flatnonzero(purchases.round[:, sensor] != NEVER)
        if rows.size:
            block[rows], _ = reader.read(table, sensor, rows)
        blocks.append(block)
        sensor_of += [sensor] * width
    prices = reader.prices(table)
    own = np.empty((n_rows, 0))
    if prices is not None:
        own = prices[:, reader.sensors.varying]
    return Histories(
        purchases, np.hstack(blocks), np.array(sensor_of, dtype=np.intp), own
    )


def scaled() -> list[Any]:
    """Steps that fill gaps, bring columns to one scale, and pull in what is far away.

    A rare level, or a typing error, would otherwise decide alone.
    """
    return [
        SimpleImputer(keep_empty_features=True),
        StandardScaler(),
        FunctionTransformer(np.clip, kw_args={"a_min": -FARTHEST, "a_max": FARTHEST}),
    ]


def could_go_on(purchases: Purchases, n_rounds: int, rows: Rows) -> Mask:
    """Whether something was left that could be bought after some rounds, (n_rows,)."""
    sensors = purchases.sensors
    known = purchases.known_after(n_rounds, rows)
    open_ = ~known.all(axis=1)
    if any(terms.one_of is not None for terms in sensors.terms):
        for pattern in np.unique(known[open_], axis=0):
            had = frozenset(np.array(sensors.names)[pattern].tolist())
            left = [name for name in sensors.names if name not in had]
            if all(sensors.extension(had, name) is None for name in left):
                open_ &= ~(known == pattern).all(axis=1)
    return np.asarray(open_)


def views(
    histories: Histories,
    stands: Sequence[Stand],
    policy: Policy,
    truth: Rows,
) -> list[Array]:
    """What q sees of the rows that stand somewhere, after each round.

    What is known, the label, and how the policy stands: where each row is going, and
    how likely its right answer is to it.
    """
    classes = np.arange(len(policy.classes))
    ahead = np.unique(np.concatenate([stand.ahead for stand in stands]))
    seen = []
    for after, (rows, going, belief) in enumerate(stands):
        label = truth[rows]
        right = belief[np.arange(len(rows)), label]
        view = np.stack(
            [
                np.ones(len(rows)),
                right,
                right**2,
                belief.max(axis=1, initial=0.0),
                policy.loss.judge(label, belief),
            ],
            axis=1,
        )
        by_place = [view * (going == place)[:, None] for place in ahead]
        one_hot = (label[:, None] == classes).astype(np.float64)
        known = histories.after(after, rows)
        seen.append(np.hstack([*by_place, one_hot, known]))
    return seen
