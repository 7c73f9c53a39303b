"""The exact privacy loss of every record under any convex loss; private."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from expost._common.typing import FloatArray
from expost._common.validation import parameter_error
from expost.data.convex_records import RecordRows
from expost.fitting.loss_terms import LossTerms, inverse_root, log_determinants
from expost.fitting.private_fit import PrivateFit
from expost.losses.convex import ConvexLoss


def convex_terms(fit: PrivateFit, records: RecordRows, loss: ConvexLoss, *, member: bool) -> LossTerms:
    r"""Exact privacy losses, term by term, for any convex loss.

    With :math:`\nabla^2\ell = FF^\top` at the released parameters and :math:`H = LL^\top`,

    .. math:: t_1 = -\log\det(I \mp W^\top W),\ W = L^{-1}F, \quad
              t_2 = \frac{\|\nabla\ell\|^2}{2\sigma^2}, \quad
              t_3 = \mp\frac{\nabla J(\hat\theta; D)^\top\nabla\ell}{\sigma^2}

    with the upper signs for members. This is the Theorem "ex-post pDP of objective perturbation" of [RW21]_,
    exact: no inequality, no failure probability. A factor of :math:`r` columns takes about
    :math:`d^2r + dr^2 + r^3` operations per record.

    Assumes records inside the declared set (``records`` sees to it), add-or-remove neighbours, and a record
    that is what ``member`` says: a mistake there cannot be detected.

    Privacy
    -------
    The result is private: it is computed from the table, and publishing it can give the table away.

    References
    ----------
    .. [RW21] R. Redberg and Y.-X. Wang. Privately publishable per-instance privacy. NeurIPS 2021.
    """
    if not isinstance(member, bool | np.bool_):
        raise parameter_error("member", "True or False", member)
    work = ConvexTerms(
        loss=loss,
        coefficients=fit.coefficients,
        gradient=fit.gradient,
        inverse=inverse_root(fit.hessian),
        sigma=fit.sigma,
        member=bool(member),
    )
    return LossTerms.joined(records.sweep(work))


@dataclass(frozen=True, eq=False, repr=False)
class ConvexTerms:
    """The pass that finds the terms of every record."""

    loss: ConvexLoss
    coefficients: FloatArray
    gradient: FloatArray
    inverse: FloatArray
    r""":math:`L^{-1}`, for the Hessian :math:`LL^\top`."""
    sigma: float
    member: bool

    def __call__(self, blocks: Iterator[FloatArray]) -> LossTerms:
        """The terms of the part's records, in their order."""
        found = [LossTerms(*(np.empty(0) for _ in range(3)))]
        sign, variance = -1.0 if self.member else 1.0, self.sigma**2
        for rows in blocks:
            gradient = self.loss.gradient(self.coefficients, rows)
            factor = self.loss.factor(self.coefficients, rows)
            found.append(
                LossTerms(
                    determinant=-log_determinants(grams(self.inverse @ factor), sign),
                    quadratic=np.vecdot(gradient, gradient) / (2.0 * variance),
                    inner_product=sign * (gradient @ self.gradient) / variance,
                )
            )
        return LossTerms.joined(found)


def grams(factors: FloatArray) -> FloatArray:
    r"""The smaller of :math:`W^\top W` and :math:`WW^\top` of each record: their determinants agree."""
    turned = np.swapaxes(factors, 1, 2)
    products: FloatArray = turned @ factors if factors.shape[2] <= factors.shape[1] else factors @ turned
    return products
