"""Claims about the report of what was spent."""

from __future__ import annotations

import builtins
import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from toys import BLOOD, per_row_prices, toy_policy

from sensortree import Sensor, SensorTreeClassifier
from sensortree.exceptions import DataError, MissingDependencyError, ParameterError
from sensortree.policy.about import About, Baseline
from sensortree.reports.report import cost_report
from sensortree.reports.report_sums import MANY, auroc, mean_intervals, wilson
from sensortree.sensors.table import Table

# Two rows stop with a and are answered "no", two buy b and are answered "yes"; what the
# first two have in column b is not looked at. One "yes" is mistaken for "no".
X = np.array([[-1.0, np.nan], [-2.0, np.inf], [1.0, 0.0], [2.0, 0.0]])
Y = ["no", "yes", "yes", "yes"]


def test_the_toy_costs_what_can_be_added_up_by_hand():
    report = cost_report(toy_policy(), Table(X), Y)
    # costs 1, 1, 4, 4 of 4 each; one error of four
    assert (report.error, report.loss, report.cost, report.total) == (
        0.25,
        0.25,
        2.5,
        2.75,
    )
    assert report.quantiles == {0: 1, 0.25: 1, 0.5: 1, 0.75: 4, 0.9: 4, 1: 4}
    assert (report.everything, report.share_of_everything) == (4.0, 0.625)
    assert [(s.sensor, s.share, s.spend) for s in report.sensors] == [
        ("a", 1.0, 1.0),
        ("b", 0.5, 1.5),
    ]
    assert [(p.place, p.sensors, p.rows, p.error, p.cost) for p in report.leaves] == [
        ("leaf 0", ("a",), 2, 0.5, 1.0),
        ("leaf 1", ("a", "b"), 2, 0.0, 4.0),
    ]
    no, yes = report.classes
    assert (no.label, no.rows, no.error, no.cost, no.sensors) == (
        "no",
        1,
        0.0,
        1.0,
        {"a": 1.0, "b": 0.0},
    )
    assert (yes.rows, yes.cost) == (3, 3.0)
    assert yes.error == yes.loss == pytest.approx(1 / 3)
    assert yes.sensors["b"] == pytest.approx(2 / 3)


def test_a_loss_in_money_makes_the_total_money():
    # Taking a "yes" for a "no" costs 6 dollars: 6 / 4 for errors + 2.50 for tests.
    report = cost_report(toy_policy(loss=[[0, 4], [6, 0]]), Table(X), Y)
    assert (report.loss, report.total) == (1.5, 4.0)
    assert "loss" in str(report)


def test_a_groups_fee_is_charged_to_the_sensor_that_is_bought_first():
    # b follows a of its group: 3 - 1. All four rows bought a first, in full.
    report = cost_report(toy_policy(terms=BLOOD), Table(X), Y)
    assert [s.spend for s in report.sensors] == [1.0, 1.0]
    assert report.cost == 2.0
    assert report.everything == 3.0


def test_rows_that_can_afford_no_leaf_are_counted_where_they_stop():
    # Two rows want b, have 2 dollars, and are served best at node 0.
    report = cost_report(toy_policy(max_cost=2.0), Table(X), Y)
    assert [(p.place, p.leaf, p.rows) for p in report.leaves] == [
        ("leaf 0", 0, 2),
        ("leaf 1", 1, 0),
        ("node 0", ~0, 2),
    ]
    assert np.isnan(report.leaves[1].error)
    assert report.to_dict()["leaves"][1]["error"] is None
    assert report.cost == 1.0
    broke = cost_report(toy_policy(max_cost=0.5), Table(X), Y)
    assert (broke.leaves[-1].place, broke.leaves[-1].rows) == ("start", 4)
    assert (broke.cost, broke.share_of_everything) == (0.0, 0.0)


def test_each_row_pays_its_own_price():
    prices = np.array([[np.nan, 9.0], [np.nan, 9.0], [np.nan, 5.0], [np.nan, 7.0]])
    report = cost_report(per_row_prices(toy_policy()), Table(X, prices), Y)
    # everything is 10, 10, 6, 8; the rows pay 1, 1, 6, 8
    assert [s.spend for s in report.sensors] == [1.0, 3.0]
    assert report.everything == 8.5
    assert report.share_of_everything == pytest.approx(16 / 34)


def test_weight_0_is_a_row_left_out_and_weight_2_a_row_repeated():
    weighted = cost_report(toy_policy(), Table(X), Y, [2, 0, 1, 1])
    rows = [0, 0, 2, 3]
    repeated = cost_report(toy_policy(), Table(X[rows]), [Y[r] for r in rows])
    one, other = weighted.to_dict(), repeated.to_dict()
    for form in (one, other):  # four rows are surer than three
        del form["n_rows"], form["intervals"]
        for use in form["leaves"] + form["classes"]:
            del use["rows"]
        for use in form["classes"]:
            del use["intervals"]
    assert one == other


def test_intervals_are_seeded_hold_the_mean_and_are_near_the_normal_ones():
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.normal(size=400), np.zeros(400)])
    y = np.where(rng.random(400) < 0.3, "yes", "no")
    report = cost_report(toy_policy(), Table(rows), y)
    assert report.intervals == cost_report(toy_policy(), Table(rows), y).intervals
    for measure in ("error", "loss", "cost", "total"):
        low, high = report.intervals[measure]
        assert low < getattr(report, measure) < high
    # a mean of 400 zeros and ones: 1.96 standard errors on both sides
    low, high = report.intervals["error"]
    width = 2 * 1.96 * np.sqrt(report.error * (1 - report.error) / 400)
    assert high - low == pytest.approx(width, rel=0.1)


def test_an_estimators_report_agrees_with_its_predictions(two_sensors):
    rows, y, sensors, costs = two_sensors
    model = SensorTreeClassifier(sensors, costs=costs, cost_weight=0.01).fit(rows, y)
    report = model.report(rows, y)
    assert report.error == pytest.approx(1 - model.score(rows, y), abs=1e-12)
    cost = model.acquisition_cost(rows)
    assert report.cost == pytest.approx(cost.mean(), abs=1e-9)
    assert sum(s.spend for s in report.sensors) == pytest.approx(report.cost, abs=1e-9)
    assert [s.share for s in report.sensors] == pytest.approx(
        model.acquired(rows).mean(axis=0)
    )
    assert [p.rows for p in report.leaves] == np.bincount(model.apply(rows)).tolist()
    assert report.quantiles[0.9] == np.quantile(cost, 0.9, method="inverted_cdf")
    assert report.total == pytest.approx(report.error + 0.01 * report.cost)


def test_spends_add_up_to_the_cost_with_groups_and_prices_of_each_row():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(150, 4))
    y = rows[:, 0] + rows[:, 1] * (np.abs(rows[:, 0]) < 1) + 0.3 * rows[:, 2] > 0
    rows[:, 3] = rng.uniform(0, 2, 150)
    model = SensorTreeClassifier(
        {
            "a": Sensor([0], cost=0.5, fee=0.2, group="g"),
            "b": Sensor([1], cost="x3", fee=0.3, group="g"),
            "c": Sensor([2], cost=1.0, fee=0.4, group="g"),
        },
        cost_weight=0.05,
    ).fit(rows, y)
    report = model.report(rows, y)
    paid = model.acquisition_cost(rows).mean()
    assert sum(s.spend for s in report.sensors) == pytest.approx(paid, abs=1e-12)


def test_a_report_is_plain_data_a_frame_and_text():
    report = cost_report(toy_policy(), Table(X), Y)
    assert json.loads(json.dumps(report.to_dict(), allow_nan=False))["cost"] == 2.5
    assert report.to_frame().loc["cost", "mean"] == 2.5
    assert report.to_frame("sensors").loc["b", "spend"] == 1.5
    assert report.to_frame("leaves").loc["leaf 1", "rows"] == 2
    assert report.to_frame("classes").loc["yes", "share b"] == pytest.approx(2 / 3)
    text = str(report)
    assert "everything would cost 4: 62.5 % of it was spent" in text
    assert "leaf 1     2      0     4  a, b" in text
    with pytest.raises(ParameterError, match="no frame of kind 'rows'; the kinds are"):
        report.to_frame("rows")


def test_a_frame_without_pandas_names_what_to_install(monkeypatch):
    real = builtins.__import__

    def without_pandas(name, *args, **kwargs):
        if name == "pandas":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    report = cost_report(toy_policy(), Table(X), Y)
    monkeypatch.setattr(builtins, "__import__", without_pandas)
    with pytest.raises(MissingDependencyError, match=r"sensortree\[demo\]"):
        report.to_frame()


def test_wrong_answers_weights_and_lengths_are_named():
    policy, table = toy_policy(), Table(X)
    with pytest.raises(DataError, match=r"'maybe', which the policy does not know"):
        cost_report(policy, table, ["no", "yes", "maybe", "no"])
    with pytest.raises(DataError, match=r"shape \(2,\), but X has 4 rows"):
        cost_report(policy, table, ["no", "yes"])
    with pytest.raises(DataError, match="not all 0"):
        cost_report(policy, table, Y, [0, 0, 0, 0])
    with pytest.raises(DataError, match=r"sample_weight has shape \(1,\)"):
        cost_report(policy, table, Y, [1])
    with pytest.raises(DataError, match="no rows"):
        cost_report(policy, Table(X[:0]), [])


def test_of_many_rows_the_interval_of_a_mean_is_normal_and_as_the_one_of_draws():
    values = np.random.default_rng(0).exponential(size=(MANY, 1))
    more = np.vstack([values, values[:1]])
    ((low, high),) = mean_intervals(values, np.full(MANY, 1 / MANY))
    ((least, most),) = mean_intervals(more, np.full(MANY + 1, 1 / (MANY + 1)))
    assert (least, most) == pytest.approx((low, high), abs=0.1 * (high - low))
    assert most - least == pytest.approx(
        2 * 1.96 * values.std() / np.sqrt(MANY), rel=0.01
    )


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"cost_weight": 0.01}, 100),
        ({"loss": [[0, 500], [500, 0]]}, 500),
        ({"loss": [[0, 500], [500, 0]], "cost_weight": 2.0}, 250),
        ({"loss": [[0, 4], [6, 0]]}, None),
        ({"cost_weight": 0.0}, None),
    ],
)
def test_a_wrong_answer_counts_as_money_if_all_are_wrong_alike(parameters, expected):
    report = cost_report(toy_policy(**parameters), Table(X), Y)
    assert report.mistake_cost == expected


def test_the_unit_of_the_money_is_told():
    policy = replace(toy_policy(cost_weight=0.01), about=About("EUR"))
    text = str(cost_report(policy, Table(X), Y))
    assert text.startswith("4 rows; costs in EUR; a wrong answer counts as 100 EUR\n")


# how good the answers are -----------------------------------------------------------------


def test_a_share_has_wilsons_interval():
    # 8 of 10, from Wilson's formula by hand: (.8 + .19208) / 1.38416 ± ...
    low, high = wilson(np.array([True] * 8 + [False] * 2), np.full(10, 0.1))
    assert (low, high) == pytest.approx((0.4901625, 0.9433178), abs=1e-6)
    # none of 10 is not known to be none of all
    low, high = wilson(np.zeros(10, bool), np.full(10, 0.1))
    assert (low, high) == pytest.approx((0, 0.2775328), abs=1e-6)
    assert np.isnan(wilson(np.zeros(0, bool), np.zeros(0))).all()


def test_rows_of_weight_0_make_no_share_surer():
    right = np.array([True, False, True, True])
    few = wilson(right[:2], np.full(2, 0.5))
    assert wilson(right, np.array([0.5, 0.5, 0, 0])) == pytest.approx(few)


def test_the_area_under_the_roc_curve_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=200)
    belief = rng.dirichlet(np.ones(3), size=200).round(2) + np.eye(3)[truth] / 4
    weight = rng.integers(1, 4, size=200) / 400
    areas, mean, _ = auroc(belief, truth, weight)
    judged = [
        roc_auc_score(truth == c, belief[:, c], sample_weight=weight) for c in range(3)
    ]
    assert areas == pytest.approx(judged)
    assert mean == pytest.approx(np.mean(judged))


def test_the_interval_of_the_area_is_as_wide_as_areas_of_other_rows_spread():
    rng = np.random.default_rng(1)

    def drawn():
        truth = rng.integers(2, size=150)
        score = rng.normal(truth)
        belief = np.column_stack([-score, score])
        return auroc(belief, truth, np.full(150, 1 / 150))

    found = [drawn() for _ in range(400)]
    spread = np.std([mean for _, mean, _ in found])
    widths = [high - low for *_, (low, high) in found]
    assert np.mean(widths) / (2 * 1.96) == pytest.approx(spread, rel=0.1)


def test_rows_of_one_class_have_no_area():
    areas, mean, interval = auroc(
        np.full((3, 2), 0.5), np.zeros(3, int), np.ones(3) / 3
    )
    assert np.isnan([*areas, mean, *interval]).all()


def test_the_toy_recognises_what_can_be_counted_by_hand():
    # answers: no, no, yes, yes; truth: no, yes, yes, yes
    report = cost_report(toy_policy(), Table(X), Y)
    assert (report.labels, report.confusion) == (("no", "yes"), ((1, 0), (1, 2)))
    no, yes = report.classes
    assert (no.sensitivity, no.precision) == (1, 0.5)
    assert (yes.sensitivity, yes.precision) == (pytest.approx(2 / 3), 1)
    assert (no.specificity, yes.specificity) == (yes.sensitivity, no.sensitivity)
    # probabilities of yes: .1, .1, .8, .8; of three pairs two are right, one is equal
    areas = [no.auroc, yes.auroc, report.auroc]
    assert areas == pytest.approx([2.5 / 3] * 3)
    # squared distances: .01, .81, .04, .04
    assert report.brier == pytest.approx(0.9 / 4)
    # probabilities of what is right: .9, .1, .8, .8
    right = [0.9, 0.1, 0.8, 0.8]
    assert report.log_loss == pytest.approx(-np.log(right).mean())
    for name in ("brier", "log_loss"):
        least, most = report.intervals[name]
        assert least < getattr(report, name) < most
    low, high = yes.intervals["sensitivity"]
    assert low < 2 / 3 < high < 1
    first, second = report.leaves
    assert first.answers == {"no": 1, "yes": 0}
    assert first.classes == {"no": 0.5, "yes": 0.5}
    assert second.answers == {"no": 0, "yes": 1}


def test_an_error_that_never_happened_has_an_interval():
    report = cost_report(toy_policy(), Table(X), ["no", "no", "yes", "yes"])
    assert report.error == 0
    assert report.intervals["error"][1] > 0.3


# beside what buys the same for all --------------------------------------------------------


def compared_toy(**parameters):
    policy = toy_policy(**parameters)
    subsets = {"everything": "ab", "best fixed set": "a", "nothing": ""}
    return replace(
        policy,
        baselines=tuple(
            Baseline(name, frozenset(known), policy.classifiers[frozenset(known)])
            for name, known in subsets.items()
        ),
    )


FULL = np.array([[-1.0, 0.0], [-2.0, 0.0], [1.0, 0.0], [2.0, 0.0]])


def test_baselines_answer_the_same_rows():
    # truth: no, yes, yes, yes. Everything says yes for 4, a alone no for 1, nothing no.
    # The policy errs once and costs 2.5.
    report = cost_report(compared_toy(cost_weight=0.1), Table(FULL), Y)
    told = [(b.name, b.sensors, b.error, b.cost) for b in report.baselines]
    assert told == [
        ("everything", ("a", "b"), 0.25, 4),
        ("best fixed set", ("a",), 0.75, 1),
        ("nothing", (), 0.75, 0),
    ]
    everything, fixed, nothing = report.baselines
    assert everything.saved == pytest.approx(
        {"error": 0, "loss": 0, "cost": 1.5, "total": 0.15}
    )
    assert fixed.saved["total"] == pytest.approx(0.5 - 0.15)
    assert nothing.saved["cost"] == -2.5
    assert report.to_dict()["baselines"][2]["saved"]["cost"] == -2.5
    assert report.to_frame("baselines").loc["nothing", "saved cost"] == -2.5
    assert "best fixed set" in str(report)


def test_what_is_saved_is_compared_row_by_row():
    """Rows that cost the same either way say nothing, so the interval is no wider."""
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.normal(size=400), np.zeros(400)])
    y = np.where(rng.random(400) < 0.5, "yes", "no")
    report = cost_report(compared_toy(), Table(rows), y)
    everything = report.baselines[0]
    low, high = everything.saved_intervals["cost"]
    # 3 dollars for the half that does not buy b: the error of a share, times 3
    share = np.mean(rows[:, 0] <= 0)
    assert everything.saved["cost"] == pytest.approx(3 * share)
    width = 2 * 1.96 * 3 * np.sqrt(share * (1 - share) / 400)
    assert high - low == pytest.approx(width, rel=0.1)


def test_rows_that_do_not_hold_what_a_baseline_reads_are_told():
    # b is NaN in one row and infinite in another, which the policy never looks at
    report = cost_report(compared_toy(), Table(X), Y)
    everything, fixed, _ = report.baselines
    assert np.isnan(everything.total)
    assert "not all of these rows can be read: " in everything.note
    assert fixed.note is None
    never = X.copy()
    never[:, 1] = np.nan
    note = cost_report(compared_toy(), Table(never[:2]), Y[:2]).baselines[0].note
    assert note == "not known, since these rows have no values of b"
    assert "everything: not known" in str(report)


def test_a_baseline_that_answers_without_some_values_says_in_how_many_rows():
    policy = compared_toy()
    blind = replace(policy, reader=replace(policy.reader, allow_nan=True))
    rows = FULL.copy()
    rows[0, 1] = np.nan
    everything = cost_report(blind, Table(rows), Y).baselines[0]
    assert everything.note.startswith("in 25.0 % of these rows some of its sensors")
    assert everything.cost == 4


def test_of_many_classes_the_most_frequent_mistakes_are_printed():
    rng = np.random.default_rng(0)
    y = rng.integers(14, size=280)
    rows = np.column_stack([y + rng.normal(0, 0.7, 280), rng.normal(size=280)])
    model = SensorTreeClassifier(cost_weight=0.001).fit(rows, y)
    text = str(model.report(rows, y))
    assert "most often mistaken  for" in text
    assert "class \\ answer" not in text
