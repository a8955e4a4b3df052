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
    judgement    `LogEvaluation`: what a log says;  evaluation_text  the same as text
    evaluation   `evaluate_from_log`, `compare_from_log`
    page         `report_page_from_log`: the same as a page

The old rule's stopping is censoring: rows whose log went on speak, by weights, for rows
like them whose log ended.
"""

from sensortree.logs.evaluation import compare_from_log, evaluate_from_log
from sensortree.logs.events import acquired_from_events
from sensortree.logs.judgement import LogComparison, LogEvaluation
from sensortree.logs.page import report_page_from_log

__all__ = [
    "LogComparison",
    "LogEvaluation",
    "acquired_from_events",
    "compare_from_log",
    "evaluate_from_log",
    "report_page_from_log",
]
