"""Claims about the one comparison of a fit, and that all who tell of it tell the same."""

from __future__ import annotations

import json
import re
from html import unescape

import numpy as np
import pytest
from click.testing import Result
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.ensemble import RandomForestClassifier
from states import where_to_look
from typer.testing import CliRunner

from sensortree import (
    Leaf,
    Program,
    Sensor,
    SensorTree,
    SensorTreeClassifier,
    SensorTreeClassifierCV,
    load,
    save,
)
from sensortree.cli.app import app
from sensortree.estimators.validation import read_rows
from sensortree.exceptions import ModelFileError
from sensortree.learning.choose import Race
from sensortree.learning.held_out import Outcome, Outcomes, comparison_of
from sensortree.learning.joint import spread_rows
from sensortree.learning.prepare import prepare
from sensortree.leaves import boosting
from sensortree.persistence.files import parse, render
from sensortree.policy.about import NOTHING, ONE_SET
from sensortree.program import solution
from sensortree.program.risk import RoutingProblem
from sensortree.progress import TextProgress


def outcome(risk, cost=0.0, weight=0.0) -> Outcome:
    risk, cost = np.asarray(risk, dtype=float), np.full(len(risk), float(cost))
    lost = risk - weight * cost
    return Outcome(risk, lost, lost, cost)


def outcomes(**risks) -> Outcomes:
    return Outcomes({name.replace("_", " "): outcome(r) for name, r in risks.items()})


def stage_data(n_rows: int = 300):
    """A first reading that is unsure near 0, where a second one says the rest."""
    X = np.random.default_rng(0).normal(size=(n_rows, 3))
    y = X[:, 0] + (np.abs(X[:, 0]) < 0.5) * X[:, 1] > 0
    return X, y.astype(int)


STAGES = {
    "cheap": Sensor([0], 0.0),
    "dear": Sensor([1], 5.0),
    "noise": Sensor([2], 1.0),
}


@pytest.fixture(scope="module")
def fitted():
    X, y = stage_data()
    return SensorTreeClassifier(STAGES, cost_weight=0.02).fit(X, y), X, y


# the matrix -------------------------------------------------------------------------------


def test_of_equal_means_the_one_that_spends_least_is_best():
    found = Outcomes({"a": outcome([1, 0], 2.0), "b": outcome([0, 1], 1.0)})
    assert found.best() == "b"


def test_a_lead_is_judged_row_by_row():
    # Risks differ by 0 to 10 from row to row; one is lower by .1 on each of them.
    row = np.arange(11.0)
    found = outcomes(better=row - 0.1, worse=row)
    lead, error = found.lead("better", "worse")
    assert lead == pytest.approx(0.1)
    assert error == pytest.approx(0.0, abs=1e-12)


def test_what_is_clearly_better_than_nothing_is_taken():
    assert (
        outcomes(nothing=np.full(100, 0.4), tree=np.full(100, 0.3)).choice() == "tree"
    )


def test_a_lead_within_one_paired_standard_error_buys_nothing():
    # The lead is 1 on 11 rows of 100 and -1 on 9: .02, with a standard error of .045.
    lead = np.r_[np.ones(11), -np.ones(9), np.zeros(80)]
    found = outcomes(nothing=0.5 + lead, tree=0.5 * np.ones(100))
    assert found.best() == "tree"
    assert found.choice() == NOTHING


def test_candidates_that_are_not_nothing_win_by_any_lead():
    found = outcomes(
        nothing=np.ones(9), one_set=np.r_[0.1, np.zeros(8)], tree=np.zeros(9)
    )
    assert found.choice() == "tree"


def test_the_best_of_many_equals_looks_too_good_and_the_best_of_two_far_apart_does_not():
    rng = np.random.default_rng(0)
    equal = {f"c{k}": rng.integers(0, 2, 300).astype(float) for k in range(20)}
    # The least of 20 means of standard error .029 is about .05 too low.
    assert 0.02 < outcomes(**equal).optimism < 0.1
    apart = {"good": equal["c0"] * 0.1, "bad": 5 + equal["c1"]}
    assert outcomes(**apart).optimism < 0.005


def test_a_single_candidate_was_not_chosen_for_looking_good():
    assert outcomes(only=np.arange(50.0)).optimism == 0.0


def test_the_score_of_what_is_delivered_is_its_mean_and_the_optimism():
    rng = np.random.default_rng(1)
    found = Outcomes({f"c{k}": outcome(rng.random(200), 2.0, 0.05) for k in range(5)})
    best = found.best()
    optimism, slow = found.optimism, {"slow": "takes long"}
    told = comparison_of(found, best, optimism, found.of[best], ("x0",), slow)
    assert told.optimism == optimism > 0
    assert told.held_out.risk == pytest.approx(told.risk[best] + told.optimism)
    assert told.held_out.loss == pytest.approx(told.held_out.risk - 0.05 * 2.0)
    assert told.held_out.cost == told.cost[best] == 2.0
    assert told.error[best] == 0.0
    assert (told.removed, told.not_compared) == (("x0",), {"slow": "takes long"})


def test_the_answer_to_all_was_chosen_for_looking_good_though_nothing_was_not():
    rng = np.random.default_rng(2)
    held_out, fresh = [], []
    for _ in range(40):  # classes are even, but those of 80 rows hardly ever
        X, y = rng.normal(size=(80, 1)), rng.integers(0, 2, 80)
        model = SensorTreeClassifier({"dear": Sensor([0], 1.0)}, cost_weight=0.45)
        compared = model.fit(X, y).comparison_
        assert compared.chosen == NOTHING
        held_out.append(compared.held_out.risk)
        fresh.append(compared.risk[NOTHING])
    assert np.mean(fresh) < 0.47
    assert abs(np.mean(held_out) - 0.5) < 0.5 * abs(np.mean(fresh) - 0.5)


# what is delivered ------------------------------------------------------------------------


def test_what_was_chosen_is_what_is_delivered(fitted):
    model, X, y = fitted
    compared = model.comparison_
    structure, _, leaf = compared.chosen.partition(", ")
    assert structure == model.structure_report_.structure
    assert leaf == compared.leaf
    assert compared.chosen == min(compared.risk, key=compared.risk.get)
    assert compared.n_rows == len(X)
    named = SensorTreeClassifier(STAGES, cost_weight=0.02, classifier=leaf)
    # by itself an exhaustive tree begins with the cheapest
    named.set_params(structure="auto" if structure == "exhaustive" else structure)
    named.fit(X, y)
    np.testing.assert_array_equal(named.apply(X), model.apply(X))
    np.testing.assert_array_equal(named.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("cost_weight", [0.5, 0.1, 0.02, 0.002])
@pytest.mark.parametrize("refer_cost", [None, 0.2])
def test_who_decides_nothing_was_not_chosen_as_a_tree(cost_weight, refer_cost):
    X, y = stage_data()
    sensors = {name: Sensor(s.columns, 1.0) for name, s in STAGES.items()}
    model = SensorTreeClassifier(
        sensors, cost_weight=cost_weight, refer_cost=refer_cost, outages=False
    ).fit(X, y)
    chosen, tree = model.comparison_.chosen, model.tree_
    if not tree.n_nodes:
        assert chosen == (ONE_SET if tree.sensors else NOTHING)
        assert model.about_.held_out.cost == model.acquisition_cost(X).mean()
    elif refer_cost is None:
        assert chosen not in (NOTHING, ONE_SET)


def test_noise_buys_nothing_and_says_so():
    # Of six sets of noise at most one is bought from: the aim is one in ten.
    bought = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(200, 3)), rng.integers(0, 2, size=200)
        model = SensorTreeClassifier(cost_weight=0.01).fit(X, y)
        buys = bool(model.acquisition_cost(X).any())
        assert buys == (model.comparison_.chosen != NOTHING)
        assert NOTHING in model.comparison_.risk
        bought += buys
    assert bought <= 1


def test_where_nothing_is_taken_everybody_pays_nothing():
    X, y = stage_data()
    y = np.random.default_rng(7).permutation(y)
    sensors = {name: Sensor(s.columns, 1.0) for name, s in STAGES.items()}
    model = SensorTreeClassifier(sensors, cost_weight=0.2).fit(X, y)
    assert model.comparison_.chosen == NOTHING
    assert model.tree_ == SensorTree(Leaf([]))
    assert model.about_.held_out.cost == 0.0
    told = model.comparison_.risk[NOTHING] + model.comparison_.optimism
    assert model.comparison_.held_out.risk == told


def test_what_tells_much_is_bought():
    X = np.random.default_rng(0).normal(size=(200, 3))
    model = SensorTreeClassifier(cost_weight=0.01).fit(X, X[:, 1] > 0)
    assert model.comparison_.informative
    assert model.score(X, X[:, 1] > 0) > 0.9


def test_sensors_that_were_removed_are_never_bought():
    removed = 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(250, 5))
        y = X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=250) > 0
        model = SensorTreeClassifier(cost_weight=0.001, outages=False).fit(X, y)
        gone = set(model.comparison_.removed)
        assert not gone & model.tree_.sensors
        at = [j for j, name in enumerate(model.sensors_.names) if name in gone]
        assert not model.acquired(X)[:, at].any()
        removed += len(gone)
        for name in gone:
            assert name in str(model.comparison_)
    assert removed


def test_a_tree_of_ones_own_keeps_its_leaves_and_is_not_compared_with_nothing():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 2)), rng.integers(0, 2, size=100)
    tree = {"sensors": ["x0"], "negative": {"sensors": ["x0"]}}
    tree["positive"] = {"sensors": ["x0", "x1"]}
    model = SensorTreeClassifier(structure=tree, cost_weight=0.01).fit(X, y)
    assert NOTHING not in model.comparison_.risk
    assert all(
        name in (ONE_SET,) or name[:5] == "given" for name in model.comparison_.risk
    )


@pytest.mark.parametrize(
    "given", [{"cv": None}, {"cv": None, "program": Program(fallback=False)}]
)
def test_nothing_is_compared_where_nothing_is_held_out(given):
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = SensorTreeClassifier(**given).fit(X, X[:, 0] > 0)
    assert model.comparison_ is None
    assert model.about_.held_out is None


def test_what_is_only_compared_is_not_certified(monkeypatch):
    certified = []
    certify = solution.certify

    def counted(*arguments, **options):
        certified.append(arguments)
        return certify(*arguments, **options)

    monkeypatch.setattr(solution, "certify", counted)
    X = np.random.default_rng(0).normal(size=(300, 3))
    y = X[:, 0] + X[:, 1] * (X[:, 2] > 0) > 0
    model = SensorTreeClassifier(cost_weight=0.02).fit(X, y)
    assert len(model.comparison_.risk) > 2
    assert model.tree_.n_nodes
    assert len(certified) == 1  # the decisions that were kept


def test_the_program_of_a_point_is_posed_on_rows_that_are_spread_evenly():
    problem = RoutingProblem(
        SensorTree(Leaf({"a"})),
        (),
        np.arange(10.0)[:, None],
        np.r_[np.ones(9), 11.0],
        max_risk=1.0,
    )
    part, share = spread_rows(problem, 4)
    assert part.leaf_risk[:, 0].tolist() == [0.0, 3.0, 6.0, 9.0]
    assert share == 14 / 20  # penalties count for as much weight as is left
    assert spread_rows(problem, 10) == (problem, 1.0)


# what is compared -------------------------------------------------------------------------


def structures(model) -> set[str]:
    return {name.partition(", ")[0] for name in model.comparison_.risk}


def test_what_is_not_compared_says_why():
    X, y = stage_data(90)
    compared = SensorTreeClassifier(STAGES, cost_weight=0.02).fit(X, y).comparison_
    assert "100 rows or more, there are 90" in compared.not_compared["boosted"]
    assert "not compared: boosted (wants 100 rows" in str(compared)
    assert all(why for why in compared.not_compared.values())
    assert not any(name.endswith("boosted") for name in compared.risk)


def race_of(X, y, **parameters) -> Race:
    """All candidates of a default fit, judged."""
    model = SensorTreeClassifier(cost_weight=0.005, **parameters)
    settings = model._settings()
    rows = read_rows(model, settings, X, y, None, None, None)
    prepared = prepare(rows, settings.priced_for(rows.loss), TextProgress(False))
    race = Race(prepared, settings, model._jointly().compare, simpler=True)
    race.chosen()
    return race


def test_one_set_for_all_is_one_that_was_found_without_the_fold():
    # Of many sensors that tell nothing, some look good on any rows that they were seen on.
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(160, 12)), rng.integers(0, 2, 160)
    X[:, 0] += y
    race = race_of(X, y, classifier="linear")
    leaves, all_judged = race.prepared.leaves, []
    for fold, (train, _) in enumerate(race.folds):
        found = race._found_without(fold)
        assert race._best_set(leaves, train, found) in found
        all_judged.append(set(leaves.posteriors) - found)
    assert any(all_judged)  # other sets were judged too


def test_a_recipe_is_judged_by_the_search_that_is_delivered():
    X, y = stage_data(200)
    race = race_of(X, y, classifier="linear")
    assert race.finders
    for finder in race.finders:
        assert finder.prepared.search.n_exact == race.prepared.search.n_exact


def test_boosted_leaves_want_rows_of_each_class():
    X = np.random.default_rng(0).normal(size=(210, 3))
    y = np.repeat(np.arange(7), 30)
    X[:, 0] += y
    compared = SensorTreeClassifier(cost_weight=0.01).fit(X, y).comparison_
    assert compared.not_compared["boosted"] == "wants 350 rows or more, there are 210"


def test_few_sensors_have_the_exhaustive_tree_compared():
    X, y, sensors = where_to_look(600, n_states=2)
    model = SensorTreeClassifier(sensors, cost_weight=0.05).fit(X, y)
    assert {"exhaustive", "branched"} <= structures(model)


def test_by_default_a_sensor_that_tells_where_to_look_is_bought_first():
    X, y, sensors = where_to_look(3_000, n_states=5)
    model = SensorTreeClassifier(sensors, cost_weight=0.02).fit(X[:1_500], y[:1_500])
    risk = model.comparison_.risk
    chains = [risk[name] for name in risk if name.startswith(("chain", "backward"))]
    assert min(risk.values()) < 0.6 * min(chains)
    assert model.acquired(X)[:, 0].all()
    assert (model.predict(X[1_500:]) != y[1_500:]).mean() < 0.05
    assert model.acquisition_cost(X[1_500:]).mean() < 2.5


def test_any_other_leaf_classifier_branches_too():
    X, y, sensors = where_to_look(500)
    forest = RandomForestClassifier(15, random_state=0)
    model = SensorTreeClassifier(sensors, cost_weight=0.02, classifier=forest, cv=3)
    assert "branched" in structures(model.fit(X, y))
    assert model.comparison_.leaf == ""  # there was nothing to choose


@pytest.mark.parametrize("n_leaves", [1, 3, 5])
def test_no_candidate_has_more_leaves_than_asked_for(n_leaves):
    X, y, sensors = where_to_look(900, n_states=4)
    model = SensorTreeClassifier(sensors, cost_weight=0.01, n_leaves=n_leaves)
    assert model.fit(X, y).tree_.n_leaves <= n_leaves


@pytest.mark.parametrize("structure", ["auto", "chain", "branched"])
def test_what_is_free_is_all_that_is_known_at_the_root(structure):
    X = np.random.default_rng(0).normal(size=(500, 6))
    y = X[:, 0] + (np.abs(X[:, 0]) < 0.6) * 2 * X[:, 1] > 0
    sensors = {"free": Sensor([0], cost=0.0)}
    sensors |= {f"x{j}": Sensor([j], cost=1.0) for j in range(1, 6)}
    model = SensorTreeClassifier(sensors, cost_weight=0.03, structure=structure)
    model.fit(X, y)
    assert model.tree_.root.sensors == {"free"}
    # Who is sure already buys nothing.
    assert (model.acquisition_cost(X) == 0).any()


@pytest.mark.parametrize("many", [False, True])
def test_boosted_trees_of_many_rows_are_compared_by_their_own_classifiers(
    monkeypatch, many
):
    monkeypatch.setattr(boosting, "BOOSTED_MANY_ROWS", 200 if many else 10_000)
    X, y, sensors = where_to_look(300, n_states=5)
    model = SensorTreeClassifier(
        sensors, cost_weight=0.02, classifier="boosted", outages=False
    )
    model.fit(X, y)
    assert len(model.comparison_.risk) > 1


def test_the_same_rows_give_the_same_comparison_whatever_n_jobs():
    X, y = load_breast_cancer(return_X_y=True)
    once, again = (
        SensorTreeClassifier(cost_weight=0.01, n_jobs=n, outages=False)
        .fit(X[:300, :6], y[:300])
        .comparison_
        for n in (1, 2)
    )
    assert once == again


# who tells of it --------------------------------------------------------------------------


def kinds_of_table():
    """Rows, sensors in a file, and how fits on them end."""
    X, y = stage_data()
    shuffled = np.random.default_rng(7).permutation(y)
    header = 'target = "sick"\nunit = "EUR"\ncost_weight = 0.02\n'
    prices = {"cheap": 0, "dear": 5, "noise": 1}
    sensors = "".join(
        f'\n[sensors.{name}]\ncolumns = ["{name}"]\ncost = {cost}\n'
        for name, cost in prices.items()
    )
    paid = sensors.replace("cost = 0\n", "cost = 1\n")
    return {
        "a tree": (X, y, header + sensors, []),
        "handing over": (X, y, header + sensors, ["--refer-cost", "0.1"]),
        "nothing": (X, shuffled, header + paid, []),
        "one set": (X, (X[:, 0] > 0).astype(int), header + paid, []),
        "one leaf, handing over": (
            X,
            shuffled,
            header + paid,
            ["--refer-cost", "0.2"],
        ),
    }


def run(*arguments) -> Result:
    done = CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done


@pytest.mark.parametrize("name", kinds_of_table())
def test_fit_inspect_report_and_about_tell_the_same_numbers(name, tmp_path):
    X, y, sensors, more = kinds_of_table()[name]
    csv, toml, path = (tmp_path / f for f in ("rows.csv", "sensors.toml", "m.json"))
    rows = [
        ",".join(map(repr, [*x, int(label)]))
        for x, label in zip(X.tolist(), y, strict=True)
    ]
    csv.write_text("\n".join(["cheap,dear,noise,sick", *rows]) + "\n")
    toml.write_text(sensors)
    fit = ["fit", csv, "--sensors", toml, "--output", path, *more]
    said = run(*fit).output
    document = json.loads(run(*fit, "--force", "--json").stdout)
    inspected, shown = (
        run("inspect", path, "--json").stdout,
        run("inspect", path).output,
    )
    inspected = json.loads(inspected)
    page = tmp_path / "page.html"
    run("report", path, csv, "-o", page)
    html = unescape(page.read_text())
    model = load(path)

    compared, about = model.comparison_, model.about_
    assert compared.held_out == about.held_out
    assert compared.chosen in compared.risk
    whole = compared.to_dict()
    for told in (document, inspected):
        assert told["comparison"] == whole
        assert told["about"]["held_out"] == whole["held_out"]
        assert told["certificate"]["speaks_of"] == model.certificate_["speaks_of"]
    line = about.score
    speaks_of = model.certificate_["speaks_of"]
    for text in (said, shown):
        assert line in text
        assert str(compared) in text
        assert speaks_of in text
    assert line.partition(": ")[2] in html
    assert f"{compared.chosen}" in html
    if model.tree_.n_nodes:
        assert speaks_of in html

    # What is said is true of the model: who pays what, and where nobody pays.
    X = X.astype(float)
    paid = model.acquisition_cost(X).mean()
    assert paid == pytest.approx(about.held_out.cost, abs=4 * about.held_out.cost_se)
    if compared.chosen == NOTHING:
        assert paid == about.held_out.cost == 0.0


def test_the_certificate_says_of_which_tree_it_speaks(fitted):
    model, _, _ = fitted
    said = model.certificate_.speaks_of
    kept, pruned = model.tree_.n_leaves, model.structure_report_.pruned
    posed = int(re.search(r"on a tree of (\d+) leaves", said)[1])
    assert kept <= posed <= kept + pruned
    assert (f"{kept} of its leaves" in said) == (kept < posed)
    assert said in str(model.certificate_)
    assert ("refined" in said) == (model.decision_report_.kept == "refined")


def test_unrefined_decisions_are_those_of_the_certificate():
    X, y = stage_data()
    model = SensorTreeClassifier(
        STAGES, cost_weight=0.02, program=Program(refine=False, fallback=False)
    )
    said = model.fit(X, y).certificate_.speaks_of
    assert model.decision_report_.kept == "linear program"
    assert "the model makes exactly these" in said
    assert "refined" not in said


def test_one_leaf_for_all_is_said_beside_the_certificate():
    X, y = load_wine(return_X_y=True)
    model = SensorTreeClassifier.as_published(
        structure="exhaustive", program=Program.as_published(fallback=True)
    )
    model.fit(X[:, :4], y)
    assert model.decision_report_.kept == "one leaf"
    assert "sends every example to one leaf instead" in model.certificate_.speaks_of


# saved ------------------------------------------------------------------------------------


def test_a_saved_comparison_is_loaded_alike(fitted, tmp_path):
    model, _, _ = fitted
    save(model, tmp_path / "model.json")
    loaded = load(tmp_path / "model.json")
    assert loaded.comparison_ == model.comparison_
    assert list(loaded.comparison_.risk) == list(model.comparison_.risk)
    assert str(loaded.comparison_) == str(model.comparison_)
    save(loaded, tmp_path / "again.json")
    assert load(tmp_path / "again.json").comparison_ == model.comparison_


def test_a_file_of_before_was_compared_in_no_way_that_we_know(fitted, tmp_path):
    path = tmp_path / "model.json"
    save(fitted[0], path)
    document = parse(path.read_bytes())
    for key in ("format", "format_version", "digest", "comparison"):
        del document[key]
    path.write_bytes(render(document))
    assert load(path).comparison_ is None


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("chosen", "the moon", "which is not a candidate"),
        ("chosen", 7, "must be text"),
        ("candidates", [], "which is not a candidate"),
        ("optimism", -1.0, "below 0"),
        ("rows", 2.5, "must hold integers"),
        ("removed", [99], "out of range"),
        ("not_compared", [{"name": "a", "why": "b"}] * 2, "second of name 'a'"),
        ("mood", "good", "is not a key of this format"),
    ],
)
def test_a_comparison_that_cannot_be_is_refused(fitted, tmp_path, key, value, message):
    path = tmp_path / "model.json"
    save(fitted[0], path)
    document = parse(path.read_bytes())
    document["comparison"][key] = value
    for head in ("format", "format_version", "digest"):
        del document[head]
    path.write_bytes(render(document))
    with pytest.raises(ModelFileError, match=message):
        load(path)


def test_what_a_budget_chose_is_saved_as_the_model_keeps_it(tmp_path):
    X, y = stage_data()
    model = SensorTreeClassifierCV(STAGES, cost_weights=[0.2, 0.02], budget=4.0)
    model.fit(X, y)
    chosen, score = model.chosen_, model.about_.held_out
    assert (chosen.mean_cost, chosen.error) == (score.cost, score.loss)
    save(model, tmp_path / "model.json")
    loaded = load(tmp_path / "model.json")
    assert loaded.chosen_ == chosen
    assert loaded.comparison_ == model.comparison_
