"""Claims about the step that batches, masked rows, explanations and sessions share."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from toys import toy_policy

from sensortree.policy.walk import within
from sensortree.reports.explanation import explain
from sensortree.results import MaskedPolicy
from sensortree.sensors.reader import SensorReader
from sensortree.sensors.table import Table

ROW = np.array([[1.0, 5.0]])  # a > 0, so it wants b


def priced(costs, max_cost):
    """The toy, with other prices: a, then b; what both cost is added in this order."""
    policy = toy_policy(max_cost=max_cost)
    sensors = replace(policy.sensors, costs=np.array(costs))
    return replace(policy, reader=replace(policy.reader, sensors=sensors))


def acquired(policy):
    """What the row acquires, by each of the four ways to ask."""
    table, masked = Table(ROW), MaskedPolicy(policy)
    mask = np.zeros((1, 2), dtype=bool)
    while action := int(masked.act(ROW, mask)[0]):
        mask[0, action - 1] = True
    values = {"a": ROW[0, :1], "b": ROW[0, 1:]}
    names = np.array(policy.sensors.names)
    return {
        "batch": tuple(names[policy.acquired(table)[0]].tolist()),
        "masked": tuple(names[mask[0]].tolist()),
        "explanation": explain(policy, table).known,
        "session": policy.acquire(lambda sensor, columns: values[sensor]).acquired,
    }


@pytest.mark.parametrize(
    ("max_cost", "wanted"), [(0.3, ("a", "b")), (0.3 - 1e-9, ("a",))]
)
def test_a_cap_is_one_rule_to_the_last_digit(max_cost, wanted):
    assert 0.1 + 0.2 > 0.3  # what rounding adds is no reason to refuse
    assert set(acquired(priced([0.1, 0.2], max_cost)).values()) == {wanted}


def test_within_is_at_most():
    assert within(3.0, 3.0)
    assert within(0.0, 0.0)
    assert not within(3.0 + 1e-9, 3.0)
    assert within(np.array([2.0, 4.0]), 3.0).tolist() == [True, False]


@dataclass(frozen=True, eq=False)
class CountingReader(SensorReader):
    """A reader that keeps the names of what it read."""

    names: list[str] = field(default_factory=list)

    def read(self, table, sensor, rows):
        self.names.append(self.sensors.names[sensor])
        return super().read(table, sensor, rows)


def test_explaining_walks_once():
    policy = toy_policy()
    old = policy.reader
    reader = CountingReader(old.sensors, old.transformers, old.widths, old.allow_nan)
    explain(replace(policy, reader=reader), Table(ROW))
    assert reader.names == ["a", "b"]


def test_the_old_name_of_outputs_warns_and_gives_the_same():
    policy, table = toy_policy(), Table(ROW)
    with pytest.warns(FutureWarning, match=r"now Policy\.outputs"):
        old = policy.said(table)
    assert (old == policy.outputs(table)).all()
