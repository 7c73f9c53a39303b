"""Predictions of a released model, for the estimators and for a publication."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from expost._common.namespaces import HERE, Space, is_foreign, namespace_of, on_host
from expost._common.typing import FloatArray
from expost.data.blocks import Block
from expost.data.encoding import Encoded
from expost.data.labels import Label, NumericLabel, RowsLabel
from expost.data.rows import row_blocks
from expost.engines.base import Kernel
from expost.losses import AnyLoss, BoundedPoisson, LogisticLoss, SmoothedPinball

# Means beyond the exponential of this are beyond any label.
_FAR = 300.0


def linear_predictor(records: Encoded, coefficients: FloatArray) -> FloatArray:
    r""":math:`\tilde x^\top\hat\theta` of each record, one column of scores for each column of coefficients.

    Privacy
    -------
    The coefficients are public; the result is as private as the records.
    """
    found = list(records.sweep(Predictors(coefficients), products=True))
    predictors: FloatArray = namespace_of(found[0]).concat(found)
    return predictors


@dataclass(frozen=True, eq=False)
class Predictors(Kernel[FloatArray]):
    """The pass that finds the linear predictor of every record, or one for each column of coefficients."""

    coefficients: FloatArray

    def __call__(self, blocks: Iterator[Block], space: Space = HERE) -> FloatArray:
        """The predictors of the part's records, in their order, left where the rows lie."""
        coefficients, none = space.put(self.coefficients), space.zeros(0, *self.coefficients.shape[1:])
        found = [none, *(rows @ coefficients for rows, *_ in row_blocks(blocks))]
        predictors: FloatArray = space.xp.concat(found)
        return predictors


@dataclass(frozen=True, eq=False)
class Scored:
    """The pass that finds the linear predictors of every record, its label and its weight."""

    coefficients: FloatArray

    def __call__(self, blocks: Iterator[Block]) -> tuple[FloatArray, ...]:
        """Predictors, labels and weights of the part's records, in their order."""
        found = [(np.empty((0, *self.coefficients.shape[1:])), np.empty(0), np.empty(0))]
        for rows, y, weights, *_ in blocks:
            sizes = np.ones(len(y)) if weights is None else weights.copy()
            found.append((rows @ self.coefficients, y.copy(), sizes))
        return tuple(map(np.concatenate, zip(*found, strict=True)))


def scored(records: Encoded, coefficients: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Predictors, labels and weights of all records, in their order and in memory; as private as these."""
    parts = records.sweep(Scored(coefficients), products=True)
    scores, labels, weights = map(np.concatenate, zip(*parts, strict=True))
    return scores, labels, weights


def probabilities(predictor: FloatArray) -> FloatArray:
    """The model's probability of each class, one column per class, from a predictor or from all scores."""
    if is_foreign(predictor):
        odds: FloatArray = namespace_of(predictor).exp(log_probabilities(predictor))
        return odds
    if predictor.ndim == 2:
        shares: FloatArray = softmax(predictor, axis=1)
        return shares
    return np.column_stack([expit(-predictor), expit(predictor)])


def log_probabilities(predictor: FloatArray) -> FloatArray:
    r"""The logarithm of :func:`probabilities`, finite however sure the model is.

    That of :math:`1/(1 + e^{-t})` is :math:`\min(t, 0) - \log(1 + e^{-|t|})`.
    """
    xp = namespace_of(predictor)
    if predictor.ndim == 1:
        rest = xp.log1p(xp.exp(-xp.abs(predictor)))
        both: FloatArray = xp.stack([xp.clip(t, None, 0.0) - rest for t in (-predictor, predictor)], axis=1)
        return both
    centred = predictor - xp.max(predictor, axis=1, keepdims=True)
    logarithms: FloatArray = centred - xp.log(xp.sum(xp.exp(centred), axis=1, keepdims=True))
    return logarithms


def likeliest(predictor: FloatArray, classes: NDArray[Any]) -> NDArray[Any]:
    """The class of the largest score, or the second of two where the predictor is positive."""
    xp = namespace_of(predictor)
    place = xp.argmax(predictor, axis=1) if predictor.ndim == 2 else xp.astype(predictor > 0.0, xp.int64)
    labels: NDArray[Any] = classes[on_host(place)]
    if is_foreign(predictor) and labels.dtype.kind in "fiub":  # texts are NumPy's everywhere
        labels = xp.asarray(labels, device=Space.of(predictor).device)
    return labels


def predicted_labels(
    predictor: FloatArray,
    *,
    loss: AnyLoss,
    classes: Sequence[Any] | NDArray[Any] | None,
    label: Label | None,
) -> NDArray[Any]:
    """The most likely class of each record, or the predicted label in the units that ``label`` declares.

    A loss of one's own with several predictors does not say which class is likely: these are returned.
    """
    if isinstance(label, RowsLabel):
        return label.predicted(on_host(predictor))
    if classes is not None and (len(classes) == 2 or loss.class_scores):
        return likeliest(predictor, np.array(classes))
    if isinstance(loss, LogisticLoss):
        return probabilities(predictor)[:, 1]
    if isinstance(label, NumericLabel):
        return label.unscaled(predictor)
    return namespace_of(predictor).exp(predictor) if loss.log_link else predictor


def concordance(times: FloatArray, codes: FloatArray, weights: FloatArray) -> float | None:
    """Of two records of which one is known to have had the event first, how often the model says so.

    Harrell's C for :class:`~expost.data.labels.TimeLabel`: ``times`` are predicted, and ties count half. None
    where no two can be compared.

    Privacy
    -------
    Private: computed from people's records without noise.
    """
    rows, happened = np.divmod(codes, 2.0)
    right = total = 0.0
    for row in np.unique(rows[happened > 0.0]):
        first = (rows == row) & (happened > 0.0)
        later = (rows > row) | ((rows == row) & (happened == 0.0))
        order = np.argsort(times[later])
        said, mass = times[later][order], np.concatenate([[0.0], np.cumsum(weights[later][order])])
        below, at_most = (mass[np.searchsorted(said, times[first], side)] for side in ("left", "right"))
        right += float(np.sum(weights[first] * (mass[-1] - 0.5 * (below + at_most))))
        total += float(np.sum(weights[first]) * mass[-1])
    return right / total if total > 0.0 else None


def explained(
    predictor: FloatArray, labels: FloatArray, loss: AnyLoss, weights: FloatArray | None = None
) -> float:
    """The share of the deviance that a model explains, on the scale of the fit; at most 1.

    R² for a mean; for a quantile, a count or an amount D², as scikit-learn's ``d2_pinball_score`` and the
    scores of ``PoissonRegressor`` and ``GammaRegressor`` have it. Where all labels are the same it is 1 for
    predictions that are all exactly that, and 0 for any others, as in scikit-learn's ``r2_score``.

    Privacy
    -------
    Private: computed from people's records without noise.
    """
    from sklearn import metrics

    if loss.log_link:
        predictor = np.exp(np.clip(predictor, -_FAR, _FAR))
    counted = np.ones(len(labels), dtype=bool) if weights is None else weights > 0.0
    exact = float(np.array_equal(predictor[counted], labels[counted]))
    if np.count_nonzero(counted) > 1 and np.ptp(labels[counted]) == 0.0:
        return exact
    if isinstance(loss, SmoothedPinball):
        return float(metrics.d2_pinball_score(labels, predictor, sample_weight=weights, alpha=loss.level))
    if not loss.log_link:
        return float(metrics.r2_score(labels, predictor, sample_weight=weights))
    power = 1 if isinstance(loss, BoundedPoisson) else 2
    try:
        return float(metrics.d2_tweedie_score(labels, predictor, sample_weight=weights, power=power))
    except ZeroDivisionError:  # labels differ by less than their deviance resolves
        return exact
