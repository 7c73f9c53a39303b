"""Rows of other libraries' arrays are those of NumPy's, encoded where they lie."""

from dataclasses import replace
from itertools import chain

import numpy as np
import pytest
from spaces import SPACES, host

from expost._common.namespaces import Space
from expost.data.blocks import ArrayTable
from expost.data.design import Design
from expost.data.placed import PlacedSource
from expost.data.sources import ArraySource, RecordCheck
from expost.data.weights import Declared
from expost.engines.base import LOCAL
from expost.exceptions import DomainError
from expost.losses import LogisticLoss

RANDOM = np.random.default_rng(0)
TABLES = {
    "doubles": RANDOM.normal(size=(300, 4)),
    "floats": RANDOM.normal(size=(300, 4)).astype(np.float32),
    "integers": RANDOM.integers(-3, 4, size=(300, 4), dtype=np.int8),
    "booleans": RANDOM.random((300, 4)) < 0.5,
    "short": RANDOM.normal(size=(300, 4)) / 100.0,
    "extremes": np.diag([1e200, -1.7e308, 1e-300, 0.0]) + np.diag([1e180, 1.7e308, 0.0], 1),
}


def encoded(matrix, design):
    """The rows that NumPy's path has."""
    blocks = ArraySource(ArrayTable(matrix)).parts(1)[0].blocks(10**6)
    return np.concatenate([block.X.copy() for block in design.dense(blocks)])


def encoded_blocks(source, design):
    """The blocks that kernels get."""
    with np.errstate(all="ignore"):
        return [part.encoded(design) for part in source.parts(design.dimension)]


def placed(matrix, design):
    """The only block of a small table."""
    (block,) = encoded_blocks(PlacedSource.of(matrix), design)
    return block.X


@pytest.mark.parametrize("place", SPACES)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("name", TABLES)
def test_products_are_those_of_encoded_rows(place, name, intercept, monkeypatch):
    matrix = TABLES[name]
    design = Design(matrix.shape[1], 1.5, intercept)
    rows, there = encoded(matrix, design), placed(place(matrix), design)
    xp = there.space.xp
    vector, matrix = RANDOM.normal(size=design.dimension), RANDOM.normal(size=(design.dimension, 3))
    weights = RANDOM.random(len(rows))
    put, close = there.space.put, {"rtol": 1e-13, "atol": 1e-13}
    np.testing.assert_allclose(host(there @ put(vector)), rows @ vector, **close)
    np.testing.assert_allclose(host(there @ put(matrix)), rows @ matrix, **close)
    np.testing.assert_allclose(host(there.summed(put(weights))), weights @ rows, **close)
    np.testing.assert_allclose(host(there.squares), np.sum(rows**2, axis=1), **close)
    np.testing.assert_allclose(host(there.encoded()), rows, **close)
    turn = np.tril(RANDOM.normal(size=(design.dimension, design.dimension)))
    images = np.sum((rows @ turn.T) ** 2, axis=1)
    np.testing.assert_allclose(host(there.squares_under(put(turn))), images, **close)
    monkeypatch.setattr("expost.data.rows._WIDE", 2)  # in strips, and few rows at a time
    there = replace(there, room=8 * 7)
    np.testing.assert_allclose(host(there.squares_under(put(turn))), images, **close)
    square = (rows.T * weights) @ rows
    monkeypatch.setattr("expost.data.rows._GROUP_ROWS", 5)
    monkeypatch.setattr("expost.data.rows._ROWS_PER_COLUMN", 1)
    np.testing.assert_allclose(host(there.gram(put(weights), xp.float64)[0]), square, rtol=1e-12, atol=1e-12)
    if name != "extremes":
        np.testing.assert_allclose(
            host(there.gram(put(weights), xp.float32)[0]), square, rtol=1e-4, atol=1e-4
        )


@pytest.mark.parametrize("place", SPACES)
@pytest.mark.parametrize("spread", [3.0, 200.0])
def test_no_encoded_row_leaves_the_ball(place, spread):
    matrix = RANDOM.normal(size=(2000, 7)) * np.exp(
        np.clip(RANDOM.normal(size=(2000, 1), scale=spread), -600, 600)
    )
    design = Design(7, 0.3, False)
    rows = placed(place(matrix), design)
    exact = np.asarray(host(rows.wide), dtype=np.longdouble)
    if rows.scales is not None:
        exact *= host(rows.scales)[:, None]
    assert np.all(np.sqrt(np.sum(exact**2, axis=1)) <= np.longdouble(design.norm))


@pytest.mark.parametrize("place", SPACES)
def test_the_host_sees_the_rows_of_the_device_to_the_last_bit(place, monkeypatch):
    monkeypatch.setattr("expost.data.placed._COPIED", 64)  # many copies for one part
    monkeypatch.setattr("expost.data.placed._LEAST_NUMBERS", 400)
    labels, weights = np.arange(300.0), RANDOM.random(300)
    source = PlacedSource.of(place(TABLES["floats"])).labelled(place(labels), weights)
    design = Design(4, 1.0, True)
    blocks = list(
        chain.from_iterable(part.blocks(7) for part in source.encoded_parts(design, 4, products=False))
    )
    assert max(len(block.X) for block in blocks) == 7
    rows = np.concatenate([host(block.X.encoded()) for block in encoded_blocks(source, design)])
    np.testing.assert_allclose(rows, encoded(TABLES["floats"], design), rtol=1e-15)
    columns = ([block[place] for block in blocks] for place in range(3))
    for got, wanted in zip(columns, (rows, labels, weights), strict=True):
        np.testing.assert_array_equal(np.concatenate(got), wanted)


@pytest.mark.parametrize("place", SPACES)
def test_a_thinned_table_has_each_so_manieth_row(place):
    source = PlacedSource.of(place(TABLES["doubles"])).labelled(np.arange(300.0), None).thinned(8)
    assert source.n_rows == 38
    np.testing.assert_array_equal(host(source.matrix), TABLES["doubles"][::8])
    np.testing.assert_array_equal(host(source.labels), np.arange(0.0, 300.0, 8.0))


@pytest.mark.parametrize("place", SPACES)
def test_blocks_follow_each_other(place, monkeypatch):
    monkeypatch.setattr("expost.data.placed._LEAST_NUMBERS", 1)
    source = PlacedSource.of(place(TABLES["doubles"])).labelled(np.arange(300.0), None)
    blocks = encoded_blocks(source, Design(4, 1.0, True))
    assert len(blocks) == 30
    np.testing.assert_array_equal(
        np.concatenate([host(block.X.stored) for block in blocks]), TABLES["doubles"]
    )
    np.testing.assert_array_equal(np.concatenate([host(block.y) for block in blocks]), np.arange(300.0))
    raw = [block for part in source.parts(4) for block in part.blocks(7)]
    assert max(len(host(block.y)) for block in raw) == 7
    np.testing.assert_array_equal(np.concatenate([host(block.X) for block in raw]), TABLES["doubles"])


@pytest.mark.parametrize("place", SPACES)
def test_bad_tables_are_refused_without_a_word_about_rows(place):
    for bad in (np.nan, np.inf):
        matrix = TABLES["doubles"].copy()
        matrix[17, 2] = bad
        source = PlacedSource.of(place(matrix)).labelled(np.zeros(300), None)
        with pytest.raises(DomainError, match="must be finite") as caught:
            source.checked(RecordCheck(LogisticLoss(), 1.0), LOCAL)
        assert "17" not in str(caught.value)
        with pytest.raises(DomainError, match="must be finite"):
            placed(place(matrix), Design(4, 1.0, True))
    good = PlacedSource.of(place(TABLES["doubles"]))
    with pytest.raises(DomainError, match="labels outside"):
        good.labelled(np.full(300, 0.5), None).checked(RecordCheck(LogisticLoss(), 1.0), LOCAL)
    with pytest.raises(DomainError, match="weights must be"):
        good.labelled(np.zeros(300), np.full(300, 1.5)).checked(RecordCheck(LogisticLoss(), 1.0), LOCAL)
    for matrix, message in (
        (np.zeros(3), "two-dimensional"),
        (np.zeros((3, 0)), "minimum of 1"),
        (np.zeros((0, 3)), "at least one row"),
        (np.zeros((3, 3), dtype=complex), "real numbers"),
    ):
        with pytest.raises(DomainError, match=message):
            PlacedSource.of(place(matrix))


@pytest.mark.parametrize("place", SPACES)
def test_a_space_takes_numbers_of_any_library(place):
    space = Space.of(place(np.zeros(1)))
    for values in ([1, 2], np.array([1, 2], dtype=np.int8), place(np.array([1.0, 2.0], dtype=np.float32))):
        there = space.put(values)
        assert there.dtype == space.xp.float64
        np.testing.assert_array_equal(host(there), [1.0, 2.0])


def test_a_device_without_doubles_is_refused():
    strict = pytest.importorskip("array_api_strict")
    try:
        matrix = strict.zeros((3, 2), dtype=strict.float32, device=strict.Device("no_float64"))
    except ValueError:
        pytest.skip("this version of array-api-strict has no such device")
    with pytest.raises(DomainError, match="double precision"):
        PlacedSource.of(matrix)


@pytest.mark.parametrize("place", SPACES)
@pytest.mark.parametrize("longest", [0.9, 40.0])
@pytest.mark.parametrize("name", ["doubles", "floats"])
def test_rows_that_were_measured_are_not_measured_again(place, name, longest, monkeypatch):
    """The encoded rows are those of a source that was not checked, within the ball or scaled into it."""
    monkeypatch.setattr("expost.data.placed._WORTH_KEEPING", 3)
    matrix, design = TABLES[name], Design(4, 1.0, True)
    matrix = matrix * np.asarray(longest / np.linalg.norm(matrix, axis=1).max(), matrix.dtype)
    source = PlacedSource.of(place(matrix)).labelled(np.zeros(300), None)
    measured = source.checked(RecordCheck(LogisticLoss(), 1.0), LOCAL)
    assert measured.longest == pytest.approx(longest, rel=1e-6)
    (mine,), (wanted,) = (encoded_blocks(one, design) for one in (measured, source))
    np.testing.assert_array_equal(host(mine.X.encoded()), host(wanted.X.encoded()))
    assert (mine.X.scales is None) == (longest < 1.0)
    mine.X.wide  # noqa: B018  # converted once, and cut as it is
    pieces = [host(some.encoded()) for _, some in mine.X.cut(70)]
    assert [len(piece) for piece in pieces] == [70, 70, 70, 70, 20]
    np.testing.assert_array_equal(np.concatenate(pieces), host(wanted.X.encoded()))


@pytest.mark.parametrize("place", SPACES)
def test_labels_that_are_true_or_false_or_whole_stay_where_they_lie(place):
    def encoded(labels, classes):
        return host(Declared(LogisticLoss(), 1.0, True, classes=classes).labels(labels, 3)).tolist()

    truths, whole = place(np.array([True, False, True])), place(np.array([2, 0, 2]))
    assert encoded(truths, (0.0, 1.0)) == [1.0, 0.0, 1.0]
    assert encoded(whole, (0.0, 2.0)) == [1.0, 0.0, 1.0]
    with pytest.raises(DomainError, match="outside the declared classes"):
        encoded(whole, (0.0, 1.5))  # no whole number is one and a half
