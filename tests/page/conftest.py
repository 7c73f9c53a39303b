"""One browser for all tests of the page, and pages that must make no request and raise no complaint."""

import pytest
from browser import MISSING, Visit, launched


@pytest.fixture(scope="session")
def browser():
    if MISSING:
        pytest.skip(f"THE PAGE IS NOT TESTED IN A BROWSER on this machine; missing: {', '.join(MISSING)}")
    with launched() as started:
        yield started


@pytest.fixture
def open_page(browser, tmp_path):
    visits = []

    def visit(*publications, **view):
        visits.append(Visit(browser, tmp_path, publications, **view))
        return visits[-1]

    yield visit
    for one in visits:
        requests, complaints = one.close()
        assert requests == [one.path.as_uri()]
        assert complaints == []
