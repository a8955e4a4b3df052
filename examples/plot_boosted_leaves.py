"""
Boosted leaves
==============

A leaf can be any classifier. Boosted trees need no scaling, and take missing readings and
thresholds as they come; for logistic regression gaps are filled and marked.
"""

# %%
# Data with holes
# ---------------
#
# Made up: three sensors of a machine, whose alarm depends on thresholds, with one value
# in ten missing. Prices are made up too.

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

from sensortree import SensorTreeClassifier, TradeoffDisplay, tradeoff_curve


def make_machines(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    hot, shaking = X[:, 0] > 0.8, np.abs(X[:, 2]) > 1.2
    oil = (X[:, 4] < -0.5) & (X[:, 1] > 0)
    alarm = hot & (X[:, 3] > -0.5) | shaking & (X[:, 1] < 0.5) | oil
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, alarm ^ (rng.random(n) < 0.03)


X, alarm = make_machines(1000, seed=0)
X_new, alarm_new = make_machines(3000, seed=1)
columns = {"temperature": [0, 1], "vibration": [2, 3], "oil": [4, 5]}
costs = {"temperature": 1, "vibration": 3, "oil": 10}

# %%
# The same tree with two kinds of leaves. Logistic regression on squares and products takes
# no NaN: a missing reading becomes the median, and a column says so.
# ``classifier="boosted"`` is short for scikit-learn's boosted trees as they are; fewer
# trees here, to be quick.

boosted = HistGradientBoostingClassifier(max_iter=30, learning_rate=0.2)
models = {
    "boosted leaves": SensorTreeClassifier(columns, costs=costs, classifier=boosted),
    "logistic leaves": SensorTreeClassifier(
        columns, costs=costs, classifier="logistic2"
    ),
}

# %%
# Error against cost
# ------------------
#
# On held-out folds of the training rows:

weights = [0.1, 0.02, 0.005, 0.001]
curves = {
    name: tradeoff_curve(model, X, alarm, cost_weights=weights, cv=3)
    for name, model in models.items()
}
TradeoffDisplay.from_curve(curves).plot()

# %%
# And on new rows, at one cost weight:

for name, model in models.items():
    model.set_params(cost_weight=0.005).fit(X, alarm)
    cost = model.acquisition_cost(X_new).mean()
    print(f"{name:16} {model.score(X_new, alarm_new):.3f} right at {cost:.2f} of 14")

# %%
# The label here is made of thresholds, which is what boosted trees are good at. On small,
# smooth data it is the other way round: :ref:`ablation` has both on four data sets.
