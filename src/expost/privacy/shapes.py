"""The shape of a loss where the curator names none: rules in the budget alone."""

import math

from expost._common.validation import check_positive
from expost.losses import LogisticLoss, SoftmaxLoss
from expost.losses.scalar import LARGEST_CORNER
from expost.privacy import gaussian
from expost.privacy.recipes import L2_PER_SIGMA

# The width of the pseudo-Huber loss in units of half the label's range, and its limits.
_WIDTH = 0.28
_NARROWEST, _WIDEST = 0.05, 1.0
# A loss that leaves the logistic one any earlier hardly bends: no model could be told from another.
_SMALLEST_CORNER = 0.1


def default_threshold(epsilon: float, delta: float) -> float:
    r"""The threshold of the pseudo-Huber loss for labels in [-1, 1], by a rule in public values.

    .. math:: c = \min\{1, \max\{0.05,\; 0.28\,\sigma_1^{-1/4}\}\}

    :math:`\sigma_1` is the noise of the analytic Gaussian mechanism for one unit of sensitivity [BW18]_. One
    record pulls at most :math:`c`, so the noise grows with it. A small one changes the loss from squared to
    absolute, which wastes part of the table. The more noise the budget asks for, the smaller the best one is.

    Parameters
    ----------
    epsilon, delta
        The total budget.

    Privacy
    -------
    Public in, public out. The guarantee holds at any threshold.

    References
    ----------
    .. [BW18] B. Balle and Y.-X. Wang. Improving the Gaussian mechanism for differential privacy. ICML 2018.

    Examples
    --------
    >>> [round(default_threshold(epsilon, 1e-6), 3) for epsilon in (0.1, 1.0, 8.0)]
    [0.114, 0.195, 0.311]
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

    with :math:`\sigma_1` the noise that the analytic Gaussian mechanism needs at (``epsilon``, ``delta``) per
    unit of sensitivity, and :math:`\lambda` the regularisation ``l2`` or the default, :math:`cR^2\sigma_1/2`,
    whichever is smaller. The noise of objective perturbation grows with the largest slope, while an untrained
    model has slopes of one half: a cap lowers the noise by the factor :math:`c` and weakens only the pull of
    records that the model contradicts. It tends to 1 as the noise tends to 0.

    :math:`\theta` is the largest corner at which the determinant costs no noise: then
    :math:`\kappa_0/(1 - \theta) = \lambda\epsilon/R^2`, and the model alone needs :math:`\sigma = cR\sigma_1`
    exactly (docs/mathematics.md, section 6). A regularisation above the default would allow a sharper corner,
    which gains nothing. It is at least 0.1: where the regularisation is so small that even this corner costs
    noise, the noise is paid, or no noise suffices and :func:`expost.calibrate` refuses.

    Parameters
    ----------
    epsilon, delta
        The total budget, for the model and everything published with it.
    cap
        The largest slope; by default chosen by the rule above. 1 is the plain logistic loss.
    l2
        The regularisation, where it is not the default.
    radius
        The largest norm :math:`R` of a row, the intercept included; matters for ``l2`` only.

    Privacy
    -------
    A function of public parameters only.

    Examples
    --------
    >>> [str(capped_logistic(epsilon, 1e-6)) for epsilon in (0.1, 8.0)]
    ['LogisticLoss(cap=0.558278, corner=0.759043)', 'LogisticLoss(cap=0.82927, corner=0.915613)']
    >>> str(capped_logistic(8.0, 1e-6, l2=0.1))
    'LogisticLoss(cap=0.82927, corner=0.694745)'
    >>> capped_logistic(1.0, 1e-6, cap=1.0) == LogisticLoss()
    True
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
    return LogisticLoss(cap=loss.cap, corner=_corner(loss.cap, rate))


def capped_softmax(classes: int, epsilon: float, delta: float, *, cap: float | None = None) -> SoftmaxLoss:
    r"""The cap and the corner of a softmax loss that suit a budget, or a given cap with its corner.

    .. math:: c = \tfrac{1}{2}\left(1 + \frac{1}{\sqrt{1 + 2\sigma_1}}\right), \qquad \theta = 0.8

    with :math:`\sigma_1` as in :func:`capped_logistic`. No corner of several classes makes the determinant
    free, so that it is a fixed one. Two classes are the logistic loss, and have its corner.

    Parameters
    ----------
    classes
        The number of classes.
    epsilon, delta
        The total budget, for the model and everything published with it.
    cap
        The largest mass of the wrong classes that counts; by default chosen by the rule above. 1 is plain
        softmax.

    Privacy
    -------
    A function of public parameters only.

    Examples
    --------
    >>> [round(capped_softmax(10, epsilon, 1e-6).cap, 3) for epsilon in (0.1, 1.0, 8.0)]
    [0.558, 0.663, 0.829]
    """
    logistic = capped_logistic(epsilon, delta, cap=cap)
    if classes == 2 or logistic.corner is None:
        return SoftmaxLoss(classes, logistic.cap, logistic.corner)
    return SoftmaxLoss(classes, logistic.cap)


def classification_loss(
    classes: int,
    epsilon: float,
    delta: float,
    *,
    cap: float | None = None,
    l2: float | None = None,
    radius: float = 1.0,
) -> LogisticLoss | SoftmaxLoss:
    """The loss of so many classes that suits a budget: logistic for two, softmax for more.

    The parameters are those of :func:`capped_logistic` and :func:`capped_softmax`.

    Privacy
    -------
    A function of public parameters only.

    Examples
    --------
    >>> str(classification_loss(2, 8.0, 1e-6)), str(classification_loss(3, 8.0, 1e-6))
    ('LogisticLoss(cap=0.82927, corner=0.915613)', 'SoftmaxLoss(classes=3, cap=0.82927, corner=0.8)')
    """
    if classes == 2:
        return capped_logistic(epsilon, delta, cap=cap, l2=l2, radius=radius)
    return capped_softmax(classes, epsilon, delta, cap=cap)


def _corner(cap: float, rate: float) -> float:
    """The corner beyond which the curvature falls at this rate: the smaller root of a quadratic equation."""
    # (1 + L)² − 4cL = (1 − L)² + 4(1 − c)L, and the product of the roots is L/c: nothing cancels.
    root = math.sqrt((1.0 - rate) ** 2 + 4.0 * (1.0 - cap) * rate)
    return min(max(2.0 * rate / (1.0 + rate + root), _SMALLEST_CORNER), LARGEST_CORNER)
