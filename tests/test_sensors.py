"""Claims about declaring sensors: every accepted way of naming columns, every price."""

from __future__ import annotations

import narwhals.selectors as ncs
import numpy as np
import pandas as pd
import polars as pl
import polars.selectors as cs
import pytest
from sklearn.compose import make_column_selector

from sensortree import Sensor, SensorSet
from sensortree.exceptions import SensorError
from sensortree.sensors.sensor import resolve_sensors
from sensortree.sensors.table import Table

FRAME = pd.DataFrame(
    np.arange(8.0).reshape(2, 4), columns=["age", "wbc", "crp", "xray"]
)
POLARS = pl.from_pandas(FRAME)
ARRAY = FRAME.to_numpy()


@pytest.mark.parametrize("data", [FRAME, POLARS], ids=["pandas", "polars"])
@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (["wbc", "crp"], [1, 2]),
        ("wbc", [1]),
        (2, [2]),
        (-1, [3]),
        ([1, 2], [1, 2]),
        (np.array([1, 2]), [1, 2]),
        (slice(1, 3), [1, 2]),
        (slice("wbc", "crp"), [1, 2]),
        (slice("crp", None), [2, 3]),
        ([False, True, True, False], [1, 2]),
        (np.array([False, True, True, False]), [1, 2]),
        (lambda frame: [c for c in frame.columns if len(c) == 3][1:], [1, 2]),
    ],
)
def test_columns_by_name_position_slice_mask_or_callable(columns, expected, data):
    rest = [i for i in range(4) if i not in expected]
    sensors, _ = resolve_sensors({"s": columns, "t": rest}, None, Table(data))
    assert list(sensors.columns[0]) == expected


@pytest.mark.parametrize(
    ("data", "selector"),
    [
        (FRAME, make_column_selector(pattern="^(?:wbc|crp)$")),
        (FRAME, ncs.matches("^(?:wbc|crp)$")),
        (POLARS, ncs.matches("^(?:wbc|crp)$")),
        (POLARS, cs.matches("^(?:wbc|crp)$")),
    ],
    ids=["sklearn", "narwhals-pandas", "narwhals-polars", "polars"],
)
def test_selectors_name_columns(data, selector):
    sensors, _ = resolve_sensors({"s": selector, "t": [0, 3]}, None, Table(data))
    assert sensors.columns[0] == (1, 2)


def test_an_object_with_expand_is_a_selector():
    class LikeSkrub:
        def expand(self, frame):
            return ["wbc", "crp"]

    sensors, _ = resolve_sensors({"s": LikeSkrub(), "t": [0, 3]}, None, Table(FRAME))
    assert sensors.columns[0] == (1, 2)


def test_without_a_declaration_each_column_is_a_sensor_of_cost_1():
    sensors, _ = resolve_sensors(None, None, Table(FRAME))
    assert sensors.names == ("age", "wbc", "crp", "xray")
    assert sensors.costs.tolist() == [1.0] * 4
    sensors, _ = resolve_sensors(None, {"x2": 7.0}, Table(ARRAY))
    assert sensors.names == ("x0", "x1", "x2", "x3")
    assert sensors.costs.tolist() == [1.0, 1.0, 7.0, 1.0]


def test_prices_come_from_costs_or_from_the_sensor():
    declared = {"s": ["wbc", "crp"], "t": Sensor([0, 3], cost=4.5)}
    sensors, _ = resolve_sensors(declared, {"s": 12}, Table(FRAME))
    assert sensors.costs.tolist() == [12.0, 4.5]


def test_costs_cannot_be_written_to():
    sensors = SensorSet(("a",), ((0,),), (2.0,))
    with pytest.raises(ValueError):
        sensors.costs[0] = 0.0


@pytest.mark.parametrize(
    "data", [FRAME, POLARS, ARRAY], ids=["pandas", "polars", "numpy"]
)
def test_a_table_gives_rows_and_columns_in_its_own_type(data):
    part = Table(data).take(np.array([1]), [0, 2])
    assert type(part) is type(data)
    np.testing.assert_array_equal(np.asarray(part), ARRAY[[1]][:, [0, 2]])


def test_asking_for_the_position_of_an_unknown_sensor_names_those_there_are():
    sensors = SensorSet(("vitals", "xray"), ((0, 1), (2,)), (0.0, 45.0))
    assert sensors.index("xray") == 1
    with pytest.raises(SensorError, match="'mri' is not a sensor; the sensors are 'vi"):
        sensors.index("mri")
