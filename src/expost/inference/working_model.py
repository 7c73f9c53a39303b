"""The model of the labels under which a loss says how sure its coefficients are."""

import math

import numpy as np
from scipy.special import expit, logit, softmax

from expost._common.typing import FloatArray
from expost.losses import LogisticLoss, SoftmaxLoss

Likelihood = LogisticLoss | SoftmaxLoss
"""The losses that come with a model of the labels."""

# How far beyond the corner of a capped loss the largest ratio is looked for; it falls to the cap.
_BEYOND = np.linspace(0.0, 60.0, 120_001)
# More than the largest ratio between two points of the grid can be above both.
_MARGIN = 1.0 + 1e-6


def model_probabilities(predictor: FloatArray, loss: Likelihood) -> FloatArray:
    r"""The probability of each class in the model that a loss is the best loss of.

    Without a cap the sigmoid or the softmax, :math:`P`. With one the pull of all classes on the scores
    cancels, :math:`\sum_y p_y\nabla f(u; y) = 0`, where

    .. math:: p_y \propto \frac{P_y(1 - P_y)}{F'(g_y)}, \qquad g_y = \log\frac{1 - P_y}{P_y}

    so that two classes have the odds :math:`F'(\eta)/F'(-\eta)`.

    Parameters
    ----------
    predictor
        The linear predictor of each record, or the scores of all classes, a column each.
    loss
        The loss.

    Privacy
    -------
    As private as the records.

    Examples
    --------
    >>> model_probabilities(np.array([0.0, 2.0]), LogisticLoss()).round(3)
    array([[0.5  , 0.5  ],
           [0.119, 0.881]])
    >>> model_probabilities(np.array([0.0, 2.0]), LogisticLoss(cap=0.6)).round(3)
    array([[0.5  , 0.5  ],
           [0.166, 0.834]])
    """
    if isinstance(loss, LogisticLoss):
        if loss.corner is None:
            return np.column_stack([expit(-predictor), expit(predictor)])
        wrong = np.column_stack([predictor, -predictor])
        shares = np.column_stack([expit(-predictor), expit(predictor)])
        link = loss
    else:
        shares = softmax(predictor, axis=1)
        if loss.corner is None:
            return shares
        top = np.max(predictor, axis=1, keepdims=True)
        powers = np.exp(predictor - top)
        others = np.sum(powers, axis=1, keepdims=True) - powers
        wrong = np.log(np.maximum(others, np.finfo(np.float64).tiny)) - (predictor - top)
        link = loss.link
    # 1 - P is the slope of the plain loss; its ratio to the capped slope is 1 where the record is not capped.
    slopes, _ = link.derivatives(wrong, np.zeros_like(wrong))
    weights = shares * expit(wrong) / slopes
    shares = weights / np.sum(weights, axis=1, keepdims=True)
    return np.asarray(shares, dtype=np.float64)


def score_ratio(loss: Likelihood) -> float:
    r"""The smallest :math:`\rho` with :math:`V \preceq \rho A` in the model of the labels; 1 without a cap.

    :math:`V` is the covariance of the records' gradients and :math:`A` the mean of their Hessians. Up to one
    positive factor, with :math:`h_y` as in :class:`expost.SoftmaxLoss` and :math:`w_y = P_y(1 - P_y)`,

    .. math:: V = \sum_y w_yF'(g_y)h_yh_y^\top, \qquad
              A = \sum_y w_y\Bigl(1 - 2P_y + \frac{F''(g_y)}{F'(g_y)}\Bigr)h_yh_y^\top

    because without a cap the two are equal, which gives :math:`\sum_yw_yA(\pi^y)`. So :math:`\rho` is at most
    the largest ratio of the two brackets over :math:`g`. Two classes have one direction :math:`h`, and both
    terms of it are added before the ratio is taken.

    Examples
    --------
    >>> score_ratio(LogisticLoss())
    1.0
    >>> round(score_ratio(LogisticLoss(cap=0.6)), 3)
    1.253
    """
    link = loss if isinstance(loss, LogisticLoss) else loss.link
    if link.corner is None:
        return 1.0
    # Up to the corner the brackets are equal.
    wrong = logit(link.corner_slope) + _BEYOND
    slope, curvature = link.derivatives(wrong, np.zeros_like(wrong))
    steepness = curvature / slope
    if isinstance(loss, LogisticLoss) or loss.classes == 2:
        other, bend = link.derivatives(-wrong, np.zeros_like(wrong))
        slope, information = slope + other, steepness + bend / other
    else:
        information = np.tanh(0.5 * wrong) + steepness  # 1 - 2P is the hyperbolic tangent of g/2
    if np.any(information <= 0.0):
        return math.inf
    return float(max(1.0, np.max(slope / information)) * _MARGIN)
