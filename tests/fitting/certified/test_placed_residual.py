"""The gradient in slices where the rows lie has the digits and the bounds of the one on the host."""

from dataclasses import replace
from fractions import Fraction
from functools import reduce
from operator import add

import numpy as np
import pytest
from problems import CASES
from spaces import SPACES

from expost._common.namespaces import Space
from expost.data.design import Design
from expost.data.encoding import Encoded
from expost.data.placed import PlacedSource
from expost.fitting.certified.pairs import Dyadic, exact_in
from expost.fitting.certified.residual import ResidualPass
from expost.fitting.certified.slopes import proved_loss
from expost.losses import SoftmaxLoss, SquaredLoss

RANDOM = np.random.default_rng(8)


def pass_at(loss, theta, slices, records, *, hessian=False):
    known = proved_loss(loss)
    return ResidualPass(known, known.points(Dyadic.of(theta), slices), records.design.radius, hessian)


def records_of(place, matrix, labels, weights=None, *, intercept=True):
    source = PlacedSource.of(place(matrix)).labelled(labels, weights)
    return Encoded(source, Design(matrix.shape[1], 1.0, intercept))


@pytest.mark.parametrize("place", SPACES)
@pytest.mark.parametrize("slices", [2, 3])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_both_passes_agree_within_their_bounds(place, case, slices, monkeypatch):
    monkeypatch.setattr("expost.data.placed._LEAST_NUMBERS", 80_000)  # several blocks, none a multiple of 128
    monkeypatch.setattr("expost.data.rows._GROUP_ROWS", 250)
    matrix = RANDOM.normal(size=(2000, 5))
    labels, weights = case.labels(RANDOM, 2000), RANDOM.random(2000)
    records = records_of(place, matrix, labels, weights)
    work = pass_at(case.loss, RANDOM.normal(size=6), slices, records, hessian=True)
    there = work.finished(reduce(add, records.sweep(work)))
    here = work.finished(reduce(add, replace(records, on_host=True).sweep(work)))
    gap = (Dyadic.of(there.total[0]) + Dyadic.of(there.total[1])) - (
        Dyadic.of(here.total[0]) + Dyadic.of(here.total[1])
    )
    # Slopes differ by at most twice their stated errors; no row is longer than the radius.
    slopes = there.per_curvature * there.curvature + there.absolute
    off = there.error + here.error + 2.02 * records.design.radius * slopes
    assert np.linalg.norm(gap.doubles()) <= off
    assert off < 1e-15 * there.steepness
    assert there.rows == here.rows == 2000
    assert there.error <= 4.0 * here.error
    for mine, yours in ((there.steepness, here.steepness), (there.curvature, here.curvature)):
        assert mine == pytest.approx(yours, rel=1e-12)
    assert there.absolute == pytest.approx(here.absolute, rel=1e-6)
    np.testing.assert_allclose(there.hessian, here.hessian, rtol=1e-12, atol=1e-11)
    np.testing.assert_array_equal(there.hessian, there.hessian.T)


@pytest.mark.parametrize("place", SPACES)
@pytest.mark.parametrize("slices", [2, 3])
@pytest.mark.parametrize(
    "loss", [SoftmaxLoss(4), SoftmaxLoss(4, cap=0.6, gradient_cap=0.6), SoftmaxLoss(2)], ids=str
)
def test_softmax_passes_agree_within_their_bounds(place, loss, slices, monkeypatch):
    monkeypatch.setattr("expost.data.placed._LEAST_NUMBERS", 150_000)
    monkeypatch.setattr("expost.data.rows._GROUP_ROWS", 250)
    matrix = RANDOM.normal(size=(1500, 5))
    labels, weights = RANDOM.integers(0, loss.classes, 1500).astype(float), RANDOM.random(1500)
    records = records_of(place, matrix, labels, weights)
    at = 3.0 * RANDOM.normal(size=6 * (loss.classes - 1))
    work = pass_at(loss, at, slices, records, hessian=True)
    there = reduce(add, records.sweep(work))
    here = reduce(add, replace(records, on_host=True).sweep(work))
    (high, low), (other_high, other_low) = there.total, here.total
    assert np.abs((high - other_high) + (low - other_low)).sum() <= 1e-15 * there.steepness
    off = there.error + here.error
    slopes = there.per_curvature * there.curvature + there.absolute
    assert np.linalg.norm((high - other_high) + (low - other_low)) <= off + 2.02 * slopes
    assert there.rows == here.rows == 1500
    assert there.error <= 8.0 * here.error
    assert there.steepness == pytest.approx(here.steepness, rel=1e-12)
    assert there.curvature == pytest.approx(here.curvature, rel=1e-12)
    assert there.absolute == pytest.approx(here.absolute, rel=1e-6)
    np.testing.assert_allclose(there.hessian, here.hessian, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("place", SPACES)
@pytest.mark.parametrize("intercept", [True, False])
def test_the_bound_holds_against_exact_arithmetic(place, intercept):
    matrix = RANDOM.integers(-(2**40), 2**40, size=(400, 3)) * 2.0**-41
    labels = RANDOM.normal(size=400)
    records = records_of(place, matrix, labels, intercept=intercept)
    rows = np.concatenate([part.X for one in records.source.encoded_parts(records.design, 3, products=False)
                           for part in one.blocks(400)])  # fmt: skip
    theta = RANDOM.normal(size=rows.shape[1])
    work = pass_at(SquaredLoss(), theta, 2, records)
    found = work.finished(*records.sweep(work))
    point = work.points.exact
    at = [Fraction(count) * Fraction(2) ** point.exponent for count in point.counts]
    exact = [Fraction(0)] * len(at)
    for row, label in zip(rows.tolist(), labels.tolist(), strict=True):
        cells = [Fraction(cell) for cell in row]
        slope = sum(x * w for x, w in zip(cells, at, strict=True)) - Fraction(label)
        exact = [total + slope * x for total, x in zip(exact, cells, strict=True)]
    got = [
        Fraction(high) + Fraction(low) for high, low in zip(*map(np.ndarray.tolist, found.total), strict=True)
    ]
    off = float(sum((a - b) ** 2 for a, b in zip(got, exact, strict=True))) ** 0.5
    predictors = work.predictor_error() * records.design.radius * 400
    assert off <= found.error + predictors + records.design.radius * found.absolute
    assert off < 1e-19


@pytest.mark.parametrize("place", SPACES)
def test_arithmetic_is_exact_there(place):
    assert exact_in(Space.of(place(np.zeros(1))))


def test_fused_or_short_arithmetic_is_found_out():
    class Short:
        """Products of matrices in single precision, as a device that emulates doubles might have them."""

        xp = np

        def put(self, values):
            class Array(np.ndarray):
                def __matmul__(self, other):
                    return np.asarray(self, dtype=np.float32) @ np.asarray(other, dtype=np.float32)

            return np.asarray(values, dtype=np.float64).view(Array)

    assert not exact_in(Short())


@pytest.mark.parametrize("place", SPACES)
@pytest.mark.parametrize("rows", [256, 300])
def test_whole_sub_blocks_and_a_rest_are_added_up_alike(place, rows):
    matrix, labels = RANDOM.normal(size=(rows, 5)), RANDOM.integers(0, 3, rows).astype(float)
    records = records_of(place, matrix, labels)
    at = RANDOM.normal(size=12)
    whole, without = (pass_at(SoftmaxLoss(3), at, 2, records, hessian=hessian) for hessian in (True, False))
    (there,), (plain,) = records.sweep(whole), records.sweep(without)
    (here,) = replace(records, on_host=True).sweep(whole)
    np.testing.assert_allclose(there.total[0], here.total[0], rtol=1e-14)
    # Without a Hessian the same gradient, to the last digit, and no matrix.
    np.testing.assert_array_equal(plain.total, there.total)
    assert plain.hessian is None
    assert there.hessian is not None


@pytest.mark.parametrize("place", SPACES)
def test_slopes_beyond_doubles_are_seen_by_the_caller(place):
    records = records_of(place, np.ones((3, 1)), np.full(3, 1e308), intercept=False)
    (found,) = records.sweep(pass_at(SquaredLoss(), np.array([-1.0]), 2, records))
    assert np.isnan(found.total[0]).all()
    assert np.isnan(found.error)
