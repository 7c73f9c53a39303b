r"""The Gaussian mechanism: its privacy profile, calibration, and per-instance and ex-post privacy loss.

Everything depends on the *shift*: the distance :math:`\Delta` between two outputs, in units of the noise.
For a worst-case guarantee the sensitivity is that of the statistic; for a per-instance one it is the distance
that one given record moves it, and an array of such distances gives an array of answers.

References
----------
.. [BW18] B. Balle and Y.-X. Wang, "Improving the Gaussian mechanism for differential privacy:
   analytical calibration and optimal denoising", ICML 2018 (arXiv 1805.06530).
.. [RW21] R. Redberg and Y.-X. Wang, "Privately publishable per-instance privacy", NeurIPS 2021.
"""

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erfcx, ndtri

from expost._common.typing import FloatArray
from expost._common.validation import check_positive, parameter_error

# Below this shift the difference of two Mills ratios is expanded; above it, it loses at most four digits.
_SMALL_SHIFT = 5e-3


def delta(epsilon: ArrayLike, *, sensitivity: ArrayLike, sigma: ArrayLike) -> FloatArray:
    r"""The smallest :math:`\delta` of the Gaussian mechanism at each :math:`\epsilon`: its privacy profile.

    .. math:: \delta(\epsilon) = \Phi(\Delta/2 - \epsilon/\Delta)
              - e^\epsilon\,\Phi(-\Delta/2 - \epsilon/\Delta), \quad \Delta = \text{sensitivity}/\sigma

    Theorem 8 of [BW18]_, evaluated so that nothing cancels: the relative error is about 1e-12 down to
    values of 1e-300. ``epsilon`` may be any number, negative or infinite. The limits are
    :math:`\max(0, 1 - e^\epsilon)` as the shift vanishes and 1 as it grows without bound.

    Privacy
    -------
    A function of public parameters. With a per-instance sensitivity the answer is about that record,
    and as private as the record is.

    Examples
    --------
    >>> f"{delta(1.0, sensitivity=1.0, sigma=4.22468):.3e}"
    '1.000e-06'
    >>> delta([-1.0, 0.0, 1.0], sensitivity=0.0, sigma=1.0).round(4)
    array([0.6321, 0.    , 0.    ])
    """
    at = np.asarray(epsilon, dtype=np.float64)
    if np.isnan(at).any():
        raise parameter_error("epsilon", "a number", epsilon)
    return _profile(at, _shift(sensitivity, sigma))


def delta_at_shift(left: FloatArray, shift: float) -> FloatArray:
    """The profile at what is left of epsilon, for one shift; far from zero without special functions."""
    value: FloatArray = -np.expm1(np.minimum(left, 0.0))
    if shift > 0.0:
        # Farther out the shift changes the value by less than e^-800, which no double holds.
        near = np.abs(left) <= 40.0 * shift + 0.5 * shift**2
        value[near] = delta(left[near], sensitivity=shift, sigma=1.0)
    return value


# The two inversions have parameters of the names of functions here, so they call the helpers at the end.


def epsilon(delta: float, *, sensitivity: ArrayLike, sigma: ArrayLike) -> FloatArray:
    r"""The smallest :math:`\epsilon \ge 0` with :math:`\delta(\epsilon) \le \delta`, for each sensitivity.

    Inverts Theorem 8 of [BW18]_. With the sensitivity of one record this is its per-instance privacy
    loss, and it is smaller than the tail bound in the corollary "pDP bound" of [RW21]_, appendix "pDP
    Analysis of the Gaussian mechanism", which is where the search starts.

    The answer is on the private side: :func:`delta` of it does not exceed ``delta``.

    Privacy
    -------
    As for :func:`delta`.

    Examples
    --------
    >>> epsilon(1e-6, sensitivity=[0.0, 1.0, 2.0], sigma=4.22468).round(4)
    array([0.    , 1.    , 2.1229])
    """
    target = check_positive("delta", delta, below=1.0)
    shift = _shift(sensitivity, sigma)
    # Shifts of 0 and infinity have their answers already; 1 stands in for them to keep the loop clean.
    ordinary = (shift > 0.0) & np.isfinite(shift)
    width = np.where(ordinary, shift, 1.0)
    guess = np.maximum(width * (0.5 * width - ndtri(target)), 0.0)
    # The logarithm of the profile is concave and falling, so Newton's method, once on the private side,
    # stays there and falls to the root. The tail bound is on the private side.
    for _ in range(100):
        start = guess / width - 0.5 * width
        gap = _mills_difference(start, width)
        excess = np.log(gap / (math.sqrt(2.0 * math.pi) * target)) - 0.5 * start * start
        step = np.minimum(excess * gap / _mills(start + width), 0.0)
        guess = np.maximum(guess + step, 0.0)
        if np.all(-step <= 1e-15 * guess):
            break
    nudge = 1e-15  # rounding may have carried the last step across
    while np.any(over := (_profile(guess, width) > target) & ordinary):
        guess = np.where(over, guess + nudge * (guess + width), guess)
        nudge *= 2.0
    return np.asarray(np.where(ordinary, guess, shift))[()]


def sigma(epsilon: float, delta: float, *, sensitivity: float = 1.0) -> float:
    r"""The smallest noise for which the Gaussian mechanism is :math:`(\epsilon, \delta)`-private.

    The analytic Gaussian mechanism, Algorithm 1 of [BW18]_, by bisection in the shift instead of two
    changes of variable. It ends on the private side: :func:`delta` at the answer does not exceed ``delta``.

    Privacy
    -------
    A function of public parameters only; ``sensitivity`` must bound every pair of neighbouring tables.

    Examples
    --------
    >>> round(sigma(1.0, 1e-6), 5), round(sigma(0.1, 1e-6), 4)
    (4.22468, 36.3047)
    """
    at = np.float64(check_positive("epsilon", epsilon))
    target = check_positive("delta", delta, below=1.0)
    size = check_positive("sensitivity", sensitivity)

    def is_private(scale: float) -> bool:
        return bool(_profile(at, np.asarray(size / scale)) <= target)

    # Where shift²/2 + shift·quantile = epsilon, the tail of the privacy loss alone is below delta.
    quantile = -float(ndtri(target))
    root = math.sqrt(quantile * quantile + 2.0 * epsilon)
    high = size * (root + quantile) / (2.0 * epsilon) if quantile > 0.0 else size / (root - quantile)
    if not math.isfinite(high):
        raise parameter_error("epsilon", "large enough for a noise scale below 1e308", epsilon)
    while not is_private(high):  # only by rounding
        high *= 1.0 + 1e-12
    low = 0.5 * high
    while is_private(low):
        low, high = 0.5 * low, low
    while low < (middle := 0.5 * (low + high)) < high:
        low, high = (low, middle) if is_private(middle) else (middle, high)
    return high


def ex_post_loss(output: ArrayLike, *, mean: ArrayLike, other_mean: ArrayLike, sigma: float) -> FloatArray:
    r"""How much more likely one table than the other makes the output actually released, on the log scale.

    .. math:: \left| \log\frac{p(o \mid D)}{p(o \mid D_{\pm z})} \right| = \left|
              \frac{\|\Delta_z\|^2}{2\sigma^2} - \frac{\Delta_z^\top (o - Q(D))}{\sigma^2} \right|,
              \quad \Delta_z = Q(D_{\pm z}) - Q(D)

    Theorem "ex-post pDP of Gaussian mechanism" of [RW21]_, appendix "pDP Analysis of the Gaussian
    mechanism". Exact, with no probability of failure. ``mean`` and ``other_mean`` are the statistic :math:`Q`
    of the table and of its neighbour; vectors lie along the last axis.

    Privacy
    -------
    Private: it is computed from the noiseless statistic. Publish :func:`ex_post_bound` instead.

    Examples
    --------
    >>> round(float(ex_post_loss([2.0, 0.0], mean=[0.0, 0.0], other_mean=[1.0, 0.0], sigma=1.0)), 12)
    1.5
    """
    scale = check_positive("sigma", sigma)
    released, here, there = (
        np.atleast_1d(np.asarray(v, dtype=np.float64)) for v in (output, mean, other_mean)
    )
    products = ((there - here) / scale) * ((0.5 * (here + there) - released) / scale)
    return np.asarray(np.abs(products.sum(axis=-1)))[()]


def ex_post_bound(*, sensitivity: ArrayLike, sigma: ArrayLike, failure: float) -> FloatArray:
    r"""What :func:`ex_post_loss` stays below with probability ``1 - failure``, whatever the data.

    .. math:: \Delta^2/2 + \Delta\,\Phi^{-1}(1 - \rho/2)

    Corollary "high-probability ex-post pDP" of [RW21]_, appendix "pDP Analysis of the Gaussian
    mechanism", with ``failure`` for :math:`\rho`. It holds for a record fixed before the noise was
    drawn; for the largest of ``n`` given records, divide ``failure`` by ``n``.

    Privacy
    -------
    As for :func:`delta`: free of the data, about the record whose sensitivity it is.

    Examples
    --------
    >>> round(float(ex_post_bound(sensitivity=1.0, sigma=2.0, failure=0.05)), 4)
    1.105
    """
    quantile = -ndtri(0.5 * check_positive("failure", failure, below=1.0))
    shift = _shift(sensitivity, sigma)
    return np.asarray(shift * (0.5 * shift + quantile))[()]


def _shift(sensitivity: ArrayLike, sigma: ArrayLike) -> FloatArray:
    """``sensitivity / sigma``, both checked."""
    distance = np.asarray(sensitivity, dtype=np.float64)
    scale = np.asarray(sigma, dtype=np.float64)
    if not np.all(distance >= 0.0):  # NaN fails here too
        raise parameter_error("sensitivity", "at least 0", sensitivity)
    if not np.all((scale > 0.0) & np.isfinite(scale)):
        raise parameter_error("sigma", "finite and positive", sigma)
    return np.asarray(distance / scale)


def _profile(epsilon: FloatArray | np.float64, shift: FloatArray) -> FloatArray:
    # exp(epsilon) density(start + shift) = density(start) with start = epsilon/shift - shift/2, so the two
    # terms share this factor, and only Mills ratios remain to be subtracted.
    size = np.abs(epsilon)
    ordinary = (shift > 0.0) & np.isfinite(shift)
    width = np.where(ordinary, shift, 1.0)
    # Beyond these limits the result is 1 or 0 to the last digit, and inside them nothing overflows.
    start = np.clip(size / width - 0.5 * width, -9.0, 40.0)
    above = np.exp(-0.5 * start * start) * _mills_difference(start, width) / math.sqrt(2.0 * math.pi)
    above = np.where(ordinary, above, shift > 0.0)
    # Swapping the two outputs maps the profile at -epsilon to the one at epsilon.
    negative = np.minimum(epsilon, 0.0)
    below = np.exp(negative) * above - np.expm1(negative)
    return np.asarray(np.where(epsilon < 0.0, below, above))[()]


def _mills(x: FloatArray) -> FloatArray:
    """The Mills ratio of the standard normal: its upper tail over its density."""
    return math.sqrt(0.5 * math.pi) * np.asarray(erfcx(x / math.sqrt(2.0)))


def _mills_difference(start: FloatArray, width: FloatArray) -> FloatArray:
    """The fall of the Mills ratio from ``start`` to ``start + width``, to a relative error of about 1e-12."""
    start, width = np.broadcast_arrays(start, width)
    difference = np.array(_mills(start) - _mills(start + width))
    small = np.asarray(width < _SMALL_SHIFT)
    if small.any():
        step = width[small]
        # Taylor about the midpoint, from R' = xR - 1. The first neglected term is below step⁴/240.
        middle = start[small] + 0.5 * step
        ratio = _mills(middle)
        fall = 1.0 - middle * ratio
        third = middle * (ratio - middle * fall) - 2.0 * fall
        difference[small] = step * (fall - step * step / 24.0 * third)
    return difference
