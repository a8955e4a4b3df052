"""`Walk`: rows of a table on their way; `MaskedPolicy`: what each acquires next."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sensortree.exceptions import DataError
from sensortree.policy.walk import Evidence, best_place, can_go_on
from sensortree.sensors.market import within
from sensortree.sensors.reader import table_as_fitted
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


# partly known ---------------------------------------------------------------------------


@dataclass(frozen=True)
class MaskedPolicy:
    """A policy in the form that benchmarks of feature acquisition ask for.

    A row is described by what is known of it. `act` says what to acquire next, `predict`
    what to answer now; whoever asks unmasks what was acquired, until the action is 0.
    Rows then end with the answers, leaves and costs of ``policy.predict`` and the like.

    Parameters
    ----------
    policy : Policy
        Such as ``model.policy_``.

    Examples
    --------
    >>> import numpy as np
    >>> from sensortree import SensorTreeClassifier
    >>> from sensortree.results import MaskedPolicy
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = X[:, 0] + (np.abs(X[:, 0]) < 0.5) * X[:, 1] > 0
    >>> model = SensorTreeClassifier(
    ...     {"cheap": [0], "dear": [1]}, costs={"cheap": 1, "dear": 5}, cost_weight=0.02)
    >>> masked = MaskedPolicy(model.fit(X, y).policy_)
    >>> rows = np.array([[3.0, 0.0], [0.1, 0.0]])
    >>> mask = np.zeros((2, 2), dtype=bool)
    >>> while (action := masked.act(rows, mask)).any():
    ...     print(action)
    ...     asks = np.flatnonzero(action)
    ...     mask[asks, action[asks] - 1] = True
    [1 1]
    [0 2]
    >>> masked.predict(rows, mask).argmax(axis=1)
    array([1, 1])
    """

    policy: Policy

    def act(
        self, X: Any, mask: ArrayLike, prices: ArrayLike | None = None
    ) -> NDArray[np.intp]:
        """What each row should acquire next.

        Parameters
        ----------
        X : ndarray or data frame of shape (n_rows, n_features)
            Columns of unknown sensors may hold anything; columns that hold prices are
            always known.
        mask : array-like of bool of shape (n_rows, n_sensors) or (n_rows, n_features)
            What is known, by sensor or by column; a sensor is known if all its columns
            are. Where there are as many sensors as columns, it is by sensor.
        prices : array-like of shape (n_rows, n_sensors), default=None
            Prices of each row, if the policy was fitted with such.

        Returns
        -------
        action : ndarray of int of shape (n_rows,)
            0: stop and answer; i: acquire the i-th sensor of ``policy.sensors.names``,
            counted from 1.
        """
        table, known = self._rows(X, mask, prices)
        return next_sensors(send(self.policy, table, known), known)

    def predict(
        self, X: Any, mask: ArrayLike, prices: ArrayLike | None = None
    ) -> Array:
        """Class probabilities with what is known where each row stands.

        Parameters
        ----------
        X : ndarray or data frame of shape (n_rows, n_features)
        mask : array-like of bool of shape (n_rows, n_sensors) or (n_rows, n_features)
        prices : array-like of shape (n_rows, n_sensors), default=None

        Returns
        -------
        probabilities : ndarray of shape (n_rows, n_classes)
            By the classifier of the last vertex that the row has come to; what it knows
            beyond that vertex is not used.
        """
        return send(self.policy, *self._rows(X, mask, prices)).posterior()

    def _rows(
        self, X: Any, mask: ArrayLike, prices: ArrayLike | None
    ) -> tuple[Table, Mask]:
        """Check X, and bring the mask to (n_rows, n_sensors)."""
        sensors = self.policy.sensors
        given = table_as_fitted(X, prices, sensors)
        n_rows, width = given.shape
        known = np.asarray(mask)
        if known.dtype != bool:
            raise DataError(
                f"mask must hold True where something is known, got {known.dtype}; write "
                f"mask.astype(bool)."
            )
        if known.shape == (n_rows, len(sensors)):
            return given, known
        if known.shape == (n_rows, width):
            columns = [known[:, list(c)].all(axis=1) for c in sensors.columns]
            return given, np.stack(columns, axis=1)
        raise DataError(
            f"mask has shape {known.shape}, expected ({n_rows}, {len(sensors)}), a column "
            f"for each sensor, or ({n_rows}, {width}), one for each column of X."
        )


def next_sensors(walk: Walk, known: Mask) -> Rows:
    """What rows acquire next where they stand, counted from 1; 0 for nothing."""
    policy, action = walk.policy, np.zeros(len(known), dtype=np.intp)
    for place in np.unique(walk.ahead[walk.ahead != walk.place]):
        rows = np.flatnonzero((walk.ahead == place) & (walk.place != place))
        for subset in policy.paths[place]:
            lacks = policy.sensors.mask(subset) & ~known[rows]
            asks = lacks.any(axis=1)
            for pattern in np.unique(lacks[asks], axis=0):
                asking = rows[(lacks == pattern).all(axis=1)]
                names = [policy.sensors.names[s] for s in np.flatnonzero(pattern)]
                first = policy.sensors.purchase_order(names)[0]
                action[asking] = 1 + policy.sensors.index(first)
            rows = rows[~asks]
    return action
