"""The exact privacy loss of every record at the released coefficients; private."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from expost._common.namespaces import HERE, Space
from expost._common.typing import FloatArray
from expost._common.validation import parameter_error
from expost.data.blocks import Block
from expost.data.encoded import Encoded
from expost.data.rows import row_blocks
from expost.engines.base import Kernel
from expost.fitting.loss_terms import LossTerms, inverse_root
from expost.fitting.private_fit import PrivateFit
from expost.losses import RecordLoss
from expost.losses.records import log_determinants


def ex_post_terms(fit: PrivateFit, records: Encoded, loss: RecordLoss, *, member: bool) -> LossTerms:
    r"""Privacy loss that each person incurred from the coefficients actually released, term by term.

    .. math:: \epsilon_1(z) = \left|\log\frac{p(\hat\theta \mid D)}{p(\hat\theta \mid D_{\pm z})}\right|
              = |t_1 + t_2 + t_3|

    With :math:`g = \nabla\ell` and a factor :math:`F` of :math:`\nabla^2\ell = FF^\top` at the released
    coefficients, both with the record's weight where it has one,

    .. math:: t_1 = -\log\det(I \mp F^\top H(D)^{-1}F), \quad t_2 = \frac{\|g\|^2}{2\sigma^2}, \quad
              t_3 = \mp\frac{\nabla J(\hat\theta; D)^\top g}{\sigma^2}

    with the upper signs for members (compared with the table without the record) and the lower signs for
    outsiders (compared with the table that has it as well). This is the Theorem "ex-post pDP of objective
    perturbation" of [RW21]_ with its signs, and it is exact: no inequality, no failure probability. One
    linear predictor has one column :math:`F = \sqrt{f''}x`, so that :math:`t_1 = -\log(1 \mp f''\mu)` with
    :math:`\mu = x^\top H^{-1}x`: the Corollary for generalised linear models there.

    Assumes records inside the declared set (the design sees to it), add-or-remove neighbours and a minimiser
    that is exact to rounding. ``member=True`` for a record that was not in the table is the caller's mistake
    and cannot be detected; the answer is then meaningless, and infinite where the record would
    outweigh all the curvature there is.

    Privacy
    -------
    The result is private: it is computed from the table, and publishing it can give the table away.

    References
    ----------
    .. [RW21] R. Redberg and Y.-X. Wang. Privately publishable per-instance privacy. NeurIPS 2021.
    """
    return LossTerms.joined(streamed_terms(fit, records, loss, member=member))


def streamed_terms(
    fit: PrivateFit, records: Encoded, loss: RecordLoss, *, member: bool
) -> Iterator[LossTerms]:
    """The terms of :func:`ex_post_terms`, one part of the records after the other; private."""
    if not isinstance(member, bool | np.bool_):
        raise parameter_error("member", "True or False", member)
    work = Terms(
        loss=loss,
        columns=records.design.dimension,
        coefficients=fit.coefficients,
        gradient=fit.gradient,
        root=inverse_root(fit.hessian, records.kernels_in),
        sigma=fit.sigma,
        member=bool(member),
    )
    return records.sweep(work, width=len(fit.coefficients))


@dataclass(frozen=True, eq=False, repr=False)
class Terms(Kernel[LossTerms]):
    """The pass that finds the terms of every record."""

    loss: RecordLoss
    columns: int
    coefficients: FloatArray
    gradient: FloatArray
    """Of the objective without its noise, at the coefficients."""
    root: Any
    r""":math:`U` with :math:`H^{-1} = U^\top U`, lower triangular. Here or on a device."""
    sigma: float
    member: bool

    def __call__(self, blocks: Iterator[Block], space: Space = HERE) -> LossTerms:
        """The terms of the part's records, in their order, left where the rows lie."""
        found, sign, variance = [], -1.0 if self.member else 1.0, self.sigma**2
        theta, gradient, root = map(space.put, (self.coefficients, self.gradient, self.root))
        for block in row_blocks(blocks, self.loss.numbers_held(self.columns)):
            records = self.loss.at(theta, block)
            found.append(
                LossTerms(
                    determinant=-log_determinants(records.leverages(root), sign),
                    quadratic=records.squares / (2.0 * variance),
                    inner_product=sign * records.along(gradient) / variance,
                )
            )
        return LossTerms.joined(found)
