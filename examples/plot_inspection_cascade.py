"""
An inspection cascade
=====================

Three inspections in a fixed order, each dearer than the one before. After each, an item is
either released with an answer or sent on. That is a cascade, the simplest sensor tree.
"""

# %%
# Three looks at a sample
# -----------------------
#
# Breast tissue, 569 samples, from scikit-learn: real data. Thirty measurements come in
# three groups, which stand for three inspections. The prices are made up.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sensortree import CascadeClassifier

X, y = load_breast_cancer(return_X_y=True)
X, X_new, y, y_new = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
inspections = {"mean": slice(0, 10), "error": slice(10, 20), "worst": slice(20, 30)}
prices = {"mean": 1, "error": 2, "worst": 5}

# %%
# When to release
# ---------------
#
# The linear program learns both decisions together: what the first one sends on depends
# on what the second one will do with it. ``order`` would name another order than that of
# price.

leaf = make_pipeline(StandardScaler(), LogisticRegression())
cascade = CascadeClassifier(
    inspections, costs=prices, cost_weight=0.005, classifier=leaf
).fit(X, y)
print(cascade.tree_)

# %%
# Who is released where
# ---------------------
#
# On samples that were not fitted on. The second bar is the share of right answers *among
# those that are released there*; the grey line is the classifier with all inspections for
# everybody.

stage, right = cascade.apply(X_new), cascade.predict(X_new) == y_new
share = np.bincount(stage, minlength=3) / len(stage)
accuracy = [
    right[stage == k].mean() if (stage == k).any() else np.nan for k in range(3)
]
everything = leaf.fit(X, y).score(X_new, y_new)

fig, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
positions = np.arange(3)
ax.bar(positions - 0.2, share, 0.38, color="#0072B2", label="share released here")
ax.bar(positions + 0.2, accuracy, 0.38, color="#E69F00", label="right, of those")
ax.axhline(everything, color="#595959", lw=1, label="right, everything for all")
known = ["mean", "mean, error", "mean, error, worst"]
ax.set_xticks(positions, [f"{k}\n{c}" for k, c in zip(known, (1, 3, 8), strict=True)])
ax.set(xlabel="inspections, and what they cost together", ylim=(0, 1.25))
ax.legend(loc="upper right", ncols=3)
print(f"mean cost {cascade.acquisition_cost(X_new).mean():.2f} of 8")
print(f"right: {right.mean():.3f}; everything for everybody: {everything:.3f}")

# %%
# The cascade spends a third of what all inspections cost, and makes more mistakes. Whether
# that is a bargain is what ``cost_weight`` says: here an inspection of price 5 is worth
# buying where it saves more than 2.5 mistakes in a hundred.
