"""Error against cost, and the budget.

::

    curve           `tradeoff_curve`: over cost weights; scorers that know prices
    cv              `SensorTreeClassifierCV`, `SensorTreeRegressorCV`: fit at a budget
    held_out        models fitted without a fold, measured on it
    shared_leaves   leaf classifiers that held-out folds share
"""
