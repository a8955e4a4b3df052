"""Batch, sessions, resumed sessions and masked arrays do what an independent referee says.

Random sensors on random terms, random trees and random decisions; the referee walks by
brute force and counts money in decimal numbers. A row of a shop is one configuration.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from referee import Calculator, Examined, money
from shops import ROWS, Shop, judged, open_shop, random_cap

from sensortree import SensorTreeError
from sensortree.results import MaskedPolicy

SHOPS, MORE_SHOPS = 30, 500
EVENTS = {
    "tell": 0.47,
    "tell another": 0.1,
    "unavailable": 0.1,
    "gift": 0.06,
    "correct": 0.1,
    "correct the first": 0.12,
    "repeat": 0.05,
}


@dataclass(frozen=True)
class Objection:
    """What the referee objects to: who did what, instead of what."""

    shop: int
    row: int
    who: str
    what: str
    found: Any
    expected: Any

    def __str__(self) -> str:
        return (
            f"shop {self.shop}, row {self.row}: {self.who}: {self.what} is "
            f"{self.found!r}, the referee says {self.expected!r}"
        )


def cents(amount: Any) -> float:
    """An amount as a bill shows it."""
    return round(float(amount), 9) + 0.0


def objections(seed: int) -> list[Objection]:
    """All that the referee objects to in one shop."""
    shop = open_shop(seed)
    found = []
    for row, who, what, was, should in [
        *in_batch(shop),
        *with_masks(shop),
        *refusals(shop),
        *step_by_step(shop, np.random.default_rng(seed + 1_000_000)),
    ]:
        if was != should:
            found.append(Objection(seed, row, who, what, was, should))
    return found


Claim = tuple[int, str, str, Any, Any]


def in_batch(shop: Shop) -> Iterator[Claim]:
    """Whole tables, explanations and reports."""
    model, X, prices = shop.model, shop.X, shop.prices
    names = np.array(list(shop.offers))
    label, place = model.predict(X, prices), model.apply(X, prices)
    cost, bought = model.acquisition_cost(X, prices), model.acquired(X, prices)
    proba = model.predict_proba(X, prices)
    ends = [judged(shop, row) for row in range(ROWS)]
    for row, end in enumerate(ends):
        yield row, "batch", "place", int(place[row]), end.place
        yield row, "batch", "cost", cents(cost[row]), cents(end.spent)
        yield row, "batch", "acquired", set(names[bought[row]]), set(end.acquired)
        yield row, "batch", "label", label[row], end.label
        yield row, "batch", "proba", np.allclose(proba[row], end.proba), True
        own = None if prices is None else prices[row]
        said = model.explain(X.iloc[[row]], own)
        bills = [*said.start, *(bill for node in said.nodes for bill in node.bought)]
        bought_one_by_one = bill_one_by_one(shop.till(row), end.acquired)
        yield row, "explain", "leaf", said.leaf, end.place
        yield row, "explain", "spent", cents(said.spent), cents(end.spent)
        yield (
            row,
            "explain",
            "bought",
            {bill.sensor: cents(bill.price) for bill in bills},
            bought_one_by_one,
        )
    spent = sum(end.spent for end in ends)
    report = model.report(X, label, prices=prices)
    yield -1, "report", "cost", cents(report.cost), cents(spent / ROWS)
    spends = sum(use.spend for use in report.sensors)
    yield -1, "report", "spends", cents(spends), cents(spent / ROWS)


def bill_one_by_one(till: Calculator, order: list[str]) -> dict[str, float]:
    """What each sensor is charged when bought in this order."""
    return {n: cents(till.price(n, order[:i])) for i, n in enumerate(order)}


def with_masks(shop: Shop) -> Iterator[Claim]:
    """Masked arrays, unmasked as the policy asks, from nothing."""
    masked, names = MaskedPolicy(shop.model.policy_), list(shop.offers)
    mask = np.zeros((ROWS, len(names)), dtype=bool)
    order: list[list[str]] = [[] for _ in range(ROWS)]
    X = shop.X.to_numpy()
    while (action := masked.act(X, mask, shop.prices)).any():
        for row in np.flatnonzero(action):
            order[row].append(names[action[row] - 1])
            mask[row, action[row] - 1] = True
    proba = masked.predict(X, mask, shop.prices)
    for row in range(ROWS):
        end, till = judged(shop, row), shop.till(row)
        yield row, "masked", "acquired", order[row], end.acquired
        yield row, "masked", "cost", till.bill(order[row], ()), end.spent
        yield row, "masked", "proba", np.allclose(proba[row], end.proba), True


def refusals(shop: Shop) -> Iterator[Claim]:
    """Prices below the surcharge, which would be negative as the second of a group."""
    if shop.prices is None:
        return
    for j, offer in enumerate(shop.offers.values()):
        if offer.price_column is not None or not offer.surcharge:
            continue
        too_low = float(offer.surcharge) / 2
        prices = shop.prices.copy()
        prices[0, j] = too_low
        told = {**shop.told_prices(0), offer.name: too_low}
        asks = {
            "batch": lambda p=prices: shop.model.acquisition_cost(shop.X, p),
            "masked": lambda p=prices: MaskedPolicy(shop.model.policy_).act(
                shop.X.to_numpy(), np.zeros(p.shape, dtype=bool), p
            ),
            "session": lambda t=told: shop.model.policy_.session(prices=t),
            "step": lambda t=told: shop.model.policy_.step({}, prices=t),
        }
        for who, ask in asks.items():
            yield 0, who, "refuses a price below the surcharge", refused(ask), True


def refused(ask: Callable[[], Any]) -> bool:
    """Whether a question is refused in the library's own words."""
    try:
        ask()
    except SensorTreeError:
        return True
    return False


def step_by_step(shop: Shop, rng: np.random.Generator) -> Iterator[Claim]:
    """Sessions, sessions resumed after every event, oracles, and single steps."""
    policy = shop.model.policy_
    for row in range(ROWS):
        values, prices = shop.values(row), shop.told_prices(row)
        try:
            decision = policy.acquire(lambda s, _, v=values: v[s], prices=prices)
        except SensorTreeError as refusal:
            yield row, "acquire", "refusal", str(refusal), None
            continue
        end = judged(shop, row)
        yield row, "acquire", "place", decision.place, end.place
        yield row, "acquire", "spent", cents(decision.spent), cents(end.spent)
        yield row, "acquire", "acquired", list(decision.acquired), end.acquired
        yield row, "acquire", "label", decision.label, end.label
        yield from eventful(shop, row, rng)


def eventful(shop: Shop, row: int, rng: np.random.Generator) -> Iterator[Claim]:
    """A session to which things happen, beside one that is resumed after each of them."""
    policy, names = shop.model.policy_, list(shop.offers)
    values, prices = shop.values(row), shop.told_prices(row)
    given = [n for n in names if rng.random() < 0.3] if rng.random() < 0.6 else []
    known = {n: values[n] for n in given}
    limit = random_cap(rng, shop, 0.4)
    example = Examined(
        shop.facts,
        shop.till(row),
        None if limit is None else money(limit),
        dict(known),
    )
    session = policy.session(known, limit, prices)
    again = policy.session(known, limit, prices)
    yield from compare(row, "session", session, example)
    for event in random_events(shop, rng, example, values, given):
        event(session)
        event(again)
        yield from compare(row, "session", session, example)
        again = policy.resume(json.loads(json.dumps(again.to_dict())))
        yield from compare(row, "resumed", again, example)
    yield from compare_step(shop, row, example, rng, limit)


def random_events(
    shop: Shop,
    rng: np.random.Generator,
    example: Examined,
    values: dict[str, Any],
    given: list[str],
) -> Iterator[Callable[[Any], None]]:
    """Things that happen to an example, and to sessions; in the end all is answered."""
    names = list(shop.offers)
    for left in range(12, -100, -1):
        asked = example.pending
        untold = [n for n in names if n not in example.values]
        told = [n for n in names if n in example.values]
        kind = rng.choice(list(EVENTS), p=list(EVENTS.values()))
        if left <= 0:
            kind = "tell"
        if kind in ("tell", "tell another"):
            if not asked:
                if rng.random() < 0.5 or left <= 0:
                    return
                continue
            name = asked[0] if kind == "tell" else str(rng.choice(asked))
            new = values[name]
        elif kind == "unavailable" and untold:
            name = str(rng.choice(untold))
            example.cannot_be_had(name)
            yield lambda s, name=name: s.unavailable(name)
            continue
        elif kind == "gift" and untold:
            name = str(rng.choice(untold))
            new = values[name]
        elif kind == "correct" and told:
            name = str(rng.choice(told))
            new = shop.values(int(rng.integers(ROWS)))[name]
        elif kind == "correct the first" and given:
            name = str(rng.choice(given))
            new = shop.values(int(rng.integers(ROWS)))[name]
        elif kind == "repeat" and told:
            name = str(rng.choice(told))
            new = example.values[name]
        else:
            continue
        example.tell(name, new)
        yield lambda s, name=name, new=new: s.tell(name, new, replace=True)


def compare(row: int, who: str, session: Any, example: Examined) -> Iterator[Claim]:
    """Compare a session as it stands with the referee's."""
    step = session.step
    yield row, who, "spent", cents(session.spent), cents(example.spent)
    yield from compare_said(row, who, step, example)
    ended = session.ask() is None
    yield row, who, "ended", ended, example.place is not None
    if ended and example.place is not None:
        end = session.decision()
        yield row, who, "place", end.place, example.place
        on_detour = example.route is not example.facts
        yield row, who, "around", end.around is not None, on_detour
        yield row, who, "label", end.label, example.label
        yield row, who, "acquired", list(end.acquired), list(example.acquired)
        yield row, who, "decision.spent", cents(end.spent), cents(example.spent)
        yield row, who, "saved", cents(end.saved), cents(example.rest)
        yield row, who, "because", end.stopped_because, example.because
        yield (
            row,
            who,
            "rerouting loss",
            cents(end.rerouting_loss),
            cents(example.rerouting_loss),
        )


def compare_said(row: int, who: str, step: Any, example: Examined) -> Iterator[Claim]:
    """Compare a step with what the referee would say."""
    asked = example.pending
    yield row, who, "sensors", list(step.sensors), asked
    yield row, who, "sensor", step.sensor, asked[0] if asked else None
    yield row, who, "step.spent", cents(step.spent), cents(example.spent)
    yield row, who, "step.cost", cents(step.cost), cents(example.cost)
    most, least = cents(step.worst_case_remaining), cents(example.worst_case)
    if example.unavailable and example.facts.detours:  # more, if a detour may be taken
        yield row, who, "worst case enough", most >= least, True
    else:
        yield row, who, "worst case", most, least
    yield row, who, "proba", np.allclose(step.proba, example.proba), True


def compare_step(
    shop: Shop,
    row: int,
    before: Examined,
    rng: np.random.Generator,
    limit: float | None,
) -> Iterator[Claim]:
    """Ask for a single step, with some of what is known free of charge."""
    known = {n: v for n, v in before.values.items() if rng.random() < 0.7}
    free = [n for n in known if rng.random() < 0.4]
    gone = sorted(before.unavailable)
    example = Examined(
        shop.facts,
        shop.till(row),
        None if limit is None else money(limit),
        {n: known[n] for n in free},
    )
    for name in gone:
        example.cannot_be_had(name)
    waiting = {n: v for n, v in known.items() if n not in free}
    while waiting:
        asked = [n for n in [*example.pending, *shop.offers] if n in waiting]
        example.tell(asked[0], waiting.pop(asked[0]))
    step = shop.model.policy_.step(
        known,
        unavailable=gone,
        limit=limit,
        prices=shop.told_prices(row),
        free=free,
    )
    yield from compare_said(row, "step", step, example)


def complaint(found: list[Objection]) -> str:
    """The first objections of each kind, in words."""
    kinds = {(o.who, o.what): o for o in reversed(found)}
    return "\n".join([f"{len(found)} objections", *map(str, kinds.values())])


@pytest.mark.parametrize("seed", range(SHOPS))
def test_policies_do_and_charge_what_the_referee_says(seed):
    found = objections(seed)
    assert not found, complaint(found)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(SHOPS, SHOPS + MORE_SHOPS, 50))
def test_many_more_policies_do_and_charge_what_the_referee_says(first):
    found = [o for seed in range(first, first + 50) for o in objections(seed)]
    assert not found, complaint(found)
