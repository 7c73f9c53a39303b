"""Defaults in public values alone: the shape of a loss, and that of the Hessian in a report."""

import math

from expost._common.validation import check_positive
from expost.losses import (
    AnyLoss,
    BoundedGamma,
    BoundedPoisson,
    LogisticLoss,
    PseudoHuber,
    SmoothedPinball,
    SoftmaxLoss,
)
from expost.losses.binary import LARGEST_CORNER, longest_rows_bend_most
from expost.losses.outcomes import LARGEST_COUNT
from expost.privacy import gaussian
from expost.privacy.plan import accounting_of
from expost.privacy.recalibration import HISTOGRAM
from expost.privacy.recipes import L2_PER_SIGMA
from expost.privacy.scales import REPORT_KINDS

# The width of the pseudo-Huber loss in units of half the label's range, and its limits.
_WIDTH = 0.28
_NARROWEST, _WIDEST = 0.05, 1.0
# The width of the pinball loss's corner, and thresholds in units of the typical count and of the mean.
_ROUNDED, _OF_COUNTS, _OF_AMOUNTS = 0.1, 2.2, 0.8
# A loss that leaves the logistic one any earlier hardly bends: no model could be told from another.
_SMALLEST_CORNER = 0.1
# The cap of the longest rows, as a share of what it is where all rows have one cap.
_OF_GRADIENTS = 0.9
# That cap where a histogram repairs the scale of scores: the least, and how it rises where noise is low.
_RECALIBRATED = 0.2
# Above this many coefficients of several classes the Hessian of a report is the reduced one.
_LARGE = 100


def default_threshold(epsilon: float, delta: float) -> float:
    r"""The threshold of the pseudo-Huber loss for labels in [-1, 1], :math:`0.28\,\sigma_1^{-1/4}`.

    docs/calibration.md, "The width of the pseudo-Huber loss". The guarantee holds at any threshold.
    """
    return min(_WIDEST, max(_NARROWEST, _by_noise(_WIDTH, epsilon, delta)))


def _by_noise(width: float, epsilon: float, delta: float) -> float:
    """A width that falls with the fourth root of the noise of the analytic Gaussian mechanism."""
    return width / math.sqrt(math.sqrt(gaussian.sigma(epsilon, delta)))


def regression_loss(
    epsilon: float, delta: float, *, threshold: float | None = None, radius: float
) -> PseudoHuber:
    r"""The pseudo-Huber loss that suits a budget, on rows of at most this length; or with a given threshold.

    By default no gradient is longer than :math:`TR`, with :math:`T` the :func:`default_threshold`: rows of
    length :math:`R` have that threshold, and shorter ones a larger one. The noise is the same. A threshold
    that is given is that of all rows.
    """
    if threshold is not None:
        return PseudoHuber(threshold)
    width = default_threshold(epsilon, delta)
    return PseudoHuber(width, gradient_cap=width * check_positive("radius", radius))


def quantile_loss(
    epsilon: float, delta: float, *, level: float = 0.5, scale: float | None = None
) -> SmoothedPinball:
    r"""The smoothed pinball loss of a level :math:`t`, for labels in [-1, 1]; or with a given scale.

    The scale is :math:`0.1\sqrt{t(1 - t)}`, whatever the budget: a larger one moves quantiles other than the
    median outwards, and a smaller one needs more regularisation (docs/calibration.md, "Quantiles, counts and
    amounts").
    """
    if scale is not None:
        return SmoothedPinball(level, scale)
    level = check_positive("level", level, below=1.0)
    return SmoothedPinball(level, _ROUNDED * math.sqrt(level * (1.0 - level)))


def count_loss(epsilon: float, delta: float, *, threshold: float | None = None) -> BoundedPoisson:
    r"""The loss of a count that suits a budget, in units of an eighth of the largest; or with a threshold.

    By default that is :math:`2.2\,\sigma_1^{-1/4}`.
    """
    width = _by_noise(_OF_COUNTS, epsilon, delta) if threshold is None else threshold
    return BoundedPoisson(LARGEST_COUNT, width)


def amount_loss(epsilon: float, delta: float, *, threshold: float | None = None) -> BoundedGamma:
    r"""The loss of a positive amount that suits a budget, or with a threshold, a share of the mean.

    By default that is :math:`0.8\,\sigma_1^{-1/4}`.
    """
    return BoundedGamma(_by_noise(_OF_AMOUNTS, epsilon, delta) if threshold is None else threshold)


def capped_logistic(
    epsilon: float,
    delta: float,
    *,
    cap: float | str | None = None,
    l2: float | None = None,
    radius: float | None = None,
    recalibrate: bool = False,
) -> LogisticLoss:
    r"""The logistic loss with the cap that suits a budget, or with a given cap and the corner that suits it.

    .. math:: c = \tfrac{1}{2}\left(1 + \frac{1}{\sqrt{1 + 2\sigma_1}}\right), \qquad
              \theta = \min\left\{1, \frac{1 + L - \sqrt{(1 + L)^2 - 4cL}}{2c}\right\}, \quad
              L = \frac{\lambda\epsilon}{cR^2}

    with :math:`\sigma_1` the noise of the analytic Gaussian mechanism per unit of sensitivity, and
    :math:`\lambda` the smaller of ``l2`` and the default, :math:`cR^2\sigma_1/2`. :math:`\theta` is the
    largest corner at which the determinant costs no noise (docs/mathematics.md, theorem 6.3), but at
    least 0.1, even where that costs noise. A cap of 1, or ``"likelihood"``, is the plain
    logistic loss.

    Where the largest length ``radius`` of a row is said, and no cap, the cap is one on gradients,
    :math:`C = 0.9cR`: :math:`0.9c` is the cap of rows of length :math:`R`, and shorter rows have a larger one
    (:class:`expost.LogisticLoss`; docs/calibration.md, "The cap on the gradient").

    With ``recalibrate`` it is :math:`C = (0.2 + 0.8/(1 + \sigma_1)^2)R`, and :math:`L` is
    :math:`1 - \sqrt\alpha` times what it is above, with :math:`\alpha = 0.1` the share of the histogram: the
    determinant is free then (docs/mathematics.md, theorem 6.5).
    """
    epsilon = check_positive("epsilon", epsilon)
    noise = gaussian.sigma(epsilon, check_positive("delta", delta, below=1.0), sensitivity=1.0)
    length = 1.0 if radius is None else check_positive("radius", radius)
    of_gradients = radius is not None and cap in (None, "gradient")
    if cap in (None, "gradient"):
        cap = _default_cap(noise, of_gradients=of_gradients, recalibrate=recalibrate)
    loss = LogisticLoss(cap=1.0 if cap == "likelihood" else cap)  # type: ignore[arg-type]  # which refuses it
    if loss.corner is None:
        return loss
    share = HISTOGRAM.share if recalibrate else 0.0
    rate = L2_PER_SIGMA * epsilon * noise / math.sqrt(1.0 - share)
    if l2 is not None:
        rate = min(rate, epsilon * (check_positive("l2", l2) / length / length) / loss.cap)
    rate *= 1.0 - math.sqrt(share)
    # The smaller root: (1 + L)² − 4cL = (1 − L)² + 4(1 − c)L, and the product of the roots is L/c, so that
    # nothing cancels.
    root = math.sqrt((1.0 - rate) ** 2 + 4.0 * (1.0 - loss.cap) * rate)
    corner = min(max(2.0 * rate / (1.0 + rate + root), _SMALLEST_CORNER), LARGEST_CORNER)
    # With a corner so early that shorter rows could bend more than the longest, all rows have one cap.
    of_gradients = of_gradients and longest_rows_bend_most(loss.cap, corner)
    return LogisticLoss(cap=loss.cap, corner=corner, gradient_cap=loss.cap * length if of_gradients else None)


def _default_cap(noise: float, *, of_gradients: bool, recalibrate: bool) -> float:
    """The cap of the longest rows for a budget whose Gaussian mechanism has this noise."""
    if recalibrate:
        return _RECALIBRATED + (1.0 - _RECALIBRATED) / (1.0 + noise) ** 2
    return 0.5 * (1.0 + 1.0 / math.sqrt(1.0 + 2.0 * noise)) * (_OF_GRADIENTS if of_gradients else 1.0)


def capped_softmax(
    classes: int,
    epsilon: float,
    delta: float,
    *,
    cap: float | str | None = None,
    radius: float | None = None,
) -> SoftmaxLoss:
    """The softmax loss with the cap of :func:`capped_logistic`, and its corner for two classes.

    No corner of several classes makes the determinant free, so that it is a fixed one, 0.8.
    """
    logistic = capped_logistic(epsilon, delta, cap=cap, radius=radius)
    if classes == 2:
        return SoftmaxLoss(classes, logistic.cap, logistic.corner, logistic.gradient_cap)
    plain = SoftmaxLoss(classes, logistic.cap)
    if radius is None or cap not in (None, "gradient"):
        return plain
    return SoftmaxLoss(classes, plain.cap, plain.corner, plain.cap * radius)


def classification_loss(
    classes: int,
    epsilon: float,
    delta: float,
    *,
    cap: float | str | None = None,
    l2: float | None = None,
    radius: float | None = None,
    recalibrate: bool = False,
) -> LogisticLoss | SoftmaxLoss:
    """The loss for a number of classes that suits a budget: logistic for two, softmax for more."""
    if classes == 2:
        return capped_logistic(epsilon, delta, cap=cap, l2=l2, radius=radius, recalibrate=recalibrate)
    return capped_softmax(classes, epsilon, delta, cap=cap, radius=radius)


def default_reduced(loss: AnyLoss, report: str, columns: int) -> bool:
    """Whether a report's Hessian is the reduced one, for rows of this many columns, intercept included.

    The noise of the whole Hessian grows with the number of coefficients, that of the reduced one does not.
    """
    several = accounting_of(loss.curve, 1.0).can_be_reduced
    return several and bool(REPORT_KINDS[report].releases) and loss.outputs * columns > _LARGE
