"""Orthonormal Hermite functions of high degree, their tail integrals, and the kernel they span."""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import erfcx

from expost._common.typing import FloatArray

# Steps of the recurrence between two rescalings. One step grows a value by at most sqrt(2)|x|, so that
# doubles hold 16 of them for any |x| below 1e18.
_STRIDE = 16


class HermitePair(NamedTuple):
    """Hermite functions of degrees ``n - 1`` and ``n``, and their integrals from each point to infinity."""

    before: FloatArray
    last: FloatArray
    before_tail: FloatArray
    last_tail: FloatArray


def hermite_pair(degree: int, x: FloatArray) -> HermitePair:
    r"""Evaluate :math:`\psi_{n-1}, \psi_n` and :math:`\int_x^\infty \psi_{n-1}, \int_x^\infty \psi_n`.

    :math:`\psi_k(x) = (2^k k! \sqrt\pi)^{-1/2} e^{-x^2/2} H_k(x)` with the physicists' :math:`H_k`.

    Parameters
    ----------
    degree
        The larger degree ``n``, at least 1.
    x
        Points of any shape, none below -35.

    Notes
    -----
    Both recurrences follow from :math:`\psi_k' = \sqrt{k/2}\,\psi_{k-1} - \sqrt{(k+1)/2}\,\psi_{k+1}`:

    .. math:: \psi_{k+1} = \sqrt{\tfrac{2}{k+1}}\, x\, \psi_k - \sqrt{\tfrac{k}{k+1}}\, \psi_{k-1}, \qquad
              \int_x^\infty\! \psi_{k+1}
              = \sqrt{\tfrac{2}{k+1}}\, \psi_k + \sqrt{\tfrac{k}{k+1}} \int_x^\infty\! \psi_{k-1}.

    They run in units of :math:`\psi_0(x)`, which underflows near the largest zero from about degree 700.
    Every point keeps a separate power of two.

    Examples
    --------
    >>> pair = hermite_pair(1, np.array([0.0]))
    >>> bool(np.isclose(pair.before[0], np.pi**-0.25)), float(pair.last[0])
    (True, 0.0)
    """
    before, before_tail = np.zeros_like(x), np.zeros_like(x)
    last, last_tail = np.ones_like(x), math.sqrt(math.pi / 2.0) * erfcx(x / math.sqrt(2.0))
    exponent = np.zeros(x.shape, dtype=np.int64)
    for k in range(degree):
        forward, back = math.sqrt(2.0 / (k + 1)), math.sqrt(k / (k + 1))
        lifted = forward * last
        before, last = last, x * lifted - back * before
        before_tail, last_tail = last_tail, lifted + back * before_tail
        if k % _STRIDE == _STRIDE - 1:
            _, shift = np.frexp(np.abs(last) + np.abs(before))
            before, last = np.ldexp(before, -shift), np.ldexp(last, -shift)
            before_tail, last_tail = np.ldexp(before_tail, -shift), np.ldexp(last_tail, -shift)
            exponent += shift
    unit = np.exp(exponent * math.log(2.0) - 0.5 * x * x) * math.pi**-0.25
    return HermitePair(unit * before, unit * last, unit * before_tail, unit * last_tail)


def hermite_integral(degree: int) -> float:
    r"""Return :math:`\int_{-\infty}^{\infty} \psi_k`, which is zero for odd degrees.

    Examples
    --------
    >>> round(hermite_integral(0) ** 4 / np.pi, 12), hermite_integral(3)
    (4.0, 0.0)
    """
    if degree % 2:
        return 0.0
    ratios = 1.0 - 1.0 / np.arange(2, degree + 1, 2)
    return math.sqrt(2.0 * math.sqrt(math.pi) * float(np.prod(ratios)))


def hermite_kernel(degree: int, x: FloatArray, pair: HermitePair) -> FloatArray:
    r"""Return :math:`K(x_i, x_j) = \sum_{k<n} \psi_k(x_i) \psi_k(x_j)` by the Christoffel-Darboux formula.

    Parameters
    ----------
    degree
        How many functions are summed, ``n``.
    x
        Distinct points along the last axis; leading axes are separate problems.
    pair
        ``hermite_pair(degree, x)``.
    """
    before, last = pair.before, pair.last
    distance = x[..., :, None] - x[..., None, :]
    diagonal = np.arange(x.shape[-1])
    distance[..., diagonal, diagonal] = 1.0
    product = last[..., :, None] * before[..., None, :]
    kernel = (product - np.swapaxes(product, -1, -2)) / distance
    # The limit x_j -> x_i, from ψ_n' = sqrt(2n) ψ_{n-1} - x ψ_n and ψ_{n-1}' = x ψ_{n-1} - sqrt(2n) ψ_n.
    kernel[..., diagonal, diagonal] = (
        math.sqrt(2.0 * degree) * (before**2 + last**2) - 2.0 * x * before * last
    )
    scaled: FloatArray = math.sqrt(degree / 2.0) * kernel
    return scaled
