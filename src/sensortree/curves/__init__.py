"""Error against cost, and the budget.

::

    held_out        models fitted without a fold, measured on it
    curve           `TradeoffCurve`, measured on held-out folds
    choice          the point that a budget or a target asks for
    classifier_cv   `SensorTreeClassifierCV`: fit at a budget
    scorers         scikit-learn scorers that know prices
"""
