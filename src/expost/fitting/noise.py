r"""Noise in whole steps of a grid: OpenDP's exact sampler for releases, and a seeded twin for tests.

Values and noise are integers, the noise from the discrete Gaussian law
:math:`P(Z = k) \propto e^{-k^2/2\tau^2}`, and nothing is ever rounded (Mironov 2012 shows why).
"""

import math
import secrets
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from operator import add
from typing import Any, ClassVar, NamedTuple

import numpy as np

from expost._common.typing import FloatArray
from expost._common.validation import parameter_error

# No draw is ever longer than this many scales, nor than the sampler's 64 bits.
_MOST_SCALES, _LARGEST = 2.0**10, 2.0**62


class Tilt(NamedTuple):
    """The noise of the objective's linear term, and how far from continuous noise it may be."""

    parts: tuple[FloatArray, ...]
    """The noise is the exact sum of these, the largest first."""
    rounding: float
    """The exact sum is continuous Gaussian noise moved by at most this (Euclidean)."""

    @property
    def rounded(self) -> FloatArray:
        """The noise as doubles, for the solver."""
        return reduce(add, reversed(self.parts))


class NoiseSource(ABC):
    """A supply of independent discrete Gaussian numbers."""

    insecure: ClassVar[bool]
    """Whether someone who knows the seed can subtract the noise; marks everything made with it."""

    @abstractmethod
    def integers(self, scales: Sequence[float]) -> list[int]:
        """One draw for each scale, from the discrete Gaussian law with that parameter."""

    @abstractmethod
    def below(self, bound: int) -> int:
        """A whole number from 0 up to below the bound, each as likely as any other."""

    @abstractmethod
    def tilt(self, sigma: float, size: int, *, rounding: float = math.inf) -> Tilt:
        r"""Noise of the law :math:`N(0, \sigma^2 I)`, no farther than ``rounding`` from continuous noise."""


class ExactNoise(NoiseSource):
    """Draws for releases, from OpenDP's exact sampler (Canonne, Kamath and Steinke 2020).

    It works by exact integer arithmetic, and the operating system's cryptographic generator seeds it at each
    call: there is no state to copy between processes or threads, and no seed to set.
    """

    insecure = False

    def integers(self, scales: Sequence[float]) -> list[int]:
        """Exact draws; about 25 microseconds each."""
        draws = {scale: iter(_discrete_gaussian(scale, count)) for scale, count in Counter(scales).items()}
        return [next(draws[scale]) for scale in scales]

    def below(self, bound: int) -> int:
        """From the operating system's cryptographic generator."""
        return secrets.randbelow(bound)

    def tilt(self, sigma: float, size: int, *, rounding: float = math.inf) -> Tilt:
        """An exact sum of doubles, two or more per coordinate, each a discrete Gaussian on a grid of its own.

        Each part but the last leaves a little of the variance, which the next has on a finer grid. The sum
        has the law of one discrete Gaussian (docs/mathematics.md, section 10, "The noise in parts").
        """
        if not 1e-240 <= sigma <= 1e270:
            raise parameter_error("sigma", "between 1e-240 and 1e270", sigma, "Scale the data by a constant.")
        parts: list[FloatArray] = []
        scale = sigma
        while True:
            fraction, exponent = math.frexp(scale)  # scales are computed for a number between 1/2 and 1
            moved = math.ldexp(math.sqrt(size) * (1.0 + 2.0**-40), exponent - 42)
            last = len(parts) >= 1 and moved <= rounding
            rest = Fraction(fraction) ** 2 - Fraction(1, 2**62)
            first = fraction if last else root_of(rest, below=True)
            counts = _discrete_gaussian(math.ldexp(first, 41), size)
            parts.append(np.array([math.ldexp(count, exponent - 41) for count in counts]))
            if last:
                return Tilt(tuple(parts), moved)
            left = root_of(Fraction(fraction) ** 2 - Fraction(first) ** 2)
            scale = math.ldexp(left, exponent)


class SeededNoise(NoiseSource):
    """Repeatable draws for tests and experiments: INSECURE, because the seed gives the noise away."""

    insecure = True

    def __init__(self, random_state: Any) -> None:
        from sklearn.utils import check_random_state

        try:
            generator = isinstance(random_state, np.random.Generator)
            self._random = random_state if generator else check_random_state(random_state)
        except ValueError:
            raise parameter_error("random_state", "None, a seed or a NumPy generator", random_state) from None

    def integers(self, scales: Sequence[float]) -> list[int]:
        """Rounded draws of NumPy's generator."""
        return [int(draw) for draw in np.rint(np.asarray(scales) * self._random.standard_normal(len(scales)))]

    def below(self, bound: int) -> int:
        """From bytes of NumPy's generator: a draw that is not below the bound is repeated."""
        bits = (bound - 1).bit_length()
        while True:
            drawn = int.from_bytes(self._random.bytes(-(-bits // 8) or 1), "big") >> (-bits % 8)
            if (found := drawn if bits else 0) < bound:
                return found

    def tilt(self, sigma: float, size: int, *, rounding: float = math.inf) -> Tilt:
        """Doubles of NumPy's generator."""
        return Tilt((sigma * self._random.standard_normal(size),), 0.0)


def noise_source(random_state: Any) -> NoiseSource:
    """Exact noise for ``None``, and the insecure seeded twin for a seed or a generator."""
    return ExactNoise() if random_state is None else SeededNoise(random_state)


def _discrete_gaussian(scale: float, size: int) -> list[int]:
    if not 0.0 < scale * _MOST_SCALES < _LARGEST:
        raise parameter_error("scale", "between 0 and 2**52 steps of its grid", scale)
    # Only what is needed: OpenDP's prelude imports scikit-learn and every frame library there is.
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian
    from opendp.metrics import l2_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    # OpenDP takes Python's `int` for 32 bits, and would silently cut longer draws off.
    vectors = vector_domain(atom_domain(T="i64"))
    add_noise = make_gaussian(vectors, l2_distance(T=float), scale=scale)
    return [int(draw) for draw in add_noise([0] * size)]


def root_of(value: Fraction, *, below: bool = False) -> float:
    """The smallest double, or one close to it, whose square is at least the value; or the largest below."""
    root, sign = math.sqrt(value), -1 if below else 1
    while sign * Fraction(root) ** 2 < sign * value:
        root = math.nextafter(root, sign * math.inf)
    return root
