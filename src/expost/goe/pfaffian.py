"""The distribution function of the largest eigenvalue as a Fredholm determinant."""

import math
from functools import cache

import numpy as np

from expost._common.typing import FloatArray
from expost.goe.hermite import hermite_integral, hermite_kernel, hermite_pair

# The integrands are analytic and oscillate a handful of times before they decay: 40 nodes already reach
# rounding error at every dimension.
_NODES = 48
# The integrals over (t, infinity) stop where the integrand has fallen by at least exp(-40).
_DECAY = 40.0
# The determinant's relative error is rounding divided by its smallest eigenvalue; below this it is too large.
_SMALLEST_GAP = 1e-12


def log_cdf(d: int, t: FloatArray) -> FloatArray:
    r"""Return :math:`\log P(\lambda_1 \le \sqrt 2\, t)` of the d-dimensional GOE, ``d > 1``.

    With :math:`K` the kernel of :math:`\psi_0, \dots, \psi_{d-1}` on :math:`(t, \infty)`,
    :math:`R = (I - K)^{-1}`, :math:`s = \sqrt{d/2}`, :math:`\psi = \psi_{d-1}`,
    :math:`c = \tfrac s2 \int \psi_d` for even and :math:`1/\int \psi` for odd :math:`d`, and

    .. math:: a(z) = c - s\!\int_z^\infty\!\psi_d, \quad b(z) = 1 - 2c\!\int_z^\infty\!\psi, \quad
              r(z) = \tfrac{1}{2} \Bigl[K(z, t) - s\,\psi(z)\!\int_t^\infty\!\psi_d\Bigr],

    .. math:: F(t)^2 = \det(I - K) \Bigl[(1 - \langle a, R\psi\rangle)
              \Bigl(1 - c\!\int_t^\infty\!\psi + \langle b, Rr\rangle\Bigr)
              + \langle a, Rr\rangle \langle b, R\psi\rangle\Bigr].

    Parameters
    ----------
    d
        The dimension.
    t
        A vector of points between the edge less 12 widths and the edge plus 40, in units where the edge
        is ``sqrt(2 * d)``.

    Returns
    -------
    FloatArray
        The logarithms; minus infinity where the probability is too small to be resolved.

    Notes
    -----
    ``docs/goe.md`` derives the formula from De Bruijn's Pfaffian. Where :math:`F` is close to 1, all its
    terms but the 1 are small, so that the logarithm keeps the relative accuracy of the upper tail.

    Examples
    --------
    >>> round(float(np.exp(log_cdf(2, np.zeros(1)))[0]), 12) == round(0.5 - 0.125**0.5, 12)
    True
    """
    step = math.sqrt(d / 2.0)
    constant = 0.5 * step * hermite_integral(d) if d % 2 == 0 else 1.0 / hermite_integral(d - 1)

    fractions, weights = unit_rule(_NODES)
    length = _reach(d, t)[:, None]
    z = np.concatenate([t[:, None] + length * fractions, t[:, None]], axis=1)
    pair = hermite_pair(d, z)
    kernel = hermite_kernel(d, z, pair)

    psi, psi_tail, next_tail = pair.before[:, :-1], pair.before_tail[:, :-1], pair.last_tail[:, :-1]
    a = constant - step * next_tail
    b = 1.0 - 2.0 * constant * psi_tail
    r = 0.5 * (kernel[:, :-1, -1] - step * psi * pair.last_tail[:, -1:])

    # Square roots of the weights on both sides keep the discretised operator symmetric.
    root = np.sqrt(length * weights)
    eigenvalues, vectors = np.linalg.eigh(root[:, :, None] * kernel[:, :-1, :-1] * root[:, None, :])
    resolved = eigenvalues[:, -1] < 1.0 - _SMALLEST_GAP
    eigenvalues = np.where(resolved[:, None], eigenvalues, 0.0)
    left = (np.stack([a, b], axis=1) * root[:, None, :]) @ vectors
    right = (np.stack([psi, r], axis=1) * root[:, None, :]) @ vectors / (1.0 - eigenvalues[:, None, :])
    (a_psi, a_r), (b_psi, b_r) = np.einsum("nik,njk->ijn", left, right)

    border = b_r - constant * pair.before_tail[:, -1]
    correction = np.where(resolved, border - a_psi - a_psi * border + a_r * b_psi, 0.0)
    logarithm = 0.5 * (np.log1p(-eigenvalues).sum(axis=1) + np.log1p(correction))
    return np.where(resolved, logarithm, -np.inf)


def _reach(d: int, t: FloatArray) -> FloatArray:
    r"""How far to integrate beyond ``t``.

    Right of :math:`e = \sqrt{2d - 1}`, :math:`\psi_{d-1}(u)` falls at the rate :math:`\sqrt{u^2 - e^2}`. From
    :math:`m = \max(t, e)` on, a step :math:`h` lowers its logarithm by at least each of
    :math:`h \sqrt{m^2 - e^2}`, :math:`h^2/2` and :math:`\tfrac{2}{3} \sqrt{2e}\, h^{3/2}`.
    """
    edge = math.sqrt(2.0 * d - 1.0)
    longest = min(math.sqrt(2.0 * _DECAY), (1.5 * _DECAY / math.sqrt(2.0 * edge)) ** (2.0 / 3.0))
    start = np.maximum(t, edge)
    rate = np.sqrt((start - edge) * (start + edge))
    beyond: FloatArray = _DECAY / np.maximum(rate, _DECAY / longest)
    return start - t + beyond


@cache
def unit_rule(count: int) -> tuple[FloatArray, FloatArray]:
    """Gauss-Legendre nodes and weights on the unit interval."""
    points, weights = np.polynomial.legendre.leggauss(count)
    return 0.5 * (points + 1.0), 0.5 * weights
