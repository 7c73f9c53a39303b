"""Budgets in other units, compared with the explicit profile and the textbook conversion."""

import math

import pytest
from mpmath import mp, mpf, ncdf

import expost
from expost import gaussian
from expost.budgets import from_gdp, from_zcdp
from expost.exceptions import ParameterError


def profile(epsilon, mu):
    """Delta of the Gaussian mechanism with fifty digits, so that nothing cancels."""
    with mp.workdps(50):
        e, m = mpf(epsilon), mpf(mu)
        return ncdf(m / 2 - e / m) - mp.exp(e) * ncdf(-m / 2 - e / m)


@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-3])
@pytest.mark.parametrize("mu", [0.01, 0.2367, 1.0, 5.0])
def test_the_result_lies_on_the_curve_from_below(mu, delta):
    epsilon = from_gdp(mu, delta=delta)
    assert profile(epsilon, mu) >= delta  # the curve passes delta later: epsilon is not too large
    assert profile(epsilon * (1.0 + 1e-7), mu) < delta


@pytest.mark.parametrize("delta", [1e-10, 1e-6])
@pytest.mark.parametrize("rho", [1e-3, 0.1, 0.5, 3.0])
def test_zcdp_goes_through_its_gaussian_mechanism_and_spends_less_than_the_usual_conversion(rho, delta):
    epsilon = from_zcdp(rho, delta=delta)
    assert epsilon == from_gdp(math.sqrt(2.0 * rho), delta=delta)
    assert epsilon < rho + 2.0 * math.sqrt(rho * math.log(1.0 / delta))


def test_a_plan_spends_no_more_than_the_gaussian_mechanism_at_its_point():
    mu, delta = 0.3, 1e-6
    epsilon = from_gdp(mu, delta=delta)
    plan = expost.calibrate(loss="logistic", epsilon=epsilon, delta=delta, l2=20.0)
    assert plan.delta_at(epsilon) <= delta <= gaussian.delta(epsilon, sensitivity=mu, sigma=1.0)
    # With the logistic loss and this much regularisation the noise is the Gaussian mechanism's own.
    assert plan.sigma == pytest.approx(1.0 / mu, rel=1e-4)


def test_a_plan_is_no_certificate_for_the_whole_curve():
    """With little regularisation the profile leaves the curve of the budget it was calibrated to."""
    mu, delta = 0.25, 1e-6
    plan = expost.calibrate(loss="logistic", epsilon=from_gdp(mu, delta=delta), delta=delta, l2=0.3)
    assert plan.delta_at(0.3) > 1.5 * gaussian.delta(0.3, sensitivity=mu, sigma=1.0)


def test_a_larger_budget_gives_a_larger_epsilon():
    assert from_gdp(0.5, delta=1e-6) < from_gdp(0.6, delta=1e-6) < from_gdp(0.6, delta=1e-7)
    assert from_zcdp(0.1, delta=1e-6) < from_zcdp(0.2, delta=1e-6)


@pytest.mark.parametrize("value", [0.0, -1.0, math.inf, math.nan, "1"])
def test_bad_budgets_are_refused(value):
    with pytest.raises(ParameterError, match="`mu`"):
        from_gdp(value, delta=1e-6)
    with pytest.raises(ParameterError, match="`rho`"):
        from_zcdp(value, delta=1e-6)
    with pytest.raises(ParameterError, match="`delta`"):
        from_gdp(1.0, delta=value)


def test_a_budget_below_every_epsilon_is_refused():
    with pytest.raises(ParameterError, match=r"where the curve of rho=1e-06 ends; got delta=0\.01"):
        from_zcdp(1e-6, delta=0.01)


def test_where_the_curve_is_flat_in_doubles_the_result_is_still_rounded_down():
    """Near δ = 1 a step of 1e-10 changes no digit of the profile, so a longer one is taken."""
    mu, delta = 50.0, 1.0 - 1e-12
    epsilon = from_gdp(mu, delta=delta)
    nearest = float(gaussian.epsilon(delta, sensitivity=mu, sigma=1.0))
    assert 1e-9 * nearest < nearest - epsilon < 1e-8 * nearest
    assert profile(epsilon, mu) >= delta
