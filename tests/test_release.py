"""Claims about what is published: bounds, versions, and the files that repeat them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from runpy import run_path

import pytest

import sensortree

ROOT = Path(__file__).parents[1]
LOWEST = run_path(str(ROOT / ".ci" / "lowest.py"))
CHECK = run_path(str(ROOT / ".ci" / "release_check.py"))


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


PROJECT = tomllib.loads(read("pyproject.toml"))
URLS = dict.fromkeys(("Source", "Issues", "Changelog"), "https://example.org")
RELEASED = 'version: 0.1.0\ndate-released: "2027-01-31"\n'
NOTES = "## Unreleased\n\n## 0.1.0 - 2027-01-31\n\n- all\n\n## 0.0.1 - 2026-01-01\n"


# lower bounds -----------------------------------------------------------------------------


def test_a_lower_bound_becomes_the_version_that_is_installed():
    pin = LOWEST["pin"]
    assert pin("numpy>=2.0.2,!=2.1.0") == "numpy==2.0.2"
    assert pin("dask[dataframe]>=2025.4") == "dask[dataframe]==2025.4"
    assert pin('highspy>=1.10; python_version < "3.15"') == (
        'highspy==1.10; python_version < "3.15"'
    )


@pytest.mark.parametrize("line", ["numpy", "numpy<3", "numpy>=2,<3", "numpy~=2.0"])
def test_a_requirement_that_has_no_lowest_version_is_refused(line):
    with pytest.raises(ValueError, match="no lowest version"):
        LOWEST["pin"](line)


def test_the_lowest_versions_are_those_of_the_library_and_every_extra_each_once():
    project = PROJECT["project"]
    pins = LOWEST["lowest"](project)
    named = [re.split(r"[=\[]", line)[0] for line in pins]
    assert len(set(named)) == len(named)
    extras = project["optional-dependencies"].values()
    asked = [*project["dependencies"], *(line for extra in extras for line in extra)]
    assert {*named, "sensortree"} == {re.split(r"[>\[]", line)[0] for line in asked}


def test_the_extra_all_is_all_others():
    extras = PROJECT["project"]["optional-dependencies"]
    (line,) = extras["all"]
    listed = line.removeprefix("sensortree[").removesuffix("]").split(",")
    assert sorted([*listed, "all"]) == sorted(extras)


def test_every_tool_of_a_group_has_its_version_in_the_constraints():
    plain = LOWEST["plain"]
    pinned = {
        plain(line.partition("==")[0]) for line in read("constraints.txt").split()
    }
    for tools in PROJECT["dependency-groups"].values():
        names = [tool.partition("[")[0] for tool in tools if isinstance(tool, str)]
        assert {plain(name) for name in names} <= pinned


# a release --------------------------------------------------------------------------------


def disagreements(version, changelog, citation, urls=URLS):
    return " ".join(CHECK["disagreements"](version, changelog, citation, urls))


def test_version_changelog_and_citation_agree():
    urls = PROJECT["project"]["urls"]
    texts = read("CHANGELOG.md"), read("CITATION.cff")
    assert disagreements(sensortree.__version__, *texts, urls) == ""
    assert disagreements("0.1.0", NOTES, RELEASED) == ""


@pytest.mark.parametrize(
    ("version", "changelog", "citation", "said"),
    [
        ("0.2.0.dev0", NOTES, RELEASED, "0.1.0, _version.py says 0.2.0.dev0"),
        ("0.2.0.dev0", "## 0.1.0", "version: 0.2.0.dev0", "begins with '## Unreleased'"),
        ("0.1.0", NOTES.replace("\n\n", "\n\n- a\n", 1), RELEASED, "move them below"),
        ("0.1.0", NOTES.replace("31", "30"), RELEASED, "say '0.1.0 - 2027-01-31'"),
        ("0.1.0", "## Unreleased", RELEASED, "'nothing' as its newest release"),
    ],
)  # fmt: skip
def test_what_disagrees_is_said(version, changelog, citation, said):
    assert said in disagreements(version, changelog, citation)


def test_a_release_says_where_its_source_is():
    assert "has no 'Source'" in disagreements("0.1.0", NOTES, RELEASED, {})


def test_the_readmes_example_and_what_it_prints_are_found():
    example, printed = CHECK["fifteen_lines"](read("README.md"))
    assert example.startswith("from sklearn")
    assert printed.startswith("tree:  ")


# the workflow -----------------------------------------------------------------------------


def test_the_workflow_calls_targets_of_the_makefile():
    workflow = read(".github/workflows/ci.yml")
    (listed,) = re.findall(r"target: \[(.*)\]", workflow)
    called = {*listed.split(", "), *re.findall(r"run: make ([a-z-]+)", workflow)}
    assert {"check", "test", "lowest", "docs", "release-check"} <= called
    assert called <= set(re.findall(r"^([a-z-]+):", read("Makefile"), re.M))


def test_the_workflow_runs_the_versions_of_python_that_are_promised():
    promised = re.findall(
        r"Python :: (3\.\d+)", " ".join(PROJECT["project"]["classifiers"])
    )
    (run,) = re.findall(r"python: \[(.*)\]", read(".github/workflows/ci.yml"))
    assert run == ", ".join(f'"{version}"' for version in promised)
    assert PROJECT["project"]["requires-python"] == f">={promised[0]}"
