"""Claims about judging decisions on rows that they were not learned from."""

from __future__ import annotations

import numpy as np
import pytest

from sensortree import Leaf, SensorTree, SensorTreeClassifier
from sensortree.learning.joint import spread_rows
from sensortree.learning.validated import _cheapest_of_the_best
from sensortree.program import solution
from sensortree.program.routing import RoutingProblem


def risks(**means: float) -> dict[str, np.ndarray]:
    """Risks of 100 examples around some means, the same noise for all."""
    return {name: mean + np.zeros(100) for name, mean in means.items()}


def cheapest(found, cost, informative=True, cost_weight=0.0):
    """What is kept where nobody is handed over to a person."""
    nobody = dict.fromkeys(found, 0.0)
    return _cheapest_of_the_best(found, cost, nobody, cost_weight, informative)


def test_the_cheapest_of_equals_is_kept():
    found = risks(decisions=0.3, nothing=0.3)
    cost = {"decisions": 1.0, "nothing": 0.0}
    assert cheapest(found, cost).kept == "nothing"


def test_what_is_clearly_better_may_cost_more():
    found = risks(decisions=0.3, nothing=0.4)
    cost = {"decisions": 1.0, "nothing": 0.0}
    assert cheapest(found, cost).kept == "decisions"


def test_a_lead_within_one_standard_error_buys_nothing():
    # The lead is 1 on 11 examples of 100 and -1 on 9: .02, with a standard error of .045.
    lead = np.r_[np.ones(11), -np.ones(9), np.zeros(80)]
    found = {"decisions": 0.5 * np.ones(100), "nothing": 0.5 + lead}
    cost = {"decisions": 1.0, "nothing": 0.0}
    compared = cheapest(found, cost)
    assert compared.risk["nothing"] - compared.risk["decisions"] == pytest.approx(0.02)
    assert compared.kept == "nothing"


def test_what_tells_nothing_about_the_class_is_not_bought():
    found = risks(decisions=0.3, nothing=0.4)
    cost = {"decisions": 1.0, "nothing": 0.0}
    assert cheapest(found, cost, informative=False).kept == "nothing"


def test_noise_is_not_bought():
    # Of six sets of noise at most one is bought from: the aim is one in ten.
    bought = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(200, 3)), rng.integers(0, 2, size=200)
        model = SensorTreeClassifier(cost_weight=0.01).fit(X, y)
        bought += bool(model.acquisition_cost(X).any())
        assert model.decision_report_.compared is not None
    assert bought <= 1


def test_what_tells_much_is_bought():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    model = SensorTreeClassifier(cost_weight=0.01).fit(X, X[:, 1] > 0)
    assert model.decision_report_.compared.informative
    assert model.score(X, X[:, 1] > 0) > 0.9


def test_a_tree_of_ones_own_keeps_its_leaves():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 2)), rng.integers(0, 2, size=100)
    tree = {"sensors": ["x0"], "negative": {"sensors": ["x0"]}}
    tree["positive"] = {"sensors": ["x0", "x1"]}
    model = SensorTreeClassifier(structure=tree, cost_weight=0.01).fit(X, y)
    assert model.tree_.n_leaves == 2
    assert "nothing" not in model.decision_report_.compared.risk


@pytest.mark.parametrize("given", [{"fallback": False}, {"cv": None}])
def test_nothing_is_compared_where_that_is_not_asked_for(given):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    model = SensorTreeClassifier(**given).fit(X, X[:, 0] > 0)
    assert model.decision_report_.compared is None


def test_what_is_only_compared_is_not_certified(monkeypatch):
    certified = []
    certify = solution.certify

    def counted(*arguments, **options):
        certified.append(arguments)
        return certify(*arguments, **options)

    monkeypatch.setattr(solution, "certify", counted)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = X[:, 0] + X[:, 1] * (X[:, 2] > 0) > 0
    model = SensorTreeClassifier(cost_weight=0.02).fit(X, y)
    assert model.decision_report_.compared is not None
    assert model.tree_.n_nodes
    assert len(certified) == 1  # the decisions that were kept


def test_the_program_of_a_point_is_posed_on_rows_that_are_spread_evenly():
    problem = RoutingProblem(
        SensorTree(Leaf({"a"})),
        (),
        np.arange(10.0)[:, None],
        np.r_[np.ones(9), 11.0],
        max_risk=1.0,
    )
    part, share = spread_rows(problem, 4)
    assert part.leaf_risk[:, 0].tolist() == [0.0, 3.0, 6.0, 9.0]
    assert share == 14 / 20  # penalties count for as much weight as is left
    assert spread_rows(problem, 10) == (problem, 1.0)
