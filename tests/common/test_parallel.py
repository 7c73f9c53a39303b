"""How rows are cut: every row once, in order, and the same however many threads there are."""

import itertools

import pytest

from expost._common import machine
from expost._common.machine import block_length, limit_blas_threads, spans


@pytest.mark.parametrize(
    ("rows", "width", "every", "expected"),
    [
        (4_000_000, 50, 1, 62),  # of 65,536 rows
        (1_000_000, 50, 1, 32),
        (1_000_000, 50, 16, 7),  # of as many rows that are read
        (10_000, 500, 1, 10),
        (10_000, 5_000, 1, 7),
        (100, 5, 1, 1),
        (0, 5, 1, 1),
    ],
)
@pytest.mark.parametrize("threads", [1, 2, 16])
def test_spans_cover_every_row_once_and_in_order(rows, width, every, expected, threads, monkeypatch):
    monkeypatch.setattr(machine, "threads", lambda: threads)
    cut = spans(rows, width, every)
    assert len(cut) == expected
    assert (cut[0][0], cut[-1][1]) == (0, rows)
    assert all(left[1] == right[0] for left, right in itertools.pairwise(cut))
    assert all(start % 512 == 0 for start, _ in cut)  # whole chunks of compiled kernels


def test_a_block_has_as_many_numbers_whatever_their_width():
    assert block_length(64) * 64 == block_length(1) == 262_144
    assert block_length(10**9) == 64


def test_small_matrices_are_factored_in_one_thread_and_large_ones_are_not():
    with limit_blas_threads(10):
        assert machine.single_threaded_blas.users == 1
    with limit_blas_threads(5000):
        assert machine.single_threaded_blas.users == 0
