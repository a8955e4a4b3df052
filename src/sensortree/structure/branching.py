"""Grow a tree that branches: what a purchase is worth, with what can be bought after it.

At a vertex that knows S, what buying t is worth to an example,

    loss_i(S) - loss_i(S + t) - price(t) + max(0, max_u worth_i(u | S + t)),

is *predicted* from what is known at the vertex. Losses are Brier scores, since one sensor
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

from sensortree.leaves.standardising import moments
from sensortree.structure.algorithm1 import Growth, Subset
from sensortree.structure.gram import MOST, GramScreen
from sensortree.types import Array, Mask, Rows

# Purchases that are looked at closely at a vertex: those that gain most by themselves, and
# those that others gain most beside; purchases looked at after each of them.
GAINING, TELLING, AFTER = 24, 8, 10
# Of them, those that are followed one purchase further where none pays, but rows are at
# least so many; purchases looked at then.
BEAM, FURTHER, THIRD = 8, 500, 3
# Rows that are enough to see which they are, and rows below which nothing is looked at
# after a purchase.
GLANCED, AHEAD = 1_000, 150
# Purchases of one vertex at most.
OPTIONS = 12
# Rows, by weight, that a purchase must be for.
MIN_ROWS = 25
# Leaves at which it is first asked whether growth goes on; then at twice as many.
FIRST_ASKED = 8
# Ridge penalty of predictions, as a share of the number of rows.
RIDGE = 1e-2


@dataclass(frozen=True)
class Breadth:
    """What one more purchase must add to those of a vertex: the less, the wider the tree.

    Attributes
    ----------
    errors : float
        Standard errors of what it adds.
    share : float
        Share of their worth. Where each of many states asks for a sensor of its own, what
        one of them adds is little.
    """

    errors: float
    share: float = 0.0


WIDE = Breadth(4.0)


@dataclass(frozen=True, eq=False)
class Shop:
    """What growth learns from, and what may be bought.

    Attributes
    ----------
    screen : GramScreen
        What subsets of sensors could predict.
    n_sensors : int
    price : callable
        Price of an extended subset when a subset is known, in the unit of the loss: a
        number, or one for each example.
    extend : callable
        What is known after buying one more sensor, with what it needs; None if it may not
        be bought.
    weight : ndarray of shape (n_samples,)
    stake : ndarray of shape (n_samples,)
        What it costs to mistake an example.
    out_of_time : callable
        Whether growth must end with what it has.
    breadth : Breadth
        What one more purchase must add to the worth of a vertex.
    weighed : dict
        What was found at vertices so far, by what is known and who comes by; shops that
        differ in nothing but `breadth` may have it in common.
    """

    screen: GramScreen
    n_sensors: int
    price: Callable[[Subset, Subset], Any]
    extend: Callable[[Subset, int], Subset | None]
    weight: Array
    stake: Array
    out_of_time: Callable[[], bool] = lambda: False
    breadth: Breadth = WIDE
    weighed: dict[tuple[Subset, bytes], Weighed | None] = field(default_factory=dict)

    @cached_property
    def telling(self) -> Array:
        """How much more others say beside each sensor than without it, (n_sensors,)."""
        return np.asarray(self.screen.synergies().max(axis=1))

    def purchases(self, known: Subset) -> list[Subset]:
        """What may be known after one more purchase."""
        others = (j for j in range(self.n_sensors) if j not in known)
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
class Weighed:
    """Purchases that were looked at closely at a vertex, and what they bring its rows.

    Attributes
    ----------
    options : list of n_options frozensets
    gains : ndarray of shape (n_rows, n_options)
    worth : ndarray of shape (n_rows, n_options)
        The gains as can be known in advance.
    """

    options: list[Subset]
    gains: Array
    worth: Array


@dataclass(frozen=True, eq=False)
class Purchases:
    """What purchases lead to, who makes them, and what they are worth together."""

    options: tuple[Subset, ...]
    rows: tuple[Rows, ...]
    worth: float
    stops: bool

    @property
    def n_leaves(self) -> int:
        """Leaves that they add to the tree."""
        return len(self.options) - (not self.stops)


def grow_branches(
    shop: Shop,
    n_leaves: int,
    start: Subset,
    goes_on: Callable[[Vertex], bool] = lambda root: True,
) -> tuple[Vertex, list[Growth]]:
    """Grow from the root, always where most is gained, up to a number of leaves.

    Parameters
    ----------
    shop : Shop
    n_leaves : int
    start : frozenset of int
        Sensors known at the root.
    goes_on : callable
        Whether the tree so far is worth growing, asked whenever it has doubled.

    Returns
    -------
    root : Vertex
        A vertex with children buys what one of them knows, or stops, if it says so.
    steps : list of Growth
        The loss is that of the tree so far, as predicted.
    """
    root = Vertex(start, np.arange(len(shop.weight)))
    total = shop.weight.sum()
    loss = float(shop.weight @ Here(shop, root.rows).look(start).losses) / total
    steps: list[Growth] = []
    queue: list[tuple[float, int, Vertex, Purchases]] = []
    leaves, number = 1, 0

    def consider(vertex: Vertex) -> None:
        nonlocal number
        purchase = best_purchases(shop, vertex)
        if purchase is not None:
            heapq.heappush(queue, (-purchase.worth, number, vertex, purchase))
            number += 1

    consider(root)
    asked = FIRST_ASKED
    # Where all buy on nothing is added to the leaves, but the tree must end.
    while queue and leaves < n_leaves and len(steps) < 2 * n_leaves:
        if shop.out_of_time():
            break
        if leaves >= asked:
            asked *= 2
            if not goes_on(root):
                break
        _, _, vertex, purchase = heapq.heappop(queue)
        if leaves + purchase.n_leaves > n_leaves:
            continue
        leaves += purchase.n_leaves
        vertex.stops = purchase.stops
        loss -= purchase.worth / total
        for option, rows in zip(purchase.options, purchase.rows, strict=True):
            child = Vertex(option, rows)
            vertex.children.append(child)
            steps.append(Growth(option, min(option - vertex.subset), loss))
            consider(child)
    return root, steps


def best_purchases(shop: Shop, vertex: Vertex) -> Purchases | None:
    """The purchases of the largest worth to who comes by; None if none pays."""
    weight = shop.weight[vertex.rows]
    if weight.sum() < MIN_ROWS:
        return None
    place = vertex.subset, vertex.rows.tobytes()
    if place not in shop.weighed:
        shop.weighed[place] = weigh(shop, vertex)
    found = shop.weighed[place]
    if found is None:
        return None
    picked, groups, worth = cover(found.worth, found.gains, weight, shop.breadth)
    if not picked:
        return None
    return Purchases(
        tuple(found.options[k] for k in picked),
        tuple(vertex.rows[group] for group in groups),
        worth,
        bool(weight[~np.any(groups, axis=0)].sum() >= MIN_ROWS),
    )


def weigh(shop: Shop, vertex: Vertex) -> Weighed | None:
    """What the promising purchases of a vertex bring; None if nothing can be bought."""
    options = shop.purchases(vertex.subset)
    if not options:
        return None
    here = Here(shop, vertex.rows)
    now = here.look(vertex.subset)
    promising = here.promising(vertex.subset, options)
    gains = np.column_stack(
        [here.gain(now, option, after) for option, after in promising]
    )
    worth = left_out(now.features, gains, here.weight)
    if len(vertex.rows) >= FURTHER and best_alone(worth, gains, here.weight) is None:
        for k in np.argsort(-(here.weight @ gains), kind="stable")[:BEAM]:
            gains[:, k] = here.gain_further(now, *promising[k])
        worth = left_out(now.features, gains, here.weight)
    return Weighed([option for option, _ in promising], gains, worth)


class Here:
    """Rows that come by a vertex, and what subsets of sensors would tell them.

    Parameters
    ----------
    shop : Shop
    rows : ndarray of shape (n_rows,)
    """

    def __init__(self, shop: Shop, rows: Rows):
        self.shop, self.screen, self.rows = shop, shop.screen, rows
        whole = len(rows) == len(shop.weight)
        basis = self.screen.basis
        self.basis = basis if whole else np.asfortranarray(basis[rows])
        self.target = self.screen.target[rows]
        self.weight, self.stake = shop.weight[rows], shop.stake[rows]

    @cached_property
    def spread(self) -> Array:
        """Sum of squares of each term, (n_terms,)."""
        return np.asarray(self.weight @ self.basis**2)

    def look(self, subset: Subset) -> Look:
        """What a subset tells these rows."""
        return Look(self, subset)

    def prices(self, extended: Sequence[Subset], known: Subset) -> Array:
        """Prices of purchases, (n_extended, 1), or of each row, (n_extended, n_rows)."""
        prices = [np.asarray(self.shop.price(more, known)) for more in extended]
        if all(price.ndim == 0 for price in prices):
            return np.array(prices, dtype=float)[:, None]
        n_rows = len(self.shop.weight)
        return np.array([np.broadcast_to(price, n_rows)[self.rows] for price in prices])

    def promising(
        self, known: Subset, options: Sequence[Subset]
    ) -> list[tuple[Subset, list[Subset]]]:
        """Options worth a closer look, and what is best bought after each."""
        shop, step = self.shop, max(1, len(self.rows) // GLANCED)
        glance = Here(shop, self.rows[::step])
        gains = glance.look(known).guesses(options)
        telling = [max(shop.telling[j] for j in more - known) for more in options]
        chosen = {*np.argsort(-gains, kind="stable")[:GAINING].tolist()}
        chosen |= {*np.argsort(-np.array(telling), kind="stable")[:TELLING].tolist()}
        found: list[tuple[Subset, list[Subset]]] = []
        for option in (options[k] for k in sorted(chosen)):
            seconds = shop.purchases(option) if len(self.rows) >= AHEAD else []
            if seconds:
                guesses = glance.look(option).guesses(seconds)
                best = np.argsort(-guesses, kind="stable")[:AFTER]
                seconds = [seconds[j] for j in best]
            found.append((option, seconds))
        return found

    def gain(self, now: Look, option: Subset, after: Sequence[Subset]) -> Array:
        """What a purchase brings each row, with the best that can be bought after it."""
        then = self.look(option)
        gain = now.losses - then.losses - self.prices([option], now.subset)[0]
        return np.asarray(gain + self.best(then, self.brought(then, after)))

    def gain_further(self, now: Look, option: Subset, after: Sequence[Subset]) -> Array:
        """As `gain`, where what is bought after it may be followed by more."""
        then = self.look(option)
        gain = now.losses - then.losses - self.prices([option], now.subset)[0]
        seconds = self.brought(then, after)
        if not after:
            return np.asarray(gain)
        first = left_out(then.features, seconds.T, self.weight).argmax(axis=1)
        followed = [seconds]
        for k, more in enumerate(after):
            who = np.flatnonzero(first == k)
            if self.weight[who].sum() >= MIN_ROWS:
                there = self.look(more)
                thirds = self.brought(there, self.thirds(more, who))
                followed.append(seconds[k : k + 1] + self.best(there, thirds))
        return np.asarray(gain + self.best(then, np.vstack(followed)))

    def thirds(self, known: Subset, who: Rows) -> list[Subset]:
        """What is best bought when a subset is known, for some of the rows."""
        options = self.shop.purchases(known)
        if not options:
            return []
        rows = self.rows[who]
        glance = Here(self.shop, rows[:: max(1, len(rows) // GLANCED)])
        guesses = glance.look(known).guesses(options)
        return [options[j] for j in np.argsort(-guesses, kind="stable")[:THIRD]]

    def brought(self, now: Look, extended: Sequence[Subset]) -> Array:
        """What purchases by themselves bring each row, (n_extended, n_rows)."""
        if not extended:
            return np.empty((0, len(self.rows)))
        lower = now.losses - now.losses_with(extended)
        return np.asarray(lower - self.prices(extended, now.subset))

    def best(self, now: Look, gains: Array) -> Array:
        """The best of some gains, as can be predicted, or nothing, (n_rows,)."""
        if not len(gains):
            return np.zeros(len(self.rows))
        predicted = left_out(now.features, gains.T, self.weight)
        return np.asarray(np.maximum(predicted.max(axis=1), 0.0))


class Look:
    """What one subset of sensors tells the rows at a vertex.

    Parameters
    ----------
    here : Here
    subset : frozenset of int
    """

    def __init__(self, here: Here, subset: Subset):
        self.here, self.subset = here, subset
        self.known = here.screen.regress(subset)
        self.basis = here.basis[:, self.known.terms]
        self.fitted = (self.basis @ self.known.coef.astype(self.basis.dtype)).astype(
            float
        )

    @cached_property
    def losses(self) -> Array:
        """Brier scores, times what is at stake."""
        return self._losses(self.fitted, self.known.freedom)

    @cached_property
    def features(self) -> Array:
        """Class scores, how far the largest leads, and the readings."""
        ordered = np.sort(self.fitted, axis=1)
        lead = ordered[:, -1:] - ordered[:, -2:-1]
        readings = self.here.basis[:, self.here.screen.linear_terms(self.subset)]
        return np.hstack([self.fitted, ordered[:, -1:], lead, readings])

    def losses_without_products(self) -> Array:
        """Losses of the same sensors, were there no products of their readings."""
        screen = self.here.screen
        linear = screen.regress_on(np.r_[0, screen.linear_terms(self.subset)])
        basis = self.here.basis[:, linear.terms]
        fitted = (basis @ linear.coef.astype(basis.dtype)).astype(float)
        return self._losses(fitted, linear.freedom)

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
        leverage = np.minimum(freedom / len(screen.target), MOST)[:, None]
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

    def _losses(self, fitted: Array, freedom: float) -> Array:
        """That rows were learned from is undone by their mean leverage."""
        leverage = min(freedom / len(self.here.screen.target), MOST)
        left = (self.here.target - fitted) / (1 - leverage)
        return np.asarray(self.here.stake * np.einsum("ij,ij->i", left, left))


def cover(
    worth: Array, gains: Array, weight: Array, breadth: Breadth = WIDE
) -> tuple[list[int], list[Mask], float]:
    """Purchases that clearly pay beside each other, who makes each, and their worth.

    Parameters
    ----------
    worth : ndarray of shape (n_rows, n_options)
        What each purchase is worth to a row, as can be known in advance.
    gains : ndarray of shape (n_rows, n_options)
        What it brings.
    weight : ndarray of shape (n_rows,)
    breadth : Breadth
        What one more must add to their worth.
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
    while len(picked) < OPTIONS:
        most, found = 0.0, None
        for k in set(range(worth.shape[1])) - set(picked):
            more, chosen, buying = made([*picked, k])
            lead = more - got
            added = float(lead.sum())
            least = max(
                breadth.share * got.sum(), breadth.errors * np.linalg.norm(lead)
            )
            if added <= max(most, least):
                continue
            groups = np.bincount(chosen[buying], weight[buying], len(picked) + 1)
            if groups.min() >= MIN_ROWS:
                most, found = added, k
        if found is None:
            break
        picked.append(found)
        got, which, buys = made(picked)
    who = [buys & (which == k) for k in range(len(picked))]
    return picked, who, float(got.sum())


def best_alone(worth: Array, gains: Array, weight: Array) -> int | None:
    """The purchase that brings most to those whom it is worth it; None if none does."""
    got = np.where(worth > 0, weight[:, None] * gains, 0.0).sum(axis=0)
    best = int(np.argmax(got))
    pays = got[best] > 0 and weight[worth[:, best] > 0].sum() >= MIN_ROWS
    return best if pays else None


def left_out(features: Array, targets: Array, weight: Array) -> Array:
    """Predict every target by a ridge regression that has not seen the row."""
    center, scale = moments(features, weight)
    phi = np.hstack([(features - center) / scale, np.ones((len(features), 1))])
    weighted = phi * weight[:, None]
    system = weighted.T @ phi
    system.flat[:: phi.shape[1] + 1] += RIDGE * weight.sum()
    factor, _ = dpotrf(system, lower=True, clean=True)
    half, _ = dtrtrs(factor, phi.T, lower=True)
    leverage = np.minimum(weight * np.einsum("ij,ij->j", half, half), MOST)[:, None]
    coef, _ = dpotrs(factor, weighted.T @ targets, lower=True)
    return np.asarray((phi @ coef - leverage * targets) / (1 - leverage))
