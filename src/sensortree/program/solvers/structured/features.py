"""`FeatureProducts`: margins Φθ of some examples, and what is pulled back to θ."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensortree.program.arrays import Array, like, namespace, on_device_of, to_numpy
from sensortree.program.solvers.structured.shape import TreeShape

Vector = NDArray[np.float64]


class FeatureProducts:
    """Products with the features of all nodes; nodes that share them go together.

    Parameters
    ----------
    tree : TreeShape
    features : list of n_nodes arrays of shape (D_j, n_rows)

    Attributes
    ----------
    keep : bool
        Whether products of pairs are kept once they are worked out.
    """

    def __init__(self, tree: TreeShape, features: list[Array]):
        self.features, self.n_nodes = features, len(features)
        self.xp = namespace(features[0])
        self.n_coef = tree.n_coef
        shared: dict[int, tuple[Array, list[int]]] = {}
        for j, phi in enumerate(features):
            shared.setdefault(id(phi), (phi, []))[1].append(j)
        # Coefficients (len(nodes), D) of the nodes of an array; of one node, a slice.
        self.shared = [
            (phi, nodes, _places([tree.columns[j] for j in nodes]))
            for phi, nodes in shared.values()
        ]
        self.where = [like(np.array(nodes), phi) for phi, nodes, _ in self.shared]
        self.keep = False
        self.kept: Array | None = None

    def margins(self, theta: Vector) -> Array:
        """Margins of given coefficients, (n_nodes, n_rows)."""
        margins: Array = None
        for phi, nodes, columns in self.shared:
            together = like(theta[columns], phi) @ phi
            if len(nodes) == self.n_nodes:
                return together
            if margins is None:
                shape = (self.n_nodes, phi.shape[1])
                margins = self.xp.empty(shape, dtype=phi.dtype, **on_device_of(phi))
            for k, j in enumerate(nodes):
                margins[j, :] = together[k, :]
        return margins

    def to_theta(self, *pulls: Array) -> list[Vector]:
        """Adjoint of `margins`, of some pulls (n_nodes, n_rows) in one go."""
        xp, k = self.xp, len(pulls)
        pull = xp.stack(pulls) if k > 1 else pulls[0][None, ...]
        theta = np.empty((k, self.n_coef))
        for (phi, nodes, columns), where in zip(self.shared, self.where, strict=True):
            if len(nodes) == 1:
                theta[:, columns[1]] = to_numpy(pull[:, nodes[0], :] @ phi.T)
                continue
            mine = pull if len(nodes) == self.n_nodes else xp.take(pull, where, axis=1)
            mine = xp.reshape(mine, (k * len(nodes), phi.shape[1])) @ phi.T
            theta[:, columns] = to_numpy(mine).reshape(k, *columns.shape)
        return list(theta)

    def pairs(self) -> Array:
        """φ_d φ_e, d <= e, of features that all nodes share, (D (D + 1) / 2, n_rows)."""
        if self.kept is not None:
            return self.kept
        phi = self.features[0]
        n, n_rows = phi.shape
        kind = {"dtype": phi.dtype, **on_device_of(phi)}
        products = self.xp.empty((n * (n + 1) // 2, n_rows), **kind)
        start = 0
        for d in range(n):
            end = start + n - d
            multiply(phi[d:, :], phi[d, :], products[start:end, :])
            start = end
        if self.keep:
            self.kept = products
        return products


def multiply(X: Array, weight: Array, out: Array) -> None:
    """Multiply each row of X, (m, n_rows), by a weight for each of its entries."""
    if isinstance(out, np.ndarray):
        np.multiply(X, weight, out=out)
    else:
        out[...] = X * weight


def _places(columns: list[slice]) -> Any:
    """Index that takes coefficients of some nodes from all, one row for each node."""
    if len(columns) == 1:
        return (None, columns[0])
    return np.stack([np.arange(mine.start, mine.stop) for mine in columns])
