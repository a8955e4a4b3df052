"""`SurrogateProblem`: the convex bound of the risk as a function of the coefficients.

With margins m_ij = φ_j(x_i)·θ_j, ``a`` = lost_if_negative, ``b`` = lost_if_positive and
V = 0 at leaves, each example's bound is a recursion from the leaves to the root,

    V_j = max( a_j (1 - m_j)_+ + V_negative(j),  b_j (1 + m_j)_+ + V_positive(j) ),

which equals the maximum over paths in the paper (eq.erm_tree with hinges). The problem
is to minimise  sum_i V_i,root + (l2/2) |θ|² + l1 |θ|₁  over all coefficients θ. It is
always feasible and bounded below by 0. No solver lives here.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensortree.exceptions import ProblemError
from sensortree.program.arrays import Array, as_floats, like, namespace

Coef = list[NDArray[np.float64]]


@dataclass(frozen=True)
class Penalty:
    """What is added to the surrogate: (l2/2) |θ|² + l1 |θ|₁, all coefficients alike."""

    l2: float = 0.0
    l1: float = 0.0

    def value(self, coef: Sequence[Any]) -> float:
        """The penalty of some coefficients."""
        flat = np.concatenate([np.empty(0), *(np.asarray(t, float) for t in coef)])
        return float(0.5 * self.l2 * (flat @ flat) + self.l1 * np.abs(flat).sum())


@dataclass(frozen=True, eq=False)
class DualPoint:
    """A point of the dual: a unit flow through each example's tree, and its pulls.

    Attributes
    ----------
    flow_negative, flow_positive : array of shape (n_samples, n_nodes)
        Flow on each node's two edges. One unit enters the root; what enters a node
        leaves it.
    pull_negative, pull_positive : array of shape (n_samples, n_nodes)
        Multipliers of the hinges: 0 <= pull_negative <= a · flow_negative and
        0 <= pull_positive <= b · flow_positive. A pull on the negative edge pushes the
        margin up.
    """

    flow_negative: Array
    flow_positive: Array
    pull_negative: Array
    pull_positive: Array

    def part(self, rows: slice) -> DualPoint:
        """The dual point of some rows that follow each other."""
        return DualPoint(*(array[rows, :] for array in self.arrays))

    @property
    def arrays(self) -> tuple[Array, ...]:
        """Flows on both edges, and both pulls."""
        return (
            self.flow_negative,
            self.flow_positive,
            self.pull_negative,
            self.pull_positive,
        )

    @classmethod
    def joined(cls, parts: Sequence[DualPoint]) -> DualPoint:
        """The dual point of rows of which some come after others."""
        if len(parts) == 1:
            return parts[0]
        xp, each = namespace(parts[0].flow_negative), [part.arrays for part in parts]
        return cls(*(xp.concat(list(arrays)) for arrays in zip(*each, strict=True)))


@dataclass(frozen=True, eq=False)
class SurrogateProblem:
    """The surrogate of one tree on one data set.

    Parameters
    ----------
    negative, positive : array-like of shape (n_nodes,)
        Child node of each node on either side, -1 for a leaf. Nodes are numbered so that
        a child comes after its parent; node 0 is the root.
    features : list of n_nodes array-likes of shape (n_samples, D_j)
        What each node's decision function is linear in, intercept column included. Nodes
        that are given the same array share it.
    lost_if_negative, lost_if_positive : array-like of shape (n_samples, n_nodes)
        Savings lost by each decision; at least 0. Sample weights multiply both.

    Notes
    -----
    Arrays of another library (PyTorch, CuPy, ...) stay where they are, and the structured
    solver works on them there; all three must then be of that library.

    Examples
    --------
    One node, one feature. Going negative at the first example loses 1, going positive at
    the second loses 2:

    >>> import numpy as np
    >>> from sensortree.program import SurrogateProblem
    >>> problem = SurrogateProblem(
    ...     [-1], [-1], [[[1.0], [-1.0]]], [[1.0], [0.0]], [[0.0], [2.0]])
    >>> problem.value([np.array([0.0])]), problem.value([np.array([1.0])])
    (3.0, 0.0)
    """

    negative: NDArray[np.intp]
    positive: NDArray[np.intp]
    features: tuple[Array, ...]
    lost_if_negative: Array
    lost_if_positive: Array

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        set_(self, "negative", _children(self.negative, "negative"))
        set_(self, "positive", _children(self.positive, "positive"))
        self._check_tree()
        set_(self, "lost_if_negative", self._weights("lost_if_negative"))
        set_(self, "lost_if_positive", self._weights("lost_if_positive"))
        if self.lost_if_negative.shape != self.lost_if_positive.shape:
            raise ProblemError(
                f"lost_if_negative has shape {tuple(self.lost_if_negative.shape)} and "
                f"lost_if_positive {tuple(self.lost_if_positive.shape)}; they must agree."
            )
        set_(self, "features", self._check_features())

    def _check_tree(self) -> None:
        if self.negative.shape != self.positive.shape:
            raise ProblemError(
                f"negative has {self.negative.size} children and positive "
                f"{self.positive.size}; each node needs one of each."
            )
        parents = np.zeros(self.n_nodes, dtype=int)
        for side, children in (
            ("negative", self.negative),
            ("positive", self.positive),
        ):
            for node, child in enumerate(children):
                if child == -1:
                    continue
                if not node < child < self.n_nodes:
                    raise ProblemError(
                        f"the {side} child of node {node} is {child}; it must be -1 for a "
                        f"leaf, or a node after {node} and before {self.n_nodes}."
                    )
                parents[child] += 1
        if np.any(parents[1:] != 1):
            node = 1 + int(np.argmax(parents[1:] != 1))
            raise ProblemError(
                f"node {node} is the child of {parents[node]} nodes; in a tree each node "
                f"but the root has one parent."
            )

    def _weights(self, name: str) -> Array:
        weights = as_floats(getattr(self, name))
        if weights.ndim != 2 or weights.shape[1] != self.n_nodes:
            raise ProblemError(
                f"{name} must have shape (n_samples, {self.n_nodes}), got "
                f"{tuple(weights.shape)}."
            )
        xp = namespace(weights)
        if not xp.all(xp.isfinite(weights)) or xp.any(weights < 0):
            raise ProblemError(
                f"{name} must be finite and at least 0; savings are, when max_risk is at "
                f"least as large as every leaf risk."
            )
        return weights

    def _check_features(self) -> tuple[Array, ...]:
        if len(self.features) != self.n_nodes:
            raise ProblemError(
                f"features has {len(self.features)} arrays for {self.n_nodes} nodes; give "
                f"one per node."
            )
        checked: dict[int, Array] = {}  # nodes that share an array go on sharing it
        for node, given in enumerate(self.features):
            if id(given) in checked:
                continue
            array = as_floats(given)
            wide = array.ndim == 2 and array.shape[1] > 0
            if not wide or array.shape[0] != self.n_samples:
                raise ProblemError(
                    f"features[{node}] must have shape ({self.n_samples}, D) with D at "
                    f"least 1, got {tuple(array.shape)}."
                )
            xp = namespace(array)
            if not xp.all(xp.isfinite(array)):
                raise ProblemError(
                    f"features[{node}] holds NaN or infinity; impute first."
                )
            checked[id(given)] = array
        return tuple(checked[id(given)] for given in self.features)

    @property
    def n_nodes(self) -> int:
        """Number of nodes (K - 1 in the paper)."""
        return int(self.negative.size)

    @property
    def n_leaves(self) -> int:
        """Number of leaves (K in the paper)."""
        return self.n_nodes + 1

    @property
    def n_samples(self) -> int:
        """Number of examples (N in the paper)."""
        return int(self.lost_if_negative.shape[0])

    @property
    def n_features(self) -> tuple[int, ...]:
        """Number of coefficients of each node (D_j)."""
        return tuple(int(array.shape[1]) for array in self.features)

    @cached_property
    def paths(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """P and N, each (n_leaves, n_nodes), leaves numbered depth first."""
        P, N = np.zeros((2, self.n_leaves, self.n_nodes), dtype=bool)
        leaf = 0
        stack: list[tuple[int, list[int], list[int]]] = [
            (0 if self.n_nodes else -1, [], [])
        ]
        while stack:
            node, above, below = stack.pop()
            if node == -1:
                P[leaf, above] = N[leaf, below] = True
                leaf += 1
                continue
            stack.append((int(self.positive[node]), [*above, node], below))
            stack.append((int(self.negative[node]), above, [*below, node]))
        return P, N

    def split(self, flat: Any) -> Coef:
        """Cut one vector of all coefficients into one array per node."""
        return np.split(np.asarray(flat, float), np.cumsum(self.n_features)[:-1])

    def margins(self, coef: Sequence[Any]) -> Array:
        """Values of the decision functions (g_j), (n_samples, n_nodes)."""
        xp = namespace(self.lost_if_negative)
        columns = [
            features @ like(np.asarray(theta, dtype=np.float64), features)
            for features, theta in zip(self.features, coef, strict=True)
        ]
        return xp.stack(columns, axis=1) if columns else self.lost_if_negative

    def values(self, margins: Array) -> Array:
        """V at the root of each example, (n_samples,)."""
        xp = namespace(margins)
        leaf = xp.zeros_like(margins[:, 0])
        value = [leaf] * (self.n_nodes + 1)  # the last one, -1, is any leaf's
        for node in reversed(range(self.n_nodes)):
            value[node] = xp.maximum(*self._sides(node, margins, value))
        return value[0]

    def value(self, coef: Sequence[Any], penalty: Penalty | None = None) -> float:
        """The objective at any coefficients: an upper bound of the optimum."""
        if not self.n_nodes:
            return 0.0
        xp = namespace(self.lost_if_negative)
        surrogate = float(xp.sum(self.values(self.margins(coef))))
        return surrogate + (penalty or Penalty()).value(coef)

    def subgradient(self, coef: Sequence[Any], penalty: Penalty | None = None) -> Coef:
        """One subgradient of the objective; ties take the negative side."""
        penalty = penalty or Penalty()
        margins = self.margins(coef)
        xp = namespace(margins)
        leaf = xp.zeros_like(margins[:, 0])
        value = [leaf] * (self.n_nodes + 1)
        goes_positive = [leaf] * self.n_nodes
        for node in reversed(range(self.n_nodes)):
            below, above = self._sides(node, margins, value)
            goes_positive[node] = above > below
            value[node] = xp.maximum(below, above)
        active = [leaf > 0] * (self.n_nodes + 1)
        active[0] = leaf == 0
        gradient = []
        for node in range(self.n_nodes):
            here, up, m = active[node], goes_positive[node], margins[:, node]
            for child, side in ((self.negative[node], ~up), (self.positive[node], up)):
                if child >= 0:
                    active[child] = here & side
            slope = xp.where(
                up,
                xp.where(m > -1, self.lost_if_positive[:, node], leaf),
                xp.where(m < 1, -self.lost_if_negative[:, node], leaf),
            )
            theta = np.asarray(coef[node], float)
            pull = self.features[node].T @ xp.where(here, slope, leaf)
            gradient.append(pull + penalty.l2 * theta + penalty.l1 * np.sign(theta))
        return gradient

    def _sides(self, node: int, margins: Array, value: list[Array]) -> tuple[Any, Any]:
        """The two arguments of the maximum at a node, given its children's values."""
        m = margins[:, node]
        xp = namespace(m)
        below = self.lost_if_negative[:, node] * xp.maximum(1.0 - m, xp.zeros_like(m))
        above = self.lost_if_positive[:, node] * xp.maximum(1.0 + m, xp.zeros_like(m))
        return below + value[self.negative[node]], above + value[self.positive[node]]

    def largest_loss(self) -> float:
        """The largest saving that a decision can lose for an example."""
        if not self.n_samples:
            return 0.0
        xp = namespace(self.lost_if_negative)
        return max(
            float(xp.max(self.lost_if_negative)), float(xp.max(self.lost_if_positive))
        )

    def part(self, rows: slice) -> SurrogateProblem:
        """Give the problem of some rows that follow each other, nothing copied."""
        part = copy(self)
        sliced = {id(array): array[rows, :] for array in self.features}
        set_ = object.__setattr__  # what was checked need not be checked again
        set_(part, "features", tuple(sliced[id(array)] for array in self.features))
        set_(part, "lost_if_negative", self.lost_if_negative[rows, :])
        set_(part, "lost_if_positive", self.lost_if_positive[rows, :])
        return part

    @cached_property
    def shared(self) -> tuple[int, ...]:
        """Which of the distinct arrays of features each node has."""
        numbers: dict[int, int] = {}
        return tuple(
            numbers.setdefault(id(array), len(numbers)) for array in self.features
        )

    @property
    def arrays(self) -> list[Array]:
        """The distinct arrays of features."""
        first = [self.shared.index(k) for k in range(len(set(self.shared)))]
        return [self.features[node] for node in first]

    def with_arrays(self, arrays: Sequence[Array], size: float) -> SurrogateProblem:
        """The same with other distinct arrays, and savings divided by a size."""
        return replace(
            self,
            features=tuple(arrays[k] for k in self.shared),
            lost_if_negative=self.lost_if_negative / size,
            lost_if_positive=self.lost_if_positive / size,
        )


def _children(children: Any, side: str) -> NDArray[np.intp]:
    array = np.asarray(children)
    if array.size == 0:
        array = array.astype(np.intp)
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        raise ProblemError(
            f"{side} must be a list of integers, one per node, got {children!r}."
        )
    return array.astype(np.intp)
