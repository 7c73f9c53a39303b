"""Tables that change while they are read: what is measured is used, what is released is certified."""

import threading

import numpy as np
import pytest
from problems import all_rows, design_of, encoded_table

import expost
from expost._common import kernels
from expost.data import design as design_module
from expost.data.blocks import ArrayTable, Block, ColumnRows, Table
from expost.data.design import NO_LABELS, Design
from expost.fitting.mechanism import perturb
from expost.fitting.noise import NoiseSource, Tilt
from expost.fitting.solvers import minimize


class NoNoise(NoiseSource):
    insecure = True

    def tilt(self, sigma, size, *, rounding=np.inf):
        return Tilt((np.zeros(size),), 0.0)

    def integers(self, scales):
        return [0] * len(scales)

    def below(self, bound):
        return 0


@pytest.mark.parametrize("kind", ["C", "F", "frame"])
@pytest.mark.parametrize("products", [False, True])
def test_a_row_written_to_while_it_is_measured_stays_in_the_ball(monkeypatch, kind, products):
    """Another thread makes the row a hundred times as long, after its length was taken."""
    rows = np.full((50, 3), 0.1, order="C" if kind == "C" else "F")
    table = ArrayTable(rows)
    if kind == "frame":
        table.rows = lambda start, stop: ColumnRows(list(rows[start:stop].T))
    monkeypatch.setattr(kernels, "library", lambda: None)
    measure = design_module._lengths

    def measured_then_written(block):
        lengths = measure(block)
        rows[...] = 100.0
        return lengths

    monkeypatch.setattr(design_module, "_lengths", measured_then_written)
    found = all_rows(encoded_table(table), products=products)
    assert np.all(rows == 100.0)
    assert np.all(np.linalg.norm(found, axis=1) <= 1.0)


@pytest.mark.skipif(kernels.library() is None, reason="no compiled kernels")
@pytest.mark.parametrize("order", ["C", "F"])
def test_compiled_kernels_use_what_they_measured(order):
    """Another thread makes rows short and long in turn, all the while that they are encoded."""
    rows, out, stop = np.full((4096, 8), 0.1, order=order), np.empty((4096, 8)), threading.Event()
    block, kernel = (
        Design(8, 1.0, False).as_it_lies(Block(rows, NO_LABELS, None)),
        kernels.library().kernels.encode,
    )

    def write():
        while not stop.is_set():
            rows[...] = 100.0
            rows[...] = 0.1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(200):
            block.run(kernel, out)
            assert np.all(np.linalg.norm(out, axis=1) <= 1.0)
    finally:
        stop.set()
        writer.join()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_layout_does_not_change_the_encoding(order, kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 7)).astype(kind)
    plain, other = design_of(np.ascontiguousarray(X)), design_of(np.asarray(X, order=order))
    np.testing.assert_array_equal(all_rows(plain), all_rows(other))


class ChangingTable(Table):
    """A table whose rows are replaced after a number of reads."""

    def __init__(self, before, after, reads):
        self._tables = [ArrayTable(before)] * reads + [ArrayTable(after)]
        self.n_rows, self.n_features = before.shape

    def rows(self, start, stop):
        table = self._tables.pop(0) if len(self._tables) > 1 else self._tables[0]
        return table.rows(start, stop)


@pytest.mark.parametrize("largest_dense", [0, 2000])
@pytest.mark.parametrize("reads", [1, 2])
def test_what_is_released_is_the_minimiser_of_the_rows_that_the_certificate_read(
    monkeypatch, largest_dense, reads
):
    """The table changes after the pass before the noise or within the solver, with and without a Hessian."""
    monkeypatch.setitem(minimize.__globals__, "LARGEST_DENSE_DIMENSION", largest_dense)
    rng = np.random.default_rng(reads)
    before, after = rng.normal(size=(2, 80, 4)) / 8.0
    y = rng.integers(0, 2, 80).astype(float)
    plan = expost.calibrate(loss="logistic")
    design = encoded_table(ChangingTable(before, after, reads))
    release, _ = perturb(plan, design.labelled(y), noise=NoNoise())
    slope, _ = plan.loss.derivatives(after @ release.coefficients, y)
    gradient = slope @ after + plan.l2 * release.coefficients
    assert np.linalg.norm(gradient) < 1e-9


def test_many_equal_rows_do_not_stall_the_solver():
    """Single-precision Hessians of equal rows are poor; double ones take over after a few steps."""
    X = np.repeat(np.full((1, 20), 0.2), 60_000, axis=0)
    y = (np.arange(60_000) % 3 == 0).astype(float)
    reads = 0

    class Counted(ArrayTable):
        def rows(self, start, stop):
            nonlocal reads
            reads += start == 0
            return super().rows(start, stop)

    plan = expost.calibrate(loss="logistic", epsilon=8.0)
    release, _ = perturb(plan, encoded_table(Counted(X)).labelled(y), noise=NoNoise())
    slope, _ = plan.loss.derivatives(X @ release.coefficients, y)
    assert np.linalg.norm(slope @ X + plan.l2 * release.coefficients) < 1e-6
    assert reads < 40
