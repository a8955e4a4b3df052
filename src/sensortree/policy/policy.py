"""`Policy`: a fitted decision system, ready to be asked about rows or step by step."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensortree.policy.classifiers import posterior
from sensortree.policy.decisions import DecisionFunction
from sensortree.policy.session import (
    Session,
    acquire,
    acquire_async,
    resume_session,
    stand,
)
from sensortree.policy.steps import Decision, Step
from sensortree.policy.system import DecisionSystem
from sensortree.sensors.table import Table
from sensortree.tree.paths import path_costs
from sensortree.types import Array, Rows


class Policy(DecisionSystem):
    """A fitted decision system: which sensors to buy, when to stop, what to answer.

    A row's sensor is read only when the row has acquired it: nothing else of the row is
    looked at, so other columns may hold anything. Its attributes are those of
    `DecisionSystem`.

    Attributes
    ----------
    sensors : SensorSet
    tree : SensorTree
    classes : ndarray of shape (n_classes,)
    digest : str
        Hexadecimal digest of everything the policy is made of.
    """

    def apply(self, table: Table) -> Rows:
        """Leaf that each row reaches, (n_rows,); ``~node`` if it must stop at a node."""
        return _Walk(self, table).place

    def acquired(self, table: Table) -> NDArray[np.bool_]:
        """Sensors that each row acquires, (n_rows, n_sensors)."""
        known = np.array([self.sensors.mask(subset) for subset in self.places])
        return np.asarray(known[self.apply(table)])

    def acquisition_cost(self, table: Table) -> Array:
        """Price of what each row acquires, (n_rows,)."""
        return _Walk(self, table).cost()

    def predict(self, table: Table) -> NDArray[Any]:
        """Answer of the least expected loss at each row's leaf, (n_rows,)."""
        return np.asarray(self.classes[self.loss.answer(self.predict_proba(table))])

    def predict_proba(self, table: Table) -> Array:
        """Class probabilities of each row's leaf, (n_rows, n_classes)."""
        return _Walk(self, table).posterior()

    def step(
        self,
        known: Mapping[str, Any],
        *,
        unavailable: Iterable[str] = (),
        limit: float | None = None,
        prices: Mapping[str, float] | None = None,
        free: Iterable[str] = (),
    ) -> Step:
        """Say what to do next for one example: a pure function of what is known.

        Parameters
        ----------
        known : mapping of sensor to values
            Values by column name, or in the sensor's column order.
        unavailable : iterable of str, default=()
            Sensors that cannot be had.
        limit : float, default=None
            The most that this example may spend.
        prices : mapping of sensor to float, default=None
            Prices of this example, for sensors whose price differs between examples.
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
        return stand(self, known, unavailable, limit, prices, free)

    def session(
        self,
        known: Mapping[str, Any] | None = None,
        limit: float | None = None,
        prices: Mapping[str, float] | None = None,
    ) -> Session:
        """Begin to examine one example; see `Session`.

        Parameters
        ----------
        known : mapping of sensor to values, default=None
            What is known already, for nothing.
        limit : float, default=None
            The most that this example may spend.
        prices : mapping of sensor to float, default=None
        """
        return Session(self, known, limit, prices)

    def resume(self, state: Mapping[str, Any]) -> Session:
        """Bring back a session from what its `to_dict` gave.

        Parameters
        ----------
        state : mapping
            It holds the digest of its model, and another model refuses it.
        """
        return resume_session(self, state)

    def acquire(
        self,
        oracle: Callable[[str, tuple[str, ...]], Any],
        known: Mapping[str, Any] | None = None,
        limit: float | None = None,
        prices: Mapping[str, float] | None = None,
    ) -> Decision:
        """Examine one example by calling a function for what is bought, and decide.

        Parameters
        ----------
        oracle : callable
            Given a sensor's name and its columns, returns the values; None says that the
            sensor is unavailable.
        known : mapping of sensor to values, default=None
        limit : float, default=None
        prices : mapping of sensor to float, default=None
        """
        return acquire(self, oracle, known, limit, prices)

    async def acquire_async(
        self,
        oracle: Callable[[str, tuple[str, ...]], Awaitable[Any]],
        known: Mapping[str, Any] | None = None,
        limit: float | None = None,
        prices: Mapping[str, float] | None = None,
    ) -> Decision:
        """Examine one example by awaiting a function for what is bought, and decide."""
        return await acquire_async(self, oracle, known, limit, prices)


@dataclass(frozen=True, eq=False)
class _Company:
    """Rows on their way together: who they are, what they know and what follows from it.

    What was computed for what they know is carried on to a vertex that knows the same.
    """

    at: int
    rows: Rows
    known: dict[str, Array]
    readings: Array | None = None
    said: tuple[Any, Array] | None = None
    columns: tuple[Any, Array] | None = None

    def take(self, at: int, chosen: NDArray[np.bool_], same: bool) -> _Company:
        """Some of the rows, on to another vertex, which knows the same or more."""
        everyone = bool(chosen.all())

        def part(values: Any) -> Any:
            return values if everyone or values is None else values[chosen]

        if same and at < 0 and self.said is not None:  # a leaf
            said = self.said[0], part(self.said[1])
            return _Company(at, part(self.rows), {}, part(self.readings), said)
        known = {name: part(values) for name, values in self.known.items()}
        if not same:
            return _Company(at, part(self.rows), known)
        return _Company(
            at,
            part(self.rows),
            known,
            part(self.readings),
            None if self.said is None else (self.said[0], part(self.said[1])),
            None if self.columns is None else (self.columns[0], part(self.columns[1])),
        )


class _Walk:
    """Rows of a table on their way from the root to the places where they stop.

    Attributes
    ----------
    place : ndarray of shape (n_rows,)
        A leaf, or the complement of a node.
    prices : ndarray of shape (n_rows, n_sensors) or None
    """

    def __init__(self, policy: Policy, table: Table):
        self.policy = policy
        self.table = table
        n_rows = table.shape[0]
        self.prices = policy.reader.prices(table)
        varying = policy.sensors.varying
        self._varying = (
            np.empty((n_rows, 0)) if self.prices is None else self.prices[:, varying]
        )
        self.place = np.empty(n_rows, dtype=np.intp)
        self._arrived: list[tuple[int, _Company]] = []
        self._affordable = self._within_cap()
        self._go()

    def _within_cap(self) -> NDArray[np.bool_] | None:
        """Which places each row can afford, (n_rows, n_places); None if all can all."""
        policy = self.policy
        if policy.max_cost is None:
            return None
        costs = path_costs(policy.paths, policy.sensors, self.prices)
        affordable = costs <= policy.max_cost
        if affordable.all():
            return None
        shape = (self.table.shape[0], len(policy.paths))
        return np.asarray(np.broadcast_to(affordable, shape))

    def _go(self) -> None:
        """Send all rows through the tree."""
        policy = self.policy
        root = 0 if policy.tree.n_nodes else ~0
        stack = [self._enter(_Company(root, np.arange(self.table.shape[0]), {}))]
        while stack:
            company = stack.pop()
            if not company.rows.size:
                continue
            vertex = policy.vertices[company.at]
            company = self._acquire(vertex.names, company)
            if vertex.decision is None:
                self._arrive(~company.at, company)
                continue
            company, upward = self._decide(vertex.decision, company)
            goes_on = self._can_go_on(company, upward)
            for child, side in (
                (vertex.positive, upward & goes_on),
                (vertex.negative, ~upward & goes_on),
            ):
                same = policy.vertices[child].sensors == vertex.sensors
                stack.append(company.take(child, side, same))

    def _arrive(self, place: int, company: _Company) -> None:
        self.place[company.rows] = place
        self._arrived.append((place, company))

    def _enter(self, company: _Company) -> _Company:
        """Rows that can afford what is known at the root; others stop before it."""
        if self._affordable is None:
            return company
        n_nodes, n_leaves = self.policy.tree.n_nodes, self.policy.tree.n_leaves
        can = self._affordable[:, -1 if n_nodes else n_leaves - 1]
        if not can.all():
            self._arrive(~n_nodes, company.take(company.at, ~can, same=True))
        return company.take(company.at, can, same=True)

    def _acquire(self, names: tuple[str, ...], company: _Company) -> _Company:
        """Read what these rows do not know yet, and put all they know together."""
        if company.readings is not None:
            return company
        sensors, known = self.policy.sensors, dict(company.known)
        for name in names:
            if name not in known:
                known[name] = self.policy.reader.read(
                    self.table, sensors.index(name), company.rows
                )
        blocks = [known[name] for name in names]
        empty = np.empty((len(company.rows), 0))
        readings = np.concatenate(blocks, axis=1) if blocks else empty
        return replace(company, known=known, readings=readings)

    def _decide(
        self, decision: DecisionFunction, company: _Company
    ) -> tuple[_Company, NDArray[np.bool_]]:
        """Whether g_j is positive for each row, with what was computed for it."""
        features = decision.features
        if company.columns is not None and company.columns[0] is features:
            return company, decision.of(company.columns[1]) > 0
        if decision.needs_posterior:
            company = self._judge(~company.at, company)
        said = company.said[1] if company.said is not None else None
        assert company.readings is not None
        prices = (
            self._varying[company.rows] if self._varying.shape[1] else self._varying
        )
        columns = features.columns(company.readings, said, prices)
        return replace(company, columns=(features, columns)), decision.of(columns) > 0

    def _judge(self, place: int, company: _Company) -> _Company:
        """Ask the classifier at a place, unless it has been asked about these rows."""
        classifier = self.policy.classifier_at(place)
        if company.said is not None and company.said[0] is classifier:
            return company
        assert company.readings is not None
        said = posterior(classifier, company.readings, len(self.policy.classes))
        return replace(company, said=(classifier, said))

    def _can_go_on(
        self, company: _Company, upward: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Whether rows can afford some leaf on the side they chose; others are rerouted."""
        node, rows = company.at, company.rows
        if self._affordable is None:
            return np.ones(len(rows), dtype=bool)
        tree = self.policy.tree
        leaves = self._affordable[rows, : tree.n_leaves]
        above = (leaves & tree.positive_paths[:, node]).any(axis=1)
        below = (leaves & tree.negative_paths[:, node]).any(axis=1)
        goes_on = np.where(upward, above, below)
        stuck = rows[~goes_on]
        if stuck.size:
            prices = None if self.prices is None else self.prices[stuck]
            costs = path_costs(self.policy.paths, self.policy.sensors, prices)
            more = costs[..., : tree.n_leaves] - costs[..., ~node : ~node + 1 or None]
            more = np.broadcast_to(more, (len(stuck), tree.n_leaves))
            best = self.policy.best_place(node, more, leaves[~goes_on])
            for place in np.unique(best).tolist():
                chosen = ~goes_on
                chosen[~goes_on] = best == place
                sent = company.take(node, chosen, same=place == ~node)
                names = self.policy.sensors.in_order(self.policy.places[place])
                self._arrive(place, self._acquire(names, sent))
        return goes_on

    def posterior(self) -> Array:
        """Posterior where each row stops, (n_rows, n_classes)."""
        answers = np.empty((self.table.shape[0], len(self.policy.classes)))
        for place, company in self._arrived:
            if company.readings is None:  # stopped before the root
                company = self._acquire((), company)
            judged = self._judge(place, company)
            assert judged.said is not None
            answers[company.rows] = judged.said[1]
        return answers

    def cost(self) -> Array:
        """Price of each row's way, (n_rows,)."""
        costs = path_costs(self.policy.paths, self.policy.sensors, self.prices)
        if self.prices is None:
            return np.asarray(costs[self.place])
        return np.asarray(costs[np.arange(len(self.place)), self.place])
