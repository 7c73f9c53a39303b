"""Shared set-up: property tests are reproducible, and certified profiles are remembered."""

import pytest
from hypothesis import settings
from remembered import MEMORY

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")
MEMORY.install()


@pytest.fixture
def remembered():
    """Remember certified profiles, though something else is replaced."""
    assert MEMORY.in_use


@pytest.fixture
def unremembered():
    """Ask the profiles themselves: what is remembered takes no time."""
    assert not MEMORY.in_use


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """Modules plan and fit too, before their first test."""
    with MEMORY.used_by(collector):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    with MEMORY.used_by(item):
        return (yield)
