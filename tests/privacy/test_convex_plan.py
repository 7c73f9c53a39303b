"""The certificate of any convex loss against numerical integrals and against real neighbours."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from convex_losses import CONVEX, AsConvex, OneOfMany
from grids import grid
from scipy import integrate, stats

import expost
from expost import LipschitzPoisson, LocationScale, PseudoHuber, SmoothedNorm
from expost.exceptions import CalibrationError, LossError, ParameterError
from expost.losses import ConvexLoss
from expost.privacy.plan import ConvexPlan
from expost.privacy.recipes import Target, tight
from expost.privacy.scales import NoiseScales


class Box(SmoothedNorm):
    """The smoothed norm with its bounds alone, without its curve."""

    curve = ConvexLoss.curve


@pytest.mark.parametrize(("across", "sigma"), [(1, 4.365), (2, 4.721), (10, 6.269), (100, 12.80)])
def test_noise_without_a_determinant(across, sigma):
    plans = [
        ConvexPlan.of(Box(across), epsilon=1.0, delta=1e-6, l2=1e12, sigma=share * sigma)
        for share in (1.0 - 3e-4, 1.0 + 3e-4)
    ]
    first = [plan.profile.first for plan in plans]
    assert first[1].delta(1.0).upper <= 1e-6 < first[0].delta(1.0).lower


@pytest.mark.long
@pytest.mark.parametrize(
    ("d", "budget"), grid([2, 5], [(50.0, 1.0, 1e-6), (20.0, 0.5, 1e-3), (400.0, 0.2, 1e-4)], together=1)
)
def test_the_certificate_is_the_integral(d, budget):
    """δ = E h(T* + ξ²/2σ² + (ξ/σ)χ), by quadrature."""
    l2, epsilon, delta = budget
    loss = Box(d, smoothing=2.0)
    plan = expost.calibrate_convex(loss, epsilon=epsilon, delta=delta, l2=l2)
    steep, most = loss.max_gradient / plan.sigma, d * np.log1p(loss.max_curvature / l2)

    def integrand(chi):
        left = epsilon - most - steep**2 / 2 - steep * chi
        return stats.chi.pdf(chi, d) * -np.expm1(min(left, 0.0))

    start = max(0.0, (epsilon - most - steep**2 / 2) / steep)
    truth = integrate.quad(integrand, start, start + 12.0, epsabs=0.0, epsrel=1e-10, limit=300)[0]
    assert truth <= plan.profile.first.delta(epsilon).upper <= truth * (1.0 + 2e-3)
    assert plan.delta_at(epsilon) <= delta


@pytest.mark.parametrize(("smoothing", "share"), [(0.05, 0.14), (0.4, 0.09)])
@pytest.mark.parametrize("others", [0, 1, 6])
def test_no_pair_of_tables_exceeds_the_certificate(smoothing, share, others):
    """The divergence of two neighbouring tables in two dimensions, by summing over a fine grid."""
    loss, l2, epsilon = SmoothedNorm(2, smoothing=smoothing), 10.0 / smoothing, 1.0
    plan = expost.calibrate_convex(loss, epsilon=epsilon, delta=0.02, l2=l2)
    rng = np.random.default_rng(others)
    table = loss.record_set.enclose(rng.normal(size=(others, 2)))
    width = (7.0 * plan.sigma + others + 1.0) / l2
    axis = np.linspace(-width, width, 251)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)

    def density(records):
        gradient, hessian = l2 * grid, np.tile(l2 * np.eye(2), (len(grid), 1, 1))
        for record in records:
            # The loss does not change if record and parameters change places.
            gradient = gradient - loss.gradient(record, grid)
            hessian = hessian + loss.hessian(record, grid)
        size = np.vecdot(gradient, gradient) / (2 * plan.sigma**2)
        return np.exp(-size) * np.linalg.det(hessian) / (2 * np.pi * plan.sigma**2) * (axis[1] - axis[0]) ** 2

    without, with_her = density(table), density([*table, np.array([1.0, 0.0])])
    assert without.sum() == pytest.approx(1.0, abs=1e-6)
    assert with_her.sum() == pytest.approx(1.0, abs=1e-6)
    reached = [
        np.maximum(first - np.exp(epsilon) * second, 0.0).sum()
        for first, second in ((without, with_her), (with_her, without))
    ]
    assert max(reached) <= plan.delta_at(epsilon)
    if others == 0:  # and it is not far above the truth
        assert max(reached) >= share * plan.delta_at(epsilon)


@pytest.mark.long
def test_a_curve_needs_less_regularisation_than_its_box():
    plain, sharp = (expost.calibrate_convex(kind(2)) for kind in (Box, SmoothedNorm))
    assert sharp.l2 < 0.2 * plain.l2
    plain, sharp = (expost.calibrate_convex(kind(2, smoothing=2.0), l2=5.0) for kind in (Box, SmoothedNorm))
    assert sharp.sigma < plain.sigma


@pytest.mark.long
def test_a_declared_trace_lowers_the_determinant():
    class Untold(LocationScale):
        max_trace = None

    plain, told = (expost.calibrate_convex(kind(), l2=20.0) for kind in (Untold, LocationScale))
    assert told.sigma < plain.sigma


@pytest.mark.parametrize("l2", [pytest.param(0.8, marks=pytest.mark.slow), 5.0])
def test_one_direction_has_the_certificate_of_a_linear_predictor(l2):
    """Gradients along one line make a generalised linear model, and its sharper profile."""

    class Exact(AsConvex):
        @property
        def curve(self):
            return self.loss.curve

    scalar = expost.calibrate(loss=PseudoHuber(1.0), l2=l2, epsilon=1.0, delta=1e-6)
    convex = expost.calibrate_convex(Exact(PseudoHuber(1.0), 2), l2=l2, epsilon=1.0, delta=1e-6)
    # Which pays for printed numbers too.
    assert (1.0 - 1e-3) * scalar.sigma < convex.sigma <= scalar.sigma * (1.0 + 1e-6)


@pytest.mark.long
def test_a_box_of_one_direction_has_the_form_of_two():
    box = expost.calibrate_convex(Box(1, smoothing=4.0), l2=0.5)
    assert replace(box, scales=NoiseScales(6.855)).profile.first.delta(1.0).upper == pytest.approx(
        1e-6, rel=0.05
    )
    assert box.sigma < 6.855


@pytest.mark.long
def test_the_floor_is_refused_with_its_number():
    loss = Box(3, smoothing=0.5)
    floor = 2.0 / np.expm1(1.0 / 3.0)
    with pytest.raises(CalibrationError, match=re.escape(f"l2 > {floor:.6g}")):
        expost.calibrate_convex(loss, epsilon=1.0, l2=0.999 * floor)
    assert expost.calibrate_convex(loss, epsilon=1.0, l2=1.05 * floor).delta_at(1.0) <= 1e-6


@pytest.mark.long
@pytest.mark.parametrize("slope", [1.0, 1e6])
def test_below_the_floor_divergences_may_still_be_enough(slope):
    """Where many directions bend a little, in any units: a third more noise than without a determinant."""

    class Steep(Box):
        max_gradient = slope

    target = Target(1.0, 1e-6, Steep(100), 1.0, "independent")
    floor = target.accounting.floor(1.0)
    assert floor == pytest.approx(2.0 / np.expm1(0.01), rel=1e-9)
    sigma = tight(target, 0.9 * floor, None)[1].sigma
    assert 1.05 < sigma / (slope * expost.gaussian.sigma(1.0, 1e-6)) < 1.3
    with pytest.raises(CalibrationError, match=re.escape(f"its floor is l2 > {floor:.6g}")):
        tight(target, 0.5 * floor, None)


@pytest.mark.long
@pytest.mark.parametrize(("loss", "epsilon"), [*zip(CONVEX, (0.1, 1.0, 8.0, 0.1, 8.0), strict=True)], ids=str)
def test_the_default_regularisation_follows_the_rule(loss, epsilon):
    plan = expost.calibrate_convex(loss, epsilon=epsilon, delta=1e-6)
    target = Target(epsilon, 1e-6, loss, 1.0, "independent")
    flat = target.smallest(lambda sigma: target.profile(math.inf, NoiseScales(sigma)), plan.sigma)
    assert plan.delta_at(epsilon) <= 1e-6
    assert plan.sigma <= 1.0501 * flat
    strong = 0.5 * flat / loss.parameter_scale
    assert plan.l2 >= strong * (1 - 1e-6)
    # It is one of the two parts of the rule, by the first certificate where gradients have one direction.
    # Rényi orders come in steps, and so does what less costs.
    share = 0.99 if loss.curve.outputs == 1 else 1.03
    assert plan.l2 == pytest.approx(strong, rel=1e-5) or plan.sigma >= share * flat


@pytest.mark.long
def test_units_do_not_matter():
    one = expost.calibrate_convex(SmoothedNorm(2, radius=1.0, smoothing=0.5))
    many = expost.calibrate_convex(SmoothedNorm(2, radius=1000.0, smoothing=500.0))
    assert many.sigma == pytest.approx(one.sigma, rel=1e-9)
    assert many.l2 == pytest.approx(one.l2 / 1000.0, rel=1e-9)


def test_explicit_scales_state_what_they_guarantee():
    plan = expost.calibrate_convex(SmoothedNorm(2), sigma=6.0, l2=30.0, delta=1e-5)
    assert plan.delta_at(plan.epsilon) <= 1e-5 < plan.delta_at(0.99 * plan.epsilon)
    assert plan.epsilon_at(1e-5) == plan.epsilon
    with pytest.raises(ParameterError, match="l2"):
        expost.calibrate_convex(SmoothedNorm(2), sigma=6.0)


@pytest.mark.long
class TooShort(OneOfMany):
    """Declares half of the length of its gradients."""

    @property
    def max_gradient(self):
        return 0.5 * self.threshold


def test_what_a_loss_of_ones_own_declares_is_checked_first():
    with pytest.raises(LossError, match="a gradient is longer than the declared"):
        expost.calibrate_convex(TooShort(), l2=5.0, sigma=1.0)


def test_wrong_arguments_are_refused():
    with pytest.raises(ParameterError, match=r"use `expost\.calibrate`"):
        expost.calibrate_convex(PseudoHuber())
    with pytest.raises(ParameterError, match="calibrate_convex"):
        expost.calibrate(loss=SmoothedNorm(2))
    with pytest.raises(ParameterError, match="n_parameters"):
        expost.calibrate_convex(SmoothedNorm(2001))
    assert expost.calibrate_convex(SmoothedNorm(2000), sigma=50.0, l2=1e9).loss.n_parameters == 2000
    with pytest.raises(ParameterError, match="epsilon"):
        expost.calibrate_convex(SmoothedNorm(2), epsilon=0.0)


def test_a_plan_shows_what_was_declared():
    plan = expost.calibrate_convex(LipschitzPoisson(2, largest=20.0))
    assert plan == expost.calibrate_convex(LipschitzPoisson(2, largest=20.0))
    shown = plan._repr_html_()
    assert "norm at most 1" in shown
    assert "labels in [0, 20]" in shown
    assert "real arithmetic" in shown


def test_to_remove_a_record_costs_what_it_does_without_a_determinant():
    """Of two directions: removing is the value at infinite l2, for a record that is added too."""
    plan = ConvexPlan.of(Box(2), epsilon=1.0, delta=1e-6, l2=5.0, sigma=4.0)
    profile = plan.profile.first
    flat = replace(profile, l2=math.inf)
    for epsilon in (0.0, 1.0):
        adding, removing = profile.directed(epsilon, rtol=1e-3)
        assert removing < adding == profile.delta(epsilon, rtol=1e-3).upper
        assert flat.directed(epsilon, rtol=1e-3) == (removing, removing)
