"""`Session`: asking a policy step by step.

A session knows what it was told and nothing else. *Not acquired* is a sensor that nobody
told; *a value that is missing* is told as NaN or None; *unavailable* is a sensor that
cannot be had, whatever the policy would like.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from sensortree.exceptions import DataError, SensorTreeError, SessionError
from sensortree.policy.reasons import Reason
from sensortree.policy.state import Event, State, check_key, read_state, write_state
from sensortree.policy.steps import Because, Decision, Step
from sensortree.policy.values import (
    check_known,
    check_limit,
    check_names,
    check_prices,
    in_column_order,
    index_of,
    least_limit,
    price_row,
    same_values,
)
from sensortree.policy.walk import Allowance, Evidence, Place
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
        Prices of this example, of any sensors; None or NaN is the sensor's own price. A
        sensor whose price differs between examples must be named. Of one whose price is
        a column it is what the column would hold, without the fee.
    key : bytes or str, default=None
        Signs what `to_dict` gives; at least 16 bytes.
    """

    def __init__(
        self,
        policy: Policy,
        known: Mapping[str, Any] | None = None,
        limit: float | None = None,
        prices: Mapping[str, float | None] | None = None,
        key: bytes | str | None = None,
    ):
        self._policy = policy
        self._key = check_key(key)
        # What was given, and what happened since, in order; all else follows from these.
        self._limit = check_limit(limit)
        self._prices = check_prices(prices, policy.sensors)
        self._log: list[Event] = []
        self._begin(check_known(known))
        self._known = dict(self._values)

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
        name = self._name(sensor)
        ordered = in_column_order(name, self._policy.columns_of[name], values)
        before = self._values.get(name)
        if before is not None:
            if same_values(before, ordered):
                return
            if not replace:
                raise SessionError(
                    f"sensor {name!r} was told before with other values; pass "
                    f"replace=True if this is a correction."
                )
        reading = self._read(name, ordered)
        self._log.append(("tell", name, ordered, bool(replace)))
        try:
            self._learn(name, ordered, reading)
        except BaseException:
            self._undo()
            raise

    def unavailable(self, sensor: str) -> None:
        """Say that a sensor cannot be had; the session takes the best way without it."""
        name = self._name(sensor)
        if name in self._readings:
            raise SessionError(
                f"sensor {name!r} has been told already; what is known cannot be "
                f"unavailable."
            )
        if name in self._allowance.unavailable:
            return
        self._log.append(("unavailable", name))
        try:
            self._allowance.unavailable.append(name)
            self._go_on()
        except BaseException:
            self._undo()
            raise

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
            why = Reason(
                self._policy,
                self._node,
                self._score,
                evidence,
                dict(self._values),
                self._at if self._end is None else self._end,
                self._because,
                self._allowance.known,
                self._allowance.prices,
            )
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
            self._allowance.price_of(sensor),
            self._allowance.spent,
            self._allowance.worst_case(places[self._at]),
            evidence.posterior(places[~standing])[0],
            why,
        )

    # state --------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Everything that happened, as plain values for JSON; see `Policy.resume`.

        It is signed if the session has a key. Without one, whoever holds it can change it.
        """
        state = State(
            self._policy.digest,
            self._known,
            self._limit,
            self._prices,
            tuple(self._log),
        )
        return write_state(state, self._key)

    def _replay(self, log: Iterable[Event]) -> None:
        """Let everything happen again, in order."""
        for kind, sensor, *told in log:
            if kind == "tell":
                self.tell(sensor, *told)
            else:
                self.unavailable(sensor)

    def _undo(self) -> None:
        """Be again what it was before the last event."""
        *log, _ = self._log
        self._log = []
        self._begin(self._known)
        self._replay(log)

    # the way through the tree -------------------------------------------------------------

    def _begin(self, known: Mapping[str, Any]) -> None:
        """Stand before the root, with what is known for nothing."""
        policy, row = self._policy, price_row(self._prices, self._policy.sensors)
        self._allowance = Allowance(
            policy, least_limit(self._limit, policy.max_cost), row
        )
        self._seen = NOTHING if row is None else row[None, policy.sensors.varying]
        self._values: dict[str, tuple[Any, ...]] = {}
        self._readings: dict[str, Array] = {}
        self._acquired: list[str] = []
        for sensor, values in known.items():
            name = self._name(sensor)
            ordered = in_column_order(name, policy.columns_of[name], values)
            self._values[name], self._readings[name] = (
                ordered,
                self._read(name, ordered),
            )
        self._allowance.known = frozenset(self._readings)
        self._restart()

    def _restart(self) -> None:
        """Go from the root again, with what is known now."""
        self._evidence = Evidence(self._readings, self._seen)
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
                self._reroute(place)
                continue
            if missing:
                self._pending = (
                    (missing[0],)
                    if len(missing) == 1
                    else self._allowance.lacking(place)
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
                self._reroute(places[child])

    def _reroute(self, wanted: Place) -> None:
        """From the last node, take the best reachable leaf below it, or stop there."""
        flow, node = self._policy.flow, self._node
        self._because = self._allowance.obstacle(wanted)
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

    def _name(self, sensor: str) -> str:
        """Name of a sensor, as it was declared."""
        if type(sensor) is str and sensor in self._policy.columns_of:
            return sensor
        sensors = self._policy.sensors
        return sensors.names[index_of(sensor, sensors)]

    def _read(self, name: str, values: tuple[Any, ...]) -> Array:
        """Reading of a sensor, (1, width)."""
        reader = self._policy.reader
        try:
            return reader.read_one(reader.sensors.index(name), values)
        except SensorTreeError:
            raise
        except Exception as error:  # a transformer may raise anything
            raise DataError(
                f"sensor {name!r} cannot read what it was told "
                f"({type(error).__name__}: {error}); tell values like those it was fitted "
                f"on."
            ) from error

    def _learn(self, name: str, values: tuple[Any, ...], reading: Array) -> None:
        """Know the values of a sensor from now on, and pay for it if it was asked for."""
        allowance = self._allowance
        if name in self._pending:
            allowance.pay(name)
            self._acquired.append(name)
        otherwise = name in self._readings or name in allowance.unavailable
        self._values[name], self._readings[name] = values, reading
        allowance.known = frozenset(self._readings)
        if otherwise:
            if name in allowance.unavailable:
                allowance.unavailable.remove(name)
            self._restart()
        else:
            self._go_on()


def resume_session(
    policy: Policy, state: Mapping[str, Any], key: bytes | str | None = None
) -> Session:
    """Bring a session back from its state: what happened is done again, in order."""
    read = read_state(state, check_key(key))
    if read.model != policy.digest:
        raise SessionError(
            f"the session was begun with another model (digest {read.model[:12]}..., this "
            f"one is {policy.digest[:12]}...); resume it with that one."
        )
    session = Session(policy, read.known, read.limit, read.prices, key)
    session._replay(read.log)
    return session


def stand(
    policy: Policy,
    known: Mapping[str, Any],
    unavailable: Iterable[str] = (),
    limit: float | None = None,
    prices: Mapping[str, float | None] | None = None,
    free: Iterable[str] = (),
) -> Step:
    """Give the step of an example of which this is known; see `Policy.step`."""
    sensors, known = policy.sensors, check_known(known)
    unpaid = check_names(free, "free", sensors)
    given = {name: values for name, values in known.items() if name in unpaid}
    waiting = {name: values for name, values in known.items() if name not in unpaid}
    session = Session(policy, given, limit, prices)
    for name in check_names(unavailable, "unavailable", sensors):
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
    prices: Mapping[str, float | None] | None = None,
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
    prices: Mapping[str, float | None] | None = None,
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
