"""
A fraud check with paid lookups
===============================

An order comes in. What is known about it is free; each service that could tell more sends a
bill for every call. Mistakes have very different prices: a fraud that is let through is
lost goods, an honest customer who is turned away is a lost sale.
"""

# %%
# Orders
# ------
#
# Everything here is made up: orders, prices and losses. One order in twelve is a fraud.
# The reading of each service is a noisy view of it, the dearer the clearer.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from sensortree import Sensor, SensorTreeClassifier


def make_orders(n, seed):
    rng = np.random.default_rng(seed)
    fraud = rng.random(n) < 1 / 12
    signal = np.where(fraud, 1.0, 0.0)
    columns = [
        signal * 0.9 + rng.normal(size=n),  # amount, unlike this customer's others
        signal * 0.8 + rng.normal(size=n),  # age of the account
        signal * 1.3 + rng.normal(size=n),  # device
        signal * 1.8 + rng.normal(size=n),  # identity
        signal * 1.2 + rng.normal(size=n),
        signal * 3.0 + rng.normal(size=n),  # credit file
    ]
    return np.column_stack(columns), fraud


X, fraud = make_orders(3000, seed=0)
X_new, fraud_new = make_orders(6000, seed=1)

# %%
# Services and prices
# -------------------
#
# The credit file may be pulled only for somebody who was identified before: ``after``.

services = {
    "order": Sensor([0, 1], cost=0),
    "device": Sensor([2], cost=0.02),
    "identity": Sensor([3, 4], cost=0.15),
    "credit file": Sensor([5], cost=0.90, after=["identity"]),
}
model = SensorTreeClassifier(
    services,
    loss={False: 6.0, True: 80.0},  # dollars, by what the order really is
    cost_weight=1,
    classifier=LogisticRegression(),
)
model.fit(X, fraud)
print(model.tree_)

# %%
# What it spends
# --------------
#
# On new orders, all in dollars. ``total`` is calls and mistakes together.

report = model.report(X_new, fraud_new)
print(report)

# %%
# The same classifier with every service for every order, for comparison. Both answer by
# the least expected loss.

everything = SensorTreeClassifier(
    services,
    loss={False: 6.0, True: 80.0},
    cost_weight=1,
    structure={"sensors": list(services)},
    classifier=LogisticRegression(),
).fit(X, fraud)
for name, fitted in (("as needed", model), ("every service", everything)):
    r = fitted.report(X_new, fraud_new)
    print(f"{name:14} calls {r.cost:.3f}  mistakes {r.loss:.3f}  total {r.total:.3f}")

# %%
# Who is looked up
# ----------------

shares = {use.label: use.sensors for use in report.classes}
positions = np.arange(len(services))
fig, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
for offset, (label, name, colour) in zip(
    (-0.2, 0.2),
    ((False, "honest", "#0072B2"), (True, "fraud", "#D55E00")),
    strict=True,
):
    heights = [100 * shares[label][service] for service in services]
    ax.bar(positions + offset, heights, 0.38, color=colour, label=name)
ax.set_xticks(positions, [f"{n}\n${s.cost:.2f}" for n, s in services.items()])
ax.set(ylabel="% of orders", title="Most orders never see the credit file")
ax.legend()
