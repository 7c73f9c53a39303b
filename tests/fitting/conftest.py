"""Numerical tests are run twice: with compiled kernels, where they are installed, and with NumPy."""

import pytest

from expost._common import kernels

TWICE = {
    *("test_ex_post", "test_extremes", "test_mechanism", "test_objective", "test_solvers"),
    *("test_vector_mechanism", "test_vector_objective", "test_certify", "test_softmax_certificate"),
}


def pytest_generate_tests(metafunc):
    if metafunc.module.__name__.rpartition(".")[2] in TWICE and kernels.library() is not None:
        metafunc.parametrize("arithmetic", ["kernels", "numpy"], indirect=True)


@pytest.fixture(autouse=True)
def arithmetic(request, monkeypatch):
    if getattr(request, "param", "kernels") == "numpy":
        monkeypatch.setattr(kernels, "library", lambda: None)
