"""`Population`: a planted problem, of which everything is known.

Sensors show one of a few codes, so what can be known is finite: the best policy follows by
dynamic programming over it, the best fixed set by enumeration, and the risk of a policy is
a sum over all rows. Prices are in units of an error: the cost weight is 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, combinations
from typing import Any

import numpy as np

from sensortree import Sensor

# Rows that a policy is judged on at least, where readings are drawn beside the codes.
DRAWN = 4_096

Known = frozenset[int]
Judged = tuple[Any, Any]


@dataclass(frozen=True, eq=False)
class Shown:
    """A sensor of a planted problem, and what its codes look like in a table.

    Attributes
    ----------
    name : str
    price : float
    columns : sequence of sequence
        A line of readings for each code: numbers, or text.
    jitter : float
        Standard deviation of the noise that is added to numbers; too small to hide codes.
    group : str or None
    fee : float
        Paid once, by the first sensor of the group.
    after : tuple of str
        Sensors that must be known before.
    """

    name: str
    price: float
    columns: Sequence[Sequence[Any]]
    jitter: float = 0.0
    group: str | None = None
    fee: float = 0.0
    after: tuple[str, ...] = ()

    @property
    def width(self) -> int:
        """How many columns it reads."""
        return len(self.columns[0])

    def readings(self, codes: Any, rng: np.random.Generator) -> Any:
        """What rows of these codes show: (n_rows, width)."""
        shown = np.array(self.columns, dtype=object)[codes]
        if self.jitter:
            shown = shown + rng.normal(scale=self.jitter, size=shown.shape)
        return shown


@dataclass(frozen=True, eq=False)
class Population:
    """All that can occur, how often, and what the class then is.

    Attributes
    ----------
    sensors : tuple of Shown
    codes : ndarray of shape (n_states, n_sensors)
        What the sensors show in each state.
    chance : ndarray of shape (n_states,)
        How often a state occurs; the sum is 1.
    classes : ndarray of shape (n_states, n_classes)
        Probability of each class, given the state.
    loss : ndarray of shape (n_classes, n_classes) or None
        What an answer (column) costs if another class is true (row); None: an error is 1.
    n_noise : int
        Further sensors that show 0 or 1 by chance, and tell nothing.
    noise_price : float
        What each of these costs.
    """

    sensors: tuple[Shown, ...]
    codes: Any
    chance: Any
    classes: Any
    loss: Any = None
    n_noise: int = 0
    noise_price: float = 0.02
    _worth: dict[Known, Judged] = field(default_factory=dict, repr=False)

    @property
    def losses(self) -> Any:
        """The loss as a matrix."""
        n_classes = self.classes.shape[1]
        return 1.0 - np.eye(n_classes) if self.loss is None else np.asarray(self.loss)

    # What is known is a set of sensors, and what they show. For each set that may be
    # known, states are grouped by what they show:
    #
    #     stop(group)  = min over answers of   sum of chance * loss
    #     value(group) = min(stop(group), min over sensors t that may be bought of
    #                        chance(group) * price(t) + sum of value(groups that t splits it
    #                        into))
    #
    # and the optimum is the value of the one group of the empty set.

    @cached_property
    def optimum(self) -> float:
        """Risk of the best policy."""
        values: dict[Known, tuple[Any, Any]] = {}
        for known in reversed(list(self._sets())):
            group, stop = self._stopping(known)
            mass = np.bincount(group, self.chance)
            value = stop.copy()
            for bought in self._buyable(known):
                below, worth = values[known | {bought}]
                parent = np.zeros(len(worth), int)
                parent[below] = group
                then = np.bincount(parent, worth, len(value))
                value = np.minimum(value, mass * self.price(bought, known) + then)
            values[known] = group, value
        return float(values[frozenset()][1][0])

    @cached_property
    def fixed(self) -> tuple[float, tuple[str, ...]]:
        """Least risk of buying the same sensors for all, and which these are."""
        risks = {
            known: float(self._stopping(known)[1].sum()) + self.price_of(known)
            for known in self._sets()
        }
        best = min(risks, key=risks.__getitem__)
        return risks[best], tuple(self.sensors[s].name for s in sorted(best))

    def price(self, sensor: int, known: Known) -> float:
        """What a sensor costs where others are known."""
        bought = self.sensors[sensor]
        groups = {self.sensors[s].group for s in known}
        return bought.price + (bought.fee if bought.group not in groups else 0.0)

    def price_of(self, known: Known) -> float:
        """What a set of sensors costs."""
        order = sorted(known)
        return sum(self.price(s, frozenset(order[:i])) for i, s in enumerate(order))

    def _buyable(self, known: Known) -> Iterator[int]:
        """Sensors that may be bought next."""
        names = {self.sensors[s].name for s in known}
        for number, sensor in enumerate(self.sensors):
            if number not in known and names.issuperset(sensor.after):
                yield number

    def _sets(self) -> Iterator[Known]:
        """Sets of sensors that may be known, the smaller ones first."""
        numbers = range(len(self.sensors))
        sets = (combinations(numbers, size) for size in range(len(numbers) + 1))
        for known in map(frozenset, chain.from_iterable(sets)):
            names = {self.sensors[s].name for s in known}
            if all(names.issuperset(self.sensors[s].after) for s in known):
                yield known

    def _stopping(self, known: Known) -> tuple[Any, Any]:
        """The group of each state, and what is lost by stopping in each group."""
        group = np.zeros(len(self.codes), int)
        for sensor in sorted(known):
            column = self.codes[:, sensor]
            _, group = np.unique(
                group * (column.max() + 1) + column, return_inverse=True
            )
        lost = self.chance[:, None] * (self.classes @ self.losses)
        sums = np.zeros((group.max() + 1, lost.shape[1]))
        np.add.at(sums, group, lost)
        return group, sums.min(axis=1)

    def declared(self) -> dict[str, Sensor]:
        """The sensors as the library takes them, the useless ones last."""
        declared, start = {}, 0
        for sensor in self.sensors:
            columns = list(range(start, start + sensor.width))
            terms: dict[str, Any] = {"after": list(sensor.after), "group": sensor.group}
            if sensor.fee:
                terms["fee"] = sensor.fee
            declared[sensor.name] = Sensor(columns, cost=sensor.price, **terms)
            start += sensor.width
        for number in range(self.n_noise):
            noise = Sensor([start + number], cost=self.noise_price)
            declared[f"noise {number}"] = noise
        return declared

    def readings(self, states: Any, rng: np.random.Generator) -> Any:
        """The table that rows in these states show: numbers, or objects with text."""
        codes = self.codes[states]
        blocks = [s.readings(codes[:, j], rng) for j, s in enumerate(self.sensors)]
        blocks.append(rng.integers(0, 2, (len(states), self.n_noise)).astype(object))
        X = np.concatenate(blocks, axis=1)
        text = any(isinstance(value, str) for value in X[0])
        return X if text else X.astype(float)

    def sample(self, n_rows: int, seed: int) -> tuple[Any, Any]:
        """Draw rows to learn from, and their classes."""
        rng = np.random.default_rng(seed)
        states = rng.choice(len(self.chance), size=n_rows, p=self.chance)
        below = self.classes[states].cumsum(axis=1)
        y = (rng.random((n_rows, 1)) * below[:, -1:] > below).sum(axis=1)
        return self.readings(states, rng), y

    def risk(self, policy: Any) -> tuple[float, float]:
        """Risk and mean cost of a fitted model on the whole population.

        Exact, but that jitter and noise are drawn anew, several times for each state.
        """
        chance = self.chance
        drawn = self.n_noise or any(sensor.jitter for sensor in self.sensors)
        times = -(-DRAWN // len(chance)) if drawn else 1
        states = np.repeat(np.arange(len(chance)), times)
        X = self.readings(states, np.random.default_rng(0))
        answers = policy.predict(X).astype(int)
        lost = (self.classes @ self.losses)[states, answers]
        cost = policy.acquisition_cost(X)
        weight = chance[states] / times
        return float(weight @ (lost + cost)), float(weight @ cost)


def independent(
    sensors: Sequence[Shown],
    truth: Callable[..., Any],
    n_classes: int = 2,
    flipped: float = 0.05,
    shares: dict[str, Sequence[float]] | None = None,
    **more: Any,
) -> Population:
    """All combinations of codes of independent sensors, and a class that follows from them.

    Parameters
    ----------
    sensors : sequence of Shown
    truth : callable of codes
        Takes the codes of all combinations, an array for each sensor, and gives the class.
    n_classes : int, default=2
    flipped : float, default=.05
        How often the class is another one, all of them alike.
    shares : dict of str to sequence of float, default=None
        How often a sensor shows each code; all alike by default.
    **more
        `loss`, `n_noise` and `noise_price` of the population.
    """
    sizes = [len(sensor.columns) for sensor in sensors]
    codes = np.indices(sizes).reshape(len(sizes), -1).T
    chance = np.ones(len(codes))
    for j, sensor in enumerate(sensors):
        share = np.asarray((shares or {}).get(sensor.name, np.ones(sizes[j])))
        chance *= (share / share.sum())[codes[:, j]]
    sure = np.eye(n_classes)[np.asarray(truth(*codes.T)).astype(int)]
    classes = (1 - flipped) * sure + flipped * (1 - sure) / (n_classes - 1)
    return Population(tuple(sensors), codes, chance, classes, **more)


def witnesses(
    sensors: Sequence[Shown],
    prior: Sequence[float],
    says: dict[str, Any],
    n_classes: int | None = None,
    of: Callable[[Any], Any] = lambda hidden: hidden,
    **more: Any,
) -> Population:
    """Sensors that tell, each by itself, of something hidden that the class follows from.

    Parameters
    ----------
    sensors : sequence of Shown
    prior : sequence of float
        How often each hidden value occurs.
    says : dict of str to array-like of shape (n_hidden, n_codes)
        How often a sensor shows each code, given what is hidden.
    n_classes : int, default=None
        As many as there are hidden values by default.
    of : callable of hidden values, default=identity
        The class.
    **more
        `loss`, `n_noise` and `noise_price` of the population.
    """
    sizes = [len(sensor.columns) for sensor in sensors]
    codes = np.indices(sizes).reshape(len(sizes), -1).T
    joint = np.tile(np.asarray(prior, float) / np.sum(prior), (len(codes), 1))
    for j, sensor in enumerate(sensors):
        joint *= np.asarray(says[sensor.name], float)[:, codes[:, j]].T
    occurs = joint.sum(axis=1) > 0
    codes, joint = codes[occurs], joint[occurs]
    classes = np.zeros((len(codes), n_classes or len(prior)))
    np.add.at(classes.T, np.asarray(of(np.arange(len(prior)))), joint.T)
    chance = joint.sum(axis=1)
    return Population(
        tuple(sensors), codes, chance / chance.sum(), classes / chance[:, None], **more
    )
