"""Compare the audit with independent integrals: over coefficients, over statistics, by sampling."""

import math
from itertools import islice

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import norm

from expost import LogisticLoss, PseudoHuber, SmoothedHinge, SquaredLoss
from expost.audit import hockey_stick, search, worst_pair
from expost.exceptions import DomainError, ParameterError

X = np.array([[0.8], [-1.0], [0.3]])
COUNTS = np.array([1.0, 2.0, 5.0])
LOSSES = [
    (LogisticLoss(), [1.0, 0.0, 0.0], 1.0),
    (LogisticLoss(soft=True), [0.2, 0.9, 0.5], 0.4),
    (PseudoHuber(0.7), [2.0, -1.0, 0.5], 3.0),
    (SmoothedHinge(0.3), [1.0, -1.0, -1.0], -1.0),
    (SquaredLoss(), [0.5, -1.0, 0.2], -0.7),
]
STATISTICS = {"sigma_gradient": 2.0, "sigma_hessian": 0.8, "sigma_eigenvalue": 1.5}


def gaussian_delta(epsilon, shift):
    return norm.cdf(shift / 2 - epsilon / shift) - np.exp(epsilon) * norm.cdf(-shift / 2 - epsilon / shift)


def state(loss, X, y, counts, theta, l2):
    """Gradient and Hessian of the objective at each row of ``theta``, written out row by row."""
    gradient = l2 * theta
    hessian = np.tile(l2 * np.eye(theta.shape[1]), (len(theta), 1, 1))
    for x, label, count in zip(X, y, counts, strict=True):
        slope, curvature = loss.derivatives(theta @ x, np.full(len(theta), float(label)))
        gradient = gradient + count * slope[:, None] * x
        hessian = hessian + count * curvature[:, None, None] * np.outer(x, x)
    return gradient, hessian


def neighbours(loss, X, y, counts, record, label, theta, *, sigma, l2):
    """States and log densities of the coefficients, without and with the record."""
    larger = np.vstack([X, record]), np.append(y, label), np.append(counts, 1.0)
    states = [state(loss, X, y, counts, theta, l2), state(loss, *larger, theta, l2)]
    logs = [
        -np.sum(g**2, axis=1) / (2 * sigma**2)
        + np.linalg.slogdet(h)[1]
        - theta.shape[1] * math.log(sigma * math.sqrt(2 * math.pi))
        for g, h in states
    ]
    return states, logs


def integrand(
    states, logs, direction, *, epsilon, sigma_gradient=None, sigma_hessian=None, sigma_eigenvalue=None
):
    excess = epsilon - (logs[direction] - logs[1 - direction])
    (g, h), (g1, h1) = states
    shift = np.zeros(len(g))
    if sigma_gradient:
        shift += np.sum((g1 - g) ** 2, axis=1) / sigma_gradient**2
    if sigma_hessian:
        shift += np.sum((h1 - h) ** 2, axis=(1, 2)) / (2 * sigma_hessian**2)
    if sigma_eigenvalue:
        rise = np.linalg.eigvalsh(h1)[:, 0] - np.linalg.eigvalsh(h)[:, 0]
        shift += rise**2 / sigma_eigenvalue**2
    profile = np.maximum(0.0, 1.0 - np.exp(excess))
    if np.any(shift > 0):
        profile = gaussian_delta(excess, np.sqrt(np.maximum(shift, 1e-30)))
    return np.exp(logs[direction]) * profile


# Every loss with some statistics in each run, and with all of them in the slow one.
BESIDE = {"none": {}, "hessian": {"sigma_hessian": 0.8}, "all": STATISTICS}
PAIRED = [
    pytest.param(*case, beside, marks=[pytest.mark.slow] * (place % 3 != which), id=f"{place}-{name}")
    for place, case in enumerate(LOSSES)
    for which, (name, beside) in enumerate(BESIDE.items())
]


@pytest.mark.long
@pytest.mark.parametrize(("loss", "y", "label", "statistics"), PAIRED)
def test_one_dimension_agrees_with_quadrature_over_the_coefficient(loss, y, label, statistics):
    problem = {"sigma": 1.3, "l2": 0.6}
    record = np.array([1.0])
    audit = hockey_stick(loss, X, y, record, label, counts=COUNTS, epsilon=0.4, **problem, **statistics)

    def density(theta, direction):
        found = neighbours(loss, X, y, COUNTS, record, label, np.array([[theta]]), **problem)
        return integrand(*found, direction, epsilon=0.4, **statistics)[0]

    for direction, value in enumerate((audit.add, audit.remove)):
        pieces = [
            quad(density, a, a + 0.5, args=(direction,), epsabs=1e-11, epsrel=1e-8, limit=200)[0]
            for a in np.arange(-12.0, 12.0, 0.5)
        ]
        assert value == pytest.approx(sum(pieces), rel=1e-6, abs=1e-10)
    assert audit.error < 1e-8 * audit.delta


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_statistics_agree_with_the_integral_over_coefficient_and_gradient(epsilon):
    loss, y, label = LOSSES[0]
    record, noise = np.array([1.0]), 1.7
    problem = {"sigma": 1.3, "l2": 0.6}
    audit = hockey_stick(
        loss, X, y, record, label, counts=COUNTS, epsilon=epsilon, **problem, sigma_gradient=noise
    )
    theta = np.linspace(-15.0, 15.0, 4001)
    (first, second), logs = neighbours(loss, X, y, COUNTS, record, label, theta[:, None], **problem)
    seen = np.linspace(-25.0, 25.0, 2001)
    joint = [
        np.exp(log[:, None]) * norm.pdf(seen, gradient, noise)
        for log, (gradient, _) in zip(logs, (first, second), strict=True)
    ]
    cell = (theta[1] - theta[0]) * (seen[1] - seen[0])
    for direction, value in enumerate((audit.add, audit.remove)):
        gap = joint[direction] - math.exp(epsilon) * joint[1 - direction]
        assert value == pytest.approx(cell * np.maximum(gap, 0.0).sum(), rel=1e-4, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loss", "y", "label", "statistics", "accuracy"),
    [
        (SmoothedHinge(0.5), [1.0, -1.0], -1.0, {}, 1e-4),  # the grid misses the kink, the audit does not
        (LogisticLoss(), [1.0, 0.0], 0.0, STATISTICS, 1e-6),
    ],
    ids=["kinked", "statistics"],
)
def test_two_dimensions_agree_with_a_grid_over_the_coefficients(loss, y, label, statistics, accuracy):
    problem = {"sigma": 1.2, "l2": 1.0}
    rows, record, counts = np.array([[0.9, 0.4], [-0.5, 0.8]]), np.array([0.6, -0.8]), np.array([3.0, 1.0])
    audit = hockey_stick(loss, rows, y, record, label, counts=counts, epsilon=0.3, **problem, **statistics)
    axis = np.linspace(-12.0, 12.0, 601)
    theta = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    found = neighbours(loss, rows, y, counts, record, label, theta, **problem)
    for direction, value in enumerate((audit.add, audit.remove)):
        total = integrand(*found, direction, epsilon=0.3, **statistics).sum() * (axis[1] - axis[0]) ** 2
        assert value == pytest.approx(total, rel=accuracy, abs=1e-9)


@pytest.mark.long
def test_a_second_coordinate_without_data_changes_nothing():
    arguments = {"epsilon": 1.0, "sigma": 4.0, "l2": 3.0, "sigma_hessian": 2.0}
    one = hockey_stick(LogisticLoss(), [[0.1]], [1.0], [1.0], 0.0, counts=[500], **arguments)
    two = hockey_stick(LogisticLoss(), [[0.0, 0.1]], [1.0], [0.0, 1.0], 0.0, counts=[500], **arguments)
    assert (two.add, two.remove) == pytest.approx((one.add, one.remove), rel=1e-7)


@pytest.mark.parametrize("sigma", [0.2, 0.5, 0.65, 0.8])
@pytest.mark.parametrize("statistics", [{}, {"sigma_gradient": 0.3}])
def test_strong_regularisation_gives_the_gaussian_mechanism(sigma, statistics):
    """Coefficients stay at zero, where the slope is 1/2 and the determinants cancel; delta to 1e-12."""
    epsilon = 3.4
    result = hockey_stick(
        LogisticLoss(), X, [1, 0, 1], [0.8], 1.0, epsilon=epsilon, sigma=sigma, l2=1e9, **statistics
    )
    shift = 0.4 * math.hypot(1 / sigma, 1 / statistics.get("sigma_gradient", math.inf))
    assert (result.add, result.remove) == pytest.approx((gaussian_delta(epsilon, shift),) * 2, rel=1e-6)


@pytest.mark.long
def test_sampled_releases_agree():
    """Means of numbers in [0, 1] against the integral; false alarm at most 1e-6.

    The empirical Bernstein bound of Maurer and Pontil (2009), on each side in each direction at a quarter.
    """
    loss, y, label = LOSSES[3]
    record, rng, size = np.array([1.0]), np.random.default_rng(0), 40_000
    problem = {"sigma": 1.0, "l2": 0.5}
    arguments = {"epsilon": 0.2, **problem, "sigma_hessian": 1.0}
    result = hockey_stick(loss, X, y, record, label, counts=COUNTS, **arguments)
    for direction, value in enumerate((result.add, result.remove)):
        draw, low, high = rng.standard_normal(size), np.full(size, -50.0), np.full(size, 50.0)
        rows = [(X, y, COUNTS), (np.vstack([X, record]), [*y, label], [*COUNTS, 1.0])][direction]
        for _ in range(60):
            middle = (low + high) / 2
            above = state(loss, *rows, middle[:, None], problem["l2"])[0][:, 0] + draw > 0
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        states, logs = neighbours(loss, X, y, COUNTS, record, label, middle[:, None], **problem)
        hessians = [h[:, 0, 0] for _, h in states]
        seen = hessians[direction] + math.sqrt(2) * rng.standard_normal(size)
        own, other = (
            logs[i] + norm.logpdf(seen, hessians[i], math.sqrt(2)) for i in (direction, 1 - direction)
        )
        sample = np.maximum(0.0, 1 - np.exp(0.2 + other - own))
        share = math.log(2.0 / (1e-6 / 4.0))
        allowed = math.sqrt(2.0 * sample.var(ddof=1) * share / size) + 7.0 * share / (3.0 * (size - 1))
        assert abs(sample.mean() - value) < allowed < 0.1 * value


def test_both_directions_meet_at_the_total_variation_distance():
    for loss, y, label in LOSSES:
        near, far = (
            hockey_stick(loss, X, y, [1.0], label, epsilon=epsilon, sigma=1.0, l2=0.5, **STATISTICS)
            for epsilon in (1e-12, 1.0)
        )
        assert near.add == pytest.approx(near.remove, rel=1e-8)
        assert far.add != pytest.approx(far.remove, rel=1e-3)


@pytest.mark.long
def test_a_narrow_transition_is_not_missed():
    """With l2 = 1e-4 the record is curved within 1e-5 of the noise's range, and all of delta is there."""
    loss, sigma, l2, epsilon = LogisticLoss(), 50.0, 1e-4, 1.0
    result = hockey_stick(loss, np.empty((0, 1)), [], [1.0], 1.0, epsilon=epsilon, sigma=sigma, l2=l2)
    theta = np.linspace(-60.0, 60.0, 2_000_001)
    _, logs = neighbours(loss, np.empty((0, 1)), [], [], np.ones(1), 1.0, theta[:, None], sigma=sigma, l2=l2)
    expected = np.sum(integrand([(theta[:, None], None)] * 2, logs, 1, epsilon=epsilon)) * (
        theta[1] - theta[0]
    )
    assert result.remove == pytest.approx(expected, rel=1e-5)


def test_a_record_of_zeros_and_a_larger_release():
    arguments = {"epsilon": 0.5, "sigma": 1.0, "l2": 1.0}
    assert hockey_stick(LogisticLoss(), X, [0, 1, 0], [0.0], 1.0, **arguments).delta == 0.0
    less = hockey_stick(LogisticLoss(), X, [0, 1, 0], [1.0], 1.0, **arguments)
    more = hockey_stick(LogisticLoss(), X, [0, 1, 0], [1.0], 1.0, **arguments, **STATISTICS)
    assert less.add < more.add
    assert less.remove < more.remove


@pytest.mark.slow
def test_real_neighbours_attain_the_gaussian_mechanism():
    """At l2 = 5/epsilon the tight delta is the Gaussian mechanism's, and many short rows reach it."""
    sigma = 4.2247
    result, pair = worst_pair(
        LogisticLoss(), norm=1.0, epsilon=1.0, sigma=sigma, l2=5.0, trials=20, random_state=0
    )
    tight = gaussian_delta(1.0, 1.0 / sigma)
    assert 0.9999 * tight < result.delta <= tight * (1 + 1e-9)
    again = hockey_stick(LogisticLoss(), **vars(pair), epsilon=1.0, sigma=sigma, l2=5.0)
    assert again == result
    assert np.all(np.linalg.norm(pair.X, axis=1) <= 1.0)


@pytest.mark.parametrize("trials", [15, pytest.param(40, marks=pytest.mark.slow)])
def test_the_search_is_reproducible_and_stays_in_the_domain(trials, monkeypatch):
    structured = search._structured_pairs
    monkeypatch.setattr(search, "_structured_pairs", lambda *arguments: islice(structured(*arguments), 3))
    arguments = {"norm": 2.0, "epsilon": 1.0, "sigma": 3.0, "l2": 0.5, "trials": trials}
    first, second = (worst_pair(SmoothedHinge(), **arguments, random_state=3) for _ in range(2))
    assert first[0] == second[0]
    assert np.all(np.linalg.norm(np.vstack([first[1].X, first[1].record]), axis=1) <= 2.0 + 1e-12)


@pytest.mark.parametrize("label", [0.0, 0.5, 1.0])
def test_a_million_cancelling_rows_can_be_audited(label):
    """They fix the coefficient, so that the audit gives the Gaussian mechanism of one slope."""
    loss, epsilon, sigma, l2 = LogisticLoss(soft=True), 0.01, 40.0, 1e-3
    table = np.array([[10.0], [-10.0], [3.0]]), [0.5, 1.0, 0.0], np.array([1e6, 1e5, 1e6])
    rows, labels, counts = table
    audited = hockey_stick(
        loss, rows, labels, [10.0], label, counts=counts, epsilon=epsilon, sigma=sigma, l2=l2
    )
    held = brentq(lambda theta: state(loss, *table, np.array([[theta]]), l2)[0][0, 0], -1.0, 1.0)
    slope = loss.derivatives(np.array([10.0 * held]), np.array([label]))[0][0]
    expected = gaussian_delta(epsilon, abs(slope) * 10.0 / sigma)
    assert (audited.add, audited.remove) == pytest.approx((expected, expected), rel=1e-4)
    assert audited.error < 1e-6 * audited.delta


def test_bad_arguments_are_refused():
    good = {"epsilon": 1.0, "sigma": 1.0, "l2": 1.0}
    with pytest.raises(ParameterError, match="length 1 or 2"):
        hockey_stick(LogisticLoss(), np.empty((0, 3)), [], [1.0, 0.0, 0.0], 1.0, **good)
    with pytest.raises(DomainError, match="shapes"):
        hockey_stick(LogisticLoss(), X, [1.0], [1.0], 1.0, **good)
    with pytest.raises(DomainError, match="labels"):
        hockey_stick(LogisticLoss(), X, [0, 1, 0.5], [1.0], 1.0, **good)
    with pytest.raises(DomainError, match="counts"):
        hockey_stick(LogisticLoss(), X, [0, 1, 0], [1.0], 1.0, counts=[1, 0.5, 1], **good)
    with pytest.raises(ParameterError, match="sigma_hessian"):
        hockey_stick(LogisticLoss(), X, [0, 1, 0], [1.0], 1.0, **good, sigma_hessian=-1.0)
    with pytest.raises(ParameterError, match="dimension"):
        worst_pair(LogisticLoss(), norm=1.0, **good, dimension=3)


def test_labels_of_an_interval_are_tried_at_its_ends_and_middle(monkeypatch):
    """The coefficient stays at zero: there labels 0 and 1 pull with half the slope, and 1/2 not at all."""
    assert search._label_choices(LogisticLoss(soft=True)) == (0.0, 0.5, 1.0)
    structured = search._structured_pairs
    alone = lambda *arguments: (pair for pair in structured(*arguments) if not pair.counts.size)  # noqa: E731
    monkeypatch.setattr(search, "_structured_pairs", alone)
    found, pair = worst_pair(
        LogisticLoss(soft=True), norm=2.0, epsilon=0.5, sigma=1.0, l2=1e9, trials=1, random_state=0
    )
    assert found.delta == pytest.approx(gaussian_delta(0.5, 1.0), rel=1e-6)
    assert pair.label in (0.0, 1.0)
