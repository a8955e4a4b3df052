"""Claims about logging: silent by default, stages at INFO, details at DEBUG, no values."""

from __future__ import annotations

import logging
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from toys import toy_policy

from sensortree import SensorTreeClassifier, SensorTreeClassifierCV

TOY = """
import numpy as np
from sensortree import SensorTreeClassifier
X = np.random.default_rng(0).normal(size=(80, 2))
model = SensorTreeClassifier().fit(X, X[:, 0] > 0)
model.policy_.acquire(lambda sensor, columns: [0.0])
"""


def rows():
    X = np.random.default_rng(0).normal(size=(150, 3))
    return X, X[:, 0] + (np.abs(X[:, 0]) < 0.5) * X[:, 1] > 0


def said(caplog, name, level):
    return [
        record.getMessage()
        for record in caplog.records
        if record.name == name and record.levelno == level
    ]


def printed(code):
    ran = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    return ran.stdout + ran.stderr


def test_nothing_is_shown_by_default():
    assert printed(TOY) == ""


def test_the_application_hears_when_it_wants_to():
    assert "fitted: reading" in printed(
        f"import logging; logging.basicConfig(level='INFO'){TOY}"
    )


def test_the_library_handles_nothing_itself():
    handlers = logging.getLogger("sensortree").handlers
    assert [type(handler) for handler in handlers] == [logging.NullHandler]


def test_stages_and_their_times_are_told_at_info(caplog):
    caplog.set_level(logging.INFO, "sensortree")
    model = SensorTreeClassifier(cost_weight=0.02).fit(*rows())
    *stages, last = said(caplog, "sensortree.fit", logging.INFO)
    for stage, line in zip(("reading", "leaf", "decisions"), stages, strict=True):
        assert f" s: {stage}" in line
    for stage in model.fit_report_.seconds:
        assert re.search(rf"{stage} [0-9.]+ s", last)
    assert said(caplog, "sensortree.fit", logging.DEBUG) == []


def test_candidates_and_iterations_are_told_at_debug(caplog):
    caplog.set_level(logging.DEBUG, "sensortree")
    model = SensorTreeClassifier(cost_weight=0.02).fit(*rows())
    details = " ".join(said(caplog, "sensortree.fit", logging.DEBUG))
    judged = set(model.comparison_.risk) - {"nothing", "one set"}
    assert judged
    for candidate in judged:
        assert f"comparing: {candidate}" in details
    solver = said(caplog, "sensortree.solver", logging.DEBUG)
    assert solver[0].startswith("iteration 0: ")
    proof = replace(model.certificate_, speaks_of="")  # the solver knows of no model
    assert any(str(proof) in line for line in solver)


def test_fits_on_held_out_folds_are_details(caplog):
    caplog.set_level(logging.INFO, "sensortree")
    SensorTreeClassifierCV(cost_weights=[0.01, 0.1], cv=2).fit(*rows())
    lines = said(caplog, "sensortree.fit", logging.INFO)
    # One model is fitted on all rows, after four on folds.
    assert sum("decisions" in line for line in lines[:-1]) <= 1
    assert "SensorTreeClassifierCV fitted: " in lines[-1]


def test_a_session_logs_names_and_prices_but_no_values(caplog):
    caplog.set_level(logging.DEBUG, "sensortree")
    toy_policy().acquire(lambda sensor, columns: [1234.5 if sensor == "a" else 678.9])
    lines = said(caplog, "sensortree.session", logging.DEBUG)
    assert lines == [
        "begun with []; asks for 'a', spent 0",
        "told 'a'; asks for 'b', spent 1",
        "told 'b'; stopped at leaf 1, spent 4",
    ]


def test_an_oracle_that_fails_is_logged_without_its_words(caplog):
    def oracle(sensor, columns):
        raise OSError("patient 4711 left")

    caplog.set_level(logging.DEBUG, "sensortree")
    toy_policy().acquire(oracle, on_error="unavailable")
    lines = said(caplog, "sensortree.session", logging.DEBUG)
    assert "oracle of 'a' failed: OSError" in lines
    assert not any("4711" in line for line in lines)


@pytest.mark.parametrize("verbose", [False, True])
def test_verbose_writes_lines_whatever_is_logged(verbose, capsys):
    SensorTreeClassifier(verbose=verbose).fit(*rows())
    assert ("[sensortree]" in capsys.readouterr().err) == verbose
