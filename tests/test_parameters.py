"""Claims about parameters of single sensors: named as scikit-learn names nested ones."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from sensortree import (
    AlternatingTreeClassifier,
    ASTCClassifier,
    CascadeClassifier,
    CSTCClassifier,
    MyopicClassifier,
    Program,
    Sensor,
    SensorTreeClassifier,
    SensorTreeClassifierCV,
    SensorTreeRegressor,
    SensorTreeRegressorCV,
    StaticSubsetClassifier,
    cost_adjusted_scorer,
)
from sensortree.exceptions import ParameterError, SensorError

ESTIMATORS = [SensorTreeClassifier, SensorTreeClassifierCV, StaticSubsetClassifier]


def sensors():
    imputer = SimpleImputer(strategy="mean")
    return {
        "blood": Sensor([0], cost=2.0, transformer=imputer, group="g"),
        "urine": Sensor([1], cost=1.0, transformer=make_pipeline(SimpleImputer())),
        "age": [2],
    }


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_parameters_of_sensors_and_transformers_are_found_by_name(estimator):
    found = estimator(sensors()).get_params()
    assert found["sensors__blood__cost"] == 2.0
    assert found["sensors__blood__transformer__strategy"] == "mean"
    assert found["sensors__urine__transformer__simpleimputer__strategy"] == "mean"
    assert found["sensors__age"] == [2]
    shallow = estimator(sensors()).get_params(deep=False)
    assert not any(name.startswith("sensors__") for name in shallow)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_what_was_got_can_be_set(estimator):
    model = estimator(sensors())
    deep = {k: v for k, v in model.get_params().items() if k.startswith("sensors__")}
    again = clone(model).set_params(**deep)
    assert repr(again.sensors) == repr(model.sensors)


def test_setting_changes_copies_and_nothing_that_was_declared():
    declared = sensors()
    declared["urine"] = Sensor([1], transformer=declared["blood"].transformer)
    model = SensorTreeClassifier(declared)
    model.set_params(
        sensors__blood__transformer__strategy="median", sensors__blood__cost=5.0
    )
    assert model.sensors["blood"].cost == 5.0
    assert model.sensors["blood"].transformer.strategy == "median"
    assert model.sensors["urine"].transformer.strategy == "mean"  # it was shared
    assert declared["blood"].cost == 2.0
    assert declared["blood"].transformer.strategy == "mean"
    assert list(model.sensors) == list(declared)


def test_parameters_that_need_each_other_are_set_together():
    model = SensorTreeClassifier(sensors())
    model.set_params(sensors__blood__discounted_cost=4.0, sensors__blood__cost=9.0)
    assert model.sensors["blood"].surcharge == 5.0


def test_a_transformer_is_set_before_its_parameters():
    model = SensorTreeClassifier(sensors()).set_params(
        sensors__blood__transformer__with_mean=False,
        sensors__blood__transformer=StandardScaler(),
    )
    assert model.sensors["blood"].transformer.with_mean is False


def test_a_whole_sensor_and_all_of_them_can_be_set():
    model = SensorTreeClassifier().set_params(
        sensors={"a": [0], "b": [1]}, sensors__a=Sensor([2]), sensors__a__cost=3.0
    )
    assert model.sensors == {"a": Sensor([2], cost=3.0), "b": [1]}


def test_a_name_may_hold_underscores():
    given = {"a": Sensor([0]), "a__cost": Sensor([1])}
    model = SensorTreeClassifier(given).set_params(
        sensors__a__cost__cost=7.0, sensors__a__group="g"
    )
    assert model.sensors["a__cost"].cost == 7.0
    assert model.sensors["a"].group == "g"


BAD = {
    "sensors__blod__cost": (1.0, ParameterError, "names 'blod', which is not a sensor"),
    "sensors__blood__price": (1.0, ParameterError, "'blood' has no parameter 'price'"),
    "sensors__blood__cost": (-1.0, SensorError, "sensor 'blood': .* at least 0"),
    "sensors__age__cost": (
        1.0,
        ParameterError,
        "'age' is declared by its columns alone",
    ),
    "sensors__blood__transformer__stratgy": (
        "mean",
        ParameterError,
        "transformer of sensor 'blood' cannot be given 'stratgy'.*Invalid parameter",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_errors_name_the_sensor_and_the_parameter(name):
    value, error, message = BAD[name]
    model = SensorTreeClassifier(sensors())
    with pytest.raises(error, match=message):
        model.set_params(**{name: value}, cost_weight=0.5)
    assert model.cost_weight != 0.5  # nothing is set where something cannot be


def test_a_notebook_shows_no_parameter_of_a_sensor():
    html = SensorTreeClassifier(sensors())._repr_html_()
    assert "cost_weight" in html
    assert "sensors__blood" not in html


def test_no_transformer_has_no_parameters():
    model = SensorTreeClassifier({"blood": Sensor([0])})
    with pytest.raises(
        ParameterError, match=r"no transformer.*'transformer__strategy'"
    ):
        model.set_params(sensors__blood__transformer__strategy="mean")


def test_without_declared_sensors_there_are_none_to_set():
    with pytest.raises(ParameterError, match="sensors__x0__cost is of a sensor, but"):
        SensorTreeClassifier().set_params(sensors__x0__cost=1.0)


def test_an_unknown_parameter_is_refused_as_ever():
    with pytest.raises(ValueError, match="Invalid parameter 'sensor' for"):
        SensorTreeClassifier(sensors()).set_params(sensor__blood=3)


def test_a_grid_searches_over_parameters_of_sensors():
    rng = np.random.default_rng(0)
    X = rng.exponential(size=(120, 3))
    y = X[:, 0] > 1
    X[rng.random(120) < 0.3, 0] = np.nan
    model = SensorTreeClassifier(sensors(), structure="cascade", cv=None)
    grid = {
        "sensors__blood__transformer__strategy": ["mean", "median"],
        "sensors__blood__cost": [0.0, 1e6],
    }
    search = GridSearchCV(model, grid, cv=2, scoring=cost_adjusted_scorer(1e-3))
    search.fit(X, y)
    # At a million the sensor that tells the class is not bought.
    assert search.best_params_["sensors__blood__cost"] == 0.0
    assert search.best_estimator_.sensors["blood"].cost == 0.0
    assert model.sensors["blood"].cost == 2.0


# the program, and old names ---------------------------------------------------------------

TREES = [SensorTreeClassifier, SensorTreeRegressor, SensorTreeClassifierCV]
TREES += [SensorTreeRegressorCV, CascadeClassifier]


def test_the_trees_have_few_parameters():
    signatures = [inspect.signature(tree).parameters for tree in TREES]
    assert [len(names) for names in signatures] == [23, 19, 25, 21, 16]
    for names in signatures:
        kinds = [one.kind for one in names.values()]
        assert next(iter(names)) == "sensors"
        assert kinds[0] is inspect.Parameter.POSITIONAL_OR_KEYWORD
        assert set(kinds[1:]) == {inspect.Parameter.KEYWORD_ONLY}


@pytest.mark.parametrize("tree", TREES)
def test_a_parameter_of_the_program_is_set_by_its_nested_name(tree):
    model = tree()
    changed = clone(model).set_params(program__l2=3.0, program__refine=False)
    assert changed.program.l2 == 3.0
    assert changed.program.savings == model._program.savings  # its own default
    assert changed.get_params()["program__refine"] is False
    assert clone(changed).program == changed.program
    assert model.program is None


def test_a_grid_searches_over_parameters_of_the_program():
    X, y = load_iris(return_X_y=True)
    model = SensorTreeClassifier(structure="cascade", classifier="linear", cv=None)
    search = GridSearchCV(model, {"program__errors": ["observed", "smoothed"]}, cv=2)
    assert search.fit(X, y).best_estimator_.program.errors == "observed"


def test_parameters_of_a_transformer_of_the_program_are_set_by_name():
    features = PolynomialFeatures(2)
    model = SensorTreeClassifier(program=Program(decision_features=features))
    name = "program__decision_features__degree"
    assert model.get_params()[name] == 2
    changed = clone(model).set_params(**{name: 3})
    assert changed.program.decision_features.degree == 3
    with pytest.warns(FutureWarning, match=f"{name}=3"):
        model.set_params(decision_features__degree=3)
    assert model.program.decision_features.degree == 3
    assert features.degree == 2


def test_a_program_shows_what_was_changed():
    assert repr(Program()) == "Program()"
    assert repr(Program(l2=0.1, solver="highs")) == "Program(l2=0.1, solver='highs')"
    assert Program.as_published(l2=0.1).changed({"l2": 0.0}) == Program.as_published()


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"program": "highs"}, ParameterError, "'program' parameter of SensorTree"),
        ({"program": Program(l2=-1)}, ParameterError, "'l2' parameter of Program"),
        ({"program": Program(decision_features="prediction")}, ParameterError, "'raw'"),
    ],
)
def test_a_program_that_cannot_be_is_refused(given, error, words):
    with pytest.raises(error, match=words):
        SensorTreeClassifier(**given).fit([[0.0], [1.0]], [0, 1])


def test_a_program_has_no_other_parameters():
    with pytest.raises(ParameterError, match="Program has no parameter 'l3'; its"):
        SensorTreeClassifier().set_params(program__l3=1)
    with pytest.raises(
        TypeError, match=r"SensorTreeClassifier\(\) got an unexpected .*l3"
    ):
        SensorTreeClassifier(l3=1)


OLD = {
    "savings": "published",
    "errors": "observed",
    "decision_features": "raw",
    "l2": 0.5,
    "l1": 0.1,
    "solver": "scipy",
    "tol": 1e-4,
    "refine": False,
    "fallback": False,
}


@pytest.mark.parametrize("name", OLD)
@pytest.mark.parametrize("tree", TREES)
def test_an_old_keyword_works_with_a_warning_that_shows_the_new_line(tree, name):
    with pytest.warns(FutureWarning) as told:
        model = tree(**{name: OLD[name]})
    assert told[0].filename == __file__
    line = str(told[0].message).partition("write ")[2].partition(", after")[0]
    again = eval(line, {tree.__name__: tree, "Program": Program})
    assert again.program == model.program == tree()._program.changed({name: OLD[name]})
    with pytest.warns(FutureWarning, match=rf"write set_params\(program__{name}="):
        changed = tree().set_params(**{name: OLD[name]})
    assert changed.program == model.program
    assert name not in model.get_params()


@pytest.mark.parametrize(
    "method",
    [
        SensorTreeClassifier,
        SensorTreeClassifierCV,
        AlternatingTreeClassifier,
        ASTCClassifier,
        CascadeClassifier,
        CSTCClassifier,
        MyopicClassifier,
        StaticSubsetClassifier,
    ],
)
def test_a_mistake_cost_is_a_loss_that_is_a_number(method):
    with pytest.warns(FutureWarning, match=rf"write {method.__name__}\(loss=500\)\."):
        model = method(mistake_cost=500)
    assert model.loss == 500
    with pytest.warns(FutureWarning, match="mistake_cost"):
        assert method(mistake_cost=None).loss is None
    with pytest.raises(ParameterError, match="leave out mistake_cost"):
        method(loss={0: 1, 1: 2}, mistake_cost=500)


def test_old_and_new_keywords_together_change_the_program_that_is_given():
    with pytest.warns(FutureWarning, match="'l2', 'refine' are deprecated"):
        model = SensorTreeClassifier(program=Program(l1=0.1), l2=3.0, refine=False)
    assert model.program == Program(l1=0.1, l2=3.0, refine=False)
    with pytest.warns(FutureWarning, match="'fallback' is deprecated"):
        published = SensorTreeClassifier.as_published(fallback=True)
    assert published.program == Program.as_published(fallback=True)


def test_methods_that_have_no_program_keep_parameters_of_these_names():
    model = AlternatingTreeClassifier(l2=0.5, errors="smoothed")
    assert (model.l2, model.errors) == (0.5, "smoothed")
    assert CSTCClassifier(l1=0.1, tol=1e-3).get_params()["l1"] == 0.1
    with pytest.raises(TypeError, match="'savings'"):
        AlternatingTreeClassifier(savings="tight")
