"""Claims about the experiments: the public interface suffices, verdicts are right."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "experiments"


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
