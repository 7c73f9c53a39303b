"""From a budget to noise scales: the reference numbers, rounding towards privacy, and errors."""

import math
import re
import warnings
from dataclasses import replace
from itertools import pairwise

import pytest
from grids import grid
from scipy.optimize import brentq

import expost
from expost import LogisticLoss, PseudoHuber, SmoothedHinge, gaussian
from expost.exceptions import CalibrationError, ParameterError
from expost.privacy.certified_profile import Bracket
from expost.privacy.precision import Rounding
from expost.privacy.recipes import Target, check_delta
from expost.privacy.scales import NoiseScales

LOSSES = ["logistic", LogisticLoss(soft=True), "smoothed_hinge", "pseudo_huber"]
REPORTS = ["independent", "leverage", "dependent", "adaptive"]


@pytest.mark.parametrize(
    ("epsilon", "l2", "digits", "expected"),
    [(1.0, 0.5, 3, 4.371), (1.0, 0.2, 2, 8.76), (1.0, 5.0, 4, 4.2247), (0.1, 5.0, 2, 38.21)],
)
def test_noise_of_a_logistic_model_is_the_reference(epsilon, l2, digits, expected):
    plan = expost.calibrate(loss="logistic", norm=1.0, epsilon=epsilon, delta=1e-6, l2=l2)
    assert round(plan.sigma, digits) == expected


@pytest.mark.parametrize(("epsilon", "digits", "expected"), [(1.0, 4, 10.9576), (0.1, 2, 107.92)])
def test_classical_noise_is_the_reference(epsilon, digits, expected):
    plan = expost.calibrate(epsilon=epsilon, delta=1e-6, l2=5.0, calibration="kifer2012")
    assert round(plan.sigma, digits) == expected
    assert plan.delta_at(epsilon) < 1e-9  # the classical theorem adds far more noise than it needs


@pytest.mark.parametrize(
    ("scales", "expected"),
    [
        ({"report": "leverage", "sigma": 4.309}, 0.970),
        ({"report": "dependent", "sigma": 6.094, "sigma_gradient": 6.094}, 0.952),
    ],
)
def test_noise_that_the_hessian_may_have_is_the_reference(scales, expected):
    """The budget is met half a digit above the reference and missed half a digit below it."""
    above, below = (
        expost.calibrate(delta=1e-6, l2=5.0, sigma_hessian=expected + half, **scales).epsilon
        for half in (5e-4, -5e-4)
    )
    assert above <= 1.0 < below


def test_the_split_of_the_paper_adds_up_and_one_profile_does_not():
    """Three releases at 1e-6 each; with the same gradient the joint profile needs a ninth of the noise."""
    classical = expost.calibrate(
        epsilon=1.0, delta=3e-6, report="dependent", split=(0.2, 0.7, 0.1), calibration="kifer2012"
    )
    assert classical.sigma == pytest.approx(math.sqrt(8.0 * math.log(2e6) + 0.8) / 0.2, rel=1e-12)
    assert classical.sigma_gradient == pytest.approx(gaussian.sigma(0.7, 1e-6, sensitivity=1.0), rel=1e-12)
    root = math.sqrt(0.5)
    assert classical.sigma_hessian == pytest.approx(
        gaussian.sigma(0.1, 1e-6, sensitivity=0.25 * root), rel=1e-12
    )
    assert classical.l2 == 2.5
    together = expost.calibrate(
        report="dependent", delta=1e-6, l2=5.0, sigma=6.09, sigma_gradient=5.9, sigma_hessian=1.0
    )
    assert together.epsilon == pytest.approx(1.0, abs=2e-3)


@pytest.mark.parametrize(("loss", "report", "epsilon"), grid(LOSSES, REPORTS, [0.1, 1.0, 8.0]), ids=str)
def test_a_budget_is_spent_and_not_exceeded(loss, report, epsilon):
    plan = expost.calibrate(loss=loss, report=report, epsilon=epsilon, delta=1e-6)
    assert 0.99 * plan.delta <= plan.delta_at(plan.epsilon) <= plan.delta
    assert plan.epsilon_at(plan.delta) <= plan.epsilon * (1.0 + 1e-6)
    released = (plan.sigma_gradient, plan.sigma_hessian, plan.sigma_eigenvalue)
    assert [scale is not None for scale in released] == {
        "independent": [False, False, False],
        "leverage": [False, True, False],
        "dependent": [True, True, False],
        "adaptive": [True, True, True],
    }[report]


@pytest.mark.parametrize(
    "changes", [{"norm": 3.0}, {"fit_intercept": True}, {"delta": 1e-10}, {"delta": 0.05}]
)
def test_a_budget_is_spent_in_other_units_too(changes):
    plan = expost.calibrate(**changes)
    assert 0.99 * plan.delta <= plan.delta_at(plan.epsilon) <= plan.delta


def test_only_ratios_to_the_norm_matter():
    one, three = (expost.calibrate(norm=norm, l2=norm**2, report="leverage") for norm in (1.0, 3.0))
    assert three.sigma == pytest.approx(3.0 * one.sigma, rel=1e-12)
    assert three.sigma_hessian == pytest.approx(9.0 * one.sigma_hessian, rel=1e-12)
    assert expost.calibrate(fit_intercept=True, l2=5.0).sigma == pytest.approx(
        expost.calibrate(norm=math.sqrt(2.0), l2=5.0).sigma
    )


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_strong_regularisation_gives_the_analytic_gaussian_mechanism(epsilon):
    # The slope cannot move with the noise, so one tail counts, even where the label does not fix its sign.
    for loss, close in [
        ("logistic", 2e-5),
        (SmoothedHinge(0.1), 2e-5),
        (PseudoHuber(), 5e-4),
        (LogisticLoss(soft=True), 5e-4),
    ]:
        plan = expost.calibrate(loss=loss, epsilon=epsilon, delta=1e-6, l2=1e9)
        assert plan.sigma == pytest.approx(gaussian.sigma(epsilon, 1e-6), rel=close)


@pytest.mark.long
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_more_regularisation_never_needs_more_noise(loss):
    sigmas = [expost.calibrate(loss=loss, l2=l2).sigma for l2 in (0.7, 3.0, 30.0)]
    assert all(later <= earlier * (1.0 + 1e-5) for earlier, later in pairwise(sigmas))


@pytest.mark.parametrize(("loss", "epsilon"), grid(LOSSES, [0.1, 1.0, 8.0], together=1), ids=str)
def test_the_default_regularisation_costs_at_most_a_twentieth_of_the_noise(loss, epsilon):
    plan = expost.calibrate(loss=loss, epsilon=epsilon)
    assert plan.sigma <= 1.0501 * expost.calibrate(loss=loss, epsilon=epsilon, l2=1e9).sigma


@pytest.mark.long
@pytest.mark.parametrize(
    ("loss", "share"), grid([LogisticLoss(), SmoothedHinge(0.5)], [0.02, 0.5, 1.0], together=1), ids=str
)
def test_regularisation_at_the_floor_or_below_is_refused_with_a_way_out(loss, share):
    floor = loss.curve.max_curvature / math.expm1(1.0)
    l2 = share * floor
    with pytest.raises(CalibrationError, match=f"its floor is l2 > {floor:.6g}") as refusal:
        expost.calibrate(loss=loss, epsilon=1.0, l2=l2)
    suggested = float(re.search(r"`epsilon` to (\S+) or more", str(refusal.value))[1])
    for epsilon in (suggested, 1.01 * suggested):
        assert expost.calibrate(loss=loss, epsilon=epsilon, l2=l2).delta_at(epsilon) <= 1e-6
    assert expost.calibrate(loss=loss, epsilon=1.0, l2=1.01 * floor).delta_at(1.0) <= 1e-6


def test_the_classical_recipe_has_a_floor_of_its_own():
    with pytest.raises(CalibrationError, match=r"l2 >= 0\.5 at epsilon=1; got l2=0\.1") as refusal:
        expost.calibrate(l2=0.1, calibration="kifer2012")
    suggested = float(re.search(r"epsilon to (\S+)\.$", str(refusal.value))[1])
    assert expost.calibrate(l2=0.1, epsilon=suggested, calibration="kifer2012").l2 == 0.1
    with pytest.raises(CalibrationError):  # and no less
        expost.calibrate(l2=0.1, epsilon=0.999 * suggested, calibration="kifer2012")


def test_the_classical_recipe_pays_for_printed_numbers_or_is_refused():
    """Where so many rows are to be exact, what computed Hessians may be wrong by costs too much."""
    few = {"calibration": "kifer2012", "report": "leverage"}
    with pytest.raises(CalibrationError, match="does not pay for printed numbers"):
        expost.calibrate(split=[0.01, 0.99], rows_at_most=10**13, **few)
    assert expost.calibrate(split=[0.5, 0.5], **few).delta_at(1.0) <= 1e-6


def test_squared_loss_has_no_default_scale():
    with pytest.raises(CalibrationError, match="SquaredLoss a worst-case guarantee"):
        expost.calibrate(loss="squared")
    plan = expost.calibrate(loss="squared", sigma=2.0, l2=1.0)
    assert plan.epsilon == plan.epsilon_at(1e-6) == math.inf
    assert plan.delta_at(100.0) == 1.0


def test_explicit_scales_come_with_what_they_guarantee():
    plan = expost.calibrate(sigma=4.6, l2=0.5, epsilon=77.0, delta=1e-6)
    assert plan.sigma == 4.6
    assert plan.epsilon == plan.profile.epsilon(1e-6) < 1.0


CLASSICAL = {"calibration": "kifer2012", "report": "dependent"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epsilon": 0.0}, "`epsilon` must be"),
        ({"epsilon": math.inf}, "`epsilon` must be"),
        ({"delta": 1.0}, "`delta` must be"),
        ({"norm": -1.0}, "`norm` must be"),
        ({"l2": 0.0}, "`l2` must be"),
        ({"loss": "cubic"}, "`loss` must be a Loss or one of 'logistic'"),
        ({"loss": LogisticLoss}, "`loss` must be"),
        ({"report": "everything"}, "`report` must be one of 'independent'"),
        ({"calibration": "exact"}, "`calibration` must be one of"),
        ({"split": 0.5}, "`split` must be None where nothing but the model"),
        ({"report": "leverage", "split": 1.0}, "0 < split < 1"),
        ({"report": "leverage", "split": (0.5, 0.5)}, "0 < split < 1"),
        ({**CLASSICAL}, "`split` must be 3 positive epsilons"),
        ({**CLASSICAL, "split": (0.2, 0.8)}, "`split` must be 3 positive epsilons"),
        ({**CLASSICAL, "split": (0.5, -0.5, 1.0)}, "`split` must be 3 positive epsilons"),
        ({**CLASSICAL, "split": (0.2, 0.7, 0.2)}, "add up to epsilon=1"),
        ({"sigma": 1.0}, "An explicit `sigma` needs an explicit `l2`"),
        ({"sigma": 1.0, "l2": 1.0, "split": 0.5}, "`split` must be None where the scales are given"),
        ({"sigma": 1.0, "l2": 1.0, "sigma_hessian": 1.0}, "None with report='independent'"),
        ({"l2": 1.0, "report": "leverage", "sigma_hessian": 1.0}, "come all together"),
        ({"l2": 1.0, "report": "leverage", "sigma": 1.0}, "come all together"),
        ({"l2": 1.0, "report": "leverage", "sigma": 1.0, "sigma_hessian": -1.0}, "sigma_hessian > 0"),
    ],
)
def test_bad_parameters_are_refused_in_one_line(arguments, message):
    with pytest.raises(ParameterError, match=re.escape(message)) as refusal:
        expost.calibrate(**arguments)
    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) < 200


@pytest.mark.parametrize("report", REPORTS[1:])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_by_default_the_hessian_costs_the_model_little(loss, report):
    """Its noise is a fixed multiple of the model's, in units of what a record moves each."""
    alone = expost.calibrate(loss=loss)
    plan = expost.calibrate(loss=loss, report=report)
    curve = plan.loss.curve
    model = curve.max_slope / plan.sigma
    if plan.sigma_gradient is not None:
        assert plan.sigma_gradient == pytest.approx(plan.sigma, rel=1e-12)
        model *= math.sqrt(2.0)
    curved = replace(plan.scales, sigma_gradient=None).shift(0.0, curve.max_curvature)
    assert curved == pytest.approx(model / (math.sqrt(2.0) * 12.0), rel=1e-12)
    assert plan.l2 == alone.l2
    assert curve.max_slope / model <= 1.01 * alone.sigma


@pytest.mark.parametrize(("report", "split"), [("leverage", 0.98), ("dependent", 0.5), ("adaptive", 0.7)])
def test_a_split_gives_the_hessian_all_that_is_left(report, split):
    """The model has its share of the precision, a gradient nearly all of the rest, and less noise fails."""
    alone = expost.calibrate().sigma
    plan = expost.calibrate(report=report, split=split)
    assert plan.sigma == pytest.approx(alone / math.sqrt(split), rel=1e-12)
    if plan.sigma_gradient is not None:
        assert plan.sigma_gradient == pytest.approx(alone / math.sqrt(0.96 * (1.0 - split)), rel=1e-12)
    assert (plan.sigma_gradient is None) == (report == "leverage")
    if report == "adaptive":
        assert plan.sigma_eigenvalue == pytest.approx(math.sqrt(2.0) * plan.sigma_hessian, rel=1e-12)
    else:
        assert plan.sigma_eigenvalue is None
    less = replace(plan, scales=replace(plan.scales, sigma_hessian=0.99 * plan.sigma_hessian))
    assert plan.delta_at(1.0) <= plan.delta < less.delta_at(1.0)
    assert plan.sigma_hessian < 0.3 * expost.calibrate(report=report).sigma_hessian


@pytest.mark.parametrize("report", REPORTS[1:])
def test_the_default_works_just_above_the_floor_of_the_regularisation(report):
    """All scales grow together, so some noise always suffices."""
    floor = 0.25 / math.expm1(1.0)
    plan = expost.calibrate(report=report, l2=1.01 * floor)
    assert plan.delta_at(1.0) <= plan.delta


def test_just_above_the_floor_printed_statistics_may_leave_no_scale_and_more_l2_helps():
    """Their rounding is a share of their noise, which no amount of noise makes smaller."""
    budget = {"report": "dependent", "epsilon": 1e-3, "delta": 1e-11}
    floor = 0.25 / math.expm1(1e-3)
    with pytest.raises(
        CalibrationError, match=r"no noise scale for epsilon=0\.001, .* Raise `epsilon`, `delta` or `l2`"
    ):
        expost.calibrate(l2=1.004 * floor, **budget)
    plan = expost.calibrate(l2=1.05 * floor, **budget)
    assert plan.delta_at(1e-3) <= 1e-11


def test_a_budget_below_the_price_of_printing_is_refused_with_that_price():
    budget = {"delta": 1e-290, "loss": "logistic"}
    with pytest.raises(
        CalibrationError, match=r"less than printed numbers cost\. Raise `epsilon` above 1\.3e-07"
    ):
        expost.calibrate(epsilon=1e-9, **budget)
    plan = expost.calibrate(epsilon=1e-6, **budget)
    assert plan.delta_at(1e-6) <= 1e-290


def test_a_certificate_that_hardly_falls_is_still_met_with_its_margin():
    """A record that is removed decides here, and what it costs falls by 1e-6 only as the noise doubles."""
    delta = 0.08171431999961426
    plan = expost.calibrate(
        loss="pseudo_huber",
        epsilon=0.47631125720974044,
        delta=delta,
        report="leverage",
        norm=0.18002054810890955,
    )
    assert -2e-7 < plan.delta_at(plan.epsilon) / delta - 1.0 <= -1e-7


@pytest.mark.parametrize("coarse", [-0.3, 0.0, 0.3])
@pytest.mark.parametrize("steep", [2.0, 40.0])
def test_the_search_ends_on_the_private_side_of_a_jump(coarse, steep):
    """A certificate may jump where one more round is taken, and its coarse values may cross elsewhere."""
    delta, jump = 1e-6, 1.2345

    class Jumping:
        width = 1e-3

        def __init__(self, scale):
            self.gone = math.log(scale / jump)

        def delta(self, epsilon, rtol=None):
            if rtol is not None:
                return Bracket(0.0, delta * math.exp(coarse - steep * self.gone))
            return Bracket(0.0, delta * math.exp(-steep * self.gone + (0.5 if self.gone < 0.0 else -0.5)))

    found = Target(1.0, delta, LogisticLoss(), 1.0, "independent").smallest(Jumping, 1.0)
    assert jump <= found < jump * (1.0 + 2e-6)


def test_a_reduced_hessian_needs_a_hessian():
    with pytest.raises(
        ParameterError,
        match="`reduced` must be False with report='independent', which has no Hessian; got reduced=True",
    ):
        expost.calibrate(loss=expost.SoftmaxLoss(3), reduced=True)
    for loss in ("logistic", expost.SoftmaxLoss(2)):
        with pytest.raises(ParameterError, match="`reduced` must be False without more than two classes"):
            expost.calibrate(loss=loss, report="leverage", reduced=True)


def test_nobody_plans_for_more_than_a_million_billions_of_rows():
    assert expost.calibrate(rows_at_most=10**15).precision.rows_at_most == 10**15
    with pytest.raises(ParameterError, match="`rows_at_most` must be at most 1e15"):
        expost.calibrate(rows_at_most=10**15 + 1)


def test_a_convex_model_has_two_thousand_parameters_at_most():
    with pytest.raises(ParameterError, match="`n_parameters` must be at most 2000"):
        expost.calibrate_convex(expost.SmoothedNorm(2001), l2=5.0, sigma=50.0)


def test_a_large_delta_is_warned_of():
    """It is about the chance that a person is promised nothing: one in a thousand is the largest."""
    with pytest.warns(expost.exceptions.LargeDeltaWarning, match=r"at most 0\.001.*got delta=0\.0011"):
        check_delta(0.0011)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert check_delta(1e-3) == 1e-3
    for delta in (0.0, 1.0, 1.5):
        with pytest.raises(ParameterError, match="`delta` must be"):
            check_delta(delta)


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_the_default_regularisation_is_the_smallest_that_costs_a_twentieth_of_the_noise(epsilon):
    """Of counts, by the first certificate: more than half of the noise for each unit of a prediction."""
    plan = expost.calibrate(loss="bounded_poisson", epsilon=epsilon)

    def delta(l2, sigma):
        return plan.accounting.profile(l2, NoiseScales(sigma), plan.rounding).delta(epsilon).upper

    start = plan.accounting.slope * gaussian.sigma(epsilon, 1e-6)
    flat = brentq(lambda sigma: math.log(delta(math.inf, sigma) / 1e-6), 0.5 * start, 2.0 * start)
    assert delta(0.999 * plan.l2, 1.05 * flat) > 1e-6
    assert 0.999e-6 < delta(plan.l2, 1.05 * flat) <= 1e-6 * (1.0 + 1e-6)


@pytest.mark.parametrize("norm", [1e-30, 1e30])
def test_the_smallest_and_the_largest_norm_are_allowed(norm):
    plan, unit = (expost.calibrate(loss="logistic", norm=one, fit_intercept=False) for one in (norm, 1.0))
    assert plan.sigma == pytest.approx(norm * unit.sigma, rel=1e-12, abs=0.0)
    with pytest.raises(ParameterError, match="`norm` must be between 1e-30 and 1e30"):
        expost.calibrate(loss="logistic", norm=norm**1.01)


def test_what_printing_costs_raises_the_floor_of_the_regularisation():
    """Twice the price of discrete noise is missing from epsilon, which counts where that is tiny."""
    epsilon = 1e-13
    price = 2.0 * Rounding.planned(epsilon, curvature=0.25).law(epsilon)
    with pytest.raises(
        CalibrationError, match=re.escape(f"printed numbers cost. Raise `epsilon` above {price:.2g}")
    ):
        expost.calibrate(loss="logistic", epsilon=0.99 * price)
    needed = 0.25 / (epsilon - price)
    with pytest.raises(CalibrationError, match=re.escape(f"printed numbers need l2 > {needed:.8g}")):
        expost.calibrate(loss="logistic", epsilon=epsilon, l2=0.999999 * needed)
    plan = expost.calibrate(loss="logistic", epsilon=epsilon, l2=1.001 * needed)
    assert 0.99e-6 < plan.delta_at(epsilon) <= 1e-6
