"""Compositions of plans: on the private side of the truth, and close to it."""

import io
import math
import sys
import time
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from own_losses import LogCosh
from rich.console import Console
from scipy.special import expit, ndtr

import expost
from expost import gaussian
from expost.exceptions import MissingExtraError, ParameterError
from expost.privacy import renyi
from expost.privacy.composition import Composition, JointLoss, grid_masses
from expost.privacy.profile_curve import ProfileCurve, chord, curve_of
from expost.privacy.shapes import classification_loss

SMALL = {"epsilon": 0.5, "delta": 1e-7}
MAKERS = {
    "logistic": lambda: expost.calibrate(loss="logistic", **SMALL),
    "capped": lambda: expost.calibrate(
        loss=classification_loss(2, 0.5, 1e-7, radius=math.sqrt(2.0)), fit_intercept=True, **SMALL
    ),
    "leverage": lambda: expost.calibrate(loss="logistic", report="leverage", **SMALL),
    "smoothed hinge": lambda: expost.calibrate(loss="smoothed_hinge", **SMALL),
    "pseudo-Huber": lambda: expost.calibrate(loss="pseudo_huber", **SMALL),
    "softmax": lambda: expost.calibrate(loss=expost.SoftmaxLoss(3), **SMALL),
    "convex": lambda: expost.calibrate_convex(expost.SmoothedNorm(1), l2=50.0, **SMALL),
    "large": lambda: expost.calibrate(loss="logistic", epsilon=8.0, delta=1e-6),
    "tiny": lambda: expost.calibrate(loss="logistic", epsilon=1e-3, delta=1e-6),
}
PLANS = {name: cache(make) for name, make in MAKERS.items()}
# Those whose certificates take a second.
SLOW = {
    "softmax": PLANS.pop("softmax"),
    "any two dimensions": cache(lambda: expost.calibrate_convex(expost.SmoothedNorm(2), l2=50.0, **SMALL)),
    "classes with a Hessian": cache(
        lambda: expost.calibrate(loss=expost.SoftmaxLoss(3), report="leverage", **SMALL)
    ),
}
NAMES = [*PLANS, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)]


def flat(plan):
    """The plan without a determinant and without printing: a Gaussian mechanism."""
    return replace(plan, l2=math.inf, precision=None)


def shift_of(plan):
    return plan.curve.max_slope * plan.radius / plan.sigma


@pytest.mark.long
def test_ten_and_fifty_plans_cost_little_more_than_gaussian_mechanisms(unremembered):
    plan = PLANS["logistic"]()
    ProfileCurve.of(plan)  # with all imports done
    start = time.process_time()
    ten, fifty = (Composition((ProfileCurve.of(plan),) * count).epsilon_at(1e-6) for count in (10, 50))
    assert time.process_time() - start < 2.0
    assert gaussian.epsilon(1e-6, sensitivity=math.sqrt(10) * shift_of(flat(plan)), sigma=1.0) < ten < 1.58
    assert 3.7232 < fifty < 1.05 * 3.7232


@pytest.mark.parametrize(
    "budgets", [[(0.5, 1e-7)] * 10, [(0.1, 1e-8), (1.0, 1e-6), (4.0, 1e-5)], [(1e-3, 1e-6)] * 3]
)
def test_never_below_the_exact_composition_of_gaussian_mechanisms(budgets):
    plans = [flat(expost.calibrate(loss="logistic", epsilon=e, delta=d)) for e, d in budgets]
    together = math.hypot(*map(shift_of, plans))
    composed = expost.compose(plans)
    for epsilon in np.linspace(0.0, 1.3 * composed.epsilon_at(1e-9), 60):
        exact = float(gaussian.delta(epsilon, sensitivity=together, sigma=1.0))
        assert composed.delta_at(epsilon) >= exact
    for delta in (1e-3, 1e-6, 1e-8):
        exact = float(gaussian.epsilon(delta, sensitivity=together, sigma=1.0))
        assert exact <= composed.epsilon_at(delta) <= 1.01 * exact


def laws(plan, rows, labels):
    """The law of a one-dimensional model on cells of coefficients, without the first record and with it.

    The noise is a monotone function of the released coefficient, so the masses of cells are exact. Looking at
    the cell only is post-processing: divergences between these laws are lower bounds.
    """
    edges = np.linspace(-1.0, 1.0, 801) * (9.0 * plan.sigma + 35.0) / plan.l2
    found = []
    for first in (1, 0):
        signed, count = np.unique((np.array(rows) * np.array(labels))[first:], return_counts=True)
        noise = count @ (signed[:, None] * expit(-np.outer(signed, edges))) - plan.l2 * edges  # falls
        found.append(-np.diff(ndtr(noise / plan.sigma)))
    return found


TABLES = [([1.0], [1]), ([1.0, 1.0, -1.0], [1, -1, 1]), ([1.0] + [-0.05] * 2000, [1] * 2001)]


@pytest.mark.long
@pytest.mark.parametrize(("l2", "scale"), [(0.2, 2.0), (1.0, 1.0), (10.0, 1.0)])
def test_never_below_two_real_mechanisms(l2, scale):
    """Two models of tiny tables that differ by one record; lower bounds on their joint divergence."""
    budgets = ((0.5 * scale, 1e-4), (1.0 * scale, 1e-5))
    plans = [expost.calibrate(epsilon=e, delta=d, l2=l2, fit_intercept=False) for e, d in budgets]
    composed = expost.compose(plans)
    pairs = []
    for rows, labels in TABLES:
        joint = [np.outer(*both) for both in zip(*(laws(p, rows, labels) for p in plans), strict=True)]
        pairs += [joint, joint[::-1]]
    for epsilon in (0.0, 0.3, 1.0, 2.0):
        divergences = [float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum()) for p, q in pairs]
        assert max(divergences) <= composed.delta_at(epsilon) * (1.0 + 1e-6)
        if l2 == 10.0 and epsilon <= 1.0:
            assert max(divergences) > 0.9 * composed.delta_at(epsilon)


@pytest.mark.parametrize("l2", [0.2, 1.0, 10.0])
def test_each_direction_is_above_real_mechanisms(l2):
    """The two directions are certified apart; no table exceeds either, and some reach that of a removal."""
    plan = expost.calibrate(epsilon=1.0, delta=1e-5, l2=l2, fit_intercept=False)
    for epsilon in (0.0, 0.1, 0.5):
        bounds = plan.profile.directed(epsilon, rtol=1e-3)
        reached = 0.0
        for rows, labels in TABLES:
            without, with_it = laws(plan, rows, labels)
            for (p, q), bound in zip(((with_it, without), (without, with_it)), bounds, strict=True):
                # The masses are differences of numbers near 1.
                divergence = float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum()) - 1e-13
                assert divergence <= bound
            reached = max(reached, divergence / bound)
        assert reached > 0.95


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_one_plan_costs_what_it_promises(name):
    plan = (PLANS | SLOW)[name]()
    alone = expost.compose([plan])
    assert alone.delta_at(plan.epsilon) <= plan.delta
    assert alone.epsilon_at(plan.delta) <= plan.epsilon
    assert alone.epsilon_at(plan.delta) >= 0.999 * plan.epsilon


@pytest.mark.parametrize("name", NAMES)
def test_the_curve_is_below_the_certificate_at_knots_and_convex(name):
    plan = (PLANS | SLOW)[name]()
    curve = curve_of(plan)
    for direction, knots in enumerate((curve.adding, curve.removing)):
        epsilons, deltas = np.array(knots).T
        for epsilon, delta in knots[:: len(knots) // 5]:
            assert delta <= plan.profile.directed(epsilon, rtol=1e-3)[direction]
        slopes = np.diff(deltas) / np.diff(np.expm1(epsilons))
        assert np.all(np.diff(slopes) > 0.0)
        assert np.all(slopes < 0.0)
    # Convex where the two meet: the slopes on both sides of e^0 = 1 (h(1/a) = 1 - 1/a + h(a)/a).
    right, left = (
        (knots[1][1] - knots[0][1]) / math.expm1(knots[1][0]) for knots in (curve.adding, curve.removing)
    )
    assert -1.0 + curve.adding[0][1] - left <= right + 1e-9


@pytest.mark.parametrize("name", NAMES)
def test_directions_are_below_what_is_certified_for_both(name):
    profile = (PLANS | SLOW)[name]().profile
    for epsilon in (0.0, 0.01, 0.3):
        both = profile.delta(epsilon, rtol=1e-3).upper
        adding, removing = profile.directed(epsilon, rtol=1e-3)
        assert max(adding, removing) <= 1.002 * both
        assert adding == pytest.approx(both, rel=2e-3) or removing == pytest.approx(both, rel=2e-3)


@pytest.mark.parametrize("name", NAMES)
def test_the_inverse_is_on_the_private_side(name):
    composed = expost.compose([(PLANS | SLOW)[name]()] * 3)
    for delta in (1e-3, 1e-6, 1e-9):
        epsilon = composed.epsilon_at(delta)
        assert composed.delta_at(epsilon) <= delta
        assert epsilon == 0.0 or composed.delta_at(0.999 * epsilon) > delta


@pytest.mark.parametrize("name", ["logistic", "pseudo-Huber", "large", NAMES[-1]])
def test_composing_costs_no_more_than_adding_up_and_more_than_one(name):
    plan = (PLANS | SLOW)[name]()
    for count in (2, 5):
        composed = expost.compose([plan] * count)
        assert composed.epsilon_at(count * plan.delta) <= count * plan.epsilon
        assert composed.delta_at(plan.epsilon) >= plan.delta


@pytest.mark.parametrize("makers", [PLANS, pytest.param(PLANS | SLOW, marks=pytest.mark.slow)])
def test_plans_of_all_kinds_compose_in_any_order(makers):
    plans = [make() for make in makers.values()]
    one, other = expost.compose(plans), expost.compose(plans[::-1])
    assert one.epsilon_at(1e-6) == pytest.approx(other.epsilon_at(1e-6), rel=1e-6)
    assert one.epsilon_at(1e-6) > expost.compose(plans[1:]).epsilon_at(1e-6)
    assert one.epsilon_at(1e-6) > 8.0
    assert one.epsilon_at(sum(plan.delta for plan in plans)) < sum(plan.epsilon for plan in plans)


@pytest.mark.parametrize("name", NAMES)
def test_the_dots_are_connected_as_google_does(name):
    from dp_accounting.pld import pld_pmf

    curve = curve_of((PLANS | SLOW)[name]())
    step = curve.last / 40
    places = np.arange(1, len(grid_masses(curve, step)[0]) // 2 + 1)
    below = 1.0 - np.exp(-step * places) + np.exp(-step * places) * chord(curve.removing, step * places)
    values = np.concatenate([below[::-1], [curve.adding[0][1]], chord(curve.adding, step * places)])
    theirs = pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(step, -places[-1], places[-1], values)
    np.testing.assert_allclose(
        grid_masses(curve, step)[0], theirs.to_dense_pmf()._probs, rtol=1e-9, atol=1e-12 / step
    )


@pytest.mark.long
@pytest.mark.parametrize("promise", [{"epsilon": 0.1}, {"delta": 1e-12}])
def test_a_false_promise_lowers_nothing(promise):
    """A plan is read by its noise; what it says of itself counts only where that certifies it."""
    plan = PLANS["logistic"]()
    false = replace(plan, **promise)
    for count in (1, 3):
        truth, found = (expost.compose([one] * count).epsilon_at(1e-6) for one in (plan, false))
        assert found > 0.98 * truth


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_loss_without_a_worst_case_has_no_composition_either(count):
    plan = expost.calibrate(loss="squared", sigma=1.0, l2=1.0)
    composed = expost.compose([plan] * count)
    assert composed.delta_at(100.0) == 1.0
    assert composed.epsilon_at(0.5) == math.inf


def test_nothing_costs_nothing():
    assert expost.compose([]).delta_at(0.0) == 0.0
    assert expost.compose([]).epsilon_at(1e-9) == 0.0


def test_what_is_no_plan_is_refused():
    with pytest.raises(
        ParameterError, match=r"`plans` must be plans of `expost.calibrate` or `plan_`; got plans='int'"
    ):
        expost.compose([1])
    with pytest.raises(ParameterError, match="`epsilon`"):
        expost.compose([PLANS["logistic"]()]).delta_at(-1.0)


def test_without_the_extra_one_sentence_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting.pld", None)
    plan = PLANS["logistic"]()
    assert expost.compose([plan]).epsilon_at(1e-7) <= 0.5  # one needs nothing
    with pytest.raises(MissingExtraError, match=r"pip install 'expost\[ledger\]'"):
        expost.compose([plan, plan])


def test_a_composition_is_shown_as_a_table():
    composed = expost.compose([PLANS["logistic"]()] * 10)
    assert repr(composed) == "<Composition of 10>"
    assert "1.538" in composed._repr_html_()
    assert [column.justify for column in composed.__rich__().columns] == ["left", "right"]
    shown = io.StringIO()
    Console(file=shown, width=80, color_system=None).print(composed)
    assert "Composition of 10 publications (public)" in " ".join(shown.getvalue().split())
    assert f"{composed.epsilon_at(1e-6):.4g}" in shown.getvalue()


def test_a_delta_that_even_epsilon_zero_meets_costs_nothing():
    curve = curve_of(PLANS["logistic"]())
    assert curve.epsilon(curve.adding[0][1]) == 0.0
    assert curve.epsilon(0.999 * curve.adding[0][1]) > 0.0


FALLING = ((0.0, 0.3), (1.0, 0.1), (2.0, 0.05))


@pytest.mark.parametrize(
    "wrong",
    [
        (),
        ((0.5, 0.3), (1.0, 0.1)),
        ((0.0, 1.5), (1.0, 0.1)),
        ((0.0, 0.3), (1.0, -0.1)),
        ((0.0, 0.3), (1.0, 0.1), (1.0, 0.05)),
        ((0.0, 0.3), (1.0, 0.3)),
        ((0.0, math.nan), (1.0, 0.1)),
        ((0.0, 0.3), (math.nan, 0.1)),
        ((0.0, 0.3), (701.0, 0.1)),
        ((0.0, 0.3), (1.0, 0.29), (2.0, 0.05)),
        ((0.0, 0.9), (0.5, 0.3), (1.0, 0.29), (2.0, 0.05)),
        ((0.0, 0.3), (1.0, 0.248452), (2.0, 0.107862)),  # the slopes are -0.0300 and -0.0301
    ],
)
def test_what_is_no_profile_is_no_curve(wrong):
    """Epsilons rise from 0 to at most 700, deltas are probabilities that fall, convex in exp(epsilon)."""
    for adding, removing, name in ((wrong, wrong, "adding"), (FALLING, wrong, "removing")):
        with pytest.raises(ParameterError, match=f"`{name}` must be (pairs of rising|convex in)"):
            ProfileCurve(adding, removing)


def test_knots_in_a_line_are_a_curve():
    epsilons = np.array([0.0, 0.5, 1.0, 1.3])
    knots = tuple(zip(epsilons.tolist(), (0.3 - 0.1 * np.expm1(epsilons)).tolist(), strict=True))
    assert ProfileCurve(knots, knots).last == 1.3


@pytest.mark.parametrize(
    "wrong", [((-17, 1.0),), ((209, 1.0),), ((0, -1.0),), ((0, math.inf),), ((0, math.nan),)]
)
def test_what_is_no_divergence_is_refused(wrong):
    """Numbers of orders from -16 to 208, and divergences of at least 0."""
    for number, orders in enumerate(((wrong, ()), ((), wrong))):
        with pytest.raises(ParameterError, match=("`adding_orders`", "`removing_orders`")[number]):
            ProfileCurve(FALLING, FALLING, *orders)
    assert ProfileCurve(FALLING, FALLING, ((-16, 0.0), (208, 1.0))).adding_orders[1] == (208, 1.0)


def test_a_curve_ends_where_the_longer_of_its_directions_does():
    curve = ProfileCurve(FALLING[:2], FALLING)
    assert curve.last == curve.backwards.last == 2.0
    for one in (curve, curve.backwards):
        assert one.delta(5.0) == 0.1  # beyond its last knot the last delta holds
        assert one.epsilon(0.1) == 1.0
        assert one.epsilon(0.07) == math.inf


def test_the_inverse_of_any_curve_is_on_the_private_side_to_the_last_digit():
    """Of random convex curves, between their knots and at them."""
    rng = np.random.default_rng(3)
    for _ in range(100):
        epsilons = np.append(0.0, np.cumsum(rng.exponential(size=6)))
        both = np.sort(rng.random((2, 7)), axis=1)[:, ::-1] * np.exp(-epsilons)
        curve = ProfileCurve._convex(epsilons, *both)
        least = max(curve.adding[-1][1], curve.removing[-1][1])
        for delta in [*rng.uniform(least, 1.0, 20), *(delta for _, delta in curve.adding if delta >= least)]:
            epsilon = curve.epsilon(delta)
            assert curve.delta(epsilon) <= delta
            assert epsilon == 0.0 or curve.delta(epsilon * (1.0 - 1e-9)) > delta * (1.0 - 1e-12)


@pytest.mark.parametrize("shift", [0.1, 0.3, 2.0])
def test_where_a_curve_ends_tells_the_variance_of_the_loss(shift):
    """The loss of a Gaussian mechanism has the variance shift²; its curve ends at a delta of 1e-17."""
    epsilons = np.linspace(0.0, 12.0 * shift + shift**2, 400)
    deltas = gaussian.delta(epsilons, sensitivity=shift, sigma=1.0)
    curve = ProfileCurve._convex(epsilons[deltas > 1e-17], *[deltas[deltas > 1e-17]] * 2)
    assert curve.variance == pytest.approx(shift**2, rel=0.15)


def test_curves_that_begin_apart_are_of_no_mechanism():
    """At epsilon 0 both directions are the total variation distance."""
    with pytest.raises(ParameterError, match=r"`removing` must be a curve that begins where `adding` does"):
        ProfileCurve(((0.0, 0.3),), ((0.0, 0.2),))


@pytest.mark.long
def test_a_loss_that_has_no_hash_composes_like_any_other():
    class Free(LogCosh):
        __hash__ = None

    plan = expost.calibrate(loss=Free(2.0), sigma=40.0, l2=5.0)
    with pytest.raises(TypeError, match="unhashable"):
        hash(plan)
    assert 0.999 * plan.epsilon < curve_of(plan).epsilon(plan.delta) <= plan.epsilon


def test_a_curve_falls_again_after_a_level_stretch():
    """A certificate may stay where it was for a while; what it falls to later counts."""
    epsilons, deltas = np.array([0.0, 1.0, 2.0, 3.0]), np.array([0.5, 0.2, 0.2, 0.01])
    curve = ProfileCurve._convex(epsilons, deltas, deltas)
    assert [epsilon for epsilon, _ in curve.adding] == [0.0, 1.0, 3.0]
    assert curve.epsilon(0.01) == 3.0
    assert curve.delta(2.0) < 0.2


def test_a_curve_begins_no_higher_than_the_chord_across_zero():
    """Through (1 - b, b + (1 - b)v) and (1 + a, u), the two directions being one convex function."""
    u, v = 0.02, 0.05
    a, b = math.e - 1.0, 1.0 - math.exp(-1.0)
    curve = ProfileCurve._convex(np.array([0.0, 1.0]), np.array([0.9, u]), np.array([0.9, v]))
    chord_at_one = np.interp(1.0, [1.0 - b, 1.0 + a], [b + (1.0 - b) * v, u])
    assert curve.adding[0][1] == curve.removing[0][1] == pytest.approx(chord_at_one, rel=1e-12)
    assert (curve.adding[1:], curve.removing[1:]) == (((1.0, u),), ((1.0, v),))


def test_errors_of_the_convolution_are_those_of_its_transforms():
    """Higham's bound: eight roundings for each level of a transform, of the norm of the masses.

    A curve that counts n times is transformed back and forth n + 1 times, two laws three times.
    """

    def lost(size, transforms, norm):
        return transforms * 8.0 * 2.0**-53 * math.log2(2.0 * size) * math.sqrt(2.0 * size) * norm

    step, curves = 0.05, [curve_of(PLANS[name]()) for name in ("logistic", "leverage")]
    total, smallest = 0.0, 1.0
    for place, (curve, count) in enumerate(zip(curves, (3, 1), strict=True)):
        masses, rounding = grid_masses(curve, step)
        part = JointLoss.of({curve: count}, step).law
        both = JointLoss.of(dict(zip(curves[: place + 1], (3, 1), strict=False)), step)
        norm = float(np.linalg.norm(masses))
        smallest = min(smallest, norm)
        total += count * rounding + lost(part.size + len(masses), count + 1, norm)
        total += lost(both.law.size + part.size, 3, smallest)
        assert both.error == pytest.approx(total, rel=1e-12, abs=0.0)
        assert both.delta(0.1) == both.law.get_delta_for_epsilon(0.1) + both.error


def test_one_publication_is_in_the_singular():
    curve = ProfileCurve(((0.0, 0.5), (1.0, 1e-9)), ((0.0, 0.5), (1.0, 1e-9)))
    assert "Composition of 1 publication (public)" in Composition((curve,))._repr_html_()
    assert "Composition of 0 publications (public)" in Composition(())._repr_html_()


def test_a_publication_that_costs_nothing_does_not_hide_the_others():
    """A curve that ends where it begins made a composition as cheap as its dearest part."""
    silent, lost = (ProfileCurve(((0.0, delta),), ((0.0, delta),)) for delta in (1e-18, 1.0))
    ten = expost.compose([expost.calibrate(loss="logistic", norm=1.0, epsilon=0.5, delta=1e-7)] * 10)
    for count in (1, 3):
        together = Composition(ten.curves + (silent,) * count)
        assert together.epsilon_at(1e-6) == pytest.approx(ten.epsilon_at(1e-6), rel=1e-3)
        assert together.delta_at(1.0) == pytest.approx(ten.delta_at(1.0), rel=1e-3)
    assert Composition((silent, silent)).epsilon_at(1e-9) == 0.0
    assert Composition((silent, silent)).delta_at(0.0) >= 2e-18
    assert Composition((silent, lost)).delta_at(1.0) == 1.0


KNOTS = ((0.0, 0.3), (0.7, 0.1), (1.9, 2e-3)), ((0.0, 0.3), (0.5, 0.12), (1.1, 5e-3))


@pytest.mark.parametrize("step", [0.05, 0.1, 0.3])
def test_masses_are_a_law_whose_profile_is_that_of_the_curve(step):
    """They add up to one with what may be lost at once, which the last values are; falls are rounded."""
    curve = ProfileCurve(*KNOTS)
    masses, rounding = grid_masses(curve, step)
    losses = step * (np.arange(len(masses)) - len(masses) // 2)
    assert np.sum(masses) == pytest.approx(1.0 - 2e-3, abs=1e-12)
    for place in (0, 3, 7, len(losses) // 2 - 1):
        at = losses[len(losses) // 2 + place]
        above = np.sum(-np.expm1(np.minimum(at - losses, 0.0)) * masses) + 2e-3
        assert above == pytest.approx(float(chord(curve.adding, at)), rel=1e-9)
    places = losses[losses > 0.0]
    values = np.sum(chord(curve.adding, places)) + np.sum(chord(curve.removing, places))
    expected = 8.0 * 2.0**-53 * (values / math.expm1(step) + len(places))
    assert rounding == pytest.approx(expected, rel=1e-12, abs=0.0)


class Nothing:
    """A law of which the convolution tells nothing."""

    get_delta_for_epsilon = staticmethod(lambda epsilon: 1.0)
    get_epsilon_for_delta = staticmethod(lambda delta: math.inf)


def test_divergences_promise_what_tails_of_discrete_noise_leave():
    """Of which they know nothing: 1e-16 is added to delta, and what is that small is left to convolutions."""
    known = tuple((number, 0.02 * order) for number, order in zip(renyi.NUMBERS, renyi.ORDERS, strict=True))
    loss = JointLoss(Nothing, 0.0, known)
    for epsilon in (0.5, 1.0, 1.6, 700.0):
        promised = float(renyi.delta(*renyi.columns(known), np.array(epsilon)))
        assert loss.delta(epsilon) == pytest.approx(promised + 1e-16, rel=1e-9, abs=0.0)
    assert loss.delta(700.1) == 1.0
    for delta in (1e-3, 1e-12, 1e-15, 2.5e-16):
        assert loss.delta(loss.epsilon(delta)) == pytest.approx(delta, rel=1e-3, abs=0.0)
    assert loss.epsilon(2e-16) == math.inf
    far = JointLoss(Nothing, 0.0, ((0, 690.0),))
    assert far.epsilon(1e-3) < 700.0
    assert far.epsilon(1e-6) == math.inf


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("delta", [0.0, 1.0, 1.5])
def test_a_delta_is_a_probability(count, delta):
    with pytest.raises(ParameterError, match="`delta` must be"):
        expost.compose([expost.ChoicePlan(0.1, 2)] * count).epsilon_at(delta)


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_a_curve_that_counts_several_times_is_convolved_as_often(count):
    """By convolving its masses directly; what may be lost at once is lost by any."""
    curve, step = ProfileCurve(*KNOTS), 0.1
    masses, _ = grid_masses(curve, step)
    together = np.ones(1)
    for _ in range(count):
        together = np.convolve(together, masses)
    losses = step * (np.arange(len(together)) - len(together) // 2)
    loss = JointLoss.of({curve: count}, step)
    for epsilon in (0.0, 0.5, 1.3, 4.0):
        above = np.sum(-np.expm1(np.minimum(epsilon - losses, 0.0)) * together)
        exact = above + 1.0 - (1.0 - 2e-3) ** count
        assert exact * (1.0 - 1e-12) <= loss.delta(epsilon) <= exact + 1e-11


def test_what_convolutions_cut_off_may_be_lost():
    """It counts as the probability of an unbounded loss, and a delta is never more than 1."""
    plan = expost.ChoicePlan(5.0, 2)
    together = expost.compose([plan] * 400)
    assert together.delta_at(0.0) == 1.0
    assert JointLoss.of({curve_of(plan): 400}, 0.1).law.get_delta_for_epsilon(5000.0) > 1e-18


def test_the_far_tail_of_two_laws_counts_as_lost():
    """Where both are so unlikely that the convolution cuts it off, no delta is below the direct sum."""
    curves = [ProfileCurve(*(((0.0, 0.3), (1.0, middle), (2.0, 1e-25)),) * 2) for middle in (1e-9, 2e-9)]
    step = 0.2
    masses = np.convolve(*(grid_masses(curve, step)[0] for curve in curves))
    losses = step * (np.arange(len(masses)) - len(masses) // 2)
    joint = JointLoss.of(dict.fromkeys(curves, 1), step)
    for epsilon in (1.0, 2.1, 2.9, 3.3, 3.9):
        direct = np.sum(-np.expm1(np.minimum(epsilon - losses, 0.0)) * masses) + 2e-25
        assert direct * (1.0 - 1e-12) <= joint.law.get_delta_for_epsilon(epsilon) <= direct + 2e-16
