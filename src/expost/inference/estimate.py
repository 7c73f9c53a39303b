"""Coefficients without the penalty's shrinkage, and their covariance under a model of the labels."""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, eigh
from scipy.special import expit, logit

from expost._common.typing import FloatArray
from expost.exceptions import PublicationError
from expost.fitting.prediction import probabilities
from expost.fitting.release import Release
from expost.goe import LargestEigenvalue
from expost.inference.coordinates import Coordinates
from expost.losses import LogisticLoss, SoftmaxLoss
from expost.losses.binary import Bend

Likelihood = LogisticLoss | SoftmaxLoss
"""The losses that come with a model of the labels."""

# How far beyond the corner of a capped loss the largest ratio is looked for; it falls to the cap.
_BEYOND = np.linspace(0.0, 60.0, 120_001)
# More than the largest ratio between two points of the grid can be above both.
_MARGIN = 1.0 + 1e-6


def model_probabilities(predictor: FloatArray, loss: Likelihood | Bend) -> FloatArray:
    r"""The probability of each class in the model that a loss is the best loss of.

    Without a cap the sigmoid or the softmax, :math:`P`. With one
    :math:`p_y \propto P_y(1 - P_y)/F'(g_y)` with :math:`g_y = \log((1 - P_y)/P_y)` (docs/inference.md).
    ``predictor`` is the linear predictor of each record, or the scores of all classes, a column each. Where
    caps follow the length of a row, ``loss`` is that of the rows (``for_rows``).

    Privacy
    -------
    As private as the records.

    Examples
    --------
    >>> model_probabilities(np.array([0.0, 2.0]), LogisticLoss(cap=0.6)).round(3)
    array([[0.5  , 0.5  ],
           [0.166, 0.834]])
    """
    shares, link = probabilities(predictor), _link(loss)
    if isinstance(link, LogisticLoss) and link.corner is None:
        return shares
    if predictor.ndim == 1:
        wrong = np.column_stack([predictor, -predictor])
    else:
        top = np.max(predictor, axis=1, keepdims=True)
        powers = np.exp(predictor - top)
        others = np.sum(powers, axis=1, keepdims=True) - powers
        wrong = np.log(np.maximum(others, np.finfo(np.float64).tiny)) - (predictor - top)
    # 1 - P is the slope of the plain loss; its ratio to the capped slope is 1 where the record is not capped.
    zero = np.zeros(len(wrong))
    slopes = np.column_stack([link.derivatives(column, zero)[0] for column in wrong.T])
    weights: FloatArray = shares * expit(wrong) / slopes
    weights /= np.sum(weights, axis=1, keepdims=True)
    return weights


def _link(loss: Likelihood | Bend) -> LogisticLoss | Bend:
    """The loss of two classes whose cap and corner a loss has."""
    return loss.link if isinstance(loss, SoftmaxLoss) else loss


def score_ratio(loss: Likelihood) -> float:
    r"""The largest ratio :math:`\rho` of a gradient's variance to its information; 1 without a cap.

    :math:`V \preceq \rho A`: docs/inference.md, "A capped loss is not the likelihood". It falls with the cap:
    where caps follow the length of a row, it is that of the longest rows.

    Examples
    --------
    >>> round(score_ratio(LogisticLoss(cap=0.6)), 3)
    1.253
    """
    link = loss.link if isinstance(loss, SoftmaxLoss) else loss
    if link.corner is None:
        return 1.0
    # Up to the corner the brackets are equal.
    wrong = logit(link.corner_slope) + _BEYOND
    slope, curvature = link.derivatives(wrong, np.zeros_like(wrong))
    steepness = curvature / slope
    if loss.outputs == 1:
        other, bend = link.derivatives(-wrong, np.zeros_like(wrong))
        slope, information = slope + other, steepness + bend / other
    else:
        information = np.tanh(0.5 * wrong) + steepness  # 1 - 2P is the hyperbolic tangent of g/2
    if np.any(information <= 0.0):
        return math.inf
    return float(max(1.0, np.max(slope / information)) * _MARGIN)


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
    r"""Undo the penalty by one Newton step, and count every source of error; public in, public out.

    With :math:`\hat A` the rows' part of the released Hessian and contrasts :math:`\theta = B\varphi`,

    .. math:: \varphi = M^{-1}B^\top(\hat A\hat\theta + \lambda\hat\theta + \nabla r + \hat b),
              \qquad M = B^\top\hat AB

    .. math:: \mathrm{Cov}\,\varphi \approx M^{-1}(\rho M + \varsigma^2B^\top B)M^{-1}
              + \sigma_3^2\bigl(\|w\|^2CC^\top + Cww^\top C^\top\bigr),
              \qquad C = M^{-1}B^\top, \quad w = \hat\theta - B\varphi

    as docs/inference.md derives. PublicationError if the Hessian determines no coefficient at all.
    """
    plan, theta = release.plan, release.coefficients
    assert release.hessian is not None
    assert plan.sigma_hessian is not None
    information = release.hessian - plan.l2 * np.eye(len(theta))
    pull = plan.l2 * theta
    noise = plan.sigma**2
    if release.gradient is not None:
        assert plan.sigma_gradient is not None
        share = noise / (noise + plan.sigma_gradient**2)
        pull, noise = pull - share * release.gradient, share * plan.sigma_gradient**2
    basis = coordinates.seen(coordinates.basis)
    pull, start = coordinates.seen(pull), coordinates.contrasts @ theta
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
        "publish with split=0.98 of expost.calibrate (`--split 0.98`), which gives it less, with a larger "
        "epsilon, with more rows or with fewer features."
    )


@cache
def _largest_noise(dimension: int) -> float:
    """The largest eigenvalue of the Hessian's noise of scale 1, except with a small probability."""
    return float(LargestEigenvalue(dimension).isf(_FAILURE))


def determined(
    matrix: FloatArray, gram: FloatArray, noise: float, constants: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """The coefficients whose information stands out from the Hessian's noise.

    Others are held, several at once: docs/inference.md, "What cannot be told".
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
