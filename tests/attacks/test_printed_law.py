"""The law of what is printed, by brute force in one dimension: never above the certificate."""

import math

import numpy as np
import pytest
from grids import grid
from problems import design_of

import expost
from expost import LogisticLoss
from expost.fitting.ex_post import ex_post_terms
from expost.fitting.mechanism import perturb
from expost.fitting.noise import SeededNoise
from expost.fitting.private_fit import recover
from expost.privacy.precision import Rounding
from expost.privacy.profile import PrivacyProfile
from expost.privacy.scales import NoiseScales

LOSS = LogisticLoss()


def density(w, X, y, *, l2, sigma):
    """The density of the exact minimiser at each of ``w``, for a table of one feature."""
    eta = np.multiply.outer(w, X)
    slope, curvature = LOSS.derivatives(eta, np.broadcast_to(y, eta.shape))
    gradient = slope @ X + l2 * w
    hessian = curvature @ X**2 + l2
    return np.exp(-0.5 * (gradient / sigma) ** 2) * hessian / (sigma * math.sqrt(2.0 * math.pi))


def printed_density(points, weights, X, y, error, *, noise, l2, sigma):
    """The density of minimiser plus solver's error plus output noise, on the same grid."""
    minimiser = density(points, X, y, l2=l2, sigma=sigma) * weights
    moved = points + error(points)
    kernel = np.exp(-0.5 * (np.subtract.outer(points, moved) / noise) ** 2)
    return kernel @ minimiser / (noise * math.sqrt(2.0 * math.pi))


TILTS = {
    "apart": (lambda w: 1.0, lambda w: -1.0),
    "together": (lambda w: 1.0, lambda w: 1.0),
    "outwards": (lambda w: np.sign(w), lambda w: -np.sign(w)),
    "wave": (lambda w: np.sin(9.0 * w), lambda w: -np.sin(9.0 * w)),
    "steps": (lambda w: np.sign(np.sin(40.0 * w)), lambda w: -np.sign(np.sin(40.0 * w))),
}


@pytest.mark.long
@pytest.mark.parametrize(("ratio", "tilt"), grid([0.05, 0.5], TILTS, together=1))
def test_the_worst_solver_error_stays_below_the_certificate(tilt, ratio):
    """Errors of ±r₀ that depend on the table and on the minimiser, both directions, several epsilons.

    The output noise is taken as coarse as a twentieth of the minimiser's spread, and r₀ as large as a quarter
    of that, so that the effect is far above the error of the integrals. Rounding to a grid is left out: it
    is post-processing and can only lower the divergence.
    """
    l2, sigma = 1.0, 2.0
    X, y = np.array([1.0, 0.5, -0.8]), np.array([1.0, 0.0, 1.0])
    points = np.linspace(-11.0, 11.0, 4001)
    weights = np.full(points.size, points[1] - points[0])
    noise = 0.05 * sigma / l2
    radius = 0.5 * ratio * noise
    laws = []
    for rows, error in ((slice(None), TILTS[tilt][0]), (slice(1, None), TILTS[tilt][1])):
        law = printed_density(
            points,
            weights,
            X[rows],
            y[rows],
            lambda w, error=error: radius * error(w),
            noise=noise,
            l2=l2,
            sigma=sigma,
        )
        assert law @ weights == pytest.approx(1.0, abs=1e-6)
        laws.append(law)
    profile = PrivacyProfile(
        LOSS.curve, norm=1.0, l2=l2, scales=NoiseScales(sigma), rounding=Rounding(solver=2.0 * radius / noise)
    )
    exact = PrivacyProfile(LOSS.curve, norm=1.0, l2=l2, scales=NoiseScales(sigma))
    for epsilon in (0.1, 0.5, 1.0, 2.0):
        certificate = profile.delta(epsilon).upper
        assert certificate > exact.delta(epsilon).upper
        for p, q in (laws, laws[::-1]):
            divergence = float(np.maximum(p - math.exp(epsilon) * q, 0.0) @ weights)
            assert divergence <= certificate + 1e-9


@pytest.mark.long
def test_a_certificate_that_ignores_the_solver_would_be_refuted():
    """The brute force is sharp enough: without the solver's term the bound fails where solver errors tell."""
    l2, sigma = 50.0, 100.0  # a record says nearly nothing through the objective
    points = np.linspace(-14.0, 14.0, 6001)
    weights = np.full(points.size, points[1] - points[0])
    noise = 0.05 * sigma / l2
    radius = 0.5 * noise
    X, y = np.array([1.0]), np.array([1.0])
    laws = [
        printed_density(
            points,
            weights,
            rows,
            y[: len(rows)],
            lambda w, s=s: s * radius * np.sign(np.sin(20.0 * w)),
            noise=noise,
            l2=l2,
            sigma=sigma,
        )
        for rows, s in ((X, 1.0), (X[:0], -1.0))
    ]
    ignoring = PrivacyProfile(LOSS.curve, norm=1.0, l2=l2, scales=NoiseScales(sigma)).delta(0.1).upper
    divergence = float(np.maximum(laws[0] - math.exp(0.1) * laws[1], 0.0) @ weights)
    assert divergence > 2.0 * ignoring


@pytest.mark.parametrize("n", [1, 20, 5000])
@pytest.mark.parametrize("member", [True, False])
def test_exact_losses_are_those_of_the_printed_law(n, member):
    """Log ratio of the convolved densities, by Gauss-Hermite quadrature, to 1e-7."""
    rng = np.random.default_rng(n)
    X, y = rng.uniform(-1.0, 1.0, n + 1), rng.integers(0, 2, n + 1).astype(float)
    inside = slice(None) if member else slice(0, n)
    plan = expost.calibrate(loss="logistic", epsilon=1.0)
    design, labels = design_of(X[inside, None]), y[inside]
    release, private = perturb(plan, design.labelled(labels), noise=SeededNoise(3))
    nodes, weights = np.polynomial.hermite_e.hermegauss(20)
    points = release.coefficients[0] + plan.output_noise * nodes
    without = np.delete(np.arange(n + 1), n)
    with_record, less = (
        np.log(density(points, X[rows], y[rows], l2=plan.l2, sigma=plan.sigma) @ weights)
        for rows in (np.arange(n + 1), without)
    )
    expected = with_record - less if member else less - with_record
    record = design_of(X[n:, None])
    for known in (private, recover(release, design.labelled(labels))):
        terms = ex_post_terms(known, record.labelled(y[n:]), plan.loss, member=member)
        assert terms.signed[0] == pytest.approx(expected, abs=1e-7)
    assert private.loss_error < 1e-7


def test_a_curator_can_read_the_error_of_exact_losses():
    X, y = np.linspace(-1.0, 1.0, 200)[:, None], np.arange(200) % 2
    model = expost.LogisticRegression(norm=1.0, classes=[0, 1], random_state=0).fit(X, y)
    assert 0.0 < model.ex_post_error_ == model._private.loss_error < 1e-7
