"""Claims about light copies that screen, and about telling how far a fit has come."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sensortree import AlternatingTreeClassifier, SensorTreeClassifier
from sensortree.learning.fit import ended_early
from sensortree.leaves.fitting import _lighter, screen_leaf_classifiers
from sensortree.progress import OUT_OF_TIME, TextProgress


def misleading(n: int = 900):
    """Sensor 0 is the best alone; y is the sign of the other two together."""
    rng = np.random.default_rng(0)
    b, c = rng.normal(size=(2, n))
    y = b + c > 0
    a = np.where(rng.random(n) < 0.82, y, ~y) + 0.1 * rng.normal(size=n)
    return np.column_stack([a, b, c]), y


# screens ----------------------------------------------------------------------------------


def test_ensembles_are_screened_with_few_trees_and_others_with_few_rows():
    boosted = HistGradientBoostingClassifier(max_iter=200, max_leaf_nodes=127)
    light, n_rows = _lighter(make_pipeline(StandardScaler(), boosted))
    assert light[-1].max_iter == 30
    assert light[-1].max_leaf_nodes == 31
    assert boosted.max_iter == 200
    forest, _ = _lighter(RandomForestClassifier(n_estimators=500))
    assert forest.n_estimators == 30
    assert _lighter(KNeighborsClassifier())[1] < n_rows


def test_the_screen_answers_rows_by_copies_that_have_not_seen_them():
    # The nearest neighbour of a row that was seen is the row itself: no error at all.
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 1)), rng.integers(0, 2, 300)
    nearest = KNeighborsClassifier(n_neighbors=1)
    for fold in (np.full(300, -1), rng.integers(0, 3, 300)):
        said = screen_leaf_classifiers(nearest, {frozenset("a"): X}, y, 2, fold)
        (errors,) = said.values()
        assert 0.4 < errors.mean() < 0.6


def test_the_screen_answers_a_group_of_rows_by_copies_that_have_seen_none_of_it():
    rng = np.random.default_rng(0)
    X, y = np.repeat(rng.normal(size=(100, 1)), 3, axis=0), rng.integers(0, 2, 100)
    nearest, fold = KNeighborsClassifier(n_neighbors=1), rng.integers(0, 5, 100)
    y, fold = np.repeat(y, 3), np.repeat(fold, 3)
    (said,) = screen_leaf_classifiers(nearest, {frozenset("a"): X}, y, 2, fold).values()
    assert 0.35 < (said.argmax(axis=1) != y).mean() < 0.65


# progress ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [SensorTreeClassifier, AlternatingTreeClassifier])
def test_a_verbose_fit_writes_a_line_per_step_to_stderr(kind, capsys):
    X, y = misleading(200)
    kind(structure="chain").fit(X, y)
    assert capsys.readouterr().err == ""
    kind(structure="chain", verbose=True).fit(X, y)
    lines = capsys.readouterr().err.splitlines()
    assert all(line.startswith("[sensortree] ") for line in lines)
    assert re.search(r"reading \(step 1 of at most \d+\)$", lines[0])
    assert not any("s left" in line for line in lines)  # nobody knows
    told = ("subsets screened", "comparing: chain")
    assert any(what in line for line in lines[1:] for what in told)
    assert "s  leaf classifiers (step" in lines[-2]
    assert lines[-1].endswith("s  decisions")


def test_a_verbose_path_tells_of_every_model(capsys):
    X, y = misleading(200)
    SensorTreeClassifier(structure="cascade", verbose=True).fit_path(X, y, [0.1, 0.01])
    assert capsys.readouterr().err.count("decisions") == 2


def test_what_is_left_of_max_time_is_said(capsys):
    X, y = misleading(200)
    SensorTreeClassifier(structure="chain", verbose=True, max_time=60).fit(X, y)
    lines = capsys.readouterr().err.splitlines()
    assert re.search(r"at most \d+, (60|59|58) s of max_time left\)$", lines[0])


def test_a_search_that_time_ended_does_not_blame_prices():
    """With time the tree buys; without, nothing was found that could be compared."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 6))
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    model = SensorTreeClassifier(max_time=1e-9, cost_weight=0.1)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model.fit(X, y)
    assert model.acquisition_cost(X).mean() == 0
    said = str(told[0].message)
    assert "the model buys nothing: max_time was over before every tree" in said
    assert "cost_weight" not in said
    SensorTreeClassifier(cost_weight=0.1).fit(X, y)  # nobody is told


def test_candidates_that_time_left_out_are_named():
    class Late(TextProgress):
        """Out of time once a candidate has been judged."""

        late = False

        @property
        def stopped(self):
            return OUT_OF_TIME if self.late else None

        def step(self, name, detail=""):
            super().step(name, detail)
            self.late |= name == "comparing"

    X, y = misleading(200)
    model = SensorTreeClassifier(cost_weight=0.001)
    late = Late(verbose=False)
    late.end = lambda: None
    model._progress = lambda X, settings: late
    model.fit(X, y)
    compared = model.comparison_
    assert OUT_OF_TIME in compared.not_compared.values()
    assert ended_early(model.structure_report_, compared) == OUT_OF_TIME
    assert "(max_time was over)" in str(compared)
