"""`Flow`: where the training examples went in a tree, and what else they could have had."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensortree.policy.decisions import DecisionFunction
from sensortree.tree.forks import fork_at
from sensortree.tree.tree import SensorTree
from sensortree.types import Array


@dataclass(frozen=True, eq=False)
class Answers:
    """What training examples were answered, and what another way would have changed.

    Examples count by their weights; answers are out of fold with ``cv``.
    """

    # Examples that were given each answer in each leaf, (n_leaves, n_classes).
    given: Array
    right: Array  # examples that were answered rightly in each leaf, (n_leaves,)
    # Examples that came to a node, took its negative or positive side, and were
    # answered otherwise in the end than they would have been at the node, (n_nodes, 2).
    changed: Array
    # Examples that stopped with what the node knows, and would have been answered
    # otherwise had they been sent to its negative or positive side, (n_nodes, 2).
    would_change: Array


@dataclass(frozen=True, eq=False)
class NumberAnswers:
    """Numbers that training examples have, and what another way would change of answers.

    Examples count by their weights; answers are out of fold with ``cv``.
    """

    mean: Array  # of the numbers of the examples in each leaf; 0 of none, (n_leaves,)
    deviation: Array  # their standard deviation, (n_leaves,)
    error: Array  # mean distance of the answers from them, (n_leaves,)
    # By how much, in the mean, the answer is another in the end than it would have been
    # at the node, of examples that took its negative or positive side, (n_nodes, 2).
    moved: Array
    # The same of examples that stopped with what the node knows, had they been sent to
    # its negative or positive side, (n_nodes, 2).
    would_move: Array


@dataclass(frozen=True, eq=False)
class Flow:
    """Training examples on their way through a tree; losses are out of fold with ``cv``."""

    node_rows: Array  # examples, by weight, that come to each node, (n_nodes,)
    # Examples of each class that end in each leaf; of numbers, one column for all,
    # (n_leaves, n_classes).
    leaf_classes: Array
    # Mean loss of each leaf's answers over the examples that come to a node; over all
    # examples where none does, (n_nodes, n_leaves).
    leaf_loss: Array
    stop_loss: Array  # mean loss of answering at the node itself, (n_nodes,)
    kept_loss: Array  # of the leaves that those examples really go to, (n_nodes,)
    total_loss: float  # mean loss of the policy over all examples
    # What they were answered; None in models of files of version 1, and of numbers.
    answers: Answers | None = field(default=None, metadata={"digest": "if set"})
    # The same of numbers; None of classes.
    numbers: NumberAnswers | None = field(default=None, metadata={"digest": "if set"})

    @property
    def leaf_rows(self) -> Array:
        """Examples, by weight, that end in each leaf, (n_leaves,)."""
        return np.asarray(self.leaf_classes.sum(axis=1))


def measure_flow(
    tree: SensorTree,
    decisions: Array,
    leaf_answers: NDArray[Any],
    node_answers: NDArray[Any],
    leaf_losses: Array,
    node_losses: Array,
    y: NDArray[Any],
    n_classes: int,
    weight: Array,
) -> Flow:
    """Send training examples through a tree, and average what becomes of them.

    `decisions` are (n_samples, n_nodes). Answers and losses are what would be answered at
    each leaf, (n_samples, n_leaves), and node, (n_samples, n_nodes), and what that would
    lose. `n_classes` is 0 where numbers are predicted.
    """
    leaf, passed = tree.route(decisions), tree.passed(decisions)
    ends = np.arange(len(leaf)), leaf
    kept, answer = leaf_losses[ends], leaf_answers[ends]
    share = passed * weight[:, None]
    node_rows = share.sum(axis=0)
    # A node that no example reaches is judged by all examples.
    share[:, node_rows == 0] = weight[:, None]
    share /= share.sum(axis=0)
    measure = _changed if n_classes else _moved
    changes = _changes(tree, decisions, leaf_answers, node_answers, weight, measure)
    answers, numbers = None, None
    if n_classes:
        classes, given = np.zeros((2, tree.n_leaves, n_classes))
        np.add.at(classes, (leaf, y), weight)
        np.add.at(given, (leaf, answer), weight)
        right = np.zeros(tree.n_leaves)
        np.add.at(right, leaf, weight * (answer == y))
        answers = Answers(given, right, *changes)
    else:
        rows = np.bincount(leaf, weight, tree.n_leaves).astype(np.float64)
        classes, total = rows[:, None], np.where(rows > 0, rows, 1.0)
        mean = np.bincount(leaf, weight * y, tree.n_leaves) / total
        off = np.bincount(leaf, weight * (y - mean[leaf]) ** 2, tree.n_leaves) / total
        error = np.bincount(leaf, weight * np.abs(y - answer), tree.n_leaves) / total
        numbers = NumberAnswers(mean, np.sqrt(off), error, *changes)
    return Flow(
        node_rows,
        classes,
        share.T @ leaf_losses,
        (share * node_losses).sum(axis=0),
        share.T @ kept,
        float(weight @ kept / weight.sum()),
        answers,
        numbers,
    )


def _changes(
    tree: SensorTree,
    decisions: Array,
    leaf_answers: NDArray[Any],
    node_answers: NDArray[Any],
    weight: Array,
    measure: Callable[[NDArray[Any], NDArray[Any], Array], float],
) -> tuple[Array, Array]:
    """What taking each side of each node changes of answers, (n_nodes, 2) twice.

    First of examples that came to the node and took the side, then of examples that
    stopped at its fork, had they been sent there. `measure` is given the answers in the
    end, those at the node, and the weights of these examples.
    """
    took, would = np.zeros((2, tree.n_nodes, 2))
    leaf, stops = tree.route(decisions), stop_leaves(tree)
    # Answers in the end, of all examples, from each vertex on; children come after parents.
    onward = {~k: leaf_answers[:, k] for k in range(tree.n_leaves)}
    for node in reversed(range(tree.n_nodes)):
        ends = [onward.pop(int(side[node])) for side in tree.children]
        upward = decisions[:, node] > 0
        onward[node] = np.where(upward, ends[1], ends[0])
        came = weight * (tree.path_signs[leaf, node] != 0)
        stopped = weight * np.isin(leaf, stops[node])
        for side, end in enumerate(ends):
            here = node_answers[:, node]
            took[node, side] = measure(end, here, came * (upward == bool(side)))
            would[node, side] = measure(end, here, stopped)
    return took, would


def _changed(end: NDArray[Any], here: NDArray[Any], weight: Array) -> float:
    """Weight of the examples whose answer changes."""
    return float(weight[end != here].sum())


def _moved(end: NDArray[Any], here: NDArray[Any], weight: Array) -> float:
    """By how much answers that are numbers change, in the mean; 0 of no examples."""
    total = float(weight.sum())
    return float(weight @ np.abs(end - here)) / total if total else 0.0


def stop_leaves(tree: SensorTree) -> list[list[int]]:
    """For each node, leaves where examples stop with what its fork knows."""
    found: list[list[int]] = [[] for _ in range(tree.n_nodes)]
    seen: set[int] = set()
    for node in range(tree.n_nodes):
        if node in seen:
            continue
        fork = fork_at(tree, node)
        seen.update(fork.nodes)
        known = tree.nodes[node].sensors
        here = [
            ~way.end
            for way in fork.ways
            if way.end < 0 and tree.leaves[~way.end].sensors == known
        ]
        for other in fork.nodes:
            found[other] = here
    return found


# Where an example turns: blocked before the root, and not blocked.
START, NOWHERE = -1, -2


@dataclass(frozen=True, eq=False)
class Detour:
    """A tree without one sensor, for the examples blocked by the sensor's absence."""

    # It buys neither the sensor nor what depends on it. What an example already knows
    # costs nothing more.
    tree: SensorTree
    decisions: tuple[DecisionFunction, ...]  # one per node
    flow: Flow  # where the blocked training examples went in it
    usual_loss: float  # mean loss of the same examples where they go with the sensor


@dataclass(frozen=True, eq=False)
class Detours:
    """Detours around single sensors, with the classifiers that only they need."""

    # Only of sensors for which a detour is better than the best leaf that an example
    # can still reach.
    around: Mapping[str, Detour]
    classifiers: Mapping[frozenset[str], Any]


def turning_node(tree: SensorTree, leaf: int, sensor: str) -> int:
    """Where an example on its way to a leaf turns if a sensor is unavailable.

    It is the last node before all leaves ahead know the sensor; `START` if the root
    does, and `NOWHERE` if the leaf does not.
    """
    if sensor in tree.root.sensors:
        return START
    below = tree.path_signs != 0
    lacking = np.array([sensor not in end.sensors for end in tree.leaves])
    passed = np.flatnonzero(below[leaf]).tolist()
    for node, ahead in pairwise(passed):
        if not (below[:, ahead] & lacking).any():
            return int(node)
    return NOWHERE if lacking[leaf] else int(passed[-1])
