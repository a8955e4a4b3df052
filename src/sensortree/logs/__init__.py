"""Policies judged on logs, in which another rule decided what was bought.

::

    purchases    `Purchases`: what was bought for each row, round by round
    following    `Followed`: how far a policy can be followed through a log
    nuisances    λ: how likely the logger stops;  q: what is to be lost and spent
    estimate     φ: what each row contributes; means with intervals, and their support
    judgement    `LogEvaluation`: what a log says, as values, text and page
    evaluation   `evaluate_from_log`, `compare_from_log`
    continuing   who stands in for rows whose log ended, where a tree is learned
    gaussians    how readings go together within a class: what was not bought, guessed
    leaves       `LoggedClassifiers`: leaves that learn from a log

The old rule's stopping is censoring: rows whose log went on speak, by weights, for rows
like them whose log ended.
"""

from sensortree.logs.evaluation import compare_from_log, evaluate_from_log
from sensortree.logs.judgement import (
    LogComparison,
    LogEvaluation,
    report_page_from_log,
)
from sensortree.logs.purchases import acquired_from_events

__all__ = [
    "LogComparison",
    "LogEvaluation",
    "acquired_from_events",
    "compare_from_log",
    "evaluate_from_log",
    "report_page_from_log",
]
