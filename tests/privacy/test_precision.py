"""How exactly numbers are printed, and what that costs: the formulas of docs/mathematics.md, section 10.

A file does not hold the constants in them, so a changed one would change what an old file means.
"""

import math

import numpy as np
import pytest

import expost
from expost.exceptions import CalibrationError
from expost.privacy.precision import (
    MOST_COEFFICIENTS,
    REAL,
    ROWS_AT_MOST,
    Precision,
    Rounding,
    statistic_grid,
)
from expost.privacy.scales import NoiseScales


@pytest.mark.parametrize(
    ("epsilon", "solver"),
    [(8.0, -16), (1.0, -16), (0.99, -17), (0.5, -17), (0.3, -18), (2.0**-12, -28), (1e-9, -28)],
)
def test_what_a_plan_pays(epsilon, solver):
    planned = Rounding.planned(epsilon, curvature=3.0, rows_at_most=1000)
    assert planned == Rounding(2.0**solver, 2.0**-20, 3000.0 * 2.0**-44, 2.0 ** min(10 - solver, 32))
    assert Rounding.planned(epsilon, curvature=3.0).hessian == 3.0 * ROWS_AT_MOST * 2.0**-44 == 3e7 * 2.0**-44


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 50.0])
def test_the_price_of_discrete_noise_is_its_formula(epsilon):
    """For the most numbers there may be, with one more unit, and one part in a thousand more."""
    reach = 2048.0 + math.sqrt(2.0 * (epsilon + 300.0 * math.log(10.0))) + 1.0
    planned = Rounding.planned(1.0, curvature=1.0)
    price = 1.001 * reach**2 / (24.0 * planned.steps**2)
    assert planned.law(epsilon) == pytest.approx(price, rel=1e-12, abs=0.0)
    assert planned.tail == 1e-300
    assert REAL.law(epsilon) == REAL.tail == 0.0
    assert REAL.solver == REAL.statistics == REAL.hessian == 0.0


def test_a_statistics_error_is_a_share_of_its_noise_or_of_the_largest_hessian():
    rounding = Rounding(statistics=0.1, hessian=3.0)
    assert rounding.error("gradient", 2.0) == 0.1
    assert rounding.error("hessian", 2.0) == rounding.error("eigenvalue", 2.0) == 1.5
    assert rounding.error("hessian", 100.0) == 0.1
    assert rounding.over(4.0) == Rounding(statistics=0.1, hessian=0.75)


def test_a_shift_grows_by_the_errors_and_by_what_the_solver_tells():
    scales = NoiseScales(1.0, sigma_gradient=2.0, sigma_hessian=5.0, sigma_eigenvalue=7.0)
    rounding = Rounding(solver=0.3, statistics=0.1, hessian=3.0)
    gradient, curvature = np.array([0.0, 1.5]), np.array([0.25, 0.0])
    for rank in (1, 4):
        expected = np.sqrt(
            0.3**2
            + (gradient / 2.0 + 0.2) ** 2
            + (curvature * math.sqrt(rank / 2.0) / 5.0 + 2.0 * 3.0 / 5.0) ** 2
            + (curvature / 7.0 + 2.0 * 3.0 / 7.0) ** 2
        )
        got = scales.shift(gradient, curvature, rank=rank, rounding=rounding)
        np.testing.assert_allclose(got, expected, rtol=1e-14)


@pytest.mark.parametrize(("radius", "rows"), [(2.0, 100), (1e6, 100), (2.0, 10**7)])
def test_the_noise_of_the_output_is_the_largest_that_nobody_notices(radius, rows):
    """One bound keeps the noise of the objective readable, the other keeps the model from noticing."""
    rounding = Rounding.planned(0.3, curvature=0.25, rows_at_most=rows)
    chosen = Precision.choose(rounding, sigma=3.0, l2=0.7, curvature=0.25, radius=radius, rows_at_most=rows)
    most = min(3.0 * 2.0**-10 / (0.7 + 0.25 * rows), 2.0**-20 / radius)
    assert math.frexp(chosen.output_noise)[0] == 0.5  # a power of two
    assert most / 2.0 < chosen.output_noise <= most
    assert chosen.solver_radius == 0.5 * rounding.solver * chosen.output_noise
    assert chosen.grid == 2.0**-9 * chosen.solver_radius
    assert chosen.rows_at_most == rows
    assert chosen.rounding(0.25) == rounding


def test_rounding_as_many_coefficients_as_there_may_be_takes_less_than_half_of_the_radius():
    """Half a step for each; with twice as many it would take half."""
    plan = expost.calibrate(loss="logistic", epsilon=1.0)
    moved = 0.5 * math.sqrt(MOST_COEFFICIENTS) * plan.grid
    assert math.sqrt(2.0) * moved == pytest.approx(0.5 * plan.solver_radius, rel=1e-12, abs=0.0)


@pytest.mark.parametrize("sigma", [1e-248, 1e262])
def test_numbers_without_room_for_digits_are_refused(sigma):
    rounding = Rounding.planned(1.0, curvature=0.25)
    with pytest.raises(CalibrationError, match="no room for printed digits"):
        Precision.choose(rounding, sigma=sigma, l2=1.0, curvature=0.25, radius=1e-280, rows_at_most=10)


@pytest.mark.parametrize("scale", [1.0, 1.5, 1.999, 2.0, 1e-9])
def test_a_statistic_has_at_least_two_to_the_32_steps_in_its_noise(scale):
    grid = statistic_grid(scale)
    assert math.frexp(grid)[0] == 0.5
    assert 2.0**32 <= scale / grid < 2.0**33


def test_a_plan_pays_for_the_largest_hessian_of_its_rows():
    plan = expost.calibrate(loss="logistic", epsilon=1.0, norm=3.0, fit_intercept=False, rows_at_most=10**9)
    assert plan.rounding == Rounding.planned(1.0, curvature=0.25 * 9.0, rows_at_most=10**9)
    assert (plan.output_noise, plan.solver_radius, plan.grid) == (
        plan.precision.output_noise,
        plan.precision.solver_radius,
        plan.precision.grid,
    )
