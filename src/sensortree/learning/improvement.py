"""Improve a learned structure move by move; a move is accepted on validated risk only.

Moves are ranked by the least-squares screen, with every example at the leaf that it
reaches today. Decisions are then learned on the most promising neighbours of each kind,
and the best of them is taken if its risk on held-out rows is clearly the lower.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sensortree.leaves.classifiers import LeafClassifiers
from sensortree.structure import (
    Vertex,
    best_purchase,
    exchanged,
    with_exchange,
    with_split,
    without_leaf,
    without_sensor,
)
from sensortree.structure.search import StructureReport, StructureSearch
from sensortree.tree.tree import SensorTree
from sensortree.types import Array

Known = frozenset[str]

# Neighbours of each kind that decisions are learned on.
TRIED = 2
# Leaves by which an exchange is ranked, and leaves that may be split: the most visited.
BUSY = 3
# Standard errors of the mean difference by which a move must be better.
CLEARLY = 1.0


class Model(Protocol):
    """What is asked of the estimator whose structure is improved."""

    improve: int
    n_leaves: int
    cost_weight: float

    def _validated_risk(self, tree: SensorTree, leaves: LeafClassifiers) -> Array: ...

    def _routed(
        self, tree: SensorTree, leaves: LeafClassifiers
    ) -> NDArray[np.intp]: ...


@dataclass(frozen=True, eq=False)
class Standing:
    """A tree, and the leaf that each row of the search reaches today."""

    tree: SensorTree
    leaf: NDArray[np.intp]

    @property
    def busiest(self) -> list[int]:
        """Leaves that rows reach, the most visited first."""
        visits = np.bincount(self.leaf, minlength=self.tree.n_leaves)
        order = np.argsort(-visits, kind="stable")
        return [int(leaf) for leaf in order if visits[leaf]]


def improve_structure(
    model: Model,
    tree: SensorTree,
    report: StructureReport,
    fixed: Known,
    leaves: LeafClassifiers,
    search: StructureSearch,
) -> tuple[SensorTree, StructureReport]:
    """Go to the best neighbour while one is clearly better, `improve` times at most.

    Sensors in `fixed` stay known at the root.
    """
    moves: list[dict[str, Any]] = []
    if not model.improve:
        return tree, report
    risks = model._validated_risk(tree, leaves)
    for _ in range(model.improve):
        leaf = model._routed(tree, leaves)[search.rows]
        found: dict[str, tuple[SensorTree, Array]] = {}
        for name, neighbour in neighbours(model, Standing(tree, leaf), fixed, search):
            if search.out_of_time():
                break
            if not search.allows_tree(neighbour):
                continue
            found[name] = neighbour, model._validated_risk(neighbour, leaves)
        if not found:
            break
        best = min(found, key=lambda name: found[name][1].mean())
        lead = risks - found[best][1]
        if lead.mean() <= CLEARLY * lead.std() / np.sqrt(len(lead)):
            break
        before = float(risks.mean())
        tree, risks = found[best]
        moves.append({"move": best, "before": before, "after": float(risks.mean())})
    if moves:
        order = leaves.data.sensors.in_order
        report = replace(report, subsets=[list(order(i.sensors)) for i in tree.leaves])
    return tree, replace(report, moves=moves)


def neighbours(
    model: Model, standing: Standing, fixed: Known, search: StructureSearch
) -> Iterator[tuple[str, SensorTree]]:
    """The most promising trees that one move leads to, with the move in words."""
    tree = standing.tree
    if tree.n_leaves > 1:
        for leaf in sorted(standing.busiest[::-1][:TRIED]):
            known = search.data.sensors.in_order(tree.leaves[leaf].sensors)
            yield f"drop the leaf {', '.join(known)}", without_leaf(tree, leaf)
    for leaf in standing.busiest[:BUSY]:
        split = _split(model, standing, leaf, search)
        if split is not None:
            yield split
    bought = [s for s in search.names if s in tree.sensors - tree.root.sensors]
    drops = {s: partial(_less, s) for s in bought}
    for sensor in _most_promising(drops, model, standing, search):
        yield f"drop {sensor}", without_sensor(tree, sensor)
    used = [s for s in search.names if s in tree.sensors - fixed]
    others = [s for s in search.names if s not in tree.sensors]
    pairs = [*combinations(used, 2), *((one, new) for one in used for new in others)]
    exchanges = {p: partial(_exchanged, p) for p in pairs}
    for one, other in _most_promising(exchanges, model, standing, search):
        yield f"exchange {one} and {other}", with_exchange(tree, one, other)


def _split(
    model: Model, standing: Standing, leaf: int, search: StructureSearch
) -> tuple[str, SensorTree] | None:
    """Let a leaf buy what is worth most to the rows that reach it, if that pays."""
    known = standing.tree.leaves[leaf].sensors
    vertex = Vertex(search.numbered(known), np.flatnonzero(standing.leaf == leaf))
    purchase = best_purchase(search.evidence(), model.cost_weight, vertex)
    room = model.n_leaves - standing.tree.n_leaves
    if purchase is None or len(purchase.options) > room:
        return None
    in_order = search.data.sensors.in_order
    bought = [search.named(option) - known for option in purchase.options]
    words = " or ".join(", ".join(in_order(more)) for more in bought)
    name = f"after {', '.join(in_order(known))} buy {words}"
    return name, with_split(standing.tree, leaf, bought)


def _less(sensor: str, known: Known) -> Known:
    return known - {sensor}


def _exchanged(pair: tuple[str, str], known: Known) -> Known:
    return exchanged(known, *pair)


def _most_promising(
    changes: Mapping[Any, Callable[[Known], Known]],
    model: Model,
    standing: Standing,
    search: StructureSearch,
) -> list[Any]:
    """Changes of what is known that the screen likes best."""
    busy = standing.busiest[:BUSY]

    def value(change: Callable[[Known], Known]) -> float:
        """Risk after the change less before, of the rows at the busiest leaves."""
        total = 0.0
        for leaf in busy:
            known = standing.tree.leaves[leaf].sensors
            if (changed := change(known)) != known:
                rows = standing.leaf == leaf
                after = search.screened_risk(changed, model.cost_weight)[rows]
                before = search.screened_risk(known, model.cost_weight)[rows]
                total += float(search.data.weight[rows] @ (after - before))
        return total

    values = {}
    for name, change in changes.items():
        values[name] = value(change)
        if search.stopped is not None:
            break
    return sorted(values, key=values.__getitem__)[:TRIED]
