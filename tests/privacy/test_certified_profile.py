"""What every certificate does: on Gaussian mechanisms whose two theorems state multiples of their delta."""

import math
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import numpy as np
import pytest

from expost import LogisticLoss, PseudoHuber, gaussian
from expost.exceptions import ParameterError
from expost.privacy import renyi
from expost.privacy.certified_profile import Bracket, CertifiedProfile, certified
from expost.privacy.plan import accounting_of
from expost.privacy.precision import REAL, Rounding
from expost.privacy.profile_curve import ProfileCurve
from expost.privacy.scales import NoiseScales
from expost.privacy.sharpest import SharpestProfile

pytestmark = pytest.mark.usefixtures("unremembered")

PLACES = {"adding": 0, "removing": 1}
COARSE = Rounding(steps=2000.0)  # which costs 0.045 of epsilon on each side


@dataclass(frozen=True)
class Stated(CertifiedProfile):
    """A Gaussian mechanism: added and removed, the first theorem states ``own`` times its delta.

    That is in the middle of brackets that are nearly as wide as they may be, or at the upper end of coarse
    ones. The second theorem states ``second`` times.
    """

    own: tuple[float, float] = (2.0, 1.5)
    second: tuple[float, float] = (9.0, 9.0)
    shift: float = 0.25
    rounding: Rounding = REAL
    covers_removing: bool = False
    width: float = 1e-4
    at_the_end: bool = False
    asked: list = field(default_factory=list)

    @property
    def rise(self):
        return self.shift

    def exact(self, at):
        return float(gaussian.delta(at, sensitivity=self.shift, sigma=1.0))

    def _bracket(self, direction, at, width, scale):
        self.asked.append((direction, at, width, scale))
        value = self.own[PLACES[direction]] * self.exact(at)
        above = 0.0 if self.at_the_end and width >= 0.01 else 0.4 * width
        return Bracket(value * (1.0 - 0.4 * width), min(value * (1.0 + above) + 1e-300, 1.0))

    def adding(self, at, width):
        return self._bracket("adding", at, width, 0.0)

    def removing(self, at, width, *, scale=0.0):
        return self._bracket("removing", at, width, scale)

    def divergences(self, orders):
        square = 0.5 * orders * self.shift**2
        return {name: self.own[place] * square for name, place in PLACES.items()}

    def other(self, direction, at, width):
        self.asked.append(("other " + direction, at.tolist(), width, 0.0))
        return self.second[PLACES[direction]] * gaussian.delta(at, sensitivity=self.shift, sigma=1.0)


EPSILONS = [0.0, 0.01, 0.3, 1.0, 2.5]


def test_computed_ends_get_room_for_rounding():
    lower, upper = certified(0.2, 0.3)
    assert 0.2 * (1.0 - 2e-9) < lower < 0.2 * (1.0 - 1e-10)
    assert 0.3 * (1.0 + 1e-10) < upper < 0.3 * (1.0 + 2e-9)
    assert 0.0 == certified(0.0, 0.0).lower < certified(0.0, 0.0).upper <= 1e-300
    assert certified(1.5, 2.0).lower < certified(1.5, 2.0).upper == 1.0


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("own", [(2.0, 1.5), (1.5, 2.0)])
def test_the_larger_direction_is_stated_and_each_by_itself(own, epsilon):
    one = Stated(own)
    wanted = 2.0 * one.exact(epsilon)
    for rtol in (None, 0.1, 1e-6):
        width = one.width if rtol is None else rtol
        assert one.delta(epsilon, rtol=rtol) == pytest.approx(
            (wanted * (1.0 - 0.4 * width), wanted * (1.0 + 0.4 * width)), rel=1e-12
        )
    directed = tuple(part * one.exact(epsilon) * (1.0 + 4e-4) for part in own)
    assert one.directed(epsilon, rtol=1e-3) == pytest.approx(directed, rel=1e-12)


def test_what_covers_a_removal_is_asked_once():
    one = Stated(covers_removing=True)
    one.delta(1.0)
    assert [question[0] for question in one.asked] == ["adding"]
    # Otherwise the other direction needs no more digits than the first one leaves to it.
    one = Stated()
    one.delta(1.0)
    assert [question[0] for question in one.asked] == ["adding", "removing"]
    assert one.asked[1][3] == Stated().adding(1.0, one.width).lower
    both = SharpestProfile(one, REAL)
    both.removing(1.0, 1e-3, scale=0.3)
    both.removing(1.0, 1e-3)  # by itself it has all the digits that are asked for
    assert [question for question in one.asked if question[0] == "removing"][1:] == [
        ("removing", 1.0, 1e-3, 0.3),
        ("removing", 1.0, 1e-3, 0.0),
    ]


@pytest.mark.parametrize("epsilon", [0.0, 0.03, 0.08, 0.1, 0.3, 1.0])
def test_discrete_noise_costs_a_shift_and_a_factor(epsilon):
    """P' ≤ e^ψ(e^ε' e^ψ Q' + δ(ε')) + tail with ε' = ε − 2ψ, and δ(−e) ≤ δ(0) + 1 − exp(−e)."""
    one = Stated(rounding=COARSE)
    law = COARSE.law(epsilon)
    assert 0.04 < law < 0.05
    before = epsilon - 2.0 * law
    inside = 2.0 * one.exact(max(before, 0.0)) * (1.0 + 4e-7) + max(-before, 0.0)
    upper = one.delta(epsilon, rtol=1e-6).upper
    # What is said of an epsilon below 0 is for all of them: up to 2ψ.
    assert math.exp(law) * inside * (1.0 - 1e-12) <= upper
    assert upper <= math.exp(law) * (inside + (2.0 * law - max(-before, 0.0)) * (before < 0.0)) * (
        1.0 + 1e-12
    )
    assert one.delta(epsilon, rtol=1e-6).lower == pytest.approx(2.0 * one.exact(max(before, 0.0)), rel=1e-6)
    assert one.directed(epsilon, rtol=1e-6)[0] == upper


def test_discrete_noise_leaves_a_tail_and_at_most_one():
    law = COARSE.law(10.0)
    assert Stated(rounding=COARSE, shift=0.01).delta(10.0).upper == pytest.approx(
        (math.exp(law) + 1.0) * 1e-300, rel=1e-9
    )
    assert Stated(rounding=COARSE, shift=50.0).delta(0.0).upper == 1.0
    first = Stated(rounding=COARSE, shift=0.01)
    own = np.array([first.directed(10.0, rtol=1e-3)])
    found = SharpestProfile(first, COARSE).sharpened(np.array([10.0]), own, rtol=1e-3)
    np.testing.assert_allclose(found, (math.exp(law) + 1.0) * 1e-300, rtol=1e-8)


def test_discrete_noise_without_a_law_promises_nothing():
    rounding = Rounding(steps=400.0)
    assert 1.0 < rounding.law(0.0) < 2.0
    assert Stated(rounding=rounding, shift=1e-3).delta(5.0) == (0.0, 1.0)
    assert Stated(rounding=rounding).epsilon(1e-6) == math.inf
    assert SharpestProfile(Stated(rounding=rounding), rounding).epsilon(1e-6) == math.inf
    # At 67 million steps that is from an epsilon of 1e16 on.
    planned = Rounding.planned(1.0, curvature=0.25)
    assert Stated(rounding=planned, shift=1e-3).delta(1e14).upper < 1.0
    assert Stated(rounding=planned, shift=1e-3).delta(1e17).upper == 1.0


@pytest.mark.parametrize(
    "factor", [0.3, 0.89, 0.9, 0.97, 0.99, 0.9995, 0.99999, 1.0, 1.0001, 1.02, 1.1, 1.2, 3.0]
)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_what_is_certified_is_what_delta_says(epsilon, factor):
    sharpest = SharpestProfile(Stated(second=(1.01, 1.02)), REAL)
    for one in (Stated(), Stated(at_the_end=True), sharpest):
        upper = one.delta(epsilon).upper
        assert one.certifies(epsilon, factor * upper) == (factor >= 1.0)


def test_a_clear_answer_takes_one_question():
    for target, answer in ((1e-2, True), (1e-9, False)):
        one = Stated(covers_removing=True)
        assert one.certifies(1.0, target) is answer
        assert [question[2] for question in one.asked] == [0.1]


@pytest.mark.parametrize("shift", [1e-4, 0.01, 0.25, 3.0, 40.0])
@pytest.mark.parametrize("delta", [1e-290, 1e-12, 1e-6, 0.2])
def test_epsilon_is_that_of_the_gaussian_mechanism_at_a_share_of_delta(shift, delta):
    first = Stated(shift=shift)
    sharpest = SharpestProfile(Stated(shift=shift, second=(1.2, 1.1)), REAL)
    for one, factor in ((first, 2.0 * (1.0 + 4e-5)), (sharpest, 1.2)):
        exact = float(gaussian.epsilon(delta / factor, sensitivity=shift, sigma=1.0))
        found = one.epsilon(delta)
        assert exact * (1.0 - 1e-9) <= found <= exact * (1.0 + 4e-6)
        assert one.delta(found).upper <= delta


@pytest.mark.parametrize("epsilon", [0.37, 1.02, 2.03, 4.1, 9.0])
def test_epsilon_is_the_inverse_of_delta(epsilon):
    first = Stated(shift=0.5)
    for one in (first, SharpestProfile(Stated(shift=0.5, second=(1.1, 1.2)), REAL)):
        found = one.epsilon(one.delta(epsilon).upper)
        assert epsilon * (1.0 - 1e-9) <= found <= epsilon * (1.0 + 3e-6)


def test_an_epsilon_of_zero_is_enough_for_a_large_delta():
    one = Stated()
    for both in (one, SharpestProfile(one, REAL)):
        assert both.epsilon(0.9) == 0.0
        assert both.epsilon(one.delta(0.0).upper) == 0.0
        assert both.epsilon(0.999 * one.delta(0.0).upper) > 0.0
    # Where only the second theorem says so, too.
    sharpest, delta = SharpestProfile(Stated(second=(1.1, 1.1)), REAL), 1.5 * one.exact(0.0)
    assert sharpest.epsilon(delta) == 0.0 < one.epsilon(delta)


def test_deltas_and_tolerances_out_of_range_are_refused():
    for one in (Stated(), SharpestProfile(Stated(), REAL)):
        for delta in (0.0, 1.0, 1.5, 5e-300):
            with pytest.raises(ParameterError, match="`delta` must be"):
                one.epsilon(delta)
        for delta in (0.0, 1.0, 1.5):
            with pytest.raises(ParameterError, match="`delta` must be"):
                one.certifies(1.0, delta)
        for rtol in (0.0, 9e-7, 1.0, 1.5):
            with pytest.raises(ParameterError, match="`rtol` must be"):
                one.delta(1.0, rtol=rtol)
        with pytest.raises(ParameterError, match="`delta` must be at least 1e-299"):
            one.epsilon(0.95e-299)
        assert one.epsilon(1.05e-299) > 1.0
        assert one.delta(1.0, rtol=1e-6).upper < 1.0


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("second", [(1.2, 1.1), (1.2, 9.0), (9.0, 1.1), (9.0, 9.0)])
def test_each_direction_is_the_smaller_of_two_theorems(second, epsilon):
    for covers in (False, True):
        first = Stated(second=second, covers_removing=covers)
        both, exact = SharpestProfile(first, REAL), first.exact(epsilon)
        smaller = [min(pair) * exact for pair in zip(first.own, second, strict=True)]
        assert both.directed(epsilon, rtol=1e-6) == pytest.approx(smaller, rel=1e-6)
        lower, upper = both.delta(epsilon, rtol=1e-6)
        # Where the first theorem is kept for an added record, it covers a removed one as well.
        wanted = smaller[0] if covers and second[0] > 2.0 else max(smaller)
        assert upper == pytest.approx(wanted, rel=1e-6)
        assert lower <= upper
        # What the second theorem says is not bracketed: the mechanism itself lies below it.
        sharpened = wanted not in (2.0 * exact, 1.5 * exact)
        assert lower == pytest.approx(exact if sharpened else wanted, rel=1e-6)
        assert not sharpened or upper > wanted * (1.0 + 1e-10)  # with room for rounding
        found = both.sharpened(np.array([epsilon]), np.array([first.directed(epsilon, rtol=1e-6)]), rtol=1e-6)
        assert found[0] == pytest.approx(smaller, rel=1e-6)


def test_what_is_as_small_as_can_be_is_not_asked_again():
    """No certificate is below the Gaussian mechanism of the largest gradient."""
    for own, width in ((1.0, 1e-6), (1.0 + 5e-6, 1e-6), (1.001, 0.1)):  # by 1e-5 or a fiftieth of the width
        first = Stated((own, own), second=(0.5, 0.5), width=width, at_the_end=True)
        both = SharpestProfile(first, REAL)
        assert both.delta(1.0) == first.delta(1.0)
        assert both.epsilon(1e-6) == first.epsilon(1e-6)
        assert not any(question[0].startswith("other") for question in first.asked)
    # The solver's error is one more coordinate of it, so that there is less to ask.
    near = Stated((1.05, 1.05), second=(1.01, 1.01), rounding=Rounding(solver=0.05))
    least = float(gaussian.delta(1.0, sensitivity=math.hypot(0.25, 0.05), sigma=1.0))
    assert least > 1.05 * near.exact(1.0)
    assert SharpestProfile(near, near.rounding).delta(1.0) == near.delta(1.0)


def test_a_delta_too_small_to_be_a_double_is_not_zero():
    first = Stated(shift=0.01)
    assert first.exact(10.0) == 0.0 < SharpestProfile(first, REAL).delta(10.0).upper <= 3e-300


def test_divergences_are_kept_with_the_price_of_discrete_noise():
    """ψ(2α − 1)/(α − 1) more at order α, and none where the noise has no law or the order no bound."""
    orders = renyi.ORDERS
    for rounding in (REAL, COARSE):
        first = Stated(rounding=rounding)
        kept = SharpestProfile(first, rounding).kept(700.0)
        law = rounding.law(700.0)
        for name, found in zip(PLACES, kept, strict=True):
            assert [number for number, _ in found] == list(renyi.NUMBERS)
            price = law * (2.0 * orders - 1.0) / (orders - 1.0)
            wanted = first.divergences(orders)[name] + price
            np.testing.assert_allclose([divergence for _, divergence in found], wanted, rtol=1e-12)
    none = Rounding(steps=400.0)
    assert SharpestProfile(Stated(rounding=none), none).kept(700.0) == ((), ())
    half = SharpestProfile(Stated((2.0, math.inf)), REAL).kept(700.0)
    assert (len(half[0]), half[1]) == (len(orders), ())


@pytest.mark.parametrize("unit", ["row", "person"])
def test_the_floor_is_where_the_determinant_alone_costs_epsilon(unit):
    accounting = accounting_of(LogisticLoss().curve, 1.5, unit=unit)
    for epsilon in (0.1, 1.0, 30.0):
        assert accounting.log_determinant(accounting.floor(epsilon)) == pytest.approx(epsilon, rel=1e-12)
        assert accounting.log_determinant(math.inf) == 0.0


@pytest.mark.parametrize("norm", [0.5, 1.0, 3.0])
def test_a_record_of_one_predictor_curves_the_objective_by_its_row(norm):
    """Its Hessian is f'' x xᵀ, whose eigenvalue is f'' ‖x‖²; there is no smaller one to release."""
    accounting, row = accounting_of(LogisticLoss().curve, norm), norm * np.array([0.6, -0.8])
    slopes = np.linspace(0.0, 1.0, 101)[:, None, None]
    largest = np.linalg.eigvalsh(slopes * (1.0 - slopes) * np.outer(row, row)).max()
    assert accounting.curvature == accounting.released_curvature == pytest.approx(largest, rel=1e-12)
    assert not accounting.can_be_reduced


def test_without_a_determinant_only_a_gradient_of_one_sign_is_a_gaussian_mechanism():
    fixed, free = LogisticLoss().curve, PseudoHuber().curve
    accounting = accounting_of(fixed, 3.0)
    sigma = accounting.flat_sigma(1.0, 1e-6)
    assert sigma == gaussian.sigma(1.0, 1e-6, sensitivity=3.0)
    assert accounting.profile(math.inf, NoiseScales(sigma)).delta(1.0).upper == pytest.approx(1e-6, rel=1e-5)
    assert accounting_of(free, 3.0).flat_sigma(1.0, 1e-6) is None
    for curve in (fixed, free):
        assert accounting_of(replace(curve, outputs=2), 3.0).flat_sigma(1.0, 1e-6) is None


def test_a_true_promise_is_a_knot_of_the_curve_and_a_false_one_lowers_nothing():
    """Knots are read off rough brackets; the promise was certified by a finer one."""
    profile = SharpestProfile(Stated((1.0, 1.0)), REAL)
    rough, fine = profile.directed(1.0, rtol=1e-3)[0], profile.delta(1.0).upper
    assert fine * (1.0 + 1e-8) < rough
    for delta, found in ((fine, fine), (0.5 * fine, rough)):
        curve = ProfileCurve.of(SimpleNamespace(profile=profile, epsilon=1.0, delta=delta))
        assert curve.adding_orders == profile.kept(700.0)[0]
        assert 1.0 in dict(curve.adding)
        assert found * (1.0 - 1e-12) <= curve.delta(1.0) <= found


def test_a_plan_without_a_promise_may_lose_everything():
    """Whether it has no certificate or no finite epsilon."""
    profile = SharpestProfile(Stated(), REAL)
    for plan in (
        SimpleNamespace(profile=None, epsilon=1.0, delta=1e-6),
        SimpleNamespace(profile=profile, epsilon=math.inf, delta=1e-6),
    ):
        assert ProfileCurve.of(plan) == ProfileCurve(((0.0, 1.0),), ((0.0, 1.0),))
