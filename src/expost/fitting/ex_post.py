"""The exact privacy loss of every record at the released coefficients; private."""

import numpy as np

from expost._common.parallel import map_spans
from expost._common.typing import FloatArray
from expost._common.validation import parameter_error
from expost.data.design import Design
from expost.fitting.loss_terms import LossTerms, inverse_root
from expost.fitting.private_fit import PrivateFit
from expost.fitting.vector_ex_post import vector_terms
from expost.losses import AnyLoss, VectorLoss, weighted_derivatives


def ex_post_terms(
    fit: PrivateFit,
    design: Design,
    y: FloatArray,
    loss: AnyLoss,
    *,
    member: bool,
    weights: FloatArray | None = None,
) -> LossTerms:
    r"""Privacy loss that each person incurred from the coefficients actually released, term by term.

    .. math:: \epsilon_1(z) = \left|\log\frac{p(\hat\theta \mid D)}{p(\hat\theta \mid D_{\pm z})}\right|
              = |t_1 + t_2 + t_3|

    With :math:`\mu = x^\top H(D)^{-1}x` and :math:`\kappa = f''`, :math:`\nabla\ell = f'x` at the released
    coefficients, both times the record's weight where there are ``weights``,

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
    if not isinstance(member, bool | np.bool_):
        raise parameter_error("member", "True or False", member)
    if isinstance(loss, VectorLoss):
        return vector_terms(fit, design, y, loss, member=member, weights=weights)
    # x ↦ L⁻¹x as one matrix product per block; with H = LLᵀ, μ = ‖L⁻¹x‖².
    whiten = inverse_root(fit.hessian).T
    half = design.dimension // 2  # the triangle's empty quarter is not multiplied
    upper_left, right = np.ascontiguousarray(whiten[:half, :half]), np.ascontiguousarray(whiten[:, half:])
    directions = np.column_stack([fit.coefficients, fit.gradient])
    sign = -1.0 if member else 1.0
    variance = fit.sigma**2
    determinant, quadratic, inner_product = (np.empty(design.n_rows) for _ in range(3))

    def work(slices: list[slice]) -> None:
        # Buffers for all blocks: fresh arrays of this size would come from the system each time.
        longest = max(block.stop - block.start for block in slices)
        lefts, rests = np.empty((longest, half)), np.empty((longest, design.dimension - half))
        for block, rows in design.blocks(slices):
            predictor, along = (rows @ directions).T
            weight = None if weights is None else weights[block]
            slope, curvature = weighted_derivatives(loss, predictor, y[block], weight)
            left = np.matmul(rows[:, :half], upper_left, out=lefts[: len(rows)])
            rest = np.matmul(rows, right, out=rests[: len(rows)])
            leverage = curvature * (np.vecdot(left, left) + np.vecdot(rest, rest))
            with np.errstate(divide="ignore"):
                determinant[block] = -np.log1p(sign * np.minimum(leverage, 1.0) if member else leverage)
            quadratic[block] = slope**2 * np.vecdot(rows, rows) / (2.0 * variance)
            inner_product[block] = sign * slope * along / variance

    map_spans(design.n_rows, design.dimension, work)
    return LossTerms(determinant, quadratic, inner_product)
