import mpmath as mp
import numpy as np
import pytest
from hard_tables import LOSSES, derivatives, into_ball, labels_for, of_row

from expost._common.namespaces import HERE
from expost.fitting.certified.pairs import Dyadic, Point, exact_in
from expost.fitting.certified.residual import ResidualPass
from expost.fitting.certified.slopes import proved_loss
from expost.losses.records import Lengths


def _pass(loss, w, slices, radius=1.0, **options):
    known = proved_loss(loss)
    return ResidualPass(known, known.points(Dyadic.of(w), slices), radius, **options)


def _blocks(X, y, size):
    return [(np.ascontiguousarray(X[i : i + size]), y[i : i + size], None) for i in range(0, len(y), size)]


@pytest.mark.parametrize("slices", [2, 3])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_gradient_is_within_its_error(loss, slices):
    """Against 300 bits: the sums' error, the predictors' and the slopes' together."""
    random = np.random.default_rng(3)
    n, d, radius = 700, 7, 1.7
    X = into_ball(random.normal(size=(n, d)), radius)
    w = random.normal(size=d) * 3
    y = labels_for(random, loss, X @ w)
    work = _pass(loss, w, slices, radius, hessian=True)
    (point,) = work.points.by_score
    found = work.finished(work(_blocks(X, y, 311)))
    with mp.workprec(300):
        exact = [mp.fsum(mp.mpf(float(part[j])) for part in point.slices) for j in range(d)]
        total = [mp.mpf(0)] * d
        for row, label in zip(X, y, strict=True):
            x = [mp.mpf(float(v)) for v in row]
            slope, _ = derivatives(of_row(loss, row), mp.fdot(x, exact), mp.mpf(float(label)))
            total = [t + slope * v for t, v in zip(total, x, strict=True)]
        off = [t - mp.mpf(float(a)) - mp.mpf(float(b)) for t, a, b in zip(total, *found.total, strict=True)]
        per_curvature = found.per_curvature + 1.01 * work.predictor_error()
        bound = found.error + radius * (found.absolute + per_curvature * found.curvature)
        error = mp.norm(mp.matrix(off))
    assert error <= bound
    assert bound < (1e-16 if slices == 2 else 2e-20)
    curvature = loss.for_rows(Lengths.of(X)).derivatives(X @ w, y)[1]
    np.testing.assert_allclose(found.hessian, (X * curvature[:, None]).T @ X, rtol=1e-10, atol=1e-12)


def test_parts_add_up():
    random = np.random.default_rng(4)
    X, w = into_ball(random.normal(size=(5000, 20)), 1.0), random.normal(size=20)
    y = (random.uniform(size=5000) < 0.5) * 1.0
    work = _pass(LOSSES[0], w, 2)
    blocks = _blocks(X, y, 640)
    whole, parts = work(blocks), work(blocks[:3]) + work(blocks[3:])
    np.testing.assert_allclose(parts.total[0], whole.total[0], rtol=1e-16)
    assert parts.rows == whole.rows == 5000
    assert parts.error == pytest.approx(whole.error)


def test_a_point_is_the_exact_sum_of_its_slices():
    random = np.random.default_rng(5)
    values = random.normal(size=30) * 10.0 ** random.uniform(-20, 2, 30)
    for slices in (2, 3):
        point = Point.near(Dyadic.of(values), slices)
        rest = point.exact
        for part in point.slices:
            rest = rest - Dyadic.of(part)
        assert not any(rest.counts)
        assert np.max(np.abs((Dyadic.of(values) - point.exact).doubles())) <= 2.0**-70 * point.norm
        assert point.norm >= np.linalg.norm(values)


def test_no_rows():
    found = _pass(LOSSES[0], np.ones(3), 2)([])
    assert not np.any(found.total)
    assert found.error == 0.0


def test_products_are_exact_here():
    assert exact_in(HERE)
