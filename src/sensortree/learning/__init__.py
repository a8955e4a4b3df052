"""Rows to policy, as functions that set nothing.

::

    settings     what a fit is asked for
    leaf_choice  which kind of leaf classifier suits the rows
    prepare      training rows with all that several fits on them share
    choose       which tree: given, built, or of the least validated risk
    improvement  a tree's neighbours, tried one after another
    pose         a tree and rows → the routing problem
    learned      coefficients of the decisions, with the evidence for them
    joint        learn them all at once, by the linear program, then refine
    validated    judge them on rows they were not learned from, beside what buys less
    sizing       cut a tree back to the decisions that pay there
    calibrating  leaves put right on the examples that reach them
    detours      trees for examples that a missing sensor holds up
    static       the same sensors for every example, chosen greedily
    baselines    what the policy is compared with: everything, nothing, a fixed set
    fit          choose, pose, learn, assemble: rows → policy
    worth        what a sensor can be worth at most, and which cost more
    timing       where the time of a fit went
    linear_tree  trees of regressions, learned as a whole;  soft_tree  CSTC's objective
"""
