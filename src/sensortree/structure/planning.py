"""Plan up to three purchases ahead, on cells of readings.

With Z the one-hot matrix of all cells (n_rows, n_cells) and v_k one of the sums by which
`stopping` tells cells, Z' diag(v_k) Z holds that sum of *every pair* of cells at once. So
the value of "buy s; then, by what it shows, buy t or stop",

    value(s) = price(s) + sum over cells c of s: min(stop(c), min_t  price(t | s, c)
                                          + sum over cells d of t: stop(c, d)),

of all s and t takes a few products of matrices. A third purchase is the same on the rows of
each cell of s. Prices are sums over the rows of a cell: of each row's own price, less what
a discount saves once s is known, and times the cost weight.

A vertex parts its rows into joint cells of all that is known there, and plans anew in
each. Cells that begin with the same purchase are one branch. A tree takes the branches one
after another, that of the largest worth first: a larger one is the smaller grown on.

*What is exact*: two purchases over all pairs of sensors, where there are up to
`PLAN_SENSORS` of them; and the third, where tables are small. *What is a beam*: of more
sensors, vertices look at the `PLAN_SENSORS` that are best by the exact value of two
purchases from the start, with what these want bought next. A third purchase follows as
many of the best firsts as `PLAN_WORK` allows. A sensor that needs others is bought with
them, and judged by its own cells.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from sensortree.constants import (
    PLAN_AT_ONCE,
    PLAN_MIN_ROWS,
    PLAN_ONE_IN,
    PLAN_ROUNDING,
    PLAN_SENSORS,
    PLAN_WORK,
    TINY,
)
from sensortree.structure.algorithm1 import Growth, Subset
from sensortree.structure.branching import Vertex
from sensortree.structure.cells import Stopping, cells_of, joint, stopping_of
from sensortree.structure.losses import SubsetLosses
from sensortree.types import Array, Mask, Rows


class Terms(NamedTuple):
    """What can be bought next, by each sensor in the planner's order."""

    more: list[Subset | None]  # what is then known; None if it may not be bought
    new: Mask  # which sensors are paid for with it, (n_sensors, n_sensors)
    saved: Array  # its discount, (n_sensors,)


class Pairs(NamedTuple):
    """Two purchases ahead, for each of some groups of rows."""

    stop: Array  # (n_groups,)
    # Of buying a sensor first; infinite if it may not be bought, (n_groups, n_sensors).
    value: Array
    price: Array
    single: Array  # stopping in each cell, (n_groups, n_cells)
    then: Rows  # what is best bought second; -1 for nothing, (n_groups, n_cells)


class Plan(NamedTuple):
    """What rows that agree in all that is known lose and pay, all together."""

    stop: float
    value: float
    first: int = -1  # place of the sensor that the best plan begins with; -1 to stop
    price: float = 0.0


class Planner:
    """Tables of cells, and what may be bought at what price.

    Only some `sensors` are looked at. They stand in an order of their own: the cheapest
    first, then by name. Ties go to the first. `codes` are the cell of each reading,
    (n_rows, n_all_sensors); those of `start` are known at the root.
    """

    def __init__(
        self,
        subsets: SubsetLosses,
        cost_weight: float,
        codes: Rows,
        stopping: Stopping,
        start: Subset,
        sensors: Sequence[int],
    ):
        data, market = subsets.data, subsets.market
        costs, names = market.sensors.costs, subsets.names
        self.subsets, self.cost_weight = subsets, cost_weight
        self.codes, self.stopping, self.weight = codes, stopping, data.weight
        self.start = start
        self.sensors = sorted(sensors, key=lambda j: (costs[j], names[j]))
        self.place = {j: at for at, j in enumerate(self.sensors)}
        own = codes[:, self.sensors]
        self.widths = own.max(axis=0) + 1
        self.starts = np.cumsum(self.widths) - self.widths
        self.owner = np.repeat(np.arange(len(self.widths)), self.widths)
        self.hot = np.zeros((len(codes), len(self.owner)))
        np.put_along_axis(self.hot, own + self.starts, 1.0, axis=1)
        self.costs = cost_weight * costs[self.sensors]
        self.own = None
        if market.prices is not None:
            prices = market.prices[:, self.sensors]
            self.own = cost_weight * self.weight[:, None] * prices
        self.simple = market.unbound and not market.sensors.has_groups
        self.least = max(PLAN_MIN_ROWS, float(self.weight.sum()) / PLAN_ONE_IN)
        most = float(self.weight.sum()) * data.largest_loss
        self.rounding = max(PLAN_ROUNDING * most, TINY)
        self._terms: dict[Subset, Terms] = {}

    def terms(self, known: Subset) -> Terms:
        """What can be bought when something is known, found once."""
        if known in self._terms:
            return self._terms[known]
        subsets, n = self.subsets, len(self.sensors)
        more: list[Subset | None] = [None] * n
        new, saved = np.zeros((n, n), dtype=bool), np.zeros(n)
        for at, sensor in enumerate(self.sensors):
            extended = None if sensor in known else subsets.extend(known, sensor)
            if extended is None or not extended - known <= self.place.keys():
                continue
            more[at] = extended
            new[at, [self.place[j] for j in extended - known]] = True
            named = subsets.named(extended), subsets.named(known)
            price = subsets.market.sensors.cost_of(*named)
            saved[at] = self.costs[new[at]].sum() - self.cost_weight * price
        self._terms[known] = Terms(more, new, saved)
        return self._terms[known]

    def after(self, known: Subset, sensor: int) -> Subset:
        """What is known after buying a sensor, given by its place."""
        if self.simple:
            return known | {self.sensors[sensor]}
        more = self.terms(known).more[sensor]
        assert more is not None  # nobody buys what is not to be had
        return more

    def prices(self, known: Subset, paid: Array, weight: Array) -> Array:
        """What buying each sensor costs all rows of cells, (..., n_sensors).

        `paid` is what their rows pay for each alone, (..., n_sensors); weight is (...).
        """
        if self.simple:
            prices = paid.copy()
            gone = [self.place[j] for j in known if j in self.place]
        else:
            terms = self.terms(known)
            prices = paid @ terms.new.T - weight[..., None] * terms.saved
            gone = [at for at, more in enumerate(terms.more) if more is None]
        prices[..., gone] = np.inf
        return prices

    def _second(self, known: Subset, paid: Array, weight: Array, owner: Rows) -> Array:
        """The same in cells of sensors that were bought first, (n_groups, ...)."""
        if self.simple:
            prices = self.prices(known, paid, weight)
            prices[:, owner[:, None] == np.arange(len(self.sensors))] = np.inf
            return prices
        prices = np.full(paid.shape, np.inf)
        for sensor in np.unique(owner).tolist():
            more, at = self.terms(known).more[sensor], owner == sensor
            if more is not None:
                prices[:, at] = self.prices(more, paid[:, at], weight[:, at])
        return prices

    def pairs(self, groups: Sequence[Rows], known: Subset) -> Pairs:
        """Plan two purchases ahead for groups of rows that know the same."""
        sums = [self.stopping.sums[rows] for rows in groups]
        hot = [self.hot[rows] for rows in groups]
        cells = np.stack([s.T @ h for s, h in zip(sums, hot, strict=True)], axis=1)
        weight = np.stack(
            [self.weight[r] @ h for r, h in zip(groups, hot, strict=True)]
        )
        paid = weight[..., None] * self.costs
        if self.own is not None:
            own = [h.T @ self.own[r] for r, h in zip(groups, hot, strict=True)]
            paid = np.stack(own)
        one = self.owner == 0  # the cells of one sensor hold all rows
        stop = self.stopping.risk(cells[..., one].sum(axis=-1))
        price = self.prices(known, paid[:, one].sum(axis=1), weight[:, one].sum(axis=1))
        single = self.stopping.risk(cells)
        best, then = single.copy(), np.full(single.shape, -1)
        for block in self._blocks(len(groups) * len(cells)):
            at = np.flatnonzero((self.owner >= block.start) & (self.owner < block.stop))
            tables = [_products(s, h, at) for s, h in zip(sums, hot, strict=True)]
            risk = self.stopping.risk(np.stack(tables, axis=1))
            value = np.add.reduceat(risk, self.starts, axis=2)
            value += self._second(known, paid[:, at], weight[:, at], self.owner[at])
            least = value.min(axis=2)
            buys = least < single[:, at] - self.rounding
            second = (value <= least[..., None] + self.rounding).argmax(axis=2)
            best[:, at] = np.where(buys, least, single[:, at])
            then[:, at] = np.where(buys, second, -1)
        value = np.add.reduceat(best, self.starts, axis=1) + price
        return Pairs(stop, value, price, single, then)

    def _blocks(self, entries: int) -> list[range]:
        """Sensors in blocks whose tables with all others are filled at once."""
        each = entries * len(self.owner) * self.widths
        block = np.cumsum(each) // max(PLAN_AT_ONCE, int(each.max()))
        ends = np.flatnonzero(np.diff(block, append=block[-1] + 1)) + 1
        return [range(a, b) for a, b in zip([0, *ends[:-1]], ends, strict=True)]

    def plan(self, rows: Rows, known: Subset) -> Plan:
        """Plan up to three purchases for rows that agree in all that is known."""
        pairs = self.pairs([rows], known)
        stop, value, price = float(pairs.stop[0]), pairs.value[0], pairs.price[0]
        paying = np.flatnonzero(price < stop)  # dearer than stopping is, never
        order = paying[np.argsort(self._rounded(value[paying]), kind="stable")]
        for sensor in order[: self._followed(float(self.weight[rows].sum()))]:
            value[sensor] = min(value[sensor], self._third(rows, known, sensor, pairs))
        least = float(value.min())
        if not least < stop - self.rounding:
            return Plan(stop, stop)
        first = int(np.argmax(value <= least + self.rounding))
        return Plan(stop, least, first, float(price[first]))

    def _rounded(self, values: Array) -> Array:
        """Values in which those that should be equal are."""
        return np.round(values / self.rounding)

    def _followed(self, weight: float) -> int:
        """Firsts that a third purchase follows, in a cell of some weight."""
        if weight < 4 * self.least:
            return 0
        entries = self.stopping.sums.shape[1] * len(self.owner) ** 2
        each = entries * len(self.owner) / len(self.starts)
        return int(PLAN_WORK * weight / self.weight.sum() / each)

    def _third(self, rows: Rows, known: Subset, sensor: int, pairs: Pairs) -> float:
        """Value of a first purchase with two more ahead in each of its cells."""
        codes = self.codes[rows, self.sensors[sensor]]
        groups = [rows[codes == c] for c in range(self.widths[sensor])]
        weight = np.array([self.weight[group].sum() for group in groups])
        risk = pairs.single[0, self.owner == sensor]
        # A cell that loses less than any sensor costs stops.
        fixed = self.simple and self.own is None
        goes_on = (weight > 0) & (
            risk > (float(self.costs.min()) * weight if fixed else 0.0)
        )
        value = float(pairs.price[0, sensor]) + float(risk[~goes_on].sum())
        if goes_on.any():
            some = [groups[c] for c in np.flatnonzero(goes_on)]
            more = self.pairs(some, self.after(known, sensor))
            value += float(np.minimum(more.stop, more.value.min(axis=1)).sum())
        return value

    def parts(
        self, parts: Sequence[Rows], sensors: Sequence[int]
    ) -> tuple[list[Rows], Rows]:
        """Joint cells that plan, once some more sensors are known, and what is left.

        Cells of few rows are put together where they agree in these sensors, and then in
        nothing; what is left even so plans nothing, and goes with the others.
        """
        whole, few = list[Rows](), list(parts)
        for by in (sensors, sensors, ()):
            cells = [cell for part in few for cell in joint(self.codes, by, part)]
            whole += [cell for cell in cells if self.weight[cell].sum() >= self.least]
            few = [cell for cell in cells if self.weight[cell].sum() < self.least]
            few = [np.sort(np.concatenate(few))] if few else []
        return whole, few[0] if few else np.empty(0, dtype=np.intp)

    def promising(self) -> list[int]:
        """Sensors that two purchases begin with best, and those that they go on with."""
        pairs = self.pairs([np.arange(len(self.weight))], frozenset())
        kept = set(self.start)
        for sensor in np.argsort(self._rounded(pairs.value[0]), kind="stable"):
            if len(kept) >= PLAN_SENSORS + len(self.start):
                break
            then = pairs.then[0, self.owner == sensor]
            kept |= {self.sensors[at] for at in (sensor, *then[then >= 0])}
        needed = (self.subsets.extend(frozenset(), j) or {j} for j in sorted(kept))
        return sorted(frozenset().union(*needed))


def _products(sums: Array, hot: Array, at: Rows) -> Array:
    """Sums of each pair of cells, of which the first are some, (n_sums, n_at, n_cells)."""
    tables = np.empty((sums.shape[1], len(at), hot.shape[1]))
    for each, table in zip(sums.T, tables, strict=True):
        has = np.flatnonzero(each)
        part, weight = hot[has], each[has, None]
        counts = (weight == 1).all()
        np.matmul(part[:, at].T, part if counts else weight * part, out=table)
    return tables


class Branch(NamedTuple):
    """A purchase of some rows at a vertex, before it is made."""

    vertex: Vertex
    known: Subset  # after it
    added: int  # the sensor that it is made for
    parts: list[Rows]  # rows of each joint cell
    lost: float  # what they lose if they stop, less what they pay


def grow_plan(
    planner: Planner, n_leaves: int, out_of_time: Callable[[], bool] = lambda: False
) -> tuple[Vertex, list[Growth]]:
    """Grow from the root, the branch of the largest worth first, up to some leaves.

    Growth ends with what it has when it is out of time. The loss of a step is the risk if
    nobody bought more; it may rise before it falls.
    """
    rows = np.arange(len(planner.weight))
    root, steps = Vertex(planner.start, rows), list[Growth]()
    queue: list[tuple[float, int, Branch]] = []
    stopping: dict[int, float] = {}  # weight of those who stop at a vertex, by its id
    leaves, number = 1, 0

    def consider(vertex: Vertex, groups: list[Rows], new: Subset) -> float:
        """Plan in each cell, and put branches in the queue; what stopping loses."""
        nonlocal number
        cells, left = planner.parts(groups, sorted(new))
        plans = [planner.plan(cell, vertex.subset) for cell in cells]
        stopping[id(vertex)] = sum(float(planner.weight[cell].sum()) for cell in cells)
        for first in sorted({plan.first for plan in plans} - {-1}):
            chosen = [k for k, plan in enumerate(plans) if plan.first == first]
            branch = Branch(
                vertex,
                planner.after(vertex.subset, first),
                planner.sensors[first],
                [cells[k] for k in chosen],
                sum(plans[k].stop - plans[k].price for k in chosen),
            )
            worth = sum(plans[k].stop - plans[k].value for k in chosen)
            heapq.heappush(queue, (-worth, number, branch))
            number += 1
        untold = planner.stopping.sums[left].sum(axis=0)
        return sum(plan.stop for plan in plans) + float(planner.stopping.risk(untold))

    loss = consider(root, [rows], planner.start)
    # Where all buy on nothing is added to the leaves, but the tree must end.
    while queue and len(steps) < 2 * n_leaves and not out_of_time():
        _, _, branch = heapq.heappop(queue)
        vertex, there = branch.vertex, np.sort(np.concatenate(branch.parts))
        stops = stopping[id(vertex)] - float(planner.weight[there].sum())
        more = int(stops > 0.5 * planner.least)
        if leaves + more > n_leaves:
            break
        stopping[id(vertex)], leaves = stops, leaves + more
        child = Vertex(branch.known, there)
        vertex.children.append(child)
        vertex.stops = bool(more)
        loss += (
            consider(child, branch.parts, branch.known - vertex.subset) - branch.lost
        )
        steps.append(Growth(branch.known, branch.added, loss / planner.weight.sum()))
    return root, steps


def plan_for(subsets: SubsetLosses, cost_weight: float, start: Subset) -> Planner:
    """The planner of a search: all sensors that can be had, or the most promising."""
    data, n_sensors = subsets.data, len(subsets.names)
    given = subsets, cost_weight, cells_of(data), stopping_of(data), start
    others = [j for j in range(n_sensors) if subsets.extend(start, j) is not None]
    planner = Planner(*given, sorted(start.union(others)))
    many = len(planner.sensors) > PLAN_SENSORS
    return Planner(*given, planner.promising()) if many else planner
