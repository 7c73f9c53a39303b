"""What a plan promises, and how it shows it."""

import io
import math
import pickle
from dataclasses import FrozenInstanceError, replace
from itertools import pairwise

import pytest
from own_losses import LogCosh
from problems import with_scales
from rich.console import Console

import expost
from expost.exceptions import ParameterError
from expost.privacy.plan import accounting_of, check_rows
from expost.privacy.precision import Rounding
from expost.privacy.profile import PrivacyProfile

# With a split the whole budget is spent on every part; by default the steepest record decides alone.
EVERYTHING = expost.calibrate(report="adaptive", epsilon=1.0, l2=5.0, split=0.5)


def printed(plan):
    out = io.StringIO()
    Console(width=120, file=out).print(plan)
    return out.getvalue()


@pytest.mark.long
def test_delta_falls_with_epsilon_and_epsilon_with_delta():
    deltas = [EVERYTHING.delta_at(epsilon) for epsilon in (0.1, 0.5, 1.0, 2.0)]
    assert all(later < earlier for earlier, later in pairwise(deltas))
    epsilons = [EVERYTHING.epsilon_at(delta) for delta in (1e-9, 1e-6, 1e-3)]
    assert all(later < earlier for earlier, later in pairwise(epsilons))


@pytest.mark.parametrize("name", ["sigma", "sigma_gradient", "sigma_hessian", "sigma_eigenvalue"])
def test_delta_falls_as_any_noise_grows(name):
    deltas = [
        with_scales(EVERYTHING, **{name: factor * getattr(EVERYTHING, name)}).delta_at(1.0)
        for factor in (0.7, 1.0, 1.5)
    ]
    assert all(later < earlier for earlier, later in pairwise(deltas))


def test_the_certificate_is_that_of_the_accountant():
    plan = expost.calibrate(fit_intercept=True, norm=2.0, l2=3.0)
    assert plan.radius == pytest.approx(math.sqrt(5.0))
    profile = PrivacyProfile(
        plan.loss.curve, norm=plan.radius, l2=3.0, scales=plan.scales, rounding=plan.rounding
    )
    assert plan.profile.first.delta(0.5).upper == profile.delta(0.5).upper
    assert plan.delta_at(0.5) < profile.delta(0.5).upper  # the worst path is sharper here


def test_a_plan_is_frozen_comparable_hashable_and_picklable():
    plan, again = (expost.calibrate(report="leverage", l2=5.0) for _ in range(2))
    assert plan == again
    assert plan != expost.calibrate(report="leverage", l2=6.0)
    assert len({plan, again}) == 1
    plan.delta_at(1.0)  # asking leaves no trace
    assert plan == again
    assert pickle.loads(pickle.dumps(plan)) == plan
    with pytest.raises(FrozenInstanceError):
        plan.sigma = 1.0


def test_numbers_are_floats_whatever_was_passed():
    plan = expost.calibrate(epsilon=1, l2=5)
    assert {type(number) for number in (plan.epsilon, plan.delta, plan.l2, plan.sigma)} == {float}


def test_it_prints_what_is_released_with_its_noise_and_its_share():
    text = printed(EVERYTHING)
    parts = list(EVERYTHING.parts())
    assert [name for name, _, _ in parts] == ["coefficients", "gradient", "Hessian", "smallest eigenvalue"]
    for name, scale, alone in parts:
        line = next(line for line in text.splitlines() if name in line)
        assert f"{scale:.6g}" in line
        assert f"{alone:.4g}" in line
        assert 0.0 < alone < 1.0
    assert "ε = 1 at δ = 1e-06" in text
    assert "l2 = 5" in text
    assert "'adaptive'" in text


def test_shares_are_what_each_part_alone_would_cost():
    """Together they cost less than the sum of each alone, and more than the largest."""
    shares = [alone for _, _, alone in EVERYTHING.parts()]
    assert max(shares) < EVERYTHING.epsilon < sum(shares)
    assert shares[0] == with_scales(
        EVERYTHING, sigma_gradient=None, sigma_hessian=None, sigma_eigenvalue=None
    ).epsilon_at(EVERYTHING.delta)


def test_a_plan_without_a_worst_case_says_so():
    text = printed(expost.calibrate(loss="squared", sigma=2.0, l2=1.0, fit_intercept=True))
    assert "no worst case exists for this loss: ε = ∞" in text
    assert "and an intercept" in text
    assert "smallest eigenvalue" not in text


@pytest.mark.parametrize(
    ("epsilon", "share"),
    [(8.0, 1.0), (1.0, 1.0), (0.999, 0.5), (0.5, 0.5), (2.0**-12, 2.0**-12), (1e-9, 2.0**-12)],
)
def test_the_solver_is_finer_for_smaller_budgets(epsilon, share):
    """Its error falls with the largest power of two that is at most ε, down to 2⁻¹²; steps end at 2³²."""
    planned = Rounding.planned(epsilon, curvature=1.0)
    whole = Rounding.planned(1.0, curvature=1.0)
    assert planned.solver == share * whole.solver
    assert planned.steps == min(whole.steps * whole.solver / planned.solver, 2.0**32)


def test_the_promise_counts_at_its_delta_and_above_it_only():
    """Below it the certificate says what a smaller delta costs."""
    plan = expost.calibrate()
    assert plan.epsilon_at(1e-6) <= 1.0
    assert plan.epsilon_at(1.01e-6) < 1.0 < plan.epsilon_at(0.99e-6) < plan.epsilon_at(1e-9)
    honest = replace(plan, epsilon=0.5)  # what a promise would be worth if it were true
    assert (honest.epsilon_at(1e-6), honest.epsilon_at(0.99e-6)) == (0.5, plan.epsilon_at(0.99e-6))


def test_a_plan_for_people_asks_whose_the_rows_are():
    person = replace(EVERYTHING, unit="person")
    check_rows(EVERYTHING, None)
    check_rows(person, [0, 0, 1])
    with pytest.raises(ParameterError, match=r"`unit` must be 'row' .* Say whose each row is with `groups`"):
        check_rows(person, None)


def test_the_usual_budget():
    convex = expost.calibrate_convex(expost.SmoothedNorm(1), l2=1e6)
    for plan in (expost.calibrate(), convex):
        assert (plan.epsilon, plan.delta) == (1.0, 1e-6)


def test_how_many_numbers_a_report_has():
    """Three scores of four columns: the gradient, half of a symmetric matrix, and an eigenvalue."""
    plan = replace(EVERYTHING, loss=expost.SoftmaxLoss(4))
    reduced = replace(plan, reduced=True)
    assert (plan.hessian_order(12), plan.entries(12)) == (12, 12 + 12 * 13 // 2 + 1)
    assert (reduced.hessian_order(12), reduced.entries(12)) == (4, 12 + 4 * 5 // 2 + 1)


def test_a_hessian_of_several_classes_is_whole_unless_it_is_said_to_be_reduced():
    """Its largest eigenvalue is half of the squared length; with the smallest of four masses a quarter."""
    curve = expost.SoftmaxLoss(4).curve
    assert accounting_of(curve, 3.0).released_curvature == pytest.approx(0.5 * 9.0, rel=1e-12)
    assert accounting_of(curve, 3.0, reduced=True).released_curvature == pytest.approx(0.25 * 9.0, rel=1e-12)


def test_only_a_loss_that_something_recalibrates_has_such_numbers():
    plan = expost.calibrate(sigma=3.0, l2=2.0, sigma_recalibration=9.0, recalibrate=True)
    assert (plan.recalibrate, plan.recalibration_entries) == (True, 32)
    assert plan.entries(5) == 32
    assert (EVERYTHING.recalibrate, EVERYTHING.recalibration_entries) == (False, 0)
    assert replace(plan, loss=expost.SoftmaxLoss(3)).recalibration_entries == 0


def test_a_loss_of_ones_own_is_named_and_its_arithmetic_is_not_promised():
    class Unnamed(LogCosh):
        name = 3

    plan = expost.calibrate(loss=Unnamed(2.0), sigma=10.0, l2=5.0)
    assert (plan.fields()["loss"], plan.fields()["loss_parameters"]) == ("Unnamed", {})
    named = expost.calibrate(loss=LogCosh(2.0), sigma=10.0, l2=5.0)
    assert (named.fields()["loss"], named.fields()["loss_parameters"]) == ("log_cosh", {"width": 2.0})
    assert "guarantee for real arithmetic: this loss states no error" in " ".join(printed(plan).split())
    assert "real arithmetic" not in printed(EVERYTHING)


def test_figures_line_up_on_the_right():
    plan = expost.calibrate(loss="logistic", report="leverage", epsilon=1.0)
    assert [column.justify for column in plan.__rich__().columns] == ["left", "right", "right"]
