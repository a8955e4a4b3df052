"""Error against cost, and the budget.

::

    held_out        models fitted without a fold, measured on it
    curve           `tradeoff_curve`: over cost weights, on held-out folds
    classifier_cv   `SensorTreeClassifierCV`: fit at a budget
    scorers         scikit-learn scorers that know prices
"""
