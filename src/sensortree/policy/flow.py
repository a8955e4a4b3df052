"""`Flow`: where the training examples went in a tree, and what else they could have had."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
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

    Attributes
    ----------
    given : ndarray of shape (n_leaves, n_classes)
        Examples that were given each answer in each leaf.
    right : ndarray of shape (n_leaves,)
        Examples that were answered rightly in each leaf.
    changed : ndarray of shape (n_nodes, 2)
        Examples that came to a node, took its negative or positive side, and were answered
        otherwise in the end than they would have been at the node.
    would_change : ndarray of shape (n_nodes, 2)
        Examples that stopped with what the node knows, and would have been answered
        otherwise had they been sent to its negative or positive side.
    """

    given: Array
    right: Array
    changed: Array
    would_change: Array


@dataclass(frozen=True, eq=False)
class NumberAnswers:
    """Numbers that training examples have, and what another way would change of answers.

    Examples count by their weights; answers are out of fold with ``cv``.

    Attributes
    ----------
    mean, deviation : ndarray of shape (n_leaves,)
        Mean and standard deviation of the numbers of the examples in each leaf; 0 where
        none is.
    error : ndarray of shape (n_leaves,)
        Mean distance of the answers from them.
    moved : ndarray of shape (n_nodes, 2)
        By how much, in the mean, the answer is another in the end than it would have been
        at the node, of examples that took its negative or positive side.
    would_move : ndarray of shape (n_nodes, 2)
        The same of examples that stopped with what the node knows, had they been sent to
        its negative or positive side.
    """

    mean: Array
    deviation: Array
    error: Array
    moved: Array
    would_move: Array


@dataclass(frozen=True, eq=False)
class Flow:
    """Training examples on their way through a tree; losses are out of fold with ``cv``.

    Attributes
    ----------
    node_rows : ndarray of shape (n_nodes,)
        Examples, by weight, that come to each node.
    leaf_classes : ndarray of shape (n_leaves, n_classes)
        Examples of each class that end in each leaf; of numbers, one column for all.
    leaf_loss : ndarray of shape (n_nodes, n_leaves)
        Mean loss of each leaf's answers over the examples that come to a node; over all
        examples where none does.
    stop_loss : ndarray of shape (n_nodes,)
        Mean loss of answering at the node itself.
    kept_loss : ndarray of shape (n_nodes,)
        Mean loss of the leaves that those examples really go to.
    total_loss : float
        Mean loss of the policy over all examples.
    answers : Answers or None
        What they were answered; None in models of files of version 1, and of numbers.
    numbers : NumberAnswers or None
        The same of numbers; None of classes.
    """

    node_rows: Array
    leaf_classes: Array
    leaf_loss: Array
    stop_loss: Array
    kept_loss: Array
    total_loss: float
    answers: Answers | None = field(default=None, metadata={"digest": "if set"})
    numbers: NumberAnswers | None = field(default=None, metadata={"digest": "if set"})

    @property
    def leaf_rows(self) -> Array:
        """Examples, by weight, that end in each leaf, (n_leaves,)."""
        return np.asarray(self.leaf_classes.sum(axis=1))

    def share(self, rows: float) -> float:
        """A number of examples as a share of all."""
        return float(rows) / max(float(self.leaf_classes.sum()), 1e-300)


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

    Parameters
    ----------
    tree : SensorTree
    decisions : ndarray of shape (n_samples, n_nodes)
    leaf_answers : ndarray of shape (n_samples, n_leaves)
        What each leaf would answer.
    node_answers : ndarray of shape (n_samples, n_nodes)
        What would be answered at each node.
    leaf_losses : ndarray of shape (n_samples, n_leaves)
        What its prediction would lose.
    node_losses : ndarray of shape (n_samples, n_nodes)
    y : ndarray of shape (n_samples,)
    n_classes : int
        0 where numbers are predicted.
    weight : ndarray of shape (n_samples,)
    """
    leaf = tree.route(decisions)
    if not n_classes:
        rows = np.bincount(leaf, weight, tree.n_leaves).astype(np.float64)
        numbers = _number_answers(
            tree, decisions, leaf_answers, node_answers, y, weight
        )
        flow = _flow(tree, decisions, leaf_losses, node_losses, rows[:, None], weight)
        return replace(flow, numbers=numbers)
    classes = np.zeros((tree.n_leaves, n_classes))
    np.add.at(classes, (leaf, y), weight)
    return replace(
        _flow(tree, decisions, leaf_losses, node_losses, classes, weight),
        answers=_answers(
            tree, decisions, leaf_answers, node_answers, y, n_classes, weight
        ),
    )


def _flow(
    tree: SensorTree,
    decisions: Array,
    leaf_losses: Array,
    node_losses: Array,
    classes: Array,
    weight: Array,
) -> Flow:
    """What is lost on the way; `classes` are the examples in each leaf."""
    leaf, passed = tree.route(decisions), tree.passed(decisions)
    kept = leaf_losses[np.arange(len(leaf)), leaf]
    share = passed * weight[:, None]
    node_rows = share.sum(axis=0)
    # A node that no example reaches is judged by all examples.
    share[:, node_rows == 0] = weight[:, None]
    share /= share.sum(axis=0)
    return Flow(
        node_rows,
        classes,
        share.T @ leaf_losses,
        (share * node_losses).sum(axis=0),
        share.T @ kept,
        float(weight @ kept / weight.sum()),
    )


def _answers(
    tree: SensorTree,
    decisions: Array,
    leaf_answers: NDArray[np.intp],
    node_answers: NDArray[np.intp],
    y: NDArray[np.intp],
    n_classes: int,
    weight: Array,
) -> Answers:
    """Count answers, and those that another way would change."""
    leaf = tree.route(decisions)
    answer = leaf_answers[np.arange(len(leaf)), leaf]
    given = np.zeros((tree.n_leaves, n_classes))
    np.add.at(given, (leaf, answer), weight)
    right = np.zeros(tree.n_leaves)
    np.add.at(right, leaf, weight * (answer == y))
    changed, would_change = np.zeros((2, tree.n_nodes, 2))
    for way in _ways(tree, decisions, leaf_answers, weight):
        differs = way.answers != node_answers[:, way.node]
        changed[way.node, way.side] = way.took[differs].sum()
        would_change[way.node, way.side] = way.stopped[differs].sum()
    return Answers(given, right, changed, would_change)


def _number_answers(
    tree: SensorTree,
    decisions: Array,
    leaf_answers: Array,
    node_answers: Array,
    y: Array,
    weight: Array,
) -> NumberAnswers:
    """Means of numbers, and by how much another way would change answers."""
    leaf = tree.route(decisions)
    answer = leaf_answers[np.arange(len(leaf)), leaf]
    rows = np.bincount(leaf, weight, tree.n_leaves)
    total = np.where(rows > 0, rows, 1.0)
    mean = np.bincount(leaf, weight * y, tree.n_leaves) / total
    off = np.bincount(leaf, weight * (y - mean[leaf]) ** 2, tree.n_leaves) / total
    error = np.bincount(leaf, weight * np.abs(y - answer), tree.n_leaves) / total
    moved, would_move = np.zeros((2, tree.n_nodes, 2))
    for way in _ways(tree, decisions, leaf_answers, weight):
        distance = np.abs(way.answers - node_answers[:, way.node])
        moved[way.node, way.side] = _mean(distance, way.took)
        would_move[way.node, way.side] = _mean(distance, way.stopped)
    return NumberAnswers(mean, np.sqrt(off), error, moved, would_move)


@dataclass(frozen=True, eq=False)
class _Way:
    """A side of a node.

    Attributes
    ----------
    node, side : int
    answers : ndarray of shape (n_samples,)
        What each example would be answered in the end if it went there.
    took, stopped : ndarray of shape (n_samples,)
        Weights of those who came to the node and went there; who stopped at its fork.
    """

    node: int
    side: int
    answers: NDArray[Any]
    took: Array
    stopped: Array


def _ways(
    tree: SensorTree, decisions: Array, leaf_answers: NDArray[Any], weight: Array
) -> Iterator[_Way]:
    """Both sides of every node."""
    leaf, stops = tree.route(decisions), stop_leaves(tree)
    # Answers in the end, of all examples, from each vertex on; children come after parents.
    onward = {~k: leaf_answers[:, k] for k in range(tree.n_leaves)}
    for node in reversed(range(tree.n_nodes)):
        ends = [onward.pop(int(side[node])) for side in tree.children]
        upward = decisions[:, node] > 0
        onward[node] = np.where(upward, ends[1], ends[0])
        came = weight * (tree.path_signs[leaf, node] != 0)
        stopped = weight * np.isin(leaf, stops[node])
        for side, answers in enumerate(ends):
            yield _Way(node, side, answers, came * (upward == bool(side)), stopped)


def _mean(values: Array, weight: Array) -> float:
    """Weighted mean; 0 of nothing."""
    total = float(weight.sum())
    return float(weight @ values) / total if total else 0.0


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
    """A tree without one sensor, for the examples blocked by the sensor's absence.

    Attributes
    ----------
    tree : SensorTree
        It buys neither the sensor nor what depends on it. What an example already knows
        costs nothing more.
    decisions : tuple of DecisionFunction
        One per node.
    flow : Flow
        Where the blocked training examples went in it.
    usual_loss : float
        Mean loss of the same examples where they go with the sensor.
    """

    tree: SensorTree
    decisions: tuple[DecisionFunction, ...]
    flow: Flow
    usual_loss: float


@dataclass(frozen=True, eq=False)
class Detours:
    """Detours around single sensors, with the classifiers that only they need.

    Attributes
    ----------
    around : mapping of sensor to Detour
        Only of sensors for which a detour is better than the best leaf that an example
        can still reach.
    classifiers : mapping of sensor subset to classifier
    """

    around: Mapping[str, Detour]
    classifiers: Mapping[frozenset[str], Any]


def turning_node(tree: SensorTree, leaf: int, sensor: str) -> int:
    """Where an example on its way to a leaf turns if a sensor cannot be had.

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
