"""Grow a tree that branches: what a purchase is worth, with what can be bought after it.

At a vertex that knows S, what buying t is worth to an example,

    loss_i(S) - loss_i(S + t) - price(t) + max(0, max_u worth_i(u | S + t)),

is *predicted* from what is known at the vertex, by a regression that leaves the row out.
Losses are Brier scores by one regression of all rows (`GramScreen`), since one sensor
seldom changes the most probable of many classes. The last term is what can be bought well
after t, predicted from what t shows: a sensor that says nothing about the class may tell
where to look. Where nothing pays so, the most promising t are followed one purchase
further. Examples buy what is worth most to them, or stop; as many purchases are made
at a vertex as clearly pay beside each other, and each leads to a vertex of its own.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs, dtrtrs

from sensortree.constants import (
    BRANCH_AHEAD_ROWS,
    BRANCH_BEAM,
    BRANCH_BEAM_ROWS,
    BRANCH_ERRORS,
    BRANCH_GAINING,
    BRANCH_GLANCE_ROWS,
    BRANCH_MIN_ROWS,
    BRANCH_PURCHASES,
    BRANCH_RIDGE,
    BRANCH_SECONDS,
    BRANCH_TELLING,
    BRANCH_THIRDS,
    MOST_LEVERAGE,
)
from sensortree.leaves.standardising import moments
from sensortree.structure.algorithm1 import Growth, Subset
from sensortree.structure.losses import GramScreen
from sensortree.types import Array, Mask, Rows


@dataclass(frozen=True, eq=False)
class Weighed:
    """Purchases that were examined at a vertex, and what they bring its rows.

    `worth` are the gains as can be known in advance; both are (n_rows, n_options).
    """

    options: list[Subset]
    gains: Array
    worth: Array


@dataclass(frozen=True, eq=False)
class GrowthData:
    """What growth learns from, and what may be bought; `extend` is as in `Search`."""

    screen: GramScreen
    # Price of an extended subset when a subset is known, in the unit of the loss: a number,
    # or one for each example.
    price: Callable[[Subset, Subset], Any]
    extend: Callable[[Subset, int], Subset | None]
    weight: Array  # what an example counts, (n_samples,)
    stake: Array  # what it costs to mistake it, (n_samples,)
    out_of_time: Callable[[], bool] = lambda: False
    # What was found at vertices so far, by what is known and who comes by; growth to more
    # leaves finds it again.
    weighed: dict[tuple[Subset, bytes], Weighed | None] = field(default_factory=dict)

    @cached_property
    def telling(self) -> Array:
        """How much more others say beside each sensor than without it, (n_sensors,)."""
        return np.asarray(self.screen.synergies().max(axis=1))

    def purchases(self, known: Subset) -> list[Subset]:
        """What may be known after one more purchase."""
        others = (j for j in range(len(self.screen.columns)) if j not in known)
        extended = (self.extend(known, j) for j in others)
        return list(dict.fromkeys(more for more in extended if more is not None))


@dataclass(eq=False)
class Vertex:
    """A vertex in the making: what is known, who comes by, what is bought, who stops."""

    subset: Subset
    rows: Rows
    children: list[Vertex] = field(default_factory=list)
    stops: bool = True


@dataclass(frozen=True, eq=False)
class Purchases:
    """What purchases lead to, who makes them, and what they are worth together."""

    options: tuple[Subset, ...]
    rows: tuple[Rows, ...]
    worth: float
    stops: bool


def grow_branches(
    data: GrowthData, n_leaves: int, start: Subset
) -> tuple[Vertex, list[Growth]]:
    """Grow from what is known at the start, always where most is gained.

    A vertex with children buys what one of them knows, or stops, if it says so. The loss
    of a step is that of the tree so far, as predicted.
    """
    root = Vertex(start, np.arange(len(data.weight)))
    total = data.weight.sum()
    losses = SubsetView(VertexRows(data, root.rows), start).losses
    loss = float(data.weight @ losses) / total
    steps: list[Growth] = []
    queue: list[tuple[float, int, Vertex, Purchases]] = []
    leaves, number = 1, 0

    def consider(vertex: Vertex) -> None:
        nonlocal number
        purchase = best_purchases(data, vertex)
        if purchase is not None:
            heapq.heappush(queue, (-purchase.worth, number, vertex, purchase))
            number += 1

    consider(root)
    # Where all buy on nothing is added to the leaves, but the tree must end.
    while queue and leaves < n_leaves and len(steps) < 2 * n_leaves:
        if data.out_of_time():
            break
        _, _, vertex, purchase = heapq.heappop(queue)
        more = len(purchase.options) - (not purchase.stops)  # leaves that these add
        if leaves + more > n_leaves:
            continue
        leaves += more
        vertex.stops = purchase.stops
        loss -= purchase.worth / total
        for option, rows in zip(purchase.options, purchase.rows, strict=True):
            child = Vertex(option, rows)
            vertex.children.append(child)
            steps.append(Growth(option, min(option - vertex.subset), loss))
            consider(child)
    return root, steps


def best_purchases(data: GrowthData, vertex: Vertex) -> Purchases | None:
    """The purchases of the largest worth to who comes by; None if none pays."""
    weight = data.weight[vertex.rows]
    if weight.sum() < BRANCH_MIN_ROWS:
        return None
    place = vertex.subset, vertex.rows.tobytes()
    if place not in data.weighed:
        data.weighed[place] = weigh(data, vertex)
    found = data.weighed[place]
    if found is None:
        return None
    picked, groups, worth = cover(found.worth, found.gains, weight)
    if not picked:
        return None
    return Purchases(
        tuple(found.options[k] for k in picked),
        tuple(vertex.rows[group] for group in groups),
        worth,
        bool(weight[~np.any(groups, axis=0)].sum() >= BRANCH_MIN_ROWS),
    )


def weigh(data: GrowthData, vertex: Vertex) -> Weighed | None:
    """What the promising purchases of a vertex bring; None if nothing can be bought."""
    options = data.purchases(vertex.subset)
    if not options:
        return None
    here = VertexRows(data, vertex.rows)
    now = SubsetView(here, vertex.subset)
    promising = here.promising(vertex.subset, options)
    gains = np.column_stack(
        [here.gain(now, option, after) for option, after in promising]
    )
    worth = left_out(now.features, gains, here.weight)
    many = len(vertex.rows) >= BRANCH_BEAM_ROWS
    if many and best_alone(worth, gains, here.weight) is None:
        for k in np.argsort(-(here.weight @ gains), kind="stable")[:BRANCH_BEAM]:
            gains[:, k] = here.gain_further(now, *promising[k])
        worth = left_out(now.features, gains, here.weight)
    return Weighed([option for option, _ in promising], gains, worth)


def cover(
    worth: Array, gains: Array, weight: Array
) -> tuple[list[int], list[Mask], float]:
    """Purchases that clearly pay beside each other, who makes each, and their worth.

    See `Weighed` for worth and gains; weight is (n_rows,).
    """
    each = np.arange(len(worth))

    def made(picked: list[int]) -> tuple[Array, Rows, Mask]:
        """What rows get, which purchase they make, and whether they make one."""
        which = worth[:, picked].argmax(axis=1)
        option = np.asarray(picked)[which]
        buys = worth[each, option] > 0
        return np.where(buys, weight * gains[each, option], 0.0), which, buys

    first = best_alone(worth, gains, weight)
    if first is None:
        return [], [], 0.0
    picked = [first]
    got, which, buys = made(picked)
    while len(picked) < BRANCH_PURCHASES:
        most, found = 0.0, None
        for k in set(range(worth.shape[1])) - set(picked):
            more, chosen, buying = made([*picked, k])
            lead = more - got
            added = float(lead.sum())
            if added <= max(most, BRANCH_ERRORS * float(np.linalg.norm(lead))):
                continue
            groups = np.bincount(chosen[buying], weight[buying], len(picked) + 1)
            if groups.min() >= BRANCH_MIN_ROWS:
                most, found = added, k
        if found is None:
            break
        picked.append(found)
        got, which, buys = made(picked)
    who = [buys & (which == k) for k in range(len(picked))]
    return picked, who, float(got.sum())


def best_alone(worth: Array, gains: Array, weight: Array) -> int | None:
    """The purchase with the largest total gain over rows where it pays; None if none."""
    got = np.where(worth > 0, weight[:, None] * gains, 0.0).sum(axis=0)
    best = int(np.argmax(got))
    pays = got[best] > 0 and weight[worth[:, best] > 0].sum() >= BRANCH_MIN_ROWS
    return best if pays else None


class VertexRows:
    """Rows that come by a vertex, and what subsets of sensors would tell them."""

    def __init__(self, data: GrowthData, rows: Rows):
        self.data, self.screen, self.rows = data, data.screen, rows
        whole = len(rows) == len(data.weight)
        basis = self.screen.basis
        self.basis = basis if whole else np.asfortranarray(basis[rows])
        self.target = self.screen.target[rows]
        self.weight, self.stake = data.weight[rows], data.stake[rows]

    @cached_property
    def spread(self) -> Array:
        """Sum of squares of each term, (n_terms,)."""
        return np.asarray(self.weight @ self.basis**2)

    def glance(self, rows: Rows) -> VertexRows:
        """So few of some rows that guessing is quick."""
        return VertexRows(self.data, rows[:: max(1, len(rows) // BRANCH_GLANCE_ROWS)])

    def most_gaining(
        self, known: Subset, options: list[Subset], number: int
    ) -> list[Subset]:
        """The purchases that are guessed to gain most when a subset is known."""
        if not options:
            return []
        guesses = SubsetView(self, known).guesses(options)
        return [options[k] for k in np.argsort(-guesses, kind="stable")[:number]]

    def prices(self, extended: Sequence[Subset], known: Subset) -> Array:
        """Prices of purchases, (n_extended, 1), or of each row, (n_extended, n_rows)."""
        prices = [np.asarray(self.data.price(more, known)) for more in extended]
        if all(price.ndim == 0 for price in prices):
            return np.array(prices, dtype=float)[:, None]
        n_rows = len(self.data.weight)
        return np.array([np.broadcast_to(price, n_rows)[self.rows] for price in prices])

    def promising(
        self, known: Subset, options: Sequence[Subset]
    ) -> list[tuple[Subset, list[Subset]]]:
        """Options worth examining, and what is best bought after each."""
        glance, data = self.glance(self.rows), self.data
        gains = SubsetView(glance, known).guesses(options)
        telling = np.array([max(data.telling[j] for j in o - known) for o in options])
        chosen = {*np.argsort(-gains, kind="stable")[:BRANCH_GAINING].tolist()}
        chosen |= {*np.argsort(-telling, kind="stable")[:BRANCH_TELLING].tolist()}
        found: list[tuple[Subset, list[Subset]]] = []
        for option in (options[k] for k in sorted(chosen)):
            ahead = len(self.rows) >= BRANCH_AHEAD_ROWS
            seconds = data.purchases(option) if ahead else []
            found.append((option, glance.most_gaining(option, seconds, BRANCH_SECONDS)))
        return found

    def gain(self, now: SubsetView, option: Subset, after: Sequence[Subset]) -> Array:
        """What a purchase brings each row, with the best that can be bought after it."""
        then = SubsetView(self, option)
        return self._alone(now, then) + self.best(then, self.brought(then, after))

    def gain_further(
        self, now: SubsetView, option: Subset, after: Sequence[Subset]
    ) -> Array:
        """As `gain`, where what is bought after it may be followed by more."""
        then = SubsetView(self, option)
        seconds = self.brought(then, after)
        if not after:
            return self._alone(now, then)
        first = left_out(then.features, seconds.T, self.weight).argmax(axis=1)
        followed = [seconds]
        for k, more in enumerate(after):
            who = np.flatnonzero(first == k)
            if self.weight[who].sum() >= BRANCH_MIN_ROWS:
                there, options = SubsetView(self, more), self.data.purchases(more)
                some = self.glance(self.rows[who])
                thirds = some.most_gaining(more, options, BRANCH_THIRDS)
                best = self.best(there, self.brought(there, thirds))
                followed.append(seconds[k : k + 1] + best)
        return self._alone(now, then) + self.best(then, np.vstack(followed))

    def _alone(self, now: SubsetView, then: SubsetView) -> Array:
        """What a purchase brings each row by itself, (n_rows,)."""
        prices = self.prices([then.subset], now.subset)[0]
        return np.asarray(now.losses - then.losses - prices)

    def brought(self, now: SubsetView, extended: Sequence[Subset]) -> Array:
        """What purchases by themselves bring each row, (n_extended, n_rows)."""
        if not extended:
            return np.empty((0, len(self.rows)))
        lower = now.losses - now.losses_with(extended)
        return np.asarray(lower - self.prices(extended, now.subset))

    def best(self, now: SubsetView, gains: Array) -> Array:
        """The best of some gains, as can be predicted, or nothing, (n_rows,)."""
        if not len(gains):
            return np.zeros(len(self.rows))
        predicted = left_out(now.features, gains.T, self.weight)
        return np.asarray(np.maximum(predicted.max(axis=1), 0.0))


class SubsetView:
    """What one subset of sensors tells the rows at a vertex."""

    def __init__(self, here: VertexRows, subset: Subset):
        self.here, self.subset = here, subset
        self.known = here.screen.regress(subset)
        self.basis = here.basis[:, self.known.terms]
        coef = self.known.coef.astype(self.basis.dtype)
        self.fitted = (self.basis @ coef).astype(float)

    @cached_property
    def losses(self) -> Array:
        """Brier scores, times what is at stake.

        That rows were learned from is undone by their mean leverage.
        """
        here, freedom = self.here, self.known.freedom
        leverage = min(freedom / len(here.screen.target), MOST_LEVERAGE)
        left = (here.target - self.fitted) / (1 - leverage)
        return np.asarray(here.stake * np.einsum("ij,ij->i", left, left))

    @cached_property
    def features(self) -> Array:
        """Class scores, how far the largest leads, and the readings."""
        ordered = np.sort(self.fitted, axis=1)
        lead = ordered[:, -1:] - ordered[:, -2:-1]
        readings = self.here.basis[:, self.here.screen.linear_terms(self.subset)]
        return np.hstack([self.fitted, ordered[:, -1:], lead, readings])

    def losses_with(self, extended: Sequence[Subset]) -> Array:
        """Losses of larger subsets, (n_extended, n_rows), by updates of the regression."""
        news = self.here.screen.new_terms(self.subset, extended)
        losses = np.empty((len(extended), len(self.here.rows)))
        for size in {len(new) for new in news}:
            alike = [k for k, new in enumerate(news) if len(new) == size]
            losses[alike] = self._updated(np.array([news[k] for k in alike]))
        return losses

    def _updated(self, new: Rows) -> Array:
        """Losses with each of some sets of as many new terms, (n_sets, size)."""
        screen, known, basis = self.here.screen, self.known, self.here.basis
        (n_sets, size), n_known = new.shape, len(known.terms)
        crossed = screen.gram[known.terms[:, None], new.ravel()]
        solved, _ = dpotrs(known.factor, crossed, lower=True)
        # One set after another: (n_sets, n_known, size)
        crossed, solved = (
            np.asarray(each).reshape(n_known, n_sets, size).transpose(1, 0, 2)
            for each in (crossed, solved)
        )
        back = crossed.transpose(0, 2, 1)
        system = screen.gram[new[:, :, None], new[:, None, :]] - back @ solved
        system[:, np.arange(size), np.arange(size)] += screen.ridge
        inverse = np.linalg.inv(system)
        coef = inverse @ (screen.moment[new] - back @ known.coef)
        spared = screen.ridge * np.trace(inverse, axis1=1, axis2=2)
        kind, n_rows = basis.dtype, len(self.here.rows)
        columns = basis[:, new.ravel()].T.reshape(n_sets, size, n_rows)
        moved = coef.transpose(0, 2, 1).astype(kind) @ columns
        old = (solved @ coef).transpose(0, 2, 1).reshape(-1, n_known)
        moved -= (old.astype(kind) @ self.basis.T).reshape(moved.shape)
        left = (self.here.target - self.fitted).T - moved
        freedom = known.freedom + size - spared
        leverage = np.minimum(freedom / len(screen.target), MOST_LEVERAGE)[:, None]
        squares = np.einsum("kcn,kcn->kn", left, left)
        return np.asarray(self.here.stake * squares / (1 - leverage) ** 2)

    def guesses(self, extended: Sequence[Subset]) -> Array:
        """An optimistic guess of what larger subsets gain here in all, (n_extended,).

        The gain of each new term by itself, were the regression on these rows alone.
        """
        here, screen = self.here, self.here.screen
        news = screen.new_terms(self.subset, extended)
        new = here.basis[:, np.concatenate(news)]
        kind = self.basis.dtype
        weighted = self.basis * here.weight[:, None].astype(kind)
        system = (weighted.T @ self.basis).astype(float)
        ridge = screen.ridge / screen.total * float(here.weight.sum())
        system.flat[:: len(system) + 1] += ridge
        factor, _ = dpotrf(system, lower=True, clean=True)
        left = ((here.target - self.fitted) * here.weight[:, None]).astype(kind)
        crossed, _ = dtrtrs(factor, (weighted.T @ new).astype(float), lower=True)
        own, _ = dtrtrs(factor, (self.basis.T @ left).astype(float), lower=True)
        moment = new.T @ left - crossed.T @ own
        spread = here.spread[np.concatenate(news)]
        spread = np.maximum(spread - np.einsum("ij,ij->j", crossed, crossed), 0) + ridge
        gains = np.einsum("ij,ij->i", moment, moment) / spread
        ends = np.cumsum([0, *map(len, news)])
        return np.asarray(np.add.reduceat(np.r_[gains, 0.0], ends[:-1]))


def left_out(features: Array, targets: Array, weight: Array) -> Array:
    """Predict every target by a ridge regression that has not seen the row."""
    center, scale = moments(features, weight)
    phi = np.hstack([(features - center) / scale, np.ones((len(features), 1))])
    weighted = phi * weight[:, None]
    system = weighted.T @ phi
    system.flat[:: phi.shape[1] + 1] += BRANCH_RIDGE * weight.sum()
    factor, _ = dpotrf(system, lower=True, clean=True)
    half, _ = dtrtrs(factor, phi.T, lower=True)
    squares = weight * np.einsum("ij,ij->j", half, half)
    leverage = np.minimum(squares, MOST_LEVERAGE)[:, None]
    coef, _ = dpotrs(factor, weighted.T @ targets, lower=True)
    return np.asarray((phi @ coef - leverage * targets) / (1 - leverage))
