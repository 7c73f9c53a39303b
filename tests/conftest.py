"""Shared set-up: property tests are reproducible, and certified profiles are remembered."""

from itertools import islice

import pytest
from hypothesis import settings
from remembered import MEMORY

from expost.audit import search

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")
MEMORY.install()


@pytest.fixture
def remembered():
    """Remember certified profiles, though something else is replaced."""
    assert MEMORY.in_use


@pytest.fixture
def every_fifth(monkeypatch, remembered):
    """Let an audit try every fifth of the structured pairs; slow tests try all."""
    structured = search._structured_pairs
    monkeypatch.setattr(
        search, "_structured_pairs", lambda *arguments: islice(structured(*arguments), 0, None, 5)
    )


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
