"""
A battery-powered sensor node
=============================

A camera on a battery reads its picture in four bands, and each band that it reads out and
processes takes energy. The battery has to last: given is a budget, not a price of errors.
"""

# %%
# Bands of a picture
# ------------------
#
# The pictures are scikit-learn's digits: real data. A band is two lines of eight pixels.
# The energies are made up: the node wakes up with the second band, and reading lines
# further away takes longer.

from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sensortree import SensorTreeClassifierCV, TradeoffDisplay

X, digit = load_digits(return_X_y=True)
X, X_new, digit, digit_new = train_test_split(
    X, digit, test_size=0.4, stratify=digit, random_state=0
)
bands = {
    "top": slice(0, 16),
    "upper": slice(16, 32),
    "lower": slice(32, 48),
    "bottom": slice(48, 64),
}
millijoules = {"top": 3, "upper": 2, "lower": 3, "bottom": 4}

# %%
# The best tree for 8 millijoules
# -------------------------------
#
# ``SensorTreeClassifierCV`` measures error against energy on held-out folds of the
# training pictures, and takes the best point within the budget. All four bands would take
# 12.

model = SensorTreeClassifierCV(
    bands,
    costs=millijoules,
    budget=8.0,
    cost_weights=[0.2, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001],
    structure="cascade",
    classifier=make_pipeline(StandardScaler(), LogisticRegression(C=0.1)),
    cv=3,
)
model.fit(X, digit)
print(model.chosen_)
TradeoffDisplay.from_curve(model.curve_, chosen=model.chosen_, unit="mJ").plot()

# %%
# On pictures it has not seen
# ---------------------------
#
# A budget is a mean: one picture may take more. How long a battery lasts follows from the
# mean; here 10 kJ (made up), one picture a second.

energy = model.acquisition_cost(X_new)
print(f"{model.score(X_new, digit_new):.3f} right, {energy.mean():.2f} mJ a picture")
for name, each in (("as needed", energy.mean()), ("all bands", 12)):
    days = 10_000 / (each / 1000) / 86_400
    print(f"{name}: the battery lasts {days:.1f} days")

# %%
# For a bound on every single picture there is ``max_cost``, alone or beside a budget.
