"""Rows to policy, as functions.

::

    settings     what a fit is asked for, checked
    pose         tree and rows → the routing problem
    choose       which tree: given, built, or of the least validated risk
    improvement  a tree's neighbours, tried one after another
    decide       the ways to learn decisions: each gives coefficients and evidence
    fit          pose, choose, decide, assemble: rows → policy
    linear_tree  trees of regressions, learned as a whole;  soft_tree  CSTC's objective
"""
