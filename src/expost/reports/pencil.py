"""Lower bounds of the Hessian that are mixed from two, all diagonal in one basis."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from expost._common.namespaces import beside
from expost._common.typing import FloatArray

# Any weight between the noisy Hessian (1) and the lower bound that needs no data (0) is valid, so a grid
# loses a little sharpness and no soundness.
WEIGHTS = np.array(
    [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.997, 0.999, 0.9999, 1.0]
)
"""The weights that are tried where a record has one number for each."""
FEW_WEIGHTS = np.array([0.0, 0.25, 0.5, 0.75, 0.9, 0.98, 1.0])
"""The weights that are tried where a record has a small matrix for each."""
DEFINITE = 1e-12
"""Below this share of the largest eigenvalue, positive definiteness is a matter of rounding."""


@dataclass(frozen=True, eq=False)
class Pencil:
    """Mixtures of two matrices, diagonal in one basis: ``values`` with the weights and ``floor``."""

    basis: FloatArray
    weights: FloatArray
    values: FloatArray
    floor: float

    @classmethod
    def single(cls, basis: FloatArray, values: FloatArray) -> "Pencil":
        """One matrix, by its eigenvalues in the basis."""
        return cls(basis, np.ones(1), values, 0.0)

    @cached_property
    def reciprocals(self) -> FloatArray:
        """The reciprocals of each mixture's eigenvalues, eigenvalues by mixtures."""
        mixed = np.outer(self.values, self.weights) + self.floor * (1.0 - self.weights)
        reciprocals: FloatArray = 1.0 / mixed
        return reciprocals

    def forms(self, coordinates: FloatArray) -> FloatArray:
        """The quadratic form of each inverse matrix at rows of these :func:`squares`, matrices by rows."""
        return beside(self.reciprocals.T, coordinates) @ coordinates.T


def squares(rows: FloatArray, basis: FloatArray) -> FloatArray:
    """The squared coordinates of each row in a basis."""
    # Records along the second axis of the product: BLAS is faster, and so is the product with reciprocals.
    coordinates: FloatArray = beside(basis.T, rows) @ rows.T
    coordinates *= coordinates
    return coordinates.T


def mixtures(
    basis: FloatArray, lower: FloatArray, floor: float, margin: float, weights: FloatArray
) -> Pencil:
    """The mixtures of two diagonal lower bounds that are positive definite."""
    # Beyond the largest weight the mixture is indefinite.
    largest = floor / (floor - lower[0]) if lower[0] < 0.0 else 1.0
    # The last weight makes the mixture proportional to the noisy Hessian itself.
    tried = np.append(largest * weights, floor / (floor + margin))
    values = np.outer(lower, tried) + floor * (1.0 - tried)
    definite = values.min(axis=0) > DEFINITE * values.max(axis=0)
    return Pencil(basis, tried[definite], lower, floor)
