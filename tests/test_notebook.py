"""Claims about curves and reports as a notebook shows them."""

from __future__ import annotations

import re
from itertools import pairwise
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from toys import toy_policy

from sensortree import TradeoffDisplay
from sensortree.reports.chart import ticks
from sensortree.reports.report import cost_report
from sensortree.results import TradeoffCurve
from sensortree.sensors.table import Table

matplotlib.use("Agg")
SVG = "{http://www.w3.org/2000/svg}"


def curve(**ends) -> TradeoffCurve:
    error = [[0.5, 0.4], [0.3, 0.2], [0.2, 0.1]]
    cost = [[1.0, 1.0], [4.0, 6.0], [9.0, 11.0]]
    return TradeoffCurve.from_folds([0.1, 0.01, 0.001], error, cost, **ends)


def points_of(picture: str) -> list[tuple[float, float]]:
    (line,) = ElementTree.fromstring(picture).iter(f"{SVG}polyline")
    pairs = [pair.split(",") for pair in line.get("points").split()]
    return [(float(x), float(y)) for x, y in pairs]


def test_points_lie_where_their_numbers_say():
    picture = TradeoffDisplay.from_curve(curve()).to_svg()
    (x0, y0), (x1, y1), (x2, y2) = points_of(picture)
    # cost 1, 5, 10 and accuracy .55, .75, .85: SVG counts downwards
    assert (x1 - x0) / (x2 - x0) == pytest.approx(4 / 9, abs=0.01)
    assert (y0 - y1) / (y0 - y2) == pytest.approx(2 / 3, abs=0.01)
    assert x0 < x1 < x2
    assert "accuracy 0.75 for 5" in picture


def test_a_choice_has_a_ring_and_the_ends_have_lines():
    measured = curve(nothing=(0.0, 0.6), everything=(12.0, 0.1))
    picture = TradeoffDisplay.from_curve(
        measured, chosen=measured.choose(budget=6), unit="EUR"
    ).to_svg()
    (ring,) = re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)" r="8"', picture)
    assert tuple(map(float, ring)) == points_of(picture)[1]
    for words in ("buy nothing (0)", "buy everything (12)", "(EUR)"):
        assert words in picture


def test_several_curves_are_named_below_and_a_hostile_name_is_only_text():
    both = {"<b>one</b>": curve(), "two": curve()}
    root = ElementTree.fromstring(TradeoffDisplay.from_curve(both).to_svg())
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert texts[-2:] == ["<b>one</b>", "two"]


@pytest.mark.parametrize(
    "points", [[(0.0, 0.5)], [(3.0, 0.2)], [(1.0, 0.3), (1.0, 0.3)], [(1e6, 0.0)]]
)
def test_a_curve_of_hardly_anything_is_drawn(points):
    root = ElementTree.fromstring(
        TradeoffDisplay.from_curve(TradeoffCurve.from_points(points)).to_svg()
    )
    for circle in root.iter(f"{SVG}circle"):
        assert np.isfinite([float(circle.get("cx")), float(circle.get("cy"))]).all()


def test_ticks_are_round_and_inside():
    for low, high in [(0, 9.4), (0.4967, 0.95), (-0.5, 0.5), (0, 1e-3), (98, 12345)]:
        found = ticks(low, high)
        assert 3 <= len(found) <= 9
        assert low <= min(found)
        assert max(found) <= high
        assert len({round(b - a, 9) for a, b in pairwise(found)}) == 1


def test_a_curve_shows_itself_as_a_picture_with_its_points():
    shown = curve()._repr_html_()
    assert TradeoffDisplay.from_curve(curve()).to_svg() in shown
    assert "3 points" in shown
    assert "0.2500 ± 0.05" in shown
    assert "http" not in shown.replace("http://www.w3.org/2000/svg", "")


def test_a_curve_plots_itself():
    measured = curve()
    display = measured.plot(chosen=measured.choose(budget=6), unit="EUR")
    assert display.chosen == {"sensor tree": 1}
    assert "(EUR)" in display.ax_.get_xlabel()
    assert measured.plot(display.ax_).ax_ is display.ax_


def test_a_report_shows_itself_as_tables():
    X = np.array([[-1.0, 0.0], [1.5, 0.0], [2.0, 0.0], [-3.0, 0.0]])
    report = cost_report(toy_policy(), Table(X), ["no", "yes", "no", "no"])
    shown = report._repr_html_()
    cells = re.findall("<t[dh][^>]*>(.*?)</t[dh]>", shown)
    # two of four rows stop after a (1), two buy b (3) too; one of these is wrong
    assert cells[:6] == ["per row", "mean", "95 % interval", "error", "0.25", cells[5]]
    assert cells[cells.index("cost") + 1] == "2.5"
    at = cells.index("b")
    assert cells[at : at + 3] == ["b", "50.0 %", "1.5"]
    assert "<b>4 rows</b>" in shown
    broken = cost_report(toy_policy(max_cost=0.5), Table(X), ["no"] * 4)
    assert "–" in broken._repr_html_()
