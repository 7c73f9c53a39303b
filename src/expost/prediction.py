"""What a released model says about a record: one computation for the estimators and for a publication."""

import numpy as np
from scipy.special import expit, log_expit

from expost._parallel import map_spans
from expost._typing import FloatArray
from expost.design import Design


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
