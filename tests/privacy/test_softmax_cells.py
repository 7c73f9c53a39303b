"""Cells of class masses: every bound against the matrices of random records."""

import numpy as np
import pytest

from expost.losses.softmax_curve import SoftmaxCurve
from expost.privacy.excess import ROW, Tangent
from expost.privacy.softmax_cells import (
    SoftmaxValues,
    _envelope,
    _frobenius,
    _hessian,
    largest_determinant,
    softmax_cells,
)

CURVES = [
    SoftmaxCurve(3),
    SoftmaxCurve(3, cap=0.5),
    SoftmaxCurve(4, cap=0.7, corner=0.6),
    SoftmaxCurve(10),
    SoftmaxCurve(10, cap=0.66, corner=0.95),
    SoftmaxCurve(30, cap=0.9),
]
WEIGHTS = (0.02, 0.2, 1.0, 5.0)


def records(curve, count, seed):
    """Random records: their slope, the law of the wrong classes, and the Hessian in the scores."""
    rng = np.random.default_rng(seed)
    spread = 10.0 ** rng.uniform(-1.5, 1.0, count)
    laws = np.stack([rng.dirichlet(np.full(curve.classes - 1, one)) for one in spread])
    laws[::7] = 1.0 / (curve.classes - 1)
    slopes = curve.cap * rng.uniform(size=count) ** np.where(np.arange(count) % 2, 1.0, 0.1)
    slopes[::11] = curve.cap
    along = np.concatenate([laws, -np.ones((count, 1))], axis=1)
    inner = np.zeros((count, curve.classes, curve.classes))
    inner[:, :-1, :-1] = laws[:, :, None] * (np.eye(curve.classes - 1) - laws[:, None, :])
    outer = along[:, :, None] * along[:, None, :]
    hessians = slopes[:, None, None] * inner + curve.curvature(slopes)[:, None, None] * outer
    return slopes, laws, along, hessians


def place(edges, values):
    """The cell of each value, and where it lies in it."""
    cell = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
    return cell, (values - edges[cell]) / (edges[cell + 1] - edges[cell])


@pytest.mark.parametrize("curve", CURVES, ids=str)
def test_every_bound_holds_for_random_records(curve):
    slopes, laws, along, hessians = records(curve, 1500, seed=3)
    cells = softmax_cells(curve)
    row, x = place(cells.slopes, slopes)
    column, y = place(cells.shares, 1.0 - laws.max(axis=1))
    trace = np.trace(hessians, axis1=1, axis2=2)
    for weight in WEIGHTS:
        logarithm = np.linalg.slogdet(np.eye(curve.classes) + weight * hessians)[1]
        for excess, exact in ((ROW, logarithm), (Tangent(0.1), weight * trace)):
            corner = cells.planes(weight, excess)[row, column]
            plane = (1.0 - x) * ((1.0 - y) * corner[:, 0, 0] + y * corner[:, 0, 1])
            plane += x * ((1.0 - y) * corner[:, 1, 0] + y * corner[:, 1, 1])
            assert np.all(plane >= exact - 1e-13)
            # Equal masses on the wrong classes attain the bound, up to the width of the cells.
            assert np.max((plane - exact)[::7]) <= 1.2e-3 * max(weight, 1.0) ** 1.2
    assert np.all(cells.trace[row, column] >= trace - 1e-13)
    assert np.max((cells.trace[row, column] - trace)[::7]) <= 0.04
    assert np.all(cells.hessian[row, column] >= np.linalg.norm(hessians, axis=(1, 2)) - 1e-13)
    assert np.all(cells.gradient[row, column] >= slopes * np.linalg.norm(along, axis=1) - 1e-13)
    smallest = np.minimum(curve.mass(slopes) - slopes, slopes * laws.min(axis=1))
    assert np.all(cells.reduced[row, column] >= smallest - 1e-13)
    # What makes the reduced Hessian useful: on centred vectors A is at least its smallest mass.
    assert np.all(np.linalg.eigvalsh(hessians)[:, 1] >= smallest - 1e-13)


@pytest.mark.parametrize("curve", CURVES, ids=str)
def test_hessian_is_that_of_unnormalised_masses(curve):
    slopes, laws, _, hessians = records(curve, 50, seed=4)
    mass = curve.mass(slopes)
    masses = np.concatenate([slopes[:, None] * laws, (mass - slopes)[:, None]], axis=1)
    outer = masses[:, :, None] * masses[:, None, :] / mass[:, None, None]
    assert np.allclose(masses[:, :, None] * np.eye(curve.classes) - outer, hessians, rtol=0.0, atol=1e-14)


@pytest.mark.parametrize("curve", CURVES, ids=str)
def test_records_at_the_corners_are_exact(curve):
    cells = softmax_cells(curve)
    found = cells.records(2.0)
    for row, column in [(3, 5), (40, 60), (len(cells.slopes) - 1, 0), (len(cells.slopes) - 1, 64), (50, 31)]:
        slope, share = cells.slopes[row], cells.shares[column]
        law = np.full(curve.classes - 1, share / (curve.classes - 2))
        law[0] = 1.0 - share
        along = np.append(law, -1.0)
        inner = np.zeros((curve.classes, curve.classes))
        inner[:-1, :-1] = np.diag(law) - np.outer(law, law)
        hessian = slope * inner + curve.curvature(np.array(slope)) * np.outer(along, along)
        values = [part[row, column] for part in found]
        assert values[0] == pytest.approx(slope * np.linalg.norm(along), rel=1e-12)
        assert values[1] == pytest.approx(np.linalg.norm(hessian), abs=1e-8)
        assert values[2] == pytest.approx(
            min(curve.mass(np.array(slope)) - slope, slope * law.min()), abs=1e-13
        )
        assert values[3] == pytest.approx(
            np.linalg.slogdet(np.eye(curve.classes) + 2.0 * hessian)[1], abs=1e-12
        )
        assert values[0] <= np.sqrt(cells.squares[row, column]) * (1.0 + 1e-12)


def test_largest_norms():
    for classes in (3, 10):
        curve = SoftmaxCurve(classes)
        cells = softmax_cells(curve)
        assert 0.5 <= cells.hessian.max() <= 0.503
        assert cells.reduced.max() == pytest.approx(1.0 / classes, rel=1e-9)
        for weight in WEIGHTS:
            most = (classes - 1) * np.log1p(weight / classes)
            assert cells.planes(weight).max() == pytest.approx(most, rel=1e-12)
            assert largest_determinant(curve, weight) == pytest.approx(most, rel=1e-12)


@pytest.mark.parametrize("curve", CURVES, ids=str)
def test_edges_hold_the_corner_of_the_cap_and_equal_masses(curve):
    """There the curvature bends and the smallest mass has a cusp; cells across them would be looser."""
    cells = softmax_cells(curve)
    gaps = curve.mass(cells.slopes) - cells.slopes - cells.slopes / (curve.classes - 1)
    assert np.min(np.abs(gaps)) < 1e-11
    assert np.min(np.abs(cells.slopes - curve.link.corner_slope)) < 1e-15
    assert (cells.slopes[0], cells.slopes[-1]) == (0.0, curve.cap)
    assert (cells.shares[0], cells.shares[-1]) == (0.0, (curve.classes - 2) / (curve.classes - 1))
    assert 0.5 in cells.shares


@pytest.mark.parametrize("curve", CURVES, ids=str)
def test_the_norm_of_a_hessian_is_bounded_wherever_the_other_classes_are(curve):
    """The bound is the largest over the mean of their shares, weighted by themselves; here by brute force."""
    slopes, shares = np.linspace(0.0, curve.cap, 41), np.linspace(0.0, 1.0 - 1.0 / (curve.classes - 1), 31)
    shares = np.union1d(shares, [0.5]) if curve.classes > 3 else shares
    low, high = shares[:-1], shares[1:]
    least, most = low / (curve.classes - 2), np.where(high <= 0.5, high, 1.0 - low)
    slope = slopes[1:, None]
    fine = np.linspace(slopes[:-1], slopes[1:], 201)
    bend = curve.curvature(fine).max(axis=0)[:, None]
    largest = np.zeros((len(slope), len(low)))
    for part in np.linspace(0.0, 1.0, 401):
        mean = least + part * (most - least)
        second, third = (1.0 - low) ** 2 + low * mean, (1.0 - high) ** 3 + high * mean**2
        largest = np.maximum(largest, _frobenius(slope, bend, second, third))
    np.testing.assert_allclose(_hessian(curve, slopes, shares), largest, rtol=2e-5, atol=1e-7)


@pytest.mark.parametrize("curve", CURVES, ids=str)
def test_the_smallest_mass_is_bounded_closely(curve):
    """It falls with the mass of the true class, or rises with the share of the others; by brute force."""
    cells = softmax_cells(curve)
    fine = np.linspace(cells.slopes[:-1], cells.slopes[1:], 401)
    true, rest = curve.mass(fine) - fine, fine[..., None] * cells.shares[1:] / (curve.classes - 2)
    exact = np.minimum(true[..., None], rest).max(axis=0)
    assert np.all(cells.reduced >= exact - 1e-14)
    # An eighth of a cell, of which the true class loses at most twice the width.
    assert np.all(cells.reduced <= exact + 0.25 * np.diff(cells.slopes)[:, None])


@pytest.mark.parametrize("curve", [SoftmaxCurve(2), SoftmaxCurve(2, cap=0.4), *CURVES], ids=str)
def test_a_weight_multiplies_every_hessian(curve):
    weighted = curve.scaled(2.5)
    hessians = 2.5 * records(curve, 300, seed=6)[3]
    for weight in WEIGHTS:
        logarithm = np.linalg.slogdet(np.eye(curve.classes) + weight * hessians)[1].max()
        trace = weight * np.trace(hessians, axis1=1, axis2=2).max()
        for excess, exact in ((ROW, logarithm), (Tangent(0.1), trace)):
            found = largest_determinant(weighted, weight, excess)
            assert found == pytest.approx(largest_determinant(curve, 2.5 * weight, excess), rel=1e-12)
            assert exact <= found * (1.0 + 1e-12) <= 1.05 * exact


def test_shifts_are_told_apart_evenly_by_their_squares():
    cells = softmax_cells(SoftmaxCurve(3))
    squares = np.random.default_rng(2).permutation(np.linspace(0.09, 3.0, cells.hessian.size))
    found = SoftmaxValues.of(cells, 0.4, np.sqrt(squares).reshape(cells.hessian.shape), 0.3)
    wanted = np.linspace(0.09, 3.0, len(found.shifts) + 1)[1:]
    np.testing.assert_allclose(found.shifts**2, wanted, rtol=0.0, atol=1e-3)


def test_the_envelope_is_the_largest_line_everywhere():
    """Whatever lines are left out as never the largest; some are equal, and some columns have none."""
    rng = np.random.default_rng(7)
    at = np.linspace(-4.0, 9.0, 53)
    for bend in (0.0, 0.05, 1.0):
        slopes = np.sort(rng.uniform(0.0, 2.0, 40))
        lines = -bend * (slopes[:, None] - rng.uniform(0.0, 2.0, 6)) ** 2 * np.array([1, 3, 9, 1, 1, 1])
        lines[:, 3] = rng.normal(size=40)
        lines[::3, 4] = -np.inf
        lines[:, 5] = -slopes * at[20]
        lines[[0, -1], :3] -= 50.0
        wanted = np.max(slopes[:, None, None] * at[:, None] + lines[:, None, :], axis=0)
        np.testing.assert_allclose(_envelope(slopes, lines, at), wanted, rtol=0.0, atol=1e-13)


@pytest.mark.parametrize("excess", [ROW, Tangent(0.2)], ids=["row", "person"])
@pytest.mark.parametrize("curve", [CURVES[0], CURVES[4]], ids=str)
def test_values_are_the_largest_of_all_corners(curve, excess):
    """Of one shift exactly; of several, each cell counts with one that is at most one level larger."""
    cells, unit, weight, epsilon = softmax_cells(curve), 0.4, 0.3, 0.7
    largest, gaps = np.array([-3.0, 0.5, 2.0, 5.0]), np.array([0.0, 0.4, 3.0])
    slopes = np.stack([cells.slopes[:-1], cells.slopes[1:]], axis=1)[:, None, :, None]
    shares = np.stack([cells.shares[:-1], cells.shares[1:]], axis=1)[None, :, None, :]
    law = 1.0 - shares
    squares = slopes**2 * (1.0 + law**2 + np.where(shares <= 0.5, shares**2, shares * law))
    loss = (cells.planes(weight, excess) + 0.5 * unit**2 * squares)[..., None, None]
    tilt = largest[:, None] - shares[..., None, None] * gaps
    left = epsilon - (loss + unit * slopes[..., None, None] * tilt).max(axis=(2, 3))

    def largest_of_all(shift):
        return excess.mean(left, shift[..., None, None]).max(axis=(0, 1))

    for spread in (0.0, 0.6, 3.0):
        shift = 0.2 + spread * cells.hessian
        values = SoftmaxValues.of(cells, unit, shift, weight, excess)
        assert np.array_equal(np.sort(values.shifts), values.shifts)
        found = values.at(epsilon, largest, gaps, excess)
        above = np.minimum(np.sqrt(shift**2 + (shift.max() ** 2 - shift.min() ** 2) / 48.0), shift.max())
        assert np.all(found >= largest_of_all(shift) * (1.0 - 1e-12))
        assert np.all(found <= largest_of_all(above) * (1.0 + 1e-12))
        # How fast they rise with the largest difference, and fall with the gap.
        assert values.rates == pytest.approx((unit * curve.cap, unit * curve.cap * cells.shares[-1]))
        assert values.rise == values.rates[0]
