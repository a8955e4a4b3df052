"""What a policy is compared with: everything bought, nothing, or the best fixed set."""

from __future__ import annotations

import numpy as np

from sensortree.learning.settings import Settings
from sensortree.leaves.classifiers import LeafClassifiers
from sensortree.leaves.compiling import compile_classifier
from sensortree.policy.baselines import EVERYTHING, FIXED, NOTHING, Baseline


def fit_baselines(leaves: LeafClassifiers, settings: Settings) -> tuple[Baseline, ...]:
    """Fit the classifiers that a policy is compared with, on all training rows."""
    subsets = baseline_subsets(leaves, settings)
    fitted = leaves.fit(subsets.values())
    return tuple(
        Baseline(name, subset, compile_classifier(fitted[subset]))
        for name, subset in subsets.items()
    )


def baseline_subsets(
    leaves: LeafClassifiers, settings: Settings
) -> dict[str, frozenset[str]]:
    """Sensors of every baseline; "everything" only if all may be bought together.

    "Nothing" knows what is free.
    """
    market = leaves.data.market(None)
    everything = frozenset(market.sensors.names)
    subsets = {EVERYTHING: everything} if market.allows(everything) else {}
    return {
        **subsets,
        FIXED: best_fixed_set(leaves, settings),
        NOTHING: market.free(),
    }


def best_fixed_set(leaves: LeafClassifiers, settings: Settings) -> frozenset[str]:
    """Of the subsets that the fit has judged, the one of the least risk out of fold.

    Nothing is judged for it: a fit takes no longer. Of equals, the cheapest; then the
    first to be judged.
    """
    data, market = leaves.data, leaves.data.market(settings.max_cost)
    weight = data.weight / data.weight.sum()

    def risk(subset: frozenset[str]) -> tuple[float, float]:
        said = data.loss.answer(leaves.posteriors[subset])
        cost = market.mean_cost(subset)
        loss = float(weight @ data.loss.of(data.y, said))
        return float(np.round(loss + settings.cost_weight * cost, 12)), cost

    return min(filter(market.allows, leaves.posteriors), key=risk)
