"""Tables from files: what was written is read, no type is guessed, and files of any size fit alike."""

import threading

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from grids import grid
from problems import hides_its_cause

import expost
from expost import Category, ClassLabel, Number, NumberLabel, YesNo
from expost.data import files as files_module, lazy_source
from expost.data.blocks import as_dense
from expost.data.columns import split_columns
from expost.data.encoding import encode_records
from expost.data.file_blocks import returning_memory
from expost.data.files import FilePiece
from expost.data.lazy_source import LazySource
from expost.data.sources import ArraySource
from expost.data.tables import open_table, scan
from expost.data.weights import Declared
from expost.exceptions import DomainError, ExpostError, FileError, ParameterError

DOMAIN = expost.Domain(
    features=(Number(name="a", low=0.0, high=8.0), Number(name="b", low=0.0, high=8.0)),
    label=ClassLabel(name="y", classes=("0", "1")),
)
PEOPLE = expost.Domain(
    features=(
        Number(name="age", low=0.0, high=100.0, missing=40.0),
        Category(name="ward", categories=("north", "south"), missing="north"),
        YesNo(name="smoker"),
    ),
    label=ClassLabel(name="ill", classes=("no", "yes")),
)
SECRET = "Mrs Jones 1.5"


def people(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "id": np.arange(n),
            "age": rng.integers(0, 120, n).astype(float),
            "ward": rng.choice(["north", "south"], n),
            "smoker": rng.choice(["Yes", "no ", "1"], n),
            "ill": rng.choice(["no", "yes"], n),
        }
    )
    frame.loc[::50, "age"] = np.nan
    frame.loc[::70, "ward"] = None
    return frame


def columns(path):
    (piece,) = scan(path).pieces()
    batches = piece.batches(list(scan(path).kinds), 1000)
    return pa.Table.from_batches(list(batches)).to_pydict()


def test_a_csv_file_is_read_as_text_with_quotes_bom_and_blank_lines(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes('\ufeffa,"b, c"\r\n007,"x\ny"\r\n\r\n,é\r\n'.encode())
    assert columns(path) == {"a": ["007", ""], "b, c": ["x\ny", "é"]}
    assert scan(path).kinds == {"a": None, "b, c": None}


def test_parquet_keeps_types_and_missing_values(tmp_path):
    frame = pd.DataFrame({"n": [1, None], "t": ["x", None], "b": [True, False]})
    frame["c"] = pd.Categorical(["u", "v"])
    frame.to_parquet(tmp_path / "t.parquet")
    assert columns(tmp_path / "t.parquet")["t"] == ["x", None]
    assert columns(tmp_path / "t.parquet")["c"] == ["u", "v"]
    kinds = {"n": "number", "t": "category", "b": "yes_no", "c": "category"}
    assert scan(tmp_path / "t.parquet").kinds == kinds


def test_only_the_names_are_read_for_the_kinds(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\n1,2,3,4\n\xff\n")
    assert scan(path).kinds == {"a": None, "b": None}
    with pytest.raises(FileError):
        columns(path)


def test_blocks_are_no_longer_than_asked_and_row_groups_are_read_in_order(tmp_path, monkeypatch):
    monkeypatch.setattr(files_module, "_PART_ROWS", 250)
    pq.write_table(pa.table({"a": np.arange(1000)}), tmp_path / "t.parquet", row_group_size=100)
    pieces = scan(tmp_path / "t.parquet").pieces()
    assert [piece.row_groups for piece in pieces] == [(0, 1, 2), (3, 4, 5), (6, 7, 8), (9,)]
    batches = [batch for piece in pieces for batch in piece.batches(["a"], 64)]
    assert max(map(len, batches)) == 64
    np.testing.assert_array_equal(np.concatenate([batch["a"] for batch in batches]), np.arange(1000))


def test_a_mapping_of_columns_is_a_table():
    columns = {"b": [1.0, 8.0, 0.0], "a": np.array([4.0, 2.0, 0.0]), "other": ["x", "y", "z"]}
    table = open_table(columns, DOMAIN)
    frame = open_table(pd.DataFrame(columns), DOMAIN)
    np.testing.assert_array_equal(as_dense(table.rows(0, 3)), as_dense(frame.rows(0, 3)))
    np.testing.assert_array_equal(as_dense(table.rows(1, 2)), [[-0.5, 1.0]])
    with pytest.raises(DomainError, match="one length"):
        open_table({"a": [1.0], "b": [1.0, 2.0]}, DOMAIN)
    with pytest.raises(DomainError, match="lacks the column 'b'"):
        open_table({"a": [1.0]}, DOMAIN)


def write_files(frame, folder, kind, pieces=3):
    folder.mkdir()
    for k, part in enumerate(np.array_split(np.arange(len(frame)), pieces)):
        some = frame.iloc[part]
        if kind == "csv":
            some.to_csv(folder / f"part-{k}.csv", index=False)
        else:
            some.to_parquet(folder / f"part-{k}.parquet", index=False, row_group_size=400)
    (folder / "_SUCCESS").touch()
    return folder


@pytest.mark.long
@pytest.mark.parametrize(("kind", "kept"), grid(["csv", "parquet"], [True, False], together=1))
def test_files_give_the_model_of_the_frame(tmp_path, kind, kept, monkeypatch, remembered):
    """Bit for bit where they are held in memory, and to rounding where every pass reads them."""
    frame = people()
    folder = write_files(frame, tmp_path / "table", kind)
    if not kept:
        monkeypatch.setattr(lazy_source, "MOST_KEPT", 0)
        monkeypatch.setattr(files_module, "_PART_ROWS", 500)
    truth = expost.LogisticRegression(domain=PEOPLE, report="leverage", random_state=0)
    truth.fit(frame, frame["ill"])
    losses = truth.ex_post_losses(frame, frame["ill"])
    bounds = truth.publication_.bounds(frame, frame["ill"])
    for table in (folder, f"{folder}/*.{kind}", expost.scan(folder)):
        model = expost.LogisticRegression(domain=PEOPLE, report="leverage", random_state=0).fit(table)
        np.testing.assert_allclose(model.coef_, truth.coef_, rtol=0, atol=0 if kept else 1e-12)
        np.testing.assert_allclose(model.ex_post_losses(table), losses, rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(model.predict(table), truth.predict(frame))
        found = model.publication_.bounds(table)
        np.testing.assert_allclose(found.total, bounds.total, rtol=1e-9)
        assert list(found.to_frame().columns) == ["lower", "upper", "report_cost", "total"]


def test_few_records_are_held_in_memory_and_many_are_not(tmp_path, monkeypatch):
    frame, plan = people(), expost.calibrate(norm=PEOPLE.row_norm, fit_intercept=True)
    people().to_csv(tmp_path / "t.csv", index=False)
    records = encode_records(
        scan(tmp_path / "t.csv"), None, Declared.of(plan, classes=PEOPLE.classes, domain=PEOPLE)
    )
    held = records.checked_for(plan.loss, 1.0)
    assert isinstance(held.source, ArraySource)
    assert held.n_rows == len(frame)
    monkeypatch.setattr(lazy_source, "MOST_KEPT", 1000)
    again = records.checked_for(plan.loss, 1.0)
    assert isinstance(again.source, LazySource)
    assert again.n_rows == len(frame)
    thin = again.thinned(8)
    sampled = sum(thin.sweep(Count()))
    assert 0 < sampled <= len(frame)
    assert sampled == sum(held.thinned(8).sweep(Count()))


class Count:
    """The pass that counts rows."""

    def __call__(self, blocks):
        return sum(len(block.X) for block in blocks)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_everything_has_the_same_bits_whether_records_are_held_or_read_again(
    tmp_path, kind, monkeypatch, remembered
):
    """Down to the Hessian: rows are cut, and results are added, in one way."""
    monkeypatch.setattr(lazy_source, "CHUNK_ROWS", 700)
    monkeypatch.setattr(files_module, "_PART_ROWS", 900)
    folder = write_files(people(), tmp_path / "table", kind)
    found = []
    for most in (1 << 28, 0):
        monkeypatch.setattr(lazy_source, "MOST_KEPT", most)
        model = expost.LogisticRegression(domain=PEOPLE, report="leverage", random_state=0).fit(folder)
        bounds = model.publication_.bounds(folder)
        found.append(
            [model._private.hessian, model._private.gradient, model.ex_post_losses(folder), *bounds.figures]
        )
    for held, read in zip(*found, strict=True):
        np.testing.assert_array_equal(read, held)


@pytest.mark.parametrize("change", ["a cell", "a row", "the order"])
def test_a_table_that_changes_between_passes_is_refused(tmp_path, change, monkeypatch):
    monkeypatch.setattr(lazy_source, "MOST_KEPT", 0)
    frame = people(200)
    frame.to_parquet(tmp_path / "t.parquet")
    other = {"a cell": frame.assign(age=frame["age"] + 1.0), "a row": frame[1:], "the order": frame[::-1]}
    original, reads = FilePiece.batches, []

    def changing(piece, *rest):
        reads.append(1)
        if len(reads) == 2:
            other[change].to_parquet(tmp_path / "t.parquet")
        return original(piece, *rest)

    monkeypatch.setattr(FilePiece, "batches", changing)
    with pytest.raises(DomainError, match="the table changed while it was in use"):
        expost.LogisticRegression(domain=PEOPLE).fit(tmp_path / "t.parquet")


@pytest.mark.parametrize("call", ["a fit that holds it", "the last pass", "losses", "bounds", "predictions"])
def test_a_file_that_is_rewritten_while_it_is_read_is_refused(tmp_path, call, monkeypatch):
    monkeypatch.setattr("expost.data.file_blocks.CSV_BYTES", 1 << 10)
    path = tmp_path / "t.csv"
    people(500).to_csv(path, index=False)
    model = expost.LogisticRegression(domain=PEOPLE, random_state=0).fit(path)
    original, opened = files_module.read_csv, []
    monkeypatch.setattr(files_module, "read_csv", lambda *a, **b: opened.append(1) or original(*a, **b))
    if call == "the last pass":
        monkeypatch.setattr(lazy_source, "MOST_KEPT", 0)
        expost.LogisticRegression(domain=PEOPLE, random_state=0).fit(path)
    last, seen = max(len(opened), 1), []

    def rewriting(*args, **options):
        seen.append(1)
        for place, run in enumerate(original(*args, **options)):
            if len(seen) == last and place == 1:
                people(500).assign(ill="no").to_csv(path, index=False)
            yield run

    monkeypatch.setattr(files_module, "read_csv", rewriting)
    calls = {
        "losses": lambda: model.ex_post_losses(path),
        "bounds": lambda: model.publication_.bounds(path),
        "predictions": lambda: model.predict(path),
    }
    again = expost.LogisticRegression(domain=PEOPLE, random_state=0)
    with pytest.raises(DomainError, match="the table changed while it was in use"):
        calls.get(call, lambda: again.fit(path))()


def test_a_pass_that_fails_leaves_no_thread_and_arrows_pool_as_it_was(tmp_path):
    before, threads = pa.default_memory_pool().backend_name, threading.active_count()
    frame = pd.DataFrame({"u": [0.1, np.nan] * 200_000, "y": [0, 1] * 200_000})
    frame.to_parquet(tmp_path / "t.parquet")
    with pytest.raises(DomainError, match="must be finite") as caught:
        expost.LogisticRegression(norm=1.0, classes=[0, 1]).fit(tmp_path / "t.parquet")
    assert caught.value.__traceback__ is not None  # a notebook keeps it
    assert pa.default_memory_pool().backend_name == before
    assert threading.active_count() == threads


def test_matrix_free_fits_have_the_same_bits_held_and_read_again(tmp_path, monkeypatch):
    from expost.fitting.solvers import minimize

    monkeypatch.setitem(minimize.__globals__, "LARGEST_DENSE_DIMENSION", 0)
    people(400).to_parquet(tmp_path / "t.parquet")
    found = []
    for most in (1 << 28, 0):
        monkeypatch.setattr(lazy_source, "MOST_KEPT", most)
        model = expost.LogisticRegression(domain=PEOPLE, random_state=0).fit(tmp_path / "t.parquet")
        found.append([model._private.hessian, model._private.gradient, model._private.coefficients])
    for held, read in zip(*found, strict=True):
        np.testing.assert_array_equal(read, held)


def test_files_of_uneven_sizes_share_one_limit(tmp_path, monkeypatch):
    people(2000).to_parquet(tmp_path / "a.parquet")
    for k in range(20):
        people(1, seed=k).to_parquet(tmp_path / f"b-{k}.parquet")
    plan = expost.calibrate(norm=PEOPLE.row_norm, fit_intercept=True)
    records = encode_records(scan(tmp_path), None, Declared.of(plan, classes=PEOPLE.classes, domain=PEOPLE))
    for most, kept in ((60_000, True), (30_000, False)):
        monkeypatch.setattr(lazy_source, "MOST_KEPT", most)
        assert isinstance(records.checked_for(plan.loss, 1.0).source, ArraySource) == kept


@pytest.mark.parametrize("classes", [[0, 1], [False, True]])
@pytest.mark.parametrize("kind", [int, bool])
def test_classes_that_are_equal_are_the_same_in_files(tmp_path, classes, kind):
    y = np.arange(60) % 3 == 0
    frame = pd.DataFrame({"u": np.linspace(-1, 1, 60), "y": y.astype(kind)})
    frame.to_parquet(tmp_path / "t.parquet")
    truth = expost.LogisticRegression(norm=1.0, classes=classes, random_state=0).fit(frame[["u"]], frame["y"])
    model = expost.LogisticRegression(norm=1.0, classes=classes, random_state=0).fit(tmp_path / "t.parquet")
    np.testing.assert_array_equal(model.coef_, truth.coef_)


def test_a_file_is_read_once_where_its_records_are_held(tmp_path, monkeypatch):
    people().to_csv(tmp_path / "t.csv", index=False)
    reads = []
    original = FilePiece.batches
    monkeypatch.setattr(FilePiece, "batches", lambda *rest: reads.append(1) or original(*rest))
    expost.LogisticRegression(domain=PEOPLE).fit(tmp_path / "t.csv")
    assert len(reads) == 1


def test_parquet_columns_of_numbers_need_no_domain(tmp_path):
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(500, 3)), rng.integers(0, 2, 500)
    weights = rng.uniform(0, 1, 500)
    frame = pd.DataFrame(X, columns=["u", "v", "w"]).assign(weight=weights, y=y)
    frame.to_parquet(tmp_path / "t.parquet")
    truth = expost.LogisticRegression(norm=1.0, classes=[0, 1], random_state=0)
    truth.fit(frame[["u", "v", "w"]], y, sample_weight=weights)
    model = expost.LogisticRegression(norm=1.0, classes=[0, 1], random_state=0)
    model.fit(tmp_path / "t.parquet", sample_weight="weight")
    np.testing.assert_array_equal(model.coef_, truth.coef_)
    assert model.feature_names_in_.tolist() == ["u", "v", "w"]
    np.testing.assert_allclose(
        model.ex_post_losses(tmp_path / "t.parquet", "y", sample_weight="weight"),
        truth.ex_post_losses(frame[["u", "v", "w"]], y, sample_weight=weights),
        rtol=1e-12,
    )
    np.testing.assert_array_equal(
        model.predict(tmp_path / "t.parquet"), truth.predict(frame[["u", "v", "w"]])
    )


def test_a_numeric_outcome_is_read_from_texts(tmp_path):
    domain = expost.Domain(
        features=(Number(name="x", low=0.0, high=1.0),), label=NumberLabel(name="y", low=0.0, high=10.0)
    )
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"x": rng.random(400), "y": 12.0 * rng.random(400)})
    frame.to_csv(tmp_path / "t.csv", index=False)
    truth = expost.LinearRegression(domain=domain, random_state=0).fit(frame, frame["y"])
    model = expost.LinearRegression(domain=domain, random_state=0).fit(tmp_path / "t.csv")
    np.testing.assert_array_equal(model.coef_, truth.coef_)


@pytest.mark.parametrize(
    "text", [" 1.5e2 ", "+3", ".5", "1e400", "nan", "inf", "1_0", "0x10", "nan(1)", "٣", "-0", " "]
)
def test_texts_are_numbers_by_one_rule_however_they_are_read(text):
    """Arrow's conversion and the interpreter's agree on what is a number, what is missing and what is not."""
    from expost.data.values import as_numbers

    def outcome(values):
        try:
            return as_numbers(values, "x").tolist()
        except DomainError as error:
            return str(error)

    assert str(outcome(pa.array([text, "2", ""]))) == str(outcome(np.array([text, "2", ""], dtype=object)))


def test_plain_texts_are_not_converted_by_the_interpreter(monkeypatch):
    from expost.data import values

    monkeypatch.setattr(values, "_number", None)
    monkeypatch.setattr(values, "_text", str)
    np.testing.assert_array_equal(
        values.as_numbers(pa.array(["1.5", " 2e3", "", None, "-7"]), "x"), [1.5, 2000.0, np.nan, np.nan, -7.0]
    )
    places, texts = values.distinct_texts(np.array(["b", "a", None, "b"] * 5, dtype=object), "x")
    assert texts[places].tolist() == ["b", "a", "", "b"] * 5
    assert len(texts) == 3


def broken(folder, name):
    """One way in which a folder of files is no table, and what is said."""
    first = people(50)
    target = folder / "part-1.parquet"
    if name == "cannot be read":
        target.write_bytes(b"PAR1" + SECRET.encode())
    elif name == "lacks a column":
        first.drop(columns="ward").to_parquet(target)
    elif name == "other types":
        first.assign(age=SECRET).to_parquet(target)
    elif name == "both kinds":
        first.to_csv(folder / "part-1.csv")
    elif name == "something else":
        (folder / "notes.txt").write_text(SECRET)
    elif name == "an unknown category":
        first.assign(ward=SECRET).to_parquet(target)
    elif name == "an unknown class":
        first.assign(ill=SECRET).to_parquet(target)
    elif name == "cut short":
        target.write_bytes((folder / "part-0.parquet").read_bytes()[:-200])


SAID = {
    "cannot be read": "'part-1.parquet' is not valid Parquet",
    "lacks a column": "'part-1.parquet' lacks the column 'ward'",
    "other types": r"in 'part-0.parquet' \(number\) and another in 'part-1.parquet' \(category\)",
    "both kinds": "all be CSV or all be Parquet",
    "something else": "must be a .csv or .parquet file; got 'notes.txt'",
    "an unknown category": "`ward` has a category that was never declared",
    "an unknown class": "outside the declared classes",
    "cut short": "'part-1.parquet' is not valid Parquet",
}


@pytest.mark.parametrize("name", SAID)
def test_a_part_that_is_no_part_is_refused_in_one_sentence(tmp_path, name):
    people(50).to_parquet(tmp_path / "part-0.parquet")
    broken(tmp_path, name)
    with pytest.raises(ExpostError, match=SAID[name]) as caught:
        expost.LogisticRegression(domain=PEOPLE).fit(tmp_path)
    assert SECRET not in str(caught.value)
    assert hides_its_cause(caught.value)


def test_a_column_that_is_empty_in_one_file_has_no_type_there(tmp_path):
    people(50).to_parquet(tmp_path / "part-0.parquet")
    people(50).assign(age=None).to_parquet(tmp_path / "part-1.parquet")
    frame = pd.concat([people(50), people(50).assign(age=np.nan)])
    truth = expost.LogisticRegression(domain=PEOPLE, random_state=0).fit(frame, frame["ill"])
    model = expost.LogisticRegression(domain=PEOPLE, random_state=0).fit(tmp_path)
    np.testing.assert_array_equal(model.coef_, truth.coef_)


def test_empty_files_and_folders_are_refused(tmp_path):
    model = expost.LogisticRegression(domain=PEOPLE)
    with pytest.raises(FileError, match="has no file of a table"):
        model.fit(tmp_path)
    (tmp_path / "t.csv").touch()
    with pytest.raises(FileError, match=r"the first line of 't\.csv' must name the columns; it is empty"):
        model.fit(tmp_path / "t.csv")
    (tmp_path / "t.csv").write_text("age,ward,smoker,ill\n")
    with pytest.raises(DomainError, match="at least one row"):
        model.fit(tmp_path / "t.csv")
    (tmp_path / "2021").mkdir()
    with pytest.raises(FileError, match="has a folder in it, '2021', which would be left out"):
        model.fit(tmp_path)
    with pytest.raises(FileError, match="no file that matches"):
        model.fit(str(tmp_path / "*.parquet"))
    with pytest.raises(FileNotFoundError):
        model.fit(tmp_path / "none.parquet")


@pytest.mark.long
def test_what_files_cannot_do_is_refused(tmp_path):
    frame = people(60)
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    with pytest.raises(DomainError, match="CSV files have texts only"):
        expost.LogisticRegression(norm=1.0, classes=[0, 1]).fit(tmp_path / "t.csv")
    with pytest.raises(DomainError, match="the column 'ward' must hold numbers"):
        expost.LogisticRegression(norm=1.0, classes=["no", "yes"]).fit(tmp_path / "t.parquet")
    with pytest.raises(ParameterError, match="`classes` must be declared for files and Dask frames"):
        expost.LogisticRegression(norm=1.0).fit(tmp_path / "t.parquet")
    with pytest.raises(DomainError, match="`y` must be the name of a column or None"):
        expost.LogisticRegression(domain=PEOPLE).fit(tmp_path / "t.csv", frame["ill"])
    with pytest.raises(DomainError, match="`y` must be None or the name of its outcome, 'ill'; got 'ward'"):
        expost.LogisticRegression(domain=PEOPLE).fit(tmp_path / "t.csv", "ward")
    with pytest.raises(DomainError, match="`y` must be the name of a column or None"):
        expost.LogisticRegression(norm=1.0, classes=["no", "yes"]).fit(tmp_path / "t.parquet", frame["ill"])
    with pytest.raises(DomainError, match="a convex model takes a table in memory"):
        expost.ConvexModel(loss=expost.SmoothedNorm(2)).fit(tmp_path / "t.parquet")
    with pytest.raises(DomainError, match="must be the path of files or a Dask DataFrame"):
        expost.scan(frame)
    with pytest.raises(DomainError, match="lacks the column 'w', a declared weight"):
        expost.LogisticRegression(domain=PEOPLE).fit(tmp_path / "t.csv", sample_weight="w")


def test_labels_are_still_required_where_no_file_has_them():
    with pytest.raises(DomainError, match="requires y to be passed"):
        expost.LogisticRegression(norm=1.0, classes=[0, 1]).fit(np.ones((3, 2)))


def test_a_numeric_outcome_of_a_file_needs_no_domain(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(-0.5, 0.5, size=(200, 3)), columns=["a", "b", "cost"])
    frame.to_parquet(tmp_path / "t.parquet")
    model = expost.LinearRegression(norm=1.0, outcome=(-1, 1), random_state=0)
    read = model.fit(scan(tmp_path / "t.parquet")).coef_
    np.testing.assert_allclose(read, model.fit(frame[["a", "b"]], frame["cost"]).coef_, rtol=1e-9)
    model.fit(frame[["a", "b"]].to_numpy(), frame["cost"])  # without names, by which columns would be found
    with pytest.raises(DomainError, match="must have 2 features, as in the fit; got 3"):
        model.predict(scan(tmp_path / "t.parquet"))


def test_records_without_a_column_for_the_outcome_are_refused(tmp_path):
    pd.DataFrame({"a": [1.0], "b": [2.0]}).to_csv(tmp_path / "t.csv", index=False)
    table = scan(tmp_path / "t.csv")
    assert split_columns(table, None, labelled=True) == (("a",), "b")
    with pytest.raises(DomainError, match="lack a column for the outcome; it must be the last"):
        split_columns(table, None, labelled=True, feature_names=["a", "b"])


def test_the_pool_of_arrow_is_restored_by_the_last_reader():
    before = pa.default_memory_pool().backend_name
    with returning_memory():
        with returning_memory():
            assert pa.default_memory_pool().backend_name == "system"
        assert pa.default_memory_pool().backend_name == "system"
    assert pa.default_memory_pool().backend_name == before


def test_a_sample_for_warm_starts_is_spread_over_the_table(tmp_path, monkeypatch):
    """However long the table is, the sample has few rows, from its beginning to its end."""
    monkeypatch.setattr(lazy_source, "_MOST_SAMPLED", 64)
    monkeypatch.setattr(lazy_source, "_SAMPLE_ROWS", 4)
    monkeypatch.setattr(lazy_source, "block_length", lambda width: 8)
    pd.DataFrame({"a": np.arange(800.0), "cost": 0.0}).to_parquet(tmp_path / "t.parquet")
    plan = expost.calibrate(loss="pseudo_huber", norm=1e3)
    records = encode_records(scan(tmp_path / "t.parquet"), "cost", Declared.of(plan))
    sample = records.checked_for(plan.loss, 1.0).source.sample
    firsts = as_dense(next(iter(sample.parts(1)[0].blocks(100))).X)[:, 0][::4]
    assert 8 <= len(firsts) <= 16
    assert len(set(np.diff(firsts))) == 1
    assert firsts[0] == 0.0
    assert firsts[-1] > 600.0
