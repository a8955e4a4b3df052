"""
Comparing methods
=================

The library has the methods that the paper compares with, under the same sensors and prices.
This draws all of them on one data set, on held-out rows.
"""

# %%
# Data
# ----
#
# Is a digit 0 to 4, or 5 to 9? scikit-learn's digits: real data. The sensors are four
# bands of the picture, two lines each; the prices are made up.

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from sensortree import (
    AlternatingTreeClassifier,
    ASTCClassifier,
    CascadeClassifier,
    CSTCClassifier,
    MyopicClassifier,
    SensorTreeClassifier,
    StaticSubsetClassifier,
    TradeoffDisplay,
)
from sensortree.results import TradeoffCurve

X, digit = load_digits(return_X_y=True)
X, X_new, y, y_new = train_test_split(
    X / 16, digit >= 5, test_size=0.4, stratify=digit, random_state=0
)
sensors = {
    "upper": slice(16, 32),
    "lower": slice(32, 48),
    "top": slice(0, 16),
    "bottom": slice(48, 64),
}
costs = {"upper": 1, "lower": 2, "top": 2, "bottom": 3}
leaf = LogisticRegression(C=10, max_iter=1000)

# %%
# Methods
# -------
#
# Each has one parameter that trades error for cost; ``fit_path`` takes its values and
# shares what can be shared. CSTC and ASTC bring their own linear classifiers.

weights = [0.2, 0.05, 0.03, 0.02, 0.01, 0.003, 0.001]
methods = {
    "sensor tree": (SensorTreeClassifier, {"classifier": leaf}, weights),
    "alternating": (
        AlternatingTreeClassifier,
        {"classifier": leaf, "random_state": 0},
        weights,
    ),
    "cascade": (CascadeClassifier, {"classifier": leaf}, weights),
    "myopic": (MyopicClassifier, {"classifier": leaf}, [0, 0.2, 0.4, 0.6, 0.8, 1]),
    "static subset": (StaticSubsetClassifier, {"classifier": leaf}, weights),
    "CSTC": (CSTCClassifier, {}, [3, 1, 0.3, 0.1, 0.03, 0.01]),
    "ASTC": (ASTCClassifier, {}, [1, 2, 3, 5, 8]),
}

# %%
# Error against cost
# ------------------
#
# All are fitted on the same 1,078 pictures and measured on the other 719. No parameter is
# chosen here: every value is a point. The picture leaves out the last two, to be
# readable.

curves = {}
for name, (method, settings, values) in methods.items():
    models = method(sensors, costs=costs, **settings).fit_path(X, y, values)
    points = [
        (m.acquisition_cost(X_new).mean(), 1 - m.score(X_new, y_new)) for m in models
    ]
    curves[name] = TradeoffCurve.from_points(points)
    shown = "  ".join(f"{cost:.1f} {error:.3f}" for cost, error in points)
    print(f"{name:14} {shown}")

TradeoffDisplay.from_curve(
    {name: curve for name, curve in curves.items() if name not in ("CSTC", "ASTC")}
).plot()

# %%
# What each needs for an error of 12 %, read off the lower hull of its points. One point
# of error is 7 pictures here: small differences are chance.

for name, curve in curves.items():
    cost = curve.cost_at_error(0.12)
    print(f"{name:14}", "never" if np.isnan(cost) else f"{cost:.2f} of 8")
