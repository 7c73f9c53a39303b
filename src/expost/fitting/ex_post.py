"""The exact privacy loss of every record at the released coefficients; private."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from expost._common.namespaces import Space
from expost._common.typing import FloatArray
from expost._common.validation import parameter_error
from expost.data.blocks import Block
from expost.data.encoded import Encoded
from expost.fitting.loss_terms import LossTerms, inverse_root
from expost.fitting.private_fit import PrivateFit
from expost.fitting.vector_ex_post import vector_terms
from expost.losses import AnyLoss, Loss, VectorLoss, weighted_derivatives


def ex_post_terms(fit: PrivateFit, records: Encoded, loss: AnyLoss, *, member: bool) -> LossTerms:
    r"""Privacy loss that each person incurred from the coefficients actually released, term by term.

    .. math:: \epsilon_1(z) = \left|\log\frac{p(\hat\theta \mid D)}{p(\hat\theta \mid D_{\pm z})}\right|
              = |t_1 + t_2 + t_3|

    With :math:`\mu = x^\top H(D)^{-1}x` and :math:`\kappa = f''`, :math:`\nabla\ell = f'x` at the released
    coefficients, both times the record's weight where it has one,

    .. math:: t_1 = \mp\log(1 \mp \kappa\mu)\ \text{(member: } -\log(1-\kappa\mu)\text{, outsider: }
              -\log(1+\kappa\mu)), \quad t_2 = \frac{\|\nabla\ell\|^2}{2\sigma^2}, \quad
              t_3 = \mp\frac{\nabla J(\hat\theta; D)^\top\nabla\ell}{\sigma^2}

    with the minus sign of :math:`t_3` for members (compared with the table without the record) and the plus
    sign for outsiders (compared with the table that has it as well). This is the Corollary "ex-post pDP loss
    of objective perturbation for GLMs" of [RW21]_ with the signs of its Theorem, and it is exact: no
    inequality, no failure probability. A loss of several linear predictors has the determinant of a small
    matrix in place of :math:`\kappa\mu` (:func:`expost.fitting.vector_ex_post.vector_terms`).

    Assumes records inside the declared ball (the design sees to it), add-or-remove neighbours and a minimiser
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


def streamed_terms(fit: PrivateFit, records: Encoded, loss: AnyLoss, *, member: bool) -> Iterator[LossTerms]:
    """The terms of :func:`ex_post_terms`, one part of the records after the other; private."""
    if not isinstance(member, bool | np.bool_):
        raise parameter_error("member", "True or False", member)
    if isinstance(loss, VectorLoss):
        parts = vector_terms(fit, records, loss, member=member)
        return (terms.placed(records.space) for terms in parts)
    work = ScalarTerms(
        loss=loss,
        whiten=inverse_root(fit.hessian, records.kernels_in),
        directions=np.stack([fit.coefficients, fit.gradient]),
        sigma=fit.sigma,
        member=bool(member),
    )
    return records.sweep(work)


@dataclass(frozen=True, eq=False, repr=False)
class ScalarTerms:
    """The pass that finds the terms of every record under a loss of one linear predictor."""

    loss: Loss
    whiten: Any
    """The matrix of x ↦ L⁻¹x, lower triangular: with H = LLᵀ, μ = ‖L⁻¹x‖². Here or on a device."""
    directions: FloatArray
    """The coefficients, and the gradient at them."""
    sigma: float
    member: bool

    def __call__(self, blocks: Iterator[Block]) -> LossTerms:
        """The terms of the part's records, in their order."""
        found = [LossTerms(*(np.empty(0) for _ in range(3)))]
        sign, variance = -1.0 if self.member else 1.0, self.sigma**2
        # Some of the triangle's zeros are not multiplied, in steps in which BLAS is fast.
        first = len(self.whiten) // 32 * 8
        corner = np.ascontiguousarray(self.whiten[:first, :first])
        others = np.vstack([self.whiten[first:], self.directions])
        # Buffers for all blocks: fresh arrays of this size would come from the system each time.
        uppers, lowers = np.empty((first, 0)), np.empty((len(others), 0))
        for rows, y, weights in blocks:
            count = len(rows)
            if uppers.shape[1] < count:
                uppers, lowers = (np.empty((len(buffer), count)) for buffer in (uppers, lowers))
            # Records along the second axis, over which sums of squares are fast.
            upper = np.matmul(corner, rows[:, :first].T, out=uppers[:, :count])
            lower = np.matmul(others, rows.T, out=lowers[:, :count])
            whitened, predictor, along = lower[:-2], lower[-2], lower[-1]
            slope, curvature = weighted_derivatives(self.loss, predictor, y, weights)
            leverage = np.einsum("ij,ij->j", upper, upper)
            leverage += np.einsum("ij,ij->j", whitened, whitened)
            leverage *= curvature
            with np.errstate(divide="ignore"):
                determinant = -np.log1p(sign * np.minimum(leverage, 1.0) if self.member else leverage)
            quadratic = slope**2 * np.vecdot(rows, rows) / (2.0 * variance)
            found.append(LossTerms(determinant, quadratic, sign * slope * along / variance))
        return LossTerms.joined(found)

    def in_place(self, blocks: Iterator[Block], space: Space) -> LossTerms:
        """The same where the rows lie, and left there."""
        xp, found, whiten = space.xp, [], space.put(self.whiten)
        # The matrix is lower triangular: the intercept meets its last row alone.
        last = xp.concat([whiten[-1:, :], space.put(self.directions)]).T
        sign, variance = -1.0 if self.member else 1.0, self.sigma**2
        for rows, y, weights in blocks:
            most = whiten[:-1, : rows.stored.shape[1]]
            products = rows @ last
            slope, curvature = weighted_derivatives(self.loss, products[:, 1], y, weights)
            leverage = curvature * (rows.squares_under(most) + products[:, 0] ** 2)
            if self.member:
                leverage = -xp.clip(leverage, None, 1.0)
            quadratic = slope**2 * rows.squares / (2.0 * variance)
            inner = sign * slope * products[:, 2] / variance
            found.append(LossTerms(-xp.log1p(leverage), quadratic, inner))
        return LossTerms.joined(found)
