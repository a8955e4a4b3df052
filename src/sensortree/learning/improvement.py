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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensortree.learning.settings import Settings
from sensortree.structure import (
    Vertex,
    best_purchase,
    exchanged,
    with_exchange,
    with_split,
    without_leaf,
    without_sensor,
)
from sensortree.structure.report import StructureReport
from sensortree.structure.search import StructureSearch
from sensortree.tree.tree import SensorTree
from sensortree.types import Array, Rows

Known = frozenset[str]

# Neighbours of each kind that decisions are learned on.
TRIED = 2
# Leaves by which an exchange is ranked, and leaves that may be split: the most visited.
BUSY = 3
# Neighbours of a tree at most: three kinds that are tried, and leaves that buy on.
NEIGHBOURS = 3 * TRIED + BUSY
# Standard errors of the mean difference by which a move must be better.
CLEARLY = 1.0


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
    tree: SensorTree,
    report: StructureReport,
    fixed: Known,
    search: StructureSearch,
    settings: Settings,
    validated_risk: Callable[[SensorTree], Array],
    routed: Callable[[SensorTree], Rows],
) -> tuple[SensorTree, StructureReport]:
    """Go to the best neighbour while one is clearly better, `improve` times at most.

    Parameters
    ----------
    tree, report
        What was found so far.
    fixed : frozenset of str
        Sensors that stay known at the root.
    search : StructureSearch
    settings : Settings
    validated_risk : callable of tree
        Risks on rows that decisions were not learned from.
    routed : callable of tree
        The leaf that each training row reaches.
    """
    moves: list[dict[str, Any]] = []
    risks = validated_risk(tree)
    for _ in range(settings.improve):
        standing = Standing(tree, routed(tree)[search.rows])
        found: dict[str, tuple[SensorTree, Array]] = {}
        for name, neighbour in neighbours(settings, standing, fixed, search):
            if search.out_of_time():
                break
            if not _is_allowed(neighbour, search):
                continue
            found[name] = neighbour, validated_risk(neighbour)
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
        order = search.subsets.data.sensors.in_order
        report = replace(report, subsets=[list(order(i.sensors)) for i in tree.leaves])
    return tree, replace(report, moves=moves)


def _is_allowed(tree: SensorTree, search: StructureSearch) -> bool:
    """Whether all that some vertex of a tree knows may be known."""
    known = {leaf.sensors for leaf in tree.leaves}
    known |= {node.sensors for node in tree.nodes}
    return all(map(search.subsets.market.allows, known))


def neighbours(
    settings: Settings, standing: Standing, fixed: Known, search: StructureSearch
) -> Iterator[tuple[str, SensorTree]]:
    """The most promising trees that one move leads to, with the move in words."""
    tree = standing.tree
    if tree.n_leaves > 1:
        for leaf in sorted(standing.busiest[::-1][:TRIED]):
            known = search.subsets.data.sensors.in_order(tree.leaves[leaf].sensors)
            yield f"drop the leaf {', '.join(known)}", without_leaf(tree, leaf)
    for leaf in standing.busiest[:BUSY]:
        split = _split(settings, standing, leaf, search)
        if split is not None:
            yield split
    bought = [s for s in search.subsets.names if s in tree.sensors - tree.root.sensors]
    drops = {s: partial(_less, s) for s in bought}
    for sensor in _most_promising(drops, settings, standing, search):
        yield f"drop {sensor}", without_sensor(tree, sensor)
    used = [s for s in search.subsets.names if s in tree.sensors - fixed]
    others = [s for s in search.subsets.names if s not in tree.sensors]
    pairs = [*combinations(used, 2), *((one, new) for one in used for new in others)]
    exchanges = {p: partial(_exchanged, p) for p in pairs}
    for one, other in _most_promising(exchanges, settings, standing, search):
        yield f"exchange {one} and {other}", with_exchange(tree, one, other)


def _split(
    settings: Settings, standing: Standing, leaf: int, search: StructureSearch
) -> tuple[str, SensorTree] | None:
    """Let a leaf buy what is worth most to the rows that reach it, if that pays."""
    known = standing.tree.leaves[leaf].sensors
    vertex = Vertex(
        search.subsets.numbered(known), np.flatnonzero(standing.leaf == leaf)
    )
    purchase = best_purchase(search.evidence(), settings.cost_weight, vertex)
    room = search.most_leaves("grown") - standing.tree.n_leaves
    if purchase is None or len(purchase.options) > room:
        return None
    in_order = search.subsets.data.sensors.in_order
    bought = [search.subsets.named(option) - known for option in purchase.options]
    words = " or ".join(", ".join(in_order(more)) for more in bought)
    name = f"after {', '.join(in_order(known))} buy {words}"
    return name, with_split(standing.tree, leaf, bought)


def _less(sensor: str, known: Known) -> Known:
    return known - {sensor}


def _exchanged(pair: tuple[str, str], known: Known) -> Known:
    return exchanged(known, *pair)


def _most_promising(
    changes: Mapping[Any, Callable[[Known], Known]],
    settings: Settings,
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
                after = search.subsets.screened_risk(changed, settings.cost_weight)[
                    rows
                ]
                before = search.subsets.screened_risk(known, settings.cost_weight)[rows]
                total += float(search.subsets.data.weight[rows] @ (after - before))
        return total

    values = {}
    for name, change in changes.items():
        values[name] = value(change)
        if search.stopped is not None:
            break
    return sorted(values, key=values.__getitem__)[:TRIED]
