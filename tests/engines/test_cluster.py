"""On a Dask cluster everything has the bits of this process, and nothing private comes back in an error."""

import sys

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster
from problems import hides_its_cause
from ward import run, ward

import expost
from expost import Category, ClassLabel, Number
from expost.cli.tables import connected
from expost.data import lazy_source
from expost.data.lazy import DaskTable
from expost.data.weights import Declared
from expost.engines import cluster as cluster_module
from expost.engines.base import LOCAL
from expost.engines.cluster import DaskEngine, engine_of
from expost.exceptions import DomainError, EngineError, ExpostError, ParameterError

# Dask itself uses what newer versions of pandas warn about.
pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword")
SECRET = "Mrs Jones 1.5"
DOMAIN = expost.Domain(
    features=(
        Number(name="age", low=0.0, high=100.0, missing=40.0),
        Category(name="ward", categories=("north", "south")),
    ),
    label=ClassLabel(name="ill", classes=("no", "yes")),
)


@pytest.fixture(scope="module")
def client():
    """Two workers in processes of their own, with spilling on, as by default."""
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit="1GiB"
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


def people(n=1200, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(0, 120, n).astype(float),
            "ward": rng.choice(["north", "south"], n),
            "ill": rng.choice(["no", "yes"], n),
            "weight": rng.random(n),
        }
    )
    frame.loc[::50, "age"] = np.nan
    return frame


def folder_of(frame, path, pieces=4):
    path.mkdir()
    for k, rows in enumerate(np.array_split(np.arange(len(frame)), pieces)):
        frame.iloc[rows].to_parquet(path / f"part-{k}.parquet", index=False)
    return path


def everything(table, **arguments):
    """Every figure that is computed from a table's rows."""
    model = expost.LogisticRegression(domain=DOMAIN, report="adaptive", random_state=0)
    model.fit(table, **arguments)
    yield from (model.coef_, model._private.hessian, model._private.gradient, model.publication_.to_json())
    yield model.ex_post_losses(table, **arguments)
    yield from model.publication_.bounds(table, **arguments).figures
    yield model.predict_proba(table)


@pytest.mark.long
@pytest.mark.parametrize(
    "kind",
    ["files", "frame", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("persisted", "shared"))],
)
def test_everything_has_the_bits_of_the_same_parts_run_locally(client, tmp_path, kind):
    folder = folder_of(people(), tmp_path / "table")
    here = there = folder
    if kind != "files":
        here = there = dd.read_parquet(folder)
    if kind == "persisted":
        there = client.persist(there)
    if kind == "shared":  # every partition depends on all
        here = there = here.assign(age=here["age"] + 0.0 * here["age"].max())
    found = everything(expost.scan(there, client=client), sample_weight="weight")
    for one, other in zip(everything(here, sample_weight="weight"), found, strict=True):
        np.testing.assert_array_equal(other, one)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["classes", "number"])
def test_recalibrated_models_have_the_same_bits(client, kind):
    """What rows add is found by the workers, in whole steps: sums do not depend on how rows are cut."""
    frame = pd.DataFrame(np.random.default_rng(3).normal(size=(900, 2)), columns=["a", "b"])
    options = {"norm": 1.0, "recalibrate": True, "random_state": 0}
    if kind == "classes":
        frame["y"] = (frame["a"] > 0.3).astype(int)
        model = expost.LogisticRegression(classes=[0, 1], **options)
    else:
        frame["y"] = np.exp(frame["a"]) - 1.0
        model = expost.LinearRegression(outcome=(-1.0, 3.0), **options)
    here = model.fit(frame[["a", "b"]], frame["y"])
    expected, losses = here.publication_.release, here.ex_post_losses(frame[["a", "b"]], frame["y"])
    lazy = expost.scan(dd.from_pandas(frame, npartitions=5), client=client)
    found = model.fit(lazy, "y")
    assert np.array_equal(found.publication_.release.recalibration, expected.recalibration)
    assert np.array_equal(found.publication_.release.coefficients, expected.coefficients)
    assert found.ex_post_losses(lazy, "y") == pytest.approx(losses, abs=1e-12)


@pytest.mark.long
def test_people_have_the_bits_of_the_same_parts_run_locally(client, tmp_path):
    """A person is in several files, and her files are read by different workers."""
    frame = people(900).assign(who=np.random.default_rng(3).integers(0, 200, 900))
    for part in range(3):
        frame[part * 300 : (part + 1) * 300].to_parquet(tmp_path / f"{part}.parquet")
    domain = DOMAIN.model_copy(update={"person": "who"})
    found = []
    for table in (expost.scan(tmp_path), expost.scan(tmp_path, client=client)):
        model = expost.LogisticRegression(domain=domain, random_state=0).fit(table)
        terms = model.ex_post_losses(table, return_terms=True)
        bounds = model.publication_.bounds(table, groups="who")
        found.append((model.publication_, terms.people.tolist(), terms.loss.tolist(), bounds.total.tolist()))
    assert found[0] == found[1]
    assert found[0][1] == list(dict.fromkeys(frame["who"].tolist()))


def test_a_frame_whose_rows_come_in_another_order_each_time_is_persisted_first(client):
    frame = dd.from_pandas(people(), npartitions=3).shuffle("age", npartitions=2)
    model = expost.LogisticRegression(domain=DOMAIN).fit(expost.scan(client.persist(frame), client=client))
    assert np.all(np.isfinite(model.coef_))


def test_labels_and_weights_of_a_dask_frame_may_be_series(client):
    frame = people()
    lazy = dd.from_pandas(frame, npartitions=3)
    truth = expost.LogisticRegression(domain=DOMAIN, random_state=0)
    truth.fit(frame, frame["ill"], sample_weight=frame["weight"])
    with client.as_current():
        model = expost.LogisticRegression(domain=DOMAIN, random_state=0)
        model.fit(lazy[["age", "ward"]], lazy["ill"], sample_weight=lazy["weight"])
        losses = model.ex_post_losses(lazy, sample_weight="weight")
    np.testing.assert_array_equal(model.coef_, truth.coef_)
    assert losses.shape == (len(frame),)


@pytest.mark.parametrize("cut", ["other partitions", "other rows"])
def test_series_are_paired_by_place_and_never_by_index(client, cut):
    """Files saved without an index have the same one again and again."""
    frame = people().reset_index(drop=True)
    parts = [frame.iloc[:400], frame.iloc[400:800].reset_index(drop=True), frame.iloc[800:]]
    lazy = dd.from_delayed([dask.delayed(part) for part in parts], verify_meta=False)
    labels = dd.from_delayed([dask.delayed(part["ill"].set_axis(part.index[::-1])) for part in parts])
    model = expost.LogisticRegression(domain=DOMAIN, random_state=0).fit(lazy.drop(columns="ill"), labels)
    truth = expost.LogisticRegression(domain=DOMAIN, random_state=0).fit(frame, frame["ill"])
    np.testing.assert_array_equal(model.coef_, truth.coef_)
    np.testing.assert_allclose(
        model.ex_post_losses(lazy.drop(columns="ill"), labels),
        truth.ex_post_losses(frame, frame["ill"]),
        rtol=1e-9,
    )
    wrong = labels.repartition(npartitions=1)
    if cut == "other rows":
        wrong = dd.from_delayed([dask.delayed(part["ill"].iloc[1:]) for part in parts])
    with pytest.raises(DomainError, match="`y` must have as many rows as `X` in every partition"):
        expost.LogisticRegression(domain=DOMAIN).fit(expost.scan(lazy, client=client), "ill").fit(lazy, wrong)


def test_columns_of_numbers_need_no_domain(client):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    frame = pd.DataFrame(X, columns=list("uvw")).assign(y=rng.integers(0, 2, 400))
    truth = expost.LogisticRegression(norm=1.0, classes=[0, 1], random_state=0).fit(X, frame["y"])
    lazy = expost.scan(dd.from_pandas(frame, npartitions=3), client=client)
    model = expost.LogisticRegression(norm=1.0, classes=[0, 1], random_state=0).fit(lazy, "y")
    np.testing.assert_array_equal(model.coef_, truth.coef_)
    with pytest.raises(ParameterError, match="`classes` must be declared for files and Dask frames"):
        expost.LogisticRegression(norm=1.0).fit(lazy, "y")


def test_a_matrix_free_fit_is_the_same_on_a_cluster(client, monkeypatch):
    from expost.fitting.solvers import minimize

    monkeypatch.setitem(minimize.__globals__, "LARGEST_DENSE_DIMENSION", 0)
    frame = people(300)
    lazy = dd.from_pandas(frame, npartitions=2)
    one, other = (
        expost.LogisticRegression(domain=DOMAIN, random_state=0).fit(expost.scan(lazy, client=where))
        for where in (None, client)
    )
    np.testing.assert_array_equal(other.coef_, one.coef_)


def test_a_frame_that_changes_between_passes_is_refused(client, monkeypatch):
    monkeypatch.setattr(lazy_source, "MOST_KEPT", 0)

    def drawn(part):
        return part.sample(frac=0.9)

    lazy = dd.from_pandas(people(), npartitions=2).map_partitions(drawn)
    for where in (None, client):
        with pytest.raises(DomainError, match="the table changed while it was in use"):
            expost.LogisticRegression(domain=DOMAIN).fit(expost.scan(lazy, client=where))


def spoilt(frame, name, secret=SECRET):
    """A lazy frame whose second partition is spoilt; workers do not know this module, only the function."""

    import pandas as pd

    def spoil(part, number):
        if number != 1:
            return part
        if name == "lacks a column":
            return part.drop(columns="ward")
        if name == "other types":
            return part.assign(age=secret)
        if name == "an unknown category":
            return part.assign(ward=secret)
        if name == "no plain type":
            return part.assign(ward=pd.Series([secret, 1.5] * len(part), dtype=object).values[: len(part)])
        raise ValueError(secret)

    parts = [dask.delayed(spoil)(part, number) for number, part in enumerate(frame.to_delayed())]
    return dd.from_delayed(parts, meta=frame._meta, verify_meta=False)


SAID = {
    "lacks a column": "a partition of the Dask frame lacks the column 'ward'",
    "other types": "the column 'age' has one type in the Dask frame and another in a partition",
    "an unknown category": "`ward` has a category that was never declared",
    "no plain type": "must hold one plain type",
    "cannot be computed": "a partition of the Dask frame cannot be computed",
}


@pytest.mark.parametrize("name", SAID)
def test_a_bad_partition_is_refused_in_one_sentence(client, name, capfd):
    lazy = spoilt(dd.from_pandas(people(), npartitions=3), name)
    for where in (None, client):
        with pytest.raises(ExpostError, match=SAID[name]) as caught:
            expost.LogisticRegression(domain=DOMAIN).fit(expost.scan(lazy, client=where))
        assert SECRET not in str(caught.value)
        assert hides_its_cause(caught.value)
    logs = " ".join(str(lines) for lines in client.get_worker_logs().values())
    assert SECRET not in logs
    assert SECRET not in "".join(capfd.readouterr())


def test_workers_may_have_copies_of_the_files(client, tmp_path):
    """Written at other times: on a cluster, records are told apart by checksums."""
    folder = folder_of(people(), tmp_path / "table")
    pieces = expost.scan(folder, client=client).pieces()
    assert [piece.stamp for piece in pieces] == [None] * 4
    assert None not in [piece.stamp for piece in expost.scan(folder).pieces()]


@pytest.mark.long
def test_a_partition_takes_its_own_tasks_along_and_no_others():
    pieces = expost.scan(dd.from_pandas(people(), npartitions=600)).pieces()
    assert len(pieces) == 600
    assert max(len(piece.frame.args[0]) for piece in pieces) <= 2


def test_an_error_of_shared_tasks_is_not_repeated(client):
    """A frame of the scheduler's own: its error reached the driver, and goes no further."""
    lazy = spoilt(dd.from_pandas(people(), npartitions=3).shuffle("age"), "cannot be computed")
    with pytest.raises(ExpostError) as caught:
        expost.LogisticRegression(domain=DOMAIN).fit(expost.scan(lazy, client=client))
    assert SECRET not in str(caught.value)
    assert hides_its_cause(caught.value)


def test_a_file_that_a_worker_cannot_open_is_named_by_its_error(client, tmp_path):
    folder = folder_of(people(), tmp_path / "table")
    table = expost.scan(folder, client=client)
    declared = Declared.of(expost.calibrate(norm=DOMAIN.row_norm), classes=DOMAIN.classes, domain=DOMAIN)
    records = expost.data.encoding.encode_records(table, None, declared)
    (folder / "part-2.parquet").unlink()
    with pytest.raises(EngineError, match=r"cannot read a part of the table \(No such file or directory\)"):
        records.checked_for(expost.LogisticLoss(), 1.0)


class Broken:
    """A pass that fails."""

    def __init__(self, kind):
        self.kind = kind

    def __call__(self, blocks):
        raise self.kind(SECRET)


class Sum:
    """A pass that adds numbers up."""

    def __call__(self, blocks):
        return sum(blocks)


class Numbers:
    """A part whose blocks are numbers."""

    def __init__(self, start):
        self.start = start

    def blocks(self, length):
        yield from range(self.start, self.start + length)


def test_results_come_in_order_and_unexpected_errors_tell_their_type_only(client):
    engine = DaskEngine(client)
    parts = [Numbers(k) for k in range(70)]
    assert list(engine.map(Sum(), parts, 2)) == [2 * k + 1 for k in range(70)]
    for kind in (RuntimeError, SystemExit, KeyboardInterrupt):
        with pytest.raises(EngineError, match=rf"a pass failed on a worker \({kind.__name__}\)") as caught:
            list(engine.map(Broken(kind), parts, 2))
        assert SECRET not in str(caught.value)


def test_workers_are_told_not_to_write_to_their_disks(client):
    engine_of(client)

    def thresholds(dask_worker):
        manager = dask_worker.memory_manager
        return manager.memory_target_fraction, manager.memory_spill_fraction, dask_worker.data.n

    assert set(client.run(thresholds).values()) == {(False, False, sys.maxsize)}


def test_the_current_client_is_taken_for_frames_only(client, tmp_path):
    lazy = dd.from_pandas(people(), npartitions=2)
    assert expost.scan(lazy).engine is LOCAL
    with client.as_current():
        assert expost.scan(lazy).engine.client is client
        assert expost.scan(folder_of(people(), tmp_path / "table")).engine is LOCAL
    with pytest.raises(ParameterError, match="`client` must be a client of a Dask cluster"):
        expost.scan(lazy, client="tcp://127.0.0.1:8786")


def test_noise_is_drawn_once_and_never_on_a_worker(client, monkeypatch):
    from expost.fitting import noise

    drawn = []
    original = noise.ExactNoise.tilt
    monkeypatch.setattr(
        noise.ExactNoise, "tilt", lambda *rest, **more: drawn.append(1) or original(*rest, **more)
    )
    lazy = expost.scan(dd.from_pandas(people(), npartitions=3), client=client)
    expost.LogisticRegression(domain=DOMAIN).fit(lazy)
    assert drawn == [1]
    assert dask.config.get("scheduler", None) is None


@pytest.mark.long
def test_commands_use_a_cluster(client, tmp_path):
    domain, records = ward(tmp_path)
    folder = folder_of(pd.read_csv(records), tmp_path / "table")
    there = ["--dask", client.scheduler.address]
    publication, losses = tmp_path / "p.json", tmp_path / "private.csv"
    fitted = run("fit", domain, folder, "-o", publication, "--losses", losses, *there)
    assert fitted.exit_code == 0, fitted.output
    again, bounds = tmp_path / "private-again.csv", tmp_path / "bounds.csv"
    assert run("losses", publication, folder, "-o", again, *there).exit_code == 0
    assert run("bounds", publication, folder, "-o", bounds, *there).exit_code == 0
    assert len(pd.read_csv(bounds)) == len(pd.read_csv(records))
    # What the curator kept in memory and what she recomputes differ by rounding.
    first, second = (pd.read_csv(path)["ex_post_loss"] for path in (losses, again))
    np.testing.assert_allclose(second, first, rtol=1e-6, atol=1e-9)
    here = tmp_path / "private-here.csv"
    assert run("losses", publication, folder, "-o", here).exit_code == 0
    assert here.read_bytes() == again.read_bytes()


@pytest.mark.long
def test_commands_answer_for_people_with_the_bytes_of_this_process(client, tmp_path):
    """People are split over the files, and so over the workers."""
    domain, records = ward(tmp_path)
    domain.write_text('person = "patient"\n' + domain.read_text())
    table = pd.read_csv(records)
    folder = folder_of(table.assign(patient=np.arange(len(table)) % 37), tmp_path / "table")
    there = ["--dask", client.scheduler.address]
    fitted = run(
        "fit", domain, folder, "-o", tmp_path / "p.json", "--losses", tmp_path / "private.csv", *there
    )
    assert fitted.exit_code == 0, fitted.output
    assert len(pd.read_csv(tmp_path / "private.csv")) == 37
    files = tmp_path / "private-here.csv", tmp_path / "private-there.csv"
    for file, more in zip(files, ([], there), strict=True):
        read = run("losses", tmp_path / "p.json", folder, "--person", "patient", "-o", file, *more)
        assert read.exit_code == 0, read.output
    assert files[0].read_bytes() == files[1].read_bytes()


def test_a_cluster_without_workers_or_a_closed_client_is_refused(monkeypatch):
    monkeypatch.setattr(cluster_module, "_PATIENCE", 0.2)
    with LocalCluster(n_workers=0, dashboard_address=":0") as cluster:
        client = Client(cluster, set_as_default=False)
        with pytest.raises(
            EngineError, match=r"did not finish a pass \(.*Timeout.*\). See that it has workers"
        ):
            list(DaskEngine(client).map(Sum(), [Numbers(1)], 2))
        client.close()
        with pytest.raises(EngineError, match="did not finish a pass"):
            list(DaskEngine(client).map(Sum(), [Numbers(1)], 2))
        with pytest.raises(ParameterError, match="must be connected and not asynchronous"):
            engine_of(client)


def test_a_connection_that_leaves_this_machine_unencrypted_is_warned_of(client, monkeypatch, capsys):
    for here, said in ((True, False), (False, True)):
        monkeypatch.setattr("expost.cli.tables._is_here", lambda address, here=here: here)
        with connected(client.scheduler.address) as found:
            assert found is not None
        told = " ".join(capsys.readouterr().err.split())
        assert (
            "what travels to the workers is private, and this connection is not encrypted" in told
        ) == said


def test_kinds_are_those_of_the_columns_and_names_must_be_texts():
    frame = pd.DataFrame({"smoker": [True, False], "age": [40, 50], "ward": ["north", "south"]})
    table = DaskTable.of(dd.from_pandas(frame, npartitions=1), LOCAL)
    assert table.kinds == {"smoker": "yes_no", "age": "number", "ward": "category"}
    with pytest.raises(DomainError, match="columns of a Dask frame must be named by different texts; rename"):
        DaskTable.of(dd.from_pandas(frame.rename(columns={"age": 1}), npartitions=1), LOCAL)
