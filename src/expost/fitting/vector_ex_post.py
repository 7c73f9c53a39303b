"""The exact privacy loss of every record under a loss of several linear predictors; private."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from expost._common.namespaces import Space
from expost._common.typing import FloatArray
from expost.data.blocks import Block
from expost.data.encoded import Encoded
from expost.data.placed import short_blocks
from expost.data.placed_rows import PlacedRows
from expost.fitting.loss_terms import LossTerms, inverse_root, log_determinants
from expost.fitting.private_fit import PrivateFit
from expost.losses import VectorLoss, weighted_factors

# Matrices of the size of a record's Hessian that a kernel holds for each row.
_FACTORS = 12


def vector_terms(fit: PrivateFit, records: Encoded, loss: VectorLoss, *, member: bool) -> Iterator[LossTerms]:
    r"""Exact losses, term by term and part by part, where a record's Hessian has several directions.

    With :math:`v` the gradient and :math:`FF^\top` the Hessian of the loss in its :math:`k` predictors,
    :math:`M = \nabla J` as a :math:`k\times d` matrix, and :math:`G_{ab} = x^\top(H^{-1})_{ab}x`,

    .. math:: t_1 = -\log\det(I \mp F^\top GF), \quad
              t_2 = \frac{\|v\|^2\|x\|^2}{2\sigma^2}, \quad t_3 = \mp\frac{v^\top Mx}{\sigma^2}

    with the upper signs for members; :math:`v` and :math:`FF^\top` times the record's weight where it has
    one. This is the Theorem "ex-post pDP of objective perturbation" of [RW21]_
    for a loss of several linear predictors: exact, as in :func:`expost.fitting.ex_post.ex_post_terms`.

    Notes
    -----
    :math:`H = LL^\top` is factored once. :math:`U = L^{-1}` is lower triangular, so that block :math:`a` of
    :math:`H^{-1}(\cdot\otimes x)` needs the rows from :math:`a` on alone: :math:`Z_a = U_{a:,a}x`,
    :math:`G_{ab} = Z_a\cdot Z_b` over their common rows. That is :math:`nd^2k(k+1)/2` products, half of what
    blocks of :math:`H^{-1}` would cost, positive semi-definite by construction, and
    :math:`dk(k+1)/2` numbers of memory per row of a block.

    Privacy
    -------
    The result is private: it is computed from the table, and publishing it can give the table away.

    References
    ----------
    .. [RW21] R. Redberg and Y.-X. Wang. Privately publishable per-instance privacy. NeurIPS 2021.
    """
    outputs, columns = loss.outputs, records.design.dimension
    whiten = inverse_root(fit.hessian, records.kernels_in)
    directions = np.concatenate([fit.coefficients, fit.gradient]).reshape(2 * outputs, columns).T
    work = VectorTerms(loss, directions, whiten, fit.sigma, bool(member))
    return records.sweep(work, width=outputs * columns)


@dataclass(frozen=True, eq=False, repr=False)
class VectorTerms:
    """The pass that finds the terms of every record under a loss of several linear predictors."""

    loss: VectorLoss
    directions: FloatArray
    """The coefficients and the gradient at them, a column for each predictor of both."""
    whiten: Any
    """The inverse root of the Hessian, lower triangular; here or on a device."""
    sigma: float
    member: bool

    def __call__(self, blocks: Iterator[Block]) -> LossTerms:
        """The terms of the part's records, in their order."""
        found = [LossTerms(*(np.empty(0) for _ in range(3)))]
        sign, variance = -1.0 if self.member else 1.0, self.sigma**2
        outputs, columns = self.loss.outputs, len(self.directions)
        # For each predictor, the rows of the whitening matrix that are not zero.
        whiten = [
            np.ascontiguousarray(self.whiten[a * columns :, a * columns : (a + 1) * columns].T)
            for a in range(outputs)
        ]
        # Buffers for all blocks: fresh arrays of this size would come from the system each time.
        buffers = [np.empty((0, matrix.shape[1])) for matrix in whiten]
        for rows, y, weights in blocks:
            if len(buffers[0]) < len(rows):
                buffers = [np.empty((len(rows), matrix.shape[1])) for matrix in whiten]
            products = rows @ self.directions
            gradient, factor = weighted_factors(self.loss, products[:, :outputs], y, weights)
            parts = [
                np.matmul(rows, matrix, out=buffer[: len(rows)])
                for matrix, buffer in zip(whiten, buffers, strict=True)
            ]
            leverage = np.swapaxes(factor, 1, 2) @ _grams(parts, columns) @ factor
            found.append(
                LossTerms(
                    determinant=-log_determinants(leverage, sign),
                    quadratic=np.vecdot(gradient, gradient) * np.vecdot(rows, rows) / (2.0 * variance),
                    inner_product=sign * np.vecdot(gradient, products[:, outputs:]) / variance,
                )
            )
        return LossTerms.joined(found)

    def in_place(self, blocks: Iterator[Block], space: Space) -> LossTerms:
        """The same where the rows lie, and left there."""
        xp, found, outputs, columns = space.xp, [], self.loss.outputs, len(self.directions)
        sign, variance = -1.0 if self.member else 1.0, self.sigma**2
        directions, strips = space.put(self.directions), self._strips(space)
        for placed, y, weights in short_blocks(blocks, _FACTORS * outputs**2):
            products = placed @ directions
            gradient, factor = weighted_factors(self.loss, products[:, :outputs], y, weights)
            cut = placed.cut(max(1, placed.room // (5 * outputs * columns)))
            grams = xp.concat([_placed_grams(rows, strips, columns) for _, rows in cut])
            leverage = xp.matrix_transpose(factor) @ grams @ factor
            steep = xp.sum(gradient * gradient, axis=1)
            along = xp.sum(gradient * products[:, outputs:], axis=1)
            determinant = -log_determinants(leverage, sign)
            quadratic = steep * placed.squares / (2.0 * variance)
            found.append(LossTerms(determinant, quadratic, sign * along / variance))
        return LossTerms.joined(found)

    def _strips(self, space: Space) -> list[Any]:
        """For each block c of rows of the whitening matrix, its blocks for all predictors up to c."""
        xp, columns, whiten = space.xp, len(self.directions), space.put(self.whiten)
        strips = []
        for c in range(self.loss.outputs):
            rows = whiten[c * columns : (c + 1) * columns, : (c + 1) * columns]
            blocks = xp.permute_dims(xp.reshape(rows, (columns, c + 1, columns)), (2, 1, 0))
            strips.append(xp.reshape(blocks, (columns, (c + 1) * columns)))
        return strips


def _grams(parts: list[FloatArray], columns: int) -> FloatArray:
    """The matrices ``G`` of a block of rows, from the whitened parts of each predictor."""
    outputs = len(parts)
    grams = np.empty((len(parts[0]), outputs, outputs))
    for a in range(outputs):
        for b in range(a, outputs):
            grams[:, a, b] = grams[:, b, a] = np.vecdot(parts[a][:, (b - a) * columns :], parts[b])
    return grams


def _placed_grams(rows: PlacedRows, strips: list[Any], columns: int) -> Any:
    """The same on a device, strip by strip: each adds its part to the predictors that it has."""
    xp, outputs = rows.space.xp, len(strips)
    grams = rows.space.zeros(rows.stored.shape[0], outputs, outputs)
    for c, strip in enumerate(strips):
        whitened = xp.reshape(rows @ strip, (-1, c + 1, columns))
        grams[:, : c + 1, : c + 1] += whitened @ xp.matrix_transpose(whitened)
    return grams
