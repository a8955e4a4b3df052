"""Methods beside each other on held-out rows of one table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sensortree.cli.console import Work
from sensortree.cli.problem import Problem
from sensortree.curves.held_out import HeldOutFolds, Measured
from sensortree.exceptions import SensorTreeError
from sensortree.policy.about import EVERYTHING, NOTHING
from sensortree.progress import TextProgress
from sensortree.text import aligned


def compared(
    methods: Mapping[str, type],
    settings: Mapping[str, Any],
    problem: Problem,
    cost_weight: float,
    n_folds: int,
    work: Work,
) -> list[dict[str, Any]]:
    """Error, cost and risk of each method, and of buying everything and nothing.

    All as a curve measures them, on its folds. What is bought for everybody is answered
    by leaf classifiers of the first method.
    """
    lines: list[dict[str, Any]] = []
    ends: dict[str, Measured | None] = {}
    for label, method in methods.items():
        estimator = _with_settings(method, settings)
        if not hasattr(estimator, "risk") and settings["risk"] != "error":
            said = f"it minimises a loss of its own, not {settings['risk']}."
            lines.append({"method": label, "refused": said})
            work.advance(label)
            continue
        quiet = TextProgress(verbose=False)
        try:
            folds = HeldOutFolds(
                estimator,
                problem.X,
                problem.y,
                n_folds,
                None,
                None,
                quiet,
                groups=problem.groups,
            )
            measured = folds.measure(cost_weight)
            if not ends:
                for name in (EVERYTHING, NOTHING):
                    ends[name] = folds.measure_baseline(name)
                    work.advance(name)
        except SensorTreeError as error:
            lines.append({"method": label, "refused": str(error)})
            continue
        finally:
            work.advance(label)
        lines.append(_line(label, measured, cost_weight))
    lines += [_line(n, end, cost_weight) for n, end in ends.items()]
    return lines


def _with_settings(method: type, settings: Mapping[str, Any]) -> Any:
    """An estimator with those of the settings that it has."""
    estimator = method()
    known = estimator.get_params(deep=False)
    return estimator.set_params(**{k: v for k, v in settings.items() if k in known})


def _line(label: str, measured: Measured | None, cost_weight: float) -> dict[str, Any]:
    """Means over rows, and the standard errors of two of them."""
    if measured is None:
        said = "not all sensors may be bought together, by 'after' or 'one_of'."
        return {"method": label, "refused": said}
    error, loss, cost = measured.mean().tolist()
    noise = measured.noise.tolist()
    return {
        "method": label,
        "error": error,
        "error_se": noise[0],
        "loss": loss,
        "mean_cost": cost,
        "mean_cost_se": noise[2],
        "total": loss + cost_weight * cost,
    }


def comparison_text(document: Mapping[str, Any], unit: str) -> str:
    """The comparison as a table."""
    lines = []
    for line in document["methods"]:
        if "refused" in line:
            lines.append([line["method"], "–", "–", "–"])
            continue
        lines.append(
            [
                line["method"],
                f"{line['error']:.4f} ± {line['error_se']:.4f}",
                f"{line['mean_cost']:.4g} ± {line['mean_cost_se']:.2g}",
                f"{line['total']:.4g}",
            ]
        )
    cost = f"mean cost ({unit})" if unit else "mean cost"
    notes = [
        f"{line['method']}: {line['refused']}"
        for line in document["methods"]
        if "refused" in line
    ]
    return "\n".join(
        [
            aligned(("method", "error", cost, "total"), lines),
            f"total is loss + {document['cost_weight']:g} × cost, on held-out rows "
            f"({document['cv']} folds); ± is one standard error over rows",
            *notes,
        ]
    )
