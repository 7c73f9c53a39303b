"""Private choices: a profile that nothing exceeds, and that composes as brute force does."""

import math
from itertools import product

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy.integrate import quad
from scipy.optimize import brentq

import expost
from expost import gaussian
from expost.exceptions import ParameterError
from expost.privacy.profile_curve import curve_of

EPSILONS = (0.02, 0.1, 1.0, 5.0)


def hockey_stick(first, second, epsilon):
    return float(np.maximum(first - math.exp(epsilon) * second, 0.0).sum())


def softmax(exponents):
    weights = np.exp(exponents - exponents.max())
    return weights / weights.sum()


def neighbours(rng, epsilon, count):
    """Two tables' choices, whose exponents differ with a range of epsilon, at the extremes or between."""
    exponents = rng.normal(scale=3.0 * rng.random(), size=count)
    change = epsilon * rng.choice([rng.random(count), rng.integers(0, 2, count).astype(float)], axis=0)
    return softmax(exponents), softmax(exponents + change)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_no_choice_exceeds_the_profile_and_the_worst_pair_reaches_it(epsilon):
    plan, rng = expost.ChoicePlan(epsilon, 5), np.random.default_rng(1)
    for at in epsilon * np.array([0.0, 0.2, 0.5, 0.9, 0.99]):
        certified = plan.delta_at(at)
        for _ in range(200):
            one, other = neighbours(rng, epsilon, 5)
            assert max(hockey_stick(one, other, at), hockey_stick(other, one, at)) <= certified * (1 + 1e-12)
        # A candidate of probability q that gains epsilon, and another that gains nothing.
        q = (math.exp(-(at + epsilon) / 2) - math.exp(-epsilon)) / -math.expm1(-epsilon)
        p = q * math.exp(epsilon) / (1.0 - q + q * math.exp(epsilon))
        worst = hockey_stick(np.array([p, 1 - p]), np.array([q, 1 - q]), at)
        assert worst == pytest.approx(certified, rel=1e-6)
    assert plan.delta_at(epsilon) == 0.0 == plan.delta_at(2 * epsilon)
    for delta in (1e-9, 1e-3, 0.01):
        found = plan.epsilon_at(delta)
        assert plan.delta_at(found) <= delta * (1 + 1e-9)
        assert found == 0.0 or plan.delta_at(found) == pytest.approx(delta, rel=1e-6)


@pytest.mark.parametrize("epsilon", [*EPSILONS, 50.0])
def test_the_profile_and_its_inverse_are_rounded_towards_privacy(epsilon):
    """By fifty digits: above the formula, and close to it."""
    plan = expost.ChoicePlan(epsilon, 2)
    with mp.workdps(50):
        e = mpf(epsilon)
        for at in (0.0, 0.3 * epsilon, 0.7 * epsilon, 0.99 * epsilon):
            exact = (1 - mp.exp((mpf(at) - e) / 2)) ** 2 / (1 - mp.exp(-e))
            assert exact <= plan.delta_at(at) <= exact * (1 + mpf(10) ** -13)
        for share in (1e-200, 1e-30, *np.geomspace(1e-25, 0.5, 40), 0.9):
            delta = share * plan.delta_at(0.0)
            exact = e + 2 * mp.log(1 - mp.sqrt(mpf(delta) * (1 - mp.exp(-e))))
            assert exact <= plan.epsilon_at(delta) <= min(epsilon, exact * (1 + mpf(10) ** -10))


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_curve_lies_above_the_profile_and_close_to_it(epsilon):
    plan = expost.ChoicePlan(epsilon, 2)
    curve, at = curve_of(plan), np.linspace(0.0, epsilon, 1001)
    exact = np.array([plan.delta_at(one) for one in at])
    assert np.all(curve.delta(at) >= exact)
    close = 1e-4 if epsilon <= 1.0 else 1e-3
    assert np.all(curve.delta(at) <= exact + close * exact[0])
    assert curve.epsilon(1e-12) <= epsilon


def test_two_choices_cost_together_what_brute_force_says_at_most():
    rng, epsilons = np.random.default_rng(2), (0.5, 0.8)
    both = expost.compose([expost.ChoicePlan(one, 4) for one in epsilons])
    for at in (0.0, 0.3, 0.7, 1.1, 1.25):
        certified, reached = both.delta_at(at), 0.0
        for _ in range(100):
            first = neighbours(rng, epsilons[0], 4)
            # The second choice may depend on what the first one published.
            second = [neighbours(rng, epsilons[1], 4) for _ in range(4)]
            one, other = (
                np.array([first[side][i] * second[i][side][j] for i, j in product(range(4), repeat=2)])
                for side in (0, 1)
            )
            reached = max(reached, hockey_stick(one, other, at), hockey_stick(other, one, at))
        assert reached <= certified
    assert both.delta_at(1.31) < 1e-8
    assert 1.2 < both.epsilon_at(1e-6) <= 1.3 + 1e-6


def joint(epsilon, shift, plan):
    """Delta of a Gaussian mechanism and a choice by quadrature over the law of the choice's worst pair."""
    e = plan.epsilon
    # P(L > t) is the profile less its slope, and the atoms at the ends are none.
    tail = lambda t: (-math.expm1((t - e) / 2)) / -math.expm1(-e)  # noqa: E731
    density = lambda t: 0.5 * math.exp((t - e) / 2) / -math.expm1(-e)  # noqa: E731
    assert tail(-e) == pytest.approx(1.0)
    return quad(lambda t: density(t) * gaussian.delta(epsilon - t, sensitivity=shift, sigma=1.0), -e, e)[0]


def test_what_a_choice_adds_to_the_noise_of_a_model():
    alone = gaussian.sigma(1.0, 1e-6)
    for range_, percent in ((0.02, 0.12), (0.05, 0.73), (0.1, 2.8), (0.2, 10.3)):
        plan = expost.ChoicePlan(range_, 2)
        found = brentq(lambda s, p=plan: joint(1.0, 1.0 / s, p) - 1e-6, alone, 1.5 * alone)
        assert 100.0 * (found / alone - 1.0) == pytest.approx(percent, rel=0.05)


def test_a_model_and_a_choice_compose_close_to_quadrature():
    model, choice = expost.calibrate(loss="logistic", epsilon=1.0, delta=1e-6), expost.ChoicePlan(0.1, 9)
    both = expost.compose([model, choice])
    truth = joint(1.0, 1.0 / gaussian.sigma(1.0, 1e-6), choice)
    assert truth * (1 - 1e-6) <= both.delta_at(1.0) <= 1.1 * truth
    assert 1.0 < both.epsilon_at(1e-6) < 1.05


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"epsilon": 0.0, "candidates": 2}, "epsilon"),
        ({"epsilon": -1.0, "candidates": 2}, "epsilon"),
        ({"epsilon": math.nan, "candidates": 2}, "epsilon"),
        ({"epsilon": 51.0, "candidates": 2}, "epsilon"),
        ({"epsilon": 1.0, "candidates": 1}, "candidates"),
        ({"epsilon": 1.0, "candidates": 2.5}, "candidates"),
        ({"epsilon": 1.0, "candidates": 2, "unit": "family"}, "unit"),
    ],
)
def test_bad_arguments_are_named(arguments, named):
    with pytest.raises(ParameterError, match=f"^`{named}`"):
        expost.ChoicePlan(**arguments)


@pytest.mark.parametrize("delta", [0.0, 1.0, 1.5])
def test_a_delta_is_a_probability(delta):
    with pytest.raises(ParameterError, match="`delta` must be"):
        expost.ChoicePlan(1.0, 2).epsilon_at(delta)


def test_a_choice_states_its_promise_and_for_whom_it_is():
    """Files from before there were people do not say that a unit is the row."""
    row, person = expost.ChoicePlan(0.5, 7), expost.ChoicePlan(0.5, 7, "person")
    stated = {"epsilon": 0.5, "delta": 0.0, "candidates": 7}
    assert row.fields() == stated
    assert person.fields() == stated | {"unit": "person"}
    whom = "for all rows of a record or person together"
    assert f"ε = 0.5 at δ = 0, {whom}" in person._repr_html_()
    assert whom not in row._repr_html_()


def test_choices_for_rows_and_plans_for_people_do_not_add_up():
    with pytest.raises(ParameterError, match="of one unit"):
        expost.compose([expost.ChoicePlan(0.1, 2), expost.ChoicePlan(0.1, 2, "person")])
