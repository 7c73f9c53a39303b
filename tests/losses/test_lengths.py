"""Caps that follow the length of a row: levels, their losses, and that the longest rows bend most."""

from dataclasses import replace

import numpy as np
import pytest

import expost
from expost.exceptions import ParameterError
from expost.losses import LogisticLoss, PseudoHuber, SoftmaxLoss
from expost.losses.binary import longest_rows_bend_most
from expost.losses.records import Lengths, Levels
from expost.privacy.shapes import capped_logistic

RADIUS = np.sqrt(2.0)
BINARY = LogisticLoss(cap=0.6, corner=0.8, gradient_cap=0.6 * RADIUS)
HUBER = PseudoHuber(0.2, gradient_cap=0.2 * RADIUS)
CLASSES = SoftmaxLoss(4, cap=0.6, gradient_cap=0.6 * RADIUS)


def rows_of(lengths, columns=3, seed=0):
    X = np.random.default_rng(seed).normal(size=(len(lengths), columns))
    return X * (np.asarray(lengths) / np.linalg.norm(X, axis=1))[:, None]


def test_levels_are_of_rows_that_are_no_longer_than_they_allow():
    """No gradient is longer than that of the longest rows, nor by more than 1.1% shorter than it need be."""
    levels = Levels.up_to(RADIUS, 1.0 / 0.6)
    lengths = np.concatenate([RADIUS / levels.factors, np.geomspace(1e-9, RADIUS, 5000)])
    found = levels.factors[levels.of(Lengths.of(rows_of(lengths)))]
    assert np.all(found * lengths <= RADIUS)
    inside = found < levels.factors[-1]
    assert np.all(found[inside] * lengths[inside] > RADIUS * 2.0 ** (-1 / 64) * (1 - 1e-11))
    assert levels.factors[-2] < 1.0 / 0.6 <= levels.factors[-1]
    assert np.all(levels.of(Lengths(np.array([2.0, 2.5, 1e300]), 3)) == 0)


def test_factors_are_rounded_powers_of_two():
    factors = Levels.up_to(1.0, 16.0).factors
    np.testing.assert_array_equal(factors[::64], [1.0, 2.0, 4.0, 8.0, 16.0])
    np.testing.assert_allclose(factors, 2.0 ** (np.arange(257) / 64), rtol=2**-52)


@pytest.mark.parametrize("loss", [BINARY, HUBER, CLASSES], ids=str)
def test_every_row_has_the_loss_of_its_level(loss):
    """Bit for bit, and the longest rows that of the same loss without levels."""
    rng = np.random.default_rng(1)
    rows = Lengths.of(rows_of(rng.uniform(0.05, 1.0, 400) * RADIUS))
    eta = 4.0 * rng.normal(size=(400, loss.outputs))
    y = np.zeros(400) if loss is HUBER else rng.integers(0, 2, 400).astype(float)
    eta = eta if loss.outputs > 1 else eta[:, 0]
    at, level = loss.for_rows(rows), loss.levels.of(rows)
    assert len(set(level.tolist())) > 20
    for one in set(level.tolist()):
        here = level == one
        own = loss.at_level(loss.levels.factors[one])
        assert own.levels is None
        assert own.for_rows(rows) is own
        for mine, theirs in zip(at.derivatives(eta, y), own.derivatives(eta, y), strict=True):
            np.testing.assert_array_equal(mine[here], theirs[here])
        np.testing.assert_array_equal(at.value(eta, y)[here], own.value(eta, y)[here])
    longest = Lengths(np.full(400, RADIUS**2), 3)
    same = replace(loss, gradient_cap=None)
    for mine, theirs in zip(
        loss.for_rows(longest).derivatives(eta, y), same.derivatives(eta, y), strict=True
    ):
        np.testing.assert_array_equal(mine, theirs)
    if loss.outputs > 1:
        here = level == level[0]
        own = loss.at_level(loss.levels.factors[level[0]])
        np.testing.assert_array_equal(at.smallest_mass(eta, y)[here], own.smallest_mass(eta, y)[here])


CAPS = [(cap, corner) for corner in (0.3, 0.5, 0.65, 0.8, 0.95) for cap in (0.05, 0.2, 0.5, 0.7, 0.95)]


@pytest.mark.parametrize(("cap", "corner"), [pair for pair in CAPS if longest_rows_bend_most(*pair)])
def test_the_longest_rows_bend_most_at_every_length_of_a_gradient(cap, corner):
    """The dominance lemma, and what reduced Hessians of several classes need besides."""
    loss = LogisticLoss(cap=cap, corner=corner, gradient_cap=cap)
    gradients = np.concatenate([np.linspace(0.0, cap, 400), cap * (1.0 - np.geomspace(1e-9, 1e-2, 40))])
    bent = loss.curve.curvature(gradients)
    for length in np.geomspace(0.03, 1.0, 60):
        level = int(loss.levels.of(Lengths(np.array([length**2]), 1))[0])
        own = loss.at_level(loss.levels.factors[level])
        slopes = gradients / length
        possible = slopes <= own.cap
        slopes, steep = slopes[possible], gradients[possible]
        curvature = own.curve.curvature(slopes)
        assert own.cap * length <= cap
        assert np.all(curvature * length**2 <= bent[possible] * (1.0 + 1e-12) + 1e-15)
        # The own mass of a class: κ/(1 - κ/q), which up to a corner is 1 - q.
        mass, most = (
            bend / np.maximum(1.0 - bend / np.maximum(slope, 1e-300), 1e-300)
            for bend, slope in ((curvature, slopes), (bent[possible], steep))
        )
        positive = steep > 0.0
        assert np.all(mass[positive] * length**2 <= most[positive] * (1.0 + 1e-9))


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 8.0, 20.0])
def test_regression_bends_most_on_the_longest_rows(epsilon):
    gradients = HUBER.gradient_cap * np.linspace(0.0, 1.0 - 1e-9, 500)
    bent = HUBER.curve.curvature(gradients / RADIUS) * RADIUS**2
    for length in RADIUS * np.geomspace(0.01, 1.0, 50):
        own = HUBER.at_level(HUBER.levels.factors[HUBER.levels.of(Lengths(np.array([length**2]), 1))[0]])
        possible = gradients / length <= own.threshold
        curvature = own.curve.curvature(gradients[possible] / length) * length**2
        assert np.all(curvature <= bent[possible] * (1.0 + 1e-12))


def test_a_cap_on_gradients_is_refused_where_short_rows_could_bend_more():
    assert not longest_rows_bend_most(0.9, 0.3)
    with pytest.raises(ParameterError, match="gradient_cap"):
        LogisticLoss(cap=0.9, corner=0.3, gradient_cap=0.9)
    with pytest.raises(ParameterError, match="gradient_cap"):
        LogisticLoss(gradient_cap=1.0)
    with pytest.raises(ParameterError, match="gradient_cap"):
        PseudoHuber(0.2, gradient_cap=-1.0)
    # With a small l2 the corner comes early, and all rows have one cap.
    early = capped_logistic(1.0, 1e-6, l2=0.05, radius=1.0)
    assert early.corner < 0.5
    assert early.gradient_cap is None
    with pytest.raises(ParameterError, match="gradient_cap"):
        expost.calibrate(loss=LogisticLoss(cap=0.5, gradient_cap=0.6))


def test_losses_say_their_cap():
    assert str(BINARY) == "LogisticLoss(cap=0.6, corner=0.8, gradient_cap=0.848528)"
    assert str(HUBER) == "PseudoHuber(threshold=0.2, gradient_cap=0.282843)"
    assert str(CLASSES) == "SoftmaxLoss(classes=4, cap=0.6, corner=0.8, gradient_cap=0.848528)"
    assert str(PseudoHuber(0.2)) == "PseudoHuber(threshold=0.2)"
