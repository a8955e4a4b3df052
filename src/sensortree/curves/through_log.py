"""Held-out rows of a log on their way through a policy, as a fit looks at them."""

from __future__ import annotations

import numpy as np

from sensortree.leaves.rows import TrainingRows
from sensortree.policy.classifiers import posterior
from sensortree.policy.policy import Policy
from sensortree.policy.walk import Place
from sensortree.tree.paths import leaf_costs
from sensortree.types import Array, Mask


def walk_through_log(policy: Policy, rows: TrainingRows) -> tuple[Array, Array, Mask]:
    """What a policy says of rows, what they spend, and whether they are handed over.

    At every place a row is looked at with its own readings, or, where the log holds too
    little of it, with those of the row that stands in for it.

    Returns
    -------
    said : ndarray of shape (n_rows, n_outputs)
    cost : ndarray of shape (n_rows,)
    referred : ndarray of bool of shape (n_rows,)
    """
    tree, n_rows, prices = policy.tree, len(rows.y), rows.varying_prices()

    def likely(place: Place) -> Array:
        X = rows.features(place.sensors)
        said = posterior(place.classifier, X, rows.n_outputs)
        return said if place.calibration is None else place.calibration(said)

    decisions = np.empty((n_rows, tree.n_nodes))
    for node in range(tree.n_nodes):
        place = policy.places[~node]
        decision = place.decision
        assert decision is not None  # a node
        said = likely(place) if decision.needs_posterior else None
        decisions[:, node] = decision(rows.features(place.sensors), said, prices)
    leaf = tree.route(decisions)
    answered = np.empty((n_rows, rows.n_outputs))
    for k in np.unique(leaf):
        answered[leaf == k] = likely(policy.places[k])[leaf == k]
    costs = leaf_costs(tree, rows.sensors, rows.prices)
    paid = np.broadcast_to(costs, (n_rows, tree.n_leaves))[np.arange(n_rows), leaf]
    refers = np.array([bool(end.refers) for end in tree.leaves])
    return answered, np.asarray(paid), refers[leaf]
