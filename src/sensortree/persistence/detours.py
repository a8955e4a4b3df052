"""Detours of a model file: trees for outages, and the classifiers that they add."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sensortree.exceptions import ModelFileError
from sensortree.persistence.decisions import read_decisions, write_decisions
from sensortree.persistence.fields import Fields
from sensortree.persistence.trees import read_flow, read_tree, write_flow, write_tree
from sensortree.policy.flow import Detour, Detours
from sensortree.sensors.sensor_set import SensorSet
from sensortree.tree.tree import Leaf, Node, SensorTree

Subset = frozenset[str]


def write_detours(
    detours: Detours,
    sensors: SensorSet,
    foreign: str | None,
    write: Callable[[Subset, Any], dict[str, Any]],
) -> dict[str, Any]:
    """Detours by sensor, and classifiers that the policy itself has not."""
    return {
        "around": [
            {
                "sensor": sensors.index(sensor),
                "tree": write_tree(detour.tree, sensors),
                "decisions": write_decisions(detour.decisions, foreign),
                "flow": write_flow(detour.flow),
                "usual_loss": float(detour.usual_loss),
            }
            for sensor, detour in detours.around.items()
        ],
        "classifiers": [write(s, scorer) for s, scorer in detours.classifiers.items()],
    }


def read_detours(
    fields: Fields,
    sensors: SensorSet,
    width_of: dict[str, int],
    n_classes: int,
    trusted: Sequence[str] | None,
    known: set[Subset],
    read: Callable[[Fields, set[Subset]], dict[Subset, Any]],
) -> Detours:
    """Detours that do without their sensor; the policy has classifiers of what is known."""
    around: dict[str, Detour] = {}
    for entry in fields.children("around"):
        sensor = sensors.names[entry.integer("sensor", 0, len(sensors))]
        tree = read_tree(entry.child("tree"), sensors)
        if sensor in around or any(sensor in sensors.closure(s) for s in tree.sensors):
            raise ModelFileError(
                f"{entry.where} is a second detour around {sensor!r}, or buys what it is "
                f"to do without."
            )
        widths = [sum(map(width_of.__getitem__, node.sensors)) for node in tree.nodes]
        around[sensor] = Detour(
            tree,
            read_decisions(
                entry.child("decisions"),
                widths,
                n_classes,
                len(sensors.varying),
                trusted,
            ),
            read_flow(entry.child("flow"), tree, n_classes),
            entry.number("usual_loss", least=0.0),
        )
        entry.end()
    needed = {s for detour in around.values() for s in known_in(detour.tree)}
    classifiers = read(fields, needed - known)
    fields.end()
    return Detours(around, classifiers)


def known_in(tree: SensorTree) -> set[Subset]:
    """What the vertices of a tree know."""
    vertices: list[Leaf | Node] = [*tree.leaves, *tree.nodes]
    return {vertex.sensors for vertex in vertices}
