"""Policies judged on logs, in which another rule decided what was bought.

::

    purchases    `Purchases`: what was bought for each row, round by round
    events       `acquired_from_events`: the same from a long table
    continuing   who stands in for rows whose log ended, where a tree is learned
    following    `Followed`: how far a policy can be followed through a log
    dead_ends    logs that are ended before what leads nowhere
    histories    what was known of each row after each round, as numbers
    stopping     λ: how likely the logger stops, given what it knew
    outlook      q: what the policy may be expected to lose and spend
    estimate     φ: what each row contributes; means with intervals
    support      how much of the log speaks, and whether that is enough
    evaluation   `evaluate_from_log`, `compare_from_log`;  evaluation_text  as text

The old rule's stopping is censoring: rows whose log went on speak, by weights, for rows
like them whose log ended.
"""

from sensortree.logs.evaluation import (
    LogComparison,
    LogEvaluation,
    compare_from_log,
    evaluate_from_log,
)
from sensortree.logs.events import acquired_from_events

__all__ = [
    "LogComparison",
    "LogEvaluation",
    "acquired_from_events",
    "compare_from_log",
    "evaluate_from_log",
]
