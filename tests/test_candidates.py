"""Claims about structure="auto": what is compared, how cheaply, and what wins."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from states import shop_of, where_to_look

from sensortree import Sensor, SensorTreeClassifier, cascade_tree, tradeoff_curve
from sensortree.learning import candidates
from sensortree.learning.candidates import least_validated, standard_errors
from sensortree.learning.prepare import Winners
from sensortree.leaves import boosting
from sensortree.structure.branching import FIRST_ASKED, grow_branches
from sensortree.structure.search import run_search


def risks(mean: float, noise: float, seed: int, n: int = 400) -> np.ndarray:
    drawn = np.random.default_rng(seed).normal(0, noise, n)
    return mean + drawn - drawn.mean()


def test_the_least_validated_risk_wins():
    found = {"chain": risks(0.2, 0.1, 0), "grown": risks(0.19, 0.1, 1)}
    assert least_validated(found)[0] == "grown"


@pytest.mark.parametrize(("lead", "winner"), [(0.002, "chain"), (0.05, "branched")])
def test_what_was_trimmed_on_the_same_rows_must_be_clearly_better(lead, winner):
    chain = risks(0.2, 0.1, 0)
    branched = risks(0.2 - lead, 0.1, 1)
    assert (standard_errors(chain - branched) > 1) == (winner == "branched")
    found = {"chain": chain, "grown": risks(0.3, 0.1, 2), "branched": branched}
    assert least_validated(found)[0] == winner


@pytest.mark.parametrize(("lead", "winner"), [(0.002, "chain"), (0.05, "backward")])
def test_what_is_doubted_must_be_clearly_better(lead, winner):
    found = {"chain": risks(0.2, 0.1, 0), "backward": risks(0.2 - lead, 0.1, 1)}
    assert least_validated(found)[0] == "backward"
    assert least_validated(found, ("backward",))[0] == winner


@pytest.mark.parametrize(
    ("few", "n_leaves", "compared"),
    [(150, 4, True), (149, 4, False), (150, 6, False)],
)
def test_a_backward_chain_is_compared_where_rows_are_few_and_sensors_many(
    few, n_leaves, compared, monkeypatch
):
    monkeypatch.setattr("sensortree.learning.candidates.FEW_ROWS", few)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 6))
    y = X[:, 0] + X[:, 3] + rng.normal(0, 0.5, 150) > 0
    model = SensorTreeClassifier(
        cost_weight=0.01, classifier="linear", n_leaves=n_leaves
    ).fit(X, y)
    assert ("backward" in model.structure_report_.validated) == compared


@pytest.mark.parametrize(("lead", "winner"), [(0.002, "cascade"), (0.05, "chain")])
def test_an_order_that_was_not_learned_is_left_for_what_is_clearly_better(lead, winner):
    found = {"chain": risks(0.2 - lead, 0.1, 0), "cascade": risks(0.2, 0.1, 1)}
    assert least_validated(found)[0] == winner


def test_by_default_a_sensor_that_tells_where_to_look_is_bought_first():
    X, y, sensors = where_to_look(3_000, n_states=5)
    model = SensorTreeClassifier(sensors, cost_weight=0.02).fit(X[:1_500], y[:1_500])
    report = model.structure_report_
    assert report.structure == "branched"
    # The screen is sure that no chain comes near: none has got classifiers.
    assert "chain" not in report.validated
    assert model.acquired(X)[:, 0].all()
    assert (model.predict(X[1_500:]) != y[1_500:]).mean() < 0.05
    assert model.acquisition_cost(X[1_500:]).mean() < 2.5


@pytest.mark.parametrize("dropped", [False, True])
def test_a_chain_that_the_screen_leaves_is_searched_for_with_its_own_classifiers(
    monkeypatch, dropped
):
    X, y = load_breast_cancer(return_X_y=True)
    exact = []

    def left(found, *others):
        return {n: tree for n, tree in found.items() if not (dropped and n == "chain")}

    def recorded(search, name, *others):
        exact.append((name, search.n_exact))
        return run_search(search, name, *others)

    monkeypatch.setattr(candidates, "promising", left)
    monkeypatch.setattr(candidates, "run_search", recorded)
    SensorTreeClassifier(cost_weight=0.01, outages=False).fit(X[:300, :7], y[:300])
    assert (("chain", 3) in exact) != dropped


def test_few_sensors_have_the_exhaustive_tree_compared():
    X, y, sensors = where_to_look(600, n_states=2)
    model = SensorTreeClassifier(sensors, cost_weight=0.05).fit(X, y)
    assert "exhaustive" in model.structure_report_.validated
    assert "branched" in model.structure_report_.validated


def test_without_rows_held_out_nothing_branches():
    X, y = load_breast_cancer(return_X_y=True)
    model = SensorTreeClassifier(cost_weight=0.005, cv=None).fit(X[:, :6], y)
    assert set(model.structure_report_.validated) == {"chain", "grown", "cascade"}


@pytest.mark.parametrize("n_leaves", [1, 3, 5])
def test_no_candidate_has_more_leaves_than_asked_for(n_leaves):
    X, y, sensors = where_to_look(900, n_states=4)
    model = SensorTreeClassifier(sensors, cost_weight=0.01, n_leaves=n_leaves)
    assert model.fit(X, y).tree_.n_leaves <= n_leaves


def test_what_is_free_is_all_that_is_known_at_the_root():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 6))
    y = X[:, 0] + (np.abs(X[:, 0]) < 0.6) * 2 * X[:, 1] > 0
    sensors = {"free": Sensor([0], cost=0.0)}
    sensors |= {f"x{j}": Sensor([j], cost=1.0) for j in range(1, 6)}
    for structure in ("auto", "chain", "grown"):
        model = SensorTreeClassifier(sensors, cost_weight=0.03, structure=structure)
        model.fit(X, y)
        assert model.tree_.root.sensors == {"free"}
        # Who is sure already buys nothing.
        assert (model.acquisition_cost(X) == 0).any()


def test_growth_ends_when_it_is_told_that_the_tree_gets_no_better():
    X, y, _ = where_to_look(4_000, n_states=5)
    asked = []

    def never(root):
        asked.append(root)
        return False

    whole, _ = grow_branches(shop_of(X, y, 0.001), 64, frozenset())
    ended, _ = grow_branches(shop_of(X, y, 0.001), 64, frozenset(), never)

    def leaves(vertex):
        if not vertex.children:
            return 1
        return vertex.stops + sum(map(leaves, vertex.children))

    assert len(asked) == 1
    assert leaves(whole) > leaves(ended) >= FIRST_ASKED


def test_any_other_leaf_classifier_branches_too():
    X, y, sensors = where_to_look(500)
    forest = RandomForestClassifier(15, random_state=0)
    model = SensorTreeClassifier(sensors, cost_weight=0.02, classifier=forest, cv=3)
    assert "branched" in model.fit(X, y).structure_report_.validated


def test_products_of_readings_lead_where_they_tell_more():
    X, y, sensors = where_to_look(450)  # too few to boost
    model = SensorTreeClassifier(sensors, cost_weight=0.02).fit(X, y)
    assert model.leaf_report_.choice == "logistic2"
    assert "products" in model.leaf_report_.not_compared["linear"]
    rng = np.random.default_rng(0)
    line = X[:, 0] + X[:, 1] + rng.normal(0, 0.3, len(X)) > 0
    model.fit(X, line)
    assert model.leaf_report_.choice == "linear"
    assert "products" in model.leaf_report_.not_compared["logistic2"]


def test_very_many_columns_have_no_products_to_lead():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 70))
    model = SensorTreeClassifier(classifier="auto")
    model.fit(X, X[:, 0] > 0)
    assert set(model.leaf_report_.log_loss) >= {"linear", "logistic2"}


def test_if_nothing_that_was_expected_is_there_all_are_compared(monkeypatch):
    X, y, sensors = where_to_look(300, n_states=6)
    expected = []

    def exhaustive(self, cost_weight):
        expected.append(cost_weight)
        return frozenset({"exhaustive"})

    monkeypatch.setattr(Winners, "expected", exhaustive)
    model = SensorTreeClassifier(sensors, classifier="linear")
    assert len(tradeoff_curve(model, X, y, cost_weights=[0.02, 0.1])) == 2
    assert expected


@pytest.mark.parametrize("many", [False, True])
def test_boosted_trees_of_many_rows_are_compared_by_their_own_classifiers(
    monkeypatch, many
):
    monkeypatch.setattr(boosting, "MANY_ROWS", 200 if many else 10_000)
    X, y, sensors = where_to_look(300, n_states=5)
    model = SensorTreeClassifier(
        sensors, cost_weight=0.02, classifier="boosted", outages=False
    )
    model.fit(X, y)
    assert len(model.structure_report_.validated) > 1
    compared = model.fit_report_.n_judged - model.fit_report_.n_kept
    assert (compared > 1) == many


class Told(candidates.Glance):
    """Risks of 100 rows by the number of leaves, as a test says."""

    def __init__(self, risks, rivals):
        super().__init__(
            None, None, None, tuple(cascade_tree("abcd"[:k]) for k in rivals)
        )
        self.told = risks

    def risks(self, tree):
        return self.told[tree.n_leaves]


@pytest.mark.parametrize("lead", [0.0, 0.02, 0.2])
def test_a_tree_far_behind_a_rival_of_no_more_leaves_is_not_grown_on(lead):
    risk = np.random.default_rng(0).random(100)
    other = risk + lead + 0.4 * np.random.default_rng(1).normal(size=100)
    glance = Told({2: risk, 3: other}, rivals=[2])
    is_behind = standard_errors(other - risk) > candidates.FAR_BEHIND
    assert is_behind == (lead == 0.2)
    assert glance.far_behind(cascade_tree("abc"), other) == is_behind
    # A rival of more leaves may yet be reached.
    assert not Told({2: other, 3: risk}, rivals=[3]).far_behind(
        cascade_tree("ab"), other
    )
