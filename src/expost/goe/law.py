"""The law of the largest eigenvalue of a Gaussian orthogonal matrix, exact at every dimension."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, overload

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from expost._common.typing import FloatArray
from expost._common.validation import check_count, parameter_error
from expost.goe.pfaffian import log_cdf, unit_rule

# Below this many widths left of 2 sqrt(d) the distribution function is under 1e-16 for every d > 1.
_LEFTMOST = 12.0
# Relative margin of the quantiles: far above the error of `sf` and far below anything that matters.
_MARGIN = 1e-10
# Points evaluated together: their kernels should stay in cache.
_BLOCK = 128


@dataclass(frozen=True)
class LargestEigenvalue:
    r"""The largest eigenvalue :math:`\lambda_1` of :math:`(Z + Z^\top)/\sqrt 2`, :math:`Z_{ij} \sim N(0, 1)`.

    The matrix has variance 2 on the diagonal and 1 off it, and :math:`\lambda_1` is close to
    :math:`2\sqrt d` with fluctuations of order :math:`d^{-1/6}`. With :math:`t = x/\sqrt 2`, De Bruijn's
    Pfaffian [dB55]_ in the basis of Hermite functions :math:`\psi_k` reads

    .. math:: P(\lambda_1 \le x) = \sqrt{\det A(t) / \det A(\infty)}, \qquad
              A_{ij}(t) = \iint_{u < v < t} \psi_i(u) \psi_j(v) - \psi_j(u) \psi_i(v), \quad 0 \le i, j < d,

    bordered by :math:`\int_{-\infty}^t \psi_i` for odd :math:`d`; ``docs/goe.md`` turns it into a Fredholm
    determinant that is evaluated by quadrature. ``d`` is the dimension of the matrix.

    Notes
    -----
    Checked up to ``d = 5000``: ``sf`` is accurate to 1e-12 of its own value, however small; ``cdf`` to
    1e-12 absolutely, and to 1e-8 of its own value where that exceeds 1e-5. Values of ``cdf`` under 1e-10
    are not resolved for ``d > 1`` and may be returned as zero. One value costs O(d) operations.

    Papers that write the density as :math:`\exp(-\operatorname{tr} X^2/2)`, such as [C14]_, mean
    :math:`X = \mathrm{GOE}/\sqrt 2`, whose largest eigenvalue is smaller by a factor of :math:`\sqrt 2`.

    References
    ----------
    .. [dB55] N. G. de Bruijn, "On some multiple integrals involving determinants", Journal of the Indian
       Mathematical Society 19 (1955), 133-151.
    .. [C14] M. Chiani, "Distribution of the largest eigenvalue for real Wishart and Gaussian random matrices
       and a simple approximation for the Tracy-Widom distribution", Journal of Multivariate Analysis 129
       (2014), 69-81, https://arxiv.org/abs/1209.3394.

    Examples
    --------
    >>> law = LargestEigenvalue(50)
    >>> f"{law.sf(12 * 2**0.5):.5e}"
    '4.23246e-06'
    >>> LargestEigenvalue(2).ppf([0.5, 0.995]).round(2)
    array([1.23, 4.45])
    >>> f"{LargestEigenvalue(21).isf(5e-7):.5f}"
    '12.81987'
    """

    d: int

    def __post_init__(self) -> None:
        check_count("d", self.d)

    @overload
    def cdf(self, x: float) -> float: ...
    @overload
    def cdf(self, x: FloatArray | Sequence[float]) -> FloatArray: ...
    def cdf(self, x: Any) -> Any:
        """Probability that the largest eigenvalue is at most ``x``."""
        return _unwrap(self._probabilities(x)[0])

    @overload
    def sf(self, x: float) -> float: ...
    @overload
    def sf(self, x: FloatArray | Sequence[float]) -> FloatArray: ...
    def sf(self, x: Any) -> Any:
        """Probability that the largest eigenvalue exceeds ``x``, accurate relative to its own size.

        Examples
        --------
        >>> f"{LargestEigenvalue(2000).sf(92.0):.4e}"
        '2.5606e-10'
        """
        return _unwrap(self._probabilities(x)[1])

    @overload
    def ppf(self, q: float) -> float: ...
    @overload
    def ppf(self, q: FloatArray | Sequence[float]) -> FloatArray: ...
    def ppf(self, q: Any) -> Any:
        """Quantile: the smallest ``x`` with ``cdf(x) >= q``, rounded up by about 1e-10 of ``q``."""
        return self._quantiles(q, upper=False)

    @overload
    def isf(self, q: float) -> float: ...
    @overload
    def isf(self, q: FloatArray | Sequence[float]) -> FloatArray: ...
    def isf(self, q: Any) -> Any:
        """Upper quantile: the smallest ``x`` with ``sf(x) <= q``, rounded up by about 1e-10 of ``q``.

        Rounding up is safe for privacy: a margin of ``isf(q)`` fails with probability at most ``q``.

        Examples
        --------
        >>> law = LargestEigenvalue(100)
        >>> law.sf(law.isf(5e-7)) <= 5e-7
        True
        """
        return self._quantiles(q, upper=True)

    def mean(self) -> float:
        """Expected value, to about 1e-10; below ``2 * sqrt(d)`` at every dimension."""
        return self._moments[0]

    def std(self) -> float:
        """Standard deviation, to about 1e-10."""
        return self._moments[1]

    @property
    def _edge(self) -> float:
        return 2.0 * math.sqrt(self.d)

    @property
    def _width(self) -> float:
        return float(self.d ** (-1.0 / 6.0))

    @property
    def _floor(self) -> float:
        # To its left the distribution function is zero to working precision. The normal law of
        # d = 1 is resolved down to the smallest double, 38 standard deviations out.
        return self._edge - _LEFTMOST * self._width if self.d > 1 else -55.0

    def _probabilities(self, at: Any) -> tuple[FloatArray, FloatArray]:
        """Return the distribution function and the survival function."""
        x = _checked("x", at, -math.inf, math.inf, "a number or an array of numbers, none of them NaN")
        if self.d == 1:
            return ndtr(x / math.sqrt(2.0)), ndtr(-x / math.sqrt(2.0))
        points = x.ravel()
        logarithm = np.where(points > self._edge, 0.0, -np.inf)
        # Beyond edge + s, Gaussian concentration leaves at most exp(-s²/4), which underflows at s = 56.
        (inside,) = np.nonzero((points > self._floor) & (points < self._edge + 56.0))
        for start in range(0, inside.size, _BLOCK):
            block = inside[start : start + _BLOCK]
            logarithm[block] = log_cdf(self.d, points[block] / math.sqrt(2.0))
        logarithm = logarithm.reshape(x.shape)
        return np.exp(logarithm), 0.0 - np.expm1(logarithm)  # a difference, so that zero has no sign

    def _quantiles(self, q: Any, *, upper: bool) -> Any:
        levels = _checked("q", q, 0.0, 1.0, "a probability between 0 and 1, or an array of them")
        sides = (1.0 - levels, levels) if upper else (levels, 1.0 - levels)
        return _unwrap(np.vectorize(self._quantile, otypes=[float])(*sides))

    def _quantile(self, below: float, above: float) -> float:
        """Return the point that leaves at least ``below`` to its left and at most ``above`` to its right."""
        if below == 0.0:
            return -math.inf
        if above == 0.0:
            return math.inf

        smallest = math.ulp(0.0)  # replaces a zero, whose logarithm is infinite

        def excess(x: float) -> float:
            # Solve for the smaller probability, in logarithms: its relative accuracy is known.
            if above < below:
                return math.log(above * (1.0 - _MARGIN)) - math.log(max(self.sf(x), smallest))
            return math.log(max(self.cdf(x), smallest)) - math.log(below * (1.0 + _MARGIN))

        # λ₁ has mean below the edge and is a sqrt(2)-Lipschitz function of Z: P(λ₁ > edge + s) <= exp(-s²/4).
        ceiling = self._edge + 2.0 * math.sqrt(-math.log(above)) + 1.0
        tolerance = 1e-13 * self._width
        x = float(brentq(excess, self._floor, ceiling, xtol=tolerance, rtol=4.0 * np.finfo(float).eps))
        while self.sf(x) > above:
            x += 4.0 * math.ulp(x) + tolerance
        return x

    @cached_property
    def _moments(self) -> tuple[float, float]:
        """Mean and standard deviation, by integrating both tails away from a point near the mean."""
        fractions, weights = unit_rule(64)
        centre = self._edge - 1.2 * self._width
        left, right = _LEFTMOST * self._width * fractions, 20.0 * self._width * fractions
        below = _LEFTMOST * self._width * weights * self.cdf(centre - left)
        above = 20.0 * self._width * weights * self.sf(centre + right)
        shift = float(above.sum() - below.sum())
        square = 2.0 * float(right @ above + left @ below)
        return centre + shift, math.sqrt(square - shift**2)


def _unwrap(values: FloatArray) -> float | FloatArray:
    """Return a float for an array without axes."""
    return values if np.ndim(values) else float(values)


def _checked(name: str, value: Any, low: float, high: float, wanted: str) -> FloatArray:
    """An array of doubles between two limits; what is not numeric is refused as NaN is."""
    try:
        numbers = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        numbers = np.array(math.nan)
    if not np.all((numbers >= low) & (numbers <= high)):
        raise parameter_error(name, wanted, value)
    return numbers
