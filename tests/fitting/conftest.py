"""Numerical tests are run twice: with compiled kernels, where they are installed, and with NumPy."""

from collections import Counter

import pytest

from expost._common import kernels

TWICE = {
    *("test_ex_post", "test_extremes", "test_mechanism", "test_objective", "test_solvers"),
    *("test_vector_mechanism", "test_vector_objective", "test_certify", "test_softmax_certificate"),
}
# `make test` has so many times fewer cases of a test with NumPy than with kernels; the slow run has all.
FEWER = 5


def pytest_generate_tests(metafunc):
    if metafunc.module.__name__.rpartition(".")[2] in TWICE and kernels.library() is not None:
        metafunc.parametrize("arithmetic", ["kernels", "numpy"], indirect=True)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    cases = Counter()
    for item in items:
        settings = item.callspec.params if hasattr(item, "callspec") else {}
        if settings.get("arithmetic") == "numpy" and not item.get_closest_marker("slow"):
            if cases[item.parent, item.originalname] % FEWER:
                item.add_marker(pytest.mark.slow)
            cases[item.parent, item.originalname] += 1


@pytest.fixture(autouse=True)
def arithmetic(request):
    # Accounting has no kernels: what is remembered of it is the same.
    with pytest.MonkeyPatch.context() as patch:
        if getattr(request, "param", "kernels") == "numpy":
            patch.setattr(kernels, "library", lambda: None)
        yield
