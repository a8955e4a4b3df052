"""Claims about bets against "as in training"."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.watch import winnings
from sensortree.service.drift_test import (
    Bets,
    Expected,
    after,
    expected_mean,
    expected_rate,
)

THIRD = Expected(0.3, 0.21, 0.28, 0.32)


def test_one_value_after_the_other_wins_what_the_series_wins():
    values = np.random.default_rng(0).random(300)
    bets, one_by_one = Bets(), []
    for value in values:
        bets = after(bets, float(value), THIRD, math.inf)
        one_by_one.append([bets.above, bets.below])
    np.testing.assert_allclose(one_by_one, winnings(values, THIRD), atol=1e-12)


def test_the_first_bet_stakes_nothing_since_training_is_believed():
    assert after(Bets(), 1.0, THIRD, 1.0) == Bets(1, 1.0, 1.0, 0.0, 0.0, None)


@pytest.mark.parametrize(("mean", "side"), [(0.32, 0), (0.28, 1)])
def test_what_is_won_has_an_expectation_of_at_most_one_at_the_edge(mean, side):
    # Over all 2^12 series of coins, exactly; the stakes are raised by an eager prior.
    eager = Expected(0.5 if side == 0 else 0.1, 0.01, 0.28, 0.32)
    total = 0.0
    for number in range(2**12):
        series = np.array([(number >> bit) & 1 for bit in range(12)], dtype=float)
        heads = series.sum()
        chance = mean**heads * (1 - mean) ** (12 - heads)
        total += chance * math.exp(winnings(series, eager)[-1, side])
    assert total == pytest.approx(1.0, abs=1e-9)


def test_an_alarm_names_the_row_and_stays():
    bets = Bets()
    for _ in range(200):
        bets = after(bets, 1.0, THIRD, math.log(100))
    first = bets.alarm
    assert first is not None
    assert winnings(np.ones(200), THIRD)[first - 1, 0] >= math.log(100)
    assert winnings(np.ones(200), THIRD)[first - 2, 0] < math.log(100)
    for _ in range(500):
        bets = after(bets, 0.0, THIRD, math.log(100))
    assert bets.alarm == first


def test_the_interval_of_a_rate_is_that_of_clopper_and_pearson():
    # 4 of 10 at 95 %: 0.1216 to 0.7376, as in any table.
    found = expected_rate(0.4, 10, 0.05)
    assert (found.low, found.high) == pytest.approx((0.1216, 0.7376), abs=1e-4)
    assert expected_rate(0.0, 10, 0.05).low == 0.0
    assert expected_rate(1.0, 10, 0.05).high == 1.0


def test_the_interval_of_a_mean_narrows_with_rows_and_holds_the_mean():
    values, shares = np.array([0.1, 1.0]), np.array([0.75, 0.25])
    widths = []
    for rows in (10, 1_000, 100_000):
        found = expected_mean(values, shares, rows, 0.01)
        assert found.low <= 0.325 <= found.high
        widths.append(found.high - found.low)
    assert widths[0] > widths[1] > widths[2]
    assert widths[2] < 0.01


def test_a_rate_that_is_always_one_can_only_fall():
    always = Expected(1.0, 0.0, 0.99, 1.0)
    assert winnings(np.ones(500), always).max() == 0.0
    assert winnings(np.zeros(50), always)[-1, 1] > 10
