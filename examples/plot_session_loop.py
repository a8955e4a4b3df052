"""
A session, step by step
=======================

A policy in use: it asks, somebody measures, and it asks again or answers. A machine may be
out of order, a session may be put away over night, and somebody will want to know why.
"""

# %%
# A policy
# --------
#
# Heart patients and prices (dollars) are those of ``sensortree demo``: real data, prices
# of P. Turney (JAIR 2, 1995). A wrong answer is taken to cost 4,000 dollars.

import json

from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from sensortree import PathDisplay, Sensor, SensorTreeClassifier
from sensortree.demo import TESTS, encoder, load_patients

X, ill = load_patients()
X, X_new, ill, ill_new = train_test_split(
    X, ill, test_size=0.4, stratify=ill, random_state=0
)
sensors = {
    name: Sensor(list(columns), cost=price, transformer=encoder(columns))
    for name, (columns, price) in TESTS.items()
}
model = SensorTreeClassifier(
    sensors,
    cost_weight=1 / 4000,
    structure="cascade",
    classifier=LogisticRegression(max_iter=1000),
).fit(X, ill)
policy = model.policy_

# %%
# The loop
# --------
#
# Nothing is read of a patient but what the policy asks for. Here the one whose way is the
# longest:

patient = X_new.iloc[model.acquisition_cost(X_new).argmax()]


def measure(step):
    return {column: patient[column] for column in TESTS[step.sensor][0]}


session = policy.session()
while (step := session.ask()) is not None:
    print(f"{step.sensor:18} for {step.cost:6.2f}")
    session.tell(step.sensor, measure(step))
decision = session.decision()
print(f"answer {decision.label}, probability {decision.proba.max():.2f}")
print(f"spent {decision.spent:.2f}, saved {decision.saved:.2f}")

# %%
# Put away, and taken up again
# ----------------------------
#
# A session is plain JSON, with the digest of its model inside. Another process goes on.

session = policy.session()
session.tell("history_exam", measure(session.ask()))
stored = json.dumps(session.to_dict())
session = policy.resume(json.loads(stored))
print("next:", session.ask().sensor)

# %%
# A machine is out of order
# -------------------------
#
# The session then takes what the training patients at this node lost least with, among
# the ways that are left; or it answers where it stands.

broken = session.ask().sensor
session.unavailable(broken)
while (step := session.ask()) is not None:
    session.tell(step.sensor, measure(step))
decision = session.decision()
print(f"without {broken}: answer {decision.label} for {decision.spent:.2f}")
print(f"expected loss of going round: {decision.rerouting_loss:.3f}")

# %%
# Why?
# ----
#
# The way through the tree, with what was likely at every decision; in words by
# ``print(explanation)``, with every score by ``print(explanation.details)``.

explanation = model.explain(patient.to_frame().T)
PathDisplay.from_explanation(explanation, unit="dollars").plot()
print(explanation)
