"""Predictions of a released model, for the estimators and for a publication."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit

from expost._common.parallel import map_spans
from expost._common.typing import FloatArray
from expost.data.design import Design
from expost.data.domain import Domain
from expost.losses import LogisticLoss, Loss


def linear_predictor(design: Design, coefficients: FloatArray) -> FloatArray:
    r""":math:`\tilde x^\top\hat\theta` of each record, encoded as the table was.

    Privacy
    -------
    The coefficients are public; the result is as private as the records in ``design``.
    """
    predictor = np.empty(design.n_rows)

    def work(slices: list[slice]) -> None:
        for block, rows in design.blocks(slices):
            predictor[block] = rows @ coefficients

    map_spans(design.n_rows, design.dimension, work)
    return predictor


def probabilities(predictor: FloatArray) -> FloatArray:
    """The logistic model's probability of each of two classes, one column per class."""
    return np.column_stack([expit(-predictor), expit(predictor)])


def log_probabilities(predictor: FloatArray) -> FloatArray:
    """The logarithm of :func:`probabilities`, finite however sure the model is."""
    return np.column_stack([log_expit(-predictor), log_expit(predictor)])


def predicted_labels(
    predictor: FloatArray, *, loss: Loss, classes: Sequence[Any] | None, domain: Domain | None
) -> NDArray[Any]:
    """The more likely class of each record, or the predicted label where there are no classes."""
    if classes is not None:
        labels: NDArray[Any] = np.array(classes)[(predictor > 0.0).astype(int)]
        return labels
    if isinstance(loss, LogisticLoss):
        return probabilities(predictor)[:, 1]
    return predictor if domain is None else domain.unscale_outcome(predictor)
