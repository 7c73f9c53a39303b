"""The convex losses that exist, and what the check finds wrong with broken ones."""

import math
from dataclasses import dataclass, replace

import mpmath
import numpy as np
import pytest
from convex_losses import CONVEX, AsConvex, Coupled, VectorAsConvex, draw_records
from hypothesis import given, strategies as st

import expost
from expost import LipschitzPoisson, LocationScale, LogisticLoss, PseudoHuber, SmoothedNorm, SoftmaxLoss
from expost.exceptions import LossError, ParameterError
from expost.losses import ConvexLoss, DerivativeCurve


@pytest.mark.parametrize("loss", CONVEX, ids=str)
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_every_loss_passes_its_check(loss, seed):
    expost.check_convex_loss(loss, seed=seed)


@pytest.mark.long
@pytest.mark.parametrize(
    "loss",
    [
        AsConvex(LogisticLoss(), 3),
        AsConvex(PseudoHuber(0.3), 1, radius=5.0),
        VectorAsConvex(SoftmaxLoss(3), 2, radius=0.7),
        SmoothedNorm(40),
        SmoothedNorm(2, radius=1e-6, smoothing=1e3),
        SmoothedNorm(2, radius=1e3, smoothing=1e-3),
        LipschitzPoisson(1, largest=1e4, threshold=0.1),
        LocationScale(low=1e5, high=1e5 + 1.0, threshold=0.2),
    ],
    ids=str,
)
def test_valid_losses_of_all_sizes_pass(loss):
    expost.check_convex_loss(loss)


def test_the_gradients_are_those_of_the_formulas():
    """Against derivatives of the printed formulas with 40 digits."""
    rng = np.random.default_rng(0)
    with mpmath.workdps(40):
        norm, poisson, scale = SmoothedNorm(2), LipschitzPoisson(1, largest=9.0), LocationScale(threshold=1.2)

        def distance(a, b, z):
            return mpmath.sqrt(norm.smoothing**2 + (a - z[0]) ** 2 + (b - z[1]) ** 2)

        def count(a, b, z):
            c, y, mu = poisson.threshold, mpmath.mpf(z[1]), mpmath.exp(a * z[0] + b)
            root, Q = mpmath.sqrt(y**2 + c**2), (mu - y) ** 2 + c**2
            logarithm = mpmath.log((2 * root * mpmath.sqrt(Q) - 2 * y * mu + 2 * root**2) / mu)
            return c * mpmath.asinh((mu - y) / c) + y * c / root * logarithm

        def both(a, b, z):
            c, r = scale.threshold, b * z[0] - a
            rest = scale.consistency * mpmath.log(mpmath.log(1 + mpmath.exp(b)))
            return c**2 * (mpmath.sqrt(1 + (r / c) ** 2) - 1) - rest

        for loss, formula in ((norm, distance), (poisson, count), (scale, both)):
            for _ in range(5):
                theta = rng.normal(size=2) * 2.0
                rows, labels = draw_records(loss, rng, 1)
                rows = loss.record_set.enclose(rows)
                z = rows if labels is None else np.column_stack([rows, labels])
                gradient, hessian = loss.gradient(theta, z)[0], loss.hessian(theta, z)[0]

                def f(a, b, formula=formula, z=z):
                    return formula(a, b, z[0])

                seen = [float(mpmath.diff(f, tuple(theta), n)) for n in ((1, 0), (0, 1))]
                np.testing.assert_allclose(gradient, seen, rtol=1e-10, atol=1e-13)
                bends = [float(mpmath.diff(f, tuple(theta), n)) for n in ((2, 0), (1, 1), (0, 2))]
                np.testing.assert_allclose(hessian[[0, 0, 1], [0, 1, 1]], bends, rtol=1e-8, atol=1e-10)


def test_a_wide_threshold_gives_the_poisson_likelihood():
    rng = np.random.default_rng(1)
    loss = LipschitzPoisson(2, largest=50.0, threshold=1e7)
    records = np.column_stack([rng.uniform(-0.5, 0.5, (20, 2)), rng.poisson(4.0, 20).astype(float)])
    theta = np.array([0.4, -0.3, 1.2])
    rows = np.column_stack([records[:, :2], np.ones(20)])
    mean = np.exp(rows @ theta)
    np.testing.assert_allclose(
        loss.gradient(theta, records), (mean - records[:, 2])[:, None] * rows, rtol=1e-9
    )
    np.testing.assert_allclose(loss.factor(theta, records)[:, :, 0], np.sqrt(mean)[:, None] * rows, rtol=1e-9)


def test_the_scale_of_normal_numbers_is_theirs():
    """The expected gradient at the true location and scale is zero, up to log(1 + e^τ) in place of τ."""
    loss, mu, sd = LocationScale(threshold=1.5), 0.1, 0.05
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    records = (mu + sd * nodes)[:, None]
    assert np.all(np.abs(records) <= 1.0) or weights[np.abs(records[:, 0]) > 1.0].sum() < 1e-30
    theta = np.array([mu / sd, 1 / sd])
    assert loss.location_and_scale(theta) == pytest.approx((mu, sd))
    gradient = weights @ loss.gradient(theta, records) / weights.sum()
    np.testing.assert_allclose(gradient, 0.0, atol=1e-6)
    assert all(math.isnan(entry) for entry in loss.location_and_scale([0.1, -0.2]))


@pytest.mark.parametrize("loss", CONVEX[:4], ids=str)
def test_the_declared_bounds_are_nearly_attained(loss):
    """Bounds that no record comes near would waste budget."""
    rng = np.random.default_rng(2)
    records = loss.record_set.draw(rng, 40)
    if loss.labels.values is None:
        records = np.column_stack([records, np.full(len(records), loss.labels.high)])
    far = [t * rng.normal(size=loss.n_parameters) for t in (30.0, 100.0, 1e3) for _ in range(40)]
    near = [np.append(rng.normal(size=loss.n_parameters - 1), t) for t in np.linspace(-5.0, 5.0, 40)]
    near += [*records[:, : loss.n_parameters]] if records.shape[1] >= loss.n_parameters else []
    steep = max(np.linalg.norm(loss.gradient(t, records), axis=1).max() for t in far)
    bent = max(np.linalg.eigvalsh(loss.hessian(t, records)).max() for t in near)
    assert 0.9 * loss.max_gradient < steep <= loss.max_gradient * (1 + 1e-9)
    assert 0.8 * loss.max_curvature < bent <= loss.max_curvature * (1 + 1e-9)


def changed(**members):
    return type("Broken", (SmoothedNorm,), members)(2)


def box(self):
    return ConvexLoss.curve.fget(self)


def bumped(self, theta, records):
    """A gradient whose Hessian is right where it is looked at first and negative elsewhere."""
    return SmoothedNorm.gradient(self, theta, records) - 0.9 * np.tanh(3.0 * theta)


@dataclass(frozen=True)
class Tilted(Coupled):
    def hessian(self, theta, records):
        return super().hessian(theta, records) - 0.2 * np.eye(3)


@dataclass(frozen=True)
class Skewed(Coupled):
    def hessian(self, theta, records):
        return super().hessian(theta, records) + 0.01 * np.triu(np.ones((3, 3)), 1)


class Neither(SmoothedNorm):
    factor = ConvexLoss.factor


BREAKAGES = {
    "the gradient disagrees": lambda: changed(
        value=lambda self, t, z: 1.01 * SmoothedNorm.value(self, t, z), curve=property(box)
    ),
    "the Hessian disagrees": lambda: changed(factor=lambda s, t, z: 0.99 * SmoothedNorm.factor(s, t, z)),
    "not convex: the Hessian has a negative eigenvalue": Tilted,
    "not convex: the gradient falls": lambda: changed(gradient=bumped),
    "the Hessian is not symmetric": Skewed,
    "max_gradient=0.98": lambda: changed(max_gradient=0.98),
    "max_curvature=1.95": lambda: changed(max_curvature=1.95),
    "max_trace=3.9": lambda: changed(max_trace=3.9),
    "more than the declared rank=1": lambda: changed(rank=1, curve=property(box)),
    "a determinant exceeds": lambda: changed(
        curve=property(
            lambda self: DerivativeCurve(
                1.0, lambda m: 1.9 * np.sqrt(np.maximum(1 - m**2, 0)), 0.0, False, outputs=2, rank=2
            )
        )
    ),
    "an eigenvalue of the Hessian exceeds the curve": lambda: changed(
        curve=property(lambda self: replace(SmoothedNorm.curve.fget(self), eigenvalue=None))
    ),
    "the declared curve's eigenvalue rises": lambda: changed(
        curve=property(lambda self: replace(SmoothedNorm.curve.fget(self), eigenvalue=lambda m: 2.0 + m))
    ),
    "span 2 dimensions": lambda: changed(gradient_dimension=1, rank=1, curve=property(box)),
    "depends on the other records": lambda: changed(
        gradient=lambda s, t, z: SmoothedNorm.gradient(s, t, z - z.mean(axis=0))
    ),
    "value is not finite": lambda: changed(
        value=lambda s, t, z: np.sqrt(1.0 - np.exp(np.linalg.norm(t - z, axis=1)))
    ),
    "has shape": lambda: changed(value=lambda s, t, z: 0.0),
    "rank must be between": lambda: changed(rank=3),
    "gradient_dimension must be between": lambda: changed(gradient_dimension=3),
    "max_gradient must be finite": lambda: changed(max_gradient=math.inf),
    "max_trace must be None or finite": lambda: changed(max_trace=0.0),
    "the curve has outputs=1": lambda: changed(
        curve=property(lambda self: DerivativeCurve(1.0, lambda m: 2.0 + 0 * m, 0.0, False))
    ),
    "the curve ends at max_slope=0.5": lambda: changed(
        curve=property(
            lambda self: DerivativeCurve(0.5, lambda m: 2.0 + 0 * m, 0.0, False, outputs=2, rank=2)
        )
    ),
    "does not rise up to peak": lambda: changed(
        curve=property(lambda self: DerivativeCurve(1.0, lambda m: 4.0 - m, 0.5, False, outputs=2, rank=2))
    ),
    "must define `factor` or `hessian`": lambda: Neither(2),
}


@pytest.mark.long
@pytest.mark.parametrize("complaint", BREAKAGES)
def test_the_check_reports_what_is_wrong(complaint):
    with pytest.raises(LossError, match=complaint.replace("(", r"\(")):
        expost.check_convex_loss(BREAKAGES[complaint]())


def test_a_plan_of_a_broken_loss_is_refused():
    with pytest.raises(LossError, match="max_gradient"):
        expost.calibrate_convex(BREAKAGES["max_gradient=0.98"]())


def test_a_hessian_that_is_not_convex_has_no_factor():
    with pytest.raises(LossError, match="not convex"):
        Tilted().factor(np.zeros(3), np.zeros((1, 3)))


def test_factors_come_from_hessians():
    rng = np.random.default_rng(3)
    records = Coupled().record_set.draw(rng, 10)
    theta = 3.0 * rng.normal(size=3)
    factor = Coupled().factor(theta, records)
    np.testing.assert_allclose(
        factor @ np.swapaxes(factor, 1, 2), Coupled().hessian(theta, records), atol=1e-15
    )


@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=3, max_size=3),
    st.floats(1e-6, 1e6),
)
def test_every_row_is_brought_into_the_ball(row, radius):
    ball = expost.RecordBall(3, radius)
    inside = ball.enclose(np.array([row]))
    exact = sum(mpmath.mpf(float(entry)) ** 2 for entry in inside[0])
    assert exact <= mpmath.mpf(radius) ** 2 * (1 + mpmath.mpf(2) ** -50)
    if mpmath.sqrt(sum(mpmath.mpf(entry) ** 2 for entry in row)) < 0.999 * radius:
        assert inside[0].tolist() == row
    np.testing.assert_allclose(ball.enclose(inside), inside, rtol=1e-14)


def test_a_box_moves_numbers_to_its_bounds():
    bounds = expost.RecordBox((0.0, -1.0), (2.0, 1.0))
    assert bounds.dimension == 2
    assert bounds.enclose(np.array([[-3.0, 0.5], [1.0, 7.0]])).tolist() == [[0.0, 0.5], [1.0, 1.0]]
    drawn = bounds.draw(np.random.default_rng(0), 50)
    assert np.array_equal(bounds.enclose(drawn), drawn)
    assert str(bounds) == "rows of 2 numbers in [0, 2], [-1, 1]"


@pytest.mark.parametrize(
    "make",
    [
        lambda: expost.RecordBall(0, 1.0),
        lambda: expost.RecordBall(2, -1.0),
        lambda: expost.RecordBox((0.0,), (0.0,)),
        lambda: expost.RecordBox((0.0, 1.0), (1.0,)),
        lambda: expost.RecordBox((), ()),
        lambda: SmoothedNorm(2, smoothing=0.0),
        lambda: LipschitzPoisson(2, largest=-1.0),
        lambda: LocationScale(low=1.0, high=1.0),
    ],
)
def test_declarations_that_make_no_sense_are_refused(make):
    with pytest.raises(ParameterError):
        make()


def test_a_sign_that_nobody_checks_may_not_be_declared():
    """With gradients on one line the accountant would rely on it, and this loss pulls both ways."""

    class Signed(SmoothedNorm):
        @property
        def curve(self):
            return replace(super().curve, sign_fixed=True)

    with pytest.raises(LossError, match="sign_fixed"):
        expost.check_convex_loss(Signed(1))


def test_a_range_of_a_few_roundings_stays_within_the_bounds():
    loss = LocationScale(2.0**53, 2.0**53 + 2.0)
    records = loss.record_set.enclose(np.array([[2.0**53], [2.0**53 + 2.0], [0.0]]))
    for theta in ([0.0, 1.0], [5.0, -7.0], [-3.0, 40.0]):
        lengths = np.linalg.norm(loss.gradient(np.array(theta), records), axis=1)
        assert np.all(lengths <= loss.max_gradient)


@pytest.mark.parametrize(
    "make",
    [
        lambda: LocationScale(-1e308, 1.7e308),
        lambda: LocationScale(0.0, 1.0, threshold=1e160),
        lambda: LipschitzPoisson(2, largest=5.0, threshold=1e200),
        lambda: SmoothedNorm(2, smoothing=1e-200),
    ],
)
def test_numbers_whose_powers_leave_doubles_are_refused(make):
    with pytest.raises(ParameterError, match=r"1e\+50"):
        make()
