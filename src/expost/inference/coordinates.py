"""The contrasts of the encoded columns that a table can determine, and their values in original units."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag, null_space

from expost._common.typing import FloatArray
from expost.data.domain import Domain
from expost.data.features import Category, Date, Feature, Number

INTERCEPT = "intercept"


@dataclass(frozen=True, eq=False)
class Coordinates:
    r"""Contrasts :math:`\varphi` of coefficients :math:`\theta`, and their meaning in original units; public.

    Columns of a category add up to the intercept's, so that a table determines only how its categories
    differ: the first is the reference, and its column is left out. ``names`` are those of the terms in
    original units, and ``references`` the categories that others are compared with, such as ``ward=north``.
    """

    names: tuple[str, ...]
    basis: FloatArray
    r""":math:`B`: coefficients from contrasts, :math:`\theta = B\varphi`."""
    contrasts: FloatArray
    r""":math:`C`: the contrasts of coefficients, :math:`\varphi = C\theta`; :math:`CB = I`."""
    units: FloatArray
    """Terms in original units, from contrasts."""
    unseen: FloatArray
    """Orthonormal directions that every row is orthogonal to, as columns; there may be none."""
    constants: NDArray[np.bool_]
    """Which contrast is the intercept."""
    references: tuple[str, ...] = ()

    def seen(self, vectors: FloatArray) -> FloatArray:
        """The part of vectors, or of columns, that rows are not known to be orthogonal to."""
        return vectors - self.unseen @ (self.unseen.T @ vectors)

    def repeated(self, outputs: int) -> "Coordinates":
        """The contrasts of several linear predictors, one after the other, with the names of a single one."""
        matrices = (self.basis, self.contrasts, self.units, self.unseen)
        basis, contrasts, units, unseen = (block_diag(*[matrix] * outputs) for matrix in matrices)
        constants = np.tile(self.constants, outputs)
        return Coordinates(self.names, basis, contrasts, units, unseen, constants, self.references)


def plain_coordinates(names: Sequence[str] | None, n_features: int, *, intercept: bool) -> Coordinates:
    """The coefficients themselves, where nothing is known of the features but their names."""
    columns = [f"x{place}" for place in range(n_features)] if names is None else names
    named, same = (*columns, *[INTERCEPT] * intercept), np.eye(n_features + intercept)
    constants = np.arange(len(same)) >= n_features
    return Coordinates(named, same, same, same, np.zeros((len(same), 0)), constants)


def domain_coordinates(domain: Domain, norm: float, *, intercept: bool, apart: bool = False) -> Coordinates:
    """The contrasts of a domain's columns, or the columns ``apart``, in the units of its features.

    docs/inference.md, "Categories" and "Units". No row is scaled into the ball, so that some directions are
    known to be unseen, where ``norm`` is at least :attr:`expost.Domain.longest_row`.
    """
    size = len(domain.column_names) + intercept
    kept: list[int] = []
    sums: list[FloatArray] = []
    references: list[str] = []
    anchored = intercept
    for feature, columns in _placed(domain):
        if _has_contrasts(feature, apart=apart):
            sums.append(np.isin(np.arange(size), columns).astype(np.float64))
            if anchored:
                references.append(feature.column_names[0])
                columns = columns[1:]
            anchored = True
        kept += columns
    if intercept:
        kept.append(size - 1)
        sums.append((np.arange(size) == size - 1).astype(np.float64))
    basis = np.eye(size)[:, kept]
    # Every sum is one and the same constant column: the anchor's, which stands last with an intercept.
    differences = np.array(sums).T @ null_space(np.ones((1, len(sums)))) if sums else np.zeros((size, 0))
    unseen = np.linalg.qr(differences)[0]
    contrasts = np.eye(size)[kept]
    for column in np.setdiff1d(np.arange(size), kept):
        owner = sums[int(np.argmax(np.array(sums)[:, column]))]
        contrasts[:, column] = (sums[-int(intercept)] - owner)[kept]
    slopes, constant = _slopes(domain, size)
    units, shift = np.diag(slopes[kept]), constant[kept]
    names = list(map([*domain.column_names, INTERCEPT].__getitem__, kept))
    if intercept:
        units[-1] += shift
    elif np.any(shift):
        units, names = np.vstack([units, shift]), [*names, INTERCEPT]
    if norm < domain.longest_row:
        unseen = np.zeros((size, 0))
    constants = np.isin(kept, range(size - intercept, size))
    return Coordinates(tuple(names), basis, contrasts, units, unseen, constants, tuple(references))


def _has_contrasts(feature: Feature, *, apart: bool) -> bool:
    """Whether a feature's columns add up to the intercept's; those of steps do not."""
    return isinstance(feature, Category) and not (feature.monotone or apart)


def _placed(domain: Domain) -> Iterator[tuple[Feature, range]]:
    """Each feature with the places of its columns."""
    place = 0
    for feature in domain.features:
        columns = range(place, place + len(feature.column_names))
        yield feature, columns
        place = columns.stop


def _slopes(domain: Domain, size: int) -> tuple[FloatArray, FloatArray]:
    """What a row in original units is, in columns: the slope of each, and a constant part."""
    slopes, constant = np.ones(size), np.zeros(size)
    for feature, (column, *others) in _placed(domain):
        if isinstance(feature, Number | Date):  # a date counts days
            low, high = feature.limits
            symmetric = feature.scale == "symmetric"
            slopes[column] = (2.0 if symmetric else 1.0) / (high - low)
            constant[column] = -low * slopes[column] - symmetric
        elif isinstance(feature, Category) and feature.monotone:
            slopes[[column, *others]] = feature.step
    return slopes, constant
