"""Claims about policies that are judged on logs."""

from __future__ import annotations

import datetime
import json
import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from typer.testing import CliRunner

from sensortree import (
    LogDisplay,
    SensorTreeClassifier,
    acquired_from_events,
    compare_from_log,
    evaluate_from_log,
    report_page_from_log,
    save,
)
from sensortree.cli.app import app
from sensortree.exceptions import DataError, ParameterError
from sensortree.logs.estimate import (
    Support,
    contributions,
    likely_variance,
    mean_estimate,
    reason_to_refuse,
    weights,
)
from sensortree.logs.nuisances import PENALTY, OutlookRegression, scaled
from sensortree.logs.purchases import NEVER, read_purchases
from sensortree.reports.drawing import escaped
from sensortree.reports.html import money
from sensortree.results import Terms
from sensortree.sensors.sensor import SensorSet

THREE = SensorSet(("a", "b", "c"), ((0,), (1,), (2,)), (1.0, 2.0, 4.0))


class Trap:
    """A cell that nobody may look at."""

    def _sprung(self, *_):
        raise AssertionError("a cell that was not bought was read")

    __float__ = __eq__ = __lt__ = __gt__ = __str__ = __repr__ = __bool__ = _sprung
    __hash__ = _sprung


def clinic(n_rows, seed=0):
    """Rows of a cheap and two dear sensors; the second helps where the first is unsure."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 3))
    score = X[:, 0] + 0.8 * X[:, 1] + 0.5 * X[:, 2] + 0.3 * rng.normal(size=n_rows)
    return X, (score > 0).astype(int)


def logged(X, seed=0, slope=1.5):
    """Positions of what a rule bought that stops where what it saw is large."""
    rng = np.random.default_rng(seed)
    position = np.zeros(X.shape, dtype=int)
    alive = rng.random(len(X)) < 0.95
    seen = np.zeros(len(X))
    for at in range(3):
        position[alive, at] = at + 1
        seen = seen + X[:, at]
        stops = 1 / (1 + np.exp(-(slope * seen - 0.5)))
        alive &= rng.random(len(X)) > stops
    return position


@pytest.fixture(scope="module")
def model():
    X, y = clinic(800, seed=1)
    return SensorTreeClassifier(
        {"cheap": [0], "dear": [1], "dearest": [2]},
        costs={"cheap": 1, "dear": 3, "dearest": 5},
        cost_weight=0.01,
        structure="cascade",
    ).fit(X, y)


@pytest.fixture(scope="module")
def clinic_log(model):
    X, y = clinic(4000, seed=2)
    return SimpleNamespace(
        X=X,
        y=y,
        acquired=logged(X),
        error=float((model.predict(X) != y).mean()),
        cost=float(model.acquisition_cost(X).mean()),
    )


# what was bought --------------------------------------------------------------------------


def test_positions_become_rounds_without_gaps():
    purchases = read_purchases([[7, 0, 3], [2, 2, 9]], None, THREE, 2)
    assert purchases.round.tolist() == [[2, NEVER, 1], [1, 1, 2]]
    assert purchases.n_rounds.tolist() == [2, 2]


def test_what_is_free_is_known_at_once_whether_the_log_has_it_or_not():
    free = SensorSet(("age", "blood"), ((0,), (1,)), (0.0, 5.0))
    purchases = read_purchases([[0, 1], [2, 1], [0, 0]], None, free, 3)
    assert purchases.round.tolist() == [[0, 1], [0, 1], [0, NEVER]]


def test_a_mask_in_one_order_is_the_positions_in_it():
    mask = np.array([[True, True, False], [False, True, True]])
    purchases = read_purchases(mask, ["b", ("c", "a")], THREE, 2)
    assert purchases.round.tolist() == [[2, 1, NEVER], [NEVER, 1, 2]]


def test_columns_of_a_frame_are_found_by_name():
    for frame in (pd.DataFrame, pl.DataFrame):
        purchases = read_purchases(
            frame({"c": [1], "a": [2], "b": [0]}), None, THREE, 1
        )
        assert purchases.round.tolist() == [[2, NEVER, 1]]


def test_the_bill_of_a_log_has_the_discounts_of_its_order():
    # b is 2 in full and 0.5 after a; c costs 4: 1 + 0.5 + 4, and 2 + 1 where b is first
    # and a, which has no discount, second.
    sensors = SensorSet(
        THREE.names,
        THREE.columns,
        THREE.costs,
        terms=(
            Terms(group="tube"),
            Terms(group="tube", surcharge=1.5),
            Terms(),
        ),
    )
    purchases = read_purchases([[1, 2, 3], [2, 1, 0]], None, sensors, 2)
    assert purchases.cost(None).tolist() == [5.5, 3.0]


@pytest.mark.parametrize(
    ("acquired", "order", "message"),
    [
        ([[1, 2]], None, r"acquired has shape \(1, 2\), expected \(1, 3\)"),
        ([[1, -2, 0]], None, "acquired is -2 in row 0 for sensor 'b'; it must be the"),
        ([[1, 1.5, 0]], None, "acquired is .*1.5.* in row 0 for sensor 'b'"),
        ([["1", "soon", ""]], None, "acquired is .*'soon'.* in row 0 for sensor 'b'"),
        ([[True, False, True]], None, "not in what order.*give the position of each"),
        ([[True, False, True]], ["a"], "'c' was bought in row 0, but order does not"),
        ([[True, False, True]], ["a", "c", "a"], "order names sensor 'a' twice"),
        ([[1, 0, 2]], ["a", "b", "c"], "leave order out"),
        ([[1, 0, 1]], None, "holds only 0 and 1.*in row 0 'a', 'c'.*order="),
    ],
)
def test_a_log_that_cannot_be_is_named(acquired, order, message):
    with pytest.raises(DataError, match=message):
        read_purchases(np.array(acquired), order, THREE, 1)


def test_purchases_against_the_terms_are_named():
    sensors = SensorSet(
        THREE.names,
        THREE.columns,
        THREE.costs,
        terms=(
            Terms(one_of="pictures"),
            Terms(one_of="pictures"),
            Terms(after=frozenset({"b"})),
        ),
    )
    with pytest.raises(DataError, match="in row 1 sensor 'c' was bought before 'b'"):
        read_purchases([[0, 1, 2], [0, 2, 1]], None, sensors, 2)
    with pytest.raises(DataError, match="in row 0 'a', 'b' were bought, of which"):
        read_purchases([[1, 2, 3]], None, sensors, 1)


def test_a_purchase_without_a_value_is_named(model, clinic_log):
    X = clinic_log.X[:50].copy()
    acquired = np.tile([1, 2, 3], (50, 1))
    X[7, 1] = np.nan
    with pytest.raises(
        DataError, match="'dear' was bought in row 7, in round 2, but X"
    ):
        evaluate_from_log(model, X, clinic_log.y[:50], acquired=acquired)


def test_a_value_without_a_purchase_is_named_if_asked(model, clinic_log):
    acquired = clinic_log.acquired[:50]
    row = np.flatnonzero(acquired[:, 0] == 0)[0]
    with pytest.raises(DataError, match=f"row {row} holds .* of sensor 'cheap'"):
        evaluate_from_log(
            model,
            clinic_log.X[:50],
            clinic_log.y[:50],
            acquired=acquired,
            unbought="refuse",
        )


def test_a_label_that_is_missing_is_named(model, clinic_log):
    y = clinic_log.y.astype(float)
    y[11] = np.nan
    with pytest.raises(DataError, match="y has no label in row 11"):
        evaluate_from_log(model, clinic_log.X, y, acquired=clinic_log.acquired)


def test_cells_that_were_not_bought_are_never_read(model, clinic_log):
    rows = slice(0, 600)
    X, y = clinic_log.X[rows], clinic_log.y[rows]
    acquired = clinic_log.acquired[rows]
    plain = evaluate_from_log(model, X, y, acquired=acquired)
    for filled in (Trap(), np.nan, "not done", 1e300):
        cells = X.astype(object)
        cells[acquired == 0] = filled
        for table in (cells, pd.DataFrame(cells, columns=["x0", "x1", "x2"])):
            assert evaluate_from_log(model, table, y, acquired=acquired) == plain


# long tables ------------------------------------------------------------------------------


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, dict])
def test_events_become_positions_in_any_frame(frame):
    events = frame(
        {
            "stay": [7, 7, 7, 9, 8, 7],
            "test": ["c", "a", "b", "a", "b", "a"],
            "when": [3.0, 1.0, 1.0, 5.0, 0.0, 9.0],
        }
    )
    found = acquired_from_events(
        events, [9, 7, 5], "abc", id="stay", sensor="test", time="when"
    )
    assert found.tolist() == [[1, 0, 0], [1, 1, 2], [0, 0, 0]]


def test_times_may_be_dates_of_any_kind():
    texts = ["2024-03-01T10:00", "2024-03-01T09:59:30", "2024-02-29"]
    dates = [datetime.datetime.fromisoformat(text) for text in texts]
    for times in (texts, dates, pd.to_datetime(texts, format="ISO8601")):
        events = pd.DataFrame({"id": 1, "sensor": list("abc"), "time": times})
        assert acquired_from_events(events, [1], "abc").tolist() == [[3, 2, 1]]


def test_text_that_is_numbers_is_put_in_order_as_numbers():
    events = {"id": [1, 1], "sensor": ["a", "b"], "time": ["10", "9"]}
    assert acquired_from_events(events, [1], "ab").tolist() == [[2, 1]]


@pytest.mark.parametrize(
    ("events", "ids", "message"),
    [
        ({"id": [1], "sensor": ["z"], "time": [1]}, [1], "'z' of id 1 is not a sensor"),
        ({"id": [1], "sensor": ["a"], "time": [None]}, [1], "'time'.*empty for id 1"),
        (
            {"id": [1], "sensor": ["a"], "time": ["noon"]},
            [1],
            "'noon' in column 'time'",
        ),
        (
            {"id": ["1"], "sensor": ["a"], "time": [1]},
            [1],
            "same type, numbers or text",
        ),
        (
            {"id": [1], "sensor": ["a"], "time": [1]},
            [1, 1],
            "rows 0 and 1 have the same",
        ),
        ({"id": [1], "sensor": ["a"]}, [1], "no column 'time'; their columns are 'id'"),
    ],
)
def test_events_that_cannot_be_are_named(events, ids, message):
    with pytest.raises(DataError, match=message):
        acquired_from_events(events, ids, "ab")


# the estimate -----------------------------------------------------------------------------


def test_the_weight_of_a_row_is_one_over_its_chance_of_going_on():
    # Row 0 goes on twice, past chances 1/2 and 1/5 of stopping: 2, then 2 · 5/4. Row 1
    # stops after one round, row 2 is known from the start.
    followed = SimpleNamespace(
        n_needed=np.array([2, -1, 0]),
        stands=[
            SimpleNamespace(rows=np.array([0, 1])),
            SimpleNamespace(rows=np.array([0, 1])),
            SimpleNamespace(rows=np.array([], dtype=int)),
        ],
        purchases=SimpleNamespace(n_rounds=np.array([2, 1, 0])),
    )
    chance = np.array([[0.5, 0.2, 0.0], [0.5, 0.2, np.nan], [0.9, np.nan, np.nan]])
    weight = weights(followed, chance)
    np.testing.assert_allclose(weight, [[1, 1, 1], [2, 2, 1], [2.5, 0, 1]])
    # φ of row 0: .3 + 2 (.4 − .3) + 2.5 (1 − .4); of row 1: .3 + 2 (.1 − .3).
    outlook = np.array([[0.3, 0.3, 0.0], [0.4, 0.1, 0.0], [1.0, np.nan, 0.0]])
    value = contributions(weight, outlook[:, :, None])
    np.testing.assert_allclose(value[:, 0], [2.0, -0.1, 0.0])
    # Twice the odds of stopping, 1 to 1 and 1 to 4, are 2 to 1 and 1 to 2.
    np.testing.assert_allclose(weights(followed, chance, 2.0)[2], [4.5, 0, 1])


def test_rows_that_hardly_had_a_chance_count_in_the_variance_though_none_went_on():
    # Two rows of four go on, past a chance of 1/2, and err by 1 and by -1; the others had
    # chances of 1/2 and of 1/10, and stopped. Squared steps are 1 in the mean, so that the
    # variance is that of q, 0, and (2 + 2 + 2 + 10) / 4. By the contributions, 0, 0, 2 and
    # -2, it is 8/3.
    followed = SimpleNamespace(
        n_needed=np.array([1, 1, -1, -1]),
        complete=np.array([True, True, False, False]),
        stands=[
            SimpleNamespace(rows=np.arange(4)),
            SimpleNamespace(rows=np.array([], dtype=int)),
        ],
        purchases=SimpleNamespace(n_rounds=np.array([1, 1, 0, 0])),
    )
    chance = np.array([[0.5], [0.5], [0.5], [0.9]])
    outlook = np.array([[0.0, 0, 0, 0], [1, -1, np.nan, np.nan]])[:, :, None]
    weight = weights(followed, chance)
    variance = likely_variance(followed, chance, weight, outlook)
    np.testing.assert_allclose(variance, [4.0])
    value = contributions(weight, outlook)[:, 0]
    narrow, wide = mean_estimate(value), mean_estimate(value, variance[0])
    assert type(wide.high) is float
    assert wide.high == pytest.approx(1.959964 * 4.0**0.5 / 2)
    assert narrow.high == pytest.approx(1.959964 * (8 / 3) ** 0.5 / 2)


def test_the_outlook_is_a_ridge_regression_on_columns_of_one_scale():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 4)) * [1, 10, 0.1, 0] + [5, 0, 0, 3]
    X[rng.random(X.shape) < 0.2] = np.nan
    X[0, 1] = 1e4  # far away
    y = rng.normal(size=(80, 3))
    ridge = make_pipeline(*scaled(), Ridge(alpha=PENALTY)).fit(X, y)
    ours = OutlookRegression().fit(X, y)
    np.testing.assert_allclose(ours.predict(X), ridge.predict(X), atol=1e-10)


def test_where_everything_was_bought_the_figures_are_those_of_the_report(
    model, clinic_log
):
    acquired = np.ones(clinic_log.X.shape, dtype=int)
    found = evaluate_from_log(model, clinic_log.X, clinic_log.y, acquired=acquired)
    report = model.report(clinic_log.X, clinic_log.y)
    assert found.error.value == pytest.approx(report.error, abs=1e-12)
    assert found.cost.value == pytest.approx(report.cost, abs=1e-12)
    assert found.total.value == pytest.approx(report.total, abs=1e-12)
    for use, wanted in zip(found.sensors, report.sensors, strict=True):
        assert use.share.value == pytest.approx(wanted.share, abs=1e-12)
        assert use.spend.value == pytest.approx(wanted.spend, abs=1e-12)
    for use, wanted in zip(found.leaves, report.leaves, strict=True):
        assert use.rows == wanted.rows
        assert use.share.value == pytest.approx(wanted.share, abs=1e-12)
        if wanted.rows:
            assert use.error.value == pytest.approx(wanted.error, abs=1e-12)
    assert found.support.effective_share == 1
    assert found.bands[0].error == pytest.approx((found.error.low, found.error.high))


def test_the_truth_is_in_the_interval_and_complete_rows_are_elsewhere(
    model, clinic_log
):
    found = evaluate_from_log(
        model, clinic_log.X, clinic_log.y, acquired=clinic_log.acquired
    )
    assert found.error.low < clinic_log.error < found.error.high
    assert found.cost.low < clinic_log.cost < found.cost.high
    asked = model.acquired(clinic_log.X)
    complete = ~(asked & (clinic_log.acquired == 0)).any(axis=1)
    assert found.support.n_complete == complete.sum()
    paid = model.acquisition_cost(clinic_log.X)[complete].mean()
    assert not found.cost.low < paid < found.cost.high


def test_who_passes_over_a_sensor_for_good_stopped_before(model):
    # "dear" is bought or passed over by what "cheap" read, "dearest" by a coin: rows with
    # "dearest" and without "dear" went on, but never to where the policy goes.
    X, y = clinic(3000, seed=4)
    rng = np.random.default_rng(4)
    goes_on = rng.random(len(X)) < 1 / (1 + np.exp(-X[:, 0]))
    coin = rng.random(len(X)) < 0.5
    mask = np.column_stack([np.ones(len(X), dtype=bool), goes_on, coin])
    order = ["cheap", "dear", "dearest"]
    found = evaluate_from_log(model, X, y, acquired=mask, order=order)
    cost = model.acquisition_cost(X).mean()
    assert found.cost.low < cost < found.cost.high
    assert found.support.mean_weight == pytest.approx(1, abs=0.05)
    assert found.support.unreached == 0


def test_parts_add_up_to_the_whole(model, clinic_log):
    found = evaluate_from_log(
        model, clinic_log.X, clinic_log.y, acquired=clinic_log.acquired
    )
    assert sum(use.spend.value for use in found.sensors) == pytest.approx(
        found.cost.value
    )
    assert sum(use.share.value for use in found.leaves) == pytest.approx(1)
    reached = [use for use in found.leaves if use.rows]
    errors = sum(use.share.value * use.error.value for use in reached)
    assert errors == pytest.approx(found.error.value)


def test_the_same_log_is_judged_the_same_twice(model, clinic_log):
    rows = slice(0, 500)
    X, y, acquired = clinic_log.X[rows], clinic_log.y[rows], clinic_log.acquired[rows]
    one = evaluate_from_log(model, X, y, acquired=acquired)
    assert evaluate_from_log(model.policy_, X, y, acquired=acquired) == one


def test_a_policy_compared_with_itself_differs_by_nothing(model, clinic_log):
    rows = slice(0, 800)
    found = compare_from_log(
        model,
        model,
        clinic_log.X[rows],
        clinic_log.y[rows],
        acquired=clinic_log.acquired[rows],
    )
    assert (found.difference.cost.low, found.difference.cost.high) == (0, 0)
    assert found.first == found.second


def test_the_difference_of_two_policies_is_surer_than_either(model, clinic_log):
    X, y = clinic(800, seed=1)
    other = SensorTreeClassifier(
        {"cheap": [0], "dear": [1], "dearest": [2]},
        costs={"cheap": 1, "dear": 3, "dearest": 5},
        cost_weight=0.013,
        structure="cascade",
    ).fit(X, y)
    found = compare_from_log(
        model, other, clinic_log.X, clinic_log.y, acquired=clinic_log.acquired
    )
    truth = clinic_log.cost - other.acquisition_cost(clinic_log.X).mean()
    difference = found.difference.cost
    assert truth != 0
    assert difference.low < truth < difference.high
    one = found.first.cost
    assert difference.high - difference.low < one.high - one.low


def test_the_logger_is_what_was_bought_and_answered(model, clinic_log):
    answers = np.zeros(len(clinic_log.y), dtype=int)
    found = evaluate_from_log(
        model,
        clinic_log.X,
        clinic_log.y,
        acquired=clinic_log.acquired,
        answers=answers,
    )
    paid = (clinic_log.acquired > 0) @ [1, 3, 5]
    assert found.logger.cost.value == pytest.approx(paid.mean())
    assert found.logger.error.value == pytest.approx(clinic_log.y.mean())
    assert found.difference.error.value == pytest.approx(
        found.error.value - clinic_log.y.mean()
    )


def test_a_logger_that_knew_the_label_must_be_said_to_have(model):
    X, y = clinic(6000, seed=5)
    rng = np.random.default_rng(0)
    known = 0.25 + 0.5 * y  # it goes on where it already knows that the answer is 1
    acquired = np.zeros(X.shape, dtype=int)
    acquired[:, 0] = 1
    went_on = rng.random(len(X)) < known
    acquired[went_on, 1:] = [2, 3]
    truth = (model.predict(X) != y).mean()
    no_outlook = DummyRegressor()  # so that λ alone must put it right
    said = evaluate_from_log(
        model,
        X,
        y,
        acquired=acquired,
        label_influenced_buying=True,
        outlook=no_outlook,
    )
    assert said.error.low < truth < said.error.high
    weighed = evaluate_from_log(
        model, X, y, acquired=acquired, outlook=no_outlook
    ).support
    assert said.support.effective_size < weighed.effective_size


# enough, or not ---------------------------------------------------------------------------


def test_a_log_without_a_complete_row_is_refused(model, clinic_log):
    acquired = np.zeros(clinic_log.X.shape, dtype=int)
    found = evaluate_from_log(model, clinic_log.X, clinic_log.y, acquired=acquired)
    assert "for 0 of its 4,000 rows" in found.refused
    assert np.isnan(found.error.value)
    assert np.isnan(found.difference.cost.low)
    assert found.logger.cost.value == 0
    assert found.bands == ()


def test_rows_without_a_chance_are_refused_though_others_have_full_weight(model):
    X, y = clinic(4000, seed=3)
    acquired = np.tile([1, 2, 3], (len(X), 1))
    acquired[np.abs(X[:, 0]) < 0.4, 1:] = 0  # where the policy goes on, nobody did
    found = evaluate_from_log(model, X, y, acquired=acquired)
    assert found.support.effective_share > 0.1
    assert "rows like them are missing among the others" in found.refused


def rests_on(**figures):
    plain = {
        "n_rows": 1000,
        "n_complete": 500,
        "effective_size": 300.0,
        "effective_share": 0.3,
        "mean_weight": 1.0,
        "largest_weight": 0.01,
        "certain": 0.0,
        "unreached": 0.0,
    }
    return Support(**{**plain, **figures})


def test_below_one_percent_is_refused_and_above_is_not():
    assert reason_to_refuse(rests_on()) is None
    few = rests_on(n_rows=10_000, effective_size=99.0, effective_share=0.0099)
    assert "worth 99.0 equal ones (0.99 %)" in reason_to_refuse(few)
    enough = rests_on(n_rows=10_000, effective_size=101.0, effective_share=0.0101)
    assert reason_to_refuse(enough) is None


def test_small_chances_that_the_weights_make_good_are_not_refused():
    rare = rests_on(unreached=0.3, mean_weight=0.98)
    assert reason_to_refuse(rare) is None
    assert reason_to_refuse(rests_on(unreached=0.3, mean_weight=0.6)) is not None


def test_weights_that_are_off_by_more_than_double_are_refused_unless_by_chance():
    many = {"n_rows": 10_000, "effective_size": 200.0, "effective_share": 0.02}
    for mean in (0.4, 2.5):
        said = reason_to_refuse(rests_on(**many, mean_weight=mean))
        assert f"weigh {mean:.2f} in the mean, where 1 is expected" in said
    assert reason_to_refuse(rests_on(**many, mean_weight=1.9)) is None
    # Of ten rows the mean weight is known to 3 · 10^-½ = .95.
    few = {"n_rows": 1_000, "effective_size": 10.0, "effective_share": 0.01}
    assert reason_to_refuse(rests_on(**few, mean_weight=0.4)) is None


# what it shows ----------------------------------------------------------------------------


def test_it_is_printed_written_and_shown(model, clinic_log):
    found = evaluate_from_log(
        model, clinic_log.X, clinic_log.y, acquired=clinic_log.acquired
    )
    text = str(found)
    for said in ("judged from a log of 4,000 rows", "policy less logger", "dearest"):
        assert said in text
    assert "hidden reasons to stop" in text
    form = json.loads(json.dumps(found.to_dict()))
    assert form["cost"]["value"] == found.cost.value
    html = found._repr_html_()
    assert f"{found.cost.value:.4g}" in html
    assert "&lt;" not in html
    refused = evaluate_from_log(
        model, clinic_log.X, clinic_log.y, acquired=0 * clinic_log.acquired
    )
    assert str(refused).count("refused: the log holds all") == 1
    assert "<b>refused</b>" in refused._repr_html_()


def test_a_picture_has_a_cross_for_each_policy_as_large_as_its_intervals(
    model, clinic_log
):
    X, y, acquired = clinic_log.X, clinic_log.y, clinic_log.acquired
    found = evaluate_from_log(model, X, y, acquired=acquired)
    unbought = acquired.copy()
    unbought[:, 1:] = 0
    refused = evaluate_from_log(model, X, y, acquired=unbought)
    assert refused.refused
    display = LogDisplay.from_evaluations({"tree": found, "dear": refused})
    assert display.names == ["the log itself", "tree"]
    assert display.refused == ["dear"]
    assert display.error[1].tolist() == [
        found.error.value,
        found.error.low,
        found.error.high,
    ]
    display.plot()
    wide, high = (bars.get_segments()[0] for bars in display.crosses_[1][2])
    np.testing.assert_allclose(wide[:, 0], [found.cost.low, found.cost.high])
    np.testing.assert_allclose(high[:, 1], [found.error.low, found.error.high])
    assert display.ax_.get_title(loc="left") == "the log cannot tell of 'dear'"


def test_a_picture_of_nothing_is_named():
    with pytest.raises(DataError, match="there is no evaluation; give one or more"):
        LogDisplay.from_evaluations({})
    with pytest.raises(DataError, match="1 names, 0 errors and 0 costs; give one"):
        LogDisplay(["a"], [], [])


def test_a_wider_band_holds_a_narrower_one(model, clinic_log):
    found = evaluate_from_log(
        model,
        clinic_log.X,
        clinic_log.y,
        acquired=clinic_log.acquired,
        hidden_odds=(1.0, 1.5, 3.0),
    )
    one, some, more = found.bands
    assert one.error == pytest.approx((found.error.low, found.error.high))
    assert more.error[0] < some.error[0] < one.error[0]
    assert one.cost[1] < some.cost[1] < more.cost[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_folds": 1}, "n_folds must be at least 2"),
        ({"hidden_odds": [0.5]}, "hidden_odds must be finite numbers of at least 1"),
        ({"unbought": "maybe"}, "unbought must be 'ignore' or 'refuse'"),
    ],
)
def test_bad_options_are_named(model, clinic_log, options, message):
    with pytest.raises(ParameterError, match=message):
        evaluate_from_log(
            model,
            clinic_log.X[:50],
            clinic_log.y[:50],
            acquired=clinic_log.acquired[:50],
            **options,
        )


def test_what_is_no_policy_is_named(clinic_log):
    with pytest.raises(ParameterError, match="got SensorTreeClassifier; fit it first"):
        evaluate_from_log(
            SensorTreeClassifier(),
            clinic_log.X,
            clinic_log.y,
            acquired=clinic_log.acquired,
        )


# the command line -------------------------------------------------------------------------


@pytest.fixture
def files(model, clinic_log, tmp_path):
    """A model file, a table, and its log as a long and as a wide table."""
    n_rows = 600
    names = ["cheap", "dear", "dearest"]
    acquired = clinic_log.acquired[:n_rows]
    frame = pd.DataFrame(clinic_log.X[:n_rows], columns=["x0", "x1", "x2"])
    frame = frame.astype(object).where(acquired > 0, "not done")
    frame["stay"] = [f"s{i}" for i in range(n_rows)]
    frame["sick"] = clinic_log.y[:n_rows]
    rows, sensors = np.nonzero(acquired)
    shuffled = np.random.default_rng(0).permutation(len(rows))
    long = pd.DataFrame(
        {
            "stay": [f"s{row}" for row in rows],
            "sensor": [names[s] for s in sensors],
            "time": acquired[rows, sensors] + 0.5,
        }
    ).iloc[shuffled]
    wide = pd.DataFrame(acquired, columns=names).assign(stay=frame["stay"]).iloc[::-1]
    found = SimpleNamespace(folder=tmp_path, model=tmp_path / "model.json")
    save(model, found.model)
    for name, table in (("data", frame), ("long", long), ("wide", wide)):
        setattr(found, name, tmp_path / f"{name}.csv")
        table.to_csv(getattr(found, name), index=False)
    return found


def evaluated(files, log, *options):
    return CliRunner().invoke(
        app,
        [
            *("evaluate", str(files.model), str(files.data), "--target", "sick"),
            *("--log", str(log), "--id", "stay", *options),
        ],
    )


def test_the_command_judges_from_a_long_and_a_wide_log_alike(files, model, clinic_log):
    long = evaluated(files, files.long, "--json")
    assert long.exit_code == 0, long.output
    assert json.loads(long.stdout) == json.loads(
        evaluated(files, files.wide, "--json").stdout
    )
    wanted = evaluate_from_log(
        model,
        clinic_log.X[:600],
        clinic_log.y[:600],
        acquired=clinic_log.acquired[:600],
    )
    document = json.loads(long.stdout)
    assert document["cost"]["value"] == pytest.approx(wanted.cost.value)
    assert document["support"]["n_complete"] == wanted.support.n_complete
    assert document["schema"] == "sensortree/evaluate-log"
    assert "policy less logger" in evaluated(files, files.long).stdout


@pytest.mark.parametrize("n_rows", [40, 100, 1000])
@pytest.mark.parametrize("never", [1, 2])
def test_what_was_never_bought_is_not_judged_by_those_who_need_it_not(
    model, clinic_log, n_rows, never
):
    """Who stops before has all that the policy asks; who goes on has not."""
    acquired = clinic_log.acquired[:n_rows].copy()
    acquired[:, never:] = 0
    judged = evaluate_from_log(
        model, clinic_log.X[:n_rows], clinic_log.y[:n_rows], acquired=acquired
    )
    assert judged.refused
    assert np.isnan(judged.cost.value)


@pytest.mark.parametrize("wrong", [0, 1])
def test_no_error_among_few_rows_is_no_error_for_sure(model, clinic_log, wrong):
    X = clinic_log.X[:30]
    y = model.predict(X)
    y[:wrong] = 1 - y[:wrong]
    judged = evaluate_from_log(model, X, y, acquired=np.tile([1, 2, 3], (30, 1)))
    assert judged.error.value == pytest.approx(wrong / 30)
    assert judged.error.low == 0
    assert judged.error.high == pytest.approx([0.135, 0.182][wrong], abs=0.01)


def test_a_page_says_what_the_log_says(model, clinic_log):
    log = {"acquired": clinic_log.acquired}
    judged = evaluate_from_log(model, clinic_log.X, clinic_log.y, **log)
    page = report_page_from_log(model, judged, data="orders <of> 2025.csv")
    assert "orders &lt;of&gt; 2025.csv" in page
    assert "<script" not in page
    assert "http" not in page.replace("http://www.w3.org", "")
    for measure in (judged.cost, judged.logger.cost, judged.difference.cost):
        assert money(measure.value) in page
    for use in judged.sensors:
        assert money(use.spend.value) in page
    assert "hidden reasons" in page
    assert "What is assumed" in page


def test_a_page_gives_no_figures_where_the_log_cannot_tell(model, clinic_log):
    acquired = clinic_log.acquired.copy()
    acquired[:, 1:] = 0
    judged = evaluate_from_log(model, clinic_log.X, clinic_log.y, acquired=acquired)
    assert judged.refused
    page = report_page_from_log(model, judged)
    assert "cannot tell" in page
    assert escaped(judged.refused) in page
    assert "right answers" not in page
    assert "nan" not in page.lower().split("<svg")[0]


def test_the_command_writes_that_page(files):
    output = files.folder / "page.html"
    asked = ["report", str(files.model), str(files.data), "--target", "sick"]
    log = ["--log", str(files.long), "--id", "stay", "-o", str(output)]
    result = CliRunner().invoke(app, [*asked, *log])
    assert result.exit_code == 0, result.output
    assert files.long.name in output.read_text(encoding="utf-8")


def test_a_cell_that_cannot_be_read_leaves_out_a_row_only_if_it_was_bought(
    files, clinic_log
):
    table = pd.read_csv(files.data)
    row = int(np.flatnonzero(clinic_log.acquired[:600, 1])[0])
    table["x1"] = table["x1"].astype(object)
    table.loc[row, "x1"] = "haemolysed"
    table.to_csv(files.data, index=False)
    result = evaluated(files, files.long, "--json")
    assert result.exit_code == 3
    assert f"line {row + 2}: column 'x1': 'haemolysed' is not a number" in result.stderr
    assert json.loads(result.stdout)["support"]["n_rows"] == 599


@pytest.mark.parametrize(
    ("log", "message"),
    [
        ("stay,sensor\ns1,dear\n", "so nobody can tell what was bought first"),
        ("stay,sensor,time\ns1,dera,1\n", "'dera' of id 's1' is not a sensor"),
        ("stay,when\ns1,1\n", "neither a column 'sensor' nor one that is named"),
        ("stay,cheap\ns1,1\n", "has no row with stay 's0'"),
        ("cheap\n1\n", "has 1 rows.*--id"),
        ("stay,cheap\ns1,-1\n", "line 2, column 'cheap': -1 is no position"),
    ],
)
def test_a_log_file_that_cannot_be_used_is_named(files, log, message):
    path = files.folder / "bad.csv"
    path.write_text(log, encoding="utf-8")
    result = evaluated(files, path)
    assert result.exit_code != 0
    assert re.search(message, " ".join(result.stderr.split())), result.stderr
