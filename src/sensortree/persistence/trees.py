"""Trees of a model file: what is known where, decisions, flows, and detours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sensortree.exceptions import ModelFileError, TreeError
from sensortree.persistence.codecs import array, later, nullable, real, record
from sensortree.persistence.fields import Fields, numbers
from sensortree.persistence.scorers import Known, read_transformer, write_transformer
from sensortree.policy.decisions import (
    DecisionFeatures,
    DecisionFunction,
    Part,
    Posterior,
    Predicted,
    Raw,
    Squares,
    Transformed,
)
from sensortree.policy.flow import Answers, Detour, Detours, Flow, NumberAnswers
from sensortree.sensors.sensor import SensorSet
from sensortree.sensors.transforms import Transform
from sensortree.tree.tree import MAX_DEPTH, Leaf, Node, SensorTree

MAX_NODES = 10_000
# Sensors known at all vertices together.
MAX_KNOWN = 500_000
# Squares of squares are not among them: their number has no bound.
PARTS: dict[str, Part] = {
    "raw": Raw(),
    "posterior": Posterior(),
    "raw squares": Squares(Raw()),
    "posterior squares": Squares(Posterior()),
    "prediction": Predicted(),
    "prediction squares": Squares(Predicted()),
}

Subset = frozenset[str]


# the tree ---------------------------------------------------------------------------------


def write_tree(tree: SensorTree, sensors: SensorSet) -> dict[str, Any]:
    """Children of each node (``~leaf`` for a leaf), and what each vertex knows."""

    def known(vertex: Leaf | Node) -> list[int]:
        return sorted(map(sensors.index, vertex.sensors))

    negative, positive = tree.children
    form = {
        "negative": numbers(negative),
        "positive": numbers(positive),
        "node_sensors": [known(node) for node in tree.nodes],
        "leaf_sensors": [known(leaf) for leaf in tree.leaves],
    }
    refers = [leaf.refers for leaf in tree.leaves]
    if any(r is not None for r in refers):
        form["leaf_refers"] = refers
    return form


def read_tree(fields: Fields, sensors: SensorSet) -> SensorTree:
    """A tree whose nodes and leaves are met in their order, each once, depth first."""
    n_nodes = fields.length("negative")
    if n_nodes > MAX_NODES:
        raise ModelFileError(f"the tree has more than {MAX_NODES:,} nodes.")
    negative, positive = (
        fields.integers(side, ~n_nodes, n_nodes, n_nodes)
        for side in ("negative", "positive")
    )
    of_nodes = _known(fields, "node_sensors", n_nodes, sensors)
    of_leaves = _known(fields, "leaf_sensors", n_nodes + 1, sensors)
    refers = _read_refers(fields, n_nodes + 1)
    fields.end()
    met = {"nodes": 0, "leaves": 0}

    def build(vertex: int, depth: int) -> Leaf | Node:
        if vertex < 0:
            if ~vertex != met["leaves"]:
                raise ModelFileError(
                    "the tree is not one: its leaves are not met once each, in order."
                )
            met["leaves"] += 1
            return Leaf(of_leaves[~vertex], refers[~vertex])
        if vertex < met["nodes"]:
            raise ModelFileError(
                f"the tree is cyclic or joins up again: node {vertex} is met twice."
            )
        if vertex > met["nodes"]:
            raise ModelFileError(
                "the tree is not connected, or its nodes are not in depth-first order."
            )
        if depth >= MAX_DEPTH:
            raise ModelFileError(
                f"the tree has a path of more than {MAX_DEPTH} decisions."
            )
        met["nodes"] += 1
        below = build(negative[vertex], depth + 1), build(positive[vertex], depth + 1)
        return Node(of_nodes[vertex], *below)

    try:
        tree = SensorTree(build(0 if n_nodes else ~0, 0))
    except TreeError as error:
        raise ModelFileError(f"the tree of the file cannot be: {error}") from error
    if met["nodes"] < n_nodes:
        raise ModelFileError("the tree is not connected: some nodes are never met.")
    return tree


def _read_refers(fields: Fields, n_leaves: int) -> list[bool | None]:
    """Which leaves refer to a person; files without referral do not say."""
    if not fields.has("leaf_refers"):
        fields.optional("leaf_refers")
        return [None] * n_leaves
    refers: list[bool | None] = fields.items("leaf_refers", n_leaves)
    if not all(r is None or isinstance(r, bool) for r in refers):
        raise fields.wrong("leaf_refers", "must hold true, false or null")
    return refers


def _known(fields: Fields, key: str, length: int, sensors: SensorSet) -> list[Subset]:
    """What each vertex knows, by name."""
    lists = fields.items(key, length)
    total = sum(len(known) for known in lists if isinstance(known, list))
    if total > MAX_KNOWN:
        raise fields.wrong(key, f"names more than {MAX_KNOWN:,} sensors in all")
    found = []
    for i, known in enumerate(lists):
        vertex = Fields({f"{key}[{i}]": known}, fields.where)
        at = vertex.positions(f"{key}[{i}]", len(sensors))
        found.append(frozenset(sensors.names[position] for position in at))
    return found


def known_in(tree: SensorTree) -> set[Subset]:
    """What the vertices of a tree know."""
    vertices: list[Leaf | Node] = [*tree.leaves, *tree.nodes]
    return {vertex.sensors for vertex in vertices}


# flow -------------------------------------------------------------------------------------

ANSWERS = record(
    Answers,
    given=array("leaves", "classes", least=0.0),
    right=array("leaves", least=0.0),
    changed=array("nodes", 2, least=0.0),
    would_change=array("nodes", 2, least=0.0),
)
NUMBER_ANSWERS = record(
    NumberAnswers,
    mean=array("leaves"),
    deviation=array("leaves", least=0.0),
    error=array("leaves", least=0.0),
    moved=array("nodes", 2, least=0.0),
    would_move=array("nodes", 2, least=0.0),
)
# Where the training examples went; files of version 1 do not say what they were answered.
FLOW = record(
    Flow,
    node_rows=array("nodes", least=0.0),
    leaf_classes=array("leaves", lambda sizes: sizes["classes"] or 1, least=0.0),
    leaf_loss=array("nodes", "leaves", least=0.0),
    stop_loss=array("nodes", least=0.0),
    kept_loss=array("nodes", least=0.0),
    total_loss=real(0.0),
    answers=nullable(ANSWERS, absent=True),
    numbers=later(NUMBER_ANSWERS),
)


def read_flow(fields: Fields, tree: SensorTree, n_classes: int) -> Flow:
    """Counts and losses that fit the tree."""
    if fields.has("numbers") == bool(n_classes):
        raise fields.wrong("numbers", "must be there where answers are numbers only")
    sizes = {"nodes": tree.n_nodes, "leaves": tree.n_leaves, "classes": n_classes}
    flow: Flow = FLOW.whole(fields, sizes)
    return flow


# decisions --------------------------------------------------------------------------------


def write_decisions(
    decisions: Sequence[DecisionFunction], foreign: str | None
) -> dict[str, Any]:
    """Features, each once for all nodes that share them, and coefficients of nodes."""
    distinct = {id(decision.features): decision.features for decision in decisions}
    order = list(distinct)
    return {
        "features": [
            {
                "parts": [_write_part(part, foreign) for part in features.parts],
                "center": numbers(features.center),
                "scale": numbers(features.scale),
                "may_miss": np.flatnonzero(features.may_miss).tolist(),
            }
            for features in distinct.values()
        ],
        "nodes": [
            {"features": order.index(id(d.features)), "coef": numbers(d.coef)}
            for d in decisions
        ],
    }


def _write_part(part: Part, foreign: str | None) -> Any:
    if isinstance(part, Transformed):
        what = "the transformer given as decision_features"
        return write_transformer(part.transformer, what, foreign)
    for name, known in PARTS.items():
        if part == known:
            return name
    raise ModelFileError(f"a model file cannot hold decision features {part!r}.")


def read_decisions(
    fields: Fields, tree: SensorTree, known: Known
) -> tuple[DecisionFunction, ...]:
    """Decision functions of the nodes of a tree."""
    features = list(fields.children("features"))
    built: dict[int, tuple[int, DecisionFeatures]] = {}
    decisions = []
    entries = fields.children("nodes", tree.n_nodes)
    for node, entry in zip(tree.nodes, entries, strict=True):
        width = known.width(node.sensors)
        at = entry.integer("features", 0, len(features))
        if at not in built:
            built[at] = width, _read_features(features[at], width, known)
        if built[at][0] != width:
            raise entry.wrong(
                "", f"reads {width} values, but its features are of {built[at][0]}"
            )
        own = built[at][1]
        n_coef = len(own.center) + int(own.may_miss.sum()) + 1
        decisions.append(DecisionFunction(own, entry.numbers("coef", (n_coef,))))
        entry.end()
    if len(built) < len(features):
        raise fields.wrong("", "has features that no node uses")
    fields.end()
    return tuple(decisions)


def _read_features(fields: Fields, width: int, known: Known) -> DecisionFeatures:
    parts, n_columns = [], len(known.sensors.varying)
    for i, value in enumerate(fields.items("parts")):
        where = f"{fields.place('parts')}[{i}]"
        part, made = _read_part(value, where, width, known)
        parts.append(part)
        if made is None:  # only the transformer of others knows
            made = max(fields.length("center") - n_columns, 0)
        n_columns += made
    features = DecisionFeatures(
        tuple(parts),
        fields.numbers("center", (n_columns,)),
        fields.scales("scale", (n_columns,)),
        fields.marks("may_miss", n_columns),
    )
    fields.end()
    return features


def _read_part(
    value: Any, where: str, width: int, known: Known
) -> tuple[Part, int | None]:
    """A part, and how many columns it gives; None if that is not known."""
    if isinstance(value, dict):
        made = read_transformer(Fields(value, where), width, known.trusted)
        return Transformed(made), made.width if isinstance(made, Transform) else None
    if not isinstance(value, str) or value not in PARTS:
        raise ModelFileError(f"{where} must be a transformer or one of {list(PARTS)}.")
    n_posterior = known.n_classes + (2 if known.n_classes > 2 else 1)
    of_leaf = {"posterior": n_posterior, "prediction": 2}
    kind = value.partition(" ")[0]
    if kind == ("prediction" if known.n_classes else "posterior"):
        raise ModelFileError(f"{where} is {value!r}, which its leaves do not give.")
    columns = of_leaf.get(kind, width)
    if value.endswith("squares"):
        columns = columns * (columns + 1) // 2
    return PARTS[value], columns


# detours ----------------------------------------------------------------------------------


def write_detours(
    detours: Detours,
    sensors: SensorSet,
    foreign: str | None,
    write: Callable[[Subset, Any], dict[str, Any]],
) -> dict[str, Any]:
    """Detours by sensor, and classifiers that the policy itself does not have."""
    return {
        "around": [
            {
                "sensor": sensors.index(sensor),
                "tree": write_tree(detour.tree, sensors),
                "decisions": write_decisions(detour.decisions, foreign),
                "flow": FLOW.write(detour.flow),
                "usual_loss": float(detour.usual_loss),
            }
            for sensor, detour in detours.around.items()
        ],
        "classifiers": [write(s, scorer) for s, scorer in detours.classifiers.items()],
    }


def read_detours(fields: Fields, known: Known, subsets: set[Subset]) -> Detours:
    """Detours that do without their sensor; the policy has classifiers of `subsets`."""
    around: dict[str, Detour] = {}
    sensors = known.sensors
    for entry in fields.children("around"):
        sensor = sensors.names[entry.integer("sensor", 0, len(sensors))]
        tree = read_tree(entry.child("tree"), sensors)
        if sensor in around or any(sensor in sensors.closure(s) for s in tree.sensors):
            raise entry.wrong(
                "",
                f"is a second detour around {sensor!r}, or buys what it is to do without",
            )
        around[sensor] = Detour(
            tree,
            read_decisions(entry.child("decisions"), tree, known),
            read_flow(entry.child("flow"), tree, known.n_classes),
            entry.number("usual_loss", least=0.0),
        )
        entry.end()
    needed = {s for detour in around.values() for s in known_in(detour.tree)}
    classifiers = read_classifiers(fields, known, needed - subsets)
    fields.end()
    return Detours(around, classifiers)


def read_classifiers(
    fields: Fields, known: Known, needed: set[Subset]
) -> dict[Subset, Any]:
    """One classifier for each set of sensors that needs one."""
    found: dict[Subset, Any] = {}
    for entry in fields.children("classifiers"):
        subset = known.subset(entry)
        if subset not in needed or subset in found:
            raise entry.wrong(
                "",
                "is for sensors that no vertex of the tree knows, or that have a "
                "classifier already",
            )
        found[subset] = known.classifier(entry, subset)
        entry.end()
    if len(found) < len(needed):
        raise ModelFileError(
            f"the file has classifiers for {len(found)} of the {len(needed)} sets of "
            f"sensors that its tree knows."
        )
    return found
