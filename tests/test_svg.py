"""Trees as SVG and HTML: complete, self-contained, readable on light and dark pages."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from itertools import pairwise
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest
import sklearn
from sklearn.exceptions import NotFittedError
from test_public_api import in_a_new_process

from sensortree import (
    Leaf,
    Node,
    PathDisplay,
    SensorSet,
    SensorTree,
    SensorTreeClassifier,
    cascade_tree,
    exhaustive_tree,
    load,
    save,
)
from sensortree.display import TreeDisplay
from sensortree.reports.drawing import CLASSES, DARK, LIGHT, ZOOM
from sensortree.reports.layout import LINE, SIZE
from sensortree.reports.tree_display import tree_in_notebook
from sensortree.reports.words import estimated_width
from sensortree.results import About

NAMES = (
    "history and physical examination",
    "complete blood count with differential",
    "resting electrocardiogram (12 leads)",
    "exercise electrocardiogram, Bruce protocol",
    "fluoroscopy of the coronary arteries",
    "exercise_thallium_scintigraphy_with_SPECT",
    "C-reactive protein, high sensitivity",
    "lipids and fasting glucose",
    "echocardiography at rest and under stress",
    "troponin, twice within three hours",
)
DISEASES = (
    "no disease",
    "stable angina pectoris",
    "acute coronary syndrome",
    "chest pain of other than cardiac origin",
)
SVG = "{http://www.w3.org/2000/svg}"


def grown(
    n_leaves: int, known: frozenset[str], rng: np.random.Generator
) -> Leaf | Node:
    """A tree that stops, buys one or two, or goes on, at random."""
    if n_leaves == 1:
        return Leaf(known)
    left = int(rng.integers(1, n_leaves))
    rest = [name for name in NAMES if name not in known]
    bought = rng.permutation(rest)[: rng.integers(1, 3)].tolist() if rest else []
    return Node(
        known,
        grown(left, known, rng),
        grown(n_leaves - left, known | set(bought), rng),
    )


def tree_display(n_leaves: int, **options) -> TreeDisplay:
    rng = np.random.default_rng(n_leaves)
    tree = SensorTree(grown(n_leaves, frozenset(NAMES[:1]), rng))
    sensors = SensorSet(
        NAMES, tuple((i,) for i in range(10)), tuple(10.37 * (i + 1) for i in range(10))
    )
    share = rng.dirichlet(np.ones(n_leaves))
    if n_leaves > 1:
        share[n_leaves // 2] = 0
    mix = rng.dirichlet(np.ones(4), n_leaves) * share[:, None]
    accuracy = np.where(share > 0, mix.max(axis=1), np.nan)
    options = {"leaf_classes": mix, "classes": DISEASES, "unit": "dollars"} | options
    return TreeDisplay(tree, sensors, share / share.sum(), accuracy, **options)


EVERY_SIZE = pytest.mark.parametrize("n_leaves", [1, 4, 16, 32])


@pytest.fixture
def fitted(two_sensors):
    X, y, sensors, costs = two_sensors
    return SensorTreeClassifier(sensors, costs=costs, cost_weight=0.01).fit(X, y), X, y


def parsed(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


def words_of(svg: str) -> str:
    """All that is written, without tips."""
    texts = parsed(svg).iter(f"{SVG}text")
    return " ".join(" ".join(text.itertext()) for text in texts)


def tips_of(svg: str) -> list[str]:
    return [title.text or "" for title in parsed(svg).iter(f"{SVG}title")]


def boxes_of(svg: str) -> list[tuple[float, float, float, float]]:
    """Left, top, right and bottom of every line of text, from its estimated width."""
    found = []
    for group in parsed(svg).iter():
        move = re.search(r"translate\(0 ([\d.]+)\)", group.get("transform", ""))
        down = float(move[1]) if move else 0.0
        for text in group.findall(f"{SVG}text"):
            y = down + float(text.get("y", 0))
            for i, line in enumerate([text.text, *(t.text for t in text)]):
                width, x = estimated_width(line or "", SIZE), float(text.get("x", 0))
                left = x - width if text.get("class") == "end" else x
                bottom = y + i * LINE + 0.2 * SIZE
                found.append((left, bottom - SIZE, left + width, bottom))
    return found


# the picture ------------------------------------------------------------------------------


@EVERY_SIZE
def test_everything_is_drawn_once(n_leaves):
    display = tree_display(n_leaves)
    drawn = list(parsed(display.to_svg()).iter())
    boxes = [e for e in drawn if e.get("class") == "box"]
    lines = [e for e in drawn if e.get("class") == "row"]
    edges = [e for e in drawn if e.tag == f"{SVG}path"]
    forks = [v.nodes for v in display.vertices if v.nodes]
    assert sorted(sum(forks, ())) == [*range(n_leaves - 1)]
    assert len(boxes) == len(forks)
    assert len(lines) == n_leaves
    assert len(edges) == len(forks) + n_leaves  # the root knows something, and has one


@EVERY_SIZE
def test_no_text_is_cut_off(n_leaves):
    svg = tree_display(n_leaves).to_svg()
    _, _, width, height = map(float, parsed(svg).get("viewBox").split())
    for left, top, right, bottom in boxes_of(svg):
        assert left >= 0
        assert top >= 0
        assert right <= width
        assert bottom <= height


def test_an_edge_is_wider_the_more_rows_take_it():
    display = tree_display(16)
    svg = parsed(display.to_svg())
    widths = [float(path.get("stroke-width")) for path in svg.iter(f"{SVG}path")]
    shares = [vertex.share for vertex in display.vertices]
    in_order = [width for _, width in sorted(zip(shares, widths, strict=True))]
    assert all(a <= b for a, b in pairwise(in_order))
    assert widths[0] > 5 * in_order[0]


def test_what_no_row_reaches_is_dashed():
    display = tree_display(4)
    groups = parsed(display.to_svg()).iter(f"{SVG}g")
    edges = [g.get("class") for g in groups if g.find(f"{SVG}path") is not None]
    unreached = [vertex.share == 0 for vertex in display.vertices]
    assert [kind == "edge unreached" for kind in edges] == unreached
    assert any(unreached)
    assert re.search(r"\.unreached path\{stroke-dasharray", display.to_svg())


def test_edges_say_what_is_bought_and_leaves_how_right_they_are():
    sensors = SensorSet(("a", "b"), ((0,), (1,)), (1.0, 2.5))
    display = TreeDisplay(
        cascade_tree(["a", "b"]),
        sensors,
        [0.25, 0.75],
        [0.5, 0.875],
        leaf_classes=[[1, 1], [1, 3]],
        leaf_answers=[[2, 0], [1, 3]],
        classes=["no", "yes"],
    )
    written = words_of(display.to_svg())
    for words in (
        "buy b, +2.50",
        "stop",
        "75.0 %",
        "3.50",
        "87.5 %",
        "yes 75 %, no 25 %",
    ):
        assert words in written


def test_a_bar_is_divided_as_the_classes_are():
    display = TreeDisplay(
        SensorTree(Leaf(["a"])),
        SensorSet(("a",), ((0,),), (1.0,)),
        [1.0],
        leaf_classes=[[1, 3]],
        classes=["no", "yes"],
    )
    bars = [e for e in parsed(display.to_svg()).iter() if e.get("fill")]
    by_colour: dict[str, list[float]] = {}
    for bar in bars:
        by_colour.setdefault(bar.get("fill"), []).append(float(bar.get("width")))
    no, yes = by_colour[CLASSES[0]], by_colour[CLASSES[1]]
    assert yes[0] == pytest.approx(3 * no[0])
    assert yes[1] == no[1]  # the squares of the legend


def test_a_long_name_is_told_in_full_where_the_mouse_rests():
    name = "a sensor of which the name is " + "very " * 20 + "long"
    sensors = SensorSet((name,), ((0,),), (1.0,))
    tree = SensorTree(Node([], Leaf([]), Leaf([name])))
    svg = TreeDisplay(tree, sensors, [0.5, 0.5]).to_svg()
    assert name not in words_of(svg)
    assert sum(name in tip for tip in tips_of(svg)) == 2  # on the edge and at the leaf


def test_without_tips_the_picture_is_the_same():
    display = tree_display(4)
    plain = display.to_svg(tips=False)
    assert tips_of(plain) == []
    assert words_of(plain) == words_of(display.to_svg())


def test_a_path_is_drawn_too(fitted):
    model, X, _ = fitted
    display = PathDisplay.from_estimator(model, X[0])
    svg = display.to_svg()
    assert display.answer in words_of(svg)
    off = sum(vertex.share == 0 for vertex in display.vertices)
    assert sum("not on the way" in tip for tip in tips_of(svg)) == 2 * off > 0


# names are text ---------------------------------------------------------------------------

MARKUP = ("<script>alert(1)</script>", "a & \"b\" 'c'", "]]></text><b>", "nul\x00\x1b")


def test_names_that_look_like_markup_are_only_text():
    columns = tuple((i,) for i in range(len(MARKUP)))
    sensors = SensorSet(MARKUP, columns, (1.0,) * len(MARKUP))
    display = TreeDisplay(
        cascade_tree(MARKUP),
        sensors,
        [0.25] * 4,
        leaf_classes=np.ones((4, 2)),
        classes=["<i>no</i>", "yes & more"],
        unit="<$>",
    )
    svg = display.to_svg()
    everything = " ".join(tips_of(svg)) + words_of(svg)  # what a reader of XML gets
    for name in (*MARKUP[:3], "nul\ufffd\ufffd", "<i>no</i>", "yes & more", "<$>"):
        assert name in everything
    assert svg.count("<script") == 1  # ours, see below
    assert "<i>" not in svg


def test_the_title_of_a_page_is_only_text():
    html = tree_display(4).to_html("</title><script>")
    assert "<script" not in html.partition("<svg")[0]
    assert "&lt;/title&gt;&lt;script&gt;" in html


# self-contained ---------------------------------------------------------------------------


def test_nothing_is_loaded_and_nothing_is_run_but_the_zoom():
    html = tree_display(16).to_html()
    assert re.findall(r"\w+://[^\"\s]+", html) == ["http://www.w3.org/2000/svg"]
    assert not re.search(r"<link|@import|url\(|href|src=|\son\w+=", html)
    scripts = re.findall(r"<script[^<]*</script>", html)
    assert html.count("<script") == len(scripts) == 1
    name = re.search(r'<svg [^>]*class="([\w-]+)"', html)[1]
    assert scripts[0] == f"<script>{ZOOM.replace('NAME', name)}</script>"
    assert not re.search(r"fetch|import|eval|innerHTML|window|cookie|http", ZOOM)


def test_without_zoom_nothing_is_run_and_the_picture_is_the_same():
    display = tree_display(16)
    zooms, still = display.to_svg(), display.to_svg(zoom=False)
    assert "<script" not in still
    assert re.sub(r"<script[^<]*</script>\n", "", zooms) == still


def test_no_matplotlib_is_needed():
    code = """
import sys
from sensortree import SensorSet, cascade_tree
from sensortree.display import TreeDisplay
sensors = SensorSet(("a", "b"), ((0,), (1,)), (1.0, 2.0))
html = TreeDisplay(cascade_tree(["a", "b"]), sensors, [0.5, 0.5]).to_html()
print("<svg" in html, sorted({"matplotlib", "sklearn"} & set(sys.modules)))
"""
    assert in_a_new_process(code) == "True []"


def test_the_same_tree_gives_the_same_text():
    assert tree_display(16).to_svg() == tree_display(16).to_svg()


def test_rules_hold_for_their_own_picture_only():
    pictures = [parsed(tree_display(n).to_svg()) for n in (4, 16)]
    names = [picture.get("class") for picture in pictures]
    assert names[0] != names[1]
    for picture, name in zip(pictures, names, strict=True):
        style = picture.find(f"{SVG}style").text
        rules = re.findall(r"([^{}]+)\{[^{}]*\}", style.replace("@media", "\n@media"))
        assert len(rules) > 20
        for rule in rules:
            selectors = re.sub(r":is\([^)]*\)", "", rule.split("{")[-1]).split(",")
            assert all(f".{name}" in selector for selector in selectors), rule
        assert not any(element.get("id") for element in picture.iter())


def test_programs_that_are_no_browsers_draw_it_as_large_as_it_says():
    # They may read rules for a page, but not those for a screen, as if they were sizes.
    style = parsed(tree_display(4).to_svg()).find(f"{SVG}style").text
    everywhere = re.sub(r"@media screen[^{}]*\{[^{}]*\{[^{}]*\}\}", "", style)
    assert "height:auto" in style
    assert not re.search(r"width|height", everywhere.replace("stroke-width", ""))


# A page that has what the script asks of one; 400 by 200 pixels show 800 by 400 units.
PAGE = """
const on = {}, seen = {x: 0, y: 0, width: 800, height: 400};
const svg = {
  viewBox: {baseVal: seen}, dataset: {}, style: {}, setPointerCapture() {},
  addEventListener: (name, act) => { on[name] = act; },
  getScreenCTM: () => ({inverse: () => seen}),
};
globalThis.document = {documentElement: null, querySelectorAll: () => [svg]};
globalThis.DOMPoint = class {
  constructor(x, y) { this.x = x; this.y = y; }
  matrixTransform(s) {
    return {x: s.x + this.x * s.width / 400, y: s.y + this.y * s.height / 200};
  }
};
const told = [];
const act = (name, x, y, more) => {
  let stopped = false;
  const preventDefault = () => { stopped = true; };
  on[name]({clientX: x, clientY: y, preventDefault, ...more});
  told.push([seen.x, seen.y, seen.width, seen.height, stopped]);
};
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="node runs the script")
def test_the_reader_zooms_at_the_mouse_and_drags_within_the_picture():
    acts = """
    act("wheel", 100, 100, {deltaY: -100});
    act("pointerdown", 100, 100, {pointerId: 1});
    act("pointermove", 50, 50, {});
    act("wheel", 100, 100, {deltaY: -5000, ctrlKey: true});
    act("dblclick", 0, 0, {});
    act("dblclick", 200, 100, {});
    act("pointerdown", 200, 100, {pointerId: 1});
    act("pointermove", 160, 100, {});
    act("pointermove", 4000, 4000, {});
    act("lostpointercapture", 0, 0, {});
    act("pointermove", 0, 0, {});
    console.log(JSON.stringify(told));
    """
    run = subprocess.run(
        ["node", "-e", f"{PAGE}{ZOOM}{acts}"], capture_output=True, check=True
    )
    told = json.loads(run.stdout)
    whole = [0, 0, 800, 400, False]
    # The wheel by itself belongs to the page, and what is seen whole is not dragged.
    assert told[:3] == [whole, whole, whole]
    # A sixteenth at most; what was under the mouse, (200, 200), is still there.
    assert told[3] == [187.5, 187.5, 50, 25, True]
    assert told[4] == whole
    third = told[5]
    assert third == [pytest.approx(v) for v in (800 / 3, 400 / 3, 800 / 3, 400 / 3, 0)]
    # 40 pixels to the left are 40 * 2 / 3 units, and far away is the corner.
    assert told[7][0] == pytest.approx(third[0] + 80 / 3)
    assert told[8][:2] == [0, 0]
    assert told[10][:2] == [0, 0]  # no longer held


# light and dark ---------------------------------------------------------------------------


def luminance(colour: str) -> float:
    """As the guidelines for web content define it."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [
        p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts
    ]
    return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_letters_stand_out_from_the_paper(colours):
    for ink in (colours.ink, colours.buy, colours.stop):
        assert contrast(ink, colours.paper) >= 4.5
    assert contrast(colours.unreached, colours.paper) >= 3
    for colour in CLASSES:
        assert contrast(colour, colours.paper) >= 2


def paper_rules(svg: str) -> dict[str, str]:
    """Colour of the paper under each condition."""
    style = parsed(svg).find(f"{SVG}style").text
    found = re.findall(r"(\S*?) ?\.[\w-]+ \.paper,.*?\{fill:(#\w+)\}", style)
    return {where: colour for where, colour in found if where}


def test_the_system_decides_unless_the_page_has_a_theme():
    svg = tree_display(4).to_svg()
    system = svg.partition("prefers-color-scheme:dark){")[2].partition("\n}")[0]
    assert f"fill:{DARK.paper}" in system
    rules = paper_rules(svg)
    (dark,) = [where for where in rules if "[data-jp-theme-light=false]" in where]
    (light,) = [where for where in rules if "[data-jp-theme-light=true]" in where]
    assert ".vscode-dark" in dark
    assert ".vscode-light" in light
    assert (rules[dark], rules[light]) == (DARK.paper, LIGHT.paper)


def test_a_phone_shows_letters_in_full_size_in_a_box_that_scrolls():
    display = tree_display(16)
    picture, page = display.to_svg(), display.to_html()
    name = re.search(r'class="(sensortree-\w+)"', picture)[1]
    assert f"(max-width:600px){{.{name}{{max-width:none}}}}" in picture
    assert '<meta name="viewport" content="width=device-width' in page
    assert f'<div style="overflow-x:auto;margin:0.5em 0">{picture}</div>' in page


# models -----------------------------------------------------------------------------------


def test_a_model_draws_its_training_rows(fitted):
    model, _, _ = fitted
    share = model.policy_.flow.leaf_rows / model.policy_.flow.leaf_rows.sum()
    written = words_of(model.to_svg(unit="dollars"))
    assert f"{100 * share[0]:.1f} %" in written
    assert "(dollars)" in written
    assert "(in training)" in written


def test_a_model_draws_the_rows_it_is_given(fitted):
    model, X, y = fitted
    assert model.to_svg(X, y) == TreeDisplay.from_estimator(model, X, y).to_svg()
    assert "right" in words_of(model.to_svg(X, y))
    assert "(in training)" not in words_of(model.to_svg(X, y))
    assert "<svg" in model.to_html(X, y)


def test_a_model_that_is_not_fitted_says_so():
    with pytest.raises(NotFittedError):
        SensorTreeClassifier().to_svg()


def test_a_loaded_model_draws_the_same(fitted, tmp_path):
    model, _, _ = fitted
    save(model, tmp_path / "model.json")
    loaded = load(tmp_path / "model.json")
    assert loaded.to_svg() == model.to_svg()
    assert model.to_svg() in loaded._repr_html_()
    assert "SavedModel(2 classes" in loaded._repr_html_()


# notebooks --------------------------------------------------------------------------------


def test_a_fitted_model_is_shown_with_its_tree_below(fitted):
    model, _, _ = fitted
    for html in (model._repr_html_(), model._repr_mimebundle_()["text/html"]):
        ours = html.index(model.to_svg())
        assert 0 < html.index("sk-top-container") < ours
        assert html.count("<svg xmlns") == 1


def test_a_model_that_is_not_fitted_is_shown_as_scikit_learn_does():
    html = SensorTreeClassifier()._repr_html_()
    assert "sk-top-container" in html
    assert "sensortree-" not in html


def test_who_wants_text_gets_text(fitted):
    model, _, _ = fitted
    with sklearn.config_context(display="text"):
        assert not hasattr(model, "_repr_html_")
        assert list(model._repr_mimebundle_()) == ["text/plain"]


def test_a_tree_that_cannot_be_drawn_is_no_error(fitted, monkeypatch):
    model, _, _ = fitted

    def fails(*_):
        raise RuntimeError

    monkeypatch.setattr(
        "sensortree.reports.tree_display.TreeDisplay.from_estimator", fails
    )
    html = model._repr_html_()
    assert "sk-top-container" in html
    assert "sensortree-" not in html


def model_of(tree: SensorTree) -> SimpleNamespace:
    """All of a fitted model that a picture needs."""
    names = tuple(sorted(tree.sensors))
    columns = tuple((i,) for i in range(len(names)))
    mix = np.ones((tree.n_leaves, 2))
    policy = SimpleNamespace(
        about=About(),
        tree=tree,
        sensors=SensorSet(names, columns, np.ones(len(names))),
        flow=SimpleNamespace(
            leaf_rows=mix.sum(axis=1), leaf_classes=mix, answers=None, numbers=None
        ),
        classes=np.array(["no", "yes"]),
    )
    return SimpleNamespace(policy_=policy, tree_=tree)


@pytest.mark.parametrize(
    ("length", "tips", "shown"),
    [(20, True, True), (1000, False, True), (20, False, False)],
)
def test_what_a_notebook_shows_stays_below_100_kilobytes(length, tips, shown):
    # An exhaustive tree of 326 leaves, whose names the mouse finds in full, behind a few
    # or very many bytes of something else.
    names = [f"{i} {'x' * length}" for i in range(5)]
    model = model_of(exhaustive_tree(names, root=[]))
    html = tree_in_notebook(model, " " * (20_000 if shown else 95_000))
    assert len(html.encode()) < 100_000
    assert ("<title>" in html) == tips
    assert ("<svg" in html) == shown
    assert ("326 leaves: too large" in html) != shown


# widths without a font --------------------------------------------------------------------


@pytest.mark.parametrize("text", [*NAMES, *DISEASES, "node 12: 100.0 % of rows"])
def test_the_estimated_width_is_near_that_of_a_font(text):
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    # DejaVu Sans is among the widest that a page may fall back to.
    font = FontProperties(family="DejaVu Sans", size=SIZE)
    widest = text_to_path.get_text_width_height_descent(text, font, False)[0]
    assert 0.8 * widest <= estimated_width(text, SIZE) <= 1.05 * widest


def test_letters_of_east_asia_are_twice_as_wide_and_accents_take_no_room():
    assert estimated_width("心電図", SIZE) > 1.7 * estimated_width("abc", SIZE)
    assert estimated_width("e\u0301", SIZE) == estimated_width("e", SIZE)
