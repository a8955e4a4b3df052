"""`report_page_from_log`: what a log says about a policy, as one HTML page."""

from __future__ import annotations

from typing import Any

from sensortree.logs.evaluation import policy_of
from sensortree.logs.judgement import LogEvaluation
from sensortree.reports.log_page import LogPage
from sensortree.reports.tree_display import TreeDisplay


def report_page_from_log(
    model: Any, judged: LogEvaluation, *, data: str = "", title: str = ""
) -> str:
    """Give what a log says about a policy as one HTML page, for people who decide.

    What it would answer and spend beside what was done, whom it would ask for what, what
    that rests on and assumes, how hidden reasons could change it; or why the log cannot
    tell.

    Parameters
    ----------
    model : Policy, fitted classifier or loaded model
    judged : LogEvaluation
        Of the same policy.
    data : str, default=""
        Name of the log, for the page.
    title : str, default=""
        Heading of the page; by default it says what is predicted.

    Returns
    -------
    html : str
        It loads nothing from elsewhere, and runs no script; it can be read on a phone and
        printed.

    Examples
    --------
    >>> import numpy as np
    >>> import sensortree
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1500, 2))
    >>> y = X[:, 0] + (np.abs(X[:, 0]) < 0.5) * X[:, 1] > 0
    >>> model = sensortree.SensorTreeClassifier(cost_weight=0.02).fit(X[:500], y[:500])
    >>> bought = np.column_stack([np.ones(1000, int), 2 * (rng.random(1000) < 0.6)])
    >>> judged = sensortree.evaluate_from_log(
    ...     model, X[500:], y[500:], acquired=bought)
    >>> page = sensortree.report_page_from_log(model, judged, data="log.csv")
    >>> page.startswith("<!DOCTYPE html>")
    True
    """
    policy = policy_of(model)
    tree = TreeDisplay.from_estimator(model, unit=policy.about.unit)
    return LogPage(policy, data, title, tree, judged).to_html()
