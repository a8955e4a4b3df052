"""`Policy`: a fitted decision system, ready to be asked about rows or step by step."""

from __future__ import annotations

import hashlib
import pickle  # only to digest foreign estimators; nothing is ever unpickled
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from typing import Any
from warnings import warn

import numpy as np
from numpy.typing import NDArray

from sensortree.policy.about import About, Baseline
from sensortree.policy.batch import send
from sensortree.policy.classifiers import LeafCalibration
from sensortree.policy.decisions import DecisionFunction
from sensortree.policy.flow import Detours, Flow, stop_leaves
from sensortree.policy.oracles import AsyncOracle, OnError, Oracle
from sensortree.policy.session import Session, resume_session, step_of
from sensortree.policy.steps import Decision
from sensortree.policy.walk import places_of, sum_of_bill
from sensortree.sensors.loss import Loss
from sensortree.sensors.reader import SensorReader
from sensortree.sensors.referral import Referral
from sensortree.sensors.sensor import SensorSet
from sensortree.sensors.table import Table
from sensortree.tree.paths import Path
from sensortree.tree.tree import SensorTree
from sensortree.types import Array, Mask, Rows


@dataclass(frozen=True, eq=False)
class Policy:
    """A fitted decision system: which sensors to buy, when to stop, what to answer.

    A row's sensor is read only when the row has acquired it: nothing else of the row is
    looked at, so other columns may hold anything. Many threads may ask one policy at once.

    Attributes
    ----------
    reader : SensorReader
    tree : SensorTree
    decisions : tuple of DecisionFunction
        One per node (g_j).
    classifiers : mapping of sensor subset to classifier
        One per distinct subset of leaves (f_k) and of nodes, and one for knowing nothing.
        Their classes are positions in `classes`.
    classes : ndarray of shape (n_classes,)
        None of them if answers are numbers.
    flow : Flow
        Where the training examples went.
    loss : Loss
    cost_weight : float
    max_cost : float or None
        No row spends more.
    own_classifiers : mapping of place to classifier
        Of methods whose leaves, or nodes (``~node``), that know the same do not answer the
        same.
    detours : Detours or None
        Detours for examples blocked by an unavailable sensor.
    calibration : tuple of LeafCalibration or None
        Corrects the probabilities of each leaf; None leaves them as the classifiers give
        them.
    baselines : tuple of Baseline or None
        What a report compares the policy with; None if the method has no baselines.
    about : About
        Unit, target, date and held-out score; they change no answer.
    referral : Referral or None
        What it costs to refer an example to a person, and which answers are too unsure
        to be given; None: never refer.
    strict : bool
        Whether values that training never saw are errors rather than warnings.
    sensors : SensorSet
    digest : str
        Hexadecimal digest of everything that its answers depend on.
    """

    reader: SensorReader
    tree: SensorTree
    decisions: tuple[DecisionFunction, ...]
    classifiers: Mapping[frozenset[str], Any]
    classes: NDArray[Any]
    flow: Flow
    loss: Loss = field(default_factory=Loss)
    cost_weight: float = 1.0
    max_cost: float | None = None
    own_classifiers: Mapping[int, Any] = field(default_factory=dict)
    detours: Detours | None = field(default=None, metadata={"digest": "if set"})
    calibration: tuple[LeafCalibration, ...] | None = field(
        default=None, metadata={"digest": "if set"}
    )
    about: About = field(default_factory=About, metadata={"digest": "never"})
    baselines: tuple[Baseline, ...] | None = field(
        default=None, metadata={"digest": "never"}
    )
    referral: Referral | None = field(default=None, metadata={"digest": "if set"})
    strict: bool = field(default=False, metadata={"digest": "never"})

    # what it is made of -------------------------------------------------------------------

    def __repr__(self) -> str:
        return (
            f"Policy({self.answers_words}, {len(self.sensors)} sensors, "
            f"{self.tree.n_leaves} leaves)"
        )

    @property
    def answers_words(self) -> str:
        """What is answered, in words: so many classes, or numbers."""
        return "numbers" if self.loss.numbers else f"{len(self.classes)} classes"

    @property
    def n_outputs(self) -> int:
        """Columns of a leaf's output: probabilities, or a number and its spread."""
        return self.loss.n_outputs(len(self.classes))

    def answers(self, outputs: Array) -> NDArray[Any]:
        """Answers, given the outputs of leaves: classes, or numbers, (n_rows,)."""
        answer = self.loss.answer(outputs)
        return answer if self.loss.numbers else np.asarray(self.classes[answer])

    @property
    def sensors(self) -> SensorSet:
        """The sensors this policy may acquire."""
        return self.reader.sensors

    @cached_property
    def digest(self) -> str:
        """Hexadecimal digest of everything that its answers depend on."""
        return fingerprint(self)

    places = cached_property(places_of)

    @cached_property
    def paths(self) -> tuple[Path, ...]:
        """What is known on the way to each of these places."""
        return tuple(place.path for place in self.places)

    @property
    def root(self) -> int:
        """Place of the tree's root: a node, or the only leaf."""
        return ~0 if self.tree.n_nodes else 0

    def place_name(self, place: int) -> str:
        """Name of a place, in words: a leaf, a node, or the start."""
        if place >= 0:
            return f"leaf {place}"
        return "the start" if ~place == self.tree.n_nodes else f"node {~place}"

    @cached_property
    def stop_leaves(self) -> list[list[int]]:
        """For each node, leaves where rows stop with what its fork knows."""
        return stop_leaves(self.tree)

    @cached_property
    def labels(self) -> tuple[Any, ...]:
        """The classes as plain values, in their order."""
        return tuple(self.classes.tolist())

    @cached_property
    def columns_of(self) -> dict[str, tuple[str, ...]]:
        """Names of the columns that each sensor reads."""
        named = self.sensors.column_names
        return {
            name: tuple(named[c] for c in columns)
            for name, columns in zip(
                self.sensors.names, self.sensors.columns, strict=True
            )
        }

    def price(self, path: Path, known: frozenset[str]) -> float:
        """Price of what a path lacks, where all examples pay the same; worked out once."""
        price = self._prices.get((path, known))
        if price is None:
            price = sum_of_bill(path, self.sensors, None, known)
            self._prices[path, known] = price
        return price

    @cached_property
    def _prices(self) -> dict[tuple[Path, frozenset[str]], float]:
        return {}

    @property
    def around(self) -> dict[str, Policy]:
        """Policy that is followed from where each sensor is missed, if there is one.

        Sessions ask whether a policy *is* one of these: threads that come here at once
        must be given the same, which a cached property does not promise.
        """
        known: dict[str, Policy] | None = vars(self).get("_around")
        if known is None:
            known = vars(self).setdefault("_around", self._detour_policies())
        return known

    def _detour_policies(self) -> dict[str, Policy]:
        if self.detours is None:
            return {}
        known = {**self.classifiers, **self.detours.classifiers}
        return {
            sensor: replace(
                self,
                tree=detour.tree,
                decisions=detour.decisions,
                classifiers=known,
                flow=detour.flow,
                own_classifiers={},
                detours=None,
                calibration=None,
            )
            for sensor, detour in self.detours.around.items()
        }

    # rows ---------------------------------------------------------------------------------

    def apply(self, table: Table) -> Rows:
        """Leaf that each row reaches, (n_rows,); ``~node`` if it must stop at a node."""
        return send(self, table).place

    def acquired(self, table: Table) -> NDArray[np.bool_]:
        """Sensors that each row acquires, (n_rows, n_sensors)."""
        known = np.array([self.sensors.mask(place.sensors) for place in self.places])
        return np.asarray(known[self.apply(table)])

    def acquisition_cost(self, table: Table) -> Array:
        """Price of what each row acquires, (n_rows,)."""
        return send(self, table).cost()

    def predict(self, table: Table) -> NDArray[Any]:
        """Answer of the least expected loss at each row's leaf, (n_rows,)."""
        return self.answers(self.outputs(table))

    def predict_proba(self, table: Table) -> Array:
        """Class probabilities of each row's leaf, (n_rows, n_classes)."""
        return self.outputs(table)

    def predict_spread(self, table: Table) -> Array:
        """Standard deviation expected around each row's answer, (n_rows,)."""
        return np.asarray(self.outputs(table)[:, 1])

    def outputs(self, table: Table) -> Array:
        """Output of each row's leaf, (n_rows, n_outputs)."""
        return send(self, table).posterior()

    def said(self, table: Table) -> Array:
        """Old name of `outputs`."""
        warn("Policy.said is now Policy.outputs.", FutureWarning, stacklevel=2)
        return self.outputs(table)

    def referred(self, table: Table) -> Mask:
        """Whether each row is referred to a person, (n_rows,)."""
        walk = send(self, table)
        return self.hands_over(walk.place, walk.posterior())

    def hands_over(self, place: Rows, posterior: Array) -> Mask:
        """Whether rows that stop at these places, with these probabilities, are referred.

        Parameters
        ----------
        place : ndarray of int of shape (n_rows,)
            Leaves, or other places by their numbers.
        posterior : ndarray of shape (n_rows, n_classes)
        """
        refers = np.array([each.refers for each in self.places])[place]
        if self.referral is None or not self.referral.least_confidence:
            return np.asarray(refers)
        answer = self.loss.answer(posterior)
        confidence = np.take_along_axis(posterior, answer[:, None], axis=1)[:, 0]
        return np.asarray(refers | self.referral.doubts(confidence))

    def hands_over_one(self, place: int, posterior: Array) -> bool:
        """The same of one example, whose probabilities have shape (1, n_classes)."""
        if self.referral is None or self.places[place].refers:
            return self.places[place].refers
        return bool(self.hands_over(np.array([place]), posterior)[0])

    # one example --------------------------------------------------------------------------

    step = step_of
    resume = resume_session

    def session(
        self,
        known: Mapping[str, Any] | None = None,
        limit: float | None = None,
        prices: Mapping[str, float | None] | None = None,
        key: bytes | str | None = None,
        strict: bool | None = None,
    ) -> Session:
        """Begin to examine one example; see `Session`.

        Parameters
        ----------
        known, limit, prices, key, strict
            As in `Session`.
        """
        return Session(self, known, limit, prices, key, strict)

    def acquire(
        self,
        oracle: Oracle,
        known: Mapping[str, Any] | None = None,
        limit: float | None = None,
        prices: Mapping[str, float | None] | None = None,
        *,
        on_error: OnError = "raise",
    ) -> Decision:
        """Examine one example by calling a function for what is bought, and decide.

        Parameters
        ----------
        oracle : callable
            Given a sensor's name and its columns, returns the values; None says that the
            sensor is unavailable.
        known, limit, prices
            As in `Session`.
        on_error : {"raise", "unavailable"}, default="raise"
            What an exception of the oracle does; see `Session.run`. One that is raised
            has the session, with all that was bought, as ``session``.
        """
        return self.session(known, limit, prices).run(oracle, on_error)

    async def acquire_async(
        self,
        oracle: AsyncOracle,
        known: Mapping[str, Any] | None = None,
        limit: float | None = None,
        prices: Mapping[str, float | None] | None = None,
        *,
        on_error: OnError = "raise",
        timeout: float | None = None,
    ) -> Decision:
        """Examine one example by awaiting a function for what is bought, and decide.

        Parameters
        ----------
        oracle, known, limit, prices, on_error
            As in `acquire`; what the oracle returns is awaited.
        timeout : float, default=None
            Seconds that each sensor may take; see `Session.run_async`.
        """
        session = self.session(known, limit, prices)
        return await session.run_async(oracle, on_error, timeout)


def fingerprint(value: Any) -> str:
    """SHA-256 of a value, the same for equal values in any process, as 64 hex digits."""
    digest = hashlib.sha256()
    for piece in _pieces(value):
        digest.update(len(piece).to_bytes(8, "little"))
        digest.update(piece)
    return digest.hexdigest()


def _pieces(value: Any) -> Iterator[bytes]:
    """What a value is made of, as bytes, in a fixed order."""
    if isinstance(value, np.generic):  # a model file has no word for NumPy's types
        value = value.item()
    if is_dataclass(value) and not isinstance(value, type):
        yield type(value).__name__.encode()
        for each in fields(value):
            item = getattr(value, each.name)
            if each.name == "native":  # a quicker copy of what the arrays say
                continue
            counts = each.metadata.get("digest")
            if counts == "never" or (item is None and counts == "if set"):
                continue
            yield from _pieces(item)
    elif isinstance(value, np.ndarray):
        yield repr(value.shape).encode()
        if value.dtype.kind in "biuf":
            kind = {"b": np.bool_, "f": np.float64}.get(value.dtype.kind, np.int64)
            yield np.ascontiguousarray(value, dtype=kind).tobytes()
        else:
            yield from _pieces(value.tolist())
    elif isinstance(value, Mapping):
        items = sorted((list(_pieces(k)), v) for k, v in value.items())
        for key, item in items:
            yield from key
            yield from _pieces(item)
    elif isinstance(value, (frozenset, set)):
        yield from (piece for item in sorted(value) for piece in _pieces(item))
        yield b"set"
    elif isinstance(value, (tuple, list)):
        yield len(value).to_bytes(8, "little")
        for item in value:
            yield from _pieces(item)
    elif value is None or isinstance(value, (bool, int, float, str)):
        yield repr(value).encode()
    else:
        yield pickle.dumps(value, protocol=4)
