"""Tree and flow of a model file, as flat lists."""

from __future__ import annotations

from typing import Any

from sensortree.exceptions import ModelFileError, TreeError
from sensortree.persistence.fields import Fields, numbers
from sensortree.persistence.numbers import (
    read_number_answers,
    write_number_answers,
)
from sensortree.policy.flow import Answers, Flow
from sensortree.sensors.sensor_set import SensorSet
from sensortree.tree.tree import MAX_DEPTH, Leaf, Node, SensorTree

MAX_NODES = 10_000
# Sensors known at all vertices together.
MAX_KNOWN = 500_000


def write_tree(tree: SensorTree, sensors: SensorSet) -> dict[str, Any]:
    """Children of each node (``~leaf`` for a leaf), and what each vertex knows."""

    def known(vertex: Leaf | Node) -> list[int]:
        return sorted(map(sensors.index, vertex.sensors))

    negative, positive = tree.children
    return {
        "negative": numbers(negative),
        "positive": numbers(positive),
        "node_sensors": [known(node) for node in tree.nodes],
        "leaf_sensors": [known(leaf) for leaf in tree.leaves],
        **_write_exits(tree),
    }


def _write_exits(tree: SensorTree) -> dict[str, Any]:
    """Which leaves hand over to a person; nothing of a tree that does not know of that."""
    refers = [leaf.refers for leaf in tree.leaves]
    return {} if all(r is None for r in refers) else {"leaf_refers": refers}


def read_tree(fields: Fields, sensors: SensorSet) -> SensorTree:
    """A tree that is numbered depth first, the negative child first."""
    n_nodes = fields.length("negative")
    if n_nodes > MAX_NODES:
        raise ModelFileError(f"the tree has more than {MAX_NODES:,} nodes.")
    children = [
        fields.integers(side, ~n_nodes, n_nodes, n_nodes)
        for side in ("negative", "positive")
    ]
    _check_shape(*children)
    knowns = _known(fields, "node_sensors", n_nodes, sensors)
    knowing = _known(fields, "leaf_sensors", n_nodes + 1, sensors)
    leaves = list(map(Leaf, knowing, _read_exits(fields, n_nodes + 1)))
    fields.end()
    built: dict[int, Leaf | Node] = {~i: leaf for i, leaf in enumerate(leaves)}
    try:
        for node in reversed(range(n_nodes)):  # children come after parents
            low, high = children[0][node], children[1][node]
            built[node] = Node(knowns[node], built[low], built[high])
        return SensorTree(built[0 if n_nodes else ~0])
    except TreeError as error:
        raise ModelFileError(f"the tree of the file cannot be: {error}") from error


def _read_exits(fields: Fields, n_leaves: int) -> list[bool | None]:
    """Which leaves hand over to a person; files without referral do not say."""
    if not fields.has("leaf_refers"):
        fields.optional("leaf_refers")
        return [None] * n_leaves
    refers: list[bool | None] = fields.items("leaf_refers", n_leaves)
    if not all(r is None or isinstance(r, bool) for r in refers):
        raise ModelFileError(
            f"{fields.place('leaf_refers')} must hold true, false or null."
        )
    return refers


def _known(
    fields: Fields, key: str, length: int, sensors: SensorSet
) -> list[frozenset[str]]:
    """What each vertex knows, by name."""
    lists = fields.items(key, length)
    total = sum(len(known) for known in lists if isinstance(known, list))
    if total > MAX_KNOWN:
        raise ModelFileError(
            f"{fields.place(key)} names more than {MAX_KNOWN:,} sensors in all."
        )
    found = []
    for i, known in enumerate(lists):
        vertex = Fields({f"{key}[{i}]": known}, fields.where)
        at = vertex.positions(f"{key}[{i}]", len(sensors))
        found.append(frozenset(sensors.names[position] for position in at))
    return found


def _check_shape(negative: list[int], positive: list[int]) -> None:
    """Walk depth first: nodes and leaves must be met in their order, each once."""
    n_nodes = len(negative)
    stack, next_node, next_leaf = [(0 if n_nodes else ~0, 0)], 0, 0
    while stack:
        vertex, depth = stack.pop()
        if vertex < 0:
            if ~vertex != next_leaf:
                raise ModelFileError(
                    "the tree is not one: its leaves are not met once each, in order."
                )
            next_leaf += 1
            continue
        if vertex < next_node:
            raise ModelFileError(
                f"the tree is cyclic or joins up again: node {vertex} is met twice."
            )
        if vertex > next_node:
            raise ModelFileError(
                "the tree is not connected, or its nodes are not in depth-first order."
            )
        if depth >= MAX_DEPTH:
            raise ModelFileError(
                f"the tree has a path of more than {MAX_DEPTH} decisions."
            )
        next_node += 1
        stack.append((positive[vertex], depth + 1))
        stack.append((negative[vertex], depth + 1))
    if next_node < n_nodes:
        raise ModelFileError("the tree is not connected: some nodes are never met.")


def write_flow(flow: Flow) -> dict[str, Any]:
    """Where the training examples went; matrices row after row."""
    return {
        "node_rows": numbers(flow.node_rows),
        "leaf_classes": numbers(flow.leaf_classes),
        "leaf_loss": numbers(flow.leaf_loss),
        "stop_loss": numbers(flow.stop_loss),
        "kept_loss": numbers(flow.kept_loss),
        "total_loss": float(flow.total_loss),
        "answers": _write_answers(flow.answers),
        **(
            {}
            if flow.numbers is None
            else {"numbers": write_number_answers(flow.numbers)}
        ),
    }


def _write_answers(answers: Answers | None) -> dict[str, Any] | None:
    """What the training examples were answered."""
    if answers is None:
        return None
    return {name: numbers(values) for name, values in vars(answers).items()}


def read_flow(fields: Fields, tree: SensorTree, n_classes: int) -> Flow:
    """Counts and losses that fit the tree."""
    n_nodes, n_leaves = tree.n_nodes, tree.n_leaves
    flow = Flow(
        fields.numbers("node_rows", (n_nodes,), least=0.0),
        fields.numbers("leaf_classes", (n_leaves, n_classes or 1), least=0.0),
        fields.numbers("leaf_loss", (n_nodes, n_leaves), least=0.0),
        fields.numbers("stop_loss", (n_nodes,), least=0.0),
        fields.numbers("kept_loss", (n_nodes,), least=0.0),
        fields.number("total_loss", least=0.0),
        _read_answers(fields, tree, n_classes),
        None if n_classes else read_number_answers(fields.child("numbers"), tree),
    )
    fields.end()
    return flow


def _read_answers(fields: Fields, tree: SensorTree, n_classes: int) -> Answers | None:
    """Counts of answers; files of version 1 have none."""
    given = fields.optional("answers")
    if given is None:
        return None
    own = Fields(given, fields.place("answers"))
    answers = Answers(
        own.numbers("given", (tree.n_leaves, n_classes), least=0.0),
        own.numbers("right", (tree.n_leaves,), least=0.0),
        own.numbers("changed", (tree.n_nodes, 2), least=0.0),
        own.numbers("would_change", (tree.n_nodes, 2), least=0.0),
    )
    own.end()
    return answers
