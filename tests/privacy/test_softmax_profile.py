"""The certified profile of softmax models: known noise scales, limits, and what real tables attain."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad

import expost
from expost import LogisticLoss, gaussian
from expost.exceptions import ParameterError
from expost.losses.softmax_curve import SoftmaxCurve
from expost.privacy.order_statistics import LargestTwo, flat_delta, flat_sigma
from expost.privacy.precision import REAL, Rounding
from expost.privacy.profile import PrivacyProfile
from expost.privacy.scales import STATISTICS, NoiseScales
from expost.privacy.softmax_profile import SoftmaxAccounting, SoftmaxProfile

DELTA = 1e-6
EVERYTHING = {"sigma_gradient": 9.0, "sigma_hessian": 3.0, "sigma_eigenvalue": 4.0}


def profile(classes, l2, sigma, *, cap=1.0, rounding=REAL, reduced=False, **statistics):
    scales = NoiseScales(sigma, **statistics)
    return SoftmaxAccounting(SoftmaxCurve(classes, cap), 1.0, reduced).profile(l2, scales, rounding)


def upper(*arguments, epsilon=1.0, **options):
    return profile(*arguments, **options).delta(epsilon).upper


# The value of the bound by an independent computation on a fine grid of masses, to the digits given.
@pytest.mark.parametrize(
    ("classes", "l2", "sigma", "digits"),
    [
        (3, 1.0, 8.97, 1e-3),
        (3, 2.0, 6.712, 1e-4),
        (3, 5.0, 6.199, 1e-4),
        (3, 50.0, 6.172, 1e-4),
        (10, 1.0, 33.2, 2e-3),
        (10, 2.0, 9.667, 1e-4),
        (10, 5.0, 6.927, 1e-4),
        (10, 50.0, 6.584, 1e-4),
    ],
)
def test_noise_is_that_of_an_independent_computation(classes, l2, sigma, digits):
    """Certified at or above the value, and at most 0.2% above it."""
    assert upper(classes, l2, (1.0 - digits) * sigma) > DELTA
    assert upper(classes, l2, (1.002 + digits) * sigma) <= DELTA


@pytest.mark.parametrize(
    ("classes", "l2", "sigma"),
    [
        (3, 5.0, 6.205),
        (10, 5.0, 6.944),
        (10, 10.0, 6.626),
        pytest.param(3, 2.0, 6.722, marks=pytest.mark.slow),
        pytest.param(3, 50.0, 6.175, marks=pytest.mark.slow),
        pytest.param(10, 50.0, 6.590, marks=pytest.mark.slow),
        pytest.param(30, 5.0, 7.538, marks=pytest.mark.slow),
        pytest.param(100, 5.0, 8.080, marks=pytest.mark.slow),
    ],
)
def test_noise_is_certified_by_an_independent_certificate(classes, l2, sigma):
    assert upper(classes, l2, sigma) <= DELTA
    assert upper(classes, l2, 0.995 * sigma) > DELTA


@pytest.mark.parametrize(
    ("classes", "cap", "sigma"), [(3, 0.707, 4.372), (3, 0.5, 3.089), (10, 0.707, 4.745), (10, 0.5, 3.314)]
)
def test_noise_of_a_cap(classes, cap, sigma):
    """The independent certificate bounds the determinant of a capped record by a product; ours is exact."""
    assert upper(classes, 5.0, sigma, cap=cap) <= DELTA
    assert upper(classes, 5.0, 0.995 * sigma, cap=cap) > DELTA


@pytest.mark.long
def test_noise_in_the_document():
    text = (Path(__file__).parents[2] / "docs" / "mathematics.md").read_text(encoding="utf-8")
    table = text.split(r"| $K$ | $\lambda$ | $\sigma$ by theorem 11.1 | with section 17 |")[1].split("\n\n")[
        0
    ]
    rows = re.findall(r"^\| (\d+) \| (\d+) \| ([\d.]+) \| ([\d.]+) \|$", table, flags=re.MULTILINE)
    assert len(rows) == 8
    for classes, l2, sigma, planned in rows:
        assert upper(int(classes), float(l2), float(sigma)) <= DELTA
        assert upper(int(classes), float(l2), 0.9995 * float(sigma)) > DELTA
        plan = expost.calibrate(loss=expost.SoftmaxLoss(int(classes)), l2=float(l2), epsilon=1.0, delta=DELTA)
        assert 0.9995 * float(planned) < plan.sigma <= float(planned)


@pytest.mark.parametrize("cap", [1.0, 0.6])
@pytest.mark.parametrize("statistics", [{}, {"sigma_hessian": 1.3}, {"sigma_gradient": 8.0}])
def test_two_classes_are_the_logistic_loss(cap, statistics):
    """softmax(sigma, lambda) = logistic(sigma / sqrt 2, lambda / 2), and its Hessian is twice as large."""
    for sigma, l2, epsilon in [(6.4712, 1.0, 1.0), (30.0, 20.0, 0.1), (1.1, 0.4, 8.0)]:
        scales = {
            name: scale / (2.0 if "hessian" in name else math.sqrt(2.0)) for name, scale in statistics.items()
        }
        scalar = PrivacyProfile(
            LogisticLoss(cap=cap).curve, 1.0, 0.5 * l2, NoiseScales(sigma / math.sqrt(2.0), **scales)
        ).delta(epsilon)
        found = profile(2, l2, sigma, cap=cap, **statistics).delta(epsilon)
        assert found == pytest.approx(scalar, rel=1e-12, abs=0.0)


@pytest.mark.parametrize("unit", ["row", "person"])
@pytest.mark.parametrize("statistics", [{}, EVERYTHING])
@pytest.mark.parametrize(("classes", "reduced"), [(2, False), (3, False), (3, True)])
def test_a_norm_is_a_unit(classes, reduced, statistics, unit):
    """R multiplies gradients, and R² Hessians: the same plan in other units has the same certificate."""
    norm, orders = 3.0, np.array([1.5, 2.0, 8.0])
    curve, rounding, larger = SoftmaxCurve(classes, 0.8), Rounding(solver=0.2), Rounding(solver=0.2)
    scales = {"sigma": 1.9, **statistics}
    powers = {name: 2 if name in ("sigma_hessian", "sigma_eigenvalue") else 1 for name in scales}
    more = NoiseScales(**{name: norm ** powers[name] * scale for name, scale in scales.items()})
    one, many = (SoftmaxAccounting(curve, size, reduced, unit) for size in (1.0, norm))
    for accounting, size in ((one, 1.0), (many, norm)):
        wanted = 0.8 * size * flat_sigma(classes, 1.0, DELTA)
        assert accounting.flat_sigma(1.0, DELTA) == pytest.approx(wanted, rel=1e-12)
    for power, name in ((2, "floor"), (2, "least_l2")):
        assert getattr(many, name)(0.9) == pytest.approx(norm**power * getattr(one, name)(0.9), rel=1e-12)
    assert many.released_curvature == pytest.approx(norm**2 * one.released_curvature, rel=1e-12)
    assert many.log_determinant(4.0 * norm**2) == pytest.approx(one.log_determinant(4.0), rel=1e-12)
    found, wanted = (
        many.profile(4.0 * norm**2, more, larger),
        one.profile(4.0, NoiseScales(**scales), rounding),
    )
    assert found.rise == pytest.approx(wanted.rise, rel=1e-12)
    assert found.directed(0.6, rtol=1e-2) == pytest.approx(wanted.directed(0.6, rtol=1e-2), rel=1e-9, abs=0.0)
    for direction, bounds in found.divergences(orders).items():
        np.testing.assert_allclose(bounds, wanted.divergences(orders)[direction], rtol=1e-12)


def test_two_classes_at_a_known_noise():
    assert upper(2, 1.0, 6.4712 * 1.0001) <= DELTA < upper(2, 1.0, 6.4712 * 0.9999)


@pytest.mark.parametrize(
    ("classes", "cap", "statistics"),
    [
        (3, 1.0, {}),
        (10, 0.7, {}),
        pytest.param(3, 1.0, EVERYTHING, marks=pytest.mark.slow),
        pytest.param(10, 0.7, EVERYTHING, marks=pytest.mark.slow),
    ],
)
def test_more_noise_and_more_regularisation_never_cost_more(classes, cap, statistics):
    base = flat_sigma(classes, 1.0, DELTA) * cap
    by_sigma = [
        upper(classes, 5.0, base * factor, cap=cap, **statistics) for factor in (0.8, 0.95, 1.0, 1.1, 1.5)
    ]
    by_l2 = [upper(classes, l2, 1.1 * base, cap=cap, **statistics) for l2 in (1.0, 2.0, 5.0, 50.0, math.inf)]
    by_epsilon = [upper(classes, 5.0, base, cap=cap, epsilon=at, **statistics) for at in (0.0, 0.1, 1.0, 1.2)]
    for values in (by_sigma, by_l2, by_epsilon):
        assert np.all(np.diff(values) < 0.0)
    for scale in statistics:
        more = statistics | {scale: 1.5 * statistics[scale]}
        assert upper(classes, 5.0, base, cap=cap, **more) < by_epsilon[2]


def test_the_lower_end_is_below():
    for classes, l2, sigma, cap in [
        (3, 5.0, 6.2, 1.0),
        (10, 1.0, 33.0, 1.0),
        (5, 3.0, 4.0, 0.6),
        (3, 1e-3, 9.0, 1.0),
    ]:
        for statistics in ({}, {"sigma_hessian": 2.0}):
            lower, above = profile(classes, l2, sigma, cap=cap, **statistics).delta(1.0)
            vertex = float(gaussian.delta(1.0, sensitivity=math.sqrt(2.0) * cap, sigma=sigma))
            assert vertex * (1.0 - 1e-8) <= lower <= above <= 1.0


@pytest.mark.parametrize(("classes", "floor"), [(3, 0.514), (10, 0.851)])
def test_floor(classes, floor):
    curve = SoftmaxCurve(classes)
    found = SoftmaxAccounting(curve, 1.0).floor(1.0)
    assert found == pytest.approx(floor, abs=5e-4)
    assert SoftmaxAccounting(curve, 3.0).floor(1.0) == pytest.approx(9.0 * found, rel=1e-12)
    assert upper(classes, 0.999 * found, 1e7) > 1e-4
    assert upper(classes, 1.01 * found, 1e7) < 1e-12
    capped = SoftmaxAccounting(SoftmaxCurve(classes, 0.5), 1.0).floor(1.0)
    assert capped < found
    assert upper(classes, 0.999 * capped, 1e7, cap=0.5) > 1e-4
    assert upper(classes, 1.01 * capped, 1e7, cap=0.5) < 1e-12


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_the_floor_is_where_the_largest_determinant_is_epsilon(classes):
    """In closed form without a cap; a cap lowers it, and a weight multiplies it."""
    plain, bent = (SoftmaxAccounting(SoftmaxCurve(classes, cap), 1.0) for cap in (1.0, 0.4))
    heavy = SoftmaxAccounting(SoftmaxCurve(classes).scaled(2.5), 1.0)
    for epsilon in np.geomspace(0.03, 30.0, 12):
        wanted = 1.0 / (classes * math.expm1(epsilon / (classes - 1)))
        assert plain.floor(epsilon) == pytest.approx(wanted, rel=1e-12)
        assert heavy.floor(epsilon) == pytest.approx(2.5 * wanted, rel=1e-12)
        assert plain.least_l2(epsilon) == pytest.approx(2.0 * wanted, rel=1e-12)
    people = SoftmaxAccounting(SoftmaxCurve(classes), 3.0, False, "person")
    for epsilon in (0.2, 1.0, 6.0):
        # The trace of a person's Hessians is at most (1 - 1/K) R²/λ.
        assert people.floor(epsilon) == pytest.approx(9.0 * (1.0 - 1.0 / classes) / epsilon, rel=1e-12)
        capped = bent.floor(epsilon)
        assert capped < plain.floor(epsilon)
        assert bent.log_determinant(capped) == pytest.approx(epsilon, rel=1e-9)


def test_what_one_record_adds_to_the_released_hessian():
    """At equal masses the smallest one is largest; the largest eigenvalue is at two equal ones."""
    curve = SoftmaxCurve(5).scaled(3.0)
    masses = np.random.default_rng(4).dirichlet(np.ones(5), 2000)
    masses[0], masses[1] = 0.2, [0.5, 0.5, 0.0, 0.0, 0.0]
    hessians = masses[:, :, None] * np.eye(5) - masses[:, :, None] * masses[:, None, :]
    largest = 3.0 * 2.0**2 * np.linalg.norm(hessians, ord=2, axis=(1, 2)).max()
    frobenius = 3.0 * 2.0**2 * np.linalg.norm(hessians, axis=(1, 2)).max()
    for reduced, most in ((True, 12.0 * masses.min(axis=1).max()), (False, largest)):
        accounting = SoftmaxAccounting(curve, 2.0, reduced)
        assert accounting.released_curvature == pytest.approx(most, rel=1e-12)
        # Half of the squared Frobenius norm counts, and one eigenvalue is attained alone.
        assert accounting.sensitivity(STATISTICS["hessian"]) == pytest.approx(
            most / math.sqrt(2.0), rel=1e-12
        )
        assert accounting.sensitivity(STATISTICS["eigenvalue"]) == pytest.approx(most, rel=1e-12)
        assert accounting.sensitivity(STATISTICS["gradient"]) == pytest.approx(
            6.0 * math.sqrt(2.0), rel=1e-12
        )
    assert largest == pytest.approx(frobenius, rel=1e-12)
    assert [SoftmaxAccounting(SoftmaxCurve(classes), 1.0).can_be_reduced for classes in (2, 3, 4)] == [
        0,
        1,
        1,
    ]
    assert SoftmaxProfile(SoftmaxCurve(5), 1.0, 5.0, NoiseScales(6.0)) == profile(5, 5.0, 6.0, reduced=False)


@pytest.mark.parametrize("unit", ["row", "person"])
def test_without_a_determinant_the_divergence_is_that_of_the_gaussian_mechanism(unit):
    """αΔ²/2 in both directions; with one it is larger by what the largest determinant allows."""
    orders = np.array([1.2, 1.9, 2.5, 3.9, 4.1, 9.0])
    accounting = SoftmaxAccounting(SoftmaxCurve(3, 0.7), 2.0, False, unit)
    gaussians = orders * (0.7 * 2.0 / 1.6) ** 2
    flat = accounting.profile(math.inf, NoiseScales(1.6)).divergences(orders)
    some = accounting.profile(40.0, NoiseScales(1.6)).divergences(orders)
    for direction in ("adding", "removing"):
        np.testing.assert_allclose(flat[direction], gaussians, rtol=1e-12)
        assert np.all(gaussians < some[direction])
        assert np.all(some[direction] < 1.2 * gaussians)
    more = accounting.profile(math.inf, NoiseScales(1.6, sigma_gradient=0.5)).divergences(orders)
    np.testing.assert_allclose(more["adding"], gaussians * (1.0 + (1.6 / 0.5) ** 2), rtol=1e-12)
    np.testing.assert_allclose(more["removing"], more["adding"], rtol=1e-12)
    # To remove the largest eigenvalue R²/2λ = 1/2 costs (α - 1)/2 < 1 of the normal's variance. Of people it
    # must lie where the excess is convex: α/4 is at most 1.
    wide = SoftmaxAccounting(SoftmaxCurve(3), 2.0, False, unit).profile(4.0, NoiseScales(1.6))
    finite = np.isfinite(wide.divergences(orders)["adding"])
    assert np.array_equal(finite, orders < 4.0 if unit == "person" else np.ones(6, dtype=bool))
    assert np.array_equal(np.isfinite(wide.divergences(orders)["removing"]), orders < 3.0)


@pytest.mark.parametrize("unit", ["row", "person"])
@pytest.mark.parametrize(("reduced", "norm"), [(False, 0.5), (True, 0.25)])
def test_where_only_a_hessian_counts_it_is_a_gaussian_mechanism(reduced, norm, unit):
    """The largest Hessian has two equal masses, and the largest smallest mass four; half of it counts."""
    scales = NoiseScales(1e4, sigma_hessian=0.15)
    found = SoftmaxAccounting(SoftmaxCurve(4), 1.0, reduced, unit).profile(math.inf, scales)
    shift = norm / (math.sqrt(2.0) * 0.15)
    orders = np.array([1.5, 3.0])
    for bounds in found.divergences(orders).values():
        assert np.all(0.5 * orders * shift**2 <= bounds)
        assert np.all(bounds <= 1.02 * 0.5 * orders * shift**2)
    exact = float(gaussian.delta(1.0, sensitivity=shift, sigma=1.0))
    lower, above = found.delta(1.0)
    if unit == "row":
        assert 0.999 * exact <= lower <= 1.001 * exact <= 1.001 * above <= 1.05 * exact
    else:  # whose excess has a larger mean, of which both ends are
        assert exact <= above <= 1.05 * lower


def test_equal_masses_cost_no_more_than_the_lower_end():
    """Their gradient, their Hessian and their determinant in closed form, of four classes."""
    for l2, sigma, scale, epsilon in [(1.0, 20.0, 4.0, 0.7), (0.6, 9.0, 0.9, 1.0)]:
        together = math.hypot(math.sqrt(0.75) / sigma, math.sqrt(3.0 / 32.0) / 2.0 / scale)
        left = epsilon - 3.0 * math.log1p(0.25 / l2)
        found = profile(4, l2, sigma, sigma_hessian=scale).delta(epsilon)
        assert float(gaussian.delta(left, sensitivity=together, sigma=1.0)) <= found.lower * (1.0 + 1e-8)
        assert found.lower <= found.upper


def test_what_no_double_holds_is_bounded():
    for statistics in ({}, {"sigma_hessian": 3.0}):
        for unit in ("row", "person"):
            accounting = SoftmaxAccounting(SoftmaxCurve(3), 1.0, False, unit)
            found = accounting.profile(5.0, NoiseScales(6.0, **statistics)).delta(900.0)
            assert 0.0 <= found.lower <= found.upper <= 1e-299


# The noise of the Hessian at 5, 10 and 20% more noise in the objective than the model alone needs, from an
# independent grid of masses that is no certificate.
WITH_HESSIAN = [
    (10, False, 6.927, (5.9, 4.4, 3.3), (0.985, 1.04)),
    (3, True, 6.199, (1.46, 1.395, 1.332), (0.997, 1.03)),
    (10, True, 6.927, (0.736, 0.650, 0.568), (0.997, 1.05)),
    # With the exact norm of the Hessian of three classes 5 to 12% less than that grid needs.
    (3, False, 6.199, (4.2, 3.4, 2.7), (0.88, 0.97)),
]


@pytest.mark.parametrize(("classes", "reduced", "alone", "scales", "shares"), WITH_HESSIAN)
@pytest.mark.parametrize("step", [0, *(pytest.param(step, marks=pytest.mark.slow) for step in (1, 2))])
def test_noise_of_the_hessian(classes, reduced, alone, scales, shares, step):
    sigma = (1.05, 1.1, 1.2)[step] * alone
    few, enough = (share * scales[step] for share in shares)
    assert upper(classes, 5.0, sigma, reduced=reduced, sigma_hessian=enough) <= DELTA
    assert upper(classes, 5.0, sigma, reduced=reduced, sigma_hessian=few) > DELTA


@pytest.mark.parametrize(("classes", "alone", "scale"), [(3, 6.199, 1.42), (10, 6.927, 0.69)])
def test_the_cusp_of_the_reduced_hessian_counts(classes, alone, scale):
    """A grid of masses without the point of equal masses would certify these."""
    assert upper(classes, 5.0, 1.05 * alone, reduced=True, sigma_hessian=scale) > 1.2 * DELTA


def test_the_reduced_hessian_costs_less_than_the_whole():
    for classes, cap in [(3, 1.0), (10, 0.6)]:
        whole = upper(classes, 5.0, 7.0, cap=cap, sigma_hessian=1.0, sigma_eigenvalue=2.0)
        less = upper(classes, 5.0, 7.0, cap=cap, sigma_hessian=1.0, sigma_eigenvalue=2.0, reduced=True)
        assert upper(classes, 5.0, 7.0, cap=cap) < less < whole


@pytest.mark.parametrize("statistics", [{}, {"sigma_hessian": 3.0}])
def test_printed_numbers_cost_little(statistics):
    rounding = Rounding.planned(1.0, curvature=0.5)
    real = upper(3, 5.0, 6.3, **statistics)
    printed = upper(3, 5.0, 6.3, rounding=rounding, **statistics)
    assert real < printed <= real * (1.0 + 1e-3)
    # A solver's part as large as the noise costs as much as another output of that size.
    large = upper(3, 5.0, 6.3, rounding=Rounding(solver=0.1), **statistics)
    assert large > 1.5 * real


@pytest.mark.parametrize("unit", ["row", "person"])
@pytest.mark.parametrize(
    ("sigma", "epsilon"), [(0.2, 10.0), (0.25, 20.0), (1.0, 3.0), (0.3, 0.0), (6.0, 1.0)]
)
def test_a_tiny_determinant_costs_nothing(sigma, epsilon, unit):
    """The grid of the noise, also of losses far above epsilon, against one integral."""
    accounting = SoftmaxAccounting(SoftmaxCurve(3), 1.0, False, unit)
    flat = accounting.profile(math.inf, NoiseScales(sigma)).delta(epsilon)
    found = accounting.profile(1e12, NoiseScales(sigma)).delta(epsilon)
    assert flat.upper == pytest.approx(flat.lower, rel=3e-9, abs=0.0)
    if unit == "row":
        exact = flat_delta(3, epsilon, 1.0 / sigma)
        assert flat.upper == pytest.approx(exact, rel=3e-9, abs=0.0)
        assert exact <= found.upper <= 1.001 * exact
    assert flat.lower <= found.upper <= 1.001 * flat.upper


def test_the_part_of_the_solver_counts_without_a_determinant():
    """The record with one wrong class, by an integral; other records are little better."""
    shift, solver = 1.0 / 3.0, 0.3
    law = LargestTwo(3)

    def value(x):
        left = 1.0 - shift**2 - shift * x
        return float(law.largest(np.array(x)) * gaussian.delta(left, sensitivity=solver, sigma=1.0))

    wanted = quad(value, -12.0, 16.0, epsabs=0.0, epsrel=1e-9, limit=200)[0]
    found = upper(3, math.inf, 3.0, rounding=Rounding(solver=solver))
    assert upper(3, math.inf, 3.0) < wanted <= found <= 1.05 * wanted


def test_statistics_of_a_large_delta_are_certified_closely():
    """What lies below the first edge counts with its small probability."""
    for sigma in (0.3, 1.0):
        found = profile(3, 50.0, sigma, sigma_gradient=2.0).delta(0.0)
        assert found.lower <= found.upper <= 1.3 * found.lower
    # Far out the density falls fast, over cells that are cut until it does not.
    tiny = profile(3, 5.0, 6.0, sigma_gradient=2.0).delta(20.0)
    assert 1e-157 < tiny.lower <= tiny.upper <= 2.1 * tiny.lower


def test_epsilon_inverts_delta():
    found = profile(3, 5.0, 6.2)
    epsilon = found.epsilon(DELTA)
    assert found.delta(epsilon).upper <= DELTA
    assert found.certifies(epsilon, DELTA)
    assert not found.certifies(0.999 * epsilon, DELTA)
    assert epsilon == pytest.approx(1.0, rel=1e-3)


def test_wrong_parameters_are_refused():
    with pytest.raises(ParameterError, match="`curve` must be one of weight 1 and at least three classes"):
        SoftmaxProfile(SoftmaxCurve(2), 1.0, 5.0, NoiseScales(6.0))
    with pytest.raises(ParameterError, match="`l2` must be"):
        profile(3, 0.0, 6.0)
    with pytest.raises(ParameterError, match="`delta` must be"):
        profile(3, 5.0, 6.0).certifies(1.0, 1.0)
    with pytest.raises(ParameterError, match="`classes` must be between 2 and 1000"):
        SoftmaxCurve(1)
    with pytest.raises(ParameterError, match="`cap` must be"):
        SoftmaxCurve(3, cap=1.5)


@pytest.mark.parametrize("statistics", [{}, {"sigma_hessian": 1.3}])
def test_the_directions_of_two_classes_are_those_of_the_logistic_loss(statistics):
    scales = NoiseScales(6.4712 / math.sqrt(2.0), **{name: scale / 2.0 for name, scale in statistics.items()})
    scalar = PrivacyProfile(LogisticLoss().curve, 1.0, 0.5, scales)
    found = profile(2, 1.0, 6.4712, **statistics)
    for epsilon in (0.0, 0.5):
        assert found.directed(epsilon, rtol=1e-3) == pytest.approx(
            scalar.directed(epsilon, rtol=1e-3), rel=1e-12, abs=0.0
        )


@pytest.mark.parametrize("statistics", [{}, pytest.param({"sigma_hessian": 1.0}, marks=pytest.mark.slow)])
def test_to_remove_a_record_costs_what_it_does_without_a_determinant(statistics):
    """Of three classes: adding is what is stated for both, and removing its value at infinite l2."""
    found, flat = profile(3, 1.0, 6.5, **statistics), profile(3, math.inf, 6.5, **statistics)
    for epsilon in (0.0, 0.5):
        adding, removing = found.directed(epsilon, rtol=1e-2)
        assert adding == found.delta(epsilon, rtol=1e-2).upper
        assert removing == flat.delta(epsilon, rtol=1e-2).upper < adding
        assert flat.directed(epsilon, rtol=1e-2) == (removing, removing)


def test_a_weight_is_divided_out_before_there_is_a_profile():
    weighted = SoftmaxCurve(3).scaled(2.0)
    with pytest.raises(ParameterError, match="`curve` must be one of weight 1"):
        SoftmaxProfile(weighted, 1.0, 5.0, NoiseScales(6.0))
    found = SoftmaxAccounting(weighted, 1.0).profile(10.0, NoiseScales(12.0))
    assert found == profile(3, 5.0, 6.0)


@pytest.mark.parametrize(("sigma", "epsilon"), [(1.0, 0.5), (3.0, 0.5)])
def test_what_lies_outside_the_grid_counts_for_people_too(sigma, epsilon, monkeypatch):
    """With a tenth of the noise outside, the bound is still above that of nearly all of it inside."""
    accounting = SoftmaxAccounting(SoftmaxCurve(3, 1.0), 1.0, False, "person")
    least = accounting.profile(5.0, NoiseScales(sigma)).delta(epsilon).lower
    monkeypatch.setattr("expost.privacy.softmax_profile._OUTSIDE", 0.1 / least)
    assert accounting.profile(5.0, NoiseScales(sigma)).delta(epsilon).upper >= least


@pytest.mark.parametrize("outside", [0.3, 1.0])
@pytest.mark.parametrize(("sigma", "epsilon"), [(1.0, 6.0), (1.0, 4.0), (3.0, 2.0)])
def test_nearly_all_may_lie_outside_of_the_grid(sigma, epsilon, outside, monkeypatch):
    """The value at its end and the mean rise from there, against the integral without a determinant."""
    monkeypatch.setattr("expost.privacy.softmax_profile._OUTSIDE", outside)
    accounting = SoftmaxAccounting(SoftmaxCurve(3, 1.0), 1.0, False, "person")
    exact, found = (accounting.profile(l2, NoiseScales(sigma)).delta(epsilon) for l2 in (math.inf, 1e12))
    assert exact.lower <= found.upper <= 1.2 * exact.upper
