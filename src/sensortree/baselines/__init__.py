"""What the compared methods learn; their scikit-learn face is in `estimators/`.

::

    static       the same sensors for every example, chosen greedily
    linear_tree  trees of regressions, learned as a whole (ASTC and CSTC)
    soft_tree    CSTC's objective, and its descent
"""
