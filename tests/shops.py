"""Random shops for the referee: sensors on random terms, small models, many customers."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
from referee import Calculator, Examined, Facts, Offer, finish, money
from sklearn.linear_model import LogisticRegression

from sensortree import Program, Sensor, SensorTree, SensorTreeClassifier
from sensortree.policy.classifiers import ConstantScorer
from sensortree.policy.decisions import PARTS, DecisionFeatures, DecisionFunction
from sensortree.policy.flow import Detour, Detours, Flow

TRAINING_ROWS, ROWS = 40, 10


@dataclass(frozen=True)
class Shop:
    """A fitted model, and rows to ask it about.

    Attributes
    ----------
    model : SensorTreeClassifier
    offers : dict of name to Offer
    facts : Facts
    X : data frame of shape (n_rows, n_columns)
    prices : ndarray of shape (n_rows, n_sensors) or None
        Given beside X; NaN for a sensor's own price.
    """

    model: Any
    offers: dict[str, Offer]
    facts: Facts
    X: pd.DataFrame
    prices: np.ndarray | None

    def values(self, row: int) -> dict[str, list[float]]:
        """What each sensor would read of a row."""
        numbers = self.X.iloc[row].to_numpy()
        return {n: numbers[list(o.columns)].tolist() for n, o in self.offers.items()}

    def till(self, row: int) -> Calculator:
        """The calculator of a row."""
        return Calculator(self.offers, full_prices(self, row))

    def told_prices(self, row: int) -> dict[str, float]:
        """Prices of a row as a session is told them: a column's without the fee."""
        full = full_prices(self, row)
        told = {}
        for name, offer in self.offers.items():
            if offer.price_column is not None:
                told[name] = float(self.X[offer.price_column].iloc[row])
            elif name in self.facts.seen or full[name] != offer.price:
                told[name] = float(full[name])
        return told


def full_prices(shop: Shop, row: int) -> dict[str, Decimal]:
    """Price of each sensor for a row, as the first of its group."""
    full = {}
    for j, (name, offer) in enumerate(shop.offers.items()):
        full[name] = offer.price
        if offer.price_column is not None:
            full[name] += money(shop.X[offer.price_column].iloc[row])
        elif shop.prices is not None and not np.isnan(shop.prices[row, j]):
            full[name] = money(shop.prices[row, j])
    return full


def coins(rng: np.random.Generator, most: int = 30) -> float:
    """A price in tenths, sometimes in hundredths, sometimes nothing."""
    if rng.random() < 0.1:
        return 0.0
    unit = 10 if rng.random() < 0.7 else 100
    return int(rng.integers(1, most + 1)) / unit


def open_shop(seed: int) -> Shop:
    """A random shop."""
    rng = np.random.default_rng(seed)
    n_sensors = int(rng.integers(1, 7))
    names = [f"s{j}" for j in range(n_sensors)]
    widths = rng.integers(1, 4, n_sensors)
    terms = random_terms(rng, names)
    pays = rng.choice(
        ["the same", "by column", "beside", "both"], p=[0.3, 0.3, 0.3, 0.1]
    )
    by_column = {
        n: pays in ("by column", "both")
        and rng.random() < 0.5
        and "discounted_cost" not in terms[n]
        for n in names
    }
    sensors, offers, first = {}, {}, 0
    for name, width in zip(names, widths, strict=True):
        columns = tuple(range(first, first + int(width)))
        first += int(width)
        own = {k: v for k, v in terms[name].items() if v is not None}
        price = terms[name]["cost"]
        surcharge = Decimal(0)
        if "fee" in own:
            surcharge = money(own["fee"])
        elif "discounted_cost" in own:
            surcharge = money(price) - money(own["discounted_cost"])
        full = money(price) + (surcharge if "fee" in own else 0)
        if by_column[name]:
            own["cost"], full = f"price of {name}", surcharge
        sensors[name] = Sensor([f"c{c}" for c in columns], **own)
        offers[name] = Offer(
            name,
            columns,
            full,
            surcharge,
            own.get("group"),
            frozenset(own.get("after", ())),
            own.get("one_of"),
            own["cost"] if by_column[name] else None,
        )
    n_classes = int(rng.integers(2, 4))
    training = random_rows(rng, offers, first, TRAINING_ROWS)
    y = np.arange(TRAINING_ROWS) % n_classes
    training.iloc[:, :first] += rng.normal(size=(n_classes, first))[y]
    X = random_rows(rng, offers, first, ROWS)
    X.iloc[:, :first] *= 1.5
    fit_prices = prices = None
    if pays in ("beside", "both"):
        fit_prices = prices_beside(rng, offers, TRAINING_ROWS)
        prices = prices_beside(rng, offers, ROWS)
        for j, name in enumerate(names):
            if offers[name].price_column is not None:
                fit_prices[:, j] = prices[:, j] = np.nan
            elif rng.random() < 0.15:
                fit_prices[:, j] = np.nan  # and perhaps prices for the rows
        if np.isnan(fit_prices).all():
            fit_prices = prices = None
    loss = None
    if rng.random() < 0.3:
        loss = rng.integers(1, 9, (n_classes, n_classes)) * (1.0 - np.eye(n_classes))
    model = SensorTreeClassifier(
        sensors,
        structure=random_tree(rng, offers),
        classifier=LogisticRegression(),
        cv=None,
        program=Program(refine=False, errors="observed"),
        loss=loss,
    ).fit(training, y, prices=fit_prices)
    shop = Shop(model, offers, Facts(model.policy_, offers, loss), X, prices)
    return shaken(rng, shop, loss)


def random_terms(
    rng: np.random.Generator, names: list[str]
) -> dict[str, dict[str, Any]]:
    """Prices, groups, prerequisites and alternatives that can be kept."""
    terms: dict[str, dict[str, Any]] = {}
    for j, name in enumerate(names):
        own: dict[str, Any] = {"cost": coins(rng)}
        if rng.random() < 0.6:
            own["group"] = str(rng.choice(["g", "h"]))
            if rng.random() < 0.5:
                own["fee"] = coins(rng, 20)
            elif rng.random() < 0.8:
                own["discounted_cost"] = own["cost"]
                while own["discounted_cost"] >= own["cost"] > 0:
                    own["discounted_cost"] = coins(rng)
        if j and rng.random() < 0.3:
            own["after"] = [str(n) for n in rng.choice(names[:j], 1)]
        if rng.random() < 0.25 and "after" not in own:
            own["one_of"] = "only"
        terms[name] = own
    return terms


def random_rows(
    rng: np.random.Generator, offers: Mapping[str, Offer], width: int, n_rows: int
) -> pd.DataFrame:
    """Readings, and the prices that are columns."""
    frame = pd.DataFrame(
        rng.normal(size=(n_rows, width)), columns=[f"c{c}" for c in range(width)]
    )
    for offer in offers.values():
        if offer.price_column is not None:
            frame[offer.price_column] = [coins(rng) for _ in range(n_rows)]
    return frame


def prices_beside(
    rng: np.random.Generator, offers: Mapping[str, Offer], n_rows: int
) -> np.ndarray:
    """Prices of each row; NaN for a sensor's own."""
    prices = np.empty((n_rows, len(offers)))
    for j, offer in enumerate(offers.values()):
        for row in range(n_rows):
            price = offer.surcharge + money(coins(rng))
            prices[row, j] = np.nan if rng.random() < 0.3 else float(price)
    return prices


def random_tree(
    rng: np.random.Generator, offers: Mapping[str, Offer]
) -> dict[str, Any]:
    """A tree that keeps to the terms and knows every sensor somewhere, as nested dicts."""
    reached: set[str] = set()

    def with_needed(name: str) -> set[str]:
        needed, ahead = set(), [name]
        while ahead:
            needed.add(ahead[-1])
            ahead.extend(offers[ahead.pop()].after - needed)
        return needed

    def extended(known: frozenset[str]) -> frozenset[str]:
        for name in rng.permutation(list(offers)):
            more = known | with_needed(str(name))
            labels = [offers[n].one_of for n in more if offers[n].one_of]
            if more > known and len(labels) == len(set(labels)):
                return frozenset(more)
        return known

    def below(known: frozenset[str], depth: int) -> dict[str, Any]:
        for _ in range(int(rng.choice([0, 1, 2], p=[0.25, 0.5, 0.25]))):
            known = extended(known)
        vertex: dict[str, Any] = {"sensors": sorted(known)}
        reached.update(known)
        if depth and rng.random() < 0.8:
            vertex["negative"] = below(known, depth - 1)
            vertex["positive"] = below(known, depth - 1)
        return vertex

    root = frozenset() if rng.random() < 0.6 else extended(frozenset())
    depth = int(rng.choice([0, 1, 2, 3, 4], p=[0.05, 0.15, 0.3, 0.3, 0.2]))
    tree = {"sensors": sorted(root)}
    if depth:
        tree["negative"] = below(root, depth - 1)
        tree["positive"] = below(root, depth - 1)
    for name in offers:
        if name not in reached | root:
            leaf = {"sensors": sorted(with_needed(name))}
            tree = {"sensors": [], "negative": leaf, "positive": tree}
    return tree


def shaken(rng: np.random.Generator, shop: Shop, loss: Any) -> Shop:
    """The same shop with decisions, losses and a cap at random, so that all ways occur."""
    policy = shop.model.policy_
    flow = policy.flow
    decisions = tuple(
        replace(d, coef=rng.normal(size=d.coef.shape)) for d in policy.decisions
    )
    # Few different losses, so that ties occur.
    flow = replace(
        flow,
        leaf_loss=rng.integers(0, 6, flow.leaf_loss.shape) / 10,
        stop_loss=rng.integers(0, 9, flow.stop_loss.shape) / 10,
    )
    policy = replace(
        policy,
        decisions=decisions,
        flow=flow,
        cost_weight=float(rng.choice([0.0, 0.01, 0.1, 1.0])),
    )
    open_till = replace(shop, facts=Facts(policy, shop.offers, loss))
    cap = random_cap(rng, open_till, 0.5)
    if cap is not None and not open_till.facts.seen:
        # Where all rows pay the same, a model is only fitted if they can pay for a leaf.
        till = open_till.till(0)
        ways = [till.lacking(leaf.path, ()) for leaf in open_till.facts.root.leaves]
        cap = max(cap, float(min(till.bill(way, ()) for way in ways)))
    policy = replace(policy, max_cost=cap)
    if rng.random() < 0.5:
        policy = replace(policy, detours=random_detours(rng, policy, shop.offers))
    model = copy.copy(shop.model)
    model.policy_ = policy
    return replace(shop, model=model, facts=Facts(policy, shop.offers, loss))


def random_detours(
    rng: np.random.Generator, policy: Any, offers: Mapping[str, Offer]
) -> Detours:
    """Trees at random around some sensors, with classifiers that answer at random."""
    around, classifiers = {}, {}
    n_classes = len(policy.classes)
    width_of = dict(zip(policy.sensors.names, policy.reader.widths, strict=True))
    for name in offers:
        if rng.random() < 0.3:
            continue
        left = {
            n: offer
            for n, offer in offers.items()
            if name not in policy.sensors.closure(n)
        }
        tree = SensorTree.from_dict(random_tree(rng, left))
        decisions = []
        for node in tree.nodes:
            width = sum(width_of[n] for n in node.sensors)
            width += n_classes + (2 if n_classes > 2 else 1)
            width += len(policy.sensors.varying)
            features = DecisionFeatures(
                PARTS["posterior+raw"],
                np.zeros(width),
                np.ones(width),
                np.zeros(width, dtype=bool),
            )
            decisions.append(DecisionFunction(features, rng.normal(size=width + 1)))
        shape = tree.n_nodes, tree.n_leaves
        flow = Flow(
            np.ones(tree.n_nodes),
            np.ones((tree.n_leaves, n_classes)),
            rng.integers(0, 6, shape) / 10,
            rng.integers(0, 9, tree.n_nodes) / 10,
            rng.integers(0, 6, tree.n_nodes) / 10,
            0.5,
        )
        around[name] = Detour(tree, tuple(decisions), flow, 0.25)
        for vertex in (*tree.leaves, *tree.nodes):
            if vertex.sensors not in {**policy.classifiers, **classifiers}:
                said = ConstantScorer(rng.dirichlet(np.ones(n_classes)))
                classifiers[vertex.sensors] = said
    return Detours(around, classifiers)


def random_cap(rng: np.random.Generator, shop: Shop, how_often: float) -> float | None:
    """None, or an amount: most often what some row needs for some leaf, to the cent."""
    if rng.random() >= how_often:
        return None
    if rng.random() < 0.2:
        return coins(rng, 60)
    row = int(rng.integers(ROWS))
    till = shop.till(row)
    leaves = shop.facts.root.leaves
    leaf = leaves[int(rng.integers(len(leaves)))]
    return float(till.bill(till.lacking(leaf.path, ()), ()))


def judged(shop: Shop, row: int) -> Examined:
    """A row of a table, to the end, as the referee would have it."""
    return finish(Examined(shop.facts, shop.till(row)), shop.values(row))
