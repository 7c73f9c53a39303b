"""Small problems, and a second implementation of every loss to check the library against."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from expost import (
    BoundedGamma,
    BoundedPoisson,
    LogisticLoss,
    Loss,
    PseudoHuber,
    SmoothedHinge,
    SmoothedPinball,
    SquaredLoss,
)
from expost.data.design import Design
from expost.data.encoding import Encoded
from expost.data.sources import ArraySource, DesignPart
from expost.data.tables import open_table
from expost.losses import LOSSES as REGISTRY  # noqa: F401  tests of all losses read it here


@dataclass(frozen=True)
class Case:
    """A loss with a second implementation of its derivatives, from the textbook, and a way to draw labels."""

    loss: Loss
    slope: Callable
    curvature: Callable
    labels: Callable

    def __str__(self) -> str:
        kind = "-soft" if getattr(self.loss, "soft", False) else ""
        return f"{self.loss.name}{kind}{'-capped' if getattr(self.loss, 'corner', None) else ''}"


def sigmoid(t):
    return 1.0 / (1.0 + np.exp(-t))


def capped_slope(g, cap, corner):
    """The slope of the capped logistic loss at a linear predictor that is wrong by ``g``."""
    m0 = cap * corner
    rate = m0 * (1 - m0) / (cap - m0)
    beyond = np.maximum(g - np.log(m0 / (1 - m0)), 0.0)
    return np.where(beyond > 0, cap - (cap - m0) * np.exp(-rate * beyond), sigmoid(g))


def capped_curvature(g, cap, corner):
    """The curve of that loss at its slope: the two are written apart."""
    m, m0 = capped_slope(g, cap, corner), cap * corner
    # On the right of the corner the cap's distance is a difference of nearly equal numbers.
    beyond = np.maximum(g - np.log(m0 / (1 - m0)), 0.0)
    return np.where(m > m0, m0 * (1 - m0) * np.exp(-m0 * (1 - m0) / (cap - m0) * beyond), m * sigmoid(-g))


CASES = [
    Case(
        LogisticLoss(),
        lambda eta, y: sigmoid(eta) - y,
        lambda eta, y: sigmoid(eta) * sigmoid(-eta),
        lambda rng, n: rng.integers(0, 2, n).astype(float),
    ),
    Case(
        LogisticLoss(soft=True),
        lambda eta, y: sigmoid(eta) - y,
        lambda eta, y: sigmoid(eta) * sigmoid(-eta),
        lambda rng, n: rng.random(n),
    ),
    Case(
        LogisticLoss(cap=0.65, corner=0.8),
        lambda eta, y: (1 - 2 * y) * capped_slope((1 - 2 * y) * eta, 0.65, 0.8),
        lambda eta, y: capped_curvature((1 - 2 * y) * eta, 0.65, 0.8),
        lambda rng, n: rng.integers(0, 2, n).astype(float),
    ),
    Case(
        SmoothedHinge(0.3),
        lambda eta, y: -y * sigmoid((1 - y * eta) / 0.3),
        lambda eta, y: sigmoid((1 - y * eta) / 0.3) * sigmoid(-(1 - y * eta) / 0.3) / 0.3,
        lambda rng, n: rng.choice([-1.0, 1.0], n),
    ),
    Case(
        PseudoHuber(0.7),
        lambda eta, y: (eta - y) / np.sqrt(1 + ((eta - y) / 0.7) ** 2),
        lambda eta, y: (1 + ((eta - y) / 0.7) ** 2) ** -1.5,
        lambda rng, n: rng.normal(size=n),
    ),
    Case(
        SmoothedPinball(0.8, 0.3),
        lambda eta, y: sigmoid((eta - y) / 0.3) - 0.8,
        lambda eta, y: sigmoid((eta - y) / 0.3) * sigmoid((y - eta) / 0.3) / 0.3,
        lambda rng, n: rng.normal(size=n),
    ),
    Case(
        BoundedPoisson(2.0, 1.5),
        lambda eta, y: (np.exp(eta) - y) / np.sqrt(1 + ((np.exp(eta) - y) / 1.5) ** 2),
        lambda eta, y: np.exp(eta) * (1 + ((np.exp(eta) - y) / 1.5) ** 2) ** -1.5,
        lambda rng, n: rng.integers(0, 3, n).astype(float),
    ),
    Case(
        BoundedGamma(0.6),
        lambda eta, y: (1 - y * np.exp(-eta)) / np.sqrt(1 + ((1 - y * np.exp(-eta)) / 0.6) ** 2),
        lambda eta, y: y * np.exp(-eta) * (1 + ((1 - y * np.exp(-eta)) / 0.6) ** 2) ** -1.5,
        lambda rng, n: rng.gamma(2.0, 0.5, n),
    ),
    Case(
        SquaredLoss(), lambda eta, y: eta - y, lambda eta, y: 1.0 + 0 * eta, lambda rng, n: rng.normal(size=n)
    ),
]


def with_scales(plan, **scales):
    """The same plan with other noise scales; its promise is not recomputed."""
    return replace(plan, scales=replace(plan.scales, **scales))


def rows_in_ball(rng, n, d, norm=1.0):
    """Rows of various lengths, none longer than ``norm``."""
    X = rng.normal(size=(n, d))
    return X * (norm * rng.uniform(0.05, 1.0, n) / np.linalg.norm(X, axis=1))[:, None]


def encoded_table(table, *, norm=1.0, fit_intercept=False):
    return Encoded(ArraySource(table), Design(table.n_features, norm, fit_intercept))


def design_of(X, *, norm=1.0, fit_intercept=False):
    return encoded_table(open_table(X), norm=norm, fit_intercept=fit_intercept)


def all_rows(records, *, products=False):
    """The encoded rows, in one block."""
    (part,) = records.source.parts(1)
    ((rows, *_),) = DesignPart(part, records.design, products).blocks(records.n_rows)
    return rows


def gradient_and_hessian(case, A, y, theta, *, l2, weights=1.0):
    """Both derivatives of the objective without noise, from the textbook, for rows ``A``."""
    eta = A @ theta
    gradient = A.T @ (weights * case.slope(eta, y)) + l2 * theta
    hessian = (A * (weights * case.curvature(eta, y))[:, None]).T @ A + l2 * np.eye(len(theta))
    return gradient, hessian


def hides_its_cause(error):
    """Whether a traceback shows this error alone: the one before it may quote private values."""
    return error.__cause__ is None and (error.__suppress_context__ or error.__context__ is None)


def with_intercept(X, fit_intercept):
    return np.column_stack([X, np.ones(len(X))]) if fit_intercept else X


def linear_records(rows, slope, curvature, *, gradient=None, every=False):
    """What a report reads of records of one linear predictor, from derivatives that are given."""
    from expost.data.rows import DenseRows
    from expost.losses.base import LinearRecords
    from expost.reports.records import ScalarRecords

    at = LinearRecords(DenseRows.here(rows), slope, curvature)
    return ScalarRecords.of(at, gradient=gradient, every=every)
