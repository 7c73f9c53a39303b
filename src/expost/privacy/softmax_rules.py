r"""Rules in public values for softmax models: the floor of the regularisation, and noise without it."""

import math

from scipy.optimize import brentq

from expost._common.validation import check_positive
from expost.losses import AnyLoss, SoftmaxLoss
from expost.losses.softmax_curve import SoftmaxCurve
from expost.privacy import gaussian
from expost.privacy.order_statistics import flat_delta
from expost.privacy.scales import REPORT_KINDS
from expost.privacy.softmax_cells import softmax_cells

# Above so many coefficients of several classes the Hessian of a report is the reduced one.
_LARGE = 100


def default_reduced(loss: AnyLoss, report: str, columns: int) -> bool:
    """Whether a report's Hessian is the reduced one, for rows of so many columns, the intercept's included.

    By default where a softmax model of more than two classes has more than 100 coefficients in centred
    coordinates: the noise of the whole Hessian grows with their number, that of the reduced one does not.

    Privacy
    -------
    A function of public parameters only.

    Examples
    --------
    >>> from expost.losses import SoftmaxLoss
    >>> [default_reduced(SoftmaxLoss(classes), "leverage", 20) for classes in (2, 6, 7)]
    [False, False, True]
    """
    several = isinstance(loss, SoftmaxLoss) and loss.classes > 2
    return several and bool(REPORT_KINDS[report].releases) and loss.outputs * columns > _LARGE


def flat_sigma(classes: int, epsilon: float, delta: float) -> float:
    r"""The noise that softmax needs without its log-determinant, where the cap times the norm is 1.

    :math:`\sigma_K(\infty)`, from :func:`~expost.privacy.order_statistics.flat_delta`, on the private side.

    Examples
    --------
    >>> [round(flat_sigma(classes, 1.0, 1e-6), 3) for classes in (2, 3, 10)]
    [5.975, 6.172, 6.584]
    """
    target = check_positive("delta", delta, below=1.0)
    one = math.sqrt(2.0) * gaussian.sigma(epsilon, target, sensitivity=1.0)
    if classes == 2:
        return one
    # At most one Gaussian mechanism for each wrong class.
    most = math.sqrt(2.0) * gaussian.sigma(epsilon, target / (classes - 1), sensitivity=1.0)

    def excess(sigma: float) -> float:
        return math.log(flat_delta(classes, epsilon, 1.0 / sigma) / target)

    root = float(brentq(excess, 0.99 * one, 1.01 * most, xtol=1e-12 * one))
    while excess(root) > 0.0:
        root *= 1.0 + 1e-12
    return root


def largest_log_determinant(curve: SoftmaxCurve, weight: float) -> float:
    r"""An upper bound on :math:`\log\det(I + wA)` of every record; exact for plain softmax.

    Without a cap, and with one that leaves equal masses alone, it is :math:`(K - 1)\log(1 + w/K)`.

    Examples
    --------
    >>> [round(largest_log_determinant(SoftmaxCurve(3, cap), 1.0), 4) for cap in (1.0, 0.5)]
    [0.5754, 0.4904]
    """
    classes, weight = curve.classes, weight * curve.weight
    if classes == 2:
        return math.log1p(2.0 * weight * curve.link.curve.max_curvature)
    if curve.link.corner_slope >= (classes - 1) / classes:
        return (classes - 1) * math.log1p(weight / classes)
    return softmax_cells(curve).largest_log_determinant(weight)


def softmax_floor(curve: SoftmaxCurve, norm: float, epsilon: float) -> float:
    r"""The regularisation at or below which the certificate of a softmax model has no noise scale.

    Where :math:`\lambda` is so small that some record's log-determinant reaches :math:`\epsilon`, no amount
    of noise helps. Without a cap, and with one that leaves equal masses alone, it is

    .. math:: \lambda = \frac{R^2}{K(e^{\epsilon/(K - 1)} - 1)}.

    A floor of the bound, not proved to be one of the mechanism.

    Privacy
    -------
    A function of public parameters only.

    Examples
    --------
    >>> [round(softmax_floor(SoftmaxCurve(classes), 1.0, 1.0), 3) for classes in (3, 10)]
    [0.514, 0.851]
    """
    at, square = check_positive("epsilon", epsilon), check_positive("norm", norm) ** 2
    share = at / (curve.classes - 1)
    # The weight R²/λ at which equal masses use up all of epsilon, without overflow. A cap lowers every
    # Hessian, so that it allows at least this weight.
    weight = curve.classes * math.expm1(min(share, 700.0)) / curve.weight
    if largest_log_determinant(curve, weight) < (1.0 - 1e-12) * at:
        low = high = math.log(weight)
        while largest_log_determinant(curve, math.exp(high)) < at:
            low, high = high, high + 1.0
        weight = math.exp(
            float(
                brentq(lambda one: largest_log_determinant(curve, math.exp(one)) - at, low, high, xtol=1e-12)
            )
        )
    return square / weight
