"""The softmax certificate against what it bounds: sampled suprema. tests/audit has real tables."""

import math
from itertools import product

import numpy as np
import pytest

from expost import gaussian
from expost.losses.softmax_curve import SoftmaxCurve
from expost.privacy.scales import NoiseScales
from expost.privacy.softmax_profile import SoftmaxProfile

EPSILON = 1.0


def hessian_in_scores(curve, slope, law):
    """``A`` of a record whose true class is the last one."""
    along = np.append(law, -1.0)
    inner = np.zeros((curve.classes, curve.classes))
    inner[:-1, :-1] = np.diag(law) - np.outer(law, law)
    return slope * inner + float(curve.curvature(np.array(slope))) * np.outer(along, along)


def candidates(curve):
    """Records whose wrong classes are sorted by their mass: slopes, laws and Hessians."""
    others = curve.classes - 1
    laws = []
    for share in np.linspace(0.0, 1.0 - 1.0 / others, 17):
        for used in sorted({1, others // 2, others - 1}):
            if share <= used * (1.0 - share):
                laws.append(
                    np.concatenate([[1.0 - share], np.full(used, share / used), np.zeros(others - 1 - used)])
                )
    pairs = list(product(np.linspace(0.0, curve.cap, 25), laws))
    slopes, laws = np.array([slope for slope, _ in pairs]), np.stack([law for _, law in pairs])
    return slopes, laws, np.stack([hessian_in_scores(curve, slope, law) for slope, law in pairs])


def sampled(curve, l2, sigma, sigma_hessian, draws, seed):
    """The expectation of the supremum over the candidates, by importance sampling, and its standard error."""
    slopes, laws, hessians = candidates(curve)
    loss = np.linalg.slogdet(np.eye(curve.classes) + hessians / l2)[1]
    loss += slopes**2 * (1.0 + np.sum(laws**2, axis=1)) / (2.0 * sigma**2)
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((draws, curve.classes))
    # One wrong class and the true one are moved towards the region that counts, by one of two distances.
    pushes = np.array([0.4, 0.5])[:, None, None] * (EPSILON * sigma / curve.cap - curve.cap / sigma)
    chosen = rng.integers(curve.classes - 1, size=draws)
    push = pushes.ravel()[rng.integers(2, size=draws)]
    noise[np.arange(draws), chosen] += push
    noise[:, -1] -= push
    differences = noise[:, :-1] - noise[:, -1:]
    weights = 1.0 / np.mean(np.exp(pushes * differences - pushes**2), axis=(0, 2))
    ordered = -np.sort(-differences, axis=1)
    left = EPSILON - loss - (ordered @ (slopes[:, None] * laws).T) / sigma
    if sigma_hessian is None:
        values = -np.expm1(np.minimum(left.min(axis=1), 0.0))
    else:
        shift = np.linalg.norm(hessians, axis=(1, 2)) / (math.sqrt(2.0) * sigma_hessian)
        # What is far above epsilon for the largest shift adds nothing.
        near = left < 8.0 * shift.max()
        values = np.zeros_like(left)
        values[near] = gaussian.delta(
            left[near], sensitivity=np.broadcast_to(shift, left.shape)[near], sigma=1.0
        )
        values = values.max(axis=1)
    each = weights * values
    return float(each.mean()), float(each.std() / math.sqrt(draws))


@pytest.mark.parametrize(
    ("classes", "cap", "l2", "sigma", "sigma_hessian", "closest"),
    [
        (3, 1.0, 2.0, 6.71, None, 1.03),
        (3, 0.6, 3.0, 3.9, None, 1.03),
        (5, 0.7, 5.0, 4.6, None, 1.2),
        (3, 1.0, 5.0, 6.8, 3.2, 1.25),
        pytest.param(4, 0.6, 5.0, 4.4, 2.5, 1.4, marks=pytest.mark.slow),
    ],
)
def test_certificate_is_above_the_sampled_supremum(classes, cap, l2, sigma, sigma_hessian, closest):
    """And close to it. Estimates may err by 5.5 standard errors: a false alarm of 4e-8."""
    curve = SoftmaxCurve(classes, cap)
    mean, error = sampled(curve, l2, sigma, sigma_hessian, 12_000 if sigma_hessian is None else 6000, seed=8)
    upper = (
        SoftmaxProfile(curve, 1.0, l2, NoiseScales(sigma, sigma_hessian=sigma_hessian)).delta(EPSILON).upper
    )
    assert error < 0.04 * mean
    assert mean - 5.5 * error <= upper <= closest * (mean + 5.5 * error)
