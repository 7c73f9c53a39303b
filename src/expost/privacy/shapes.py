"""The shape of a loss where the curator names none: rules in the budget alone."""

import math

from expost.privacy import gaussian

# The width of the pseudo-Huber loss in units of half the label's range, and its limits.
_WIDTH = 0.28
_NARROWEST, _WIDEST = 0.05, 1.0


def default_threshold(epsilon: float, delta: float) -> float:
    r"""The threshold of the pseudo-Huber loss for labels in [-1, 1], by a rule in public values.

    .. math:: c = \min\{1, \max\{0.05,\; 0.28\,\sigma_1^{-1/4}\}\}

    :math:`\sigma_1` is the noise of the analytic Gaussian mechanism for one unit of sensitivity [BW18]_. One
    record pulls at most :math:`c`, so the noise grows with it. A small one turns the loss from squared to
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
