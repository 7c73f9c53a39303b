"""The excess of a row's loss where it is normal, and where tangents are looked for; see test_person."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from expost import gaussian
from expost.privacy.excess import ROW, UNITS, best_tangent


def test_of_a_row_the_mean_is_the_profile():
    left, shift = np.linspace(-3.0, 3.0, 13)[:, None], np.array([0.0, 0.3, 2.0])
    wanted = gaussian.delta(left, sensitivity=shift, sigma=1.0)
    assert np.array_equal(ROW.mean(left, shift), wanted)
    assert np.array_equal(ROW.mean_at_shift(left[:, 0], 2.0), wanted[:, 2])
    assert ROW.room == UNITS["person"].room == 0.0
    # A Hessian vvᵀ of this trace.
    assert float(ROW.determinant(2.5)) == pytest.approx(np.linalg.slogdet(np.eye(3) + 2.5 / 3.0)[1])


@pytest.mark.parametrize("shift", [0.1, 0.7, 1.5, 3.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.05, 0.4, 1.0, 2.0, 4.0, 6.0])
def test_the_mean_of_a_loss_with_slopes_of_either_sign(epsilon, shift):
    """The loss is Δ²/2 + Δ|N|: of small epsilons it is above all of them."""

    def value(noise):
        return -math.expm1(epsilon - 0.5 * shift**2 - shift * noise) * norm.pdf(noise)

    kink = max(epsilon / shift - 0.5 * shift, 0.0)
    wanted = 2.0 * quad(value, kink, kink + 15.0, epsabs=0.0, epsrel=1e-11, limit=200)[0]
    assert ROW.folded(epsilon, shift) == pytest.approx(wanted, rel=1e-9, abs=0.0)


@pytest.mark.parametrize("shift", [0.2, 1.0, 2.5])
@pytest.mark.parametrize("share", [-0.5, 0.0, 0.01, 0.2, 0.4, 0.5, 1.0])
def test_means_are_convex_in_an_exponential(shift, share):
    """In x = exp(-ρu), up to the loss at which so much is left; from Δ²/2 on in the loss itself."""
    left = np.array(share * shift**2)
    rate = float(ROW.bend(left, np.array(shift)))
    losses = np.linspace(-6.0 * shift, 0.0, 801)
    if rate > 0.0:
        x = np.linspace(math.exp(-rate * losses[-1]), math.exp(-rate * losses[0]), 801)
        losses = -np.log(x) / rate
    values = gaussian.delta(left - losses, sensitivity=shift, sigma=1.0)
    assert np.all(np.diff(values, 2) >= -1e-14)


def test_the_rate_of_the_exponential_falls_to_zero():
    for shift in (0.1, 0.9, 4.0):
        places = np.array([-3.0, -0.1, 0.0, 1e-9, 0.25, 0.5, 2.0]) * shift**2
        rates = ROW.bend(places, np.array(shift))
        assert rates == pytest.approx([1.0, 1.0, 1.0, 0.5, 0.25, 0.0, 0.0], abs=1e-8)
    # Without a statistic the mean is the excess itself: zero, and then convex in exp(-u) alone.
    assert np.array_equal(ROW.bend(np.array([-1.0, 1e-3, 3.0]), np.array(0.0)), [1.0, 0.0, 0.0])


@pytest.mark.parametrize("epsilon", [1e-4, 0.03, 1.0, 8.0])
@pytest.mark.parametrize("share", [0.5, 1.0, 2.0])
def test_the_tangent_that_is_found_has_about_the_smallest_bound(epsilon, share):
    """Of normal losses of all sizes, against every place on a fine grid."""
    shift = share * epsilon / 4.0

    def bound(tangent):
        return float(tangent.mean(np.array(epsilon), np.array(shift)))

    found = best_tangent(epsilon, bound)
    places = np.log1p(math.sqrt(2.0 * epsilon)) * np.geomspace(1e-10, 1.0, 801)
    best = min(bound(type(found)(float(tau))) for tau in places)
    assert bound(found) <= (1.0 + 1e-4) * best


@pytest.mark.parametrize("epsilon", [0.0, 1e-8, 1e-4, 1.0, 40.0])
def test_the_farthest_tangent_is_zero_at_zero(epsilon):
    """It leaves nothing of epsilon where that is small."""
    found = best_tangent(epsilon, lambda one: -one.tau)
    assert found.room <= epsilon
    assert found.tau == pytest.approx(math.log1p(math.sqrt(2.0 * epsilon)), rel=2e-3)
    assert found.room == pytest.approx(epsilon, rel=math.sqrt(epsilon) + 5e-3)
