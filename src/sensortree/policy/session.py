"""`Session`: asking a policy step by step.

A session knows what it was told and nothing else. *Not acquired* is a sensor that nobody
told; *a value that is missing* is told as NaN or None; *unavailable* is a sensor that
cannot be had, whatever the policy would like.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from sensortree.exceptions import SensorError, SessionError
from sensortree.policy.reasons import Reason
from sensortree.policy.steps import Because, Decision, Step
from sensortree.policy.values import (
    check_limit,
    check_prices,
    in_column_order,
    same_values,
)
from sensortree.policy.walk import Allowance, Evidence
from sensortree.text import listed
from sensortree.types import Array

if TYPE_CHECKING:
    from sensortree.policy.policy import Policy

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
        policy: Policy,
        known: Mapping[str, Any] | None = None,
        limit: float | None = None,
        prices: Mapping[str, float] | None = None,
    ):
        self._policy = policy
        self._limit = limit
        self._prices = check_prices(prices, policy.sensors)
        self._allowance = Allowance(
            policy, check_limit(limit, policy.max_cost), self._prices
        )
        self._values: dict[str, tuple[Any, ...]] = {}
        self._readings: dict[str, Array] = {}
        self._acquired: list[str] = []
        self._log: list[list[Any]] = []
        for sensor, values in (known or {}).items():
            self._remember(sensor, values, replace=False)
        self._started_with = tuple(self._values)
        self._restart()

    @property
    def spent(self) -> float:
        """Price of what was asked for and told so far."""
        return self._allowance.spent

    # asking and telling -------------------------------------------------------------------

    def ask(self) -> Step | None:
        """Give the next step, the same until something is told; None at the end."""
        return None if self._end is not None else self.step

    def tell(self, sensor: str, values: Any, replace: bool = False) -> None:
        """Tell the values of a sensor.

        Parameters
        ----------
        sensor : str
            Asked for or not; one that was not asked for costs nothing.
        values : mapping of column name to value, or sequence in the sensor's column order
            NaN or None is a value that is missing.
        replace : bool, default=False
            Whether other values than were told before are a correction.
        """
        asked = sensor in self._pending
        price = self._allowance.price((frozenset({sensor}),)) if asked else 0.0
        news = self._remember(sensor, values, replace)
        self._log.append(["tell", sensor, list(self._values[sensor]), replace])
        if asked:
            self._allowance.spent += price
            self._acquired.append(sensor)
        if sensor in self._allowance.unavailable:
            self._allowance.unavailable.remove(sensor)
            news = "changed"
        if news == "changed":
            self._restart()
        elif news == "new":
            self._go_on()

    def unavailable(self, sensor: str) -> None:
        """Say that a sensor cannot be had; the session takes the best way without it."""
        self._index(sensor)
        if sensor in self._readings:
            raise SessionError(
                f"sensor {sensor!r} has been told already; what is known cannot be "
                f"unavailable."
            )
        if sensor not in self._allowance.unavailable:
            self._allowance.unavailable.append(sensor)
            self._log.append(["unavailable", sensor])
            self._go_on()

    def decision(self) -> Decision:
        """Give the answer, once the policy has stopped asking."""
        policy, end = self._policy, self._end
        if end is None:
            raise SessionError(
                f"the policy still asks for {self._pending[0]!r}; tell its values, or "
                f"call unavailable({self._pending[0]!r}). What is likely so far is "
                f"session.step.proba."
            )
        proba = self._evidence.posterior(policy.places[end])
        return Decision(
            policy.classes[policy.loss.answer(proba)[0]],
            proba[0],
            self.spent,
            self._allowance.price((frozenset(policy.sensors.names),)),
            tuple(self._acquired),
            end,
            self._because,
            self._rerouting_loss,
        )

    @property
    def step(self) -> Step:
        """The present step, also at the end, where its action is "stop"."""
        places, evidence, why = self._policy.places, self._evidence, None
        if self._node is not None:
            columns = evidence.columns(places[~self._node])
            why = Reason(self._policy, self._node, self._score, columns)
        if self._end is not None:
            proba = evidence.posterior(places[self._end])[0]
            return Step("stop", None, (), (), 0.0, self.spent, 0.0, proba, why)
        sensor = self._pending[0]
        standing = self._policy.tree.n_nodes if self._node is None else self._node
        return Step(
            "acquire",
            sensor,
            self._pending,
            self._policy.columns_of[sensor],
            self._allowance.price((frozenset({sensor}),)),
            self.spent,
            self._allowance.worst_case(places[self._at]),
            evidence.posterior(places[~standing])[0],
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
            "limit": self._limit,
            "prices": None
            if prices is None
            else {names[j]: float(prices[j]) for j in self._policy.sensors.varying},
            "log": [list(entry) for entry in self._log],
        }

    # the way through the tree -------------------------------------------------------------

    def _restart(self) -> None:
        """Go from the root again, with what is known now."""
        own = NOTHING
        if self._prices is not None:
            own = self._prices[None, self._policy.sensors.varying]
        self._evidence = Evidence(self._readings, own)
        self._at = self._policy.root  # the place that it is going to
        self._node: int | None = None  # the last that it has decided at
        self._score = 0.0
        self._end: int | None = None  # the place where it stops
        self._pending: tuple[str, ...] = ()
        self._because: Because = "policy"
        self._rerouting_loss = 0.0
        self._go_on()

    def _go_on(self) -> None:
        """Walk on until a sensor is wanted or the end is reached."""
        policy, readings = self._policy, self._readings
        places, reaches = policy.places, self._allowance.reaches
        while self._end is None:
            place = places[self._at]
            missing = [name for name in place.names if name not in readings]
            if missing and not reaches(place):
                self._reroute()
                continue
            if missing:
                self._pending = (
                    (missing[0],)
                    if len(missing) == 1
                    else policy.sensors.purchase_order(missing)
                )
                return
            self._pending = ()
            if place.decision is None:
                self._end = self._at
                return
            self._node = ~self._at
            self._score = float(self._evidence.score(place)[0])
            child = place.positive if self._score > 0 else place.negative
            if reaches(places[child]):
                self._at = child
            else:
                self._reroute()

    def _reroute(self) -> None:
        """From the last node, take the best reachable leaf below it, or stop there."""
        flow, node = self._policy.flow, self._node
        self._because = "unavailable" if self._allowance.unavailable else "limit"
        if node is None:
            self._end, self._pending = ~self._policy.tree.n_nodes, ()
            self._rerouting_loss = 0.0
            return
        best = self._allowance.best_place(node)
        if best < 0:
            self._end, self._pending = best, ()
            loss = flow.stop_loss[node]
        else:
            self._at = best
            loss = flow.leaf_loss[node, best]
        self._rerouting_loss = float(loss - flow.kept_loss[node])

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
        self._allowance.known = frozenset(self._readings)
        return "new" if before is None else "changed"


def resume_session(policy: Policy, state: Mapping[str, Any]) -> Session:
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
    policy: Policy,
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
    policy: Policy,
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
    policy: Policy,
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
