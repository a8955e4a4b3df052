"""
Buy when unsure
===============

A cheap camera looks at every part that leaves a machine and reports two numbers: a score
(negative: sound, positive: broken) and how blurred the picture was. A dear inspection
measures the same thing without the blur. Where is it worth its price?
"""

# %%
# The data
# --------
#
# Parts and prices are made up. The truth is a number that we never see. The inspection
# reads it almost exactly; the camera reads it with an error that grows with the blur.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import FunctionTransformer

from sensortree import Sensor, SensorTreeClassifier


def make_parts(n, seed):
    rng = np.random.default_rng(seed)
    truth, blur = rng.normal(size=n), rng.random(n)
    score = truth + 1.2 * blur * rng.normal(size=n)
    inspected = truth + 0.05 * rng.normal(size=n)
    return np.c_[score, blur, inspected], truth > 0


X, broken = make_parts(1500, seed=0)
X_new, broken_new = make_parts(1500, seed=1)

# %%
# Sensors and prices
# ------------------
#
# A decision is linear in what is known. "The score is near 0" is not linear in the score,
# so the camera's transformer adds its size. A picture is free. A wrong answer costs as
# much as 5 inspections, hence the weight 1/5.


def with_size_of_score(camera):
    return np.c_[camera, np.abs(camera[:, 0])]


sensors = {
    "camera": Sensor(
        [0, 1], cost=0, transformer=FunctionTransformer(with_size_of_score)
    ),
    "inspection": Sensor(2, cost=1),
}
model = SensorTreeClassifier(
    sensors, cost_weight=1 / 5, classifier=LogisticRegression()
)
model.fit(X, broken)
print(model.tree_)
print(model.certificate_)

# %%
# What it buys
# ------------
#
# On parts that were not in the training data, beside the two strategies that treat all
# parts alike:

camera_only = LogisticRegression().fit(with_size_of_score(X[:, :2]), broken)
everything = LogisticRegression().fit(X, broken)
results = {
    "camera only": (camera_only.score(with_size_of_score(X_new[:, :2]), broken_new), 0),
    "sensor tree": (
        model.score(X_new, broken_new),
        model.acquisition_cost(X_new).mean(),
    ),
    "always inspect": (everything.score(X_new, broken_new), 1),
}
for name, (accuracy, cost) in results.items():
    total = 1 - accuracy + cost / 5
    print(f"{name:15} {accuracy:.3f} right, {cost:.3f} inspections, risk {total:.3f}")

# %%
# Where it buys
# -------------
#
# The decision sees the camera only, so it can be drawn in the plane of score and blur. The
# inspection's column does not matter for it and is filled with zeros.

score, blur = np.meshgrid(np.linspace(-3, 3, 241), np.linspace(0, 1, 161))
plane = np.c_[score.ravel(), blur.ravel(), np.zeros(score.size)]
buys = model.acquired(plane)[:, model.sensors_.index("inspection")]

fig, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
ax.contourf(
    score,
    blur,
    buys.reshape(score.shape),
    [-0.5, 0.5, 1.5],
    colors=["white", "#ffd9a0"],
)
for label, colour, marker, name in (
    (False, "#0072B2", "o", "sound"),
    (True, "#D55E00", "^", "broken"),
):
    rows = np.flatnonzero(broken_new[:500] == label)
    ax.scatter(*X_new[rows, :2].T, s=9, c=colour, marker=marker, label=name)
ax.set(
    xlim=(-3, 3),
    ylim=(0, 1),
    xlabel="score of the camera",
    ylabel="blur",
    title="The inspection is bought in the shaded region",
)
ax.legend(loc="upper right")

# %%
# It is bought where the picture is blurred and the score is near 0, and for a wider range
# of scores the more it is blurred. With a larger ``cost_weight`` the region shrinks.
