"""Predictions of a released model, for the estimators and for a publication."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit, log_softmax, softmax

from expost._common.parallel import map_spans
from expost._common.typing import FloatArray
from expost.data.design import Design
from expost.data.domain import Domain
from expost.losses import AnyLoss, LogisticLoss, SoftmaxLoss, predictors
from expost.losses.softmax import centring


def class_coefficients(coefficients: FloatArray, loss: AnyLoss) -> FloatArray:
    r"""The coefficients as a table: one row per class, or per linear predictor; classes sum to zero.

    For the softmax loss :math:`Qw`, with :math:`Q` the Helmert matrix and :math:`w` the released coefficients
    (:func:`expost.losses.softmax.centring`).

    Privacy
    -------
    A function of the released coefficients.
    """
    if isinstance(loss, SoftmaxLoss):
        table: FloatArray = centring(loss.classes) @ coefficients.reshape(loss.outputs, -1)
        return table
    return coefficients.reshape(predictors(loss), -1)


def linear_predictor(design: Design, coefficients: FloatArray) -> FloatArray:
    r""":math:`\tilde x^\top\hat\theta` of each record, encoded as the table was.

    With a matrix of coefficients, one column per class, there is one column of scores for each.

    Privacy
    -------
    The coefficients are public; the result is as private as the records in ``design``.
    """
    predictor = np.empty((design.n_rows, *coefficients.shape[1:]))

    def work(slices: list[slice]) -> None:
        for block, rows in design.products(slices):
            predictor[block] = rows @ coefficients

    map_spans(design.n_rows, design.product_width, work)
    return predictor


def probabilities(predictor: FloatArray) -> FloatArray:
    """The model's probability of each class, one column per class, from a predictor or from all scores."""
    if predictor.ndim == 2:
        shares: FloatArray = softmax(predictor, axis=1)
        return shares
    return np.column_stack([expit(-predictor), expit(predictor)])


def log_probabilities(predictor: FloatArray) -> FloatArray:
    """The logarithm of :func:`probabilities`, finite however sure the model is."""
    if predictor.ndim == 2:
        logarithms: FloatArray = log_softmax(predictor, axis=1)
        return logarithms
    return np.column_stack([log_expit(-predictor), log_expit(predictor)])


def likeliest(predictor: FloatArray, classes: NDArray[Any]) -> NDArray[Any]:
    """The class of the largest score, or the second of two where the predictor is positive."""
    place = np.argmax(predictor, axis=1) if predictor.ndim == 2 else (predictor > 0.0).astype(int)
    labels: NDArray[Any] = classes[place]
    return labels


def predicted_labels(
    predictor: FloatArray,
    *,
    loss: AnyLoss,
    classes: Sequence[Any] | NDArray[Any] | None,
    domain: Domain | None,
) -> NDArray[Any]:
    """The most likely class of each record, or the predicted label where there are no classes.

    A loss of one's own with several linear predictors says nothing about which class is likely: its
    predictors are returned.
    """
    if classes is not None and (len(classes) == 2 or isinstance(loss, SoftmaxLoss)):
        return likeliest(predictor, np.array(classes))
    if isinstance(loss, LogisticLoss):
        return probabilities(predictor)[:, 1]
    return predictor if domain is None else domain.unscale_outcome(predictor)
