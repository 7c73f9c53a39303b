"""Several threads find what one thread finds."""

import itertools
import threading

import numpy as np
import pytest
from problems import CASES, rows_in_ball

import expost
from expost._common import parallel
from expost._common.parallel import map_spans


@pytest.fixture
def three_threads(monkeypatch):
    monkeypatch.setattr(parallel, "_threads", lambda: 3)


def test_spans_cover_every_row_once_and_in_order(three_threads):
    seen = map_spans(1_000_003, 2, lambda slices: [(block.start, block.stop) for block in slices])
    assert len(seen) == 3
    edges = [edge for span in seen for edge in span]
    assert edges[0][0] == 0
    assert edges[-1][1] == 1_000_003
    assert all(left[1] == right[0] for left, right in itertools.pairwise(edges))


def test_small_work_stays_in_the_callers_thread(three_threads):
    assert map_spans(100, 5, lambda slices: threading.current_thread()) == [threading.current_thread()]


def test_large_work_is_shared(three_threads):
    names = map_spans(1_000_000, 5, lambda slices: threading.current_thread().name)
    assert threading.current_thread().name not in names


def test_an_error_in_a_thread_reaches_the_caller(three_threads):
    def fail(slices):
        raise expost.exceptions.DomainError("from a thread")

    with pytest.raises(expost.exceptions.DomainError, match="from a thread"):
        map_spans(1_000_000, 5, fail)
    assert parallel._users == 0


@pytest.mark.parametrize("report", ["independent", "adaptive"])
def test_a_fit_its_losses_and_its_bounds_do_not_depend_on_the_number_of_threads(report, monkeypatch):
    rng = np.random.default_rng(6)
    X, y = rows_in_ball(rng, 120_000, 12), CASES[0].labels(rng, 120_000).astype(int)

    def everything():
        model = expost.LogisticRegression(norm=1.0, classes=[0, 1], report=report, random_state=0).fit(X, y)
        bounds = model.publication_.bounds(X, y)
        return model.coef_[0], model.ex_post_losses(X, y), bounds.upper, bounds.total

    monkeypatch.setattr(parallel, "_threads", lambda: 1)
    alone = everything()
    monkeypatch.setattr(parallel, "_threads", lambda: 3)
    for one, many in zip(alone, everything(), strict=True):
        np.testing.assert_allclose(many, one, rtol=1e-9, atol=1e-13)
