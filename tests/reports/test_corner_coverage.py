"""Reports of models with corners hold as often as they say, and quantiles of the noise alone would not."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit, ndtr, ndtri

import expost
import expost.research
from expost.fitting.release import Release
from expost.losses.corners import Corners
from expost.privacy.plan import Plan
from expost.privacy.scales import NoiseScales
from expost.reports.laws import NORMAL, Across, Chi, Spread, conditional_quantile


@pytest.mark.parametrize("largest", [1e-3, 0.36, 1.85, 12.0])
@pytest.mark.parametrize("failure", [0.5, 0.05, 1e-6])
def test_the_margin_is_the_conditional_value_at_risk(largest, failure):
    z = -ndtri(0.5 * failure)
    closed = 0.5 * largest + math.log(2.0 * ndtr(largest - z) / failure) / largest
    assert conditional_quantile(NORMAL, failure, largest) == pytest.approx(closed, abs=1e-10)
    # Of any law, by its own tail.
    law = Chi(7) if largest > 1.0 else Across(3)
    found = conditional_quantile(law, failure, largest)
    draws = np.linspace(law.quantile(failure), law.quantile(failure) + 12.0 + largest, 3_001)
    mean = np.sum(np.exp(largest * 0.5 * (draws[1:] + draws[:-1])) * -np.diff(law.tail(draws))) / failure
    assert found == pytest.approx(math.log(mean) / largest, rel=1e-4)
    # Beyond what the integral can hold there is a larger bound.
    assert conditional_quantile(NORMAL, failure, 20.0) <= conditional_quantile(NORMAL, failure, 20.1)


@pytest.mark.parametrize("law", [NORMAL, Chi(7), Across(3), Spread(3)], ids=str)
def test_a_margin_of_more_than_twenty_deviations_is_a_larger_one(law):
    """A length of k normals has at most the exponential moments of one normal around the root of k."""
    for largest in (20.01, 20.9, 300.0):
        for failure in (0.5, 1e-6):
            wanted = math.sqrt(getattr(law, "freedom", 1)) + 0.5 * largest - math.log(failure) / largest
            assert conditional_quantile(law, failure, largest) == pytest.approx(wanted, rel=1e-14)
            assert wanted > conditional_quantile(law, failure, 20.0)


@pytest.mark.parametrize("law", [Chi(100), Chi(425), Chi(8000), Across(50)], ids=str)
@pytest.mark.parametrize("largest", [1.0, 20.0])
def test_the_margin_of_many_normals_is_the_integral_over_all_of_their_tail(law, largest):
    """Where a length's tail falls as slowly as that of a normal around the root of their number."""
    for failure in (0.5, 0.05):
        start = law.quantile(failure)
        at = np.linspace(0.0, 60.0, 120_001)  # the trapezoidal rule, off by less than a millionth of a tail
        with np.errstate(divide="ignore"):
            beyond = np.trapezoid(np.exp(largest * at + np.log(law.tail(start + at))), at)
        wanted = start + math.log1p(largest * beyond / failure) / largest
        assert conditional_quantile(law, failure, largest) == pytest.approx(wanted, rel=1e-7)


def test_the_margin_of_the_theory():
    assert conditional_quantile(NORMAL, 0.05, 1.0 / 2.8) == pytest.approx(2.36, abs=0.005)
    assert conditional_quantile(NORMAL, 1e-6, 1.0 / 2.8) == pytest.approx(5.09, abs=0.005)


class OneCoefficient:
    """Logistic regression of one coefficient: every probability is an integral over one normal."""

    def __init__(self, seed, *, sigma, l2, corners=None, active=None, rows=None):
        rng = np.random.default_rng(seed)
        if rows is None:
            count = int(rng.integers(1, 30))
            rows = rng.uniform(-1.0, 1.0, count), rng.integers(0, 2, count).astype(float)
        self.X, self.y = np.append(rows[0], 1.0), np.append(rows[1], 0.0)
        self.sigma, self.l2 = sigma, l2
        if active is not None:

            def excess(t):
                return ndtr(-self.gradient(np.array([t]), slice(-1))[0] / sigma) - active

            end = brentq(excess, -99.0, 99.0)
            corners = Corners.of(0.0, np.array([-math.inf]), np.array([end]), intercept=False)
        self.corners = corners

    def gradient(self, theta, rows=slice(None)):
        return (expit(np.multiply.outer(theta, self.X[rows])) - self.y[rows]) @ self.X[rows] + self.l2 * theta

    def hessian(self, theta, rows=slice(None)):
        p = expit(np.multiply.outer(theta, self.X[rows]))
        return (p * (1.0 - p)) @ self.X[rows] ** 2 + self.l2

    def law(self, theta, rows=slice(None)):
        """The logarithm of the density at each point, or of the atom at a kink."""
        gradient = self.gradient(theta, rows)
        below, above = self.corners.slopes(theta)
        at = below < above
        with np.errstate(divide="ignore"):
            atom = np.log(ndtr((-gradient - below) / self.sigma) - ndtr((-gradient - above) / self.sigma))
        density = -0.5 * ((gradient + np.where(at, 0.0, below)) / self.sigma) ** 2
        density += np.log(self.hessian(theta, rows)) - math.log(self.sigma * math.sqrt(2.0 * math.pi))
        return np.where(at, atom, density)

    def failure(self, margin, *, member=True, cells=8_000):
        """How often the loss of the last row, in the table or not, is beyond its bound with this margin."""
        table, other = (slice(None), slice(-1)) if member else (slice(-1), slice(None))
        low, middle, high = (float(kink[0]) for kink in self.corners.kinks)
        far = (10.0 * self.sigma + np.abs(self.X).sum() + self.corners.l1[0]) / self.l2
        ends = sorted({max(low, -far), min(high, far)} | ({middle} if abs(middle) < far else set()))
        points, masses = [], []
        for a, b in pairwise(ends):
            edges = np.linspace(a, b, cells + 1)
            inside = 0.5 * (edges[1:] + edges[:-1])
            # On a piece the noise falls as the coefficient rises.
            slope = self.corners.slopes(inside[:1])[0][0]
            masses.append(-np.diff(ndtr((-self.gradient(edges, table) - slope) / self.sigma)))
            points.append(inside)
        kinks = np.array([kink for kink in {low, middle, high} if math.isfinite(kink)])
        points.append(kinks)
        masses.append(np.exp(self.law(kinks, table)))
        theta, mass = np.concatenate(points), np.concatenate(masses)
        assert mass.sum() == pytest.approx(1.0, abs=1e-9)
        own = self.law(theta, table)
        theta, mass, own = theta[own > -math.inf], mass[own > -math.inf], own[own > -math.inf]
        loss = np.abs(own - self.law(theta, other))
        p = expit(theta * self.X[-1])
        a = p / self.sigma
        bound = np.log1p(p * (1.0 - p) / self.l2) + 0.5 * a**2 + margin * a
        return float(mass[loss > bound].sum())


def settings(count):
    """Random tables with a bound that is active with a small probability, signs, or a penalty."""
    for seed in range(count):
        rng = np.random.default_rng(100 + seed)
        sigma, l2 = math.exp(rng.uniform(-0.5, 2.7)), math.exp(rng.uniform(-1.0, 2.0))
        if seed % 3 == 0:
            yield OneCoefficient(seed, sigma=sigma, l2=l2, active=rng.uniform(0.01, 0.6))
        elif seed % 3 == 1:
            yield OneCoefficient(seed, sigma=sigma, l2=l2, corners=kinked(0.0, 0.0, math.inf))
        else:
            yield OneCoefficient(seed, sigma=sigma, l2=l2, corners=kinked(sigma, -0.5, math.inf))


def kinked(l1, low, high):
    return Corners.of(l1, np.array([low]), np.array([high]), intercept=False)


def check(cases, levels=(0.5, 0.8, 0.95)):
    for case in cases:
        for level in levels:
            margin = conditional_quantile(NORMAL, 1.0 - level, 1.0 / case.sigma)
            assert max(case.failure(margin, member=side) for side in (True, False)) <= 1.0 - level


@pytest.mark.long
def test_reports_hold_as_often_as_they_say():
    check(settings(12))


@pytest.mark.slow
def test_reports_hold_as_often_as_they_say_in_many_settings():
    check(settings(150))


@pytest.mark.long
def test_the_quantile_of_the_noise_fails_where_a_bound_is_rarely_active():
    many = np.full(1000, 0.1), np.ones(1000)
    case = OneCoefficient(0, sigma=14.3, l2=5.4, active=0.06, rows=many)
    naive = case.failure(1.959964, member=False)
    assert naive == pytest.approx(0.0785, abs=1e-3)
    assert case.failure(conditional_quantile(NORMAL, 0.05, 1.0 / 14.3), member=False) <= 0.05


def test_the_library_reads_what_the_test_integrates():
    sigma, l2 = 2.0, 1.0
    plan = Plan(expost.LogisticLoss(), 1.0, False, "independent", "tight", 1.0, 0.5, l2, NoiseScales(sigma))
    release = Release(
        plan, np.array([0.3, 0.0]), corners=Corners.of(1.0, -math.inf, [math.inf] * 2, intercept=False)
    )
    X, y = np.array([[0.6, 0.8], [1.0, 0.0]]), np.array([0.0, 1.0])
    slopes = np.abs(expit(X @ release.coefficients) - y)
    for confidence in (0.5, 0.95):
        found = expost.research.bounds(release, X, y, confidence=confidence, member=True)
        margin = conditional_quantile(NORMAL, 1.0 - confidence, (1.0 / sigma) / (1.0 - 2.0**-10))
        upper = np.log1p(slopes * (1.0 - slopes) / l2) + 0.5 * (slopes / sigma) ** 2 + margin * slopes / sigma
        assert found.upper == pytest.approx(upper, rel=1e-11)
        assert found.total == pytest.approx(upper, rel=1e-11)
