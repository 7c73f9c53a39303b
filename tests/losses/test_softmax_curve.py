"""The curve of the softmax loss: what the accountant's proofs use of it."""

import math

import numpy as np
import pytest

from expost import LogisticLoss
from expost.losses.softmax_curve import SoftmaxCurve

CURVES = [
    SoftmaxCurve(3),
    SoftmaxCurve(3, 0.5),
    SoftmaxCurve(10, 0.66, 0.95),
    SoftmaxCurve(10, 0.9, 0.3),
    SoftmaxCurve(4, 1e-3),
]


@pytest.mark.parametrize("curve", CURVES, ids=str)
def test_what_the_proofs_need(curve):
    slope = np.linspace(0.0, curve.cap, 4001)[1:]
    bend, mass = curve.curvature(slope), curve.mass(slope)
    assert np.all(bend <= slope * (1.0 - slope) + 1e-15)
    assert np.all(np.diff(bend, 2) <= 1e-15)  # concave
    assert np.all(np.diff(bend / slope) <= 1e-15)
    steep = curve.link.corner_slope
    assert np.all(mass[slope <= steep] == 1.0)
    assert mass[-1] == pytest.approx(curve.cap, rel=1e-12)
    beyond = mass[slope > steep]
    assert np.all(np.diff(beyond, 2) >= -1e-12)  # convex
    assert np.all(np.diff(mass - slope) <= 1e-12)
    assert np.allclose(mass - slope, slope * bend / (slope - bend), rtol=0.0, atol=1e-8)


def test_two_classes_are_the_logistic_loss():
    curve = SoftmaxCurve(2, 0.7)
    assert curve.link == LogisticLoss(cap=0.7)
    assert curve.corner == 0.8
    assert curve.rank == curve.outputs == 1
    assert curve.max_slope == pytest.approx(math.sqrt(2.0) * 0.7)
    # Twice the largest curvature of the logistic loss, at two equal masses.
    assert SoftmaxCurve(2).max_curvature == 2.0 * LogisticLoss().curve.max_curvature
