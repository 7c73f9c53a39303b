r"""Budgets stated in other currencies, as an :math:`\epsilon` that :func:`expost.calibrate` takes.

Both functions go through the Gaussian mechanism of shift :math:`\mu`, whose profile
:math:`\delta_\mu(\epsilon)` (:func:`expost.privacy.gaussian.delta`) is what the budget would buy if it were
spent on Gaussian noise, and return the :math:`\epsilon` of that profile at a chosen ``delta``.

References
----------
.. [BS16] M. Bun and T. Steinke. Concentrated differential privacy. TCC 2016.
.. [DRS22] J. Dong, A. Roth and W. J. Su. Gaussian differential privacy. JRSS B 84(1), 2022
   (arXiv 1905.02383, whose numbering is used here).
"""

import math

from expost._common.validation import check_positive, parameter_error
from expost.privacy import gaussian

_FINEST = 1e-10  # relative; the profile itself is known to about 1e-12


def from_gdp(mu: float, *, delta: float) -> float:
    r"""The :math:`\epsilon` at ``delta`` of the Gaussian mechanism that is :math:`\mu`-GDP, rounded down.

    .. math:: \epsilon = \delta_\mu^{-1}(\delta), \quad \delta_\mu(\epsilon) = \Phi(\mu/2 - \epsilon/\mu)
              - e^\epsilon\,\Phi(-\mu/2 - \epsilon/\mu)

    Corollary 2.13 of [DRS22]_: a mechanism is :math:`\mu`-GDP if and only if it meets *every* point
    of this curve. A plan for the result meets *one* point, ``(epsilon, delta)``; it is **not** itself a GDP
    certificate. Elsewhere its profile may lie above the curve, so it must not enter a
    GDP composition as :math:`\mu`.

    Parameters
    ----------
    mu
        The budget :math:`\mu`.
    delta
        Where on the curve to meet it: the ``delta`` to give to :func:`expost.calibrate`.

    Raises
    ------
    ParameterError
        Where :math:`\delta_\mu(0) \le \delta`: the budget lies below every :math:`\epsilon > 0` there.

    Privacy
    -------
    A function of public parameters. Rounded towards more privacy: spending the result at ``delta``
    spends no more than the Gaussian mechanism of ``mu`` would.

    Examples
    --------
    >>> round(from_gdp(1.0 / 4.22468, delta=1e-6), 4)
    1.0
    """
    return _at_most(check_positive("mu", mu), delta, f"mu={mu:g}")


def from_zcdp(rho: float, *, delta: float) -> float:
    r"""The :math:`\epsilon` at ``delta`` of the Gaussian mechanism that is :math:`\rho`-zCDP, rounded down.

    .. math:: \epsilon = \delta_\mu^{-1}(\delta), \quad \mu = \sqrt{2\rho}

    The Gaussian mechanism of shift :math:`\mu` is exactly :math:`\mu^2/2`-zCDP (Proposition 1.6 of [BS16]_).
    The usual conversion :math:`\rho + 2\sqrt{\rho\log(1/\delta)}` bounds every :math:`\rho`-zCDP mechanism
    from above and is larger, so calibrating to it would spend more than that Gaussian mechanism does.

    A plan for the result promises one point, ``(epsilon, delta)``, of the Gaussian mechanism's curve. It is
    **not** itself a zCDP certificate, and it must not enter a zCDP composition as :math:`\rho`.

    Privacy
    -------
    As for :func:`from_gdp`, and so are ``delta`` and what is refused.

    Examples
    --------
    >>> f"{from_zcdp(0.5, delta=1e-6):.4f}", round(0.5 + 2.0 * math.sqrt(0.5 * math.log(1e6)), 4)
    ('4.8866', 5.7565)
    """
    # Rounding of the square root is far below the step by which the result is rounded down.
    return _at_most(math.sqrt(2.0 * check_positive("rho", rho)), delta, f"rho={rho:g}")


def _at_most(shift: float, at: float, budget: str) -> float:
    """The epsilon of the curve at a delta, from below: there the profile is at least that delta."""
    delta = check_positive("delta", at, below=1.0)
    nearest = float(gaussian.epsilon(delta, sensitivity=shift, sigma=1.0))
    step = _FINEST * (nearest + shift)
    below = nearest - step
    while below > 0.0 and gaussian.delta(below, sensitivity=shift, sigma=1.0) < delta:
        step *= 2.0
        below = nearest - step
    if below <= 0.0:
        most = float(gaussian.delta(0.0, sensitivity=shift, sigma=1.0))
        raise parameter_error("delta", f"below {most:.6g}, where the curve of {budget} ends", delta)
    return below
