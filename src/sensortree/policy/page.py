"""All that the page of a report shows, put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, is_dataclass
from typing import Any

import numpy as np

from sensortree.display.report_page import ReportPage
from sensortree.display.tree import TreeDisplay
from sensortree.policy.about import now
from sensortree.policy.limited import LimitedUse
from sensortree.policy.policy import Policy
from sensortree.policy.report import CostReport
from sensortree.policy.rules import plain_rules
from sensortree.sensors.table import Table


def page_of(
    policy: Policy,
    table: Table,
    report: CostReport,
    model: Any = None,
    *,
    limits: Sequence[LimitedUse] = (),
    data: str = "",
    title: str = "",
) -> ReportPage:
    """The page of a report on the rows of a table.

    Parameters
    ----------
    policy : Policy
    table : Table
        The rows, for rules in plain words.
    report : CostReport
        Of these rows.
    model : object, default=None
        What knows more about its training: `certificate_`, `outage_report_`, `curve_`
        with `chosen_`, `comparison_`, as far as it has them.
    limits : sequence of LimitedUse, default=()
        The same rows with less to spend.
    data, title : str, default=""
    """
    certificate = getattr(model, "certificate_", None)
    proof = certificate if isinstance(certificate, dict) else None
    if is_dataclass(certificate) and not isinstance(certificate, type):
        proof = asdict(certificate)
    return ReportPage(
        report,
        tree_of(policy, report),
        plain_rules(policy, table),
        policy.about,
        proof,
        data,
        now(),
        policy.digest,
        title or _title(policy.about.target),
        limits,
        getattr(model, "outage_report_", None),
        getattr(model, "curve_", None),
        getattr(model, "chosen_", None),
        getattr(model, "comparison_", None),
    )


def tree_of(policy: Policy, report: CostReport) -> TreeDisplay:
    """The tree with the ways of the rows of a report."""
    leaves = [use for use in report.leaves if use.leaf >= 0]
    classes = [[use.share * share for share in use.classes.values()] for use in leaves]
    return TreeDisplay(
        policy.tree,
        policy.sensors,
        [use.share for use in leaves],
        [1 - use.error for use in leaves],
        leaf_classes=np.array(classes),
        classes=policy.classes,
        unit=policy.about.unit,
    )


def _title(target: str) -> str:
    """Heading of a page that was given none."""
    if not target:
        return "What is asked, and what that is worth"
    return f"{target}: what is asked, and what that is worth"
