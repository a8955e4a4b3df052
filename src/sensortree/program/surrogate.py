"""`SurrogateProblem`: the convex bound of the risk as a function of the coefficients.

With margins m_ij = φ_j(x_i)·θ_j, ``a`` = lost_if_negative, ``b`` = lost_if_positive and
V = 0 at leaves, each example's bound is a recursion from the leaves to the root,

    V_j = max( a_j (1 - m_j)_+ + V_negative(j),  b_j (1 + m_j)_+ + V_positive(j) ),

which equals the maximum over paths in the paper (eq.erm_tree with hinges). The problem
is to minimise  sum_i V_i,root + (l2/2) sum_j |θ_j|²  over all coefficients θ. It is
always feasible and bounded below by 0. No solver lives here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sensortree.exceptions import ProblemError

Array = NDArray[np.float64]
Coef = list[Array]


@dataclass(frozen=True, eq=False)
class DualPoint:
    """A point of the dual: a unit flow through each example's tree, and its pulls.

    Attributes
    ----------
    flow_negative, flow_positive : ndarray of shape (n_samples, n_nodes)
        Flow on each node's two edges. One unit enters the root; what enters a node
        leaves it.
    pull_negative, pull_positive : ndarray of shape (n_samples, n_nodes)
        Multipliers of the hinges: 0 <= pull_negative <= a · flow_negative and
        0 <= pull_positive <= b · flow_positive. A pull on the negative edge pushes the
        margin up.
    """

    flow_negative: Array
    flow_positive: Array
    pull_negative: Array
    pull_positive: Array


@dataclass(frozen=True, eq=False)
class SurrogateProblem:
    """The surrogate of one tree on one data set.

    Parameters
    ----------
    negative, positive : array-like of shape (n_nodes,)
        Child node of each node on either side, -1 for a leaf. Nodes are numbered so that
        a child comes after its parent; node 0 is the root.
    features : list of n_nodes array-likes of shape (n_samples, D_j)
        What each node's decision function is linear in, intercept column included.
    lost_if_negative, lost_if_positive : array-like of shape (n_samples, n_nodes)
        Savings lost by each decision; at least 0. Sample weights multiply both.

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
                f"lost_if_negative has shape {self.lost_if_negative.shape} and "
                f"lost_if_positive {self.lost_if_positive.shape}; they must agree."
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
        weights = np.asarray(getattr(self, name), dtype=np.float64)
        if weights.ndim != 2 or weights.shape[1] != self.n_nodes:
            raise ProblemError(
                f"{name} must have shape (n_samples, {self.n_nodes}), got "
                f"{weights.shape}."
            )
        if not np.all(np.isfinite(weights)) or np.any(weights < 0):
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
            array = np.asarray(given, dtype=np.float64)
            if array.ndim != 2 or len(array) != self.n_samples or not array.shape[1]:
                raise ProblemError(
                    f"features[{node}] must have shape ({self.n_samples}, D) with D at "
                    f"least 1, got {array.shape}."
                )
            if not np.all(np.isfinite(array)):
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
        return tuple(array.shape[1] for array in self.features)

    @cached_property
    def paths(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """P and N, each (n_leaves, n_nodes), leaves numbered depth first."""
        rows: list[tuple[list[int], list[int]]] = []
        stack: list[tuple[int, list[int], list[int]]] = [
            (0 if self.n_nodes else -1, [], [])
        ]
        while stack:
            node, above, below = stack.pop()
            if node == -1:
                rows.append((above, below))
                continue
            stack.append((int(self.positive[node]), [*above, node], below))
            stack.append((int(self.negative[node]), above, [*below, node]))
        shape = (self.n_leaves, self.n_nodes)
        P, N = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
        for leaf, (above, below) in enumerate(rows):
            P[leaf, above] = True
            N[leaf, below] = True
        return P, N

    def split(self, flat: ArrayLike) -> Coef:
        """Cut one vector of all coefficients into one array per node."""
        return np.split(np.asarray(flat, float), np.cumsum(self.n_features)[:-1])

    def margins(self, coef: Sequence[ArrayLike]) -> Array:
        """Values of the decision functions (g_j), (n_samples, n_nodes)."""
        margins = np.empty((self.n_samples, self.n_nodes))
        for node, (features, theta) in enumerate(zip(self.features, coef, strict=True)):
            margins[:, node] = features @ np.asarray(theta, float)
        return margins

    def values(self, margins: Array) -> Array:
        """V at the root of each example, (n_samples,)."""
        value = np.zeros((self.n_samples, self.n_nodes + 1))  # last column: leaves
        for node in reversed(range(self.n_nodes)):
            value[:, node] = np.maximum(*self._sides(node, margins, value))
        return value[:, 0]

    def value(self, coef: Sequence[ArrayLike], l2: float = 0.0) -> float:
        """The objective at any coefficients: an upper bound of the optimum."""
        norms = [np.asarray(theta, float) for theta in coef]
        ridge = 0.5 * l2 * sum(float(theta @ theta) for theta in norms)
        return float(self.values(self.margins(coef)).sum()) + ridge

    def subgradient(self, coef: Sequence[ArrayLike], l2: float = 0.0) -> Coef:
        """One subgradient of the objective; ties take the negative side."""
        margins = self.margins(coef)
        value = np.zeros((self.n_samples, self.n_nodes + 1))
        goes_positive = np.empty((self.n_samples, self.n_nodes), dtype=bool)
        for node in reversed(range(self.n_nodes)):
            below, above = self._sides(node, margins, value)
            goes_positive[:, node] = above > below
            value[:, node] = np.maximum(below, above)
        active = np.zeros((self.n_samples, self.n_nodes + 1), dtype=bool)
        active[:, 0] = True
        gradient = []
        for node in range(self.n_nodes):
            here, up, m = active[:, node], goes_positive[:, node], margins[:, node]
            active[:, self.negative[node]] |= here & ~up
            active[:, self.positive[node]] |= here & up
            slope = np.where(
                up,
                self.lost_if_positive[:, node] * (m > -1),
                -self.lost_if_negative[:, node] * (m < 1),
            )
            theta = np.asarray(coef[node], float)
            gradient.append(self.features[node].T @ (slope * here) + l2 * theta)
        return gradient

    def _sides(self, node: int, margins: Array, value: Array) -> tuple[Array, Array]:
        """The two arguments of the maximum at a node, given its children's values."""
        m = margins[:, node]
        below = self.lost_if_negative[:, node] * np.maximum(0.0, 1.0 - m)
        above = self.lost_if_positive[:, node] * np.maximum(0.0, 1.0 + m)
        return below + value[:, self.negative[node]], above + value[
            :, self.positive[node]
        ]

    def scaled(self) -> tuple[SurrogateProblem, tuple[Array, ...], float]:
        """Bring columns and savings to size 1.

        Returns
        -------
        problem : SurrogateProblem
            Its coefficients are column_scale times those of this problem, its objective
            is 1/size times that of this problem.
        column_scale : tuple of ndarray of shape (D_j,)
        size : float
        """
        scales: dict[int, Array] = {}
        arrays: dict[int, Array] = {}
        for array in self.features:
            if id(array) not in arrays:
                scale = np.abs(array).max(axis=0, initial=0.0)
                scales[id(array)] = np.where(scale > 0, scale, 1.0)
                arrays[id(array)] = array / scales[id(array)]
        largest = max(
            self.lost_if_negative.max(initial=0.0),
            self.lost_if_positive.max(initial=0.0),
        )
        size = float(largest) or 1.0
        scaled = replace(
            self,
            features=tuple(arrays[id(array)] for array in self.features),
            lost_if_negative=self.lost_if_negative / size,
            lost_if_positive=self.lost_if_positive / size,
        )
        return scaled, tuple(scales[id(array)] for array in self.features), size


def _children(children: Any, side: str) -> NDArray[np.intp]:
    array = np.asarray(children)
    if array.size == 0:
        array = array.astype(np.intp)
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        raise ProblemError(
            f"{side} must be a list of integers, one per node, got {children!r}."
        )
    return array.astype(np.intp)
