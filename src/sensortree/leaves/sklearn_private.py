"""Everything of scikit-learn that is private and that we use, in one place.

Attributes are read by name, without a default: when scikit-learn renames one, we fail
loudly rather than answer differently.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.utils import _safe_indexing as rows_of
from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    InvalidParameterError,
    StrOptions,
    validate_parameter_constraints,
)
from sklearn.utils.validation import _check_sample_weight as check_sample_weight

from sensortree.types import Array, Rows

__all__ = [  # what is passed on; the rest is below
    "HasMethods",
    "Interval",
    "InvalidParameterError",
    "StrOptions",
    "check_sample_weight",
    "rows_of",
    "validate_parameter_constraints",
]


class BinsOnce:
    """What a booster adds that is warm-started on the same rows: it bins them once."""

    _bin_mapper: Any

    def _bin_data(self, *rows: Any, **named: Any) -> Any:
        if not hasattr(self, "_binned"):
            # The booster beside this class has it, which mypy cannot know.
            binned = super()._bin_data(*rows, **named)  # type: ignore[misc]  # private
            self._binned = binned, self._bin_mapper
        binned, self._bin_mapper = self._binned
        return binned


class OnceBinned(BinsOnce, HistGradientBoostingClassifier):
    """A booster of classes that bins its rows only once."""


class OnceBinnedNumbers(BinsOnce, HistGradientBoostingRegressor):
    """A booster of numbers that bins its rows only once."""


class ShallowTable:
    """Shows its own parameters in notebooks, and not those of what they hold."""

    def _get_params_html(self, deep: bool = True, doc_link: str = "") -> Any:
        return super()._get_params_html(False, doc_link)  # type: ignore[misc]  # private


def boosted_rounds(classifier: Any) -> list[list[Any]]:
    """Node arrays of every tree of a HistGradientBoostingClassifier, by round."""
    return [[tree.nodes for tree in trees] for trees in classifier._predictors]


def boosted_levels(classifier: Any) -> list[list[dict[int, tuple[Rows, Rows]]]]:
    """Codes that go left and right at nodes that look at categories, by round and tree.

    Columns of categories come first. Codes that are on neither side, since training did
    not have them, go where missing ones go.
    """
    n_trees = [len(trees) for trees in classifier._predictors]
    if classifier.is_categorical_ is None:
        return [[{} for _ in range(n)] for n in n_trees]
    encoder = classifier._preprocessor.named_transformers_["encoder"]
    known = [codes[~np.isnan(codes)].astype(np.intp) for codes in encoder.categories_]
    return [
        [_sides(tree.nodes, tree.raw_left_cat_bitsets, known) for tree in trees]
        for trees in classifier._predictors
    ]


def _sides(nodes: Any, left: Any, known: list[Rows]) -> dict[int, tuple[Rows, Rows]]:
    """Codes on both sides of each node of a tree that looks at a category."""
    sides = {}
    for at in np.flatnonzero(nodes["is_categorical"]).tolist():
        codes = known[nodes["feature_idx"][at]]
        place, bit = np.divmod(np.arange(len(codes)), 32)
        is_left = (left[nodes["bitset_idx"][at]][place] >> bit.astype(np.uint32)) & 1
        sides[at] = codes[is_left == 1], codes[is_left == 0]
    return sides


def boosted_baseline(classifier: Any) -> Array:
    """What a HistGradientBoostingClassifier scores before its first tree, by class."""
    return np.asarray(classifier._baseline_prediction, dtype=np.float64).ravel()


def boosted_scores(classifier: Any, X: Array, first: int) -> Iterator[Array]:
    """What each round from some one on adds to the scores of rows, (n_rows, n_outputs)."""
    n_outputs = classifier.n_trees_per_iteration_
    X = classifier._preprocess_X(X, reset=False)
    for trees in classifier._predictors[first:]:
        added = np.zeros((len(X), n_outputs), dtype=np.float64, order="F")
        classifier._predict_iterations(X, [trees], added, is_binned=False, n_threads=1)
        yield added


def imputer_dtypes(imputer: Any) -> tuple[Any, Any]:
    """Types that a SimpleImputer was fitted on, and fills in."""
    return imputer._fit_dtype, imputer._fill_dtype


def rare_categories(encoder: Any) -> tuple[tuple[int, ...], ...]:
    """Positions of categories that a fitted encoder puts together, by column."""
    if not encoder._infrequent_enabled:
        return ((),) * len(encoder.categories_)
    return tuple(
        () if rare is None else tuple(map(int, np.sort(rare)))
        for rare in encoder._infrequent_indices
    )


def input_positions(transformer: Any, name: str) -> tuple[int, ...]:
    """Columns that one part of a fitted ColumnTransformer reads."""
    return tuple(map(int, transformer._transformer_to_input_indices[name]))


def begin_callbacks(estimator: Any, max_subtasks: int | None) -> Any:
    """The context that tells an estimator's callbacks of the steps of a fit."""
    return estimator._init_callback_context(max_subtasks=max_subtasks)
