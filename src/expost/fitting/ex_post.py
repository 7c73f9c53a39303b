"""The exact privacy loss of every record at the released coefficients; private."""

from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from expost._common.parallel import limit_blas_threads, map_spans
from expost._common.typing import FloatArray
from expost._common.validation import parameter_error
from expost.data.design import Design
from expost.exceptions import SolverError
from expost.fitting.private_fit import PrivateFit
from expost.losses import Loss


@dataclass(frozen=True, repr=False, eq=False)
class LossTerms:
    """The three signed terms of each record's log-odds; private."""

    determinant: FloatArray
    """The record's leverage. Not negative for members, not positive for outsiders."""
    quadratic: FloatArray
    """The squared norm of the record's gradient, over twice the noise variance; never negative."""
    inner_product: FloatArray
    """The inner product of the record's gradient with the noise that was drawn, over its variance."""

    @property
    def signed(self) -> FloatArray:
        """Log density ratio, actual table over its neighbour."""
        return self.determinant + self.quadratic + self.inner_product

    @property
    def loss(self) -> FloatArray:
        """The privacy loss: the size of the log-odds."""
        return np.abs(self.signed)

    def __repr__(self) -> str:
        return "LossTerms(withheld)"


def ex_post_terms(fit: PrivateFit, design: Design, y: FloatArray, loss: Loss, *, member: bool) -> LossTerms:
    r"""Privacy loss that each person incurred from the coefficients actually released, term by term.

    .. math:: \epsilon_1(z) = \left|\log\frac{p(\hat\theta \mid D)}{p(\hat\theta \mid D_{\pm z})}\right|
              = |t_1 + t_2 + t_3|

    With :math:`\mu = x^\top H(D)^{-1}x` and :math:`\kappa = f''`, :math:`\nabla\ell = f'x` at the released
    coefficients,

    .. math:: t_1 = \mp\log(1 \mp \kappa\mu)\ \text{(member: } -\log(1-\kappa\mu)\text{, outsider: }
              -\log(1+\kappa\mu)), \quad t_2 = \frac{\|\nabla\ell\|^2}{2\sigma^2}, \quad
              t_3 = \mp\frac{\nabla J(\hat\theta; D)^\top\nabla\ell}{\sigma^2}

    with the minus sign of :math:`t_3` for members (compared with the table without the record) and the plus
    sign for outsiders (compared with the table that has it as well). This is the Corollary "ex-post pDP loss
    of objective perturbation for GLMs" of [RW21]_ with the signs of its Theorem, and it is exact: no
    inequality, no failure probability.

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
    # x ↦ L⁻¹x as one matrix product per block; with H = LLᵀ, μ = ‖L⁻¹x‖².
    whiten: FloatArray | None = None
    with suppress(LinAlgError), limit_blas_threads(design.dimension):
        factor = cholesky(fit.hessian, lower=True)
        whiten = solve_triangular(factor, np.eye(design.dimension), lower=True).T
    if whiten is None:
        raise SolverError(
            "the Hessian at the released coefficients is not positive definite in double precision; "
            "raise `l2`."
        )
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
            slope, curvature = loss.derivatives(predictor, y[block])
            left = np.matmul(rows[:, :half], upper_left, out=lefts[: len(rows)])
            rest = np.matmul(rows, right, out=rests[: len(rows)])
            leverage = curvature * (np.vecdot(left, left) + np.vecdot(rest, rest))
            with np.errstate(divide="ignore"):
                determinant[block] = -np.log1p(sign * np.minimum(leverage, 1.0) if member else leverage)
            quadratic[block] = slope**2 * np.vecdot(rows, rows) / (2.0 * variance)
            inner_product[block] = sign * slope * along / variance

    map_spans(design.n_rows, design.dimension, work)
    return LossTerms(determinant, quadratic, inner_product)
