"""The law of the two largest differences, and the bilinear bound on an expectation over it."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import norm

from expost import gaussian
from expost.privacy.excess import Tangent
from expost.privacy.order_statistics import LargestTwo, flat_delta, flat_sigma, grid_of


def direct(classes, largest, gap):
    """The joint density, by its integral over the noise of the true class."""

    def integrand(w):
        top, second = largest + w, largest - gap + w
        return norm.pdf(w) * norm.pdf(top) * norm.pdf(second) * ndtr(second) ** (classes - 3)

    centre = -(2.0 * largest - gap) / 3.0
    value, _ = quad(integrand, centre - 9.0, centre + 9.0 + gap, epsabs=0.0, epsrel=1e-12, limit=200)
    return (classes - 1) * (classes - 2) * value


@pytest.mark.parametrize("classes", [3, 4, 10, 300, 5000])
def test_density_agrees_with_its_integral(classes):
    for largest, gap in [(0.3, 0.1), (5.0, 0.0), (6.5, 4.0), (9.0, 2.5), (-1.0, 0.7)]:
        value = LargestTwo(classes).density(np.array(largest), np.array(gap))
        assert value == pytest.approx(direct(classes, largest, gap), rel=1e-9, abs=0.0)


@pytest.mark.parametrize("classes", [2, 3, 40])
def test_the_density_of_the_largest_is_that_of_a_maximum(classes):
    for largest in (-28.0, -13.0, -6.0, -1.0, 0.0, 2.5, 9.0):
        wanted, _ = quad(
            lambda w, x=largest: norm.pdf(w) * norm.pdf(x + w) * ndtr(x + w) ** (classes - 2),
            *(-0.5 * largest - 9.0, max(-0.5 * largest, -largest) + 12.0),
            epsabs=0.0,
            epsrel=1e-12,
        )
        found = LargestTwo(classes).largest(np.array(largest))
        assert found == pytest.approx((classes - 1) * wanted, rel=1e-9, abs=0.0)


@pytest.mark.parametrize("classes", [3, 4, 10, 1000])
def test_mass_and_margins(classes):
    """The grid's law has mass one, and its gaps integrate to the density of the largest difference."""
    law = LargestTwo(classes)
    grid = grid_of(law, -9.0, 13.0, 100, 40)
    assert grid.joint.sum() + grid.beyond.sum() == pytest.approx(1.0, abs=1e-9)
    assert grid.beyond.sum() < 1e-9
    coarse, fine = grid_of(law, 4.5, 9.5, 60, 30), grid_of(law, 4.5, 9.5, 120, 70)
    assert coarse.joint.sum() == pytest.approx(fine.joint.sum(), rel=1e-11)


@pytest.mark.parametrize("classes", [3, 30])
def test_tails_are_bounded(classes):
    law = LargestTwo(classes)
    rng = np.random.default_rng(5)
    noise = rng.standard_normal((100_000, classes))
    largest = (noise[:, 1:] - noise[:, :1]).max(axis=1)
    # No share of 100,000 draws is above its probability by 0.0086, but with a probability of 4e-7, and none
    # below (Dvoretzky-Kiefer-Wolfowitz with Massart's constant): a false alarm of 8e-7.
    for at in (-1.0, 0.0, 1.0, 2.0, 3.0):
        assert np.mean(largest > at) <= law.above(at) + 0.0086
        assert np.mean(largest < at) <= law.below(at) + 0.0086
    for tail in (0.1, 1e-6, 1e-200):
        assert law.above(law.reach(math.log(tail))) <= tail * (1.0 + 1e-9)


def test_of_one_difference_the_bounds_are_exact():
    """It has the variance 2; of more differences each counts in full."""
    one, six = LargestTwo(2), LargestTwo(7)
    law = norm(scale=math.sqrt(2.0))
    for at in (-3.0, 0.0, 0.7, 4.0, 11.0):
        mean, _ = quad(lambda x, at=at: (x - at) * law.pdf(x), max(at, -12.0), at + 16.0, epsabs=0.0)
        assert one.overshoot(at) == pytest.approx(mean, rel=1e-9, abs=0.0)
        assert six.overshoot(at) == pytest.approx(6.0 * mean, rel=1e-9, abs=0.0)
        assert one.above(at) == pytest.approx(law.sf(at), rel=1e-12, abs=0.0)
        assert one.below(at) == six.below(at) == pytest.approx(law.cdf(at), rel=1e-12, abs=0.0)
        assert six.above(at) == pytest.approx(min(1.0, 6.0 * law.sf(at)), rel=1e-12, abs=0.0)
    for tail in (0.5, 0.1, 1e-200):
        assert one.reach(math.log(tail)) == pytest.approx(law.isf(tail), rel=1e-12, abs=1e-12)
        assert six.above(six.reach(math.log(tail))) == pytest.approx(tail, rel=1e-9, abs=0.0)
    # Points below the median are not asked for.
    assert one.reach(0.0) == pytest.approx(0.0, abs=1e-12)


def test_the_weights_are_exact_for_products_of_exponentials():
    """Of three classes, whose two differences are normal with correlation one half; gaps end at the last."""
    grid = grid_of(LargestTwo(3), -1.0, 2.0, 24, 20)
    assert (len(grid.edges), len(grid.gaps)) == (25, 21)
    assert (grid.edges[0], grid.edges[-1], grid.gaps[0]) == (-1.0, 2.0, 0.0)
    last = grid.gaps[-1]
    rule, masses = np.polynomial.legendre.leggauss(60)
    largest, width = 0.5 + 1.5 * rule, 1.5 * masses
    for rate, gap_rate in [(0.8, 0.3), (0.1, 1.1)]:
        weights = grid.weights(rate, gap_rate)
        for along, across in [(0.0, 0.0), (-rate, 0.0), (0.0, gap_rate), (-rate, gap_rate)]:
            wanted = 0.0
            for start, end in [(0.0, last), (last, last + 14.0)]:
                gap, mass = 0.5 * (start + end + (end - start) * rule), 0.5 * (end - start) * masses
                x, second = largest[:, None], largest[:, None] - gap
                density = np.exp(-(x**2 - x * second + second**2) / 3.0) / (math.pi * math.sqrt(3.0))
                value = np.exp(along * x + across * np.minimum(gap, last))
                wanted += width @ (density * value) @ mass
            found = np.sum(weights * np.exp(along * grid.edges[:, None] + across * grid.gaps))
            assert found == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("classes", [3, 10])
@pytest.mark.parametrize("cells", [(12, 8), (60, 30)])
def test_weights_bound_an_expectation_from_above(classes, cells):
    """For the maximum of two losses that are affine in the noise, coarse cells or fine."""
    law = LargestTwo(classes)

    def value(largest, gap):
        loss = np.maximum(0.03 + 0.16 * largest, 0.2 + 0.16 * largest - 0.08 * gap)
        return np.maximum(-np.expm1(1.0 - loss), 0.0)

    def upper(cells):
        grid = grid_of(law, 4.0, 10.0, *cells)
        weights = grid.weights(0.16, 0.08)
        assert np.all(weights >= -1e-18)
        return float(np.sum(weights * value(grid.edges[:, None], grid.gaps)))

    # Finer cells have a smaller bound, of second order in their width.
    fine, finer = upper((120, 60)), upper((240, 90))
    assert finer <= fine <= 1.01 * finer
    assert fine <= upper(cells) <= (2.0 if cells[0] < 20 else 1.04) * finer


def test_without_the_determinant_two_classes_are_the_gaussian_mechanism():
    for epsilon, shift in [(0.1, 0.02), (1.0, 0.17), (8.0, 1.3), (50.0, 5.0), (0.0, 0.3), (26.0, 1.0)]:
        exact = float(gaussian.delta(epsilon, sensitivity=math.sqrt(2.0) * shift, sigma=1.0))
        assert flat_delta(2, epsilon, shift) == pytest.approx(exact, rel=1e-9, abs=0.0)


@pytest.mark.parametrize("classes", [3, 30])
def test_without_the_determinant_the_worst_record_has_one_wrong_class(classes):
    """Its loss is s² + s times the largest difference; with large shifts all of its law is above epsilon."""
    law = LargestTwo(classes)
    for epsilon, shift in [(0.0, 0.2), (1.0, 0.17), (0.5, 1.3), (3.0, 6.0), (700.0, 25.0), (1.0, 30.0)]:
        kink = max(epsilon / shift - shift, -20.0)
        wanted, _ = quad(
            lambda x, e=epsilon, s=shift: -math.expm1(e - s * s - s * x) * float(law.largest(np.array(x))),
            *(kink, max(kink, 3.0) + 15.0),
            epsabs=0.0,
            epsrel=1e-11,
            limit=200,
        )
        assert flat_delta(classes, epsilon, shift) == pytest.approx(wanted, rel=1e-9, abs=0.0)


@pytest.mark.parametrize("classes", [3, 10, 100])
def test_without_the_determinant_at_most_one_mechanism_for_each_wrong_class(classes):
    for epsilon, shift in [(0.1, 0.02), (1.0, 0.17), (8.0, 1.3)]:
        one = float(gaussian.delta(epsilon, sensitivity=math.sqrt(2.0) * shift, sigma=1.0))
        assert one < flat_delta(classes, epsilon, shift) <= min(1.0, (classes - 1) * one)


@pytest.mark.parametrize(("classes", "sigma"), [(2, 5.9746), (3, 6.1722), (10, 6.5836)])
def test_noise_without_the_determinant(classes, sigma):
    found = flat_sigma(classes, 1.0, 1e-6)
    assert found == pytest.approx(sigma, rel=2e-5)
    assert flat_delta(classes, 1.0, 1.0 / found) <= 1e-6


@pytest.mark.parametrize("classes", [3, 10, 100])
@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.1, 1e-9), (0.5, 1e-5), (1.0, 1e-6), (4.0, 0.3), (9.0, 0.01)]
)
def test_noise_without_the_determinant_is_on_the_private_side(classes, epsilon, delta):
    sigma = flat_sigma(classes, epsilon, delta)
    assert (1.0 - 1e-9) * delta <= flat_delta(classes, epsilon, 1.0 / sigma) <= delta


def test_bounds_on_probabilities_are_probabilities():
    law = LargestTwo(10)
    assert law.above(-40.0) == 1.0
    assert law.below(40.0) == 1.0
    assert law.above(40.0) < 1e-100
    # The mean loss of people is three or more, and no probability.
    assert flat_delta(3, 0.0, 3.0, Tangent(0.0)) == 1.0
