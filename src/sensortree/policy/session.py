"""Asking a policy step by step: `Step`, `Session`, `Decision`.

A session knows what it was told and nothing else. *Not acquired* is a sensor that nobody
told; *a value that is missing* is told as NaN or None; *unavailable* is a sensor that
cannot be had, whatever the policy would like.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

import numpy as np

from sensortree.exceptions import SensorError, SessionError
from sensortree.policy.classifiers import posterior
from sensortree.policy.reasons import Reason
from sensortree.policy.steps import Because, Decision, Step
from sensortree.policy.system import DecisionSystem
from sensortree.policy.values import (
    check_limit,
    check_prices,
    in_column_order,
    same_values,
)
from sensortree.text import listed
from sensortree.tree.paths import path_cost
from sensortree.types import Array

NOTHING = np.empty((1, 0))


class Session:
    """One example being examined: asks for sensors, is told values, ends in a decision.

    Parameters
    ----------
    policy : Policy
    known : mapping of sensor to values, default=None
        What is known already; it costs nothing.
    limit : float, default=None
        The most that this example may spend; the policy's ``max_cost`` holds as well.
    prices : mapping of sensor to float, default=None
        Prices of this example, for sensors whose price differs between examples.
    """

    def __init__(
        self,
        policy: DecisionSystem,
        known: Mapping[str, Any] | None = None,
        limit: float | None = None,
        prices: Mapping[str, float] | None = None,
    ):
        self._policy = policy
        self._limit = check_limit(limit, policy.max_cost)
        self._given_limit = limit
        self._prices = check_prices(prices, policy.sensors)
        self._own = (
            NOTHING
            if self._prices is None
            else self._prices[None, policy.sensors.varying]
        )
        self._values: dict[str, tuple[Any, ...]] = {}
        self._readings: dict[str, Array] = {}
        self._known_names: frozenset[str] = frozenset()
        self._free: list[str] = []
        self._unavailable: list[str] = []
        self._acquired: list[str] = []
        self._log: list[list[Any]] = []
        self.spent = 0.0
        for sensor, values in (known or {}).items():
            self._remember(sensor, values, replace=False)
            self._free.append(sensor)
        self._restart()

    # asking and telling -------------------------------------------------------------------

    def ask(self) -> Step | None:
        """Give the next step, the same until something is told; None at the end."""
        return None if self._place is not None else self.step

    def tell(self, sensor: str, values: Any, replace: bool = False) -> None:
        """Tell the values of a sensor.

        Parameters
        ----------
        sensor : str
            DecisionSystem for or not; one that was not asked for costs nothing.
        values : mapping of column name to value, or sequence in the sensor's column order
            NaN or None is a value that is missing.
        replace : bool, default=False
            Whether other values than were told before are a correction.
        """
        name, asked = sensor, sensor in self._pending
        price = self._price(name) if asked else 0.0
        new = self._remember(name, values, replace)
        self._log.append(["tell", name, list(self._values[name]), replace])
        if asked:
            self.spent += price
            self._acquired.append(name)
        elif new == "new":
            self._free.append(name)
        if name in self._unavailable:
            self._unavailable.remove(name)
            new = "changed"
        if new == "changed":
            self._restart()
        elif new == "new":
            self._go_on()

    def unavailable(self, sensor: str) -> None:
        """Say that a sensor cannot be had; the session takes the best way without it."""
        self._index(sensor)
        if sensor in self._readings:
            raise SessionError(
                f"sensor {sensor!r} has been told already; what is known cannot be "
                f"unavailable."
            )
        if sensor not in self._unavailable:
            self._unavailable.append(sensor)
            self._log.append(["unavailable", sensor])
            self._go_on()

    def decision(self) -> Decision:
        """Give the answer, once the policy has stopped asking."""
        policy, place = self._policy, self._place
        if place is None:
            raise SessionError(
                f"the policy still asks for {self._pending[0]!r}; tell its values, or "
                f"call unavailable({self._pending[0]!r}). What is likely so far is "
                f"session.step.proba."
            )
        proba = self._judge(place)
        rest = self._memo("everything", lambda: [frozenset(policy.sensors.names)])
        return Decision(
            policy.classes[policy.loss.answer(proba)[0]],
            proba[0],
            self.spent,
            rest,
            tuple(self._acquired),
            place,
            self._because,
            self._rerouting_loss,
        )

    @property
    def step(self) -> Step:
        """The present step, also at the end, where its action is "stop"."""
        why, standing = None, ~self._policy.tree.n_nodes
        if self._last is not None:
            node, score = self._last
            features = self._policy.decisions[node].features
            why, standing = (
                Reason(self._policy, node, score, self._columns[id(features)]),
                ~node,
            )
        if self._place is not None:
            proba = self._judge(self._place)[0]
            return Step("stop", None, (), (), 0.0, self.spent, 0.0, proba, why)
        sensor = self._pending[0]
        return Step(
            "acquire",
            sensor,
            self._pending,
            self._policy.columns_of[sensor],
            self._price(sensor),
            self.spent,
            self._worst_case(),
            self._judge(standing)[0],
            why,
        )

    # state --------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Everything that happened, as plain values for JSON; see `Policy.resume`."""
        names = self._policy.sensors.names
        prices = self._prices
        return {
            "format": "sensortree-session",
            "format_version": 1,
            "model": self._policy.digest,
            "known": {name: list(self._values[name]) for name in self._started_with},
            "limit": self._given_limit,
            "prices": None
            if prices is None
            else {names[j]: float(prices[j]) for j in self._policy.sensors.varying},
            "log": [list(entry) for entry in self._log],
        }

    # the way through the tree -------------------------------------------------------------

    def _restart(self) -> None:
        """Go from the root again, with what is known now."""
        self._started_with = getattr(self, "_started_with", tuple(self._values))
        self._posteriors: dict[int, Array] = {}  # by the identity of the classifier
        self._joined: dict[frozenset[str], Array] = {}
        self._columns: dict[int, Array] = {}  # by the identity of the features
        self._at = 0 if self._policy.tree.n_nodes else ~0
        self._last: tuple[int, float] | None = None
        self._place: int | None = None
        self._pending: tuple[str, ...] = ()
        self._because: Because = "policy"
        self._rerouting_loss = 0.0
        self._go_on()

    def _go_on(self) -> None:
        """Walk on until a sensor is wanted or the end is reached."""
        vertices, readings = self._policy.vertices, self._readings
        while self._place is None:
            vertex = vertices[self._at]
            missing = [name for name in vertex.names if name not in readings]
            if missing and not self._can_reach(self._at):
                self._reroute()
                continue
            if missing:
                self._pending = (
                    (missing[0],)
                    if len(missing) == 1
                    else self._policy.sensors.purchase_order(missing)
                )
                return
            self._pending = ()
            if vertex.decision is None:
                self._place = ~self._at
                return
            score = self._decide(self._at)
            self._last = self._at, score
            child = vertex.positive if score > 0 else vertex.negative
            if self._can_reach(child):
                self._at = child
            else:
                self._reroute()

    def _decide(self, node: int) -> float:
        """Value of a node's decision function."""
        decision = self._policy.decisions[node]
        features = decision.features
        columns = self._columns.get(id(features))
        if columns is None:
            said = self._judge(~node) if decision.needs_posterior else None
            readings = self._known(self._policy.vertices[node].sensors)
            columns = features.columns(readings, said, self._own)
            self._columns[id(features)] = columns
        return float(decision.of(columns)[0])

    def _known(self, subset: frozenset[str]) -> Array:
        """Readings of a subset side by side, (1, width)."""
        if subset not in self._joined:
            blocks = [self._readings[name] for name in self._policy.in_order[subset]]
            if len(blocks) > 1:
                self._joined[subset] = np.concatenate(blocks, axis=1)
            else:
                self._joined[subset] = blocks[0] if blocks else NOTHING
        return self._joined[subset]

    def _judge(self, place: int) -> Array:
        """Posterior of the classifier at a place, (1, n_classes), asked once."""
        classifier = self._policy.classifier_at(place)
        if id(classifier) not in self._posteriors:
            known = self._known(self._policy.places[place])
            n_classes = len(self._policy.classes)
            self._posteriors[id(classifier)] = posterior(classifier, known, n_classes)
        return self._posteriors[id(classifier)]

    def _can_reach(self, child: int) -> bool:
        """Whether some leaf at or below a vertex can be had and afforded."""
        if not self._unavailable and self._limit is None:
            return True
        below = self._policy.vertices[child].leaves_below
        return any(self._reachable(leaf) for leaf in below)

    def _reachable(self, leaf: int) -> bool:
        lacking = self._policy.tree.leaves[leaf].sensors - self._readings.keys()
        if not lacking.isdisjoint(self._unavailable):
            return False
        if self._limit is None:
            return True
        # What is added in another order may differ in the last digit.
        return self.spent + self._way(leaf) <= self._limit * (1 + 1e-12)

    def _reroute(self) -> None:
        """From the last node, take the best reachable leaf below it, or stop there."""
        policy = self._policy
        if self._last is None:
            self._place, self._pending = ~policy.tree.n_nodes, ()
            node, loss = None, 0.0
        else:
            node = self._last[0]
            leaves = range(policy.tree.n_leaves)
            below = policy.tree.path_signs[:, node] != 0
            reachable = [below[k] and self._reachable(k) for k in leaves]
            more = [self._way(k) if reachable[k] else 0.0 for k in leaves]
            place = policy.best_place(
                node, np.array([more]), np.array([reachable], dtype=bool)
            )[0]
            if place < 0:
                self._place, self._pending = int(place), ()
                loss = policy.flow.stop_loss[node]
            else:
                self._at = ~int(place)
                loss = policy.flow.leaf_loss[node, place]
            loss = float(loss - policy.flow.kept_loss[node])
        self._rerouting_loss = loss
        self._because = "unavailable" if self._unavailable else "limit"

    # prices -------------------------------------------------------------------------------

    @property
    def _price_row(self) -> Array | None:
        return None if self._prices is None else self._prices[None, :]

    def _price(self, sensor: str) -> float:
        """Price of one sensor now."""
        return self._memo(("sensor", sensor), lambda: [frozenset({sensor})])

    def _way(self, place: int) -> float:
        """Price of what is still lacking on the way to a place."""
        return self._memo(("place", place), lambda: self._policy.paths[place])

    def _worst_case(self) -> float:
        """Price of the dearest way that may still be taken."""
        below = self._policy.vertices[self._at].leaves_below
        if self._unavailable or self._limit is not None:
            below = tuple(k for k in below if self._reachable(k))
        return max(map(self._way, below))

    def _memo(self, key: Any, path: Callable[[], Iterable[frozenset[str]]]) -> float:
        """Price of a path given what is known; remembered where all pay the same."""
        known = self._known_names
        if self._prices is not None:
            cost = path_cost(path(), self._policy.sensors, self._price_row, known)
            return float(cost[0])
        memo = self._policy.prices_of_ways
        if (key, known) not in memo:
            memo[key, known] = path_cost(path(), self._policy.sensors, None, known)
        return memo[key, known]

    # values -------------------------------------------------------------------------------

    def _index(self, sensor: str) -> int:
        if sensor not in self._policy.columns_of:
            raise SensorError(
                f"{sensor!r} is not a sensor of this policy; its sensors are "
                f"{listed(self._policy.sensors.names)}."
            )
        return self._policy.sensors.index(sensor)

    def _remember(self, sensor: str, values: Any, replace: bool) -> str:
        """Keep a sensor's values; says whether they are new, changed or the same."""
        index = self._index(sensor)
        ordered = in_column_order(sensor, self._policy.columns_of[sensor], values)
        before = self._values.get(sensor)
        if before is not None:
            if same_values(before, ordered):
                return "same"
            if not replace:
                raise SessionError(
                    f"sensor {sensor!r} was told before with other values; pass "
                    f"replace=True if this is a correction."
                )
        reading = self._policy.reader.read_one(index, ordered)
        self._values[sensor], self._readings[sensor] = ordered, reading
        self._known_names = frozenset(self._readings)
        return "new" if before is None else "changed"


def resume_session(policy: DecisionSystem, state: Mapping[str, Any]) -> Session:
    """Bring a session back from its state: what happened is done again, in order."""
    try:
        if state["format"] != "sensortree-session" or state["format_version"] != 1:
            raise SessionError(
                "the state is not that of a session, or of a later version; give what "
                "session.to_dict() returned."
            )
        model, known, log = state["model"], state["known"], state["log"]
        limit, prices = state["limit"], state["prices"]
        entries = [(entry[0], entry[1], *entry[2:]) for entry in log]
    except (KeyError, TypeError, IndexError) as error:
        raise SessionError(
            f"the state of a session lacks {error}; give what session.to_dict() returned."
        ) from error
    if model != policy.digest:
        raise SessionError(
            f"the session was begun with another model (digest {str(model)[:12]}..., this "
            f"one is {policy.digest[:12]}...); resume it with that one."
        )
    session = Session(policy, known, limit, prices)
    for kind, sensor, *rest in entries:
        if kind == "tell" and len(rest) == 2:
            session.tell(sensor, rest[0], bool(rest[1]))
        elif kind == "unavailable" and not rest:
            session.unavailable(sensor)
        else:
            raise SessionError(
                f"the log of a session holds {kind!r}, which is no event."
            )
    return session


def stand(
    policy: DecisionSystem,
    known: Mapping[str, Any],
    unavailable: Iterable[str] = (),
    limit: float | None = None,
    prices: Mapping[str, float] | None = None,
    free: Iterable[str] = (),
) -> Step:
    """Give the step of an example of which this is known; see `Policy.step`."""
    session = Session(policy, None, limit, prices)
    waiting = dict(known)
    free = frozenset(free)
    for name in free & waiting.keys():
        session.tell(name, waiting.pop(name))
    for name in unavailable:
        session.unavailable(name)
    # What the policy would have asked for it has paid for; the rest was had for nothing.
    while (asked := [n for n in session._pending if n in waiting]) and waiting:
        session.tell(asked[0], waiting.pop(asked[0]))
    for name, values in waiting.items():
        session.tell(name, values)
    return session.step


def acquire(
    policy: DecisionSystem,
    oracle: Callable[[str, tuple[str, ...]], Any],
    known: Mapping[str, Any] | None = None,
    limit: float | None = None,
    prices: Mapping[str, float] | None = None,
) -> Decision:
    """Call an oracle for what is bought and nothing else; see `Policy.acquire`."""
    session = Session(policy, known, limit, prices)
    while (step := session.ask()) is not None and step.sensor is not None:
        _take(session, step.sensor, oracle(step.sensor, step.columns))
    return session.decision()


async def acquire_async(
    policy: DecisionSystem,
    oracle: Callable[[str, tuple[str, ...]], Awaitable[Any]],
    known: Mapping[str, Any] | None = None,
    limit: float | None = None,
    prices: Mapping[str, float] | None = None,
) -> Decision:
    """Await an oracle for what is bought and nothing else; see `Policy.acquire_async`."""
    session = Session(policy, known, limit, prices)
    while (step := session.ask()) is not None and step.sensor is not None:
        _take(session, step.sensor, await oracle(step.sensor, step.columns))
    return session.decision()


def _take(session: Session, sensor: str, values: Any) -> None:
    """Tell what an oracle gave; None says that the sensor is unavailable."""
    if values is None:
        session.unavailable(sensor)
    else:
        session.tell(sensor, values)
