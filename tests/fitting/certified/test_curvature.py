"""The bound on the smallest eigenvalue that a certificate divides by."""

import numpy as np
import pytest
from scipy.sparse.linalg import ArpackNoConvergence

from expost import LogisticLoss
from expost.fitting.certified import bound as bound_module
from expost.fitting.certified.bound import Curvature, ExactProblem, _lifted, _solve


def curvature(spectrum, l2):
    """Of rows whose squares add up to a matrix with this spectrum."""
    size = len(spectrum)
    basis = np.linalg.qr(np.random.default_rng(0).normal(size=(size, size)))[0]
    rows = (basis * spectrum) @ basis.T
    problem = ExactProblem(rows=None, loss=LogisticLoss(), l2=l2, radius=1.0, tilt=(np.zeros(size),))
    return Curvature.of(0.5 * (rows + rows.T), np.zeros(size), problem, chain=10)


@pytest.mark.parametrize("many", [10, 10_000])
@pytest.mark.parametrize("smallest", [3.0, 500.0])
@pytest.mark.parametrize("spread", [0.0, 1e-6, 1e4])
def test_the_smallest_eigenvalue_is_bounded_closely_by_either_method(monkeypatch, many, smallest, spread):
    """From all eigenvalues or from the factor; clustered, equal or far apart."""
    monkeypatch.setattr(bound_module, "_MANY", many)
    found = curvature(smallest + spread * np.linspace(0.0, 1.0, 60), l2=0.5)
    assert 0.96 * (smallest + 0.5) <= found.smallest <= smallest + 0.5


def test_the_penalty_is_the_bound_where_no_other_can_be_twice_as_large(monkeypatch):
    monkeypatch.setattr(bound_module, "_MANY", 10)
    assert curvature(np.linspace(0.1, 0.9, 40), l2=1.0).smallest == 1.0
    assert curvature(np.zeros(40), l2=1.0).smallest == 1.0


@pytest.mark.parametrize("many", [10, 10_000])
def test_an_estimate_that_is_too_large_proves_nothing(monkeypatch, many):
    """The factorisation is the proof: where it does not run through, the penalty is all that is known."""
    monkeypatch.setattr(bound_module, "_MANY", many)
    monkeypatch.setattr(Curvature, "_estimate", lambda self: 3.9)
    assert curvature(np.linspace(3.0, 90.0, 40), l2=0.5).smallest == 0.5


def test_where_lanczos_fails_the_penalty_is_the_bound(monkeypatch):
    def fails(*arguments, **options):
        raise ArpackNoConvergence("no", np.empty(0), np.empty((0, 0)))

    monkeypatch.setattr(bound_module, "_MANY", 10)
    monkeypatch.setattr("scipy.sparse.linalg.eigsh", fails)
    assert curvature(np.linspace(3.0, 90.0, 40), l2=0.5).smallest == 0.5


def test_a_matrix_that_is_not_quite_positive_definite_is_lifted_until_it_is():
    matrix = np.diag([1.0, 1.0, -1e-12])
    (factor, lower), lift = next(_lifted(matrix))
    assert lower
    assert 1e-12 < lift < 8e-12
    np.testing.assert_allclose(
        np.diag(np.tril(factor) @ np.tril(factor).T), np.diag(matrix) + lift, rtol=1e-3
    )
    with pytest.raises(OverflowError, match="beyond the range of doubles"):
        next(_lifted(np.zeros((2, 2))))


def test_a_step_beyond_doubles_is_taken_with_a_lift():
    step = _solve(np.diag([1.0, 1e-310]), np.array([1.0, 1.0]))
    assert step[0] == pytest.approx(1.0)
    assert 1e14 < step[1] < 1e16  # over the rounding of the trace
    with pytest.raises(OverflowError, match="beyond the range of doubles"):
        _solve(np.diag([1e-320, 1e-320]), np.array([1.0, 1.0]))
