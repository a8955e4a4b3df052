"""`Here` and `Look`: rows that come by a vertex, and what sensors would bring them.

Losses are Brier scores by one regression of all rows (`GramScreen`); what a purchase brings
a row is predicted from what is known before it, by a regression that leaves the row out.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs, dtrtrs

from sensortree.constants import (
    BRANCH_AHEAD_ROWS,
    BRANCH_GAINING,
    BRANCH_GLANCE_ROWS,
    BRANCH_MIN_ROWS,
    BRANCH_RIDGE,
    BRANCH_SECONDS,
    BRANCH_TELLING,
    BRANCH_THIRDS,
    MOST_LEVERAGE,
)
from sensortree.leaves.standardising import moments
from sensortree.structure.algorithm1 import Subset
from sensortree.structure.shop import Shop
from sensortree.types import Array, Rows


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
        shop, step = self.shop, max(1, len(self.rows) // BRANCH_GLANCE_ROWS)
        glance = Here(shop, self.rows[::step])
        gains = glance.look(known).guesses(options)
        telling = [max(shop.telling[j] for j in more - known) for more in options]
        chosen = {*np.argsort(-gains, kind="stable")[:BRANCH_GAINING].tolist()}
        chosen |= {
            *np.argsort(-np.array(telling), kind="stable")[:BRANCH_TELLING].tolist()
        }
        found: list[tuple[Subset, list[Subset]]] = []
        for option in (options[k] for k in sorted(chosen)):
            seconds = (
                shop.purchases(option) if len(self.rows) >= BRANCH_AHEAD_ROWS else []
            )
            if seconds:
                guesses = glance.look(option).guesses(seconds)
                best = np.argsort(-guesses, kind="stable")[:BRANCH_SECONDS]
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
            if self.weight[who].sum() >= BRANCH_MIN_ROWS:
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
        glance = Here(self.shop, rows[:: max(1, len(rows) // BRANCH_GLANCE_ROWS)])
        guesses = glance.look(known).guesses(options)
        return [options[j] for j in np.argsort(-guesses, kind="stable")[:BRANCH_THIRDS]]

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

    def _losses(self, fitted: Array, freedom: float) -> Array:
        """That rows were learned from is undone by their mean leverage."""
        leverage = min(freedom / len(self.here.screen.target), MOST_LEVERAGE)
        left = (self.here.target - fitted) / (1 - leverage)
        return np.asarray(self.here.stake * np.einsum("ij,ij->i", left, left))


def left_out(features: Array, targets: Array, weight: Array) -> Array:
    """Predict every target by a ridge regression that has not seen the row."""
    center, scale = moments(features, weight)
    phi = np.hstack([(features - center) / scale, np.ones((len(features), 1))])
    weighted = phi * weight[:, None]
    system = weighted.T @ phi
    system.flat[:: phi.shape[1] + 1] += BRANCH_RIDGE * weight.sum()
    factor, _ = dpotrf(system, lower=True, clean=True)
    half, _ = dtrtrs(factor, phi.T, lower=True)
    leverage = np.minimum(weight * np.einsum("ij,ij->j", half, half), MOST_LEVERAGE)[
        :, None
    ]
    coef, _ = dpotrs(factor, weighted.T @ targets, lower=True)
    return np.asarray((phi @ coef - leverage * targets) / (1 - leverage))
