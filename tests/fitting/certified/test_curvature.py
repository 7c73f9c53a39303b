"""The bound on the smallest eigenvalue that a certificate divides by."""

import numpy as np
import pytest

from expost import LogisticLoss
from expost.fitting.certified import bound as bound_module
from expost.fitting.certified.bound import Curvature
from expost.fitting.certified.problem import Problem


def curvature(spectrum, l2):
    """Of rows whose squares add up to a matrix with this spectrum."""
    size = len(spectrum)
    basis = np.linalg.qr(np.random.default_rng(0).normal(size=(size, size)))[0]
    rows = (basis * spectrum) @ basis.T
    problem = Problem(rows=None, loss=LogisticLoss(), l2=l2, radius=1.0, tilt=(np.zeros(size),))
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
