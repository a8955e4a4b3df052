"""
A price for each example
========================

What a measurement costs may depend on the case: the distance to the machine, the contract
of the insured, the queue of the day. The price is then a column of the table, and what is
dear for this example is bought less.
"""

# %%
# Data
# ----
#
# Breast tissue from scikit-learn: real data. The price of the third group of measurements
# is drawn at random for each sample, from 0.5 to 20: made up. It says nothing about the
# label.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sensortree import Sensor, SensorTreeClassifier

data = load_breast_cancer(as_frame=True)
rng = np.random.default_rng(0)
X = data.data.assign(price_of_worst=rng.uniform(0.5, 20, size=len(data.data)).round(2))
X, X_new, y, y_new = train_test_split(
    X, data.target, test_size=0.5, stratify=data.target, random_state=0
)

# %%
# The name of a column stands where a number would. The column belongs to no sensor, is
# known from the start, and decisions may look at it.

names = list(data.data.columns)
sensors = {
    "mean": Sensor(names[:10], cost=1, transformer=StandardScaler()),
    "worst": Sensor(names[20:], cost="price_of_worst", transformer=StandardScaler()),
}
X, X_new = (table.drop(columns=names[10:20]) for table in (X, X_new))
model = SensorTreeClassifier(
    sensors, cost_weight=0.01, classifier=LogisticRegression()
).fit(X, y)

# %%
# Who buys
# --------
#
# Samples that were not fitted on: what the first sensor's classifier makes of them, and
# what the second sensor would cost.

bought = model.acquired(X_new)[:, model.sensors_.index("worst")]
first = make_pipeline(StandardScaler(), LogisticRegression()).fit(X[names[:10]], y)
sure = first.predict_proba(X_new[names[:10]]).max(axis=1)

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for choice, colour, marker, label in (
    (False, "#A6A6A6", "o", "stops with the first"),
    (True, "#D55E00", "^", "buys the second"),
):
    ax.scatter(
        X_new["price_of_worst"][bought == choice],
        sure[bought == choice],
        s=18,
        c=colour,
        marker=marker,
        label=label,
    )
ax.set(
    xlabel="price of the second sensor, for this sample",
    ylabel="probability of the first answer",
    title="What is dear for this sample is bought less",
)
ax.legend()

# %%
# The figures, in quarters of the price:

quarter = pd.qcut(X_new["price_of_worst"], 4)
print(
    pd.Series(bought, index=X_new.index).groupby(quarter, observed=True).mean().round(3)
)
print(f"right: {model.score(X_new, y_new):.3f}")
print(f"mean cost: {model.acquisition_cost(X_new).mean():.2f}")
