"""A bound of several classes fails no more often than it says: as for one predictor, at a rate of 1e-6."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from oracle import Problem
from problems import rows_in_ball
from test_coverage import KINDS, misses, too_often

from expost import Plan
from expost.losses import DerivativeCurve, LabelSet, SoftmaxLoss, VectorLoss
from expost.privacy.precision import Precision, Rounding
from expost.privacy.scales import NoiseScales

FITS = 500


def table(classes, report, *, reduced=False, cap=1.0, weights=False, printed=False, loss=None):
    rng = np.random.default_rng(classes)
    X = rows_in_ball(rng, 30, 3)
    X[::2] /= np.linalg.norm(X[::2], axis=1, keepdims=True)  # on the boundary of the ball
    y = np.argmax(3.0 * X @ rng.normal(size=(3, classes)) + rng.gumbel(size=(30, classes)), axis=1)
    loss = loss or SoftmaxLoss(classes, cap)
    precision = Precision.choose(
        Rounding.planned(1.0, curvature=1.0), sigma=2.0, l2=1.5, curvature=1.0, radius=1.0, rows_at_most=10**7
    )
    # What it guarantees takes long to find and does not matter here.
    plan = Plan(
        loss=loss,
        norm=1.0,
        fit_intercept=False,
        report=report,
        calibration="tight",
        epsilon=math.inf,
        delta=1e-3,
        l2=1.5,
        scales=NoiseScales(2.0, **STATISTICS[report]),
        precision=precision if printed else None,  # the same law in real arithmetic, and ten times as fast
        max_weight=2.0 if weights else 1.0,
        reduced=reduced,
    )
    given = rng.choice([0.3, 1.0, 2.0], 30) if weights else None
    return Problem(X, y.astype(float), 20, loss, plan=plan, fit_intercept=False, weights=given)


@dataclass(frozen=True)
class SmoothedNorm(VectorLoss):
    """A loss of one's own: the distance of two predictors to a point on a circle, its corner rounded."""

    name = "smoothed_norm"
    outputs = 2
    labels = LabelSet(-3.0, 3.0)
    curve = DerivativeCurve(
        1.0, lambda m: np.sqrt(np.maximum(1.0 - m**2, 0.0)), 0.0, sign_fixed=False, outputs=2, rank=2
    )

    def _residual(self, eta, y):
        return eta - np.column_stack([np.cos(y), np.sin(y)])

    def value(self, eta, y):
        return np.sqrt(1.0 + np.sum(self._residual(eta, y) ** 2, axis=1)) - 1.0

    def derivatives(self, eta, y):
        r = self._residual(eta, y)
        s = np.sqrt(1.0 + np.sum(r**2, axis=1))
        share = (1.0 - 1.0 / s) / np.maximum(np.sum(r**2, axis=1), 1e-300)
        root = np.eye(2) - share[:, None, None] * r[:, :, None] * r[:, None, :]
        return r / s[:, None], root / np.sqrt(s)[:, None, None]


STATISTICS = {
    "independent": {},
    "leverage": {"sigma_hessian": 0.7},
    "dependent": {"sigma_gradient": 2.0, "sigma_hessian": 0.7},
    "adaptive": {"sigma_gradient": 1.0, "sigma_hessian": 0.7, "sigma_eigenvalue": 0.5},
}
SETTINGS = [
    pytest.param(kind, reduced, id=f"{kind}{'-reduced' * reduced}")
    for kind in KINDS
    for reduced in ((False, True) if kind != "independent" else (False,))
]


# The other settings are among the many fits below.
@pytest.mark.long
@pytest.mark.parametrize(("report", "reduced"), [(kind, bool(place % 2)) for place, kind in enumerate(KINDS)])
def test_no_bound_fails_more_often_than_it_says(report, reduced):
    problem = table(3, report, reduced=reduced)
    assert too_often(misses(problem, range(25), failures=(0.1,), knowledge=(True,))) == []


@pytest.mark.long
@pytest.mark.parametrize("report", ["independent", "adaptive"])
def test_nor_does_one_of_a_loss_of_ones_own(report):
    problem = table(3, report, loss=SmoothedNorm())
    assert too_often(misses(problem, range(25), failures=(0.1,), knowledge=(True,))) == []


@pytest.mark.slow
@pytest.mark.parametrize(("report", "reduced"), SETTINGS)
@pytest.mark.parametrize("classes", [3, 5])
def test_no_bound_fails_more_often_than_it_says_in_many_fits(classes, report, reduced):
    problem = table(classes, report, reduced=reduced)
    assert too_often(misses(problem, range(FITS))) == []


@pytest.mark.slow
@pytest.mark.parametrize(("report", "reduced"), SETTINGS)
def test_nor_with_weights_a_cap_and_printed_digits(report, reduced):
    problem = table(4, report, reduced=reduced, cap=0.6, weights=True, printed=True)
    assert too_often(misses(problem, range(200))) == []
