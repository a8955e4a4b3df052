"""Grow a tree top-down, counting only what decisions can know in advance.

Algorithm 1 assumes decisions that always pick a subset that happens to be right. Here, at
a vertex that knows S, the gain of buying more,

    gain_i(A) = error_i(S) - error_i(S + A),

is *predicted* from what is known at the vertex, by one cross-fitted ridge regression for
all purchases A at once. An example is worth its predicted gain less the price, if that is
positive; else it stops. The purchase of the largest total worth is made; where two
purchases suit different examples clearly better than one, the tree branches.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from scipy.linalg import solve

from sensortree.leaves.standardising import moments
from sensortree.structure.algorithm1 import Growth, Subset
from sensortree.types import Array, Rows

# Purchases of two sensors are formed among this many of the best single ones.
PAIRED = 6
# A second purchase must raise the total worth by this share for the tree to branch.
BRANCH = 0.1
# Rows, by weight, that a purchase must be for.
MIN_ROWS = 25
RIDGE = 1e-2


@dataclass(frozen=True, eq=False)
class Evidence:
    """What growth learns from, for any subset of sensors.

    Attributes
    ----------
    errors : callable of subsets
        Errors of the examples with each of some subsets, out of fold, (n_samples,
        n_subsets).
    features : callable of subset
        What a decision that knows these sensors may look at, (n_samples, width).
    n_sensors : int
    price : callable
        Price of an extended subset when a subset is known: a number, or one for each
        example.
    extend : callable
        What is known after buying one more sensor, with what it needs; None if it may not
        be bought.
    allows : callable
        Whether a subset may be known.
    weight, fold : ndarray of shape (n_samples,)
    out_of_time : callable
        Whether growth must end with what it has.
    """

    errors: Callable[[Sequence[Subset]], Array]
    features: Callable[[Subset], Array]
    n_sensors: int
    price: Callable[[Subset, Subset], Any]
    extend: Callable[[Subset, int], Subset | None]
    allows: Callable[[Subset], bool]
    weight: Array
    fold: Rows
    out_of_time: Callable[[], bool] = lambda: False


@dataclass(eq=False)
class Vertex:
    """A vertex in the making: what is known, who comes by, and what is bought."""

    subset: Subset
    rows: Rows
    children: list[Vertex] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Purchase:
    """What one or two purchases lead to, who makes them, and what they are worth."""

    options: tuple[Subset, ...]
    rows: tuple[Rows, ...]
    worth: float


def grow_tree(
    evidence: Evidence, cost_weight: float, n_leaves: int, start: Subset
) -> tuple[Vertex, list[Growth]]:
    """Grow from the root, always where most is gained, up to a number of leaves.

    Parameters
    ----------
    evidence : Evidence
    cost_weight : float
    n_leaves : int
    start : frozenset of int
        Sensors known at the root.

    Returns
    -------
    root : Vertex
        A vertex with one child stops or buys; with two it stops, or buys the one or the
        other.
    steps : list of Growth
        The loss is the expected risk of the tree so far, as predicted.
    """
    root = Vertex(start, np.arange(len(evidence.weight)))
    total = evidence.weight.sum()
    risk = float(evidence.weight @ evidence.errors([start])[:, 0]) / total
    price = np.broadcast_to(evidence.price(start, frozenset()), len(evidence.weight))
    risk += cost_weight * float(evidence.weight @ price) / total
    steps: list[Growth] = []
    queue: list[tuple[float, int, Vertex, Purchase]] = []
    leaves, number = 1, 0

    def consider(vertex: Vertex) -> None:
        nonlocal number
        purchase = best_purchase(evidence, cost_weight, vertex)
        if purchase is not None:
            heapq.heappush(queue, (-purchase.worth, number, vertex, purchase))
            number += 1

    consider(root)
    while queue and leaves < n_leaves and not evidence.out_of_time():
        _, _, vertex, purchase = heapq.heappop(queue)
        if leaves + len(purchase.options) > n_leaves:
            continue
        leaves += len(purchase.options)
        risk -= purchase.worth / total
        for option, rows in zip(purchase.options, purchase.rows, strict=True):
            child = Vertex(option, rows)
            vertex.children.append(child)
            steps.append(Growth(option, min(option - vertex.subset), risk))
            consider(child)
    return root, steps


def best_purchase(
    evidence: Evidence, cost_weight: float, vertex: Vertex
) -> Purchase | None:
    """The purchase, or two, of the largest total predicted worth; None if none pays."""
    others = [j for j in range(evidence.n_sensors) if j not in vertex.subset]
    extended = [evidence.extend(vertex.subset, j) for j in others]
    options = list(dict.fromkeys(more for more in extended if more is not None))
    rows = vertex.rows
    weight = evidence.weight[rows]
    if not options or weight.sum() < MIN_ROWS:
        return None
    worth = _worth(evidence, cost_weight, vertex, options)
    best = np.argsort(-(weight @ np.maximum(worth, 0.0)), kind="stable")[:PAIRED]
    pairs = [options[a] | options[b] for a, b in combinations(sorted(best), 2)]
    pairs = [p for p in dict.fromkeys(pairs) if p not in options and evidence.allows(p)]
    if pairs:
        worth = np.hstack([worth, _worth(evidence, cost_weight, vertex, pairs)])
        options += pairs
    chosen, total = _best_options(options, worth, weight)
    if total <= 0:
        return None
    ahead = worth[:, chosen].argmax(axis=1)
    goes_on = worth[:, chosen].max(axis=1) > 0
    groups = tuple(rows[goes_on & (ahead == k)] for k in range(len(chosen)))
    if min(evidence.weight[group].sum() for group in groups) < MIN_ROWS:
        return None
    return Purchase(tuple(options[k] for k in chosen), groups, total)


def _best_options(
    options: Sequence[Subset], worth: Array, weight: Array
) -> tuple[list[int], float]:
    """One purchase, or two where they are worth clearly more, and their total worth."""
    positive = np.maximum(worth, 0.0)
    values = weight @ positive
    first = int(np.argmax(values))
    one, alone = [first], float(values[first])
    best, together = one, (1 + BRANCH) * alone
    leading = sorted(np.argsort(-values, kind="stable")[: 2 * PAIRED].tolist())
    for a, b in combinations(leading, 2):
        # Buying the one and then the other is a matter for the next vertex.
        if options[a] <= options[b] or options[b] <= options[a]:
            continue
        both = np.maximum(positive[:, a], positive[:, b])
        fewest = min(weight @ (positive[:, k] < both) for k in (a, b))
        if fewest >= MIN_ROWS and weight @ both > together:
            best, together = [a, b], float(weight @ both)
    return best, together if len(best) == 2 else alone


def _worth(
    evidence: Evidence, cost_weight: float, vertex: Vertex, options: Sequence[Subset]
) -> Array:
    """Predicted gain less the price of each purchase, out of fold, (n_rows, n_options)."""
    rows = vertex.rows
    errors = evidence.errors([vertex.subset, *options])[rows]
    gains = np.asarray(errors[:, :1] - errors[:, 1:], dtype=np.float64)
    prices = [evidence.price(option, vertex.subset) for option in options]
    if any(np.ndim(price) for price in prices):
        prices = [
            np.broadcast_to(price, len(evidence.weight))[rows] for price in prices
        ]
    price = np.column_stack(prices)
    features = evidence.features(vertex.subset)[rows]
    predicted = cross_fitted_ridge(
        features, gains, evidence.weight[rows], evidence.fold[rows]
    )
    return predicted - cost_weight * price


def cross_fitted_ridge(
    features: Array, targets: Array, weight: Array, fold: Rows
) -> Array:
    """Predict every target by ridge regression fitted without the row's fold."""
    center, scale = moments(features, weight)
    phi = np.hstack([(features - center) / scale, np.ones((len(features), 1))])
    predicted = np.empty(targets.shape)
    for held_out in np.unique(fold):
        train = (fold != held_out) | (held_out < 0)
        weighted = phi[train] * weight[train, None]
        system = weighted.T @ phi[train]
        system.flat[:: phi.shape[1] + 1] += RIDGE * weight.sum()
        coef = solve(system, weighted.T @ targets[train], assume_a="pos")
        judged = fold == held_out
        predicted[judged] = phi[judged] @ coef
    return predicted
