"""A referee: what a fitted policy must do for one example, and what it must charge.

It knows what the test itself declared (prices, groups, prerequisites), the numbers that a
fit left behind (the tree, decision functions, classifiers, losses of training examples),
and the rules as the documentation gives them. It walks by brute force, adds money in
decimal numbers, and shares no code with the policies and sessions that it judges.

The rules:

* The first sensor of a group costs its full price, the others that price less their
  surcharge. First is who is first on the example's way; of sensors bought at the same time,
  what others come after is bought first, then the least surcharge, then the declared order.
* What is known, for money or not, costs nothing more, and its group is open.
* An example goes to a vertex only if some leaf there or below can still be reached: no
  sensor on the way is unavailable, what was spent and what is lacking do not add up, on
  paper, to more than the cap, unless nothing is lacking that costs anything, and the whole
  way would not either, had it bought nothing elsewhere. What is known at the root it buys
  whenever it can.
* Where the cap alone forbids what was decided, the example would go to the best leaf that
  the cap allows, as if all could be had.
* Where it cannot go as it would for lack of a sensor, it takes the detour around one, if
  there is one that it has not taken yet and whose root can be had and paid for: of the
  sensors that cannot be had one that every leaf there needs, else another, the first
  declared of them. From the detour's root it goes on as in the tree.
* Where it takes no detour, it takes the leaf below the node of the least training risk that
  can be reached, the first of equals, by the price of the whole way less what was paid for
  its sensors; or it stops at the node if that is better, or before the root if it has come
  to no node. The node is the last that it has decided at, be it of the tree or of a detour.
* Who stops at a node goes on as decided by what is known already, to where more is known.
* Whatever is told sends the example from the root again. What was paid stays paid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import numpy as np

EQUAL = Decimal("1e-12")  # risks nearer to each other are equal


# What a detour shares with the policy.
SHARED = ("classes", "cost_weight", "max_cost", "sensors")


def money(amount: Any) -> Decimal:
    """A price as it is written: 0.1 is a tenth."""
    return Decimal(repr(float(amount)))


@dataclass(frozen=True)
class Offer:
    """A sensor as the test declared it.

    Attributes
    ----------
    name : str
    columns : tuple of int
    price : Decimal
        Of the first of its group; of a sensor priced by a column, what the first of its
        group pays on top of that column.
    surcharge : Decimal
        The part of the price that only the first of its group costs.
    """

    name: str
    columns: tuple[int, ...]
    price: Decimal
    surcharge: Decimal = Decimal(0)
    group: str | None = None
    after: frozenset[str] = frozenset()
    one_of: str | None = None
    price_column: str | None = None


class Calculator:
    """Prices of one example, and what sensors cost after others.

    Parameters
    ----------
    offers : mapping of name to Offer, in declared order
    full : mapping of name to Decimal
        Price of each sensor as the first of its group.
    """

    def __init__(self, offers: Mapping[str, Offer], full: Mapping[str, Decimal]):
        self.offers = offers
        self.full = full

    def price(self, name: str, known: Iterable[str]) -> Decimal:
        """Price of a sensor when others are known."""
        offer = self.offers[name]
        opened = {self.offers[other].group for other in known} - {None}
        return self.full[name] - (offer.surcharge if offer.group in opened else 0)

    def order(self, names: Iterable[str]) -> list[str]:
        """Sensors that are bought at the same time, in the order of buying."""
        waiting = set(names)
        declared = list(self.offers)
        order: list[str] = []
        while waiting:
            ready = [n for n in waiting if not self.offers[n].after & waiting]
            first = min(
                ready, key=lambda n: (self.offers[n].surcharge, declared.index(n))
            )
            order.append(first)
            waiting.remove(first)
        return order

    def lacking(
        self, path: Iterable[frozenset[str]], known: Iterable[str]
    ) -> list[str]:
        """What is still to be bought on a way, in the order of buying."""
        order: list[str] = []
        for subset in path:
            order += self.order(subset - set(known) - set(order))
        return order

    def bill(self, order: Iterable[str], known: Iterable[str]) -> Decimal:
        """Price of buying some sensors one after another."""
        have, total = set(known), Decimal(0)
        for name in order:
            total += self.price(name, have)
            have.add(name)
        return total


@dataclass(frozen=True)
class Spot:
    """A vertex of the tree, with the way to it."""

    number: int
    sensors: frozenset[str]
    path: tuple[frozenset[str], ...]
    children: tuple[Spot, ...] = ()

    @property
    def leaves(self) -> tuple[Spot, ...]:
        """Leaves at or below the vertex, from left to right."""
        if not self.children:
            return (self,)
        return tuple(leaf for child in self.children for leaf in child.leaves)


def spots_of(root: Any) -> tuple[Spot, int]:
    """The vertices of a tree, numbered depth first, and how many are nodes."""
    counts = {"node": 0, "leaf": 0}

    def visit(vertex: Any, path: tuple[frozenset[str], ...]) -> Spot:
        path = (*path, vertex.sensors)
        kind = "node" if hasattr(vertex, "negative") else "leaf"
        number = counts[kind]
        counts[kind] += 1
        below = (vertex.negative, vertex.positive) if kind == "node" else ()
        children = tuple(visit(child, path) for child in below)
        return Spot(number, vertex.sensors, path, children)

    return visit(root, ()), counts["node"]


class Facts:
    """What a fit left behind: numbers and functions of numbers.

    Parameters
    ----------
    policy : Policy
        Its tree, decision functions, classifiers and losses are read, and nothing is asked
        of it.
    offers : mapping of name to Offer, in declared order
    loss : array of shape (n_classes, n_classes) or None
    """

    def __init__(
        self, policy: Any, offers: Mapping[str, Offer], loss: Any = None
    ) -> None:
        self.offers = offers
        self.root, self.n_nodes = spots_of(policy.tree.root)
        self.decisions = policy.decisions
        self.classifiers = policy.classifiers
        self.classes = policy.classes
        self.flow = policy.flow
        self.cost_weight = money(policy.cost_weight)
        self.max_cost = None if policy.max_cost is None else money(policy.max_cost)
        self.loss = loss
        # Which prices the decision functions were given as columns.
        self.seen = [list(offers)[int(j)] for j in policy.sensors.varying]
        self.detours: dict[str, Facts] = {}
        self.usual_loss = self.flow.total_loss
        detours = getattr(policy, "detours", None)
        for name, detour in detours.around.items() if detours else ():
            form = SimpleNamespace(**{k: getattr(policy, k) for k in SHARED})
            form.tree, form.decisions = detour.tree, detour.decisions
            form.flow = detour.flow
            form.classifiers = {**policy.classifiers, **detours.classifiers}
            self.detours[name] = Facts(form, offers, loss)
            self.detours[name].usual_loss = detour.usual_loss

    def posterior(self, sensors: frozenset[str], readings: Any) -> Any:
        """Class probabilities with some sensors, (n_classes,)."""
        classifier = self.classifiers[sensors]
        said = np.zeros(len(self.classes))
        codes = getattr(classifier, "classes_", np.arange(len(self.classes)))
        said[codes] = classifier.predict_proba(readings)[0]
        return said

    def label(self, proba: Any) -> Any:
        """The answer of the least expected loss."""
        if self.loss is None:
            return self.classes[int(np.argmax(proba))]
        return self.classes[int(np.argmin(proba @ np.asarray(self.loss, float)))]


@dataclass
class Examined:
    """One example, as the referee would have it examined.

    Attributes
    ----------
    facts : Facts
    till : Calculator
        With the prices of this example.
    limit : Decimal or None
    values : dict of name to values
        What is known. It may be given at first, for nothing.
    """

    facts: Facts
    till: Calculator
    limit: Decimal | None = None
    values: dict[str, Any] = field(default_factory=dict)
    unavailable: set[str] = field(default_factory=set)
    spent: Decimal = Decimal(0)
    acquired: list[str] = field(default_factory=list)
    receipts: dict[str, Decimal] = field(default_factory=dict)

    def __post_init__(self) -> None:
        caps = [c for c in (self.limit, self.facts.max_cost) if c is not None]
        self.cap = min(caps) if caps else None
        self._start()

    def _start(self) -> None:
        self.route, self.taken = self.facts, list[str]()
        self.at = self.route.root
        self.last: Spot | None = None
        self.last_route = self.facts
        self.passed: list[frozenset[str]] = []
        self.place: int | None = None
        self.because = "policy"
        self.rerouting_loss = 0.0
        self._go()

    # what happens ---------------------------------------------------------------------

    def tell(self, name: str, values: Any) -> None:
        """The values of a sensor: bought if it was asked for, else had for nothing."""
        if name in self.pending:
            self.receipts[name] = self.till.price(name, self.values)
            self.spent += self.receipts[name]
            self.acquired.append(name)
        self.values[name] = values
        self.unavailable.discard(name)
        self._start()

    def cannot_be_had(self, name: str) -> None:
        """A sensor is unavailable."""
        self.unavailable.add(name)
        self._start()

    # the way --------------------------------------------------------------------------

    @property
    def pending(self) -> list[str]:
        """What is bought before the next decision, in order."""
        if self.place is not None:
            return []
        return self.till.lacking(self.at.path, self.values)

    def _go(self) -> None:
        """Walk on until something must be bought, or to the end."""
        while self.place is None:
            if self.pending:
                if not self._may_go_to(self.at):
                    self._reroute(self.at)
                    continue
                return
            if not self.at.children:
                self.place = self.at.number
                return
            self.last, self.last_route = self.at, self.route
            self.passed += self.at.path
            chosen = self._decided(self.at)
            if self._may_go_to(chosen):
                self.at = chosen
            else:
                self._reroute(chosen)

    def _may_go_to(self, spot: Spot) -> bool:
        if spot is self.route.root and self._within_reach(spot):
            return True
        return any(map(self._within_reach, spot.leaves))

    def _decided(self, spot: Spot) -> Spot:
        return spot.children[self._score(spot) > 0]

    def _within_reach(self, spot: Spot) -> bool:
        """Whether what a vertex knows can be had and paid for."""
        order = self.till.lacking(spot.path, self.values)
        if self.unavailable & set(order):
            return False
        bill = self.till.bill(order, self.values)
        affordable = self.cap is None or bill == 0 or self.spent + bill <= self.cap
        return affordable and self._allowed(spot)

    def _allowed(self, spot: Spot) -> bool:
        """Whether the cap allows the whole way to a vertex, if all could be had."""
        return self.cap is None or self._whole(spot) <= self.cap

    def _whole(self, spot: Spot) -> Decimal:
        """Price of the whole way to a vertex, before anything was paid."""
        free = set(self.values) - set(self.receipts)
        order = self.till.lacking([*self.passed, *spot.path], free)
        return self.till.bill(order, free)

    def _unpaid(self, spot: Spot) -> Decimal:
        """The same, less what was paid for its sensors."""
        known = spot.sensors.union(*self.passed)
        return self._whole(spot) - sum(
            price for name, price in self.receipts.items() if name in known
        )

    def _reroute(self, wanted: Spot) -> None:
        forbidden = not any(map(self._allowed, self._ends(wanted)))
        if (forbidden or not self.unavailable) and self.last is not None:
            best = self._best(self.last, self._allowed)
            if best is not None and not self._within_reach(best):
                wanted, forbidden = best, False
        held_up = bool(self.unavailable) and not forbidden
        on_detour = self.route is not self.facts
        self.because = "unavailable" if held_up or on_detour else "limit"
        around = self._detour(wanted) if held_up else None
        if around is not None:
            self.taken.append(around)
            self.route = self.facts.detours[around]
            self.at = self.route.root
            self.rerouting_loss = self._loss_of_detour()
            return
        self.route = self.last_route
        if self.last is None:
            self.place = ~self.facts.n_nodes
            self.rerouting_loss = 0.0
            return
        flow, leaf = self.route.flow, self._best(self.last, self._within_reach)
        if leaf is None:
            self.last = self._as_far_as_known(self.last)
            self.place = ~self.last.number
            loss = flow.stop_loss[self.last.number]
        else:
            self.at = leaf
            loss = flow.leaf_loss[self.last.number, leaf.number]
        more = float(loss - flow.kept_loss[self.last.number])
        self.rerouting_loss = self._loss_of_detour() + more

    def _best(self, node: Spot, may: Callable[[Spot], bool]) -> Spot | None:
        """The leaf below a node of the least training risk; None if it is best to stop."""
        flow = self.route.flow
        best, least = None, Decimal(float(flow.stop_loss[node.number]))
        for leaf in filter(may, node.leaves):
            loss = Decimal(float(flow.leaf_loss[node.number, leaf.number]))
            more = self._unpaid(leaf) - self._unpaid(node)
            risk = loss + self.facts.cost_weight * more
            better = risk <= least + EQUAL if best is None else risk < least - EQUAL
            if better:
                best, least = leaf, risk
        return best

    def _as_far_as_known(self, node: Spot) -> Spot:
        """The last node, as decided, at which all is known, and more than before."""
        spot = node
        while spot.children and spot.sensors <= set(self.values):
            if spot.sensors > node.sensors:
                node = spot
            spot = self._decided(spot)
        return node

    def _loss_of_detour(self) -> float:
        """What the detour that it is on loses beside the usual way."""
        if self.route is self.facts:
            return 0.0
        return float(self.route.flow.total_loss - self.route.usual_loss)

    def _detour(self, wanted: Spot) -> str | None:
        """The sensor that it is led around."""
        spots = self._ends(wanted)
        gone = [n for n in self.facts.offers if n in self.unavailable]
        needed = [n for n in gone if all(n in s.sensors for s in spots)]
        for name in [*needed, *(n for n in gone if n not in needed)]:
            new = name in self.facts.detours and name not in self.taken
            if new and self._within_reach(self.facts.detours[name].root):
                return name
        return None

    def _ends(self, wanted: Spot) -> tuple[Spot, ...]:
        """Of which one must be within reach before a vertex is gone to."""
        return (wanted,) if wanted is self.route.root else wanted.leaves

    def way(self, spot: Spot) -> Decimal:
        """Price of what is lacking on the way to a vertex."""
        return self.till.bill(self.till.lacking(spot.path, self.values), self.values)

    # what is said ---------------------------------------------------------------------

    def _readings(self, sensors: frozenset[str]) -> Any:
        known = [np.asarray(self.values[n]) for n in self.facts.offers if n in sensors]
        return np.concatenate([np.empty(0), *known])[None, :]

    def _score(self, spot: Spot) -> float:
        readings = self._readings(spot.sensors)
        said = self.route.posterior(spot.sensors, readings)[None, :]
        prices = np.array([[float(self.till.full[n]) for n in self.facts.seen]])
        decide = self.route.decisions[spot.number]
        return float(decide(readings, said, prices)[0])

    @property
    def proba(self) -> Any:
        """Class probabilities where the example stands."""
        if self.place is not None and self.place >= 0:
            sensors, route = self.at.sensors, self.route
        else:
            sensors = frozenset() if self.last is None else self.last.sensors
            route = self.last_route
        return route.posterior(sensors, self._readings(sensors))

    @property
    def label(self) -> Any:
        """The answer."""
        return self.facts.label(self.proba)

    @property
    def cost(self) -> Decimal:
        """Price of what is asked for now."""
        asked = self.pending
        return self.till.price(asked[0], self.values) if asked else Decimal(0)

    @property
    def worst_case(self) -> Decimal:
        """The most that may still be spent."""
        if self.place is not None:
            return Decimal(0)
        ways = [self.way(leaf) for leaf in self.at.leaves if self._within_reach(leaf)]
        return max(ways, default=self.way(self.at))

    @property
    def rest(self) -> Decimal:
        """What everything else would cost."""
        order = self.till.order(set(self.facts.offers) - set(self.values))
        return self.till.bill(order, self.values)


def finish(example: Examined, values: Mapping[str, Any]) -> Examined:
    """Buy all that is asked for, to the end."""
    while example.pending:
        name = example.pending[0]
        example.tell(name, values[name])
    return example
