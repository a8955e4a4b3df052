"""Claims about training over chunks of rows: on disk, on workers, and workers that die."""

from __future__ import annotations

import os
import signal
import threading
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from models import CODED, codes, route_by_code
from strategies import random_problem

from sensortree import Program, Sensor, SensorTreeClassifier, load, save
from sensortree.exceptions import CertificateWarning, DataError, ParameterError
from sensortree.outofcore.chunk import Source
from sensortree.outofcore.disk import OnDisk, size_of
from sensortree.program import solve
from sensortree.program.chunks import InMemory
from sensortree.program.solution import ProblemRows, solve_rows
from sensortree.program.solvers.structured.chunk import parts_of

distributed = pytest.importorskip("distributed", reason="the extra 'dask' is absent")
da = pytest.importorskip("dask.array", reason="the extra 'dask' is absent")

PROBLEM = random_problem(3, n_samples=8_000, n_leaves=6, n_features=5)
PENALTIES = [{"l2": 1.0}, {"l1": 0.5}, {}]


def sources():
    return [Source(ProblemRows, (PROBLEM.part(some),)) for some in parts_of(PROBLEM)]


def same(solved, solution):
    """Whether coefficients have the same bits, and bounds agree to the last digits."""
    ours, theirs = solved.certificate, solution.certificate
    np.testing.assert_allclose(
        [ours.upper, ours.lower], [theirs.upper, theirs.lower], rtol=1e-14
    )
    for theta, other in zip(solved.coef, solution.coef, strict=True):
        np.testing.assert_array_equal(theta, other)


def test_the_problem_has_several_chunks():
    assert len(sources()) > 2


@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
def test_chunks_are_solved_to_the_same_bits_as_the_whole(penalty):
    rows = InMemory([source.make() for source in sources()])
    same(solve_rows(rows, **penalty), solve(PROBLEM, **penalty))


@pytest.mark.parametrize("max_memory", [0, 1 << 40])
def test_chunks_on_disk_are_solved_to_the_same_bits(tmp_path, max_memory):
    rows = OnDisk(tmp_path, sources(), max_memory)
    same(solve_rows(rows, l2=1.0), solve(PROBLEM, l2=1.0))
    assert bool(rows.held) == (max_memory > 0)
    assert any(tmp_path.iterdir()) == (max_memory == 0)


@pytest.mark.parametrize("max_memory", [0, 1 << 29])
def test_nodes_that_share_their_features_do_so_in_files(tmp_path, max_memory):
    shared = replace(PROBLEM, features=[PROBLEM.features[0]] * PROBLEM.n_nodes)
    makes = [Source(ProblemRows, (shared.part(some),)) for some in parts_of(shared)]
    rows = OnDisk(tmp_path, makes, max_memory)
    same(solve_rows(rows, l2=1.0), solve(shared, l2=1.0))


@pytest.mark.slow
def test_memory_is_that_of_a_few_chunks_where_rows_are_in_files(tmp_path):
    problem = random_problem(0, n_samples=20_000, n_leaves=16, n_features=5)
    makes = [Source(ProblemRows, (problem.part(some),)) for some in parts_of(problem)]
    assert len(makes) == 16
    peaks = []
    for max_memory in (1 << 40, 0):
        rows = OnDisk(tmp_path / str(max_memory), makes, max_memory)
        tracemalloc.start()
        with pytest.warns(CertificateWarning, match="Let it run on"):
            solve_rows(rows, l2=1.0, callback=lambda progress: progress.iteration == 2)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] / 4


def test_what_is_in_files_takes_no_memory(tmp_path):
    held = OnDisk(tmp_path / "held", sources(), 1 << 40)
    freed = OnDisk(tmp_path / "freed", sources(), 0)
    for rows in (held, freed):
        list(rows.tell(ProblemRows.begin))
    assert sum(map(size_of, held.held.values())) > PROBLEM.features[0].nbytes
    assert not freed.held


# the classifier ---------------------------------------------------------------------------


def made_up(n_rows=1_500, n_classes=3, seed=0):
    """Rows of which some are repeated; what x2 tells matters where x0 is near 0."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n_rows, 4)), 1)
    score = X[:, 0] + (np.abs(X[:, 0]) < 0.7) * X[:, 2] + 0.3 * rng.normal(size=n_rows)
    y = np.digitize(score, [-0.4, 0.5][: n_classes - 1])
    again = rng.integers(0, n_rows, n_rows // 10)
    return np.r_[X, X[again]], np.r_[y, y[again]]


SENSORS = {"first": [0], "second": [1, 2], "third": [3]}
PARAMETERS = {
    "sensors": SENSORS,
    "costs": {"first": 0.0, "second": 2.0, "third": 1.0},
    "structure": "exhaustive",
    "program": Program(fallback=False),
    "outages": False,
}


def in_parts(X, y, n_rows):
    return da.from_array(X, chunks=(n_rows, -1)), da.from_array(y, chunks=n_rows)


def fitted(X, y, n_rows=400, sample_weight=None, prices=None, **parameters):
    from sensortree.dask import DaskSensorTreeClassifier

    model = DaskSensorTreeClassifier(**{**PARAMETERS, **parameters})
    beside = [
        None if given is None else da.from_array(given, chunks=150)
        for given in (sample_weight, prices)
    ]
    return model.fit(*in_parts(X, y, n_rows), *beside)


@pytest.mark.parametrize(
    ("classifier", "n_classes"), [("linear", 3), ("logistic2", 2), ("logistic2", 3)]
)
def test_the_objective_is_that_of_a_fit_in_memory(classifier, n_classes):
    X, y = made_up(n_classes=n_classes)
    alone = SensorTreeClassifier(**PARAMETERS, classifier=classifier).fit(X, y)
    model = fitted(X, y, classifier=classifier, sample_rows=300)
    assert model.n_sample_ < 400
    assert model.certificate_.converged
    assert model.certificate_.upper == pytest.approx(alone.certificate_.upper, rel=1e-9)


def weights_of(y, seed=2):
    """Weights of which some are 0."""
    return np.random.default_rng(seed).integers(0, 4, len(y)) / 2


@pytest.mark.parametrize("classifier", ["linear", "logistic2"])
def test_the_objective_of_weighted_rows_is_that_of_a_fit_in_memory(classifier):
    X, y = made_up()
    weight = weights_of(y)
    parameters = {**PARAMETERS, "classifier": classifier, "class_weight": "balanced"}
    alone = SensorTreeClassifier(**parameters).fit(X, y, weight)
    model = fitted(X, y, 400, weight, **parameters, sample_rows=300)
    assert model.n_sample_ < 400
    assert model.certificate_.upper == pytest.approx(alone.certificate_.upper, rel=1e-9)
    without = fitted(
        X[weight > 0], y[weight > 0], 400, weight[weight > 0], **parameters
    )
    whole = fitted(X, y, 97, weight, **parameters)
    assert without.certificate_ == whole.certificate_
    np.testing.assert_array_equal(without.predict_proba(X), whole.predict_proba(X))


@pytest.mark.parametrize("weighted", [False, True])
def test_boosted_leaves_of_a_sample_of_all_rows_are_those_of_a_fit_in_memory(weighted):
    X, y = made_up(500)
    weight = weights_of(y) if weighted else None
    parameters = {"structure": "cascade", "classifier": "boosted"}
    alone = SensorTreeClassifier(**{**PARAMETERS, **parameters}).fit(X, y, weight)
    model = fitted(X, y, 100, weight, **parameters)
    # Chunks keep posteriors in single precision.
    assert model.certificate_.upper == pytest.approx(alone.certificate_.upper, rel=1e-7)


def test_a_row_of_weight_two_is_two_rows():
    X, y = made_up(300)
    rows = np.random.default_rng(0).integers(1, 3, len(y))
    plain = {"classifier": "linear", "cv": None}  # else copies are held out apart
    weighted = fitted(X, y, 100, rows.astype(float), **plain)
    again = fitted(np.repeat(X, rows, axis=0), np.repeat(y, rows), **plain)
    assert weighted.certificate_.upper == pytest.approx(
        again.certificate_.upper, rel=1e-9
    )


def prices_of(X, seed=4):
    """Prices of the three sensors; NaN for a sensor's own."""
    rng = np.random.default_rng(seed)
    prices = np.full((len(X), 3), np.nan)
    prices[:, 1] = np.round(rng.uniform(1, 3, len(X)), 1)
    prices[rng.random(len(X)) < 0.1, 1] = np.nan
    return prices


def test_decisions_see_the_levels_of_all_rows():
    """Also where the sample shows few rows of one."""
    X, y = codes(900)
    X[:, 0] = np.where(X[:, 0] < 4, X[:, 0], 7.0)
    parameters = {
        "sensors": CODED,
        "costs": None,
        "structure": route_by_code(),
        "classifier": "linear",
        "cost_weight": 0.11,
    }
    alone = SensorTreeClassifier(**{**PARAMETERS, **parameters}).fit(X, y)
    model = fitted(X, y.astype(int), 200, **parameters, sample_rows=120)
    assert model.certificate_.upper == pytest.approx(alone.certificate_.upper, rel=1e-9)
    (ours, theirs) = (
        m.policy_.decisions[0].features.parts[-1].transformer for m in (alone, model)
    )
    assert theirs.levels.tolist() == ours.levels.tolist() == [0, 1, 2, 3, 7]


@pytest.mark.parametrize(
    "limits", [{}, {"max_cost": 3.5}, {"max_memory": "1kB"}], ids=str
)
def test_prices_of_rows_are_paid_as_in_memory(limits):
    X, y = made_up()
    prices, weight = prices_of(X), weights_of(y)
    parameters = {**PARAMETERS, "classifier": "linear"}
    limit = {k: v for k, v in limits.items() if k != "max_memory"}
    alone = SensorTreeClassifier(**parameters, **limit).fit(X, y, weight, prices)
    model = fitted(X, y, 400, weight, prices, **limits, classifier="linear")
    assert model.certificate_.upper == pytest.approx(alone.certificate_.upper, rel=1e-9)
    assert model.training_cost_ == pytest.approx(alone.training_cost_)
    np.testing.assert_allclose(model.sensors_.costs, alone.sensors_.costs)
    parts, own = da.from_array(X, chunks=(97, -1)), da.from_array(prices, (50, 2))
    np.testing.assert_array_equal(
        model.acquired(parts, own).compute(), alone.acquired(X, prices)
    )
    np.testing.assert_allclose(
        model.acquisition_cost(X, prices), alone.acquisition_cost(X, prices)
    )
    sampled = fitted(
        X, y, 97, weight, prices, **limits, sample_rows=300, classifier="linear"
    )
    assert sampled.n_sample_ < 400
    assert sampled.certificate_.upper == pytest.approx(
        alone.certificate_.upper, rel=1e-9
    )


def test_columns_of_a_frame_are_weights_and_prices(tmp_path):
    pd = pytest.importorskip("pandas", reason="pandas is absent")
    pytest.importorskip("dask.dataframe", reason="dask.dataframe is absent")
    pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    from sensortree.dask import DaskSensorTreeClassifier

    X, y = made_up(500)
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    frame["fee"] = np.round(np.random.default_rng(0).uniform(1, 3, len(X)), 1)
    sensors = {"first": ["a"], "second": Sensor(["b", "c"], cost="fee"), "third": ["d"]}
    parameters = {"structure": "exhaustive", "classifier": "linear", "outages": False}
    alone = SensorTreeClassifier(sensors, **parameters, program=Program(fallback=False))
    alone.fit(frame, y, weights_of(y))
    written = frame.assign(kind=y, often=weights_of(y))
    for k, part in enumerate(np.array_split(np.arange(len(frame)), 3)):
        written.iloc[part].to_parquet(tmp_path / f"part-{k}.parquet")
    model = DaskSensorTreeClassifier(
        sensors, **parameters, program=Program(fallback=False)
    )
    model.fit(str(tmp_path), "kind", "often")
    assert list(model.feature_names_in_) == list(frame)
    assert model.certificate_.upper == pytest.approx(alone.certificate_.upper, rel=1e-9)
    np.testing.assert_array_equal(model.acquired(frame), alone.acquired(frame))


def test_weights_and_prices_that_cannot_be_are_refused():
    X, y = made_up(300)
    with pytest.raises(DataError, match="weights are finite and at least 0"):
        fitted(X, y, 100, -np.ones(len(y)))
    with pytest.raises(DataError, match="no rows of a weight above 0"):
        fitted(X, y, 100, np.zeros(len(y)))
    with pytest.raises(DataError, match="one weight for each row"):
        fitted(X, y, 100, np.ones(7))
    prices = prices_of(X)
    prices[:, 2] = np.where(np.arange(len(X)) == 5, 1.5, np.nan)
    with pytest.raises(DataError, match="set a larger sample_rows"):
        fitted(X, y, 100, None, prices, sample_rows=100)


def test_with_a_sample_of_all_rows_the_model_is_that_of_a_fit_in_memory():
    X, y = made_up()
    parameters = {**PARAMETERS, "classifier": "linear", "calibrate_leaves": True}
    alone = SensorTreeClassifier(**parameters).fit(X, y)
    model = fitted(X, y, **parameters)
    assert model.tree_ == alone.tree_
    np.testing.assert_array_equal(model.acquired(X), alone.acquired(X))
    np.testing.assert_allclose(model.predict_proba(X), alone.predict_proba(X), 1e-6)
    assert model.training_cost_ == pytest.approx(alone.training_cost_)


# Also where refined decisions err as often as those of the program, and where nothing
# is bought.
@pytest.mark.parametrize(
    ("cost_weight", "n_classes", "seed"), [(0.02, 2, 0), (0.02, 3, 3), (5.0, 2, 2)]
)
def test_with_every_default_on_the_model_is_that_of_a_fit_in_memory(
    cost_weight, n_classes, seed
):
    from sensortree.dask import DaskSensorTreeClassifier

    X, y = made_up(150, n_classes, seed)
    given = {"sensors": SENSORS, "costs": PARAMETERS["costs"]}
    given["cost_weight"] = cost_weight
    alone = SensorTreeClassifier(**given).fit(X, y)
    model = DaskSensorTreeClassifier(**given).fit(*in_parts(X, y, 97))
    assert model.tree_ == alone.tree_
    assert model.decision_report_.kept == alone.decision_report_.kept
    assert model.decision_report_.risk == pytest.approx(alone.decision_report_.risk)
    assert model.fallback_leaf_ == alone.fallback_leaf_
    assert set(model.policy_.around) == set(alone.policy_.around)
    np.testing.assert_array_equal(model.acquired(X), alone.acquired(X))
    np.testing.assert_allclose(model.predict_proba(X), alone.predict_proba(X), 1e-6)


@pytest.mark.parametrize("n_rows", [97, 5_000])
def test_neither_partitions_nor_the_order_of_rows_change_anything(n_rows):
    X, y = made_up()
    model = fitted(X, y, classifier="linear", sample_rows=300)
    order = np.random.default_rng(1).permutation(len(y))
    other = fitted(X[order], y[order], n_rows, classifier="linear", sample_rows=300)
    assert other.certificate_ == model.certificate_
    np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))


def test_leaves_that_are_no_sums_are_fitted_to_the_sample():
    X, y = made_up(500)
    model = fitted(X, y, structure="cascade", classifier="boosted", sample_rows=200)
    assert model.certificate_.converged
    assert (model.predict(X) == y).mean() > 0.6


def test_a_learned_tree_is_that_of_the_sample():
    X, y = made_up(500)
    parameters = {"structure": "chain", "classifier": "linear", "program": None}
    alone = SensorTreeClassifier(**{**PARAMETERS, **parameters}).fit(X, y)
    assert fitted(X, y, **parameters).tree_ == alone.tree_


def test_a_folder_of_parquet_is_read_and_y_named(tmp_path):
    pd = pytest.importorskip("pandas", reason="pandas is absent")
    dd = pytest.importorskip("dask.dataframe", reason="dask.dataframe is absent")
    pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    from sensortree.dask import DaskSensorTreeClassifier

    X, y = made_up(500)
    names = ["a", "b", "c", "d"]
    frame = pd.DataFrame(X, columns=names)
    frame["kind"] = np.array(["no", "maybe", "yes"])[y]
    (tmp_path / "rows").mkdir()
    for k, part in enumerate(np.array_split(np.arange(len(frame)), 3)):
        frame.iloc[part].to_parquet(tmp_path / "rows" / f"part-{k}.parquet")
    model = DaskSensorTreeClassifier(structure="cascade", classifier="linear")
    model.fit(str(tmp_path / "rows"), "kind")
    assert model.about_.target == "kind"
    assert list(model.feature_names_in_) == names
    again = dd.read_parquet(tmp_path / "rows").drop(columns=["kind"])
    np.testing.assert_array_equal(
        model.predict(again).compute(), model.predict(frame[names])
    )


def test_predictions_of_collections_are_collections_and_models_are_plain(tmp_path):
    X, y = made_up(500)
    model = fitted(X, y, classifier="linear")
    parts, _ = in_parts(X, y, 100)
    for method in ("predict", "predict_proba", "acquired", "acquisition_cost"):
        said = getattr(model, method)(parts)
        assert isinstance(said, da.Array)
        np.testing.assert_array_equal(said.compute(), getattr(model, method)(X))
    save(model, tmp_path / "model.json")
    np.testing.assert_array_equal(
        load(tmp_path / "model.json").predict(X), model.predict(X)
    )


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"max_memory": "2 apples"}, ParameterError, "2 apples"),
        ({"program": Program(solver="highs")}, ParameterError, "must be 'structured'"),
        ({"refer_cost": 0.1}, ParameterError, "refer_cost"),
        ({"sample_rows": 1}, ParameterError, "sample_rows"),
    ],
)
def test_what_cannot_be_done_in_chunks_is_refused(change, error, said):
    X, y = made_up(300)
    with pytest.raises(error, match=said):
        fitted(X, y, **change)


def test_rows_in_memory_and_names_that_are_not_there_are_refused():
    from sensortree.dask import DaskSensorTreeClassifier

    X, y = made_up(300)
    with pytest.raises(DataError, match="For rows in memory"):
        DaskSensorTreeClassifier().fit(X, y)
    with pytest.raises(DataError, match="one class for each row"):
        DaskSensorTreeClassifier().fit(in_parts(X, y, 100)[0], da.zeros(7))


# on workers: last, since a client that is there is used -----------------------------------


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_chunks_on_workers_are_solved_to_the_same_bits(client):
    from sensortree.outofcore.workers import OnWorkers

    rows = OnWorkers(client, sources())
    assert len({share.worker for share in rows.shares}) == 2
    same(solve_rows(rows, l2=1.0), solve(PROBLEM, l2=1.0))
    assert not rows.made_again
    rows.close()


@pytest.mark.parametrize("penalty", PENALTIES[:2], ids=str)
def test_chunks_that_are_lost_in_the_middle_of_a_step_are_made_anew(client, penalty):
    from sensortree.outofcore import workers

    rows = workers.OnWorkers(client, sources())
    tell = rows.tell

    def lose_one(task, *arguments):
        if len(rows.log) == 40:
            del workers._STORE[rows.run, 1]
        return tell(task, *arguments)

    rows.tell = lose_one
    same(solve_rows(rows, **penalty), solve(PROBLEM, **penalty))
    assert rows.made_again == 1
    rows.close()
    assert not any(run == rows.run for run, _ in workers._STORE)


def test_workers_and_files_give_the_same_model(client):
    X, y = made_up(400)
    on_workers = fitted(X, y, classifier="linear", sample_rows=300)
    in_files = fitted(X, y, classifier="linear", sample_rows=300, max_memory="1kB")
    assert in_files.certificate_.upper == pytest.approx(
        on_workers.certificate_.upper, rel=1e-12
    )
    np.testing.assert_allclose(
        in_files.predict_proba(X), on_workers.predict_proba(X), rtol=1e-9
    )


# workers that die -------------------------------------------------------------------------


@pytest.mark.slow
def test_a_worker_killed_in_the_middle_changes_nothing():
    from sensortree.outofcore.workers import OnWorkers

    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        rows = OnWorkers(client, sources())
        victim = next(iter(client.run(os.getpid).values()))

        def kill_once(progress):
            if progress.iteration == 5 and not rows.made_again:
                threading.Timer(0.05, os.kill, (victim, signal.SIGKILL)).start()

        solved = solve_rows(rows, l2=1.0, callback=kill_once)
        assert rows.made_again
        same(solved, solve(PROBLEM, l2=1.0))


@pytest.mark.slow
def test_a_worker_killed_while_a_classifier_is_fitted_changes_nothing():
    X, y = made_up()
    alone = fitted(X, y, classifier="linear", sample_rows=300)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        victim = next(iter(client.run(os.getpid).values()))
        threading.Timer(4.0, os.kill, (victim, signal.SIGKILL)).start()
        model = fitted(X, y, classifier="linear", sample_rows=300)
        assert victim not in client.run(os.getpid).values()
    assert model.certificate_.upper == pytest.approx(
        alone.certificate_.upper, rel=1e-12
    )
    np.testing.assert_allclose(model.predict_proba(X), alone.predict_proba(X), 1e-9)
