"""The certificate's radius is never exceeded: the truth in 70 digits, on every awkward kind of table."""

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal, getcontext
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hard_tables import (
    RowBlocks,
    Table,
    adversarial_tables,
    distance_to_minimiser,
    gradient,
    into_ball,
    newton_start,
    random_table,
    tilt,
    weighted_table,
)

from expost.fitting.certified.certify import _summed, certify
from expost.fitting.certified.decimals import certify_in_decimals, solve
from expost.fitting.certified.pairs import Dyadic, power_above
from expost.fitting.statistics import smallest_eigenvalue
from expost.losses import LogisticLoss

ADVERSARIAL = list(adversarial_tables())


def _plan(table, grid_bits=26):
    """The plan's rule for the last noise, the radius and the grid, with a ceiling of 10,000 rows."""
    sigma = float(np.std(table.tilt[0])) or 1.0
    noise = 2.0 ** math.floor(
        math.log2(2.0**-10 * sigma / (table.l2 + table.problem().max_curvature * table.radius**2 * 1e4))
    )
    return noise * 2.0**-17, noise * 2.0**-grid_bits


def _holds(table, start, grid_bits):
    """The radius is within the target, and the true minimiser within the radius."""
    target, grid = _plan(table, grid_bits)
    found = certify(table.problem(), start, target=target, grid=grid)
    assert found.radius <= target
    assert all(isinstance(count, int) for count in found.point.counts)
    assert distance_to_minimiser(table, found.point.counts, grid) <= found.radius


# The finer grid shows the bound itself, the coarser one what is published.
@pytest.mark.parametrize("grid_bits", [26, 60])
@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=[pytest.mark.slow] * (seed % 5 > 0)) for seed in range(200)]
)
def test_random_tables(seed, grid_bits):
    table = random_table(seed)
    _holds(table, newton_start(table)[0], grid_bits)


@pytest.mark.parametrize("grid_bits", [26, 60])
@pytest.mark.parametrize("seed", range(24))
def test_weighted_tables(seed, grid_bits):
    table = weighted_table(seed)
    _holds(table, newton_start(table)[0], grid_bits)


@pytest.mark.parametrize("slices", [2, 3, None])
@pytest.mark.parametrize("seed", range(8))
def test_the_hessian_of_a_weighted_table_is_within_its_error(seed, slices):
    """In slices, and in decimals for None; against 70 digits at the same point."""
    table = weighted_table(seed)
    problem, w = table.problem(), newton_start(table)[0]
    point = Dyadic.of(w)
    found, error = _summed(problem, point, slices)
    with mp.workdps(70):
        H = gradient(table, [mp.mpf(float(v)) for v in w], hessian=True)[1]
        H -= mp.eye(len(w)) * mp.mpf(table.l2)
        off = mp.mnorm(H - mp.matrix(found[0].tolist()) - mp.matrix(found[1].tolist()), "f")
    assert off <= error


# Poor starts have the finer grid in every run.
@pytest.mark.parametrize("grid_bits", [26, pytest.param(60, marks=pytest.mark.slow)])
@pytest.mark.parametrize("table", ADVERSARIAL, ids=lambda table: table.name)
def test_adversarial_tables(table, grid_bits):
    with np.errstate(over="ignore"):
        _holds(table, newton_start(table)[0], grid_bits)


@pytest.mark.long
@pytest.mark.parametrize("table", ADVERSARIAL, ids=lambda table: table.name)
def test_poor_starts(table):
    w = np.random.default_rng(3).normal(size=table.X.shape[1]) * 5.0 / table.radius
    _holds(table, w, 60)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(14))
def test_decimals_alone(seed, monkeypatch):
    """What happens where matrix products cannot be trusted."""
    monkeypatch.setattr("expost.fitting.certified.certify.exact_in", lambda _: False)
    monkeypatch.setattr("expost._common.kernels.library", lambda: None)
    for table in (random_table(seed), weighted_table(seed)):
        _holds(table, np.zeros(table.X.shape[1]), 60)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["usual", "identical", "separable", "rare"])
def test_larger_tables(kind, monkeypatch):
    """The residual in 200 bits, and one Newton step from it, on tables of several blocks.

    The second target is more than two slices can give; three must do it, because decimals are out of reach.
    """
    monkeypatch.setattr("expost.fitting.certified.certify.certify_in_decimals", None)
    random = np.random.default_rng(8)
    n, d = 2500, 10
    X = into_ball(random.normal(size=(n, d)), 1.0)
    if kind == "identical":
        X = np.repeat(X[:1], n, axis=0)
    if kind == "rare":
        X = (random.uniform(size=(n, d)) < 1e-3) * 0.3
    y = (X @ np.ones(d) > 0) * 1.0 if kind == "separable" else (random.uniform(size=n) < 0.6) * 1.0
    table = Table(kind, X, y, LogisticLoss(), 2.112, 1.0, tilt(random, 4.225, d))
    start, hessian = newton_start(table)
    for grid, target in ((2.0**-50, 2.0**-41), (2.0**-90, 2.0**-41), (2.0**-90, 2.0**-66)):
        found = certify(table.problem(), start, target=target, grid=grid)
        assert found.radius <= target
        with mp.workprec(200):
            g, _ = gradient(table, [mp.mpf(count) * mp.mpf(grid) for count in found.point.counts])
            step = np.linalg.solve(hessian, np.array([float(v * 2**60) for v in g])) * 2.0**-60
        assert np.linalg.norm(step) * (1 - 1e-6) <= found.radius


def test_spans_in_threads():
    """The same point whether the rows come in one span or in three, and in decimals too."""

    class Spans(RowBlocks):
        def sweep(self, work):
            with ThreadPoolExecutor(3) as pool:
                return list(pool.map(work, [iter(self.blocks[i::3]) for i in range(3)]))

    table = random_table(1)
    target, grid = _plan(table)
    problem = table.problem(block=5)
    threaded = replace(problem, rows=Spans(problem.rows.blocks))
    start, hessian = newton_start(table)
    one = certify(problem, start, target=target, grid=grid)
    assert certify(threaded, start, target=target, grid=grid).point.counts == one.point.counts
    exact = certify_in_decimals(threaded, Dyadic.of(start), hessian, target=target, grid=grid)
    assert distance_to_minimiser(table, exact.point.counts, grid) <= exact.radius <= target


def test_the_rounding_of_the_noise_is_part_of_the_radius():
    table = random_table(2)
    target, grid = _plan(table)
    problem = table.problem()
    loose = replace(problem, tilt_rounding=target * table.l2 / 8)
    start = newton_start(table)
    tight = certify(problem, start[0], target=target, grid=grid)
    assert certify(loose, start[0], target=target, grid=grid).radius == pytest.approx(
        tight.radius + target / 8
    )


def test_the_grid_must_be_fine_enough():
    table = random_table(1)
    with pytest.raises(ValueError, match="too coarse"):
        certify(table.problem(), newton_start(table)[0], target=1e-12, grid=2.0**-10)


def test_dyadic_vectors():
    random = np.random.default_rng(9)
    x, y = random.normal(size=(2, 200)) * 10.0 ** random.uniform(-200, 200, (2, 200))
    total = Dyadic.of(x) + Dyadic.of(y)
    assert total.doubles().tolist() == [math.fsum(p) for p in zip(x, y, strict=True)]
    np.testing.assert_array_equal(
        Dyadic.of(x).times(0.3).doubles(), [float(Fraction(v) * Fraction(0.3)) for v in x]
    )
    assert Dyadic.of(np.array([0.0, 5e-324])).doubles().tolist() == [0.0, 5e-324]
    vector = Dyadic.of(np.array([0.75, -3.0])) + Dyadic([1, 1], -10)
    assert vector.doubles().tolist() == [0.75 + 2.0**-10, -3.0 + 2.0**-10]
    assert vector.rounded(-1) == Dyadic([2, -6], -1)
    assert [power_above(value) for value in (3.0, 4.0, 0.0)] == [4.0, 4.0, 1.0]


def test_beyond_the_range_of_doubles_decimals_go_on(monkeypatch):
    def overflows(self):
        raise OverflowError("the gradient is beyond the range of doubles")

    monkeypatch.setattr("expost.fitting.certified.certify._Search.run", overflows)
    for table in (random_table(3), weighted_table(3)):
        _holds(table, newton_start(table)[0], 60)


def test_rows_whose_squares_are_no_doubles_are_certified():
    """The gradient is a double and the Hessian is none, so that only decimals can certify the minimum."""
    X, y = 1e155 * np.array([[0.6, -0.8], [0.8, 0.6], [0.0, 1.0]]), np.array([0.0, 1.0, 1.0])
    large = Table("large", X, y, LogisticLoss(), 1e300, 1e155, (np.array([3e154, -2e155]), np.zeros(2)))
    target, grid = 2.0**-520, 2.0**-530
    found = certify(large.problem(), np.zeros(2), target=target, grid=grid)
    assert found.curvature is None
    assert distance_to_minimiser(large, found.point.counts, grid) <= found.radius <= target


@pytest.mark.parametrize("hessian", [-1.0, math.nan, 1e-310], ids=["indefinite", "none", "vanishing"])
def test_a_double_hessian_that_is_no_help_changes_no_certificate(hessian):
    table = random_table(4)
    d = table.X.shape[1]
    target, grid = _plan(table)
    found = certify_in_decimals(
        table.problem(), Dyadic.of(np.zeros(d)), hessian * np.eye(d), target=target, grid=grid
    )
    assert distance_to_minimiser(table, found.point.counts, grid) <= found.radius <= target


def test_a_step_that_fails_in_few_digits_is_taken_in_more(monkeypatch):
    """Cholesky in decimals gives up on what is not positive definite in the digits it has."""
    assert (
        solve(np.array([[Decimal(1), Decimal(2)], [Decimal(2), Decimal(1)]]), np.array([Decimal(1)] * 2))
        is None
    )
    digits = []

    def gives_up_at_first(matrix, vector):
        digits.append(getcontext().prec)
        return solve(matrix, vector) if len(digits) > 1 else None

    monkeypatch.setattr("expost.fitting.certified.decimals.solve", gives_up_at_first)
    table = random_table(4)
    target, grid = _plan(table)
    start = Dyadic.of(np.zeros(table.X.shape[1]))
    found = certify_in_decimals(table.problem(), start, None, target=target, grid=grid)
    assert digits[1] >= 2 * digits[0]
    assert distance_to_minimiser(table, found.point.counts, grid) <= found.radius <= target


@pytest.mark.parametrize("error", [1e-13, 1e-16, 1e-30])
def test_the_smallest_eigenvalue_is_as_exact_as_asked(error):
    """A matrix whose smallest eigenvalue is a millionth of the other, in more digits than a double has."""
    matrix = np.array([[2.0**20 + 1.0, 2.0**10], [2.0**10, 1.0]])
    rest = np.array([[2.0**-40, 2.0**-50 / 3], [2.0**-50 / 3, 2.0**-60 / 7]])
    with mp.workdps(60):
        truth = min(mp.eigsy(mp.matrix(matrix.tolist()) + mp.matrix(rest.tolist()), eigvals_only=True))
        found = smallest_eigenvalue((matrix, rest), error)
        assert abs(mp.mpf(found.numerator) / found.denominator - truth) <= error


def test_a_hessian_of_several_spans_is_that_of_one():
    table = random_table(1)
    problem = table.problem(block=5)

    class Spans(RowBlocks):
        def sweep(self, work):
            return [work(iter(self.blocks[i::3])) for i in range(3)]

    point = Dyadic.of(newton_start(table)[0])
    (one, _), error = _summed(problem, point, 2)
    (three, _), other = _summed(replace(problem, rows=Spans(problem.rows.blocks)), point, 2)
    assert np.linalg.norm(one - three) <= error + other < 1e-11 * np.trace(one)
