"""Claims about pictures of trees that branch: forks, folded ways, many leaves."""

from __future__ import annotations

from functools import partial
from itertools import combinations, pairwise
from xml.etree import ElementTree

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_svg import boxes_of, parsed, tips_of, tree_display, words_of

from sensortree import Leaf, Node, SensorSet, SensorTree, cascade_tree, exhaustive_tree
from sensortree.display import PathDisplay, TreeDisplay
from sensortree.exceptions import ParameterError
from sensortree.reports.words import range_words
from sensortree.tree.forks import fork_at

PARTS = ("engine", "brakes", "gearbox", "hydraulics", "electrics")
LOOKS = ("oil sample", "vibration", "temperature", "pressure", "camera")
NAMES = ("symptom", *(f"{part} {look}" for part in PARTS for look in LOOKS))
A = frozenset(["a"])
SENSORS = SensorSet(
    NAMES, tuple((i,) for i in range(26)), (1.0, *(2.0, 3.0, 1.0, 2.5, 5.0) * 5)
)


def branching(
    n_leaves: int, known: frozenset[str], rng: np.random.Generator
) -> Leaf | Node:
    """A vertex that stops or buys one of several, as the search that branches builds it."""
    if n_leaves == 1:
        return Leaf(known)
    stops = bool(n_leaves == 2 or rng.random() < 0.7)
    most = n_leaves - stops
    n_bought = most if most < 3 else int(rng.integers(2, min(most, 6) + 1))
    bought = rng.permutation([name for name in NAMES if name not in known])[:n_bought]
    shares = rng.dirichlet(np.ones(n_bought))
    sizes = 1 + rng.multinomial(most - n_bought, shares)
    *others, onward = [
        branching(int(size), known | {str(name)}, rng)
        for size, name in zip(sizes, bought, strict=True)
    ]
    for other in reversed(others):
        onward = Node(known, onward, other)
    return Node(known, Leaf(known), onward) if stops else onward


def branching_display(n_leaves: int, **options) -> TreeDisplay:
    rng = np.random.default_rng(n_leaves)
    tree = SensorTree(branching(n_leaves, frozenset(NAMES[:1]), rng))
    share = rng.dirichlet(np.full(n_leaves, 0.5))
    share[n_leaves // 2] = 0
    share /= share.sum()
    mix = rng.dirichlet(np.ones(3), n_leaves) * share[:, None]
    accuracy = np.where(share > 0, rng.random(n_leaves), np.nan)
    options = {"leaf_classes": mix, "classes": ["sound", "worn", "broken"]} | options
    return TreeDisplay(tree, SENSORS, share, accuracy, **options)


def ends(display: TreeDisplay) -> list:
    return [vertex for vertex in display.vertices if vertex.is_leaf]


EVERY_PICTURE = pytest.mark.parametrize(
    "make",
    [
        *(partial(tree_display, n_leaves) for n_leaves in (1, 4, 16, 32)),
        partial(branching_display, 16),
        partial(branching_display, 64),
        partial(branching_display, 64, max_leaves=None),
        partial(branching_display, 96),
        pytest.param(
            partial(branching_display, 96, max_leaves=None), marks=pytest.mark.slow
        ),
    ],
)


# forks ------------------------------------------------------------------------------------


def test_nodes_that_know_the_same_are_one_fork():
    # nothing known: stop, buy a, or buy b; whoever has bought a stops or buys b
    tree = SensorTree(
        Node([], Leaf([]), Node([], Node(A, Leaf(A), Leaf(["a", "b"])), Leaf(["b"])))
    )
    fork = fork_at(tree, 0)
    assert fork.nodes == (0, 1)
    assert [way.end for way in fork.ways] == [~0, 2, ~3]
    signs = [dict(way.signs) for way in fork.ways]
    assert signs == [{0: -1}, {0: 1, 1: -1}, {0: 1, 1: 1}]
    assert fork_at(tree, 2).nodes == (2,)


@given(st.integers(2, 40), st.integers(0, 9))
def test_of_all_ways_out_of_a_fork_any_scores_take_exactly_one(n_leaves, seed):
    rng = np.random.default_rng(seed)
    tree = SensorTree(branching(n_leaves, frozenset(NAMES[:1]), rng))
    scores = rng.normal(size=tree.n_nodes)
    fork = fork_at(tree, 0)
    taken = [
        way for way in fork.ways if all(s * scores[node] > 0 for node, s in way.signs)
    ]
    assert len(taken) == 1
    assert len(fork.ways) == len(fork.nodes) + 1
    leaf = int(tree.route(scores[None])[0])
    end = taken[0].end
    assert end == ~leaf if end < 0 else tree.path_signs[leaf, end] != 0


def test_a_fork_is_one_box_whose_ways_say_what_is_bought_its_price_and_its_share():
    tree = exhaustive_tree(["a", "b", "c"], root=["a"])
    sensors = SensorSet(("a", "b", "c"), ((0,), (1,), (2,)), (1.0, 2.0, 5.0))
    svg = TreeDisplay(tree, sensors, [0.5, 0.2, 0.1, 0.15, 0.05]).to_svg()
    written = words_of(svg).replace("\u00a0", " ")
    for words in (
        "a nodes 0–1: 100.0 % of rows",
        "stop: 50.0 %",
        "buy b, +2: 30.0 %",
        "buy c, +5: 20.0 %",
    ):
        assert words in written
    assert "otherwise" not in written


def test_ways_that_hang_below_a_box_lie_side_by_side():
    layout = branching_display(16)._layout(lambda text: 4.0 * len(text))
    forks = [v for v in layout.vertices if v.n_ways > 2]
    assert forks
    for fork in forks:
        ways = [v for v in layout.vertices if v.parent is fork and v.way]
        for upper, lower in pairwise(ways):
            apart = layout.start(upper) - layout.start(lower)
            assert apart == pytest.approx((upper.thickness + lower.thickness) / 2)


# folding ----------------------------------------------------------------------------------


def test_what_few_rows_reach_is_one_line_of_its_fork():
    # Of the ways at the root "b" and "stop" are rare, together three leaves.
    tree = exhaustive_tree(["a", "b", "c"], root=["a"])
    sensors = SensorSet(("a", "b", "c"), ((0,), (1,), (2,)), (1.0, 2.0, 5.0))
    display = TreeDisplay(
        tree,
        sensors,
        [0.002, 0.003, 0.001, 0.6, 0.394],
        [1.0, 0.5, 0.0, 0.9, 0.8],
        leaf_classes=[[2, 0], [0, 3], [0, 1], [300, 300], [0, 394]],
        leaf_answers=[[2, 0], [0, 3], [0, 1], [300, 300], [0, 394]],
        classes=["no", "yes"],
        max_leaves=4,
    )
    assert [v.leaves for v in ends(display)] == [(3,), (4,), (0, 1, 2)]
    rest = ends(display)[-1]
    assert (rest.gathered, rest.known, rest.bought) == (2, ("a",), ())
    assert rest.share == pytest.approx(0.006)
    cells = [text.get_text() for text in display.plot().leaves_[-1]]
    # accuracy is (2 * 1 + 3 * .5 + 1 * 0) / 6, and four of six are told "yes"
    known, answers = ["3 leaves", "a, …", "0.6 %", "1 to 8"], "yes 67 %, no 33 %"
    expected = [*known, answers, "58.3 %"]
    assert cells == expected
    written = words_of(display.to_svg())
    assert "2 rarer ways" in written
    edge, line = [tip for tip in tips_of(display.to_svg()) if "leaves 0–2" in tip]
    assert edge == "leaves 0–2: 0.6 % of rows"
    assert line.split("\n")[1:] == [
        "2 ways that few rows take",
        "known: a",
        "leaf 1: 0.3 % of rows, + b",
        "leaf 0: 0.2 % of rows, + nothing",
        "leaf 2: 0.1 % of rows, + b, c",
        "answers: yes 67 %, no 33 %",
        "right: 58.3 %",
        "truly yes: 66.7 %",
        "truly no: 33.3 %",
    ]


def test_a_fork_that_is_folded_whole_keeps_what_led_to_it():
    tree = exhaustive_tree(["a", "b", "c"], root=["a"])
    sensors = SensorSet(("a", "b", "c"), ((0,), (1,), (2,)), (1.0, 2.0, 5.0))
    share = [0.484, 0.007, 0.009, 0.25, 0.25]  # whoever buys b is rare in both leaves
    display = TreeDisplay(tree, sensors, share, max_leaves=4)
    assert [v.leaves for v in ends(display)] == [(0,), (1, 2), (3,), (4,)]
    folded = ends(display)[1]
    assert (folded.bought, folded.known) == (("b",), ("a", "b"))
    assert folded.price == 2.0


@pytest.mark.parametrize("n_leaves", [33, 64, 96])
@pytest.mark.parametrize("max_leaves", [1, 5, 12, 32])
def test_no_more_lines_are_drawn_than_asked_and_every_leaf_is_in_one(
    n_leaves, max_leaves
):
    display = branching_display(n_leaves, max_leaves=max_leaves)
    lines = ends(display)
    assert len(lines) <= max_leaves
    assert sorted(leaf for end in lines for leaf in end.leaves) == [*range(n_leaves)]
    assert sum(end.share for end in lines) == pytest.approx(1)


@pytest.mark.parametrize("n_leaves", [64, 96])
def test_what_is_folded_is_rarer_than_what_is_shown(n_leaves):
    display = branching_display(n_leaves)
    vertices = display.vertices
    gathered = [v for v in vertices if v.gathered > 1]
    assert gathered
    for rest in gathered:
        others = [v for v in vertices if v.parent is rest.parent]
        fork = fork_at(display.tree, rest.parent.nodes[0])
        folded = [
            display.leaf_share[list(leaves)].sum()
            for leaves in map(_behind(display.tree), fork.ways)
            if set(leaves) <= set(rest.leaves)
        ]
        assert len(folded) == rest.gathered
        assert max(folded) < min(v.share for v in others if v is not rest)


def _behind(tree: SensorTree):
    def leaves(way) -> list[int]:
        if way.end < 0:
            return [~way.end]
        return np.flatnonzero(tree.path_signs[:, way.end]).tolist()

    return leaves


def test_nothing_is_folded_in_a_small_tree():
    for display in (branching_display(32), branching_display(96, max_leaves=None)):
        assert [v.leaves for v in ends(display)] == [
            (leaf,) for leaf in range(display.tree.n_leaves)
        ]


def test_a_leaf_is_not_folded_by_itself():
    share = np.array([0.001, 0.499, 0.5])
    sensors = SensorSet(("a", "b", "c"), ((0,), (1,), (2,)), (1.0, 2.0, 5.0))
    display = TreeDisplay(cascade_tree(sensors.names), sensors, share, max_leaves=2)
    # Folding leaf 0 alone would save no line, so more must go.
    assert [v.leaves for v in ends(display)] == [(0,), (1, 2)]


def test_a_picture_of_no_leaves_is_refused():
    with pytest.raises(ParameterError, match="max_leaves must be at least 1, got 0"):
        branching_display(16, max_leaves=0)


def test_numbers_that_follow_each_other_are_a_range():
    assert range_words((3,)) == "3"
    assert range_words((3, 4, 5, 9)) == "3–5, 9"
    assert range_words((0, 2, 4, 6, 8)) == "0, 2, … 8"


def test_the_text_says_what_the_picture_says():
    display = branching_display(64)
    lines = display.to_text().split("\n")
    assert len(lines) == len(display.vertices)
    for line, vertex in zip(lines, display.vertices, strict=True):
        assert line.index(":") > 3 * vertex.column
        if vertex.gathered > 1:
            assert f"{vertex.gathered} rarer ways: {len(vertex.leaves)} leaves" in line
        for name in vertex.bought:
            assert name in line


def test_of_a_large_tree_each_way_off_the_rows_way_is_one_line():
    tree = branching_display(64).tree
    place = int(np.abs(tree.path_signs).sum(axis=1).argmax())  # the longest way
    display = PathDisplay(tree, SENSORS, place, "worn", {})
    vertices = display.vertices
    on_way = [v for v in vertices if v.share]
    assert on_way[-1].leaves == (place,)
    passed = {node for v in on_way for node in v.nodes}
    assert set(np.flatnonzero(tree.path_signs[place]).tolist()) <= passed
    off = [v for v in vertices if not v.share]
    for vertex in off:
        assert vertex.is_leaf
        assert vertex.parent in on_way
        assert vertex.gathered == 1  # every way keeps what it buys
    fork = fork_at(tree, 0)
    assert sum(v.parent is vertices[0] for v in vertices) == len(fork.ways)
    whole = PathDisplay(tree, SENSORS, place, "worn", {}, max_leaves=None)
    assert len(whole.vertices) > len(vertices)


@pytest.mark.parametrize("place", [~0, ~5])
def test_a_row_that_stops_at_a_node_is_answered_in_the_box_of_its_fork(place):
    tree = branching_display(64).tree
    svg = PathDisplay(tree, SENSORS, place, "worn (0.80)", {}).to_svg()
    written = words_of(svg)
    assert written.count("worn (0.80)") == 1


# large pictures ---------------------------------------------------------------------------


def overlap(one, other, by: float = 0.5) -> bool:
    """Whether two boxes, as left, top, right and bottom, share more than a hair."""
    return (
        min(one[2], other[2]) - max(one[0], other[0]) > by
        and min(one[3], other[3]) - max(one[1], other[1]) > by
    )


def frames_of(svg: str) -> list[tuple[float, float, float, float]]:
    """Left, top, right and bottom of every node's box."""
    found = []
    for box in (e for e in parsed(svg).iter() if e.get("class") == "box"):
        x, y, width, height = (float(box.get(k)) for k in ("x", "y", "width", "height"))
        found.append((x, y, x + width, y + height))
    return found


@EVERY_PICTURE
def test_no_two_boxes_or_texts_overlap(make):
    svg = make().to_svg()
    frames, texts = frames_of(svg), boxes_of(svg)
    assert len(texts) > 5 * len(frames)
    for boxes in (frames, texts):
        assert not any(overlap(*pair) for pair in combinations(boxes, 2))


@EVERY_PICTURE
def test_a_text_is_within_its_box_or_outside_all(make):
    svg = make().to_svg()
    inside = 0
    for text in boxes_of(svg):
        for frame in frames_of(svg):
            if overlap(text, frame):
                inside += 1
                assert frame[0] <= text[0]
                assert frame[1] <= text[1]
                assert text[2] <= frame[2]
                assert text[3] <= frame[3]
    assert inside >= 2 * len(frames_of(svg))  # what is known, and how many rows


@EVERY_PICTURE
def test_no_edge_runs_through_a_word_or_a_box(make):
    display = make()
    svg, vertices = display.to_svg(), display.vertices
    nodes = [v for v in vertices if not v.is_leaf]
    frames = dict(zip(nodes, frames_of(svg), strict=True))
    words = [
        text
        for text in boxes_of(svg)
        if not any(overlap(text, frame) for frame in frames.values())
    ]
    edges = parsed(svg).iter("{http://www.w3.org/2000/svg}path")
    for edge, vertex in zip(edges, vertices, strict=True):
        points = [tuple(map(float, p.split())) for p in edge.get("d")[1:].split("L")]
        half = float(edge.get("stroke-width")) / 2
        for (x0, y0), (x1, y1) in pairwise(points):
            across, along = (0.0, half) if y0 == y1 else (half, 0.0)
            line = (
                min(x0, x1) - across,
                min(y0, y1) - along,
                max(x0, x1) + across,
                max(y0, y1) + along,
            )
            assert not any(overlap(line, word) for word in words)
            through = [node for node, frame in frames.items() if overlap(line, frame)]
            assert through in ([], [vertex.parent])  # under which it begins


@pytest.mark.parametrize("n_leaves", [64, 96])
def test_matplotlib_draws_the_same_without_overlaps(n_leaves):
    mpl.use("Agg")
    display = branching_display(n_leaves).plot()
    display.figure_.draw_without_rendering()
    texts = [text for text in display.ax_.texts if text.get_text()]
    boxes = [text.get_window_extent().padded(-0.5) for text in texts]
    frames = [node.get_bbox_patch().get_window_extent() for node in display.nodes_]
    for some in (boxes, frames):
        assert not any(one.overlaps(other) for one, other in combinations(some, 2))
    for node, frame in zip(display.nodes_, frames, strict=True):
        words = node.get_window_extent()
        assert frame.x0 <= words.x0
        assert words.x1 <= frame.x1
        assert frame.y0 <= words.y0
        assert words.y1 <= frame.y1
    assert len(display.leaves_) == len(ends(display))
    plt.close("all")


@EVERY_PICTURE
def test_a_page_is_below_100_kilobytes(make):
    display = make()
    html = display.to_html()
    assert len(html.encode()) < 100_000 or display.max_leaves is None
    ElementTree.fromstring(html[html.index("<svg") : html.index("</svg>") + 6])
