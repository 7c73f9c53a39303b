"""Whose a row is: ids of every kind, and the same figures wherever the rows lie."""

import pickle

import array_api_strict
import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pytest
from problems import hides_its_cause
from sklearn.base import clone

import expost
from expost import Category, ClassLabel, Domain, Number
from expost.data.people import People, alike
from expost.exceptions import DomainError, ParameterError

RANDOM = np.random.default_rng(30)
IDS = RANDOM.integers(100, 160, 400)
X = RANDOM.uniform(-0.5, 0.5, size=(400, 3))
Y = RANDOM.integers(0, 2, 400)
FIRST = list(dict.fromkeys(IDS.tolist()))

KINDS = {
    "integers": IDS,
    "small": IDS.astype(np.uint8),
    "floats that are whole": IDS.astype(float),
    "a list": IDS.tolist(),
    "texts": IDS.astype(str),
    "objects": IDS.astype(str).astype(object),
    "pandas": pd.Series(IDS),
    "nullable": pd.Series(IDS, dtype="Int64"),
    "categories": pd.Series(IDS.astype(str), dtype="category"),
    "arrow": pa.array(IDS.astype(str)),
    "chunked": pa.chunked_array([IDS[:100], IDS[100:]]),
    "dictionary": pa.array(IDS.astype(str)).dictionary_encode(),
    "polars": polars.Series(IDS.astype(str)),
    "pandas on arrow": pd.Series(IDS, dtype="int64[pyarrow]"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_ids_of_every_kind_in_the_order_of_first_appearance(kind):
    people = People.of(KINDS[kind], 400)
    assert [str(one) for one in people.ids] == [str(one) for one in FIRST]
    assert [FIRST[code] for code in people.codes] == IDS.tolist()
    assert people.counts.sum() == 400
    for numbers, each, places in alike(people.codes, people.counts):
        rows = places.reshape(-1, each)
        assert np.all(IDS[rows] == np.array(FIRST)[numbers][:, None])
        assert np.all(np.diff(rows, axis=1) > 0)


def test_two_spellings_are_two_people_and_equal_numbers_one():
    assert len(People.of(["P1", "p1", " P1", "1", "01"])) == 5
    assert len(People.of(np.array([1, 1.0, 2], dtype=object))) == 2
    assert len(People.of(np.array(["1", 1], dtype=object))) == 2
    assert len(People.joined([People.of(np.array([1.0, 2.0])), People.of(np.array([2, 1]))])) == 2


NO_IDS = {
    "missing": [1.0, np.nan, 2.0],
    "none": ["a", None, "b"],
    "empty": ["a", "", "b"],
    "blank": ["a", "  ", "b"],
    "halves": [1.0, 1.5, 2.0],
    "infinite": [1.0, np.inf, 2.0],
    "truths": [True, False, True],
    "nullable": pd.Series([1, None, 2], dtype="Int64"),
    "bytes": [b"a", b"b", b"c"],
    "lists": np.array([[1], [2, 3], None], dtype=object),
    "dates": np.array(["2020-01-01"] * 3, dtype="datetime64[D]"),
}


@pytest.mark.parametrize("kind", NO_IDS)
def test_a_row_without_an_id_is_refused_in_one_public_sentence(kind):
    model = expost.LogisticRegression(norm=1.0, classes=[0, 1], unit="person")
    with pytest.raises(DomainError, match="`groups` must say in every row whose it is") as caught:
        model.fit(X[:3], Y[:3], groups=NO_IDS[kind])
    assert "1.5" not in str(caught.value)
    assert hides_its_cause(caught.value)


@pytest.mark.parametrize("groups", [IDS[:-1], [*IDS, 7], IDS[:, None], 3, np.zeros((2, 2))])
def test_groups_of_another_length_or_shape(groups):
    model = expost.LogisticRegression(norm=1.0, classes=[0, 1], unit="person")
    with pytest.raises(DomainError, match="one id for each row") as caught:
        model.fit(X, Y, groups=groups)
    assert not any(str(number) in str(caught.value) for number in (400, 399, 401))


def test_groups_and_unit_go_together():
    with pytest.raises(ParameterError, match="`groups` must be given"):
        expost.LogisticRegression(norm=1.0, classes=[0, 1], unit="person").fit(X, Y)
    with pytest.raises(ParameterError, match="`groups` must be left out"):
        expost.LogisticRegression(norm=1.0, classes=[0, 1]).fit(X, Y, groups=IDS)


def fitted(**options):
    model = expost.LogisticRegression(norm=1.0, classes=[0, 1], unit="person", random_state=0, **options)
    return model.fit(X, Y, groups=IDS)


def test_more_rows_than_declared_is_no_refusal():
    few, many = fitted(rows_per_person=2), fitted(rows_per_person=1_000_000)
    assert np.linalg.norm(few.coef_) != np.linalg.norm(many.coef_)
    assert fitted(rows_per_person=1).coef_.tolist() == fitted().coef_.tolist()


def test_ids_are_nowhere_but_in_private_results():
    secret = np.array([f"secret-{one}" for one in IDS])
    model = expost.LogisticRegression(norm=1.0, classes=[0, 1], unit="person").fit(X, Y, groups=secret)
    terms = model.ex_post_losses(X, Y, groups=secret, return_terms=True)
    assert terms.people.tolist() == list(dict.fromkeys(secret.tolist()))
    for library in (None, "polars"):
        frame = terms.to_frame(library)
        assert list(frame.columns) == ["person", "loss", "determinant", "quadratic", "inner_product"]
        assert frame["person"].to_list() == terms.people.tolist()
    shown = [repr(one) for one in (model, terms, People.of(secret), vars(model), pickle.dumps(model))]
    shown.append(model.publication_.to_json())
    assert not any("secret" in one for one in shown)


def as_frame(**ids):
    return pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "who": ids.get("who", IDS), "y": Y})


@pytest.fixture
def folder(tmp_path):
    """The table in three files, with people in several of them."""
    frame = as_frame()
    for part in range(3):
        frame[part * 150 : (part + 1) * 150].to_parquet(tmp_path / f"{part}.parquet", row_group_size=40)
    return tmp_path


@pytest.mark.parametrize("together", [None, 60])
@pytest.mark.parametrize("kept", [True, False])
def test_figures_have_the_bits_of_the_table_in_memory(folder, kept, together, monkeypatch, remembered):
    model = fitted()
    exact, bounds = model.ex_post_losses(X, Y, groups=IDS), model.publication_.bounds(X, Y, groups=IDS)
    if not kept:
        monkeypatch.setattr("expost.data.lazy_source.MOST_KEPT", 0)
        monkeypatch.setattr("expost.data.lazy_source.CHUNK_ROWS", 70)
    if together is not None:  # a few people at a time
        monkeypatch.setattr("expost.data.together._TOGETHER", together)
    model.feature_names_in_ = np.array(["a", "b", "c"], dtype=object)
    found = model.ex_post_losses(folder, "y", groups="who", return_terms=True)
    assert found.people.tolist() == FIRST
    np.testing.assert_array_equal(found.loss, exact)
    read = model.publication_.bounds(as_frame()[["a", "b", "c"]], Y, groups=IDS)
    np.testing.assert_array_equal(read.total, bounds.total)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("compiled", [True, False])
def test_a_persons_bits_are_her_rows_alone(compiled, classes, monkeypatch):
    """Alone, or among any others, read by any number at a time, she has the same loss to the last bit."""
    if not compiled:
        monkeypatch.setattr("expost._common.kernels.library", lambda: None)
    labels = np.arange(400) % classes
    model = expost.LogisticRegression(norm=1.0, classes=range(classes), unit="person", random_state=0)
    model.fit(X, labels, groups=IDS)
    everyone = model.ex_post_losses(X, labels, groups=IDS)
    for place, one in enumerate(FIRST[:20]):
        hers = one == IDS
        alone = model.ex_post_losses(X[hers], labels[hers], groups=IDS[hers])
        np.testing.assert_array_equal(alone, everyone[place : place + 1])


def test_figures_have_the_bits_of_the_host_on_a_device():
    model = fitted()
    place = array_api_strict.asarray
    found = model.ex_post_losses(place(X), place(Y), groups=IDS)
    np.testing.assert_array_equal(np.asarray(found), model.ex_post_losses(X, Y, groups=IDS))
    there = expost.LogisticRegression(norm=1.0, classes=[0, 1], unit="person", random_state=0)
    there.fit(place(X), place(Y), groups=place(IDS))
    np.testing.assert_allclose(there.coef_, model.coef_, atol=1e-9)
    sent = expost.scan(X, device=place(np.zeros(1)))
    np.testing.assert_array_equal(
        model.ex_post_losses(sent, Y, groups=IDS), model.ex_post_losses(X, Y, groups=IDS)
    )


def test_sorted_and_unsorted_rows_have_the_same_losses():
    model, order = fitted(), np.argsort(IDS, kind="stable")
    there = model.ex_post_losses(X, Y, groups=IDS, return_terms=True)
    here = model.ex_post_losses(X[order], Y[order], groups=IDS[order], return_terms=True)
    known = dict(zip(there.people.tolist(), there.loss.tolist(), strict=True))
    np.testing.assert_allclose([known[one] for one in here.people.tolist()], here.loss, rtol=1e-12)


DOMAIN = Domain(
    features=(Number(name="a", low=-0.5, high=0.5), Category(name="ward", categories=("n", "s"))),
    label=ClassLabel(name="y", classes=(0, 1)),
    person="who",
    rows_per_person=3,
)


def test_a_domain_says_whose_rows_are():
    frame = as_frame().assign(ward=np.where(IDS % 2, "n", "s"))
    model = expost.LogisticRegression(domain=DOMAIN, random_state=0).fit(frame)
    assert model.plan_.unit == "person"
    losses = model.ex_post_losses(frame)
    assert len(losses) == len(FIRST)
    arrays = model.ex_post_losses(frame.drop(columns=["who"]), groups=IDS)
    np.testing.assert_array_equal(arrays, losses)
    assert '"who"' not in model.publication_.to_json()
    # Predictions and scores are per row, with the ids and without.
    assert len(model.predict(frame)) == 400
    assert model.score(frame) == model.score(frame.drop(columns=["who"]))
    assert DOMAIN.check(frame).empty
    assert DOMAIN.check(frame.assign(who=frame["who"].where(frame.index != 5))).shape[0] == 1


@pytest.mark.parametrize("workers", [1, 3])
def test_dask_frames_have_the_bits_of_their_parts_in_files(folder, workers, tmp_path):
    dask = pytest.importorskip("dask.dataframe")
    frame = as_frame()
    model = expost.LogisticRegression(norm=1.0, classes=[0, 1], unit="person", random_state=0)
    model.fit(folder, "y", groups="who")
    exact = model.ex_post_losses(folder, "y", groups="who")
    there = dask.from_pandas(frame, npartitions=workers, sort=False)
    np.testing.assert_array_equal(model.ex_post_losses(there, "y", groups="who"), exact)
    np.testing.assert_array_equal(
        model.ex_post_losses(there.drop(columns=["who"]), "y", groups=there["who"]), exact
    )


def test_groups_are_routed_as_metadata():
    import sklearn
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    model = expost.LogisticRegression(norm=1.0, classes=[0, 1], unit="person", rows_per_person=3)
    assert clone(model).get_params() == model.get_params()
    with sklearn.config_context(enable_metadata_routing=True):
        routed = make_pipeline(FunctionTransformer(), clone(model).set_fit_request(groups=True))
        routed.fit(X, Y, groups=IDS)
    assert routed[-1].plan_.unit == "person"
