"""Rows that are sent to a device give what they give here."""

import json
import sys

import numpy as np
import pytest
from spaces import SPACES

import expost
from expost._common.namespaces import Space
from expost.data.placed import OnDevice
from expost.exceptions import DomainError, ExpostError, MissingExtraError
from expost.fitting.prediction import Predictors

RANDOM = np.random.default_rng(5)
X = RANDOM.normal(size=(3000, 4))
Y = (X @ [1.0, -1.0, 0.5, 0.0] + RANDOM.normal(size=3000) > 0.0).astype(int)
CLASSES = RANDOM.integers(0, 3, 3000)


@pytest.fixture(autouse=True)
def short_blocks(monkeypatch):
    monkeypatch.setattr("expost.data.placed._SENT", 3000)


def device_of(place):
    """An array that lies on the device."""
    return place(np.zeros(1))


@pytest.mark.parametrize("place", SPACES)
@pytest.mark.parametrize("classes", [[0, 1], [0, 1, 2]])
def test_a_table_in_memory_that_is_sent(place, classes, remembered):
    y = Y if len(classes) == 2 else CLASSES
    sent = expost.scan(X, device=device_of(place))
    models = [expost.LogisticRegression(norm=1.0, classes=classes, random_state=3) for _ in range(2)]
    here, there = models[0].fit(X, y), models[1].fit(sent, y)
    np.testing.assert_allclose(there.coef_, here.coef_, rtol=0.0, atol=1e-9)
    losses = there.ex_post_losses(sent, y)
    assert isinstance(losses, np.ndarray)
    np.testing.assert_allclose(losses, here.ex_post_losses(X, y), rtol=1e-8, atol=1e-13)
    np.testing.assert_allclose(there.predict_proba(sent), here.predict_proba(X), rtol=1e-8)
    publication = there.publication_
    wanted = here.publication_.bounds(X, y)
    np.testing.assert_allclose(publication.bounds(sent, y).total, wanted.total, rtol=1e-8)


@pytest.mark.parametrize("place", SPACES)
def test_files_that_are_sent(place, tmp_path, monkeypatch):
    import polars

    monkeypatch.setattr("expost.data.lazy_source.MOST_KEPT", 0)  # read in every pass
    monkeypatch.setattr("expost.data.lazy_source.CHUNK_ROWS", 700)
    frame = polars.DataFrame(dict(zip("abcd", X.T, strict=True))).with_columns(y=polars.Series(Y))
    path = tmp_path / "people.parquet"
    frame.write_parquet(path, row_group_size=1000)
    sent = expost.scan(path, device=device_of(place))
    models = [expost.LogisticRegression(norm=1.0, classes=[0, 1], random_state=3) for _ in range(2)]
    here, there = models[0].fit(path, "y"), models[1].fit(sent, "y")
    np.testing.assert_allclose(there.coef_, here.coef_, rtol=0.0, atol=1e-9)
    losses = there.ex_post_losses(sent, "y")
    np.testing.assert_allclose(losses, here.ex_post_losses(path, "y"), rtol=1e-8, atol=1e-13)


@pytest.mark.arrays
def test_devices_by_name():
    pytest.importorskip("torch")
    model = expost.LinearRegression(norm=1.0, outcome=(-1, 1), random_state=1)
    sent = model.fit(expost.scan(X, device="cpu"), X[:, 0]).coef_
    np.testing.assert_allclose(sent, model.fit(X, X[:, 0]).coef_, rtol=0.0, atol=1e-9)
    with pytest.raises(ExpostError, match="`device` must be a device that PyTorch finds"):
        expost.scan(X, device="abacus")


@pytest.mark.arrays
def test_what_cannot_be_sent_is_refused():
    torch = pytest.importorskip("torch")
    with pytest.raises(ExpostError, match="fitted there as it is"):
        expost.scan(torch.zeros(3, 2), device="cpu")
    with pytest.raises(DomainError, match="Leave out one of them"):
        expost.scan("people.parquet", client=object(), device="cpu")
    with pytest.raises(DomainError, match="with `device`, it may be in memory too"):
        expost.scan(X)


@pytest.mark.parametrize("place", SPACES)
@pytest.mark.parametrize("kind", ["f4", "f2", "i1", "bool", "F", "sparse", "frame"])
def test_rows_of_any_kind_are_sent(place, kind, remembered):
    import polars
    import scipy.sparse

    table = np.round(2.0 * X)
    table = {
        "F": lambda: np.asfortranarray(table),
        "sparse": lambda: scipy.sparse.csr_array(table),
        "frame": lambda: polars.DataFrame(table, schema=list("abcd")),
    }.get(kind, lambda: table.astype(kind))()
    model = expost.LogisticRegression(norm=1.0, classes=[0, 1], random_state=3)
    here = model.fit(table, Y).coef_
    there = model.fit(expost.scan(table, device=device_of(place)), Y).coef_
    np.testing.assert_allclose(there, here, rtol=0.0, atol=1e-9)


@pytest.mark.arrays
def test_commands_send_rows(tmp_path):
    pytest.importorskip("torch")
    from ward import run, ward

    domain, table = ward(tmp_path)
    publication, losses = tmp_path / "p.json", tmp_path / "private.csv"
    assert run("fit", domain, table, "-o", publication, "--losses", losses, "--device", "cpu").exit_code == 0
    again = tmp_path / "private-again.csv"
    assert run("losses", publication, table, "-o", again).exit_code == 0
    first, second = (np.genfromtxt(path, delimiter=",", skip_header=1)[:, -1] for path in (losses, again))
    np.testing.assert_allclose(first, second, rtol=1e-6)
    told = [run("bounds", publication, table, "--json", *more).stdout for more in ([], ["--device", "cpu"])]
    here, there = (json.loads(one)["total"] for one in told)
    np.testing.assert_allclose(there, here, rtol=1e-8)
    refused = run("bounds", publication, table, "--device", "abacus")
    assert refused.exit_code == 1
    assert "`device` must be a device that PyTorch finds" in refused.stderr


def test_a_device_by_its_name_needs_pytorch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"its name needs PyTorch.*pip install 'expost\[gpu\]'"):
        Space.named("cuda")


@pytest.mark.parametrize("place", SPACES)
def test_a_part_without_rows_has_no_predictors(place):
    work = Predictors(np.ones((3, 2)))
    found = OnDevice(work, Space.of(place(np.zeros(1))))(iter(()))
    np.testing.assert_array_equal(found, work(iter(())))
