"""Claims about the public face: names, imports, documentation."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import sensortree
import sensortree.dask
import sensortree.program
import sensortree.results

MODULES = [sensortree, sensortree.dask, sensortree.program, sensortree.results]
ROOT = Path(__file__).parents[1]


def in_a_new_process(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.mark.parametrize("module", MODULES, ids=lambda m: m.__name__)
def test_all_is_sorted_and_every_name_is_there(module):
    names = module.__all__
    assert names == sorted(
        names, key=lambda n: (not n.isupper(), not n[0].isupper(), n)
    )
    for name in names:
        assert getattr(module, name) is not None


@pytest.mark.parametrize("module", MODULES, ids=lambda m: m.__name__)
def test_every_public_name_has_a_docstring(module):
    for name in module.__all__:
        if name not in ("__version__", "SOLVERS"):
            assert len(getattr(module, name).__doc__) > 20, name


def test_what_users_type_is_few_names():
    assert len(sensortree.__all__) <= 40


@pytest.mark.parametrize("name", sensortree._MOVED)
def test_a_name_that_moved_is_still_found_with_a_warning_that_says_where(name):
    with pytest.warns(FutureWarning, match=f"import {name}`") as told:
        found = getattr(sensortree, name)
    line = str(told[0].message).partition("`")[2].partition("`")[0]
    home = import_module(line.split()[1])
    assert found is getattr(home, name)
    assert told[0].filename == __file__


def test_every_class_that_moved_is_in_a_documented_module():
    exceptions = import_module("sensortree.exceptions")
    public = {n for n in vars(exceptions) if n.endswith(("Error", "Warning"))}
    moved = sensortree._MOVED
    assert public == {"SensorTreeError", *(n for n in moved if n in public)}
    results = [n for n, home in moved.items() if home == "results"]
    assert results == sensortree.results.__all__


def test_modules_of_names_are_found_without_importing_them():
    code = (
        "import sensortree; sensortree.exceptions.DataError; sensortree.results.Choice"
    )
    assert in_a_new_process(code) == ""


def test_every_display_is_found_at_the_top():
    display = import_module("sensortree.display")
    assert set(display.__all__) <= set(sensortree.__all__)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'SensorForest'"):
        _ = sensortree.SensorForest


def test_importing_the_package_imports_neither_scikit_learn_nor_any_option():
    heavy = "sklearn scipy matplotlib pandas polars highspy clarabel typer rich"
    code = f"""
import sys, sensortree
print(sorted(set('{heavy}'.split()) & set(sys.modules)))
"""
    assert in_a_new_process(code) == "[]"


def test_fitting_imports_no_optional_package():
    # pandas and rich are not listed: scikit-learn itself imports them where it finds them
    optional = "matplotlib polars highspy clarabel typer sklego"
    code = f"""
import sys, numpy as np
from sensortree import SensorTreeClassifier
X = np.random.default_rng(0).normal(size=(30, 2))
SensorTreeClassifier().fit(X, X[:, 0] > 0).predict(X)
print(sorted(set('{optional}'.split()) & set(sys.modules)))
"""
    assert in_a_new_process(code) == "[]"


def test_a_missing_solver_names_the_extra_to_install(monkeypatch):
    from sensortree.program.solvers import base

    monkeypatch.setattr(base, "find_spec", lambda name: None)
    with pytest.raises(
        sensortree.exceptions.MissingDependencyError, match=r"sensortree\[solvers\]"
    ):
        sensortree.program.SOLVERS["clarabel"].require()
    assert sensortree.program.SOLVERS["scipy"].installed


def test_the_changelog_has_an_unreleased_section():
    assert "## Unreleased" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
