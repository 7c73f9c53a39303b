"""Defaults in public values alone: the shape of a loss, and that of the Hessian in a report."""

import math

from expost._common.validation import check_positive
from expost.losses import AnyLoss, LogisticLoss, SoftmaxLoss
from expost.losses.scalar import LARGEST_CORNER
from expost.privacy import gaussian
from expost.privacy.plan import accounting_of
from expost.privacy.recipes import L2_PER_SIGMA
from expost.privacy.scales import REPORT_KINDS

# The width of the pseudo-Huber loss in units of half the label's range, and its limits.
_WIDTH = 0.28
_NARROWEST, _WIDEST = 0.05, 1.0
# A loss that leaves the logistic one any earlier hardly bends: no model could be told from another.
_SMALLEST_CORNER = 0.1
# Above this many coefficients of several classes the Hessian of a report is the reduced one.
_LARGE = 100


def default_threshold(epsilon: float, delta: float) -> float:
    r"""The threshold of the pseudo-Huber loss for labels in [-1, 1], :math:`0.28\,\sigma_1^{-1/4}`.

    docs/calibration.md, "The width of the pseudo-Huber loss". The guarantee holds at any threshold.
    """
    noise = gaussian.sigma(epsilon, delta)
    return min(_WIDEST, max(_NARROWEST, _WIDTH / math.sqrt(math.sqrt(noise))))


def capped_logistic(
    epsilon: float, delta: float, *, cap: float | None = None, l2: float | None = None, radius: float = 1.0
) -> LogisticLoss:
    r"""The logistic loss with the cap that suits a budget, or with a given cap and the corner that suits it.

    .. math:: c = \tfrac{1}{2}\left(1 + \frac{1}{\sqrt{1 + 2\sigma_1}}\right), \qquad
              \theta = \min\left\{1, \frac{1 + L - \sqrt{(1 + L)^2 - 4cL}}{2c}\right\}, \quad
              L = \frac{\lambda\epsilon}{cR^2}

    with :math:`\sigma_1` the noise of the analytic Gaussian mechanism per unit of sensitivity, and
    :math:`\lambda` the smaller of ``l2`` and the default, :math:`cR^2\sigma_1/2`. :math:`\theta` is the
    largest corner at which the determinant costs no noise (docs/mathematics.md, section 6, "A cap on the
    slope"), but at least 0.1, even where that costs noise. A cap of 1 is the plain logistic loss.
    """
    epsilon = check_positive("epsilon", epsilon)
    noise = gaussian.sigma(epsilon, check_positive("delta", delta, below=1.0), sensitivity=1.0)
    if cap is None:
        cap = 0.5 * (1.0 + 1.0 / math.sqrt(1.0 + 2.0 * noise))
    loss = LogisticLoss(cap=cap)  # refuses a cap out of range
    if loss.corner is None:
        return loss
    rate = L2_PER_SIGMA * epsilon * noise
    if l2 is not None:
        penalty = check_positive("l2", l2) / check_positive("radius", radius) / radius
        rate = min(rate, epsilon * penalty / loss.cap)
    # The smaller root: (1 + L)² − 4cL = (1 − L)² + 4(1 − c)L, and the product of the roots is L/c, so that
    # nothing cancels.
    root = math.sqrt((1.0 - rate) ** 2 + 4.0 * (1.0 - loss.cap) * rate)
    corner = min(max(2.0 * rate / (1.0 + rate + root), _SMALLEST_CORNER), LARGEST_CORNER)
    return LogisticLoss(cap=loss.cap, corner=corner)


def capped_softmax(classes: int, epsilon: float, delta: float, *, cap: float | None = None) -> SoftmaxLoss:
    """The softmax loss with the cap of :func:`capped_logistic`, and its corner for two classes.

    No corner of several classes makes the determinant free, so that it is a fixed one, 0.8.
    """
    logistic = capped_logistic(epsilon, delta, cap=cap)
    return SoftmaxLoss(classes, logistic.cap, logistic.corner if classes == 2 else None)


def classification_loss(
    classes: int,
    epsilon: float,
    delta: float,
    *,
    cap: float | None = None,
    l2: float | None = None,
    radius: float = 1.0,
) -> LogisticLoss | SoftmaxLoss:
    """The loss for a number of classes that suits a budget: logistic for two, softmax for more."""
    if classes == 2:
        return capped_logistic(epsilon, delta, cap=cap, l2=l2, radius=radius)
    return capped_softmax(classes, epsilon, delta, cap=cap)


def default_reduced(loss: AnyLoss, report: str, columns: int) -> bool:
    """Whether a report's Hessian is the reduced one, for rows of this many columns, intercept included.

    The noise of the whole Hessian grows with the number of coefficients, that of the reduced one does not.
    """
    several = accounting_of(loss.curve, 1.0).can_be_reduced
    return several and bool(REPORT_KINDS[report].releases) and loss.outputs * columns > _LARGE
