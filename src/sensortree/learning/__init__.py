"""Rows to policy, as functions that set nothing.

::

    settings     what a fit is asked for
    leaf_kinds   which kinds of leaves are compared, and how they are made
    prepare      training rows with all that several fits on them share
    recipes      which structures are compared with which leaves, and their trees
    choose       one comparison of all of them on held-out rows, and what is taken
    comparison   the risks of all candidates on the same rows
    pose         a tree and rows → the routing problem
    learned      coefficients of the decisions, with the evidence for them
    joint        learn them all at once, by the linear program, then refine
    held_out     judge them on rows they were not learned from
    calibrating  leaves put right on the examples that reach them
    detours      trees for examples that a missing sensor holds up
    baselines    what the policy is compared with: everything, nothing, a fixed set
    fit          choose, pose, learn, assemble: rows → policy
    worth        what a sensor can be worth at most, and which cost more
    timing       where the time of a fit went
"""
