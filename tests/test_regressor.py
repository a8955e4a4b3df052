"""Trees that answer with numbers: what they buy, what they answer, what they refuse."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.utils.estimator_checks import parametrize_with_checks

from sensortree import Program, Sensor, SensorTreeRegressor, StaticSubsetRegressor
from sensortree.exceptions import DataError, ParameterError, PriceWarning
from sensortree.leaves.regression import RidgeEngine
from sensortree.leaves.regressors import BoostedNumbers, ForeignNumbers
from sensortree.policy.classifiers import BoostedScorer, Polynomial
from sensortree.sensors.loss import Pinball, loss_of_numbers

SENSORS = {"cheap": Sensor([0], cost=0), "dear": Sensor([1], cost=1)}


def toy(n=600, seed=0):
    """The dear sensor matters where the cheap one is above 0, and nowhere else."""
    X = np.random.default_rng(seed).normal(size=(n, 2))
    return X, 2 * X[:, 0] + (X[:, 0] > 0) * X[:, 1]


@parametrize_with_checks(
    [
        SensorTreeRegressor(),
        SensorTreeRegressor(structure="chain", regressor="quadratic", risk="absolute"),
        SensorTreeRegressor(structure="cascade", cv=None, cost_weight=0.001),
        StaticSubsetRegressor(),
    ]
)
def test_scikit_learns_checks_pass_without_exception(estimator, check):
    check(estimator)


# what is bought ---------------------------------------------------------------------------


@pytest.mark.parametrize("risk", ["squared", "absolute", "pinball"])
@pytest.mark.parametrize("structure", ["chain", "branched", "auto"])
def test_the_dear_sensor_is_bought_where_it_matters(structure, risk):
    X, y = toy()
    model = SensorTreeRegressor(
        SENSORS, structure=structure, cost_weight=0.05, risk=risk
    )
    bought = model.fit(X, y).acquired(X)[:, 1]
    assert bought[X[:, 0] > 0.5].mean() > 0.95
    assert bought[X[:, 0] < -0.5].mean() < 0.05
    assert model.certificate_.converged


def test_a_static_subset_buys_the_same_for_all():
    X, y = toy()
    model = StaticSubsetRegressor(SENSORS, cost_weight=0.05).fit(X, y)
    assert model.acquired(X).all()
    assert (
        not StaticSubsetRegressor(SENSORS, budget=0).fit(X, y).acquired(X)[:, 1].any()
    )


def test_decisions_risk_less_than_the_best_static_subset():
    X, y = toy(800)
    train, test = np.arange(800) < 500, np.arange(800) >= 500
    risk = {}
    for kind in (SensorTreeRegressor, StaticSubsetRegressor):
        model = kind(SENSORS, cost_weight=0.2).fit(X[train], y[train])
        loss = (model.predict(X[test]) - y[test]) ** 2
        risk[kind] = np.mean(loss + 0.2 * model.acquisition_cost(X[test]))
    assert risk[SensorTreeRegressor] < risk[StaticSubsetRegressor]


def test_no_row_spends_more_than_the_most():
    X, y = load_diabetes(return_X_y=True)
    model = SensorTreeRegressor(max_cost=2, cost_weight=1.0).fit(X, y)
    assert model.acquisition_cost(X).max() == 2


def test_rows_with_prices_of_their_own_buy_where_it_is_cheap():
    X, y = toy()
    prices = np.column_stack([np.zeros(600), np.where(np.arange(600) % 2, 0.1, 5.0)])
    model = SensorTreeRegressor(SENSORS, cost_weight=0.1).fit(X, y, prices=prices)
    bought = model.acquired(X, prices)[:, 1]
    assert bought[1::2].mean() > bought[::2].mean() + 0.2


def test_weight_two_is_the_same_as_repeating_a_row():
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:200], y[:200]
    weight = np.where(np.arange(200) % 3, 1, 2)
    repeated = np.repeat(np.arange(200), weight)
    weighted = SensorTreeRegressor().fit(X, y, sample_weight=weight)
    again = SensorTreeRegressor().fit(X[repeated], y[repeated], groups=repeated)
    assert weighted.tree_ == again.tree_
    np.testing.assert_allclose(weighted.predict(X), again.predict(X), rtol=1e-6)


def test_the_order_of_rows_does_not_matter():
    X, y = load_diabetes(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    given = SensorTreeRegressor().fit(X, y).predict(X)
    np.testing.assert_array_equal(
        SensorTreeRegressor().fit(X[order], y[order]).predict(X), given
    )


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_the_unit_of_the_target_does_not_matter(scale):
    X, y = load_diabetes(return_X_y=True)
    model, other = SensorTreeRegressor().fit(X, y), SensorTreeRegressor()
    other.fit(X, 5 * scale + scale * y)
    np.testing.assert_array_equal(other.apply(X), model.apply(X))
    np.testing.assert_allclose(
        other.predict(X) / scale - 5, model.predict(X), rtol=1e-5
    )


def test_a_target_that_does_not_vary_is_bought_nothing_for():
    X, _ = toy(100)
    sensors = {"a": Sensor([0], cost=1), "b": Sensor([1], cost=1)}
    with pytest.warns(PriceWarning, match="buys nothing"):
        model = SensorTreeRegressor(sensors).fit(X, np.full(100, 3.0))
    assert model.acquisition_cost(X).max() == 0
    assert (model.predict(X) == 3.0).all()
    assert (model.predict_spread(X) == 0.0).all()


# what is answered -------------------------------------------------------------------------


@pytest.mark.parametrize("regressor", ["linear", "quadratic", "boosted"])
def test_as_many_as_asked_for_do_not_exceed_a_quantile(regressor):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 2))
    y = X[:, 0] + np.exp(X[:, 1] / 2) * rng.normal(size=1200)
    model = SensorTreeRegressor(risk="pinball", quantile=0.8, regressor=regressor)
    below = y[800:] <= model.fit(X[:800], y[:800]).predict(X[800:])
    assert 0.74 < below.mean() < 0.86  # three standard errors of 400 rows are 0.06


def test_the_spread_says_where_answers_are_off():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 1))
    y = X[:, 0] + np.abs(X[:, 0]) * rng.normal(size=1500)
    model = SensorTreeRegressor({"a": Sensor([0], cost=0)}).fit(X[:1000], y[:1000])
    off = (y - model.predict(X))[1000:] / model.predict_spread(X)[1000:]
    assert 0.8 < np.mean(off**2) < 1.2
    spread = model.predict_spread([[0.1], [2.0]])
    assert spread[1] > 3 * spread[0]


def test_answers_keep_within_the_numbers_of_training():
    X, y = toy()
    model = SensorTreeRegressor(SENSORS).fit(X, y)
    with pytest.warns(UserWarning, match="never saw"):
        assert model.predict([[1e6, 1e6]])[0] == y.max()


def test_a_row_is_answered_the_same_alone_and_among_others():
    X, y = load_diabetes(return_X_y=True)
    for regressor in ("quadratic", "boosted"):
        model = SensorTreeRegressor(regressor=regressor).fit(X, y)
        alone = np.concatenate([model.predict(X[i : i + 1]) for i in range(40)])
        np.testing.assert_array_equal(alone, model.predict(X)[:40])


def test_missing_readings_are_taken_by_boosted_leaves():
    X, y = toy()
    X[::7, 1] = np.nan
    model = SensorTreeRegressor(SENSORS, regressor="boosted").fit(X, y)
    assert np.isfinite(model.predict(X)).all()


def test_a_regressor_of_the_users_is_taken():
    X, y = toy(300)
    forest = RandomForestRegressor(20, random_state=0)
    model = SensorTreeRegressor(SENSORS, regressor=forest, structure="chain")
    assert model.fit(X, y).score(X, y) > 0.9
    assert not hasattr(model, "predict_proba")


@pytest.mark.parametrize("regressor", ["auto", "linear", "quadratic", "boosted"])
def test_leaves_that_are_named_or_chosen_are_plain_arrays(regressor):
    X, y = toy(700)
    model = SensorTreeRegressor(SENSORS, regressor=regressor).fit(X, y)
    kinds = {type(leaf.regression) for leaf in model.policy_.classifiers.values()}
    assert kinds <= {Polynomial, BoostedScorer}


def test_a_function_may_say_what_is_lost():
    X, y = toy()

    def too_low(y, answers):
        return np.maximum(y - answers, 0.0)

    model = SensorTreeRegressor(SENSORS, risk=too_low, cost_weight=0.1).fit(X, y)
    assert model.policy_.loss.name == "too_low"
    assert 0 < model.acquired(X)[:, 1].mean() < 1


# what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"risk": "hinge"}, "'risk'"),
        ({"quantile": 0.9}, "for risk='pinball'"),
        ({"regressor": "forest"}, "'linear', 'quadratic', 'boosted'"),
        ({"regressor": Ridge}, r"write Ridge\(\)"),
        ({"risk": lambda y, p: -np.ones(len(p))}, "at least 0"),
        ({"risk": lambda y, p: np.zeros(3)}, "one number for each"),
        ({"risk": lambda y, p: np.zeros(len(p))}, "nothing is worth buying"),
        (
            {"program": Program(decision_features="posterior")},
            "'decision_features' parameter of Program",
        ),
    ],
)
def test_a_parameter_that_makes_no_sense_is_named(parameters, message):
    X, y = toy(60)
    with pytest.raises(ParameterError, match=message):
        SensorTreeRegressor(SENSORS, **parameters).fit(X, y)


def test_a_target_of_words_is_sent_to_the_classifier():
    X, _ = toy(4)
    with pytest.raises(DataError, match="use SensorTreeClassifier"):
        SensorTreeRegressor(SENSORS).fit(X, np.array(["a", "b", "a", "b"]))


# losses, folds and leaves -----------------------------------------------------------------


def test_the_expected_squared_error_is_distance_squared_plus_variance():
    loss = loss_of_numbers("squared", 0.5, np.array([0.0, 9.0]), np.ones(2))
    belief, said = np.array([[3.0, 2.0]]), np.array([[4.0, 7.0]])
    np.testing.assert_allclose(loss.expect(belief, said), (3 - 4) ** 2 + 2**2)


def test_a_quantile_loses_least_where_it_is_said_to_be():
    belief = np.array([[3.0, 2.0]])
    loss = loss_of_numbers("pinball", 0.9, np.array([0.0, 9.0]), np.ones(2))
    lost = [loss.expect(belief, np.array([[a, 1.0]]))[0] for a in (2.0, 3.0, 4.0)]
    assert np.argmin(lost) == 1


@pytest.mark.parametrize(
    ("risk", "quantile", "most"),
    [("squared", 0.5, 4.0), ("absolute", 0.5, 2.0), ("pinball", 0.9, 0.36)],
)
def test_no_distribution_loses_more_than_the_most(risk, quantile, most):
    """Numbers are 0 or 4, with any odds: the best answer loses `most` at the worst."""
    y, answers = np.array([0.0, 4.0]), np.linspace(0, 4, 81)
    loss = loss_of_numbers(risk, quantile, y, np.ones(2))
    table = np.array([loss.of(y, np.full(2, a)) for a in answers])
    odds = np.linspace(0, 1, 101)
    worst = max((table @ [1 - p, p]).min() for p in odds)
    assert worst == pytest.approx(most, rel=0.01)
    assert loss.most_worth == pytest.approx(most)


def test_pinball_counts_too_low_and_too_high_apart():
    lost = Pinball(0.9)(np.array([1.0, 1.0]), np.array([0.0, 2.0]))
    np.testing.assert_allclose(lost, [0.9, 0.1])


def test_ridge_leaves_are_judged_by_fits_without_the_fold():
    X, y = load_diabetes(return_X_y=True)
    fold = np.arange(len(y)) % 4
    said, scorer = RidgeEngine(y, fold=fold, degree=1).judge(X[:, :3])
    whole = Ridge(1e-9).fit(X[:, :3], y)
    Z = (X[:, :3] - X[:, :3].mean(axis=0)) / X[:, :3].std(axis=0)
    full = Ridge(1.0).fit(Z, y).coef_
    slope = scorer.regression.coef[:, 0] / full  # shrunk by the penalty of the evidence
    assert (slope > 0.5).all()
    out = fold == 2
    # By any penalty: the one that gives the same coefficients to all rows.
    penalties = len(y) / 3.0 ** np.arange(15)
    fits = [Ridge(p).fit(Z, y).coef_ for p in penalties]
    best = penalties[
        np.argmin([np.abs(f - scorer.regression.coef[:, 0]).max() for f in fits])
    ]
    without = Ridge(best).fit(Z[~out], y[~out]).predict(Z[out])
    np.testing.assert_allclose(said[out, 0], without, rtol=1e-5)
    assert whole.score(X[:, :3], y) > 0


@pytest.mark.parametrize("degree", [1, 2])
def test_more_terms_than_rows_are_fitted_as_few(degree):
    """The matrix of products of rows gives the same fit as that of terms."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, 12 if degree == 2 else 40)), rng.normal(size=12)
    said, _ = RidgeEngine(y, fold=np.arange(12) % 3, degree=degree).judge(X)
    assert np.isfinite(said).all()
    assert (said[:, 0] >= y.min()).all()
    assert (said[:, 0] <= y.max()).all()


@pytest.mark.parametrize("kind", ["boosted", "foreign"])
def test_other_leaves_never_see_the_rows_they_are_judged_on(kind):
    """Noise cannot be predicted: whoever has seen it would be better than its mean."""
    rng = np.random.default_rng(0)
    X, y, fold = rng.normal(size=(300, 3)), rng.normal(size=300), np.arange(300) % 5
    forest = RandomForestRegressor(10, random_state=0)
    rows = y, None, fold
    engine = (
        BoostedNumbers(*rows) if kind == "boosted" else ForeignNumbers(forest, *rows)
    )
    said, start = engine.judge(X)
    assert np.mean((said[:, 0] - y) ** 2) > y.var()
    assert np.mean((engine.fit(X, start).predict(X) - y) ** 2) < y.var()
