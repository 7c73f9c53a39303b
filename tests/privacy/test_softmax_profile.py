"""The certified profile of softmax models: known noise scales, limits, and what real tables attain."""

import math
import re
from pathlib import Path

import numpy as np
import pytest

import expost
from expost import LogisticLoss, gaussian
from expost.exceptions import ParameterError
from expost.losses.softmax_curve import SoftmaxCurve
from expost.privacy.order_statistics import flat_sigma
from expost.privacy.precision import REAL, Rounding
from expost.privacy.profile import PrivacyProfile
from expost.privacy.scales import NoiseScales
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
        assert found == pytest.approx(scalar, rel=1e-12)


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
            scalar.directed(epsilon, rtol=1e-3), rel=1e-12
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
