"""Several threads find what one thread finds, in the order of the parts."""

import os
import threading
import time
from dataclasses import dataclass

import numpy as np
import pytest
from problems import CASES, rows_in_ball

import expost
from expost._common import machine
from expost.engines.base import LOCAL
from expost.exceptions import DomainError


@pytest.fixture
def three_threads(monkeypatch):
    monkeypatch.setattr(machine, "threads", lambda: 3)


@dataclass(frozen=True)
class Numbers:
    """A part whose blocks are runs of numbers."""

    start: int
    stop: int

    def blocks(self, length):
        yield from (range(low, min(low + length, self.stop)) for low in range(self.start, self.stop, length))


PARTS = [Numbers(10 * k, 10 * k + 7) for k in range(20)]


@pytest.mark.parametrize("threads", [1, 3, 64])
def test_results_come_in_the_order_of_the_parts(threads, monkeypatch):
    monkeypatch.setattr(machine, "threads", lambda: threads)

    def late(blocks):
        (first, *_) = blocks
        time.sleep(0.002 * (19 - first[0] // 10) / 20)
        return first[0]

    assert list(LOCAL.map(late, PARTS, 100)) == [part.start for part in PARTS]


def test_blocks_are_as_long_as_asked(three_threads):
    lengths = LOCAL.map(lambda blocks: [len(block) for block in blocks], PARTS, 3)
    assert list(lengths) == [[3, 3, 1]] * 20


def test_one_part_stays_in_the_callers_thread_and_several_are_shared(three_threads):
    def here(blocks):
        return threading.current_thread()

    assert list(LOCAL.map(here, PARTS[:1], 1)) == [threading.current_thread()]
    assert threading.current_thread() not in list(LOCAL.map(here, PARTS, 1))


def test_few_results_wait_for_their_turn(three_threads):
    """A caller that takes the results slowly does not find all of them computed meanwhile."""
    started = []
    results = LOCAL.map(lambda blocks: started.append(next(blocks)), PARTS, 1)
    next(results)
    time.sleep(0.05)
    assert len(started) <= 7
    results.close()
    assert machine.single_threaded_blas.users == 0


def test_nothing_runs_on_after_a_pass_was_left(three_threads):
    """Threads are kept for the next pass, but none of them still reads rows for this one."""
    ended = []

    def slow(blocks):
        time.sleep(0.02)
        ended.append(next(blocks))

    results = LOCAL.map(slow, PARTS, 1)
    next(results)
    results.close()
    count = len(ended)
    time.sleep(0.05)
    assert len(ended) == count


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no child processes of this kind")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_process_starts_threads_of_its_own(three_threads):
    wanted = list(LOCAL.map(lambda blocks: sum(map(sum, blocks)), PARTS, 2))
    child = os.fork()
    if child == 0:
        os._exit(0 if list(LOCAL.map(lambda blocks: sum(map(sum, blocks)), PARTS, 2)) == wanted else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_an_error_in_a_thread_reaches_the_caller(three_threads):
    def fail(blocks):
        raise DomainError("from a thread")

    with pytest.raises(DomainError, match="from a thread"):
        list(LOCAL.map(fail, PARTS, 1))
    assert machine.single_threaded_blas.users == 0


@pytest.mark.parametrize("report", ["independent", "adaptive"])
def test_a_fit_its_losses_and_its_bounds_do_not_depend_on_the_number_of_threads(
    report, monkeypatch, remembered
):
    rng = np.random.default_rng(6)
    X, y = rows_in_ball(rng, 120_000, 12), CASES[0].labels(rng, 120_000).astype(int)

    def everything():
        model = expost.LogisticRegression(norm=1.0, classes=[0, 1], report=report, random_state=0).fit(X, y)
        bounds = model.publication_.bounds(X, y)
        return model.coef_[0], model.ex_post_losses(X, y), bounds.upper, bounds.total

    monkeypatch.setattr(machine, "threads", lambda: 1)
    alone = everything()
    monkeypatch.setattr(machine, "threads", lambda: 3)
    for one, many in zip(alone, everything(), strict=True):
        np.testing.assert_allclose(many, one, rtol=1e-9, atol=1e-13)
