"""The cap on the logistic loss's slope, from a budget."""

import math

from expost._common.validation import check_positive
from expost.losses import LogisticLoss
from expost.losses.logistic import LARGEST_CORNER
from expost.privacy import gaussian

# A loss that leaves the logistic one any earlier hardly bends anywhere.
_SMALLEST_CORNER = 0.5


def capped_logistic(epsilon: float, delta: float, *, cap: float | None = None) -> LogisticLoss:
    r"""The logistic loss with the cap that suits a budget, or with a given cap and the corner that suits it.

    .. math:: c = \tfrac12\left(1 + \frac1{\sqrt{1 + 2\sigma_1}}\right), \qquad
              \theta = \min\left\{1, \frac{1 + L - \sqrt{(1 + L)^2 - 4cL}}{2c}\right\}, \quad
              L = \epsilon\sigma_1/2

    with :math:`\sigma_1` the noise that the analytic Gaussian mechanism needs at (``epsilon``, ``delta``) per
    unit of sensitivity. The noise of objective perturbation grows with the largest slope, while an untrained
    model has slopes of one half: a cap lowers the noise by the factor :math:`c` and weakens only the pull of
    records that the model contradicts. It tends to 1 as the noise tends to 0.

    :math:`\theta` is the largest corner that costs no noise at the default regularisation
    :math:`\lambda = \sigma R/2`: there :math:`\kappa_0/(1 - \theta) = \lambda\epsilon/R^2`, and the model
    alone needs :math:`\sigma = cR\sigma_1` exactly (docs/mathematics.md, section 6). The loss is the same for
    another regularisation; a smaller one costs somewhat more noise, a larger one no less. Where ``delta`` is
    so large beside ``epsilon`` that :math:`\theta` would be below one half, it is one half and costs noise.

    Parameters
    ----------
    epsilon, delta
        The total budget, for the model and everything published beside it.
    cap
        The largest slope; by default chosen by the rule above. 1 is the plain logistic loss.

    Privacy
    -------
    A function of the public budget only.

    Examples
    --------
    >>> [str(capped_logistic(epsilon, 1e-6)) for epsilon in (0.1, 8.0)]
    ['LogisticLoss(cap=0.558278, corner=0.759043)', 'LogisticLoss(cap=0.82927, corner=0.915613)']
    >>> capped_logistic(1.0, 1e-6, cap=1.0) == LogisticLoss()
    True
    """
    epsilon = check_positive("epsilon", epsilon)
    noise = gaussian.sigma(epsilon, check_positive("delta", delta, below=1.0), sensitivity=1.0)
    if cap is None:
        cap = 0.5 * (1.0 + 1.0 / math.sqrt(1.0 + 2.0 * noise))
    plain = LogisticLoss(cap=cap)  # refuses a cap out of range
    return LogisticLoss(cap=cap, corner=_corner(plain.cap, 0.5 * epsilon * noise)) if plain.corner else plain


def _corner(cap: float, rate: float) -> float:
    """The corner beyond which the curvature falls at this rate: the smaller root of a quadratic equation."""
    linear = 1.0 + rate
    # (1 + L)² − 4cL = (1 − L)² + 4(1 − c)L, and the product of the roots is L/c: nothing cancels.
    root = math.sqrt((1.0 - rate) ** 2 + 4.0 * (1.0 - cap) * rate)
    return min(max(2.0 * rate / (linear + root), _SMALLEST_CORNER), LARGEST_CORNER)
