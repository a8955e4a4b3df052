"""Claims about prices: Turney's tables to the cent, for every subset of the tests."""

from __future__ import annotations

import csv
from decimal import Decimal
from itertools import combinations

import numpy as np
import pytest
from conftest import data_folder

from sensortree import Program, Sensor, SensorTreeClassifier
from sensortree.tree.paths import leaf_costs, path_bill, path_cost

TABLES = {"pima": 8, "bupa": 5, "heart_cleveland": 13}


def turney(table, subset) -> Decimal:
    """Price of some tests: the first of a group in full, the others discounted."""
    total, opened = Decimal(0), set()
    for test, (cost, discounted, group) in table.items():
        if test in subset:
            total += discounted if group in opened else cost
            opened |= {group} - {""}
    return total


@pytest.fixture
def read_table():
    """Turney's table of a data set: cost, discounted cost and group of each test."""
    folder = data_folder()
    if folder is None or not (folder / "turney_costs.csv").is_file():
        pytest.skip("no prices: SENSORTREE_DATA does not name a folder that has them")

    def read(name):
        with (folder / "turney_costs.csv").open(encoding="utf-8", newline="") as file:
            return {
                line["test"]: (
                    Decimal(line["cost"]),
                    Decimal(line["discount_cost"]),
                    line["group"],
                )
                for line in csv.DictReader(file)
                if line["dataset"] == name
            }

    return read


def declared(table) -> dict[str, Sensor]:
    return {
        test: Sensor(
            [column],
            cost=float(cost),
            group=group or None,
            discounted_cost=float(discounted) if group else None,
        )
        for column, (test, (cost, discounted, group)) in enumerate(table.items())
    }


def fit(real_data, table, name, **options):
    data = real_data(name)
    X, y = data["X"].astype(float), data["y"]
    complete = ~np.isnan(X).any(axis=1)
    model = SensorTreeClassifier(declared(table), cost_weight=1.0, **options)
    return model.fit(X[complete], y[complete]), X[complete], y[complete]


def cents(price) -> int:
    """A price in cents, which it must be to a millionth of one."""
    assert abs(price * 100 - round(price * 100)) < 1e-6
    return round(price * 100)


def test_the_rule_of_the_test_on_two_tests_of_one_group():
    table = {
        "glucose": (Decimal("17.61"), Decimal("15.51"), "A"),
        "age": (Decimal("1.00"), Decimal("1.00"), ""),
        "insulin": (Decimal("22.78"), Decimal("20.68"), "A"),
    }
    assert turney(table, {"glucose", "age", "insulin"}) == Decimal("39.29")
    assert turney(table, {"insulin"}) == Decimal("22.78")


@pytest.mark.parametrize("name", TABLES)
def test_every_subset_of_the_tests_costs_what_turney_says_to_the_cent(
    real_data, read_table, name
):
    table = read_table(name)
    assert len(table) == TABLES[name]
    one_leaf = {"sensors": list(table)}  # the quickest fit that resolves the prices
    model, _, _ = fit(real_data, table, name, structure=one_leaf, cv=None)
    for size in range(len(table) + 1):
        for subset in combinations(table, size):
            price = model.sensors_.cost_of(subset)
            assert cents(price) == 100 * turney(table, set(subset)), subset


@pytest.mark.parametrize("name", TABLES)
def test_any_order_of_buying_costs_what_turney_says_to_the_cent(
    real_data, read_table, name
):
    table = read_table(name)
    one_leaf = {"sensors": list(table)}
    model, _, _ = fit(real_data, table, name, structure=one_leaf, cv=None)
    rng = np.random.default_rng(0)
    for _ in range(100):
        order = rng.permutation(list(table)).tolist()
        cuts = np.sort(rng.integers(0, len(order) + 1, size=3))
        path = [frozenset(order[:cut]) for cut in cuts]
        price = path_cost(path, model.sensors_)
        assert cents(price) == 100 * turney(table, path[-1])
        bill = path_bill(path, model.sensors_)
        assert cents(sum(bill.values())) == cents(price)
        assert set(bill) == path[-1]


@pytest.mark.parametrize("name", TABLES)
def test_the_leaves_of_a_fitted_tree_cost_what_turney_says_to_the_cent(
    real_data, read_table, name
):
    table = read_table(name)
    model, X, y = fit(
        real_data,
        table,
        name,
        loss=[[0, 800], [800, 0]],
        structure="cascade",
        program=Program(fallback=False),
    )
    assert model.tree_.n_leaves > 1
    prices = leaf_costs(model.tree_, model.sensors_)
    for leaf, price in zip(model.tree_.leaves, prices, strict=True):
        assert cents(price) == 100 * turney(table, leaf.sensors)
    names = np.array(model.sensors_.names)
    paid = model.acquisition_cost(X)
    for bought, price in zip(model.acquired(X), paid, strict=True):
        assert cents(price) == 100 * turney(table, set(names[bought].tolist()))
    report = model.report(X, y)
    assert sum(use.spend for use in report.sensors) == pytest.approx(paid.mean())
