"""Categories in boosted leaves: one column of codes, split by sets of levels."""

from __future__ import annotations

import models
import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from sensortree import Sensor, SensorTreeClassifier
from sensortree.leaves.boosting import BoostedEngine
from sensortree.leaves.coding import CodedTrees, coded, side_by_side
from sensortree.leaves.compiling import compile_classifier, compile_transformer
from sensortree.leaves.task import CLASSES
from sensortree.sensors.reader import fit_default_encoding
from sensortree.sensors.transforms import levels_of
from sensortree.structure.masking import MaskedScreen
from sensortree.structure.search import loss_saved

RNG = np.random.default_rng(0)
N = 600
TOWN, TRADE = RNG.integers(0, 24, N), RNG.integers(0, 8, N)
DOSE = RNG.normal(size=N)
Y = ((TOWN % 3 == 0) ^ (TRADE % 2 == 0) ^ (DOSE > 1)).astype(int)
FOLD = np.arange(N) % 5
# Ones and zeros of towns, then a number, then ones and zeros of trades.
READINGS = np.hstack([np.eye(24)[TOWN], DOSE[:, None], np.eye(8)[TRADE]])
LEVELS = (tuple(range(24)), tuple(range(25, 33)))
CODED = coded(READINGS, LEVELS)


def log_loss(said):
    return -np.log(np.maximum(said[np.arange(N), Y], 1e-12)).mean()


# which columns are levels ---------------------------------------------------------------


def test_text_beside_numbers_is_a_category_where_its_levels_stand():
    X = pd.DataFrame({"age": [1.0, None] * 20, "pain": list("abcd") * 10})
    made = fit_default_encoding(X, ["number", "text"], None, keeps_nan=False)
    assert made.names(["age", "pain"])[:2] == ("age", "age is missing")
    assert levels_of(made) == ((2, 3, 4, 5),)


def test_an_encoder_of_the_users_own_is_known_too():
    X = np.array([["a", "x"], ["b", "y"], ["c", "x"]], dtype=object)
    encoder = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder())
    assert levels_of(compile_transformer(encoder.fit(X))) == ((0, 1, 2), (3, 4))


def test_what_is_scaled_after_encoding_is_numbers():
    X = np.array([["a"], ["b"], ["c"]], dtype=object)
    encoder = make_pipeline(OneHotEncoder(sparse_output=False), StandardScaler())
    assert levels_of(compile_transformer(encoder.fit(X))) == ()
    assert levels_of(None) == ()


# codes ----------------------------------------------------------------------------------


def test_a_code_is_the_position_of_the_one_and_nan_where_there_is_none():
    readings = READINGS.copy()
    readings[3, :24] = 0.0
    codes = coded(readings, LEVELS).values
    expected = np.where(np.arange(N) == 3, np.nan, TOWN)
    np.testing.assert_array_equal(codes, np.column_stack([expected, TRADE, DOSE]))


@pytest.mark.parametrize("n_levels", [4, 256])
def test_few_levels_and_too_many_stay_ones_and_zeros(n_levels):
    readings = np.eye(n_levels)
    kept = coded(readings, (tuple(range(n_levels)),))
    np.testing.assert_array_equal(kept.values, readings)
    assert not kept.coding.levels


def test_blocks_side_by_side_are_coded_as_the_whole_is():
    town = coded(READINGS[:, :25], LEVELS[:1])
    trade = coded(READINGS[:, 25:], (tuple(range(8)),))
    both, owner = side_by_side([town, trade])
    np.testing.assert_array_equal(both.values, CODED.values)
    assert both.coding.levels == CODED.coding.levels
    assert both.coding.numbers == CODED.coding.numbers
    assert owner.tolist() == [0, 1, 0]  # town, trade, dose


# trees ----------------------------------------------------------------------------------


def test_one_split_parts_the_levels_in_two():
    y = np.isin(TOWN, [2, 3, 5, 7, 11, 13, 17]).astype(int)
    scorer = compile_classifier(BoostedEngine(y, 2).fit(CODED, 1))
    root = scorer.roots[0, 0]
    chosen = set(scorer.sets[scorer.feature[root] - READINGS.shape[1]])
    primes = {2, 3, 5, 7, 11, 13, 17}
    assert chosen in (primes, set(range(24)) - primes)


def test_sets_of_levels_predict_better_than_single_ones():
    engine = BoostedEngine(Y, 2, fold=FOLD)
    sets, single = engine.judge(CODED)[0], engine.judge(READINGS)[0]
    assert log_loss(sets) < log_loss(single) - 0.05


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_compiled_scorer_says_what_the_trees_say_also_of_unseen_levels(n_classes):
    y = Y + (TOWN == 4) * (n_classes - 2)
    train = (TOWN != 7) & (TRADE != 2)  # levels that no tree has seen
    fitted = BoostedEngine(y[train], n_classes).fit(CODED.take(train), 20)
    assert isinstance(fitted, CodedTrees)
    scorer = compile_classifier(fitted)
    asked = READINGS.copy()
    asked[::7, :24] = 0.0
    asked[::11, 24] = np.nan
    asked[::13, 25:] = 0.0
    walked = np.vstack([scorer.scores(row[None]) for row in asked])
    expected = fitted.decision_function(asked).reshape(N, -1)
    np.testing.assert_array_equal(walked, expected)
    np.testing.assert_array_equal(scorer.scores(asked), expected)


def test_a_row_is_judged_without_its_fold():
    said, n_rounds = BoostedEngine(Y, 2, fold=FOLD).judge(CODED)
    others = BoostedEngine(Y[FOLD != 2], 2).fit(CODED.take(FOLD != 2), n_rounds)
    expected = others.predict_proba(READINGS[FOLD == 2])
    np.testing.assert_allclose(said[FOLD == 2], expected)


def test_a_category_that_is_missing_throughout_tells_nothing():
    readings = READINGS.copy()
    readings[:, :24] = 0.0
    engine = BoostedEngine(Y, 2, fold=FOLD)
    without = engine.judge(coded(READINGS[:, 24:], (tuple(range(1, 9)),)))[0]
    np.testing.assert_allclose(engine.judge(coded(readings, LEVELS))[0], without)


# searches -------------------------------------------------------------------------------

BLOCKS = [
    coded(READINGS[:, :25], LEVELS[:1]),
    coded(READINGS[:, 25:], (tuple(range(8)),)),
]


@pytest.mark.parametrize("subset", [[], [0], [1], [0, 1]])
def test_the_screen_says_what_its_boosters_say_of_blanked_codes(subset, monkeypatch):
    fitted = []
    fit = HistGradientBoostingClassifier.fit

    def spy(self, *rows):
        fitted.append(fit(self, *rows))
        return self

    monkeypatch.setattr(HistGradientBoostingClassifier, "fit", spy)
    masked = MaskedScreen(BLOCKS, Y, np.ones(N), FOLD)
    blanked = np.where(np.isin([0, 1, 0], subset), CODED.values, np.nan)
    expected = np.empty((N, 2))
    for half, booster in enumerate(fitted):
        rows = half == FOLD % 2
        expected[rows] = booster.predict_proba(blanked[rows])
    np.testing.assert_allclose(masked.scores(subset), expected, atol=1e-5)


def test_what_splits_by_levels_save_counts_for_their_sensor():
    y = (TOWN % 3 == 0).astype(int)
    noise = RNG.normal(size=(N, 2))
    saved = loss_saved([noise, *BLOCKS], y, np.ones(N), CLASSES.eliminator)
    assert saved.argmax() == 1


# models ---------------------------------------------------------------------------------


def test_leaves_of_a_model_look_at_sets_of_levels_and_answer_rows_alike():
    model, asked, _ = models.fitted("boosted, levels")
    scorers = model.policy_.classifiers.values()
    assert any(getattr(scorer, "sets", None) for scorer in scorers)
    together = model.predict_proba(asked)
    alone = [model.predict_proba(asked.iloc[[row]])[0] for row in range(40)]
    np.testing.assert_array_equal(alone, together[:40])


def test_an_unseen_level_is_answered_as_one_that_no_column_stands_for():
    model, asked, _ = models.fitted("boosted, levels")
    rows = asked[:20].assign(town="elsewhere")
    with pytest.warns(match="training never saw: 'elsewhere'"):
        said = model.predict_proba(rows)
    home = model.policy_.reader.transformers["home"].transform(rows[["town", "dose"]])
    assert not (home[:, 1:] == 1).any()
    with pytest.warns(match="training never saw"):
        other = model.predict_proba(rows.assign(town="nowhere"))
    np.testing.assert_array_equal(said, other)


def test_the_same_rows_in_another_order_give_the_same_model():
    frame, y = models.level_frame()
    sensors = {"home": Sensor(["town", "dose"], cost=1.0), "work": Sensor("trade", 2.0)}
    order = np.random.default_rng(1).permutation(len(y))
    model = SensorTreeClassifier(sensors, classifier="boosted", cost_weight=0.01)
    said = model.fit(frame, y).predict_proba(frame)
    again = model.fit(frame.iloc[order], y[order]).predict_proba(frame)
    np.testing.assert_array_equal(said, again)
