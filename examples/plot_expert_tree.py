"""
A tree given by an expert
=========================

A clinic has its own pathway: which test may follow which. The tree is theirs; when to take
which branch is learned.
"""

# %%
# The pathway
# -----------
#
# Every patient has a history taken. Then there are three ways: stop; blood and a resting
# ECG; or straight to the treadmill. From the treadmill the heart may be looked at by
# fluoroscopy. Thallium is never used: its columns are left out.
#
# Heart patients and prices (dollars) are those of ``sensortree demo``: real data, prices
# of P. Turney (JAIR 2, 1995). The pathway is made up, and a wrong answer is taken to cost
# 4,000 dollars.

from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from sensortree import Leaf, Node, Sensor, SensorTree, SensorTreeClassifier, TreeDisplay
from sensortree.demo import TESTS, encoder, load_patients

X, ill = load_patients()
X = X.drop(columns=["thalach", "thal"])
X, X_new, ill, ill_new = train_test_split(
    X, ill, test_size=0.4, stratify=ill, random_state=0
)
sensors = {
    name: Sensor(list(columns), cost=price, transformer=encoder(columns))
    for name, (columns, price) in TESTS.items()
    if name != "exercise_thallium"
}

# %%
# Every vertex says what is known there; an edge buys what is new. A choice among three
# ways is two nodes that know the same.

history = {"history_exam"}
small = history | {"blood", "resting_ecg"}
treadmill = history | {"exercise_ecg"}
pathway = SensorTree(
    Node(
        history,
        negative=Leaf(history),
        positive=Node(
            history,
            negative=Leaf(small),
            positive=Node(
                treadmill,
                negative=Leaf(treadmill),
                positive=Leaf(treadmill | {"fluoroscopy"}),
            ),
        ),
    )
)

# %%
# Learned decisions
# -----------------
#
# All decisions are learned together on the training patients, and the fit is certified.
# The picture follows the others through the tree.

model = SensorTreeClassifier(
    sensors,
    cost_weight=1 / 4000,
    structure=pathway,
    classifier=LogisticRegression(max_iter=1000),
)
model.fit(X, ill)
print(model.certificate_)
print(model.decision_report_)
TreeDisplay.from_estimator(model, X_new, ill_new, unit="dollars").plot()

# %%
# A branch that no patient takes is a finding too: at these prices the pathway does not
# need it. What a tree of the library's own would give, for comparison:

own = SensorTreeClassifier(
    sensors, cost_weight=1 / 4000, classifier=LogisticRegression(max_iter=1000)
).fit(X, ill)
for name, fitted in (("the expert's tree", model), ("a learned tree", own)):
    report = fitted.report(X_new, ill_new)
    low, high = (4000 * end for end in report.intervals["total"])
    print(
        f"{name:18} {1 - report.error:.3f} right, tests {report.cost:6.2f}, tests and "
        f"errors {4000 * report.total:,.0f} ({low:,.0f} to {high:,.0f}) dollars"
    )

# %%
# With 122 patients the intervals overlap: nothing here says that one is better.
