"""`PathOfFits`: models that differ in their cost weight, fitted on data read once."""

from __future__ import annotations

from typing import Any

from sensortree.leaves.classifiers import LeafClassifiers
from sensortree.progress import TextProgress


class PathOfFits:
    """One reading of the data, its leaves and its search, for any number of fits.

    Parameters
    ----------
    reader : estimator of this package
        A copy that has read the data, and says how structures are searched for.
    leaves : LeafClassifiers
        Classifiers of subsets; what one fit asked for is there for the next.
    """

    def __init__(self, reader: Any, leaves: LeafClassifiers):
        self.leaves = leaves
        self.progress = TextProgress(reader.verbose)
        self.search = reader._search(leaves, self.progress)
        self.seen = seen(reader)

    def fit(self, model: Any) -> Any:
        """Fit a copy of the reader that differs in what the search does not depend on."""
        vars(model).update(self.seen)
        model._fit(self.leaves, self.search, self.progress)
        return model


def seen(reader: Any) -> dict[str, Any]:
    """What an estimator knows about the columns of X once it has read it."""
    names = ("n_features_in_", "feature_names_in_")
    return {name: vars(reader)[name] for name in names if name in vars(reader)}
