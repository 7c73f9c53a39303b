"""Coefficients without the penalty's shrinkage, and their covariance, from a release alone."""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, eigh

from expost._common.typing import FloatArray
from expost.exceptions import PublicationError
from expost.fitting.release import Release
from expost.goe import LargestEigenvalue
from expost.inference.coordinates import Coordinates
from expost.inference.working_model import score_ratio

# How likely noise alone may look like information, in a direction that is relied on.
_FAILURE = 0.05
# What the weight of a constant counts where one coefficient of several is to be held.
_CONSTANT = 0.25
# A coefficient that the Hessian does not determine is taken to be this uncertain, in linear predictors of the
# longest row: an odds ratio of e^4 = 55 is one standard deviation.
_UNDETERMINED = 4.0


@dataclass(frozen=True, eq=False)
class Estimate:
    """Coefficients in contrasts that a table can determine, with their covariance; public."""

    values: FloatArray
    covariance: FloatArray
    determined: NDArray[np.bool_]
    """Which of them the released Hessian determines; the others are the released ones, very uncertain."""
    bend: float
    """About how far one Newton step may be off for lack of more of them, in standard errors, at most."""


def estimate(release: Release, coordinates: Coordinates) -> Estimate:
    r"""Undo the penalty by one Newton step, and count every source of error.

    At the released coefficients the rows' gradient is :math:`-(\lambda\hat\theta + \nabla r + b)`. With
    :math:`\hat A = \hat H - \lambda I - \nabla^2r` and contrasts :math:`\theta = B\varphi`,

    .. math:: \varphi = M^{-1}B^\top(\hat A\hat\theta + \lambda\hat\theta + \nabla r + \hat b),
              \qquad M = B^\top\hat AB

    .. math:: \mathrm{Cov}\,\varphi \approx M^{-1}(\rho M + \varsigma^2B^\top B)M^{-1}
              + \sigma_3^2\bigl(\|w\|^2CC^\top + Cww^\top C^\top\bigr),
              \qquad C = M^{-1}B^\top, \quad w = \hat\theta - B\varphi

    :math:`\hat b = -s\hat g` with :math:`s = \sigma^2/(\sigma^2 + \sigma_2^2)` and
    :math:`\varsigma^2 = s\sigma_2^2` where a gradient was released; otherwise :math:`\hat b = 0` and
    :math:`\varsigma = \sigma`. Where rows are known to be orthogonal to some directions (categories that add
    up to the intercept), everything is first projected onto the rest. One step leaves what the objective
    bends on the way. That is about :math:`w^\top\hat Aw/(2\sqrt W)` standard errors of sampling, with
    :math:`W \ge \mathrm{tr}\,\hat A/R^2` the sum of the records' curvatures. docs/inference.md derives it.

    Parameters
    ----------
    release
        What was published, with a Hessian.
    coordinates
        The contrasts.

    Raises
    ------
    PublicationError
        If the Hessian determines no coefficient at all.

    Privacy
    -------
    Public in, public out: it is computed from the release and costs nothing.
    """
    plan, theta = release.plan, release.coefficients
    assert release.hessian is not None
    assert plan.sigma_hessian is not None
    information = release.hessian - plan.l2 * np.eye(len(theta))
    pull = plan.l2 * theta
    if release.regularizer is not None:
        information = information - release.regularizer.hessian(theta)
        pull = pull + release.regularizer.gradient(theta)
    noise = plan.sigma**2
    if release.gradient is not None:
        assert plan.sigma_gradient is not None
        share = noise / (noise + plan.sigma_gradient**2)
        pull, noise = pull - share * release.gradient, share * plan.sigma_gradient**2
    basis = coordinates.seen(coordinates.basis)
    pull, start = coordinates.seen(pull), coordinates.contrast(theta)
    matrix, gram = basis.T @ information @ basis, basis.T @ basis
    kept = determined(matrix, gram, plan.sigma_hessian, coordinates.constants)
    if not np.any(kept):
        raise undetermined_error()
    free, held = np.flatnonzero(kept), np.flatnonzero(~kept)
    factor = cho_factor(matrix[np.ix_(free, free)])
    target = basis[:, free].T @ (information @ coordinates.seen(theta) + pull)
    values = start.copy()
    values[free] = cho_solve(factor, target - matrix[np.ix_(free, held)] @ start[held])
    inverse = cho_solve(factor, np.eye(len(free)))
    rows = inverse @ basis[:, free].T
    rest = coordinates.seen(theta) - basis @ values
    along = rows @ rest
    covariance = np.zeros((len(values), len(values)))
    covariance[np.ix_(free, free)] = (
        score_ratio(plan.loss) * inverse  # type: ignore[arg-type]
        + noise * rows @ rows.T
        + plan.sigma_hessian**2 * (rest @ rest * rows @ rows.T + np.outer(along, along))
    )
    spread = np.zeros((len(values), len(held)))
    spread[free] = -inverse @ matrix[np.ix_(free, held)]
    spread[held, np.arange(len(held))] = 1.0
    covariance += (_UNDETERMINED / plan.radius) ** 2 * spread @ spread.T
    # Fewer than one would be less than any table has.
    curvatures = np.trace(information) / plan.radius**2
    bend = 0.5 * (rest @ information @ rest) / np.sqrt(max(curvatures, 1.0))
    sampling = np.sqrt(np.max(np.diag(inverse) / np.diag(covariance)[free]))
    return Estimate(values, covariance, kept, float(bend * sampling))


def undetermined_error() -> PublicationError:
    """Build the error for a Hessian that is all noise; the caller raises it."""
    return PublicationError(
        "the released Hessian has too much noise for this table, so that it determines no coefficient; "
        "publish with split=0.98 (`--split 0.98`), which gives it less, with a larger epsilon, with more "
        "rows or with fewer features."
    )


@cache
def _largest_noise(dimension: int) -> float:
    """The largest eigenvalue of the Hessian's noise of scale 1, except with a small probability."""
    return float(LargestEigenvalue(dimension).isf(_FAILURE))


def determined(
    matrix: FloatArray, gram: FloatArray, noise: float, constants: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    r"""The coefficients whose information stands out from the Hessian's noise.

    Coefficients are held until :math:`\lambda_{\min} \ge \tau\sigma_3` for the others, with :math:`\tau` the
    95% quantile of the largest eigenvalue of the noise: then the true information is positive in every
    direction, with that confidence. Those with the largest weight in the directions below the limit go first.
    To hold one lifts at most one eigenvalue over it (Cauchy's interlacing), so that half as many as there are
    such directions are never too many at once.
    """
    kept = np.ones(len(matrix), dtype=bool)
    while np.any(kept):
        place = np.flatnonzero(kept)
        values, vectors = eigh(matrix[np.ix_(place, place)], gram[np.ix_(place, place)])
        below = values < noise * _largest_noise(len(place))
        if not np.any(below):
            break
        weights = np.sum(vectors[:, below] ** 2, axis=1) * np.diag(gram)[place]
        # Of a constant and a column that resembles it, the column goes.
        weights[constants[place]] *= _CONSTANT
        count = max(1, int(np.count_nonzero(below)) // 2)
        kept[place[np.argsort(weights)[-count:]]] = False
    return kept
