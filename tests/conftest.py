"""Shared set-up: property tests are reproducible, and certified profiles are remembered."""

import pytest
from hypothesis import settings
from remembered import MEMORY

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")
MEMORY.install()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    MEMORY.in_use = MEMORY.serves(item)
    try:
        return (yield)
    finally:
        MEMORY.in_use = False
