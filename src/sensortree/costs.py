"""What the ways through a tree cost, and what may be bought at all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensortree.exceptions import TreeError
from sensortree.sensors import SensorSet
from sensortree.tree import Leaf, Node, SensorTree

Array = NDArray[np.float64]
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
    path: Iterable[frozenset[str]], sensors: SensorSet, prices: Array | None = None
) -> dict[str, Any]:
    """Price that each sensor of a path is charged, in the order of purchase.

    The first of a group pays in full, the others the discounted price. A number for each
    sensor, or an array of shape (n_rows,) with prices; they add up to `path_cost`.
    """
    charged: dict[str, Any] = {}
    opened: set[str | None] = set()
    for subset in path:
        for name in sensors.purchase_order(subset - charged.keys()):
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


@dataclass(frozen=True, eq=False)
class Market:
    """What may be bought after what, and at what price.

    Attributes
    ----------
    sensors : SensorSet
    prices : ndarray of shape (n_rows, n_sensors) or None
        Prices of each example, where some have prices of their own.
    max_cost : float or None
        No example may spend more.
    """

    sensors: SensorSet
    prices: Array | None = None
    max_cost: float | None = None

    def cost(self, subset: Iterable[str], known: Iterable[str] = ()) -> Any:
        """Price of a subset: a number, or one for each example."""
        return self.sensors.cost_of(subset, known, self.prices)

    def extension(self, known: frozenset[str], name: str) -> frozenset[str] | None:
        """What is known after buying one more; None if nobody may, or can afford it."""
        extended = self.sensors.extension(known, name)
        return extended if extended is not None and self.allows(extended) else None

    def allows(self, subset: frozenset[str]) -> bool:
        """Whether some example may know this and can afford it."""
        if not self.sensors.admissible(subset):
            return False
        return self.max_cost is None or bool(np.min(self.cost(subset)) <= self.max_cost)

    def free(self) -> frozenset[str]:
        """Sensors that cost nothing, with all that must come before them."""
        known: frozenset[str] = frozenset()
        for name in self.sensors.names:
            extended = self.sensors.extension(known, name)
            if extended is not None and not np.any(self.cost(extended)):
                known = extended
        return known

    def discounted(self) -> Array:
        """Price of each sensor, all discounts given: (n_sensors,), or for each row."""
        prices = self.sensors.costs if self.prices is None else self.prices
        surcharges = [terms.surcharge for terms in self.sensors.terms]
        return np.asarray(prices - np.array(surcharges), dtype=np.float64)

    def least_price(self) -> float:
        """Least that a sensor which is not free may cost anybody, all discounts given."""
        free = self.free()
        paid = [name not in free for name in self.sensors.names]
        return float(np.min(self.discounted()[..., paid], initial=np.inf))

    def next_ones(self, known: frozenset[str]) -> list[str]:
        """Sensors that may be bought next, prerequisites known, in declared order."""
        return [
            name
            for name in self.sensors.names
            if name not in known
            and self.sensors.closure(name) <= known | {name}
            and self.allows(known | {name})
        ]

    def affordable(self, costs: Array) -> NDArray[np.bool_]:
        """Which costs are within the cap."""
        if self.max_cost is None:
            return np.ones(np.shape(costs), dtype=bool)
        return np.asarray(np.asarray(costs) <= self.max_cost)


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
    costs = leaf_costs(tree, market.sensors, market.prices)
    if not market.affordable(costs).reshape(-1, tree.n_leaves).any(axis=1).all():
        raise TreeError(
            f"some example can afford no leaf of the tree within max_cost="
            f"{market.max_cost}; add a leaf that costs less, or raise max_cost."
        )
