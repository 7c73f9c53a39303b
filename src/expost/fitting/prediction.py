"""What a released model says about a record: one computation for the estimators and for a publication."""

from collections.abc import Sequence
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
from scipy.special import expit, log_expit

from expost._common.parallel import map_spans
from expost._common.typing import FloatArray
from expost.data.design import Design
from expost.data.domain import Domain
from expost.data.tables import open_table
from expost.exceptions import DomainError


def encoded(
    X: Any,
    *,
    norm: float,
    fit_intercept: bool,
    n_features: int,
    feature_names: Sequence[str] | None,
    domain: Domain | None = None,
) -> Design:
    """Records encoded as the table was, refused where their columns are not those of the fit.

    Privacy
    -------
    A refusal speaks of the number and the order of columns only, which are public.
    """
    table = open_table(X, domain)
    if domain is not None:
        return Design(table, norm=norm, fit_intercept=fit_intercept)
    if table.n_features != n_features:
        raise DomainError(f"`X` must have {n_features} features, as in the fit; got {table.n_features}.")
    named = feature_names is not None and nw.dependencies.is_into_dataframe(X)
    if named and nw.from_native(X, eager_only=True).columns != list(feature_names or ()):
        raise DomainError("`X` must have the columns `feature_names`, in that order; rename or reorder them.")
    return Design(table, norm=norm, fit_intercept=fit_intercept)


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
