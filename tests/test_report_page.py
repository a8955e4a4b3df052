"""Claims about the page of a report."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest
from toys import toy_policy

from sensortree import (
    SensorTreeClassifier,
    SensorTreeClassifierCV,
    guarantee_error,
    load,
    save,
)
from sensortree.exceptions import BudgetWarning, UnseenWarning
from sensortree.policy.about import About, Baseline, HeldOut, Outage, OutageReport
from sensortree.reports.chart import Chart, Series
from sensortree.reports.html import NO_BREAK, between, figure, html, money, share
from sensortree.reports.report import LIMITS, cost_report, limited, some_limits
from sensortree.reports.report_page import ReportPage
from sensortree.reports.rules import _likely_conditions, plain_rules
from sensortree.reports.words import percent
from sensortree.results import TradeoffCurve
from sensortree.sensors.loss import SCORES, Loss
from sensortree.sensors.table import Table

SCRIPT = "<script>alert(1)</script>"
X = np.column_stack([np.linspace(-2, 2, 101)[np.arange(101) != 50], np.zeros(100)])
Y = np.where(X[:, 0] > 0, "yes", "no")


def compared(policy):
    subsets = {"everything": "ab", "best fixed set": "a", "nothing": ""}
    baselines = [
        Baseline(name, frozenset(known), policy.classifiers[frozenset(known)])
        for name, known in subsets.items()
    ]
    return replace(policy, baselines=tuple(baselines))


def page(policy=None, X=X, y=Y, data="", title="", **known):
    policy = compared(toy_policy()) if policy is None else policy
    table = Table(X)
    report, limits = cost_report(policy, table, y), limited(policy, table, y)
    model = SimpleNamespace(**known)
    return ReportPage(policy, data, title, table, report, model, limits).to_html()


def words_of(text):
    """The words of a page without its marks and its pictures' style."""
    text = re.sub(r"<style>.*?</style>", "", text, flags=re.S)
    return " ".join(re.sub(r"<[^>]*>", " ", text).replace("\u00a0", " ").split())


class Balance(HTMLParser):
    """Remembers which tags are open, and complains about one that closes another."""

    EMPTY = ("meta", "circle", "line", "polyline", "rect", "path", "br")

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


# what stands there ------------------------------------------------------------------------


def test_a_page_says_in_words_what_is_asked_of_whom():
    words = words_of(page())
    assert "Everyone: a (1)" in words
    assert "50.0 % of all stop. Answered no; right for 100.0 % of 50." in words
    assert "50.0 % of all buy b (3). Answered yes; right for 100.0 % of 50." in words
    assert "Roughly when A is below" in words


def test_a_page_has_the_figures_of_the_report():
    words = words_of(page(replace(compared(toy_policy()), cost_weight=0.1)))
    # half pays 1, half 4; all answers are right; everything costs 4 and errs in half
    assert "100.0 % right answers; 95 % interval 96.3 to 100.0 %" in words
    assert "2.50 spent on an example on average; everything would cost 4" in words
    assert "1.50 saved on an example against buying everything" in words
    assert "50.0 percentage points fewer wrong answers" in words
    assert "Together is price plus 10 for a wrong answer." in words


def test_a_page_says_what_the_model_is_about():
    held_out = HeldOut(0.2, 0.01, 0.15, 0.01, 0.15, 0.01, 2.0, 0.1, 90)
    about = About("EUR", "sick", "ward.csv", "2026-01-31T12:00:00Z", 90, held_out)
    policy = replace(compared(toy_policy()), about=about)
    proof = {"lower": 1.25, "upper": 1.5}
    words = words_of(page(policy, data="new.csv", certificate_=proof))
    assert "sick: what is asked, and what that is worth" in words
    assert "100 examples of new.csv; asked is sick; written on 20" in words
    assert (
        "learned from 90 rows of ward.csv learned on 2026-01-31 prices in EUR" in words
    )
    assert "had not seen: error 0.150 ± 0.010, mean cost 2 ± 0.1 EUR." in words
    assert "proven to lie between 1.25 and 1.5" in words
    assert "buy b (3 EUR)" in words


def test_examples_that_the_model_was_learned_from_are_warned_of():
    policy = replace(compared(toy_policy()), about=About(data="ward.csv"))
    warning = "expect less of new examples"
    assert warning in page(policy, data="ward.csv")
    assert warning not in page(policy, data="new.csv")
    assert warning not in page(policy)


def test_what_training_never_saw_is_counted():
    rng = np.random.default_rng(0)
    readings = rng.normal(size=(200, 2))
    model = SensorTreeClassifier(cost_weight=0.001).fit(readings, readings[:, 0] > 0)
    readings[3, 0] = 1e6
    with pytest.warns(UnseenWarning):
        told = words_of(model.report_page(readings, readings[:, 0] > 0))
    assert "a number far from those seen 1" in told
    assert "What training never saw" not in words_of(page())


def test_the_title_can_be_given():
    assert "<h1>Ward 7</h1>" in page(title="Ward 7")


def test_a_model_that_buys_nothing_says_so(two_sensors):
    rows, y, sensors, costs = two_sensors
    model = SensorTreeClassifier(sensors, costs=costs, cost_weight=9).fit(rows, y)
    words = words_of(model.report_page(rows, y))
    assert "Everyone: nothing is bought" in words
    assert "Nothing is bought for anybody" in words
    assert "There are no decisions: everyone gets nothing." in words
    also = "Against the best fixed set, which is also buying nothing : it buys the same"
    assert also in words


def test_a_model_without_baselines_says_why():
    assert "its method learns none" in words_of(page(toy_policy()))


def test_a_baseline_that_cannot_be_known_is_told():
    rows = X.copy()
    rows[0, 1] = np.nan  # which the policy never reads
    words = words_of(page(X=rows))
    assert "everything: not known, since not all of these rows can be read" in words
    assert "Against the best fixed set" in words
    assert "Against buying everything" not in words


def test_rows_of_one_class_have_a_page():
    words = words_of(page(y=np.full(100, "no")))
    assert "AUROC;" not in words
    assert "nan" not in words


def test_rows_that_could_pay_for_no_leaf_are_told():
    words = words_of(page(compared(toy_policy(max_cost=2.0))))
    assert "50.0 % of the examples could pay for no leaf" in words


def test_a_loss_in_money_is_added_to_the_price():
    policy = compared(toy_policy(loss=[[0, 4], [6, 0]]))
    words = words_of(page(policy))
    assert "Together is price plus loss." in words


def test_of_many_classes_only_the_frequent_mistakes_are_listed():
    rng = np.random.default_rng(0)
    y = rng.integers(14, size=280)
    rows = np.column_stack([y + rng.normal(0, 0.7, 280), rng.normal(size=280)])
    model = SensorTreeClassifier(cost_weight=0.001).fit(rows, y)
    words = words_of(model.report_page(rows, y))
    assert "What is mistaken most often" in words
    assert "get each answer (column)" not in words


def test_of_many_sensors_those_never_bought_are_counted():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(120, 40))
    model = SensorTreeClassifier(cost_weight=0.05, structure="chain")
    model.fit(rows, rows[:, 0] > 0)
    n_bought = int(model.acquired(rows).any(axis=0).sum())
    assert f"{40 - n_bought} others" in words_of(
        model.report_page(rows, rows[:, 0] > 0)
    )


def test_a_loaded_model_gives_the_same_page(two_sensors, tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    rows, y, sensors, costs = two_sensors
    model = SensorTreeClassifier(sensors, costs=costs, cost_weight=0.01).fit(rows, y)
    save(model, tmp_path / "model.json")
    assert load(tmp_path / "model.json").report_page(rows, y) == model.report_page(
        rows, y
    )


# what it is made of -----------------------------------------------------------------------


def malicious():
    """A model in which every name is a script."""
    policy = compared(toy_policy())
    sensors = replace(
        policy.sensors,
        names=(f"a{SCRIPT}", f"b{SCRIPT}"),
        column_names=(f"A{SCRIPT}", f"B{SCRIPT}"),
    )
    named = {"a": f"a{SCRIPT}", "b": f"b{SCRIPT}"}

    def renamed(subset):
        return frozenset(named[name] for name in subset)

    from sensortree import Leaf, Node, SensorTree

    tree = SensorTree(Node(renamed("a"), Leaf(renamed("a")), Leaf(renamed("ab"))))
    return replace(
        policy,
        reader=replace(policy.reader, sensors=sensors),
        tree=tree,
        classifiers={renamed(s): c for s, c in policy.classifiers.items()},
        classes=np.array([f"no{SCRIPT}", f"yes{SCRIPT}"]),
        baselines=tuple(
            replace(b, sensors=renamed(b.sensors)) for b in policy.baselines
        ),
        about=About(SCRIPT, SCRIPT, SCRIPT),
    )


def test_whatever_comes_from_data_is_escaped():
    y = np.where(X[:, 0] > 0, f"yes{SCRIPT}", f"no{SCRIPT}")
    rows = X.copy()
    rows[0, 1] = np.nan  # so that a note names a sensor too
    text = page(malicious(), rows, y, data=SCRIPT, title=f'"{SCRIPT}')
    assert "<script" not in text
    assert text.count("&lt;script&gt;") > 20


def test_a_page_loads_nothing_and_runs_nothing():
    text = page()
    links = re.findall(r"\w+://[^\s\"'<]*", text)
    assert set(links) <= {"http://www.w3.org/2000/svg"}  # the name of a language
    for mark in ("<script", " src=", "@import", "url(", "<link", " onload"):
        assert mark not in text


def test_a_page_follows_the_theme_and_can_be_printed():
    text = page()
    assert "@media (prefers-color-scheme:dark)" in text
    assert "@media print" in text
    assert '<meta name="viewport"' in text


def test_tables_and_pictures_can_be_heard():
    text = page()
    tables = re.findall(r"<table[^>]*>", text)
    assert tables
    assert all("aria-label=" in tag for tag in tables)
    assert all("scope=" in tag for tag in re.findall(r"<th\b[^>]*>", text))
    pictures = re.findall(r"<svg[^>]*>", text)
    assert len(pictures) == 2
    assert all('role="img"' in tag and "aria-label=" in tag for tag in pictures)


def test_every_tag_is_closed():
    judge = Balance()
    judge.feed(page())
    assert judge.open == []


# figures ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("amount", "written"),
    [
        (3, "3"),
        (67.686, "67.69"),
        (-5.6, "−5.60"),
        (0.0123, "0.012"),
        (12345.6, "12,346"),
    ],
)
def test_money_is_written_as_on_a_bill(amount, written):
    assert money(amount) == written


def test_an_interval_names_its_unit_once_and_says_nothing_if_it_is_a_point():
    assert between(0.194, 0.344, share) == "19.4 to 34.4\u00a0%"
    assert figure(3.0, (3.0, 3.0 + 1e-12), money) == "3"
    assert "2 to 4" in html(figure(3.0, (2.0, 4.0), money))


# the picture ------------------------------------------------------------------------------


def named(name, cost, height, **options):
    numbers = (np.array([number]) for number in (cost, height, 0.1, 0.2))
    return Series(name, *numbers, named=True, **options)


def test_policies_at_one_place_are_one_point_with_all_names():
    picture = Chart(
        [named("nothing", 0, 0.15), named("this policy", 0, 0.15)], "wrong", "EUR"
    ).to_svg()
    assert picture.count("<circle") == 1
    assert ">this policy, nothing</text>" in picture
    assert "mean cost per example (EUR)" in picture


def test_names_in_the_picture_do_not_lie_on_each_other():
    points = [named(f"policy {i}", 3, 0.1 + i / 1000) for i in range(4)]
    picture = Chart(points, "wrong answers").to_svg()
    heights = [
        float(y) for y in re.findall(r'y="([\d.]+)"[^>]*>policy \d</text>', picture)
    ]
    assert np.diff(sorted(heights)).min() > 12


def test_lines_of_the_picture_join_their_points_and_can_be_heard():
    line = Series("less money", np.array([0.0, 2.0]), np.array([0.4, 0.2]))
    picture = Chart(
        [line, named("this policy", 4, 0.1)], "wrong", written=share, from_zero=True
    ).to_svg()
    (way,) = re.findall(
        r'<polyline points="([\d.]+),([\d.]+) ([\d.]+),([\d.]+)"', picture
    )
    x1, y1, x2, y2 = map(float, way)
    # costs reach from 0 to 4.24, errors from 0 to .424
    assert (x1, x2) == (56, pytest.approx(56 + 368 * 2 / 4.24, abs=0.1))
    assert (y2 - y1) / (236 - y1) == pytest.approx(0.5, abs=0.01)
    assert "less money: wrong 40.0\u00a0% for 0" in picture.partition(">")[0]


# spending less or more --------------------------------------------------------------------


def test_a_limit_sends_rows_where_they_can_pay():
    """The toy buys a (1), then b (3) for half of the rows, and is always right."""
    policy = toy_policy()
    nothing, only_a, whole = limited(policy, Table(X), Y)
    assert (nothing.limit, nothing.cost) == (0.0, 0.0)
    assert (only_a.limit, only_a.cost) == (1.0, pytest.approx(1.0))
    assert (whole.limit, whole.cost, whole.error) == (None, pytest.approx(2.5), 0.0)
    capped = cost_report(replace(policy, max_cost=1.0), Table(X), Y)
    assert (only_a.error, only_a.loss) == (capped.error, capped.loss)


def test_rows_of_weight_0_do_not_count_within_limits():
    weight = (X[:, 0] > 0).astype(float)
    found = limited(toy_policy(), Table(X), Y, weight)
    kept = limited(toy_policy(), Table(X[weight > 0]), Y[weight > 0])
    assert [use.limit for use in found] == [use.limit for use in kept]
    assert [use.error for use in found] == pytest.approx([use.error for use in kept])
    assert [use.cost for use in found] == pytest.approx([use.cost for use in kept])


def test_there_are_not_many_limits():
    prices = np.abs(np.random.default_rng(0).normal(size=500))
    found = some_limits(prices)
    assert len(found) == LIMITS
    assert found[0] == 0
    assert max(found) < prices.max()


def test_every_page_has_the_curve_of_its_tree_with_less_to_spend():
    text = page()
    assert "<title>this tree with less to spend: " in text
    assert "trees of other cost weights: " not in text
    words = words_of(text)
    assert "if none may cost more than a limit, from 0 (wrong answers 50.0 %)" in words
    assert "fitted for a budget, a model keeps that curve" in words


def test_a_page_has_the_curve_that_the_model_was_picked_from():
    curve = TradeoffCurve.from_points([(1, 0.4), (2, 0.3), (3, 0.1)], [0.9, 0.3, 0.1])
    text = page(curve_=curve, chosen_=curve.choose(budget=2))
    assert text.count("<title>trees of other cost weights: ") == 3
    words = words_of(text)
    assert (
        "This model is the one at 0.3, which there cost 2 on average, with wrong "
        in (words)
    )
    assert "was not measured" not in words


def test_a_curve_of_losses_is_drawn_in_wrong_answers_where_all_cost_the_same():
    policy = replace(compared(toy_policy(loss=[[0, 5], [5, 0]])), cost_weight=1.0)
    curve = TradeoffCurve.from_folds([1.0], [[2.0, 2.0]], [[1.0, 1.0]], measure="loss")
    words = words_of(page(policy, curve_=curve, chosen_=curve.choose()))
    assert "with wrong answers of 40.0 %" in words
    unequal = replace(compared(toy_policy(loss=[[0, 4], [6, 0]])), cost_weight=1.0)
    words = words_of(page(unequal, curve_=curve, chosen_=curve.choose()))
    assert "with mean loss of 2." in words


def test_a_model_fitted_for_a_budget_shows_the_same_curve_when_it_is_loaded(
    two_sensors, tmp_path, monkeypatch
):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    rows, y, sensors, costs = two_sensors
    model = SensorTreeClassifierCV(
        sensors, costs=costs, budget=2.0, cost_weights=[1.0, 0.02, 0.001], unit="EUR"
    )
    with pytest.warns(BudgetWarning, match="budget=2 buys nothing: most of the budget"):
        model.fit(rows, y)
    save(model, tmp_path / "model.json")
    loaded = load(tmp_path / "model.json")
    text = model.report_page(rows, y)
    assert text.count("<title>trees of other cost weights: ") == 3
    assert loaded.report_page(rows, y) == text
    assert loaded.curve_.to_dict() == model.curve_.to_dict()
    assert loaded.chosen_ == model.chosen_


def test_a_page_says_what_becomes_of_examples_if_a_sensor_is_not_available():
    outages = OutageReport(
        {"a": Outage(0.5, 0.1, 0.3), "b": Outage(0.25, 0.1, 0.9, 0.5)}
    )
    policy = replace(compared(toy_policy()), cost_weight=0.1)
    words = words_of(page(policy, outage_report_=outages))
    # both lose .1 of the risk, which is as much as a price of 1
    assert "a take the best way that is left, or stop 50.0 % 1 " in words
    assert "b go another way, which was learned for them 25.0 % 1 " in words
    assert "not available" not in words_of(page())


# rules ------------------------------------------------------------------------------------


def test_a_rule_tells_who_takes_a_way():
    stop, buy = plain_rules(toy_policy(), Table(X))  # a > 0 buys b
    assert (stop.fork, stop.end, buy.end) == (0, ~0, ~1)
    assert (stop.words, stop.agrees) == ("A is below 0", 1)
    assert (buy.words, buy.rows) == ("A is at least 0", 100)


def test_too_few_rows_have_no_rule():
    assert plain_rules(toy_policy(), Table(X[40:55])) == ()
    _, buy = plain_rules(toy_policy(), Table(X[:60]))  # ten of sixty buy
    assert buy.words is None
    assert np.isnan(buy.agrees)


def test_a_category_can_be_a_rule():
    """Who smokes is asked more."""
    rng = np.random.default_rng(0)
    smokes = rng.integers(2, size=400)
    test = rng.normal(size=400)
    y = np.where(smokes == 1, test > 0, False)
    rows = np.column_stack([smokes, test])
    model = SensorTreeClassifier(costs={"x0": 0, "x1": 1}, cost_weight=0.05).fit(
        rows, y
    )
    (rule,) = [r for r in plain_rules(model.policy_, Table(rows)) if r.end == ~1]
    assert rule.agrees == 1
    assert "is at least" in rule.words


# losses, and persons ----------------------------------------------------------------------


def test_the_first_figures_are_money_where_mistakes_do_not_cost_the_same():
    """The toy is always right where a decides; here it calls some "yes" a "no"."""
    y = np.where(X[:, 0] > -1, "yes", "no")  # 24 lose 6
    policy = compared(toy_policy(loss=[[0, 4], [6, 0]]))
    words = words_of(page(replace(policy, about=About("EUR")), y=y))
    assert "1.44 EUR lost on an example on average, by mistakes; " in words
    assert "wrong answers (" not in words  # in no bullet
    assert "the mean loss is " in words
    assert "the sum of price and loss is " in words
    assert "against buying everything, with what mistakes cost; " in words
    assert "price and loss together; measured" in words_of(
        page(policy, outage_report_=OutageReport({"b": Outage(0.5, 0.1, 0.3)}))
    )


def test_a_score_is_not_written_as_money():
    loss = Loss(score=SCORES["log_loss"])
    about = replace(compared(toy_policy()), loss=loss, about=About("EUR"))
    words = words_of(page(about))
    assert "mean log-loss; " in words
    assert "EUR lost" not in words
    assert "mean loss (EUR)" not in words


def over_to_a_person(**given):
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(800, 2))
    near = np.abs(rows[:, 0]) < 0.8
    noise = 0.7 * rng.normal(size=800)
    y = np.where(rows[:, 0] + near * 1.2 * rows[:, 1] + noise > 0, "ill", "well")
    sensors, costs = {"free": [0], "dear": [1]}, {"free": 0.0, "dear": 3.0}
    model = SensorTreeClassifier(
        sensors, costs=costs, cost_weight=0.02, classifier="linear", **given
    ).fit(rows[:400], y[:400])
    return model, rows[400:], y[400:]


def test_guesses_for_those_handed_over_are_not_told_as_answers():
    model, rows, y = over_to_a_person(refer_cost=0.25)
    words = words_of(model.report_page(rows, y))
    over = model.referred(rows)
    right = share(float((model.predict(rows) == y)[~over].mean())).replace(
        NO_BREAK, " "
    )
    assert 0 < over.mean() < 1
    assert f"{right} right among those answered; 95 % interval" in words
    assert "right answers; 95 % interval" not in words
    told = percent(float(over.mean()))
    # at 50 for a mistake a person costs 12.50
    assert f"{told} handed over to a person, which costs " in words
    assert f"{money(12.5 * over.mean())} per example of all" in words
    assert "on the same examples handed over wrong, of the answered loss" in words
    assert "50 for a wrong answer, and what persons cost." in words
    assert "handed over count with their best guess" in words
    assert "mean loss" in words
    assert "error counts the best guesses" in str(model.report(rows, y))


def test_where_everybody_is_handed_over_no_answer_is_judged():
    model, rows, y = over_to_a_person(refer_cost=0.0)
    words = words_of(model.report_page(rows, y))
    assert "100.0 % handed over to a person, which costs 0" in words
    assert "Everyone: free (free), and then a person. Best guess" in words
    assert "right among" not in words
    assert "nan" not in words
    assert "nan" not in str(model.report(rows, y))
    assert "say what a wrong answer costs" not in words


def test_a_promise_that_hands_over_without_a_price_says_so():
    model, rows, y = over_to_a_person()
    sure = guarantee_error(model, rows[:200], y[:200], error=0.1)
    words = words_of(sure.report_page(rows[200:], y[200:]))
    assert "handed over to a person, at a price that is not given" in words
    assert " are handed over; their best guesses are counted." in words
    places = sure.report(rows[200:], y[200:]).leaves
    assert [place.refers for place in places] == [False, False]
    assert 0 < places[1].referred < 1


@pytest.mark.parametrize("rate", [0.004, 0.03, 0.5, 0.97, 0.996])
def test_no_rule_speaks_of_probabilities_that_nobody_has(rate):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(2000, 2))
    at = np.log(rate / (1 - rate))
    y = (rng.random(2000) < 1 / (1 + np.exp(-2 * rows.sum(axis=1) - at))).astype(int)
    model = SensorTreeClassifier(
        {"free": [0], "dear": [1]},
        costs={"free": 0, "dear": 1},
        cost_weight=0.02 * rate * (1 - rate),
        classifier="linear",
        refer_cost=0.3,
    ).fit(rows, y)
    for rule in plain_rules(model.policy_, Table(rows)):
        found = re.findall(r"(below|at least|between) (\S+)", rule.words or "")
        assert ("below", "0") not in found
        assert ("at least", "0") not in found
        assert ("between", "0") not in found


def test_a_level_below_the_least_probability_makes_no_condition():
    likely = np.r_[np.full(30, 0.001), np.full(30, 0.004), np.full(40, 0.3)]
    both = np.c_[1 - likely, likely]
    for words, holds in _likely_conditions(toy_policy(), both):
        assert " 0 %" not in words
        assert holds.any()
