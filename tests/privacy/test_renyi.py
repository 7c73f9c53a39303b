"""Rényi divergences: above quadratures, certified over cells of class masses, and what they are good for."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from convex_losses import OneOfMany
from grids import grid
from mpmath import mp, mpf
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import expit, logsumexp, softmax

import expost
from expost import LogisticLoss, SmoothedNorm, gaussian
from expost.losses.base import DerivativeCurve
from expost.losses.softmax_curve import SoftmaxCurve
from expost.privacy import renyi
from expost.privacy.adaptive import AdaptiveComposition, curve_divergence, filter_order
from expost.privacy.composition import Composition
from expost.privacy.plan import accounting_of
from expost.privacy.precision import REAL, Rounding
from expost.privacy.profile import PrivacyProfile
from expost.privacy.profile_curve import ProfileCurve, curve_of
from expost.privacy.scales import NoiseScales
from expost.privacy.shapes import capped_logistic, classification_loss
from expost.privacy.softmax_profile import SoftmaxProfile

ORDERS = np.array([1.5, 2.0, 5.0, 12.0])


@pytest.mark.long
def test_one_dimension_by_quadrature():
    """Random tables of logistic records with and without one of them, both directions."""
    rng = np.random.default_rng(0)
    for _ in range(60):
        sigma, l2 = np.exp(rng.uniform(-1.0, 2.0)), np.exp(rng.uniform(-2.0, 2.0))
        rows = rng.uniform(-1.0, 1.0, rng.integers(0, 6)) * rng.choice([0.1, 1.0])
        theta = np.linspace(-1.0, 1.0, 40001) * (12.0 * sigma + len(rows) + 1.0) / l2

        def log_density(rows, theta=theta, sigma=sigma, l2=l2):
            slope = l2 * theta - sum((x * expit(-x * theta) for x in rows), np.zeros(1))
            bend = l2 + sum((x * x * expit(x * theta) * expit(-x * theta) for x in rows), np.zeros(1))
            return -0.5 * (slope / sigma) ** 2 + np.log(bend / sigma) - 0.5 * math.log(2.0 * math.pi)

        without, with_it = log_density(rows), log_density([*rows, 1.0])
        found = PrivacyProfile(LogisticLoss().curve, 1.0, l2, NoiseScales(sigma)).divergences(ORDERS)
        for order, added, removed in zip(ORDERS, found["adding"], found["removing"], strict=True):
            for first, second, bound in ((with_it, without, added), (without, with_it, removed)):
                mass = np.trapezoid(np.exp(order * first - (order - 1.0) * second), theta)
                assert math.log(mass) / (order - 1.0) <= bound + 1e-6


def smoothed(theta, record):
    """Gradients and Hessians of the smoothed norm of width one half, at many locations."""
    apart = theta - record
    size = np.sqrt(0.25 + np.sum(apart**2, axis=1))[:, None]
    gradient = apart / size
    return gradient, (np.eye(2) - gradient[:, :, None] * gradient[:, None, :]) / size[:, :, None]


def three_classes(theta, record):
    """The same of a softmax record of three classes and one feature, in centred coordinates."""
    row, label = record
    basis = np.array([[1.0, 1.0], [-1.0, 1.0], [0.0, -2.0]]) / np.sqrt([2.0, 6.0])
    mass = softmax(row * theta @ basis.T, axis=1)
    gradient = row * (mass - np.eye(3)[int(label)]) @ basis
    within = mass[:, :, None] * (np.eye(3) - mass[:, None, :])
    return gradient, row**2 * (basis.T @ within @ basis)


def visits(theta, record):
    """The same of a person with several logistic rows of label 1, each of the same weight."""
    gradient, hessian = np.zeros(theta.shape), np.zeros((len(theta), 2, 2))
    for row in record:
        wrong = expit(-theta @ row)
        gradient -= wrong[:, None] * row / len(record)
        hessian += (wrong * (1.0 - wrong))[:, None, None] * np.outer(row, row) / len(record)
    return gradient, hessian


def disc(rng, count):
    angles = rng.uniform(0.0, 2.0 * math.pi, count)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1) * rng.choice([0.3, 1.0, 1.0], (count, 1))


PLANE = {
    "smoothed norm": (smoothed, lambda rng: disc(rng, 1)[0], SmoothedNorm(2, 0.5).curve, "row"),
    "three classes": (three_classes, lambda rng: (1.0, rng.integers(3)), SoftmaxCurve(3), "row"),
    "person": (visits, lambda rng: disc(rng, 3), LogisticLoss().curve, "person"),
}


@pytest.mark.parametrize("count", [4, pytest.param(60, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", PLANE)
def test_two_dimensions_by_quadrature(kind, count):
    """Tables of up to three records with and without one more, both directions; seeded."""
    derivatives, draw, curve, unit = PLANE[kind]
    rng = np.random.default_rng(sorted(PLANE).index(kind))
    nearest = 0.0
    for _ in range(count):
        sigma, l2 = np.exp(rng.uniform(0.5, 2.0)), curve.max_curvature * np.exp(rng.uniform(0.7, 2.5))
        others = [draw(rng) for _ in range(rng.integers(4))]
        reach = 7.0 * sigma + len(others) + ORDERS[-1]  # where the integrand of the highest order lies
        line = np.linspace(-1.0, 1.0, 261) * reach / l2
        one_more = draw(rng)
        # A linear term of the regulariser moves the coefficients to where the record is a surprise.
        centre = rng.choice([0.0, 2.0, 6.0]) * derivatives(np.zeros((1, 2)), one_more)[0]
        theta = centre + np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
        slope, bend = l2 * (theta - centre), np.broadcast_to(l2 * np.eye(2), (len(theta), 2, 2))
        for record in others:
            gradient, hessian = derivatives(theta, record)
            slope, bend = slope + gradient, bend + hessian
        gradient, hessian = derivatives(theta, one_more)

        def log_density(slope, bend, sigma=sigma):
            whole = -0.5 * np.sum((slope / sigma) ** 2, axis=1) + np.log(np.linalg.det(bend))
            return whole - math.log(2.0 * math.pi * sigma**2)

        without, with_it = log_density(slope, bend), log_density(slope + gradient, bend + hessian)
        area = (line[1] - line[0]) ** 2
        assert np.exp(without).sum() * area == pytest.approx(1.0, abs=1e-6)  # the grid is wide and fine
        found = accounting_of(curve, 1.0, unit=unit).profile(l2, NoiseScales(sigma)).divergences(ORDERS)
        for place, order in enumerate(ORDERS):
            for name, first, second in (("adding", with_it, without), ("removing", without, with_it)):
                mass = np.exp(logsumexp(order * first - (order - 1.0) * second)) * area
                divergence = math.log(mass) / (order - 1.0)
                assert divergence <= found[name][place] + 1e-5
                nearest = max(nearest, divergence / found[name][place])
    assert nearest > 0.3


@pytest.mark.parametrize("share", [0.3, 0.5])
def test_a_curve_of_determinants_does_not_stand_for_eigenvalues(share):
    """One eigenvalue, declared by its trace: the mean of ten would be exceeded, by up to 1.1 times."""
    sigma, l2 = 1.0, 20.0
    loss = OneOfMany(share * sigma / l2)
    expost.check_convex_loss(loss)
    theta = np.linspace(-14.0, 14.0, 40001) * sigma / l2
    bent = np.hypot(1.0, theta / loss.threshold)
    without = -0.5 * (l2 * theta / sigma) ** 2 + math.log(l2 / sigma) - 0.5 * math.log(2.0 * math.pi)
    with_it = -0.5 * ((l2 * theta + theta / bent) / sigma) ** 2 - 0.5 * math.log(2.0 * math.pi)
    with_it += np.log((l2 + bent**-3) / sigma)
    found = PrivacyProfile(loss.curve, 1.0, l2, NoiseScales(sigma)).divergences(ORDERS)
    mean = 0.5 * ORDERS * (loss.threshold / sigma) ** 2 + 10.0 * renyi.adding_excess(ORDERS, 0.1 / l2)
    for place, order in enumerate(ORDERS):
        pairs = {"adding": (with_it, without), "removing": (without, with_it)}
        for direction, (first, second) in pairs.items():
            mass = np.trapezoid(np.exp(order * first - (order - 1.0) * second), theta)
            assert math.log(mass) / (order - 1.0) <= found[direction][place]
            if direction == "adding":
                assert math.log(mass) / (order - 1.0) > mean[place]


@pytest.mark.parametrize("curve", [LogisticLoss().curve, expost.PseudoHuber().curve], ids=["fixed", "free"])
def test_without_a_determinant_they_are_those_of_a_gaussian_mechanism(curve):
    """Half an order of the squared shift of everything that is published, and of the solver."""
    scales, rounding = NoiseScales(2.0, sigma_gradient=0.2), Rounding(solver=0.5)
    found = PrivacyProfile(curve, 3.0, math.inf, scales, rounding).divergences(ORDERS)
    square = (3.0 / 2.0) ** 2 + (3.0 / 0.2) ** 2 + 0.5**2
    for direction in ("adding", "removing"):
        np.testing.assert_allclose(found[direction], 0.5 * ORDERS * square, rtol=1e-9)


def test_declared_eigenvalues_are_all_covered():
    """Random eigenvalues that a curve of determinants allows: their sum and their largest are bounded."""
    rng = np.random.default_rng(8)
    for _ in range(300):
        rank, l2 = int(rng.integers(2, 12)), float(np.exp(rng.uniform(-1.0, 3.0)))
        values = rng.random(rank) ** rng.integers(1, 8)
        mean, largest = (partial(np.full_like, fill_value=one) for one in (values.mean(), values.max()))
        curve = DerivativeCurve(1.0, mean, 0.0, False, outputs=rank, rank=rank, eigenvalue=largest)
        for size in (1, 3):
            scaled = curve.scaled(size)
            found = PrivacyProfile(scaled, 1.0, l2, NoiseScales(3.0)).divergences(ORDERS)
            square = 0.5 * ORDERS * (size / 3.0) ** 2
            order, sizes = ORDERS[:, None], size * values / l2
            for name, excess in (("adding", renyi.adding_excess), ("removing", renyi.removing_excess)):
                assert np.all(square + excess(order, sizes).sum(axis=1) <= found[name] * (1.0 + 1e-9))


def test_one_eigenvalue_of_ten_is_charged_as_one():
    """What a curve of determinants says of the trace, a tenth of the largest on average, counts."""
    mean, largest = (partial(np.full_like, fill_value=one) for one in (0.1, 1.0))
    curve = DerivativeCurve(1.0, mean, 0.0, False, outputs=10, rank=10, eigenvalue=largest)
    found = PrivacyProfile(curve, 1.0, 20.0, NoiseScales(3.0)).divergences(ORDERS)
    for name, excess in (("adding", renyi.adding_excess), ("removing", renyi.removing_excess)):
        np.testing.assert_allclose(found[name], 0.5 * ORDERS / 9.0 + excess(ORDERS, 1.0 / 20.0), rtol=1e-9)


def test_the_determinant_is_of_second_order():
    order, size = ORDERS[:, None], np.geomspace(1e-9, 3.0, 200)
    first = renyi.adding_excess(order, size)
    assert np.all(first <= 0.5 * order * size**2)
    assert np.all(first <= np.log1p(size) * (1.0 + 1e-9))
    assert renyi.removing_excess(np.array(5.0), np.array(0.25)) == math.inf
    assert renyi.removing_excess(np.array(5.0), np.array(3.0)) == math.inf
    small = renyi.removing_excess(order, 1e-3 / order)
    np.testing.assert_allclose(small, 0.5 * order * (1e-3 / order) ** 2, rtol=2e-3)


def test_excesses_are_rounded_towards_privacy():
    """By fifty digits: above their formulas, by no more than the rounding of what cancels in them."""
    rng = np.random.default_rng(5)
    for order in (1.5, 2.0, 3.0, 40.0, 8193.0):
        sizes = np.exp(rng.uniform(-25.0, 3.0, 250))
        added = renyi.adding_excess(np.asarray(order), sizes).tolist()
        lefts = (sizes / 25.0 / order).tolist()
        removed = renyi.removing_excess(np.asarray(order), np.array(lefts)).tolist()
        with mp.workdps(50):
            a = mpf(order)
            for size, left, found, other in zip(sizes.tolist(), lefts, added, removed, strict=True):
                exact = (a * mp.log(1 + mpf(size)) - mp.log(1 + a * mpf(size))) / (a - 1)
                rounding = mpf(10) ** -14 * size * a / (a - 1)
                assert exact * (1 - mpf(2) ** -51) <= found <= exact + rounding
                assert found <= a / 2 * mpf(size) ** 2 * (1 + mpf(2) ** -51)
                exact = -mp.log(1 + mpf(left)) - mp.log(1 - (a - 1) * mpf(left)) / (a - 1)
                assert exact <= other <= exact + mpf(10) ** -14 * left


@pytest.mark.parametrize("order", [1.5, 3.0, 40.0, 8193.0])
def test_what_eigenvalues_add_for_each_unit_of_their_sum_is_a_mean(order):
    """Of the slope of their excess, by quadrature; for an added record the steepest one, from there on."""

    def added(x):
        return (order / (1.0 + x) - order / (1.0 + order * x)) / (order - 1.0)

    def removed(x):
        return 1.0 / (1.0 - (order - 1.0) * x) - 1.0 / (1.0 + x)

    steepest = order**-0.5
    for share in (0.1, 0.5, 0.99):
        largest = np.asarray(share * steepest)
        mean = quad(added, 0.0, float(largest), epsabs=0.0)[0] / float(largest)
        assert renyi.adding_mean(np.asarray(order), largest) == pytest.approx(mean, rel=1e-9, abs=0.0)
        largest = np.asarray(share / order)
        mean = quad(removed, 0.0, float(largest), epsabs=0.0)[0] / float(largest)
        assert renyi.removing_mean(np.asarray(order), largest) == pytest.approx(mean, rel=1e-9, abs=0.0)
    for share in (1.01, 2.0, 100.0):
        found = renyi.adding_mean(np.asarray(order), np.asarray(share * steepest))
        assert found == pytest.approx(np.max(added(steepest * np.linspace(0.5, 2.0, 3001))), rel=1e-6)


@pytest.mark.parametrize("order", [1.2, 1.5, 1.99])
def test_below_order_two_eigenvalues_are_taken_as_zero_or_the_largest(order):
    """One alone adds its own excess, and three equal ones as much as three."""
    one, order = np.asarray(0.1), np.asarray(order)
    assert renyi.removing_sum(order, one, one) == pytest.approx(renyi.removing_excess(order, one), rel=1e-12)
    three = renyi.removing_sum(order, 3.0 * one, one)
    assert three == pytest.approx(3.0 * renyi.removing_excess(order, one), rel=1e-12)


@pytest.mark.parametrize("order", [2.0, 2.5, 3.0, 9.0])
def test_from_order_two_on_one_eigenvalue_has_all_of_the_squares(order):
    for trace in (0.1, 0.3):
        found = renyi.removing_sum(np.asarray(order), np.asarray(trace), np.asarray(0.1))
        assert found == renyi.removing_excess(np.asarray(order), np.asarray(0.1))


def test_sums_of_eigenvalues_are_covered():
    rng = np.random.default_rng(3)
    for _ in range(2000):
        order = np.asarray(1.0 + np.exp(rng.uniform(-1.0, 4.0)))
        values = np.exp(rng.uniform(-6.0, 0.5)) * rng.random(rng.integers(1, 9)) ** rng.integers(1, 6)
        trace, size = np.asarray(values.sum()), np.asarray(np.linalg.norm(values))
        assert renyi.adding_excess(order, values).sum() <= renyi.adding_sum(order, trace, size) * (1.0 + 1e-9)
        assert renyi.removing_excess(order, values).sum() <= renyi.removing_sum(order, trace, size) * (
            1.0 + 1e-9
        )


@pytest.mark.parametrize("order", [1.5, 2.0, 16.0, 100.0])
def test_eigenvalues_count_as_equal_up_to_where_their_share_stops_being_concave(order):
    """The share is the mean of a/(1 + x) - a/(1 + ax), whose second derivative has one root."""
    bend = brentq(lambda x: order / (1.0 + x) ** 3 - order**3 / (1.0 + order * x) ** 3, 1e-9, 10.0)
    trace = np.asarray(5.0 * bend)
    below, above = (
        renyi.adding_sum(np.asarray(order), trace, np.asarray(bend * (1.0 + step))) for step in (-1e-9, 1e-9)
    )
    # Twenty-five of a fifth have this sum and these squares.
    equal = 25.0 * renyi.adding_excess(np.asarray(order), np.asarray(bend / 5.0))
    assert below == pytest.approx(equal, rel=1e-6)
    assert equal < above * (1.0 - 1e-3)


CURVES = [SoftmaxCurve(3), SoftmaxCurve(10), SoftmaxCurve(10, cap=0.66), SoftmaxCurve(5, cap=0.8)]


@pytest.mark.long
@pytest.mark.parametrize(("curve", "unit"), grid(CURVES, ["row", "person"], together=1), ids=str)
def test_the_supremum_over_class_masses_is_certified(curve, unit):
    """Random masses, equal ones and one class: none above the bound, and some close to it."""
    rng, l2, sigma = np.random.default_rng(curve.classes), 3.0, 4.0
    found = SoftmaxProfile(curve, 1.0, l2, NoiseScales(sigma), unit=unit).divergences(ORDERS)
    nearest = 0.0
    for trial in range(1500):
        q = curve.cap * (rng.random() if trial % 3 else 1.0 - 1e-3 * rng.random())
        share = rng.dirichlet(np.full(curve.classes - 1, rng.choice([0.05, 1.0, 100.0])))
        mass = float(curve.mass(np.array(q)))
        masses = np.append(q * share, mass - q)
        values = np.linalg.eigvalsh(np.diag(masses) - np.outer(masses, masses) / mass) / l2
        values = np.maximum(values, 0.0)
        square = q * q * (1.0 + share @ share) / sigma**2
        for place, order in enumerate(ORDERS):
            one = np.asarray(order)
            added = 0.5 * order * square + renyi.adding_excess(one, values).sum()
            assert added <= found["adding"][place] * (1.0 + 1e-9)
            removed = 0.5 * order * square + renyi.removing_excess(one, values).sum()
            assert removed <= found["removing"][place] * (1.0 + 1e-9)
            nearest = max(nearest, added / found["adding"][place])
    assert nearest > (0.95 if unit == "row" else 0.9)


def test_conversion_is_that_of_the_gaussian_mechanism_but_for_a_few_percent():
    shift = 1.0 / 4.22468
    bounds = 0.5 * renyi.ORDERS * shift**2
    epsilon = float(renyi.epsilons(renyi.ORDERS, bounds, 1e-6).min())
    assert 1.0 < epsilon < 1.08
    assert renyi.delta(renyi.ORDERS, bounds, np.asarray(epsilon)) == pytest.approx(1e-6, rel=1e-6)


@pytest.mark.long
@pytest.mark.parametrize(("dimension", "l2"), [(2, 50.0), (10, 50.0), (100, 150.0)])
def test_a_convex_loss_of_many_directions_pays_for_one(dimension, l2):
    """The analytic Gaussian mechanism has 4.2247, and this conversion 4.531 at best."""
    plan = expost.calibrate_convex(SmoothedNorm(dimension), l2=l2)
    assert plan.sigma == pytest.approx(4.5312, abs=1e-3)
    assert plan.delta_at(1.0) <= 1e-6


@pytest.mark.parametrize(
    ("epsilon", "sigma"), [(1.0, 4.363), pytest.param(0.1, 32.40, marks=pytest.mark.slow)]
)
def test_ten_classes_need_less_noise(epsilon, sigma):
    plan = expost.calibrate(loss=classification_loss(10, epsilon, 1e-6), epsilon=epsilon, delta=1e-6)
    assert plan.sigma == pytest.approx(sigma, rel=3e-4)
    assert plan.delta_at(epsilon) <= 1e-6 < 0.5 * plan.profile.first.delta(epsilon).upper


def test_conversions_are_rounded_towards_privacy():
    """Where divergences are large their last digit is all of an exponent; by fifty digits."""
    divergence = 1000.0
    for number in (-16, 0, 50, 208):
        order = float(renyi.orders_of([number])[0])
        one = np.array([order]), np.array([divergence])
        with mp.workdps(50):
            a, size = mpf(order), mpf(divergence)
            for target in (1e-3, 1e-12):
                exact = size + (mp.log(1 / mpf(target)) - mp.log(a)) / (a - 1) + mp.log(1 - 1 / a)
                assert exact <= renyi.epsilons(*one, target)[0] <= exact * (1 + mpf(10) ** -11)
                epsilon = float(exact)
                least = mp.exp((a - 1) * (size - mpf(epsilon))) / (a - 1) * (1 - 1 / a) ** a
                assert least <= renyi.delta(*one, np.array(epsilon)) <= least * (1 + mpf(10) ** -4)


def test_no_divergence_promises_less_than_nothing():
    """A delta is a probability, however large the divergences are, and a promise of 1 needs no epsilon."""
    for size in (0.0, 1.0, 1e3):
        bounds = size * renyi.ORDERS
        deltas = renyi.delta(renyi.ORDERS, bounds, np.array([0.0, 0.1, 1.0]))
        assert np.all((deltas >= 0.0) & (deltas <= 1.0))
    np.testing.assert_array_equal(deltas, 1.0)
    least = renyi.epsilons(renyi.ORDERS, 1e-3 * renyi.ORDERS, 0.9)
    assert np.all(least >= 0.0)
    assert np.min(least) == 0.0


def test_people_have_the_bound_of_a_row_up_to_some_order():
    curve = capped_logistic(1.0, 1e-6).curve
    row, person = (
        PrivacyProfile(curve, 1.0, 1.4, NoiseScales(2.8), REAL, unit).divergences(renyi.ORDERS)
        for unit in ("row", "person")
    )
    last = (1.4 / curve.max_curvature) ** 2
    np.testing.assert_array_equal(person["adding"], np.where(last >= renyi.ORDERS, row["adding"], math.inf))
    np.testing.assert_array_equal(person["removing"], row["removing"])


def ten(plan, delta):
    return Composition((curve_of(plan),) * 10).epsilon_at(delta)


GOALS = [
    ("logistic", 1.0, 1e-6, 3.05),
    ("logistic", 0.5, 1e-7, 1.50),
    ("pseudo_huber", 1.0, 1e-6, 3.40),
    ("person", 1.0, 1e-6, 3.35),
    pytest.param("classes", 1.0, 1e-6, 3.95, marks=pytest.mark.slow),
]


@pytest.mark.long
@pytest.mark.parametrize(("kind", "epsilon", "delta", "goal"), GOALS)
def test_ten_default_plans_cost_little_more_than_gaussian_mechanisms(kind, epsilon, delta, goal):
    radius = math.sqrt(2.0)
    losses = {
        "pseudo_huber": expost.PseudoHuber(0.28 * gaussian.sigma(epsilon, delta) ** -0.25),
        "classes": classification_loss(10, epsilon, delta),
    }
    plan = expost.calibrate(
        loss=losses.get(kind, classification_loss(2, epsilon, delta, radius=radius)),
        epsilon=epsilon,
        delta=delta,
        fit_intercept=True,
        unit="person" if kind == "person" else "row",
    )
    shift = math.sqrt(10.0) * plan.profile.rise
    assert gaussian.epsilon(20.0 * delta, sensitivity=shift, sigma=1.0) <= ten(plan, 20.0 * delta) <= goal


TOGETHER = [
    (1.0, 1e-6, 1.2235, 3.0225),
    (0.5, 1e-7, 0.62215, 1.4864),
    (3.0, 1e-7, 3.8962, 9.9337),
]


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "delta", "two", "ten"), TOGETHER)
def test_default_plans_together_to_four_digits(epsilon, delta, two, ten):
    """Against an implementation of its own: 1.223, 3.022; 0.622, 1.486; 3.896, 9.933."""
    loss = capped_logistic(epsilon, delta)  # the cap on slopes: the default of models is one on gradients
    plan = expost.calibrate(loss=loss, epsilon=epsilon, delta=delta, fit_intercept=True)
    for count, cost in ((2, two), (10, ten)):
        assert Composition((curve_of(plan),) * count).epsilon_at(20.0 * delta) == pytest.approx(
            cost, rel=1e-4
        )


OF_TWO = {
    "row": lambda: accounting_of(capped_logistic(1.0, 1e-6).curve, 1.0).sharpest(0.7, NoiseScales(2.8)),
    "free sign": lambda: accounting_of(expost.PseudoHuber().curve, 1.0).sharpest(1.0, NoiseScales(4.4)),
    "statistics": lambda: accounting_of(LogisticLoss().curve, 1.0).sharpest(
        1.0, NoiseScales(4.4, sigma_hessian=1.0)
    ),
    "person": lambda: accounting_of(LogisticLoss().curve, 1.0, unit="person").sharpest(1.0, NoiseScales(4.4)),
    "three classes": lambda: accounting_of(SoftmaxCurve(3), 1.0).sharpest(3.0, NoiseScales(6.0)),
    "convex": lambda: accounting_of(SmoothedNorm(4).curve, 1.0).sharpest(20.0, NoiseScales(5.0)),
}


@pytest.mark.parametrize("kind", OF_TWO)
def test_no_promise_is_above_the_first_certificate(kind):
    """At every epsilon, and so no noise scale and no composition is."""
    both = OF_TWO[kind]()
    for epsilon in (0.2, 1.0):
        least = gaussian.delta(epsilon, sensitivity=both.rise, sigma=1.0)
        assert least * (1.0 - 1e-9) <= both.delta(epsilon).upper <= both.first.delta(epsilon).upper
        own = np.array([both.first.directed(epsilon, rtol=1e-2)])
        assert np.all(both.sharpened(np.array([epsilon]), own, rtol=1e-2) <= own)


@pytest.mark.long
def test_divergences_agree_with_a_curve_at_the_knot_after_an_epsilon():
    """Or at the last one: one divergence that allows 0.1 at 1 and 0.037 at 2, where the curve says 0.05."""
    knots, order = ((0.0, 0.3), (1.0, 0.1), (2.0, 0.05)), ((0, 1.0 + math.log(0.4)),)
    assert renyi.orders_of([0])[0] == 2.0
    forged = ProfileCurve(knots, knots, order, order)
    assert [forged.orders_agree(epsilon) for epsilon in (0.5, 1.0, 1.5, 2.0, 3.0)] == [True, True] + [
        False
    ] * 3


def test_a_curve_without_orders_composes_as_before():
    """As one of a ledger from before there were any."""
    plan = expost.calibrate(loss="logistic", epsilon=0.5, delta=1e-7, unit="person")
    curve = curve_of(plan)
    old = ProfileCurve(curve.adding, curve.removing)
    mixed = Composition((curve, old)).epsilon_at(1e-6)
    assert mixed == pytest.approx(Composition((old, old)).epsilon_at(1e-6), rel=1e-6)
    assert Composition((curve, curve)).epsilon_at(1e-6) <= mixed


def test_the_divergence_of_a_curve_is_above_that_of_its_mechanism():
    plan = expost.calibrate(loss="logistic", epsilon=0.5, delta=1e-7)
    curve, exact = curve_of(plan), plan.profile.rise**2 / 2.0
    for order in (1.5, 4.0, 16.0, 40.0):
        for one in (curve, curve.backwards):
            assert order * exact <= curve_divergence(one, order) <= 1.02 * order * exact


def test_budgets_chosen_on_the_way():
    """Ten plans of (0.5, 1e-7): more than fixed plans cost, far less than adding up, and no less than one."""
    plan = expost.calibrate(
        loss=capped_logistic(0.5, 1e-7, radius=math.sqrt(2.0)), epsilon=0.5, delta=1e-7, fit_intercept=True
    )
    curve = curve_of(plan)
    number = filter_order(1.7, 1e-6)
    spent = [AdaptiveComposition((curve,) * count, "row", number) for count in range(12)]
    fixed = expost.compose([plan] * 10).epsilon_at(1e-6)
    assert fixed < spent[10].epsilon_at(1e-6) < 1.7
    assert spent[10].delta_at(1.7) <= 1e-6 < spent[11].delta_at(1.7)
    assert spent[0].epsilon_at(1e-6) == 0.0
    costs = [one.epsilon_at(1e-6) for one in spent]
    assert costs == sorted(costs)
    for one in spent[1:]:
        assert one.delta_at(one.epsilon_at(1e-6)) <= 1e-6
    nothing = ProfileCurve(((0.0, 1.0),), ((0.0, 1.0),))
    assert replace(spent[1], curves=(curve, nothing)).delta_at(5.0) == 1.0
    assert replace(spent[1], curves=(curve, nothing)).epsilon_at(1e-6) == math.inf
    assert spent[3].epsilon_at(1e-18) == math.inf
    # Divergences are certified up to the epsilon at which curves end, and promise nothing beyond.
    assert spent[3].delta_at(700.0) < 1e-16
    assert spent[3].delta_at(700.1) == 1.0
