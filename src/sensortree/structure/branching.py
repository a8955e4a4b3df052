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
from dataclasses import dataclass, field

import numpy as np

from sensortree.constants import (
    BRANCH_BEAM,
    BRANCH_BEAM_ROWS,
    BRANCH_MIN_ROWS,
    BRANCH_PURCHASES,
)
from sensortree.structure.algorithm1 import Growth, Subset
from sensortree.structure.looking import Here, left_out
from sensortree.structure.shop import WIDE, Breadth, Shop, Weighed
from sensortree.types import Array, Mask, Rows


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

    @property
    def n_leaves(self) -> int:
        """Leaves that they add to the tree."""
        return len(self.options) - (not self.stops)


def grow_branches(
    shop: Shop,
    n_leaves: int,
    start: Subset,
) -> tuple[Vertex, list[Growth]]:
    """Grow from the root, always where most is gained, up to a number of leaves.

    Parameters
    ----------
    shop : Shop
    n_leaves : int
    start : frozenset of int
        Sensors known at the root.

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
    # Where all buy on nothing is added to the leaves, but the tree must end.
    while queue and leaves < n_leaves and len(steps) < 2 * n_leaves:
        if shop.out_of_time():
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
    if weight.sum() < BRANCH_MIN_ROWS:
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
        bool(weight[~np.any(groups, axis=0)].sum() >= BRANCH_MIN_ROWS),
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
    if (
        len(vertex.rows) >= BRANCH_BEAM_ROWS
        and best_alone(worth, gains, here.weight) is None
    ):
        for k in np.argsort(-(here.weight @ gains), kind="stable")[:BRANCH_BEAM]:
            gains[:, k] = here.gain_further(now, *promising[k])
        worth = left_out(now.features, gains, here.weight)
    return Weighed([option for option, _ in promising], gains, worth)


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
    while len(picked) < BRANCH_PURCHASES:
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
            if groups.min() >= BRANCH_MIN_ROWS:
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
    pays = got[best] > 0 and weight[worth[:, best] > 0].sum() >= BRANCH_MIN_ROWS
    return best if pays else None
