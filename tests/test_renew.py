"""Claims about results that are older than the answers of the default."""

from __future__ import annotations

import json

import pytest

from experiments import renew
from experiments.renew import Answers
from experiments.results import append, read
from experiments.study import Cell, Study

MADE_WITH = {"numpy": "2.0"}


def a_study(measured):
    """A study of one cell, whose lines tell how often it was measured."""

    def measure(cell):
        measured.append(cell)
        return iter([{"value": 1, "error": 0.25}])

    return Study(
        file="toy",
        key=("data", "value"),
        data=("made up",),
        cells=lambda name, quick, lines: [Cell({"data": name}, "value", (1,))],
        measure=measure,
        pages=lambda lines: {"toy.md": f"{len(lines)} lines\n"},
    )


@pytest.fixture
def house(tmp_path, monkeypatch):
    """A folder of results, of one study; commits a, b and c follow each other."""
    measured: list[object] = []
    monkeypatch.setattr(renew.registry, "names", lambda: ["toy"])
    monkeypatch.setattr(renew.registry, "study", lambda name: a_study(measured))
    monkeypatch.setattr(renew, "comes_after", lambda commit, since: commit >= since)
    runs = [{"commit": c, "changed": c == "dirty"} for c in ("a", "b", "dirty")]
    (tmp_path / "toy.json").write_text(json.dumps(runs))
    append(
        tmp_path / "toy.jsonl",
        [{"data": name, "value": 1, "run": n} for n, name in enumerate("xyz")],
    )

    def answering(commit, digest, made_with=MADE_WITH):
        now = Answers(commit, made_with, {"auto": {"predict": digest}})
        monkeypatch.setattr(renew, "answers_now", lambda: now)

    def noted(commit, digest):
        note = Answers(commit, MADE_WITH, {"auto": {"predict": digest}})._asdict()
        (tmp_path / "answers.json").write_text(json.dumps(note))

    return tmp_path, measured, answering, noted


def older(folder, capsys, *more):
    code = renew.main(["--folder", str(folder), *more])
    return code, capsys.readouterr().out


def test_lines_from_before_the_answers_changed_are_older_and_so_are_those_of_changed_files(
    house, capsys
):
    folder, measured, answering, noted = house
    noted("b", "same")
    answering("c", "same")
    before = read(folder / "toy.jsonl")
    assert older(folder, capsys, "--check") == (
        1,
        "toy: 2 lines are older than the default's answers\n",
    )
    assert read(folder / "toy.jsonl") == before
    assert not measured


def test_where_the_answers_change_every_line_is_older(house, capsys):
    folder, _, answering, noted = house
    noted("b", "same")
    answering("c", "other")
    code, said = older(folder, capsys, "--check")
    assert code == 1
    assert "toy: 3 lines" in said


def test_older_lines_are_measured_again_and_the_others_kept(house, capsys):
    folder, measured, answering, noted = house
    noted("b", "same")
    answering("c", "same")
    assert older(folder, capsys)[0] == 0
    assert len(measured) == 1
    assert [line["data"] for line in read(folder / "toy.jsonl")] == ["y", "made up"]
    assert (folder / "toy.md").read_text() == "2 lines\n"
    kept = json.loads((folder / "answers.json").read_text())
    assert kept["commit"] == "b"


def test_digests_of_other_versions_are_not_compared(house):
    folder, _, answering, noted = house
    noted("b", "same")
    answering("c", "same", {"numpy": "2.1"})
    with pytest.raises(SystemExit, match=r"numpy 2\.0 \(here 2\.1\)"):
        renew.main(["--folder", str(folder), "--check"])


def test_a_commit_that_is_not_known_comes_after_nothing():
    assert not renew.comes_after("HEAD", "0" * 40)
    assert renew.comes_after("HEAD", "HEAD")


def test_a_default_that_fails_makes_no_result_old(monkeypatch):
    monkeypatch.setattr(renew.answers, "run", lambda fits: {"auto": {}})
    with pytest.raises(
        SystemExit, match=r"the fit 'auto' of benchmarks\.answers fails"
    ):
        renew.answers_now()
