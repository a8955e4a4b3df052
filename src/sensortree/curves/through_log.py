"""Held-out rows of a log on their way through a policy, as a fit looks at them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sensortree.leaves.rows import TrainingRows
from sensortree.policy.classifiers import posterior
from sensortree.policy.policy import Policy
from sensortree.policy.walk import Place
from sensortree.tree.paths import leaf_costs
from sensortree.types import Array, Mask


@dataclass(frozen=True, eq=False)
class Walked:
    """Rows at the end of their ways.

    Attributes
    ----------
    said : ndarray of shape (n_rows, n_outputs)
    error, lost : ndarray of shape (n_rows,)
        Of answers, doubly robust.
    cost : ndarray of shape (n_rows,)
    referred : ndarray of bool of shape (n_rows,)
        Whether they are handed over.
    """

    said: Array
    error: Array
    lost: Array
    cost: Array
    referred: Mask


def walk_through_log(policy: Policy, rows: TrainingRows) -> Walked:
    """Lead rows of a log through a policy.

    At every place a row is looked at with its own readings and, where the log holds too
    little of it, with those that are filled in; what it loses is put right as in a fit.
    """
    log = rows.continued
    assert log is not None
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
    error, lost = np.empty(n_rows), np.empty(n_rows)
    for k in np.unique(leaf):
        place, here = policy.places[k], leaf == k
        said = likely(place)
        answered[here] = said[here]
        wrong = rows.loss.error(rows.y, rows.loss.answer(said))
        error[here] = log.put_right(wrong.astype(np.float64), place.sensors)[here]
        lost[here] = log.put_right(rows.judge(said), place.sensors)[here]
    costs = leaf_costs(tree, rows.sensors, rows.prices)
    paid = np.broadcast_to(costs, (n_rows, tree.n_leaves))[np.arange(n_rows), leaf]
    refers = np.array([bool(end.refers) for end in tree.leaves])
    return Walked(answered, error, lost, np.asarray(paid), refers[leaf])
