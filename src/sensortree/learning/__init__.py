"""Rows to policy, as functions that set nothing.

::

    settings     what a fit is asked for
    prepare      training rows with all that several fits on them share; kinds of leaves
    recipes      which structures are compared with which leaves, and their trees
    choose       one comparison of all of them on held-out rows, and what is taken
    pose         a tree and rows → the routing problem
    joint        decisions that were learned; all at once, by the linear program
    held_out     judge them on rows they were not learned from, all candidates on the same
    calibrating  leaves put right on the examples that reach them
    detours      trees for examples that a missing sensor blocks
    fit          choose, pose, learn, assemble: rows → policy, and where the time went
    worth        what a sensor can be worth at most, and which cost more
"""
