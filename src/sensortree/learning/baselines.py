"""What a policy is compared with: everything bought, nothing, or the best fixed set."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from sensortree.learning.settings import Settings
from sensortree.leaves.classifiers import LeafClassifiers
from sensortree.leaves.compiling import compile_classifier
from sensortree.leaves.engine import Solution
from sensortree.policy.baselines import EVERYTHING, FIXED, NOTHING, Baseline
from sensortree.sensors.market import Market


def fit_baselines(
    leaves: LeafClassifiers,
    settings: Settings,
    classifiers: Mapping[frozenset[str], Any],
) -> tuple[Baseline, ...]:
    """Give the classifiers that a policy is compared with, fitted on all training rows.

    `classifiers` are those of the policy itself.
    """
    return tuple(
        Baseline(name, subset, classifiers.get(subset) or _near(leaves, subset))
        for name, subset in baseline_subsets(leaves, settings).items()
    )


def _near(leaves: LeafClassifiers, subset: frozenset[str]) -> Any:
    """A subset's classifier as judging left it, if it did; that is enough to compare.

    What a classifier of the user's own has to complain of is no news: nobody asked for it.
    """
    start = leaves.starts.get(subset)
    if isinstance(start, Solution):
        return start.scorer
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return compile_classifier(leaves.fit([subset])[subset])


def baseline_subsets(
    leaves: LeafClassifiers, settings: Settings
) -> dict[str, frozenset[str]]:
    """Sensors of every baseline."""
    ends = both_ends(leaves.data.market(None))
    nothing = ends.pop(NOTHING)
    return {**ends, FIXED: best_fixed_set(leaves, settings), NOTHING: nothing}


def both_ends(market: Market) -> dict[str, frozenset[str]]:
    """What "everything" and "nothing" know, wherever a policy is compared with them.

    "Everything" is all sensors, if they may be bought together; "nothing" what is free.
    """
    everything = frozenset(market.sensors.names)
    subsets = {EVERYTHING: everything} if market.allows(everything) else {}
    return {**subsets, NOTHING: market.free()}


def best_fixed_set(leaves: LeafClassifiers, settings: Settings) -> frozenset[str]:
    """Of the subsets that the fit has judged, the one of the least risk out of fold.

    Nothing is judged for it: a fit takes no longer. Of equals, the cheapest; then the
    first to be judged.
    """
    data, market = leaves.data, leaves.data.market(settings.max_cost)
    weight = data.weight / data.weight.sum()

    def risk(subset: frozenset[str]) -> tuple[float, float]:
        cost = market.mean_cost(subset)
        loss = float(weight @ leaves.lost(subset))
        return float(np.round(loss + settings.cost_weight * cost, 12)), cost

    return min(filter(market.allows, leaves.posteriors), key=risk)
