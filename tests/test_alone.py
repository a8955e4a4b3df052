"""Claims about columns that answer alone, and about integers that only name their row."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from sensortree import SensorTreeClassifier
from sensortree.cli.app import app
from sensortree.cli.column_warnings import column_warning
from sensortree.cli.tables import DataFile
from sensortree.reports.alone import as_codes, share_told

N = 600


def rng():
    return np.random.default_rng(4)


def weights():
    return np.round(rng().normal(3200, 550, N))


def told(values, y):
    return share_told(np.asarray(values), as_codes(np.asarray(y)))


@pytest.mark.parametrize("limit", [2000, 2300, 2500, 3200, 4000])
def test_a_limit_is_found_wherever_it_is(limit):
    assert told(weights(), weights() < limit) == 1


def test_a_band_in_the_middle_is_found_and_classes_between_three_limits():
    w = weights()
    assert told(w, (w > 2600) & (w < 3900)) == 1
    assert told(w, np.searchsorted([2000, 2500, 4000], w)) == 1


def test_rows_at_fault_are_allowed_for_but_not_most_of_a_rare_class():
    w = weights()
    y = w < 2500
    y[:3] = ~y[:3]
    assert told(w, y) == pytest.approx(1 - 3 / N)
    rare = w < np.sort(w)[12]
    hidden = rare.copy()
    hidden[np.flatnonzero(rare)[:6]] = False
    hidden[np.flatnonzero(~rare)[:6]] = True  # of 12, 6 are told: 98 % of the rows
    assert told(w, rare) == 1
    assert told(w, hidden) == 0


def test_what_is_only_there_afterwards_tells_by_being_there():
    y = rng().random(N) < 0.2
    assert told(np.where(y, rng().normal(size=N), np.nan), y) == 1


@pytest.mark.parametrize("share", [0.01, 0.05, 0.3, 0.5])
def test_noise_and_good_tests_are_not_named(share):
    for seed in range(30):
        chance = np.random.default_rng(seed)
        y = chance.random(N) < share
        assert told(chance.normal(size=N), y) == 0
        assert told(chance.normal(size=N) + 3 * y, y) == 0
        assert told(chance.integers(0, 12, N).astype(float), y) == 0


def test_a_number_that_is_the_target_in_another_unit_is_named():
    y = weights() + rng().random(N)
    assert told(y / 28.35 + 1, y) == 1
    assert told(y + np.random.default_rng(5).normal(0, 400, N), y) == 0


def test_init_fit_evaluate_and_report_name_it_with_the_question(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    w, smokes = weights(), rng().integers(0, 2, N)
    age = rng().integers(15, 45, N)
    lines = [
        f"{a},{s},{int(g)},{'low' if g < 2500 else 'normal'}"
        for a, s, g in zip(age, smokes, w, strict=True)
    ]
    text = "\n".join(["age,smokes,bwt,low", *lines])
    (tmp_path / "births.csv").write_text(text)

    def run(*arguments):
        result = CliRunner().invoke(app, list(arguments))
        assert result.exit_code == 0, result.output
        return " ".join(result.output.split())

    question = "on its own; is it known before the decision?"
    said = run("init", "births.csv", "--target", "low")
    assert f"column 'bwt' tells the answer of 100.0% of the rows {question}" in said
    assert "column 'age'" not in said
    said = run("fit", "births.csv", "--sensors", "sensors.toml")
    assert "column 'bwt' of sensor 'bwt' tells the answer of 100.0%" in said
    assert question in said
    assert "answers alone; is it known" in run("evaluate", "model.json", "births.csv")
    run("report", "model.json", "births.csv")
    page = " ".join((tmp_path / "report.html").read_text().split())
    assert "tells the answer of 100.0% of the rows on its own" in page
    result = CliRunner().invoke(app, ["evaluate", "model.json", "births.csv", "--json"])
    (one,) = json.loads(result.stdout)["alone"]
    assert (one["sensor"], one["column"], one["share"]) == ("bwt", "bwt", 1.0)


def test_a_report_looks_at_no_column_that_a_row_did_not_buy():
    X = rng().normal(size=(N, 2))
    y = X[:, 0] > 1
    model = SensorTreeClassifier(costs={"x0": 0.001, "x1": 50.0}).fit(X, y)
    spoilt = X.copy()
    spoilt[:, 1] = y  # nobody buys it
    assert [one.sensor for one in model.report(spoilt, y).alone] == ["x0"]


def doubt(values, name="x"):
    cells = [str(int(v)) for v in values]
    data = DataFile("t.csv", {name: cells}, range(len(cells)))
    return column_warning(data, name, np.arange(len(cells)) % 2)


@pytest.mark.parametrize("n", [60, 400, 3000])
def test_integers_that_name_rows_in_any_order_are_doubted(n):
    some = rng()
    for values in (
        some.permutation(n),
        1000 + some.permutation(n),
        some.permutation(2 * n)[:n],
        np.r_[some.permutation(n), 3, 5],  # two rows are there twice
    ):
        found = doubt(values)
        assert not found.leave_out
        assert "different integers in" in found.reason
    assert doubt(some.permutation(n), "rownames").leave_out


def test_amounts_in_whole_numbers_are_not_doubted():
    for seed in range(20):
        some = np.random.default_rng(seed)
        assert doubt(some.gamma(8, 1000, 400)) is None
        assert doubt(some.integers(0, 10**6, 400)) is None
        assert doubt(some.integers(20, 90, 400)) is None
        assert doubt(some.integers(0, 2000, 400)) is None
