"""Where noise comes from: OpenDP's exact sampler for releases, and a seeded twin for tests."""

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state

from expost._common.typing import FloatArray
from expost._common.validation import parameter_error


class NoiseSource(ABC):
    """A supply of independent Gaussian numbers."""

    insecure: ClassVar[bool]
    """Whether someone who knows the seed can subtract the noise; marks everything made with it."""

    @abstractmethod
    def gaussian(self, scale: float, size: int) -> FloatArray:
        """``size`` independent draws from the normal law with mean zero and standard deviation ``scale``."""

    def symmetric(self, scale: float, dimension: int) -> FloatArray:
        r"""Draw from ``scale`` times the Gaussian orthogonal ensemble :math:`(Z + Z^\top)/\sqrt2`.

        Variance ``scale**2`` off the diagonal and twice that on it, from ``d(d+1)/2`` draws.
        """
        rows, columns = np.triu_indices(dimension)
        draws = self.gaussian(scale, len(rows))
        draws[rows == columns] *= math.sqrt(2.0)
        matrix = np.zeros((dimension, dimension))
        matrix[rows, columns] = matrix[columns, rows] = draws
        return matrix


class ExactNoise(NoiseSource):
    """Draws for releases, from OpenDP's exact Gaussian sampler.

    The sampler draws from the discrete Gaussian on the grid of the smallest double by exact integer
    arithmetic (Canonne, Kamath and Steinke 2020), seeded by the operating system's cryptographic generator
    at each call, and rounds once. There are none of the gaps of floating-point samplers that an
    attacker can read (Mironov 2012), no state to copy between processes or threads, and no seed to set.
    """

    insecure = False

    def gaussian(self, scale: float, size: int) -> FloatArray:
        """Exact draws; about 50 microseconds each."""
        import opendp.prelude as opendp

        opendp.enable_features("contrib")
        vectors = opendp.vector_domain(opendp.atom_domain(T=float, nan=False))
        add_noise = opendp.m.make_gaussian(vectors, opendp.l2_distance(T=float), scale=scale)
        return np.array(add_noise([0.0] * size), dtype=np.float64)


class SeededNoise(NoiseSource):
    """Repeatable draws for tests and experiments: INSECURE, because the seed gives the noise away."""

    insecure = True

    def __init__(self, random_state: Any) -> None:
        try:
            generator = isinstance(random_state, np.random.Generator)
            self._random = random_state if generator else check_random_state(random_state)
        except ValueError:
            raise parameter_error("random_state", "None, a seed or a NumPy generator", random_state) from None

    def gaussian(self, scale: float, size: int) -> FloatArray:
        """Repeatable draws from NumPy's generator."""
        draws: FloatArray = scale * self._random.standard_normal(size)
        return draws


def noise_source(random_state: Any) -> NoiseSource:
    """Return exact noise for ``None``, and the insecure seeded twin for a seed or a generator.

    Examples
    --------
    >>> noise_source(None).insecure, noise_source(7).insecure
    (False, True)
    """
    return ExactNoise() if random_state is None else SeededNoise(random_state)
