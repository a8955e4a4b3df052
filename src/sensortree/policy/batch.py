"""`Walk`: the rows of a table on their way through a policy, all at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from sensortree.policy.walk import Evidence, best_place, can_go_on
from sensortree.sensors.market import within
from sensortree.sensors.seen import Unseen, warn_unseen
from sensortree.sensors.table import Table
from sensortree.tree.paths import path_costs
from sensortree.types import Array, Mask, Rows

if TYPE_CHECKING:
    from sensortree.policy.policy import Policy


@dataclass(frozen=True, eq=False)
class Group:
    """Rows on their way together: the place where they are, and what is known of them."""

    at: int
    rows: Rows
    evidence: Evidence


@dataclass(frozen=True, eq=False)
class Crossing:
    """What was decided at a node for the rows that came to it."""

    node: int
    evidence: Evidence  # what was known of the rows there
    score: Array  # g_j: above 0 takes the positive child, (n_rows,)
    # Whether a row can pay for some leaf on that side; others are rerouted, (n_rows,).
    goes_on: Mask


def send(
    policy: Policy,
    table: Table,
    known: Mask | None = None,
    trail: list[Crossing] | None = None,
) -> Walk:
    """Send rows on their way, and say what training never saw of what they bought."""
    walk = Walk(policy, table, known, trail)
    walk.read()
    warn_unseen(walk.unseen, policy.strict)
    return walk


class Walk:
    """Rows of a table on their way from the start to the places where they stop.

    Sensors that are `known` may be read, (n_rows, n_sensors), by default all; a row stops
    where it lacks one. What is decided at each node is added to `trail`.
    """

    def __init__(
        self,
        policy: Policy,
        table: Table,
        known: Mask | None = None,
        trail: list[Crossing] | None = None,
    ):
        self.policy = policy
        self.table = table
        self.prices = policy.reader.prices(table)  # (n_rows, n_sensors), or None
        # A leaf, or the complement of a node, (n_rows,).
        self.place = np.empty(table.shape[0], dtype=np.intp)
        # Where rows that lack a sensor are going; for other rows, `place`.
        self.ahead = self.place if known is None else self.place.copy()
        self._known = known
        self._trail = trail
        self._under_way: list[Group] = []
        self._stopped: list[Group] = []
        self.unseen: list[Unseen] = []  # of what was read so far
        self._affordable = self._within_cap()
        self._set_out()
        while self._under_way:
            self._step(self._under_way.pop())

    def posterior(self) -> Array:
        """Posterior where each row stops, (n_rows, n_classes)."""
        answers = np.empty((len(self.place), self.policy.n_outputs))
        self.read()
        for group in self._stopped:
            place = self.policy.places[group.at]
            answers[group.rows] = group.evidence.posterior(place)
        return answers

    def cost(self) -> Array:
        """Price of each row's way, (n_rows,)."""
        return np.asarray(self.costs[np.arange(len(self.place)), self.place])

    @property
    def costs(self) -> Array:
        """Price of each row's way to every place, (n_rows, n_places)."""
        shape = len(self.place), len(self.policy.places)
        return np.broadcast_to(self._costs, shape)

    def read(self) -> None:
        """Read what rows know where they stop; bad values are refused, asked for or not."""
        for group in self._stopped:
            self._read(group)

    @cached_property
    def _costs(self) -> Array:
        """The same, (n_places,) where all rows pay the same."""
        return path_costs(self.policy.paths, self.policy.sensors, self.prices)

    def _within_cap(self) -> Mask | None:
        """Which places each row can pay for, (n_rows, n_places); None if all can all."""
        if self.policy.max_cost is None:
            return None
        affordable = within(self._costs, self.policy.max_cost)
        if affordable.all():
            return None
        return np.broadcast_to(affordable, self.costs.shape)

    def _set_out(self) -> None:
        """Send all rows from the start to the root, if they can pay for it."""
        policy, n_rows = self.policy, len(self.place)
        varying = np.empty((n_rows, 0))
        if self.prices is not None:
            varying = self.prices[:, policy.sensors.varying]
        start = Group(~policy.tree.n_nodes, np.arange(n_rows), Evidence({}, varying))
        can_pay = np.ones(n_rows, dtype=bool)
        if self._affordable is not None:
            can_pay = self._affordable[:, policy.root]
            self._stop(self._part(start, ~can_pay, start.at))
        self._send(start, can_pay, policy.root)

    def _step(self, group: Group) -> None:
        """Decide where the rows of a group go next, and send them there."""
        place = self.policy.places[group.at]
        if place.decision is None:
            self._stop(group)
            return
        self._read(group)
        score = group.evidence.score(place)
        upward = score > 0
        goes_on = np.ones(len(upward), dtype=bool)
        if self._affordable is not None:
            reachable = self._affordable[group.rows, : self.policy.tree.n_leaves]
            goes_on = can_go_on(self.policy.tree, ~group.at, upward, reachable)
            self._reroute(group, ~goes_on, reachable[~goes_on])
        if self._trail is not None:
            self._trail.append(Crossing(~group.at, group.evidence, score, goes_on))
        self._send(group, upward & goes_on, place.positive)
        self._send(group, ~upward & goes_on, place.negative)

    def _read(self, group: Group) -> None:
        """Read what a group has acquired and not read yet."""
        reader, readings = self.policy.reader, group.evidence.readings
        for name in group.evidence.unread(self.policy.places[group.at]):
            sensor = reader.sensors.index(name)
            readings[name], unseen = reader.read(self.table, sensor, group.rows)
            self.unseen += unseen

    def _reroute(self, group: Group, stuck: Mask, reachable: Mask) -> None:
        """Send rows that cannot pay for what was decided to the best place instead."""
        if not stuck.any():
            return
        costs = self.costs[group.rows[stuck]]
        more = costs[:, : self.policy.tree.n_leaves] - costs[:, [group.at]]
        best = best_place(self.policy, ~group.at, more, reachable)
        for place in np.unique(best).tolist():
            chosen = stuck.copy()
            chosen[stuck] = best == place
            if place == group.at:
                self._stop(self._part(group, chosen, place))
            else:
                self._send(group, chosen, place)

    def _send(self, group: Group, chosen: Mask, to: int) -> None:
        """Send some rows on to a place; those that lack what is known there stay."""
        if self._known is not None:
            wanted = self.policy.sensors.mask(self.policy.places[to].sensors)
            lacks = chosen & ~self._known[group.rows][:, wanted].all(axis=1)
            self._stop(self._part(group, lacks, group.at))
            self.ahead[group.rows[lacks]] = to
            chosen = chosen & ~lacks
        if chosen.any():
            self._under_way.append(self._part(group, chosen, to))

    def _stop(self, group: Group) -> None:
        """Let rows, if there are any, stop where they are."""
        if group.rows.size:
            self.place[group.rows] = self.ahead[group.rows] = group.at
            self._stopped.append(group)

    def _part(self, group: Group, chosen: Mask, to: int) -> Group:
        """Some rows of a group, at a place."""
        evidence = group.evidence.take(chosen, self.policy.places[to])
        return Group(to, group.rows[chosen], evidence)
