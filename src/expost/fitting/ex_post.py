"""The exact privacy loss of every record at the released coefficients; private."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Self

import numpy as np

from expost._common.namespaces import HERE, Space, namespace_of, on_host
from expost._common.typing import FloatArray
from expost._common.validation import LibraryName
from expost.data.blocks import Block, RawBlock
from expost.data.encoding import Encoded
from expost.data.frame_tables import FrameKind
from expost.data.people import People
from expost.data.rows import row_blocks
from expost.engines.base import Kernel
from expost.fitting import compiled
from expost.fitting.contributions import Totals
from expost.fitting.faces import Face
from expost.fitting.private_fit import PrivateFit
from expost.losses import RecordLoss, SoftmaxLoss
from expost.losses.persons import PersonLoss
from expost.losses.records import log_determinants


@dataclass(frozen=True, repr=False, eq=False)
class LossTerms:
    """The signed terms of each record's log-odds: three of the model, and one of its recalibration.

    Privacy
    -------
    Private: they come from everyone's records.
    """

    determinant: FloatArray
    """The record's leverage. Not negative for members, not positive for outsiders."""
    quadratic: FloatArray
    """The squared norm of the record's gradient, over twice the noise variance; never negative."""
    inner_product: FloatArray
    """The inner product of the record's gradient with the noise that was drawn, over its variance.

    Where coefficients are at a kink, the logarithms of its atoms are in it, and free ones alone in all else.
    """
    people: Any = None
    """The ids of the people, in the order of the terms, where the terms are people's."""
    recalibration: FloatArray | None = None
    """The log ratio of the laws of the numbers that recalibrate the model, where there are some.

    :class:`~expost.fitting.contributions.Totals` has the formula.
    """

    choices: FloatArray | None = None
    """The log ratio of the probabilities of ranges that were chosen from the table, where there are some."""

    @property
    def signed(self) -> FloatArray:
        """Log density ratio, actual table over its neighbour."""
        others = [part for part in (self.recalibration, self.choices) if part is not None]
        return sum(others, start=self.determinant + self.quadratic + self.inner_product)

    @property
    def loss(self) -> FloatArray:
        """The privacy loss: the size of the log-odds."""
        return abs(self.signed)

    def to_frame(self, library: LibraryName | None = None) -> Any:
        """The losses with their terms as a data frame, and whose they are where they are people's.

        ``library`` is ``"pandas"``, the default, ``"polars"``, ``"pyarrow"``, ``"modin"`` or ``"cudf"``.

        Privacy
        -------
        Private, as the terms are.
        """
        names = ("loss", "determinant", "quadratic", "inner_product")
        columns: dict[str, Any] = {} if self.people is None else {"person": list(self.people)}
        columns |= {name: on_host(getattr(self, name)) for name in names}
        for name in ("recalibration", "choices"):
            if getattr(self, name) is not None:
                columns[name] = on_host(getattr(self, name))
        return FrameKind().in_library(library).frame(columns)

    @classmethod
    def joined(cls, parts: Iterable[Self]) -> Self:
        """The terms of several runs of records, one after the other."""
        people, runs, counted = None, [], []
        for one in parts:
            people = one.people  # there is one part where terms are people's
            runs.append((one.determinant, one.quadratic, one.inner_product))
            counted += [] if one.recalibration is None else [one.recalibration]
        if not runs:
            return cls(*(np.empty(0) for _ in range(3)))
        concat = namespace_of(runs[0][0]).concat
        determinant, quadratic, inner_product = map(concat, zip(*runs, strict=True))
        return cls(determinant, quadratic, inner_product, people, concat(counted) if counted else None)

    def __repr__(self) -> str:
        return "LossTerms(withheld)"


def ex_post_terms(fit: PrivateFit, records: Encoded, loss: RecordLoss, *, member: Any) -> LossTerms:
    r"""Privacy loss that each person incurred from the coefficients actually released, term by term.

    .. math:: \epsilon_1(z) = \left|\log\frac{p(\hat\theta \mid D)}{p(\hat\theta \mid D_{\pm z})}\right|
              = |t_1 + t_2 + t_3|

    With :math:`g = \nabla\ell` and a factor :math:`F` of :math:`\nabla^2\ell = FF^\top` at the released
    coefficients, both with the record's weight where it has one,

    .. math:: t_1 = -\log\det(I \mp F^\top H(D)^{-1}F), \quad t_2 = \frac{\|g\|^2}{2\sigma^2}, \quad
              t_3 = \mp\frac{\nabla J(\hat\theta; D)^\top g}{\sigma^2}

    with the upper signs for members (compared with the table without the record) and the lower signs for
    outsiders (compared with the table that has it as well). This is the Theorem "ex-post pDP of objective
    perturbation" of [RW21]_ with its signs (docs/mathematics.md, theorem 2.1), and it is exact: no
    inequality, no failure probability. One
    linear predictor has one column :math:`F = \sqrt{f''}x`, so that :math:`t_1 = -\log(1 \mp f''\mu)` with
    :math:`\mu = x^\top H^{-1}x`: the Corollary for generalised linear models there. At corners it is the
    logarithm of the densities on a face (:class:`~expost.fitting.faces.Face`). Numbers that
    recalibrate the model add the logarithm of their own ratio (:mod:`expost.fitting.contributions`).

    Assumes records inside the declared set (the design sees to it), add-or-remove neighbours and a minimiser
    that is exact to rounding. ``member=True`` for a record that was not in the table is the caller's mistake
    and cannot be detected; the answer is then meaningless, and infinite where the record would
    outweigh all the curvature there is.

    ``member`` may be one truth value for each row, where rows belong to people or families: those for whom it
    is true leave the table, and the others enter it. With :math:`S` the diagonal matrix of signs, minus for
    the columns of those who leave, and :math:`g` the sum of gradients with these signs,

    .. math:: t_1 = -\log\det(I + SF^\top H(D)^{-1}F), \quad t_2 = \frac{\|g\|^2}{2\sigma^2}, \quad
              t_3 = \frac{\nabla J(\hat\theta; D)^\top g}{\sigma^2}.

    Privacy
    -------
    The result is private: it is computed from the table, and publishing it can give the table away.

    References
    ----------
    .. [RW21] R. Redberg and Y.-X. Wang. Privately publishable per-instance privacy. NeurIPS 2021.
    """
    return LossTerms.joined(streamed_terms(fit, records, loss, member=member))


def streamed_terms(
    fit: PrivateFit, records: Encoded, loss: RecordLoss, *, member: Any
) -> Iterator[LossTerms]:
    """The terms of :func:`ex_post_terms`, one part of the records after the other; private."""
    if isinstance(member, bool | np.bool_):
        sides: Any = -1.0 if member else 1.0
    else:
        records, sides = records.changed(member), np.where(on_host(member), -1.0, 1.0)
        member = False
    there = records.kernels_in if records.people is None else None
    face = None if fit.corners is None else fit.face
    root, sign = None if face is not None else fit.root(there), -1.0 if member else 1.0
    work = Terms(loss, records.design.dimension, fit.coefficients, fit.gradient, root, fit.sigma, sign, face)
    if records.people is not None:
        found = iter([_of_people(records, records.people, work)])
    else:
        found = records.sweep(work, width=len(fit.coefficients))
    return found if fit.totals is None else _recalibrated(found, fit.totals, records, sides)


def _recalibrated(
    parts: Iterator[LossTerms], totals: Totals, records: Encoded, sides: Any
) -> Iterator[LossTerms]:
    """The terms with that of the recalibration, which is found first for all records."""
    found, start = totals.losses(records, sides), 0
    for part in parts:
        stop = start + int(part.determinant.shape[0])
        yield replace(part, recalibration=Space.of(part.determinant).put(found[start:stop]))
        start = stop


def _of_people(records: Encoded, people: People, work: "Terms") -> LossTerms:
    """The terms of everybody, by the same pass over the rows of each brought together."""
    determinant, quadratic, inner_product = np.empty((3, len(people)))
    width = work.loss.factor_columns * len(work.coefficients)
    for numbers, terms in records.by_person(partial(PersonTerms, work, people.mixed), width):
        determinant[numbers] = terms.determinant
        quadratic[numbers] = terms.quadratic
        inner_product[numbers] = terms.inner_product
    return LossTerms(determinant, quadratic, inner_product, people.names)


@dataclass(frozen=True, eq=False, repr=False)
class Terms(Kernel[LossTerms]):
    """The pass that finds the terms of every record; the sign is -1 for members, 1 for others."""

    loss: RecordLoss
    columns: int
    coefficients: FloatArray
    gradient: FloatArray
    root: Any
    r""":math:`U` with :math:`H^{-1} = U^\top U`, lower triangular. Here or on a device."""
    sigma: float
    sign: float
    face: Face | None = None
    """In the place of a root where there are corners."""

    def __call__(self, blocks: Iterator[Block], space: Space = HERE) -> LossTerms:
        """The terms of the part's records, in their order, left where the rows lie."""
        return self.of(self.loss, blocks, space)

    def of(self, loss: RecordLoss, blocks: Iterator[Block], space: Space = HERE) -> LossTerms:
        """The terms of records of a loss that is made of this one's rows."""
        found, sign, variance = [], self.sign, self.sigma**2
        theta, gradient = map(space.put, (self.coefficients, self.gradient))
        root = space.put(self.root) if isinstance(self.root, np.ndarray) else self.root
        for block in row_blocks(blocks, self.loss.numbers_held(self.columns), each=loss.each):
            records = loss.at(theta, block)
            if self.face is not None:
                found.append(LossTerms(*map(space.put, self._on_face(self.face, loss, records))))
                continue
            signs = sign if records.signs is None else records.signs
            determinant = -log_determinants(records.leverages(root), signs)
            quadratic, along = records.squares / (2.0 * variance), sign * records.along(gradient) / variance
            found.append(LossTerms(determinant, quadratic, along))
        return LossTerms.joined(found)

    def _on_face(self, face: Face, loss: RecordLoss, records: Any) -> tuple[FloatArray, ...]:
        of_people = isinstance(loss, PersonLoss)
        rows, sides = (records.rows, records.sides) if of_people else (records, None)
        X, slope, curvature = map(on_host, (rows.rows.encoded(), rows.signed, rows.curvature))
        signs = np.full(len(X), self.sign) if sides is None else sides
        return face.terms(X, slope, curvature, signs.reshape(-1, loss.each or 1))

    @cached_property
    def matrix(self) -> FloatArray:
        """The root as compiled kernels read it."""
        return compiled.in_tiles(self.root)

    @property
    def compiles(self) -> bool:
        """For losses of linear predictors, where there is a matrix of the coefficients.

        Of several predictors for the library's losses only.
        """
        several = type(self.loss) is SoftmaxLoss and len(self.coefficients) <= compiled.MOST_OF_SEVERAL
        return isinstance(self.root, np.ndarray) and compiled.compiles(self.loss, several=several, own=True)

    def compiled(self, blocks: Iterator[RawBlock]) -> LossTerms:
        """The terms of the part's records, in their order; with several predictors as those of people."""
        if not self.loss.along_row:
            return PersonTerms(self, False, 1).compiled(blocks)
        point = self.coefficients, self.gradient, self.matrix
        leverages, squares, along = compiled.find_terms(blocks, self.loss, *point)
        determinant, variance = -log_determinants(leverages[:, None, None], self.sign), self.sigma**2
        return LossTerms(determinant, squares / (2.0 * variance), self.sign * along / variance)


@dataclass(frozen=True, eq=False, repr=False)
class PersonTerms(Kernel[LossTerms]):
    """The pass that finds the terms of people who all have as many rows, which lie one after the other."""

    rows: Terms
    mixed: bool
    """Whether some rows of a person leave the table and others enter it."""
    each: int

    def __call__(self, blocks: Iterator[Block], space: Space = HERE) -> LossTerms:
        """The terms of the part's people, in their order."""
        return self.rows.of(PersonLoss(self.rows.loss, self.each), blocks)

    @property
    def compiles(self) -> bool:
        """As for rows, for the library's losses, where people have not too many rows."""
        few = self.each <= compiled.MOST_ROWS and not self.mixed
        return few and self.rows.compiles and compiled.compiles(self.rows.loss)

    def compiled(self, blocks: Iterator[RawBlock]) -> LossTerms:
        """The terms of the part's people, in their order."""
        rows, variance = self.rows, self.rows.sigma**2
        point = rows.coefficients, rows.gradient, rows.matrix
        found = compiled.find_person_terms(blocks, rows.loss, *point, self.each, rows.sign)
        determinants, squares, along = found
        return LossTerms(-determinants, squares / (2.0 * variance), rows.sign * along / variance)
