"""The exact privacy loss of every record under any convex loss; private."""

import numpy as np

from expost._common.parallel import map_spans
from expost._common.typing import FloatArray
from expost._common.validation import parameter_error
from expost.data.convex_records import RecordRows
from expost.fitting.convex_objective import cut
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
    inverse = inverse_root(fit.hessian)
    sign = -1.0 if member else 1.0
    variance = fit.sigma**2
    determinant, quadratic, inner_product = (np.empty(records.n_rows) for _ in range(3))

    def work(slices: list[slice]) -> None:
        for block, rows in records.blocks(list(cut(slices, loss.n_parameters**2))):
            gradient, factor = loss.gradient(fit.coefficients, rows), loss.factor(fit.coefficients, rows)
            determinant[block] = -log_determinants(grams(inverse @ factor), sign)
            quadratic[block] = np.vecdot(gradient, gradient) / (2.0 * variance)
            inner_product[block] = sign * (gradient @ fit.gradient) / variance

    map_spans(records.n_rows, loss.n_parameters + records.n_columns, work)
    return LossTerms(determinant, quadratic, inner_product)


def grams(factors: FloatArray) -> FloatArray:
    r"""The smaller of :math:`W^\top W` and :math:`WW^\top` of each record: their determinants agree."""
    turned = np.swapaxes(factors, 1, 2)
    products: FloatArray = turned @ factors if factors.shape[2] <= factors.shape[1] else factors @ turned
    return products
