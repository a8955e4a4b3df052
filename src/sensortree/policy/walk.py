"""The step at a place of the tree: read, judge, decide, afford, reroute.

Whole tables, masked rows, explanations and sessions go through the tree by what stands
here, so that one rule has one answer. Places are numbered: a leaf by its number, a node as
``~node``, and the start, where nothing is known, as ``~n_nodes``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from sensortree.policy.classifiers import LeafCalibration, posterior
from sensortree.policy.decisions import DecisionFunction
from sensortree.sensors.market import ROUNDING, on_paper, within
from sensortree.sensors.sensor import SensorSet
from sensortree.tree.paths import Path, path_bill, vertex_paths
from sensortree.tree.tree import SensorTree
from sensortree.types import Array, Mask, Rows

if TYPE_CHECKING:
    from sensortree.policy.policy import Policy

# What keeps an example from going where the policy sends it.
Obstacle = Literal["limit", "unavailable"]


@dataclass(frozen=True, eq=False)
class Place:
    """A leaf, a node or the start, with all that is needed there."""

    number: int
    path: Path  # what is known on the way to it
    sensors: frozenset[str]  # what is known there
    names: tuple[str, ...]  # the same in declared order
    classifier: Any
    n_classes: int  # columns of what it says
    decision: DecisionFunction | None = None  # None elsewhere than at a node
    negative: int = 0  # where a node's decision leads
    positive: int = 0
    leaves_below: tuple[int, ...] = ()
    refers: bool = False  # whether rows that stop there are referred to a person
    # What puts a leaf's answers right; None elsewhere, and of leaves that need none.
    calibration: LeafCalibration | None = None


def places_of(policy: Policy) -> tuple[Place, ...]:
    """Places where a row may stop, with all that is needed there.

    These are the leaves; the start, where nothing is known; and the nodes, backwards:
    ``places[~node]`` is a node. A row stops elsewhere than at a leaf only if it can
    afford no more.
    """
    tree = policy.tree
    nodes, leaves = vertex_paths(tree)
    negative, positive = (side.tolist() for side in tree.children)
    put_right = policy.calibration or (None,) * tree.n_leaves

    def place(number: int, path: Path, **more: Any) -> Place:
        known = path[-1] if path else frozenset()
        own = policy.own_classifiers.get(number)
        return Place(
            number,
            path,
            known,
            policy.sensors.in_order(known),
            policy.classifiers[known] if own is None else own,
            policy.n_outputs,
            **more,
        )

    return (
        *(
            place(
                k,
                path,
                leaves_below=(k,),
                refers=bool(tree.leaves[k].refers),
                calibration=right,
            )
            for k, (path, right) in enumerate(zip(leaves, put_right, strict=True))
        ),
        place(~tree.n_nodes, ()),
        *(
            place(
                ~j,
                nodes[j],
                decision=policy.decisions[j],
                negative=~negative[j],
                positive=~positive[j],
                leaves_below=tuple(np.flatnonzero(tree.path_signs[:, j]).tolist()),
            )
            for j in reversed(range(tree.n_nodes))
        ),
    )


class Evidence:
    """What is known of some rows, and what follows from it, each worked out once.

    Whoever walks adds to the readings, each (n_rows, width). `prices` are those of sensors
    whose price differs between rows, (n_rows, n_varying).
    """

    __slots__ = ("_columns", "_joined", "_posteriors", "_scores", "prices", "readings")

    def __init__(self, readings: dict[str, Array], prices: Array):
        self.readings = readings
        self.prices = prices
        self._joined: dict[frozenset[str], Array] = {}
        self._posteriors: dict[int, Array] = {}  # by the identity of the classifier
        self._columns: dict[int, Array] = {}  # by the identity of the features
        self._scores: dict[int, Array] = {}  # by the identity of the decision

    def unread(self, place: Place) -> list[str]:
        """Sensors known at a place that have not been read yet, in declared order."""
        if place.sensors in self._joined:
            return []
        return [name for name in place.names if name not in self.readings]

    def known(self, place: Place) -> Array:
        """Readings of what is known at a place, side by side, (n_rows, width)."""
        joined = self._joined.get(place.sensors)
        if joined is None:
            blocks = [self.readings[name] for name in place.names]
            if len(blocks) > 1:
                joined = np.concatenate(blocks, axis=1)
            else:
                joined = blocks[0] if blocks else np.empty((len(self.prices), 0))
            self._joined[place.sensors] = joined
        return joined

    def posterior(self, place: Place) -> Array:
        """Posterior of the classifier at a place, (n_rows, n_classes).

        At a leaf it is calibrated for the examples that end there; decisions use the
        classifier's own output.
        """
        likely = self._posteriors.get(id(place.classifier))
        if likely is None:
            likely = posterior(place.classifier, self.known(place), place.n_classes)
            self._posteriors[id(place.classifier)] = likely
        return likely if place.calibration is None else place.calibration(likely)

    def columns(self, place: Place) -> Array:
        """Columns of the decision features at a node, as they are, (n_rows, width)."""
        decision = place.decision
        assert decision is not None  # a node
        columns = self._columns.get(id(decision.features))
        if columns is None:
            likely = self.posterior(place) if decision.needs_posterior else None
            columns = decision.features.columns(self.known(place), likely, self.prices)
            self._columns[id(decision.features)] = columns
        return columns

    def score(self, place: Place) -> Array:
        """Values of g_j at a node, (n_rows,); above 0 takes the positive child."""
        decision = place.decision
        assert decision is not None  # a node
        score = self._scores.get(id(decision))
        if score is None:
            score = self._scores[id(decision)] = decision.of(self.columns(place))
        return score

    def take(self, chosen: Mask, place: Place) -> Evidence:
        """Evidence of some of the rows, as far as it is of use at and after a place."""
        everyone = bool(chosen.all())

        def part(values: Array) -> Array:
            return values if everyone else values[chosen]

        taken = Evidence({}, part(self.prices))
        if place.sensors in self._joined:
            judge, decision = id(place.classifier), place.decision
            taken._joined[place.sensors] = part(self._joined[place.sensors])
            if judge in self._posteriors:
                taken._posteriors[judge] = part(self._posteriors[judge])
            if decision is None:  # nothing comes after it
                return taken
            if id(decision.features) in self._columns:
                features = id(decision.features)
                taken._columns[features] = part(self._columns[features])
        taken.readings = {name: part(read) for name, read in self.readings.items()}
        return taken


def sum_of_bill(
    path: Path, sensors: SensorSet, prices: Array | None, known: frozenset[str]
) -> float:
    """What one example pays for what a path lacks, added up as on paper."""
    bill = path_bill(path, sensors, prices, known).values()
    charged = bill if prices is None else (price[0] for price in bill)
    return on_paper(sum(on_paper(float(price)) for price in charged))


def can_go_on(tree: SensorTree, node: int, upward: Mask, reachable: Mask) -> Mask:
    """Whether rows can reach a leaf on the side of a node that was decided, (n_rows,).

    `upward` says for which rows the positive side was, (n_rows,); `reachable` which leaves
    each can pay for, (n_rows, n_leaves).
    """
    above = (reachable & tree.positive_paths[:, node]).any(axis=1)
    below = (reachable & tree.negative_paths[:, node]).any(axis=1)
    return np.where(upward, above, below)


def best_place(policy: Policy, node: int, more: Array, reachable: Mask) -> Rows:
    """Where rows that cannot go on from a node as decided are served best, (n_rows,).

    It is the reachable leaf below the node of the least mean training risk among examples
    that came to it, the first of equals; or ``~node`` if stopping there is better. `more`
    is the price of the way from the node to each leaf, (n_rows, n_leaves).
    """
    below = policy.tree.path_signs[:, node] != 0
    risk = policy.flow.leaf_loss[node] + policy.cost_weight * more
    risk = np.where(reachable & below, risk, np.inf)
    least = risk.min(axis=1)
    best = (risk <= least[:, None] + ROUNDING).argmax(axis=1)
    stay = np.isinf(least) | (policy.flow.stop_loss[node] < least - ROUNDING)
    return np.where(stay, ~node, best)


class Allowance:
    """What one example may still buy: what is available, within its limit, at its prices.

    Its `prices` are (n_sensors,), or None where all examples pay the same.
    """

    def __init__(self, policy: Policy, limit: float | None, prices: Array | None):
        self._policy = policy
        self._limit = limit
        self.prices = None if prices is None else prices[None, :]
        self.known: frozenset[str] = frozenset()  # sensors that cost nothing more
        self.paid: dict[str, float] = {}  # for those of them that were bought
        self.unavailable: list[str] = []
        self.spent = 0.0
        self.set_out()

    def set_out(self) -> None:
        """Follow the policy from its root, with all detours open."""
        self.route = self._policy  # what it follows now: the policy, or a detour
        self.open = dict(self._policy.around)  # detours that it was not sent on yet
        self.here: Path = ()  # the way on this route to the node that it decided at last
        self._before: Path = ()

    def enter(self, route: Policy) -> None:
        """Follow a detour from where it has decided last."""
        self._before += self.here
        self.route, self.here = route, ()

    def price(self, path: Path) -> float:
        """Price of what is still lacking on a way."""
        return self._price(path, self.known)

    def _price(self, path: Path, known: frozenset[str]) -> float:
        if self.prices is None:
            return self.route.price(path, known)
        return sum_of_bill(path, self.route.sensors, self.prices, known)

    def price_of(self, sensor: str) -> float:
        """Price of a sensor now."""
        return self.price((frozenset((sensor,)),))

    def way(self, place: int) -> float:
        """Price of what is still lacking on the way to a place."""
        return self.price(self.route.places[place].path)

    def lacking(self, place: Place) -> tuple[str, ...]:
        """What is still lacking on the way to a place, in the order of buying."""
        return tuple(path_bill(place.path, self.route.sensors, known=self.known))

    def pay(self, sensor: str) -> None:
        """Pay for a sensor at its price now."""
        self.paid[sensor] = self.price_of(sensor)
        self.spent = on_paper(self.spent + self.paid[sensor])

    @property
    def bound(self) -> bool:
        """Whether anything may keep it from a place."""
        return bool(self.unavailable) or self._limit is not None

    def reaches(self, place: Place) -> bool:
        """Whether a place may be gone to: the root, or where some leaf can be reached."""
        return not self.bound or any(map(self.reaches_end, self._ends(place)))

    def reaches_end(self, place: int) -> bool:
        """Whether all that is lacking at a place is available, and can be paid for."""
        if not self._available(self.route.places[place].sensors):
            return False
        if self._limit is None:
            return True
        more = self.way(place)
        can_pay = more == 0 or bool(within(self.spent + more, self._limit))
        return can_pay and self.allows(place)

    def obstacle(self, place: Place) -> Obstacle:
        """What keeps it from a place that it cannot reach.

        It is the limit, unless it could pay for the place if all were available.
        """
        could = self.unavailable and any(map(self.allows, self._ends(place)))
        return "unavailable" if could else "limit"

    def worst_case(self, place: Place) -> float:
        """Price of the dearest way through a place that may still be taken."""
        below = place.leaves_below
        if self.bound:
            below = tuple(leaf for leaf in below if self.reaches_end(leaf))
        ways = [*map(self.way, below), *self._ways_round(place)]
        return max(ways or [self.way(place.number)])

    def detour(self, wanted: Place) -> str | None:
        """Sensor that it is led around if a place is out of reach for lack of one.

        Of the unavailable sensors, one that the place needs comes first, then the one
        declared first; None if no detour is open to it.
        """
        names = self.route.sensors.in_order(self.unavailable)
        ends = [self.route.places[end].sensors for end in self._ends(wanted)]
        ranked = sorted(names, key=lambda name: not all(name in end for end in ends))
        for name in ranked:
            if name in self.open and self._enters(self.open[name]):
                return name
        return None

    def _enters(self, route: Policy) -> bool:
        """Whether what the root of a detour knows is available, and can be paid for."""
        stood = self.route, self.here, self._before
        self.enter(route)
        try:
            return self.reaches_end(route.root)
        finally:
            self.route, self.here, self._before = stood

    def _ways_round(self, place: Place) -> Iterator[float]:
        """Most that may be paid on detours from a place, if some can be taken."""
        routes = [self.open[name] for name in self.unavailable if name in self.open]
        for end in place.leaves_below if routes else ():
            if self.reaches_end(end):
                continue
            path = self.route.places[end].path
            had = tuple(takewhile(self._available, path))
            ways: list[Path] = [
                leaf.path
                for leaf in routes[0].places[: routes[0].tree.n_leaves]
                if self._available(leaf.sensors)
            ]
            if len(routes) > 1:  # one may lead to the other
                bought = frozenset().union(*(route.tree.sensors for route in routes))
                ways = [(bought - frozenset(self.unavailable),)]
            for way in ways:
                price = self.price((*had, *way))
                left = np.inf if self._limit is None else self._limit - self.spent
                yield min(price, max(left, 0.0))

    def _available(self, sensors: frozenset[str]) -> bool:
        """Whether no sensor that is lacking is unavailable."""
        return (sensors - self.known).isdisjoint(self.unavailable)

    def best_place(self, node: int, can: Callable[[int], bool]) -> int:
        """Where it is served best, of what it can do, if it cannot go on as decided.

        What was paid for a leaf's sensors already counts as paid, and nothing else does, so
        that the leaf stays the best while it is paid for.
        """
        policy = self.route
        leaves = range(policy.tree.n_leaves)
        below = policy.places[~node].leaves_below
        reachable = [leaf in below and can(leaf) for leaf in leaves]
        here = self._open_bill(~node)
        more = [self._open_bill(k) - here if reachable[k] else 0.0 for k in leaves]
        best = best_place(policy, node, np.array([more]), np.array([reachable]))
        return int(best[0])

    def allows(self, place: int) -> bool:
        """Whether the limit allows a whole way, if all were available.

        What was bought on another way does not count, and buying on this changes nothing.
        """
        return self._limit is None or bool(within(self._whole(place), self._limit))

    def _whole(self, place: int) -> float:
        """Price of a whole way, with the detours on it, before anything was bought."""
        path = (*self._before, *self.route.places[place].path)
        return self._price(path, self.known.difference(self.paid))

    def _open_bill(self, place: int) -> float:
        """The same, less what was paid for what is on the way."""
        on_way = frozenset().union(*self._before, self.route.places[place].sensors)
        paid = self.paid.keys() & on_way
        return self._whole(place) - sum(self.paid[name] for name in sorted(paid))

    def _ends(self, place: Place) -> tuple[int, ...]:
        """Places of which one must be within reach before a place is gone to.

        What the root knows is bought whenever it can be, as nothing is known before.
        """
        root = place.number == self.route.root
        return (place.number,) if root else place.leaves_below
