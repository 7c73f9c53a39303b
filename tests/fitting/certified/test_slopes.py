import mpmath as mp
import numpy as np
import pytest
from hard_tables import derivatives

from expost.fitting.certified.slopes import proved, proved_loss, third_order
from expost.losses import (
    BoundedGamma,
    BoundedPoisson,
    LogisticLoss,
    PseudoHuber,
    SmoothedHinge,
    SmoothedPinball,
    SquaredLoss,
)

LOSSES = [
    LogisticLoss(),
    LogisticLoss(soft=True),
    LogisticLoss(cap=0.6),
    LogisticLoss(cap=0.95, corner=1 - 2.0**-20),
    LogisticLoss(cap=1e-6, corner=1e-6),
    SmoothedHinge(),
    SmoothedHinge(scale=1e-3),
    SmoothedHinge(scale=1e10),
    PseudoHuber(),
    PseudoHuber(threshold=1e-3),
    PseudoHuber(threshold=1e-200),
    PseudoHuber(threshold=1e200),
    SquaredLoss(),
    SmoothedPinball(),
    SmoothedPinball(level=0.999, scale=1e-3),
    BoundedPoisson(),
    BoundedPoisson(largest=1e4, threshold=0.1),
    BoundedGamma(),
    BoundedGamma(threshold=1e3),
]


def _predictors(random):
    eta = np.concatenate(
        [
            random.normal(0, 3, 800),
            random.normal(0, 300, 200),
            random.choice([-1, 1], 300) * 10.0 ** random.uniform(-30, 30, 300),
            [0.0],
        ]
    )
    return eta, eta * random.uniform(-1, 1, len(eta)) * 2.0**-53


def _labels(random, loss, eta):
    if isinstance(loss, LogisticLoss):
        return random.uniform(size=len(eta)) if loss.soft else random.integers(0, 2, len(eta)) * 1.0
    if isinstance(loss, SmoothedHinge):
        return random.choice([-1.0, 1.0], len(eta))
    if loss.log_link:
        y = random.uniform(0.0, min(loss.labels.high, 10.0), len(eta))
        y[:200] = np.clip(np.exp(np.clip(eta[:200], -9.0, 9.0)), 0.0, loss.labels.high)
        y[200:220] = 0.0
        return y
    y = random.normal(size=len(eta))
    y[:200] = eta[:200] * (1.0 + 1e-15 * random.normal(size=200))  # almost everything cancels
    return y


def _weights(random, count):
    """From the smallest double to 1e9, with zero and one among them."""
    return np.concatenate([[0.0, 1.0, 5e-324, 1e9], 10.0 ** random.uniform(-320, 9, count - 4)])[:count]


@pytest.mark.long
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_stated_errors_of_slopes_hold(loss, weighted):
    random = np.random.default_rng(1)
    eta, low = _predictors(random)
    y = _labels(random, loss, eta)
    if getattr(loss, "corner", None) is not None:  # on both sides of the corner, as close as doubles come
        place = np.log(loss.corner_slope / (1 - loss.corner_slope))
        eta[:200] = place * (1 - 2 * y[:200]) * (1 + np.arange(-100, 100) * 2.0**-53)
        low[:200] = eta[:200] * random.uniform(-1, 1, 200) * 2.0**-53
    weights = random.permutation(_weights(random, len(eta))) if weighted else np.ones(len(eta))
    slopes = proved_loss(loss).slopes([(eta, low)], y)
    if weighted:
        slopes = slopes.times(weights)
    (high,), (rest,) = slopes.first
    absolute = np.broadcast_to(slopes.absolute, eta.shape)
    # Beyond 2**400 thresholds, and beyond exp(640), curvatures stop falling.
    least = mp.mpf(2) ** (-780 if loss.log_link else -900)
    with mp.workprec(400):
        for i in range(len(eta)):
            slope, curvature = derivatives(loss, mp.mpf(eta[i]) + mp.mpf(low[i]), mp.mpf(y[i]))
            slope, curvature = mp.mpf(weights[i]) * slope, mp.mpf(weights[i]) * curvature
            error = abs(mp.mpf(high[i]) + mp.mpf(rest[i]) - slope)
            assert error <= slopes.per_curvature * curvature + mp.mpf(absolute[i])
            # Curvatures are plain doubles.
            stopped = mp.mpf(weights[i]) * least + mp.mpf(2) ** -1074
            assert abs(slopes.weights[i, 0] - curvature) <= 16 * 2.0**-53 * curvature + stopped


@pytest.mark.parametrize("loss", [*LOSSES[:10], *LOSSES[-6:]], ids=str)
def test_third_derivative_is_within_its_constant(loss):
    eta = np.linspace(-8.0, 8.0, 4001) * (1.0 if third_order(loss) <= 2.0 else 1.5 / third_order(loss))
    eta = eta + (1.0 if isinstance(loss, SmoothedHinge | SmoothedPinball) else 0.0)
    curvature = loss.derivatives(eta, np.ones_like(eta))[1]
    with np.errstate(divide="ignore"):
        ratio = np.abs(np.diff(np.log(curvature)) / np.diff(eta))
    assert np.max(ratio[np.isfinite(ratio)]) <= third_order(loss) * (1.0 + 1e-6)


def test_a_class_that_is_derived_counts_as_unknown():
    """Its formulas may be others, so that nothing is proved of them."""
    assert proved(LogisticLoss())
    assert not proved(type("Mine", (LogisticLoss,), {})())
