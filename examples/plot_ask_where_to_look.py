"""
Ask where to look first
=======================

A machine has stopped, and one of its five subsystems is to blame. Nobody inspects them all:
the operator's description, cheap and silent about *what* is wrong, tells *where* to look.
A tree that branches buys it first and then sends every machine to the inspections that
matter for it; a chain has to take one order for all.
"""

# %%
# A repair shop
# -------------
#
# The data are made up. A fault is in one of five subsystems, and of four kinds. Each
# subsystem has three inspections: a test run tells the first two kinds from the others, the
# oil tells the first two apart, the camera the others. Where the fault is elsewhere they
# show wear and tear, which says nothing. The symptom that the operator describes points to
# the subsystem.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split

from sensortree import SensorTreeClassifier, TreeDisplay

PARTS = ("engine", "gearbox", "brakes", "hydraulics", "electrics")
LOOKS = {"run": 3, "oil": 4, "camera": 6}  # minutes
KINDS = np.array(["loose", "worn", "cracked", "leaking"])

rng = np.random.default_rng(0)
n = 3_000
part, kind = rng.integers(0, 5, n), rng.integers(0, 4, n)
symptom = np.eye(5)[part] + rng.normal(0, 0.15, (n, 5))
readings = rng.normal(0.5, 0.5, (n, 5, len(LOOKS)))
shown = np.array([[0, 0, 0.5], [0, 1, 0.5], [1, 0.5, 0], [1, 0.5, 1]])  # by kind
readings[np.arange(n), part] = shown[kind] + rng.normal(0, 0.2, (n, len(LOOKS)))
X = np.hstack([symptom, readings.reshape(n, -1)])

sensors, costs = {"symptom": slice(0, 5)}, {"symptom": 1}
for p, name in enumerate(PARTS):
    for look, (what, minutes) in enumerate(LOOKS.items()):
        sensors[f"{name} {what}"] = [5 + 3 * p + look]
        costs[f"{name} {what}"] = minutes
X, X_new, y, y_new = train_test_split(X, KINDS[kind], test_size=0.4, random_state=0)

# %%
# A tree that branches, and a chain
# ---------------------------------
#
# A minute is worth one mistake in two hundred. By itself the symptom saves no mistake at
# all; what makes it worth its minute is what can be bought well after it.

models = {
    structure: SensorTreeClassifier(
        sensors,
        costs=costs,
        cost_weight=0.005,
        structure=structure,
        n_leaves=64,
        classifier="logistic2",
    ).fit(X, y)
    for structure in ("branched", "chain")
}
for structure, model in models.items():
    error = np.mean(model.predict(X_new) != y_new)
    minutes = model.acquisition_cost(X_new).mean()
    print(
        f"{structure:9} error {error:.3f}, {minutes:5.2f} minutes, risk "
        f"{error + 0.005 * minutes:.3f}, {model.tree_.n_leaves} leaves"
    )

# %%
# Where it looks
# --------------
#
# On machines that were not fitted on. Nodes that know the same are one box: after the
# symptom there is one way for each subsystem. In some, what the test run shows decides
# whether to look at the oil or through the camera.

branched = models["branched"]
TreeDisplay.from_estimator(branched, X_new, y_new, unit="minutes").plot()

# %%
# Why this machine was sent there
# -------------------------------
#
# The explanation names the way that was taken and those that were not, each with its
# margin: how clearly it was decided, or what it lacked. The machine is one of those that
# cost most.

dearest = branched.acquisition_cost(X_new).argmax()
explanation = branched.explain(X_new[dearest])
print(explanation.summary)
for fork in explanation.forks:
    print(f"known: {', '.join(fork.known) or 'nothing'}")
    for branch in sorted(fork.branches, key=lambda branch: -branch.margin):
        mark = "->" if branch.taken else "  "
        print(f"  {mark} {branch.words:46} margin {branch.margin:+6.2f}")

# %%
# What it saves
# -------------
#
# The chain inspects subsystems that are sound, machine after machine: it takes longer *and*
# makes more mistakes.

fig, ax = plt.subplots(figsize=(6.4, 2.4), layout="constrained")
for line, model in enumerate(models.values()):
    error = np.mean(model.predict(X_new) != y_new)
    time = 0.005 * model.acquisition_cost(X_new).mean()
    ax.barh(line, time, color="#0072B2", label="" if line else "minutes")
    ax.barh(line, error, left=time, color="#E69F00", label="" if line else "mistakes")
ax.set_yticks([0, 1], models)
ax.invert_yaxis()
ax.set_xlabel("risk: mistakes, and minutes at 0.005 each, per machine")
ax.legend()
