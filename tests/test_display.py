"""Displays: what they compute, and that all of it is drawn."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest

from sensortree import (
    Leaf,
    Node,
    SensorSet,
    SensorTree,
    SensorTreeClassifier,
    cascade_tree,
    exhaustive_tree,
)
from sensortree.display import SensorUseDisplay, TradeoffDisplay, TreeDisplay
from sensortree.exceptions import DataError, MissingDependencyError
from sensortree.reports.layout import LINE
from sensortree.reports.words import percent, shortened, wrapped
from sensortree.results import About, Terms, TradeoffCurve

NAMES = (
    "history_and_examination",
    "blood",
    "resting_electrocardiogram",
    "exercise_electrocardiogram",
    "fluoroscopy",
    "exercise_thallium_scintigraphy",
)
PRICES = (4.0, 10.37, 15.5, 89.3, 100.9, 103.9)


@pytest.fixture(autouse=True)
def _no_windows():
    """Draw without a screen, and close what was drawn."""
    mpl.use("Agg")
    yield
    plt.close("all")


@pytest.fixture
def fitted(two_sensors):
    X, y, sensors, costs = two_sensors
    model = SensorTreeClassifier(sensors, costs=costs, cost_weight=0.01).fit(X, y)
    return model, X, y


def sensor_set(n_sensors: int) -> SensorSet:
    columns = tuple((column,) for column in range(n_sensors))
    return SensorSet(NAMES[:n_sensors], columns, PRICES[:n_sensors])


def shares(n_leaves: int, seed: int = 0, unreached: tuple[int, ...] = ()) -> np.ndarray:
    share = np.random.default_rng(seed).dirichlet(np.ones(n_leaves))
    share[list(unreached)] = 0
    return share / share.sum()


def cascade(**options) -> TreeDisplay:
    sensors = sensor_set(6)
    share = shares(6, unreached=(1,))
    return TreeDisplay(cascade_tree(sensors.names), sensors, share, **options)


def exhaustive(**options) -> TreeDisplay:
    sensors = sensor_set(4)
    tree = exhaustive_tree(sensors.names, root=sensors.names[:1])
    share = shares(tree.n_leaves, unreached=(2, 3, 4, 5))
    return TreeDisplay(tree, sensors, share, share, **options)


def figure() -> TreeDisplay:
    """Every kind of edge: both sides buy, go on, or stop; one buys two at once."""
    a, b, c = NAMES[:3]
    tree = SensorTree(
        Node(
            [],
            Node([a], Leaf([a, b]), Leaf([a, b, c])),
            Node([], Node([], Leaf([]), Leaf([b])), Leaf([a, c])),
        )
    )
    return TreeDisplay(tree, sensor_set(3), shares(5))


def only_leaf() -> TreeDisplay:
    return TreeDisplay(SensorTree(Leaf(NAMES[:2])), sensor_set(2), [1.0])


def with_classes() -> TreeDisplay:
    mix = np.random.default_rng(0).dirichlet(np.ones(9), 16)
    classes = [f"class of examples number {i}" for i in range(9)]
    return exhaustive(leaf_classes=mix, classes=classes, unit="dollars")


EVERY_TREE = pytest.mark.parametrize(
    "make", [cascade, exhaustive, figure, only_leaf, with_classes]
)


class TestTreeData:
    def test_shares_of_the_leaves_sum_to_one(self, fitted):
        display = TreeDisplay.from_estimator(*fitted[:2])
        assert display.leaf_share.sum() == pytest.approx(1)

    def test_shares_are_those_of_the_rows_that_apply_sends_there(self, fitted):
        model, X, _ = fitted
        display = TreeDisplay.from_estimator(model, X)
        expected = [np.mean(model.apply(X) == leaf) for leaf in range(2)]
        np.testing.assert_allclose(display.leaf_share, expected)
        assert min(expected) > 0  # both leaves are reached, or the test is idle

    @EVERY_TREE
    def test_all_rows_reach_the_root(self, make):
        assert make().vertices[0].share == pytest.approx(1)

    @EVERY_TREE
    def test_a_node_has_the_share_of_its_children(self, make):
        vertices = make().vertices
        for node in (v for v in vertices if not v.is_leaf):
            below = [v.share for v in vertices if v.parent is node]
            assert len(below) == node.n_ways == len(node.nodes) + 1
            assert node.share == pytest.approx(sum(below))

    @EVERY_TREE
    def test_vertices_are_numbered_as_in_the_tree(self, make):
        display = make()
        for vertex in display.vertices:
            side = display.tree.leaves if vertex.is_leaf else display.tree.nodes
            assert set(vertex.known) == side[vertex.number].sensors

    @EVERY_TREE
    def test_prices_on_a_path_sum_to_the_cost_of_its_leaf(self, make):
        display = make()
        for leaf in (v for v in display.vertices if v.is_leaf):
            paid, at = 0.0, leaf
            while at is not None:
                paid, at = paid + at.price, at.parent
            assert paid == pytest.approx(display.leaf_cost[leaf.number])

    def test_an_edge_costs_the_price_of_its_sensor(self):
        bought = {v.bought: v.price for v in cascade().vertices if v.bought}
        assert bought == {
            (name,): pytest.approx(price)
            for name, price in zip(NAMES, PRICES, strict=True)
        }

    def test_accuracy_is_that_of_the_rows_at_the_leaf(self, fitted):
        model, X, y = fitted
        display = TreeDisplay.from_estimator(model, X, y)
        right, leaf = model.predict(X) == y, model.apply(X)
        expected = [right[leaf == k].mean() for k in range(2)]
        np.testing.assert_allclose(display.leaf_accuracy, expected)

    def test_accuracy_of_a_leaf_without_rows_is_nan(self, fitted):
        model, X, y = fitted
        stops = model.apply(X) == 0
        display = TreeDisplay.from_estimator(model, X[stops], y[stops])
        assert display.leaf_share.tolist() == [1, 0]
        assert np.isnan(display.leaf_accuracy).tolist() == [False, True]

    def test_classes_are_those_of_the_rows_at_the_leaf(self, fitted):
        model, X, y = fitted
        display = TreeDisplay.from_estimator(model, X, y)
        leaf = model.apply(X)
        expected = [[np.sum(y[leaf == k] == c) for c in ("no", "yes")] for k in (0, 1)]
        assert display.leaf_classes.tolist() == expected

    def test_without_a_table_the_training_rows_are_shown(self):
        from toys import toy_policy

        # Of ten rows six stop with a; five of those are "no".
        model = SimpleNamespace(policy_=toy_policy())
        display = TreeDisplay.from_estimator(model)
        assert display.leaf_share.tolist() == [0.6, 0.4]
        assert display.leaf_classes.tolist() == [[5, 1], [1, 3]]
        # All six are answered "no", so five of six are right, and three of four below.
        assert display.leaf_answers.tolist() == [[6, 0], [0, 4]]
        assert display.leaf_accuracy.tolist() == [5 / 6, 3 / 4]
        cells = [text.get_text() for text in display.plot().leaves_[0]]
        assert cells[-2:] == ["no", "83.3 %"]
        assert display.to_text().splitlines()[1] == (
            "├─ stop: leaf 0, 60.0 % of rows; answers: no, right (in training): 83.3 %"
        )

    def test_a_file_of_the_first_version_says_nothing_of_answers(self):
        from toys import forked_policy

        display = TreeDisplay.from_estimator(SimpleNamespace(policy_=forked_policy()))
        assert display.leaf_answers is None
        assert display.leaf_accuracy is None

    def test_answers_are_those_of_the_rows_at_the_leaf(self, fitted):
        model, X, y = fitted
        leaf, answer = model.apply(X), model.predict(X)
        for display in (
            TreeDisplay.from_estimator(model, X, y),
            TreeDisplay.from_estimator(model, X),
        ):
            expected = [
                [np.sum((leaf == k) & (answer == c)) for c in model.classes_]
                for k in range(model.tree_.n_leaves)
            ]
            np.testing.assert_array_equal(display.leaf_answers, expected)

    def test_right_answers_without_rows_are_refused(self, fitted):
        with pytest.raises(DataError, match="y was given without X"):
            TreeDisplay.from_estimator(fitted[0], y=fitted[2])

    def test_answers_for_another_number_of_rows_are_refused(self, fitted):
        model, X, y = fitted
        with pytest.raises(
            DataError, match=r"y has shape \(399,\), but X has 400 rows"
        ):
            TreeDisplay.from_estimator(model, X, y[1:])

    def test_classes_of_another_number_are_refused(self):
        with pytest.raises(DataError, match=r"shape \(6, 3\).*6 leaves and 2 classes"):
            cascade(leaf_classes=np.ones((6, 3)), classes=["no", "yes"])

    @EVERY_TREE
    def test_no_two_nodes_share_a_cell(self, make):
        cells = [(v.row, v.column) for v in make().vertices if not v.is_leaf]
        assert len(set(cells)) == len(cells)


class TestTreePicture:
    @EVERY_TREE
    def test_everything_is_drawn_once(self, make):
        display = make().plot()
        tree, boxes = display.tree, [v for v in display.vertices if v.nodes]
        at_root = bool(tree.root.sensors)
        assert sorted(n for v in boxes for n in v.nodes) == [*range(tree.n_nodes)]
        assert len(display.nodes_) == len(boxes)
        assert len(display.leaves_) == tree.n_leaves
        assert len(display.edges_) == len(boxes) + tree.n_leaves - 1 + at_root
        assert display.ax_.figure is display.figure_

    @EVERY_TREE
    def test_no_text_covers_another(self, make):
        display = make().plot()
        boxes = [text.get_window_extent().padded(-0.5) for text in texts(display)]
        for i, box in enumerate(boxes):
            assert not any(box.overlaps(other) for other in boxes[:i])

    @EVERY_TREE
    def test_no_text_is_cut_off(self, make):
        display = make().plot()
        whole = display.figure_.bbox
        for text in texts(display):
            box = text.get_window_extent()
            assert whole.x0 <= box.x0
            assert box.x1 <= whole.x1
            assert whole.y0 <= box.y0
            assert box.y1 <= whole.y1

    @EVERY_TREE
    def test_no_edge_runs_through_a_word(self, make):
        display = make().plot()
        words = [text for text in texts(display) if text not in display.nodes_]
        for line in display.edges_:
            path = line.get_path().transformed(line.get_transform())
            for text in words:
                assert not path.intersects_bbox(text.get_window_extent(), filled=False)

    def test_an_edge_says_what_is_bought_and_its_price(self):
        written = [text.get_text() for text in cascade().plot().edge_labels_]
        assert "buy blood, +10.37" in written
        assert written.count("stop") == 5

    def test_whole_prices_are_written_without_decimals(self, fitted):
        display = TreeDisplay.from_estimator(*fitted[:2]).plot()
        assert [text.get_text() for text in display.edge_labels_] == [
            "buy cheap, +1",
            "stop",
            "buy dear, +9",
        ]

    def test_an_edge_is_wider_the_more_rows_take_it(self):
        display = cascade().plot()
        share = [v.share for v in display.vertices]
        width = [line.get_linewidth() for line in display.edges_]
        assert np.array_equal(np.argsort(share), np.argsort(width))

    def test_what_no_row_reaches_is_grey(self):
        display = cascade().plot()
        reached, unreached = (display.leaves_[k][0].get_color() for k in (0, 1))
        assert lightness(reached) < 0.1
        assert lightness(unreached) > 0.5

    def test_a_bar_has_a_part_for_each_class(self):
        mix = np.array([[3, 1], [0, 0], [0, 2], [1, 1], [1, 0], [4, 4]])
        display = cascade(leaf_classes=mix, classes=["no", "yes"]).plot()
        lengths = [[p.get_width() for p in bar] for bar in display.bars_]
        assert lengths[1] == []  # no row, no bar
        whole = sum(lengths[0])
        np.testing.assert_allclose(lengths[0], [0.75 * whole, 0.25 * whole])
        np.testing.assert_allclose(lengths[2], [0, whole])
        assert [text.get_text() for text in display.legend_] == ["no", "yes"]
        colours = [part.get_facecolor() for part in display.bars_[0]]
        assert colours[0] != colours[1]

    def test_answers_are_written_the_most_frequent_first(self):
        given = [[3, 1, 0], [0, 0, 5], [1, 2, 1], [0, 0, 0], [0, 9, 1], [1, 0, 0]]
        names = ["no", "yes", "perhaps"]
        display = cascade(leaf_answers=given, classes=names).plot()
        assert [cells[-1].get_text() for cells in display.leaves_] == [
            "no 75 %, yes 25 %",
            "perhaps",
            "yes 50 %, no 25 %, …",
            "–",
            "yes 90 %, perhaps 10 %",
            "no",
        ]

    def test_a_class_that_is_a_number_is_called_a_class(self):
        display = cascade(leaf_classes=np.ones((6, 2)), classes=[0, 1]).plot()
        assert [text.get_text() for text in display.legend_] == ["class 0", "class 1"]

    def test_classes_without_a_colour_of_their_own_are_others(self):
        mix = np.tile([1.0, 2, 1, 2, 2, 2, 1, 2, 2], (6, 1))  # six of nine are frequent
        display = cascade(leaf_classes=mix, classes=list("abcdefghi")).plot()
        names = [text.get_text() for text in display.legend_]
        assert names == [*"bdefhi", "3 other classes"]
        lengths = np.array([part.get_width() for part in display.bars_[0]])
        np.testing.assert_allclose(lengths / lengths.sum(), [2 / 15] * 6 + [3 / 15])

    def test_a_long_label_makes_only_its_own_row_higher(self):
        def height(name: str) -> float:
            sensors = SensorSet(("a", name, "c"), ((0,), (1,), (2,)), (1.0, 2.0, 3.0))
            tree = cascade_tree(sensors.names)
            display = TreeDisplay(tree, sensors, [0.2, 0.3, 0.5]).plot()
            return display.figure_.get_size_inches()[1] * 72

        # "buy b, +2" is one line above its edge; this is three
        long = "a name that is so long that it needs three lines"
        assert height(long) - height("b") <= 4 * LINE

    def test_on_a_dark_figure_letters_are_light(self):
        with plt.style.context("dark_background"):
            display = cascade().plot()
        paper = lightness(display.figure_.get_facecolor())
        inks = [text.get_color() for text in display.leaves_[0] + display.nodes_]
        assert paper < 0.1
        assert min(map(lightness, inks)) > 0.4
        for node in display.nodes_:
            assert lightness(node.get_bbox_patch().get_facecolor()) == paper

    def test_a_price_that_varies_is_a_mean(self):
        sensors = sensor_set(2).with_varying([False, True])
        tree = cascade_tree(sensors.names)
        display = TreeDisplay(tree, sensors, [0.5, 0.5]).plot()
        written = [text.get_text().replace("\n", " ") for text in display.edge_labels_]
        assert "buy blood, +10.37 on average" in written

    def test_a_share_of_a_few_rows_is_not_written_as_none(self):
        tree = cascade_tree(NAMES[:2])
        display = TreeDisplay(tree, sensor_set(2), [0.9999, 0.0001]).plot()
        written = [[text.get_text() for text in leaf] for leaf in display.leaves_]
        assert "> 99.9 %" in written[0]
        assert "< 0.1 %" in written[1]

    def test_accuracy_is_a_column_when_it_is_known(self):
        assert [len(leaf) for leaf in cascade().plot().leaves_] == [4] * 6
        assert [len(leaf) for leaf in exhaustive().plot().leaves_] == [5] * 16

    def test_the_letters_shrink_to_fit_the_axes_of_the_user(self):
        _, ax = plt.subplots(figsize=(5, 4))
        display = exhaustive().plot(ax)
        assert display.ax_ is ax
        box = ax.get_window_extent()
        for text in texts(display):
            written = text.get_window_extent()
            assert box.x0 <= written.x0
            assert written.x1 <= box.x1 + 5  # small letters are hinted to whole pixels

    def test_a_dollar_sign_is_only_a_dollar_sign(self):
        sensors = SensorSet(("$a$", "$b$"), ((0,), (1,)), (1.0, 2.0))
        display = TreeDisplay(
            cascade_tree(sensors.names), sensors, [0.5, 0.5], unit="$"
        )
        display.plot().figure_.draw_without_rendering()
        assert display.edge_labels_[0].get_text() == "buy $a$, +1"

    def test_plot_without_matplotlib_names_the_extra(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        with pytest.raises(MissingDependencyError, match=r"sensortree\[plot\]"):
            only_leaf().plot()


def lightness(colour) -> float:
    """Of a colour, from black (0) to white (1)."""
    return float(np.dot(mpl.colors.to_rgb(colour), (0.299, 0.587, 0.114)))


class TestWords:
    def test_a_long_word_is_broken_behind_its_marks(self):
        lines = wrapped(["exercise_thallium_scintigraphy_with_SPECT"]).split("\n")
        assert lines == ["exercise_thallium_", "scintigraphy_with_SPECT"]

    def test_no_line_is_longer_than_asked(self):
        names = ["x" * 50, "resting electrocardiogram (12 leads)", "a/b/c" * 8, "y"]
        lines = wrapped(names, 20).split("\n")
        assert max(map(len, lines)) <= 20
        joined = "".join(lines).replace(" ", "")
        assert joined == ", ".join(names).replace(" ", "")

    def test_a_very_long_name_keeps_its_beginning_and_its_end(self):
        name = shortened("measurement of the " + "very " * 30 + "last thing", 30)
        assert len(name) <= 30
        assert name.startswith("measurement of the")
        assert name.endswith("last thing")

    def test_a_sum_of_shares_that_rounding_keeps_below_one_is_all(self):
        assert percent(1 - 1e-15) == "100.0 %"
        assert percent(1e-15) == "0.0 %"


def texts(display: TreeDisplay) -> list:
    """Everything that is written in a picture of a tree."""
    display.figure_.draw_without_rendering()
    return [text for text in display.ax_.texts if text.get_text()]


class TestTradeoff:
    def test_a_single_number_is_a_curve_of_one_point(self):
        cost, accuracy, error = TradeoffDisplay({"all": (324, 0.84)}).curves["all"]
        assert (cost.tolist(), accuracy.tolist(), error) == ([324], [0.84], None)

    def test_every_curve_is_drawn_at_its_points(self):
        display = TradeoffDisplay(
            {"tree": ([1, 2], [0.7, 0.8]), "all": (9, 0.9)}
        ).plot()
        drawn = {
            k: c.lines[0].get_xydata().tolist() for k, c in display.curves_.items()
        }
        assert drawn == {"tree": [[1, 0.7], [2, 0.8]], "all": [[9, 0.9]]}

    def test_bars_are_one_standard_error_to_each_side(self):
        display = TradeoffDisplay({"tree": ([1.0], [0.7], [0.1])}).plot()
        (bar,) = display.curves_["tree"].lines[2][0].get_segments()
        np.testing.assert_allclose(bar, [[1, 0.6], [1, 0.8]])

    def test_the_unit_stands_at_the_axis(self):
        display = TradeoffDisplay({"all": (9, 0.9)}, unit="dollars").plot()
        assert "(dollars)" in display.ax_.get_xlabel()

    def test_a_curve_has_the_same_colour_and_marker_in_no_other(self):
        curves = {str(i): (i, 0.5) for i in range(6)}
        lines = [c.lines[0] for c in TradeoffDisplay(curves).plot().curves_.values()]
        assert len({line.get_color() for line in lines}) == 6
        assert len({line.get_marker() for line in lines}) == 6

    def test_words_beside_close_points_do_not_cover_each_other(self):
        cost = [1.0, 1.5, 2.0, 60.0]
        display = TradeoffDisplay(
            {"tree": (cost, [0.7, 0.701, 0.702, 0.8])},
            annotations={"tree": ["5,000", "6,000", "7,000", "8,000"]},
        ).plot()
        boxes = [text.get_window_extent() for text in display.annotations_]
        assert len(boxes) == 4
        for i, box in enumerate(boxes):
            assert not any(box.overlaps(other) for other in boxes[:i])

    def test_it_draws_where_it_is_told(self):
        _, ax = plt.subplots()
        display = TradeoffDisplay({"all": (9, 0.9)}).plot(ax)
        assert display.ax_ is ax
        assert display.figure_ is ax.figure

    def test_arrays_of_different_lengths_are_refused(self):
        with pytest.raises(DataError, match="one number per point"):
            TradeoffDisplay({"tree": ([1, 2], [0.7])})

    def test_a_curve_without_accuracy_is_refused(self):
        with pytest.raises(DataError, match="'tree' has 1 parts"):
            TradeoffDisplay({"tree": ([1, 2],)})

    def test_words_for_another_number_of_points_are_refused(self):
        with pytest.raises(DataError, match="one word for each point"):
            TradeoffDisplay({"all": (9, 0.9)}, annotations={"all": ["a", "b"]})

    def test_words_for_an_unknown_curve_are_refused(self):
        with pytest.raises(DataError, match="'al', which is not a curve"):
            TradeoffDisplay({"all": (9, 0.9)}, annotations={"al": ["a"]})

    def test_an_estimator_shows_the_curves_it_was_picked_from(self):
        def picked(budget: float):
            curve = TradeoffCurve.from_points([(1, 0.4), (2, 0.3)], [0.9, 0.3])
            return SimpleNamespace(curve_=curve, chosen_=curve.choose(budget=budget))

        models = {"poor": picked(1), "rich": picked(2)}
        display = TradeoffDisplay.from_estimator(models)
        assert display.chosen == {"poor": 0, "rich": 1}
        assert display.curves["rich"][1].tolist() == [0.6, 0.7]
        assert TradeoffDisplay.from_estimator(picked(2)).chosen == {"sensor tree": 1}

    def test_the_legend_names_curves_then_the_choice_then_lines(self):
        display = TradeoffDisplay(
            {"tree": ([1, 2], [0.7, 0.8]), "all": (9, 0.9)},
            chosen={"tree": 1},
            ends={"buy nothing": (0, 0.5)},
        ).plot()
        written = [text.get_text() for text in display.ax_.get_legend().get_texts()]
        assert written[:2] == ["tree", "all"]
        assert written[2].startswith("chosen")
        assert written[3] == "buy nothing (0)"

    def test_plot_without_matplotlib_names_the_extra(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        with pytest.raises(MissingDependencyError, match=r"sensortree\[plot\]"):
            TradeoffDisplay({"all": (9, 0.9)}).plot()


class TestSensorUse:
    @pytest.fixture
    def use(self) -> SensorUseDisplay:
        """Of two "no" one buys blood, and so does the only "yes"; no "maybe" came."""
        policy = SimpleNamespace(
            sensors=sensor_set(2),
            classes=np.array(["maybe", "no", "yes"]),
            about=About(),
        )
        model = SimpleNamespace(
            policy_=policy,
            acquired=lambda X: np.array([[1, 0], [1, 1], [1, 1]], dtype=bool),
        )
        y = np.array(["no", "no", "yes"])
        return SensorUseDisplay.from_estimator(model, np.zeros((3, 2)), y)

    def test_shares_are_of_the_rows_of_a_class(self, use):
        expected = [[np.nan, np.nan], [1, 0.5], [1, 1]]
        np.testing.assert_allclose(use.share, expected)
        np.testing.assert_allclose(use.overall, [1, 2 / 3])

    def test_they_are_those_of_the_report(self, fitted):
        model, X, y = fitted
        weight = np.linspace(1, 2, len(y))
        display = SensorUseDisplay.from_estimator(model, X, y, weight)
        report = model.report(X, y, weight)
        expected = [list(use.sensors.values()) for use in report.classes]
        np.testing.assert_allclose(display.share, expected)
        overall = [use.share for use in report.sensors]
        np.testing.assert_allclose(display.overall, overall)
        assert 0 < display.overall[1] < 1  # or the test is idle

    def test_a_cell_is_written_for_all_rows_and_for_each_class(self, use):
        display = use.plot()
        assert [[text.get_text() for text in line] for line in display.texts_] == [
            ["100", "–", "100", "100"],
            ["67", "–", "50", "100"],
        ]
        drawn = np.ma.filled(display.image_.get_array(), np.nan)
        np.testing.assert_allclose(drawn[:, 0], use.overall)
        np.testing.assert_allclose(drawn[:, 1:].T, use.share)

    def test_sensors_stand_with_their_prices(self, use):
        display = use.plot()
        names = [label.get_text() for label in display.ax_.get_yticklabels()]
        assert names == ["history_and_examination (4.00)", "blood (10.37)"]

    def test_many_cells_have_a_scale_instead_of_numbers(self):
        n_classes = 250
        share = np.full((n_classes, 2), 0.5)
        display = SensorUseDisplay(sensor_set(2), range(n_classes), share, [0.5, 0.5])
        assert display.plot().texts_ == []
        assert display.colorbar_ is not None

    def test_long_names_are_not_cut_off(self):
        sensors = sensor_set(6)
        classes = ["a class whose name takes rather a lot of room", "b", "c"]
        share = np.full((3, 6), 0.5)
        display = SensorUseDisplay(sensors, classes, share, share[0], unit="$").plot()
        display.figure_.draw_without_rendering()
        whole, ax = display.figure_.bbox, display.ax_
        for text in (*ax.get_xticklabels(), *ax.get_yticklabels(), ax._right_title):
            box = text.get_window_extent()
            assert whole.x0 <= box.x0
            assert box.x1 <= whole.x1 + 1
            assert whole.y0 <= box.y0 + 1
            assert box.y1 <= whole.y1 + 1

    def test_it_draws_where_it_is_told(self, use):
        _, ax = plt.subplots()
        assert use.plot(ax).ax_ is ax

    def test_shares_of_another_shape_are_refused(self):
        with pytest.raises(DataError, match=r"2 classes and 2 sensors give \(2, 2\)"):
            SensorUseDisplay(sensor_set(2), ["no", "yes"], [[0.5, 0.5]], [0.5, 0.5])

    def test_answers_for_another_number_of_rows_are_refused(self, fitted):
        model, X, y = fitted
        with pytest.raises(
            DataError, match=r"y has shape \(399,\), but X has 400 rows"
        ):
            SensorUseDisplay.from_estimator(model, X, y[1:])

    def test_plot_without_matplotlib_names_the_extra(self, use, monkeypatch):
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        with pytest.raises(MissingDependencyError, match=r"sensortree\[plot\]"):
            use.plot()


# groups and caps --------------------------------------------------------------------------


def test_a_tree_shows_discounted_prices_of_what_follows_its_group():
    tree = SensorTree(Node(["a"], Leaf(["a"]), Leaf(["a", "b"])))
    terms = (Terms(group="g", surcharge=1.0), Terms(group="g", surcharge=1.0))
    sensors = SensorSet(("a", "b"), ((0,), (1,)), (2.0, 5.0), terms=terms)
    display = TreeDisplay(tree, sensors, [0.5, 0.5])
    # a in full, b for 1 less than 5
    assert [v.price for v in display.vertices] == [2.0, 0.0, 4.0]
    assert display.leaf_cost.tolist() == [2.0, 6.0]


def test_rows_that_can_afford_no_leaf_are_in_no_share():
    from toys import toy_policy

    from sensortree.sensors.table import Table

    class Model:
        policy_ = toy_policy(max_cost=2.0)

        def apply(self, X):
            return self.policy_.apply(Table(X))

        def predict(self, X):
            return self.policy_.predict(Table(X))

    X = np.array([[-1.0, 0.0], [1.0, 0.0]])
    display = TreeDisplay.from_estimator(Model(), X, np.array(["no", "no"]))
    assert display.leaf_share.tolist() == [0.5, 0.0]
    assert display.leaf_classes.tolist() == [[1, 0], [0, 0]]
