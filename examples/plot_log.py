"""
A clinic's log: judge, refuse, choose, fit
==========================================

Nobody has tested everything on everybody. What a clinic has is its log: what was ordered
for whom, in what order, and how it ended. Before anything is changed, policies are judged
on it; then a tree is learned from it.
"""

# %%
# The log
# -------
#
# Everything here is made up. An examination is done on everybody. Blood was drawn the more
# often, the worse the examination looked; of these, one in fifty was sent to the scan.
# Everything else is a gap.

import numpy as np

from sensortree import (
    Leaf,
    LogDisplay,
    SensorTree,
    SensorTreeClassifier,
    compare_from_log,
    evaluate_from_log,
)

SENSORS = {"examination": [0, 1], "blood": [2], "scan": [3]}
COSTS = {"examination": 1, "blood": 4, "scan": 30}


def make_patients(n, seed):
    rng = np.random.default_rng(seed)
    ill = rng.random(n) < 0.3
    seen = 1.3 * ill[:, None] * [1.0, 0.8, 1.8, 2.5]
    return seen + rng.normal(size=(n, 4)), ill


X, ill = make_patients(6000, seed=0)
rng = np.random.default_rng(1)
blood = rng.random(6000) < 1 / (1 + np.exp(0.5 - X[:, 0]))
scan = blood & (rng.random(6000) < 0.02)
X[~blood, 2] = np.nan
X[~scan, 3] = np.nan
acquired = np.column_stack([np.ones(6000), 2 * blood, 3 * scan]).astype(int)
learn, judge = slice(0, 3000), slice(3000, None)

# %%
# Three policies
# --------------
#
# Two come from a small study in which everything was done on 300 volunteers: one buys all
# for all, one may spend 5 for a patient. The third is learned from the first half of our
# own log: leaves from every row that has their sensors, decisions with rows that stand in.
# It says what it could not learn about.

everything = SensorTree(Leaf(frozenset(SENSORS)))
X_study, ill_study = make_patients(300, seed=2)


def tree(**parameters):
    return SensorTreeClassifier(SENSORS, costs=COSTS, classifier="linear", **parameters)


policies = {
    "all for all": tree(cost_weight=0.01, structure=everything).fit(X_study, ill_study),
    "at most 5": tree(cost_weight=0.01, max_cost=5).fit(X_study, ill_study),
    "from the log": tree(cost_weight=0.01).fit(
        X[learn], ill[learn], acquired=acquired[learn]
    ),
}
print(policies["from the log"].tree_)
print(policies["from the log"].structure_report_)

# %%
# Judge them
# ----------
#
# On the other half. What buys all for all is refused, with the reason: hardly anybody was
# scanned, so that nobody can tell from this log.

judged = {
    name: evaluate_from_log(policy, X[judge], ill[judge], acquired=acquired[judge])
    for name, policy in policies.items()
}
for name, found in judged.items():
    said = (
        found.refused or f"error {found.error.value:.3f}, cost {found.cost.value:.2f}"
    )
    print(f"{name}: {said}\n")

# %%
# With 95 % intervals, beside what was done.

LogDisplay.from_evaluations(judged).plot()

# %%
# Choose, and fit
# ---------------
#
# The difference of two policies is surer than either; total is the error plus 0.01 of the
# cost. What is chosen is fitted once more, to the whole log.

chosen = compare_from_log(
    policies["from the log"],
    policies["at most 5"],
    X[judge],
    ill[judge],
    acquired=acquired[judge],
)
for measure in ("error", "cost", "total"):
    told = getattr(chosen.difference, measure)
    print(f"{measure}: {told.value:+.3f} ({told.low:+.3f} to {told.high:+.3f})")
model = tree(cost_weight=0.01).fit(X, ill, acquired=acquired)
print(model.tree_)

# %%
# New patients, of whom we know everything since they are made up, say whether that was
# right.

X_new, ill_new = make_patients(20_000, seed=3)
error = (model.predict(X_new) != ill_new).mean()
cost = model.acquisition_cost(X_new).mean()
print(f"error {error:.3f}, cost {cost:.2f}")
