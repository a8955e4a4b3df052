"""Claims about the planted problems: what is said to be the best policy is the best."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from benchmarks import planted, promise
from benchmarks.planted_problems import PROBLEMS, bit, bits, numbers
from benchmarks.population import Population, independent
from sensortree import SensorTreeClassifier

STOP = None


def policies(population, known=frozenset()):
    """Every policy: stop, or a sensor and a policy for each code it may show."""
    yield STOP
    names = {population.sensors[s].name for s in known}
    for number, sensor in enumerate(population.sensors):
        if number in known or not set(sensor.after) <= names:
            continue
        below = list(policies(population, known | {number}))
        for ways in product(below, repeat=len(sensor.columns)):
            yield number, ways


def walked(population, policy):
    """Risk of a policy: every state walks alone, and each way's end answers as is best."""
    paid, ends = 0.0, {}
    for state, codes in enumerate(population.codes):
        at, way, groups = policy, [], set()
        while at is not STOP:
            number, ways = at
            sensor = population.sensors[number]
            price = sensor.price
            if sensor.group not in groups:
                price += sensor.fee
            paid += population.chance[state] * price
            groups.add(sensor.group)
            way.append((number, int(codes[number])))
            at = ways[codes[number]]
        lost = population.chance[state] * population.classes[state] @ population.losses
        ends[tuple(way)] = ends.get(tuple(way), 0.0) + lost
    return paid + sum(float(np.min(lost)) for lost in ends.values())


def random_population(seed):
    """Three sensors, joint chances that are not of independent sensors, three classes."""
    rng = np.random.default_rng(seed)
    fee = {"group": "blood", "fee": 0.03}
    sensors = (
        bit("a", 0.02, **fee),
        numbers("b", 0.03, 3 if seed % 2 else 2),
        bit("c", 0.01, after=("a",), **fee) if seed % 3 else bit("c", 0.05),
    )
    sizes = [len(sensor.columns) for sensor in sensors]
    codes = np.indices(sizes).reshape(len(sizes), -1).T
    chance = rng.dirichlet(np.ones(len(codes)))
    classes = rng.dirichlet(np.full(3, 0.3), size=len(codes))
    loss = rng.random((3, 3)) * (1 - np.eye(3)) if seed % 2 else None
    return Population(sensors, codes, chance, classes, loss)


@pytest.mark.parametrize("seed", range(6))
def test_the_optimum_is_the_least_risk_of_all_policies(seed):
    population = random_population(seed)
    risks = [walked(population, policy) for policy in policies(population)]
    assert population.optimum == pytest.approx(min(risks), abs=1e-12)
    assert min(risks) <= population.fixed[0] + 1e-12


@pytest.mark.parametrize("seed", range(6))
def test_the_best_fixed_set_is_the_least_risk_of_policies_that_ask_all_the_same(seed):
    population = random_population(seed)

    def same_for_all(policy):
        if policy is STOP:
            return True
        ways = policy[1]
        return all(way == ways[0] for way in ways) and same_for_all(ways[0])

    risks = [
        walked(population, policy)
        for policy in policies(population)
        if same_for_all(policy)
    ]
    assert population.fixed[0] == pytest.approx(min(risks), abs=1e-12)


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_problem_is_what_its_table_says(name):
    population = PROBLEMS[name]()
    assert PROBLEMS[name].__doc__
    assert population.chance.sum() == pytest.approx(1)
    np.testing.assert_allclose(population.classes.sum(axis=1), 1)
    assert len(np.unique(population.codes, axis=0)) == len(population.codes)
    # A ratio to a gap of nearly nothing says nothing.
    gap = population.fixed[0] - population.optimum
    assert abs(gap) < 1e-9 or gap > 0.03


def test_there_are_problems_of_every_kind():
    made = [make() for make in PROBLEMS.values()]
    sensors = [sensor for population in made for sensor in population.sensors]
    assert len(made) >= 30
    assert any(sensor.jitter for sensor in sensors)
    assert any(sensor.width > 1 for sensor in sensors)
    assert any(sensor.after for sensor in sensors)
    assert any(sensor.fee for sensor in sensors)
    assert any(isinstance(sensor.columns[0][0], str) for sensor in sensors)
    assert any(population.loss is not None for population in made)
    assert any(population.classes.shape[1] > 2 for population in made)
    assert any(not population.fixed[1] for population in made)


# Two sensors at .15, three at .06 and an error of 5 in 100; the context at .06 and one of
# five at .1; two addresses and one of four at .04; majority asks 4.125 of five in the mean.
@pytest.mark.parametrize(
    ("name", "optimum", "fixed"),
    [
        ("xor", 2 * 0.15 + 0.05, 0.35),
        ("parity", 3 * 0.06 + 0.05, 0.23),
        ("text-context", 0.06 + 0.1 + 0.05, 0.5),
        ("number-context", 0.06 + 0.1 + 0.05, 0.5),
        ("jittered-context", 0.06 + 0.1 + 0.05, 0.5),
        ("context-of-a-context", 2 * 0.03 + 0.1 + 0.05, 0.4875),
        ("multiplexer", 3 * 0.04 + 0.05, 6 * 0.04 + 0.05),
        ("majority", 4.125 * 0.04 + 0.02, 5 * 0.04 + 0.02),
        ("halving", 3 * 0.06, 7 * 0.06),
        ("only-noise", 0.4, 0.4),
        ("both-are-needed", 0.25, 0.25),
    ],
)
def test_the_optimum_is_the_one_that_is_known(name, optimum, fixed):
    population = PROBLEMS[name]()
    assert population.optimum == pytest.approx(optimum)
    assert population.fixed[0] == pytest.approx(fixed)


def test_a_sample_is_drawn_from_the_population():
    population = PROBLEMS["rare-third-class"]()
    X, y = population.sample(40_000, seed=0)
    shares = np.bincount(y) / len(y)
    np.testing.assert_allclose(
        shares, population.chance @ population.classes, atol=0.01
    )
    # The first sensor shows its codes as they are.
    np.testing.assert_allclose(
        np.bincount(X[:, 0].astype(int)) / len(X), (0.5, 0.38, 0.12), atol=0.01
    )


class AsksForBoth:
    """A policy that buys two sensors of price .1 and answers with their xor."""

    def predict(self, X):
        return X[:, 0].round().astype(int) ^ X[:, 1].round().astype(int)

    def acquisition_cost(self, X):
        return np.full(len(X), 0.2)


@pytest.mark.parametrize("jitter", [0, 0.05])
def test_the_risk_of_a_policy_is_its_risk_on_the_population(jitter):
    population = independent(
        bits("ab", 0.1, jitter=jitter), lambda a, b: a ^ b, n_noise=2
    )
    risk, cost = population.risk(AsksForBoth())
    assert cost == pytest.approx(0.2)
    assert risk == pytest.approx(0.25) == population.optimum


@pytest.mark.parametrize(
    "name", ["months", "blood-is-drawn-once", "columns-of-context"]
)
def test_the_library_pays_what_the_population_says(name):
    population = PROBLEMS[name]()
    X, y = population.sample(200, seed=0)
    tree = {"sensors": [s.name for s in population.sensors]}
    model = SensorTreeClassifier(
        population.declared(), cost_weight=1, structure=tree, cv=None
    ).fit(X, y)
    everything = frozenset(range(len(population.sensors)))
    assert population.risk(model)[1] == pytest.approx(population.price_of(everything))


def line(problem, rows, risk, **more):
    found = {"optimum": 0.2, "fixed": 0.3, "seconds": 1.0, "chosen": "nothing"}
    return {**found, "problem": problem, "rows": rows, "risk": risk, **more}


def test_the_table_has_ratios_where_a_fixed_set_is_not_enough_and_excesses_elsewhere():
    before = [
        line("multiplexer", 300, 0.25),
        line("multiplexer", 300, 0.27),
        line("majority", 300, 0.2),
        line("xor", 300, 0.24, fixed=0.2),
    ]
    after = [line("multiplexer", 300, 0.22)]
    cells = {
        row.split(" | ")[0].strip("| "): [cell.strip("| ") for cell in row.split(" | ")]
        for row in planted.table([before, after]).splitlines()
    }
    assert cells["multiplexer"][3:5] == ["0.260 / 0.220", "0.60 / 0.20"]
    assert cells["xor"][4] == "+0.040 / -"
    assert cells["**mean ratio**"][4] == "0.300 / 0.200"
    assert cells["**worst ratio**"][4] == "0.600 / 0.200"
    assert cells["**worst excess**"][4] == "0.040 / -"


def test_a_fit_is_measured_by_the_population():
    found = planted.measure("one-of-many", 120, seed=0)
    assert found["optimum"] == found["fixed"] == pytest.approx(0.15)
    # Whatever is bought, nothing is below the optimum.
    assert found["risk"] >= found["optimum"] - 1e-9
    assert found["chosen"]


def test_promises_count_disagreements_and_what_intervals_cover():
    common = {"seconds": 1.0, "promised error": 0.3, "fresh error": 0.4}
    rows = [
        {
            **common,
            "disagree": True,
            "budget": 3.0,
            "promised cost": 1,
            "fresh cost": 0,
        },
        {
            **common,
            "disagree": False,
            "budget": "-",
            "promised cost": 1,
            "fresh cost": 4,
        },
    ]
    said = list(promise.said_of_cv(rows))
    assert "disagree in 1 of 2" in said[0]
    assert "+0.1000 ± 0.0000" in said[1]
    assert said[3].endswith("0 of 1")
    rows = [
        {"rows": 80, "held-out": 0.2, "fresh": 0.25, "covered": True, "seconds": 1},
        {"rows": 80, "held-out": 0.3, "fresh": 0.25, "covered": False, "seconds": 1},
    ]
    assert "+0.0000 ± 0.0354; intervals of 90 % cover 50 %" in next(
        promise.said_of_held_out(rows)
    )
