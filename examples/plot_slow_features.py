"""
A slow feature pipeline
=======================

Prices need not be money. Here they are milliseconds: features are computed from a picture,
some in an instant and some slowly, and a feature that the policy does not ask for is never
computed.
"""

# %%
# Three features of a digit
# -------------------------
#
# scikit-learn's digits, 8 × 8 pixels: real data. The milliseconds are made up, as a
# profile of a larger pipeline might show them; the functions below are stand-ins that are
# quick.

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sensortree import SensorTreeClassifier, TreeDisplay


def thumbnail(picture):  # 16 means of 2 x 2 pixels
    return picture.reshape(4, 2, 4, 2).mean(axis=(1, 3)).ravel()


def edges(picture):  # 32 sums of differences
    across, down = np.diff(picture, axis=1), np.diff(picture, axis=0)
    return np.concatenate(
        [np.maximum(d, 0).sum(axis=a) for d in (across, -across) for a in (0, 1)]
        + [np.maximum(d, 0).sum(axis=a) for d in (down, -down) for a in (0, 1)]
    )


def spectrum(picture):  # 40 sizes of frequencies
    return np.abs(np.fft.rfft2(picture)).ravel()


features = {"thumbnail": thumbnail, "edges": edges, "spectrum": spectrum}
milliseconds = {"thumbnail": 0.2, "edges": 3.0, "spectrum": 25.0}

# %%
# For training, everything is computed once. Each feature is a sensor.

pictures, digit = load_digits(return_X_y=True)
pictures = pictures.reshape(-1, 8, 8)
blocks = {n: np.array([f(p) for p in pictures]) for n, f in features.items()}
ends = np.cumsum([0] + [block.shape[1] for block in blocks.values()])
sensors = {n: slice(*ends[i : i + 2].tolist()) for i, n in enumerate(blocks)}
X = np.hstack(list(blocks.values()))
train, test = train_test_split(
    np.arange(len(X)), test_size=0.4, stratify=digit, random_state=0
)

# %%
# A wrong answer is worth half a second: 1/500 of an error per millisecond.

leaf = make_pipeline(StandardScaler(), LogisticRegression(C=0.1))
model = SensorTreeClassifier(
    sensors, costs=milliseconds, cost_weight=1 / 500, classifier=leaf
)
model.fit(X[train], digit[train])
TreeDisplay.from_estimator(model, X[test], digit[test], unit="ms").plot()

# %%
# On pictures that were not fitted on, beside the classifier on all features:

right, cost = model.score(X[test], digit[test]), model.acquisition_cost(X[test]).mean()
all_right = leaf.fit(X[train], digit[train]).score(X[test], digit[test])
print(f"as needed:      {right:.3f} right, {cost:5.2f} ms a picture")
print(f"everything:     {all_right:.3f} right, {sum(milliseconds.values()):5.2f} ms")

# %%
# In production
# -------------
#
# ``policy.acquire`` calls a function for what is needed and for nothing else. It counts
# itself how often:

calls = dict.fromkeys(features, 0)


def pipeline(picture):
    def compute(sensor, columns):
        calls[sensor] += 1
        return features[sensor](picture)

    return model.policy_.acquire(compute)


answers = [pipeline(pictures[i]).label for i in test]
print(
    f"{np.mean(answers == digit[test]):.3f} right; calls for {len(test)} pictures: {calls}"
)
