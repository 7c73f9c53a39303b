"""Passes in compiled code find what they find with NumPy, in every layout, and always the same bits."""

import ctypes
from dataclasses import replace
from functools import reduce
from itertools import chain
from operator import add, iadd

import numpy as np
import pytest
import scipy.sparse as sparse
from own_losses import Direction, LogCosh
from problems import CASES, design_of

from expost._common import kernels, machine
from expost.data.blocks import ColumnRows, Table
from expost.data.design import Design
from expost.data.encoding import Encoded
from expost.data.sources import ArraySource
from expost.data.tables import open_table
from expost.exceptions import DomainError
from expost.fitting import compiled
from expost.fitting.certified.pairs import Dyadic
from expost.fitting.certified.residual import ResidualPass
from expost.fitting.certified.slopes import proved_loss
from expost.fitting.compiled import compiles
from expost.fitting.ex_post import LossTerms, Terms
from expost.fitting.objective import Derivatives
from expost.losses import LogisticLoss, PseudoHuber, SoftmaxLoss

pytestmark = pytest.mark.skipif(kernels.library() is None, reason="no compiled kernels")
BY_LENGTH = [
    LogisticLoss(cap=0.6, corner=0.75, gradient_cap=0.6),
    PseudoHuber(0.2, gradient_cap=0.3),
    SoftmaxLoss(3, cap=0.6, gradient_cap=0.5),
]
OWN = [LogCosh(0.7), Direction()]
COMPILED = [case.loss for case in CASES if compiles(case.loss)]
LOSSES = [*COMPILED, SoftmaxLoss(2), SoftmaxLoss(4), SoftmaxLoss(4, cap=0.6), *BY_LENGTH]


def labels_of(loss, random, n):
    if isinstance(loss, SoftmaxLoss):
        return random.integers(0, loss.classes, n).astype(float)
    if loss in OWN:
        return random.uniform(-3.0, 3.0, n)
    return next(case for case in CASES if case.loss.labels == loss.labels).labels(random, n)


def passes(loss, columns, theta, radius):
    """Every pass with a compiled twin."""
    yield Derivatives(loss, theta, columns, radius)
    yield Derivatives(loss, theta, columns, radius, np.float64)
    if loss not in OWN:
        known = proved_loss(loss)
        yield ResidualPass(known, known.points(Dyadic.of(theta), 2), radius, hessian=True)
    if isinstance(loss, Direction):
        return
    root = np.tril(np.random.default_rng(0).normal(size=(len(theta), len(theta)))) / 50
    yield Terms(loss, columns, theta, theta[::-1].copy(), root, 2.0, -1.0)


def swept(records, work):
    together = {Derivatives: lambda found: reduce(iadd, found), Terms: LossTerms.joined}
    return together.get(type(work), lambda found: reduce(add, found))(records.sweep(work))


def numbers(found):
    """The numbers of a result, those apart that are not sums of rows."""
    if isinstance(found, LossTerms):
        return [found.determinant, found.quadratic, found.inner_product]
    if hasattr(found, "gradient"):
        return [found.gradient, *([] if found.hessian is None else [found.hessian])]
    return [found.total[0] + found.total[1], found.hessian, found.curvature]


def off(loss, records, theta, monkeypatch):
    """How far the two ways are apart, relative to the largest number of each result."""
    columns = records.design.dimension
    for work in passes(loss, columns, theta, records.design.radius):
        assert work.compiles
        mine = numbers(swept(records, work))
        with monkeypatch.context() as patch:
            patch.setattr(kernels, "library", lambda: None)
            others = numbers(swept(records, work))
        for one, other in zip(mine, others, strict=True):
            yield np.max(np.abs(one - other), initial=0.0) / max(np.max(np.abs(other), initial=0.0), 1e-300)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", [*LOSSES, *OWN], ids=str)
def test_every_loss(loss, weighted, monkeypatch):
    """Rows of all lengths, some far outside of the ball, and predictors on both sides of every corner."""
    random = np.random.default_rng(1)
    n, d = 1300, 6
    X = random.normal(size=(n, d)) * 10.0 ** random.uniform(-3, 1, (n, 1))
    y, weights = labels_of(loss, random, n), random.uniform(0.0, 3.0, n) if weighted else None
    theta = random.normal(size=loss.coefficient_count(d + 1)) * 4.0
    records = design_of(X, fit_intercept=True).labelled(y, weights)
    assert max(off(loss, records, theta, monkeypatch)) <= 1e-13


class Columns(Table):
    """A table whose columns lie apart, each in a type of its own."""

    def __init__(self, columns):
        self.columns, self.n_rows, self.n_features = columns, len(columns[0]), len(columns)

    def rows(self, start, stop):
        return ColumnRows([column[start:stop] for column in self.columns])


def tables(random, n, d):
    X = random.integers(-9, 10, size=(n, d)) / 8.0
    wide = np.zeros((2 * n, 2 * d))
    wide[::2, ::2] = X
    whole = np.asarray(8 * X, dtype=np.int16)
    kinds = (np.float64, np.float32, np.float16, np.longdouble)
    yield from ((str(np.dtype(kind)), X.astype(kind)) for kind in kinds)
    yield from (
        (kind, (whole + 9).astype(kind) if kind.startswith("u") else whole.astype(kind))
        for kind in ("int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8")
    )
    yield "bool", whole > 0
    yield "other bytes", X.astype(">f8")
    yield "Fortran", np.asfortranarray(X)
    yield "Fortran, single", np.asfortranarray(X.astype(np.float32))
    yield "every other row and column", wide[::2, ::2]
    yield "backwards", X[::-1, ::-1]
    yield "rows of a wider matrix", np.hstack([X, X])[:, :d]
    yield "sparse", sparse.csr_array(np.where(random.random((n, d)) < 0.3, X, 0.0))
    yield "columns", Columns([X[:, 0], *(X[:, j].astype(kinds[j % 3]) for j in range(1, d))])


TABLES = dict(tables(np.random.default_rng(0), 700, 5))


@pytest.mark.parametrize("name", TABLES)
def test_every_layout_and_type(name, monkeypatch):
    random, table = np.random.default_rng(2), TABLES[name]
    source = ArraySource(table if isinstance(table, Table) else open_table(table))
    y = random.integers(0, 2, 700).astype(float)
    records = Encoded(source, Design(5, 1.5, True)).labelled(y)
    assert max(off(LOSSES[0], records, random.normal(size=6), monkeypatch)) <= 1e-13


@pytest.mark.parametrize("columns", [1, 3, 4, 63, 64, 65, 130])
@pytest.mark.parametrize("rows", [1, 7, 8, 255, 257, 512, 1025])
def test_every_shape(rows, columns, monkeypatch):
    """Ends of lanes, tiles, strips and chunks."""
    random = np.random.default_rng([rows, columns])
    X, y = random.normal(size=(rows, columns)), random.integers(0, 2, rows).astype(float)
    records = design_of(X, fit_intercept=rows % 2 == 0).labelled(y)
    theta = random.normal(size=records.design.dimension)
    assert max(off(LOSSES[0], records, theta, monkeypatch)) <= 1e-13


@pytest.mark.parametrize("level", [1, 3, 4])
def test_every_instruction_set(level, monkeypatch):
    found = kernels._loaded(level) if level <= kernels.library().kernels.machine_level() else None
    if found is None:
        pytest.skip("not for this machine")
    monkeypatch.setattr(kernels, "library", lambda: found)
    for loss in (CASES[0].loss, CASES[2].loss, SoftmaxLoss(3, cap=0.5)):
        random = np.random.default_rng(level)
        records = design_of(random.normal(size=(900, 5))).labelled(
            labels_of(loss, random, 900) if loss.outputs == 1 else random.integers(0, 3, 900).astype(float)
        )
        theta = random.normal(size=loss.coefficient_count(5))
        assert max(off(loss, records, theta, monkeypatch)) <= 1e-13


@pytest.mark.parametrize("loss", [CASES[0].loss, SoftmaxLoss(3)], ids=str)
def test_bits_do_not_depend_on_threads_or_blocks(loss, monkeypatch):
    random = np.random.default_rng(3)
    n, d = 150_000, 7
    X, theta = random.normal(size=(n, d)), random.normal(size=loss.coefficient_count(d))
    y = random.integers(0, 2, n).astype(float)
    works = list(passes(loss, d, theta, 1.0))
    found = []
    for threads in (1, 2, 5):
        monkeypatch.setattr(machine, "threads", lambda threads=threads: threads)
        records = design_of(X).labelled(y)
        found.append([numbers(swept(records, work)) for work in works])
        # Shorter blocks, as of tables that are not held as a matrix.
        monkeypatch.setattr(ArraySource, "raw_length", lambda *_, threads=threads: 512 * threads)
    edges = replace_edges(records, (0, 65_536, 131_072, n))
    held = [numbers(swept(edges, work)) for work in works]
    chunks = replace_edges(design_of(X).labelled(y), (0, 65_536, 131_072, n))
    monkeypatch.undo()
    again = [numbers(swept(chunks, work)) for work in works]
    for one, other in [(found[0], found[1]), (found[0], found[2]), (held, again)]:
        for a, b in zip(chain(*one), chain(*other), strict=True):
            np.testing.assert_array_equal(a, b)


def replace_edges(records, edges):
    return replace(records, source=replace(records.source, edges=edges))


@pytest.mark.parametrize("cell", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [0, 511, 1299])
def test_what_is_not_finite_is_refused(cell, place):
    X = np.full((1300, 3), 0.1)
    X[place, 1] = cell
    for table in (X, np.asfortranarray(X), X.astype(np.float32)):
        records = design_of(table).labelled(np.zeros(1300))
        for work in passes(LOSSES[0], 3, np.ones(3), 1.0):
            with pytest.raises(DomainError, match="must be finite") as refused:
                swept(records, work)
            assert str(place) not in str(refused.value)


def test_rows_of_every_size_stay_in_the_ball():
    """Squares that overflow and underflow, rows at the very edge, and rows whose scale would be denormal."""
    random = np.random.default_rng(4)
    sizes = np.concatenate([10.0 ** np.arange(-323.0, 308.0), np.full(300, 1.0), [1e308, 1.79e308]])
    X = (
        np.sign(random.normal(size=(len(sizes), 4)))
        * sizes[:, None]
        * random.uniform(0.5, 1.0, (len(sizes), 4))
    )
    records = design_of(X)
    ((rows, *_),) = records.design.dense(iter([next(records.source.parts(4)[0].blocks(len(X)))]))
    exact = rows.astype(np.longdouble)
    assert np.all(np.sum(exact * exact, axis=1) <= 1.0)
    inside = np.max(np.abs(X), axis=1) < 0.49
    np.testing.assert_array_equal(rows[inside], X[inside])


def test_thinned_rows_are_those_that_are_read():
    """A warm start on each 64th block of many rows reads about as many, in several parts."""
    n = 3_000_000
    records = Encoded(ArraySource(open_table(np.zeros((n, 1)))), Design(1, 1.0, True)).labelled(np.zeros(n))
    for every in (8, 16, 64):
        thin = records.thinned(every)
        sums = swept(thin, Derivatives(LOSSES[0], np.zeros(2), 2, 1.0, np.float64))
        assert n / every / 2 < sums.rows < 3 * n / every


@pytest.mark.parametrize("loss", [LogisticLoss(), LogisticLoss(cap=0.7), SoftmaxLoss(3)], ids=str)
def test_a_loss_keeps_all_that_kernels_read_of_it(loss, monkeypatch):
    """Two threads that make the exponential's tables at once make two, and the cache keeps one of them."""
    made = compiled.exponential_tables
    monkeypatch.setattr(compiled, "exponential_tables", lambda space: [one.copy() for one in made(space)])
    described = compiled._described(loss)
    limits, shapes, tables = described.kept
    kept = {"limits": limits, "shapes": shapes, **tables}
    read = [name for name, kind in described._fields_ if kind is ctypes.c_void_p]
    assert {name: getattr(described, name) for name in read if name not in ("slopes", "bends")} == {
        name: array.ctypes.data for name, array in kept.items()
    }
