"""What a model is about: kept with it, shown with it, and without a say in answers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sensortree import (
    SensorTreeClassifier,
    SensorTreeClassifierCV,
    TreeDisplay,
    load,
    save,
    tradeoff_curve,
)
from sensortree.exceptions import ModelFileError
from sensortree.persistence.files import parse, render
from sensortree.policy.about import now
from sensortree.results import About

ROOT = Path(__file__).parent


def stage_data(n_rows):
    """A first reading that is unsure near 0, where a second one says the rest."""
    X = np.random.default_rng(0).normal(size=(n_rows, 2))
    y = X[:, 0] + (np.abs(X[:, 0]) < 0.5) * X[:, 1] > 0
    return X, y.astype(int)


@pytest.fixture(scope="module")
def fitted():
    X, y = stage_data(300)
    model = SensorTreeClassifier(cost_weight=0.02, unit="EUR")
    return model.fit(X, pd.Series(y, name="sick")), X, y


def test_a_fit_keeps_unit_target_rows_and_date(fitted):
    model, X, _ = fitted
    about = model.about_
    assert (about.unit, about.target, about.rows) == ("EUR", "sick", len(X))
    assert about.fitted.endswith("Z")
    assert about.fitted <= now()


def test_the_date_is_that_of_the_environment_where_it_has_one(monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    assert now() == "1970-01-02T00:00:00Z"


def test_the_held_out_score_is_that_of_what_was_kept(fitted):
    model, X, _ = fitted
    score, compared = model.about_.held_out, model.comparison_
    assert score == compared.held_out
    assert score.cost == pytest.approx(compared.cost[compared.chosen])
    assert score.risk == pytest.approx(score.loss + 0.02 * score.cost)
    assert score.error == pytest.approx(score.loss)
    assert score.rows == len(X)
    # An error is 0 or 1, so that its mean, before it was corrected, says its spread.
    wrong = score.error - compared.optimism
    spread = np.sqrt(wrong * (1 - wrong) / len(X))
    assert score.error_se == pytest.approx(spread)


def test_the_held_out_error_counts_wrong_answers_and_the_loss_their_price():
    X, y = stage_data(300)
    model = SensorTreeClassifier(loss={0: 3, 1: 3}, cost_weight=0.06).fit(X, y)
    score = model.about_.held_out
    assert score.error > 0
    assert score.loss == pytest.approx(3 * score.error)
    assert score.loss_se == pytest.approx(3 * score.error_se)


def test_rows_of_weight_two_score_as_rows_that_are_there_twice():
    X, y = stage_data(120)
    weight = 1 + (np.arange(120) % 3 == 0)
    twice = np.repeat(np.arange(120), weight)
    model = SensorTreeClassifier(cost_weight=0.02, classifier="logistic2")
    weighed = model.fit(X, y, sample_weight=weight).about_.held_out
    repeated = model.fit(X[twice], y[twice], groups=twice).about_.held_out
    assert weighed.risk == pytest.approx(repeated.risk)
    assert weighed.error == pytest.approx(repeated.error)
    assert weighed.cost == pytest.approx(repeated.cost)


def test_where_nothing_is_held_out_there_is_no_score():
    X, y = stage_data(100)
    model = SensorTreeClassifier.as_published(structure="cascade").fit(X, y)
    assert model.about_.held_out is None
    assert model.about_.rows == 100


def test_what_a_model_is_about_changes_no_digest(fitted, monkeypatch):
    model, X, y = fitted
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    other = SensorTreeClassifier(cost_weight=0.02, unit="USD").fit(X, y)
    assert other.about_ != model.about_
    assert other.policy_.digest == model.policy_.digest


def test_a_file_keeps_what_a_model_is_about(fitted, tmp_path):
    model, _, _ = fitted
    save(model, tmp_path / "model.json")
    loaded = load(tmp_path / "model.json")
    assert loaded.about_ == model.about_
    assert "sick" in loaded._repr_html_()
    save(loaded, tmp_path / "again.json")
    again = (tmp_path / "again.json").read_bytes()
    assert json.loads(again)["about"]["unit"] == "EUR"


def test_a_file_of_the_first_version_is_about_nothing():
    assert load(ROOT / "model_v1.json").about_ == About()


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("fitted", "yesterday", "must be a time as 2026-01-31"),
        ("rows", -1, "out of range"),
        ("rows", 2.5, "must hold integers"),
        ("unit", 7, "must be text"),
        ("mood", "good", "is not a key of this format"),
        ("held_out", {"risk": 1}, "is missing"),
    ],
)
def test_a_file_that_is_about_what_cannot_be_is_refused(
    fitted, tmp_path, key, value, message
):
    path = tmp_path / "model.json"
    save(fitted[0], path)
    document = parse(path.read_bytes())
    document["about"][key] = value
    for head in ("format", "format_version", "digest"):
        del document[head]
    path.write_bytes(render(document))
    with pytest.raises(ModelFileError, match=message):
        load(path)


def test_pictures_take_the_unit_of_the_model(fitted):
    model, X, y = fitted
    assert TreeDisplay.from_estimator(model).unit == "EUR"
    assert TreeDisplay.from_estimator(model, X, y).unit == "EUR"
    assert TreeDisplay.from_estimator(model, unit="$").unit == "$"
    assert "EUR" in model.to_svg()


def test_a_curve_knows_its_unit_and_hands_it_to_its_picture():
    from sensortree import TradeoffDisplay

    X, y = stage_data(120)
    model = SensorTreeClassifier(unit="EUR", structure="cascade")
    curve = tradeoff_curve(model, X, y, [1.0, 0.01])
    assert curve.unit == curve.to_dict()["unit"] == "EUR"
    assert "mean cost (EUR)" in str(curve)
    assert TradeoffDisplay.from_curve(curve).unit == "EUR"
    assert TradeoffDisplay.from_curve(curve, unit="$").unit == "$"


def test_a_model_for_a_budget_is_about_the_same():
    X, y = stage_data(120)
    model = SensorTreeClassifierCV(
        budget=1, unit="EUR", structure="cascade", cost_weights=[1.0, 0.01]
    ).fit(X, pd.Series(y, name="sick"))
    assert (model.about_.unit, model.about_.target) == ("EUR", "sick")
    assert model.about_.held_out is not None


def test_an_amount_of_money_names_its_unit_if_there_is_one():
    assert About(unit="EUR").money(180.0) == "180 EUR"
    assert About().money(2.5) == "2.5"
