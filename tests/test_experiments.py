"""Claims about the measures that the experiments report."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[1] / "experiments"
SPEC = importlib.util.spec_from_file_location("measures", FOLDER / "measures.py")
measures = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(measures)

CURVE = [(1.0, 0.4), (2.0, 0.3), (3.0, 0.1), (4.0, 0.2), (2.5, 0.35)]


def test_the_hull_leaves_out_what_mixing_two_policies_beats():
    # (2, .3) lies above the line from (1, .4) to (3, .1); (4, .2) is dearer and worse.
    assert measures.hull(CURVE) == [(1.0, 0.4), (3.0, 0.1)]


def test_cost_and_error_are_read_off_the_hull():
    assert measures.cost_at_error(CURVE, 0.25) == pytest.approx(2.0)
    assert measures.error_at_cost(CURVE, 2.0) == pytest.approx(0.25)
    assert measures.cost_at_error(CURVE, 0.9) == 1.0
    assert np.isnan(measures.cost_at_error(CURVE, 0.05))
    assert np.isnan(measures.error_at_cost(CURVE, 0.5))


def test_the_budget_share_counts_what_comes_after_the_first_sensor():
    assert measures.budget_share(2.0, first=1.0, everything=5.0) == 0.25


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda p: p.name)
def test_experiments_use_the_public_interface_only(path):
    assert not re.search(
        r"(from|import) sensortree\.", path.read_text(encoding="utf-8")
    )


def test_the_verdict_on_auto_counts_near_cells_and_names_losses_to_static(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    from structures import STRUCTURES, table, verdict

    def cell(weight, risks):
        return [
            {
                "data": "segment",
                "structure": structure,
                "cost_weight": weight,
                "risk": risk,
                "standard_error": 0.01,
                "chosen": "chain",
                "validated": {},
            }
            for structure, risk in zip(STRUCTURES, risks, strict=True)
        ]

    # auto, chain, grown, greedy, static: near the best; then far, and worse than static
    lines = cell(0.05, [0.201, 0.2, 0.3, 0.3, 0.195]) + cell(
        0.02, [0.22, 0.2, 0.3, 0.3, 0.2]
    )
    said = verdict(lines)
    assert "was run: 1 of 2" in said
    assert "mean risk: segment at 0.02" in said
    assert "| segment | 0.05 | 0.2010 ± 0.0100 (chain) | 0.2000 |" in table(lines)
    assert "was run: 1 of 1" in verdict(lines[:5] + lines[5:-1])  # incomplete cells go
