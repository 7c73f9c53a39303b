"""The contrasts of the encoded columns that a table can determine, and their values in original units."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag, null_space

from expost._common.typing import FloatArray
from expost.data.dates import Date
from expost.data.domain import Domain
from expost.data.features import Feature, Number

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
    count = len(domain.column_names)
    size = count + intercept
    forms = [_form(feature, apart=apart) for feature in domain.features]
    anchor, own, references = _anchored(domain, forms, size, intercept=intercept)
    # Each column by the constant and those that are kept, and these by the terms in original units.
    reduced = _with_products(domain, own, forms)
    contrasts = np.eye(size)
    contrasts[:count, :count] = reduced[:, 1:]
    contrasts[:count] += np.outer(reduced[:, 0], anchor)
    kept = np.flatnonzero(np.diag(contrasts))
    contrasts = contrasts[:, kept].T
    scales = [_scales(feature) for feature in domain.features]
    scaled = _with_products(domain, scales, scales)
    original = np.eye(size)
    original[:count, :count] = scaled[:, 1:]
    units = original[np.ix_(kept, kept)].T
    shift = np.append(scaled[:, 0], [0.0] * intercept)[kept]
    names = list(map([*domain.column_names, INTERCEPT].__getitem__, kept))
    if intercept:
        units[-1] += shift
    elif np.any(shift):
        units, names = np.vstack([units, shift]), [*names, INTERCEPT]
    unseen = null_space(contrasts) if norm >= domain.longest_row else np.zeros((size, 0))
    basis, constants = np.eye(size)[:, kept], np.isin(kept, range(count, size))
    return Coordinates(tuple(names), basis, contrasts, units, unseen, constants, references)


def _anchored(
    domain: Domain, forms: Sequence[FloatArray], size: int, *, intercept: bool
) -> tuple[FloatArray, list[FloatArray], tuple[str, ...]]:
    """The constant as a sum of columns, the forms of features on their own, and the references.

    Without an intercept, the first columns that add up to one are the constant, and all of them are kept.
    """
    own, lacks = list(forms), [bool(np.any(form[:, 0])) for form in forms]
    anchor = np.zeros(size)
    if intercept:
        anchor[-1] = 1.0
    elif any(lacks):
        first = lacks.index(True)
        lacks[first] = False
        own[first] = _form(domain.features[first], apart=True)
        start = list(_placed(domain))[first][1].start
        anchor[start : start + len(domain.features[first].value_names)] = 1.0
    pairs = zip(domain.features, lacks, strict=True)
    return anchor, own, tuple(feature.column_names[0] for feature, lack in pairs if lack)


def _form(feature: Feature, *, apart: bool) -> FloatArray:
    """A feature's columns, by the constant and all of them, without the first where they add up to one."""
    form = np.eye(feature.columns, feature.columns + 1, 1)
    if feature.sums_to_one and not apart:
        count = len(feature.value_names)
        form[0, : count + 1] = [1.0, 0.0, *[-1.0] * (count - 1)]
    return form


def _with_products(domain: Domain, own: Sequence[FloatArray], factors: Sequence[FloatArray]) -> FloatArray:
    """All columns by the constant and all columns, from what each feature is, alone and in products."""
    places = [columns for _, columns in _placed(domain)]
    count = len(domain.column_names)
    found = np.zeros((count, 1 + count))
    for columns, form in zip(places, own, strict=True):
        found[np.ix_(columns, [0, *(place + 1 for place in columns)])] = form
    first = places[-1].stop
    for left, right in domain.multiplied:
        # The constant times the constant, each column times the constant, and the columns of the product.
        a, b = factors[left], factors[right]
        shape = (len(a), len(b))
        rows = np.arange(first, first := first + shape[0] * shape[1]).reshape(shape)
        where = np.zeros((1 + shape[0], 1 + shape[1]), dtype=int)
        where[1:, 0], where[0, 1:] = np.add(places[left], 1), np.add(places[right], 1)
        where[1:, 1:] = rows + 1
        np.add.at(
            found, (rows[:, :, None], where.ravel()), np.einsum("ip,jq->ijpq", a, b).reshape(*shape, -1)
        )
    return found


def _placed(domain: Domain) -> Iterator[tuple[Feature, range]]:
    """Each feature with the places of its columns."""
    place = 0
    for feature in domain.features:
        columns = range(place, place + len(feature.column_names))
        yield feature, columns
        place = columns.stop


def _scales(feature: Feature) -> FloatArray:
    """A feature's columns, by the constant and by what they are in original units."""
    scales = np.eye(feature.columns, feature.columns + 1, 1)
    if feature.in_steps:
        scales[: len(feature.value_names)] *= feature.step
    elif isinstance(feature, Number | Date) and not feature.knots:  # a date counts days
        low, high = feature.limits
        slope = (2.0 if feature.symmetric else 1.0) / (high - low)
        scales[0, :2] = -low * slope - feature.symmetric, slope
    return scales
