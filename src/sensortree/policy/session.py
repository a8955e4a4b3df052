"""`Session`: asking a policy step by step.

A session knows what you tell it and nothing else. A sensor is *not acquired* until you
tell its values; *a missing value* is told as NaN or None; a sensor is *unavailable* if you
say so. The decision depends on what is known, what was paid for it, what is unavailable,
the limit and the prices, but not on the order in which you told them: after each call, the
example goes from the root again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from threading import RLock
from typing import TYPE_CHECKING, Any, Concatenate, NamedTuple, ParamSpec, TypeVar

import numpy as np

from sensortree.exceptions import DataError, SensorTreeError, SessionError
from sensortree.policy import oracles
from sensortree.policy.oracles import LOG
from sensortree.policy.reasons import Reason
from sensortree.policy.session_input import (
    check_amount,
    check_key,
    check_known,
    check_names,
    check_prices,
    in_column_order,
    index_of,
    price_row,
    same_values,
)
from sensortree.policy.state import Event, State, read_state, write_state
from sensortree.policy.steps import Because, Decision, Step
from sensortree.policy.walk import Allowance, Evidence, Place
from sensortree.sensors.seen import Unseen, warn_unseen
from sensortree.types import Array

if TYPE_CHECKING:
    from sensortree.policy.policy import Policy


NOTHING = np.empty((1, 0))

Answer = TypeVar("Answer")
Given = ParamSpec("Given")


def alone(
    method: Callable[Concatenate[Session, Given], Answer],
) -> Callable[Concatenate[Session, Given], Answer]:
    """Refuse a call while another thread is inside one."""

    @wraps(method)
    def guarded(
        session: Session, /, *args: Given.args, **named: Given.kwargs
    ) -> Answer:
        turn = session._turn
        if not turn.acquire(False):  # do not wait
            raise SessionError(
                "another thread is using this session; give every thread a session of "
                "its own, or pass this one on when the other is done with it."
            )
        try:
            return method(session, *args, **named)
        finally:
            turn.release()

    return guarded


class Session:
    """One example being examined: asks for sensors, is told values, ends in a decision.

    It belongs to one thread at a time: a call while another thread is inside one is
    refused. Its policy may be shared.

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
    strict : bool, default=None
        Whether values that training never saw are errors rather than warnings; by
        default as the policy.
    """

    def __init__(
        self,
        policy: Policy,
        known: Mapping[str, Any] | None = None,
        limit: float | None = None,
        prices: Mapping[str, float | None] | None = None,
        key: bytes | str | None = None,
        strict: bool | None = None,
    ):
        self._policy = policy
        self._key = check_key(key)
        self._strict = policy.strict if strict is None else bool(strict)
        self._turn = RLock()
        # What was given, and what happened since, in order; all else follows from these.
        what = "the limit of a session"
        self._limit = None if limit is None else check_amount(limit, what)
        self._prices = check_prices(prices, policy.sensors)
        self._log: list[Event] = []
        self._begin(check_known(known))
        if self._known:
            warn_unseen(self.unseen, self._strict)
        self._log_where("begun with %s", list(self._known))

    def __repr__(self) -> str:
        return f"Session({self._where}, spent {self.spent:g})"

    @property
    def _where(self) -> str:
        """What it wants, or where it has stopped, in words."""
        if self._end is None:
            return f"asks for {self._pending[0]!r}"
        where = self._allowance.route.place_name(self._end)
        around = f" of the detour around {self._around!r}" if self._around else ""
        return f"stopped at {where}{around}"

    def _log_where(self, event: str, *told: Any) -> None:
        """Log what happened and where that has led, without any values."""
        if LOG.isEnabledFor(logging.DEBUG):
            LOG.debug(f"{event}; %s, spent %g", *told, self._where, self.spent)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_turn"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _turn=RLock())

    @property
    def spent(self) -> float:
        """Price of what was asked for and told so far."""
        return self._allowance.spent

    @property
    def unseen(self) -> tuple[Unseen, ...]:
        """What training never saw of what was told."""
        return tuple(one for found in self._unseen.values() for one in found)

    # asking and telling -------------------------------------------------------------------

    def ask(self) -> Step | None:
        """Give the next step, the same until something is told; None at the end."""
        return None if self._end is not None else self.step

    @alone
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
        self._tell(sensor, values, replace, warn_unseen)

    def _tell(
        self,
        sensor: str,
        values: Any,
        replace: bool,
        check: Callable[[list[Unseen], bool], None] | None = None,
    ) -> None:
        """Know the values of a sensor, unless `check` refuses what training never saw."""
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
        reading, unseen = self._read(name, ordered)
        if check is not None:
            check(unseen, self._strict)
        self._log.append(("tell", name, ordered, bool(replace)))
        try:
            self._learn(name, ordered, reading)
        except BaseException:
            self._undo()
            raise
        self._unseen[name] = unseen
        self._log_where("told %r", name)

    @alone
    def unavailable(self, sensor: str, because: str | None = None) -> None:
        """Say that a sensor is unavailable; the session takes the best way without it.

        Parameters
        ----------
        sensor : str
        because : str, default=None
            Why; the decision repeats it.
        """
        if because is not None and not isinstance(because, str):
            raise SessionError(
                f"why a sensor is unavailable must be text, got "
                f"{type(because).__name__}."
            )
        name = self._name(sensor)
        if name in self._readings:
            raise SessionError(
                f"sensor {name!r} has been told already; what is known cannot be "
                f"unavailable."
            )
        if name in self._allowance.unavailable:
            return
        self._log.append(("unavailable", name, *([because] if because else [])))
        try:
            self._allowance.unavailable.append(name)
            self._restart()
        except BaseException:
            self._undo()
            raise
        self._log_where("%r is unavailable", name)

    @alone
    def decision(self) -> Decision:
        """Give the answer, once the policy has stopped asking."""
        policy, end = self._allowance.route, self._end
        if end is None:
            raise SessionError(
                f"the policy still asks for {self._pending[0]!r}; tell its values, or "
                f"call unavailable({self._pending[0]!r}). What is likely so far is "
                f"session.step.proba."
            )
        proba = self._evidence.posterior(policy.places[end])
        return Decision(
            policy.answers(proba)[0],
            proba[0],
            self.spent,
            self._allowance.price((frozenset(policy.sensors.names),)),
            tuple(self._acquired),
            end,
            self._because,
            self._rerouting_loss,
            self._failures(),
            policy.labels,
            self._around,
            policy.hands_over_one(end, proba),
        )

    def _failures(self) -> dict[str, str | None]:
        """Unavailable sensors, each with the reason that was given, if any."""
        reasons = {
            name: because[0] if because else None
            for kind, name, *because in self._log
            if kind == "unavailable"
        }
        return {name: reasons[name] for name in self._allowance.unavailable}

    @property
    @alone
    def step(self) -> Step:
        """The present step, also at the end, where its action is "stop"."""
        places, evidence, why = self._allowance.route.places, self._evidence, None
        classes = self._policy.labels
        standing = self._policy.places[~self._policy.tree.n_nodes]
        if self._last is not None:
            route, node = self._last
            standing = route.places[~node]
            end = self._at if self._end is None else self._end
            why = Reason(
                route,
                node,
                self._score,
                evidence,
                dict(self._values),
                end if route is self._allowance.route else ~node,
                places[end].sensors,
                self._obstacle,
                self._allowance.known,
                self._allowance.prices,
            )
        if self._end is not None:
            proba = evidence.posterior(places[self._end])
            refers = self._allowance.route.hands_over_one(self._end, proba)
            stop = Step(
                "stop", None, (), (), 0.0, self.spent, 0.0, proba[0], why, classes
            )
            return stop._replace(referred=refers)
        sensor = self._pending[0]
        return Step(
            "acquire",
            sensor,
            self._pending,
            self._policy.columns_of[sensor],
            self._allowance.price_of(sensor),
            self._allowance.spent,
            self._allowance.worst_case(places[self._at]),
            evidence.posterior(standing)[0],
            why,
            classes,
        )

    run = oracles.run
    run_async = oracles.run_async

    # state --------------------------------------------------------------------------------

    @alone
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
                values, replace = told
                self._tell(sensor, values, replace)  # as it was taken then
            else:
                self.unavailable(sensor, *told)

    def _undo(self) -> None:
        """Be again what it was before the last event."""
        *log, _ = self._log
        self._log = []
        self._begin(self._known)
        self._replay(log)

    # the way through the tree -------------------------------------------------------------

    def _begin(self, known: Mapping[str, Any]) -> None:
        """Stand before the root, with what is known for free."""
        policy, row = self._policy, price_row(self._prices, self._policy.sensors)
        limits = [x for x in (self._limit, policy.max_cost) if x is not None]
        self._allowance = Allowance(policy, min(limits, default=None), row)
        self._seen = NOTHING if row is None else row[None, policy.sensors.varying]
        self._values: dict[str, tuple[Any, ...]] = {}
        self._readings: dict[str, Array] = {}
        self._unseen: dict[str, list[Unseen]] = {}
        self._acquired: list[str] = []
        for sensor, values in known.items():
            name = self._name(sensor)
            ordered = in_column_order(name, policy.columns_of[name], values)
            self._values[name] = ordered
            self._readings[name], self._unseen[name] = self._read(name, ordered)
        self._known = dict(self._values)
        self._evidence = Evidence(self._readings, self._seen)
        self._allowance.known = frozenset(self._readings)
        self._restart()

    def _restart(self) -> None:
        """Go from the root again, with what is known now."""
        self._allowance.set_out()
        self._at = self._policy.root  # the place that it is going to
        self._last: tuple[Policy, int] | None = None  # where it has decided last
        self._score = 0.0
        self._end: int | None = None  # the place where it stops
        self._pending: tuple[str, ...] = ()
        self._because: Because = "policy"
        self._obstacle: Because = "policy"  # since the last decision
        self._rerouting_loss = 0.0
        self._go_on()

    def _go_on(self) -> None:
        """Walk on until a sensor is wanted or the end is reached."""
        readings, reaches = self._readings, self._allowance.reaches
        while self._end is None:
            route = self._allowance.route
            places = route.places
            place = places[self._at]
            missing = [name for name in place.names if name not in readings]
            if missing and not reaches(place):
                self._reroute(place)
                continue
            if missing:
                one = len(missing) == 1
                self._pending = (*missing,) if one else self._allowance.lacking(place)
                return
            self._pending = ()
            if place.decision is None:
                self._end = self._at
                return
            self._last, self._obstacle = (route, ~self._at), "policy"
            self._allowance.here = place.path
            self._score = float(self._evidence.score(place)[0])
            child = place.positive if self._score > 0 else place.negative
            if reaches(places[child]):
                self._at = child
            else:
                self._reroute(places[child])

    def _reroute(self, wanted: Place) -> None:
        """Take a detour if one is open; else the best that is left of the last node.

        Where the limit forbids what was wanted, the best that it allows is wanted instead.
        """
        allowance, last = self._allowance, self._last
        obstacle = allowance.obstacle(wanted)
        if obstacle == "limit" and last is not None:
            best = allowance.best_place(last[1], allowance.allows)
            if best >= 0 and not allowance.reaches_end(best):
                wanted, obstacle = allowance.route.places[best], "unavailable"
        self._obstacle = obstacle
        self._because = obstacle if self._around is None else "unavailable"
        around = allowance.detour(wanted) if obstacle == "unavailable" else None
        if around is not None:
            allowance.enter(allowance.open.pop(around))
            self._at = allowance.route.root
            self._rerouting_loss = self._loss_of_detour()
        elif last is not None:
            self._take_what_is_left(last[1])
        else:
            self._end = ~self._policy.tree.n_nodes

    def _take_what_is_left(self, node: int) -> None:
        """From a node, take the best reachable leaf below it, or stop."""
        flow = self._allowance.route.flow
        best = self._allowance.best_place(node, self._allowance.reaches_end)
        if best < 0:
            node = self._as_far_as_known(node)
            self._end = ~node
            loss = flow.stop_loss[node]
        else:
            self._at = best
            loss = flow.leaf_loss[node, best]
        more = float(loss - flow.kept_loss[node])
        self._rerouting_loss = self._loss_of_detour() + more

    def _as_far_as_known(self, node: int) -> int:
        """The last node, as decided from a node on, at which more is known, all of it."""
        route = self._allowance.route
        place = route.places[~node]
        while place.decision and place.sensors <= self._allowance.known:
            score = float(self._evidence.score(place)[0])
            if place.sensors > route.places[~node].sensors:
                node = ~place.number
                self._last, self._score = (route, node), score
            place = route.places[place.positive if score > 0 else place.negative]
        return node

    @property
    def _around(self) -> str | None:
        """The sensor on whose detour it is."""
        return self._around_which(self._allowance.route)

    def _around_which(self, route: Policy) -> str | None:
        ways = self._policy.around.items()
        return next((sensor for sensor, way in ways if way is route), None)

    def _loss_of_detour(self) -> float:
        """How much more is lost on the detour that it is on; 0 if it is on none."""
        detours, around = self._policy.detours, self._around
        if detours is None or around is None:
            return 0.0
        detour = detours.around[around]
        return float(detour.flow.total_loss - detour.usual_loss)

    # values -------------------------------------------------------------------------------

    def _name(self, sensor: str) -> str:
        """Name of a sensor, as it was declared."""
        if type(sensor) is str and sensor in self._policy.columns_of:
            return sensor
        sensors = self._policy.sensors
        return sensors.names[index_of(sensor, sensors)]

    def _read(self, name: str, values: tuple[Any, ...]) -> tuple[Array, list[Unseen]]:
        """Reading of a sensor, (1, width), and what training never saw of it."""
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
        corrected, bound = name in self._readings, allowance.bound
        if corrected:
            self._evidence = Evidence(self._readings, self._seen)
        if name in allowance.unavailable:
            allowance.unavailable.remove(name)
        self._values[name], self._readings[name] = values, reading
        allowance.known = frozenset(self._readings)
        if corrected or bound:
            self._restart()
        else:  # nothing has kept it from its way, or will: from the root it would come here
            self._go_on()


def resume_session(
    policy: Policy,
    state: Mapping[str, Any],
    key: bytes | str | None = None,
    strict: bool | None = None,
) -> Session:
    """Bring back a session from what its `to_dict` gave: all happens again, in order.

    Parameters
    ----------
    state : mapping
        It holds the digest of its model, and another model refuses it.
    key : bytes or str, default=None
        The key that the session was begun with: a state that was changed since, or was
        never signed, is refused.
    strict : bool, default=None
        Whether values that training never saw are refused from now on.
    """
    read = read_state(state, check_key(key))
    if read.model != policy.digest:
        raise SessionError(
            f"the session was begun with another model (digest {read.model[:12]}..., this "
            f"one is {policy.digest[:12]}...); resume it with that one."
        )
    session = Session(policy, {}, read.limit, read.prices, key, strict)
    session._begin(read.known)  # accepted then, so no warning again
    session._replay(read.log)
    return session


def step_of(
    policy: Policy,
    known: Mapping[str, Any],
    *,
    unavailable: Iterable[str] = (),
    limit: float | None = None,
    prices: Mapping[str, float | None] | None = None,
    free: Iterable[str] = (),
) -> Step:
    """Say what to do next for one example: a pure function of what is known.

    Parameters
    ----------
    known : mapping of sensor to values
        Values by column name, or in the sensor's column order.
    unavailable : iterable of str, default=()
        Unavailable sensors.
    limit : float, default=None
        The most that this example may spend.
    prices : mapping of sensor to float, default=None
        Prices of this example; see `Session`.
    free : iterable of str, default=()
        Known sensors that were not paid for; known sensors that the policy would not
        have asked for are not counted as spent either.

    Examples
    --------
    >>> import numpy as np
    >>> from sensortree import SensorTreeClassifier
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = X[:, 0] + (np.abs(X[:, 0]) < 0.5) * X[:, 1] > 0
    >>> model = SensorTreeClassifier(cost_weight=0.02, structure="cascade").fit(X, y)
    >>> model.policy_.step({}).sensor
    'x0'
    >>> step = model.policy_.step({"x0": [0.1]})
    >>> step.action, step.sensor, step.spent
    ('acquire', 'x1', 1.0)
    >>> model.policy_.step({"x0": [2.5]}).action
    'stop'
    """
    sensors = policy.sensors
    known = {
        sensors.names[index_of(name, sensors)]: values
        for name, values in check_known(known).items()
    }
    unpaid = check_names(free, "free", sensors)
    given = {name: values for name, values in known.items() if name in unpaid}
    waiting = {name: values for name, values in known.items() if name not in unpaid}
    session = Session(policy, {}, limit, prices)
    session._begin(given)  # one warning for all that training never saw, below
    for name in check_names(unavailable, "unavailable", sensors):
        session.unavailable(name)
    # What the policy would have asked for was paid for; the rest was free.
    while waiting:
        asked = [n for n in session._pending if n in waiting]
        name = asked[0] if asked else sensors.in_order(waiting)[0]
        session._tell(name, waiting.pop(name), replace=False)
    warn_unseen(session.unseen, policy.strict)
    return session.step


class Stand(NamedTuple):
    """Where an example stands."""

    sensor: str | None  # what it asks for next; None where it has stopped
    price: float  # what that costs now
    place: int  # where it has stopped, or last decided
    said: Array  # probabilities, or a number, predicted there, (n_outputs,)
    because: Because  # why it came there
    around: str | None  # the sensor whose detour the place is of
    referred: bool


def retrace(
    policy: Policy,
    free: Mapping[str, tuple[Any, ...]],
    bought: Mapping[str, tuple[Any, ...]],
    unavailable: Mapping[str, str | None],
    prices: Mapping[str, float | None] | None = None,
) -> Stand:
    """Lead an example from the root to where it stands, as its session would be led.

    Values are in column order; `unavailable` says why a sensor is. It does not warn of
    values that training never saw: that was done when they came.
    """
    session = Session(policy, {}, None, prices)
    session._begin(free)
    asks, price = None, 0.0
    while session._end is None:
        name = session._pending[0]
        if name in bought:
            session._tell(name, bought[name], replace=False)
        elif name in unavailable:
            session.unavailable(name, unavailable[name])
        else:
            asks, price = name, session._allowance.price_of(name)
            break
    route, end = session._allowance.route, session._end
    if end is None:
        route, node = session._last or (policy, policy.tree.n_nodes)
        end = ~node
    said = session._evidence.posterior(route.places[end])
    around = session._around_which(route)
    refers = route.hands_over_one(end, said)
    return Stand(asks, price, end, said[0], session._because, around, refers)
