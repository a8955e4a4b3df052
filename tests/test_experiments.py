"""Claims about the experiments: tables are what lines say, nothing is measured twice."""

from __future__ import annotations

import itertools
import json
import os
import re
from dataclasses import replace
from pathlib import Path

import matplotlib
import numpy as np
import pytest

from benchmarks import plot, structure
from experiments import run as runner
from experiments import study as registry
from experiments.data import Dataset, MissingFileError
from experiments.figures import save
from experiments.results import FOLDER as RESULTS
from experiments.results import read
from experiments.studies import structures
from experiments.studies.choices import VARIANTS
from experiments.studies.paper import grid
from experiments.study import Cell, Study

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "experiments"
DATA = Path(os.environ.get("SENSORTREE_DATA", ROOT.parent / "shared" / "data"))
needs_data = pytest.mark.skipif(
    not (DATA / "pima.npz").exists(), reason=f"pima.npz is not in {DATA}"
)


@pytest.mark.parametrize("path", sorted(FOLDER.rglob("*.py")), ids=lambda p: p.name)
def test_experiments_use_the_public_interface_only(path):
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"(from|import) sensortree\.(?!exceptions|results)", text)


def test_the_verdict_on_auto_counts_near_cells_and_names_losses_to_static():
    from experiments.studies.structures import STRUCTURES, table, verdict

    def cell(weight, risks):
        return [
            {
                "data": "segment",
                "structure": structure,
                "cost_weight": weight,
                "risk": risk,
                "standard_error": 0.01,
                "chosen": "chain",
                "validated": {},
            }
            for structure, risk in zip(STRUCTURES, risks, strict=True)
        ]

    # auto, the others, static: near the best; then far, and worse than static
    lines = cell(0.05, [0.201, 0.2, 0.3, 0.3, 0.3, 0.3, 0.195]) + cell(
        0.02, [0.22, 0.2, 0.3, 0.3, 0.3, 0.3, 0.2]
    )
    said = verdict(lines)
    assert "was run: 1 of 2" in said
    assert "mean risk: segment at 0.02" in said
    assert "| segment | 0.05 | 0.2010 ± 0.0100 (chain) | 0.2000 |" in table(lines)
    assert "was run: 1 of 1" in verdict(lines[:7] + lines[7:-1])  # incomplete cells go


# every table and figure is what its lines say ---------------------------------------------

STUDIES = {
    **{name: registry.study(name) for name in registry.names()},
    "search": structure.STUDY,
}


def committed(study):
    """Lines of a study in docs/results, and of those along with it."""
    return [read(RESULTS / f"{one.file}.jsonl") for one in (study, *study.along)]


@pytest.mark.parametrize("name", STUDIES)
def test_every_table_of_a_study_is_what_its_lines_say(name):
    pages = STUDIES[name].pages(*committed(STUDIES[name]))
    assert pages
    for file, text in pages.items():
        assert (RESULTS / file).read_text(encoding="utf-8") == text, file


def test_the_table_of_solvers_is_what_its_lines_say():
    text = plot.table(read(RESULTS / "solver.jsonl"))
    assert (RESULTS / "solver.md").read_text(encoding="utf-8") == text


def test_every_table_in_the_results_is_made_by_a_study():
    made = {"solver.md"}
    for study in STUDIES.values():
        made |= set(study.pages(*committed(study)))
    assert made == {path.name for path in RESULTS.glob("*.md")}


@pytest.mark.parametrize("name", ["ablation", "paper"])
def test_every_figure_of_a_study_is_what_its_lines_say(name, tmp_path):
    study = STUDIES[name]
    pictures = study.pictures(*committed(study))
    found = {path.name for path in RESULTS.glob(f"{study.file}_*.svg")}
    assert found == set(pictures)
    for file, figure in pictures.items():
        assert_same_picture(figure, RESULTS / file, tmp_path)


def test_the_figure_of_solvers_is_what_its_lines_say(tmp_path):
    picture = plot.picture(read(RESULTS / "solver.jsonl"))
    assert_same_picture(picture, RESULTS.parent / "images" / "solver.svg", tmp_path)


def assert_same_picture(figure, path, folder):
    """The bytes differ between versions of matplotlib, which a picture names."""
    if f"Matplotlib v{matplotlib.__version__}," not in path.read_text(encoding="utf-8"):
        pytest.skip(f"{path.name} was drawn by another version of matplotlib")
    save(figure, folder / path.name)
    assert (folder / path.name).read_bytes() == path.read_bytes(), path.name


# nothing is measured twice ----------------------------------------------------------------

# These take hours: a dash in the table.
NOT_RUN = {"choices": {f"{n}, {v}" for n in ("landsat", "letter") for v in VARIANTS}}
# Its file came after the paper's tables were measured.
LATER = "cifar"


@needs_data
@pytest.mark.parametrize("name", STUDIES)
def test_what_is_among_the_committed_lines_is_not_measured_again(name):
    study = STUDIES[name]
    left = runner.missing(study, study.data, False, RESULTS)
    names = {str(cell) for cell in left if not str(cell).startswith(LATER)}
    assert names == NOT_RUN.get(name, set())


def toy_cells(data, quick, lines):
    for split in range(1 if quick else 3):
        yield Cell({"data": data, "split": split}, "value", (1.0, 2.0))
    yield Cell({"data": data, "split": 3}, "value", (1.0,), alone=True)


def toy_lines(cell):
    for value in cell.values:
        yield {"value": value, "measured": value + cell.fields["split"], "none": None}


def toy_pages(lines):
    return {"toy.md": f"{len(lines)} lines, sum {sum(i['measured'] for i in lines)}\n"}


TOY = Study(
    file="toy",
    key=("data", "split", "value"),
    data=("a", "b"),
    cells=toy_cells,
    measure=toy_lines,
    pages=toy_pages,
)


def toy_run(folder, *arguments, study=TOY):
    runner.run(study, [*arguments, "--output", str(folder)])
    return (folder / "toy.jsonl").read_text(encoding="utf-8")


def test_a_run_has_a_line_for_each_value_and_says_with_what_it_was_measured(tmp_path):
    text = toy_run(tmp_path, "a")
    assert text.splitlines()[0] == (
        '{"data":"a","split":0,"value":1.0,"measured":1.0,"run":0}'
    )
    # Three splits of two values, and one alone: 1 + 2, 2 + 3, 3 + 4, 4.
    assert (tmp_path / "toy.md").read_text() == "7 lines, sum 19.0\n"
    (run,) = json.loads((tmp_path / "toy.json").read_text())
    assert {"commit", "date", "changed", "versions", "machine", "seeds"} == set(run)


def test_cells_side_by_side_give_the_same_lines(tmp_path):
    one, two = (toy_run(tmp_path / n, "--n-jobs", n) for n in ("1", "2"))
    assert sorted(one.splitlines()) == sorted(two.splitlines())


def test_an_interrupted_run_goes_on_where_it_was(tmp_path, capsys):
    seen = []

    def interrupted(cell):
        if len(seen) == 2:
            raise KeyboardInterrupt
        seen.append(str(cell))
        return toy_lines(cell)

    with pytest.raises(KeyboardInterrupt):
        toy_run(tmp_path, study=replace(TOY, measure=interrupted))
    assert seen == ["a, split 0", "a, split 1"]
    assert len(read(tmp_path / "toy.jsonl")) == 4
    capsys.readouterr()
    text = toy_run(tmp_path)
    said = capsys.readouterr().err
    assert "[1/6] a, split 2" in said
    assert "split 1:" not in said.partition("[2/6]")[0]
    assert len(text.splitlines()) == 14
    assert toy_run(tmp_path) == text
    assert "[" not in capsys.readouterr().err


def test_a_line_that_was_never_finished_is_measured_again(tmp_path):
    text = toy_run(tmp_path, "a")
    path = tmp_path / "toy.jsonl"
    path.write_text(text[: text.rindex('"run"')], encoding="utf-8")
    assert len(read(path)) == 6
    assert toy_run(tmp_path, "a") == text


def test_only_the_values_that_are_missing_are_measured(tmp_path):
    text = toy_run(tmp_path, "a")
    lines = text.splitlines(keepends=True)
    path = tmp_path / "toy.jsonl"
    path.write_text("".join([lines[0], *lines[2:]]), encoding="utf-8")
    assert sorted(toy_run(tmp_path, "a").splitlines()) == sorted(text.splitlines())


def test_a_run_starts_nothing_after_its_minutes_and_nothing_for_tables(
    tmp_path, capsys
):
    toy_run(tmp_path, "--only", "a, split 0")
    toy_run(tmp_path, "--minutes", "0")
    assert "7 of 7 are left" in capsys.readouterr().err
    (tmp_path / "toy.md").unlink()
    toy_run(tmp_path, "--tables")
    assert "[" not in capsys.readouterr().err
    assert (tmp_path / "toy.md").read_text() == "2 lines, sum 3.0\n"


def test_lines_that_follow_from_others_are_not_measured(tmp_path):
    def known(cell, lines):
        first = [i for i in lines if i["data"] == "a" and cell.fields["data"] == "b"]
        same = [i for i in first if i["split"] == cell.fields["split"]]
        return [{**line, "data": "b"} for line in same]

    def measured_a(cell):
        assert cell.fields["data"] == "a"
        return toy_lines(cell)

    study = replace(TOY, known=known, measure=measured_a)
    text = toy_run(tmp_path, "--only", "split 2", study=study)
    assert text.replace('"b"', '"a"').splitlines()[:2] * 2 == (
        text.replace('"b"', '"a"').splitlines()
    )


def test_what_the_search_took_is_not_fitted_again():
    cell = Cell({"data": "digits", "structure": "chain"}, "cost_weight", (0.05, 0.02))
    line = {"data": "digits", "structure": "auto", "cost_weight": 0.05}
    lines = [
        {**line, "chosen": "chain", "risk": 0.1},
        {**line, "chosen": "branched", "cost_weight": 0.02},
        {**line, "chosen": "chain", "data": "letter"},
    ]
    (taken,) = structures.known(cell, lines)
    assert taken == {**line, "structure": "chain", "chosen": "chain", "risk": 0.1}


def test_data_that_are_not_there_are_left_out_unless_nothing_else_is(tmp_path, capsys):
    def cells(data, quick, lines):
        if data == "a":
            raise MissingFileError("a.npz is not in the folder.")
        return toy_cells(data, quick, lines)

    study = replace(TOY, cells=cells)
    assert len(toy_run(tmp_path, study=study).splitlines()) == 7
    assert "a is left out: a.npz is not in the folder." in capsys.readouterr().err
    with pytest.raises(MissingFileError):
        toy_run(tmp_path, "a", study=study)


def test_cells_whose_package_is_not_there_are_left_out(tmp_path, capsys):
    def cells(data, quick, lines):
        first, *others = toy_cells(data, quick, lines)
        return [replace(first, needs="no_such_package"), *others]

    toy_run(tmp_path, "a", study=replace(TOY, cells=cells))
    assert {i["split"] for i in read(tmp_path / "toy.jsonl")} == {1, 2, 3}
    assert "no_such_package is not here" in capsys.readouterr().err


def test_unknown_studies_and_data_are_named_with_those_there_are(tmp_path, capsys):
    with pytest.raises(SystemExit, match="monney is not a study; those are ablation, "):
        runner.main(["monney"])
    with pytest.raises(SystemExit):
        toy_run(tmp_path, "c")
    assert "c is not among its data; those are a, b" in capsys.readouterr().err


def test_studies_are_listed_with_what_they_ask(capsys):
    runner.main(["list"])
    said = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in said] == registry.names()
    assert all(len(line.split()) > 4 for line in said)


# One quick cell of each study: its lines have the keys that it was asked for.
QUICKLY = [
    ("ablation", "pima", "pima, + ridge"),
    ("ablation", "pima", "pima, static"),
    ("choices", "pima", "not refined"),
    ("forest", "forest", "binary, ASTC"),
    ("money", "bupa", "bupa"),
    ("paper", "segment", "pystreed"),
    ("paper", "sun", "linear, LP, as published"),
    ("segmentation", "segment", "official, static"),
    ("structures", "segment", "segment, branched"),
]


@needs_data
@pytest.mark.filterwarnings("ignore:.*SparseAbstract.*", "ignore:Can't find")
@pytest.mark.parametrize(("name", "data", "only"), QUICKLY)
def test_a_cell_measures_the_lines_that_it_was_asked_for(name, data, only):
    study = STUDIES[name]
    cell = next(c for c in study.cells(data, True, []) if only in str(c))
    if cell.needs:
        pytest.importorskip(cell.needs, reason="the extra `compare` brings it")
    cell = replace(cell, values=cell.values[:1], quick=True)
    _, lines, _ = runner.measured(study, cell, [])
    wanted = {cell.key(value, study.key) for value in cell.values}
    assert wanted
    assert study.done(lines) == wanted


def test_astc_on_many_features_is_found_again_among_the_lines(monkeypatch):
    rng = np.random.default_rng(0)
    X, rows = rng.normal(size=(60, 4)), np.arange(60)
    small = Dataset("cifar", X, (X[:, 0] > 0).astype(int), [(rows[:40], rows[40:])])
    monkeypatch.setattr(grid, "load", lambda name: small)
    monkeypatch.setattr(grid, "path_of", lambda file: None)
    study = STUDIES["paper"]
    cell = next(c for c in study.cells("cifar", True, []) if "ASTC" in str(c))
    _, lines, _ = runner.measured(study, cell, [])
    assert study.done(lines) == {("cifar", "linear", "ASTC", 0, cell.values[0])}


# commands that pages quote ----------------------------------------------------------------

QUOTED = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "Makefile")),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "results").glob("*.md")),
    *sorted((ROOT / "experiments").rglob("*.py")),
    *sorted((ROOT / "benchmarks").glob("*.py")),
]


@pytest.mark.parametrize("page", QUOTED, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_command_that_is_quoted_is_a_study_or_a_benchmark(page):
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"python (experiments|benchmarks)/", text)
    named = re.findall(r"python -m experiments\.run ([a-z]\w*)", text)
    assert set(named) <= {*registry.names(), "list"}
    for name in re.findall(r"python -m benchmarks\.(\w+)", text):
        assert (ROOT / "benchmarks" / f"{name}.py").exists(), name


# the reproduction of the paper ------------------------------------------------------------


def test_published_numbers_are_complete_and_in_order():
    from experiments.studies.paper.tables import PRINTED, TREES, paper

    given = paper()
    names = {row["data"] for row in given["table2"]}
    assert names == {row["data"] for row in given["table1"]}
    assert names == {"letter", "landsat", "sun", "segment"}
    for row in given["table2"]:
        assert set(row["share"]) == set(PRINTED.values())
        assert row["share"]["Myopic"] >= max(row["share"]["AM"], row["share"]["LP"])
        assert row["seconds"]["AM"] > row["seconds"]["LP"]
    assert set(PRINTED) < set(TREES)
    for curve in given["curve"]:
        costs, values = zip(*curve["points"], strict=True)
        assert list(costs) == sorted(set(costs)), curve
        assert all(0 < value < 1 for value in values), curve
        assert curve["source"]
        if curve["classifiers"].startswith("multinomial"):
            # Lower hulls, with a first stage that all methods share; read to 0.003.
            assert costs[0] == 1
            assert all(b <= a + 0.006 for a, b in itertools.pairwise(values)), curve


def test_the_digitised_curves_give_the_shares_that_were_printed_with_them():
    from experiments.studies.paper.tables import paper, published, shares

    # letter at 40 %: (2.46 - 1)/(3 - 1) = 73 % for Myopic, about 51 % for AM and LP.
    row = next(
        i
        for i in paper()["cascade_share"]
        if i["data"] == "letter" and i["target"] == 0.4
    )
    for method, printed in row["share"].items():
        after_first, of_all = shares(published("letter", method), 0.4, 1.0, 3.0)
        assert abs(100 * after_first - printed) < 6
        assert abs(100 * of_all - printed) > 9  # so this convention was not theirs


def reproduced(data="landsat", leaves="ours"):
    """Two splits: first sensor .4, all .1; ours reaches .1 at cost 2 of 4."""

    def at(method, value, split, cost, error):
        return {
            "data": data,
            "leaves": leaves,
            "method": method,
            "value": value,
            "split": split,
            "cost": cost,
            "error": error,
        }

    lines = []
    for split, shift in ((0, 0.01), (1, -0.01)):
        lines += [
            at("Myopic", 0.0, split, 1.0, 0.4 + shift),
            at("Myopic", 1.0, split, 4.0, 0.1 + shift),
            at("ours", 1.0, split, 1.0, 0.4 - shift),
            at("ours", 0.1, split, 2.0, 0.1 - shift),
        ]
    return lines


def test_shares_of_the_budget_are_those_computed_by_hand():
    from experiments.studies.paper.tables import (
        curve,
        deviations,
        ends,
        percent,
        shares,
        table2,
    )
    from experiments.tables import rule

    lines = reproduced()
    first, everything = ends(lines, "landsat", "ours")
    assert first == pytest.approx((1.0, 0.4))
    assert everything == pytest.approx((4.0, 0.1))
    assert rule(first[1], everything[1]) == pytest.approx(0.115)
    # 15 % lies 5/6 of the way down: Myopic 1 + 3 * 5/6 = 3.5 of 4, ours 1 + 5/6.
    found = shares(curve(lines, "landsat", "ours", "Myopic"), 0.15, 1.0, 4.0)
    assert found == pytest.approx((2.5 / 3, 3.5 / 4))
    assert percent(found) == "83 (88)"
    row = table2(lines, printed_target=True).splitlines()[-1]
    assert row == (
        "| landsat | 15.0 % | ours | 0.400, 0.100 | 83 (88) | - | - | 28 (46) | - |"
    )
    assert "| 11.5 % | ours |" in table2(lines, printed_target=False)
    assert "| *printed* |  | 100 | 75 | 75 |" in table2(lines, printed_target=True)
    assert "printed 100 %, nearest ours 83 % (ours leaves): not within" in deviations(
        lines
    )


def test_a_curve_counts_only_splits_that_have_every_value():
    from experiments.studies.paper.tables import curve

    lines = reproduced()[:-1]  # split 1 lacks the second value of "ours"
    cheap, dear = curve(lines, "landsat", "ours", "ours")
    assert cheap == pytest.approx((2.0, 0.09))
    assert dear == pytest.approx((1.0, 0.39))
    assert curve(lines, "landsat", "text", "ours") == []


def test_the_distance_to_a_published_curve_is_taken_at_its_costs():
    from experiments.studies.paper.tables import distance

    ours = [(1.0, 0.4), (3.0, 0.2)]
    theirs = [(0.5, 0.9), (1.0, 0.38), (2.0, 0.33), (3.0, 0.2)]
    # Cost 0.5 is below ours; then .02, -.03 and 0.
    assert distance(ours, theirs) == (
        pytest.approx(0.05 / 3),
        pytest.approx(-0.01 / 3),
        3,
    )


def test_training_times_are_ratios_of_mean_seconds_a_value():
    from experiments.studies.paper.tables import times

    lines = [
        {"data": "letter", "leaves": "linear", "method": method, "cpu_seconds": seconds}
        for method, seconds in (("AM", 2.0), ("AM", 4.0), ("LP, as published", 2.0))
    ]
    # Printed: 93.56 / 57.03 = 1.6.
    row = times(lines).splitlines()[-1]
    assert row.startswith("| letter | 3 | 2 | 1.5 | 93.56, 57.03, 1.6 |")


def test_a_missing_or_wrong_file_is_named_to_the_byte(tmp_path, monkeypatch):
    from experiments.data import CHECKSUMS, load, path_of

    monkeypatch.setenv("SENSORTREE_DATA", str(tmp_path))
    with pytest.raises(
        SystemExit, match=r"MiniBooNE_PID\.txt \(91174877 bytes, SHA-256"
    ):
        load("miniboone")
    with pytest.raises(SystemExit, match=r"cifar\.npz is not in"):
        load("cifar")
    (tmp_path / "pima.npz").write_bytes(b"something else")
    with pytest.raises(SystemExit, match="it has 14 bytes and SHA-256") as error:
        path_of("pima")
    assert CHECKSUMS["pima.npz"][1] in str(error.value)


def test_openml_gives_the_same_stages_or_says_why_not():
    from experiments.data import from_openml

    def fetch(title, **_):
        return np.zeros((20_000, 16 if title == "letter" else 3)), np.array(
            ["A", "B"] * 10_000
        )

    data = from_openml("letter", fetch)
    assert [len(columns) for columns in data.sensors.values()] == [5, 7, 4]
    assert [len(train) for train, _ in data.splits] == [16_000]
    with pytest.raises(SystemExit, match="has 3 columns, expected 36"):
        from_openml("landsat", fetch)


@needs_data
def test_a_quick_reproduction_runs_once_and_then_has_nothing_to_do(tmp_path, capsys):
    from experiments.run import main

    main(["paper", "pima", "--quick", "--output", str(tmp_path)])
    said = capsys.readouterr()
    assert "[1/" in said.err
    assert "| pima | linear | LP | LP on a cascade |" in said.out
    lines = (tmp_path / "reproduce.jsonl").read_text(encoding="utf-8")
    pictures = {p.name: p.read_bytes() for p in tmp_path.glob("*.svg")}
    assert {"reproduce_pima.svg", "reproduce_pima_cascade.svg"} <= set(pictures)
    main(["paper", "pima", "--quick", "--output", str(tmp_path)])
    assert "[1/" not in capsys.readouterr().err
    assert (tmp_path / "reproduce.jsonl").read_text(encoding="utf-8") == lines
    assert pictures == {p.name: p.read_bytes() for p in tmp_path.glob("*.svg")}


@pytest.mark.filterwarnings("ignore")  # of pystreed's own imports
def test_trees_of_pystreed_are_optimal_at_the_prices_that_they_are_charged():
    pytest.importorskip("pystreed", reason="the extra `compare` brings pystreed")
    from experiments.alternatives import STreeD

    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (200, 4)).astype(float)
    y = ((X[:, 0] * X[:, 1] > 0) | ((X[:, 2] > 0) & (rng.random(200) < 0.6))).astype(
        int
    )
    sensors = {"cheap": [0, 1], "dear": [2, 3]}
    costs = {"cheap": 0.15, "dear": 0.2}

    def least(rows, paid, depth):
        errors = min((y[rows] != c).sum() for c in (0, 1))
        if depth == 0 or len(rows) == 0:
            return errors
        found = [errors]
        for sensor, columns in sensors.items():
            price = 0.0 if sensor in paid else costs[sensor] * len(rows)
            for column in columns:
                yes = X[rows, column] > 0.5
                sides = [
                    least(rows[s], paid | {sensor}, depth - 1) for s in (yes, ~yes)
                ]
                found.append(price + sum(sides))
        return min(found)

    # A tenth of such a column is below 1: the cut is at 0, and asks what it is.
    rival = STreeD(sensors, costs, depth=2, quantiles=(0.1,))
    (model,) = rival.fit_path(X, y, [1.0])
    errors = (model.predict(X) != y).sum()
    spent = model.acquisition_cost(X).sum()
    assert errors + spent == pytest.approx(least(np.arange(200), frozenset(), 2))
