"""
Buying for many rows, each lookup once
======================================

Thousands of applications, and a bureau that charges for every lookup. All rows go through
the tree in waves, on two worker processes; a ledger sees to it that nothing is bought
twice, and that the money lasts. Data and prices are made up.
"""

# %%
# A policy
# --------
#
# Three lookups, of which each settles a part of what the ones before leave open.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from sensortree import Sensor, SensorTreeClassifier
from sensortree.dask import Lookup, SqliteLedger, acquire, answers

rng = np.random.default_rng(0)
X = rng.normal(size=(6000, 3))
risk = X[:, 0]
for column in (1, 2):
    risk = np.where(np.abs(risk) < 0.6, X[:, column], risk)
sensors = {
    "register": Sensor([0], cost=0.05),
    "score": Sensor([1], cost=0.9),
    "visit": Sensor([2], cost=4.0),
}
model = SensorTreeClassifier(sensors, cost_weight=0.03, structure="chain")
model.fit(X[:2000], risk[:2000] > 0)
policy, rows = model.policy_, range(2000, 6000)

# %%
# Who is asked
# ------------
#
# An oracle is given the keys of many rows, and a token for each: a supplier that charges a
# token once charges a row once. This one has no visit for some, who go on without.


def bureau(ask):
    column = ["register", "score", "visit"].index(ask.sensor)
    readings = X[list(ask.keys)][:, [column]]
    if ask.sensor == "visit":
        return {k: r for k, r in zip(ask.keys, readings, strict=True) if k % 10}
    return readings


oracles = {name: Lookup(bureau, size=500) for name in sensors}

# %%
# Two processes, half the money first
# -----------------------------------
#
# With a limit the run stops in time; rows that wait are answered where they stand. The same
# call with more money goes on from the ledger.

bills = []
if __name__ != "__mp_main__":  # workers read a script too
    from distributed import Client, LocalCluster

    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        ledger = SqliteLedger(Path(folder) / "run.sqlite3")
        for limit in (2500, 10_000):
            bill = acquire(
                policy,
                rows,
                oracles,
                ledger,
                limit=limit,
                client=client,
                block_rows=1000,
            )
            print(f"limit {limit}:", bill, sep="\n", end="\n\n")
            bills.append(bill)
        (found,) = answers(policy, ledger)
        ledger.close()

# %%
# What it was worth
# -----------------
#
# Rows to which everything came that they asked for are answered as `predict` answers them.

if bills:
    usual = found.because == "policy"
    same = (found.label == model.predict(X[found.key]))[usual].mean()
    right = (found.label == (risk[found.key] > 0)).mean()
    print(f"{same:.0%} answered as in batch, {right:.1%} right, {bill.spent} spent")
    figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
    prices = [float(sensor.cost) for sensor in sensors.values()]
    for money, label, height in [
        ([price * len(rows) for price in prices], "everything for everybody", 0.8),
        ([float(bills[1].sensors[s].spent) for s in sensors], "what was bought", 0.55),
        ([float(bills[0].sensors[s].spent) for s in sensors], "with half of it", 0.3),
    ]:
        axes.barh(list(sensors), money, height, label=label)
    axes.set(xlabel="money, logarithmic", xscale="log", title="A bill by sensor")
    axes.legend()
