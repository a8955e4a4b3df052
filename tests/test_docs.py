"""Claims about README and docs: what they name exists, what they show is what runs."""

from __future__ import annotations

import ast
import doctest
import io
import re
import shlex
import tomllib
from contextlib import redirect_stdout
from itertools import pairwise
from pathlib import Path
from pkgutil import resolve_name
from runpy import run_path

import numpy as np
import pytest

import sensortree
import sensortree.program

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SITE = sorted(DOCS.glob("*.md"))
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *(DOCS / "conf.py", *sorted((DOCS / "includes").glob("*.md")), *SITE),
    *sorted((ROOT / "examples").glob("*.*")),
]
INCLUDE = re.compile(r"^```{include} (includes/\S+)\n```$", re.MULTILINE)


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def blocks(page: str, language: str) -> list[str]:
    """What stands in the fenced blocks of a language, those of includes with them."""
    page = INCLUDE.sub(lambda found: read(DOCS / found[1]), page)
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


# the reference ----------------------------------------------------------------------------


def test_every_public_name_is_on_the_reference_page():
    listed = set(re.findall(r"(?<![\w.])(sensortree\.[\w.]*\w)", read(DOCS / "api.md")))
    for module in (sensortree, sensortree.program):
        assert {f"{module.__name__}.{name}" for name in module.__all__} <= listed


def test_every_name_on_the_reference_page_exists():
    listed = re.findall(r"^   (sensortree\.[\w.]+)$", read(DOCS / "api.md"), re.M)
    assert len(listed) > 30
    for name in listed:
        assert resolve_name(name).__doc__, name


# the theory -------------------------------------------------------------------------------

THEORY = read(DOCS / "theory.md")


def defined_tests(file: str) -> set[str]:
    tree = ast.parse(read(ROOT / file))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_every_test_that_the_theory_names_exists():
    cited = re.findall(r"`(?:(tests/\w+\.py)::)?(test_\w+)`", THEORY)
    assert len(cited) > 30
    for file, name in cited:
        assert name in defined_tests(file or "tests/test_paper.py"), name


def test_every_function_that_the_theory_names_exists():
    cited = set(re.findall(r"`(sensortree\.[\w.]+)`", THEORY))
    assert len(cited) > 15
    for name in cited:
        assert resolve_name(name) is not None


def test_every_line_of_the_equation_table_names_a_test():
    table = THEORY.partition("## Equation, code, test")[2].partition("\n## ")[0]
    lines = [line for line in table.splitlines() if line.startswith("| ")][1:]
    assert len(lines) > 20
    assert [line for line in lines if "test_" not in line] == []


# what is shown is what runs ---------------------------------------------------------------


def test_the_readmes_example_prints_what_the_readme_says():
    readme = read(ROOT / "README.md")
    names: dict[str, object] = {}
    shown = blocks(readme, "text")
    for number, example in enumerate(blocks(readme, "python")):
        assert len([line for line in example.splitlines() if line.strip()]) <= 15
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(compile(example, "README.md", "exec"), names)
        assert printed.getvalue() == shown[number]


@pytest.mark.slow
def test_the_readme_quotes_the_demo(tmp_path):
    main = run_path(str(ROOT / "examples" / "heart_patients.py"))["main"]
    printed = io.StringIO()
    with redirect_stdout(printed):
        assert main(["--output", str(tmp_path)]) == 0
    assert blocks(read(ROOT / "README.md"), "text")[2] in printed.getvalue()


@pytest.mark.parametrize(
    "page", [page for page in SITE if blocks(read(page), "pycon")], ids=relative
)
def test_the_examples_of_a_page_print_what_it_says(page):
    text = "\n".join(blocks(read(page), "pycon"))
    examples = doctest.DocTestParser().get_doctest(text, {}, page.name, page.name, 0)
    assert examples.examples
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    report = io.StringIO()
    failed, _ = doctest.DocTestRunner(optionflags=flags).run(examples, out=report.write)
    assert not failed, report.getvalue()


# How a block of each language is tested; "text" is output, or a formula.
LANGUAGES = {
    "pycon": "the examples of a page",
    "sh": "the commands of a page",
    "python": "the clients of the service",  # in test_service_process.py
    "console": "what the program says",
    "toml": "the page's sensors file",
    "js": "the runtime's example",  # in test_javascript.py
    "text": "",
}


def test_every_block_is_of_a_language_that_is_tested():
    for page in SITE:
        assert set(re.findall(r"^```(\w+)$", read(page), re.M)) <= set(LANGUAGES), page


@pytest.mark.parametrize(
    "page",
    [page for page in (ROOT / "README.md", *SITE) if blocks(read(page), "sh")],
    ids=relative,
)
def test_the_commands_of_a_page_run(page, tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from sensortree.cli.app import app

    commands = [
        shlex.split(line, comments=True)
        for block in blocks(read(page), "sh")
        for line in block.splitlines()
    ]
    monkeypatch.chdir(tmp_path)
    for name in ("patients.csv", "others.csv", "new.csv"):
        write_patients(tmp_path / name)
    for program, *arguments in filter(None, commands):
        if program == "sensortree" and "--install-completion" not in arguments:
            answers = "0.5\n" * 9 if arguments[0] == "ask" else None
            result = CliRunner().invoke(app, arguments, input=answers)
            assert result.exit_code == 0, (arguments, result.output)
        elif program == "python":
            assert (ROOT / arguments[0]).exists()
        elif program == "make":
            assert arguments[0] in make_targets()
        else:
            assert program in ("pip", "sensortree")


def write_patients(path: Path) -> None:
    """A table of forty made-up patients, in the columns that pages speak of."""
    rng = np.random.default_rng(0)
    table = rng.normal(size=(40, 2)).round(2)
    sick = (table.sum(axis=1) > 0).astype(int)
    lines = [f"{age},{crp},{y}" for (age, crp), y in zip(table, sick, strict=True)]
    path.write_text("\n".join(["age,crp,sick", *lines]) + "\n")


def test_the_comparison_with_lightgbm_is_that_of_the_ablation():
    page = read(DOCS / "comparison.md").partition("## Side by side, measured")[2]
    measured = ablation()
    lines = re.findall(r"^\| (\w+) \| ([\d.]+) of [\d.]+ \| (.*) \|$", page, re.M)
    assert len(lines) == 8
    for data, cost, shown in lines:
        wanted = [
            float(measured[data, f"error at cost {cost}", method])
            for method in ("CEGB", "all", "all, boosted leaves")
        ]
        printed = [float(error) for error in shown.split(" | ")]
        np.testing.assert_allclose(printed, wanted, atol=0.00051)


def test_where_it_was_not_better_is_what_was_measured():
    page, measured = " ".join(read(DOCS / "when_not.md").split()), ablation()
    ours, published = (
        measured["landsat", "seconds a fit", method]
        for method in ("all", "as published")
    )
    assert f"fit takes {ours} seconds" in page
    assert f"the program as published {published} " in page
    errors = [
        float(measured["letter", "error at cost 1.3", method])
        for method in ("CEGB", "all, boosted leaves")
    ]
    assert "{:.2f} against {:.2f} with boosted leaves".format(*errors) in page
    money = read(DOCS / "results" / "money.md")
    assert (money.count("policy wins"), money.count("policy loses")) == (7, 2)
    assert "least money in seven of nine settings" in page


def test_the_readmes_shares_are_those_of_the_ablation():
    readme, measured = read(ROOT / "README.md"), ablation()
    lines = re.findall(r"^\| (\w+): .*? \| (.*) \| `python -m exp.*` \|$", readme, re.M)
    assert [data for data, _ in lines] == ["landsat", "letter", "heart"]
    first = {data: head for data, head, _ in reversed(measured)}  # the paper's rule
    for data, shown in lines:
        methods = ("all", "static subset", "CEGB")
        wanted = [measured[data, first[data], method] for method in methods]
        assert shown.split(" | ") == wanted
    for data in ("landsat", "letter"):
        assert measured[data, first[data], "all, boosted leaves"] in readme


def ablation() -> dict[tuple[str, str, str], str]:
    """Cells of the ablation's tables, by data, head of the column and method."""
    found = {}
    data, heads = "", []
    for line in read(DOCS / "results" / "ablation.md").splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if not cells:
            data = line.partition(":")[0] or data
        elif cells[0] == "method":
            heads = cells
        else:
            for head, cell in zip(heads[1:], cells[1:], strict=True):
                found[data, head, cells[0]] = cell
    return found


def test_the_commands_that_are_named_are_targets_of_the_makefile():
    named = set()
    for page in ("README.md", "CONTRIBUTING.md"):
        named |= set(
            re.findall(r"^make ([a-z-]+)|`make ([a-z-]+)`", read(ROOT / page), re.M)
        )
    named = {first or second for first, second in named}
    assert {"demo", "test"} <= named <= make_targets()


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", read(ROOT / "Makefile"), re.MULTILINE))


def test_links_lead_to_files_and_headings_that_exist():
    for page in ("README.md", "CONTRIBUTING.md"):
        for file, heading in re.findall(
            r"\]\((?!https?:)([^)#]+)#?([^)]*)\)", read(ROOT / page)
        ):
            assert (ROOT / file).exists(), file
            if heading:
                found = re.findall(r"^#+ (.*)$", read(ROOT / file), re.M)
                slugs = {
                    re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in found
                }
                assert heading in slugs, (file, heading)


def test_files_that_pages_name_exist():
    held = [
        path.relative_to(ROOT).as_posix()
        for folder in ("src", "tests", "experiments", "benchmarks")
        for path in (ROOT / folder).rglob("*.*")
    ]
    for page in (ROOT / "CONTRIBUTING.md", ROOT / "README.md", *SITE):
        for name in re.findall(r"`([\w/]*\w\.(?:py|js|css))`", read(page)):
            assert any(f"/{path}".endswith(f"/{name}") for path in held), (page, name)
    house = ROOT / "src" / "sensortree"
    named = re.findall(
        r"`([a-z]+/[a-z_]+)(?:\.[a-z_]{4,})?`", read(ROOT / "CONTRIBUTING.md")
    )
    modules = {name for name in named if (house / name.partition("/")[0]).is_dir()}
    assert len(modules) > 10
    assert [name for name in modules if not (house / f"{name}.py").exists()] == []


def test_the_page_takes_its_solvers_from_the_registry():
    assert "{{ solvers }}" in read(DOCS / "leaves.md")


def test_every_page_is_in_the_one_table_of_contents():
    contents = r"^```{toctree}\n(?::[^\n]*\n|\n)*(.*?)^```$"
    with_contents = {
        page.stem: re.findall(contents, read(page), re.M | re.S) for page in SITE
    }
    assert {stem for stem, found in with_contents.items() if found} == {"index"}
    listed = " ".join(with_contents["index"]).split()
    assert {page.stem for page in SITE} <= {"index", *listed}


def test_every_page_begins_with_what_you_can_do_after_it():
    for page in SITE:
        if page.stem not in ("index", "api", "changelog", "glossary"):
            assert "After this page you" in read(page).split("\n\n")[1], page


def test_what_pages_share_is_told_once():
    told = [page.stem for page in SITE if "import load_breast_cancer" in read(page)]
    assert told == ["index", "quickstart"]


def test_the_glossary_explains_the_words_that_are_used():
    words = set(re.findall(r"^(\w[\w, ]*)\n: ", read(DOCS / "glossary.md"), re.M))
    words = {word for entry in words for word in entry.split(", ")}
    asked = """sensor tree leaf node risk loss fold recipe certificate gap policy session
    step purchase referral detour wave ledger oracle log"""
    assert words >= {*asked.split(), "cost weight", "held out"}


def test_broken_links_are_found(tmp_path):
    broken_links = run_path(str(DOCS / "check_links.py"))["broken_links"]
    (tmp_path / "a.html").write_text(
        '<p id="here"><a href="b.html#there">1</a><a href="#here">2</a>'
        '<a href="b.html#gone">3</a><img src="gone.png"><a href="https://x.y/">4</a>'
    )
    (tmp_path / "b.html").write_text('<p id="there">')
    assert broken_links(tmp_path) == ["a.html: b.html#gone", "a.html: gone.png"]


# the command line -------------------------------------------------------------------------


def test_the_command_lines_page_shows_what_the_program_says():
    page = read(DOCS / "cli.md")
    up_to_date = run_path(str(DOCS / "cli_help.py"))["up_to_date"]
    assert page == up_to_date(page), "run python docs/cli_help.py"


def test_every_command_has_a_section():
    from sensortree.cli.app import app

    names = {command.callback.__name__ for command in app.registered_commands}
    names |= {group.name for group in app.registered_groups}
    assert names == set(re.findall(r"^## ([a-z]+)$", read(DOCS / "cli.md"), re.M))
    readme = " ".join(read(ROOT / "README.md").split())
    assert f"(docs/cli.md) has {len(names)} commands" in readme


def test_the_pages_sensors_file_is_one(tmp_path):
    from sensortree.cli.sensors_file import read_sensors_file

    (example,) = blocks(read(DOCS / "cli.md"), "toml")
    (tmp_path / "sensors.toml").write_text(example)
    file = read_sensors_file(tmp_path / "sensors.toml")
    assert list(file.sensors) == ["history", "glucose", "crp", "mri"]
    used = {key for sensor in file.sensors.values() for key in sensor.terms}
    assert used == {"group", "discounted_cost", "fee", "after", "one_of"}


# pages and code do not contradict each other ----------------------------------------------

# What must be exported where the table of features says "yes" of us.
FEATURES = {
    "groups of columns with one price": "Sensor",
    "error against cost in one call": "tradeoff_curve",
    "asks for the next sensor": "Policy",
    "a structure that you give": "SensorTree",
    "regression": "SensorTreeRegressor",
    "a model outside Python": "save",
}


def test_the_table_of_features_says_what_is_exported():
    table = read(DOCS / "comparison.md").partition("## Feature by feature")[2]
    ours = dict(re.findall(r"^\| ([^|]+) \| ([^|]+) \|", table, re.M))
    for feature, name in FEATURES.items():
        assert (ours[feature] != "-") == (name in sensortree.__all__), feature


def test_the_table_of_methods_has_those_that_are_exported():
    page = read(DOCS / "comparison.md").partition("## Other methods")[2]
    named = set(re.findall(r"^\| `(\w+Classifier)` \|", page, re.M))
    classifiers = {name for name in sensortree.__all__ if name.endswith("Classifier")}
    assert named == classifiers - {"SensorTreeClassifier"}


# the house --------------------------------------------------------------------------------


def test_the_floor_plan_has_the_layers_of_the_contract_in_their_order():
    project = tomllib.loads(read(ROOT / "pyproject.toml"))
    layers = project["tool"]["importlinter"]["contracts"][0]["layers"]
    level = {
        room: -number
        for number, layer in enumerate(layers)
        for room in layer.replace("|", " ").split()
    }
    plan = read(ROOT / "CONTRIBUTING.md").partition("## The floor plan")[2]
    lines = re.findall(r"^\| (`.*?) \|", plan.partition("\n### ")[0], re.M)
    rows = [re.findall(r"`(\w+)/?`", line) for line in lines]
    assert {room for row in rows for room in row} == set(level) - {"__main__"}
    for below, above in pairwise(rows):
        assert max(level[room] for room in below) <= min(level[room] for room in above)


def test_every_room_lists_its_files():
    house = ROOT / "src" / "sensortree"
    for start in sorted(house.glob("*/**/__init__.py")):
        told = ast.get_docstring(ast.parse(read(start))) or ""
        files = {path.stem for path in start.parent.glob("*.py")} - {"__init__"}
        rooms = {path.parent.name for path in start.parent.glob("*/__init__.py")}
        for name in files | rooms:
            assert re.search(rf"(?<![\w.]){name}(?!\w)", told), (start, name)


# what must not be there -------------------------------------------------------------------


def test_no_page_names_a_folder_outside_the_repository():
    for page in PAGES:
        for words in (str(ROOT), "shared/"):
            assert words not in read(page), page


def test_no_page_loads_a_script_from_elsewhere():
    for page in PAGES:
        text = read(page)
        assert not re.search(r"<script|mathjax|intersphinx_mapping|cdn\.", text), page
