"""What the ways through a tree cost, and what may be bought at all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from sensortree.exceptions import TreeError
from sensortree.sensors.market import Market
from sensortree.sensors.sensor import SensorSet
from sensortree.tree.tree import Leaf, Node, SensorTree
from sensortree.types import Array

Path = tuple[frozenset[str], ...]


def vertex_paths(tree: SensorTree) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """What is known on the way to each node and each leaf, without repetitions."""
    nodes: list[Path] = []
    leaves: list[Path] = []

    def walk(vertex: Leaf | Node, path: Path) -> None:
        if not path or vertex.sensors != path[-1]:
            path = (*path, vertex.sensors)
        if isinstance(vertex, Leaf):
            leaves.append(path)
            return
        nodes.append(path)
        walk(vertex.negative, path)
        walk(vertex.positive, path)

    walk(tree.root, ())
    return tuple(nodes), tuple(leaves)


def path_cost(
    path: Iterable[frozenset[str]],
    sensors: SensorSet,
    prices: Array | None = None,
    known: frozenset[str] = frozenset(),
) -> Any:
    """Price of buying step by step what a path knows, given what is known already."""
    total: Any = 0.0 if prices is None else np.zeros(len(prices))
    for subset in path:
        total = total + sensors.cost_of(subset, known, prices)
        known = known | subset
    return total


def path_bill(
    path: Iterable[frozenset[str]],
    sensors: SensorSet,
    prices: Array | None = None,
    known: frozenset[str] = frozenset(),
) -> dict[str, Any]:
    """Price that each sensor of a path is charged, in the order of purchase.

    The first of a group pays in full, the others the discounted price; what is known
    already is not bought. A number for each sensor, or an array of shape (n_rows,) with
    prices; they add up to `path_cost`.
    """
    charged: dict[str, Any] = {}
    opened = {sensors.terms[sensors.index(name)].group for name in known}
    for subset in path:
        for name in sensors.purchase_order(subset - known - charged.keys()):
            sensor = sensors.index(name)
            terms = sensors.terms[sensor]
            full = sensors.costs[sensor] if prices is None else prices[:, sensor]
            discounted = terms.group is not None and terms.group in opened
            charged[name] = full - terms.surcharge if discounted else full
            opened.add(terms.group)
    return charged


def leaf_costs(
    tree: SensorTree, sensors: SensorSet, prices: Array | None = None
) -> Array:
    """Price of the way to each leaf, (n_leaves,), or (n_rows, n_leaves) with prices.

    The first sensor of a group is the first on the way, so two leaves that know the same
    may cost differently.
    """
    return path_costs(vertex_paths(tree)[1], sensors, prices)


def path_costs(
    paths: Iterable[Path], sensors: SensorSet, prices: Array | None = None
) -> Array:
    """Price of each path, (n_paths,), or (n_rows, n_paths) with prices."""
    costs = [path_cost(path, sensors, prices) for path in paths]
    return np.stack(costs, axis=-1)


def check_tree_is_allowed(tree: SensorTree, market: Market) -> None:
    """Raise `TreeError` if a vertex of a given tree may not be known."""
    vertices: list[Leaf | Node] = [*tree.nodes, *tree.leaves]
    for vertex in vertices:
        if not market.sensors.admissible(vertex.sensors):
            known = ", ".join(map(repr, market.sensors.in_order(vertex.sensors)))
            raise TreeError(
                f"a vertex of the tree knows {known}, which the sensors' 'after' or "
                f"'one_of' forbid; change the tree or the declaration."
            )
        if not market.reaches(vertex.sensors):
            known = ", ".join(map(repr, market.sensors.in_order(vertex.sensors)))
            raise TreeError(
                f"a vertex of the tree knows {known}, which the log holds of too few rows "
                f"to learn from; give more rows for which it was bought, or leave the "
                f"sensor that is rare out of the tree and of sensors."
            )
    costs = leaf_costs(tree, market.sensors, market.prices)
    if not market.affordable(costs).reshape(-1, tree.n_leaves).any(axis=1).all():
        raise TreeError(
            f"some example can afford no leaf of the tree within max_cost="
            f"{market.max_cost}; add a leaf that costs less, or raise max_cost."
        )
