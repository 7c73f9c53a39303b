"""The distribution function of the largest eigenvalue as a Fredholm determinant of Hermite functions."""

import math
from functools import cache
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
    """Evaluate the pair at points above -35 by the recurrences of docs/goe.md, "How it is computed".

    They run in units of the first function, which underflows near the largest zero from about degree 700, so
    every point keeps a separate power of two.
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
    """The integral of a Hermite function over the line, which is zero for odd degrees."""
    if degree % 2:
        return 0.0
    ratios = 1.0 - 1.0 / np.arange(2, degree + 1, 2)
    return math.sqrt(2.0 * math.sqrt(math.pi) * float(np.prod(ratios)))


def hermite_kernel(degree: int, x: FloatArray, pair: HermitePair) -> FloatArray:
    """The kernel K by the Christoffel-Darboux formula, at points distinct along the last axis."""
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


# The integrands are analytic and oscillate a handful of times before they decay: 40 nodes already reach
# rounding error at every dimension.
_NODES = 48
# The integrals over (t, infinity) stop where the integrand has fallen by at least exp(-40).
_DECAY = 40.0
# The determinant's relative error is rounding divided by its smallest eigenvalue; below this it is too large.
_SMALLEST_GAP = 1e-12


def log_cdf(d: int, t: FloatArray) -> FloatArray:
    r"""Return :math:`\log P(\lambda_1 \le \sqrt 2\, t)` of the d-dimensional GOE, ``d > 1``.

    ``docs/goe.md``, "The formula", states it with these names. The points lie between the edge
    ``sqrt(2 * d)`` less 12 widths and the edge plus 40; minus infinity where the probability is too small to
    be resolved.
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
    """How far to integrate beyond ``t`` (docs/goe.md, "How it is computed")."""
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
