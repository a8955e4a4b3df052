"""Claims about folds that cannot be: the error is ours, and says what to do."""

import re

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

from sensortree import SensorTreeClassifier, SensorTreeRegressor, tradeoff_curve
from sensortree.exceptions import SensorTreeError

X = np.random.default_rng(0).normal(size=(60, 2))
Y = X[:, 0] > 0
NUMBER = "cv must be "
SPLIT = "cannot split these 60 rows"


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        ("a", NUMBER),
        (1.5, NUMBER),
        (1, NUMBER),
        (0, NUMBER),
        (True, NUMBER),
        (KFold(70), SPLIT),
        (StratifiedKFold(50), SPLIT),
        (GroupKFold(5), SPLIT),
    ],
    ids=str,
)
def test_folds_that_cannot_be_are_refused_in_our_words(cv, message):
    with pytest.raises(SensorTreeError, match=re.escape(message)):
        tradeoff_curve(SensorTreeClassifier(), X, Y, [0.1], cv)
    with pytest.raises(
        SensorTreeError, match=f"{re.escape(message)}|The 'cv' parameter"
    ):
        SensorTreeClassifier(cv=cv).fit(X, Y)
    if not isinstance(cv, StratifiedKFold):
        with pytest.raises(SensorTreeError):
            SensorTreeRegressor(cv=cv).fit(X, X[:, 0])
