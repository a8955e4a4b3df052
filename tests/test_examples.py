"""Claims about the gallery: every example runs, on nothing but what is installed."""

from __future__ import annotations

import socket
from pathlib import Path
from runpy import run_path

import matplotlib
import matplotlib.pyplot as plt
import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("plot_*.py"))
# Building the site runs all of them; these take long.
LONG = (
    "plot_comparing_methods",
    "plot_ask_where_to_look",
    "plot_boosted_leaves",
    "plot_waves",
)


@pytest.mark.parametrize(
    "example",
    [
        pytest.param(path, marks=[pytest.mark.slow] if path.stem in LONG else [])
        for path in EXAMPLES
    ],
    ids=[path.stem for path in EXAMPLES],
)
def test_an_example_runs_without_data_files_and_network(example, monkeypatch, capsys):
    connect = socket.socket.connect

    def no_network(self, address):
        if self.family != socket.AF_UNIX and address[0] not in ("127.0.0.1", "::1"):
            raise AssertionError("an example wants the network")
        return connect(self, address)

    monkeypatch.delenv("SENSORTREE_DATA", raising=False)
    monkeypatch.setattr(socket.socket, "connect", no_network)
    matplotlib.use("Agg")
    try:
        run_path(str(example), run_name="__main__")
        assert plt.get_fignums(), "the gallery shows a picture of each"
    finally:
        plt.close("all")
    assert capsys.readouterr().out, "an example prints what it measured"


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_says_where_its_data_are_from(example):
    text = " ".join(example.read_text(encoding="utf-8").replace("#", " ").split())
    assert "real data" in text or "made up" in text
