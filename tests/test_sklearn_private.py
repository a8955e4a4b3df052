"""What is private of scikit-learn still has the names and the meaning that we rely on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import sensortree
from sensortree import SensorTreeClassifier
from sensortree.leaves import sklearn_private as private

SOURCE = Path(sensortree.__file__).parent
X = np.random.default_rng(0).normal(size=(60, 3))
Y = (X[:, 0] > 0).astype(int)


def test_one_file_knows_what_is_private():
    used = ("sklearn.utils._", "import _", "._predictors", "._baseline_prediction")
    used += ("._fit_dtype", "._fill_dtype", "._infrequent_enabled")
    used += ("._predict_iterations", "._bin_data", "._bin_mapper")
    used += ("._transformer_to_input_indices", "._init_callback_context")
    owner = SOURCE / "leaves" / "sklearn_private.py"
    for path in SOURCE.rglob("*.py"):
        if path != owner:
            lines = path.read_text(encoding="utf-8").splitlines()
            found = [
                line
                for line in lines
                for name in used
                if name in line and ("sklearn" in line or name.startswith("._"))
            ]
            assert not found, f"{path.name}: {found}"


def test_trees_of_a_booster_add_up_to_its_scores():
    fitted = HistGradientBoostingClassifier(max_iter=2, random_state=0).fit(X, Y)
    rounds = private.boosted_rounds(fitted)
    assert [len(trees) for trees in rounds] == [1, 1]
    names = rounds[0][0].dtype.names
    assert {"feature_idx", "left", "right", "num_threshold", "value"} <= set(names)
    assert {"is_leaf", "missing_go_to_left"} <= set(names)
    scores = np.repeat(private.boosted_baseline(fitted), len(X))
    for (nodes,) in rounds:
        for row, x in enumerate(X):
            at = nodes[0]
            while not at["is_leaf"]:
                below = x[at["feature_idx"]] <= at["num_threshold"]
                at = nodes[at["left"] if below else at["right"]]
            scores[row] += at["value"]
    np.testing.assert_allclose(scores, fitted.decision_function(X))


def test_what_later_rounds_add_is_the_difference_of_scores():
    short, long = (
        HistGradientBoostingClassifier(max_iter=n, random_state=0).fit(X, Y)
        for n in (2, 5)
    )
    added = sum(private.boosted_scores(long, X, 2))[:, 0]
    difference = long.decision_function(X) - short.decision_function(X)
    np.testing.assert_allclose(added, difference)


def test_a_warm_start_that_bins_once_ends_where_a_plain_one_does():
    once = private.OnceBinned(max_iter=2, warm_start=True, random_state=0).fit(X, Y)
    binned = once._binned[0]
    once.set_params(max_iter=5).fit(X, Y)
    assert once._binned[0] is binned
    plain = HistGradientBoostingClassifier(max_iter=5, random_state=0).fit(X, Y)
    scores = plain.decision_function(X)
    np.testing.assert_allclose(once.decision_function(X), scores)


def test_an_imputer_says_its_types():
    fitted = SimpleImputer().fit(X)
    assert [kind.kind for kind in private.imputer_dtypes(fitted)] == ["f", "f"]


def test_an_encoder_says_which_categories_it_puts_together():
    column = np.array([["a"], ["a"], ["b"], ["c"]], dtype=object)
    assert private.rare_categories(OneHotEncoder().fit(column)) == ((),)
    fitted = OneHotEncoder(min_frequency=2).fit(column)
    assert private.rare_categories(fitted) == ((1, 2),)


def test_a_column_transformer_says_where_its_parts_read():
    fitted = ColumnTransformer([("one", StandardScaler(), [2, 0])]).fit(X)
    assert private.input_positions(fitted, "one") == (2, 0)


def test_a_fit_tells_callbacks_where_it_is():
    context = private.begin_callbacks(SensorTreeClassifier(), max_subtasks=3)
    assert hasattr(context, "subcontext")
    assert hasattr(context, "call_on_fit_task_end")


@pytest.mark.parametrize(
    ("name", "ask"),
    [
        ("_predictors", private.boosted_rounds),
        ("_baseline_prediction", private.boosted_baseline),
    ],
)
def test_a_renamed_attribute_is_an_error_rather_than_another_answer(name, ask):
    fitted = HistGradientBoostingClassifier(max_iter=2, random_state=0).fit(X, Y)
    delattr(fitted, name)
    with pytest.raises(AttributeError, match=name):
        ask(fitted)
