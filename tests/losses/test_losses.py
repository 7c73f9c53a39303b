"""Contract tests over every loss that exists."""

from dataclasses import dataclass, replace

import mpmath
import numpy as np
import pytest
from problems import CASES

import expost
from expost.losses import DerivativeCurve, LabelSet

ETA = np.concatenate([-np.logspace(4, -8, 200), [0.0], np.logspace(-8, 4, 200)])


@pytest.fixture(params=CASES, ids=str)
def case(request):
    return request.param


def labels_of(case):
    labels = case.loss.labels
    return labels.values or np.linspace(max(labels.low, -2), min(labels.high, 2), 5)


def test_the_loss_passes_its_own_check(case):
    expost.check_loss(case.loss)


def test_derivatives_agree_with_the_textbook(case):
    eta = np.linspace(-20, 20, 401)
    for label in labels_of(case):
        slope, curvature = case.loss.derivatives(eta, np.full_like(eta, label))
        np.testing.assert_allclose(slope, case.slope(eta, label), rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(curvature, case.curvature(eta, label), rtol=1e-12, atol=1e-15)


def test_nothing_overflows_up_to_ten_thousand(case):
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        for label in labels_of(case):
            y = np.full_like(ETA, label)
            assert np.all(np.isfinite(case.loss.value(ETA, y)))
            slope, curvature = case.loss.derivatives(ETA, y)
            assert np.all(np.isfinite(slope))
            assert np.all(curvature >= 0.0)


def test_the_curve_is_attained(case):
    """A curve that the loss never reaches would waste budget."""
    curve = case.loss.curve
    eta = np.linspace(-30, 30, 20001)
    seen = np.zeros(20)
    top = curve.max_slope if np.isfinite(curve.max_slope) else 10.0
    edges = np.linspace(0, top, len(seen) + 1)
    values = np.linspace(0, 1, 21) if getattr(case.loss, "soft", False) else labels_of(case)
    for label in values:
        slope, curvature = case.loss.derivatives(eta, np.full_like(eta, label))
        cell = np.clip(np.searchsorted(edges, np.abs(slope)) - 1, 0, len(seen) - 1)
        np.maximum.at(seen, cell, curvature)
    ceiling = curve.max_curvature_between(edges[:-1], edges[1:])
    assert np.all(seen <= ceiling * (1 + 1e-9))
    assert np.all(seen >= 0.97 * ceiling)


def test_labels_outside_the_set_are_found(case):
    labels = case.loss.labels
    bad = np.array([np.nan, np.inf, -np.inf, labels.low - 0.5, labels.high + 0.5])
    assert not labels.contains(bad).any()
    assert labels.contains(np.array([0.25])).all() == (labels.values is None)
    assert case.loss.labels.contains(np.asarray(labels_of(case), dtype=float)).all()


@pytest.mark.parametrize("eta", [30.0, 300.0, -30.0, 1e-9])
@pytest.mark.parametrize("y", [0.0, 1.0])
def test_small_logistic_derivatives_keep_their_digits(eta, y):
    slope, curvature = expost.LogisticLoss().derivatives(np.array([eta]), np.array([y]))
    with mpmath.workdps(400):
        p = 1 / (1 + mpmath.exp(-mpmath.mpf(eta)))
        assert abs(slope[0] / (p - y) - 1) < 1e-14
        assert abs(curvature[0] / (p * (1 - p)) - 1) < 1e-14


@dataclass(frozen=True)
class LogCosh(expost.Loss):
    """A user's own loss, as short as the docs promise."""

    name = "log_cosh"

    @property
    def labels(self):
        return LabelSet()

    @property
    def curve(self):
        return DerivativeCurve(max_slope=1.0, curvature=lambda m: 1.0 - m**2, peak=0.0, sign_fixed=False)

    def value(self, eta, y):
        r = np.abs(eta - y)
        return r + np.log1p(np.exp(-2.0 * r)) - np.log(2.0)

    def derivatives(self, eta, y):
        slope = np.tanh(eta - y)
        return slope, 1.0 - slope**2


def test_a_users_own_loss_fits_and_accounts_exactly():
    expost.check_loss(LogCosh())
    assert expost.calibrate(loss=LogCosh(), epsilon=1.0).sigma > 0


BREAKAGES = {
    "first derivative disagrees": {
        "derivatives": lambda s, e, y: (0.9 * np.tanh(e - y), 1 - np.tanh(e - y) ** 2)
    },
    "second derivative disagrees": {
        "derivatives": lambda s, e, y: (np.tanh(e - y), 0.5 * (1 - np.tanh(e - y) ** 2))
    },
    "not convex": {"derivatives": lambda s, e, y: (np.tanh(e - y), np.tanh(e - y) ** 2 - 1)},
    "not finite": {"value": lambda s, e, y: np.log(np.cosh(e - y))},
    "has shape": {"value": lambda s, e, y: 0.0},
    "depends on the other records": {
        "derivatives": lambda s, e, y: (np.tanh(e - y.mean()), 1 - np.tanh(e - y.mean()) ** 2)
    },
    "exceeds the declared max_slope": {"curve": {"max_slope": 0.9}},
    "exceeds the declared curve": {"curve": {"curvature": lambda m: 0.9 * (1 - m**2)}},
    "sign of the slope is declared fixed": {"curve": {"sign_fixed": True}},
    "does not rise up to peak": {"curve": {"curvature": lambda m: 2.0 - m**2, "peak": 0.7}},
    "short rows are not covered": {"curve": {"curvature": lambda m: 1.0 + 5.0 * m**4, "peak": 1.0}},
    "negative or not finite": {"curve": {"curvature": lambda m: 1.0 - m**2 - 2.0 * (m > 0.5)}},
}


@pytest.mark.parametrize("complaint", BREAKAGES)
def test_the_check_reports_what_is_wrong(complaint):
    change = BREAKAGES[complaint]
    if "curve" in change:
        broken = replace(LogCosh().curve, **change["curve"])
        members = {"curve": property(lambda self: broken)}
    else:
        members = change
    with pytest.raises(expost.exceptions.LossError, match=complaint):
        expost.check_loss(type("Broken", (LogCosh,), members)())


@dataclass(frozen=True)
class Weighted(LogCosh):
    """A logistic loss whose label carries a weight, in size, beside its sign."""

    slope: float = 10.0
    low: float = -10.0
    high: float = 10.0
    name = "weighted"

    @property
    def labels(self):
        return LabelSet(self.low, self.high)

    @property
    def curve(self):
        top = self.slope
        return DerivativeCurve(
            max_slope=top, curvature=lambda m: m * (1 - m / top), peak=top / 2, sign_fixed=True
        )

    def value(self, eta, y):
        return np.abs(y) * np.logaddexp(0.0, -np.sign(y) * eta)

    def derivatives(self, eta, y):
        p = 0.5 * (1.0 - np.tanh(0.5 * np.sign(y) * eta))
        return -y * p, np.abs(y) * p * (1.0 - p)


@pytest.mark.parametrize(
    ("slope", "low", "high"),
    [(3.0, -10.0, 10.0), (9.99, -10.0, 10.0), (1e3, -np.inf, np.inf), (9.0, -1.0, 10.0), (9e5, 0.0, 1e6)],
)
def test_labels_are_checked_across_the_whole_set(slope, low, high):
    """A slope that only far labels exceed would be certified where it is not private."""
    with pytest.raises(expost.exceptions.LossError, match=f"exceeds the declared max_slope={slope:g}"):
        expost.calibrate(loss=Weighted(slope, low, high))


def test_a_declared_slope_that_covers_every_label_passes():
    expost.check_loss(Weighted())
    expost.check_loss(Weighted(1e6, 0.0, 1e6))


@pytest.mark.parametrize(
    ("curvature", "by_one", "by_two"),
    [
        (lambda m: m * (1 - m), True, True),
        (lambda m: 0.25 + 0.0 * m, True, True),
        (lambda m: m * 1.0, True, True),
        (lambda m: np.minimum(m**1.5, 0.3), False, True),
        (lambda m: m**2, False, True),
        (lambda m: m**3, False, False),
    ],
)
def test_how_fast_a_curve_rises_is_seen(curvature, by_one, by_two):
    curve = DerivativeCurve(max_slope=1.0, curvature=curvature, peak=1.0, sign_fixed=True)
    assert (curve.ratio_falls, curve.falls_by(2)) == (by_one, by_two)


def test_every_loss_with_a_worst_case_has_the_closed_form(case):
    assert case.loss.curve.ratio_falls


@pytest.mark.parametrize("make", [expost.SmoothedHinge, expost.PseudoHuber])
@pytest.mark.parametrize("width", [0.0, -1.0, np.nan, np.inf, "1"])
def test_widths_must_be_positive(make, width):
    with pytest.raises(expost.exceptions.ParameterError, match="must be a finite number with"):
        make(width)


def test_a_curve_of_several_classes_is_none_of_one_predictor():
    broken = type("Broken", (LogCosh,), {"curve": expost.SoftmaxLoss(3).curve})
    with pytest.raises(expost.exceptions.LossError, match="its curve must be a DerivativeCurve"):
        expost.check_loss(broken())


def test_a_loss_that_can_change_is_checked_every_time():
    """One that cannot is checked once; this one is steeper than it declares after its first plan."""

    class Stretched(expost.Loss):
        name, steep = "stretched", 1.0
        labels, curve = LabelSet(), LogCosh().curve

        def value(self, eta, y):
            return self.steep * LogCosh().value(eta, y)

        def derivatives(self, eta, y):
            return tuple(self.steep * part for part in LogCosh().derivatives(eta, y))

    loss = Stretched()
    assert expost.calibrate(loss=loss, sigma=10.0, l2=5.0).loss is loss
    loss.steep = 2.0
    with pytest.raises(expost.exceptions.LossError, match="exceeds the declared max_slope=1"):
        expost.calibrate(loss=loss, sigma=10.0, l2=5.0)
